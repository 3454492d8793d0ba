/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/shape.h"
#include "sim/drive.h"

#define CHECKPOINT_MS (10 * 60 * 1000)
#define STOP_MS 5000

/* What became of one job. */
struct fate {
    int64_t start_ms; /* DRIVE_NEVER = not */
    bool refused;
    uint32_t restarts;
    int64_t held_milli_ms;
};

/* ---- figures ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int64_t most_milli;
} sizes[] = {{"no GPU", 0},
             {"below 1 GPU", 999},
             {"1 GPU", 1000},
             {"2-4 GPUs", 4000},
             {"5-8 GPUs", 8000},
             {"9-32 GPUs", 32000},
             {"above 32 GPUs", INT64_MAX}};

static size_t size_of(const struct past_job *job)
{
    size_t i = 0;

    while (job->gpu_milli > sizes[i].most_milli)
        i++;
    return i;
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t percentile(const int64_t *sorted, size_t count, size_t percent)
{
    return count == 0 ? 0 : sorted[(count * percent + 99) / 100 - 1];
}

static bool belongs(const struct past *p, const struct past_job *job, enum whatif_group_kind kind,
                    size_t which)
{
    if (job->left_out)
        return false;
    if (kind == WHATIF_ALL)
        return true;
    return kind == WHATIF_SIZE ? size_of(job) == which : job->team == p->teams.items[which].row.id;
}

static void add_group(const struct past *p, const struct fate *fates, enum whatif_group_kind kind,
                      size_t which, const char *name, struct whatif_outcome *o)
{
    struct whatif_group g = {.kind = kind, .name = name};
    VEC(int64_t) waits = {0};
    __int128 sum = 0;

    for (size_t i = 0; i < p->jobs.len; i++) {
        const struct past_job *job = &p->jobs.items[i];
        if (!belongs(p, job, kind, which))
            continue;
        g.jobs++;
        g.held_milli_ms += fates[i].held_milli_ms;
        g.restarts += fates[i].restarts;
        if (fates[i].start_ms == DRIVE_NEVER) {
            *(fates[i].refused ? &g.refused : &g.waiting) += 1;
            continue;
        }
        vec_push(&waits, fates[i].start_ms - job->submitted_ms);
        sum += fates[i].start_ms - job->submitted_ms;
    }
    if (waits.len > 0) {
        qsort(waits.items, waits.len, sizeof(*waits.items), compare_i64);
        g.mean_ms = (int64_t)(sum / (int64_t)waits.len);
    }
    g.p50_ms = percentile(waits.items, waits.len, 50);
    g.p95_ms = percentile(waits.items, waits.len, 95);
    g.p99_ms = percentile(waits.items, waits.len, 99);
    vec_done(&waits);
    if (g.jobs > 0)
        vec_push(&o->groups, g);
}

static int compare_teams(const void *a, const void *b)
{
    const struct past_team *x = *(const struct past_team *const *)a;
    const struct past_team *y = *(const struct past_team *const *)b;
    int r = strcmp(x->row.name, y->row.name);
    return r != 0 ? r : x->row.id < y->row.id ? -1 : 1;
}

static void summarise(const struct past *p, const struct fate *fates, struct whatif_outcome *o)
{
    VEC(const struct past_team *) teams = {0};

    o->window_ms = p->until_ms - p->from_ms;
    o->start_ms = calloc(p->jobs.len + 1, sizeof(*o->start_ms));
    if (o->start_ms == NULL)
        abort();
    for (size_t i = 0; i < p->jobs.len; i++) {
        o->start_ms[i] = fates[i].start_ms;
        o->restarts += fates[i].restarts;
        o->held_milli_ms += fates[i].held_milli_ms;
    }
    for (size_t i = 0; i < p->teams.len; i++)
        vec_push(&teams, &p->teams.items[i]);
    if (teams.len > 0)
        qsort(teams.items, teams.len, sizeof(*teams.items), compare_teams);
    add_group(p, fates, WHATIF_ALL, 0, "all", o);
    for (size_t i = 0; i < teams.len; i++)
        add_group(p, fates, WHATIF_TEAM, (size_t)(teams.items[i] - p->teams.items),
                  teams.items[i]->row.name, o);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        add_group(p, fates, WHATIF_SIZE, i, sizes[i].name, o);
    vec_done(&teams);
}

void whatif_outcome_done(struct whatif_outcome *o)
{
    free(o->start_ms);
    vec_done(&o->groups);
    *o = (struct whatif_outcome){0};
}

/* ---- the record --------------------------------------------------------------------------- */

