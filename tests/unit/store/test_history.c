/* SPDX-License-Identifier: Apache-2.0 */
/* The history: the same in pieces from a store that goes on and as a whole from its folder. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/history.h"
#include "support.h"

#define OPS (&store_sqlite_ops)
#define JOBS 450 /* several pieces */
#define CHANGES 420

static void fill(struct fixture *f, uint64_t first, uint64_t last, int64_t now_ms)
{
    struct store_txn *t = txn_new(f);

    for (uint64_t id = first; id <= last; id++) {
        put_workload(t, id, "a", 1, "ada", 1, NULL);
        put_allocation(t, 10000 + 2 * id, id, 1, 1000, 10, 20, 0);
        put_allocation(t, 10001 + 2 * id, id, 1, 1000, 30, 0, 0);
        add_event(t, id, id, "a", now_ms);
    }
    assert_int_equal(txn_commit(f, t), 0);
}

/* Events of changes, more than a piece holds, from SEQ on. */
static void add_changes(struct fixture *f, uint64_t seq, int64_t now_ms)
{
    struct store_txn *t = txn_new(f);

    for (uint64_t i = 0; i < CHANGES; i++) {
        struct model_event *e = arena_new(&t->arena, struct model_event);
        *e = (struct model_event){.seq = seq + i,
                                  .time_ms = now_ms,
                                  .type = MODEL_EVENT_TEAM,
                                  .task = -1,
                                  .team = "a",
                                  .data = i % 2 ? "{\"before\":null}" : NULL};
        txn_add(t, &(struct store_op){.kind = STORE_ADD_EVENT, .event = e});
    }
    assert_int_equal(txn_commit(f, t), 0);
}

static int set_up(void **state)
{
    int r = fixture_setup(state);
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);

    put_team(t, 1, "a", 0);
    assert_int_equal(txn_commit(f, t), 0);
    fill(f, 1, JOBS, 100);
    add_changes(f, JOBS + 1, 100);
    return r;
}

/* Lines that hold WORD. */
static size_t count(const char *text, const char *word)
{
    size_t n = 0;

    for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
        n++;
    return n;
}

static int pieces(struct fixture *f, struct strbuf *out, void (*between)(struct fixture *f))
{
    struct store_history_at at = {0};
    struct err err = ERR_INIT;
    int n = 0, r;

    while ((r = OPS->history(f->store, &at, out, &err)) > 0) {
        if (between && n == 0)
            between(f);
        n++;
    }
    if (r < 0)
        fail_msg("%s", err.text);
    return n + 1;
}

static char *whole(struct fixture *f)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    struct err err = ERR_INIT;

    if (store_history_write(f->folder, out, &err) < 0)
        fail_msg("%s", err.text);
    fclose(out);
    return text;
}

static void pieces_make_up_the_whole(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = STRBUF_INIT;
    char *all = whole(f);

    assert_true(pieces(f, &text, NULL) > 4);
    assert_string_equal(strbuf_str(&text), all);
    /* changes of which nothing is known but their time */
    assert_non_null(strstr(all, "{\"history\":2,\"now_ms\":100,\"events_from_ms\":100}\n"));
    assert_int_equal(count(all, "{\"workload\":"), JOBS);
    assert_int_equal(count(all, "{\"run\":"), 2 * JOBS);
    assert_int_equal(count(all, "{\"change\":\"team\""), CHANGES / 2); /* of those with data */
    assert_non_null(strstr(all, "{\"end\":{\"workloads\":450,\"runs\":900}}\n"));
    strbuf_done(&text);
    free(all);
}

/* One workload with many runs: no piece is larger for it. */
static void no_piece_is_large(void **state)
{
    struct fixture *f = *state;
    struct store_history_at at = {0};
    struct store_txn *t = txn_new(f);
    struct strbuf text = STRBUF_INIT;
    struct err err = ERR_INIT;
    size_t before = 0, longest = 0;
    char *all;
    int r;

    for (uint64_t i = 0; i < 5000; i++)
        put_allocation(t, 30000 + i, 7, 1, 1000, 10, 20, 0);
    assert_int_equal(txn_commit(f, t), 0);
    all = whole(f);
    while ((r = OPS->history(f->store, &at, &text, &err)) > 0) {
        longest = text.len - before > longest ? text.len - before : longest;
        before = text.len;
    }
    assert_int_equal(r, 0);
    assert_true(longest < (size_t)256 * 1024);
    assert_string_equal(strbuf_str(&text), all);
    assert_int_equal(count(all, "{\"run\":"), 2 * JOBS + 5000);
    strbuf_done(&text);
    free(all);
}

static void goes_on(struct fixture *f)
{
    struct store_txn *t = txn_new(f);

    fill(f, JOBS + CHANGES + 1, JOBS + CHANGES + 10, 200);
    add_changes(f, JOBS + CHANGES + 11, 200);
    put_allocation(t, 10001 + 2 * JOBS, JOBS, 1, 1000, 30, 190, 0); /* it ends */
    put_allocation(t, 20000, JOBS, 1, 1000, 195, 0, 0);
    assert_int_equal(txn_commit(f, t), 0);
}

static void what_comes_later_is_left_out(void **state)
{
    struct fixture *f = *state;
    struct strbuf text = STRBUF_INIT;
    char *before = whole(f);

    pieces(f, &text, goes_on);
    assert_string_equal(strbuf_str(&text), before);
    strbuf_done(&text);
    free(before);
}

static void a_damaged_row_is_an_error(void **state)
{
    struct fixture *f = *state;
    struct store_history_at at = {0};
    struct strbuf text = STRBUF_INIT;
    struct err err = ERR_INIT;
    int r;

    run_sql(f, "UPDATE allocations SET release = 'well' WHERE workload = 300");
    while ((r = OPS->history(f->store, &at, &text, &err)) > 0)
        continue;
    assert_int_equal(r, -EUCLEAN);
    assert_non_null(strstr(err.text, "release"));
    assert_int_equal(count(strbuf_str(&text), "{\"end\":"), 0);
    strbuf_done(&text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pieces_make_up_the_whole),
        TEST(no_piece_is_large),
        TEST(what_comes_later_is_left_out),
        TEST(a_damaged_row_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
