/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/whatif_change.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/qty.h"
#include "base/yaml.h"
#include "model/manifest.h"
#include "model/state.h"
#include "model/team_types.h"

#define NODES_MAX 100000
#define FIELD_DEPTH_MAX 4

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

/* ---- teams -------------------------------------------------------------------------------- */

void whatif_wish_init(struct whatif_wish *w, struct past *past)
{
    *w = (struct whatif_wish){
        .past = past,
        .teams = arena_new_array(&past->arena, struct whatif_wished, past->teams.len + 1)};
}

void whatif_wish_done(struct whatif_wish *w)
{
    for (size_t i = 0; w->past && i < w->past->teams.len; i++)
        json_object_put(w->teams[i].body);
    strbuf_done(&w->notes);
}

/* Objects are joined, all else is replaced. */
static void merge(struct json_object *into, struct json_object *from)
{
    json_object_object_foreach(from, key, value)
    {
        struct json_object *there = NULL;
        json_object_object_get_ex(into, key, &there);
        if (json_object_is_type(there, json_type_object) &&
            json_object_is_type(value, json_type_object))
            merge(there, value);
        else
            json_object_object_add(into, key, json_object_get(value));
    }
}

/* Takes BODY over. */
static int wish(struct whatif_wish *w, const char *name, struct json_object *body, bool replaces,
                struct err *err)
{
    struct past_team *team = past_team_by_name(w->past, name);
    struct json_object *said = NULL;
    struct whatif_wished *t;

    if (team == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL,
                       "name a team of the record; a new one would have no work in it",
                       "there is no team '%.100s' in the history", name);
    if (json_object_object_get_ex(body, "name", &said) &&
        (!json_object_is_type(said, json_type_string) ||
         strcmp(json_object_get_string(said), name) != 0))
        return err_set(err, -EINVAL, ERR_UNSUPPORTED, "name", "leave the name as it is",
                       "team '%.100s' cannot be given another name in a replay", name);
    t = &w->teams[team - w->past->teams.items];
    t->replaces |= replaces;
    if (t->body == NULL)
        t->body = json_object_new_object();
    merge(t->body, body);
    return 0;
}

/* {"guarantee": {"gpu": "6"}} of "guarantee.gpu" and "6". */
static struct json_object *nest(char *path, const char *value)
{
    char *dot = strchr(path, '.');
    struct json_object *o = json_object_new_object(), *v = NULL;

    if (dot) {
        *dot = '\0';
        v = nest(dot + 1, value);
    } else if (strcmp(value, "none") != 0) {
        v = json_tokener_parse(value);
        if (!json_object_is_type(v, json_type_int)) {
            json_object_put(v);
            v = json_object_new_string(value);
        }
    }
    json_object_object_add(o, path, v);
    return o;
}

/* "a.guarantee=3" is meant well, but of what? */
static int check_field(const char *name, const char *field, const char *value, struct err *err)
{
    int dots = 0;

    for (const char *p = field; (p = strchr(p, '.')) != NULL; p++)
        dots++;
    if (dots >= FIELD_DEPTH_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, "team", "write nlp.guarantee.gpu=6",
                       "'%.60s' is no field of a team", field);
    if (strcmp(field, "guarantee") != 0 && strcmp(field, "limit") != 0)
        return 0;
    char remedy[160];
    snprintf(remedy, sizeof(remedy), "write %.40s.%s.gpu=%.20s; there are also cpu and memory",
             name, field, value);
    return err_set(err, -EINVAL, ERR_INVALID, field, remedy,
                   "a %s is of gpu, cpu or memory: '%.40s.%s=%.20s' does not say which", field,
                   name, field, value);
}

/* Names may hold dots: the last one before a field whose left is a team, or the first one. */
static char *end_of_name(struct past *past, char *words, const char *equals)
{
    char *found = strchr(words, '.');

    for (char *dot = found; dot && equals && dot < equals; dot = strchr(dot + 1, '.')) {
        *dot = '\0';
        if (past_team_by_name(past, words))
            found = dot;
        *dot = '.';
    }
    return found;
}

