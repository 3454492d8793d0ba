/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/drive.h"

#define S(seconds) ((int64_t)(seconds)*1000)
#define GPU_S(gpus, seconds) ((int64_t)(gpus)*1000 * S(seconds))

static struct sched *world(uint32_t gpus)
{
    static struct sched_device devices[16];
    struct sched *s = sched_create(NULL);
    struct sched_node node = {.id = 1,
                              .gpu_type = "H100",
                              .devices = devices,
                              .device_count = gpus,
                              .cpu_milli = SCHED_UNLIMITED,
                              .memory_bytes = SCHED_UNLIMITED,
                              .up = true,
                              .schedulable = true};
    assert_int_equal(sched_node_set(s, &node), 0);
    return s;
}

static void team(struct sched *s, uint64_t id, int64_t guaranteed_gpus)
{
    struct sched_team t = {.id = id, .age = id, .weight = 1};
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        t.guarantee[r] = SCHED_UNLIMITED;
        t.limit[r] = SCHED_UNLIMITED;
    }
    t.guarantee[SCHED_GPU_MILLI] = guaranteed_gpus * 1000;
    assert_int_equal(sched_team_set(s, &t), 0);
}

/* What a job of one task on GPUS devices asks for; one of each number, as they never change. */
static const struct sched_task *asks(uint32_t gpus)
{
    static struct sched_request requests[17];
    static struct sched_task tasks[17];
    requests[gpus] = (struct sched_request){.device_count = gpus, .device_milli = 1000};
    tasks[gpus] = (struct sched_task){.request = &requests[gpus]};
    return &tasks[gpus];
}

static struct drive_job job(uint64_t id, uint64_t team_id, uint32_t gpus, int64_t at, int64_t run)
{
    return (struct drive_job){.workload = {.id = id,
                                           .team = team_id,
                                           .age = id,
                                           .class_ = SCHED_CLASS_TRAINING,
                                           .preemptible = true,
                                           .may_burst = true,
                                           .tasks = asks(gpus),
                                           .task_count = 1,
                                           .min_tasks = 1},
                              .submit_ms = S(at),
                              .run_ms = S(run)};
}

static struct drive *driven(struct sched *s, const struct drive_job *jobs, size_t count)
{
    struct drive *d = drive_create(s, NULL);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(drive_submit(d, &jobs[i], NULL), 0);
    assert_int_equal(drive_run(d, INT64_MAX, NULL), 0);
    return d;
}

static struct drive_result result(const struct drive *d, size_t i)
{
    struct drive_result r;
    drive_result(d, i, &r);
    return r;
}

static void end(struct drive *d, struct sched *s)
{
    drive_destroy(d);
    sched_destroy(s);
}

static void work_waits_for_devices_and_no_longer(void **state)
{
    (void)state;
    struct sched *s = world(8);
    team(s, 1, 8);
    struct drive_job jobs[] = {job(1, 1, 4, 0, 100), job(2, 1, 4, 10, 100), job(3, 1, 4, 20, 50)};
    struct drive *d = driven(s, jobs, 3);
    assert_int_equal(result(d, 0).first_start_ms, 0);
    assert_int_equal(result(d, 1).first_start_ms, S(10));
    assert_int_equal(result(d, 2).first_start_ms, S(100));
    assert_int_equal(result(d, 2).queued_ms, S(80));
    assert_int_equal(result(d, 2).end_ms, S(150));
    assert_int_equal(result(d, 2).held_milli_ms, GPU_S(4, 50));
    assert_int_equal(result(d, 2).lost_milli_ms, 0);
    assert_int_equal(drive_now(d), S(150));
    end(d, s);
}

