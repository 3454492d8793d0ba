/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one line of JSON to a scenario: one table of fields a structure, inner structures first.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/decode.h"
#include "sim/scenario_data.h"

#define PARSE_DEPTH_MAX 16

DEFINE_CLEANUP(struct json_object *, json_object_put, json_putp)
DEFINE_CLEANUP(struct json_tokener *, json_tokener_free, json_tokener_freep)

/* clang-format off */
#define FIELD(type, member, fn) {#member, fn, offsetof(type, member), 0}
#define FIELD_AS(type, name, member, fn) {name, fn, offsetof(type, member), 0}
#define FIELD_NEEDED(type, member, fn) {#member, fn, offsetof(type, member), SIM_REQUIRED}
#define FIELD_WHOLE(name, fn) {name, fn, 0, 0} /* the decoder sees the whole structure */
/* clang-format on */

/* ---- small pieces ------------------------------------------------------------------------ */

static int decode_pair(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return sim_decode_name(d, v, &((struct sim_pair *)dst)->value);
}

static int decode_counted(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return sim_decode_count(d, v, &((struct sim_count *)dst)->count);
}

static int decode_names(struct sim_decoder *d, struct json_object *v, const char *const **ret_items,
                        uint32_t *ret_count)
{
    void *items;
    int r = sim_decode_array(d, v, sizeof(char *), NULL, sim_decode_name, &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

static int decode_pairs(struct sim_decoder *d, struct json_object *v,
                        const struct sim_pair **ret_items, uint32_t *ret_count)
{
    void *items;
    int r = sim_decode_map(d, v, sizeof(struct sim_pair), NULL, decode_pair, &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

static int decode_counts(struct sim_decoder *d, struct json_object *v, struct sim_count **ret_items,
                         uint32_t *ret_count)
{
    static const struct sim_count preset = {.index = SIM_NO_INDEX};
    void *items;
    int r =
        sim_decode_map(d, v, sizeof(struct sim_count), &preset, decode_counted, &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

static int decode_mig(struct sim_decoder *d, struct json_object *v,
                      const struct sim_count **ret_items, uint32_t *ret_count)
{
    struct sim_count *items = NULL;
    int r = decode_counts(d, v, &items, ret_count);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < *ret_count; i++) {
        if (sim_mig_milli(items[i].key) == 0)
            return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "write it like 1g.10gb",
                           "'%.40s' is not a MIG profile", items[i].key);
    }
    *ret_items = items;
    return 0;
}

/* ---- nodes and teams --------------------------------------------------------------------- */

static int decode_node_labels(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_node *n = dst;
    return decode_pairs(d, v, &n->labels, &n->label_count);
}

static int decode_node_mig(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_node *n = dst;
    return decode_mig(d, v, &n->mig, &n->mig_count);
}

static int decode_node(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_node, name, sim_decode_name),
        FIELD(struct sim_node, gpus, sim_decode_count),
        FIELD_AS(struct sim_node, "gpu_memory_mib", gpu_memory_bytes, sim_decode_mib),
        FIELD(struct sim_node, cpu_milli, sim_decode_amount),
        FIELD_AS(struct sim_node, "memory_mib", memory_bytes, sim_decode_mib),
        FIELD(struct sim_node, gpu_type, sim_decode_name),
        FIELD_WHOLE("labels", decode_node_labels),
        FIELD_WHOLE("mig", decode_node_mig),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_amounts(struct sim_decoder *d, struct json_object *v, int64_t absent,
                          struct sim_amounts *ret)
{
    static const struct sim_field fields[] = {
        FIELD_AS(struct sim_amounts, "gpu_milli", v[SCHED_GPU_MILLI], sim_decode_amount),
        FIELD_AS(struct sim_amounts, "cpu_milli", v[SCHED_CPU_MILLI], sim_decode_amount),
        FIELD_AS(struct sim_amounts, "memory_mib", v[SCHED_MEMORY_BYTES], sim_decode_mib),
    };
    for (int i = 0; i < SCHED_RESOURCES; i++)
        ret->v[i] = v == NULL ? SCHED_UNLIMITED : absent;
    return v == NULL ? 0 : sim_decode_object(d, v, fields, ARRAY_LEN(fields), ret);
}

static int decode_guarantee(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_amounts(d, v, 0, dst);
}

static int decode_limit(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_amounts(d, v, SCHED_UNLIMITED, dst);
}

static const struct sim_team team_preset = {
    .limit = {{SCHED_UNLIMITED, SCHED_UNLIMITED, SCHED_UNLIMITED}},
    .weight = 1,
    .priority = 100,
    .parent = SIM_NO_INDEX,
};

static int decode_team(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_team, name, sim_decode_name),
        FIELD_AS(struct sim_team, "parent", parent_name, sim_decode_name_or_null),
        FIELD(struct sim_team, guarantee, decode_guarantee),
        FIELD(struct sim_team, limit, decode_limit),
        FIELD(struct sim_team, weight, sim_decode_amount),
        FIELD(struct sim_team, priority, sim_decode_priority),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

/* ---- workloads --------------------------------------------------------------------------- */

static int decode_request_mig(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_request *q = dst;
    return decode_mig(d, v, &q->mig, &q->mig_count);
}

static int decode_request_types(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_request *q = dst;
    return decode_names(d, v, &q->gpu_types, &q->gpu_type_count);
}

static int decode_request_labels(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_request *q = dst;
    return decode_pairs(d, v, &q->labels, &q->label_count);
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
        FIELD_AS(struct sim_workload, "stop_s", stop_ms, sim_decode_seconds),
        FIELD_AS(struct sim_workload, "min_run_s", min_run_ms, sim_decode_seconds),
        {"tasks", decode_tasks, 0, SIM_REQUIRED},
        FIELD_WHOLE("groups", decode_groups),
        FIELD_WHOLE("topology", decode_topology),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

/* ---- events ------------------------------------------------------------------------------ */

static int decode_subject(struct sim_decoder *d, struct json_object *v, void *dst,
                          enum sim_event_kind kind)
{
    struct sim_event *e = dst;
    if (e->kind != SIM_EVENT_NONE)
        return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "write two events",
                       "an event says one thing");
    e->kind = kind;
    if (kind == SIM_EVENT_TEAM)
        return decode_team(d, v, &e->team);
    return sim_decode_name(d, v, &e->subject);
}

static int decode_node_down(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_NODE_DOWN);
}

static int decode_node_up(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_NODE_UP);
}

static int decode_node_drain(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_NODE_DRAIN);
}

static int decode_node_undrain(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_NODE_UNDRAIN);
}

