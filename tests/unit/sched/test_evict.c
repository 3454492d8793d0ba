/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preempt, reclaim, idle-only: who may evict whom, and that no more go than needed.
 */
#include "small_world.h"

static void two_teams(struct small_world *w, uint32_t gpus, int64_t first, int64_t second)
{
    world_init(w);
    world_node(w, 1, gpus);
    world_team_full(w, 1, 0, first, SCHED_UNLIMITED, 0, 100);
    world_team_full(w, 2, 0, second, SCHED_UNLIMITED, 0, 100);
}

static uint64_t job_of(struct small_world *w, uint64_t team, int milli, int priority)
{
    return world_job(w, (struct job){.team = team, .gpu_milli = milli, .priority = priority});
}

static uint64_t classed(struct small_world *w, uint64_t team, int milli, enum sched_class class_)
{
    return world_job(w, (struct job){.team = team,
                                     .gpu_milli = milli,
                                     .other_class = true,
                                     .class_ = class_,
                                     .firm = class_ == SCHED_CLASS_PRODUCTION});
}

static void test_strictly_higher_priority_preempts_in_its_team(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 1000, 0);
    uint64_t low = job_of(&w, 1, 1000, 1);
    world_settle(&w);
    uint64_t same = job_of(&w, 1, 1000, 1);
    world_settle(&w);
    assert_running(&w, low);
    uint64_t high = job_of(&w, 1, 1000, 2);
    world_settle(&w);
    assert_running(&w, high);
    assert_pending(&w, low);
    assert_pending(&w, same);
    assert_int_equal(w.last_evict.cause, SCHED_CAUSE_PREEMPT);
    assert_int_equal(w.last_evict.on_behalf_of, high);
    world_done(&w);
}

static void test_priority_means_nothing_across_teams(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 1000, 0);
    uint64_t a = job_of(&w, 1, 1000, 0);
    world_settle(&w);
    uint64_t b = job_of(&w, 2, 1000, 99);
    world_settle(&w);
    assert_running(&w, a);
    assert_pending(&w, b);
    world_done(&w);
}

static void test_class_comes_before_priority(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 1000, 0);
    uint64_t low = world_job(&w, (struct job){.team = 1,
                                              .gpu_milli = 1000,
                                              .priority = 9,
                                              .other_class = true,
                                              .class_ = SCHED_CLASS_DEVELOPMENT});
    world_settle(&w);
    uint64_t high = classed(&w, 1, 1000, SCHED_CLASS_TRAINING);
    world_settle(&w);
    assert_running(&w, high);
    assert_pending(&w, low);
    world_done(&w);
}

static void test_what_is_not_preemptible_stays(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 1000, 1000);
    uint64_t firm = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .firm = true});
    world_settle(&w);
    job_of(&w, 1, 1000, 50);
    job_of(&w, 2, 1000, 50);
    world_settle(&w);
    assert_running(&w, firm);
    world_done(&w);
}

static void test_an_entitled_team_reclaims_from_one_above_its_share(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 4, 2000, 2000);
    uint64_t old = job_of(&w, 1, 2000, 0), young = job_of(&w, 1, 2000, 0);
    world_settle(&w);
    uint64_t b = job_of(&w, 2, 2000, 0);
    world_settle(&w);
    assert_running(&w, b);
    assert_running(&w, old);
    assert_pending(&w, young);
    assert_int_equal(w.last_evict.cause, SCHED_CAUSE_RECLAIM);
    assert_int_equal(w.last_evict.team, 2);
    assert_int_equal(w.evictions, 1);
    world_done(&w);
}

static void test_a_team_at_its_guarantee_loses_nothing(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 2, 2000, 2000); /* guarantees above the capacity */
    uint64_t a = job_of(&w, 1, 1000, 0), b = job_of(&w, 1, 1000, 0);
    world_settle(&w);
    uint64_t c = job_of(&w, 2, 1000, 0);
    world_settle(&w);
    assert_running(&w, a);
    assert_running(&w, b);
    assert_pending(&w, c);
    world_done(&w);
}

static void test_a_unit_that_straddles_the_line_goes_whole(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 8, 6000, 5000);
    uint64_t big = job_of(&w, 1, 8000, 0);
    world_settle(&w);
    uint64_t b = job_of(&w, 2, 5000, 0);
    world_settle(&w);
    assert_running(&w, b);
    assert_pending(&w, big);
    world_done(&w);
}

