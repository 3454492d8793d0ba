/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Second half of parsing: names become indices, and what only shows across fields is checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "sim/scenario_data.h"

struct names {
    struct map nodes, teams, workloads; /* name -> index + 1 as a pointer */
};

static void names_done(struct names *n)
{
    map_done(&n->nodes);
    map_done(&n->teams);
    map_done(&n->workloads);
}

static int name_add(struct map *m, const char *name, uint32_t index, const char *what,
                    struct err *err)
{
    if (map_get_str(m, name) != NULL)
        return err_set(err, -EINVAL, ERR_CONFLICT, NULL, NULL, "two %ss are called '%.80s'", what,
                       name);
    map_put_str(m, name, (void *)(uintptr_t)(index + 1));
    return 0;
}

static int name_find(const struct map *m, const char *name, const char *what, uint32_t *ret_index,
                     struct err *err)
{
    uintptr_t found = (uintptr_t)map_get_str(m, name);
    if (found == 0)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "unknown %s '%.80s'", what, name);
    *ret_index = (uint32_t)(found - 1);
    return 0;
}

int32_t sim_mig_milli(const char *profile)
{
    /* "1g.10gb", "3g.40gb+me"; the A30 has four compute slices, everything else seven */
    int slices = profile[0] - '0';
    if (slices < 1 || slices > 7 || strncmp(profile + 1, "g.", 2) != 0)
        return 0;
    const char *memory = profile + 3;
    size_t digits = strspn(memory, "0123456789");
    if (digits == 0 || strncmp(memory + digits, "gb", 2) != 0)
        return 0;
    static const char *const a30[] = {"1g.6gb", "2g.12gb", "4g.24gb"};
    for (size_t i = 0; i < sizeof(a30) / sizeof(a30[0]); i++) {
        if (strncmp(profile, a30[i], strlen(a30[i])) == 0)
            return slices * 1000 / 4;
    }
    return slices * 1000 / 7;
}

static int request_check(const struct sim_request *q, struct err *err)
{
    int forms = (q->gpu_milli > 0) + (q->gpu_memory_bytes > 0) + (q->mig_count > 0);
    if (forms > 1)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "use one of gpu_milli, gpu_memory_mib and mig",
                       "the request asks for GPUs in two ways");
    if (q->gpu_milli > 1000 && q->gpu_milli % 1000 != 0)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "gpu_milli",
                       "use 1 to 999, or a multiple of 1000",
                       "%lld is neither a fraction nor whole devices", (long long)q->gpu_milli);
    if (q->gpu_milli > 1000LL * SIM_NO_INDEX / 2 || q->devices == 0)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL, "impossible number of devices");
    return 0;
}

static int group_find(const struct sim_workload *w, struct sim_task *t, struct err *err)
{
    if (t->group_name == NULL)
        return 0;
    for (uint32_t g = 0; g < w->group_count; g++) {
        if (strcmp(w->groups[g].name, t->group_name) == 0) {
            t->group = g;
            return 0;
        }
    }
    return err_set(err, -ENOENT, ERR_NOT_FOUND, "group", NULL, "unknown group '%.80s'",
                   t->group_name);
}

static int task_resolve(const struct names *names, const struct sim_workload *w, struct sim_task *t,
                        struct err *err)
{
    int r = request_check(&t->request, err);
    if (r < 0)
        return r;
    if (t->node_name != NULL) {
        r = name_find(&names->nodes, t->node_name, "node", &t->node, err);
        if (r < 0)
            return r;
    }
    if (t->only_node_name != NULL) {
        r = name_find(&names->nodes, t->only_node_name, "node", &t->only_node, err);
        if (r < 0)
            return r;
    }
    if (t->running && t->node_name == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, "node", NULL, "a running task is on a node");
    if (t->running && w->at_ms != SIM_AT_START)
        return err_set(err, -EINVAL, ERR_INVALID, "state", "leave out at_s",
                       "a task cannot run before its workload is submitted");
    return group_find(w, t, err);
}

