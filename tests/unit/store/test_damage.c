/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged files and rows: a clear error, never a crash, and nothing invented. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "support.h"

#define OPS (&store_sqlite_ops)

static int setup(void **state)
{
    if (fixture_setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct model_node *n = arena_new(&t->arena, struct model_node);
    *n = (struct model_node){.id = 4, .name = "n1", .cluster = "local"};
    put_team(t, 1, "nlp", 0);
    txn_add(t, &(struct store_op){.kind = STORE_PUT_NODE, .node = n});
    put_workload(t, 10, "nlp", 1, "ada", 1, NULL);
    put_task(t, 10, 0, MODEL_TASK_RUNNING, 4);
    put_allocation(t, 5, 10, 1, 1000, 10, 0, 0);
    put_user(t, "ada", "nlp");
    put_token(t, 6, "ada", 1, 0);
    add_event(t, 1, 10, "nlp", 1);
    return txn_commit(f, t);
}

static int no_workload(void *user, const struct store_workload_row *row)
{
    return 99;
}

static int no_task(void *user, const struct model_task *task)
{
    return 99;
}

static int no_allocation(void *user, const struct model_allocation *a)
{
    return 99;
}

static int no_node(void *user, const struct model_node *node)
{
    return 99;
}

static int no_team(void *user, const struct model_team *team)
{
    return 99;
}

static int no_user(void *user, const struct model_user *row)
{
    return 99;
}

static int no_event(void *user, const struct model_event *event)
{
    return 99;
}

/* One read of everything that the row of the table serves. */
static int read_table(struct fixture *f, const char *table, struct err *err)
{
    struct store *s = f->store;
    struct store_event_filter events = {.limit = 10};
    if (strcmp(table, "workloads") == 0)
        return OPS->each_live_workload(s, no_workload, NULL, err);
    if (strcmp(table, "tasks") == 0)
        return OPS->each_live_task(s, no_task, NULL, err);
    if (strcmp(table, "allocations") == 0)
        return OPS->list_allocations(s, 10, no_allocation, NULL, err);
    if (strcmp(table, "nodes") == 0)
        return OPS->each_node(s, no_node, NULL, err);
    if (strcmp(table, "teams") == 0)
        return OPS->each_team(s, no_team, NULL, err);
    if (strcmp(table, "users") == 0)
        return OPS->each_user(s, no_user, NULL, err);
    return OPS->list_events(s, &events, no_event, NULL, err);
}

static void a_value_that_the_model_does_not_know_is_refused(void **state)
{
    static const struct {
        const char *table, *column, *sql;
    } cases[] = {
        {"workloads", "kind", "UPDATE workloads SET kind = 'jobb'"},
        {"workloads", "class", "UPDATE workloads SET class = ''"},
        {"workloads", "restarts", "UPDATE workloads SET restarts = -1"},
        {"workloads", "failures", "UPDATE workloads SET failures = 4294967296"},
        {"workloads", "name", "UPDATE workloads SET name = 'a' || char(0) || 'b'"},
        {"workloads", "owner", "UPDATE workloads SET owner = CAST(x'ff41' AS TEXT)"},
        {"tasks", "state", "UPDATE tasks SET state = 'asleep'"},
        {"tasks", "devices", "UPDATE tasks SET devices = '0,x'"},
        {"tasks", "devices", "UPDATE tasks SET devices = '70000'"},
        {"tasks", "attempt", "UPDATE tasks SET attempt = 1 << 40"},
        {"allocations", "end_ms", "UPDATE allocations SET end_ms = 3"},
        {"allocations", "gpu_milli", "UPDATE allocations SET gpu_milli = -5"},
        {"nodes", "json", "UPDATE nodes SET json = '{'"},
        {"nodes", "json", "UPDATE nodes SET name = 'other'"},
        {"teams", "weight", "UPDATE teams SET weight = -1"},
        {"teams", "guarantee_cpu_milli", "UPDATE teams SET guarantee_cpu_milli = -1"},
        {"users", "admin", "UPDATE users SET admin = 2"},
        {"users", "teams", "UPDATE users SET teams = 'no end'"},
        {"events", "task", "UPDATE events SET task = 1 << 33"},
        {"events", "type", "UPDATE events SET type = 'a' || char(0)"},
    };
    struct fixture *f = *state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        char save[128], restore[160];
        snprintf(save, sizeof(save), "DROP TABLE IF EXISTS s; CREATE TABLE s AS SELECT * FROM %s",
                 cases[i].table);
        snprintf(restore, sizeof(restore), "DELETE FROM %s; INSERT INTO %s SELECT * FROM s;",
                 cases[i].table, cases[i].table);
        run_sql(f, save);
        run_sql(f, cases[i].sql);
        int r = read_table(f, cases[i].table, &err);
        if (r != -EUCLEAN || !strstr(err.text, cases[i].table) ||
            !strstr(err.text, cases[i].column))
            fail_msg("%s: %d, %s", cases[i].sql, r, err.text);
        run_sql(f, restore);
        assert_int_equal(read_table(f, cases[i].table, &err), 99);
    }
}

