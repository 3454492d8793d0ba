/* SPDX-License-Identifier: Apache-2.0 */
#include "prop_naive.h"

#include <string.h>

static const int64_t grain_of[SCHED_RESOURCES] = {1000, 1000, 1LL << 30};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the tree ---------------------------------------------------------------------------- */

bool naive_within(const struct prop_world *w, uint32_t team, uint32_t ancestor)
{
    while (team != PROP_NONE && team != ancestor)
        team = w->teams[team].parent;
    return team == ancestor;
}

bool naive_parting(const struct prop_world *w, uint32_t a, uint32_t b, uint32_t *ret_a,
                   uint32_t *ret_b)
{
    if (a == b)
        return false;
    while (w->teams[a].parent != PROP_NONE && !naive_within(w, b, w->teams[a].parent))
        a = w->teams[a].parent;
    while (w->teams[b].parent != PROP_NONE && !naive_within(w, a, w->teams[b].parent))
        b = w->teams[b].parent;
    *ret_a = a;
    *ret_b = b;
    return true;
}

/* ---- charges ----------------------------------------------------------------------------- */

static int32_t memory_milli(int64_t asked, int64_t memory)
{
    return memory == 0 ? 1000 : (int32_t)((asked * 1000 + memory - 1) / memory);
}

int32_t naive_placed_milli(const struct prop_world *w, const struct sched_request *q, uint32_t node,
                           const uint16_t *devices, uint32_t count)
{
    int32_t milli = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct sched_device *d = &w->nodes[node].decl.devices[devices[i]];
        if (d->mig_profile != NULL)
            milli += d->mig_milli;
        else if (q->device_milli > 0)
            milli += q->device_milli;
        else
            milli += memory_milli(q->device_memory_bytes, d->memory_bytes);
    }
    return milli;
}

bool naive_takes(const struct prop_world *w, uint32_t node)
{
    const struct sched_node *n = &w->nodes[node].decl;
    bool inside = n->window_from_ms <= w->now_ms && w->now_ms < n->window_until_ms;
    return n->up && n->schedulable && !inside;
}

bool naive_leaves_time(const struct prop_world *w, const struct prop_workload *p, uint32_t node)
{
    const struct sched_node *n = &w->nodes[node].decl;
    int64_t span = p->decl.limit_ms > 0      ? p->decl.limit_ms
                   : p->decl.expected_ms > 0 ? p->decl.expected_ms
                                             : w->config.window_lead_ms;
    if (!naive_takes(w, node))
        return false;
    return w->now_ms >= n->window_until_ms || w->now_ms + span <= n->window_from_ms;
}

bool naive_node_suits(const struct prop_world *w, const struct sched_request *q, uint32_t node)
{
    const struct sched_node *n = &w->nodes[node].decl;
    if (q->only_node != 0 && q->only_node != n->id)
        return false;
    bool type_ok = q->gpu_type_count == 0;
    for (uint32_t i = 0; i < q->gpu_type_count; i++)
        type_ok |= n->gpu_type != NULL && strcmp(n->gpu_type, q->gpu_types[i]) == 0;
    for (uint32_t i = 0; i < q->label_count; i++) {
        bool has = false;
        for (uint32_t j = 0; j < n->label_count; j++)
            has |= strcmp(n->labels[j].key, q->labels[i].key) == 0 &&
                   strcmp(n->labels[j].value, q->labels[i].value) == 0;
        if (!has)
            return false;
    }
    return type_ok;
}

/* While it waits, memory is charged of the smallest device that fits. */
static int32_t pending_milli(const struct prop_world *w, const struct sched_request *q)
{
    int64_t smallest = 0;
    int32_t milli = 0;
    for (uint32_t m = 0; m < q->mig_count; m++)
        milli += (int32_t)q->mig[m].count * ((q->mig[m].profile[0] - '0') * 1000 / 7);
    if (q->mig_count > 0)
        return milli;
    if (q->device_milli > 0)
        return q->device_milli * (int32_t)q->device_count;
    for (uint32_t n = 0; n < w->node_count; n++) {
        for (uint32_t d = 0; d < w->nodes[n].decl.device_count; d++) {
            const struct sched_device *dev = &w->nodes[n].decl.devices[d];
            if (naive_node_suits(w, q, n) && dev->mig_profile == NULL &&
                dev->memory_bytes >= q->device_memory_bytes &&
                (smallest == 0 || dev->memory_bytes < smallest))
                smallest = dev->memory_bytes;
        }
    }
    return q->device_count == 0
               ? 0
               : memory_milli(q->device_memory_bytes, smallest) * (int32_t)q->device_count;
}

