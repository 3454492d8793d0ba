/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"

#define HALF_MILLI 500
#define EARLY_MS (15 * 60000LL)
#define NODE_GPUS_MAX 1024

struct times VEC_BODY(int64_t);

struct run_job { /* beside the trace's */
    struct busy busy;
    struct drive_job job;
    uint32_t part;           /* which of the schedulers */
    size_t given;            /* index in its drive */
    int64_t since_ms;        /* of the present run */
    int64_t returned_ms;     /* of the pause that is over; DRIVE_NEVER = none */
    int64_t window_milli_ms; /* held within the window */
};

struct part { /* one scheduler */
    struct sched *s;
    struct drive *d;
};

struct run {
    const struct philly *trace;
    const struct use_curve *curve;
    const struct replay_options *o;
    struct replay_result *r;
    struct arena arena;
    struct run_job *jobs;
    struct part *parts;
    uint32_t part_count;
    int64_t demand[PHILLY_TEAMS_MAX];
    struct times resumes;
    const struct sched_task **asks; /* by number of GPUs: what a job's tasks ask for */
    const struct sched_task *half;
};

const char *replay_policy_name(enum replay_policy policy)
{
    static const char *const names[REPLAY_POLICIES] = {"blocks", "pool", "quota", "fraction",
                                                       "idle"};
    return names[policy];
}

const char *replay_size_name(enum replay_size size)
{
    static const char *const names[REPLAY_SIZES] = {"1", "2-4", "5-8", "more than 8", "all"};
    return names[size];
}

void replay_options_default(struct replay_options *ret_options)
{
    *ret_options = (struct replay_options){.policy = REPLAY_QUOTA,
                                           .node_gpus = 8,
                                           .quantile = 95,
                                           .checkpoint_ms = 30 * 60000,
                                           .restart_ms = 60000,
                                           .grace_ms = 30000,
                                           .resume_ms = 10000,
                                           .idle_ms = 30 * 60000,
                                           .seed = 42};
}

/* ---- what jobs ask for ------------------------------------------------------------------- */

/* Tasks of a job of GPUS: one on one node, or whole nodes and a rest; in a flat pool one a GPU. */
static uint32_t task_count(const struct run *run, uint32_t gpus)
{
    uint32_t node = run->o->node_gpus > 0 ? run->o->node_gpus : 1;
    return (gpus + node - 1) / node;
}

static const struct sched_task *asks(struct run *run, uint32_t gpus)
{
    if (run->asks[gpus] != NULL)
        return run->asks[gpus];
    uint32_t count = task_count(run, gpus), node = run->o->node_gpus > 0 ? run->o->node_gpus : 1;
    struct sched_request *requests = arena_new_array(&run->arena, struct sched_request, 2);
    struct sched_task *tasks = arena_new_array(&run->arena, struct sched_task, count);
    requests[0] = (struct sched_request){.device_count = node, .device_milli = 1000};
    requests[1] =
        (struct sched_request){.device_count = gpus - (count - 1) * node, .device_milli = 1000};
    for (uint32_t t = 0; t < count; t++)
        tasks[t].request = &requests[t + 1 == count && requests[1].device_count < node];
    run->asks[gpus] = tasks;
    return tasks;
}

static void make_half(struct run *run)
{
    struct sched_request *request = arena_new(&run->arena, struct sched_request);
    struct sched_task *task = arena_new(&run->arena, struct sched_task);
    *request = (struct sched_request){.device_count = 1, .device_milli = HALF_MILLI};
    task->request = request;
    run->half = task;
}

/* Pauses: idle periods from their `idle_ms` on. */
static void make_pauses(struct run *run, struct drive_job *job, const struct busy_periods *idle)
{
    struct drive_pause *pauses = arena_new_array(&run->arena, struct drive_pause, idle->len + 1);
    for (size_t i = 0; i < idle->len; i++) {
        const struct drive_pause *p = &idle->items[i];
        if (p->length_ms <= run->o->idle_ms)
            continue;
        pauses[job->pause_count++] = (struct drive_pause){
            .at_ms = p->at_ms + run->o->idle_ms, .length_ms = p->length_ms - run->o->idle_ms};
        run->r->early_returns += p->length_ms - run->o->idle_ms <= EARLY_MS;
    }
    job->pauses = pauses;
}

