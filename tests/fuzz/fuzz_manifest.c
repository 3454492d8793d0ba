/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any YAML on its way through `apply -f`. What a manifest is turned into must be what the route
 * accepts: client and server agree.
 */
#include <json-c/json.h>
#include <string.h>

#include "base/yaml.h"
#include "fuzz.h"
#include "model/json.h"
#include "model/manifest.h"
#include "model/team.h"
#include "model/workload.h"

static void check_body(const struct model_manifest *m, struct arena *arena)
{
    struct model_workload workload = {.team = "default"};
    struct json_object *body;
    struct model_team team;

    FUZZ_REQUIRE(model_json_parse(m->body, strlen(m->body), &body, NULL) == 0);
    if (m->kind == MODEL_MANIFEST_TEAM) {
        model_team_init(&team);
        FUZZ_REQUIRE(model_team_decode(body, arena, &team, NULL) == 0);
        FUZZ_REQUIRE(strcmp(team.name, m->name) == 0);
    } else {
        FUZZ_REQUIRE(model_workload_decode(body, arena, &workload, NULL) == 0);
    }
    json_object_put(body);
}

static void check_document(struct json_object *doc, struct arena *arena)
{
    size_t count = model_manifest_count(doc);

    for (size_t i = 0; i < count; i++) {
        struct model_manifest m = {0};
        struct err err = ERR_INIT;
        int r = model_manifest_decode(model_manifest_item(doc, i), arena, &m, &err);

        if (r == 0)
            check_body(&m, arena);
        else
            FUZZ_REQUIRE(err.errnum == r && err.text[0]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    struct arena arena = ARENA_INIT;
    struct json_object *docs;

    if (yaml_to_json((const char *)data, size, &json, NULL) < 0)
        return 0;
    /* The model is stricter: it refuses NUL, and one more level of nesting. */
    if (model_json_parse(json.data, json.len, &docs, NULL) < 0)
        return 0;
    for (size_t i = 0; i < json_object_array_length(docs); i++)
        check_document(json_object_array_get_idx(docs, i), &arena);
    json_object_put(docs);
    arena_done(&arena);
    return 0;
}
