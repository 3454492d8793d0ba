/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/place.h"

#include <stdlib.h>
#include <string.h>

#include "sched/fit.h"
#include "sched/gate.h"
#include "sched/index.h"
#include "sched/mix.h"
#include "sched/node.h"
#include "sched/shape.h"
#include "sched/states.h"
#include "sched/task.h"
#include "sched/types.h"
#include "sched/window.h"

#define NO_DOMAIN 0
#define SUM_FROM 32 /* tasks of a gang that all nodes are looked at for beforehand */
#define SEARCH_NODES_MAX 128 /* a gang is searched places for in clusters of that many nodes */
#define SEARCH_TASKS_MAX 64  /* of such a gang */
#define SEARCH_LOOKS_MAX 512 /* places that are tried for it in one question */

void placing_free(struct placing *p)
{
    if (p == NULL)
        return;
    vec_done(&p->spots);
    vec_done(&p->devices);
    vec_done(&p->quota);
    vec_done(&p->rooms);
    free(p);
}

/* One placement in the making. */
struct run {
    struct sched *s;
    struct placing *p;
    const struct job_shape *job;
    const struct workload *w;
    unsigned mask;
    bool all;            /* every pending task has to be placed */
    uint32_t left;       /* tasks still to be placed */
    uint32_t free_left;  /* of these, beyond the quotas of the groups */
    uint32_t whole_left; /* whole devices that the rest of the gang needs, about */
    int level;           /* topology: only nodes of this domain; -1 = all */
    uint32_t domain;
    int group_level; /* likewise for the group being placed */
    uint32_t group_domain;
    unsigned looks; /* that search_places() may still take */
};

/* ---- choosing a node --------------------------------------------------------------------- */

/* Services spread: as many nodes as possible, and on each what is idle. Up to four parts, each
 * below 2^21 (devices, or milli of all of them), the first decides. */
static struct index_score spread_score(const struct node *n, const struct fit *f)
{
    return (struct index_score){n->mark, (uint64_t)f->opened << 42 |
                                             (uint64_t)(DEVICES_MAX - f->idle) << 21 |
                                             (uint64_t)f->slack};
}

/* MIG slices: the profile with the fewest left, then the fullest node. */
static struct index_score slices_score(const struct fit *f)
{
    return (struct index_score){(uint64_t)f->slack, (uint64_t)f->idle};
}

/* Everything else packs by what it leaves for others; see score.h. Before that: a node that holds
 * what is left of the gang, or most of it; and for work without devices one that has none. */
static struct index_score pack_score(const struct sched *s, const struct index_key *key,
                                     const struct node *n, const struct fit *f, uint16_t *devices)
{
    const struct shape *shape = key->shape;
    uint64_t first = 0;
    if (shape_whole(shape) > 0 && f->idle < key->rest)
        first = DEVICES_MAX + 1 - f->idle;
    else if (!shape_has_devices(shape))
        first = n->device_count > 0;
    int64_t cost = score_place(mix_current(s), n, shape, key->mask, devices, f->count);
    return (struct index_score){first, (uint64_t)cost ^ (1ULL << 63)}; /* keeps the order */
}

/* INDEX_NO_PLACE where it does not fit; whether the node takes work is not asked. */
static struct index_score score_on(struct sched *s, const struct index_key *key,
                                   const struct node *n)
{
    uint16_t *devices = s->placing->trial;
    struct fit f;
    if (!fit_node(n, key->shape, key->mask, devices, &f))
        return INDEX_NO_PLACE;
    struct index_score score;
    if (key->spread)
        score = spread_score(n, &f);
    else if (key->shape->mig_count > 0)
        score = slices_score(&f);
    else
        score = pack_score(s, key, n, &f, devices);
    if (n->avoid_until_ms > s->now_ms)
        score.hi |= INDEX_AVOIDED;
    return score;
}

