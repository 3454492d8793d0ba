/* SPDX-License-Identifier: Apache-2.0 */
/* The situations of the scale benchmark in which nobody has a right over anybody: filling, churn,
 * a long queue, a gang that cannot be had, a cold start. */
#include <stdlib.h>

#include "sim/scale.h"

#define FULL 950 /* thousandths of all GPUs */
#define FIRST_TURNS 4 /* of a world in which all jobs wait: it fills, and settles somewhat */
#define TRIES 21 /* of what is measured by itself; the middle one counts */

static void allocated(struct scale_result *r, const struct scale_world *w)
{
    scale_figure(r, "gpus_allocated_percent",
                 (double)w->gpu_milli / (double)w->in->gpus / 1000 * 100);
}

/* ---- fill -------------------------------------------------------------------------------- */

/* One job after the other arrives, and each is decided by itself. */
static void fill_stream(struct scale_world *w, struct scale_result *r)
{
    scale_mark(w);
    for (int64_t i = 0; i < w->o->jobs && w->gpu_milli < scale_part(w, FULL); i++) {
        const struct sched_workload *workload = scale_workload(w, scale_draw(w));
        int64_t begun = scale_begin(w);
        if (sched_workload_add(w->s, workload, NULL) == 0)
            scale_step(w, begun);
        else
            w->refused++;
    }
    scale_result_begin(r, w, "fill", "one job at a time, to 95 % of the GPUs");
    scale_result_times(r, w);
    allocated(r, w);
    scale_figure(r, "jobs", (double)w->jobs.len);
}

/* All jobs that the stream took wait at once, and one turn decides. */
static void fill_at_once(struct scale_world *w, size_t jobs, struct scale_result *r)
{
    scale_mark(w);
    int64_t adding = 0;
    for (size_t i = 0; i < jobs; i++) {
        const struct sched_workload *workload = scale_workload(w, scale_draw(w));
        int64_t begun = scale_begin(w);
        sched_workload_add(w->s, workload, NULL);
        adding += scale_begin(w) - begun;
    }
    int64_t begun = scale_begin(w);
    scale_step(w, begun - adding);
    vec_clear(&w->took); /* a mean would pass for percentiles */
    scale_result_begin(r, w, "fill", "all jobs at once");
    scale_result_times(r, w);
    allocated(r, w);
    scale_figure(r, "jobs", (double)w->jobs.len);
}

static size_t fill_run(const struct scale_options *o, const struct scale_input *in,
                       const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    fill_stream(&w, &results[0]);
    size_t jobs = w.jobs.len;
    scale_world_done(&w);
    scale_world_init(&w, o, in, meter);
    fill_at_once(&w, jobs, &results[1]);
    scale_world_done(&w);
    return 2;
}

const struct scale_mode scale_mode_fill = {"fill", "an empty cluster fills to 95 %", fill_run};

/* ---- churn ------------------------------------------------------------------------------- */

static uint32_t random_running(struct scale_world *w)
{
    return w->running.items[rng_below(&w->rng, w->running.len)];
}

/* One job ends, as many as it takes arrive: each end and each arrival is a step. */
static size_t churn_run(const struct scale_options *o, const struct scale_input *in,
                        const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    scale_fill_to(&w, FULL, o->jobs * 2);
    scale_mark(&w);
    for (int64_t i = 0; i < o->steps && w.running.len > 0; i++) {
        w.now_ms += 1000;
        uint32_t job = random_running(&w);
        int64_t begun = scale_begin(&w);
        scale_end(&w, job);
        scale_step(&w, begun);
        while (w.gpu_milli < scale_part(&w, FULL)) {
            const struct sched_workload *workload = scale_workload(&w, scale_draw(&w));
            begun = scale_begin(&w);
            if (sched_workload_add(w.s, workload, NULL) == 0)
                scale_step(&w, begun);
        }
    }
    scale_result_begin(&results[0], &w, "churn", "at 95 % of the GPUs, jobs end and arrive");
    scale_result_times(&results[0], &w);
    allocated(&results[0], &w);
    scale_figure(&results[0], "ends", (double)o->steps);
    scale_figure(&results[0], "evictions", (double)w.evictions);
    scale_world_done(&w);
    return 1;
}

