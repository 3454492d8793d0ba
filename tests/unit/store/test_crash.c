/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 at random instants: a child commits groups and tells each answer through a pipe; what
 * it told is there afterwards, whole, and at most one group more.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/rng.h"
#include "support.h"

#define OPS (&store_sqlite_ops)
#define ROUNDS 25
#define GROUP 3 /* txns, each a workload and its event */

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    fixture_start(f);
    f->options.checkpoint_pages = 20; /* crashes shall hit checkpoints too */
    *state = f;
    return 0;
}

static void child(struct fixture *f, uint64_t first, int out)
{
    if (fixture_open(f, NULL) < 0)
        _exit(1);
    struct store_txn *t = txn_new(f);
    put_team(t, 1, "nlp", 0);
    if (txn_commit(f, t) < 0)
        _exit(2);
    for (uint64_t id = first;; id += GROUP) {
        struct store_txn *group[GROUP];
        for (uint64_t i = 0; i < GROUP; i++) {
            group[i] = txn_new(f);
            put_workload(group[i], id + i, "nlp", 1, "ada", 1, NULL);
            add_event(group[i], id + i, id + i, "nlp", (int64_t)id);
        }
        uint64_t told = id + GROUP - 1;
        if (txn_commit_group(f, group, GROUP) < 0 || write(out, &told, sizeof(told)) < 0)
            _exit(3);
    }
}

/* Largest id that the child told before it died; FIRST - 1 where it told none. */
static uint64_t run_and_kill(struct fixture *f, uint64_t first, int64_t after_us)
{
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        child(f, first, fds[1]);
    }
    close(fds[1]);
    struct timespec wait = {.tv_nsec = after_us * 1000};
    nanosleep(&wait, NULL);
    kill(pid, SIGKILL);
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status)); /* and not an exit of its own */
    uint64_t told, last = first - 1;
    while (read(fds[0], &told, sizeof(told)) == sizeof(told))
        last = told;
    close(fds[0]);
    return last;
}

static void what_was_answered_survives_kill_9(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    uint64_t stored = 0;
    rng_seed(&rng, 42);
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t told = run_and_kill(f, stored + 1, 1000 + (int64_t)rng_below(&rng, 40000));
        uint64_t workload, event, other;
        assert_int_equal(fixture_open(f, NULL), 0);
        assert_int_equal(OPS->last_ids(f->store, &workload, &event, &other, NULL), 0);
        assert_int_equal(workload, event);
        if (workload != told)
            assert_int_equal(workload, told + GROUP);
        fixture_close(f);
        /* Ids are dense: none is missing in between. */
        assert_int_equal(query_sql(f, "SELECT count(*) FROM workloads"), workload);
        assert_int_equal(query_sql(f, "SELECT count(*) FROM launches"), workload);
        assert_int_equal(query_sql(f, "SELECT count(*) FROM events"), workload);
        stored = workload;
    }
    assert_true(stored > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_answered_survives_kill_9, setup, fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
