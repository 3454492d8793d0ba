/* SPDX-License-Identifier: Apache-2.0 */
/* Lists: every filter alone and together, pages, the newest events, start-up's walks. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "support.h"

#define OPS (&store_sqlite_ops)

/* Ids 1..12 over two teams and two owners; odd ids are notebooks of class development; 3 and 4
 * have ended, 5 and 6 run. Each has one event: seq = id * 10. */
static int setup(void **state)
{
    if (fixture_setup(state) < 0)
        return -1;
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_team(t, 1, "nlp", 0);
    put_team(t, 2, "vision", 0);
    for (uint64_t id = 1; id <= 12; id++) {
        uint64_t team = id <= 8 ? 1 : 2;
        bool odd = id % 2 == 1;
        put_workload(t, id, team == 1 ? "nlp" : "vision", team, id % 3 == 0 ? "bob" : "ada",
                     odd ? 1 : 2,
                     odd ? "{\"kind\": \"notebook\", \"gpu\": 0.25, \"command\": [\"sh\"]}"
                         : "{\"tasks\": 2, \"gpus\": 1, \"command\": [\"true\"]}");
        add_event(t, id * 10, id, team == 1 ? "nlp" : "vision", (int64_t)id);
    }
    update_workload(t, 3, MODEL_WORKLOAD_SUCCEEDED, 5000);
    update_workload(t, 4, MODEL_WORKLOAD_FAILED, 5000);
    update_workload(t, 5, MODEL_WORKLOAD_RUNNING, 0);
    update_workload(t, 6, MODEL_WORKLOAD_RUNNING, 0);
    return txn_commit(f, t);
}

static void expect_ids(const struct ids *got, const uint64_t *want, size_t count)
{
    assert_int_equal(got->count, count);
    assert_memory_equal(got->id, want, count * sizeof(*want));
}

#define EXPECT_IDS(got, ...)                        \
    do {                                            \
        const uint64_t want_[] = {__VA_ARGS__};     \
        expect_ids((got), want_, ARRAY_LEN(want_)); \
    } while (0)

static struct ids list(struct fixture *f, struct store_workload_filter filter)
{
    struct ids ids = {.count = 0};
    struct err err = ERR_INIT;
    if (filter.limit == 0)
        filter.limit = 100;
    assert_int_equal(OPS->list_workloads(f->store, &filter, collect_workload, &ids, &err), 0);
    return ids;
}