static int decode_cancel(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_CANCEL);
}

static int decode_task_failed(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_TASK_FAILED);
}

static int decode_team_event(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_subject(d, v, dst, SIM_EVENT_TEAM);
}

static int decode_event(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        {"at_s", sim_decode_seconds, offsetof(struct sim_event, at_ms), SIM_REQUIRED},
        FIELD_WHOLE("node_down", decode_node_down),
        FIELD_WHOLE("node_up", decode_node_up),
        FIELD_WHOLE("node_drain", decode_node_drain),
        FIELD_WHOLE("node_undrain", decode_node_undrain),
        FIELD_WHOLE("cancel", decode_cancel),
        FIELD_WHOLE("task_failed", decode_task_failed),
        FIELD_WHOLE("team", decode_team_event),
    };
    int r = sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
    if (r == 0 && ((struct sim_event *)dst)->kind == SIM_EVENT_NONE)
        return err_set(d->err, -EINVAL, ERR_MISSING, NULL, NULL, "the event does not say what");
    return r;
}

/* ---- expectations ------------------------------------------------------------------------ */

static int decode_state(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct {
        const char *word;
        enum sim_state state;
    } words[] = {
        {"pending", SIM_STATE_PENDING},
        {"running", SIM_STATE_RUNNING},
        {"finished", SIM_STATE_FINISHED},
        {"refused", SIM_STATE_REFUSED},
    };
    const char *word;
    int r = sim_decode_name(d, v, &word);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(word, words[i].word) == 0) {
            *(enum sim_state *)dst = words[i].state;
            return 0;
        }
    }
    return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "use pending, running, finished or refused",
                   "unknown state '%.40s'", word);
}

static int decode_expect_item(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD(struct sim_expect_item, state, decode_state),
        FIELD_AS(struct sim_expect_item, "node", node_name, sim_decode_name),
        FIELD(struct sim_expect_item, running_tasks, sim_decode_amount),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_items(struct sim_decoder *d, struct json_object *v,
                        struct sim_expect_item **ret_items, uint32_t *ret_count)
{
    static const struct sim_expect_item preset = {.node = SIM_NO_INDEX, .running_tasks = SIM_UNSET};
    void *items;
    int r = sim_decode_map(d, v, sizeof(struct sim_expect_item), &preset, decode_expect_item,
                           &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

static int decode_expect_workloads(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    return decode_items(d, v, &e->workloads, &e->workload_count);
}

static int decode_expect_tasks(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    return decode_items(d, v, &e->tasks, &e->task_count);
}

static int decode_per_team(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    return decode_counts(d, v, &e->per_team, &e->per_team_count);
}

static int decode_per_prefix(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    return decode_counts(d, v, &e->per_prefix, &e->per_prefix_count);
}

static int decode_placed(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect_placement *p = dst;
    return decode_counts(d, v, &p->nodes, &p->node_count);
}

static int decode_placement(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    void *items;
    int r = sim_decode_map(d, v, sizeof(struct sim_expect_placement), NULL, decode_placed, &items,
                           &e->placement_count);
    if (r == 0)
        e->placement = items;
    return r;
}

static int decode_evicted(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    e->has_evicted = true;
    return decode_names(d, v, &e->evicted, &e->evicted_count);
}

static int decode_when(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        {"at_s", sim_decode_seconds, offsetof(struct sim_expect, at_ms), SIM_REQUIRED},
    };
    struct sim_expect *e = dst;
    if (!json_object_is_type(v, json_type_string))
        return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
    if (strcmp(json_object_get_string(v), "settled") != 0)
        return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "use \"settled\" or {\"at_s\": 10}",
                       "'%.40s' is not an instant", json_object_get_string(v));
    e->settled = true;
    return 0;
}

static int decode_expect(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        {"when", decode_when, 0, SIM_REQUIRED},
        FIELD_WHOLE("workloads", decode_expect_workloads),
        FIELD_WHOLE("tasks", decode_expect_tasks),
        FIELD_WHOLE("running_per_team", decode_per_team),
        FIELD_WHOLE("running_per_prefix", decode_per_prefix),
        FIELD_WHOLE("placement", decode_placement),
        FIELD_WHOLE("evicted", decode_evicted),
        FIELD(struct sim_expect, evictions_total, sim_decode_amount),
        FIELD(struct sim_expect, max_evictions_per_round, sim_decode_amount),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

/* ---- the scenario ------------------------------------------------------------------------ */

static int decode_nodes(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_node preset = {.cpu_milli = SCHED_UNLIMITED,
                                           .memory_bytes = SCHED_UNLIMITED};
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_node), &preset, decode_node, &items,
                             &s->node_count);
    if (r == 0)
        s->nodes = items;
    return r;
}

