/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: what a txn writes is read back whole, and a refused txn takes nothing with it. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "support.h"

#define OPS (&store_sqlite_ops)

static void base_rows(struct fixture *f)
{
    struct store_txn *t = txn_new(f);
    put_team(t, 1, "nlp", 0);
    put_workload(t, 10, "nlp", 1, "ada", 1, NULL);
    assert_int_equal(txn_commit(f, t), 0);
}

static void a_workload_comes_back_with_shape_and_launch(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    struct model_workload w;
    put_team(t, 1, "nlp", 0);
    put_workload(t, 7, "nlp", 1, "ada", 3,
                 "{\"name\": \"digits\", \"tasks\": 6, \"gpu\": 0.25, \"class\": \"batch\","
                 " \"command\": [\"python3\", \"train.py\"]}");
    assert_int_equal(txn_commit(f, t), 0);
    assert_int_equal(OPS->get_workload(f->store, 7, &f->arena, &w, NULL), 0);
    assert_int_equal(w.id, 7);
    assert_string_equal(w.name, "digits");
    assert_string_equal(w.team, "nlp");
    assert_int_equal(w.team_id, 1);
    assert_string_equal(w.owner, "ada");
    assert_int_equal(w.state, MODEL_WORKLOAD_PENDING);
    assert_int_equal(w.submitted_ms, 1007);
    assert_int_equal(w.shape->task_count, 6);
    assert_int_equal(w.shape->class_, MODEL_BATCH);
    assert_int_equal(w.shape->groups[0].request.device_milli, 250);
    assert_string_equal(w.launch->groups[0].command[1], "train.py");
}

static void an_update_changes_the_changing_part_only(void **state)
{
    struct fixture *f = *state;
    base_rows(f);
    struct store_txn *t = txn_new(f);
    struct model_workload *u = arena_new(&t->arena, struct model_workload);
    *u = (struct model_workload){.id = 10,
                                 .state = MODEL_WORKLOAD_FAILED,
                                 .started_ms = 2000,
                                 .ended_ms = 3000,
                                 .restarts = 2,
                                 .failures = 1,
                                 .running_tasks = 0,
                                 .ended_tasks = 1,
                                 .exit_code = 137,
                                 .message = "killed"};
    txn_add(t, &(struct store_op){.kind = STORE_UPDATE_WORKLOAD, .workload = u});
    assert_int_equal(txn_commit(f, t), 0);
    struct model_workload w;
    assert_int_equal(OPS->get_workload(f->store, 10, &f->arena, &w, NULL), 0);
    assert_int_equal(w.state, MODEL_WORKLOAD_FAILED);
    assert_int_equal(w.started_ms, 2000);
    assert_int_equal(w.ended_ms, 3000);
    assert_int_equal(w.restarts, 2);
    assert_int_equal(w.failures, 1);
    assert_int_equal(w.ended_tasks, 1);
    assert_int_equal(w.exit_code, 137);
    assert_string_equal(w.message, "killed");
    assert_string_equal(w.name, "w10");
    assert_non_null(w.launch);
}

static void an_update_of_an_unknown_workload_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    update_workload(t, 99, MODEL_WORKLOAD_RUNNING, 0);
    assert_int_equal(txn_commit(f, t), -ENOENT);
    assert_non_null(strstr(t->err.text, "99"));
}

static void a_refused_txn_leaves_the_rest_of_its_group(void **state)
{
    struct fixture *f = *state;
    base_rows(f);
    struct store_txn *t[3] = {txn_new(f), txn_new(f), txn_new(f)};
    put_workload(t[0], 11, "nlp", 1, "ada", 1, NULL);
    put_workload(t[1], 12, "nlp", 1, "ada", 1, NULL);
    put_workload(t[1], 10, "nlp", 1, "ada", 1, NULL); /* exists */
    put_workload(t[2], 13, "nlp", 1, "ada", 1, NULL);
    txn_commit_group(f, t, 3);
    assert_int_equal(t[0]->status, 0);
    assert_int_equal(t[1]->status, -EEXIST);
    assert_int_equal(t[2]->status, 0);
    struct model_workload w;
    assert_int_equal(OPS->get_workload(f->store, 11, &f->arena, &w, NULL), 0);
    assert_int_equal(OPS->get_workload(f->store, 12, &f->arena, &w, NULL), -ENOENT);
    assert_int_equal(OPS->get_workload(f->store, 13, &f->arena, &w, NULL), 0);
}

