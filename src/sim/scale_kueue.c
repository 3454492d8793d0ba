/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load generator of Kueue's own scalability test (its `baseline` configuration), in virtual
 * time.
 *
 * Five cohorts of six queues; each queue is good for 20 cores and may borrow up to 100 more inside
 * its cohort. 500 workloads a queue: 350 small (1 core, 200 ms, one every 100 ms, lowest priority),
 * 100 medium (5 cores, 500 ms, every 500 ms), 50 large (20 cores, 1 s, every 1.2 s, highest).
 * All work, 7,920 core-seconds a cohort, fits into 66 s of its 120 cores. Queues are teams,
 * cohorts departments with a limit; there is one node, as Kueue counts quota alone. What is
 * evicted stops at once and begins anew.
 *
 * Virtual time: the scheduler's own time does not delay anybody here, it is reported beside.
 */
#include "base/heap.h"
#include "sim/scale.h"

#define COHORTS 5
#define QUEUES 6
#define CORES 20 /* of a queue */
#define BORROWED 100
#define SIZES 3

static const struct size {
    const char *first, *last; /* names of the figures */
    int64_t count, cores, run_ms, every_ms;
    int32_t priority;
} sizes[SIZES] = {
    {"small_first_start_seconds", "small_last_start_seconds", 350, 1, 200, 100, 50},
    {"medium_first_start_seconds", "medium_last_start_seconds", 100, 5, 500, 500, 100},
    {"large_first_start_seconds", "large_last_start_seconds", 50, 20, 1000, 1200, 200},
};

struct load { /* one workload; its id is its index + 1 */
    struct heap_node node;
    uint64_t id;
    int64_t at_ms; /* of its creation, then of its end */
    int64_t created_ms, first_ms, last_ms;
    const struct size *size;
    uint32_t queue;
    bool exists;
};

struct replay {
    struct sched *s;
    struct heap events;
    VEC(struct load) loads;
    int64_t now_ms;
    uint64_t evictions;
};

static bool event_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct load *x = heap_entry(a, struct load, node), *y = heap_entry(b, struct load, node);
    return x->at_ms != y->at_ms ? x->at_ms < y->at_ms : x->id < y->id;
}

static void team_set(struct replay *r, uint64_t id, uint64_t parent, int64_t cores, int64_t limit)
{
    struct sched_team t = {.id = id, .parent = parent, .age = id, .weight = 1};
    for (int k = 0; k < SCHED_RESOURCES; k++)
        t.limit[k] = SCHED_UNLIMITED;
    t.guarantee[SCHED_CPU_MILLI] = cores * 1000;
    t.limit[SCHED_CPU_MILLI] = limit * 1000;
    sched_team_set(r->s, &t);
}

static void world_make(struct replay *r)
{
    struct sched_node node = {.id = 1,
                              .cpu_milli = COHORTS * QUEUES * CORES * 1000,
                              .memory_bytes = SCHED_UNLIMITED,
                              .up = true,
                              .schedulable = true};
    sched_node_set(r->s, &node);
    for (uint64_t c = 0; c < COHORTS; c++) {
        uint64_t cohort = 1000 + c;
        team_set(r, cohort, 0, QUEUES * CORES, QUEUES * CORES);
        for (uint64_t q = 0; q < QUEUES; q++)
            team_set(r, 1 + c * QUEUES + q, cohort, CORES, CORES + BORROWED);
    }
    for (uint32_t q = 0; q < COHORTS * QUEUES; q++)
        for (int k = 0; k < SIZES; k++)
            for (int64_t i = 0; i < sizes[k].count; i++) {
                struct load *l = vec_add(&r->loads);
                l->size = &sizes[k];
                l->queue = q + 1;
                l->created_ms = l->at_ms = (i + 1) * sizes[k].every_ms;
                l->first_ms = -1;
            }
    for (size_t i = 0; i < r->loads.len; i++) { /* the list does not move any more */
        r->loads.items[i].id = i + 1;
        heap_push(&r->events, &r->loads.items[i].node);
    }
}

static void create(struct replay *r, struct load *l)
{
    struct sched_request request = {.cpu_milli = l->size->cores * 1000};
    struct sched_task task = {.request = &request};
    struct sched_workload w = {.id = l->id,
                               .team = l->queue,
                               .age = (uint64_t)l->created_ms,
                               .class_ = SCHED_CLASS_TRAINING,
                               .priority = l->size->priority,
                               .preemptible = true,
                               .may_burst = true,
                               .tasks = &task,
                               .task_count = 1,
                               .min_tasks = 1};
    l->exists = true;
    sched_workload_add(r->s, &w, NULL);
}

