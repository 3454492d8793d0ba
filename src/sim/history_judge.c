/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history_judge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "model/state.h"
#include "sim/history_step.h"
#include "sim/ledger.h"

typedef unsigned long long ull;

struct amounts {
    int64_t v[MODEL_RESOURCE_COUNT];
};

/* Of one GPU type; MODEL_UNLIMITED = not stated. */
struct jtype {
    int64_t guarantee, limit;
    int64_t former_guarantee, former_limit; /* as in the team */
    int64_t used, firm;
};

struct jteam {
    uint64_t id, parent;
    int32_t number; /* "t3" */
    struct amounts guarantee, limit;
    /* The most that earlier versions allowed, for starts in groups until `former_until`. */
    struct amounts former_guarantee, former_limit;
    uint64_t former_until;
    struct amounts used, firm; /* open allocations, of descendants too; firm: not preemptible */
    struct jtype types[HISTORY_TYPES];
};

struct jtask {
    int32_t attempt; /* of the newest allocation; -1 = none yet */
    bool open, done;
    bool asleep;            /* the newest one is of what is kept while suspended */
    enum model_release how; /* the newest one ended, and at `end_ms` */
    int64_t end_ms;         /* INT64_MIN = never */
    enum model_task_state state;
};

struct jworkload {
    uint64_t id, team;
    int32_t number, task_count, min_tasks, open;
    int32_t done, most; /* tasks that succeeded; the most that were open within the group */
    bool started;       /* within the group */
    bool preemptible;
    enum model_workload_state state;
    const struct sched_request *request, *asleep; /* all of it; what is kept while suspended */
    struct jtask tasks[];
};

struct jnode {
    uint32_t index;
    int32_t type;        /* enum history_type; HISTORY_TYPES = it has none */
    uint64_t open_until; /* group; drained since */
    int64_t *free_ms;    /* per device: the latest end of a closed allocation */
    int32_t device_count;
};

struct jallocation {
    struct jworkload *w;
    struct jnode *node;
    int32_t task, device_count;
    int64_t start_ms;
    bool asleep; /* of what is kept while suspended */
    struct amounts charge;
    uint16_t devices[];
};

struct trade {
    uint64_t victim, winner;
    uint32_t times;
};

struct history_judge {
    struct map teams, nodes, workloads, allocations; /* by id, owned */
    struct map numbers;                              /* number + 1 -> jworkload or ENDED */
    struct sim_ledger ledger;
    uint64_t group, last_event, last_workload;
    VEC(struct trade) trades;
    uint64_t trades_from;    /* group */
    VEC(uint64_t) started;   /* workloads of which tasks were started within the group */
    VEC(uint64_t) suspended; /* workloads that were suspended within the group */
    int64_t last_event_ms;
    struct history_counts counts;
    uint64_t trace;
    char wrong[240];
};

static char ended_mark;
#define ENDED ((void *)&ended_mark)

static void wrong(struct history_judge *j, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static void wrong(struct history_judge *j, const char *fmt, ...)
{
    va_list ap;

    if (j->wrong[0])
        return;
    va_start(ap, fmt);
    vsnprintf(j->wrong, sizeof(j->wrong), fmt, ap);
    va_end(ap);
}

static void note(struct history_judge *j, uint64_t v)
{
    j->trace = (j->trace ^ v) * 0x9e3779b97f4a7c15ULL;
    j->trace ^= j->trace >> 29;
}

struct history_judge *history_judge_create(void)
{
    struct history_judge *j = calloc(1, sizeof(*j));

    if (j == NULL)
        abort();
    return j;
}

static void free_values(struct map *m)
{
    size_t it = 0;
    void *value;

    while ((value = map_next(m, &it)) != NULL)
        free(value);
    map_done(m);
}

void history_judge_destroy(struct history_judge *j)
{
    struct jnode *n;
    size_t it = 0;

    while ((n = map_next(&j->nodes, &it)) != NULL)
        free(n->free_ms);
    free_values(&j->teams);
    free_values(&j->nodes);
    free_values(&j->workloads);
    free_values(&j->allocations);
    map_done(&j->numbers);
    sim_ledger_done(&j->ledger);
    vec_done(&j->trades);
    vec_done(&j->started);
    vec_done(&j->suspended);
    free(j);
}

static void *new_value(size_t size)
{
    void *value = calloc(1, size);

    if (value == NULL)
        abort();
    return value;
}

/* ---- teams ------------------------------------------------------------------------------ */

static struct jteam *parent_of(const struct history_judge *j, const struct jteam *t)
{
    return t->parent ? map_get(&j->teams, t->parent) : NULL;
}

static void count(struct history_judge *j, uint64_t team, const struct amounts *a, bool firm,
                  int sign)
{
    for (struct jteam *t = map_get(&j->teams, team); t; t = parent_of(j, t)) {
        for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
            t->used.v[r] += sign * a->v[r];
            t->firm.v[r] += firm ? sign * a->v[r] : 0;
        }
    }
}

