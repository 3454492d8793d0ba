/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of teams and nodes. Each says how its subject was before and how it is after, wholly or
 * only what changed. So they are gone through backwards, from how things are at the end: what a
 * change leaves out is as it was later.
 */
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "model/json.h"
#include "sim/past_internal.h"

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

/* ---- reading ------------------------------------------------------------------------------ */

static int bad(struct err *err, const char *field, const char *wanted)
{
    return err_set(err, -EINVAL, ERR_INVALID, field, NULL, "'%s' must be %s", field, wanted);
}

/* Of an older record there are none. */
static int read_levels(struct past *p, struct json_object *data, struct err *err)
{
    struct json_object *levels, *v;
    size_t count;

    if (!json_object_object_get_ex(data, "topology", &levels))
        return 0;
    if (!json_object_is_type(levels, json_type_array) ||
        json_object_array_length(levels) > PAST_LEVELS_MAX)
        return bad(err, "topology", "an array of at most 16 texts");
    count = json_object_array_length(levels);
    for (size_t i = 0; i < count; i++) {
        v = json_object_array_get_idx(levels, i);
        if (!json_object_is_type(v, json_type_string))
            return bad(err, "topology", "an array of at most 16 texts");
        p->topology[i] = arena_strdup(&p->arena, json_object_get_string(v));
    }
    p->level_count = (uint32_t)count;
    return 0;
}

static int read_config(struct past *p, struct json_object *data, struct err *err)
{
    int64_t moves = p->config.moves_max;
    const struct {
        const char *key;
        int64_t *value;
    } fields[] = {{"hold_ms", &p->config.hold_ms},
                  {"stale_gang_ms", &p->config.stale_gang_ms},
                  {"min_run_ms", &p->config.min_run_ms},
                  {"moves_max", &moves},
                  {"past_half_life_ms", &p->config.past_half_life_ms},
                  {"window_lead_ms", &p->config.window_lead_ms}};

    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        struct json_object *v;
        if (!json_object_object_get_ex(data, fields[i].key, &v))
            continue;
        if (!json_object_is_type(v, json_type_int) || json_object_get_int64(v) < 0 ||
            json_object_get_int64(v) > TIME_MAX_MS)
            return bad(err, fields[i].key, "a whole number from 0");
        *fields[i].value = json_object_get_int64(v);
    }
    p->config.moves_max = moves < UINT32_MAX ? (uint32_t)moves : UINT32_MAX;
    return read_levels(p, data, err);
}

/* RET_JSON is NULL where there is none. The id of the subject goes to RET_ID. */
static int read_side(struct past *p, struct json_object *data, const char *key,
                     const char **ret_json, int64_t *ret_id, struct err *err)
{
    struct json_object *v = NULL, *id = NULL;

    *ret_json = NULL;
    if (!json_object_object_get_ex(data, key, &v))
        return bad(err, key, "an object or null");
    if (v == NULL)
        return 0;
    if (!json_object_is_type(v, json_type_object) || !json_object_object_get_ex(v, "id", &id) ||
        !json_object_is_type(id, json_type_int) || json_object_get_int64(id) <= 0)
        return bad(err, key, "an object with an id");
    if (*ret_id != 0 && *ret_id != json_object_get_int64(id))
        return bad(err, "after", "about the same as 'before'");
    *ret_id = json_object_get_int64(id);
    *ret_json = arena_strdup(&p->arena, json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN));
    return 0;
}

static bool find_node(const struct past *p, uint64_t id, size_t *ret_index)
{
    for (size_t i = 0; i < p->nodes.len; i++)
        if (p->nodes.items[i].row.id == id) {
            *ret_index = i;
            return true;
        }
    return false;
}

int past_change_read(struct past *p, const char *kind, int64_t at_ms, struct json_object *data,
                     struct err *err)
{
    struct past_raw raw = {.at_ms = at_ms, .of_node = strcmp(kind, "node") == 0};
    const struct past_team *team;
    int64_t id = 0;

