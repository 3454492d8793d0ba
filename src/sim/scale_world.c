/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The world of the scale benchmark: its nodes, teams and jobs, and the books that are kept of what
 * runs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "sim/scale.h"

#define CONSTRAINED_PERCENT 10
#define FILL_BATCH 16
#define SECOND_NS INT64_C(1000000000)
#define PROGRESS_NS (5 * SECOND_NS)

/* ---- nodes and teams --------------------------------------------------------------------- */

static void nodes_set(struct scale_world *w)
{
    static const char *const levels[] = {"zone", "rack"};
    sched_topology_set(w->s, levels, 2);
    struct sched_device devices[OPENB_DEVICES_MAX];
    memset(devices, 0, sizeof(devices));
    for (size_t i = 0; i < w->in->nodes.len; i++) {
        const struct scale_node *n = &w->in->nodes.items[i];
        char zone[24], rack[24];
        snprintf(zone, sizeof(zone), "%zu", i / SCALE_RACK_NODES / SCALE_ZONE_RACKS);
        snprintf(rack, sizeof(rack), "%zu", i / SCALE_RACK_NODES);
        struct sched_label labels[] = {{"zone", zone}, {"rack", rack}};
        struct sched_node node = {.id = i + 1,
                                  .order = i,
                                  .gpu_type = n->model,
                                  .devices = devices,
                                  .device_count = n->device_count,
                                  .cpu_milli = n->cpu_milli,
                                  .memory_bytes = n->memory_bytes,
                                  .labels = labels,
                                  .label_count = 2,
                                  .up = true,
                                  .schedulable = true};
        sched_node_set(w->s, &node);
    }
}

/* One of COUNT equal teams; what they are guaranteed together is a part of everything. */
static void team_set(struct scale_world *w, uint64_t id, uint64_t parent, int64_t count)
{
    int64_t all[SCHED_RESOURCES] = {w->in->gpus * 1000, w->in->cpu_milli, w->in->memory_bytes};
    struct sched_team team = {.id = id, .parent = parent, .age = id, .weight = 1 + (int64_t)id % 4};
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        team.limit[r] = SCHED_UNLIMITED;
        team.guarantee[r] = all[r] == SCHED_UNLIMITED
                                ? SCHED_UNLIMITED
                                : all[r] / 100 * SCALE_GUARANTEED_PERCENT / count;
    }
    sched_team_set(w->s, &team);
}

static int64_t team_count(const struct scale_options *o)
{
    return o->departments * o->departments * o->departments;
}

/* Leaves have the ids from 1 on. */
static void teams_set(struct scale_world *w)
{
    int64_t d = w->o->departments, leaves = team_count(w->o);
    uint64_t middle = (uint64_t)leaves + 1, top = middle + (uint64_t)(d * d);
    for (int64_t i = 0; i < d; i++)
        team_set(w, top + (uint64_t)i, 0, d);
    for (int64_t i = 0; i < d * d; i++)
        team_set(w, middle + (uint64_t)i, top + (uint64_t)(i / d), d * d);
    for (int64_t i = 0; i < leaves; i++)
        team_set(w, 1 + (uint64_t)i, middle + (uint64_t)(i / d), leaves);
}

void scale_world_init(struct scale_world *w, const struct scale_options *o,
                      const struct scale_input *in, const struct sim_meter *meter)
{
    *w = (struct scale_world){
        .o = o, .in = in, .meter = meter, .s = sched_create(NULL), .now_ms = 1000};
    rng_seed(&w->rng, (uint64_t)o->seed);
    int64_t rss = meter->rss_bytes();
    nodes_set(w);
    w->node_bytes = meter->rss_bytes() - rss;
    teams_set(w);
}

void scale_world_done(struct scale_world *w)
{
    sched_destroy(w->s);
    vec_done(&w->jobs);
    vec_done(&w->running);
    vec_done(&w->places);
    vec_done(&w->took);
    vec_done(&w->submits);
    vec_done(&w->firsts);
    *w = (struct scale_world){0};
}

/* ---- jobs -------------------------------------------------------------------------------- */

/* One in ten is bound: gangs to a rack or a zone, others to the model of some node. */
static void bind(struct scale_world *w, struct scale_job *j, const struct openb_pod *pod)
{
    if (j->tasks > 1) {
        j->bound = j->tasks <= 8 ? SCALE_RACK : SCALE_ZONE;
        return;
    }
    j->model_node = (uint32_t)rng_below(&w->rng, w->in->nodes.len);
    const struct scale_node *n = &w->in->nodes.items[j->model_node];
    if (pod->device_count > 0 && n->device_count >= pod->device_count)
        j->bound = SCALE_MODEL;
}