static void a_reference_to_a_missing_row_is_refused(void **state)
{
    struct fixture *f = *state;
    base_rows(f);
    struct store_txn *t = txn_new(f);
    put_workload(t, 11, "ghost", 5, "ada", 1, NULL);
    assert_int_equal(txn_commit(f, t), -ENOENT);
    t = txn_new(f);
    put_task(t, 77, 0, MODEL_TASK_RUNNING, 1);
    assert_int_equal(txn_commit(f, t), -ENOENT);
}

static void a_shape_may_be_sent_again_but_not_changed(void **state)
{
    struct fixture *f = *state;
    base_rows(f);
    struct store_txn *t = txn_new(f);
    put_workload(t, 11, "nlp", 1, "ada", 1, NULL);
    assert_int_equal(txn_commit(f, t), 0);
    t = txn_new(f);
    put_workload(t, 12, "nlp", 1, "ada", 1, "{\"gpus\": 2, \"command\": [\"true\"]}");
    assert_int_equal(txn_commit(f, t), -EEXIST);
    t = txn_new(f);
    put_workload(t, 13, "nlp", 1, "ada", 2, NULL); /* the same text under another id */
    assert_int_equal(txn_commit(f, t), -EEXIST);
}

static void a_number_above_63_bits_is_refused(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_team(t, UINT64_MAX, "nlp", 0);
    assert_int_equal(txn_commit(f, t), -ERANGE);
}

static void an_empty_group_and_an_empty_txn_are_answered(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(txn_commit_group(f, NULL, 0), 0);
    assert_int_equal(txn_commit(f, txn_new(f)), 0);
}

static int first_team(void *user, const struct model_team *team)
{
    struct fixture *f = user;
    struct model_team *copy = arena_memdup(&f->arena, team, sizeof(*team));
    assert_string_equal(copy->name, "vision");
    return 42;
}

static void a_team_is_replaced_and_a_walk_ends_with_the_callbacks_value(void **state)
{
    struct fixture *f = *state;
    struct store_txn *t = txn_new(f);
    put_team(t, 1, "nlp", 0);
    put_team(t, 1, "vision", 0);
    put_team(t, 2, "sub", 1);
    static const struct model_type_quota types[] = {{"A100", MODEL_UNLIMITED, 500},
                                                    {"H100", 1000, MODEL_UNLIMITED}};
    struct model_team *full = arena_new(&t->arena, struct model_team);
    *full = (struct model_team){.id = 3,
                                .parent_id = 2,
                                .version = 9,
                                .name = "leaf",
                                .guarantee = {1000, 2000, 3},
                                .limit = {4000, MODEL_UNLIMITED, 6},
                                .weight = 7,
                                .priority = -8,
                                .volume_limit = 50,
                                .quota = MODEL_QUOTA_HARD,
                                .types = types,
                                .type_count = 2};
    txn_add(t, &(struct store_op){.kind = STORE_PUT_TEAM, .team = full});
    assert_int_equal(txn_commit(f, t), 0);
    struct model_team team;
    assert_int_equal(OPS->get_team(f->store, "leaf", &f->arena, &team, NULL), 0);
    assert_string_equal(team.parent, "sub");
    assert_int_equal(team.parent_id, 2);
    assert_int_equal(team.version, 9);
    assert_memory_equal(team.guarantee, full->guarantee, sizeof(team.guarantee));
    assert_memory_equal(team.limit, full->limit, sizeof(team.limit));
    assert_int_equal(team.weight, 7);
    assert_int_equal(team.priority, -8);
    assert_int_equal(team.volume_limit, 50);
    assert_int_equal(team.quota, MODEL_QUOTA_HARD);
    assert_int_equal(team.type_count, 2);
    assert_string_equal(team.types[0].type, "A100");
    assert_int_equal(team.types[0].limit, 500);
    assert_int_equal(team.types[1].guarantee, 1000);
    assert_int_equal(OPS->get_team(f->store, "nlp", &f->arena, &team, NULL), -ENOENT);
    assert_int_equal(OPS->each_team(f->store, first_team, f, NULL), 42);
}