static uint32_t groups_min(const struct sim_workload *w)
{
    uint64_t sum = 0;
    for (uint32_t g = 0; g < w->group_count; g++)
        sum += w->groups[g].min_tasks;
    return sum > w->task_count ? w->task_count : (uint32_t)sum;
}

static int workload_resolve(const struct names *names, struct sim_workload *w, struct err *err)
{
    int r = name_find(&names->teams, w->team_name, "team", &w->team, err);
    if (r < 0)
        return r;
    if (w->task_count == 0)
        return err_set(err, -EINVAL, ERR_INVALID, "tasks", NULL,
                       "a workload has at least one task");
    if (w->min_tasks == SIM_NO_INDEX)
        w->min_tasks = w->group_count > 0 ? groups_min(w) : w->task_count;
    if (w->min_tasks > w->task_count)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "min_tasks", NULL,
                       "min_tasks is above the number of tasks, %u", w->task_count);
    for (uint32_t t = 0; t < w->task_count; t++) {
        r = task_resolve(names, w, &w->tasks[t], err);
        if (r < 0) {
            err_prefix_field(err, "tasks[%u]", t);
            return r;
        }
    }
    return 0;
}

/* Older first: what is there from the start, then by submit time; equals in the order listed. */
static void ages_assign(struct sim_scenario *s)
{
    for (uint32_t i = 0; i < s->workload_count; i++) {
        uint64_t at = (uint64_t)(s->workloads[i].at_ms - SIM_AT_START);
        s->workloads[i].age = (at << 20) + i;
    }
}

