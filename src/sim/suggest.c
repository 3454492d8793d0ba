/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/suggest.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/shape.h"

/* A change of demand at an instant. */
struct step {
    int64_t at_ms, milli;
};

typedef VEC(struct step) step_list;

/* For so long so much was wanted. */
struct level {
    int64_t milli, ms;
};

typedef VEC(struct level) level_list;

static int compare_steps(const void *a, const void *b)
{
    const struct step *x = a, *y = b;
    return x->at_ms < y->at_ms ? -1 : x->at_ms > y->at_ms;
}

static int compare_levels(const void *a, const void *b)
{
    const struct level *x = a, *y = b;
    return x->milli < y->milli ? -1 : x->milli > y->milli;
}

/* TEAM 0 = all; FIRM = only what may not be evicted. Within the window alone. */
static void collect(const struct past *p, uint64_t team, bool firm, level_list *ret)
{
    step_list steps = {0};
    int64_t at = p->from_ms, milli = 0;

    for (size_t i = 0; i < p->jobs.len; i++) {
        const struct past_job *job = &p->jobs.items[i];
        int64_t end = job->submitted_ms + job->work_ms;
        if (job->left_out || (team && job->team != team) ||
            (firm && job->shape->model->preemptible) || job->gpu_milli == 0)
            continue;
        vec_push(&steps, ((struct step){job->submitted_ms, job->gpu_milli}));
        vec_push(&steps, ((struct step){end < p->until_ms ? end : p->until_ms, -job->gpu_milli}));
    }
    if (steps.len > 0)
        qsort(steps.items, steps.len, sizeof(*steps.items), compare_steps);
    for (size_t i = 0; i < steps.len; i++) {
        if (steps.items[i].at_ms > at)
            vec_push(ret, ((struct level){milli, steps.items[i].at_ms - at}));
        at = steps.items[i].at_ms > at ? steps.items[i].at_ms : at;
        milli += steps.items[i].milli;
    }
    if (p->until_ms > at)
        vec_push(ret, ((struct level){milli, p->until_ms - at}));
    if (ret->len > 0)
        qsort(ret->items, ret->len, sizeof(*ret->items), compare_levels);
    vec_done(&steps);
}

/* The smallest level that holds for PERCENT of the time. */
static int64_t percentile(const level_list *levels, int64_t window_ms, int64_t percent)
{
    __int128 want = (__int128)window_ms * percent;
    int64_t ms = 0;

    for (size_t i = 0; i < levels->len; i++) {
        ms += levels->items[i].ms;
        if ((__int128)ms * 100 >= want)
            return levels->items[i].milli;
    }
    return 0;
}

static int64_t peak(const level_list *levels)
{
    return levels->len > 0 ? levels->items[levels->len - 1].milli : 0;
}

