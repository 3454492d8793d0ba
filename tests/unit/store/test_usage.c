/* SPDX-License-Identifier: Apache-2.0 */
/* Usage: windows cut allocations exactly, and parts add up to the whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/rng.h"
#include "support.h"

#define OPS (&store_sqlite_ops)

static int setup(void **state)
{
    if (fixture_setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_team(t, 1, "nlp", 0);
    put_team(t, 2, "vision", 0);
    put_workload(t, 1, "nlp", 1, "ada", 1, NULL);
    put_workload(t, 2, "vision", 2, "bob", 1, NULL);
    return txn_commit(f, t);
}

struct rows {
    struct store_usage_row row[8];
    char team[8][16];
    int count;
};

static int keep(void *user, const struct store_usage_row *row)
{
    struct rows *r = user;
    snprintf(r->team[r->count], sizeof(r->team[0]), "%s", row->team);
    r->row[r->count++] = *row;
    return 0;
}

static struct rows usage(struct fixture *f, int64_t from, int64_t to, int64_t now)
{
    struct rows rows = {.count = 0};
    assert_int_equal(OPS->usage(f->store, from, to, now, keep, &rows, NULL), 0);
    return rows;
}

static void add(struct fixture *f, uint64_t id, uint64_t team, int32_t milli, int64_t start,
                int64_t end, int64_t busy)
{
    struct store_txn *t = txn_new(f);
    put_allocation(t, id, team, team, milli, start, end, busy);
    assert_int_equal(txn_commit(f, t), 0);
}

static void an_allocation_inside_counts_whole(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 1, 250, 1000, 3000, 1234567);
    struct rows r = usage(f, 0, 10000, 10000);
    assert_int_equal(r.count, 1);
    assert_string_equal(r.team[0], "nlp");
    assert_int_equal(r.row[0].allocated_milli_ms, 250 * 2000);
    assert_int_equal(r.row[0].cpu_milli_ms, 500 * 2000);
    assert_int_equal(r.row[0].busy_ns, 1234567);
    assert_int_equal(r.row[0].gpu_ms, 2000);
    assert_int_equal(r.row[0].allocations, 1);
    assert_int_equal(r.row[0].open, 0);
}

static void a_window_is_half_open(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 1, 1000, 1000, 2000, 0);
    assert_int_equal(usage(f, 0, 1000, 9000).count, 0);
    assert_int_equal(usage(f, 2000, 3000, 9000).count, 0);
    assert_int_equal(usage(f, 0, 1001, 9000).row[0].allocated_milli_ms, 1000);
    assert_int_equal(usage(f, 1999, 3000, 9000).row[0].allocated_milli_ms, 1000);
    assert_int_equal(usage(f, 1500, 1500, 9000).count, 0);
}

static void an_open_allocation_ends_now(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 1, 1000, 1000, 0, 0);
    struct rows r = usage(f, 0, 10000, 4000);
    assert_int_equal(r.row[0].allocated_milli_ms, 3000 * 1000);
    assert_int_equal(r.row[0].open, 1);
    r = usage(f, 2000, 3000, 4000);
    assert_int_equal(r.row[0].allocated_milli_ms, 1000 * 1000);
    assert_int_equal(usage(f, 0, 10000, 500).count, 0); /* now before its start */
}

static void an_allocation_with_no_length_counts_once(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 1, 1000, 1000, 1000, 50);
    struct rows r = usage(f, 1000, 2000, 9000);
    assert_int_equal(r.count, 1);
    assert_int_equal(r.row[0].allocations, 1);
    assert_int_equal(r.row[0].allocated_milli_ms, 0);
    assert_int_equal(r.row[0].busy_ns, 50);
    assert_int_equal(usage(f, 0, 1000, 9000).count, 0);
}

static void teams_are_apart_and_in_order(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 2, 1000, 0, 10, 0);
    add(f, 2, 1, 500, 0, 10, 0);
    add(f, 3, 1, 500, 5, 15, 0);
    struct rows r = usage(f, 0, 100, 100);
    assert_int_equal(r.count, 2);
    assert_string_equal(r.team[0], "nlp");
    assert_int_equal(r.row[0].allocated_milli_ms, 10000);
    assert_int_equal(r.row[0].gpu_ms, 15); /* the union */
    assert_int_equal(r.row[0].allocations, 2);
    assert_string_equal(r.team[1], "vision");
}

static void work_without_devices_counts_no_gpu_time(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 1, 0, 0, 1000, 0);
    struct rows r = usage(f, 0, 1000, 1000);
    assert_int_equal(r.row[0].gpu_ms, 0);
    assert_int_equal(r.row[0].allocated_milli_ms, 0);
    assert_int_equal(r.row[0].cpu_milli_ms, 500 * 1000);
}

