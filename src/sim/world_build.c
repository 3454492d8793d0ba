/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the scenario's declarations to the scheduler's.
 */
#include <errno.h>
#include <string.h>

#include "sim/world.h"

static uint64_t id_of(uint32_t index)
{
    return index == SIM_NO_INDEX ? 0 : (uint64_t)index + 1;
}

static const struct sched_label *labels_build(struct sim_world *w, const struct sim_pair *pairs,
                                              uint32_t count)
{
    struct sched_label *labels = arena_new_array(&w->arena, struct sched_label, count + 1);
    for (uint32_t i = 0; i < count; i++)
        labels[i] = (struct sched_label){.key = pairs[i].key, .value = pairs[i].value};
    return labels;
}

static int team_set(struct sim_world *w, uint32_t index, const struct sim_team *numbers)
{
    struct sched_team t = {
        .id = id_of(index),
        .parent = id_of(w->scenario->teams[index].parent),
        .age = index,
        .weight = numbers->weight,
        .priority = numbers->priority,
        .types = numbers->types,
        .type_count = numbers->type_count,
    };
    for (int i = 0; i < SCHED_RESOURCES; i++) {
        t.guarantee[i] = numbers->guarantee.v[i];
        t.limit[i] = numbers->limit.v[i];
    }
    return sched_team_set(w->sched, &t);
}

/* Parents first, whatever order they are listed in. */
static int teams_build(struct sim_world *w, struct err *err)
{
    const struct sim_scenario *s = w->scenario;
    bool *known = arena_new_array(&w->arena, bool, s->team_count + 1);
    uint32_t left = s->team_count;
    while (left > 0) {
        uint32_t before = left;
        for (uint32_t i = 0; i < s->team_count; i++) {
            const struct sim_team *t = &s->teams[i];
            if (known[i] || (t->parent != SIM_NO_INDEX && !known[t->parent]))
                continue;
            int r = team_set(w, i, t);
            if (r < 0)
                return err_set(err, r, ERR_INVALID, NULL, NULL, "team '%.80s' is refused: %s",
                               t->name, strerror(-r));
            known[i] = true;
            left--;
        }
        if (left == before)
            return err_set(err, -EINVAL, ERR_INVALID, "teams", NULL, "the teams form a cycle");
    }
    return 0;
}

int sim_world_team_edit(struct sim_world *w, const struct sim_event *event, struct err *err)
{
    int r = team_set(w, event->index, &event->team);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, NULL, "the change of team '%.80s' is refused: %s",
                       event->team.name, strerror(-r));
    return 0;
}

static void devices_build(struct sim_world *w, const struct sim_node *n, struct sched_node *decl)
{
    uint32_t count = n->gpus;
    for (uint32_t i = 0; i < n->mig_count; i++)
        count += n->mig[i].count;
    struct sched_device *devices = arena_new_array(&w->arena, struct sched_device, count + 1);
    uint32_t d = 0;
    for (; d < n->gpus; d++)
        devices[d].memory_bytes = n->gpu_memory_bytes;
    for (uint32_t i = 0; i < n->mig_count; i++) {
        for (uint32_t k = 0; k < n->mig[i].count; k++, d++) {
            devices[d].mig_profile = n->mig[i].key;
            devices[d].mig_milli = sim_mig_milli(n->mig[i].key);
        }
    }
    decl->devices = devices;
    decl->device_count = count;
}

static int nodes_build(struct sim_world *w, struct err *err)
{
    const struct sim_scenario *s = w->scenario;
    w->nodes = arena_new_array(&w->arena, struct sim_world_node, s->node_count + 1);
    for (uint32_t i = 0; i < s->node_count; i++) {
        const struct sim_node *n = &s->nodes[i];
        struct sched_node *decl = &w->nodes[i].decl;
        *decl = (struct sched_node){
            .id = id_of(i),
            .order = i,
            .gpu_type = n->gpu_type,
            .cpu_milli = n->cpu_milli,
            .memory_bytes = n->memory_bytes,
            .labels = labels_build(w, n->labels, n->label_count),
            .label_count = n->label_count,
            .up = true,
            .schedulable = true,
        };
        if (n->window_until_ms > 0) {
            decl->window_from_ms = SIM_EPOCH_MS + n->window_from_ms;
            decl->window_until_ms = SIM_EPOCH_MS + n->window_until_ms;
        }
        devices_build(w, n, decl);
        int r = sched_node_set(w->sched, decl);
        if (r < 0)
            return err_set(err, r, ERR_INVALID, NULL, NULL, "node '%.80s' is refused: %s", n->name,
                           strerror(-r));
        sim_ledger_node_set(&w->ledger, i, decl);
    }
    return 0;
}

int sim_world_build(struct sim_world *w, struct err *err)
{
    const struct sim_scenario *s = w->scenario;
    int r = sched_topology_set(w->sched, s->topology_levels, s->topology_level_count);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, "topology_levels", NULL, "refused: %s", strerror(-r));
    r = teams_build(w, err);
    return r < 0 ? r : nodes_build(w, err);
}