int whatif_wish_team(struct whatif_wish *w, const char *words, struct err *err)
{
    char *name = arena_strdup(&w->past->arena, words), *equals = strchr(name, '=');
    char *dot = end_of_name(w->past, name, equals);
    int e;

    if (equals == NULL || dot == NULL || dot > equals || dot == name || equals[1] == '\0')
        return err_set(err, -EINVAL, ERR_INVALID, "team",
                       "write TEAM.FIELD=VALUE: nlp.guarantee.gpu=6, nlp.weight=2, nlp.quota=hard",
                       "'%.100s' is no change of a team", words);
    *dot = *equals = '\0';
    e = check_field(name, dot + 1, equals + 1, err);
    if (e < 0)
        return e;
    _cleanup_(json_object_putp) struct json_object *body = nest(dot + 1, equals + 1);
    return wish(w, name, body, false, err);
}

static int wish_document(struct whatif_wish *w, struct json_object *doc, struct err *err)
{
    for (size_t i = 0; i < model_manifest_count(doc); i++) {
        struct model_manifest m;
        int e = model_manifest_decode(model_manifest_item(doc, i), &w->past->arena, &m, err);
        if (e < 0)
            return e;
        if (m.kind != MODEL_MANIFEST_TEAM)
            return err_set(err, -EINVAL, ERR_INVALID, "kind", "give manifests of teams alone",
                           "a %s is no team", m.source);
        if (m.ignored)
            strbuf_addf(&w->notes, "%s of %s '%s' has no meaning here\n", m.ignored, m.source,
                        m.name);
        _cleanup_(json_object_putp) struct json_object *body = json_tokener_parse(m.body);
        e = wish(w, m.name, body, true, err);
        if (e < 0)
            return e;
    }
    return 0;
}

int whatif_wish_teams(struct whatif_wish *w, const char *path, struct err *err)
{
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    _cleanup_free_ char *text = NULL;
    size_t len;
    int e = io_read_file(AT_FDCWD, path, YAML_SIZE_MAX, &text, &len);

    if (e < 0)
        return err_set(err, e, ERR_NOT_FOUND, NULL, "name a file of Team manifests",
                       "'%.200s' cannot be read: %s", path, strerror(-e));
    e = yaml_to_json(text, len, &json, err);
    if (e < 0)
        return e;
    _cleanup_(json_object_putp) struct json_object *all = json_tokener_parse(strbuf_str(&json));
    if (json_object_array_length(all) == 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "write Team manifests into it",
                       "'%.200s' holds no teams", path);
    for (size_t i = 0; e == 0 && i < json_object_array_length(all); i++)
        e = wish_document(w, json_object_array_get_idx(all, i), err);
    return e;
}

/* ---- granted ------------------------------------------------------------------------------ */

static int set_parent(struct past *past, struct model_team *row, struct err *err)
{
    const struct past_team *parent = row->parent ? past_team_by_name(past, row->parent) : NULL;

    if (row->parent && parent == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, "parent", "name a team of the record",
                       "there is no team '%.100s' in the history to be above '%.100s'", row->parent,
                       row->name);
    row->parent_id = parent ? parent->row.id : 0;
    for (size_t i = 0; parent && i < past->jobs.len; i++)
        if (past->jobs.items[i].team == parent->row.id)
            return err_set(err, -EINVAL, ERR_CONFLICT, "parent",
                           "work is in teams without others below them: choose another parent",
                           "team '%.100s' has work of its own and cannot be above '%.100s'",
                           row->parent, row->name);
    return 0;
}

/* Those of a hard quota follow the guarantees, whatever these become. */
static void forget_limits(struct model_team *t, struct arena *arena)
{
    for (int r = 0; r < MODEL_RESOURCE_COUNT; r++)
        t->limit[r] = MODEL_UNLIMITED;
    model_team_clear_types(t, true, arena);
}

/* ROW is how the team is at some time. */
static int grant(struct past *past, const struct whatif_wished *t, struct model_team *row,
                 struct err *err)
{
    struct model_team changed = *row;
    struct err cause = ERR_INIT;
    int e;

    if (t->replaces) {
        model_team_init(&changed);
        changed.id = row->id;
        changed.name = row->name;
    } else if (row->quota == MODEL_QUOTA_HARD) {
        forget_limits(&changed, &past->arena);
    }
    e = model_team_decode(t->body, &past->arena, &changed, &cause);
    if (e < 0)
        return err_set(err, e, cause.code, cause.field,
                       *cause.remedy ? cause.remedy
                                     : "fields are as nlp.guarantee.gpu=6, nlp.limit.gpu=8, "
                                       "nlp.weight=2, nlp.priority=200, nlp.quota=hard",
                       "team '%s': %s", row->name, cause.text);
    changed.name = row->name;
    if (t->replaces || json_object_object_get_ex(t->body, "parent", NULL))
        e = set_parent(past, &changed, err);
    if (e == 0)
        *row = changed;
    return e;
}