/* The former version goes on counting for a while; see the header. */
static void keep_former(const struct history_judge *j, struct jteam *t)
{
    bool still = j->group <= t->former_until;

    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
        if (!still || t->former_guarantee.v[r] < t->guarantee.v[r])
            t->former_guarantee.v[r] = t->guarantee.v[r];
        if (!still || t->former_limit.v[r] < t->limit.v[r])
            t->former_limit.v[r] = t->limit.v[r];
    }
    t->former_until = j->group + 1;
}

/* Of one type, on a node of it. */
static void count_type(struct history_judge *j, uint64_t team, int32_t type, int64_t milli,
                       bool firm, int sign)
{
    for (struct jteam *t = map_get(&j->teams, team); t && type < HISTORY_TYPES;
         t = parent_of(j, t)) {
        t->types[type].used += sign * milli;
        t->types[type].firm += firm ? sign * milli : 0;
    }
}

/* What T uses of each type, at all that are above it. */
static void count_types(struct history_judge *j, const struct jteam *t, int sign)
{
    for (int32_t i = 0; i < HISTORY_TYPES && t->parent; i++) {
        count_type(j, t->parent, i, t->types[i].used - t->types[i].firm, false, sign);
        count_type(j, t->parent, i, t->types[i].firm, true, sign);
    }
}

/* Its use moves along with it. */
static void move_team(struct history_judge *j, struct jteam *t, uint64_t parent)
{
    struct amounts used = t->used, firm = t->firm;

    if (t->parent == parent)
        return;
    if (t->parent) {
        count(j, t->parent, &used, false, -1);
        for (struct jteam *p = parent_of(j, t); p; p = parent_of(j, p))
            for (int r = 0; r < MODEL_RESOURCE_COUNT; r++)
                p->firm.v[r] -= firm.v[r];
    }
    count_types(j, t, -1);
    t->parent = parent;
    count_types(j, t, 1);
    if (parent) {
        count(j, parent, &used, false, 1);
        for (struct jteam *p = parent_of(j, t); p; p = parent_of(j, p))
            for (int r = 0; r < MODEL_RESOURCE_COUNT; r++)
                p->firm.v[r] += firm.v[r];
    }
}

static int32_t type_of(const char *name)
{
    int32_t type = 0;

    while (name && type < HISTORY_TYPES &&
           strcmp(history_type_name((enum history_type)type), name) != 0)
        type++;
    return name ? type : HISTORY_TYPES;
}

static void put_types(struct history_judge *j, struct jteam *t, const struct model_team *row,
                      bool fresh)
{
    bool still = j->group <= t->former_until;

    for (int i = 0; i < HISTORY_TYPES; i++) {
        struct jtype *y = &t->types[i];

        if (!fresh && (!still || y->former_guarantee < y->guarantee))
            y->former_guarantee = y->guarantee;
        if (!fresh && (!still || y->former_limit < y->limit))
            y->former_limit = y->limit;
        y->guarantee = y->limit = MODEL_UNLIMITED;
        for (int32_t k = 0; k < row->type_count; k++) {
            if (type_of(row->types[k].type) != i)
                continue;
            y->guarantee = row->types[k].guarantee;
            y->limit = row->types[k].limit;
        }
    }
}

