/* SPDX-License-Identifier: Apache-2.0 */
#include "small_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIB (1LL << 30)
#define TASKS_MAX_HERE 256
#define DEVICES_HERE 64
#define REST_TURNS 1000

void world_init_config(struct small_world *w, const struct sched_config *config)
{
    memset(w, 0, sizeof(*w));
    w->s = sched_create(config);
    w->now_ms = 1000;
}

void world_init(struct small_world *w)
{
    world_init_config(w, NULL);
}

void world_done(struct small_world *w)
{
    sched_destroy(w->s);
    w->s = NULL;
}

static struct sched_node node_of(uint64_t id, uint32_t gpus, struct sched_device *devices)
{
    for (uint32_t d = 0; d < gpus; d++)
        devices[d].memory_bytes = 80 * GIB;
    return (struct sched_node){.id = id,
                               .order = id,
                               .gpu_type = "H100",
                               .devices = devices,
                               .device_count = gpus,
                               .cpu_milli = SCHED_UNLIMITED,
                               .memory_bytes = SCHED_UNLIMITED,
                               .up = true,
                               .schedulable = true};
}

void world_node_window(struct small_world *w, uint64_t id, uint32_t gpus, int64_t from_ms,
                       int64_t until_ms)
{
    struct sched_device devices[DEVICES_HERE] = {{0}};
    struct sched_node node = node_of(id, gpus, devices);
    node.window_from_ms = from_ms;
    node.window_until_ms = until_ms;
    assert_int_equal(sched_node_set(w->s, &node), 0);
}

static void node_set(struct small_world *w, uint64_t id, uint32_t gpus, bool up, bool schedulable,
                     const struct sched_label *label)
{
    struct sched_device devices[DEVICES_HERE] = {{0}};
    struct sched_node node = node_of(id, gpus, devices);
    node.labels = label;
    node.label_count = label != NULL;
    node.up = up;
    node.schedulable = schedulable;
    assert_int_equal(sched_node_set(w->s, &node), 0);
}

void world_node(struct small_world *w, uint64_t id, uint32_t gpus)
{
    node_set(w, id, gpus, true, true, NULL);
}

void world_node_state(struct small_world *w, uint64_t id, uint32_t gpus, bool up, bool schedulable)
{
    node_set(w, id, gpus, up, schedulable, NULL);
}

void world_node_label(struct small_world *w, uint64_t id, uint32_t gpus, const char *key,
                      const char *value)
{
    struct sched_label label = {key, value};
    node_set(w, id, gpus, true, true, &label);
}

void world_team_full(struct small_world *w, uint64_t id, uint64_t parent, int64_t guarantee,
                     int64_t limit, int64_t weight, int priority)
{
    struct sched_team team = {.id = id,
                              .parent = parent,
                              .age = id,
                              .weight = weight,
                              .priority = priority,
                              .guarantee = {guarantee, SCHED_UNLIMITED, SCHED_UNLIMITED},
                              .limit = {limit, SCHED_UNLIMITED, SCHED_UNLIMITED}};
    assert_int_equal(sched_team_set(w->s, &team), 0);
}

void world_team(struct small_world *w, uint64_t id, uint64_t parent, int64_t guarantee)
{
    world_team_full(w, id, parent, guarantee, SCHED_UNLIMITED, 1, 100);
}

static void request_fill(const struct job *job, struct sched_mig_request *mig,
                         struct sched_request *r)
{
    memset(r, 0, sizeof(*r));
    r->cpu_milli = job->cpu_milli;
    r->memory_bytes = job->memory;
    r->only_node = job->only_node;
    r->only_devices = job->only_devices;
    r->gpu_types = &job->gpu_type;
    r->gpu_type_count = job->gpu_type != NULL;
    if (job->mig != NULL) {
        *mig = (struct sched_mig_request){job->mig, 1};
        r->mig = mig;
        r->mig_count = 1;
    } else if (job->gpu_memory > 0) {
        r->device_count = 1;
        r->device_memory_bytes = job->gpu_memory;
    } else if (job->gpu_milli > 0) {
        r->device_count = job->gpu_milli < 1000 ? 1 : (uint32_t)job->gpu_milli / 1000;
        r->device_milli = job->gpu_milli < 1000 ? job->gpu_milli : 1000;
    }
}

