/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories: after every call all sums agree with the tasks, gates and devices hold, and
 * without outside events everything comes to rest.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "small_world.h"

#define TEAMS 7
#define NODES 4
#define JOBS_MAX 400
#define STEPS 250

struct history {
    struct small_world w;
    struct rng rng;
    unsigned tasks[JOBS_MAX + 1]; /* of each workload; 0 = gone */
};

static unsigned pick(struct history *h, unsigned n)
{
    return (unsigned)rng_below(&h->rng, n);
}

static void make_world(struct history *h)
{
    const unsigned sizes[] = {1, 2, 4, 8};
    for (unsigned n = 1; n <= NODES; n++)
        world_node(&h->w, n, sizes[pick(h, 4)]);
    /* 1 and 2 are departments, the others their leaves. */
    for (unsigned t = 1; t <= TEAMS; t++)
        world_team_full(&h->w, t, t <= 2 ? 0 : 1 + t % 2, 1000 * pick(h, 5),
                        pick(h, 3) == 0 ? 6000 : SCHED_UNLIMITED, pick(h, 3),
                        100 + (int)pick(h, 2));
}

static void add_job(struct history *h)
{
    const int milli[] = {250, 500, 700, 1000, 1000, 2000, 4000, 0};
    if (h->w.next_id >= JOBS_MAX)
        return;
    struct job job = {.team = 3 + pick(h, TEAMS - 2), .gpu_milli = milli[pick(h, 8)]};
    job.tasks = pick(h, 3) == 0 ? 1 + pick(h, 5) : 1;
    job.min = 1 + pick(h, job.tasks);
    job.other_class = true;
    job.class_ = (enum sched_class)pick(h, SCHED_CLASSES);
    job.firm = job.class_ == SCHED_CLASS_PRODUCTION;
    job.priority = (int)pick(h, 3);
    job.spread = pick(h, 4) == 0;
    job.no_burst = pick(h, 8) == 0;
    if (job.gpu_milli == 0)
        job.gpu_memory = (int64_t)(1 + pick(h, 80)) << 30;
    if (pick(h, 3) == 0)
        job.limit_ms = 1000 * (1 + (int64_t)pick(h, 300));
    if (pick(h, 8) == 0)
        job.min_run_ms = 1000 * (int64_t)pick(h, 60);
    if (pick(h, 6) == 0)
        job.only_node = 1 + pick(h, NODES);
    h->tasks[world_job(&h->w, job)] = job.tasks;
}

/* Explanations never disturb anything. */
static void explain_some(struct history *h)
{
    for (unsigned n = 0; n < 5 && h->w.next_id > 0; n++) {
        struct sched_explanation e;
        uint64_t id = 1 + pick(h, (unsigned)h->w.next_id);
        int r = sched_explain(h->w.s, id, h->w.now_ms, &e);
        assert_true(r == 0 || r == -ENOENT || r == -EINVAL);
        if (r == 0)
            assert_true(e.reason < SCHED_REASONS && e.free >= 0);
    }
}

/* Something happens to a random task. */
static void touch(struct history *h)
{
    uint64_t id = 1 + pick(h, JOBS_MAX);
    if (id > h->w.next_id || h->tasks[id] == 0)
        return;
    uint32_t t = pick(h, h->tasks[id]);
    enum sched_task_state state = world_state(&h->w, id, t);
    unsigned what = pick(h, 10);
    if (what == 0) {
        h->tasks[id] = 0;
        assert_int_equal(sched_workload_remove(h->w.s, id), 0);
    } else if (state == SCHED_TASK_RUNNING && what < 5) {
        world_stopped(&h->w, id, t, (enum sched_stop)pick(h, 3));
    } else if (state == SCHED_TASK_RUNNING && what == 5) {
        assert_int_equal(sched_task_stopping(h->w.s, id, t, h->w.now_ms), 0);
    } else if (state == SCHED_TASK_STOPPING) {
        world_stopped(&h->w, id, t, pick(h, 2) ? SCHED_STOP_REQUEUE : SCHED_STOP_DONE);
    }
}

static void change_node(struct history *h)
{
    uint64_t id = 1 + pick(h, NODES);
    for (uint32_t gpus = 8; gpus > 0; gpus /= 2) { /* the size it has, or -EBUSY */
        struct sched_device devices[8] = {{0}};
        for (uint32_t d = 0; d < gpus; d++)
            devices[d].memory_bytes = 80LL << 30;
        struct sched_node node = {.id = id,
                                  .order = id,
                                  .gpu_type = "H100",
                                  .devices = devices,
                                  .device_count = gpus,
                                  .cpu_milli = SCHED_UNLIMITED,
                                  .memory_bytes = SCHED_UNLIMITED,
                                  .up = pick(h, 4) > 0,
                                  .schedulable = pick(h, 4) > 0};
        if (sched_node_set(h->w.s, &node) == 0)
            return;
    }
}

/* What has been removed must still be stopped: forget nothing that holds devices. */
static void stop_removed(struct history *h)
{
    for (uint64_t id = 1; id <= h->w.next_id; id++) {
        enum sched_task_state state;
        for (uint32_t t = 0; h->tasks[id] == 0 && t < 5; t++)
            if (sched_task_state(h->w.s, id, t, &state, NULL) == 0 && state == SCHED_TASK_STOPPING)
                sched_task_stopped(h->w.s, id, t, SCHED_STOP_DONE, h->w.now_ms);
    }
}

static void rest(struct history *h)
{
    h->w.stop_by_hand = false;
    for (unsigned round = 0; round < 4; round++) {
        for (uint64_t id = 1; id <= h->w.next_id; id++)
            for (uint32_t t = 0; t < h->tasks[id]; t++)
                if (world_state(&h->w, id, t) == SCHED_TASK_STOPPING)
                    world_stopped(&h->w, id, t, SCHED_STOP_REQUEUE);
        stop_removed(h);
        world_settle(&h->w);
        h->w.now_ms += 100000;
    }
}

static void run_history(uint64_t seed)
{
    struct history h = {0};
    world_init(&h.w);
    rng_seed(&h.rng, seed);
    make_world(&h);
    h.w.stop_by_hand = true;
    for (unsigned step = 0; step < STEPS; step++) {
        h.w.now_ms += pick(&h, 20000);
        for (unsigned n = pick(&h, 4); n > 0; n--)
            add_job(&h);
        for (unsigned n = pick(&h, 12); n > 0; n--)
            touch(&h);
        if (pick(&h, 15) == 0)
            change_node(&h);
        if (pick(&h, 3) == 0)
            stop_removed(&h);
        world_turn(&h.w);
        explain_some(&h);
        if (step % 50 == 49)
            rest(&h);
        h.w.stop_by_hand = true;
    }
    world_done(&h.w);
}

static void test_random_histories(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        run_history(seed);
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* one seed, for a closer look */
        run_history(strtoull(argv[1], NULL, 10));
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_histories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
