/* SPDX-License-Identifier: Apache-2.0 */
/* What grows is bounded: events by number, replies by time. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "support.h"

#define OPS (&store_sqlite_ops)

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    if (!f)
        return -1;
    fixture_start(f);
    f->options.max_events = 100;
    *state = f;
    return fixture_open(f, NULL);
}

static struct ids all_events(struct fixture *f)
{
    struct ids ids = {.count = 0};
    struct store_event_filter filter = {.limit = 1000};
    assert_int_equal(OPS->list_events(f->store, &filter, collect_event, &ids, NULL), 0);
    return ids;
}

static void add_events(struct fixture *f, uint64_t first, uint64_t count, int64_t time_ms)
{
    struct store_txn *t = txn_new(f);
    for (uint64_t i = 0; i < count; i++)
        add_event(t, first + i, 0, NULL, time_ms);
    assert_int_equal(txn_commit(f, t), 0);
}

static void the_oldest_events_go(void **state)
{
    struct fixture *f = *state;
    add_events(f, 1, 100, 1);
    assert_int_equal(all_events(f).count, 100);
    add_events(f, 101, 1, 1);
    struct ids got = all_events(f);
    assert_int_equal(got.count, 100);
    assert_int_equal(got.id[0], 2);
    assert_int_equal(got.id[99], 101);
}

static void a_backlog_goes_in_small_steps(void **state)
{
    struct fixture *f = *state;
    fixture_close(f);
    f->options.max_events = 1000;
    assert_int_equal(fixture_open(f, NULL), 0);
    add_events(f, 1, 1000, 1);
    fixture_close(f);
    f->options.max_events = 100;
    assert_int_equal(fixture_open(f, NULL), 0);
    add_events(f, 1001, 1, 1);
    size_t after_one = all_events(f).count;
    assert_true(after_one < 1000 && after_one > 800);
    for (uint64_t seq = 1002; seq < 1022; seq++)
        add_events(f, seq, 1, 1);
    assert_int_equal(all_events(f).count, 100);
}

static void a_refused_txn_trims_nothing(void **state)
{
    struct fixture *f = *state;
    add_events(f, 1, 100, 1);
    struct store_txn *t = txn_new(f);
    add_event(t, 101, 0, NULL, 1);
    add_event(t, 100, 0, NULL, 1); /* exists */
    assert_int_equal(txn_commit(f, t), -EEXIST);
    struct ids got = all_events(f);
    assert_int_equal(got.count, 100);
    assert_int_equal(got.id[0], 1);
}

static void expired_replies_go(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_reply(t, "a", 1000);
    put_reply(t, "b", 90000);
    add_event(t, 1, 0, NULL, 10);
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(query_sql(f, "SELECT count(*) FROM replies"), 2);
    add_events(f, 2, 1, 5000);
    assert_int_equal(query_sql(f, "SELECT count(*) FROM replies"), 1);
    struct store_reply reply;
    assert_int_equal(OPS->get_reply(f->store, "b", 5000, &f->arena, &reply, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_oldest_events_go),
        TEST(a_backlog_goes_in_small_steps),
        TEST(a_refused_txn_trims_nothing),
        TEST(expired_replies_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