static void test_nobody_goes_who_is_not_needed(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 4, 4000, 0);
    uint64_t one = job_of(&w, 2, 1000, 0), three = job_of(&w, 2, 3000, 0);
    world_settle(&w);
    uint64_t b = job_of(&w, 1, 2000, 0);
    world_settle(&w);
    assert_running(&w, b);
    assert_running(&w, one); /* the younger one alone was enough */
    assert_pending(&w, three);
    assert_int_equal(w.evictions, 1);
    world_done(&w);
}

static void test_a_rigid_gang_goes_as_a_whole(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 4, 4000, 0);
    uint64_t gang = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000, .tasks = 4});
    world_settle(&w);
    job_of(&w, 1, 1000, 0);
    world_settle(&w);
    assert_int_equal(world_running(&w, gang, 4), 0);
    assert_int_equal(w.evictions, 4);
    world_done(&w);
}

static void test_an_elastic_workload_shrinks_first(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 4, 4000, 0);
    uint64_t e = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000, .tasks = 4, .min = 2});
    world_settle(&w);
    assert_int_equal(world_running(&w, e, 4), 4);
    job_of(&w, 1, 1000, 0);
    world_settle(&w);
    assert_int_equal(world_running(&w, e, 4), 3);
    assert_int_equal(w.evictions, 1);
    world_done(&w);
}

static void test_batch_gives_way_to_any_other_work(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 2, 0, 0);
    uint64_t batch = classed(&w, 1, 1000, SCHED_CLASS_BATCH);
    uint64_t train = classed(&w, 1, 1000, SCHED_CLASS_TRAINING);
    world_settle(&w);
    uint64_t b = classed(&w, 2, 1000, SCHED_CLASS_DEVELOPMENT); /* entitled to nothing */
    world_settle(&w);
    assert_running(&w, b);
    assert_running(&w, train);
    assert_pending(&w, batch);
    assert_int_equal(w.last_evict.cause, SCHED_CAUSE_IDLE_ONLY);
    world_done(&w);
}

static void test_batch_within_the_guarantee_of_its_team_is_left_alone(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 1000, 0);
    uint64_t batch = classed(&w, 1, 1000, SCHED_CLASS_BATCH);
    world_settle(&w);
    uint64_t b = classed(&w, 2, 1000, SCHED_CLASS_TRAINING);
    world_settle(&w);
    assert_running(&w, batch);
    assert_pending(&w, b);
    world_done(&w);
}

static void test_batch_evicts_nobody(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 0, 1000);
    uint64_t a = job_of(&w, 1, 1000, 0);
    world_settle(&w);
    uint64_t batch = classed(&w, 2, 1000, SCHED_CLASS_BATCH);
    world_settle(&w);
    assert_running(&w, a);
    assert_pending(&w, batch);
    world_done(&w);
}

static void test_a_minimum_run_time_protects_for_a_while(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 1, 1000, 0);
    uint64_t a = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000, .min_run_ms = 60000});
    world_settle(&w);
    uint64_t b = job_of(&w, 1, 1000, 0);
    world_settle(&w);
    assert_running(&w, a);
    assert_int_equal(sched_next_ms(w.s), w.now_ms + 60000);
    w.now_ms += 60000;
    world_settle(&w);
    assert_running(&w, b);
    world_done(&w);
}

static void test_a_gate_alone_can_make_eviction_due(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 2);
    world_team_full(&w, 1, 0, 1000, 1000, 1, 100);
    uint64_t low = job_of(&w, 1, 1000, 0);
    world_settle(&w);
    uint64_t high = job_of(&w, 1, 1000, 5); /* a device is idle, the limit is not */
    world_settle(&w);
    assert_running(&w, high);
    assert_pending(&w, low);
    world_done(&w);
}

static void test_the_victim_does_not_take_its_place_back(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 4, 2000, 2000);
    job_of(&w, 1, 4000, 0);
    world_settle(&w);
    job_of(&w, 2, 2000, 0);
    world_settle(&w);
    unsigned evictions = w.evictions;
    for (int i = 0; i < 5; i++) {
        w.now_ms += 1000000;
        world_settle(&w);
    }
    assert_int_equal(w.evictions, evictions);
    world_done(&w);
}

static void test_the_price_is_the_work_lost_by_size(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 2, 2000, 0);
    job_of(&w, 2, 2000, 0);
    world_settle(&w);
    w.now_ms += 30000;
    job_of(&w, 1, 2000, 0);
    world_settle(&w);
    assert_int_equal(w.last_evict.price_ms, 60000);
    world_done(&w);
}

