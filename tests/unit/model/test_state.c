/* SPDX-License-Identifier: Apache-2.0 */
#include "support.h"

#include "model/state.h"

static void test_every_name_parses_back(void **state)
{
#define CHECK_ALL(type, count)                                                                    \
    for (unsigned i = 0; i < (count); i++) {                                                      \
        enum model_##type v = (enum model_##type)((count)-1 - i);                                 \
                                                                                                  \
        assert_int_equal(model_##type##_parse(model_##type##_name((enum model_##type)i), &v), 0); \
        assert_int_equal(v, i);                                                                   \
    }                                                                                             \
    {                                                                                             \
        enum model_##type untouched = (enum model_##type)1;                                       \
                                                                                                  \
        assert_int_equal(model_##type##_parse("nonsense", &untouched), -EINVAL);                  \
        assert_int_equal(model_##type##_parse("", &untouched), -EINVAL);                          \
        assert_int_equal(untouched, 1);                                                           \
        assert_string_equal(model_##type##_name((enum model_##type)(count)), "invalid");          \
    }
    CHECK_ALL(kind, MODEL_KIND_COUNT)
    CHECK_ALL(class, MODEL_CLASS_COUNT)
    CHECK_ALL(handling, MODEL_HANDLING_COUNT)
    CHECK_ALL(workload_state, MODEL_WORKLOAD_STATE_COUNT)
    CHECK_ALL(task_state, MODEL_TASK_STATE_COUNT)
}

static void test_nothing_leaves_a_final_workload_state(void **state)
{
    for (unsigned from = 0; from < MODEL_WORKLOAD_STATE_COUNT; from++) {
        bool leaves = false;

        for (unsigned to = 0; to < MODEL_WORKLOAD_STATE_COUNT; to++)
            leaves |= model_workload_transition_ok((enum model_workload_state)from,
                                                   (enum model_workload_state)to);
        assert_int_equal(leaves, !model_workload_state_is_final((enum model_workload_state)from));
    }
}

static void test_nothing_leaves_a_final_task_state(void **state)
{
    for (unsigned from = 0; from < MODEL_TASK_STATE_COUNT; from++) {
        bool leaves = false;

        for (unsigned to = 0; to < MODEL_TASK_STATE_COUNT; to++)
            leaves |=
                model_task_transition_ok((enum model_task_state)from, (enum model_task_state)to);
        assert_int_equal(leaves, !model_task_state_is_final((enum model_task_state)from));
    }
}

static void test_devices_are_taken_by_starting_only(void **state)
{
    for (unsigned from = 0; from < MODEL_TASK_STATE_COUNT; from++) {
        for (unsigned to = 0; to < MODEL_TASK_STATE_COUNT; to++) {
            if (model_task_state_holds((enum model_task_state)from) ||
                !model_task_state_holds((enum model_task_state)to))
                continue;
            /* One that is suspended has processes, which can be stopped or lost. */
            assert_int_equal(
                model_task_transition_ok((enum model_task_state)from, (enum model_task_state)to),
                from == MODEL_TASK_SUSPENDED
                    ? to != MODEL_TASK_RUNNING
                    : to == MODEL_TASK_STARTING &&
                          (from == MODEL_TASK_PENDING || from == MODEL_TASK_HELD));
        }
    }
}

static void test_who_sleeps_comes_back_by_starting(void **state)
{
    assert_true(model_task_state_lives(MODEL_TASK_SUSPENDED));
    assert_false(model_task_state_holds(MODEL_TASK_SUSPENDED));
    assert_true(model_task_transition_ok(MODEL_TASK_RUNNING, MODEL_TASK_SUSPENDED));
    assert_true(model_task_transition_ok(MODEL_TASK_SUSPENDED, MODEL_TASK_STARTING));
    assert_true(model_workload_transition_ok(MODEL_WORKLOAD_RUNNING, MODEL_WORKLOAD_SUSPENDED));
    assert_true(model_workload_transition_ok(MODEL_WORKLOAD_SUSPENDED, MODEL_WORKLOAD_PENDING));
    assert_false(model_workload_transition_ok(MODEL_WORKLOAD_SUSPENDED, MODEL_WORKLOAD_RUNNING));
}

static void test_an_eviction_leads_back_to_pending(void **state)
{
    assert_true(model_workload_transition_ok(MODEL_WORKLOAD_RUNNING, MODEL_WORKLOAD_PENDING));
    assert_false(model_workload_transition_ok(MODEL_WORKLOAD_STOPPING, MODEL_WORKLOAD_PENDING));
    assert_false(model_workload_transition_ok(MODEL_WORKLOAD_RUNNING, MODEL_WORKLOAD_RUNNING));
    assert_true(model_task_transition_ok(MODEL_TASK_STOPPING, MODEL_TASK_PENDING));
    assert_false(model_task_transition_ok(MODEL_TASK_STOPPING, MODEL_TASK_RUNNING));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_parses_back),
        cmocka_unit_test(test_nothing_leaves_a_final_workload_state),
        cmocka_unit_test(test_nothing_leaves_a_final_task_state),
        cmocka_unit_test(test_devices_are_taken_by_starting_only),
        cmocka_unit_test(test_who_sleeps_comes_back_by_starting),
        cmocka_unit_test(test_an_eviction_leads_back_to_pending),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