/* Everything that happens at one instant. */
static void happen(struct replay *r)
{
    struct heap_node *n = heap_peek(&r->events);
    r->now_ms = heap_entry(n, struct load, node)->at_ms;
    while ((n = heap_peek(&r->events)) != NULL) {
        struct load *l = heap_entry(n, struct load, node);
        if (l->at_ms > r->now_ms)
            return;
        heap_remove(&r->events, n);
        if (!l->exists) {
            create(r, l);
            continue;
        }
        sched_task_stopped(r->s, l->id, 0, SCHED_STOP_DONE, r->now_ms);
        sched_workload_remove(r->s, l->id);
    }
}

static void start(struct replay *r, struct load *l)
{
    l->last_ms = r->now_ms;
    if (l->first_ms < 0)
        l->first_ms = r->now_ms;
    l->at_ms = r->now_ms + l->size->run_ms;
    heap_push(&r->events, &l->node);
}

/* One turn; false when nothing was decided. */
static bool turn(struct replay *r, const struct sim_meter *meter, int64_t *spent_ns)
{
    int64_t begun = meter->cpu_ns();
    const struct sched_decisions *d = sched_turn(r->s, r->now_ms);
    VEC(uint64_t) gone = {0};
    *spent_ns += meter->cpu_ns() - begun;
    for (size_t i = 0; i < d->count; i++) {
        struct load *l = &r->loads.items[d->items[i].workload - 1];
        if (d->items[i].kind == SCHED_START) {
            start(r, l);
        } else if (d->items[i].kind == SCHED_EVICT) {
            heap_remove(&r->events, &l->node);
            vec_push(&gone, l->id);
            r->evictions++;
        }
    }
    bool decided = d->count > 0;
    begun = meter->cpu_ns();
    for (size_t i = 0; i < gone.len; i++)
        sched_task_stopped(r->s, gone.items[i], 0, SCHED_STOP_REQUEUE, r->now_ms);
    *spent_ns += meter->cpu_ns() - begun;
    vec_done(&gone);
    return decided || sched_next_ms(r->s) <= r->now_ms;
}

static void report(const struct replay *r, struct scale_result *result)
{
    for (int k = SIZES - 1; k >= 0; k--) {
        int64_t first = 0, last = 0, count = 0;
        for (size_t i = 0; i < r->loads.len; i++) {
            const struct load *l = &r->loads.items[i];
            if (l->size != &sizes[k])
                continue;
            count++;
            first += l->first_ms - l->created_ms;
            last += l->last_ms - l->created_ms;
        }
        scale_figure(result, sizes[k].first, (double)first / 1e3 / (double)count);
        scale_figure(result, sizes[k].last, (double)last / 1e3 / (double)count);
    }
    scale_figure(result, "evictions", (double)r->evictions);
}

static size_t kueue_run(const struct scale_options *o, const struct scale_input *in,
                        const struct sim_meter *meter, struct scale_result *results)
{
    struct replay r = {.s = sched_create(NULL), .events = HEAP_INIT(event_before)};
    int64_t spent_ns = 0;
    (void)o;
    (void)in;
    world_make(&r);
    while (heap_peek(&r.events) != NULL) {
        int64_t begun = meter->cpu_ns();
        happen(&r);
        spent_ns += meter->cpu_ns() - begun;
        while (turn(&r, meter, &spent_ns))
            ;
    }
    results[0] = (struct scale_result){
        .mode = "kueue", .what = "Kueue's baseline load, in virtual time", .nodes = 1};
    scale_figure(&results[0], "workloads", (double)r.loads.len);
    scale_figure(&results[0], "virtual_seconds", (double)r.now_ms / 1e3);
    report(&r, &results[0]);
    scale_figure(&results[0], "seconds", (double)spent_ns / 1e9);
    if (spent_ns > 0)
        scale_figure(&results[0], "workloads_per_second",
                     (double)r.loads.len / ((double)spent_ns / 1e9));
    heap_done(&r.events);
    vec_done(&r.loads);
    sched_destroy(r.s);
    return 1;
}

const struct scale_mode scale_mode_kueue = {
    "kueue", "the load of Kueue's scalability test, in virtual time", kueue_run};
