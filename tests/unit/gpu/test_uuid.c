/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "gpu/uuid.h"

static const uint8_t uuid[16] = {0x1b, 0x2b, 0xa3, 0xe0, 0x00, 0xff, 0x4c, 0x0d,
                                 0x9e, 0x8f, 0x7a, 0x6b, 0x5c, 0x4d, 0x3e, 0x2f};

static void what_is_written_is_read(void **state)
{
    char text[GPU_UUID_TEXT];
    uint8_t read[16];

    gpu_uuid_format(uuid, text);
    assert_string_equal(text, "GPU-1b2ba3e0-00ff-4c0d-9e8f-7a6b5c4d3e2f");
    assert_int_equal(gpu_uuid_parse(text, read), 0);
    assert_memory_equal(read, uuid, sizeof(uuid));
    assert_int_equal(gpu_uuid_parse("GPU-1B2BA3E0-00FF-4C0D-9E8F-7A6B5C4D3E2F", read), 0);
    assert_memory_equal(read, uuid, sizeof(uuid));
}

static void anything_else_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "GPU-",
        "SIM-H100-0",
        "MIG-1b2ba3e0-00ff-4c0d-9e8f-7a6b5c4d3e2f",
        "GPU-1b2ba3e0-00ff-4c0d-9e8f-7a6b5c4d3e2",
        "GPU-1b2ba3e0-00ff-4c0d-9e8f-7a6b5c4d3e2f0",
        "GPU-1b2ba3e0000ff-4c0d-9e8f-7a6b5c4d3e2f",
        "GPU-1b2ba3e0-00ff-4c0d-9e8f-7a6b5c4d3e2g",
        "GPU-1b2ba3e0-00ff-4c0d-9e8f-7a6b5c4d3e 2",
    };
    uint8_t read[16] = {42};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(gpu_uuid_parse(wrong[i], read), -EINVAL);
    assert_int_equal(read[0], 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(anything_else_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
