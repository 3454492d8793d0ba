/* SPDX-License-Identifier: Apache-2.0 */
#include "prop_exact.h"

#include <string.h>

struct place {
    uint32_t node;
    uint16_t devices[PROP_DEVICES_MAX];
    uint32_t count;
};

struct search {
    struct prop_world *w;
    struct prop_workload *p;
    struct exact_next next;
    uint32_t picked[PROP_TASKS_MAX];
    struct place places[PROP_TASKS_MAX];
    struct naive_sums sums;
    bool (*accept)(void *user, const struct naive_amounts *charge);
    void *user;
};

/* ---- what would start -------------------------------------------------------------------- */

static bool is_present(enum prop_phase phase)
{
    return phase == PROP_HELD || phase == PROP_RUNNING || phase == PROP_DONE;
}

bool exact_next(const struct prop_world *w, const struct prop_workload *p,
                struct exact_next *ret_next)
{
    struct exact_next next = {0};
    uint32_t present = 0, lacks = 0, pending = prop_count(p, PROP_PENDING);
    bool stopping = prop_count(p, PROP_LEAVING) + prop_count(p, PROP_ENDING) > 0;
    if (!p->known || pending == 0 || prop_count(p, PROP_HELD) > 0 ||
        (prop_count(p, PROP_RUNNING) == 0 && stopping))
        return false;
    for (uint32_t t = 0; t < p->decl.task_count; t++)
        present += is_present(p->tasks[t].phase);
    for (uint32_t g = 0; g < p->decl.group_count; g++) {
        uint32_t members = 0;
        for (uint32_t t = 0; t < p->decl.task_count; t++)
            members += p->decl.tasks[t].group == g && is_present(p->tasks[t].phase);
        if (members < p->decl.groups[g].min_tasks)
            next.lacks[g] = p->decl.groups[g].min_tasks - members;
        lacks += next.lacks[g];
    }
    next.total = present < p->decl.min_tasks ? p->decl.min_tasks - present : 0;
    next.total = next.total > lacks ? next.total : lacks;
    next.growth = next.total == 0;
    next.total = next.growth ? 1 : next.total;
    if (next.total > pending)
        return false;
    for (uint32_t t = 0, n = 0; t < p->decl.task_count && n < next.total; t++) {
        if (p->tasks[t].phase != PROP_PENDING)
            continue;
        struct naive_amounts c = naive_charge(w, p, t);
        for (int r = 0; r < SCHED_RESOURCES; r++)
            next.need.v[r] += c.v[r];
        n++;
    }
    *ret_next = next;
    return true;
}

bool exact_simple(const struct prop_workload *p)
{
    for (uint32_t t = 1; t < p->decl.task_count; t++) {
        if (p->decl.tasks[t].request != p->decl.tasks[0].request ||
            (p->decl.group_count > 0 && p->decl.tasks[t].rank != p->decl.tasks[0].rank))
            return false;
    }
    for (uint32_t g = 0; g < p->decl.group_count; g++) {
        if (p->decl.groups[g].required != NULL)
            return false;
    }
    return true;
}

static bool shares_devices(const struct sched_request *q)
{
    return q->mig_count == 0 && q->device_count > 0 && q->device_milli < 1000;
}

bool exact_whole(const struct prop_workload *p, const struct exact_next *next)
{
    const struct sched_request *shared = NULL;
    for (uint32_t g = 0; g < p->decl.group_count; g++) {
        if (p->decl.groups[g].required != NULL)
            return false;
    }
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        const struct sched_request *q = p->decl.tasks[t].request;
        if (!shares_devices(q))
            continue;
        if (shared != NULL && shared != q)
            return false;
        shared = q;
    }
    return next->total == prop_count(p, PROP_PENDING);
}

/* ---- gates ------------------------------------------------------------------------------- */

