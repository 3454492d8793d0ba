/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/gpu.h"

static struct arena arena;
static struct gpu_inventory inv;

static int fresh(void **state)
{
    unsetenv("FAKE_NVML_COUNT");
    inv = (struct gpu_inventory){0};
    return 0;
}

static int done(void **state)
{
    arena_done(&arena);
    return 0;
}

static void a_spec_makes_marked_devices(void **state)
{
    assert_int_equal(gpu_inventory("8xH100", &arena, &inv, NULL), 0);
    assert_int_equal(inv.count, 8);
    assert_true(inv.simulated);
    assert_non_null(strstr(inv.notice, "simulated"));
    for (int i = 0; i < 8; i++) {
        assert_true(inv.devices[i].simulated);
        assert_string_equal(inv.devices[i].type, "H100");
        assert_null(inv.devices[i].path);
    }
    assert_string_not_equal(inv.devices[0].uuid, inv.devices[7].uuid);
}

static void a_bad_spec_is_refused(void **state)
{
    struct err err = ERR_INIT;

    assert_true(gpu_inventory("many", &arena, &inv, &err) < 0);
    assert_true(err.text[0] != '\0');
}

static void a_bad_fallback_is_refused_even_beside_a_driver(void **state)
{
    setenv("FAKE_NVML_COUNT", "2", 1);
    assert_true(gpu_inventory("auto:0xH100", &arena, &inv, NULL) < 0);
}

static void the_driver_lists_its_devices(void **state)
{
    setenv("FAKE_NVML_COUNT", "4", 1);
    assert_int_equal(gpu_inventory(NULL, &arena, &inv, NULL), 0);
    assert_int_equal(inv.count, 4);
    assert_false(inv.simulated);
    assert_string_equal(inv.driver, "570.00");
    assert_string_equal(inv.devices[0].type, "H100");
    assert_string_equal(inv.devices[1].type, "V100");
    assert_string_equal(inv.devices[2].type, "L40S");
    assert_string_equal(inv.devices[3].type, "A100");
    assert_string_equal(inv.devices[2].uuid, "GPU-00000002");
    assert_true(inv.devices[0].memory_bytes == 85899345920LL);
    assert_null(inv.devices[0].path); /* there is no such device file */
}

static void auto_prefers_real_devices(void **state)
{
    setenv("FAKE_NVML_COUNT", "1", 1);
    assert_int_equal(gpu_inventory("auto:8xH100", &arena, &inv, NULL), 0);
    assert_int_equal(inv.count, 1);
    assert_false(inv.simulated);
}

static void auto_says_so_when_it_simulates(void **state)
{
    assert_int_equal(gpu_inventory("auto:8xH100", &arena, &inv, NULL), 0);
    assert_int_equal(inv.count, 8);
    assert_true(inv.simulated);
    assert_non_null(strstr(inv.notice, "no NVIDIA driver answers"));
}

static void without_a_driver_there_is_no_device(void **state)
{
    assert_int_equal(gpu_inventory(NULL, &arena, &inv, NULL), 0);
    assert_int_equal(inv.count, 0);
    assert_false(inv.simulated);
}

static void a_driver_that_fails_is_an_error_not_an_empty_machine(void **state)
{
    struct err err = ERR_INIT;

    setenv("FAKE_NVML_COUNT", "error", 1);
    assert_int_equal(gpu_inventory("auto:8xH100", &arena, &inv, &err), -EIO);
    assert_non_null(strstr(err.text, "unknown error"));
}

static void busy_time_is_cpu_time_within_the_share(void **state)
{
    assert_int_equal(gpu_sim_busy_ns(100, 1000, 1000), 100);
    assert_int_equal(gpu_sim_busy_ns(5000, 1000, 1000), 1000);
    assert_int_equal(gpu_sim_busy_ns(5000, 250, 1000), 250);
    assert_int_equal(gpu_sim_busy_ns(5000, 4000, 1000), 4000);
    assert_int_equal(gpu_sim_busy_ns(5000, 0, 1000), 0);
    assert_int_equal(gpu_sim_busy_ns(-1, 1000, 1000), 0);
    assert_int_equal(gpu_sim_busy_ns(10, 1000, -5), 0);
    /* A year of 1024 devices does not wrap. */
    assert_true(gpu_sim_busy_ns(INT64_MAX, 1024000, 365LL * 86400 * 1000000000) > 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fresh, done)
    const struct CMUnitTest tests[] = {
        T(a_spec_makes_marked_devices),
        T(a_bad_spec_is_refused),
        T(a_bad_fallback_is_refused_even_beside_a_driver),
        T(the_driver_lists_its_devices),
        T(auto_prefers_real_devices),
        T(auto_says_so_when_it_simulates),
        T(without_a_driver_there_is_no_device),
        T(a_driver_that_fails_is_an_error_not_an_empty_machine),
        T(busy_time_is_cpu_time_within_the_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