struct naive_amounts naive_charge(const struct prop_world *w, const struct prop_workload *p,
                                  uint32_t t)
{
    const struct sched_request *q = p->decl.tasks[t].request;
    bool placed = p->tasks[t].phase != PROP_PENDING && p->tasks[t].phase != PROP_DONE;
    return (struct naive_amounts){{
        [SCHED_GPU_MILLI] = placed ? p->tasks[t].gpu_milli : pending_milli(w, q),
        [SCHED_CPU_MILLI] = q->cpu_milli,
        [SCHED_MEMORY_BYTES] = q->memory_bytes,
    }};
}

static bool counted(enum prop_phase phase, enum naive_view view)
{
    if (phase == PROP_RUNNING)
        return true;
    return view == NAIVE_NOW ? phase == PROP_LEAVING || phase == PROP_ENDING : phase == PROP_HELD;
}

static void add_upward(const struct prop_world *w, struct naive_amounts *sums, uint32_t team,
                       struct naive_amounts charge)
{
    for (; team != PROP_NONE; team = w->teams[team].parent) {
        for (int r = 0; r < SCHED_RESOURCES; r++)
            sums[team].v[r] += charge.v[r];
    }
}

struct naive_sums naive_sums(const struct prop_world *w, enum naive_view view)
{
    struct naive_sums sums = {0};
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            if (!counted(p->tasks[t].phase, view))
                continue;
            struct naive_amounts charge = naive_charge(w, p, t);
            uint32_t team = (uint32_t)(p->decl.team - 1);
            add_upward(w, sums.used, team, charge);
            if (!p->decl.preemptible)
                add_upward(w, sums.firm, team, charge);
        }
    }
    return sums;
}

bool naive_gates_open(const struct prop_world *w, const struct prop_workload *p, uint32_t t,
                      const struct naive_sums *sums)
{
    struct naive_amounts charge = naive_charge(w, p, t);
    uint32_t leaf = (uint32_t)(p->decl.team - 1);
    for (uint32_t team = leaf; team != PROP_NONE; team = w->teams[team].parent) {
        const struct sched_team *d = &w->teams[team].decl;
        for (int r = 0; r < SCHED_RESOURCES; r++) {
            int64_t ask = charge.v[r];
            if (ask == 0)
                continue;
            if (d->limit[r] != SCHED_UNLIMITED && sums->used[team].v[r] + ask > d->limit[r])
                return false;
            if (d->guarantee[r] == SCHED_UNLIMITED)
                continue;
            if (!p->decl.preemptible && sums->firm[team].v[r] + ask > d->guarantee[r])
                return false;
            if (!p->decl.may_burst && team == leaf && sums->used[team].v[r] + ask > d->guarantee[r])
                return false;
        }
    }
    return true;
}

/* ---- quota per GPU type ------------------------------------------------------------------- */

/* What TEAM has of the type of NODE; FIRM: by non-preemptible work alone. */
static int64_t type_used(const struct prop_world *w, uint32_t team, const char *type, bool firm,
                         enum naive_view view)
{
    int64_t sum = 0;
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        if (!naive_within(w, (uint32_t)(p->decl.team - 1), team) || (firm && p->decl.preemptible))
            continue;
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            enum prop_phase at = p->tasks[t].phase;
            bool on =
                at == PROP_RUNNING ||
                (view == NAIVE_NOW ? at == PROP_LEAVING || at == PROP_ENDING : at == PROP_HELD);
            if (on && strcmp(w->nodes[p->tasks[t].node].decl.gpu_type, type) == 0)
                sum += p->tasks[t].gpu_milli;
        }
    }
    return sum;
}

bool naive_types_open(const struct prop_world *w, const struct prop_workload *p, uint32_t node,
                      int64_t milli, enum naive_view view)
{
    const char *type = w->nodes[node].decl.gpu_type;
    uint32_t leaf = (uint32_t)(p->decl.team - 1);
    for (uint32_t team = leaf; milli > 0 && team != PROP_NONE; team = w->teams[team].parent) {
        const struct sched_team *d = &w->teams[team].decl;
        for (uint32_t i = 0; i < d->type_count; i++) {
            const struct sched_type_quota *q = &d->types[i];
            if (strcmp(q->gpu_type, type) != 0)
                continue;
            int64_t used = type_used(w, team, type, false, view);
            if (q->limit != SCHED_UNLIMITED && used + milli > q->limit)
                return false;
            if (q->guarantee == SCHED_UNLIMITED)
                continue;
            if (!p->decl.preemptible && type_used(w, team, type, true, view) + milli > q->guarantee)
                return false;
            if (!p->decl.may_burst && team == leaf && used + milli > q->guarantee)
                return false;
        }
    }
    return true;
}