static void damaged_json_of_a_workload_is_refused(void **state)
{
    struct fixture *f = *state;
    struct model_workload w;
    struct err err = ERR_INIT;
    run_sql(f, "UPDATE launches SET json = '[]'");
    assert_int_equal(OPS->get_workload(f->store, 10, &f->arena, &w, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, "launch"));
    run_sql(f, "UPDATE shapes SET json = '{\"kind\": 3}'");
    assert_int_equal(OPS->get_workload(f->store, 10, &f->arena, &w, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, "shape"));
    run_sql(f, "PRAGMA foreign_keys = OFF; DELETE FROM launches; DELETE FROM shapes");
    assert_int_equal(OPS->get_workload(f->store, 10, &f->arena, &w, &err), -EUCLEAN);
    struct store_workload_filter filter = {.limit = 10};
    assert_int_equal(OPS->list_workloads(f->store, &filter, no_workload, NULL, &err), -EUCLEAN);
}

static void a_missing_value_is_refused_at_writing(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    txn_add(t, &(struct store_op){.kind = STORE_PUT_META, .meta = {"k", NULL}});
    assert_int_equal(txn_commit(f, t), -EINVAL);
}

static void path_of(struct fixture *f, char *path, size_t size)
{
    snprintf(path, size, "%s/allot.db", f->folder);
}

static void a_file_that_is_no_database_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    char path[96];
    fixture_close(f);
    path_of(f, path, sizeof(path));
    int fd = open(path, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, "this is a letter, not a database at all, and long enough", 57), 57);
    close(fd);
    assert_int_equal(fixture_open(f, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, f->folder));
    assert_true(strlen(err.remedy) > 0);
}

static int count_workload(void *user, const struct store_workload_row *row)
{
    (*(int *)user)++;
    return 0;
}

/* Every page is overwritten in turn: opening or reading may fail, with a clear error only. */
static void a_damaged_page_is_an_error_or_harmless(void **state)
{
    struct fixture *f = *state;
    char path[96], page[4096], noise[4096];
    struct stat st;
    int failures = 0;
    fixture_close(f);
    path_of(f, path, sizeof(path));
    memset(noise, 0xa5, sizeof(noise));
    assert_int_equal(stat(path, &st), 0);
    for (off_t at = 0; at < st.st_size; at += (off_t)sizeof(page)) {
        int fd = open(path, O_RDWR);
        assert_int_equal(pread(fd, page, sizeof(page), at), sizeof(page));
        assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
        struct err err = ERR_INIT;
        int seen = 0;
        int r = fixture_open(f, &err);
        if (r == 0) {
            struct store_workload_filter filter = {.limit = 10};
            r = OPS->list_workloads(f->store, &filter, count_workload, &seen, &err);
            if (r == 0)
                assert_int_equal(seen, 1);
        }
        if (r < 0) {
            failures++;
            assert_int_equal(r, -EUCLEAN);
            assert_true(strlen(err.text) > 0 && strlen(err.remedy) > 0);
        }
        fixture_close(f);
        assert_int_equal(pwrite(fd, page, sizeof(page), at), sizeof(page));
        close(fd);
    }
    assert_true(failures >= 2); /* at least the first page, and the workloads' */
    assert_int_equal(fixture_open(f, NULL), 0);
}

static void a_corrupt_database_fails_the_group(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    char path[96], noise[4096];
    int64_t root = query_sql(f, "SELECT rootpage FROM sqlite_schema WHERE name = 'events'");
    fixture_close(f);
    path_of(f, path, sizeof(path));
    memset(noise, 0xa5, sizeof(noise));
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, noise, sizeof(noise), (root - 1) * 4096), sizeof(noise));
    close(fd);
    int r = fixture_open(f, &err);
    if (r == 0) { /* not read at opening: then a write finds it */
        struct store_txn *t = txn_new(f);
        add_event(t, 2, 0, NULL, 1);
        r = txn_commit(f, t);
        err = t->err;
    }
    assert_int_equal(r, -EUCLEAN);
    assert_non_null(strstr(err.text, "damaged"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_value_that_the_model_does_not_know_is_refused),
        TEST(damaged_json_of_a_workload_is_refused),
        TEST(a_missing_value_is_refused_at_writing),
        TEST(a_file_that_is_no_database_is_refused),
        TEST(a_damaged_page_is_an_error_or_harmless),
        TEST(a_corrupt_database_fails_the_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
