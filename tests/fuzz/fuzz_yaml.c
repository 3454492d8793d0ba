/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever YAML is accepted becomes a JSON array; whatever is refused leaves no trace. */
#include <json-c/json.h>

#include "base/json_writer.h"
#include "base/yaml.h"
#include "fuzz.h"

static void check_is_array(const struct strbuf *json)
{
    struct json_tokener *parser = json_tokener_new_ex(JSON_DEPTH_MAX);
    struct json_object *array;

    if (parser == NULL)
        abort();
    json_tokener_set_flags(parser, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    array = json_tokener_parse_ex(parser, json->data, (int)json->len);
    FUZZ_REQUIRE(json_object_is_type(array, json_type_array));
    FUZZ_REQUIRE(json_tokener_get_parse_end(parser) == json->len);
    FUZZ_REQUIRE(json_object_array_length(array) <= YAML_DOCUMENTS_MAX);
    json_object_put(array);
    json_tokener_free(parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_strbuf_ struct strbuf json = STRBUF_INIT;
    struct err err = ERR_INIT;
    int r = yaml_to_json((const char *)data, size, &json, &err);

    if (r == 0)
        check_is_array(&json);
    else
        FUZZ_REQUIRE(json.len == 0 && err.errnum == r && err.text[0]);
    return 0;
}
