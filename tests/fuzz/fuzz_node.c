/* SPDX-License-Identifier: Apache-2.0 */
/* A stored node that is accepted encodes to a text that decodes to the same. */
#include <string.h>

#include "fuzz.h"
#include "model/node.h"

static void encode(const struct model_node *n, struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    model_node_encode(n, &w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    _cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    struct model_node node = {0}, again = {0};
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    int r = model_node_decode((const char *)data, size, &arena, &node, &err);

    if (r == 0) {
        FUZZ_REQUIRE(node.device_count >= 0 && node.device_count <= MODEL_DEVICES_MAX);
        encode(&node, &first);
        FUZZ_REQUIRE(model_node_decode(first.data, first.len, &arena, &again, NULL) == 0);
        encode(&again, &second);
        FUZZ_REQUIRE(strcmp(first.data, second.data) == 0);
    } else {
        FUZZ_REQUIRE(err.errnum == r && err.text[0]);
    }
    arena_done(&arena);
    return 0;
}
