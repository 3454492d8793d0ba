/* SPDX-License-Identifier: Apache-2.0 */
#include "model/manifest.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "model/json.h"
#include "model/manifest_quota.h"
#include "model/team.h"
#include "model/workload.h"

DEFINE_CLEANUP(struct json_object *, json_object_put, json_object_putp)

/* ---- lists ------------------------------------------------------------------------------ */

static struct json_object *items_of(struct json_object *doc)
{
    static const char *const lists[] = {"List", "ResourceQuotaList", "TeamList", "WorkloadList"};
    struct json_object *kind = NULL, *items = NULL;

    if (!json_object_is_type(doc, json_type_object) ||
        !json_object_object_get_ex(doc, "kind", &kind) ||
        !json_object_object_get_ex(doc, "items", &items) ||
        !json_object_is_type(kind, json_type_string) ||
        !json_object_is_type(items, json_type_array))
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        if (strcmp(json_object_get_string(kind), lists[i]) == 0)
            return items;
    }
    return NULL;
}

size_t model_manifest_count(struct json_object *doc)
{
    struct json_object *items = items_of(doc);

    return items ? json_object_array_length(items) : 1;
}

struct json_object *model_manifest_item(struct json_object *doc, size_t index)
{
    struct json_object *items = items_of(doc);

    return items ? json_object_array_get_idx(items, index) : doc;
}

/* ---- the parts of a document ------------------------------------------------------------ */

struct document {
    const char *kind, *api_version;
    const char *name, *namespace; /* of metadata; NULL = not given */
    struct json_object *spec;     /* borrowed; NULL = not given */
};

struct manifest_kind {
    const char *kind, *api_version;
    int (*decode)(const struct document *doc, struct arena *arena, struct strbuf *ignored,
                  struct model_manifest *ret_manifest, struct err *err);
};

static void ignore(struct strbuf *ignored, const char *key)
{
    strbuf_addf(ignored, "%s%s", ignored->len ? ", " : "", key);
}

/* Only the names mean something here; the rest of what Kubernetes keeps is reported. */
static int read_metadata(struct json_object *v, struct arena *arena, struct document *doc,
                         struct strbuf *ignored, struct err *err)
{
    if (!json_object_is_type(v, json_type_object))
        return err_set(err, -EINVAL, ERR_INVALID, "metadata", NULL,
                       "metadata must be an object, not %s", model_json_type_name(v));
    json_object_object_foreach(v, key, value)
    {
        int r = 0;

        if (strcmp(key, "name") == 0)
            r = model_json_read_name(value, arena, &doc->name, err);
        else if (strcmp(key, "namespace") == 0)
            r = model_json_read_name(value, arena, &doc->namespace, err);
        else
            ignore(ignored, arena_printf(arena, "metadata.%s", key));
        if (r < 0) {
            model_json_in(err, "metadata.%s", key);
            return r;
        }
    }
    return 0;
}

static int read_document(struct json_object *json, struct arena *arena, struct document *doc,
                         struct strbuf *ignored, struct err *err)
{
    if (!json_object_is_type(json, json_type_object))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "write apiVersion, kind, metadata and spec",
                       "a manifest must be an object, not %s", model_json_type_name(json));
    json_object_object_foreach(json, key, value)
    {
        int r = 0;

        if (strcmp(key, "kind") == 0)
            r = model_json_read_string(value, arena, &doc->kind, err);
        else if (strcmp(key, "apiVersion") == 0)
            r = model_json_read_string(value, arena, &doc->api_version, err);
        else if (strcmp(key, "metadata") == 0)
            r = read_metadata(value, arena, doc, ignored, err);
        else if (strcmp(key, "spec") == 0)
            doc->spec = value;
        else
            ignore(ignored, key);
        if (r < 0) {
            if (strcmp(key, "metadata") != 0)
                model_json_in(err, "%s", key);
            return r;
        }
    }
    return 0;
}

static int refuse_missing(struct err *err, const char *field)
{
    return err_set(err, -EINVAL, ERR_MISSING, field, "add it", "%s is missing", field);
}

/* ---- kinds ------------------------------------------------------------------------------ */

static int decode_quota(const struct document *doc, struct arena *arena, struct strbuf *ignored,
                        struct model_manifest *m, struct err *err)
{
    _cleanup_(json_object_putp) struct json_object *json = NULL;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct model_team team;
    int r;

    if (doc->namespace == NULL)
        return refuse_missing(err, "metadata.namespace");
    if (!json_object_is_type(doc->spec, json_type_object))
        return refuse_missing(err, "spec");
    json_object_object_foreach(doc->spec, key, value)
    {
        (void)value;
        if (strcmp(key, "hard") != 0)
            ignore(ignored, arena_printf(arena, "spec.%s", key));
    }
    r = model_manifest_quota(doc->spec, doc->namespace, &body, ignored, err);
    if (r == 0)
        r = model_json_parse(body.data, body.len, &json, err);
    if (r < 0)
        return r;
    model_team_init(&team);
    r = model_team_decode(json, arena, &team, err);
    if (r < 0)
        return r;
    m->kind = MODEL_MANIFEST_TEAM;
    m->name = doc->namespace;
    m->body = arena_strdup(arena, strbuf_str(&body));
    return 0;
}