static int decode_teams(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_team), &team_preset, decode_team, &items,
                             &s->team_count);
    if (r == 0)
        s->teams = items;
    return r;
}

static int decode_workloads(struct sim_decoder *d, struct json_object *v, void *dst)
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

static int decode_events(struct sim_decoder *d, struct json_object *v, void *dst)
{
    const struct sim_event preset = {.team = team_preset};
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_event), &preset, decode_event, &items,
                             &s->event_count);
    if (r == 0)
        s->events = items;
    return r;
}

static int decode_expects(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_expect preset = {.evictions_total = SIM_UNSET,
                                             .max_evictions_per_round = SIM_UNSET};
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_expect), &preset, decode_expect, &items,
                             &s->expect_count);
    if (r == 0)
        s->expects = items;
    return r;
}

static int decode_levels(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_scenario *s = dst;
    return decode_names(d, v, &s->topology_levels, &s->topology_level_count);
}

static int decode_scenario(struct sim_decoder *d, struct json_object *v, struct sim_scenario *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_scenario, format, sim_decode_name),
        FIELD_NEEDED(struct sim_scenario, id, sim_decode_name),
        FIELD_NEEDED(struct sim_scenario, title, sim_decode_name),
        {"nodes", decode_nodes, 0, SIM_REQUIRED},
        {"teams", decode_teams, 0, SIM_REQUIRED},
        {"workloads", decode_workloads, 0, SIM_REQUIRED},
        {"expect", decode_expects, 0, SIM_REQUIRED},
        FIELD_WHOLE("events", decode_events),
        FIELD_WHOLE("topology_levels", decode_levels),
        FIELD_AS(struct sim_scenario, "stale_gang_s", stale_gang_ms, sim_decode_seconds),
        FIELD_AS(struct sim_scenario, "hold_s", hold_ms, sim_decode_seconds),
    };
    int r = sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
    if (r < 0)
        return r;
    if (strcmp(dst->format, "allot-scenario-1") != 0)
        return err_set(d->err, -EINVAL, ERR_UNSUPPORTED, "format", "use allot-scenario-1",
                       "unknown format '%.40s'", dst->format);
    return 0;
}

static int parse_json(const char *text, size_t len, struct json_object **ret_value, struct err *err)
{
    _cleanup_(json_tokener_freep) struct json_tokener *t = json_tokener_new_ex(PARSE_DEPTH_MAX);
    if (t == NULL)
        return -ENOMEM;
    json_tokener_set_flags(t, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    /* the NUL is part of the text, so that a document that ends early is told from a short read */
    struct json_object *value = json_tokener_parse_ex(t, text, (int)len + 1);
    enum json_tokener_error e = json_tokener_get_error(t);
    if (e != json_tokener_success) {
        json_object_put(value);
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "not JSON: %s at byte %zu",
                       json_tokener_error_desc(e), json_tokener_get_parse_end(t));
    }
    *ret_value = value;
    return 0;
}

int sim_scenario_parse(struct arena *arena, const char *text, size_t len,
                       struct sim_scenario *ret_scenario, struct err *err)
{
    if (memchr(text, '\0', len) != NULL)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "the line holds a NUL byte");
    _cleanup_(json_putp) struct json_object *value = NULL;
    int r = parse_json(text, len, &value, err);
    if (r < 0)
        return r;
    struct sim_decoder d = {.arena = arena, .err = err};
    struct sim_scenario s = {.stale_gang_ms = 60 * 1000, .hold_ms = SIM_UNSET};
    r = decode_scenario(&d, value, &s);
    if (r < 0)
        return r;
    r = sim_scenario_resolve(&s, err);
    if (r < 0)
        return r;
    *ret_scenario = s;
    return 0;
}