static void make_job(struct run *run, size_t i, struct busy_periods *idle)
{
    const struct replay_options *o = run->o;
    const struct philly_job *traced = &run->trace->jobs[i];
    struct run_job *rj = &run->jobs[i];
    busy_make(&rj->busy, idle, o->seed, i, traced->run_ms, run->curve);
    rj->returned_ms = DRIVE_NEVER;
    bool half = o->policy == REPLAY_FRACTION && traced->gpus == 1 &&
                rj->busy.use <= BUSY_USE_FULL * HALF_MILLI / 1000;
    run->r->each[i].fraction = half;
    int64_t run_ms = half ? traced->run_ms + traced->run_ms * o->slowdown / 100 : traced->run_ms;
    uint32_t count = half ? 1 : task_count(run, traced->gpus);
    rj->part = o->policy == REPLAY_BLOCKS ? traced->team : 0;
    rj->job = (struct drive_job){
        .workload = {.id = i + 1,
                     .team = o->policy == REPLAY_POOL ? 1 : traced->team + 1,
                     .age = i + 1,
                     .class_ = SCHED_CLASS_TRAINING,
                     .preemptible = o->policy >= REPLAY_QUOTA,
                     .may_burst = true,
                     .tasks = half ? run->half : asks(run, traced->gpus),
                     .task_count = count,
                     .min_tasks = count,
                     .limit_ms = o->limits ? run_ms + 1 : 0},
        .submit_ms = traced->submit_ms,
        .run_ms = run_ms,
        .checkpoint_ms = o->checkpoint_ms,
        .restart_ms = o->restart_ms,
        .resume_ms = o->resume_ms,
        .grace_ms = o->grace_ms,
    };
    if (o->policy == REPLAY_IDLE)
        make_pauses(run, &rj->job, idle);
}

/* ---- watching ---------------------------------------------------------------------------- */

static void book(struct run *run, struct run_job *rj, const struct drive_event *e)
{
    int64_t end = e->now_ms < run->r->window_ms ? e->now_ms : run->r->window_ms;
    if (end > rj->since_ms)
        rj->window_milli_ms += (end - rj->since_ms) * e->gpu_milli;
}

static void submitted(struct run *run, size_t i)
{
    const struct philly_job *traced = &run->trace->jobs[i];
    int64_t *demand = &run->demand[traced->team];
    *demand += traced->gpus;
    run->r->each[i].in_quota = *demand <= run->r->blocks[traced->team];
}

static void note(void *arg, const struct drive_event *e)
{
    struct run *run = arg;
    size_t i = e->job->workload.id - 1;
    struct run_job *rj = &run->jobs[i];
    switch (e->kind) {
    case DRIVE_SUBMITTED:
        submitted(run, i);
        break;
    case DRIVE_STARTED:
        rj->since_ms = e->now_ms;
        if (e->task == 0 && rj->returned_ms != DRIVE_NEVER) {
            vec_push(&run->resumes, e->now_ms - rj->returned_ms);
            rj->returned_ms = DRIVE_NEVER;
        }
        break;
    case DRIVE_STOPPED:
    case DRIVE_PAUSED:
    case DRIVE_TASK_ENDED:
        book(run, rj, e);
        break;
    case DRIVE_RETURNED:
        rj->returned_ms = e->now_ms;
        break;
    case DRIVE_ENDED:
        run->demand[run->trace->jobs[i].team] -= run->trace->jobs[i].gpus;
        break;
    case DRIVE_REFUSED:
    case DRIVE_EVICTED:
        break;
    }
}

/* ---- the world --------------------------------------------------------------------------- */