static void a_deleted_team_keeps_its_usage(void **state)
{
    struct fixture *f = *state;
    add(f, 1, 1, 1000, 0, 1000, 0);
    struct store_txn *t = txn_new(f);
    txn_add(t, &(struct store_op){.kind = STORE_DELETE_TEAM, .id = 1});
    assert_int_equal(txn_commit(f, t), 0);
    struct rows r = usage(f, 0, 1000, 1000);
    assert_string_equal(r.team[0], "nlp");
}

static void busy_time_of_an_open_allocation_ends_at_its_report(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    static const uint16_t device = 0;
    struct model_allocation a = {.id = 1,
                                 .workload = 1,
                                 .team = 1,
                                 .devices = &device,
                                 .device_count = 1,
                                 .gpu_milli = 1000,
                                 .start_ms = 1000,
                                 .busy_ns = 600,
                                 .known_ns = 1000000000 - 1000,
                                 .seen_ms = 2000};
    txn_add(t, &(struct store_op){.kind = STORE_PUT_ALLOCATION, .allocation = &a});
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(usage(f, 0, 1500, 9000).row[0].busy_ns, 300);
    assert_int_equal(usage(f, 1500, 2000, 9000).row[0].busy_ns, 300);
    assert_int_equal(usage(f, 2000, 9000, 9000).row[0].busy_ns, 0);
    assert_int_equal(usage(f, 0, 1500, 9000).row[0].unknown_ns, 500);
    assert_int_equal(usage(f, 0, 9000, 9000).row[0].unknown_ns, 1000);
}

/* Random allocations, random cuts of the line: the parts add up exactly. */
static void consecutive_windows_add_up(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    rng_seed(&rng, 7);
    struct store_txn *t = txn_new(f);
    for (uint64_t id = 1; id <= 200; id++) {
        int64_t start = (int64_t)rng_below(&rng, 100000);
        int64_t length = (int64_t)rng_below(&rng, 50000);
        bool open = rng_below(&rng, 10) == 0;
        put_allocation(t, id, 1, 1, (int32_t)rng_below(&rng, 8001), start,
                       open ? 0 : start + length + (start == 0),
                       (int64_t)rng_below(&rng, 1000000007));
    }
    assert_int_equal(txn_commit(f, t), 0);
    const int64_t now = 200000;
    struct store_usage_row whole = usage(f, 0, now, now).row[0], sum = {0};
    for (int64_t from = 0; from < now;) {
        int64_t to = from + 1 + (int64_t)rng_below(&rng, 9973);
        if (to > now)
            to = now;
        struct rows part = usage(f, from, to, now);
        if (part.count) {
            sum.allocated_milli_ms += part.row[0].allocated_milli_ms;
            sum.busy_ns += part.row[0].busy_ns;
            sum.unknown_ns += part.row[0].unknown_ns;
            sum.gpu_ms += part.row[0].gpu_ms;
            sum.cpu_milli_ms += part.row[0].cpu_milli_ms;
        }
        from = to;
    }
    assert_int_equal(sum.allocated_milli_ms, whole.allocated_milli_ms);
    assert_int_equal(sum.busy_ns, whole.busy_ns);
    assert_true(whole.unknown_ns > 0);
    assert_int_equal(sum.unknown_ns, whole.unknown_ns);
    assert_int_equal(sum.gpu_ms, whole.gpu_ms);
    assert_int_equal(sum.cpu_milli_ms, whole.cpu_milli_ms);
}

static void a_sum_that_does_not_fit_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    struct rows rows = {.count = 0};
    add(f, 1, 1, INT32_MAX, 1, 8000000000000000000, 0);
    assert_int_equal(OPS->usage(f->store, 0, INT64_MAX, INT64_MAX, keep, &rows, &err), -EOVERFLOW);
    assert_non_null(strstr(err.text, "nlp"));
}

static void a_window_that_ends_before_it_starts_is_refused(void **state)
{
    struct fixture *f = *state;
    struct rows rows = {.count = 0};
    assert_int_equal(OPS->usage(f->store, 2, 1, 9, keep, &rows, NULL), -EINVAL);
    assert_int_equal(OPS->usage(f->store, -1, 1, 9, keep, &rows, NULL), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_allocation_inside_counts_whole),
        TEST(a_window_is_half_open),
        TEST(an_open_allocation_ends_now),
        TEST(an_allocation_with_no_length_counts_once),
        TEST(teams_are_apart_and_in_order),
        TEST(work_without_devices_counts_no_gpu_time),
        TEST(a_deleted_team_keeps_its_usage),
        TEST(busy_time_of_an_open_allocation_ends_at_its_report),
        TEST(consecutive_windows_add_up),
        TEST(a_sum_that_does_not_fit_is_refused),
        TEST(a_window_that_ends_before_it_starts_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
