/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cold start of the scheduler alone: the state of a full cluster with a queue is entered anew,
 * from what is known of each job and task, up to the first turn. bench/start measures the same with
 * the stored state of a server.
 */
#include "sim/scale.h"

/* What runs now, the last place of each task first; the time of it. */
static int64_t tasks_restore(const struct scale_world *w, struct sched *s, uint64_t *ret_restored)
{
    int64_t spent = 0;
    *ret_restored = 0;
    for (size_t i = w->places.len; i-- > 0;) {
        const struct scale_place *p = &w->places.items[i];
        enum sched_task_state state;
        uint64_t node;
        if (sched_task_state(w->s, p->workload, p->task, &state, &node) < 0 ||
            state != SCHED_TASK_RUNNING || node != p->node)
            continue; /* it was evicted from there */
        int64_t begun = scale_begin(w);
        *ret_restored += sched_task_restore(s, p->workload, p->task, SCHED_TASK_RUNNING, p->node,
                                            p->devices, p->device_count, w->now_ms) == 0;
        spent += scale_begin(w) - begun;
    }
    return spent;
}

static size_t start_run(const struct scale_options *o, const struct scale_input *in,
                        const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w, again;
    scale_world_init(&w, o, in, meter);
    w.keeps_places = true;
    scale_fill_up(&w, o->jobs);
    int64_t begun = meter->cpu_ns();
    scale_world_init(&again, o, in, meter);
    int64_t nodes_ns = meter->cpu_ns() - begun;
    while ((int64_t)w.jobs.len < o->jobs)
        scale_draw(&w); /* these wait */
    int64_t jobs_ns = scale_enter_all(&w, again.s, true);
    uint64_t restored;
    int64_t tasks_ns = tasks_restore(&w, again.s, &restored);
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