/* Does it fit? The devices that it would take are in PLACING.trial then. */
static bool devices_on(const struct run *r, const struct node *n, const struct shape *shape,
                       struct fit *ret_fit)
{
    uint16_t *devices = r->p->trial;
    if (!fit_node(n, shape, r->mask, devices, ret_fit))
        return false;
    if (!r->job->spread && !(r->mask & MASK_PLAIN))
        score_place(mix_current(r->s), n, shape, r->mask, devices, ret_fit->count);
    return true;
}

/* What the index asks; see index_score_fn. Nodes with a window are looked at one by one: whether
 * they take work depends on how long it runs. */
static struct index_score judge(struct sched *s, const struct index_key *key, const struct node *n)
{
    bool any = (key->mask & MASK(VIEW_EMPTY)) && !(key->mask & MASK_USABLE);
    if (n->windowed || (!any && !node_takes(n)))
        return INDEX_NO_PLACE;
    return score_on(s, key, n);
}

/* Does the node take work at the time that is asked about? */
static bool node_open(const struct run *r, const struct node *n)
{
    const struct sched *s = r->s;
    if ((r->mask & MASK(VIEW_EMPTY)) && !(r->mask & MASK_USABLE))
        return true;
    if (s->windows.len == 0)
        return node_takes(n);
    if (r->mask & MASK_NO_WINDOW)
        return n->up && n->schedulable;
    if (r->mask & MASK(VIEW_EMPTY))
        return node_takes(n);
    if ((r->mask & MASK(VIEW_PLAN)) && !(r->mask & MASK_START))
        return n->up && n->schedulable && window_allows(s, n, r->w, s->plan_ms);
    return node_takes(n) && window_allows(s, n, r->w, s->now_ms);
}

static bool node_usable(const struct run *r, const struct node *n, const struct shape *shape)
{
    if (!node_open(r, n))
        return false;
    if (r->level >= 0 && n->domain[r->level] != r->domain)
        return false;
    if (r->group_level >= 0 && n->domain[r->group_level] != r->group_domain)
        return false;
    return fit_accepts(n, shape);
}

/* Only where it is asked for: a mark makes the node another one for everybody. */
static void mark_node(struct node *n, int sign)
{
    n->mark += (uint32_t)sign;
    states_note(n);
}

static int64_t spot_charge(const struct placing *p, const struct spot *spot)
{
    return fit_charge(spot->node, spot->shape, spot_devices(p, spot), spot->count);
}

/* Does the team have room for the shape on N, by the type of the node? */
static bool type_has_room(const struct run *r, const struct node *n, const struct shape *shape)
{
    struct placing *p = r->p;
    struct fit f;
    return p->rooms.len == 0 ||
           (fit_node(n, shape, r->mask, p->trial, &f) &&
            types_room_for(&p->rooms, n->gpu_type, fit_charge(n, shape, p->trial, f.count)));
}

static void spot_take(const struct run *r, const struct spot *spot, int sign)
{
    if (r->p->rooms.len > 0)
        types_room_take(&r->p->rooms, spot->node->gpu_type, spot_charge(r->p, spot), sign);
    for (int v = 0; v < VIEWS; v++)
        if (r->mask & MASK(v))
            fit_take(spot->node, spot->shape, spot_devices(r->p, spot), spot->count, (enum view)v,
                     sign);
    if (r->job->spread)
        mark_node(spot->node, sign);
}

static void spot_add(struct run *r, uint32_t t, struct shape *shape, struct node *n,
                     const uint16_t *devices, uint32_t count)
{
    struct placing *p = r->p;
    struct spot spot = {
        .task = t, .shape = shape, .node = n, .count = count, .first = (uint32_t)p->devices.len};
    for (uint32_t k = 0; k < count; k++)
        vec_push(&p->devices, devices[k]);
    vec_push(&p->spots, spot);
    spot_take(r, &spot, 1);
}

/* Gives back the spots from FROM on. */
static void spots_drop(struct run *r, size_t from)
{
    while (r->p->spots.len > from) {
        struct spot spot = vec_pop(&r->p->spots);
        spot_take(r, &spot, -1);
        r->p->devices.len = spot.first;
    }
}