void whatif_recorded(const struct past *past, struct whatif_outcome *ret_outcome)
{
    struct whatif_outcome o = {.capacity_milli = past_capacity(past->nodes.items, past->nodes.len)};
    struct fate *fates = calloc(past->jobs.len + 1, sizeof(*fates));

    if (fates == NULL)
        abort();
    for (size_t i = 0; i < past->jobs.len; i++) {
        const struct past_job *job = &past->jobs.items[i];
        fates[i].start_ms = job->run_count > 0 ? past_first_start(job) : DRIVE_NEVER;
        for (size_t k = 0; k < job->run_count; k++) {
            const struct past_run *run = &job->runs[k];
            fates[i].held_milli_ms += run->gpu_milli * (run->end_ms - run->start_ms);
            if ((uint32_t)run->attempt > fates[i].restarts)
                fates[i].restarts = (uint32_t)run->attempt;
            o.end_ms = run->end_ms > o.end_ms ? run->end_ms : o.end_ms;
        }
    }
    summarise(past, fates, &o);
    o.window_milli_ms = o.held_milli_ms; /* nothing is recorded outside of it */
    free(fates);
    *ret_outcome = o;
}

/* ---- a replay ----------------------------------------------------------------------------- */

void whatif_setup_past(struct past *past, struct whatif_setup *ret_setup)
{
    struct model_team *teams =
        arena_new_array(&past->arena, struct model_team, past->teams.len + 1);

    for (size_t i = 0; i < past->teams.len; i++)
        teams[i] = past->teams.items[i].row;
    *ret_setup = (struct whatif_setup){.teams = teams,
                                       .nodes = past->nodes.items,
                                       .node_count = past->nodes.len,
                                       .checkpoint_ms = CHECKPOINT_MS,
                                       .stop_ms = STOP_MS};
    sched_config_default(&ret_setup->config);
}

struct replay {
    const struct past *past;
    const struct whatif_setup *setup;
    struct sched *s;
    struct arena arena;
    struct err *err;
    int64_t used_milli, since_ms, window_milli_ms;
};

/*
 * As the server does: a team above others is assured of at least what is promised below it, and
 * with GPUs come CPU and memory where nothing is said of those.
 */
static void assure(const struct model_team *t, const int64_t *below, int64_t *ret_assured)
{
    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
        int64_t most = t->guarantee[r] > below[r] ? t->guarantee[r] : below[r];
        ret_assured[r] = most < t->limit[r] ? most : t->limit[r];
        if (r != MODEL_GPU_MILLI && most == 0 && ret_assured[MODEL_GPU_MILLI] > 0 &&
            t->limit[r] == MODEL_UNLIMITED)
            ret_assured[r] = MODEL_UNLIMITED;
    }
}

static size_t team_index(const struct past *p, uint64_t id)
{
    return (size_t)(past_team_by_id(p, id) - p->teams.items);
}

static int add_team(struct replay *y, const struct model_team *t, const int64_t *assured)
{
    struct sched_type_quota *types =
        arena_new_array(&y->arena, struct sched_type_quota, (size_t)t->type_count + 1);
    struct sched_team s = {.id = t->id,
                           .parent = t->parent_id,
                           .age = t->id,
                           .weight = t->weight,
                           .priority = t->priority,
                           .types = types,
                           .type_count = (uint32_t)t->type_count};

    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++) {
        s.guarantee[r] = assured[r];
        s.limit[r] = t->limit[r];
    }
    if (y->setup->hard_quota)
        s.limit[SCHED_GPU_MILLI] = assured[MODEL_GPU_MILLI];
    for (int32_t i = 0; i < t->type_count; i++)
        types[i] =
            (struct sched_type_quota){t->types[i].type, t->types[i].guarantee, t->types[i].limit};
    int e = sched_team_set(y->s, &s);
    return e == 0 ? 0
                  : err_set(y->err, e, ERR_INVALID, NULL, NULL, "team '%s' cannot be set: %s",
                            t->name, strerror(-e));
}