bool exact_gates(const struct prop_world *w, const struct prop_workload *p,
                 const struct naive_sums *sums, const struct naive_amounts *charge)
{
    uint32_t leaf = (uint32_t)(p->decl.team - 1);
    for (uint32_t team = leaf; team != PROP_NONE; team = w->teams[team].parent) {
        const struct sched_team *d = &w->teams[team].decl;
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            int64_t ask = charge->v[r];
            bool assured = d->guarantee[r] != SCHED_UNLIMITED;
            if (ask == 0)
                continue;
            if (d->limit[r] != SCHED_UNLIMITED && sums->used[team].v[r] + ask > d->limit[r])
                return false;
            if (assured && !p->decl.preemptible && sums->firm[team].v[r] + ask > d->guarantee[r])
                return false;
            if (assured && !p->decl.may_burst && team == leaf &&
                sums->used[team].v[r] + ask > d->guarantee[r])
                return false;
        }
    }
    return true;
}

/* ---- placing ----------------------------------------------------------------------------- */

static const char *zone_of(const struct prop_world *w, uint32_t node)
{
    return w->nodes[node].decl.labels[0].value;
}

/* Do two tasks of the workload have to share a zone? */
static bool bound_together(const struct prop_workload *p, uint32_t a, uint32_t b)
{
    uint32_t g = p->decl.tasks[a].group;
    return p->decl.topology_required != NULL ||
           (p->decl.group_count > 0 && g == p->decl.tasks[b].group &&
            p->decl.groups[g].required != NULL);
}

static bool zone_allows(const struct search *x, uint32_t i, uint32_t node)
{
    const struct prop_workload *p = x->p;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        bool there = p->tasks[t].phase == PROP_RUNNING || p->tasks[t].phase == PROP_HELD;
        if (there && bound_together(p, x->picked[i], t) &&
            strcmp(zone_of(x->w, p->tasks[t].node), zone_of(x->w, node)) != 0)
            return false;
    }
    for (uint32_t k = 0; k < i; k++) {
        if (bound_together(p, x->picked[i], x->picked[k]) &&
            strcmp(zone_of(x->w, x->places[k].node), zone_of(x->w, node)) != 0)
            return false;
    }
    return true;
}

static bool accepted(const struct search *x)
{
    struct naive_amounts charge = {0};
    int64_t on[PROP_NODES_MAX] = {0};
    for (uint32_t i = 0; i < x->next.total; i++) {
        const struct sched_request *q = x->p->decl.tasks[x->picked[i]].request;
        const struct place *at = &x->places[i];
        int64_t milli = naive_placed_milli(x->w, q, at->node, at->devices, at->count);
        charge.v[SCHED_GPU_MILLI] += milli;
        charge.v[SCHED_CPU_MILLI] += q->cpu_milli;
        charge.v[SCHED_MEMORY_BYTES] += q->memory_bytes;
        for (uint32_t n = 0; n < x->w->node_count; n++) { /* of the same type */
            const char *type = x->w->nodes[n].decl.gpu_type;
            on[n] += strcmp(type, x->w->nodes[at->node].decl.gpu_type) == 0 ? milli : 0;
        }
    }
    for (uint32_t n = 0; n < x->w->node_count; n++) {
        if (!naive_types_open(x->w, x->p, n, on[n], NAIVE_THEN))
            return false;
    }
    return exact_gates(x->w, x->p, &x->sums, &charge) &&
           (x->accept == NULL || x->accept(x->user, &charge));
}

static bool place_rest(struct search *x, uint32_t i);

static bool try_devices(struct search *x, uint32_t i)
{
    const struct sched_request *q = x->p->decl.tasks[x->picked[i]].request;
    struct place *at = &x->places[i];
    if (sim_ledger_take(&x->w->then, at->node, q, at->devices, at->count, NULL) < 0)
        return false;
    bool found = place_rest(x, i + 1);
    sim_ledger_release(&x->w->then, at->node, q, at->devices, at->count);
    return found;
}

static bool same_device(const struct sim_ledger_device *a, const struct sim_ledger_device *b)
{
    return a->mig_profile == b->mig_profile && a->memory_bytes == b->memory_bytes &&
           a->used_milli == b->used_milli && a->used_memory == b->used_memory &&
           a->whole == b->whole && a->users == b->users;
}