static struct index_question question_of(const struct run *r, const struct shape *shape)
{
    uint32_t whole = shape_whole(shape), rest = 0;
    if (whole > 0 && r->whole_left > whole)
        rest = r->whole_left - whole;
    /* more than the largest node has is all the same, and one question then */
    uint32_t largest = (uint32_t)(mix_current(r->s)->milli_max / WHOLE_MILLI);
    rest = rest < largest ? rest : largest;
    return (struct index_question){
        .key = {.shape = shape,
                .mask =
                    r->mask & ~(MASK_NO_TOPOLOGY | MASK_NO_WINDOW | MASK_NO_TYPES | MASK_MOVING |
                                MASK_LOOSE | MASK_NEAR | MASK_PLAIN | MASK_CHEAP),
                .spread = r->job->spread,
                .rest = r->job->spread ? 0 : rest},
        .shape = shape,
        .level = r->level,
        .group_level = r->group_level,
        .domain = r->domain,
        .group_domain = r->group_domain,
    };
}

struct best {
    struct node *node;
    struct index_score score;
    uint32_t rank;  /* of its type */
    int32_t charge; /* MASK_CHEAP: for the shape; else 0 */
};

/* N is the best so far if it is better than that, or as good and before it in node order. */
static void best_offer(const struct run *r, const struct index_question *q, struct node *n,
                       struct best *best)
{
    if (!node_usable(r, n, q->shape) || !type_has_room(r, n, q->shape))
        return;
    struct index_score score = score_on(r->s, &q->key, n);
    uint32_t rank = fit_type_rank(n->gpu_type, q->shape);
    const struct node *b = best->node;
    if (!index_places(score))
        return;
    int32_t charge =
        r->mask & MASK_CHEAP ? fit_charge(n, q->shape, r->p->trial, q->shape->device_count) : 0;
    if (b != NULL && charge != best->charge) {
        if (charge < best->charge)
            *best = (struct best){n, score, rank, charge};
        return;
    }
    if (b != NULL && index_better(best->score, best->rank, score, rank))
        return;
    if (b == NULL || index_better(score, rank, best->score, best->rank) || node_before(n, b))
        *best = (struct best){n, score, rank, charge};
}

static struct node *choose(const struct run *r, const struct shape *shape)
{
    struct sched *s = r->s;
    struct index_question q = question_of(r, shape);
    struct best best = {0};
    struct node *indexed;
    /* where the best of all is of a type without room, the best of those with room is looked for */
    if (s->node_list.len >= s->index_from && !(r->mask & MASK_CHEAP) &&
        index_find(s, &q, judge, mix_current(s)->generation, &indexed) &&
        (indexed == NULL || type_has_room(r, indexed, shape))) {
        if (s->windows.len == 0)
            return indexed;
        if (indexed != NULL)
            best_offer(r, &q, indexed, &best);
        for (size_t i = 0; i < s->windows.len; i++)
            best_offer(r, &q, s->windows.items[i], &best);
    } else {
        for (size_t i = 0; i < s->node_list.len; i++)
            best_offer(r, &q, s->node_list.items[i], &best);
    }
    return best.node;
}

static bool place_task(struct run *r, uint32_t t)
{
    struct placing *p = r->p;
    struct shape *shape = job_task(r->job, t)->shape;
    struct fit f;
    if (!r->job->spread && p->spots.len > 0) { /* stay where the gang is */
        const struct spot *last = &p->spots.items[p->spots.len - 1];
        if (last->shape == shape && node_usable(r, last->node, shape) &&
            type_has_room(r, last->node, shape) && devices_on(r, last->node, shape, &f)) {
            spot_add(r, t, shape, last->node, p->trial, f.count);
            return true;
        }
    }
    struct node *best = choose(r, shape);
    if (best == NULL || !devices_on(r, best, shape, &f))
        return false;
    spot_add(r, t, shape, best, p->trial, f.count);
    uint32_t whole = shape_whole(shape);
    r->whole_left -= whole < r->whole_left ? whole : r->whole_left;
    return true;
}

/* Is this one of the tasks that could be placed? */
static bool task_waits(const struct run *r, uint32_t t)
{
    if (r->w == NULL)
        return true;
    if (r->mask & MASK_MOVING)
        return r->w->tasks[t].phase == TASK_RUNNING && r->w->tasks[t].imagined != 0;
    return task_phase(r->w, t) == TASK_PENDING;
}

