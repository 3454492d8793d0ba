/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a quantity parser accepts is formatted to a text that parses back to the same. */
#include <string.h>

#include "base/qty.h"
#include "fuzz.h"

typedef int parse_fn(const char *text, int64_t *ret_value, struct err *err);
typedef const char *format_fn(int64_t value, char *text);

static void check(const char *text, parse_fn *parse, format_fn *format)
{
    char formatted[QTY_TEXT_MAX];
    struct err err = ERR_INIT;
    int64_t value = -1, again = -1;
    int r = parse(text, &value, &err);

    if (r < 0) {
        FUZZ_REQUIRE(value == -1 && err.errnum == r && err.text[0] && err.remedy[0]);
        return;
    }
    FUZZ_REQUIRE(value >= 0);
    if (format == NULL)
        return;
    FUZZ_REQUIRE(parse(format(value, formatted), &again, NULL) == 0);
    FUZZ_REQUIRE(again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size);

    if (text == NULL)
        abort();
    check(text, qty_parse_milli, qty_format_milli);
    check(text, qty_parse_bytes, qty_format_bytes);
    check(text, qty_parse_duration_ms, qty_format_duration_ms);
    check(text, qty_parse_int, NULL);
    free(text);
    return 0;
}
