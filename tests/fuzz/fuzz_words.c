/* SPDX-License-Identifier: Apache-2.0 */
/* The short texts with a syntax of their own: names, intents, lists and descriptions of devices. */
#include <string.h>

#include "base/text.h"
#include "fuzz.h"
#include "model/node.h"
#include "model/task.h"

#define LIST_MAX 64

static void check_intent(const char *text)
{
    int32_t task = -1, attempt = -1;
    char again[MODEL_INTENT_MAX];
    uint64_t workload = 0;

    if (model_intent_parse(text, &workload, &task, &attempt) < 0)
        return;
    FUZZ_REQUIRE(task >= 0 && attempt >= 0);
    model_intent_format(workload, task, attempt, again);
    FUZZ_REQUIRE(strcmp(text, again) == 0);
}

static void check_list(const char *text)
{
    _cleanup_strbuf_ struct strbuf again = STRBUF_INIT;
    uint16_t devices[LIST_MAX];
    int n = model_devices_parse(text, devices, LIST_MAX);

    if (n < 0)
        return;
    FUZZ_REQUIRE(n <= LIST_MAX);
    model_devices_format(devices, n, &again);
    FUZZ_REQUIRE(strcmp(text, strbuf_str(&again)) == 0);
}

static void check_spec(const char *text, struct arena *arena)
{
    const struct model_device *devices = NULL;
    struct err err = ERR_INIT;
    int32_t count = 0;
    int r = model_devices_from_spec(text, arena, &devices, &count, &err);

    if (r < 0) {
        FUZZ_REQUIRE(devices == NULL && err.errnum == r && err.text[0]);
        return;
    }
    FUZZ_REQUIRE(count >= 1 && count <= MODEL_DEVICES_MAX);
    for (int32_t i = 0; i < count; i++) {
        FUZZ_REQUIRE(devices[i].memory_bytes > 0 && devices[i].type && devices[i].uuid);
        FUZZ_REQUIRE(devices[i].mig_milli >= 0 && devices[i].mig_milli <= 1000);
    }
}

static void check_name(const char *text, size_t size)
{
    if (text_check_name(text, size, "name", NULL) < 0)
        return;
    FUZZ_REQUIRE(size <= TEXT_NAME_MAX && text_is_utf8(text, size));
    FUZZ_REQUIRE(memchr(text, '/', size) == NULL && memchr(text, '\0', size) == NULL);
    FUZZ_REQUIRE(text[0] != '.' && text[0] != '-');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);
    struct arena arena = ARENA_INIT;

    if (text == NULL)
        abort();
    check_intent(text);
    check_list(text);
    check_spec(text, &arena);
    check_name((const char *)data, size);
    arena_done(&arena);
    free(text);
    return 0;
}