static void a_deleted_team_frees_its_name(void **state)
{
    struct fixture *f = *state;
    base_rows(f);
    struct store_txn *t = txn_new(f);
    txn_add(t, &(struct store_op){.kind = STORE_DELETE_TEAM, .id = 1});
    put_team(t, 2, "nlp", 0);
    assert_int_equal(txn_commit(f, t), 0);
    struct model_team team;
    assert_int_equal(OPS->get_team(f->store, "nlp", &f->arena, &team, NULL), 0);
    assert_int_equal(team.id, 2);
    struct model_workload w; /* its workloads stay */
    assert_int_equal(OPS->get_workload(f->store, 10, &f->arena, &w, NULL), 0);
}

static int keep_task(void *user, const struct model_task *task)
{
    struct model_task *out = user;
    assert_int_equal(task->device_count, 2);
    assert_int_equal(task->devices[0], 3);
    assert_int_equal(task->devices[1], 1023);
    assert_string_equal(task->node_name, "n1");
    assert_string_equal(task->message, "reclaimed");
    *out = *task;
    return 0;
}

static void a_task_is_replaced_whole(void **state)
{
    struct fixture *f = *state;
    static const uint16_t devices[] = {3, 1023};
    base_rows(f);
    struct store_txn *t = txn_new(f);
    struct model_node *n = arena_new(&t->arena, struct model_node);
    *n = (struct model_node){.id = 4, .name = "n1", .cluster = "local"};
    txn_add(t, &(struct store_op){.kind = STORE_PUT_NODE, .node = n});
    put_task(t, 10, 0, MODEL_TASK_HELD, 0);
    struct model_task *full = arena_new(&t->arena, struct model_task);
    *full = (struct model_task){.workload = 10,
                                .index = 0,
                                .attempt = 2,
                                .state = MODEL_TASK_STOPPING,
                                .node = 4,
                                .devices = devices,
                                .device_count = 2,
                                .gpu_milli = 2000,
                                .held_until_ms = 11,
                                .started_ms = 12,
                                .ended_ms = 13,
                                .exit_code = 143,
                                .exit_signal = 15,
                                .message = "reclaimed"};
    txn_add(t, &(struct store_op){.kind = STORE_PUT_TASK, .task = full});
    assert_int_equal(txn_commit(f, t), 0);
    struct model_task got = {0};
    assert_int_equal(OPS->list_tasks(f->store, 10, keep_task, &got, NULL), 0);
    assert_int_equal(got.attempt, 2);
    assert_int_equal(got.state, MODEL_TASK_STOPPING);
    assert_int_equal(got.node, 4);
    assert_int_equal(got.gpu_milli, 2000);
    assert_int_equal(got.held_until_ms, 11);
    assert_int_equal(got.started_ms, 12);
    assert_int_equal(got.ended_ms, 13);
    assert_int_equal(got.exit_code, 143);
    assert_int_equal(got.exit_signal, 15);
}

static int keep_node(void *user, const struct model_node *node)
{
    struct fixture *f = user;
    assert_int_equal(node->id, 4);
    assert_string_equal(node->name, "n1");
    assert_int_equal(node->state, MODEL_NODE_UNKNOWN);
    assert_true(node->drained);
    assert_int_equal(node->device_count, 2);
    assert_string_equal(node->devices[1].uuid, "GPU-1");
    assert_int_equal(node->devices[1].memory_bytes, 80LL << 30);
    assert_int_equal(node->label_count, 1);
    assert_string_equal(node->labels[0].value, "a");
    f->options.readers = 1; /* seen */
    return 0;
}

