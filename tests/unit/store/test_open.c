/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: the folder, its lock, modes of files, versions of the schema. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "store/schema.h"
#include "support.h"

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    fixture_start(f);
    *state = f;
    return 0;
}

static mode_t mode_of(const char *folder, const char *name)
{
    char path[128];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void a_missing_folder_is_made_private(void **state)
{
    struct fixture *f = *state;
    struct store *store = NULL;
    struct err err = ERR_INIT;
    char folder[96];
    mode_t mask = umask(0);
    snprintf(folder, sizeof(folder), "%s/a/b", f->folder);
    assert_int_equal(store_open(folder, NULL, &store, &err), 0);
    umask(mask);
    assert_int_equal(mode_of(folder, "."), 0700);
    assert_int_equal(mode_of(folder, "allot.db"), 0600);
    assert_int_equal(mode_of(folder, "allot.db-wal"), 0600);
    assert_int_equal(mode_of(folder, "allot.db-shm"), 0600);
    assert_int_equal(mode_of(folder, "lock"), 0600);
    store_close(store);
}

static void a_second_server_is_refused_by_name(void **state)
{
    struct fixture *f = *state;
    struct store *second = NULL;
    struct err err = ERR_INIT;
    char pid[32];
    assert_int_equal(fixture_open(f, &err), 0);
    assert_int_equal(store_open(f->folder, NULL, &second, &err), -EBUSY);
    assert_null(second);
    snprintf(pid, sizeof(pid), " %d", (int)getpid());
    assert_non_null(strstr(err.text, f->folder));
    assert_non_null(strstr(err.text, pid));
    assert_true(strlen(err.remedy) > 0);
    fixture_close(f);
    assert_int_equal(fixture_open(f, &err), 0);
}

static void a_file_in_place_of_the_folder_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store *store = NULL;
    struct err err = ERR_INIT;
    char path[96];
    snprintf(path, sizeof(path), "%s/file", f->folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(store_open(path, NULL, &store, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, path));
}

/* Root may write anywhere: the attempt is made as another user, in a child. */
static int open_as_nobody(struct fixture *f)
{
    struct store *store = NULL;
    struct err err = ERR_INIT;
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
        return 100;
    if (store_open(f->folder, NULL, &store, &err) != -EACCES)
        return 101;
    if (!strstr(err.text, f->folder) || !err.remedy[0])
        return 102;
    return 0;
}

static void a_folder_that_is_not_writable_is_refused(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(chmod(f->folder, 0555), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(open_as_nobody(f));
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(chmod(f->folder, 0700), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_newer_schema_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    assert_int_equal(fixture_open(f, &err), 0);
    fixture_close(f);
    run_sql(f, "PRAGMA user_version = 4711");
    assert_int_equal(fixture_open(f, &err), -EPROTONOSUPPORT);
    assert_non_null(strstr(err.text, "4711"));
    assert_non_null(strstr(err.text, f->folder));
    assert_null(f->store);
}

static const struct schema_step old_and_new[] = {
    {"make a table", "CREATE TABLE a(x INTEGER) STRICT; INSERT INTO a VALUES(1), (2);"},
    {"double what is there", "UPDATE a SET x = x * 2;"},
    {"add a column", "ALTER TABLE a ADD COLUMN y INTEGER NOT NULL DEFAULT 7;"},
};

static const struct schema_step broken[] = {
    {"make a table", "CREATE TABLE a(x INTEGER) STRICT;"},
    {"fine", "INSERT INTO a VALUES(1);"},
    {"wrong", "INSERT INTO a VALUES(1); INSERT INTO nowhere VALUES(1);"},
};

static void open_plain(struct fixture *f, char *path, size_t size, struct db *db)
{
    snprintf(path, size, "%s/allot.db", f->folder);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(db_open(db, path, NULL, DB_WRITER, NULL), 0);
}

static void an_old_version_runs_the_missing_steps_once(void **state)
{
    char path[96];
    struct db db;
    sqlite3_int64 sum = 0, version = 0;
    open_plain(*state, path, sizeof(path), &db);
    assert_int_equal(schema_migrate(&db, old_and_new, 1, NULL), 0);
    assert_int_equal(schema_migrate(&db, old_and_new, 3, NULL), 0);
    assert_int_equal(schema_migrate(&db, old_and_new, 3, NULL), 0);
    assert_int_equal(db_query_int(&db, "SELECT sum(x * y) FROM a", &sum, NULL), 0);
    assert_int_equal(db_query_int(&db, "PRAGMA user_version", &version, NULL), 0);
    assert_int_equal(sum, (2 + 4) * 7);
    assert_int_equal(version, 3);
    db_close(&db);
}

/* What releases before schema 7 wrote down of an eviction, and what is left of it. */
static void messages_of_older_releases_name_nobody(void **state)
{
    static const char *const messages[][2] = {
        {"reclaimed: team b takes back 1 GPU it is entitled to, for 'secret' (9)",
         "reclaimed: team b takes back 1 GPU it is entitled to"},
        {"task 0 is asked to stop within 30 s: gave way: it runs on idle capacity only, and "
         "'secret' (9) of team b needs it",
         "task 0 is asked to stop within 30 s: gave way: it runs on idle capacity only, and other "
         "work needs it"},
        {"moved: 'secret' (9) needs the room in one piece",
         "moved: other work needs the room in one piece"},
        {"preempted: 'mine' (8) of the same team comes first",
         "preempted: 'mine' (8) of the same team comes first"},
    };
    char path[96], sql[1024];
    struct db db;
    sqlite3_int64 same = 0;

    open_plain(*state, path, sizeof(path), &db);
    assert_int_equal(schema_migrate(&db, schema_steps, 6, NULL), 0);
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        sqlite3_snprintf(sizeof(sql), sql,
                         "INSERT INTO events(seq, time_ms, type, task, message)"
                         " VALUES(%d, 1, 'task.stopping', 0, %Q)",
                         (int)i + 1, messages[i][0]);
        assert_int_equal(db_exec(&db, sql, NULL), 0);
    }
    assert_int_equal(schema_migrate(&db, schema_steps, schema_step_count, NULL), 0);
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        sqlite3_snprintf(sizeof(sql), sql, "SELECT count(*) FROM events WHERE message = %Q",
                         messages[i][1]);
        assert_int_equal(db_query_int(&db, sql, &same, NULL), 0);
        assert_int_equal(same, 1);
    }
    db_close(&db);
}

static void a_failed_upgrade_changes_nothing(void **state)
{
    char path[96];
    struct db db;
    struct err err = ERR_INIT;
    sqlite3_int64 rows = -1, version = 0;
    open_plain(*state, path, sizeof(path), &db);
    assert_int_equal(schema_migrate(&db, broken, 1, NULL), 0);
    assert_true(schema_migrate(&db, broken, 3, &err) < 0);
    assert_non_null(strstr(err.text, "step 3 (wrong)"));
    assert_int_equal(db_query_int(&db, "SELECT count(*) FROM a", &rows, NULL), 0);
    assert_int_equal(db_query_int(&db, "PRAGMA user_version", &version, NULL), 0);
    assert_int_equal(rows, 0);
    assert_int_equal(version, 1);
    db_close(&db);
}

static void a_log_left_by_a_crash_is_taken_in(void **state)
{
    struct fixture *f = *state;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) { /* commits and dies without closing */
        struct store_txn *t = txn_new(f);
        put_team(t, 1, "nlp", 0);
        if (fixture_open(f, NULL) < 0 || txn_commit(f, t) < 0)
            _exit(1);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    struct model_team team;
    assert_int_equal(fixture_open(f, NULL), 0);
    assert_int_equal(store_sqlite_ops.get_team(f->store, "nlp", &f->arena, &team, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_missing_folder_is_made_private),
        TEST(a_second_server_is_refused_by_name),
        TEST(a_file_in_place_of_the_folder_is_refused),
        TEST(a_folder_that_is_not_writable_is_refused),
        TEST(a_newer_schema_is_refused),
        TEST(an_old_version_runs_the_missing_steps_once),
        TEST(messages_of_older_releases_name_nobody),
        TEST(a_failed_upgrade_changes_nothing),
        TEST(a_log_left_by_a_crash_is_taken_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
