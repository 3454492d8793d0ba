/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random declarations. Sizes are small on purpose: few devices and many wishes make conflicts.
 */
#include <string.h>

#include "prop_world.h"

#define GIB (1LL << 30)

static const char *const types[] = {"A100", "H100"};
static const char *const profiles[] = {"1g.10gb", "3g.40gb"};
static const struct sched_label zones[] = {{"zone", "a"}, {"zone", "b"}};

/* ---- teams ------------------------------------------------------------------------------- */

static int64_t unit_of(int r)
{
    return r == SCHED_MEMORY_BYTES ? GIB : 1000;
}

void prop_team_numbers(struct prop_world *w, struct sched_team *team)
{
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        bool gpu = r == SCHED_GPU_MILLI;
        team->guarantee[r] = SCHED_UNLIMITED;
        if (gpu || prop_chance(w, 30))
            team->guarantee[r] = (int64_t)prop_below(w, gpu ? 5 : 9) * unit_of(r);
        if (gpu && prop_chance(w, 15))
            team->guarantee[r] += 500;
        team->limit[r] = SCHED_UNLIMITED;
        if (team->guarantee[r] != SCHED_UNLIMITED && prop_chance(w, gpu ? 30 : 10))
            team->limit[r] = team->guarantee[r] + (int64_t)prop_below(w, 4) * unit_of(r);
    }
    team->type_count = 0;
    uint32_t few = w->brute != NULL ? 4 : 20;
    if (prop_chance(w, w->seed & PROP_TYPED ? 35 : few)) { /* a quota of one GPU type */
        struct sched_type_quota *q = arena_new(&w->arena, struct sched_type_quota);
        q->gpu_type = types[prop_below(w, 2)];
        q->guarantee = prop_chance(w, 50) ? SCHED_UNLIMITED : (int64_t)prop_below(w, 3) * 1000;
        q->limit = prop_chance(w, 30) ? SCHED_UNLIMITED : (int64_t)prop_below(w, 5) * 1000;
        team->types = q;
        team->type_count = 1;
    }
    team->weight = (int64_t)prop_below(w, 4);
    team->priority = prop_chance(w, 20) ? 200 : 100;
}

static void team_make(struct prop_world *w, uint32_t parent, bool leaf, bool free)
{
    uint32_t index = w->team_count++;
    struct prop_team *t = &w->teams[index];
    t->parent = parent;
    t->leaf = leaf;
    t->decl.id = index + 1;
    t->decl.parent = parent == PROP_NONE ? 0 : parent + 1;
    t->decl.age = index;
    prop_team_numbers(w, &t->decl);
    for (int r = 0; free && r < SCHED_RESOURCES; r++)
        t->decl.guarantee[r] = t->decl.limit[r] = SCHED_UNLIMITED;
    if (free)
        t->decl.type_count = 0;
    int rc = prop_report_team(w, &t->decl);
    if (rc < 0)
        prop_fail(w, "team %u is refused: %d", index, rc);
}

static void teams_make(struct prop_world *w)
{
    uint32_t shape = (uint32_t)prop_below(w, 3);
    if (shape == 0) { /* teams at the top */
        uint32_t n = 2 + (uint32_t)prop_below(w, 3);
        for (uint32_t i = 0; i < n; i++)
            team_make(w, PROP_NONE, true, false);
        return;
    }
    if (shape == 1) { /* an organisation with teams */
        uint32_t n = 2 + (uint32_t)prop_below(w, 3);
        team_make(w, PROP_NONE, false, true);
        for (uint32_t i = 0; i < n; i++)
            team_make(w, 0, true, false);
        return;
    }
    uint32_t departments = 2 + (uint32_t)prop_below(w, 2);
    for (uint32_t i = 0; i < departments; i++) {
        uint32_t parent = w->team_count, n = 1 + (uint32_t)prop_below(w, 3);
        team_make(w, PROP_NONE, false, false);
        for (uint32_t j = 0; j < n && w->team_count < PROP_TEAMS_MAX; j++)
            team_make(w, parent, true, false);
    }
}

