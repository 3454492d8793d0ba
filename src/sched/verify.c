/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched_verify(): recomputes every sum from scratch and compares. For tests and checks; costs
 * what the whole state costs.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sched/fit.h"
#include "sched/gang.h"
#include "sched/queue.h"
#include "sched/task.h"
#include "sched/team.h"
#include "sched/tree.h"
#include "sched/types.h"

/* What a team's sums should be. */
struct sums {
    struct amounts used[2], firm[2], demand; /* [VIEW_NOW], [VIEW_THEN] */
    uint32_t workloads, idle_running;
};

struct check {
    struct sched *s;
    char *what;
    size_t size;
    struct map sums; /* by team id + 1; the root is 1 */
    bool failed;
};

static void fail(struct check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct check *c, const char *fmt, ...)
{
    if (c->failed)
        return;
    c->failed = true;
    if (c->size == 0)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->what, c->size, fmt, ap);
    va_end(ap);
}

static struct sums *sums_of(struct check *c, const struct team *t)
{
    return map_get(&c->sums, t->id + 1);
}

static void sums_use(struct check *c, const struct workload *w, const struct amounts *a,
                     enum view view)
{
    for (const struct team *t = w->group->team; t != NULL; t = t->parent) {
        struct sums *sum = sums_of(c, t);
        amounts_add(&sum->used[view], a, 1);
        if (!w->group->preemptible)
            amounts_add(&sum->firm[view], a, 1);
    }
}

static void check_task(struct check *c, const struct workload *w, uint32_t t, uint32_t *count)
{
    enum task_phase p = task_phase(w, t);
    struct amounts charge = task_charge(w, t);
    count[p]++;
    if (p == TASK_RUNNING || p == TASK_LEAVING || p == TASK_ENDING)
        sums_use(c, w, &charge, VIEW_NOW);
    if (p == TASK_RUNNING || p == TASK_HELD)
        sums_use(c, w, &charge, VIEW_THEN);
    for (const struct team *team = w->group->team; team != NULL; team = team->parent)
        if (p != TASK_ENDING && p != TASK_DONE)
            amounts_add(&sums_of(c, team)->demand, &charge, 1);
    bool placed = p != TASK_PENDING && p != TASK_DONE;
    if (placed != (w->tasks != NULL && w->tasks[t].node != NULL))
        fail(c, "task %llu/%u: phase and node disagree", (unsigned long long)w->id, t);
}

static void check_workload(struct check *c, const struct workload *w)
{
    uint32_t count[TASK_PHASES] = {0};
    unsigned long long id = w->id;
    for (uint32_t t = 0; t < w->group->job->task_count; t++)
        check_task(c, w, t, count);
    if (memcmp(count, w->count, sizeof(count)) != 0)
        fail(c, "workload %llu: counts of its tasks are wrong", id);
    for (const struct team *t = w->group->team; t != NULL; t = t->parent)
        if (w->in_running && c->s->config.classes[w->group->class_].idle_only)
            sums_of(c, t)->idle_running++;
    sums_of(c, w->group->team)->workloads++;
    bool victim = w->group->preemptible && count[TASK_RUNNING] > 0 && !w->removed;
    if (victim != w->in_running)
        fail(c, "workload %llu: listed as victim %d, should be %d", id, w->in_running, victim);
    if (gang_is_short(w) != (w->short_index > 0))
        fail(c, "workload %llu: below its minimum, but not watched (or the reverse)", id);
    if ((w->place == PLACE_LINE) != (w->own != NULL))
        fail(c, "workload %llu: its place and its line disagree", id);
}

/* A lot's line is headed by the first that waits in its group. */
static void check_line(struct check *c, const struct line *line)
{
    struct tree_node *waiting = line->group->waiting;
    const struct workload *first =
        waiting == NULL ? NULL : tree_entry(tree_at(waiting, 0), struct workload, wait);
    if (line->lot != NULL && (first == NULL || line->head != first))
        fail(c, "team %llu: a line is not headed by the first that waits in it",
             (unsigned long long)line->group->team->id);
}

static void check_lots(struct check *c, const struct team *t, const struct parked_lots *lots)
{
    for (size_t i = 0; i < lots->len; i++) {
        const struct line *line = lots->items[i].line;
        check_line(c, line);
        if (!line->calm || line->state != LINE_PARKED || line->group->team != t ||
            lots->items[i].shape != line->group->job->number ||
            (i > 0 && !line_before(lots->items[i - 1].line, line)))
            fail(c, "team %llu: a parked lot is not in its place", (unsigned long long)t->id);
    }
}

static void check_team(struct check *c, const struct team *t)
{
    const struct sums *sum = sums_of(c, t);
    unsigned long long id = t->id;
    for (int v = 0; v < 2; v++)
        if (memcmp(&sum->used[v], &t->used[v], sizeof(sum->used[v])) != 0 ||
            memcmp(&sum->firm[v], &t->firm[v], sizeof(sum->firm[v])) != 0)
            fail(c, "team %llu: use is wrong in view %d", id, v);
    if (memcmp(&sum->demand, &t->demand, sizeof(sum->demand)) != 0)
        fail(c, "team %llu: demand is wrong", id);
    if (sum->workloads != t->workloads)
        fail(c, "team %llu: has %u workloads, counts %u", id, sum->workloads, t->workloads);
    if (sum->idle_running != t->idle_running)
        fail(c, "team %llu: idle-only running %u, counts %u", id, sum->idle_running,
             t->idle_running);
    uint32_t ready[2] = {(uint32_t)t->ready[0].len, (uint32_t)t->ready[1].len};
    for (size_t i = 0; i < t->children.len; i++)
        for (int k = 0; k < 2; k++)
            ready[k] += t->children.items[i]->ready_count[k];
    if (ready[0] != t->ready_count[0] || ready[1] != t->ready_count[1])
        fail(c, "team %llu: count of ready lines is wrong", id);
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < t->ready[k].len; i++)
            check_line(c, heap_entry(t->ready[k].items[i], struct line, node));
    for (const struct line *line = t->parked; line != NULL; line = line->next)
        check_line(c, line);
    for (int k = 0; k < 2; k++)
        check_lots(c, t, &t->lots[k]);
}

