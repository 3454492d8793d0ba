/* SPDX-License-Identifier: Apache-2.0 */
/* What came of it, for each group of jobs; how far two outcomes are apart. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/drive.h"
#include "sim/whatif_internal.h"

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

static void add_group(const struct past *p, const struct whatif_fate *fates,
                      enum whatif_group_kind kind, size_t which, const char *name,
                      struct whatif_outcome *o)
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
        g.evictions += fates[i].evictions;
        g.retries += fates[i].retries;
        g.losses += fates[i].losses;
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

void whatif_summarise(const struct past *p, const struct whatif_fate *fates,
                      struct whatif_outcome *o)
{
    VEC(const struct past_team *) teams = {0};

    o->window_ms = p->until_ms - p->from_ms;
    o->start_ms = calloc(p->jobs.len + 1, sizeof(*o->start_ms));
    if (o->start_ms == NULL)
        abort();
    for (size_t i = 0; i < p->jobs.len; i++) {
        o->start_ms[i] = fates[i].start_ms;
        o->evictions += fates[i].evictions;
        o->retries += fates[i].retries;
        o->losses += fates[i].losses;
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
    struct whatif_outcome o = {.capacity_milli = past_capacity(past),
                               .capacity_milli_ms = (int64_t)past_gpu_time(past)};
    struct whatif_fate *fates = calloc(past->jobs.len + 1, sizeof(*fates));

    if (fates == NULL)
        abort();
    for (size_t i = 0; i < past->jobs.len; i++) {
        const struct past_job *job = &past->jobs.items[i];
        fates[i].start_ms = job->run_count > 0 ? past_first_start(job) : DRIVE_NEVER;
        fates[i].retries = job->retries;
        fates[i].losses = job->losses;
        fates[i].evictions = job->restarts - job->retries - job->losses;
        for (size_t k = 0; k < job->run_count; k++) {
            const struct past_run *run = &job->runs[k];
            fates[i].held_milli_ms += run->gpu_milli * (run->end_ms - run->start_ms);
            o.end_ms = run->end_ms > o.end_ms ? run->end_ms : o.end_ms;
        }
    }
    whatif_summarise(past, fates, &o);
    o.window_milli_ms = o.held_milli_ms; /* nothing is recorded outside of it */
    free(fates);
    *ret_outcome = o;
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
