/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/past.h"

#include <errno.h>

#include "base/qty.h"
#include "sched/team.h"

#define STEPS 64                 /* of a half-life */
#define STEP_FACTOR 4248701964LL /* 2^32 * 2^(-1/64) */
#define FORGOTTEN (64 * STEPS)   /* steps after which nothing is left of 2^63 */
#define BIAS_MIN (PAST_EIGHTHS / 4)
#define BIAS_MAX (PAST_EIGHTHS * 4)
#define MEMORY_SHIFT 30 /* bytes would overflow: memory counts in GiB */

typedef __int128 wide;

static int64_t step_ms(const struct sched *s)
{
    return s->config.past_half_life_ms / STEPS;
}

static int64_t used_of(const struct team *t, int r)
{
    int64_t used = t->used[VIEW_NOW].v[r];
    return r == SCHED_MEMORY_BYTES ? used >> MEMORY_SHIFT : used;
}

static void count(struct sched *s, int64_t ms)
{
    size_t it = 0;
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;)
        for (int r = 0; r < SCHED_RESOURCES; r++)
            t->past[r] = qty_add_sat(t->past[r], qty_mul_div(used_of(t, r), ms, 1));
}

static void decay(struct sched *s)
{
    size_t it = 0;
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;)
        for (int r = 0; r < SCHED_RESOURCES; r++)
            t->past[r] = (int64_t)(((wide)t->past[r] * STEP_FACTOR) >> 32);
}

/* ---- biases ------------------------------------------------------------------------------ */

static uint8_t bias_of(const struct team *t, int r, wide weights, wide pasts)
{
    if (pasts == 0 || t->weight == 0)
        return PAST_EIGHTHS;
    if (t->past[r] == 0)
        return BIAS_MAX;
    /* below 2^30 * 2^70 * 8: weights and children are bounded */
    wide eighths = (wide)PAST_EIGHTHS * t->weight * (pasts >> 8) / weights;
    wide had = t->past[r] >> 8 > 0 ? t->past[r] >> 8 : 1;
    eighths /= had;
    return (uint8_t)(eighths < BIAS_MIN ? BIAS_MIN : eighths > BIAS_MAX ? BIAS_MAX : eighths);
}

static bool bias_children(struct team *parent)
{
    bool changed = false;
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        wide weights = 0, pasts = 0;
        for (size_t i = 0; i < parent->children.len; i++) {
            weights += parent->children.items[i]->weight;
            pasts += parent->children.items[i]->past[r];
        }
        for (size_t i = 0; i < parent->children.len; i++) {
            struct team *c = parent->children.items[i];
            uint8_t bias = bias_of(c, r, weights, pasts);
            changed = changed || bias != c->bias[r];
            c->bias[r] = bias;
        }
    }
    for (size_t i = 0; i < parent->children.len; i++)
        changed = bias_children(parent->children.items[i]) || changed;
    return changed;
}

void past_rebias(struct sched *s)
{
    if (step_ms(s) == 0 || !bias_children(&s->root))
        return;
    s->shares_stale = s->quotas_stale = true;
    s->outside_epoch++;
    s->retry = true;
}

/* ---- time -------------------------------------------------------------------------------- */

void past_advance(struct sched *s)
{
    int64_t step = step_ms(s), at = s->past_at_ms;
    s->past_at_ms = s->now_ms;
    if (step == 0 || at == 0 || at >= s->now_ms) /* nothing is known of the time before */
        return;
    int64_t steps = s->now_ms / step - at / step;
    if (steps > FORGOTTEN) {
        at = (s->now_ms / step - FORGOTTEN) * step;
        steps = FORGOTTEN;
    }
    for (int64_t i = 0; i < steps; i++) {
        int64_t boundary = (at / step + 1) * step;
        count(s, boundary - at);
        decay(s);
        at = boundary;
    }
    count(s, s->now_ms - at);
    if (steps > 0)
        past_rebias(s);
}

int64_t past_next_ms(const struct sched *s)
{
    int64_t step = step_ms(s);
    bool waits = false;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        waits = waits || s->root.demand.v[r] > s->root.used[VIEW_NOW].v[r];
    return step == 0 || !waits ? INT64_MAX : (s->now_ms / step + 1) * step;
}

/* ---- kept by the caller ------------------------------------------------------------------ */

int sched_team_past_set(struct sched *s, uint64_t id, const int64_t *past, int64_t at_ms)
{
    struct team *t = team_find(s, id);
    if (t == NULL)
        return -ENOENT;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        if (past[r] < 0 || at_ms < 0 || s->now_ms > at_ms)
            return -EINVAL;
    for (int r = 0; r < SCHED_RESOURCES; r++)
        t->past[r] = past[r];
    s->past_at_ms = at_ms;
    past_rebias(s);
    return 0;
}
