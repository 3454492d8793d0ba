/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/order.h"

#include "sched/parked.h"
#include "sched/queue.h"
#include "sched/team.h"

typedef __int128 wide;

struct order_key order_key(const struct team *t, const struct amounts *need, bool running)
{
    struct order_key key = {.team = t, .whole = 1};
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        int64_t used = t->used[VIEW_THEN].v[r];
        int64_t before = running ? used - need->v[r] : used;
        int64_t after = before + need->v[r];
        key.over_share = key.over_share || before > t->share.v[r];
        key.over_guarantee = key.over_guarantee || after > t->guarantee[r];
        int64_t whole = t->entitled.v[r] > 0 ? t->entitled.v[r] : 1;
        if ((wide)after * key.whole > (wide)key.part * whole) {
            key.part = after;
            key.whole = whole;
        }
    }
    return key;
}

bool order_before(const struct order_key *a, const struct order_key *b)
{
    if (a->over_share != b->over_share)
        return !a->over_share;
    if (a->over_guarantee != b->over_guarantee)
        return !a->over_guarantee;
    if (a->team->priority != b->team->priority)
        return a->team->priority > b->team->priority;
    wide x = (wide)a->part * b->whole, y = (wide)b->part * a->whole;
    if (x != y)
        return x < y;
    if (a->team->age != b->team->age)
        return a->team->age < b->team->age;
    return a->team->id < b->team->id;
}

static bool none_ready(const struct sched *s, const struct team *t, bool idle)
{
    return t->ready_count[idle] == 0 && s->open_jobs.len == 0;
}

/* Of a leaf. */
static struct line *first_in(const struct sched *s, struct team *t, bool idle)
{
    struct line *ready = queue_first(t, idle);
    struct line *lot = s->open_jobs.len > 0 ? parked_first(s, t, idle) : NULL;
    if (ready == NULL || (lot != NULL && line_before(lot, ready)))
        return lot;
    return ready;
}

static struct line *next_in(const struct sched *s, struct team *t, bool idle)
{
    if (team_is_leaf(t))
        return first_in(s, t, idle);
    if (t->next_epoch[idle] == s->order_epoch)
        return t->next_line[idle];
    struct line *best = NULL;
    struct order_key best_key = {0};
    for (size_t i = 0; i < t->children.len; i++) {
        struct team *c = t->children.items[i];
        struct line *line = none_ready(s, c, idle) ? NULL : next_in(s, c, idle);
        if (line == NULL)
            continue;
        struct order_key key = order_key(c, &line->need, false);
        if (best == NULL || order_before(&key, &best_key)) {
            best = line;
            best_key = key;
        }
    }
    t->next_line[idle] = best;
    t->next_epoch[idle] = s->order_epoch;
    return best;
}

struct line *order_next(struct sched *s, bool idle)
{
    return none_ready(s, &s->root, idle) ? NULL : next_in(s, &s->root, idle);
}