/* ---- nodes ------------------------------------------------------------------------------- */

static void node_make(struct prop_world *w)
{
    static const int64_t sizes[] = {0, 40 * GIB, 80 * GIB};
    uint32_t index = w->node_count++;
    struct prop_node *n = &w->nodes[index];
    int64_t memory = sizes[prop_below(w, 3)];
    uint32_t gpus = (uint32_t)prop_below(w, 5), slices = 0;
    if (prop_chance(w, 30))
        slices = 1 + (uint32_t)prop_below(w, 4);
    for (uint32_t d = 0; d < gpus; d++)
        n->devices[d] = (struct sched_device){.memory_bytes = memory};
    for (uint32_t d = gpus; d < gpus + slices; d++) {
        const char *profile = profiles[prop_below(w, 2)];
        n->devices[d] = (struct sched_device){.mig_profile = profile,
                                              .mig_milli = (profile[0] - '0') * 1000 / 7};
    }
    n->decl = (struct sched_node){
        .id = index + 1,
        .order = index,
        .gpu_type = types[prop_below(w, 2)],
        .devices = n->devices,
        .device_count = gpus + slices,
        .cpu_milli = prop_chance(w, 50) ? SCHED_UNLIMITED : (int64_t)(2 + prop_below(w, 8)) * 1000,
        .memory_bytes =
            prop_chance(w, 70) ? SCHED_UNLIMITED : (int64_t)(4 + prop_below(w, 8)) * GIB,
        .labels = &zones[prop_below(w, 2)],
        .label_count = 1,
        .up = true,
        .schedulable = true,
    };
    sim_ledger_node_set(&w->now, index, &n->decl);
    sim_ledger_node_set(&w->then, index, &n->decl);
    int rc = prop_report_node(w, &n->decl);
    if (rc < 0)
        prop_fail(w, "node %u is refused: %d", index, rc);
}

/* ---- requests and workloads -------------------------------------------------------------- */

static void request_gpu(struct prop_world *w, struct sched_request *q)
{
    switch (prop_below(w, 8)) {
    case 0: /* cpu only */
        q->cpu_milli = 500 * (int64_t)(1 + prop_below(w, 6));
        break;
    case 1:
        q->device_count = 1;
        q->device_memory_bytes = (int64_t)(1 + prop_below(w, 50)) * GIB;
        break;
    case 2: {
        struct sched_mig_request *mig = arena_new_array(&w->arena, struct sched_mig_request, 2);
        q->mig_count = prop_chance(w, 20) ? 2 : 1;
        for (uint32_t i = 0; i < q->mig_count; i++)
            mig[i] = (struct sched_mig_request){profiles[i], 1 + (uint32_t)prop_below(w, 2)};
        q->mig = mig;
        break;
    }
    case 3:
    case 4:
        q->device_count = prop_chance(w, 20) ? 2 : 1;
        q->device_milli = (int32_t)(1 + prop_below(w, 9)) * 100;
        break;
    default:
        q->device_count = 1 + (uint32_t)prop_below(w, 3);
        q->device_milli = 1000;
        break;
    }
}

static void request_make(struct prop_world *w, struct sched_request *q)
{
    request_gpu(w, q);
    if (prop_chance(w, 30))
        q->cpu_milli = 500 * (int64_t)(1 + prop_below(w, 6));
    if (prop_chance(w, 20))
        q->memory_bytes = (int64_t)(1 + prop_below(w, 4)) * GIB;
    if (prop_chance(w, 15)) {
        q->gpu_types = types + prop_below(w, 2);
        q->gpu_type_count = 1;
    }
    if (prop_chance(w, 10)) {
        q->labels = &zones[prop_below(w, 2)];
        q->label_count = 1;
    }
    if (prop_chance(w, 5))
        q->only_node = 1 + prop_below(w, w->node_count);
}

int prop_topology_tell(struct sched *s)
{
    static const char *const levels[] = {"zone"};
    return sched_topology_set(s, levels, 1);
}

