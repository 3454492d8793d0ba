/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reclaim at scale: a department comes back for a quarter of the cluster.
 *
 * All GPUs are in use by single-device jobs of departments that are guaranteed nothing. Then the
 * one that is guaranteed a quarter of them submits that much at once: whole nodes of eight where
 * the nodes have eight, or single devices. What is timed are all turns until everything that came
 * back runs, the confirmed stops of its victims included.
 */
#include "sim/scale.h"

#define TEAMS 10
#define OWNER 1     /* the team that is guaranteed a quarter */
#define FILL_BATCH 256

static void teams_set(struct sched *s, int64_t gpus)
{
    for (uint64_t i = 1; i <= TEAMS; i++) {
        struct sched_team t = {.id = 1000000 + i, .age = i, .weight = 1};
        for (int r = 0; r < SCHED_RESOURCES; r++)
            t.limit[r] = SCHED_UNLIMITED;
        t.guarantee[SCHED_GPU_MILLI] = i == OWNER ? gpus * 250 : 0;
        if (i == OWNER)
            t.guarantee[SCHED_CPU_MILLI] = t.guarantee[SCHED_MEMORY_BYTES] = SCHED_UNLIMITED;
        sched_team_set(s, &t);
    }
}

static void submit(struct scale_world *w, uint64_t team, uint32_t devices)
{
    struct sched_request request = {.device_count = devices, .device_milli = 1000};
    struct sched_task task = {.request = &request};
    struct scale_job j = {.team = (uint32_t)team, .milli = devices * 1000, .tasks = 1};
    vec_push(&w->jobs, j);
    struct sched_workload workload = {.id = w->jobs.len,
                                      .team = team,
                                      .age = w->jobs.len,
                                      .class_ = SCHED_CLASS_TRAINING,
                                      .preemptible = true,
                                      .may_burst = true,
                                      .tasks = &task,
                                      .task_count = 1,
                                      .min_tasks = 1};
    sched_workload_add(w->s, &workload, NULL);
}

static int64_t whole_nodes(const struct scale_input *in, uint32_t devices)
{
    int64_t count = 0;
    for (size_t i = 0; i < in->nodes.len; i++)
        count += in->nodes.items[i].device_count / devices;
    return count;
}

static void reclaim(const struct scale_options *o, const struct scale_input *in,
                    const struct sim_meter *meter, uint32_t devices, struct scale_result *r)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    teams_set(w.s, in->gpus);
    for (int64_t i = 0; i < in->gpus; i++) {
        submit(&w, 1000001 + OWNER + (uint64_t)i % (TEAMS - 1), 1);
        if (i % FILL_BATCH == 0)
            scale_settle(&w);
    }
    scale_settle(&w);
    int64_t wanted = in->gpus / 4 / devices, there = whole_nodes(in, devices);
    wanted = wanted < there ? wanted : there;
    uint64_t starts = w.starts, evictions = w.evictions;
    w.now_ms += 60000;
    scale_mark(&w);
    int64_t begun = scale_begin(&w);
    for (int64_t i = 0; i < wanted; i++)
        submit(&w, 1000000 + OWNER, devices);
    scale_step(&w, begun);
    scale_result_begin(r, &w, "reclaim",
                       devices == 1 ? "a quarter of the GPUs, one by one"
                                    : "a quarter of the GPUs, eight on one node");
    scale_figure(r, "gpus_wanted", (double)wanted * devices);
    scale_figure(r, "jobs", (double)wanted);
    scale_figure(r, "started", (double)(w.starts - starts));
    scale_figure(r, "evictions", (double)(w.evictions - evictions));
    vec_clear(&w.took); /* a mean would pass for percentiles */
    scale_result_times(r, &w);
    scale_world_done(&w);
}

static size_t reclaim_run(const struct scale_options *o, const struct scale_input *in,
                          const struct sim_meter *meter, struct scale_result *results)
{
    reclaim(o, in, meter, 1, &results[0]);
    reclaim(o, in, meter, 8, &results[1]);
    return 2;
}

const struct scale_mode scale_mode_reclaim = {
    "reclaim", "a team takes back a quarter of a full cluster", reclaim_run};
