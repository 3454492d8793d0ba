/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "sim/replay.h"

#define S(seconds) ((int64_t)(seconds)*1000)
#define HOUR 3600

/* Half of all minutes idle, the others at 40 or 80 %. */
static struct use_point points[] = {{0, 5000}, {4000, 7500}, {8000, 10000}};
static const struct use_curve curve = {.points = points, .count = 3};

static struct philly trace_of(struct philly_job *jobs, size_t count, uint32_t teams)
{
    struct philly trace = {.jobs = jobs, .count = count, .team_count = teams};
    for (uint32_t t = 0; t < teams; t++)
        trace.teams[t] = "team";
    return trace;
}

static struct replay_result replayed(const struct philly *trace, const struct replay_options *o,
                                     const struct replay_result *alone)
{
    struct replay_result r;
    assert_int_equal(replay_run(trace, &curve, o, alone, &r, NULL), 0);
    return r;
}

/* Two teams, a node of 8. Both want 8 for an hour, the second from half an hour on; the last job
 * only ends the window. */
static const struct philly_job contended[] = {
    {.submit_ms = 0, .run_ms = S(HOUR), .gpus = 4, .team = 0},
    {.submit_ms = 0, .run_ms = S(HOUR), .gpus = 4, .team = 0},
    {.submit_ms = S(1800), .run_ms = S(HOUR), .gpus = 4, .team = 1},
    {.submit_ms = S(4 * HOUR), .run_ms = S(10), .gpus = 1, .team = 1},
};

static struct replay_options options(enum replay_policy policy, uint32_t gpus)
{
    struct replay_options o;
    replay_options_default(&o);
    o.policy = policy;
    o.gpus = gpus;
    o.checkpoint_ms = S(600);
    return o;
}

static void each_policy_gives_the_waits_of_a_hand_calculation(void **state)
{
    (void)state;
    struct philly_job jobs[4];
    memcpy(jobs, contended, sizeof(jobs));
    struct philly trace = trace_of(jobs, 4, 2);
    struct replay_options o = options(REPLAY_BLOCKS, 8);

    /* Blocks of 4 and 4: the second job of the first team waits for the first. */
    struct replay_result alone = replayed(&trace, &o, NULL);
    assert_int_equal(alone.blocks[0], 4);
    assert_int_equal(alone.blocks[1], 4);
    assert_int_equal(alone.each[1].wait_ms, S(HOUR));
    assert_int_equal(alone.each[2].wait_ms, 0);
    /* 4 GPUs for 3 hours, of 8 GPUs for 4 hours. */
    assert_int_equal(alone.allocated_milli_ms * 8, alone.installed_milli_ms * 3);

    /* A pool: the other team waits until something ends. */
    o.policy = REPLAY_POOL;
    struct replay_result pool = replayed(&trace, &o, &alone);
    assert_int_equal(pool.each[1].wait_ms, 0);
    assert_int_equal(pool.each[2].wait_ms, S(1800));
    assert_int_equal(pool.unsafe, 1);
    assert_int_equal(pool.unsafe_worst_ms, S(1800));
    assert_int_equal(pool.better, 1);

    /* Quota: nobody waits at first; the owner returns, the younger job is evicted with all of its
     * half hour saved and loses grace and restart. */
    o.policy = REPLAY_QUOTA;
    struct replay_result quota = replayed(&trace, &o, &alone);
    assert_int_equal(quota.each[1].wait_ms, 0);
    assert_int_equal(quota.each[2].wait_ms, S(30));
    assert_int_equal(quota.each[1].evictions, 1);
    assert_int_equal(quota.lost_total_milli_ms, 4 * S(90) * 1000);
    assert_int_equal(quota.each[1].queued_ms, S(1800 - 30));
    assert_int_equal(quota.each[1].jct_ms, S(HOUR + 60 + 1800));
    assert_int_equal(quota.in_quota, 3);
    assert_int_equal(quota.unsafe, 0);
    replay_result_done(&quota);
    replay_result_done(&pool);
    replay_result_done(&alone);
}