static void put_team(struct history_judge *j, const struct model_team *row)
{
    struct jteam *t = map_get(&j->teams, row->id);

    note(j, row->id ^ (uint64_t)row->limit[0] ^ (uint64_t)row->guarantee[0] << 20);
    if (t == NULL) {
        t = new_value(sizeof(*t));
        t->id = row->id;
        if (sscanf(row->name, "t%d", &t->number) != 1)
            wrong(j, "team '%s' was never asked for", row->name);
        map_put(&j->teams, t->id, t);
        put_types(j, t, row, true);
    } else {
        put_types(j, t, row, false);
        keep_former(j, t);
    }
    memcpy(t->guarantee.v, row->guarantee, sizeof(t->guarantee.v));
    memcpy(t->limit.v, row->limit, sizeof(t->limit.v));
    move_team(j, t, row->parent_id);
}

static void delete_team(struct history_judge *j, uint64_t id)
{
    struct jteam *t = map_del(&j->teams, id);

    note(j, id);
    if (t == NULL) {
        wrong(j, "team %llu is deleted twice", (ull)id);
        return;
    }
    if (t->used.v[MODEL_GPU_MILLI] || t->used.v[MODEL_CPU_MILLI])
        wrong(j, "team %llu is deleted while work of it holds devices", (ull)id);
    free(t);
}

static int64_t most(const struct history_judge *j, const struct jteam *t, const struct amounts *now,
                    const struct amounts *former, int r)
{
    bool still = j->group <= t->former_until;

    return still && former->v[r] > now->v[r] ? former->v[r] : now->v[r];
}

static int64_t limit_of(const struct history_judge *j, const struct jteam *t, int r)
{
    return most(j, t, &t->limit, &t->former_limit, r);
}

/* What a team is assured of: at least what is promised below it; and CPU and memory beside
 * assured GPUs, where nothing is said of them. */
static int64_t assured(const struct history_judge *j, const struct jteam *t, int r)
{
    int64_t own = most(j, t, &t->guarantee, &t->former_guarantee, r), below = 0;
    int64_t limit = limit_of(j, t, r), all;
    const struct jteam *child;
    size_t it = 0;

    while ((child = map_next(&j->teams, &it)) != NULL) {
        int64_t part = child->parent == t->id ? assured(j, child, r) : 0;
        below += part == MODEL_UNLIMITED ? 0 : part;
    }
    all = own > below ? own : below;
    all = all < limit ? all : limit;
    if (r != MODEL_GPU_MILLI && own == 0 && below == 0 && limit == MODEL_UNLIMITED &&
        assured(j, t, MODEL_GPU_MILLI) > 0)
        return MODEL_UNLIMITED;
    return all;
}

static void check_gates(struct history_judge *j, const struct jworkload *w,
                        const struct amounts *charge)
{
    for (struct jteam *t = map_get(&j->teams, w->team); t; t = parent_of(j, t)) {
        for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
            if (charge->v[r] == 0)
                continue;
            if (t->used.v[r] > limit_of(j, t, r))
                wrong(j, "a start of w%d takes team %llu to %lld of resource %d, its limit is %lld",
                      w->number, (ull)t->id, (long long)t->used.v[r], r,
                      (long long)limit_of(j, t, r));
            if (!w->preemptible && t->firm.v[r] > assured(j, t, r))
                wrong(j,
                      "a start of w%d takes the non-preemptible work of team %llu to %lld of "
                      "resource %d, it is assured of %lld",
                      w->number, (ull)t->id, (long long)t->firm.v[r], r,
                      (long long)assured(j, t, r));
        }
    }
}

