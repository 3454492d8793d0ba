/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: prop-index [--seeds N] [--first SEED] [--steps N]
 *
 * The placement index against a scan of all nodes: two schedulers live through the same random
 * history, one answers each question of place.c from the index, the other looks at every node.
 * Every decision of every turn must be the same, and every explanation. The first is also asked
 * what would become of work before it is handed in, which must make no difference.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allot/sched.h"
#include "base/rng.h"
#include "base/vec.h"
#include "prop_options.h"
#include "sched/world.h"

#define TEAMS 4
#define NODES_MAX 40
#define TYPES 3
#define TASKS_MOST 6
#define GIB (1LL << 30)

struct live {
    uint64_t id;
    uint32_t tasks;
};

struct pair {
    struct sched *s[2]; /* with the index; scanning */
    struct rng rng;
    int64_t now_ms;
    uint64_t next_id, decisions;
    VEC(struct live) live;
    bool node[NODES_MAX + 1];
    char failure[200];
};

static uint64_t below(struct pair *p, uint64_t n)
{
    return rng_below(&p->rng, n);
}

static bool chance(struct pair *p, unsigned percent)
{
    return below(p, 100) < percent;
}

static const char *const types[TYPES] = {"A100", "H100", "T4"};

/* ---- what happens, to both --------------------------------------------------------------- */

static void node_set(struct pair *p, uint64_t id)
{
    struct sched_device devices[8];
    memset(devices, 0, sizeof(devices));
    uint32_t count = (uint32_t)(id * 7 % 9);
    bool sliced = id % 11 == 0;
    for (uint32_t d = 0; d < count; d++) {
        devices[d].memory_bytes = id % 5 == 0 ? 0 : (int64_t)(16 + id % 3 * 16) * GIB;
        if (sliced && d % 2 == 0) {
            devices[d].mig_profile = d % 4 == 0 ? "1g.10gb" : "2g.20gb";
            devices[d].mig_milli = d % 4 == 0 ? 142 : 285;
        }
    }
    char zone[24], rack[24];
    snprintf(zone, sizeof(zone), "%" PRIu64, id / 16);
    snprintf(rack, sizeof(rack), "%" PRIu64, id / 4);
    struct sched_label labels[] = {{"zone", zone}, {"rack", rack}, {"disk", "fast"}};
    struct sched_node n = {.id = id,
                           .order = chance(p, 95) ? id : below(p, 50),
                           .gpu_type = count == 0 ? NULL : types[id % TYPES],
                           .devices = devices,
                           .device_count = count,
                           .cpu_milli =
                               id % 6 == 0 ? SCHED_UNLIMITED : (int64_t)(id % 4 + 1) * 8000,
                           .memory_bytes = id % 7 == 0 ? SCHED_UNLIMITED : 128 * GIB,
                           .labels = labels,
                           .label_count = 1 + (uint32_t)(id % 3),
                           .up = chance(p, 85),
                           .schedulable = chance(p, 90)};
    if (chance(p, 10)) {
        n.window_from_ms = p->now_ms + (int64_t)below(p, 60000);
        n.window_until_ms = n.window_from_ms + 1 + (int64_t)below(p, 60000);
    }
    for (int i = 0; i < 2; i++)
        sched_node_set(p->s[i], &n);
    p->node[id] = true;
}

static void node_remove(struct pair *p, uint64_t id)
{
    int r = 0;
    for (int i = 0; i < 2; i++)
        r = sched_node_remove(p->s[i], id);
    if (r == 0)
        p->node[id] = false;
}

static void teams_set(struct pair *p)
{
    static const char *const levels[] = {"zone", "rack"};
    for (int i = 0; i < 2; i++)
        sched_topology_set(p->s[i], levels, 2);
    for (uint64_t id = 1; id <= TEAMS; id++) {
        struct sched_team t = {.id = id, .age = id, .weight = (int64_t)id};
        for (int r = 0; r < SCHED_RESOURCES; r++)
            t.limit[r] = SCHED_UNLIMITED;
        t.guarantee[SCHED_GPU_MILLI] = (int64_t)below(p, 30) * 1000;
        t.guarantee[SCHED_CPU_MILLI] = t.guarantee[SCHED_MEMORY_BYTES] = SCHED_UNLIMITED;
        for (int i = 0; i < 2; i++)
            sched_team_set(p->s[i], &t);
    }
}

struct asked { /* one request and what it points to */
    struct sched_request request;
    struct sched_mig_request mig;
    const char *types[2];
    struct sched_label label;
};