static void blocks_cover_a_quantile_of_demand(void **state)
{
    (void)state;
    /* 100 minutes: 40 GPUs in 5 of them, 16 in 20, 0 else. */
    struct philly_job jobs[] = {
        {.submit_ms = 0, .run_ms = S(20 * 60), .gpus = 16, .team = 0},
        {.submit_ms = 0, .run_ms = S(5 * 60), .gpus = 12, .team = 0},
        {.submit_ms = 0, .run_ms = S(5 * 60), .gpus = 12, .team = 0},
        {.submit_ms = S(99 * 60), .run_ms = 0, .gpus = 1, .team = 1},
    };
    struct philly trace = trace_of(jobs, 4, 2);
    uint32_t blocks[2];
    assert_int_equal(replay_blocks(&trace, 99, 0, blocks), 48);
    assert_int_equal(blocks[0], 40);
    assert_int_equal(blocks[1], 8); /* rounded up */
    assert_int_equal(replay_blocks(&trace, 95, 0, blocks), 24);
    assert_int_equal(blocks[0], 16);
    replay_blocks(&trace, 50, 0, blocks);
    assert_int_equal(blocks[0], 16); /* its largest job */
    assert_int_equal(replay_blocks(&trace, 95, 10, blocks), 10);
    assert_int_equal(blocks[0], 7); /* 6.67 and 3.33 */
    assert_int_equal(blocks[1], 3);
}

static void idle_periods_add_up_and_keep_apart(void **state)
{
    (void)state;
    struct busy_periods periods = {0};
    int64_t idle = 0, all = 0;
    for (uint64_t i = 0; i < 2000; i++) {
        struct busy b;
        int64_t run = S(1 + (i * 7919) % (5 * HOUR)), sum = 0, end = -1;
        busy_make(&b, &periods, 42, i, run, &curve);
        assert_true(b.use == 4000 || b.use == 8000);
        for (size_t p = 0; p < periods.len; p++) {
            assert_true(periods.items[p].at_ms > end);
            assert_true(periods.items[p].length_ms > 0);
            end = periods.items[p].at_ms + periods.items[p].length_ms;
            sum += periods.items[p].length_ms;
        }
        assert_true(end <= run);
        assert_int_equal(sum, b.idle_ms);
        idle += b.idle_ms;
        all += run;
    }
    assert_in_range(idle * 1000 / all, 470, 510);
    vec_done(&periods);
}

/* ---- a trace of our own ------------------------------------------------------------------ */

#define JOBS 400

/* Three teams; sizes and times as a short day of work has them. */
static void make_jobs(struct philly_job *jobs)
{
    static const uint32_t sizes[] = {1, 1, 1, 1, 1, 2, 4, 8, 16, 12};
    struct rng rng;
    int64_t at = 0;
    rng_seed(&rng, 7);
    for (size_t i = 0; i < JOBS; i++) {
        jobs[i] = (struct philly_job){.submit_ms = at,
                                      .run_ms = S(60 + (int64_t)rng_below(&rng, 3 * HOUR)),
                                      .gpus = sizes[rng_below(&rng, 10)],
                                      .team = (uint32_t)rng_below(&rng, 3)};
        at += S(rng_below(&rng, 900));
    }
}

static void check_sums(const struct philly_job *jobs, const struct replay_result *r)
{
    int64_t work = 0;
    for (size_t i = 0; i < JOBS; i++)
        work += jobs[i].run_ms * jobs[i].gpus * 1000;
    assert_int_equal(r->refused + r->unfinished, 0);
    assert_int_equal(r->held_total_milli_ms - r->lost_total_milli_ms, work - r->paused_milli_ms);
    assert_true(r->allocated_milli_ms <= r->installed_milli_ms);
    assert_true(r->allocated_milli_ms <= r->held_total_milli_ms);
    assert_true(r->active_milli_ms <= r->allocated_milli_ms);
    assert_true(r->busy_milli_ms < r->active_milli_ms);
    assert_int_equal(r->spread[REPLAY_ALL].jobs, JOBS);
}

