/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/suggest.h"

#include <stdlib.h>
#include <string.h>

#include "sim/suggest_demand.h"

/* Indices of jobs, those of each team together. */
struct by_team {
    size_t *jobs;
    size_t *first; /* of each team of the past, and the end behind the last */
};

/* One division of GPUs among lines. */
struct pool {
    const struct past *past;
    const char *type;            /* NULL = all */
    struct suggest_line **lines; /* not owned */
    const struct past_team **teams;
    int64_t *floor;   /* in GPUs: at least so much */
    int64_t *ceiling; /* in GPUs: never more, or MODEL_UNLIMITED */
    size_t count;
    int64_t capacity; /* in GPUs */
    bool scaled;      /* it was too little for step 1 */
};

static void *must_calloc(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);

    if (p == NULL)
        abort();
    return p;
}

static int64_t whole_gpus(int64_t milli)
{
    return (milli + 999) / 1000;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- sharing ------------------------------------------------------------------------------ */

/* Cuts WANTED down to TOTAL in proportion, largest remainder first, ties to the earlier one. */
static void cut_down(int64_t *wanted, size_t count, int64_t total)
{
    int64_t sum = 0, given = 0;

    for (size_t i = 0; i < count; i++)
        sum += wanted[i];
    if (total < 0)
        total = 0;
    if (sum <= total)
        return;
    int64_t *rest = must_calloc(count, sizeof(*rest));
    for (size_t i = 0; i < count; i++) {
        __int128 product = (__int128)wanted[i] * total;
        wanted[i] = (int64_t)(product / sum);
        rest[i] = (int64_t)(product % sum);
        given += wanted[i];
    }
    for (; given < total; given++) {
        size_t best = 0;
        for (size_t i = 1; i < count; i++)
            if (rest[i] > rest[best])
                best = i;
        wanted[best]++;
        rest[best] = -1;
    }
    free(rest);
}

/* In GPUs: the limit of T, of the pool's type where it has one. */
static int64_t limit_of(const struct pool *p, const struct model_team *t)
{
    int64_t milli = p->type ? MODEL_UNLIMITED : t->limit[MODEL_GPU_MILLI];

    for (int32_t i = 0; p->type && i < t->type_count; i++)
        if (strcmp(t->types[i].type, p->type) == 0)
            milli = t->types[i].limit;
    return milli == MODEL_UNLIMITED ? MODEL_UNLIMITED : milli / 1000;
}

static bool is_below(const struct past *past, const struct past_team *t, uint64_t above)
{
    uint64_t id = t->row.parent_id;

    for (int depth = 0; id && depth < MODEL_TEAM_DEPTH_MAX; depth++) {
        const struct past_team *parent = past_team_by_id(past, id);
        if (id == above)
            return true;
        id = parent ? parent->row.parent_id : 0;
    }
    return false;
}

/* What is wanted beside what there is stays within the limit of team ABOVE. */
static void keep_below(struct pool *p, const struct past_team *above, int64_t *wanted)
{
    int64_t *members = must_calloc(p->count, sizeof(*members));
    size_t *index = must_calloc(p->count, sizeof(*index)), n = 0;
    int64_t room = limit_of(p, &above->row);

    for (size_t i = 0; i < p->count; i++) {
        if (!is_below(p->past, p->teams[i], above->row.id))
            continue;
        room -= p->lines[i]->gpus;
        members[n] = wanted[i];
        index[n++] = i;
    }
    cut_down(members, n, room);
    for (size_t k = 0; k < n; k++) {
        p->lines[index[k]]->cut |= members[k] < wanted[index[k]];
        wanted[index[k]] = members[k];
    }
    free(members);
    free(index);
}

/* Of teams, parents stand before children: from the end, the deepest come first. */
static void keep_limits(struct pool *p, int64_t *wanted)
{
    for (size_t i = 0; i < p->count; i++) {
        struct suggest_line *l = p->lines[i];
        if (p->ceiling[i] == MODEL_UNLIMITED || l->gpus + wanted[i] <= p->ceiling[i])
            continue;
        wanted[i] = max_i64(p->ceiling[i] - l->gpus, 0);
        l->cut = true;
    }
    for (size_t i = p->past->teams.len; i-- > 0;) {
        const struct past_team *t = &p->past->teams.items[i];
        if (!t->deleted && limit_of(p, &t->row) != MODEL_UNLIMITED)
            keep_below(p, t, wanted);
    }
}

static int64_t given_so_far(const struct pool *p)
{
    int64_t sum = 0;

    for (size_t i = 0; i < p->count; i++)
        sum += p->lines[i]->gpus;
    return sum;
}

static void give(struct pool *p, int64_t *wanted)
{
    keep_limits(p, wanted);
    cut_down(wanted, p->count, p->capacity - given_so_far(p));
    for (size_t i = 0; i < p->count; i++)
        p->lines[i]->gpus += wanted[i];
}

/* Steps 1 and 2 of suggest.h. */
static void divide(struct pool *p)
{
    int64_t *wanted = must_calloc(p->count, sizeof(*wanted)), sum = 0;

    for (size_t i = 0; i < p->count; i++) {
        const struct suggest_line *l = p->lines[i];
        bool hard = p->teams[i]->row.quota == MODEL_QUOTA_HARD;
        wanted[i] = whole_gpus(max_i64(hard ? l->p95_milli : l->p50_milli, l->firm_milli));
        wanted[i] = max_i64(wanted[i], p->floor[i]);
    }
    keep_limits(p, wanted);
    for (size_t i = 0; i < p->count; i++)
        sum += wanted[i];
    p->scaled = sum > p->capacity;
    give(p, wanted);
    for (size_t i = 0; i < p->count; i++)
        wanted[i] = max_i64(whole_gpus(p->lines[i]->p95_milli) - p->lines[i]->gpus, 0);
    if (!p->scaled)
        give(p, wanted);
    free(wanted);
}

/* ---- pools -------------------------------------------------------------------------------- */

static void pool_init(struct pool *p, const struct past *past, const char *type, size_t most)
{
    *p = (struct pool){.past = past,
                       .type = type,
                       .lines = must_calloc(most, sizeof(*p->lines)),
                       .teams = must_calloc(most, sizeof(*p->teams)),
                       .floor = must_calloc(most, sizeof(*p->floor)),
                       .ceiling = must_calloc(most, sizeof(*p->ceiling))};
}

static void pool_done(struct pool *p)
{
    free(p->lines);
    free(p->teams);
    free(p->floor);
    free(p->ceiling);
}

static void pool_add(struct pool *p, struct suggest_line *line, const struct past_team *team,
                     int64_t floor, int64_t ceiling)
{
    p->lines[p->count] = line;
    p->teams[p->count] = team;
    p->floor[p->count] = floor;
    p->ceiling[p->count++] = ceiling;
}

static int64_t capacity_of_type(const struct past *past, const char *type)
{
    int64_t milli = 0;

    for (size_t i = 0; i < past->nodes.len; i++) {
        const struct model_node *n = &past->nodes.items[i].row;
        if (n->gpu_type && strcmp(n->gpu_type, type) == 0)
            milli += past_node_capacity(n);
    }
    return milli;
}

/* In milli: what the limits of single types leave to a team of all there is; MODEL_UNLIMITED =
 * they take nothing away. */
static int64_t left_by_types(const struct past *past, const struct model_team *t)
{
    int64_t all = past_capacity(past), milli = all;

    if (t->quota == MODEL_QUOTA_HARD) /* they follow the guarantees */
        return MODEL_UNLIMITED;
    for (int32_t i = 0; i < t->type_count; i++) {
        int64_t there_is = capacity_of_type(past, t->types[i].type);
        milli -= max_i64(there_is - t->types[i].limit, 0);
    }
    return milli < all ? milli : MODEL_UNLIMITED;
}

static int64_t ceiling_of(const struct past *past, const struct suggest_line *l,
                          const struct past_team *team)
{
    int64_t milli = l->limit_milli;

    if (l->type == NULL)
        milli = min_i64(milli, left_by_types(past, &team->row));
    return milli == MODEL_UNLIMITED ? milli : milli / 1000;
}

static void divide_type(const struct past *past, struct suggest *s, const char *type)
{
    struct pool p;

    pool_init(&p, past, type, s->teams.len);
    p.capacity = capacity_of_type(past, type) / 1000;
    for (size_t i = 0; i < s->teams.len; i++) {
        struct suggest_team *t = &s->teams.items[i];
        for (size_t k = 0; k < t->type_count; k++)
            if (strcmp(t->types[k].type, type) == 0)
                pool_add(&p, &t->types[k], t->team, 0, ceiling_of(past, &t->types[k], t->team));
    }
    divide(&p);
    pool_done(&p);
}

/* Each type that a team states once. */
static void divide_types(const struct past *past, struct suggest *s)
{
    for (size_t i = 0; i < s->teams.len; i++)
        for (size_t k = 0; k < s->teams.items[i].type_count; k++) {
            const char *type = s->teams.items[i].types[k].type;
            bool done = false;
            for (size_t a = 0; !done && a < i; a++)
                for (size_t b = 0; !done && b < s->teams.items[a].type_count; b++)
                    done = strcmp(s->teams.items[a].types[b].type, type) == 0;
            if (!done)
                divide_type(past, s, type);
        }
}

static int64_t sum_of_types(const struct suggest_team *t)
{
    int64_t sum = 0;

    for (size_t k = 0; k < t->type_count; k++)
        sum += t->types[k].gpus;
    return sum;
}

/* No more of single types than of all. */
static void fit_types(struct suggest_team *t)
{
    int64_t *gpus = must_calloc(t->type_count, sizeof(*gpus));

    for (size_t k = 0; k < t->type_count; k++)
        gpus[k] = t->types[k].gpus;
    cut_down(gpus, t->type_count, t->all.gpus);
    for (size_t k = 0; k < t->type_count; k++) {
        t->types[k].cut |= gpus[k] < t->types[k].gpus;
        t->types[k].gpus = gpus[k];
    }
    free(gpus);
}

static void propose(const struct past *past, struct suggest *s)
{
    struct pool p;

    divide_types(past, s);
    pool_init(&p, past, NULL, s->teams.len);
    p.capacity = s->capacity_milli / 1000;
    for (size_t i = 0; i < s->teams.len; i++) {
        struct suggest_team *t = &s->teams.items[i];
        pool_add(&p, &t->all, t->team, sum_of_types(t), ceiling_of(past, &t->all, t->team));
    }
    divide(&p);
    s->scaled = p.scaled;
    for (size_t i = 0; i < s->teams.len; i++)
        fit_types(&s->teams.items[i]);
    pool_done(&p);
}

/* ---- evidence ----------------------------------------------------------------------------- */

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t index_of(const struct past *p, uint64_t team)
{
    return (size_t)(past_team_by_id(p, team) - p->teams.items);
}

static void sort_by_team(const struct past *p, struct by_team *ret)
{
    size_t *next = must_calloc(p->teams.len, sizeof(*next));

    ret->jobs = must_calloc(p->jobs.len, sizeof(*ret->jobs));
    ret->first = must_calloc(p->teams.len + 1, sizeof(*ret->first));
    for (size_t i = 0; i < p->jobs.len; i++)
        ret->first[index_of(p, p->jobs.items[i].team) + 1]++;
    for (size_t i = 0; i < p->teams.len; i++)
        ret->first[i + 1] += ret->first[i];
    for (size_t i = 0; i < p->jobs.len; i++) {
        size_t t = index_of(p, p->jobs.items[i].team);
        ret->jobs[ret->first[t] + next[t]++] = i;
    }
    free(next);
}

static struct demand_filter jobs_of(const struct past *p, const struct by_team *by,
                                    const struct past_team *team)
{
    size_t t = (size_t)(team - p->teams.items);

    return (struct demand_filter){.jobs = by->jobs + by->first[t],
                                  .count = by->first[t + 1] - by->first[t]};
}

static int64_t wait_p95(const struct past *p, const struct demand_filter *filter)
{
    VEC(int64_t) waits = {0};
    int64_t wait = 0;

    for (size_t i = 0; i < filter->count; i++) {
        const struct past_job *job = &p->jobs.items[filter->jobs[i]];
        if (job->run_count > 0)
            vec_push(&waits, past_first_start(job) - job->submitted_ms);
    }
    if (waits.len > 0) {
        qsort(waits.items, waits.len, sizeof(*waits.items), compare_i64);
        wait = waits.items[(waits.len * 95 + 99) / 100 - 1];
    }
    vec_done(&waits);
    return wait;
}

/* Demand of a line; its shares within NOW, or within what is proposed. */
static void look_at(const struct past *p, struct demand_filter filter, struct suggest_line *l,
                    bool proposed)
{
    struct demand all = {0}, firm = {0};

    filter.type = l->type;
    demand_collect(p, &filter, &all);
    filter.firm = true;
    demand_collect(p, &filter, &firm);
    l->p50_milli = demand_percentile(&all, 50);
    l->p95_milli = demand_percentile(&all, 95);
    l->p99_milli = demand_percentile(&all, 99);
    l->peak_milli = demand_peak(&all);
    l->firm_milli = demand_peak(&firm);
    if (proposed)
        l->then_permille = demand_within(&all, l->gpus * 1000);
    else
        l->now_permille = demand_within(&all, l->now_milli);
    demand_done(&all);
    demand_done(&firm);
}

static void add_types(const struct past *p, const struct demand_filter *filter,
                      struct suggest_team *t)
{
    const struct model_team *row = &t->team->row;
    bool hard = row->quota == MODEL_QUOTA_HARD;

    t->types = must_calloc((size_t)row->type_count, sizeof(*t->types));
    for (int32_t i = 0; i < row->type_count; i++) {
        struct suggest_line l = {.type = row->types[i].type,
                                 .now_milli = row->types[i].guarantee,
                                 .limit_milli = hard ? MODEL_UNLIMITED : row->types[i].limit};
        if (l.now_milli == MODEL_UNLIMITED) /* a limit alone */
            continue;
        look_at(p, *filter, &l, false);
        t->types[t->type_count++] = l;
    }
}

static void add_team(const struct past *p, const struct by_team *by, const struct past_team *team,
                     struct suggest *s)
{
    const struct demand_filter filter = jobs_of(p, by, team);
    bool hard = team->row.quota == MODEL_QUOTA_HARD;
    struct suggest_team t = {
        .team = team,
        .jobs = demand_jobs(p, &filter),
        .all = {.now_milli = team->row.guarantee[MODEL_GPU_MILLI],
                .limit_milli = hard ? MODEL_UNLIMITED : team->row.limit[MODEL_GPU_MILLI]}};

    if (t.jobs == 0 || team->deleted)
        return;
    look_at(p, filter, &t.all, false);
    add_types(p, &filter, &t);
    t.wait_p95_ms = wait_p95(p, &filter);
    s->sum_p95_milli += t.all.p95_milli;
    vec_push(&s->teams, t);
}

static int64_t proposed_below(const struct past *p, const struct suggest *s, uint64_t team)
{
    int64_t gpus = 0;

    for (size_t i = 0; i < s->teams.len; i++)
        if (is_below(p, s->teams.items[i].team, team))
            gpus += s->teams.items[i].all.gpus;
    return gpus;
}

static bool is_listed(const struct suggest *s, const struct past_team *team)
{
    for (size_t i = 0; i < s->teams.len; i++)
        if (s->teams.items[i].team == team)
            return true;
    return false;
}

static void add_others(const struct past *p, struct suggest *s)
{
    for (size_t i = 0; i < p->teams.len; i++) {
        const struct past_team *t = &p->teams.items[i];
        struct suggest_other o = {t, t->row.guarantee[MODEL_GPU_MILLI], 0};

        if (t->deleted || o.now_milli == 0 || is_listed(s, t))
            continue;
        o.gpus = proposed_below(p, s, t->row.id);
        vec_push(&s->others, o);
    }
}

/* Ties go to the older. */
static int compare_ages(const void *a, const void *b)
{
    const struct suggest_team *x = a, *y = b;
    return x->team->row.id < y->team->row.id ? -1 : x->team->row.id > y->team->row.id;
}

static int compare_teams(const void *a, const void *b)
{
    const struct suggest_team *x = a, *y = b;
    return strcmp(x->team->row.name, y->team->row.name);
}

void suggest_make(const struct past *past, struct suggest *ret)
{
    struct suggest s = {.capacity_milli = past_capacity(past),
                        .window_ms = past->until_ms - past->from_ms};
    struct demand all = {0};
    struct by_team by;

    sort_by_team(past, &by);
    for (size_t i = 0; i < past->teams.len; i++)
        add_team(past, &by, &past->teams.items[i], &s);
    demand_collect(past, &(struct demand_filter){0}, &all);
    s.p95_milli = demand_percentile(&all, 95);
    demand_done(&all);
    if (s.teams.len > 0)
        qsort(s.teams.items, s.teams.len, sizeof(*s.teams.items), compare_ages);
    propose(past, &s);
    add_others(past, &s);
    for (size_t i = 0; i < s.teams.len; i++) {
        struct suggest_team *t = &s.teams.items[i];
        struct demand_filter filter = jobs_of(past, &by, t->team);
        look_at(past, filter, &t->all, true);
        for (size_t k = 0; k < t->type_count; k++)
            look_at(past, filter, &t->types[k], true);
        s.gpus += t->all.gpus;
    }
    free(by.jobs);
    free(by.first);
    if (s.teams.len > 0)
        qsort(s.teams.items, s.teams.len, sizeof(*s.teams.items), compare_teams);
    *ret = s;
}

void suggest_done(struct suggest *s)
{
    for (size_t i = 0; i < s->teams.len; i++)
        free(s->teams.items[i].types);
    vec_done(&s->teams);
    vec_done(&s->others);
    *s = (struct suggest){0};
}