    if (p->raw.len > 0 && at_ms < p->raw.items[p->raw.len - 1].at_ms)
        return bad(err, "time_ms", "no earlier than that of the change before");
    if (strcmp(kind, "server") == 0)
        return read_config(p, data, err);
    if (!raw.of_node && strcmp(kind, "team") != 0)
        return bad(err, "change", "team, node or server");
    if (read_side(p, data, "before", &raw.before, &id, err) < 0 ||
        read_side(p, data, "after", &raw.after, &id, err) < 0)
        return -EINVAL;
    if (id == 0)
        return bad(err, "after", "an object where 'before' is null");
    if (raw.of_node && !find_node(p, (uint64_t)id, &raw.index))
        return bad(err, "id", "that of a node in a line before");
    if (!raw.of_node) {
        team = past_team_by_id(p, (uint64_t)id);
        if (team == NULL)
            return bad(err, "id", "that of a team in a line before");
        raw.index = (size_t)(team - p->teams.items);
    }
    vec_push(&p->raw, raw);
    return 0;
}

/* ---- backwards ---------------------------------------------------------------------------- */

/* How a team or node is at the time that has been reached. */
struct state {
    struct json_object *json; /* NULL until a change is about it */
    bool gone;
};

struct resolving {
    struct past *past;
    struct state *teams, *nodes;
    struct err *err;
};

static struct json_object *team_json(const struct model_team *row)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    model_team_encode(row, &w);
    return json_tokener_parse(strbuf_str(&text));
}

static struct json_object *node_json(const struct model_node *row)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    model_node_encode(row, &w);
    return json_tokener_parse(strbuf_str(&text));
}

static struct state *state_of(struct resolving *r, const struct past_raw *raw)
{
    struct state *s = raw->of_node ? &r->nodes[raw->index] : &r->teams[raw->index];

    if (s->json == NULL && raw->of_node)
        s->json = node_json(&r->past->nodes.items[raw->index].row);
    if (s->json == NULL) {
        s->json = team_json(&r->past->teams.items[raw->index].row);
        s->gone = r->past->teams.items[raw->index].deleted;
    }
    return s;
}

/* What SIDE says goes over what is known of it. */
static int overlay(struct state *s, const char *side, struct err *err)
{
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    int e;

    s->gone = side == NULL;
    if (side == NULL)
        return 0;
    e = model_json_parse(side, strlen(side), &json, err);
    if (e < 0)
        return e;
    json_object_object_foreach(json, key, value)
        json_object_object_add(s->json, key, json_object_get(value));
    return 0;
}

/* The youngest of that name, but one that is there at the end comes first. */
static uint64_t team_id_by_name(const struct past *p, const char *name)
{
    const struct past_team *t = past_team_by_name(p, name);

    for (size_t i = p->teams.len; t == NULL && i-- > 0;)
        if (strcmp(p->teams.items[i].row.name, name) == 0)
            t = &p->teams.items[i];
    return t ? t->row.id : 0;
}

static int decode_team(struct resolving *r, const struct state *s, size_t index,
                       struct model_team *ret)
{
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    struct model_team team;
    int e;

    json_object_deep_copy(s->json, &json, NULL);
    json_object_object_del(json, "id"); /* the server's, not the spec's */
    json_object_object_del(json, "version");
    model_team_init(&team);
    e = model_team_decode(json, &r->past->arena, &team, r->err);
    if (e < 0)
        return e;
    team.id = r->past->teams.items[index].row.id;
    team.parent_id = team.parent ? team_id_by_name(r->past, team.parent) : 0;
    *ret = team;
    return 0;
}

static int decode_node(struct resolving *r, const struct state *s, struct model_node *ret)
{
    const char *text = json_object_to_json_string_ext(s->json, JSON_C_TO_STRING_PLAIN);
    struct model_node node = {0};
    int e = model_node_decode(text, strlen(text), &r->past->arena, &node, r->err);

    if (e == 0)
        *ret = node;
    return e;
}