static void no_filter_lists_all_newest_first(void **state)
{
    struct ids got = list(*state, (struct store_workload_filter){0});
    EXPECT_IDS(&got, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
}

static void pages_follow_each_other_without_gap(void **state)
{
    struct ids got = list(*state, (struct store_workload_filter){.limit = 5});
    EXPECT_IDS(&got, 12, 11, 10, 9, 8);
    got = list(*state, (struct store_workload_filter){.limit = 5, .before_id = 8});
    EXPECT_IDS(&got, 7, 6, 5, 4, 3);
    got = list(*state, (struct store_workload_filter){.limit = 5, .before_id = 3});
    EXPECT_IDS(&got, 2, 1);
    got = list(*state, (struct store_workload_filter){.limit = 5, .before_id = 1});
    assert_int_equal(got.count, 0);
    got = list(*state, (struct store_workload_filter){.limit = 1, .before_id = UINT64_MAX});
    EXPECT_IDS(&got, 12);
}

static void filters_by_team(void **state)
{
    struct ids got = list(*state, (struct store_workload_filter){.team = "vision"});
    EXPECT_IDS(&got, 12, 11, 10, 9);
    got = list(*state, (struct store_workload_filter){.team = "vision", .before_id = 11});
    EXPECT_IDS(&got, 10, 9);
    got = list(*state, (struct store_workload_filter){.team = "none"});
    assert_int_equal(got.count, 0);
}

static void filters_by_owner_and_name(void **state)
{
    struct ids got = list(*state, (struct store_workload_filter){.owner = "bob"});
    EXPECT_IDS(&got, 12, 9, 6, 3);
    got = list(*state, (struct store_workload_filter){.name = "w7"});
    EXPECT_IDS(&got, 7);
    got = list(*state, (struct store_workload_filter){.name = "w7", .owner = "bob"});
    assert_int_equal(got.count, 0);
}

static void filters_by_state(void **state)
{
    struct ids got =
        list(*state, (struct store_workload_filter){.states = 1u << MODEL_WORKLOAD_RUNNING});
    EXPECT_IDS(&got, 6, 5);
    got = list(*state, (struct store_workload_filter){.states = 1u << MODEL_WORKLOAD_FAILED |
                                                                1u << MODEL_WORKLOAD_RUNNING});
    EXPECT_IDS(&got, 6, 5, 4);
    got = list(*state, (struct store_workload_filter){.states = 1u << MODEL_WORKLOAD_PENDING,
                                                      .team = "nlp"});
    EXPECT_IDS(&got, 8, 7, 2, 1);
}

static void filters_by_kind_and_class(void **state)
{
    struct ids got = list(*state, (struct store_workload_filter){.kinds = 1u << MODEL_NOTEBOOK});
    EXPECT_IDS(&got, 11, 9, 7, 5, 3, 1);
    got = list(*state, (struct store_workload_filter){.classes = 1u << MODEL_TRAINING});
    EXPECT_IDS(&got, 12, 10, 8, 6, 4, 2);
    got = list(*state, (struct store_workload_filter){.kinds = 1u << MODEL_NOTEBOOK,
                                                      .classes = 1u << MODEL_TRAINING});
    assert_int_equal(got.count, 0);
}

static void filters_by_visible_teams(void **state)
{
    const char *const teams[] = {"vision", "it's \"quoted\""};
    struct store_workload_filter filter = {.teams = teams, .team_count = 2};
    struct ids got = list(*state, filter);
    EXPECT_IDS(&got, 12, 11, 10, 9);
    filter.team = "nlp"; /* asked for, but not visible */
    got = list(*state, filter);
    assert_int_equal(got.count, 0);
    filter = (struct store_workload_filter){.teams = teams, .team_count = 0};
    got = list(*state, filter);
    assert_int_equal(got.count, 0);
}

static void all_filters_together(void **state)
{
    const char *const teams[] = {"nlp", "vision"};
    struct ids got =
        list(*state, (struct store_workload_filter){.team = "vision",
                                                    .owner = "bob",
                                                    .name = "w12",
                                                    .states = 1u << MODEL_WORKLOAD_PENDING,
                                                    .kinds = 1u << MODEL_JOB,
                                                    .classes = 1u << MODEL_TRAINING,
                                                    .teams = teams,
                                                    .team_count = 2,
                                                    .before_id = 13,
                                                    .limit = 1000});
    EXPECT_IDS(&got, 12);
}

static void input_in_a_filter_is_text_only(void **state)
{
    struct ids got = list(*state, (struct store_workload_filter){.owner = "x' OR '1'='1"});
    assert_int_equal(got.count, 0);
}

static void a_limit_out_of_range_is_refused(void **state)
{
    struct fixture *f = *state;
    struct ids ids = {.count = 0};
    struct store_workload_filter filter = {.limit = 0};
    struct store_event_filter events = {.limit = 1001};
    struct err err = ERR_INIT;
    assert_int_equal(OPS->list_workloads(f->store, &filter, collect_workload, &ids, &err), -EINVAL);
    assert_string_equal(err.field, "limit");
    assert_int_equal(OPS->list_events(f->store, &events, collect_event, &ids, &err), -EINVAL);
}

static int check_row(void *user, const struct store_workload_row *row)
{
    int *seen = user;
    bool odd = row->workload->id % 2 == 1;
    assert_non_null(row->workload->shape);
    assert_null(row->workload->launch);
    assert_non_null(row->shape_json);
    assert_int_equal(row->shape_id, odd ? 1 : 2);
    assert_int_equal(row->gpu_milli, odd ? 250 : 2000);
    assert_int_equal(row->workload->shape->kind, odd ? MODEL_NOTEBOOK : MODEL_JOB);
    (*seen)++;
    return 0;
}

static void a_listed_row_has_shape_and_charge(void **state)
{
    struct fixture *f = *state;
    int seen = 0;
    struct store_workload_filter filter = {.limit = 100};
    assert_int_equal(OPS->list_workloads(f->store, &filter, check_row, &seen, NULL), 0);
    assert_int_equal(seen, 12);
}

static struct ids events(struct fixture *f, struct store_event_filter filter)
{
    struct ids ids = {.count = 0};
    assert_int_equal(OPS->list_events(f->store, &filter, collect_event, &ids, NULL), 0);
    return ids;
}

static void events_come_in_order_after_a_sequence_number(void **state)
{
    struct ids got = events(*state, (struct store_event_filter){.after_seq = 70, .limit = 3});
    EXPECT_IDS(&got, 80, 90, 100);
    got = events(*state, (struct store_event_filter){.after_seq = 120, .limit = 3});
    assert_int_equal(got.count, 0);
}

static void the_newest_events_still_come_in_order(void **state)
{
    struct ids got = events(*state, (struct store_event_filter){.limit = 3, .newest = 1});
    EXPECT_IDS(&got, 100, 110, 120);
    got = events(*state, (struct store_event_filter){.limit = 1000, .newest = 1, .after_seq = 90});
    EXPECT_IDS(&got, 100, 110, 120);
}

static void events_are_filtered_by_workload_and_team(void **state)
{
    const char *const teams[] = {"vision"};
    struct ids got = events(*state, (struct store_event_filter){.workload = 4, .limit = 9});
    EXPECT_IDS(&got, 40);
    got = events(*state, (struct store_event_filter){.teams = teams, .team_count = 1, .limit = 2});
    EXPECT_IDS(&got, 90, 100);
    got = events(*state, (struct store_event_filter){
                             .teams = teams, .team_count = 1, .limit = 2, .newest = 1});
    EXPECT_IDS(&got, 110, 120);
    got = events(*state, (struct store_event_filter){
                             .teams = teams, .team_count = 1, .limit = 2, .workload = 4});
    assert_int_equal(got.count, 0);
}

static int check_event(void *user, const struct model_event *e)
{
    assert_int_equal(e->seq, 500);
    assert_int_equal(e->time_ms, 77);
    assert_string_equal(e->type, MODEL_EVENT_NODE);
    assert_int_equal(e->workload, 0);
    assert_int_equal(e->task, -1);
    assert_null(e->workload_name);
    assert_null(e->team);
    assert_string_equal(e->node, "n1");
    assert_string_equal(e->actor, "allot");
    assert_string_equal(e->message, "drained");
    assert_string_equal(e->data, "{\"a\":1}");
    *(int *)user = 1;
    return 0;
}

static void an_event_comes_back_whole(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct model_event e = {.seq = 500,
                            .time_ms = 77,
                            .type = MODEL_EVENT_NODE,
                            .task = -1,
                            .node = "n1",
                            .actor = "allot",
                            .message = "drained",
                            .data = "{\"a\":1}"};
    txn_add(t, &(struct store_op){.kind = STORE_ADD_EVENT, .event = &e});
    assert_int_equal(txn_commit(f, t), 0);
    int seen = 0;
    struct store_event_filter filter = {.after_seq = 499, .limit = 10};
    assert_int_equal(OPS->list_events(f->store, &filter, check_event, &seen, NULL), 0);
    assert_true(seen);
}

static int collect_live(void *user, const struct store_workload_row *row)
{
    assert_null(row->shape_json);
    assert_null(row->workload->shape);
    assert_int_not_equal(row->shape_id, 0);
    return collect_workload(user, row);
}

static int collect_task(void *user, const struct model_task *task)
{
    struct ids *ids = user;
    ids->id[ids->count++] = task->workload * 100 + (uint64_t)task->index;
    return 0;
}

static int collect_allocation(void *user, const struct model_allocation *a)
{
    struct ids *ids = user;
    ids->id[ids->count++] = a->id;
    return 0;
}

static void start_up_sees_what_lives(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_task(t, 4, 0, MODEL_TASK_FAILED, 1); /* of an ended workload */
    put_task(t, 6, 1, MODEL_TASK_SUCCEEDED, 1);
    put_task(t, 6, 0, MODEL_TASK_RUNNING, 1);
    put_task(t, 5, 0, MODEL_TASK_RUNNING, 1);
    put_allocation(t, 100, 4, 1, 1000, 10, 20, 0);
    put_allocation(t, 102, 6, 1, 1000, 10, 0, 0);
    put_allocation(t, 101, 5, 1, 250, 10, 0, 0);
    assert_int_equal(txn_commit(f, t), 0);

    struct ids got = {.count = 0};
    assert_int_equal(OPS->each_live_workload(f->store, collect_live, &got, NULL), 0);
    EXPECT_IDS(&got, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12);
    got.count = 0;
    assert_int_equal(OPS->each_live_task(f->store, collect_task, &got, NULL), 0);
    EXPECT_IDS(&got, 500, 600, 601);
    got.count = 0;
    assert_int_equal(OPS->each_open_allocation(f->store, collect_allocation, &got, NULL), 0);
    EXPECT_IDS(&got, 101, 102);
    got.count = 0;
    assert_int_equal(OPS->list_allocations(f->store, 4, collect_allocation, &got, NULL), 0);
    EXPECT_IDS(&got, 100);
}

struct nested {
    struct fixture *f;
    int depth;
};

static int read_again(void *user, const struct model_team *team)
{
    struct nested *n = user;
    if (n->depth++ < 10)
        return n->f->store ? OPS->each_team(n->f->store, read_again, n, NULL) : -1;
    return 7;
}

static void a_callback_may_read_again(void **state)
{
    struct nested n = {.f = *state};
    assert_int_equal(OPS->each_team(n.f->store, read_again, &n, NULL), 7);
}

/* More kinds of filters than a connection keeps statements for. */
static void every_combination_of_filters_works(void **state)
{
    for (uint32_t mask = 1; mask < 1u << MODEL_WORKLOAD_STATE_COUNT; mask++) {
        struct store_workload_filter filter = {.states = mask};
        size_t want = mask & 1u << MODEL_WORKLOAD_PENDING ? 8 : 0;
        want += mask & 1u << MODEL_WORKLOAD_RUNNING ? 2 : 0;
        want += mask & 1u << MODEL_WORKLOAD_SUCCEEDED ? 1 : 0;
        want += mask & 1u << MODEL_WORKLOAD_FAILED ? 1 : 0;
        assert_int_equal(list(*state, filter).count, want);
        filter.owner = "ghost";
        assert_int_equal(list(*state, filter).count, 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_filter_lists_all_newest_first),
        TEST(pages_follow_each_other_without_gap),
        TEST(filters_by_team),
        TEST(filters_by_owner_and_name),
        TEST(filters_by_state),
        TEST(filters_by_kind_and_class),
        TEST(filters_by_visible_teams),
        TEST(all_filters_together),
        TEST(input_in_a_filter_is_text_only),
        TEST(a_limit_out_of_range_is_refused),
        TEST(a_listed_row_has_shape_and_charge),
        TEST(events_come_in_order_after_a_sequence_number),
        TEST(the_newest_events_still_come_in_order),
        TEST(events_are_filtered_by_workload_and_team),
        TEST(an_event_comes_back_whole),
        TEST(start_up_sees_what_lives),
        TEST(a_callback_may_read_again),
        TEST(every_combination_of_filters_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