static void an_eviction_costs_what_was_not_saved(void **state)
{
    (void)state;
    struct sched *s = world(8);
    team(s, 1, 4);
    team(s, 2, 4);
    struct drive_job jobs[] = {job(1, 1, 8, 0, 1000), job(2, 2, 4, 250, 100)};
    jobs[0].checkpoint_ms = S(100);
    jobs[0].restart_ms = S(10);
    jobs[0].grace_ms = S(5);
    struct drive *d = driven(s, jobs, 2);
    /* Reclaimed at 250 s with 200 s saved, gone at 255 s; back when the other ends at 355 s. */
    assert_int_equal(result(d, 1).first_start_ms, S(255));
    assert_int_equal(result(d, 0).evictions, 1);
    assert_int_equal(result(d, 0).starts, 2);
    assert_int_equal(result(d, 0).queued_ms, S(100));
    assert_int_equal(result(d, 0).end_ms, S(355 + 10 + 800));
    assert_int_equal(result(d, 0).held_milli_ms, GPU_S(8, 255 + 810));
    assert_int_equal(result(d, 0).lost_milli_ms, GPU_S(8, 50 + 5 + 10));
    end(d, s);
}

static void short_work_is_backfilled_and_long_work_is_not(void **state)
{
    (void)state;
    struct sched *s = world(4);
    team(s, 1, 4);
    struct drive_job jobs[] = {job(1, 1, 3, 0, 100), job(2, 1, 4, 1, 10), job(3, 1, 1, 2, 90),
                               job(4, 1, 1, 3, 200)};
    for (size_t i = 0; i < 4; i++)
        jobs[i].workload.limit_ms = jobs[i].run_ms;
    struct drive *d = driven(s, jobs, 4);
    assert_int_equal(result(d, 1).first_start_ms, S(100));
    assert_int_equal(result(d, 2).first_start_ms, S(2));
    assert_int_equal(result(d, 3).first_start_ms, S(110));
    end(d, s);
}

static void a_pause_gives_the_devices_to_others(void **state)
{
    (void)state;
    const struct drive_pause pause = {.at_ms = S(40), .length_ms = S(20)};
    struct sched *s = world(1);
    team(s, 1, 1);
    struct drive_job jobs[] = {job(1, 1, 1, 0, 100), job(2, 1, 1, 10, 30)};
    jobs[0].pauses = &pause;
    jobs[0].pause_count = 1;
    struct drive *d = driven(s, jobs, 2);
    assert_int_equal(result(d, 1).first_start_ms, S(40));
    /* Returns at 60 s, waits for the other until 70 s, has 40 s left. */
    assert_int_equal(result(d, 0).end_ms, S(110));
    assert_int_equal(result(d, 0).queued_ms, S(10));
    assert_int_equal(result(d, 0).held_milli_ms, GPU_S(1, 80));
    assert_int_equal(result(d, 0).lost_milli_ms, 0);
    end(d, s);
}

static void what_can_never_start_is_refused(void **state)
{
    (void)state;
    struct sched *s = world(4);
    team(s, 1, 4);
    struct drive_job jobs[] = {job(1, 1, 8, 0, 10)};
    struct drive *d = driven(s, jobs, 1);
    assert_int_equal(result(d, 0).end, DRIVE_END_REFUSED);
    assert_int_equal(result(d, 0).refusal.reason, SCHED_REASON_TOO_LARGE);
    end(d, s);
}

static void malformed_jobs_are_errors(void **state)
{
    (void)state;
    const struct drive_pause late = {.at_ms = S(10), .length_ms = S(1)};
    struct sched *s = world(4);
    struct drive *d = drive_create(s, NULL);
    struct drive_job good = job(1, 1, 1, 0, 10), bad = job(2, 1, 1, 0, -1);
    assert_int_equal(drive_submit(d, &good, NULL), 0);
    assert_int_equal(drive_submit(d, &good, NULL), -EEXIST);
    assert_int_equal(drive_submit(d, &bad, NULL), -EINVAL);
    bad = job(3, 1, 1, 0, 10);
    bad.pauses = &late;
    bad.pause_count = 1;
    assert_int_equal(drive_submit(d, &bad, NULL), -EINVAL);
    end(d, s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_waits_for_devices_and_no_longer),
        cmocka_unit_test(an_eviction_costs_what_was_not_saved),
        cmocka_unit_test(short_work_is_backfilled_and_long_work_is_not),
        cmocka_unit_test(a_pause_gives_the_devices_to_others),
        cmocka_unit_test(what_can_never_start_is_refused),
        cmocka_unit_test(malformed_jobs_are_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
