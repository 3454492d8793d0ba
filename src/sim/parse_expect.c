/* SPDX-License-Identifier: Apache-2.0 */
/* What happens in a scenario, and what must hold then. */
#include "sim/scenario_fields.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

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
        return sim_parse_team(d, v, &e->team);
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

int sim_parse_events(struct sim_decoder *d, struct json_object *v, void *dst)
{
    const struct sim_event preset = {.team = sim_team_preset};
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_event), &preset, decode_event, &items,
                             &s->event_count);
    if (r == 0)
        s->events = items;
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
        FIELD(struct sim_expect_item, reason, sim_decode_name),
        FIELD(struct sim_expect_item, waits_for, sim_decode_name),
        FIELD(struct sim_expect_item, less_milli, sim_decode_amount),
        FIELD_AS(struct sim_expect_item, "start_s", start_ms, sim_decode_seconds),
        FIELD_AS(struct sim_expect_item, "run_s", run_ms, sim_decode_seconds),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_items(struct sim_decoder *d, struct json_object *v,
                        struct sim_expect_item **ret_items, uint32_t *ret_count)
{
    static const struct sim_expect_item preset = {.node = SIM_NO_INDEX,
                                                  .running_tasks = SIM_UNSET,
                                                  .less_milli = SIM_UNSET,
                                                  .start_ms = SIM_UNSET,
                                                  .run_ms = SIM_UNSET};
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
    return sim_parse_counts(d, v, &e->per_team, &e->per_team_count);
}

static int decode_per_prefix(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect *e = dst;
    return sim_parse_counts(d, v, &e->per_prefix, &e->per_prefix_count);
}

static int decode_placed(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_expect_placement *p = dst;
    return sim_parse_counts(d, v, &p->nodes, &p->node_count);
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
    return sim_parse_names(d, v, &e->evicted, &e->evicted_count);
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

int sim_parse_expects(struct sim_decoder *d, struct json_object *v, void *dst)
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