static int64_t capacity(const struct model_node *n, bool gone)
{
    return gone ? 0 : past_node_capacity(n);
}

static int decode(struct resolving *r, const struct past_raw *raw, const struct state *s,
                  struct past_change *c)
{
    *c = (struct past_change){
        .at_ms = raw->at_ms, .of_node = raw->of_node, .index = raw->index, .gone = s->gone};
    return raw->of_node ? decode_node(r, s, &c->node) : decode_team(r, s, raw->index, &c->team);
}

static int step_back(struct resolving *r, const struct past_raw *raw, struct past_change *c)
{
    struct state *s = state_of(r, raw);
    struct past_change before = {0};
    int e;

    /* Of one that goes, what it was like is said before. */
    e = overlay(s, raw->after, r->err);
    if (e == 0 && raw->after == NULL)
        e = overlay(s, raw->before, r->err);
    s->gone = raw->after == NULL;
    if (e == 0)
        e = decode(r, raw, s, c);
    if (e == 0)
        e = overlay(s, raw->before, r->err);
    if (e == 0 && raw->of_node) {
        e = decode(r, raw, s, &before);
        c->more_milli = capacity(&c->node, c->gone) - capacity(&before.node, before.gone);
    }
    return e;
}

/* What was there before any change. */
static int begin_with(struct resolving *r)
{
    struct past *p = r->past;
    int e = 0;

    for (size_t i = 0; e == 0 && i < p->teams.len; i++) {
        struct past_team *t = &p->teams.items[i];
        t->first = t->row;
        t->absent = r->teams[i].gone;
        if (r->teams[i].json)
            e = decode_team(r, &r->teams[i], i, &t->first);
    }
    for (size_t i = 0; e == 0 && i < p->nodes.len; i++) {
        struct past_node *n = &p->nodes.items[i];
        n->first = n->row;
        n->absent = r->nodes[i].gone;
        if (r->nodes[i].json)
            e = decode_node(r, &r->nodes[i], &n->first);
    }
    return e;
}

/* Changes that were made before the first submit have been made in the beginning. */
static void fold(struct past *p)
{
    size_t kept = 0;

    for (size_t i = 0; i < p->changes.len; i++) {
        const struct past_change *c = &p->changes.items[i];
        if (c->at_ms > p->from_ms) {
            p->changes.items[kept++] = *c;
        } else if (c->of_node) {
            p->nodes.items[c->index].first = c->node;
            p->nodes.items[c->index].absent = c->gone;
        } else {
            p->teams.items[c->index].first = c->team;
            p->teams.items[c->index].absent = c->gone;
        }
    }
    p->changes.len = kept;
}

static void states_free(struct state *states, size_t count)
{
    for (size_t i = 0; i < count; i++)
        json_object_put(states[i].json);
    free(states);
}

int past_change_resolve(struct past *p, struct err *err)
{
    struct resolving r = {.past = p,
                          .teams = calloc(p->teams.len + 1, sizeof(*r.teams)),
                          .nodes = calloc(p->nodes.len + 1, sizeof(*r.nodes)),
                          .err = err};
    int e = 0;

    if (r.teams == NULL || r.nodes == NULL)
        abort();
    for (size_t i = 0; i < p->raw.len; i++)
        vec_push(&p->changes, (struct past_change){0});
    for (size_t i = p->raw.len; e == 0 && i-- > 0;) {
        e = step_back(&r, &p->raw.items[i], &p->changes.items[i]);
        if (e < 0)
            err_prefix_field(err, "changes[%zu]", i);
    }
    if (e == 0)
        e = begin_with(&r);
    if (e == 0)
        fold(p);
    states_free(r.teams, p->teams.len);
    states_free(r.nodes, p->nodes.len);
    return e;
}
