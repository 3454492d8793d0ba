/* SPDX-License-Identifier: Apache-2.0 */
/* Owners of several tasks at one board: who leads, who has a slice, and who dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/slices.h"
#include "gpu/turns.h"

#define MS UINT64_C(1000000)
#define BEGIN (1000 * MS)

static char folder[] = "/tmp/allot-turns-XXXXXX";
static char path[64];
static struct err err = ERR_INIT;

static int make_folder(void **state)
{
    memcpy(strrchr(folder, '-') + 1, "XXXXXX", 6);
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/board", folder);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    return rmdir(folder);
}

static struct gpu_turns *join(uint32_t milli)
{
    struct gpu_turns *t = NULL;

    assert_int_equal(gpu_turns_open(path, milli, true, &t, &err), 0);
    return t;
}

static const struct gpu_region_use idle, wants = {.waits = true}, works = {.working = true};

static uint64_t step(struct gpu_turns *t, uint64_t now, struct gpu_region_use use)
{
    uint64_t end = 1, next = gpu_turns_step(t, now, &use, &end);

    assert_true(next > now && next <= now + 50 * MS);
    return end;
}

static void test_one_that_wants_is_not_held_up(void **state)
{
    struct gpu_turns *a = join(250), *b = join(250);

    for (uint64_t now = BEGIN; now < BEGIN + 100 * MS; now += MS) {
        assert_true(step(a, now, wants) == SHARE_NO_SLICE);
        assert_true(step(b, now, idle) == SHARE_NO_SLICE);
    }
    gpu_turns_close(a);
    gpu_turns_close(b);
}

static void test_slices_go_round(void **state)
{
    struct gpu_turns *t[3] = {join(500), join(250), join(250)};
    uint64_t had[3] = {0}, busy[3] = {0};

    for (uint64_t now = BEGIN; now < BEGIN + 4000 * MS; now += MS) {
        uint32_t holders = 0;
        for (int i = 0; i < 3; i++) {
            uint64_t end =
                step(t[i], now, (struct gpu_region_use){.waits = true, .busy_ns = busy[i]});
            if (now < BEGIN + 10 * MS || end <= now)
                continue;
            assert_true(end <= now + GPU_SLICE_NS);
            holders++;
            had[i]++;
            busy[i] += MS;
        }
        assert_true(holders <= 2); /* one, and who has not heard yet */
    }
    assert_in_range(had[0], 1900, 2100);
    assert_in_range(had[1], 900, 1100);
    assert_in_range(had[2], 900, 1100);
    for (int i = 0; i < 3; i++)
        gpu_turns_close(t[i]);
}

/* Steps all until T[i] has a slice, and returns i. */
static int until_held(struct gpu_turns **t, int count, uint64_t *now)
{
    for (;; *now += MS)
        for (int i = 0; i < count; i++) {
            uint64_t end = step(t[i], *now, wants);
            if (end > *now && end != SHARE_NO_SLICE)
                return i;
        }
}

static void test_work_that_goes_on_is_waited_for(void **state)
{
    struct gpu_turns *t[2] = {join(500), join(500)};
    uint64_t now = BEGIN, end;

    step(t[0], now, wants);
    step(t[1], now, wants);
    int holder = until_held(t, 2, &now);
    end = step(t[holder], now, works);
    /* As long as a slice beyond its end, and not longer. */
    for (; now < end + GPU_SLICE_NS; now += MS) {
        step(t[holder], now, works);
        assert_true(step(t[!holder], now, wants) == 0);
    }
    step(t[holder], now + MS, works);
    step(t[0], now + MS, holder == 0 ? works : wants);
    assert_true(step(t[!holder], now + MS, wants) > now);
    gpu_turns_close(t[0]);
    gpu_turns_close(t[1]);
}

static void test_who_leads_may_go(void **state)
{
    struct gpu_turns *t[3] = {join(300), join(300), join(300)};
    uint64_t now = BEGIN;

    for (int gone = 0; gone < 2; gone++) {
        until_held(t + gone, 3 - gone, &now);
        gpu_turns_close(t[gone]); /* each time the leader */
        now += MS;
    }
    assert_true(step(t[2], now, wants) == SHARE_NO_SLICE);
    gpu_turns_close(t[2]);
}

static void test_a_leader_that_hangs_is_not_waited_for(void **state)
{
    struct gpu_turns *a = join(500), *b = join(500);
    uint64_t now = BEGIN;

    for (; now < BEGIN + 5 * MS; now += MS) {
        step(a, now, wants);
        step(b, now, wants);
    }
    uint64_t until = now + GPU_TURNS_STALE_NS - 2 * MS;
    for (; now < until; now += MS)
        assert_true(step(b, now, wants) != SHARE_NO_SLICE);
    assert_true(step(b, now + 5 * MS, wants) == SHARE_NO_SLICE);
    now += 10 * MS;
    step(a, now, wants);
    assert_true(step(b, now, wants) != SHARE_NO_SLICE);
    gpu_turns_close(a);
    gpu_turns_close(b);
}

/* Another process leads, has the slice and is killed at any point of its steps. */
static void test_the_killed_leave_nothing(void **state)
{
    for (int round = 0; round < 30; round++) {
        pid_t pid = fork();
        if (pid == 0) {
            struct gpu_turns *mine = join(500);
            for (uint64_t now = BEGIN;; now += MS)
                step(mine, now, works);
        }
        usleep((useconds_t)(round * 300));
        struct gpu_turns *t = join(500);
        step(t, BEGIN, wants);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        for (uint64_t now = BEGIN; now < BEGIN + 3 * MS; now += MS)
            step(t, now, wants);
        assert_true(step(t, BEGIN + 3 * MS, wants) == SHARE_NO_SLICE);
        gpu_turns_close(t);
    }
}

static void test_rows_are_used_again(void **state)
{
    struct gpu_turns *t[GPU_SLICES_TENANTS], *more = NULL;

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < GPU_SLICES_TENANTS; i++)
            t[i] = join(10);
        assert_int_equal(gpu_turns_open(path, 10, true, &more, &err), -ENOSPC);
        for (int i = 0; i < GPU_SLICES_TENANTS; i++)
            gpu_turns_close(t[i]);
    }
    gpu_turns_close(NULL);
}

static void test_what_is_no_board_is_refused(void **state)
{
    struct gpu_turns *t = NULL;
    FILE *f;

    assert_int_equal(gpu_turns_open(path, 0, true, &t, &err), -EINVAL);
    assert_int_equal(gpu_turns_open(path, 1001, true, &t, &err), -EINVAL);
    assert_int_equal(gpu_turns_open("/nowhere/board", 1, true, &t, &err), -ENOENT);
    f = fopen(path, "we");
    assert_non_null(f);
    fputs("something else", f);
    fclose(f);
    assert_int_equal(gpu_turns_open(path, 1, true, &t, &err), -EPROTO);
    assert_null(t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_wants_is_not_held_up),
        TEST(slices_go_round),
        TEST(work_that_goes_on_is_waited_for),
        TEST(who_leads_may_go),
        TEST(a_leader_that_hangs_is_not_waited_for),
        TEST(the_killed_leave_nothing),
        TEST(rows_are_used_again),
        TEST(what_is_no_board_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
