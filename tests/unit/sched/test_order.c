/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

/* Starts in the order of the decisions of one turn. */
static void expect_starts(struct small_world *w, const uint64_t *ids, size_t count)
{
    const struct sched_decisions *d = sched_turn(w->s, w->now_ms);
    assert_int_equal(d->count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(d->items[i].kind, SCHED_START);
        assert_int_equal(d->items[i].workload, ids[i]);
    }
}

static uint64_t job_of(struct small_world *w, uint64_t team, int priority)
{
    return world_job(w, (struct job){.team = team, .gpu_milli = 1000, .priority = priority});
}

static void test_inside_a_team_class_then_priority_then_age(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 8);
    world_team(&w, 1, 0, 8000);
    uint64_t late = job_of(&w, 1, 1), later = job_of(&w, 1, 1), high = job_of(&w, 1, 5);
    uint64_t first = world_job(&w, (struct job){.team = 1,
                                                .gpu_milli = 1000,
                                                .firm = true,
                                                .other_class = true,
                                                .class_ = SCHED_CLASS_PRODUCTION});
    expect_starts(&w, (uint64_t[]){first, high, late, later}, 4);
    world_done(&w);
}

static void test_the_smaller_dominant_share_goes_first_each_time(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 6);
    world_team_full(&w, 1, 0, 4000, SCHED_UNLIMITED, 0, 100);
    world_team_full(&w, 2, 0, 2000, SCHED_UNLIMITED, 0, 100);
    uint64_t a[4], b[2];
    for (int i = 0; i < 4; i++)
        a[i] = job_of(&w, 1, 0);
    for (int i = 0; i < 2; i++)
        b[i] = job_of(&w, 2, 0);
    /* 1/4 before 1/2; then 1/2 of the older team before 1/2; ... */
    expect_starts(&w, (uint64_t[]){a[0], a[1], b[0], a[2], a[3], b[1]}, 6);
    world_done(&w);
}

static void test_who_stays_within_its_guarantee_comes_before_a_higher_sibling(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 1);
    world_team_full(&w, 1, 0, 0, SCHED_UNLIMITED, 1, 900);
    world_team_full(&w, 2, 0, 1000, SCHED_UNLIMITED, 1, 100);
    job_of(&w, 1, 0);
    uint64_t b = job_of(&w, 2, 0);
    expect_starts(&w, (uint64_t[]){b}, 1);
    world_done(&w);
}

static void test_sibling_priority_comes_before_shares(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 3);
    world_team_full(&w, 1, 0, 2000, SCHED_UNLIMITED, 0, 100);
    world_team_full(&w, 2, 0, 2000, SCHED_UNLIMITED, 0, 200);
    uint64_t a = job_of(&w, 1, 0);
    job_of(&w, 1, 0);
    uint64_t b = job_of(&w, 2, 0), c = job_of(&w, 2, 0);
    expect_starts(&w, (uint64_t[]){b, c, a}, 3);
    world_done(&w);
}

static void test_levels_are_decided_one_by_one(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4);
    world_team_full(&w, 1, 0, 2000, SCHED_UNLIMITED, 0, 100);
    world_team_full(&w, 2, 0, 2000, SCHED_UNLIMITED, 0, 100);
    world_team_full(&w, 3, 1, 1000, SCHED_UNLIMITED, 0, 100);
    world_team_full(&w, 4, 1, 1000, SCHED_UNLIMITED, 0, 100);
    world_team_full(&w, 5, 2, 2000, SCHED_UNLIMITED, 0, 100);
    uint64_t a = job_of(&w, 3, 0), b = job_of(&w, 4, 0), c = job_of(&w, 5, 0), d = job_of(&w, 5, 0);
    expect_starts(&w, (uint64_t[]){a, c, b, d}, 4); /* departments take turns */
    world_done(&w);
}

static void test_the_same_calls_give_the_same_decisions(void **state)
{
    (void)state;
    uint64_t seen[2][6];
    for (int run = 0; run < 2; run++) {
        struct small_world w;
        world_init(&w);
        world_node(&w, 1, 6);
        for (uint64_t t = 1; t <= 3; t++)
            world_team(&w, t, 0, 2000);
        for (int i = 0; i < 12; i++)
            job_of(&w, 1 + (uint64_t)i % 3, i % 2);
        const struct sched_decisions *d = sched_turn(w.s, w.now_ms);
        assert_int_equal(d->count, 6);
        for (size_t i = 0; i < 6; i++)
            seen[run][i] = d->items[i].workload * 100 + d->items[i].devices[0];
        world_done(&w);
    }
    assert_memory_equal(seen[0], seen[1], sizeof(seen[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inside_a_team_class_then_priority_then_age),
        cmocka_unit_test(test_the_smaller_dominant_share_goes_first_each_time),
        cmocka_unit_test(test_who_stays_within_its_guarantee_comes_before_a_higher_sibling),
        cmocka_unit_test(test_sibling_priority_comes_before_shares),
        cmocka_unit_test(test_levels_are_decided_one_by_one),
        cmocka_unit_test(test_the_same_calls_give_the_same_decisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
