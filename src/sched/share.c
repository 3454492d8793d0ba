/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/qty.h"
#include "sched/node.h"

typedef __int128 wide;

static const int64_t grains[SCHED_RESOURCES] = {1000, 1000, 1LL << 30};

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void part_give(struct share_part *p, int64_t amount)
{
    p->given += amount;
    p->need -= amount;
}

static bool part_open(const struct share_part *p)
{
    return p->need > 0 && p->weight > 0;
}

/* Gives their need to all whose part covers it; returns what that took. */
static int64_t give_covered(struct share_part *parts, size_t count, int64_t amount, wide weights)
{
    int64_t taken = 0;
    for (size_t i = 0; i < count; i++) {
        struct share_part *p = &parts[i];
        if (part_open(p) && (wide)amount * p->weight >= (wide)p->need * weights) {
            taken += p->need;
            part_give(p, p->need);
        }
    }
    return taken;
}

/* Grains left over: largest remainder of the exact part first, then age. */
static int64_t give_remainders(struct share_part *parts, size_t count, wide *remainder,
                               int64_t left, int64_t grain)
{
    while (left > 0) {
        struct share_part *best = NULL;
        for (size_t i = 0; i < count; i++)
            if (part_open(&parts[i]) && remainder[i] >= 0 &&
                (best == NULL || remainder[i] > remainder[best - parts]))
                best = &parts[i];
        if (best == NULL) { /* everyone had one: a further round of grains, if any need is left */
            bool open = false;
            for (size_t i = 0; i < count; i++) {
                open = open || part_open(&parts[i]);
                remainder[i] = 0;
            }
            if (!open)
                break;
            continue;
        }
        int64_t part = min64(min64(grain, best->need), left);
        part_give(best, part);
        remainder[best - parts] = -1;
        left -= part;
    }
    return left;
}

static int64_t give_grains(struct share_part *parts, size_t count, int64_t amount, wide weights,
                           int64_t grain)
{
    int64_t left = amount;
    wide *remainder = mem_new(count, sizeof(*remainder));
    for (size_t i = 0; i < count; i++) {
        struct share_part *p = &parts[i];
        remainder[i] = -1;
        if (!part_open(p))
            continue;
        wide exact = (wide)amount * p->weight; /* in 1/weights */
        wide unit = weights * grain;
        int64_t whole = (int64_t)(exact / unit) * grain;
        remainder[i] = exact % unit;
        part_give(p, whole);
        left -= whole;
    }
    left = give_remainders(parts, count, remainder, left, grain);
    free(remainder);
    return left;
}

int64_t share_divide(struct share_part *parts, size_t count, int64_t amount, int64_t grain)
{
    while (amount > 0) {
        wide weights = 0, needs = 0;
        for (size_t i = 0; i < count; i++) {
            if (!part_open(&parts[i]))
                continue;
            weights += parts[i].weight;
            needs += parts[i].need;
        }
        if (weights == 0)
            break;
        if (needs <= amount) {
            for (size_t i = 0; i < count; i++)
                if (part_open(&parts[i]))
                    part_give(&parts[i], parts[i].need);
            return amount - (int64_t)needs;
        }
        int64_t taken = give_covered(parts, count, amount, weights);
        if (taken == 0)
            return give_grains(parts, count, amount, weights, grain);
        amount -= taken;
    }
    return amount;
}

/* Makes the wants of T and below anew where a demand changed; all of them if ALL. */
static void want_refresh(struct team *t, bool all)
{
    if (!t->demand_changed && !all)
        return;
    t->demand_changed = false;
    t->share_due = true;
    if (t->children.len == 0) {
        t->want = t->demand;
    } else {
        t->want = (struct amounts){0};
        for (size_t i = 0; i < t->children.len; i++) {
            want_refresh(t->children.items[i], all);
            amounts_add(&t->want, &t->children.items[i]->want, 1);
        }
    }
    for (int r = 0; r < SCHED_RESOURCES; r++)
        t->want.v[r] = min64(t->want.v[r], t->limit[r]);
}