/* ---- choosing tasks ---------------------------------------------------------------------- */

/* May this task be one of those that are placed? Takes it off the quota if so. */
static bool quota_take(struct run *r, uint32_t group)
{
    if (r->p->quota.len > 0 && r->p->quota.items[group] > 0)
        r->p->quota.items[group]--;
    else if (r->free_left > 0)
        r->free_left--;
    else
        return false;
    return true;
}

static void quota_return(struct run *r, uint32_t group, const struct gang *gang)
{
    if (r->p->quota.len > 0 && r->p->quota.items[group] < gang->quota.items[group])
        r->p->quota.items[group]++;
    else
        r->free_left++;
}

static void run_start(struct run *r, const struct gang *gang)
{
    r->left = r->free_left = gang->total;
    vec_clear(&r->p->quota);
    for (size_t g = 0; g < gang->quota.len; g++) {
        vec_push(&r->p->quota, gang->quota.items[g]);
        r->free_left -= gang->quota.items[g];
    }
    uint32_t whole = shape_whole(job_task(r->job, 0)->shape);
    r->whole_left = gang->total * whole;
    if (r->job->uniform)
        return;
    r->whole_left = 0;
    for (uint32_t t = 0; t < r->job->task_count; t++)
        if (task_waits(r, t))
            r->whole_left += shape_whole(job_task(r->job, t)->shape);
}

/* Places the tasks of GROUP (-1: of all groups without a level of their own, or of all). */
static bool place_tasks(struct run *r, const struct gang *gang, const bool *skip_group,
                        int64_t group)
{
    const struct job_shape *job = r->job;
    const uint32_t *order = r->all ? job->pack : job->order;
    const struct shape *failed = NULL;
    int32_t failed_rank = INT32_MIN;
    for (uint32_t k = 0; k < job->task_count && r->left > 0; k++) {
        uint32_t t = order != NULL ? order[k] : k;
        const struct job_task *task = job_task(job, t);
        if (!task_waits(r, t))
            continue;
        if (group >= 0 ? task->group != group : skip_group != NULL && skip_group[task->group])
            continue;
        if (failed != NULL && task->rank < failed_rank)
            return false; /* nobody starts before one of higher rank */
        if (task->shape == failed || !quota_take(r, task->group))
            continue;
        if (place_task(r, t)) {
            r->left--;
            if (group >= 0 && r->p->quota.items[group] == 0 && r->free_left == 0)
                break;
            continue;
        }
        if (r->all || job->uniform)
            return false;
        quota_return(r, task->group, gang);
        failed = task->shape;
        failed_rank = task->rank;
    }
    return true;
}

/* ---- tasks that are not alike ------------------------------------------------------------ */

/* Where the best place of one task was the only one of another there may be a way still: tries the
 * tasks from the K-th on (in packing order), each on one node after the other. Equal tasks take
 * nodes in node order, from node FROM on, as it does not matter which of them is where. */
static bool search_places(struct run *r, uint32_t k, const struct shape *former, size_t from)
{
    const struct sched *s = r->s;
    const uint32_t *pack = r->job->pack;
    while (k < r->job->task_count && !task_waits(r, pack != NULL ? pack[k] : k))
        k++;
    if (k == r->job->task_count)
        return true;
    uint32_t t = pack != NULL ? pack[k] : k;
    struct shape *shape = job_task(r->job, t)->shape;
    for (size_t i = shape == former ? from : 0; i < s->node_list.len; i++) {
        struct node *n = s->node_list.items[i];
        struct fit f;
        if (!node_usable(r, n, shape) || !type_has_room(r, n, shape) ||
            !devices_on(r, n, shape, &f))
            continue;
        if (r->looks == 0)
            return false;
        r->looks--;
        spot_add(r, t, shape, n, r->p->trial, f.count);
        if (search_places(r, k + 1, shape, i))
            return true;
        spots_drop(r, r->p->spots.len - 1);
    }
    return false;
}