static void ask(struct pair *p, struct asked *a)
{
    memset(a, 0, sizeof(*a));
    struct sched_request *r = &a->request;
    switch (below(p, 8)) {
    case 0:
        break;
    case 1:
        r->device_count = chance(p, 80) ? 1 : 2;
        r->device_memory_bytes = (int64_t)(1 + below(p, 20)) * GIB;
        break;
    case 2:
        a->mig = (struct sched_mig_request){chance(p, 60) ? "1g.10gb" : "2g.20gb", 1};
        r->mig = &a->mig;
        r->mig_count = 1;
        break;
    case 3:
    case 4:
        r->device_count = chance(p, 80) ? 1 : 2;
        r->device_milli = (int32_t)(50 * (1 + below(p, 19)));
        break;
    default:
        r->device_count = (uint32_t)(1 + below(p, below(p, 8) + 1));
        r->device_milli = 1000;
    }
    r->cpu_milli = chance(p, 70) ? (int64_t)below(p, 6) * 1000 : 0;
    r->memory_bytes = chance(p, 40) ? (int64_t)below(p, 40) * GIB : 0;
    if (chance(p, 30)) {
        a->types[0] = types[below(p, TYPES)];
        a->types[1] = types[below(p, TYPES)];
        r->gpu_types = a->types;
        r->gpu_type_count = a->types[0] == a->types[1] ? 1 : 1 + (uint32_t)below(p, 2);
    }
    if (chance(p, 10)) {
        a->label = (struct sched_label){"disk", "fast"};
        r->labels = &a->label;
        r->label_count = 1;
    }
    if (chance(p, 3))
        r->only_node = 1 + below(p, NODES_MAX);
}

static void submit(struct pair *p)
{
    struct asked asked[2];
    struct sched_task tasks[TASKS_MOST];
    memset(tasks, 0, sizeof(tasks));
    ask(p, &asked[0]);
    ask(p, &asked[1]);
    uint32_t count = chance(p, 60) ? 1 : 1 + (uint32_t)below(p, TASKS_MOST);
    bool mixed = chance(p, 10);
    for (uint32_t t = 0; t < count; t++)
        tasks[t].request = &asked[mixed && t % 2 == 1].request;
    uint64_t id = ++p->next_id;
    struct sched_workload w = {
        .id = id,
        .team = 1 + below(p, TEAMS),
        .age = id,
        .class_ = (enum sched_class)(1 + below(p, 3)),
        .preemptible = true,
        .may_burst = true,
        .spread = chance(p, 15),
        .tasks = tasks,
        .task_count = count,
        .min_tasks = chance(p, 80) ? count : 1 + (uint32_t)below(p, count),
        .topology_required = chance(p, 10) ? (chance(p, 50) ? "rack" : "zone") : NULL,
        .topology_preferred = chance(p, 5) ? "rack" : NULL,
        .limit_ms = chance(p, 20) ? 1000 + (int64_t)below(p, 60000) : 0,
        .accepted = chance(p, 80),
    };
    if (w.topology_required != NULL)
        w.topology_preferred = NULL;
    struct sched_explanation foreseen;
    if (id % 4 == 0) /* leaves no trace: the other one is not asked */
        (void)sched_explain_new(p->s[0], &w, p->now_ms, &foreseen);
    int r[2];
    for (int i = 0; i < 2; i++)
        r[i] = sched_workload_add(p->s[i], &w, NULL);
    if (r[0] != r[1])
        snprintf(p->failure, sizeof(p->failure), "workload %" PRIu64 " is refused by one", id);
    struct live l = {id, count};
    if (r[0] == 0)
        vec_push(&p->live, l);
}

static void stop(struct pair *p, enum sched_stop how)
{
    if (p->live.len == 0)
        return;
    size_t at = below(p, p->live.len);
    struct live l = p->live.items[at];
    for (uint32_t t = 0; t < l.tasks; t++)
        for (int i = 0; i < 2; i++)
            sched_task_stopped(p->s[i], l.id, t, how, p->now_ms);
    if (how != SCHED_STOP_DONE)
        return;
    for (int i = 0; i < 2; i++)
        sched_workload_remove(p->s[i], l.id);
    vec_remove_swap(&p->live, at);
}

static void happen(struct pair *p)
{
    uint64_t kind = below(p, 100), id = 1 + below(p, NODES_MAX);
    if (kind < 60)
        submit(p);
    else if (kind < 80)
        stop(p, SCHED_STOP_DONE);
    else if (kind < 86)
        stop(p, SCHED_STOP_REFUSED);
    else if (kind < 96)
        node_set(p, id);
    else if (p->node[id])
        node_remove(p, id);
}

/* ---- comparing --------------------------------------------------------------------------- */

