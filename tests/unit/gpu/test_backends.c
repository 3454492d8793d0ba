/* SPDX-License-Identifier: Apache-2.0 */
/* What could hold parts of a GPU apart, as files of a machine say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gpu/backends.h"

static char folder[] = "/tmp/allot-backends-XXXXXX";
static char program[64], pipe_path[64];
static const char *const programs[] = {"/nowhere/control", program, NULL};
static const struct gpu_backend_places places = {folder, programs, pipe_path};

static int make_folder(void **state)
{
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    snprintf(program, sizeof(program), "%s/mps-control", folder);
    snprintf(pipe_path, sizeof(pipe_path), "%s/control", folder);
    return 0;
}

static int remove_folder(void **state)
{
    return io_remove_tree(AT_FDCWD, folder);
}

static void put(const char *name, const char *text)
{
    char path[96];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chmod(path, 0755), 0);
}

/* The backend NAME of a machine with DEVICES. */
static struct model_backend look(const struct gpu_inventory *devices, const char *name)
{
    static char reason[200];
    const struct model_backend *list;
    struct model_backend found = {0};
    struct arena a = ARENA_INIT;
    int32_t count = gpu_backends(devices, "it is not installed", &places, &a, &list);

    for (int32_t i = 0; i < count; i++)
        if (strcmp(list[i].name, name) == 0)
            found = list[i];
    assert_non_null(found.name);
    snprintf(reason, sizeof(reason), "%s", found.reason ? found.reason : "");
    found.reason = reason;
    arena_done(&a);
    return found;
}

static void expect_backend(const struct gpu_inventory *devices, const char *name,
                           enum model_backend_state state, const char *part_of_reason)
{
    struct model_backend b = look(devices, name);

    if (b.state != state || strstr(b.reason, part_of_reason) == NULL)
        fail_msg("%s: %s: %s", name, model_backend_state_name(b.state), b.reason);
}

static const struct model_device whole = {.uuid = "GPU-1", .type = "H100"};
static const struct model_device slice = {
    .uuid = "MIG-1", .type = "H100", .mig_profile = "1g.10gb"};
static const struct gpu_inventory real = {.devices = &whole, .count = 1};

static void test_dmem_takes_the_kernel_and_the_driver(void **state)
{
    expect_backend(&real, "dmem", MODEL_BACKEND_ABSENT, "kernel");
    put("cgroup.controllers", "cpuset cpu xdmem dmemx memory\n");
    expect_backend(&real, "dmem", MODEL_BACKEND_ABSENT, "kernel");
    put("cgroup.controllers", "cpuset cpu memory dmem");
    expect_backend(&real, "dmem", MODEL_BACKEND_ABSENT, "driver");
    put("dmem.capacity", "drm/0000:03:00.0/vram0 8514437120\n");
    expect_backend(&real, "dmem", MODEL_BACKEND_ABSENT, "driver");
    put("dmem.capacity", "drm/0/vram0 1\nnvidia/0000:81:00.0/vidmem 85899345920\n");
    expect_backend(&real, "dmem", MODEL_BACKEND_FOUND, "no limits");
}

static void test_mps_is_a_program_and_may_run(void **state)
{
    expect_backend(&real, "mps", MODEL_BACKEND_ABSENT, "not installed");
    put("mps-control", "");
    expect_backend(&real, "mps", MODEL_BACKEND_FOUND, "no server runs");
    put("control", "");
    expect_backend(&real, "mps", MODEL_BACKEND_FOUND, "a server runs");
}

static void test_slices_and_the_shim_are_used_where_they_are(void **state)
{
    const struct gpu_inventory sliced = {.devices = &slice, .count = 1};
    const struct model_backend *list;
    struct arena a = ARENA_INIT;

    expect_backend(&real, "mig", MODEL_BACKEND_ABSENT, "no device");
    expect_backend(&sliced, "mig", MODEL_BACKEND_USED, "slices");
    expect_backend(&real, "shim", MODEL_BACKEND_ABSENT, "it is not installed");
    gpu_backends(&real, NULL, &places, &a, &list);
    assert_string_equal(list[0].name, "shim");
    assert_int_equal(list[0].state, MODEL_BACKEND_USED);
    assert_null(list[0].reason);
    arena_done(&a);
}

/* Whatever the machine has: simulated devices have none of it. */
static void test_simulated_devices_have_no_driver_below(void **state)
{
    const struct gpu_inventory simulated = {.devices = &whole, .count = 1, .simulated = true};

    put("cgroup.controllers", "dmem");
    put("dmem.capacity", "nvidia/0/vidmem 1\n");
    put("mps-control", "");
    expect_backend(&simulated, "dmem", MODEL_BACKEND_ABSENT, "simulated");
    expect_backend(&simulated, "mps", MODEL_BACKEND_ABSENT, "simulated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dmem_takes_the_kernel_and_the_driver, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_mps_is_a_program_and_may_run, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_slices_and_the_shim_are_used_where_they_are,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_simulated_devices_have_no_driver_below, make_folder,
                                        remove_folder),
    };

    return cmocka_run_group_tests_name("gpu backends", tests, NULL, NULL);
}