/* Adds it, or with RET_EXPLANATION only asks what would become of it. */
static int hand_in(struct small_world *w, struct job job, struct sched_refusal *ret_refusal,
                   struct sched_explanation *ret_explanation)
{
    struct sched_mig_request mig;
    struct sched_request request;
    struct sched_task tasks[TASKS_MAX_HERE] = {{0}};
    request_fill(&job, &mig, &request);
    unsigned count = job.tasks > 0 ? job.tasks : 1;
    for (unsigned t = 0; t < count; t++)
        tasks[t].request = &request;
    struct sched_workload workload = {
        .id = job.id > 0 ? job.id : ++w->next_id,
        .team = job.team,
        .class_ = job.other_class ? job.class_ : SCHED_CLASS_TRAINING,
        .priority = job.priority,
        .preemptible = !job.firm,
        .may_burst = !job.no_burst,
        .spread = job.spread,
        .tasks = tasks,
        .task_count = count,
        .min_tasks = job.min > 0 ? job.min : count,
        .topology_required = job.required,
        .topology_preferred = job.preferred,
        .limit_ms = job.limit_ms,
        .min_run_ms = job.min_run_ms,
        .max_unavailable = job.max_unavailable,
        .accepted = !job.strict,
    };
    workload.age = workload.id;
    if (ret_explanation != NULL) {
        w->next_id -= job.id == 0;
        return sched_explain_new(w->s, &workload, w->now_ms, ret_explanation);
    }
    if (workload.id > w->next_id)
        w->next_id = workload.id;
    return sched_workload_add(w->s, &workload, ret_refusal);
}

int world_try_job(struct small_world *w, struct job job, struct sched_refusal *ret_refusal)
{
    return hand_in(w, job, ret_refusal, NULL);
}

struct sched_explanation world_foresee(struct small_world *w, struct job job)
{
    struct sched_explanation e;
    assert_int_equal(hand_in(w, job, NULL, &e), 0);
    return e;
}

uint64_t world_job(struct small_world *w, struct job job)
{
    struct sched_refusal refusal;
    assert_int_equal(world_try_job(w, job, &refusal), 0);
    return job.id > 0 ? job.id : w->next_id;
}

static void verify(struct small_world *w)
{
    char what[200] = "";
    int r = sched_verify(w->s, what, sizeof(what));
    if (r < 0)
        print_error("%s\n", what);
    assert_int_equal(r, 0);
}

static void trace(const struct sched_decision *d)
{
    static const char *const kinds[] = {"start", "hold", "unhold", "evict"};
    print_message("# %s %llu/%u %s node %llu device %d gpu %d for %llu\n", kinds[d->kind],
                  (unsigned long long)d->workload, d->task, sched_cause_name(d->cause),
                  (unsigned long long)d->node, d->device_count > 0 ? d->devices[0] : -1,
                  d->gpu_milli, (unsigned long long)d->on_behalf_of);
}

unsigned world_turn(struct small_world *w)
{
    const struct sched_decisions *d = sched_turn(w->s, w->now_ms);
    size_t count = d->count;
    struct sched_decision *items = calloc(count + 1, sizeof(*items));
    if (count > 0)
        memcpy(items, d->items, count * sizeof(*items));
    verify(w);
    for (size_t i = 0; i < count; i++) {
        if (w->trace)
            trace(&items[i]);
        w->starts += items[i].kind == SCHED_START;
        w->holds += items[i].kind == SCHED_HOLD;
        w->unholds += items[i].kind == SCHED_UNHOLD;
        if (items[i].kind != SCHED_EVICT)
            continue;
        w->evictions++;
        w->last_evict = items[i];
        if (!w->stop_by_hand)
            world_stopped(w, items[i].workload, items[i].task, SCHED_STOP_REQUEUE);
    }
    free(items);
    return (unsigned)count;
}

void world_settle(struct small_world *w)
{
    unsigned turns = 0;
    while (world_turn(w) > 0) {
        w->trace = ++turns > REST_TURNS - 10; /* of a loop, show what goes round */
        assert_true(turns < REST_TURNS);      /* it comes to rest */
    }
    w->trace = false;
}

void world_stopped(struct small_world *w, uint64_t workload, uint32_t task, enum sched_stop how)
{
    assert_int_equal(sched_task_stopped(w->s, workload, task, how, w->now_ms), 0);
    verify(w);
}

void world_finish(struct small_world *w, uint64_t workload, uint32_t task)
{
    world_stopped(w, workload, task, SCHED_STOP_DONE);
}

enum sched_task_state world_state(struct small_world *w, uint64_t workload, uint32_t task)
{
    enum sched_task_state state;
    assert_int_equal(sched_task_state(w->s, workload, task, &state, NULL), 0);
    return state;
}

uint64_t world_where(struct small_world *w, uint64_t workload, uint32_t task)
{
    enum sched_task_state state;
    uint64_t node = 0;
    assert_int_equal(sched_task_state(w->s, workload, task, &state, &node), 0);
    return node;
}

unsigned world_running(struct small_world *w, uint64_t workload, unsigned tasks)
{
    unsigned running = 0;
    for (unsigned t = 0; t < tasks; t++)
        running += world_state(w, workload, t) == SCHED_TASK_RUNNING;
    return running;
}