static const struct sched_type_quota *guarantee_of(const struct prop_world *w, uint32_t team,
                                                   const char *type)
{
    const struct sched_team *d = &w->teams[team].decl;
    for (uint32_t i = 0; i < d->type_count; i++)
        if (strcmp(d->types[i].gpu_type, type) == 0 && d->types[i].guarantee != SCHED_UNLIMITED)
            return &d->types[i];
    return NULL;
}

bool naive_type_keeps(const struct prop_world *w, uint32_t team, const char *type)
{
    const struct sched_type_quota *q = guarantee_of(w, team, type);
    return q != NULL && type_used(w, team, type, false, NAIVE_THEN) <= q->guarantee;
}

bool naive_type_entitled(const struct prop_world *w, uint32_t team, const char *type,
                         int64_t milli)
{
    const struct sched_type_quota *q = guarantee_of(w, team, type);
    return q != NULL && type_used(w, team, type, false, NAIVE_THEN) + milli <= q->guarantee;
}

/* ---- fair shares ------------------------------------------------------------------------- */

static bool in_demand(enum prop_phase phase)
{
    return phase != PROP_ENDING && phase != PROP_DONE;
}

/* What a team can use: its tasks' or children's demand, each cut at its limit. */
static int64_t want_of(const struct prop_world *w, const struct naive_shares *sh, uint32_t team,
                       int r)
{
    int64_t want = 0;
    if (w->teams[team].leaf)
        want = sh->demand[team].v[r];
    for (uint32_t c = 0; c < w->team_count; c++) {
        if (w->teams[c].parent == team)
            want += want_of(w, sh, c, r);
    }
    return least(want, w->teams[team].decl.limit[r]);
}

struct claim {
    uint32_t team;
    int64_t need, weight, got;
    __int128 rest;
};

/* Whole grains, then one more to the largest remainders; claims are in order of age. */
static int64_t deal_grains(struct claim *c, size_t n, int64_t amount, int64_t weights,
                           int64_t grain)
{
    int64_t left = amount;
    for (size_t i = 0; i < n; i++) {
        __int128 exact = (__int128)amount * c[i].weight;
        int64_t whole = (int64_t)(exact / weights / grain) * grain;
        c[i].rest = exact - (__int128)whole * weights;
        c[i].got += whole;
        c[i].need -= whole;
        left -= whole;
    }
    for (bool fresh = false; left > 0;) {
        size_t best = n;
        for (size_t i = 0; i < n; i++) {
            if (c[i].rest >= 0 && c[i].need > 0 && (best == n || c[i].rest > c[best].rest))
                best = i;
        }
        if (best == n && fresh)
            break;       /* nobody needs more */
        if (best == n) { /* everybody had one, and some could not take all of it */
            for (size_t i = 0; i < n; i++)
                c[i].rest = 0;
            fresh = true;
            continue;
        }
        fresh = false;
        int64_t part = least(least(grain, left), c[best].need);
        c[best].got += part;
        c[best].need -= part;
        c[best].rest = -1;
        left -= part;
    }
    return left;
}

/* One priority's claims share AMOUNT; what is left is returned. */
static int64_t deal(struct claim *all, size_t count, int64_t amount, int64_t grain)
{
    bool dealt = false;
    while (amount > 0 && !dealt) {
        struct claim open[PROP_TEAMS_MAX];
        size_t n = 0, who[PROP_TEAMS_MAX];
        int64_t weights = 0;
        for (size_t i = 0; i < count; i++) {
            if (all[i].need > 0 && all[i].weight > 0) {
                who[n] = i;
                open[n++] = all[i];
                weights += all[i].weight;
            }
        }
        if (n == 0)
            break;
        int64_t before = amount;
        for (size_t i = 0; i < n; i++) {
            if ((__int128)before * open[i].weight >= (__int128)open[i].need * weights) {
                amount -= open[i].need;
                open[i].got += open[i].need;
                open[i].need = 0;
            }
        }
        if (amount == before) {
            amount = deal_grains(open, n, amount, weights, grain);
            dealt = true;
        }
        for (size_t i = 0; i < n; i++)
            all[who[i]] = open[i];
    }
    return amount;
}