/* And the bounds of the GPU type that it started on. */
static void check_type(struct history_judge *j, const struct jworkload *w, int32_t type)
{
    for (struct jteam *t = map_get(&j->teams, w->team); t && type < HISTORY_TYPES;
         t = parent_of(j, t)) {
        const struct jtype *y = &t->types[type];
        bool still = j->group <= t->former_until;
        int64_t limit = still && y->former_limit > y->limit ? y->former_limit : y->limit;
        int64_t guarantee =
            still && y->former_guarantee > y->guarantee ? y->former_guarantee : y->guarantee;

        if (y->used > limit)
            wrong(j, "a start of w%d takes team %llu to %lld of type %s, its limit is %lld",
                  w->number, (ull)t->id, (long long)y->used,
                  history_type_name((enum history_type)type), (long long)limit);
        if (!w->preemptible && y->firm > guarantee)
            wrong(j,
                  "a start of w%d takes the non-preemptible work of team %llu to %lld of type %s, "
                  "its guarantee is %lld",
                  w->number, (ull)t->id, (long long)y->firm,
                  history_type_name((enum history_type)type), (long long)guarantee);
    }
}

/* ---- nodes ------------------------------------------------------------------------------ */

static void put_node(struct history_judge *j, const struct model_node *row)
{
    struct jnode *n = map_get(&j->nodes, row->id);
    bool was_open;

    note(j, row->id ^ (uint64_t)row->state << 32 ^ (uint64_t)row->drained << 40);
    if (n == NULL) {
        n = new_value(sizeof(*n));
        n->index = (uint32_t)j->nodes.len;
        map_put(&j->nodes, row->id, n);
    }
    if (row->device_count > n->device_count) {
        size_t cap = (size_t)n->device_count;
        n->free_ms = vec_grow(n->free_ms, &cap, (size_t)row->device_count, sizeof(int64_t));
        memset(n->free_ms + n->device_count, 0,
               (size_t)(row->device_count - n->device_count) * sizeof(int64_t));
        n->device_count = row->device_count;
    }
    n->type = type_of(row->gpu_type);
    was_open = n->index < j->ledger.node_count && j->ledger.nodes[n->index].open;
    sim_ledger_model_node(&j->ledger, n->index, row);
    if (was_open && row->drained && row->state == MODEL_NODE_UP)
        n->open_until = j->group + 1;
}

/* ---- allocations ------------------------------------------------------------------------ */

static bool take(struct history_judge *j, const struct jworkload *w, const struct jnode *n,
                 const struct model_allocation *row, bool asleep)
{
    struct sim_ledger_node *node = &j->ledger.nodes[n->index];
    struct err err = ERR_INIT;
    bool open = node->open;
    int r;

    node->open |= asleep || j->group <= n->open_until; /* who is suspended was there */
    r = sim_ledger_take(&j->ledger, n->index, asleep ? w->asleep : w->request, row->devices,
                        (uint32_t)row->device_count, &err);
    node->open = open;
    if (r < 0)
        wrong(j, "a start of w%d on node %llu: %s", w->number, (ull)row->node, err.text);
    return r == 0;
}

static void check_charge(struct history_judge *j, const struct jworkload *w,
                         const struct model_allocation *row, bool asleep)
{
    const struct sched_request *q = asleep ? w->asleep : w->request;

    if (q->device_milli && row->gpu_milli != (int32_t)q->device_count * q->device_milli)
        wrong(j, "task %d of w%d is charged %d milli", row->task, w->number, row->gpu_milli);
    if (asleep && row->gpu_milli)
        wrong(j, "w%d is charged %d milli while it is suspended", w->number, row->gpu_milli);
    /* Beside its memory lies then what it had on devices. */
    if (row->cpu_milli != q->cpu_milli ||
        (asleep ? row->memory_bytes < q->memory_bytes : row->memory_bytes != q->memory_bytes))
        wrong(j, "task %d of w%d is charged other cpu or memory than it asked for", row->task,
              w->number);
}

/* An attempt goes on where it was suspended or resumed, and begins at no other time. */
static void check_attempt(struct history_judge *j, const struct jworkload *w,
                          const struct model_allocation *row, bool asleep)
{
    const struct jtask *t = &w->tasks[row->task];
    bool goes_on = asleep || t->how == MODEL_RELEASE_RESUMED;

    if (t->open)
        wrong(j, "task %d of w%d is started while it runs", row->task, w->number);
    if (asleep && t->how != MODEL_RELEASE_SUSPENDED)
        wrong(j, "w%d is suspended and did not run", w->number);
    if (goes_on ? row->attempt != t->attempt : row->attempt <= t->attempt)
        wrong(j, "attempt %d of task %d of w%d is started after attempt %d", row->attempt,
              row->task, w->number, t->attempt);
    if (goes_on ? row->start_ms != t->end_ms : row->start_ms < t->end_ms)
        wrong(j, "task %d of w%d is metered from %lld on, and was until %lld", row->task, w->number,
              (long long)row->start_ms, (long long)t->end_ms);
}