/* Has each of them a place, if it were alone? Where the cluster is full none has. */
static bool each_has_a_place(struct run *r)
{
    const struct shape *former = NULL;
    for (uint32_t k = 0; k < r->job->task_count; k++) {
        uint32_t t = r->job->pack != NULL ? r->job->pack[k] : k;
        const struct shape *shape = job_task(r->job, t)->shape;
        if (shape == former || !task_waits(r, t))
            continue;
        former = shape;
        if (choose(r, shape) == NULL)
            return false;
    }
    return true;
}

/* A gang that starts as a whole, whose tasks found no place one by one, the hardest first. */
static bool place_by_search(struct run *r)
{
    spots_drop(r, 0);
    if (!r->all || r->job->uniform || r->s->node_list.len > SEARCH_NODES_MAX ||
        r->job->task_count > SEARCH_TASKS_MAX || !each_has_a_place(r) ||
        !search_places(r, 0, NULL, 0))
        return false;
    r->left = 0;
    return true;
}

/* ---- topology ---------------------------------------------------------------------------- */

/* The domain in which tasks of W (of GROUP, -1 = any) are already; NO_DOMAIN if none. */
static uint32_t domain_present(const struct workload *w, int level, int64_t group)
{
    for (uint32_t t = 0; w != NULL && w->tasks != NULL && t < w->group->job->task_count; t++)
        if (w->tasks[t].node != NULL && w->tasks[t].phase != TASK_ENDING &&
            w->tasks[t].imagined == 0 && (group < 0 || job_task(w->group->job, t)->group == group))
            return w->tasks[t].node->domain[level];
    return NO_DOMAIN;
}

/* Does a domain lie in the one that the gang is bound to, as far as its first node says? */
static bool domain_within(const struct run *r, int level, const struct node *member)
{
    return r->level < 0 || r->level >= level || member->domain[r->level] == r->domain;
}

/* Has something left the domain? Where nothing has, who had no place there has none now. */
static bool is_near(const struct sched *s, uint32_t domain)
{
    return domain < s->near.len && s->near.items[domain] == s->wake_gen;
}

/* Calls TRY for each domain of LEVEL, in node order, until one holds the tasks. The tightest
 * would be better still where several do; node order is what is promised. */
static bool each_domain(struct run *r, int level, uint32_t present, int *slot_level,
                        uint32_t *slot_domain, bool (*try_one)(struct run *, void *), void *arg)
{
    uint32_t count, members;
    const uint32_t *domains = states_domains(r->s, level, &count);
    bool found = false;
    for (uint32_t i = 0; i < count && !found; i++) {
        struct node *const *first = states_domain(r->s, domains[i], &members);
        if ((present != NO_DOMAIN && domains[i] != present) || !domain_within(r, level, first[0]))
            continue;
        if ((r->mask & MASK_NEAR) && slot_level == &r->level && !is_near(r->s, domains[i]))
            continue;
        *slot_level = level;
        *slot_domain = domains[i];
        found = try_one(r, arg);
    }
    if (!found)
        *slot_level = -1;
    return found;
}

struct group_try {
    const struct gang *gang;
    uint32_t group;
};

static bool try_group(struct run *r, void *arg)
{
    const struct group_try *g = arg;
    size_t from = r->p->spots.len;
    struct run before = *r;
    uint32_t quota = r->p->quota.items[g->group];
    if (place_tasks(r, g->gang, NULL, g->group) && r->p->quota.items[g->group] == 0 &&
        r->p->spots.len > from)
        return true;
    spots_drop(r, from);
    before.group_domain = r->group_domain;
    *r = before;
    r->p->quota.items[g->group] = quota;
    return false;
}