/* What spec says and metadata says too must be the same. */
static int check_said_once(struct json_object *spec, const char *key, const char *metadata,
                           const char *value, struct err *err)
{
    struct json_object *v = NULL;

    if (value == NULL || !json_object_object_get_ex(spec, key, &v) ||
        !json_object_is_type(v, json_type_string) || strcmp(json_object_get_string(v), value) == 0)
        return 0;
    return err_set(err, -EINVAL, ERR_INVALID, key, "keep one of the two",
                   "%s '%.60s' is not %s '%.60s'", key, json_object_get_string(v), metadata, value);
}

/* SPEC with KEY = VALUE; the caller releases. SPEC may be NULL. */
static struct json_object *with_names(struct json_object *spec, const char *name, const char *team)
{
    struct json_object *body = json_object_new_object();

    if (spec) {
        json_object_object_foreach(spec, key, value)
            json_object_object_add(body, key, json_object_get(value));
    }
    if (name)
        json_object_object_add(body, "name", json_object_new_string(name));
    if (team)
        json_object_object_add(body, "team", json_object_new_string(team));
    return body;
}

/* The text keeps the digits of every number as they were written. */
static const char *text_of(struct json_object *body, struct arena *arena)
{
    return arena_strdup(arena, json_object_to_json_string_ext(
                                   body, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
}

static int decode_team(const struct document *doc, struct arena *arena, struct strbuf *ignored,
                       struct model_manifest *m, struct err *err)
{
    _cleanup_(json_object_putp) struct json_object *body = NULL;
    struct model_team team;
    int r;

    if (doc->name == NULL)
        return refuse_missing(err, "metadata.name");
    if (doc->spec && !json_object_is_type(doc->spec, json_type_object))
        return err_set(err, -EINVAL, ERR_INVALID, "spec", NULL, "spec must be an object, not %s",
                       model_json_type_name(doc->spec));
    if (doc->namespace)
        ignore(ignored, "metadata.namespace");
    r = check_said_once(doc->spec, "name", "metadata.name", doc->name, err);
    if (r == 0) {
        body = with_names(doc->spec, doc->name, NULL);
        model_team_init(&team);
        r = model_team_decode(body, arena, &team, err);
    }
    if (r < 0) {
        model_json_in(err, "spec");
        return r;
    }
    m->kind = MODEL_MANIFEST_TEAM;
    m->name = doc->name;
    m->body = text_of(body, arena);
    return 0;
}

static int decode_workload(const struct document *doc, struct arena *arena, struct strbuf *ignored,
                           struct model_manifest *m, struct err *err)
{
    _cleanup_(json_object_putp) struct json_object *body = NULL;
    /* Who sends it may have one team only; the server knows. */
    struct model_workload w = {.team = "default"};
    int r;

    if (!json_object_is_type(doc->spec, json_type_object))
        return refuse_missing(err, "spec");
    r = check_said_once(doc->spec, "name", "metadata.name", doc->name, err);
    if (r == 0)
        r = check_said_once(doc->spec, "team", "metadata.namespace", doc->namespace, err);
    if (r == 0) {
        body = with_names(doc->spec, doc->name, doc->namespace);
        r = model_workload_decode(body, arena, &w, err);
    }
    if (r < 0) {
        model_json_in(err, "spec");
        return r;
    }
    m->kind = MODEL_MANIFEST_WORKLOAD;
    m->name = w.name;
    m->body = text_of(body, arena);
    return 0;
}

static const struct manifest_kind kinds[] = {
    {"ResourceQuota", "v1", decode_quota},
    {"Team", "allot/v1", decode_team},
    {"Workload", "allot/v1", decode_workload},
};

int model_manifest_decode(struct json_object *json, struct arena *arena,
                          struct model_manifest *ret_manifest, struct err *err)
{
    _cleanup_strbuf_ struct strbuf ignored = STRBUF_INIT;
    struct model_manifest m = {0};
    struct document doc = {0};
    int r;

    r = read_document(json, arena, &doc, &ignored, err);
    if (r < 0)
        return r;
    if (doc.kind == NULL)
        return refuse_missing(err, "kind");
    if (doc.api_version == NULL)
        return refuse_missing(err, "apiVersion");
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(kinds[i].kind, doc.kind) != 0)
            continue;
        if (strcmp(kinds[i].api_version, doc.api_version) != 0)
            return err_set(err, -EINVAL, ERR_UNSUPPORTED, "apiVersion", NULL,
                           "apiVersion '%.60s' of a %s is not %s", doc.api_version, doc.kind,
                           kinds[i].api_version);
        m.source = kinds[i].kind;
        r = kinds[i].decode(&doc, arena, &ignored, &m, err);
        if (r < 0)
            return r;
        m.ignored = ignored.len ? arena_strdup(arena, ignored.data) : NULL;
        *ret_manifest = m;
        return 0;
    }
    return err_set(err, -EINVAL, ERR_UNSUPPORTED, "kind", "use ResourceQuota, Team or Workload",
                   "kind '%.60s' is not known", doc.kind);
}
