/* SPDX-License-Identifier: Apache-2.0 */
/* Work that has to have exactly these devices: a suspended task that comes back. */
#include "small_world.h"

#include <errno.h>

static const uint16_t second[] = {1}, second_and_third[] = {1, 2};

static uint64_t pinned(struct small_world *w, struct job job)
{
    job.only_node = 1;
    return world_job(w, job);
}

static void it_takes_its_own_devices_and_no_others(void **state)
{
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4);
    world_node(&w, 2, 4);
    world_team(&w, 1, 0, 8000);
    uint64_t a =
        pinned(&w, (struct job){.team = 1, .gpu_milli = 2000, .only_devices = second_and_third});
    world_settle(&w);
    assert_running(&w, a);
    assert_int_equal(world_where(&w, a, 0), 1);
    /* The second device is whole, so this one waits although six are free. */
    uint64_t b = pinned(&w, (struct job){.team = 1, .gpu_milli = 500, .only_devices = second});
    /* Those that take any device get others. */
    uint64_t c = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000, .only_node = 1});
    world_settle(&w);
    assert_pending(&w, b);
    assert_running(&w, c);
    world_finish(&w, a, 0);
    world_settle(&w);
    assert_running(&w, b);
    world_done(&w);
}

/* A part goes beside others on its device, and not onto an emptier or a fuller one. */
static void a_part_keeps_its_device(void **state)
{
    struct small_world w;
    static const uint16_t third[] = {2};
    const struct sched_decisions *d;
    world_init(&w);
    world_node(&w, 1, 4);
    world_team(&w, 1, 0, 8000);
    pinned(&w, (struct job){.team = 1, .gpu_milli = 250, .only_devices = second});
    world_settle(&w);
    pinned(&w, (struct job){.team = 1, .gpu_milli = 250, .only_devices = third});
    d = sched_turn(w.s, w.now_ms);
    assert_int_equal(d->count, 1);
    assert_int_equal(d->items[0].device_count, 1);
    assert_int_equal(d->items[0].devices[0], 2);
    world_done(&w);
}

/* Only who is on its devices gives way, by the rules for all. */
static void who_has_its_devices_gives_way(void **state)
{
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4);
    world_team(&w, 1, 0, 1000);
    world_team(&w, 2, 0, 0);
    uint64_t jobs[4];
    for (int i = 0; i < 4; i++) {
        jobs[i] = world_job(&w, (struct job){.team = 2, .gpu_milli = 1000});
        world_settle(&w);
    }
    uint64_t a = pinned(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_devices = second});
    world_settle(&w);
    assert_running(&w, a);
    assert_int_equal(w.evictions, 1);
    assert_pending(&w, jobs[1]);
    world_done(&w);
}

static void who_has_a_right_to_its_place_stays(void **state)
{
    struct small_world w;
    struct sched_explanation e;
    world_init(&w);
    world_node(&w, 1, 2);
    world_team(&w, 1, 0, 1000);
    world_team(&w, 2, 0, 1000);
    uint64_t b = pinned(&w, (struct job){.team = 2, .gpu_milli = 1000, .only_devices = second});
    world_settle(&w);
    uint64_t a = pinned(&w, (struct job){.team = 1, .gpu_milli = 1000, .only_devices = second});
    world_settle(&w);
    assert_running(&w, b);
    assert_pending(&w, a);
    assert_int_equal(w.evictions, 0);
    assert_int_equal(sched_explain(w.s, a, w.now_ms, &e), 0);
    assert_int_equal(e.less, 0);
    world_done(&w);
}

static void a_request_that_names_devices_is_whole(void **state)
{
    struct small_world w;
    static const uint16_t twice[] = {1, 1};
    struct job bad[] = {
        {.team = 1, .gpu_milli = 1000, .only_devices = second}, /* of which node? */
        {.team = 1, .gpu_milli = 2000, .only_node = 1, .only_devices = twice},
        {.team = 1, .cpu_milli = 1000, .only_node = 1, .only_devices = second},
    };
    world_init(&w);
    world_node(&w, 1, 2);
    world_team(&w, 1, 0, 4000);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(world_try_job(&w, bad[i], NULL), -EINVAL);
    world_done(&w);
}

/* What stops is there, whatever its node has left beside it; what is to run is not. */
static void what_stops_is_restored_on_a_node_that_shrank(void **state)
{
    static const struct sched_device devices[2];
    struct sched_node node = {
        .id = 1, .devices = devices, .device_count = 2, .cpu_milli = 4000, .up = true};
    struct small_world w;
    world_init(&w);
    node.schedulable = true;
    node.memory_bytes = SCHED_UNLIMITED;
    assert_int_equal(sched_node_set(w.s, &node), 0);
    world_team(&w, 1, 0, 2000);
    uint64_t a = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000, .cpu_milli = 4000});
    node.cpu_milli = 2000;
    assert_int_equal(sched_node_set(w.s, &node), 0);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_RUNNING, 1, second, 1, 0), -EBUSY);
    assert_int_equal(sched_task_restore(w.s, a, 0, SCHED_TASK_STOPPING, 1, second, 1, 0), 0);
    world_turn(&w);
    world_stopped(&w, a, 0, SCHED_STOP_DONE);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_takes_its_own_devices_and_no_others),
        cmocka_unit_test(a_part_keeps_its_device),
        cmocka_unit_test(who_has_its_devices_gives_way),
        cmocka_unit_test(who_has_a_right_to_its_place_stays),
        cmocka_unit_test(what_stops_is_restored_on_a_node_that_shrank),
        cmocka_unit_test(a_request_that_names_devices_is_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