static int teams_resolve(struct sim_scenario *s, struct names *names, struct err *err)
{
    for (uint32_t i = 0; i < s->team_count; i++) {
        int r = name_add(&names->teams, s->teams[i].name, i, "team", err);
        if (r < 0)
            return r;
    }
    for (uint32_t i = 0; i < s->team_count; i++) {
        struct sim_team *t = &s->teams[i];
        if (t->parent_name == NULL)
            continue;
        int r = name_find(&names->teams, t->parent_name, "team", &t->parent, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int workloads_resolve(struct sim_scenario *s, struct names *names, struct err *err)
{
    for (uint32_t i = 0; i < s->workload_count; i++) {
        int r = name_add(&names->workloads, s->workloads[i].name, i, "workload", err);
        if (r == 0)
            r = workload_resolve(names, &s->workloads[i], err);
        if (r < 0) {
            err_prefix_field(err, "workloads[%u]", i);
            return r;
        }
    }
    ages_assign(s);
    return 0;
}

static int event_resolve(const struct sim_scenario *s, const struct names *names,
                         struct sim_event *e, struct err *err)
{
    switch (e->kind) {
    case SIM_EVENT_NODE_DOWN:
    case SIM_EVENT_NODE_UP:
    case SIM_EVENT_NODE_DRAIN:
    case SIM_EVENT_NODE_UNDRAIN:
        return name_find(&names->nodes, e->subject, "node", &e->index, err);
    case SIM_EVENT_CANCEL:
        return name_find(&names->workloads, e->subject, "workload", &e->index, err);
    case SIM_EVENT_TASK_FAILED:
        if (sim_task_find(s, e->subject, &e->index, &e->task) < 0)
            return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "unknown task '%.80s'",
                           e->subject);
        return 0;
    case SIM_EVENT_TEAM:
        return name_find(&names->teams, e->team.name, "team", &e->index, err);
    case SIM_EVENT_NONE:
        break;
    }
    return -EINVAL;
}

int sim_task_find(const struct sim_scenario *s, const char *id, uint32_t *ret_workload,
                  uint32_t *ret_task)
{
    const char *slash = strrchr(id, '/');
    if (slash == NULL || slash[1] == '\0' || strspn(slash + 1, "0123456789") != strlen(slash + 1) ||
        strlen(slash + 1) > 6)
        return -ENOENT;
    size_t len = (size_t)(slash - id);
    uint32_t index = (uint32_t)strtoul(slash + 1, NULL, 10);
    for (uint32_t i = 0; i < s->workload_count; i++) {
        const struct sim_workload *w = &s->workloads[i];
        if (strlen(w->name) == len && memcmp(w->name, id, len) == 0 && index < w->task_count) {
            *ret_workload = i;
            *ret_task = index;
            return 0;
        }
    }
    return -ENOENT;
}

static int items_resolve(const struct sim_scenario *s, const struct names *names,
                         struct sim_expect_item *items, uint32_t count, bool tasks, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sim_expect_item *it = &items[i];
        int r;
        if (!tasks)
            r = name_find(&names->workloads, it->key, "workload", &it->workload, err);
        else if ((r = sim_task_find(s, it->key, &it->workload, &it->task)) < 0)
            r = err_set(err, r, ERR_NOT_FOUND, NULL, "write it like workload/0",
                        "unknown task '%.80s'", it->key);
        if (r == 0 && it->node_name != NULL)
            r = name_find(&names->nodes, it->node_name, "node", &it->node, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int placement_resolve(const struct names *names, struct sim_expect *e, struct err *err)
{
    for (uint32_t i = 0; i < e->placement_count; i++) {
        struct sim_expect_placement *p = &e->placement[i];
        int r = name_find(&names->workloads, p->key, "workload", &p->workload, err);
        for (uint32_t n = 0; r == 0 && n < p->node_count; n++)
            r = name_find(&names->nodes, p->nodes[n].key, "node", &p->nodes[n].index, err);
        if (r < 0)
            return r;
    }
    return 0;
}

static int expect_resolve(const struct sim_scenario *s, const struct names *names,
                          struct sim_expect *e, struct err *err)
{
    int r = items_resolve(s, names, e->workloads, e->workload_count, false, err);
    if (r == 0)
        r = items_resolve(s, names, e->tasks, e->task_count, true, err);
    for (uint32_t i = 0; r == 0 && i < e->per_team_count; i++)
        r = name_find(&names->teams, e->per_team[i].key, "team", &e->per_team[i].index, err);
    uint32_t ignored;
    for (uint32_t i = 0; r == 0 && i < e->evicted_count; i++)
        r = name_find(&names->workloads, e->evicted[i], "workload", &ignored, err);
    return r == 0 ? placement_resolve(names, e, err) : r;
}

/* Order of time; "settled" keeps its place after the expectation above it. */
static void expects_sort(struct sim_scenario *s)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < s->expect_count; i++) {
        if (s->expects[i].settled)
            s->expects[i].at_ms = last;
        last = s->expects[i].at_ms;
    }
    for (uint32_t i = 1; i < s->expect_count; i++) {
        struct sim_expect e = s->expects[i];
        uint32_t j = i;
        for (; j > 0 && s->expects[j - 1].at_ms > e.at_ms; j--)
            s->expects[j] = s->expects[j - 1];
        s->expects[j] = e;
    }
}

static int expects_resolve(struct sim_scenario *s, const struct names *names, struct err *err)
{
    for (uint32_t i = 0; i < s->expect_count; i++) {
        int r = expect_resolve(s, names, &s->expects[i], err);
        if (r < 0) {
            err_prefix_field(err, "expect[%u]", i);
            return r;
        }
    }
    expects_sort(s);
    return 0;
}

static int all_resolve(struct sim_scenario *s, struct names *names, struct err *err)
{
    for (uint32_t i = 0; i < s->node_count; i++) {
        int r = name_add(&names->nodes, s->nodes[i].name, i, "node", err);
        if (r < 0)
            return r;
    }
    int r = teams_resolve(s, names, err);
    if (r == 0)
        r = workloads_resolve(s, names, err);
    for (uint32_t i = 0; r == 0 && i < s->event_count; i++) {
        r = event_resolve(s, names, &s->events[i], err);
        if (r < 0)
            err_prefix_field(err, "events[%u]", i);
    }
    return r == 0 ? expects_resolve(s, names, err) : r;
}

int sim_scenario_resolve(struct sim_scenario *s, struct err *err)
{
    struct names names = {0};
    int r = all_resolve(s, &names, err);
    names_done(&names);
    return r;
}
