/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads of a scenario: requests, tasks, groups. */
#include "sim/scenario_fields.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static int decode_request_mig(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_request *q = dst;
    return sim_parse_mig(d, v, &q->mig, &q->mig_count);
}

static int decode_request_types(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_request *q = dst;
    return sim_parse_names(d, v, &q->gpu_types, &q->gpu_type_count);
}

static int decode_request_labels(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_request *q = dst;
    return sim_parse_pairs(d, v, &q->labels, &q->label_count);
}

static int decode_request(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD(struct sim_request, gpu_milli, sim_decode_amount),
        FIELD_AS(struct sim_request, "gpu_memory_mib", gpu_memory_bytes, sim_decode_mib),
        FIELD(struct sim_request, devices, sim_decode_count),
        FIELD(struct sim_request, cpu_milli, sim_decode_amount),
        FIELD_AS(struct sim_request, "memory_mib", memory_bytes, sim_decode_mib),
        FIELD_WHOLE("mig", decode_request_mig),
        FIELD_WHOLE("gpu_types", decode_request_types),
        FIELD_WHOLE("node_labels", decode_request_labels),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_task_state(struct sim_decoder *d, struct json_object *v, void *dst)
{
    const char *word;
    int r = sim_decode_name(d, v, &word);
    if (r < 0)
        return r;
    if (strcmp(word, "pending") != 0 && strcmp(word, "running") != 0)
        return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "use pending or running",
                       "'%.40s' is not a state of a task", word);
    *(bool *)dst = word[0] == 'r';
    return 0;
}

static int decode_task(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD(struct sim_task, request, decode_request),
        FIELD_AS(struct sim_task, "state", running, decode_task_state),
        FIELD_AS(struct sim_task, "node", node_name, sim_decode_name),
        FIELD(struct sim_task, device, sim_decode_name),
        FIELD_AS(struct sim_task, "group", group_name, sim_decode_name),
        FIELD(struct sim_task, rank, sim_decode_priority),
        FIELD_AS(struct sim_task, "only_node", only_node_name, sim_decode_name),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_group(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_group, name, sim_decode_name),
        FIELD_AS(struct sim_group, "min", min_tasks, sim_decode_count),
        FIELD(struct sim_group, required, sim_decode_name_or_null),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_topology(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_AS(struct sim_workload, "required", topology_required, sim_decode_name_or_null),
        FIELD_AS(struct sim_workload, "preferred", topology_preferred, sim_decode_name_or_null),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_tasks(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_task preset = {
        .request = {.devices = 1}, .node = SIM_NO_INDEX, .only_node = SIM_NO_INDEX};
    struct sim_workload *w = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_task), &preset, decode_task, &items,
                             &w->task_count);
    if (r == 0)
        w->tasks = items;
    return r;
}

static int decode_groups(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_workload *w = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_group), NULL, decode_group, &items,
                             &w->group_count);
    if (r == 0)
        w->groups = items;
    return r;
}

static int decode_class(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const char *const words[SCHED_CLASSES] = {"production", "training", "development",
                                                     "batch"};
    const char *word;
    int r = sim_decode_name(d, v, &word);
    if (r < 0)
        return r;
    for (int i = 0; i < SCHED_CLASSES; i++) {
        if (strcmp(word, words[i]) == 0) {
            *(enum sched_class *)dst = (enum sched_class)i;
            return 0;
        }
    }
    return err_set(d->err, -EINVAL, ERR_INVALID, NULL,
                   "use production, training, development or batch", "unknown class '%.40s'", word);
}

static int decode_preemptible(struct sim_decoder *d, struct json_object *v, void *dst)
{
    bool b;
    int r = sim_decode_bool(d, v, &b);
    if (r == 0)
        *(int32_t *)dst = b;
    return r;
}

static int decode_launch(struct sim_decoder *d, struct json_object *v, void *dst)
{
    const char *word;
    int r = sim_decode_name(d, v, &word);
    if (r < 0)
        return r;
    if (strcmp(word, "refused") != 0)
        return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "leave it out, or say refused",
                       "'%.40s' is not an outcome of a launch", word);
    *(bool *)dst = true;
    return 0;
}

static int decode_workload(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_workload, name, sim_decode_name),
        {"team", sim_decode_name, offsetof(struct sim_workload, team_name), SIM_REQUIRED},
        FIELD_AS(struct sim_workload, "class", class_, decode_class),
        FIELD(struct sim_workload, priority, sim_decode_priority),
        FIELD(struct sim_workload, preemptible, decode_preemptible),
        FIELD(struct sim_workload, may_burst, sim_decode_bool),
        FIELD_AS(struct sim_workload, "launch", launch_refused, decode_launch),
        FIELD(struct sim_workload, min_tasks, sim_decode_count),
        FIELD_AS(struct sim_workload, "at_s", at_ms, sim_decode_seconds),
        FIELD_AS(struct sim_workload, "run_s", run_ms, sim_decode_seconds),
        FIELD_AS(struct sim_workload, "limit_s", limit_ms, sim_decode_seconds),
        FIELD_AS(struct sim_workload, "expected_s", expected_ms, sim_decode_seconds),
        FIELD_AS(struct sim_workload, "stop_s", stop_ms, sim_decode_seconds),
        FIELD_AS(struct sim_workload, "min_run_s", min_run_ms, sim_decode_seconds),
        FIELD(struct sim_workload, max_unavailable, sim_decode_count),
        {"tasks", decode_tasks, 0, SIM_REQUIRED},
        FIELD_WHOLE("groups", decode_groups),
        FIELD_WHOLE("topology", decode_topology),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

int sim_parse_workloads(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_workload preset = {
        .class_ = SCHED_CLASS_TRAINING,
        .preemptible = SIM_UNSET,
        .may_burst = true,
        .min_tasks = SIM_NO_INDEX,
        .at_ms = SIM_AT_START,
        .run_ms = SIM_UNSET,
    };
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_workload), &preset, decode_workload, &items,
                             &s->workload_count);
    if (r == 0)
        s->workloads = items;
    return r;
}