void prop_make(struct prop_world *w)
{
    if (prop_topology_tell(w->s) < 0)
        prop_fail(w, "the topology is refused");
    teams_make(w);
    uint32_t nodes = 1 + (uint32_t)prop_below(w, PROP_NODES_MAX - 1);
    for (uint32_t i = 0; i < nodes; i++)
        node_make(w);
    for (uint32_t i = 0; i < PROP_REQUESTS; i++)
        request_make(w, &w->requests[i]);
}

static void groups_make(struct prop_world *w, struct sched_workload *d, struct sched_task *tasks)
{
    struct sched_group *groups = arena_new_array(&w->arena, struct sched_group, 2);
    uint32_t members[2] = {0}, least = 0;
    for (uint32_t t = 0; t < d->task_count; t++) {
        tasks[t].group = t == 0 ? 0 : 1;
        members[tasks[t].group]++;
    }
    for (uint32_t g = 0; g < 2; g++) {
        groups[g].name = g == 0 ? "lead" : "worker";
        groups[g].min_tasks = (uint32_t)prop_below(w, members[g] + 1);
        groups[g].required = prop_chance(w, 20) ? "zone" : NULL;
        least += groups[g].min_tasks;
    }
    d->groups = groups;
    d->group_count = 2;
    if (d->min_tasks < least)
        d->min_tasks = least;
}

static uint64_t leaf_team(struct prop_world *w)
{
    uint32_t t;
    do
        t = (uint32_t)prop_below(w, w->team_count);
    while (!w->teams[t].leaf);
    return t + 1;
}

struct prop_workload *prop_workload_make(struct prop_world *w)
{
    struct prop_workload *p = arena_new(&w->arena, struct prop_workload);
    struct sched_workload *d = &p->decl;
    uint32_t n = prop_chance(w, 50) ? 1 : 1 + (uint32_t)prop_below(w, PROP_TASKS_MAX);
    struct sched_task *tasks = arena_new_array(&w->arena, struct sched_task, n);
    const struct sched_request *request = &w->requests[prop_below(w, PROP_REQUESTS)];
    for (uint32_t t = 0; t < n; t++) {
        tasks[t].request =
            prop_chance(w, 10) ? &w->requests[prop_below(w, PROP_REQUESTS)] : request;
        tasks[t].rank = prop_chance(w, 10) ? (int32_t)prop_below(w, 3) : 0;
    }
    d->id = w->workloads.len + 1;
    d->team = leaf_team(w);
    d->age = (uint64_t)w->now_ms + prop_below(w, 3);
    d->class_ = (enum sched_class)prop_below(w, SCHED_CLASSES);
    d->priority = prop_chance(w, 30) ? (int32_t)prop_below(w, 3) : 0;
    d->preemptible = prop_chance(w, 5) ? !w->config.classes[d->class_].preemptible
                                       : w->config.classes[d->class_].preemptible;
    d->may_burst = !prop_chance(w, 5);
    d->spread = prop_chance(w, 10);
    d->tasks = tasks;
    d->task_count = n;
    d->min_tasks = prop_chance(w, 50) ? n : 1 + (uint32_t)prop_below(w, n);
    if (n > 1 && prop_chance(w, 10))
        groups_make(w, d, tasks);
    d->topology_required = prop_chance(w, 10) ? "zone" : NULL;
    d->topology_preferred = prop_chance(w, 5) ? "zone" : NULL;
    d->limit_ms = prop_chance(w, 20) ? 1000 * (int64_t)(1 + prop_below(w, 60)) : 0;
    d->min_run_ms = prop_chance(w, 10) ? 3000 : 0;
    if (prop_chance(w, 10)) { /* a service with a disruption budget */
        d->max_unavailable = 1 + (uint32_t)prop_below(w, n);
        d->may_burst = false;
    }
    d->restart_cost_ms = prop_chance(w, 20) ? 1000 * (int64_t)prop_below(w, 100) : 0;
    d->accepted = prop_chance(w, 15);
    p->short_since_ms = -1;
    return p;
}
