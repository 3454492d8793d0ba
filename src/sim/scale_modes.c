/* SPDX-License-Identifier: Apache-2.0 */
/* Situations of the scale benchmark in which nobody has a right over anybody: filling, churn, a
 * gang that cannot be had. */
#include <stdlib.h>

#include "sim/scale.h"

#define TRIES 21 /* of what is measured by itself; the middle one counts */

/* ---- fill -------------------------------------------------------------------------------- */

static const struct level { /* what a decision costs while the cluster fills up to there */
    int64_t percent;
    const char *name;
} levels[] = {{10, "us_to_10_percent"}, {20, "us_to_20_percent"}, {30, "us_to_30_percent"},
              {40, "us_to_40_percent"}, {50, "us_to_50_percent"}, {60, "us_to_60_percent"},
              {70, "us_to_70_percent"}, {80, "us_to_80_percent"}, {90, "us_to_90_percent"},
              {95, "us_to_95_percent"}};

#define LEVELS (sizeof(levels) / sizeof(levels[0]))

struct climb {
    size_t level; /* the next to be reached */
    int64_t spent_ns;
    uint64_t decisions; /* at the last one */
    double us[LEVELS];
};

static void climb_note(struct climb *c, const struct scale_world *w)
{
    if (c->level == LEVELS || !scale_holds(w, levels[c->level].percent))
        return;
    uint64_t made = w->decisions - c->decisions;
    c->us[c->level++] = made > 0 ? (double)(w->spent_ns - c->spent_ns) / 1e3 / (double)made : 0;
    c->spent_ns = w->spent_ns;
    c->decisions = w->decisions;
}

/* One job after the other arrives, and each is decided by itself. */
static void fill_stream(struct scale_world *w, struct scale_result *r)
{
    struct climb climb = {0};
    int64_t i = 0;
    scale_mark(w);
    bool goes_on = true;
    for (; i < w->o->jobs && goes_on && !scale_holds(w, w->o->full_percent); i++) {
        scale_arrive(w);
        climb_note(&climb, w);
        goes_on = scale_goes_on(w, "fill", i + 1, w->o->jobs);
    }
    scale_result_begin(r, w, "fill", "one job at a time into an empty cluster");
    scale_result_times(r, w);
    scale_figure(r, "jobs", (double)w->jobs.len);
    scale_figure(r, "cut_short", !goes_on);
    scale_figure(r, "bytes_per_node", (double)w->node_bytes / (double)w->in->nodes.len);
    for (size_t k = 0; k < climb.level; k++)
        scale_figure(r, levels[k].name, climb.us[k]);
}

/* All jobs that the stream took wait at once, and the turns after that decide. */
static void fill_at_once(struct scale_world *w, size_t jobs, struct scale_result *r)
{
    for (size_t i = 0; i < jobs; i++)
        scale_draw(w);
    scale_mark(w);
    int64_t entering = scale_enter_all(w, w->s, false);
    scale_step(w, scale_begin(w) - entering);
    vec_clear(&w->took); /* a mean would pass for percentiles */
    scale_result_begin(r, w, "fill", "all jobs at once");
    scale_result_times(r, w);
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

const struct scale_mode scale_mode_fill = {"fill", "an empty cluster fills", fill_run};

/* ---- churn ------------------------------------------------------------------------------- */

/* One job ends, as many as it takes arrive: each end and each arrival is a step. */
static size_t churn_run(const struct scale_options *o, const struct scale_input *in,
                        const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    scale_fill_up(&w, o->jobs * 2);
    scale_mark(&w);
    int64_t ends = 0;
    uint64_t evictions = w.evictions;
    bool goes_on = true;
    while (goes_on && ends < o->steps && w.running.len > 0) {
        w.now_ms += 1000;
        uint32_t job = scale_random_running(&w);
        int64_t begun = scale_begin(&w);
        scale_end(&w, job);
        scale_step(&w, begun);
        ends++;
        while ((goes_on = scale_goes_on(&w, "churn", ends, o->steps)) &&
               !scale_holds(&w, o->full_percent))
            scale_arrive(&w);
    }
    struct scale_result *r = &results[0];
    scale_result_begin(r, &w, "churn", "jobs end and arrive in a full cluster");
    scale_result_times(r, &w);
    scale_figure(r, "ends", (double)ends);
    scale_figure(r, "arrivals", (double)w.submits.len);
    scale_figure(r, "evictions", (double)(w.evictions - evictions));
    scale_figure(r, "cut_short", !goes_on);
    scale_world_done(&w);
    return 1;
}

const struct scale_mode scale_mode_churn = {"churn", "a full cluster: jobs end and arrive",
                                            churn_run};

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
    scale_fill_up(&w, o->jobs * 2);
    struct scale_result *r = &results[0];
    scale_result_begin(r, &w, "impossible", "a gang that cannot be had, in a full cluster");
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