static void check_start(struct history_judge *j, struct jworkload *w, const struct jnode *n,
                        const struct model_allocation *row, bool asleep)
{
    check_attempt(j, w, row, asleep);
    check_charge(j, w, row, asleep);
    for (int32_t i = 0; i < row->device_count; i++)
        if (row->devices[i] < n->device_count && row->start_ms < n->free_ms[row->devices[i]])
            wrong(j, "task %d of w%d is metered on device %u from before the last one ended",
                  row->task, w->number, row->devices[i]);
}

static void note_start(struct history_judge *j, struct jworkload *w)
{
    if (!w->started)
        vec_push(&j->started, w->id);
    w->most = w->started ? w->most : w->open;
    w->started = true;
    w->open++;
    w->most = w->open > w->most ? w->open : w->most;
}

static void open_allocation(struct history_judge *j, const struct model_allocation *row)
{
    struct jworkload *w = map_get(&j->workloads, row->workload);
    struct jnode *n = map_get(&j->nodes, row->node);
    size_t size = (size_t)row->device_count * sizeof(*row->devices);
    bool asleep = w && row->device_count == 0 && w->request != w->asleep, wakes;
    struct amounts fresh;
    struct jallocation *a;

    if (w == NULL || n == NULL || row->task < 0 || row->task >= w->task_count) {
        wrong(j, "an allocation of workload %llu, task %d, node %llu: there is no such",
              (ull)row->workload, row->task, (ull)row->node);
        return;
    }
    wakes = w->tasks[row->task].how == MODEL_RELEASE_RESUMED;
    check_start(j, w, n, row, asleep);
    if (!take(j, w, n, row, asleep))
        return;
    a = new_value(sizeof(*a) + size);
    *a = (struct jallocation){w, n, row->task, row->device_count, row->start_ms, asleep};
    a->charge = (struct amounts){{row->gpu_milli, row->cpu_milli, row->memory_bytes}};
    memcpy(a->devices, row->devices, size);
    map_put(&j->allocations, row->id, a);
    w->tasks[row->task].attempt = row->attempt;
    w->tasks[row->task].open = true;
    w->tasks[row->task].asleep = asleep;
    w->tasks[row->task].done = false;
    note_start(j, w);
    j->counts.allocations++;
    count(j, w->team, &a->charge, !w->preemptible, 1);
    count_type(j, w->team, n->type, a->charge.v[MODEL_GPU_MILLI], !w->preemptible, 1);
    if (asleep)
        return; /* that is no start */
    fresh = a->charge;
    if (wakes) /* its CPU and memory have stayed with it */
        fresh.v[MODEL_CPU_MILLI] = fresh.v[MODEL_MEMORY_BYTES] = 0;
    check_gates(j, w, &fresh);
    if (a->charge.v[MODEL_GPU_MILLI] > 0)
        check_type(j, w, n->type);
}

/* It was busy within what is known of it, and known of within its time. */
static void check_busy(struct history_judge *j, const struct jallocation *a,
                       const struct model_allocation *row)
{
    int64_t all_ns = (row->end_ms - a->start_ms) * a->charge.v[MODEL_GPU_MILLI] * 1000;

    if (row->busy_ns < 0 || row->busy_ns > row->known_ns || row->known_ns > all_ns)
        wrong(j, "task %d of w%d is metered as busy for %lld of %lld known ns of %lld", a->task,
              a->w->number, (long long)row->busy_ns, (long long)row->known_ns, (long long)all_ns);
}

