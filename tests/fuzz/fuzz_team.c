/* SPDX-License-Identifier: Apache-2.0 */
/* A team that is accepted is in range, and decodes again from what it encodes to. */
#include <json-c/json.h>
#include <string.h>

#include "fuzz.h"
#include "model/json.h"
#include "model/team.h"

static void check_range(const struct model_team *t)
{
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++) {
        FUZZ_REQUIRE(t->guarantee[i] >= 0 && t->limit[i] >= 0);
        FUZZ_REQUIRE(t->guarantee[i] <= t->limit[i]);
    }
    FUZZ_REQUIRE(t->weight >= 0 && t->weight <= 1000000);
    FUZZ_REQUIRE(t->volume_limit >= 0);
}

/* Id and version come from core: a person's text has neither. */
static void check_round_trip(const struct model_team *t, struct arena *arena)
{
    _cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    struct model_team again;
    struct json_object *json;
    struct json_writer w;

    json_writer_init(&w, &first);
    model_team_encode(t, &w);
    FUZZ_REQUIRE(model_json_parse(first.data, first.len, &json, NULL) == 0);
    json_object_object_del(json, "id");
    json_object_object_del(json, "version");
    model_team_init(&again);
    FUZZ_REQUIRE(model_team_decode(json, arena, &again, NULL) == 0);
    json_object_put(json);
    again.id = t->id;
    again.version = t->version;
    json_writer_init(&w, &second);
    model_team_encode(&again, &w);
    FUZZ_REQUIRE(strcmp(first.data, second.data) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct json_object *json;
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    struct model_team team;
    int r = model_json_parse((const char *)data, size, &json, &err);

    if (r < 0) {
        FUZZ_REQUIRE(err.errnum == r && err.text[0]);
        return 0;
    }
    model_team_init(&team);
    r = model_team_decode(json, &arena, &team, &err);
    json_object_put(json);
    if (r == 0) {
        check_range(&team);
        check_round_trip(&team, &arena);
    } else {
        FUZZ_REQUIRE(err.errnum == r && err.text[0]);
    }
    arena_done(&arena);
    return 0;
}
