/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disks that fail. A group that was answered with success is there after a crash at any later
 * instant; one that was answered with an error is not, not even in part.
 *
 * A crash is played by copying the files beside the running store, without its shared index.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "fault_vfs.h"
#include "support.h"

#define OPS (&store_sqlite_ops)
#define GROUP_TXNS 2

static int setup_with(void **state, int checkpoint_pages)
{
    struct fixture *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    fault_vfs_register();
    fault_clear();
    fixture_start(f);
    f->options.vfs = FAULT_VFS_NAME;
    f->options.checkpoint_pages = checkpoint_pages;
    *state = f;
    return fixture_open(f, NULL);
}

static int setup(void **state)
{
    return setup_with(state, 1000000); /* never */
}

static int setup_eager(void **state)
{
    return setup_with(state, 1); /* after each group, so that the log restarts with each */
}

static int teardown(void **state)
{
    fault_clear();
    fault_keep_synced(NULL);
    return fixture_teardown(state);
}

static void run_cp(struct fixture *f, const char *to)
{
    char command[512];
    snprintf(command, sizeof(command), "cp %s/allot.db %s/allot.db && cp %s/allot.db-wal %s/",
             f->folder, to, f->folder, to);
    assert_int_equal(system(command), 0);
}

/* Opens the store in FOLDER and returns the ids of its workloads; each must have its event. */
static struct ids ids_in(const char *folder)
{
    struct store *store = NULL;
    struct err err = ERR_INIT;
    struct ids ids = {.count = 0}, events = {.count = 0};
    struct store_workload_filter all = {.limit = 1000};
    struct store_event_filter every = {.limit = 1000};
    if (store_open(folder, NULL, &store, &err) < 0)
        fail_msg("the copy does not open: %s", err.text);
    assert_int_equal(OPS->list_workloads(store, &all, collect_workload, &ids, NULL), 0);
    assert_int_equal(OPS->list_events(store, &every, collect_event, &events, NULL), 0);
    store_close(store);
    assert_int_equal(ids.count, events.count);
    for (size_t i = 0; i < ids.count; i++)
        assert_int_equal(ids.id[ids.count - 1 - i], events.id[i]);
    return ids;
}

static struct ids ids_after_crash(struct fixture *f)
{
    char copy[96];
    snprintf(copy, sizeof(copy), "%s/crash", f->folder);
    assert_int_equal(io_mkdirs(copy, 0700), 0);
    run_cp(f, copy);
    struct ids ids = ids_in(copy);
    assert_int_equal(io_remove_tree(AT_FDCWD, copy), 0);
    return ids;
}

/* Ids COUNT..1, newest first. */
static void expect_first(const struct ids *ids, uint64_t count)
{
    assert_int_equal(ids->count, count);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(ids->id[i], count - i);
}

static void first_group(struct fixture *f)
{
    struct store_txn *t = txn_new(f);
    put_team(t, 1, "nlp", 0);
    put_workload(t, 1, "nlp", 1, "ada", 1, NULL);
    add_event(t, 1, 1, "nlp", 1);
    assert_int_equal(txn_commit(f, t), 0);
}

static void second_group(struct fixture *f, struct store_txn **txns)
{
    for (uint64_t i = 0; i < GROUP_TXNS; i++) {
        txns[i] = txn_new(f);
        put_workload(txns[i], 2 + i, "nlp", 1, "ada", 1, NULL);
        add_event(txns[i], 2 + i, 2 + i, "nlp", 1);
    }
}

/* Fails the NTH call of a commit; false once the commit has fewer calls than that. */
static bool fail_nth(struct fixture *f, int calls, int nth, int rc, bool sticky, int status)
{
    struct store_txn *txns[GROUP_TXNS];
    first_group(f);
    second_group(f, txns);
    fault_set(calls, nth, rc, sticky);
    txn_commit_group(f, txns, GROUP_TXNS);
    bool struck = fault_struck();
    fault_clear();
    for (int i = 0; i < GROUP_TXNS; i++) {
        assert_int_equal(txns[i]->status, struck ? status : 0);
        if (struck) {
            assert_non_null(strstr(txns[i]->err.text, f->folder));
            assert_true(strlen(txns[i]->err.remedy) > 0);
        }
    }
    struct ids ids = ids_after_crash(f);
    expect_first(&ids, struck ? 1 : 3);
    if (struck) {
        assert_int_equal(txn_commit_group(f, txns, GROUP_TXNS), 0);
        assert_int_equal(txns[1]->status, 0);
    }
    ids = ids_after_crash(f);
    expect_first(&ids, 3);
    return struck;
}