/* The next lower sibling priority below CEILING that somebody has. */
static bool next_priority(const struct team *t, int64_t ceiling, int64_t *ret_priority)
{
    bool found = false;
    for (size_t i = 0; i < t->children.len; i++) {
        int64_t p = t->children.items[i]->priority;
        if (p < ceiling && (!found || p > *ret_priority)) {
            *ret_priority = p;
            found = true;
        }
    }
    return found;
}

static void divide_surplus(struct team *t, int r, int64_t surplus, struct share_part *parts)
{
    size_t n = t->children.len;
    int64_t priority = 0;
    for (int64_t ceiling = INT64_MAX; surplus > 0 && next_priority(t, ceiling, &priority);
         ceiling = priority) {
        for (size_t i = 0; i < n; i++) {
            const struct team *c = t->children.items[i];
            parts[i] =
                (struct share_part){.need = c->want.v[r] - c->share.v[r],
                                    .weight = c->priority == priority ? c->weight * c->bias[r] : 0};
        }
        surplus = share_divide(parts, n, surplus, grains[r]);
        for (size_t i = 0; i < n; i++)
            t->children.items[i]->share.v[r] += parts[i].given;
    }
}

struct quota { /* of one team, as it was */
    struct amounts share, entitled;
};

/* An unlimited guarantee means the whole capacity. */
static int64_t assured(const struct sched *s, const struct team *t, int r)
{
    return t->guarantee[r] == SCHED_UNLIMITED ? s->capacity.v[r] : t->guarantee[r];
}

static void divide_children(const struct sched *s, struct team *t, struct share_part *parts)
{
    size_t n = t->children.len;
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t surplus = t->share.v[r];
        for (size_t i = 0; i < n; i++) {
            struct team *c = t->children.items[i];
            c->share.v[r] = min64(assured(s, c, r), c->want.v[r]);
            if (surplus != SCHED_UNLIMITED)
                surplus = max64(0, surplus - c->share.v[r]);
        }
        divide_surplus(t, r, surplus, parts);
        for (size_t i = 0; i < n; i++) {
            struct team *c = t->children.items[i];
            int64_t floor = min64(c->guarantee[r], s->capacity.v[r]);
            c->entitled.v[r] = min64(c->limit[r], max64(floor, c->share.v[r]));
        }
    }
}

static bool quota_same(const struct quota *q, const struct team *t)
{
    return memcmp(&q->share, &t->share, sizeof(t->share)) == 0 &&
           memcmp(&q->entitled, &t->entitled, sizeof(t->entitled)) == 0;
}

/* Divides what T has among its children, and so on down where a share or a want changed; true if
 * any quota did. */
static bool divide_team(const struct sched *s, struct team *t)
{
    size_t n = t->children.len;
    if (!t->share_due)
        return false;
    t->share_due = false;
    if (n == 0)
        return false;
    struct share_part *parts = mem_new(n, sizeof(*parts));
    struct quota *before = mem_new(n, sizeof(*before));
    for (size_t i = 0; i < n; i++)
        before[i] = (struct quota){t->children.items[i]->share, t->children.items[i]->entitled};
    divide_children(s, t, parts);
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        struct team *c = t->children.items[i];
        bool same = quota_same(&before[i], c);
        c->share_due = c->share_due || !same;
        c->eased += !same;
        changed = changed || !same;
        changed = divide_team(s, c) || changed;
    }
    free(parts);
    free(before);
    return changed;
}

void share_refresh(struct sched *s)
{
    node_capacity_refresh(s);
    if (!s->shares_stale)
        return;
    s->shares_stale = false;
    want_refresh(&s->root, s->quotas_stale);
    s->root.share_due = s->root.share_due || s->quotas_stale;
    s->quotas_stale = false;
    s->root.share = s->root.entitled = s->capacity;
    s->order_epoch++;
    if (divide_team(s, &s->root))
        s->retry = true; /* somebody may be entitled who was not */
}
