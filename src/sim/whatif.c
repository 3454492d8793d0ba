/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/whatif.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/shape.h"
#include "sim/drive.h"
#include "sim/whatif_internal.h"

#define STOP_MS 5000
#define BACKOFF_DOUBLINGS 6 /* as the scheduler: up to 64 times the first */

/* ---- the setup ---------------------------------------------------------------------------- */

void whatif_setup_past(struct past *past, struct whatif_setup *ret_setup)
{
    size_t teams = past->teams.len, nodes = past->nodes.len, changes = past->changes.len;
    struct whatif_setup s = {
        .config = past->config,
        .teams = arena_new_array(&past->arena, struct whatif_team, teams + 1),
        .nodes = arena_new_array(&past->arena, struct whatif_node, nodes + 1),
        .node_count = nodes,
        .changes = arena_new_array(&past->arena, struct past_change, changes + 1),
        .change_count = changes,
        .capacity_milli = past_capacity(past),
        .capacity_milli_ms = (int64_t)past_gpu_time(past),
        .accepted = true,
        .checkpoint_ms = PAST_CHECKPOINT_MS,
    };
    int64_t stop_ms = past_stop_ms(past, &s.stops);

    s.stop_ms = stop_ms < 0 ? STOP_MS : stop_ms;

    for (size_t i = 0; i < teams; i++)
        s.teams[i] = (struct whatif_team){past->teams.items[i].first, past->teams.items[i].absent};
    for (size_t i = 0; i < nodes; i++)
        s.nodes[i] = (struct whatif_node){past->nodes.items[i].first, past->nodes.items[i].absent};
    if (changes > 0)
        memcpy(s.changes, past->changes.items, changes * sizeof(*s.changes));
    *ret_setup = s;
}

/* ---- a replay ----------------------------------------------------------------------------- */

struct replay {
    const struct past *past;
    const struct whatif_setup *setup;
    struct sched *s;
    struct whatif_world world;
    struct arena arena; /* pauses of jobs */
    struct err *err;
    int64_t used_milli, since_ms, window_milli_ms;
};

/* Adds what was held until NOW. */
static void meter(struct replay *y, int64_t now_ms)
{
    int64_t until = now_ms < y->past->until_ms ? now_ms : y->past->until_ms;

    if (until > y->since_ms) {
        y->window_milli_ms += y->used_milli * (until - y->since_ms);
        y->since_ms = until;
    }
}

static void on_event(void *arg, const struct drive_event *event)
{
    struct replay *y = arg;

    meter(y, event->now_ms);
    if (event->kind == DRIVE_STARTED)
        y->used_milli += event->gpu_milli;
    else if (event->kind == DRIVE_STOPPED || event->kind == DRIVE_PAUSED ||
             event->kind == DRIVE_TASK_ENDED)
        y->used_milli -= event->gpu_milli;
}

/*
 * A run that failed ends where it failed: the devices are given up, and the job comes back after
 * its back-off. All of that is part of what the job has to get through.
 */
static void add_failures(struct replay *y, const struct past_job *job, struct drive_job *j)
{
    struct drive_pause *pauses;
    int64_t at_ms = 0;

    if (job->failed_count == 0)
        return;
    pauses = arena_new_array(&y->arena, struct drive_pause, job->failed_count);
    for (uint32_t i = 0; i < job->failed_count; i++) {
        int64_t wait_ms = y->setup->config.backoff_ms
                          << (i < BACKOFF_DOUBLINGS ? i : BACKOFF_DOUBLINGS);
        at_ms += job->failed_ms[i];
        pauses[i] = (struct drive_pause){at_ms, wait_ms > 0 ? wait_ms : 1};
        at_ms += pauses[i].length_ms;
        j->run_ms += pauses[i].length_ms;
    }
    if (at_ms >= j->run_ms) /* the last run is too short to be one */
        j->run_ms = at_ms + 1;
    j->pauses = pauses;
    j->pause_count = job->failed_count;
}

static int submit_all(struct replay *y, struct drive *d, struct drive_job *jobs, size_t *ret_count)
{
    size_t n = 0;
    int e = 0;

    for (size_t i = 0; e == 0 && i < y->past->jobs.len; i++) {
        const struct past_job *job = &y->past->jobs.items[i];
        const struct model_shape *m = job->shape->model;
        struct drive_job *j = &jobs[n];
        if (job->left_out)
            continue;
        core_shape_sched(job->shape, job->id, job->team, y->setup->accepted, &j->workload);
        j->submit_ms = job->submitted_ms;
        j->run_ms = job->work_ms;
        j->checkpoint_ms = m->handling == MODEL_RESTART ? 0 : y->setup->checkpoint_ms;
        j->grace_ms = m->grace_ms < y->setup->stop_ms ? m->grace_ms : y->setup->stop_ms;
        add_failures(y, job, j);
        e = drive_submit(d, j, y->err);
        n++;
    }
    *ret_count = n;
    return e;
}

static void take_fates(const struct replay *y, const struct drive *d, struct whatif_outcome *o)
{
    const struct past *p = y->past;
    struct whatif_fate *fates = calloc(p->jobs.len + 1, sizeof(*fates));
    size_t n = 0;

    if (fates == NULL)
        abort();
    for (size_t i = 0; i < p->jobs.len; i++) {
        struct drive_result r;
        fates[i].start_ms = DRIVE_NEVER;
        if (p->jobs.items[i].left_out)
            continue;
        drive_result(d, n++, &r);
        fates[i] = (struct whatif_fate){.start_ms = r.first_start_ms,
                                        .refused = r.end == DRIVE_END_REFUSED,
                                        .evictions = r.evictions,
                                        .retries = r.pauses,
                                        .losses = r.losses,
                                        .held_milli_ms = r.held_milli_ms};
        o->lost_milli_ms += r.lost_milli_ms;
        if (r.end_ms != DRIVE_NEVER && r.end_ms > o->end_ms)
            o->end_ms = r.end_ms;
    }
    whatif_summarise(p, fates, o);
    free(fates);
}

static int run(struct replay *y, struct whatif_outcome *o)
{
    struct drive_observer observer = {on_event, y};
    struct drive_job *jobs = calloc(y->past->jobs.len + 1, sizeof(*jobs));
    struct drive *d = drive_create(y->s, &observer);
    size_t count;
    int e;

    if (jobs == NULL)
        abort();
    whatif_world_schedule(&y->world, d);
    e = submit_all(y, d, jobs, &count);
    if (e == 0)
        e = drive_run(d, INT64_MAX, y->err);
    if (e == 0) {
        meter(y, y->past->until_ms);
        o->window_milli_ms = y->window_milli_ms;
        o->skipped = y->world.skipped;
        take_fates(y, d, o);
    }
    drive_destroy(d);
    free(jobs);
    return e;
}

int whatif_replay(const struct past *past, const struct whatif_setup *setup,
                  struct whatif_outcome *ret_outcome, struct err *err)
{
    struct replay y = {.past = past,
                       .setup = setup,
                       .s = sched_create(&setup->config),
                       .err = err,
                       .since_ms = past->from_ms};
    struct whatif_outcome o = {.capacity_milli = setup->capacity_milli,
                               .capacity_milli_ms = setup->capacity_milli_ms};
    int e;

    if (y.s == NULL)
        abort();
    e = whatif_world_begin(&y.world, past, setup, y.s, err);
    if (e == 0)
        e = run(&y, &o);
    whatif_world_done(&y.world);
    sched_destroy(y.s);
    arena_done(&y.arena);
    if (e == 0)
        *ret_outcome = o;
    return e;
}