/* How much of the demanded GPU time is within MILLI. */
static int64_t within(const level_list *levels, int64_t milli)
{
    __int128 all = 0, part = 0;

    for (size_t i = 0; i < levels->len; i++) {
        const struct level *l = &levels->items[i];
        all += (__int128)l->milli * l->ms;
        part += (__int128)(l->milli < milli ? l->milli : milli) * l->ms;
    }
    return all > 0 ? (int64_t)(part * 1000 / all) : 1000;
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t wait_p95(const struct past *p, uint64_t team)
{
    VEC(int64_t) waits = {0};
    int64_t wait = 0;

    for (size_t i = 0; i < p->jobs.len; i++)
        if (p->jobs.items[i].team == team && p->jobs.items[i].run_count > 0)
            vec_push(&waits, past_first_start(&p->jobs.items[i]) - p->jobs.items[i].submitted_ms);
    if (waits.len > 0) {
        qsort(waits.items, waits.len, sizeof(*waits.items), compare_i64);
        wait = waits.items[(waits.len * 95 + 99) / 100 - 1];
    }
    vec_done(&waits);
    return wait;
}

static int64_t whole_gpus(int64_t milli)
{
    return (milli + 999) / 1000;
}

/*
 * Shares TOTAL out in proportion to WANTED, nobody more than that; largest remainder. Adds to
 * GPUS.
 */
static void share_out(struct suggest *s, const int64_t *wanted, int64_t total)
{
    size_t n = s->teams.len;
    int64_t sum = 0, given = 0;

    for (size_t i = 0; i < n; i++)
        sum += wanted[i];
    if (sum == 0 || total <= 0)
        return;
    if (total > sum)
        total = sum;
    int64_t *rest = calloc(n, sizeof(*rest));
    if (rest == NULL)
        abort();
    for (size_t i = 0; i < n; i++) {
        __int128 product = (__int128)wanted[i] * total;
        s->teams.items[i].gpus += (int64_t)(product / sum);
        rest[i] = (int64_t)(product % sum);
        given += (int64_t)(product / sum);
    }
    while (given < total) {
        size_t best = 0;
        for (size_t i = 1; i < n; i++)
            if (rest[i] > rest[best] ||
                (rest[i] == rest[best] &&
                 s->teams.items[i].team->row.id < s->teams.items[best].team->row.id))
                best = i;
        s->teams.items[best].gpus++;
        rest[best] = -1;
        given++;
    }
    free(rest);
}

static void propose(struct suggest *s)
{
    size_t n = s->teams.len;
    int64_t *wanted = calloc(n + 1, sizeof(*wanted)), sum = 0;
    int64_t capacity = s->capacity_milli / 1000;

    if (wanted == NULL)
        abort();
    for (size_t i = 0; i < n; i++) {
        const struct suggest_team *t = &s->teams.items[i];
        wanted[i] = whole_gpus(t->p50_milli > t->firm_milli ? t->p50_milli : t->firm_milli);
        sum += wanted[i];
    }
    s->scaled = sum > capacity;
    share_out(s, wanted, capacity);
    for (size_t i = 0; i < n; i++) {
        struct suggest_team *t = &s->teams.items[i];
        capacity -= t->gpus;
        wanted[i] = whole_gpus(t->p95_milli) > t->gpus ? whole_gpus(t->p95_milli) - t->gpus : 0;
    }
    if (!s->scaled)
        share_out(s, wanted, capacity);
    free(wanted);
}

static void add_team(const struct past *p, const struct past_team *team, struct suggest *s)
{
    struct suggest_team t = {.team = team, .now_milli = team->row.guarantee[MODEL_GPU_MILLI]};
    level_list levels = {0}, firm = {0};

    for (size_t i = 0; i < p->jobs.len; i++)
        t.jobs += p->jobs.items[i].team == team->row.id && !p->jobs.items[i].left_out &&
                  p->jobs.items[i].gpu_milli > 0;
    if (t.jobs == 0 || team->deleted)
        return;
    collect(p, team->row.id, false, &levels);
    collect(p, team->row.id, true, &firm);
    t.p50_milli = percentile(&levels, s->window_ms, 50);
    t.p95_milli = percentile(&levels, s->window_ms, 95);
    t.p99_milli = percentile(&levels, s->window_ms, 99);
    t.peak_milli = peak(&levels);
    t.firm_milli = peak(&firm);
    t.now_permille = within(&levels, t.now_milli);
    t.wait_p95_ms = wait_p95(p, team->row.id);
    s->sum_p95_milli += t.p95_milli;
    vec_push(&s->teams, t);
    vec_done(&levels);
    vec_done(&firm);
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
    level_list all = {0};

    for (size_t i = 0; i < past->teams.len; i++)
        add_team(past, &past->teams.items[i], &s);
    if (s.teams.len > 0)
        qsort(s.teams.items, s.teams.len, sizeof(*s.teams.items), compare_teams);
    collect(past, 0, false, &all);
    s.p95_milli = percentile(&all, s.window_ms, 95);
    vec_done(&all);
    propose(&s);
    for (size_t i = 0; i < s.teams.len; i++) {
        level_list levels = {0};
        collect(past, s.teams.items[i].team->row.id, false, &levels);
        s.teams.items[i].then_permille = within(&levels, s.teams.items[i].gpus * 1000);
        s.gpus += s.teams.items[i].gpus;
        vec_done(&levels);
    }
    *ret = s;
}

void suggest_done(struct suggest *s)
{
    vec_done(&s->teams);
    *s = (struct suggest){0};
}