static const struct sched_request *request_build(struct sim_world *w, const struct sim_task *t)
{
    const struct sim_request *from = &t->request;
    struct sched_request *q = arena_new(&w->arena, struct sched_request);
    *q = (struct sched_request){
        .cpu_milli = from->cpu_milli,
        .memory_bytes = from->memory_bytes,
        .gpu_types = from->gpu_types,
        .gpu_type_count = from->gpu_type_count,
        .labels = labels_build(w, from->labels, from->label_count),
        .label_count = from->label_count,
        .only_node = id_of(t->only_node),
    };
    if (from->gpu_milli >= 1000) {
        q->device_count = (uint32_t)(from->gpu_milli / 1000);
        q->device_milli = 1000;
    } else if (from->gpu_milli > 0) {
        q->device_count = from->devices;
        q->device_milli = (int32_t)from->gpu_milli;
    } else if (from->gpu_memory_bytes > 0) {
        q->device_count = from->devices;
        q->device_memory_bytes = from->gpu_memory_bytes;
    }
    struct sched_mig_request *mig =
        arena_new_array(&w->arena, struct sched_mig_request, from->mig_count + 1);
    for (uint32_t i = 0; i < from->mig_count; i++)
        mig[i] =
            (struct sched_mig_request){.profile = from->mig[i].key, .count = from->mig[i].count};
    q->mig = mig;
    q->mig_count = from->mig_count;
    return q;
}

/* Plain requests that are equal share one structure, as the library likes it. */
static bool request_same(const struct sim_task *a, const struct sim_task *b)
{
    const struct sim_request *p = &a->request, *q = &b->request;
    return p->gpu_milli == q->gpu_milli && p->gpu_memory_bytes == q->gpu_memory_bytes &&
           p->devices == q->devices && p->cpu_milli == q->cpu_milli &&
           p->memory_bytes == q->memory_bytes && a->only_node == b->only_node &&
           p->mig_count + q->mig_count + p->gpu_type_count + q->gpu_type_count + p->label_count +
                   q->label_count ==
               0;
}

static const struct sched_task *tasks_build(struct sim_world *w, uint32_t index)
{
    const struct sim_workload *from = &w->scenario->workloads[index];
    struct sched_task *tasks = arena_new_array(&w->arena, struct sched_task, from->task_count);
    struct sim_world_task *books =
        arena_new_array(&w->arena, struct sim_world_task, from->task_count);
    for (uint32_t i = 0; i < from->task_count; i++) {
        const struct sim_task *t = &from->tasks[i];
        bool same = i > 0 && request_same(t, &from->tasks[i - 1]);
        tasks[i] = (struct sched_task){
            .request = same ? tasks[i - 1].request : request_build(w, t),
            .group = t->group,
            .rank = t->rank,
        };
        books[i].request = tasks[i].request;
    }
    w->workloads[index].tasks = books;
    return tasks;
}

static const struct sched_group *groups_build(struct sim_world *w, const struct sim_workload *from)
{
    struct sched_group *groups =
        arena_new_array(&w->arena, struct sched_group, from->group_count + 1);
    for (uint32_t i = 0; i < from->group_count; i++)
        groups[i] = (struct sched_group){.name = from->groups[i].name,
                                         .min_tasks = from->groups[i].min_tasks,
                                         .required = from->groups[i].required};
    return groups;
}

static bool preemptible(const struct sim_workload *from)
{
    struct sched_config config;
    sched_config_default(&config);
    return from->preemptible == SIM_UNSET ? config.classes[from->class_].preemptible
                                          : from->preemptible != 0;
}

int sim_world_submit(struct sim_world *w, uint32_t index, struct err *err)
{
    const struct sim_workload *from = &w->scenario->workloads[index];
    struct sched_workload decl = {
        .id = id_of(index),
        .team = id_of(from->team),
        .age = from->age,
        .class_ = from->class_,
        .priority = from->priority,
        .preemptible = preemptible(from),
        .may_burst = from->may_burst,
        .tasks = tasks_build(w, index),
        .task_count = from->task_count,
        .min_tasks = from->min_tasks,
        .groups = groups_build(w, from),
        .group_count = from->group_count,
        .topology_required = from->topology_required,
        .topology_preferred = from->topology_preferred,
        .limit_ms = from->limit_ms,
        .expected_ms = from->expected_ms,
        .min_run_ms = from->min_run_ms,
        .max_unavailable = from->max_unavailable,
        .accepted = from->at_ms == SIM_AT_START,
    };
    struct sched_refusal refusal;
    int r = sched_workload_add(w->sched, &decl, &refusal);
    if (r == 0) {
        w->workloads[index].life = SIM_LIFE_KNOWN;
        sim_trace(w, "submit %s to team %s", from->name, from->team_name);
        return 0;
    }
    if (r == -E2BIG) {
        w->workloads[index].life = SIM_LIFE_REFUSED;
        sim_trace(w, "refuse %s: %s", from->name, sched_reason_name(refusal.reason));
        return 0;
    }
    return err_set(err, r, ERR_INVALID, NULL, NULL, "workload '%.80s' is not accepted: %s",
                   from->name, strerror(-r));
}
