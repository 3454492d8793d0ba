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

#define NODES_MAX 100000

static void json_putp(struct json_object **json)
{
    json_object_put(*json);
}

/* ---- teams -------------------------------------------------------------------------------- */

static int change(struct past *past, struct whatif_setup *setup, const char *name,
                  struct json_object *body, struct err *err)
{
    struct past_team *team = past_team_by_name(past, name);

    if (team == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "name a team of the record",
                       "there is no team '%.100s' in the history", name);
    /* Ours to change: whatif_setup_past() made it. */
    struct model_team *row = (struct model_team *)&setup->teams[team - past->teams.items];
    struct model_team changed = *row;
    int e = model_team_decode(body, &past->arena, &changed, err);
    if (e < 0) {
        err_prefix_field(err, "%s", name);
        return e;
    }
    changed.name = row->name;
    *row = changed;
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
    } else {
        v = json_tokener_parse(value);
        if (!json_object_is_type(v, json_type_int)) {
            json_object_put(v);
            v = json_object_new_string(value);
        }
    }
    json_object_object_add(o, path, v);
    return o;
}

int whatif_change_team(struct past *past, struct whatif_setup *setup, const char *words,
                       struct err *err)
{
    char *name = arena_strdup(&past->arena, words), *equals = strchr(name, '=');
    char *dot = strchr(name, '.');

    if (equals == NULL || dot == NULL || dot > equals || dot == name || equals[1] == '\0')
        return err_set(err, -EINVAL, ERR_INVALID, "team", "write NAME.guarantee.gpu=N",
                       "'%.100s' is no change of a team", words);
    *dot = *equals = '\0';
    _cleanup_(json_putp) struct json_object *body = nest(dot + 1, equals + 1);
    return change(past, setup, name, body, err);
}

static int change_document(struct past *past, struct whatif_setup *setup, struct json_object *doc,
                           struct err *err)
{
    for (size_t i = 0; i < model_manifest_count(doc); i++) {
        struct model_manifest m;
        int e = model_manifest_decode(model_manifest_item(doc, i), &past->arena, &m, err);
        if (e < 0)
            return e;
        if (m.kind != MODEL_MANIFEST_TEAM)
            return err_set(err, -EINVAL, ERR_INVALID, "kind", "give manifests of teams alone",
                           "a %s is no team", m.source);
        _cleanup_(json_putp) struct json_object *body = json_tokener_parse(m.body);
        e = change(past, setup, m.name, body, err);
        if (e < 0)
            return e;
    }
    return 0;
}

int whatif_change_teams(struct past *past, struct whatif_setup *setup, const char *path,
                        struct err *err)
{
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    _cleanup_free_ char *text = NULL;
    size_t len;
    int e = io_read_file(AT_FDCWD, path, YAML_SIZE_MAX, &text, &len);

    if (e < 0)
        return err_set(err, e, ERR_NOT_FOUND, NULL, NULL, "'%.200s' cannot be read: %s", path,
                       strerror(-e));
    e = yaml_to_json(text, len, &json, err);
    if (e < 0)
        return e;
    _cleanup_(json_putp) struct json_object *all = json_tokener_parse(strbuf_str(&json));
    for (size_t i = 0; e == 0 && i < json_object_array_length(all); i++)
        e = change_document(past, setup, json_object_array_get_idx(all, i), err);
    return e;
}

/* ---- nodes -------------------------------------------------------------------------------- */

typedef VEC(struct model_node) node_list;

static int add_nodes(struct past *past, const char *spec, node_list *nodes, struct err *err)
{
    const struct model_device *devices;
    const char *x = strchr(spec, 'x');
    int32_t device_count;
    int64_t count;
    int e;

    if (x == NULL || x - spec > 6 ||
        qty_parse_int(arena_strndup(&past->arena, spec, (size_t)(x - spec)), &count, NULL) < 0 ||
        count < 1 || count > NODES_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, "nodes", "write NODESxDEVICES, 4x8xH100",
                       "'%.100s' is no list of nodes", spec);
    e = model_devices_from_spec(x + 1, &past->arena, &devices, &device_count, err);
    if (e < 0)
        return e;
    for (int64_t i = 0; i < count; i++) {
        struct model_node node = {.id = nodes->len + 1,
                                  .name = arena_printf(&past->arena, "n%zu", nodes->len + 1),
                                  .state = MODEL_NODE_UP,
                                  .gpu_type = devices[0].type,
                                  .cpu_milli = SCHED_UNLIMITED,
                                  .memory_bytes = SCHED_UNLIMITED,
                                  .devices = devices,
                                  .device_count = device_count};
        vec_push(nodes, node);
    }
    return 0;
}

int whatif_change_nodes(struct past *past, struct whatif_setup *setup, const char *spec,
                        struct err *err)
{
    char *words = arena_strdup(&past->arena, spec), *rest = NULL;
    node_list nodes = {0};
    int e = 0;

    for (char *w = strtok_r(words, ",", &rest); e == 0 && w; w = strtok_r(NULL, ",", &rest))
        e = add_nodes(past, w, &nodes, err);
    if (e == 0 && (nodes.len == 0 || nodes.len > NODES_MAX))
        e = err_set(err, -EINVAL, ERR_INVALID, "nodes", NULL, "give 1 to %d nodes", NODES_MAX);
    if (e == 0 && !past_can_add_up(past, nodes.items, nodes.len))
        e = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "nodes", "give fewer",
                    "more GPU time than can be added up in so long a record");
    if (e == 0) {
        struct model_node *kept = arena_new_array(&past->arena, struct model_node, nodes.len);
        memcpy(kept, nodes.items, nodes.len * sizeof(*kept));
        setup->nodes = kept;
        setup->node_count = nodes.len;
    }
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
        return err_set(err, -EINVAL, ERR_INVALID, "class",
                       "write CLASS.CELL=yes or =no; cells are may_preempt, may_reclaim, idle_only",
                       "'%.100s' is no cell of the class matrix", words);
    *value = yes;
    return 0;
}
