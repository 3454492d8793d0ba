/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "gpu/driver.h"

static char folder[64];
static struct arena arena = ARENA_INIT;

static void make(const char *name, const char *links_to)
{
    char path[200];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (links_to)
        assert_int_equal(symlink(links_to, path), 0);
    else
        assert_int_equal(io_write_file_atomic(AT_FDCWD, path, "", 0, 0644, 0), 0);
}

static int up(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/allot-driver-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int down(void **state)
{
    arena_done(&arena);
    return io_remove_tree(AT_FDCWD, folder);
}

static const char *const *companions(const char *driver)
{
    return gpu_driver_companions(arena_printf(&arena, "%s/%s", folder, driver), &arena);
}

static int count(const char *const *list)
{
    int n = 0;

    while (list[n])
        n++;
    return n;
}

static bool has(const char *const *list, const char *name)
{
    for (; *list; list++)
        if (strcmp(strrchr(*list, '/') + 1, name) == 0)
            return true;
    return false;
}

static void those_of_its_version_go_along(void **state)
{
    const char *const *list;

    make("libcuda.so.570.86.15", NULL);
    make("libcuda.so.1", "libcuda.so.570.86.15");
    make("libnvidia-ptxjitcompiler.so.570.86.15", NULL);
    make("libnvidia-ptxjitcompiler.so.1", "libnvidia-ptxjitcompiler.so.570.86.15");
    make("libnvidia-nvvm.so.4", NULL);
    make("libnvidia-gpucomp.so.570.86.15", NULL);
    /* Left by another version; a link to nothing; and what does not compute. */
    make("libnvidia-gpucomp.so.565.57.01", NULL);
    make("libcudadebugger.so.1", "libcudadebugger.so.565.57.01");
    make("libnvidia-ml.so.1", NULL);
    make("libnvidia-glcore.so.570.86.15", NULL);
    make("libnvidia-nvvm70.so.4", NULL);
    make("libnvidia-nvvm.so", NULL);
    make("libnvidia-nvvm.so.", NULL);
    list = companions("libcuda.so.570.86.15");
    assert_int_equal(count(list), 4);
    assert_true(has(list, "libnvidia-ptxjitcompiler.so.1"));
    assert_true(has(list, "libnvidia-ptxjitcompiler.so.570.86.15"));
    assert_true(has(list, "libnvidia-nvvm.so.4"));
    assert_true(has(list, "libnvidia-gpucomp.so.570.86.15"));
}

static void a_driver_alone_has_none(void **state)
{
    make("libcuda.so.1", NULL);
    assert_int_equal(count(companions("libcuda.so.1")), 0);
    assert_int_equal(count(companions("nowhere/libcuda.so.1")), 0);
    assert_int_equal(count(gpu_driver_companions("libcuda.so.1", &arena)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(those_of_its_version_go_along, up, down),
        cmocka_unit_test_setup_teardown(a_driver_alone_has_none, up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
