/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/types.h"

#include <string.h>

#include "sched/shape.h"
#include "sched/task.h"
#include "sched/team.h"

struct type_quota *types_find(const struct team *t, const char *type)
{
    for (size_t i = 0; i < t->types.len; i++)
        if (t->types.items[i].type == type)
            return &t->types.items[i];
    return NULL;
}

/* ---- stating ----------------------------------------------------------------------------- */

bool types_ok(const struct sched_team *decl)
{
    if (decl->type_count > SCHED_TYPES_MAX)
        return false;
    for (uint32_t i = 0; i < decl->type_count; i++) {
        const struct sched_type_quota *q = &decl->types[i];
        if (q->gpu_type == NULL || q->guarantee < 0 || q->limit < 0)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(decl->types[k].gpu_type, q->gpu_type) == 0)
                return false;
    }
    return true;
}

void types_set(struct sched *s, struct team *t, const struct sched_team *decl)
{
    vec_clear(&t->types);
    for (uint32_t i = 0; i < decl->type_count; i++) {
        struct type_quota *q = vec_add(&t->types);
        *q = (struct type_quota){.type = string_intern(s, decl->types[i].gpu_type),
                                 .guarantee = decl->types[i].guarantee,
                                 .limit = decl->types[i].limit};
    }
}

/* True if T or a team below it states any. */
static bool path_mark(struct team *t, bool typed)
{
    bool any = t->types.len > 0;
    t->typed_path = typed || any;
    for (size_t i = 0; i < t->children.len; i++)
        any = path_mark(t->children.items[i], t->typed_path) || any;
    for (size_t i = 0; i < t->types.len; i++) {
        memset(t->types.items[i].used, 0, sizeof(t->types.items[i].used));
        memset(t->types.items[i].firm, 0, sizeof(t->types.items[i].firm));
    }
    return any;
}

static void task_count_in(const struct task *task)
{
    const struct group *g = task->workload->group;
    const char *type = task->node->gpu_type;
    if (task->phase != TASK_HELD)
        types_use(g->team, VIEW_NOW, type, task->gpu_milli, !g->preemptible, 1);
    if (task->phase == TASK_HELD || task->phase == TASK_RUNNING)
        types_use(g->team, VIEW_THEN, type, task->gpu_milli, !g->preemptible, 1);
}

void types_recount(struct sched *s)
{
    if (!path_mark(&s->root, false)) /* nobody states any */
        return;
    for (size_t i = 0; i < s->node_list.len; i++)
        for (const struct task *t = s->node_list.items[i]->tasks; t != NULL; t = t->next)
            task_count_in(t);
    for (size_t i = 0; i < s->moving.len; i++) {
        const struct claim *c = &s->moving.items[i];
        const struct group *g = c->workload->group;
        types_use(g->team, VIEW_THEN, c->node->gpu_type, c->gpu_milli, !g->preemptible, 1);
    }
}

void types_use(struct team *team, enum view view, const char *type, int64_t milli, bool firm,
               int sign)
{
    if (!team->typed_path || type == NULL || milli == 0)
        return;
    for (struct team *t = team; t != NULL; t = t->parent) {
        struct type_quota *q = types_find(t, type);
        if (q == NULL)
            continue;
        q->used[view] += sign * milli;
        if (firm)
            q->firm[view] += sign * milli;
    }
}

/* ---- room -------------------------------------------------------------------------------- */

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t left_of(int64_t bound, int64_t used)
{
    return bound == SCHED_UNLIMITED ? SCHED_UNLIMITED : bound - used;
}

/* What T leaves to work of G on the type, in one view. */
static int64_t room_in(const struct group *g, const struct team *t, const struct type_quota *q,
                       enum view view, bool *ret_guarantee)
{
    int64_t by_limit = left_of(q->limit, q->used[view]), by_guarantee = SCHED_UNLIMITED;
    if (!g->preemptible)
        by_guarantee = left_of(q->guarantee, q->firm[view]);
    if (!g->may_burst && t == g->team)
        by_guarantee = min64(by_guarantee, left_of(q->guarantee, q->used[view]));
    *ret_guarantee = by_guarantee < by_limit;
    return min64(by_limit, by_guarantee);
}

static void room_enter(struct type_rooms *rooms, const char *type, int64_t room)
{
    if (room == SCHED_UNLIMITED)
        return;
    for (size_t i = 0; i < rooms->len; i++)
        if (rooms->items[i].type == type) {
            rooms->items[i].milli = min64(rooms->items[i].milli, room);
            return;
        }
    struct type_room *r = vec_add(rooms);
    *r = (struct type_room){type, room};
}