/* Parents stand before their children. */
static int add_teams(struct replay *y)
{
    size_t n = y->past->teams.len;
    int64_t(*below)[MODEL_RESOURCE_COUNT] = calloc(n + 1, sizeof(*below));
    int64_t(*assured)[MODEL_RESOURCE_COUNT] = calloc(n + 1, sizeof(*assured));
    int e = 0;

    if (below == NULL || assured == NULL)
        abort();
    for (size_t i = n; i-- > 0;) {
        const struct model_team *t = &y->setup->teams[i];
        assure(t, below[i], assured[i]);
        for (int r = 0; t->parent_id && r < MODEL_RESOURCE_COUNT; r++) {
            int64_t *sum = &below[team_index(y->past, t->parent_id)][r];
            if (assured[i][r] != MODEL_UNLIMITED && !y->past->teams.items[i].deleted)
                *sum += assured[i][r];
        }
    }
    for (size_t i = 0; e == 0 && i < n; i++)
        e = add_team(y, &y->setup->teams[i], assured[i]);
    free(below);
    free(assured);
    return e;
}

static int add_node(struct replay *y, const struct model_node *n)
{
    struct sched_device *devices =
        arena_new_array(&y->arena, struct sched_device, (size_t)n->device_count + 1);
    struct sched_label *labels =
        arena_new_array(&y->arena, struct sched_label, (size_t)n->label_count + 1);

    for (int32_t i = 0; i < n->device_count; i++)
        devices[i] = (struct sched_device){n->devices[i].mig_profile, n->devices[i].memory_bytes,
                                           n->devices[i].mig_milli};
    for (int32_t i = 0; i < n->label_count; i++)
        labels[i] = (struct sched_label){n->labels[i].key, n->labels[i].value};
    int e = sched_node_set(y->s, &(struct sched_node){.id = n->id,
                                                      .order = n->id,
                                                      .gpu_type = n->gpu_type,
                                                      .devices = devices,
                                                      .device_count = (uint32_t)n->device_count,
                                                      .cpu_milli = n->cpu_milli,
                                                      .memory_bytes = n->memory_bytes,
                                                      .labels = labels,
                                                      .label_count = (uint32_t)n->label_count,
                                                      .up = true,
                                                      .schedulable = true});
    return e == 0 ? 0
                  : err_set(y->err, e, ERR_INVALID, NULL, NULL, "node '%s' cannot be set: %s",
                            n->name, strerror(-e));
}

/* Adds what was held until NOW. */
static void meter(struct replay *y, int64_t now_ms)
{
    int64_t until = now_ms < y->past->until_ms ? now_ms : y->past->until_ms;

    if (until > y->since_ms) {
        y->window_milli_ms += y->used_milli * (until - y->since_ms);
        y->since_ms = until;
    }
}

static void on_event(void *arg, const struct drive_event *event)
{
    struct replay *y = arg;

    meter(y, event->now_ms);
    if (event->kind == DRIVE_STARTED)
        y->used_milli += event->gpu_milli;
    else if (event->kind == DRIVE_STOPPED || event->kind == DRIVE_TASK_ENDED)
        y->used_milli -= event->gpu_milli;
}

static int submit_all(struct replay *y, struct drive *d, struct drive_job *jobs, size_t *ret_count)
{
    size_t n = 0;
    int e = 0;

    for (size_t i = 0; e == 0 && i < y->past->jobs.len; i++) {
        const struct past_job *job = &y->past->jobs.items[i];
        const struct model_shape *m = job->shape->model;
        struct drive_job *j = &jobs[n];
        if (job->left_out)
            continue;
        core_shape_sched(job->shape, job->id, job->team, false, &j->workload);
        j->submit_ms = job->submitted_ms;
        j->run_ms = job->work_ms;
        j->checkpoint_ms = m->handling == MODEL_RESTART ? 0 : y->setup->checkpoint_ms;
        j->grace_ms = m->grace_ms < y->setup->stop_ms ? m->grace_ms : y->setup->stop_ms;
        e = drive_submit(d, j, y->err);
        n++;
    }
    *ret_count = n;
    return e;
}

