/* SPDX-License-Identifier: Apache-2.0 */
/* A user that is accepted encodes to a text that decodes to the same. */
#include <json-c/json.h>
#include <string.h>

#include "fuzz.h"
#include "model/json.h"
#include "model/user.h"

static int decode(const char *text, size_t size, struct arena *arena, struct model_user *user,
                  struct err *err)
{
    struct json_object *json;
    int r = model_json_parse(text, size, &json, err);

    if (r < 0)
        return r;
    r = model_user_decode(json, arena, user, err);
    json_object_put(json);
    return r;
}

static void encode(const struct model_user *user, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    model_user_encode(user, &w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    struct model_user user = {0}, again = {0};
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    int r = decode((const char *)data, size, &arena, &user, &err);

    if (r == 0) {
        FUZZ_REQUIRE(user.name && user.team_count <= MODEL_USER_TEAMS_MAX);
        encode(&user, &first);
        FUZZ_REQUIRE(decode(first.data, first.len, &arena, &again, NULL) == 0);
        encode(&again, &second);
        FUZZ_REQUIRE(strcmp(first.data, second.data) == 0);
    } else {
        FUZZ_REQUIRE(err.errnum == r && err.text[0]);
    }
    arena_done(&arena);
    return 0;
}