static void a_node_comes_back_with_its_devices(void **state)
{
    struct fixture *f = *state;
    struct model_device devices[2] = {
        {.uuid = "GPU-0", .type = "H100", .memory_bytes = 80LL << 30, .simulated = true},
        {.uuid = "GPU-1", .type = "H100", .memory_bytes = 80LL << 30, .simulated = true}};
    struct model_pair label = {"zone", "a"};
    struct model_node node = {.id = 4,
                              .name = "n1",
                              .cluster = "local",
                              .state = MODEL_NODE_UNKNOWN,
                              .drained = true,
                              .gpu_type = "H100",
                              .sharing = "none",
                              .limits = "cgroup2",
                              .isolation = "bubblewrap",
                              .cpu_milli = 16000,
                              .memory_bytes = 1LL << 40,
                              .devices = devices,
                              .device_count = 2,
                              .labels = &label,
                              .label_count = 1};
    struct store_txn *t = txn_new(f);
    txn_add(t, &(struct store_op){.kind = STORE_PUT_NODE, .node = &node});
    assert_int_equal(txn_commit(f, t), 0);
    struct err err = ERR_INIT;
    assert_int_equal(OPS->each_node(f->store, keep_node, f, &err), 0);
    assert_int_equal(f->options.readers, 1);
}

static void everything_survives_closing(void **state)
{
    struct fixture *f = *state;
    base_rows(f);
    struct store_txn *t = txn_new(f);
    add_event(t, 17, 10, "nlp", 1);
    put_allocation(t, 55, 10, 1, 1000, 5, 0, 0);
    txn_add(t, &(struct store_op){.kind = STORE_PUT_META, .meta = {"boot", "x1"}});
    assert_int_equal(txn_commit(f, t), 0);
    fixture_close(f);
    assert_int_equal(fixture_open(f, NULL), 0);
    uint64_t workload, event, other;
    const char *value;
    assert_int_equal(OPS->last_ids(f->store, &workload, &event, &other, NULL), 0);
    assert_int_equal(workload, 10);
    assert_int_equal(event, 17);
    assert_int_equal(other, 55);
    assert_int_equal(OPS->get_meta(f->store, "boot", &f->arena, &value, NULL), 0);
    assert_string_equal(value, "x1");
}

struct watcher {
    struct fixture *f;
    atomic_bool stop;
    atomic_int torn, seen;
};

/* Groups hold two workloads: a reader that sees an odd number saw half a group. */
static void *watch(void *arg)
{
    struct watcher *w = arg;
    do {
        struct ids ids = {.count = 0};
        struct store_workload_filter all = {.limit = 1000};
        if (OPS->list_workloads(w->f->store, &all, collect_workload, &ids, NULL) < 0 ||
            ids.count % 2 != 0)
            atomic_fetch_add(&w->torn, 1);
        atomic_fetch_add(&w->seen, 1);
    } while (!atomic_load(&w->stop));
    return NULL;
}

static void readers_see_whole_groups_while_others_commit(void **state)
{
    enum { READERS = 6 }; /* more than the pool keeps */
    struct watcher w = {.f = *state};
    pthread_t thread[READERS];
    struct store_txn *t = txn_new(w.f);
    put_team(t, 1, "nlp", 0);
    assert_int_equal(txn_commit(w.f, t), 0);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, watch, &w), 0);
    for (uint64_t id = 1; id < 200; id += 2) {
        struct store_txn *group[2] = {txn_new(w.f), txn_new(w.f)};
        put_workload(group[0], id, "nlp", 1, "ada", 1, NULL);
        put_workload(group[1], id + 1, "nlp", 1, "ada", 1, NULL);
        assert_int_equal(txn_commit_group(w.f, group, 2), 0);
        assert_int_equal(group[1]->status, 0);
    }
    atomic_store(&w.stop, true);
    for (int i = 0; i < READERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(w.torn, 0);
    assert_true(w.seen >= READERS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_workload_comes_back_with_shape_and_launch),
        TEST(an_update_changes_the_changing_part_only),
        TEST(an_update_of_an_unknown_workload_is_refused),
        TEST(a_refused_txn_leaves_the_rest_of_its_group),
        TEST(a_reference_to_a_missing_row_is_refused),
        TEST(a_shape_may_be_sent_again_but_not_changed),
        TEST(a_number_above_63_bits_is_refused),
        TEST(an_empty_group_and_an_empty_txn_are_answered),
        TEST(a_team_is_replaced_and_a_walk_ends_with_the_callbacks_value),
        TEST(a_deleted_team_frees_its_name),
        TEST(a_task_is_replaced_whole),
        TEST(a_node_comes_back_with_its_devices),
        TEST(everything_survives_closing),
        TEST(readers_see_whole_groups_while_others_commit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
