/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

#define MINUTE 60000

static void four_devices(struct small_world *w)
{
    world_init(w);
    world_node(w, 1, 4);
    world_team(w, 1, 0, 100000);
}

static uint64_t firm(struct small_world *w, int milli, int priority, int64_t limit_ms)
{
    return world_job(w, (struct job){.team = 1,
                                     .gpu_milli = milli,
                                     .priority = priority,
                                     .firm = true,
                                     .limit_ms = limit_ms});
}

/* Half of them run work that cannot be evicted, with a limit of LIMIT_MS; and it has begun. */
static void half_in_use(struct small_world *w, int64_t limit_ms)
{
    four_devices(w);
    firm(w, 2000, 0, limit_ms);
    world_settle(w);
}

static void test_backfill_ends_before_the_reserved_start(void **state)
{
    (void)state;
    struct small_world w;
    half_in_use(&w, 10 * MINUTE);
    uint64_t head = firm(&w, 4000, 9, 60 * MINUTE);
    uint64_t longer = firm(&w, 2000, 5, 20 * MINUTE);
    uint64_t shorter = firm(&w, 2000, 1, 5 * MINUTE);
    world_settle(&w);
    assert_pending(&w, head);
    assert_pending(&w, longer);
    assert_running(&w, shorter);
    struct sched_explanation e;
    assert_int_equal(sched_explain(w.s, head, w.now_ms, &e), 0);
    assert_int_equal(e.basis, SCHED_START_LIMITS);
    assert_int_equal(e.start_ms, 1000 + 10 * MINUTE);
    world_done(&w);
}

static void test_the_shorter_of_equal_jobs_goes_ahead(void **state)
{
    (void)state;
    struct small_world w;
    half_in_use(&w, 10 * MINUTE);
    firm(&w, 4000, 9, 60 * MINUTE);
    uint64_t longer = firm(&w, 1000, 5, 20 * MINUTE), none = firm(&w, 1000, 5, 0);
    uint64_t shorter = firm(&w, 1000, 5, 5 * MINUTE);
    world_settle(&w);
    assert_pending(&w, longer);
    assert_pending(&w, none);
    assert_running(&w, shorter);
    uint64_t later = firm(&w, 1000, 5, 5 * MINUTE); /* submitted when its kind has been parked */
    world_settle(&w);
    assert_running(&w, later);
    world_done(&w);
}

static void test_no_declared_ends_no_reservation(void **state)
{
    (void)state;
    struct small_world w;
    half_in_use(&w, 0);
    uint64_t head = firm(&w, 4000, 9, 60 * MINUTE);
    uint64_t longer = firm(&w, 2000, 5, 20 * MINUTE);
    world_settle(&w);
    assert_running(&w, longer);
    struct sched_explanation e;
    assert_int_equal(sched_explain(w.s, head, w.now_ms, &e), 0);
    assert_int_equal(e.basis, SCHED_START_UNKNOWN);
    world_done(&w);
}

static void test_a_later_submit_respects_the_reservation_too(void **state)
{
    (void)state;
    struct small_world w;
    half_in_use(&w, 10 * MINUTE);
    firm(&w, 4000, 9, 60 * MINUTE);
    world_settle(&w);
    uint64_t longer = firm(&w, 2000, 5, 20 * MINUTE);
    world_settle(&w);
    assert_pending(&w, longer);
    struct sched_explanation e;
    assert_int_equal(sched_explain(w.s, longer, w.now_ms, &e), 0);
    assert_int_equal(e.reason, SCHED_REASON_RESERVED);
    assert_int_equal(e.basis, SCHED_START_RESERVED);
    assert_int_not_equal(e.waits_for, 0);
    assert_int_equal(e.run_ms, e.start_ms - w.now_ms);
    assert_true(e.run_ms > 0);
    world_done(&w);
}

static void test_work_that_could_be_evicted_anyway_may_start(void **state)
{
    (void)state;
    struct small_world w;
    half_in_use(&w, 10 * MINUTE);
    firm(&w, 4000, 9, 60 * MINUTE);
    uint64_t soft = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_running(&w, soft);
    world_done(&w);
}

static void test_a_cancelled_head_lets_the_others_go(void **state)
{
    (void)state;
    struct small_world w;
    half_in_use(&w, 10 * MINUTE);
    uint64_t head = firm(&w, 4000, 9, 60 * MINUTE);
    uint64_t longer = firm(&w, 2000, 5, 20 * MINUTE);
    world_settle(&w);
    assert_pending(&w, longer);
    assert_int_equal(sched_workload_remove(w.s, head), 0);
    world_settle(&w);
    assert_running(&w, longer);
    world_done(&w);
}

static void test_a_stream_of_small_jobs_does_not_starve_a_gang(void **state)
{
    (void)state;
    struct small_world w;
    four_devices(&w);
    uint64_t running[4], next = 0;
    for (int i = 0; i < 4; i++)
        running[i] = firm(&w, 1000, 0, (10 + i) * MINUTE);
    world_settle(&w);
    uint64_t gang = firm(&w, 4000, 0, 60 * MINUTE);
    for (int i = 0; i < 4; i++) {
        w.now_ms = 1000 + (10 + i) * MINUTE;
        world_finish(&w, running[i], 0);
        next = firm(&w, 1000, 0, 10 * MINUTE);
        world_settle(&w);
        assert_pending(&w, next);
    }
    assert_running(&w, gang);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backfill_ends_before_the_reserved_start),
        cmocka_unit_test(test_the_shorter_of_equal_jobs_goes_ahead),
        cmocka_unit_test(test_no_declared_ends_no_reservation),
        cmocka_unit_test(test_a_later_submit_respects_the_reservation_too),
        cmocka_unit_test(test_work_that_could_be_evicted_anyway_may_start),
        cmocka_unit_test(test_a_cancelled_head_lets_the_others_go),
        cmocka_unit_test(test_a_stream_of_small_jobs_does_not_starve_a_gang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
