/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One scheduling turn with a long queue: 100,000 pending workloads of several shapes in 20
 * teams, every device busy, one task ends. Prints microseconds a turn (median, 99 of 100, worst)
 * and bytes a pending workload, for 8 to 1,000 devices. Nothing is asserted.
 *
 *     sched_turn [PENDING]
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "allot/sched.h"
#include "base/rng.h"

#define TEAMS 20
#define SHAPES 12
#define TURNS 400
#define GIB (1LL << 30)

struct bench {
    struct sched *s;
    struct rng rng;
    struct sched_request shapes[SHAPES];
    uint64_t next_id;
    int64_t now_ms;
    uint64_t *running; /* workloads that run, single tasks */
    size_t running_len;
    bool limits;
};

static int64_t clock_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void make_shapes(struct bench *b)
{
    const int milli[SHAPES] = {250, 500, 1000, 1000, 2000, 4000, 8000, 125, 1000, 2000, 1000, 500};
    for (int i = 0; i < SHAPES; i++)
        b->shapes[i] = (struct sched_request){
            .device_count = milli[i] < 1000 ? 1 : (uint32_t)milli[i] / 1000,
            .device_milli = milli[i] < 1000 ? milli[i] : 1000,
            .cpu_milli = 500 * (i + 1),
            .memory_bytes = (i + 1) * GIB,
        };
}

static void make_nodes(struct bench *b, unsigned devices)
{
    struct sched_device eight[8];
    memset(eight, 0, sizeof(eight));
    for (int d = 0; d < 8; d++)
        eight[d].memory_bytes = 80 * GIB;
    for (unsigned n = 0; n < devices / 8; n++) {
        struct sched_node node = {.id = n + 1,
                                  .order = n,
                                  .gpu_type = "H100",
                                  .devices = eight,
                                  .device_count = 8,
                                  .cpu_milli = 128000,
                                  .memory_bytes = 1024 * GIB,
                                  .up = true,
                                  .schedulable = true};
        sched_node_set(b->s, &node);
    }
}

static void make_teams(struct bench *b, unsigned devices)
{
    for (uint64_t t = 1; t <= TEAMS; t++) {
        struct sched_team team = {.id = t,
                                  .age = t,
                                  .weight = 1,
                                  .priority = 100,
                                  .guarantee = {devices * 1000 / TEAMS / 2, 64000, 512 * GIB},
                                  .limit = {SCHED_UNLIMITED, SCHED_UNLIMITED, SCHED_UNLIMITED}};
        sched_team_set(b->s, &team);
    }
}

static void add(struct bench *b)
{
    unsigned kind = (unsigned)rng_below(&b->rng, 100);
    unsigned shape = (unsigned)rng_below(&b->rng, SHAPES);
    unsigned tasks = kind < 95 ? 1 : 2 + kind % 4;
    struct sched_task task[8];
    memset(task, 0, sizeof(task));
    for (unsigned t = 0; t < tasks; t++)
        task[t].request = &b->shapes[shape];
    struct sched_workload w = {
        .id = ++b->next_id,
        .age = b->next_id,
        .team = 1 + rng_below(&b->rng, TEAMS),
        .class_ = kind < 80   ? SCHED_CLASS_TRAINING
                  : kind < 90 ? SCHED_CLASS_DEVELOPMENT
                              : SCHED_CLASS_BATCH,
        .priority = (int32_t)rng_below(&b->rng, 3),
        .preemptible = true,
        .may_burst = true,
        .tasks = task,
        .task_count = tasks,
        .min_tasks = tasks,
        .limit_ms = b->limits ? 60000 + (int64_t)rng_below(&b->rng, 3600000) : 0,
    };
    sched_workload_add(b->s, &w, NULL);
}

static void note(struct bench *b, const struct sched_decisions *d)
{
    for (size_t i = 0; i < d->count; i++)
        if (d->items[i].kind == SCHED_START && d->items[i].task == 0)
            b->running[b->running_len++] = d->items[i].workload;
}

static void carry_out(struct bench *b, const struct sched_decisions *d)
{
    note(b, d);
    size_t count = d->count;
    struct sched_decision *items = malloc((count + 1) * sizeof(*items));
    memcpy(items, d->items, count * sizeof(*items));
    for (size_t i = 0; i < count; i++)
        if (items[i].kind == SCHED_EVICT)
            sched_task_stopped(b->s, items[i].workload, items[i].task, SCHED_STOP_REQUEUE,
                               b->now_ms);
    free(items);
}

/* Until the world rests. */
static void settle(struct bench *b)
{
    for (;;) {
        const struct sched_decisions *d = sched_turn(b->s, b->now_ms);
        if (d->count == 0)
            return;
        carry_out(b, d);
    }
}

/* A random running workload ends; false if the chosen one does not run any more. */
static bool end_one(struct bench *b)
{
    if (b->running_len == 0)
        exit(1);
    size_t i = rng_below(&b->rng, b->running_len);
    uint64_t id = b->running[i];
    bool any = false;
    for (uint32_t t = 0; t < 8; t++) {
        enum sched_task_state state;
        if (sched_task_state(b->s, id, t, &state, NULL) < 0)
            break;
        if (state == SCHED_TASK_RUNNING) {
            sched_task_stopped(b->s, id, t, SCHED_STOP_DONE, b->now_ms);
            any = true;
        }
    }
    if (any)
        sched_workload_remove(b->s, id);
    b->running[i] = b->running[--b->running_len];
    return any;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void measure(unsigned devices, unsigned pending, bool limits)
{
    struct bench b = {.s = sched_create(NULL), .now_ms = 1000, .limits = limits};
    rng_seed(&b.rng, 42);
    b.running = calloc(pending + 20000, sizeof(*b.running));
    make_shapes(&b);
    make_nodes(&b, devices);
    make_teams(&b, devices);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < pending; i++)
        add(&b);
    size_t bytes = (mallinfo2().uordblks - before) / pending;
    settle(&b);
    int64_t took[TURNS], explain = 0;
    for (int i = 0; i < TURNS;) {
        b.now_ms += 1000;
        if (!end_one(&b))
            continue;
        add(&b);
        int64_t start = clock_ns();
        const struct sched_decisions *d = sched_turn(b.s, b.now_ms);
        took[i++] = clock_ns() - start;
        carry_out(&b, d);
        struct sched_explanation e;
        start = clock_ns();
        sched_explain(b.s, b.next_id, b.now_ms, &e);
        explain += clock_ns() - start;
        settle(&b);
    }
    qsort(took, TURNS, sizeof(took[0]), compare);
    printf("%5u devices %6u pending%s: %7.1f us a turn, p99 %7.1f, worst %7.1f; explain %6.1f us; "
           "%zu bytes a pending workload\n",
           devices, pending, limits ? " with limits" : "            ",
           (double)took[TURNS / 2] / 1e3, (double)took[TURNS * 99 / 100] / 1e3,
           (double)took[TURNS - 1] / 1e3, (double)explain / TURNS / 1e3, bytes);
    fflush(stdout);
    free(b.running);
    sched_destroy(b.s);
}

int main(int argc, char **argv)
{
    unsigned pending = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
    const unsigned devices[] = {8, 64, 256, 1000};
    for (int limits = 0; limits < 2; limits++)
        for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
            measure(devices[i], pending, limits);
    return 0;
}
