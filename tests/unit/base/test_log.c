/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

/* Standard error is a pipe (or FILE) while a test writes; the text lands here. */
static char captured[4096];
static int saved_stderr;

static int begin_capture(void **state)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    saved_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    *state = (void *)(intptr_t)ends[0];
    return 0;
}

static int end_capture(void **state)
{
    close((int)(intptr_t)*state);
    log_set_level(LOG_LEVEL_INFO);
    return 0;
}

static void finish(int fd)
{
    ssize_t n;

    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    n = read(fd, captured, sizeof(captured) - 1);
    captured[n > 0 ? n : 0] = '\0';
}

static void a_line_has_level_and_text(void **state)
{
    log_info("port %d", 80);
    log_error("lost");
    finish((int)(intptr_t)*state);
    assert_string_equal(captured, "info port 80\nerror lost\n");
}

static void levels_above_the_maximum_are_silent(void **state)
{
    log_debug("a");
    log_set_level(LOG_LEVEL_WARN);
    log_info("b");
    log_warn("c");
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("d");
    finish((int)(intptr_t)*state);
    assert_string_equal(captured, "warn c\ndebug d\n");
}

static void a_name_cannot_forge_a_line(void **state)
{
    log_info("name '%s'", "x\nerror \x1b[31mforged\r");
    finish((int)(intptr_t)*state);
    assert_string_equal(captured, "info name 'x\\nerror \\x1b[31mforged\\x0d'\n");
}

static void a_file_gets_the_time(void **state)
{
    FILE *f = tmpfile();
    ssize_t n;

    assert_non_null(f);
    dup2(fileno(f), STDERR_FILENO);
    log_warn("x");
    finish((int)(intptr_t)*state);
    n = pread(fileno(f), captured, sizeof(captured) - 1, 0);
    assert_int_equal(n, strlen("2026-11-30T21:29:59.123Z warn x\n"));
    assert_memory_equal(captured + 23, "Z warn x\n", 9);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_level_and_text, begin_capture, end_capture),
        cmocka_unit_test_setup_teardown(levels_above_the_maximum_are_silent, begin_capture,
                                        end_capture),
        cmocka_unit_test_setup_teardown(a_name_cannot_forge_a_line, begin_capture, end_capture),
        cmocka_unit_test_setup_teardown(a_file_gets_the_time, begin_capture, end_capture),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