/* PARENTS are those of all teams at one time. */
static int check_parents(const struct past *past, const uint64_t *parents, size_t index,
                         struct err *err)
{
    uint64_t above = parents[index];

    for (int depth = 1; above; depth++) {
        const struct past_team *t = past_team_by_id(past, above);
        if (depth > MODEL_TEAM_DEPTH_MAX)
            return err_set(err, -EINVAL, ERR_INVALID, "parent", "choose another parent",
                           "team '%s' would be below itself, or too deep",
                           past->teams.items[index].row.name);
        above = t ? parents[t - past->teams.items] : 0;
    }
    return 0;
}

/* Nobody may be above himself, at any time. */
static int check_tree(const struct past *past, const struct whatif_setup *setup, struct err *err)
{
    size_t n = past->teams.len;
    uint64_t *parents = calloc(n + 1, sizeof(*parents));
    int e = 0;

    if (parents == NULL)
        abort();
    for (size_t i = 0; i < n; i++)
        parents[i] = setup->teams[i].row.parent_id;
    for (size_t i = 0; e == 0 && i < n; i++)
        e = check_parents(past, parents, i, err);
    for (size_t k = 0; e == 0 && k < setup->change_count; k++) {
        const struct past_change *c = &setup->changes[k];
        if (c->of_node)
            continue;
        parents[c->index] = c->team.parent_id;
        e = check_parents(past, parents, c->index, err);
    }
    free(parents);
    return e;
}

int whatif_wish_grant(struct whatif_wish *w, struct whatif_setup *setup, struct err *err)
{
    struct past *past = w->past;
    int e = 0;

    for (size_t i = 0; e == 0 && i < past->teams.len; i++) {
        if (w->teams[i].body == NULL)
            continue;
        setup->accepted = false;
        e = grant(past, &w->teams[i], &setup->teams[i].row, err);
        for (size_t k = 0; e == 0 && k < setup->change_count; k++)
            if (!setup->changes[k].of_node && setup->changes[k].index == i)
                e = grant(past, &w->teams[i], &setup->changes[k].team, err);
    }
    return e < 0 ? e : check_tree(past, setup, err);
}

/* ---- nodes -------------------------------------------------------------------------------- */

typedef VEC(struct whatif_node) node_list;

static int bad_nodes(const char *spec, const char *why, struct err *err)
{
    return err_set(err, -EINVAL, ERR_INVALID, "nodes",
                   "write NODESxGPUSxTYPE: 4x8xH100 is four nodes of eight H100, 4x8xH100,2x4xA100 "
                   "has two of four A100 beside them, +1x8xH100 is one more than there were",
                   "'%.100s' is no list of nodes%s%s", spec, why ? ": " : "", why ? why : "");
}

/* As on a server, each is a host of its own. */
static struct whatif_node new_node(struct past *past, uint64_t id,
                                   const struct model_device *devices, int32_t device_count)
{
    struct model_pair *label = arena_new(&past->arena, struct model_pair);
    const char *name = arena_printf(&past->arena, "n%llu", (unsigned long long)id);

    *label = (struct model_pair){"host", name};
    return (struct whatif_node){.row = {.id = id,
                                        .name = name,
                                        .state = MODEL_NODE_UP,
                                        .gpu_type = devices[0].type,
                                        .cpu_milli = SCHED_UNLIMITED,
                                        .memory_bytes = SCHED_UNLIMITED,
                                        .devices = devices,
                                        .device_count = device_count,
                                        .labels = label,
                                        .label_count = 1}};
}

static int add_nodes(struct past *past, const char *spec, uint64_t *last_id, node_list *nodes,
                     struct err *err)
{
    const struct model_device *devices;
    const char *x = strchr(spec, 'x');
    struct err cause = ERR_INIT;
    int32_t device_count;
    int64_t count;

    if (x == NULL || x - spec > 6 ||
        qty_parse_int(arena_strndup(&past->arena, spec, (size_t)(x - spec)), &count, NULL) < 0)
        return bad_nodes(spec, NULL, err);
    if (count < 1 || count > NODES_MAX)
        return bad_nodes(spec, "1 to 100000 nodes can be replayed", err);
    if (model_devices_from_spec(x + 1, &past->arena, &devices, &device_count, &cause) < 0)
        return bad_nodes(spec, strchr(x + 1, 'x') ? cause.text : "how many GPUs has each?", err);
    for (int64_t i = 0; i < count; i++)
        vec_push(nodes, new_node(past, ++*last_id, devices, device_count));
    return 0;
}