static void close_allocation(struct history_judge *j, uint64_t id, struct jallocation *a,
                             const struct model_allocation *row)
{
    struct jworkload *w = a->w;

    if (row->end_ms < a->start_ms || row->start_ms != a->start_ms)
        wrong(j, "task %d of w%d is metered from %lld to %lld", a->task, w->number,
              (long long)row->start_ms, (long long)row->end_ms);
    for (int32_t i = 0; i < a->device_count; i++)
        if (a->node->free_ms[a->devices[i]] < row->end_ms)
            a->node->free_ms[a->devices[i]] = row->end_ms;
    check_busy(j, a, row);
    sim_ledger_release(&j->ledger, a->node->index, a->asleep ? w->asleep : w->request, a->devices,
                       (uint32_t)a->device_count);
    count(j, w->team, &a->charge, !w->preemptible, -1);
    count_type(j, w->team, a->node->type, a->charge.v[MODEL_GPU_MILLI], !w->preemptible, -1);
    w->tasks[a->task].open = false;
    w->tasks[a->task].how = row->release;
    w->tasks[a->task].end_ms = row->end_ms;
    w->open--;
    map_del(&j->allocations, id);
    free(a);
}

static void put_allocation(struct history_judge *j, const struct model_allocation *row)
{
    struct jallocation *a = map_get(&j->allocations, row->id);

    note(j, row->id ^ row->workload << 20 ^ (uint64_t)row->task << 50 ^ (uint64_t)row->end_ms);
    if (a && row->end_ms)
        close_allocation(j, row->id, a, row);
    else if (a == NULL && row->end_ms == 0)
        open_allocation(j, row);
    else if (a == NULL)
        wrong(j, "allocation %llu ends twice", (ull)row->id);
}

/* ---- workloads -------------------------------------------------------------------------- */

static void put_workload(struct history_judge *j, const struct model_workload *row)
{
    const struct model_shape *shape = row->shape;
    struct jworkload *w;
    int number = -1;

    note(j, row->id);
    if (sscanf(row->name, "w%d", &number) != 1 || map_get(&j->numbers, (uint64_t)number + 1) ||
        row->id <= j->last_workload) {
        wrong(j, "workload %llu, '%s', is accepted twice", (ull)row->id, row->name);
        return;
    }
    j->last_workload = row->id;
    w = new_value(sizeof(*w) + (size_t)shape->task_count * sizeof(w->tasks[0]));
    w->id = row->id;
    w->team = row->team_id;
    w->number = number;
    w->task_count = shape->task_count;
    w->min_tasks = shape->min_tasks;
    w->preemptible = shape->preemptible;
    w->state = row->state;
    w->request = sim_ledger_model_request(&j->ledger, &shape->groups[0].request);
    w->asleep = sim_ledger_model_request(
        &j->ledger, &(struct model_request){.cpu_milli = w->request->cpu_milli,
                                            .memory_bytes = w->request->memory_bytes});
    for (int32_t i = 0; i < w->task_count; i++)
        w->tasks[i] = (struct jtask){.attempt = -1, .end_ms = INT64_MIN};
    map_put(&j->workloads, w->id, w);
    map_put(&j->numbers, (uint64_t)number + 1, w);
    j->counts.accepted++;
    j->counts.live++;
    if (row->state != MODEL_WORKLOAD_PENDING)
        wrong(j, "w%d begins as %s", number, model_workload_state_name(row->state));
    if (map_get(&j->teams, w->team) == NULL)
        wrong(j, "w%d belongs to a team that does not exist", number);
}

static void end_workload(struct history_judge *j, struct jworkload *w)
{
    if (w->open)
        wrong(j, "w%d is %s while %d of its tasks hold devices", w->number,
              model_workload_state_name(w->state), w->open);
    j->counts.live--;
    j->counts.succeeded += w->state == MODEL_WORKLOAD_SUCCEEDED;
    j->counts.failed += w->state == MODEL_WORKLOAD_FAILED;
    j->counts.cancelled += w->state == MODEL_WORKLOAD_CANCELLED;
    map_put(&j->numbers, (uint64_t)w->number + 1, ENDED);
    map_del(&j->workloads, w->id);
    if (w->open == 0)
        free(w);
}