static void take_fates(const struct replay *y, const struct drive *d, struct whatif_outcome *o)
{
    const struct past *p = y->past;
    struct fate *fates = calloc(p->jobs.len + 1, sizeof(*fates));
    size_t n = 0;

    if (fates == NULL)
        abort();
    for (size_t i = 0; i < p->jobs.len; i++) {
        struct drive_result r;
        fates[i].start_ms = DRIVE_NEVER;
        if (p->jobs.items[i].left_out)
            continue;
        drive_result(d, n++, &r);
        fates[i] = (struct fate){r.first_start_ms, r.end == DRIVE_END_REFUSED, r.evictions,
                                 r.held_milli_ms};
        o->lost_milli_ms += r.lost_milli_ms;
        if (r.end_ms != DRIVE_NEVER && r.end_ms > o->end_ms)
            o->end_ms = r.end_ms;
    }
    summarise(p, fates, o);
    free(fates);
}

static int run(struct replay *y, struct whatif_outcome *o)
{
    struct drive_observer observer = {on_event, y};
    struct drive_job *jobs = calloc(y->past->jobs.len + 1, sizeof(*jobs));
    struct drive *d = drive_create(y->s, &observer);
    size_t count;
    int e;

    if (jobs == NULL)
        abort();
    e = submit_all(y, d, jobs, &count);
    if (e == 0)
        e = drive_run(d, INT64_MAX, y->err);
    if (e == 0) {
        meter(y, y->past->until_ms);
        o->window_milli_ms = y->window_milli_ms;
        take_fates(y, d, o);
    }
    drive_destroy(d);
    free(jobs);
    return e;
}

int whatif_replay(const struct past *past, const struct whatif_setup *setup,
                  struct whatif_outcome *ret_outcome, struct err *err)
{
    struct replay y = {.past = past,
                       .setup = setup,
                       .s = sched_create(&setup->config),
                       .err = err,
                       .since_ms = past->from_ms};
    struct whatif_outcome o = {.capacity_milli = past_capacity(setup->nodes, setup->node_count)};
    int e;

    if (y.s == NULL)
        abort();
    e = add_teams(&y);
    for (size_t i = 0; e == 0 && i < setup->node_count; i++)
        e = add_node(&y, &setup->nodes[i]);
    if (e == 0)
        e = run(&y, &o);
    sched_destroy(y.s);
    arena_done(&y.arena);
    if (e == 0)
        *ret_outcome = o;
    return e;
}

/* ---- how far apart ------------------------------------------------------------------------ */

struct starts {
    int64_t first, second;
    uint64_t id;
};

static int compare_starts(const void *a, const void *b)
{
    const struct starts *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

void whatif_compare(const struct past *past, const struct whatif_outcome *a,
                    const struct whatif_outcome *b, struct whatif_difference *ret)
{
    struct whatif_difference d = {.order_milli = 1000};
    VEC(struct starts) both = {0};
    VEC(int64_t) apart = {0};
    uint64_t kept = 0;

    for (size_t i = 0; i < past->jobs.len; i++) {
        struct starts s = {a->start_ms[i], b->start_ms[i], past->jobs.items[i].id};
        if (s.first == DRIVE_NEVER || s.second == DRIVE_NEVER)
            continue;
        vec_push(&both, s);
        vec_push(&apart, s.first > s.second ? s.first - s.second : s.second - s.first);
    }
    d.jobs = both.len;
    if (both.len > 0) {
        qsort(both.items, both.len, sizeof(*both.items), compare_starts);
        qsort(apart.items, apart.len, sizeof(*apart.items), compare_i64);
        d.p50_ms = percentile(apart.items, apart.len, 50);
        d.p95_ms = percentile(apart.items, apart.len, 95);
        d.worst_ms = apart.items[apart.len - 1];
    }
    for (size_t i = 1; i < both.len; i++)
        kept += both.items[i - 1].second <= both.items[i].second;
    if (both.len > 1)
        d.order_milli = kept * 1000 / (both.len - 1);
    vec_done(&both);
    vec_done(&apart);
    *ret = d;
}
