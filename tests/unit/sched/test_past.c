/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Past use: counted, halved, kept over a restart, and the same however often turns are asked for.
 */
#include <errno.h>

#include "small_world.h"

#define HALF_LIFE 640000

static void two_teams(struct small_world *w, int64_t half_life_ms)
{
    struct sched_config config;
    sched_config_default(&config);
    config.past_half_life_ms = half_life_ms;
    world_init_config(w, &config);
    w->now_ms = HALF_LIFE; /* a step */
    world_node(w, 1, 8);
    world_team(w, 1, 0, 0);
    world_team(w, 2, 0, 0);
    world_turn(w);
}

static struct sched_team_usage usage(struct small_world *w, uint64_t team)
{
    struct sched_team_usage u;
    assert_int_equal(sched_team_usage(w->s, team, &u), 0);
    return u;
}

static int64_t past(struct small_world *w, uint64_t team)
{
    return usage(w, team).past[SCHED_GPU_MILLI];
}

static void test_use_is_counted_to_the_millisecond_and_halves(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, HALF_LIFE);
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    w.now_ms += 9000; /* within the step */
    world_finish(&w, job, 0);
    world_settle(&w);
    assert_int_equal(past(&w, 1), 2000 * 9000);
    w.now_ms += HALF_LIFE;
    world_settle(&w);
    assert_in_range(past(&w, 1), 1000 * 9000 - 64, 1000 * 9000);
    assert_int_equal(past(&w, 2), 0);
    world_done(&w);
}

static void test_it_does_not_matter_how_often_one_looks(void **state)
{
    (void)state;
    int64_t seen[2];
    for (int often = 0; often < 2; often++) {
        struct small_world w;
        two_teams(&w, HALF_LIFE);
        world_job(&w, (struct job){.team = 1, .gpu_milli = 3000});
        world_settle(&w);
        int64_t end = w.now_ms + 123457;
        while (often > 0 && w.now_ms + 777 < end) {
            w.now_ms += 777;
            world_turn(&w);
        }
        w.now_ms = end;
        world_turn(&w);
        seen[often] = past(&w, 1);
        world_done(&w);
    }
    assert_int_equal(seen[0], seen[1]);
}

static void test_who_used_all_counts_less(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, HALF_LIFE);
    assert_int_equal(usage(&w, 1).bias_milli[SCHED_GPU_MILLI], 1000);
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 8000});
    world_settle(&w);
    w.now_ms += 100000;
    world_finish(&w, job, 0);
    world_settle(&w);
    assert_int_equal(usage(&w, 1).bias_milli[SCHED_GPU_MILLI], 500);
    assert_int_equal(usage(&w, 2).bias_milli[SCHED_GPU_MILLI], 4000);
    world_done(&w);
}

static void test_the_past_is_restored(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, HALF_LIFE);
    int64_t all[SCHED_RESOURCES] = {6400000}, bad[SCHED_RESOURCES] = {-1};
    int64_t at = w.now_ms + 10;
    assert_int_equal(sched_team_past_set(w.s, 1, all, at), 0);
    assert_int_equal(past(&w, 1), 6400000);
    assert_int_equal(sched_team_past_set(w.s, 9, all, at), -ENOENT);
    assert_int_equal(sched_team_past_set(w.s, 1, bad, at), -EINVAL);
    assert_int_equal(sched_team_past_set(w.s, 1, all, at - 11), -EINVAL);
    assert_int_equal(usage(&w, 1).bias_milli[SCHED_GPU_MILLI], 500);
    world_done(&w);
}

static void test_without_a_half_life_nothing_is_counted(void **state)
{
    (void)state;
    struct small_world w;
    two_teams(&w, 0);
    world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 8000});
    world_settle(&w);
    w.now_ms += HALF_LIFE;
    world_settle(&w);
    assert_int_equal(past(&w, 1), 0);
    assert_int_equal(usage(&w, 1).bias_milli[SCHED_GPU_MILLI], 1000);
    assert_int_equal(sched_next_ms(w.s), INT64_MAX);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_use_is_counted_to_the_millisecond_and_halves),
        cmocka_unit_test(test_it_does_not_matter_how_often_one_looks),
        cmocka_unit_test(test_who_used_all_counts_less),
        cmocka_unit_test(test_the_past_is_restored),
        cmocka_unit_test(test_without_a_half_life_nothing_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