static void fail_each_call(void **state, int calls, int rc, bool sticky, int status)
{
    int nth = 1;
    for (bool struck = true; struck; nth++) {
        struct fixture *f = *state;
        struck = fail_nth(f, calls, nth, rc, sticky, status);
        assert_int_equal(fixture_teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
    assert_true(nth > 2); /* at least one call was there to fail */
}

static void each_write_fails_for_lack_of_space(void **state)
{
    fail_each_call(state, FAULT_WRITE, SQLITE_FULL, false, -ENOSPC);
}

static void all_writes_fail_for_lack_of_space(void **state)
{
    fail_each_call(state, FAULT_WRITE, SQLITE_FULL, true, -ENOSPC);
}

static void each_write_fails_with_an_io_error(void **state)
{
    fail_each_call(state, FAULT_WRITE, SQLITE_IOERR_WRITE, false, -EIO);
}

static void each_sync_fails(void **state)
{
    fail_each_call(state, FAULT_SYNC, SQLITE_IOERR_FSYNC, false, -EIO);
}

static void the_disk_turns_read_only(void **state)
{
    fail_each_call(state, FAULT_ANY, SQLITE_READONLY, true, -EROFS);
}

/* Faults over commits and the checkpoints between them, each place in turn, until a whole run
 * has none: what was answered with success, and nothing else, is there. */
static bool run_with_fault(struct fixture *f, int calls, int nth, int rc)
{
    uint64_t acknowledged[16];
    size_t count = 1;
    acknowledged[0] = 1;
    first_group(f);
    txn_commit_group(f, NULL, 0); /* the checkpoint behind the first group has ended */
    fault_set(calls, nth, rc, true);
    for (uint64_t id = 2; id < 7; id++) {
        struct store_txn *t = txn_new(f);
        put_workload(t, id, "nlp", 1, "ada", 1, NULL);
        add_event(t, id, id, "nlp", 1);
        if (txn_commit(f, t) == 0)
            acknowledged[count++] = id;
        txn_commit_group(f, NULL, 0);
        if (fault_struck() && id == 4)
            fault_clear(); /* the disk recovers */
    }
    bool struck = fault_struck();
    fault_clear();
    struct ids ids = ids_after_crash(f);
    assert_int_equal(ids.count, count);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(ids.id[count - 1 - i], acknowledged[i]);
    return struck || count < 6;
}

static void faults_between_commits_and_checkpoints(void **state)
{
    static const struct {
        int calls, rc;
    } cases[] = {{FAULT_WRITE, SQLITE_FULL}, {FAULT_SYNC, SQLITE_IOERR_FSYNC}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool struck = true;
        int nth = 1;
        for (; struck && nth < 500; nth++) {
            struck = run_with_fault(*state, cases[i].calls, nth, cases[i].rc);
            assert_int_equal(fixture_teardown(state), 0);
            assert_int_equal(setup_eager(state), 0);
        }
        assert_true(nth > 5 && nth < 500);
    }
}

static void readers_go_on_while_the_disk_is_full(void **state)
{
    struct fixture *f = *state;
    struct store_txn *txns[GROUP_TXNS];
    struct model_workload w;
    first_group(f);
    second_group(f, txns);
    fault_set(FAULT_ANY, 1, SQLITE_FULL, true);
    assert_int_equal(txn_commit_group(f, txns, GROUP_TXNS), -ENOSPC);
    assert_int_equal(OPS->get_workload(f->store, 1, &f->arena, &w, NULL), 0);
    assert_int_equal(OPS->get_workload(f->store, 2, &f->arena, &w, NULL), -ENOENT);
}

/* After each answer the power is cut: only what was synced counts. */
static void what_is_answered_is_synced(void **state)
{
    struct fixture *f = *state;
    char synced[96], copy[256];
    snprintf(synced, sizeof(synced), "%s/synced", f->folder);
    snprintf(copy, sizeof(copy), "cp %s/* %s/power-cut/", synced, f->folder);
    assert_int_equal(io_mkdirs(synced, 0700), 0);
    fixture_close(f); /* from the start, so that each file is seen */
    fault_keep_synced(synced);
    char path[96];
    snprintf(path, sizeof(path), "%s/allot.db", f->folder);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(fixture_open(f, NULL), 0);
    first_group(f);
    for (uint64_t id = 2; id < 12; id++) {
        char folder[96];
        struct store_txn *t = txn_new(f);
        put_workload(t, id, "nlp", 1, "ada", 1, NULL);
        add_event(t, id, id, "nlp", 1);
        assert_int_equal(txn_commit(f, t), 0);
        txn_commit_group(f, NULL, 0);
        snprintf(folder, sizeof(folder), "%s/power-cut", f->folder);
        assert_int_equal(io_mkdirs(folder, 0700), 0);
        assert_int_equal(system(copy), 0);
        struct ids ids = ids_in(folder);
        expect_first(&ids, id);
        assert_int_equal(io_remove_tree(AT_FDCWD, folder), 0);
    }
}

/* ---- a real small disk --------------------------------------------------------------------- */

static int setup_tmpfs(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    fixture_start(f);
    *state = f;
    if (mount("tmpfs", f->folder, "tmpfs", 0, "size=1m,mode=0700") < 0) {
        print_message("no small file system can be mounted here: %s\n", strerror(errno));
        f->options.readers = -1; /* the tests skip */
    }
    return 0;
}

static int teardown_tmpfs(void **state)
{
    struct fixture *f = *state;
    fixture_close(f);
    if (f->options.readers != -1 && umount(f->folder) < 0)
        return -1;
    return fixture_teardown(state);
}

static void write_ballast(struct fixture *f, char *path, size_t size)
{
    static char data[200 * 1024];
    snprintf(path, size, "%s/ballast", f->folder);
    assert_int_equal(io_write_file_atomic(AT_FDCWD, path, data, sizeof(data), 0600, 0), 0);
}

static void a_full_disk_refuses_and_recovers(void **state)
{
    struct fixture *f = *state;
    char ballast[96];
    uint64_t stored = 1;
    if (f->options.readers == -1)
        skip();
    write_ballast(f, ballast, sizeof(ballast));
    assert_int_equal(fixture_open(f, NULL), 0);
    first_group(f);
    struct store_txn *t;
    for (;; stored++) {
        t = txn_new(f);
        put_workload(t, stored + 1, "nlp", 1, "ada", 1, NULL);
        add_event(t, stored + 1, stored + 1, "nlp", 1);
        if (txn_commit(f, t) < 0)
            break;
        assert_true(stored < 3000);
    }
    assert_int_equal(t->status, -ENOSPC);
    assert_non_null(strstr(t->err.text, "no space left"));
    assert_true(stored > 2);
    uint64_t workload, event, other;
    assert_int_equal(OPS->last_ids(f->store, &workload, &event, &other, NULL), 0);
    assert_int_equal(workload, stored);
    assert_int_equal(unlink(ballast), 0);
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(OPS->last_ids(f->store, &workload, &event, &other, NULL), 0);
    assert_int_equal(workload, stored + 1);
}

static void a_read_only_disk_is_refused_at_opening(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    if (f->options.readers == -1)
        skip();
    assert_int_equal(fixture_open(f, NULL), 0);
    first_group(f);
    fixture_close(f);
    assert_int_equal(mount(NULL, f->folder, NULL, MS_REMOUNT | MS_RDONLY, "size=1m"), 0);
    assert_int_equal(fixture_open(f, &err), -EROFS);
    assert_non_null(strstr(err.text, f->folder));
    assert_true(strlen(err.remedy) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_write_fails_for_lack_of_space),
        TEST(all_writes_fail_for_lack_of_space),
        TEST(each_write_fails_with_an_io_error),
        TEST(each_sync_fails),
        TEST(the_disk_turns_read_only),
        cmocka_unit_test_setup_teardown(faults_between_commits_and_checkpoints, setup_eager,
                                        teardown),
        TEST(readers_go_on_while_the_disk_is_full),
        TEST(what_is_answered_is_synced),
        cmocka_unit_test_setup_teardown(what_is_answered_is_synced, setup_eager, teardown),
        cmocka_unit_test_setup_teardown(a_full_disk_refuses_and_recovers, setup_tmpfs,
                                        teardown_tmpfs),
        cmocka_unit_test_setup_teardown(a_read_only_disk_is_refused_at_opening, setup_tmpfs,
                                        teardown_tmpfs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
