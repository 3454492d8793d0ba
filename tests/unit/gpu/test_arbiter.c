/* SPDX-License-Identifier: Apache-2.0 */
/* Agents that share a device, as several openings of one file and as processes that are killed. */
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

#include "allot/share.h"
#include "gpu/arbiter.h"

#define MS UINT64_C(1000000)
#define BEGIN (UINT64_C(1000) * MS)

static char file[64];

static int set_up(void **state)
{
    snprintf(file, sizeof(file), "/tmp/allot-arbiter-XXXXXX");
    close(mkstemp(file));
    unlink(file);
    return 0;
}

static int tear_down(void **state)
{
    unlink(file);
    return 0;
}

static struct gpu_arbiter *join(uint32_t milli, uint64_t now)
{
    struct gpu_arbiter *a = NULL;

    assert_int_equal(gpu_arbiter_join(file, "boot", milli, now, &a, NULL), 0);
    return a;
}

/* Tenants that submit whenever they may, each kept busy exactly then; a step every millisecond.
 * Returns the busy time of each. */
static void play(struct gpu_arbiter **agents, const bool *wants, int count, uint64_t begin,
                 uint64_t ms, uint64_t *busy)
{
    uint64_t end[8] = {0};

    for (uint64_t t = 0; t < ms; t++) {
        uint64_t now = begin + t * MS;
        int using = 0;

        for (int i = 0; i < count; i++)
            if (agents[i])
                gpu_arbiter_step(agents[i], now, wants[i], busy[i], &end[i]);
        for (int i = 0; i < count; i++)
            using += agents[i] && wants[i] && end[i] != SHARE_NO_SLICE && end[i] > now;
        assert_true(using <= 1);
        for (int i = 0; i < count; i++)
            if (agents[i] && wants[i] && (end[i] == SHARE_NO_SLICE || end[i] > now))
                busy[i] += MS;
    }
}

static void shares_hold_among_agents(void **state)
{
    struct gpu_arbiter *agents[] = {join(250, BEGIN), join(250, BEGIN), join(500, BEGIN)};
    const bool wants[] = {true, true, true};
    uint64_t busy[3] = {0};

    assert_int_equal(gpu_arbiter_tenants(agents[0]), 3);
    play(agents, wants, 3, BEGIN, 10000, busy);
    for (int i = 0; i < 3; i++) {
        uint64_t due = (i == 2 ? 5000 : 2500) * MS;

        assert_in_range(busy[i], due - due / 20, due + due / 20);
        gpu_arbiter_leave(agents[i]);
    }
}

static void unused_share_is_usable(void **state)
{
    struct gpu_arbiter *agents[] = {join(250, BEGIN), join(750, BEGIN)};
    const bool wants[] = {true, false};
    uint64_t busy[2] = {0};

    play(agents, wants, 2, BEGIN, 1000, busy);
    assert_int_equal(busy[0], 1000 * MS);
    gpu_arbiter_leave(agents[0]);
    gpu_arbiter_leave(agents[1]);
}

/* An agent that stops moving while its task wants the device. */
static void who_says_nothing_for_a_second_wants_nothing(void **state)
{
    struct gpu_arbiter *agents[] = {join(500, BEGIN), join(500, BEGIN)};
    const bool wants[] = {true, true};
    uint64_t busy[2] = {0};

    play(agents, wants, 2, BEGIN, 100, busy);
    struct gpu_arbiter *silent = agents[1];
    agents[1] = NULL;
    play(agents, wants, 2, BEGIN + 100 * MS, 1000, busy);
    busy[0] = 0;
    play(agents, wants, 2, BEGIN + 1200 * MS, 1000, busy);
    assert_int_equal(busy[0], 1000 * MS);
    assert_int_equal(gpu_arbiter_tenants(agents[0]), 2);
    gpu_arbiter_leave(silent);
    gpu_arbiter_leave(agents[0]);
}

/* A process that joins and then takes steps until it is killed, with the lock held or not. */
static pid_t other(uint64_t now)
{
    int ready[2];
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    pid = fork();
    if (pid == 0) {
        struct gpu_arbiter *a = NULL;
        uint64_t end;

        if (gpu_arbiter_join(file, "boot", 500, now, &a, NULL) < 0)
            _exit(1);
        (void)!write(ready[1], "x", 1);
        for (;;)
            gpu_arbiter_step(a, now, true, 0, &end);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return pid;
}

static void who_is_killed_is_gone_wherever_it_was(void **state)
{
    struct gpu_arbiter *a = join(500, BEGIN);

    for (int n = 0; n < 50; n++) {
        uint64_t now = BEGIN + (uint64_t)n * 10000 * MS, end;
        pid_t pid = other(now);

        gpu_arbiter_step(a, now, true, 0, &end);
        usleep((useconds_t)(n * 37 % 1000));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        gpu_arbiter_step(a, now + 1000 * MS, true, 0, &end);
        assert_int_equal(gpu_arbiter_tenants(a), 1);
        gpu_arbiter_step(a, now + 1001 * MS, true, 0, &end);
        assert_true(end == SHARE_NO_SLICE);
    }
    gpu_arbiter_leave(a);
}

/* Whose clock was further than this one. */
static void a_file_of_an_earlier_boot_is_begun_anew(void **state)
{
    struct gpu_arbiter *a = NULL;
    pid_t pid = other(BEGIN);
    uint64_t end;

    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(gpu_arbiter_join(file, "next boot", 500, 5 * MS, &a, NULL), 0);
    assert_int_equal(gpu_arbiter_tenants(a), 1);
    gpu_arbiter_step(a, 6 * MS, true, 0, &end);
    assert_true(end == SHARE_NO_SLICE);
    gpu_arbiter_leave(a);
}

static void what_cannot_be_is_refused(void **state)
{
    struct gpu_arbiter *all[GPU_SLICES_TENANTS], *more;
    struct err err = ERR_INIT;

    assert_int_equal(gpu_arbiter_join("/nowhere/at/all", "boot", 1, 0, &more, &err), -ENOENT);
    assert_non_null(strstr(err.text, "'/nowhere/at/all'"));
    assert_int_equal(gpu_arbiter_join(file, "boot", 1001, 0, &more, &err), -EINVAL);
    for (int i = 0; i < GPU_SLICES_TENANTS; i++)
        all[i] = join(15, BEGIN);
    assert_int_equal(gpu_arbiter_join(file, "boot", 15, BEGIN, &more, &err), -ENOSPC);
    assert_string_equal(err.text, "sharing of a GPU: 64 tasks at most can share one");
    for (int i = 0; i < GPU_SLICES_TENANTS; i++)
        gpu_arbiter_leave(all[i]);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(shares_hold_among_agents),
        T(unused_share_is_usable),
        T(who_says_nothing_for_a_second_wants_nothing),
        T(who_is_killed_is_gone_wherever_it_was),
        T(a_file_of_an_earlier_boot_is_begun_anew),
        T(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