uint32_t scale_draw(struct scale_world *w)
{
    struct scale_job j = {.pod = (uint32_t)rng_below(&w->rng, w->in->pods.count),
                          .team = 1 + (uint32_t)rng_below(&w->rng, (uint64_t)team_count(w->o)),
                          .tasks = 1};
    const struct openb_pod *pod = &w->in->pods.items[j.pod];
    j.milli = (uint32_t)openb_pod_milli(pod);
    uint64_t kind = rng_below(&w->rng, 100);
    j.class_ = kind < 75   ? SCHED_CLASS_TRAINING
               : kind < 90 ? SCHED_CLASS_DEVELOPMENT
                           : SCHED_CLASS_BATCH;
    uint32_t gang = w->in->gangs.items[rng_below(&w->rng, w->in->gangs.len)];
    if (pod->device_count == 1 && pod->device_milli == 1000)
        j.tasks = (uint8_t)gang;
    if (rng_below(&w->rng, 100) < CONSTRAINED_PERCENT)
        bind(w, &j, pod);
    vec_push(&w->jobs, j);
    return (uint32_t)w->jobs.len - 1;
}

const struct sched_workload *scale_workload(struct scale_world *w, uint32_t job)
{
    const struct scale_job *j = &w->jobs.items[job];
    w->request = openb_sched_request(&w->in->pods.items[j->pod]);
    if (j->bound == SCALE_MODEL) {
        w->request.gpu_types = &w->in->nodes.items[j->model_node].model;
        w->request.gpu_type_count = 1;
    }
    for (uint32_t t = 0; t < j->tasks; t++)
        w->tasks[t].request = &w->request;
    w->workload = (struct sched_workload){
        .id = job + 1,
        .team = j->team,
        .age = job + 1,
        .class_ = (enum sched_class)j->class_,
        .preemptible = true,
        .may_burst = true,
        .tasks = w->tasks,
        .task_count = j->tasks,
        .min_tasks = j->tasks,
        .topology_required = j->bound == SCALE_RACK   ? "rack"
                             : j->bound == SCALE_ZONE ? "zone"
                                                      : NULL,
    };
    return &w->workload;
}

bool scale_submit(struct scale_world *w, uint32_t job)
{
    if (sched_workload_add(w->s, scale_workload(w, job), NULL) == 0)
        return true;
    w->refused++;
    return false;
}

int64_t scale_enter_all(struct scale_world *w, struct sched *s, bool accepted)
{
    int64_t begun = scale_begin(w);
    for (size_t i = 0; i < w->jobs.len; i++) {
        struct sched_workload workload = *scale_workload(w, (uint32_t)i);
        workload.accepted = accepted;
        w->refused += sched_workload_add(s, &workload, NULL) < 0;
    }
    return scale_begin(w) - begun;
}

void scale_arrive(struct scale_world *w)
{
    const struct sched_workload *workload = scale_workload(w, scale_draw(w));
    int64_t begun = scale_begin(w);
    if (sched_workload_add(w->s, workload, NULL) < 0) {
        w->refused++;
        return;
    }
    scale_step(w, begun);
    vec_push(&w->submits, w->last_ns);
    vec_push(&w->firsts, w->first_ns);
}

uint32_t scale_random_running(struct scale_world *w)
{
    return w->running.items[rng_below(&w->rng, w->running.len)];
}

static void running_add(struct scale_world *w, uint32_t job)
{
    struct scale_job *j = &w->jobs.items[job];
    if (j->running++ > 0)
        return;
    vec_push(&w->running, job);
    j->at = (uint32_t)w->running.len;
}

static void running_remove(struct scale_world *w, uint32_t job)
{
    struct scale_job *j = &w->jobs.items[job];
    if (--j->running > 0)
        return;
    uint32_t last = vec_pop(&w->running);
    if (last != job) {
        w->running.items[j->at - 1] = last;
        w->jobs.items[last].at = j->at;
    }
    j->at = 0;
}

static int64_t task_milli(const struct scale_world *w, uint32_t job)
{
    return w->jobs.items[job].milli;
}

void scale_end(struct scale_world *w, uint32_t job)
{
    uint32_t tasks = w->jobs.items[job].running;
    for (uint32_t t = 0; t < w->jobs.items[job].tasks; t++)
        sched_task_stopped(w->s, job + 1, t, SCHED_STOP_DONE, w->now_ms);
    for (uint32_t t = 0; t < tasks; t++) {
        running_remove(w, job);
        w->gpu_milli -= task_milli(w, job);
    }
    sched_workload_remove(w->s, job + 1);
}

/* ---- decisions --------------------------------------------------------------------------- */

static void place_keep(struct scale_world *w, const struct sched_decision *d)
{
    struct scale_place *p = vec_add(&w->places);
    p->workload = d->workload;
    p->task = d->task;
    p->node = d->node;
    p->device_count = d->device_count;
    for (uint32_t k = 0; k < d->device_count && k < OPENB_DEVICES_MAX; k++)
        p->devices[k] = d->devices[k];
}