static void test_evictions_keep_to_a_disruption_budget(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 4, 4000, 0);
    uint64_t service = world_job(&w, (struct job){.team = 1,
                                                  .gpu_milli = 1000,
                                                  .tasks = 4,
                                                  .min = 1,
                                                  .other_class = true,
                                                  .class_ = SCHED_CLASS_DEVELOPMENT,
                                                  .no_burst = true,
                                                  .max_unavailable = 2});
    world_settle(&w);
    assert_int_equal(world_running(&w, service, 4), 4);
    uint64_t large = job_of(&w, 1, 3000, 0); /* three replicas would have to go at once */
    world_settle(&w);
    assert_pending(&w, large);
    assert_int_equal(w.evictions, 0);
    uint64_t first = job_of(&w, 1, 1000, 0), second = job_of(&w, 1, 1000, 0);
    uint64_t third = job_of(&w, 1, 1000, 0);
    world_settle(&w);
    assert_running(&w, first);
    assert_running(&w, second);
    assert_pending(&w, third); /* two have no place: the budget is used up */
    assert_int_equal(world_running(&w, service, 4), 2);
    world_node(&w, 2, 1);
    world_settle(&w);
    assert_running(&w, third);
    assert_int_equal(world_running(&w, service, 4), 2);
    world_done(&w);
}

/* Turns until none has anything to decide and none is asked for. Returns how many that took. */
static unsigned settle_wholly(struct small_world *w)
{
    unsigned turns = 0;
    for (; world_turn(w) > 0 || sched_next_ms(w->s) <= w->now_ms; turns++)
        assert_true(turns < 1000);
    return turns;
}

/* Eight of one node in a cluster where nodes that are looked at first cannot be cleared, because
 * of one that its team keeps, or of one that is protected. */
static void test_a_large_cluster_is_looked_through_to_the_end(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_team(&w, 1, 0, 8000);
    world_team(&w, 2, 0, 150000);
    world_team_full(&w, 3, 0, 0, SCHED_UNLIMITED, 0, 100);
    for (uint64_t n = 1; n <= 200; n++) {
        world_node(&w, n, 8);
        struct job kept = {.team = n <= 100 ? 2 : 3, .gpu_milli = 1000, .only_node = n};
        if (n > 100 && n < 200)
            kept.min_run_ms = 1000000000;
        world_job(&w, kept);
        for (int k = 1; k < 8; k++)
            world_job(&w, (struct job){.team = 3, .gpu_milli = 1000, .only_node = n});
    }
    world_settle(&w);
    assert_int_equal(w.starts, 1600);
    uint64_t large = world_job(&w, (struct job){.team = 1, .gpu_milli = 8000});
    assert_true(settle_wholly(&w) > 1); /* one does not look at so many */
    assert_running(&w, large);
    assert_int_equal(world_where(&w, large, 0), 200);
    assert_int_equal(w.evictions, 8);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strictly_higher_priority_preempts_in_its_team),
        cmocka_unit_test(test_priority_means_nothing_across_teams),
        cmocka_unit_test(test_class_comes_before_priority),
        cmocka_unit_test(test_what_is_not_preemptible_stays),
        cmocka_unit_test(test_an_entitled_team_reclaims_from_one_above_its_share),
        cmocka_unit_test(test_a_team_at_its_guarantee_loses_nothing),
        cmocka_unit_test(test_a_unit_that_straddles_the_line_goes_whole),
        cmocka_unit_test(test_nobody_goes_who_is_not_needed),
        cmocka_unit_test(test_a_rigid_gang_goes_as_a_whole),
        cmocka_unit_test(test_an_elastic_workload_shrinks_first),
        cmocka_unit_test(test_batch_gives_way_to_any_other_work),
        cmocka_unit_test(test_batch_within_the_guarantee_of_its_team_is_left_alone),
        cmocka_unit_test(test_batch_evicts_nobody),
        cmocka_unit_test(test_a_minimum_run_time_protects_for_a_while),
        cmocka_unit_test(test_a_gate_alone_can_make_eviction_due),
        cmocka_unit_test(test_the_victim_does_not_take_its_place_back),
        cmocka_unit_test(test_the_price_is_the_work_lost_by_size),
        cmocka_unit_test(test_evictions_keep_to_a_disruption_budget),
        cmocka_unit_test(test_a_large_cluster_is_looked_through_to_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