static void update_workload(struct history_judge *j, const struct model_workload *row)
{
    struct jworkload *w = map_get(&j->workloads, row->id);

    note(j, row->id ^ (uint64_t)row->state << 32 ^ (uint64_t)row->exit_code << 40);
    if (w == NULL) {
        wrong(j, "workload %llu changes, but there is no such or it has ended", (ull)row->id);
        return;
    }
    if (row->state != w->state && !model_workload_transition_ok(w->state, row->state))
        wrong(j, "w%d goes from %s to %s", w->number, model_workload_state_name(w->state),
              model_workload_state_name(row->state));
    w->state = row->state;
    if (w->state == MODEL_WORKLOAD_SUSPENDED)
        vec_push(&j->suspended, w->id);
    if (model_workload_state_is_final(w->state))
        end_workload(j, w);
}

static void put_task(struct history_judge *j, const struct model_task *row)
{
    struct jworkload *w = map_get(&j->workloads, row->workload);
    bool done = row->state == MODEL_TASK_SUCCEEDED;

    note(j, row->workload ^ (uint64_t)row->index << 32 ^ (uint64_t)row->state << 44 ^
                (uint64_t)row->attempt << 50);
    if (w == NULL || row->index < 0 || row->index >= w->task_count) {
        wrong(j, "task %d of workload %llu changes, but there is no such", row->index,
              (ull)row->workload);
        return;
    }
    if (w->tasks[row->index].done && !done)
        wrong(j, "task %d of w%d had succeeded and is %s", row->index, w->number,
              model_task_state_name(row->state));
    /* It was asked for from outside, not by the scheduler; or its devices have no room. */
    if (row->state == MODEL_TASK_SUSPENDED) {
        if (w->tasks[row->index].state != MODEL_TASK_STOPPING)
            history_judge_outside(j);
        j->counts.suspended++;
    }
    w->tasks[row->index].state = row->state;
    if (done && !w->tasks[row->index].done) {
        w->done++;
        history_judge_outside(j); /* by itself, also where it had been asked to stop */
    }
    w->tasks[row->index].done = done;
}

/* ---- events ----------------------------------------------------------------------------- */

static uint32_t *trades_of(struct history_judge *j, uint64_t victim, uint64_t winner)
{
    struct trade *t;

    for (size_t i = 0; i < j->trades.len; i++)
        if (j->trades.items[i].victim == victim && j->trades.items[i].winner == winner)
            return &j->trades.items[i].times;
    t = vec_add(&j->trades);
    t->victim = victim;
    t->winner = winner;
    return &t->times;
}

static void evicted(struct history_judge *j, const struct model_event *e)
{
    static const char key[] = "\"on_behalf_of\":";
    const char *at = e->data ? strstr(e->data, key) : NULL;
    uint64_t winner = at ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
    uint32_t there, back;

    j->counts.evictions++;
    if (winner == 0 || j->group < j->trades_from)
        return;
    there = ++*trades_of(j, e->workload, winner);
    back = *trades_of(j, winner, e->workload);
    if (there > 1 && back > 0)
        wrong(j, "workloads %llu and %llu trade places back and forth", (ull)e->workload,
              (ull)winner);
}

static void add_event(struct history_judge *j, const struct model_event *e)
{
    note(j, e->seq ^ e->workload << 20 ^ (uint64_t)e->time_ms << 8);
    if (e->time_ms < j->last_event_ms)
        wrong(j, "event %llu happens before event %llu", (ull)e->seq, (ull)j->last_event);
    j->last_event_ms = e->time_ms;
    if (e->seq <= j->last_event)
        wrong(j, "event %llu comes after event %llu", (ull)e->seq, (ull)j->last_event);
    j->last_event = e->seq;
    if (strcmp(e->type, MODEL_EVENT_EVICTED) == 0)
        evicted(j, e);
    else if (strcmp(e->type, MODEL_EVENT_TASK_LOST) == 0 ||
             strcmp(e->type, MODEL_EVENT_TASK_REFUSED) == 0 ||
             strcmp(e->type, MODEL_EVENT_ENDED) == 0)
        history_judge_outside(j);
}