/* Every choice of devices for a request that shares them, from index FROM on. */
static bool choose_devices(struct search *x, uint32_t i, uint32_t from)
{
    const struct sched_request *q = x->p->decl.tasks[x->picked[i]].request;
    struct place *at = &x->places[i];
    const struct sim_ledger_node *n = &x->w->then.nodes[at->node];
    if (at->count == q->device_count)
        return try_devices(x, i);
    for (uint32_t d = from; d < n->device_count; d++) {
        bool seen = false; /* an equal one was chosen, or tried and left */
        for (uint32_t e = from; e < d && !seen; e++)
            seen = same_device(&n->devices[e], &n->devices[d]);
        if (seen || n->devices[d].mig_profile != NULL)
            continue;
        at->devices[at->count++] = (uint16_t)d;
        bool found = choose_devices(x, i, d + 1);
        at->count--;
        if (found)
            return true;
    }
    return false;
}

static bool place_on(struct search *x, uint32_t i, uint32_t node)
{
    const struct sched_request *q = x->p->decl.tasks[x->picked[i]].request;
    struct place *at = &x->places[i];
    at->node = node;
    at->count = sim_ledger_device_count(q);
    if (!naive_node_suits(x->w, q, node) || !zone_allows(x, i, node) ||
        !sim_ledger_fit(&x->w->then, node, q, at->devices))
        return false;
    if (q->mig_count > 0 || q->device_milli == 1000 || q->device_count == 0)
        return try_devices(x, i); /* whatever is free is alike */
    at->count = 0;
    return choose_devices(x, i, 0);
}

static bool place_rest(struct search *x, uint32_t i)
{
    if (i == x->next.total)
        return accepted(x);
    const struct sched_task *tasks = x->p->decl.tasks;
    bool alike = i > 0 && tasks[x->picked[i]].request == tasks[x->picked[i - 1]].request &&
                 tasks[x->picked[i]].group == tasks[x->picked[i - 1]].group;
    for (uint32_t n = alike ? x->places[i - 1].node : 0; n < x->w->node_count; n++) {
        if (place_on(x, i, n))
            return true;
    }
    return false;
}

/* ---- picking ----------------------------------------------------------------------------- */

static bool may_be_picked(const struct search *x, uint32_t mask)
{
    const struct prop_workload *p = x->p;
    uint32_t members[2] = {0};
    int32_t lowest = INT32_MAX, highest_left = INT32_MIN;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        int32_t rank = p->decl.tasks[t].rank;
        if (p->tasks[t].phase != PROP_PENDING)
            continue;
        if ((mask & 1u << t) == 0) {
            highest_left = rank > highest_left ? rank : highest_left;
            continue;
        }
        lowest = rank < lowest ? rank : lowest;
        members[p->decl.group_count > 0 ? p->decl.tasks[t].group : 0]++;
    }
    if (p->decl.group_count == 0)
        return lowest >= highest_left;
    return members[0] >= x->next.lacks[0] && members[1] >= x->next.lacks[1];
}

bool exact_starts(struct prop_world *w, struct prop_workload *p,
                  bool (*accept)(void *user, const struct naive_amounts *charge), void *user)
{
    struct search x = {.w = w, .p = p, .accept = accept, .user = user};
    if (!exact_next(w, p, &x.next))
        return false;
    x.sums = naive_sums(w, NAIVE_THEN);
    if (!exact_gates(w, p, &x.sums, &x.next.need))
        return false; /* as it is charged while it waits: the most that it may cost */
    for (uint32_t mask = 1; mask < 1u << p->decl.task_count; mask++) {
        uint32_t count = 0;
        bool pending = true;
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            if ((mask & 1u << t) == 0)
                continue;
            pending &= p->tasks[t].phase == PROP_PENDING;
            if (count < PROP_TASKS_MAX)
                x.picked[count++] = t;
        }
        if (pending && count == x.next.total && may_be_picked(&x, mask) && place_rest(&x, 0))
            return true;
    }
    return false;
}