/* Nodes that are not there any more cannot be lost. */
static void forget_node_changes(struct whatif_setup *setup)
{
    size_t kept = 0;

    for (size_t i = 0; i < setup->change_count; i++)
        if (!setup->changes[i].of_node)
            setup->changes[kept++] = setup->changes[i];
    setup->change_count = kept;
}

static int take_nodes(struct past *past, struct whatif_setup *setup, const node_list *nodes,
                      size_t kept, struct err *err)
{
    __int128 time = kept ? setup->capacity_milli_ms : 0;
    int64_t milli = 0;

    for (size_t i = kept; i < nodes->len; i++)
        milli += past_node_capacity(&nodes->items[i].row);
    if (nodes->len == 0 || nodes->len > NODES_MAX)
        return bad_nodes("", "1 to 100000 nodes can be replayed", err);
    if (!past_can_add_up(past, (__int128)milli + (kept ? setup->capacity_milli : 0)))
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "nodes", "give fewer",
                       "more GPU time than can be added up in so long a record");
    if (kept == 0) {
        forget_node_changes(setup);
        setup->accepted = false;
    }
    setup->nodes = arena_new_array(&past->arena, struct whatif_node, nodes->len);
    memcpy(setup->nodes, nodes->items, nodes->len * sizeof(*setup->nodes));
    setup->node_count = nodes->len;
    setup->capacity_milli = milli + (kept ? setup->capacity_milli : 0);
    setup->capacity_milli_ms = (int64_t)(time + (__int128)milli * (past->until_ms - past->from_ms));
    return 0;
}

int whatif_change_nodes(struct past *past, struct whatif_setup *setup, const char *spec,
                        struct err *err)
{
    bool beside = *spec == '+';
    char *words = arena_strdup(&past->arena, spec + beside), *rest = NULL;
    node_list nodes = {0};
    uint64_t last_id = 0;
    int e = 0;

    for (size_t i = 0; i < setup->node_count; i++) {
        if (setup->nodes[i].row.id > last_id)
            last_id = setup->nodes[i].row.id;
        if (beside)
            vec_push(&nodes, setup->nodes[i]);
    }
    size_t kept = nodes.len;
    for (char *w = strtok_r(words, ",", &rest); e == 0 && w; w = strtok_r(NULL, ",", &rest))
        e = add_nodes(past, w, &last_id, &nodes, err);
    if (e == 0 && nodes.len == kept)
        e = bad_nodes(spec, NULL, err);
    if (e == 0)
        e = take_nodes(past, setup, &nodes, kept, err);
    vec_done(&nodes);
    return e;
}

/* ---- classes ------------------------------------------------------------------------------ */

static bool *cell(struct sched_class_rule *rule, const char *name, size_t len)
{
    const struct {
        const char *name;
        bool *value;
    } cells[] = {{"may_preempt", &rule->may_preempt},
                 {"may_reclaim", &rule->may_reclaim},
                 {"idle_only", &rule->idle_only}};

    for (size_t i = 0; i < ARRAY_LEN(cells); i++)
        if (strlen(cells[i].name) == len && strncmp(cells[i].name, name, len) == 0)
            return cells[i].value;
    return NULL;
}

int whatif_change_class(struct whatif_setup *setup, const char *words, struct err *err)
{
    static const char *const classes[SCHED_CLASSES] = {"production", "training", "development",
                                                       "batch"};
    const char *dot = strchr(words, '.'), *equals = strchr(words, '=');
    bool yes = equals && strcmp(equals + 1, "yes") == 0;
    bool *value = NULL;

    for (size_t i = 0; dot && equals && dot < equals && i < SCHED_CLASSES; i++)
        if (strlen(classes[i]) == (size_t)(dot - words) &&
            strncmp(classes[i], words, (size_t)(dot - words)) == 0)
            value = cell(&setup->config.classes[i], dot + 1, (size_t)(equals - dot - 1));
    if (value == NULL || (!yes && strcmp(equals + 1, "no") != 0))
        return err_set(
            err, -EINVAL, ERR_INVALID, "class",
            "write CLASS.CELL=yes or =no: development.may_reclaim=no; classes are production, "
            "training, development, batch, cells may_preempt, may_reclaim, idle_only",
            "'%.100s' is no cell of the class matrix", words);
    *value = yes;
    return 0;
}
