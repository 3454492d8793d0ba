/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/victims.h"

#include <stdlib.h>

#include "base/qty.h"
#include "sched/decide.h"
#include "sched/task.h"

void victims_clear(struct victims *v)
{
    vec_clear(&v->list);
    v->units = 0;
    v->price_ms = 0;
    v->idle_only = true;
    v->class_ = SCHED_CLASSES;
    v->priority = INT32_MIN;
}

void victims_done(struct victims *v)
{
    vec_done(&v->list);
}

void victims_add(struct sched *s, struct victims *v, struct workload *w, uint32_t task,
                 enum sched_cause cause)
{
    const struct group *g = w->group;
    struct victim one = {w, task, cause};
    vec_push(&v->list, one);
    v->price_ms = qty_add_sat(v->price_ms, decide_price_ms(s, w, task));
    v->idle_only = v->idle_only && cause == SCHED_CAUSE_IDLE_ONLY;
    if (g->class_ < v->class_ || (g->class_ == v->class_ && g->priority > v->priority)) {
        v->class_ = g->class_;
        v->priority = g->priority;
    }
}

bool victims_better(const struct victims *a, const struct victims *b)
{
    if (a->class_ < b->class_ || (a->class_ == b->class_ && a->priority > b->priority))
        return false;
    if (b->idle_only && !a->idle_only)
        return false;
    return a->price_ms < b->price_ms;
}

void victims_imagine(struct sched *s, const struct victims *v, int sign)
{
    for (size_t i = 0; i < v->list.len; i++)
        task_imagine(s, v->list.items[i].w, v->list.items[i].task, sign);
}