/* ---- the whole -------------------------------------------------------------------------- */

void history_judge_group(struct history_judge *j)
{
    j->group++;
    j->counts.groups = j->group;
}

/* Who is suspended holds a place on its node, and no device. */
static void check_suspended(struct history_judge *j)
{
    for (size_t i = 0; i < j->suspended.len; i++) {
        const struct jworkload *w = map_get(&j->workloads, j->suspended.items[i]);

        if (w && w->state == MODEL_WORKLOAD_SUSPENDED && !(w->tasks[0].open && w->tasks[0].asleep))
            wrong(j, "w%d is suspended and %s", w->number,
                  w->tasks[0].open ? "holds devices" : "holds nothing");
    }
    vec_clear(&j->suspended);
}

/* Who was started in this group was started with its minimum. */
void history_judge_group_end(struct history_judge *j)
{
    check_suspended(j);
    for (size_t i = 0; i < j->started.len; i++) {
        struct jworkload *w = map_get(&j->workloads, j->started.items[i]);

        if (w == NULL)
            continue; /* it has ended within the same group */
        if (w->most + w->done < w->min_tasks)
            wrong(j, "w%d is started with %d tasks, its minimum is %d", w->number,
                  w->most + w->done, w->min_tasks);
        w->started = false;
    }
    vec_clear(&j->started);
}

void history_judge_outside(struct history_judge *j)
{
    vec_clear(&j->trades);
    j->trades_from = j->group + 3;
}

void history_judge_op(void *judge, const struct store_op *op)
{
    struct history_judge *j = judge;

    note(j, (uint64_t)op->kind);
    switch (op->kind) {
    case STORE_PUT_TEAM:
        put_team(j, op->team);
        break;
    case STORE_DELETE_TEAM:
        delete_team(j, op->id);
        break;
    case STORE_PUT_WORKLOAD:
        put_workload(j, op->new_workload->row);
        break;
    case STORE_UPDATE_WORKLOAD:
        update_workload(j, op->workload);
        break;
    case STORE_PUT_TASK:
        put_task(j, op->task);
        break;
    case STORE_PUT_NODE:
        put_node(j, op->node);
        break;
    case STORE_PUT_ALLOCATION:
        put_allocation(j, op->allocation);
        break;
    case STORE_ADD_EVENT:
        add_event(j, op->event);
        break;
    case STORE_PUT_USER:
    case STORE_DELETE_USER:
    case STORE_PUT_META:
    case STORE_PUT_TOKEN:
    case STORE_DELETE_TOKEN:
    case STORE_PUT_REPLY:
        break;
    }
}

const char *history_judge_wrong(const struct history_judge *j)
{
    return j->wrong[0] ? j->wrong : NULL;
}

int history_judge_find(const struct history_judge *j, int32_t number, uint64_t *ret_id)
{
    const struct jworkload *w = map_get(&j->numbers, (uint64_t)number + 1);

    if (w == NULL)
        return -ENOENT;
    *ret_id = w == ENDED ? 0 : w->id;
    return 0;
}

int history_judge_team(const struct history_judge *j, int32_t number, int32_t *ret_parent)
{
    const struct jteam *t;
    size_t it = 0;

    while ((t = map_next(&j->teams, &it)) != NULL) {
        const struct jteam *parent = parent_of(j, t);

        if (t->number != number)
            continue;
        *ret_parent = parent ? parent->number : -1;
        return 0;
    }
    return -ENOENT;
}

uint64_t history_judge_next(const struct history_judge *j, uint64_t after)
{
    const struct jworkload *w;
    uint64_t next = 0;
    size_t it = 0;

    while ((w = map_next(&j->workloads, &it)) != NULL)
        if (w->id > after && (next == 0 || w->id < next))
            next = w->id;
    return next;
}

void history_judge_counts(const struct history_judge *j, struct history_counts *ret_counts)
{
    *ret_counts = j->counts;
}

uint64_t history_judge_trace(const struct history_judge *j)
{
    return j->trace;
}