static bool same_decision(const struct sched_decision *a, const struct sched_decision *b)
{
    return a->kind == b->kind && a->cause == b->cause && a->workload == b->workload &&
           a->task == b->task && a->node == b->node && a->device_count == b->device_count &&
           memcmp(a->devices, b->devices, a->device_count * sizeof(*a->devices)) == 0;
}

static bool compare(struct pair *p, const struct sched_decisions *a,
                    const struct sched_decisions *b)
{
    if (a->count != b->count) {
        snprintf(p->failure, sizeof(p->failure), "%zu decisions and %zu", a->count, b->count);
        return false;
    }
    for (size_t i = 0; i < a->count; i++)
        if (!same_decision(&a->items[i], &b->items[i])) {
            const struct sched_decision *x = &a->items[i], *y = &b->items[i];
            snprintf(p->failure, sizeof(p->failure),
                     "decision %zu: %d of %" PRIu64 "/%u on %" PRIu64 ", scan: %d of %" PRIu64
                     "/%u on %" PRIu64,
                     i, x->kind, x->workload, x->task, x->node, y->kind, y->workload, y->task,
                     y->node);
            return false;
        }
    p->decisions += a->count;
    return true;
}

static bool explained_alike(struct pair *p)
{
    if (p->live.len == 0)
        return true;
    struct sched_explanation e[2];
    memset(e, 0, sizeof(e));
    uint64_t id = p->live.items[below(p, p->live.len)].id;
    int r[2];
    for (int i = 0; i < 2; i++)
        r[i] = sched_explain(p->s[i], id, p->now_ms, &e[i]);
    if (r[0] == r[1] && (r[0] < 0 || (e[0].reason == e[1].reason && e[0].free == e[1].free &&
                                      e[0].start_ms == e[1].start_ms)))
        return true;
    snprintf(p->failure, sizeof(p->failure), "workload %" PRIu64 " is explained otherwise", id);
    return false;
}

static bool turns(struct pair *p)
{
    for (int round = 0; round < 50; round++) {
        const struct sched_decisions *d[2];
        for (int i = 0; i < 2; i++)
            d[i] = sched_turn(p->s[i], p->now_ms);
        if (!compare(p, d[0], d[1]))
            return false;
        if (d[0]->count == 0)
            return true;
        struct live gone;
        VEC(struct live) evicted = {0};
        for (size_t i = 0; i < d[0]->count; i++) {
            gone = (struct live){d[0]->items[i].workload, d[0]->items[i].task};
            if (d[0]->items[i].kind == SCHED_EVICT && chance(p, 80))
                vec_push(&evicted, gone);
        }
        for (size_t i = 0; i < evicted.len; i++)
            for (int k = 0; k < 2; k++)
                sched_task_stopped(p->s[k], evicted.items[i].id, evicted.items[i].tasks,
                                   SCHED_STOP_REQUEUE, p->now_ms);
        vec_done(&evicted);
    }
    return true;
}

static bool history(uint64_t seed, const struct prop_options *o, void *sum)
{
    uint64_t *decisions = sum;
    struct pair p = {.now_ms = 1000};
    rng_seed(&p.rng, seed);
    for (int i = 0; i < 2; i++) {
        p.s[i] = sched_create(NULL);
        p.s[i]->index_from = i == 0 ? 0 : SIZE_MAX;
    }
    teams_set(&p);
    uint64_t nodes = 1 + below(&p, NODES_MAX);
    for (uint64_t id = 1; id <= nodes; id++)
        node_set(&p, id);
    int64_t step = 0;
    for (bool ok = true; ok && step < o->steps; step++) {
        p.now_ms += chance(&p, 30) ? (int64_t)below(&p, 8000) : 0;
        for (uint64_t k = below(&p, 6); k > 0; k--)
            happen(&p);
        ok = p.failure[0] == '\0' && turns(&p) && explained_alike(&p);
    }
    if (p.failure[0] != '\0')
        printf("# seed %" PRIu64 ", step %" PRId64 ": %s\n", seed, step, p.failure);
    *decisions += p.decisions;
    vec_done(&p.live);
    for (int i = 0; i < 2; i++)
        sched_destroy(p.s[i]);
    return p.failure[0] == '\0';
}

int main(int argc, char **argv)
{
    struct prop_options o = {.seeds = 200, .first = 1, .steps = 80};
    uint64_t decisions = 0;
    if (!prop_options_parse(argc, argv, "prop-index", &o))
        return 2;
    printf("1..%" PRId64 "\n", prop_bundle_count(&o));
    int status = prop_bundles(&o, "index and scan decide alike, histories", history, &decisions);
    printf("# %" PRIu64 " decisions\n", decisions);
    return status;
}