void types_rooms(const struct group *g, unsigned mask, struct type_rooms *ret_rooms)
{
    vec_clear(ret_rooms);
    if (!g->team->typed_path)
        return;
    for (const struct team *t = g->team; t != NULL; t = t->parent)
        for (size_t i = 0; i < t->types.len; i++)
            for (int v = 0; v < VIEWS; v++) {
                const struct type_quota *q = &t->types.items[i];
                bool guarantee;
                if (mask & MASK(v))
                    room_enter(ret_rooms, q->type, room_in(g, t, q, (enum view)v, &guarantee));
            }
}

void types_room_take(struct type_rooms *rooms, const char *type, int64_t milli, int sign)
{
    for (size_t i = 0; i < rooms->len; i++)
        if (rooms->items[i].type == type)
            rooms->items[i].milli -= sign * milli;
}

bool types_room_for(const struct type_rooms *rooms, const char *type, int64_t milli)
{
    for (size_t i = 0; i < rooms->len && milli > 0; i++)
        if (rooms->items[i].type == type)
            return milli <= rooms->items[i].milli;
    return true;
}

static bool overdrawn(const struct type_rooms *rooms, const char *type)
{
    for (size_t i = 0; i < rooms->len; i++)
        if (rooms->items[i].type == type)
            return rooms->items[i].milli < 0;
    return false;
}

struct team *types_tightest(const struct group *g, const char *type, int64_t *ret_room,
                            bool *ret_guarantee)
{
    struct team *tightest = NULL;
    for (struct team *t = g->team; t != NULL; t = t->parent) {
        const struct type_quota *q = types_find(t, type);
        for (int v = VIEW_NOW; q != NULL && v <= VIEW_THEN; v++) {
            bool guarantee;
            int64_t room = room_in(g, t, q, (enum view)v, &guarantee);
            if (room == SCHED_UNLIMITED || (tightest != NULL && room >= *ret_room))
                continue;
            tightest = t;
            *ret_room = room;
            *ret_guarantee = guarantee;
        }
    }
    return tightest;
}

int64_t types_most(const struct group *g, const char *type, const struct team **ret_team,
                   bool *ret_guarantee)
{
    int64_t most = SCHED_UNLIMITED;
    *ret_team = NULL;
    for (const struct team *t = g->team; t != NULL; t = t->parent) {
        const struct type_quota *q = types_find(t, type);
        if (q == NULL)
            continue;
        bool guarantee;
        int64_t room = room_in(g, t, q, VIEW_EMPTY, &guarantee);
        if (room >= most)
            continue;
        most = room;
        *ret_team = t;
        *ret_guarantee = guarantee;
    }
    return most;
}

bool types_bind(const struct group *g, int64_t milli)
{
    bool guarantee;
    if (!g->team->typed_path || milli == 0)
        return false;
    for (const struct team *t = g->team; t != NULL; t = t->parent)
        for (size_t i = 0; i < t->types.len; i++)
            if (room_in(g, t, &t->types.items[i], VIEW_THEN, &guarantee) < milli)
                return true;
    return false;
}

bool types_held_open(const struct workload *w, enum view view)
{
    struct type_rooms rooms = {0};
    types_rooms(w->group, MASK(view), &rooms);
    bool counted = view == VIEW_THEN;
    for (uint32_t t = 0; rooms.len > 0 && !counted && t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD)
            types_room_take(&rooms, w->tasks[t].node->gpu_type, w->tasks[t].gpu_milli, 1);
    bool open = true;
    for (uint32_t t = 0; rooms.len > 0 && t < w->group->job->task_count; t++)
        if (w->tasks[t].phase == TASK_HELD && w->tasks[t].gpu_milli > 0)
            open = open && !overdrawn(&rooms, w->tasks[t].node->gpu_type);
    vec_done(&rooms);
    return open;
}

bool types_keeps(const struct team *t, const char *type)
{
    const struct type_quota *q = types_find(t, type);
    return q != NULL && q->guarantee != SCHED_UNLIMITED && q->used[VIEW_THEN] <= q->guarantee;
}

bool types_entitled(const struct team *t, const char *type, int64_t milli)
{
    for (size_t i = 0; i < t->types.len; i++) {
        const struct type_quota *q = &t->types.items[i];
        if ((type == NULL || q->type == type) && q->guarantee != SCHED_UNLIMITED &&
            q->used[VIEW_THEN] + milli <= q->guarantee)
            return true;
    }
    return false;
}