static void note(struct scale_world *w, const struct sched_decision *d)
{
    const struct {
        uint64_t before, kind, workload, task, node, device;
    } key = {w->hash, d->kind, d->workload, d->task, d->node,
             d->device_count > 0 ? d->devices[0] : 0};
    w->hash = map_hash(&key, sizeof(key));
    uint32_t job = (uint32_t)d->workload - 1;
    w->decisions++;
    if (d->kind == SCHED_START) {
        w->starts++;
        w->gpu_milli += task_milli(w, job);
        running_add(w, job);
        if (w->keeps_places)
            place_keep(w, d);
    } else if (d->kind == SCHED_EVICT) {
        w->evictions++;
        w->gpu_milli -= task_milli(w, job);
        running_remove(w, job);
    } else {
        w->promises += d->kind == SCHED_HOLD;
    }
}

/* Carries out one turn's decisions; its copies, because a report ends their life. */
static void carry_out(struct scale_world *w, const struct sched_decisions *d, int64_t *spent_ns)
{
    struct victim {
        uint64_t workload;
        uint32_t task;
    };
    VEC(struct victim) victims = {0};
    for (size_t i = 0; i < d->count; i++) {
        note(w, &d->items[i]);
        struct victim v = {d->items[i].workload, d->items[i].task};
        if (d->items[i].kind == SCHED_EVICT)
            vec_push(&victims, v);
    }
    int64_t begun = scale_begin(w);
    for (size_t i = 0; i < victims.len; i++)
        sched_task_stopped(w->s, victims.items[i].workload, victims.items[i].task,
                           SCHED_STOP_REQUEUE, w->now_ms);
    *spent_ns += scale_begin(w) - begun;
    vec_done(&victims);
}

int64_t scale_begin(const struct scale_world *w)
{
    return w->meter->cpu_ns();
}

void scale_settle(struct scale_world *w)
{
    int64_t ignored = 0;
    for (const struct sched_decisions *d;
         (d = sched_turn(w->s, w->now_ms))->count > 0 || sched_next_ms(w->s) <= w->now_ms;)
        carry_out(w, d, &ignored);
}

/* One turn; its time is added to SPENT. False when the world rests. */
static bool one_turn(struct scale_world *w, int64_t begun_ns, int64_t *spent)
{
    const struct sched_decisions *d = sched_turn(w->s, w->now_ms);
    bool more = d->count > 0 || sched_next_ms(w->s) <= w->now_ms;
    *spent += scale_begin(w) - begun_ns;
    w->turns++;
    carry_out(w, d, spent);
    return more;
}

static uint64_t step_note(struct scale_world *w, uint64_t before, int64_t spent)
{
    uint64_t made = w->decisions - before;
    w->spent_ns += spent;
    w->last_ns = spent;
    for (uint64_t i = 0; i < made; i++)
        vec_push(&w->took, spent / (int64_t)made);
    if (made == 0)
        vec_push(&w->took, spent); /* to have found nothing is a decision too */
    return made;
}

uint64_t scale_step(struct scale_world *w, int64_t begun_ns)
{
    uint64_t before = w->decisions;
    int64_t spent = 0;
    bool more = one_turn(w, begun_ns, &spent);
    w->first_ns = spent;
    while (more)
        more = one_turn(w, scale_begin(w), &spent);
    return step_note(w, before, spent);
}

uint64_t scale_turn(struct scale_world *w, int64_t begun_ns)
{
    uint64_t before = w->decisions;
    int64_t spent = 0;
    one_turn(w, begun_ns, &spent);
    return step_note(w, before, spent);
}

void scale_mark(struct scale_world *w)
{
    w->spent_ns = w->told_ns = 0;
    w->marked = w->decisions;
    vec_clear(&w->took);
    vec_clear(&w->submits);
    vec_clear(&w->firsts);
    w->turns = 0;
}

bool scale_goes_on(struct scale_world *w, const char *mode, int64_t done, int64_t of)
{
    if (w->o->progress != NULL && w->spent_ns - w->told_ns > PROGRESS_NS) {
        fprintf(w->o->progress,
                "%s: %" PRId64 " of %" PRId64 ", %" PRIu64 " decisions, %" PRId64
                " %% of the GPUs in use, %" PRId64 " s\n",
                mode, done, of, w->decisions - w->marked, w->gpu_milli / (w->in->gpus * 10),
                w->spent_ns / SECOND_NS);
        w->told_ns = w->spent_ns;
    }
    return w->spent_ns < w->o->seconds * SECOND_NS;
}

bool scale_holds(const struct scale_world *w, int64_t percent)
{
    return w->gpu_milli >= w->in->gpus * 10 * percent;
}

void scale_fill_up(struct scale_world *w, int64_t limit)
{
    for (int64_t i = 0; i < limit && !scale_holds(w, w->o->full_percent); i++) {
        scale_submit(w, scale_draw(w));
        if (i % FILL_BATCH == 0 || i + 1 == limit)
            scale_settle(w);
    }
    scale_settle(w);
}