const struct scale_mode scale_mode_churn = {"churn", "a cluster at 95 %: jobs end and arrive",
                                            churn_run};

/* ---- pending ----------------------------------------------------------------------------- */

/* The cluster is full and O->jobs wait; one in a hundred of the running ones ends, each followed
 * by the turn that places what waits. The turns that such a world asks for after that (other teams
 * look for victims, a part of them each turn) are not waited for. */
static size_t pending_run(const struct scale_options *o, const struct scale_input *in,
                          const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    for (int64_t i = 0; i < o->jobs; i++) /* so that the books do not count as the library's */
        scale_draw(&w);
    int64_t rss = meter->rss_bytes(), adding = 0;
    for (int64_t i = 0; i < o->jobs; i++) {
        const struct sched_workload *workload = scale_workload(&w, (uint32_t)i);
        int64_t begun = scale_begin(&w);
        sched_workload_add(w.s, workload, NULL);
        adding += scale_begin(&w) - begun;
    }
    double bytes = (double)(meter->rss_bytes() - rss) / (double)o->jobs;
    scale_mark(&w);
    for (int i = 0; i < FIRST_TURNS; i++)
        scale_turn(&w, scale_begin(&w));
    struct scale_result *r = &results[0];
    scale_result_begin(r, &w, "pending", "many jobs wait, one in a hundred running ones ends");
    scale_figure(r, "jobs", (double)o->jobs);
    scale_figure(r, "bytes_per_job", bytes);
    scale_figure(r, "add_us", (double)adding / 1e3 / (double)o->jobs);
    scale_figure(r, "first_turns_seconds", (double)w.spent_ns / 1e9);
    scale_figure(r, "first_turns_decisions", (double)w.decisions);
    scale_mark(&w);
    size_t ends = w.running.len / 100;
    uint64_t starts = w.starts, evictions = w.evictions;
    for (size_t i = 0; i < ends; i++) {
        w.now_ms += 1000;
        uint32_t job = random_running(&w);
        int64_t begun = scale_begin(&w);
        scale_end(&w, job);
        scale_turn(&w, begun);
    }
    scale_figure(r, "ends", (double)ends);
    if (ends > 0)
        scale_figure(r, "us_per_end", (double)w.spent_ns / 1e3 / (double)ends);
    scale_figure(r, "starts", (double)(w.starts - starts));
    scale_figure(r, "evictions", (double)(w.evictions - evictions));
    scale_result_times(r, &w);
    r->hash = w.hash;
    scale_world_done(&w);
    return 1;
}

const struct scale_mode scale_mode_pending = {
    "pending", "a full cluster with a long queue, of which a few end", pending_run};

/* ---- impossible -------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static double middle_ms(int64_t *took, size_t count)
{
    qsort(took, count, sizeof(*took), compare);
    return (double)took[count / 2] / 1e6;
}

/* TASKS tasks of DEVICES whole devices each, which is more than there is or than is free. */
static double say_impossible(struct scale_world *w, uint32_t tasks, uint32_t devices, bool accepted,
                             double *ret_explain_ms)
{
    int64_t took[TRIES], explained[TRIES];
    struct sched_task *list = calloc(tasks, sizeof(*list));
    for (int i = 0; i < TRIES && list != NULL; i++) {
        struct sched_request request = {.device_count = devices,
                                        .device_milli = 1000,
                                        .cpu_milli = 100 + i}; /* never the same one twice */
        for (uint32_t t = 0; t < tasks; t++)
            list[t].request = &request;
        uint64_t id = w->jobs.len + 1;
        struct sched_workload workload = {.id = id,
                                          .team = 1,
                                          .age = id,
                                          .class_ = SCHED_CLASS_TRAINING,
                                          .preemptible = true,
                                          .may_burst = true,
                                          .tasks = list,
                                          .task_count = tasks,
                                          .min_tasks = tasks,
                                          .accepted = accepted};
        int64_t begun = scale_begin(w);
        int refused = sched_workload_add(w->s, &workload, NULL);
        if (refused == 0)
            sched_turn(w->s, w->now_ms);
        took[i] = scale_begin(w) - begun;
        struct sched_explanation e;
        begun = scale_begin(w);
        if (refused == 0)
            sched_explain(w->s, id, w->now_ms, &e);
        explained[i] = scale_begin(w) - begun;
        if (refused == 0)
            sched_workload_remove(w->s, id);
    }
    free(list);
    *ret_explain_ms = middle_ms(explained, TRIES);
    return middle_ms(took, TRIES);
}

