/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prop_judge.h"

/* Are all tasks of GROUP (PROP_NONE: of all) that run or are promised in one zone? */
static bool in_one_zone(const struct prop_world *w, const struct prop_workload *p, uint32_t group)
{
    const char *zone = NULL;
    for (uint32_t t = 0; t < p->decl.task_count; t++) {
        enum prop_phase phase = p->tasks[t].phase;
        if ((phase != PROP_RUNNING && phase != PROP_HELD) ||
            (group != PROP_NONE && p->decl.tasks[t].group != group))
            continue;
        const char *here = w->nodes[p->tasks[t].node].decl.labels[0].value;
        if (zone != NULL && strcmp(zone, here) != 0)
            return false;
        zone = here;
    }
    return true;
}

static bool domains_kept(const struct prop_world *w, const struct prop_workload *p)
{
    if (p->decl.topology_required != NULL && !in_one_zone(w, p, PROP_NONE))
        return false;
    for (uint32_t g = 0; g < p->decl.group_count; g++) {
        if (p->decl.groups[g].required != NULL && !in_one_zone(w, p, g))
            return false;
    }
    return true;
}

bool judge_gangs(const struct judge *j)
{
    for (size_t i = 0; i < j->d->count; i++) {
        const struct sched_decision *d = &j->d->items[i];
        const struct prop_workload *p = judge_subject(j, d->workload);
        if (d->kind == SCHED_START && !prop_minimum_met(p, false))
            return prop_fail(j->w, "workload %llu started a part of its gang",
                             (unsigned long long)d->workload);
        if (d->kind == SCHED_HOLD && prop_count(p, PROP_HELD) > 0 && !prop_minimum_met(p, true))
            return prop_fail(j->w, "a part of the gang of workload %llu is promised",
                             (unsigned long long)d->workload);
    }
    for (uint32_t i = 0; i < j->w->workloads.len; i++) {
        if (!domains_kept(j->w, j->w->workloads.items[i]))
            return prop_fail(j->w, "workload %u is not in one zone", i + 1);
        prop_short_update(j->w, i);
    }
    return true;
}