/* Groups with a level of their own first, each in one domain; then everything else. */
static bool place_groups(struct run *r, const struct gang *gang)
{
    const struct job_shape *job = r->job;
    bool *own = mem_new(job->group_count, sizeof(*own));
    bool fits = true;
    for (uint32_t g = 0; g < job->group_count && fits; g++) {
        if (job->groups[g].required == NULL)
            continue;
        own[g] = true;
        bool needed = r->p->quota.items[g] > 0;
        if (!needed && r->free_left == 0)
            continue;
        int level = node_level(r->s, job->groups[g].required);
        struct group_try arg = {gang, g};
        fits = level >= 0 && each_domain(r, level, domain_present(r->w, level, g), &r->group_level,
                                         &r->group_domain, try_group, &arg);
        fits = fits || !needed; /* it may grow, or another group does */
        r->group_level = -1;
    }
    fits = fits && place_tasks(r, gang, own, -1);
    free(own);
    return fits && r->left == 0;
}

/* Have so many equal tasks room at all, where they may go? What the nodes hold each, in sum: far
 * less work than placing those that fit before the first that does not. */
static bool room_in_sum(const struct run *r, uint32_t total)
{
    const struct shape *shape = r->job->tasks[0].shape;
    uint32_t count = (uint32_t)r->s->node_list.len;
    struct node *const *nodes = r->s->node_list.items;
    if (!r->job->uniform || total < (r->level >= 0 ? 2 : SUM_FROM))
        return true;
    if (r->level >= 0)
        nodes = states_domain(r->s, r->domain, &count);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count && sum < total; i++)
        if (node_usable(r, nodes[i], shape))
            sum += fit_most(nodes[i], shape, r->mask);
    return sum >= total;
}

static bool try_all(struct run *r, void *arg)
{
    const struct gang *gang = arg;
    if (!room_in_sum(r, gang->total))
        return false;
    run_start(r, gang);
    bool grouped = false;
    for (uint32_t g = 0; g < r->job->group_count; g++)
        grouped = grouped || r->job->groups[g].required != NULL;
    grouped = grouped && !(r->mask & MASK_NO_TOPOLOGY);
    bool fits = grouped ? place_groups(r, gang) : place_tasks(r, gang, NULL, -1);
    if ((fits && r->left == 0) || (!grouped && place_by_search(r)))
        return true;
    spots_drop(r, 0);
    return false;
}

static bool place_run(struct run *r, struct gang *gang)
{
    const struct job_shape *job = r->job;
    if (r->mask & MASK_NO_TOPOLOGY)
        return try_all(r, gang);
    if (job->required != NULL) {
        int level = node_level(r->s, job->required);
        return level >= 0 && each_domain(r, level, domain_present(r->w, level, -1), &r->level,
                                         &r->domain, try_all, gang);
    }
    int level = job->preferred != NULL ? node_level(r->s, job->preferred) : -1;
    for (; level >= 0; level--)
        if (each_domain(r, level, domain_present(r->w, level, -1), &r->level, &r->domain, try_all,
                        gang))
            return true;
    return try_all(r, gang);
}

/* Does a task want parts of at least so many devices? */
static bool shares(const struct job_shape *job, uint32_t devices)
{
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++) {
        const struct shape *shape = job_task(job, t)->shape;
        if (shape->device_count >= devices && shape->device_milli < WHOLE_MILLI)
            return true;
    }
    return false;
}

/* Does a task ask for memory of a device? What that is charged depends on the device. */
static bool asks_memory(const struct job_shape *job)
{
    for (uint32_t t = 0; t < (job->uniform ? 1 : job->task_count); t++) {
        const struct shape *shape = job_task(job, t)->shape;
        if (shape->device_count > 0 && shape->device_milli == 0)
            return true;
    }
    return false;
}

/* The best place, or any. What one task of a gang takes may be the best for it, and leave another
 * with none: where room of a type is short, cheap places leave the most of it; where the fullest
 * devices are filled up first, more stay whole; where they are taken evenly, they hold the most of
 * such as want parts of several. */
static bool place_any(struct run *r, struct gang *gang)
{
    const unsigned asked = r->mask;
    if (place_run(r, gang))
        return true;
    if (gang->total == 1)
        return false;
    r->mask = asked | MASK_CHEAP;
    if (r->p->rooms.len > 0 && asks_memory(r->job) && place_run(r, gang))
        return true;
    r->mask = asked | MASK_PLAIN;
    if (!r->job->uniform && shares(r->job, 1) && place_run(r, gang))
        return true;
    r->mask = asked | MASK_PLAIN | MASK_LOOSE;
    return shares(r->job, 2) && place_run(r, gang);
}