static size_t impossible_run(const struct scale_options *o, const struct scale_input *in,
                             const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    scale_fill_to(&w, FULL, o->jobs * 2);
    struct scale_result *r = &results[0];
    scale_result_begin(r, &w, "impossible", "a gang that cannot be had, at 95 % of the GPUs");
    double explain_ms;
    uint32_t all = (uint32_t)(in->gpus + 1 < 100000 ? in->gpus + 1 : 100000);
    scale_figure(r, "refused_more_than_all_ms", say_impossible(&w, all, 1, false, &explain_ms));
    scale_figure(r, "refused_gang_of_8s_ms",
                 say_impossible(&w, (uint32_t)(in->gpus / 8), 8, false, &explain_ms));
    scale_figure(r, "waits_gang_of_512_ms", say_impossible(&w, 512, 8, true, &explain_ms));
    scale_figure(r, "explain_gang_of_512_ms", explain_ms);
    scale_figure(r, "waits_gang_of_100_ms", say_impossible(&w, 100, 8, true, &explain_ms));
    scale_world_done(&w);
    return 1;
}

const struct scale_mode scale_mode_impossible = {
    "impossible", "how long it takes to say that a gang cannot be had", impossible_run};

/* ---- cold start -------------------------------------------------------------------------- */

/* Rebuilds a full cluster with as many waiting jobs from what is known of each job and task. */
static size_t start_run(const struct scale_options *o, const struct scale_input *in,
                        const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w, again;
    scale_world_init(&w, o, in, meter);
    w.keeps_places = true;
    scale_fill_to(&w, FULL, o->jobs);
    int64_t begun = meter->cpu_ns();
    scale_world_init(&again, o, in, meter);
    int64_t nodes_ns = meter->cpu_ns() - begun, jobs_ns = 0, tasks_ns = 0;
    for (size_t i = 0; i < w.jobs.len; i++) {
        struct sched_workload workload = *scale_workload(&w, (uint32_t)i);
        workload.accepted = true;
        begun = meter->cpu_ns();
        sched_workload_add(again.s, &workload, NULL);
        jobs_ns += meter->cpu_ns() - begun;
    }
    uint64_t restored = 0;
    begun = meter->cpu_ns();
    for (size_t i = 0; i < w.places.len; i++) {
        const struct scale_place *p = &w.places.items[i];
        restored += sched_task_restore(again.s, p->workload, p->task, SCHED_TASK_RUNNING, p->node,
                                       p->devices, p->device_count, w.now_ms) == 0;
    }
    tasks_ns = meter->cpu_ns() - begun;
    begun = meter->cpu_ns();
    sched_turn(again.s, w.now_ms);
    int64_t turn_ns = meter->cpu_ns() - begun;
    struct scale_result *r = &results[0];
    scale_result_begin(r, &w, "start", "the whole state anew, from what is known of each task");
    scale_figure(r, "jobs", (double)w.jobs.len);
    scale_figure(r, "tasks_restored", (double)restored);
    scale_figure(r, "nodes_and_teams_seconds", (double)nodes_ns / 1e9);
    scale_figure(r, "jobs_seconds", (double)jobs_ns / 1e9);
    scale_figure(r, "tasks_seconds", (double)tasks_ns / 1e9);
    scale_figure(r, "first_turn_seconds", (double)turn_ns / 1e9);
    scale_figure(r, "seconds", (double)(nodes_ns + jobs_ns + tasks_ns + turn_ns) / 1e9);
    scale_world_done(&w);
    scale_world_done(&again);
    return 1;
}

const struct scale_mode scale_mode_start = {"start", "a cold start: the whole state is rebuilt",
                                            start_run};