/* An unlimited guarantee is the whole capacity. */
static int64_t assured_of(const struct sched_team *d, int r, int64_t capacity)
{
    return d->guarantee[r] == SCHED_UNLIMITED ? capacity : d->guarantee[r];
}

static void divide(const struct prop_world *w, struct naive_shares *sh, uint32_t parent,
                   int64_t amount, int64_t capacity, int r)
{
    struct claim claims[PROP_TEAMS_MAX];
    size_t n = 0;
    int64_t surplus = amount;
    for (uint32_t c = 0; c < w->team_count; c++) { /* index order is age order */
        if (w->teams[c].parent != parent)
            continue;
        int64_t want = want_of(w, sh, c, r);
        int64_t assured = least(assured_of(&w->teams[c].decl, r, capacity), want);
        claims[n++] = (struct claim){c, want - assured, w->teams[c].decl.weight, assured, 0};
        surplus = surplus == SCHED_UNLIMITED ? surplus : surplus - assured;
    }
    for (int32_t priority = 1000; surplus > 0 && priority >= 0; priority -= 50) {
        struct claim part[PROP_TEAMS_MAX];
        size_t m = 0, who[PROP_TEAMS_MAX];
        for (size_t i = 0; i < n; i++) {
            if (w->teams[claims[i].team].decl.priority == priority) {
                who[m] = i;
                part[m++] = claims[i];
            }
        }
        surplus = deal(part, m, surplus, grain_of[r]);
        for (size_t i = 0; i < m; i++)
            claims[who[i]] = part[i];
    }
    for (size_t i = 0; i < n; i++) {
        sh->share[claims[i].team].v[r] = claims[i].got;
        divide(w, sh, claims[i].team, claims[i].got, capacity, r);
    }
}

/* Nodes that take work, and what runs on those that are drained. */
static struct naive_amounts capacity_of(const struct prop_world *w)
{
    struct naive_amounts sum = {0};
    bool endless[SCHED_RESOURCES] = {false};
    for (uint32_t n = 0; n < w->node_count; n++) {
        const struct sched_node *d = &w->nodes[n].decl;
        if (!naive_takes(w, n))
            continue;
        for (uint32_t i = 0; i < d->device_count; i++)
            sum.v[SCHED_GPU_MILLI] +=
                d->devices[i].mig_profile != NULL ? d->devices[i].mig_milli : 1000;
        endless[SCHED_CPU_MILLI] |= d->cpu_milli == SCHED_UNLIMITED;
        endless[SCHED_MEMORY_BYTES] |= d->memory_bytes == SCHED_UNLIMITED;
        sum.v[SCHED_CPU_MILLI] += d->cpu_milli == SCHED_UNLIMITED ? 0 : d->cpu_milli;
        sum.v[SCHED_MEMORY_BYTES] += d->memory_bytes == SCHED_UNLIMITED ? 0 : d->memory_bytes;
    }
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; t < p->decl.task_count; t++) {
            const struct sched_node *d = &w->nodes[p->tasks[t].node].decl;
            if (p->tasks[t].phase != PROP_RUNNING || !d->up || naive_takes(w, p->tasks[t].node))
                continue;
            struct naive_amounts charge = naive_charge(w, p, t);
            for (int r = 0; r < SCHED_RESOURCES; r++)
                sum.v[r] += charge.v[r];
        }
    }
    for (int r = 0; r < SCHED_RESOURCES; r++)
        sum.v[r] = endless[r] ? SCHED_UNLIMITED : sum.v[r];
    return sum;
}

struct naive_shares naive_shares(const struct prop_world *w)
{
    struct naive_shares sh = {0};
    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct prop_workload *p = w->workloads.items[i];
        for (uint32_t t = 0; p->known && t < p->decl.task_count; t++) {
            if (in_demand(p->tasks[t].phase))
                add_upward(w, sh.demand, (uint32_t)(p->decl.team - 1), naive_charge(w, p, t));
        }
    }
    struct naive_amounts all = capacity_of(w);
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        divide(w, &sh, PROP_NONE, all.v[r], all.v[r], r);
        for (uint32_t t = 0; t < w->team_count; t++) {
            const struct sched_team *d = &w->teams[t].decl;
            int64_t assured = least(d->guarantee[r], all.v[r]);
            int64_t more = sh.share[t].v[r] > assured ? sh.share[t].v[r] : assured;
            sh.entitled[t].v[r] = least(d->limit[r], more);
        }
    }
    return sh;
}
