/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From one line of JSON to a scenario: one table of fields a structure; the structures are in
 * parse_*.c, names are resolved in scenario_resolve.c.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/scenario_fields.h"

#define PARSE_DEPTH_MAX 16

DEFINE_CLEANUP(struct json_object *, json_object_put, json_putp)
DEFINE_CLEANUP(struct json_tokener *, json_tokener_free, json_tokener_freep)

static int decode_levels(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_scenario *s = dst;
    return sim_parse_names(d, v, &s->topology_levels, &s->topology_level_count);
}

static int decode_scenario(struct sim_decoder *d, struct json_object *v, struct sim_scenario *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_scenario, format, sim_decode_name),
        FIELD_NEEDED(struct sim_scenario, id, sim_decode_name),
        FIELD_NEEDED(struct sim_scenario, title, sim_decode_name),
        {"nodes", sim_parse_nodes, 0, SIM_REQUIRED},
        {"teams", sim_parse_teams, 0, SIM_REQUIRED},
        {"workloads", sim_parse_workloads, 0, SIM_REQUIRED},
        {"expect", sim_parse_expects, 0, SIM_REQUIRED},
        FIELD_WHOLE("events", sim_parse_events),
        FIELD_WHOLE("topology_levels", decode_levels),
        FIELD_AS(struct sim_scenario, "stale_gang_s", stale_gang_ms, sim_decode_seconds),
        FIELD_AS(struct sim_scenario, "hold_s", hold_ms, sim_decode_seconds),
        FIELD_AS(struct sim_scenario, "past_half_life_s", past_half_life_ms, sim_decode_seconds),
        FIELD(struct sim_scenario, moves_max, sim_decode_count),
        FIELD_AS(struct sim_scenario, "window_lead_s", window_lead_ms, sim_decode_seconds),
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
    struct sim_scenario s = {.stale_gang_ms = 60 * 1000,
                             .hold_ms = SIM_UNSET,
                             .moves_max = SIM_NO_INDEX,
                             .window_lead_ms = SIM_UNSET};
    r = decode_scenario(&d, value, &s);
    if (r < 0)
        return r;
    r = sim_scenario_resolve(&s, err);
    if (r < 0)
        return r;
    *ret_scenario = s;
    return 0;
}