static void check_device(struct check *c, const struct node *n, uint32_t d)
{
    for (int v = 0; v < 2; v++) {
        const struct use *u = &n->devices[d].use[v];
        bool full = u->milli > WHOLE_MILLI || u->milli < 0 || u->memory < 0 || u->tenants < 0;
        if (full || (u->memory > n->devices[d].memory && n->devices[d].memory > 0))
            fail(c, "node %llu: device %u is over-allocated in view %d", (unsigned long long)n->id,
                 d, v);
    }
}

/* Recomputes the use of a node from its tasks: gives everything back and expects zero. */
static void check_node(struct check *c, struct node *n)
{
    unsigned long long id = n->id;
    for (uint32_t d = 0; d < n->device_count; d++)
        check_device(c, n, d);
    for (int sign = -1; sign <= 1; sign += 2) {
        for (struct task *t = n->tasks; t != NULL; t = t->next) {
            const struct workload *w = t->workload;
            const struct shape *shape = task_shape(w, (uint32_t)(t - w->tasks));
            if (t->phase != TASK_HELD)
                fit_take(n, shape, task_devices(t), t->device_count, VIEW_NOW, sign);
            if (t->phase == TASK_RUNNING || t->phase == TASK_HELD)
                fit_take(n, shape, task_devices(t), t->device_count, VIEW_THEN, sign);
        }
        for (size_t i = 0; i < c->s->moving.len; i++) {
            const struct claim *m = &c->s->moving.items[i];
            if (m->node == n)
                fit_take(n, m->shape, m->devices, m->device_count, VIEW_THEN, sign);
        }
        for (int v = 0; v < VIEWS && sign < 0; v++) {
            if (v == VIEW_PLAN) /* of no meaning outside a turn */
                continue;
            if (n->cpu_used[v] != 0 || n->memory_used[v] != 0 || n->idle[v] != n->whole_count ||
                n->milli_used[v] != 0)
                fail(c, "node %llu: use is wrong in view %d", id, v);
            for (uint32_t d = 0; d < n->device_count; d++)
                if (n->devices[d].use[v].tenants != 0 || n->devices[d].use[v].milli != 0 ||
                    n->devices[d].use[v].memory != 0)
                    fail(c, "node %llu: use of device %u is wrong in view %d", id, d, v);
        }
    }
}

/* Recomputes the sums per GPU type in place, and compares with what they were. */
static void check_types(struct check *c)
{
    VEC(struct type_quota) before = {0};
    size_t it = 0, i = 0;
    for (struct team *t; (t = map_next(&c->s->teams, &it)) != NULL;)
        for (size_t k = 0; k < t->types.len; k++)
            vec_push(&before, t->types.items[k]);
    if (before.len > 0)
        types_recount(c->s);
    it = 0;
    for (struct team *t; (t = map_next(&c->s->teams, &it)) != NULL;)
        for (size_t k = 0; k < t->types.len; k++, i++) {
            const struct type_quota *was = &before.items[i], *is = &t->types.items[k];
            for (int v = 0; v < 2; v++)
                if (was->used[v] != is->used[v] || was->firm[v] != is->firm[v])
                    fail(c, "team %llu: use of type %s is wrong in view %d",
                         (unsigned long long)t->id, is->type, v);
        }
    vec_done(&before);
}

int sched_verify(struct sched *s, char *what, size_t size)
{
    struct check c = {.s = s, .what = what, .size = size};
    size_t it = 0;
    struct sums root = {0};
    map_put(&c.sums, s->root.id + 1, &root);
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;)
        map_put(&c.sums, t->id + 1, mem_new(1, sizeof(struct sums)));
    it = 0;
    for (struct workload *w; (w = map_next(&s->workloads, &it)) != NULL;)
        check_workload(&c, w);
    for (size_t i = 0; i < s->moving.len; i++) {
        const struct claim *m = &s->moving.items[i];
        struct amounts charge = {{m->gpu_milli, m->shape->cpu, m->shape->memory}};
        sums_use(&c, m->workload, &charge, VIEW_THEN);
    }
    check_team(&c, &s->root);
    it = 0;
    for (struct team *t; (t = map_next(&s->teams, &it)) != NULL;)
        check_team(&c, t);
    for (size_t i = 0; i < s->node_list.len; i++)
        check_node(&c, s->node_list.items[i]);
    check_types(&c);
    it = 0;
    for (struct sums *sum; (sum = map_next(&c.sums, &it)) != NULL;)
        if (sum != &root)
            free(sum);
    map_done(&c.sums);
    return c.failed ? -EUCLEAN : 0;
}