static void mark_present(const struct workload *w, int sign)
{
    for (uint32_t t = 0; w != NULL && w->tasks != NULL && t < w->group->job->task_count; t++)
        if (w->tasks[t].node != NULL)
            mark_node(w->tasks[t].node, sign);
}

bool place_gang(struct sched *s, const struct job_shape *job, const struct workload *w,
                const struct gang *gang, unsigned mask)
{
    struct placing *p = s->placing;
    vec_clear(&p->spots);
    vec_clear(&p->devices);
    uint32_t pending = w == NULL ? job->task_count : w->count[TASK_PENDING];
    struct run r = {.s = s,
                    .p = p,
                    .job = job,
                    .w = w,
                    .mask = mask,
                    .all = gang->total == pending || (mask & MASK_MOVING),
                    .looks = SEARCH_LOOKS_MAX,
                    .level = -1,
                    .group_level = -1};
    vec_clear(&p->rooms);
    if (w != NULL && !(mask & MASK_NO_TYPES))
        types_rooms(w->group, mask, &p->rooms);
    bool spread = job->spread;
    if (spread)
        mark_present(w, 1);
    bool fits = place_any(&r, (struct gang *)gang);
    if (spread)
        mark_present(w, -1);
    for (size_t i = 0; i < p->spots.len; i++)
        spot_take(&r, &p->spots.items[i], -1);
    return fits;
}

struct amounts place_charge(const struct sched *s)
{
    const struct placing *p = s->placing;
    struct amounts sum = {0};
    for (size_t i = 0; i < p->spots.len; i++) {
        const struct spot *spot = &p->spots.items[i];
        sum.v[SCHED_GPU_MILLI] += spot_charge(p, spot);
        sum.v[SCHED_CPU_MILLI] += spot->shape->cpu;
        sum.v[SCHED_MEMORY_BYTES] += spot->shape->memory;
    }
    return sum;
}

bool place_types_open(struct sched *s, const struct group *g, unsigned mask)
{
    struct placing *p = s->placing;
    types_rooms(g, mask, &p->rooms);
    bool open = true;
    for (size_t i = 0; i < p->spots.len && p->rooms.len > 0; i++) {
        const struct spot *spot = &p->spots.items[i];
        int64_t charge = spot_charge(p, spot);
        open = open && types_room_for(&p->rooms, spot->node->gpu_type, charge);
        types_room_take(&p->rooms, spot->node->gpu_type, charge, 1);
    }
    return open;
}

void place_types_use(struct sched *s, const struct group *g, enum view view)
{
    const struct placing *p = s->placing;
    for (size_t i = 0; i < p->spots.len && g->team->typed_path; i++)
        types_use(g->team, view, p->spots.items[i].node->gpu_type,
                  spot_charge(p, &p->spots.items[i]), !g->preemptible, 1);
}

static bool charge_admitted(const struct sched *s, const struct workload *w, unsigned mask)
{
    struct amounts charge = place_charge(s);
    return gate_open(w->group, &charge, mask, NULL);
}

bool place_admitted(struct sched *s, const struct workload *w, const struct gang *gang,
                    unsigned mask)
{
    const struct job_shape *job = w->group->job;
    return charge_admitted(s, w, mask) ||
           (asks_memory(job) && place_gang(s, job, w, gang, mask | MASK_CHEAP) &&
            charge_admitted(s, w, mask));
}

bool place_within_gates(struct sched *s, const struct workload *w, const struct gang *gang,
                        unsigned mask)
{
    return place_gang(s, w->group->job, w, gang, mask) && place_admitted(s, w, gang, mask);
}

void place_take(struct sched *s, enum view view, int sign)
{
    const struct placing *p = s->placing;
    for (size_t i = 0; i < p->spots.len; i++) {
        const struct spot *spot = &p->spots.items[i];
        fit_take(spot->node, spot->shape, spot_devices(p, spot), spot->count, view, sign);
    }
}