static void every_policy_does_all_the_work(void **state)
{
    (void)state;
    struct philly_job jobs[JOBS];
    make_jobs(jobs);
    struct philly trace = trace_of(jobs, JOBS, 3);
    static const uint32_t nodes[] = {0, 8};
    for (size_t n = 0; n < ARRAY_LEN(nodes); n++)
        for (int p = 0; p < REPLAY_POLICIES; p++) {
            if (p == REPLAY_FRACTION)
                continue; /* holds less for the same work */
            struct replay_options o = options((enum replay_policy)p, 72);
            o.node_gpus = nodes[n];
            o.limits = p % 2 == 0;
            struct replay_result r = replayed(&trace, &o, NULL);
            check_sums(jobs, &r);
            assert_true(p >= REPLAY_QUOTA || r.evictions == 0);
            assert_int_equal(r.pauses > 0, p == REPLAY_IDLE);
            replay_result_done(&r);
        }
}

static void sharing_a_flat_pool_beats_blocks_of_the_same_size(void **state)
{
    (void)state;
    struct philly_job jobs[JOBS];
    make_jobs(jobs);
    struct philly trace = trace_of(jobs, JOBS, 3);
    struct replay_options o = options(REPLAY_BLOCKS, 72);
    o.node_gpus = 0;
    struct replay_result alone = replayed(&trace, &o, NULL);
    o.policy = REPLAY_POOL;
    struct replay_result pool = replayed(&trace, &o, &alone);
    /* Mean, p95 and longest wait in seconds; another program that only counts GPUs agrees. */
    char text[200];
    snprintf(text, sizeof(text), "%lld %lld %lld, %lld %lld %lld",
             (long long)alone.spread[REPLAY_ALL].mean / 1000,
             (long long)alone.spread[REPLAY_ALL].p95 / 1000,
             (long long)alone.spread[REPLAY_ALL].max / 1000,
             (long long)pool.spread[REPLAY_ALL].mean / 1000,
             (long long)pool.spread[REPLAY_ALL].p95 / 1000,
             (long long)pool.spread[REPLAY_ALL].max / 1000);
    assert_string_equal(text, "2694 15318 40612, 320 2119 7669");
    assert_true(pool.spread[REPLAY_ALL].mean < alone.spread[REPLAY_ALL].mean);
    replay_result_done(&pool);
    replay_result_done(&alone);
}

static void a_trace_is_read_in_order_of_time(void **state)
{
    (void)state;
    char path[] = "/tmp/allot-replay-XXXXXX";
    static const char text[] = "timestamp,duration,num_gpus,gpu_time,cluster\n"
                               "2017-10-09 07:01:55,66.0,1,66.0,b\n"
                               "2017-10-09 06:59:55,10,8,80,a\n\n";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
    close(fd);
    struct philly trace = {0};
    int rc = philly_load(path, &trace, NULL);
    unlink(path);
    assert_int_equal(rc, 0);
    assert_int_equal(trace.count, 2);
    assert_int_equal(trace.jobs[0].gpus, 8);
    assert_int_equal(trace.jobs[1].submit_ms, S(120));
    assert_int_equal(trace.jobs[1].run_ms, S(66));
    assert_string_equal(trace.teams[trace.jobs[1].team], "b");
    philly_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_policy_gives_the_waits_of_a_hand_calculation),
        cmocka_unit_test(blocks_cover_a_quantile_of_demand),
        cmocka_unit_test(idle_periods_add_up_and_keep_apart),
        cmocka_unit_test(every_policy_does_all_the_work),
        cmocka_unit_test(sharing_a_flat_pool_beats_blocks_of_the_same_size),
        cmocka_unit_test(a_trace_is_read_in_order_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