/* Nodes of the usual size for GPUS, the last one smaller if it must be. */
static int make_nodes(const struct run *run, struct sched *s, uint32_t gpus)
{
    static const struct sched_device devices[NODE_GPUS_MAX];
    uint32_t size = run->o->node_gpus > 0 ? run->o->node_gpus : 8;
    for (uint32_t i = 0; i * size < gpus; i++) {
        struct sched_node node = {.id = i + 1,
                                  .order = i,
                                  .devices = devices,
                                  .device_count = gpus - i * size < size ? gpus - i * size : size,
                                  .cpu_milli = SCHED_UNLIMITED,
                                  .memory_bytes = SCHED_UNLIMITED,
                                  .up = true,
                                  .schedulable = true};
        int rc = sched_node_set(s, &node);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int make_team(struct sched *s, uint64_t id, uint32_t gpus)
{
    struct sched_team team = {.id = id, .age = id, .weight = gpus > 0 ? gpus : 1};
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        team.guarantee[r] = SCHED_UNLIMITED;
        team.limit[r] = SCHED_UNLIMITED;
    }
    team.guarantee[SCHED_GPU_MILLI] = (int64_t)gpus * 1000;
    return sched_team_set(s, &team);
}

static int make_part(struct run *run, struct part *part, uint32_t gpus)
{
    struct drive_observer observer = {note, run};
    part->s = sched_create(NULL);
    if (part->s == NULL)
        return -ENOMEM;
    part->d = drive_create(part->s, &observer);
    return make_nodes(run, part->s, gpus);
}

static int make_world(struct run *run)
{
    const struct replay_result *r = run->r;
    bool blocks = run->o->policy == REPLAY_BLOCKS;
    int rc = 0;
    run->part_count = blocks ? r->teams : 1;
    run->parts = arena_new_array(&run->arena, struct part, run->part_count);
    for (uint32_t p = 0; p < run->part_count && rc == 0; p++)
        rc = make_part(run, &run->parts[p], blocks ? r->blocks[p] : r->gpus);
    if (rc == 0 && run->o->policy == REPLAY_POOL)
        return make_team(run->parts[0].s, 1, r->gpus);
    for (uint32_t t = 0; t < r->teams && rc == 0; t++)
        rc = make_team(run->parts[blocks ? t : 0].s, t + 1, r->blocks[t]);
    return rc;
}

/* ---- results ----------------------------------------------------------------------------- */

/* PART of WHOLE parts of AMOUNT; 128 bits in between. */
static int64_t part_of(int64_t amount, int64_t part, int64_t whole)
{
    return whole > 0 ? (int64_t)((__int128)amount * part / whole) : 0;
}

static void add_use(struct run *run, const struct run_job *rj, const struct drive_result *d)
{
    struct replay_result *r = run->r;
    int64_t lost = part_of(rj->window_milli_ms, d->lost_milli_ms, d->held_milli_ms);
    r->allocated_milli_ms += rj->window_milli_ms;
    r->lost_milli_ms += lost;
    r->held_total_milli_ms += d->held_milli_ms;
    r->lost_total_milli_ms += d->lost_milli_ms;
    if (d->end != DRIVE_END_DONE)
        return;
    const struct philly_job *traced = &run->trace->jobs[d->job->workload.id - 1];
    int64_t paused = 0;
    for (uint32_t i = 0; i < rj->job.pause_count; i++)
        paused += rj->job.pauses[i].length_ms;
    r->paused_milli_ms += paused * traced->gpus * 1000;
    /* What it computes is that of its GPUs, whatever fraction of them it is charged for. */
    int64_t active = (traced->run_ms - rj->busy.idle_ms) * traced->gpus * 1000;
    active = part_of(active, rj->window_milli_ms, d->held_milli_ms);
    r->active_milli_ms += active;
    r->busy_milli_ms += part_of(active, rj->busy.use, BUSY_USE_FULL);
}

static void collect(struct run *run)
{
    for (size_t i = 0; i < run->trace->count; i++) {
        struct run_job *rj = &run->jobs[i];
        struct replay_job *job = &run->r->each[i];
        struct drive_result d;
        drive_result(run->parts[rj->part].d, rj->given, &d);
        bool started = d.first_start_ms != DRIVE_NEVER, ended = d.end == DRIVE_END_DONE;
        job->wait_ms = started ? d.first_start_ms - rj->job.submit_ms : DRIVE_NEVER;
        job->jct_ms = ended ? d.end_ms - rj->job.submit_ms : DRIVE_NEVER;
        job->queued_ms = d.queued_ms;
        job->evictions = d.evictions;
        job->pauses = d.pauses;
        run->r->refused += d.end == DRIVE_END_REFUSED;
        run->r->unfinished += d.end == DRIVE_END_NONE;
        add_use(run, rj, &d);
    }
    for (uint32_t p = 0; p < run->part_count; p++) {
        run->r->turns += drive_turns(run->parts[p].d);
        run->r->decisions += drive_decisions(run->parts[p].d);
        int64_t end = drive_now(run->parts[p].d);
        run->r->end_ms = end > run->r->end_ms ? end : run->r->end_ms;
    }
    run->r->installed_milli_ms = run->r->window_ms * run->r->gpus * 1000;
}

static int time_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void resume_wait(struct run *run)
{
    struct times *t = &run->resumes;
    if (t->len == 0)
        return;
    qsort(t->items, t->len, sizeof(t->items[0]), time_compare);
    run->r->resume_p95_ms = t->items[(t->len * 95 + 99) / 100 - 1];
}

static int play(struct run *run, struct err *err)
{
    int rc = make_world(run);
    if (rc < 0)
        return err_set(err, rc, ERR_INVALID, NULL, NULL, "the cluster cannot be made: %s",
                       strerror(-rc));
    make_half(run);
    struct busy_periods idle = {0};
    for (size_t i = 0; i < run->trace->count && rc == 0; i++) {
        make_job(run, i, &idle);
        struct drive *d = run->parts[run->jobs[i].part].d;
        run->jobs[i].given = drive_count(d);
        rc = drive_submit(d, &run->jobs[i].job, err);
    }
    vec_done(&idle);
    for (uint32_t p = 0; p < run->part_count && rc == 0; p++)
        rc = drive_run(run->parts[p].d, INT64_MAX, err);
    if (rc < 0)
        return rc;
    collect(run);
    resume_wait(run);
    return 0;
}

static void run_done(struct run *run)
{
    for (uint32_t p = 0; p < run->part_count; p++) {
        drive_destroy(run->parts[p].d);
        sched_destroy(run->parts[p].s);
    }
    vec_done(&run->resumes);
    free(run->jobs);
    free(run->asks);
    arena_done(&run->arena);
}

int replay_run(const struct philly *trace, const struct use_curve *curve,
               const struct replay_options *options, const struct replay_result *alone,
               struct replay_result *ret_result, struct err *err)
{
    struct replay_result r = {.teams = trace->team_count,
                              .jobs = trace->count,
                              .window_ms = trace->jobs[trace->count - 1].submit_ms};
    r.gpus = replay_blocks(trace, options->quantile, options->gpus, r.blocks);
    r.each = calloc(trace->count, sizeof(r.each[0]));
    struct run run = {.trace = trace,
                      .curve = curve,
                      .o = options,
                      .r = &r,
                      .jobs = calloc(trace->count, sizeof(run.jobs[0])),
                      .asks = calloc(PHILLY_GPUS_MAX + 1, sizeof(run.asks[0]))};
    if (r.each == NULL || run.jobs == NULL || run.asks == NULL)
        abort();
    int rc = play(&run, err);
    run_done(&run);
    if (rc < 0) {
        replay_result_done(&r);
        return rc;
    }
    replay_measure(trace, alone, &r);
    *ret_result = r;
    return 0;
}

void replay_result_done(struct replay_result *result)
{
    free(result->each);
    result->each = NULL;
}
