/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    struct arena a = ARENA_INIT;

    for (size_t size = 1; size < 3000; size += 37) {
        unsigned char *p = arena_alloc(&a, size);

        assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(p[i], 0);
        memset(p, 0xff, size);
    }
    arena_done(&a);
}

static void reset_memory_is_zeroed_again(void **state)
{
    struct arena a = ARENA_INIT;

    memset(arena_alloc(&a, 1000), 0xff, 1000);
    arena_reset(&a);
    assert_int_equal(a.total, 0);
    assert_int_equal(((unsigned char *)arena_alloc(&a, 1000))[999], 0);
    arena_done(&a);
}

static void reset_keeps_one_block(void **state)
{
    struct arena a = ARENA_INIT;
    struct arena_block *kept;

    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 1000);
    arena_reset(&a);
    kept = a.head;
    assert_non_null(kept);
    arena_alloc(&a, 1000);
    assert_ptr_equal(a.head, kept);
    arena_done(&a);
    assert_null(a.head);
}

static void large_allocations_do_not_share(void **state)
{
    struct arena a = ARENA_INIT;
    char *small = arena_alloc(&a, 16), *large = arena_alloc(&a, 4 << 20);

    memset(large, 1, 4 << 20);
    assert_int_equal(small[15], 0);
    arena_reset(&a);
    assert_null(a.head); /* four megabytes are not kept */
    arena_done(&a);
}

static void copies_are_terminated(void **state)
{
    struct arena a = ARENA_INIT;

    assert_null(arena_strdup(&a, NULL));
    assert_string_equal(arena_strdup(&a, "h\xc3\xa9"), "h\xc3\xa9");
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(&a, "ab", 30), "ab");
    assert_memory_equal(arena_memdup(&a, "a\0b", 3), "a\0b", 3);
    assert_string_equal(arena_printf(&a, "%d-%s", 7, "x"), "7-x");
    arena_done(&a);
}

static void array_overflow_aborts(void **state)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        struct arena a = ARENA_INIT;

        signal(SIGABRT, SIG_DFL);
        arena_alloc_array(&a, SIZE_MAX / 2, 3);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(reset_memory_is_zeroed_again),
        cmocka_unit_test(reset_keeps_one_block),
        cmocka_unit_test(large_allocations_do_not_share),
        cmocka_unit_test(copies_are_terminated),
        cmocka_unit_test(array_overflow_aborts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
