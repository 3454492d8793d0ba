/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads whose devices go back to the pool while their processes live.
 *
 *   RUNNING   -suspend, or evicted-> engine -SUSPENDED-> SUSPENDED
 *   SUSPENDED -resume, or its program calls a GPU-> PENDING (it waits for its devices)
 *   PENDING   -START-> RUNNING, once the engine has RESUMED it
 *
 * To the scheduler a suspended workload is another one: what stays on its node, its CPU, its
 * memory, and the host memory that holds what it had on devices; nobody may evict that. When it
 * wants its devices back it is pending once more, for exactly these devices and nothing beside.
 * Once it has them the two are one again, as it was submitted. So order, gates, fair share,
 * reclaim, promises and explanations are those of any work that waits.
 *
 * Only workloads of one task: ranks that wait for each other cannot be suspended one by one.
 */
#include "core/internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/qty.h"
#include "core/convert.h"

#define HOST_PART (UINT64_C(1) << 62) /* of the scheduler's ids: what stays on the node */

uint64_t core_suspend_owner(uint64_t id)
{
    return id & HOST_PART ? id & ~HOST_PART : 0;
}

bool core_suspend_possible(const struct core_shape *shape)
{
    const struct model_shape *m = shape->model;
    const struct model_request *q = &m->groups[0].request;

    return m->task_count == 1 && (q->device_count > 0 || q->mig_count > 0) &&
           (m->handling == MODEL_SUSPEND || m->kind == MODEL_NOTEBOOK);
}

/* ---- wishes ---------------------------------------------------------------------------------- */

/* Somebody has been told that this attempt will be suspended. */
static bool is_wished(const struct core_workload *w)
{
    return w->tasks && w->state == MODEL_WORKLOAD_RUNNING &&
           w->tasks[0].state == MODEL_TASK_RUNNING &&
           w->suspend_attempt == w->tasks[0].attempt + 1;
}

static int64_t wish_of(const struct core *core, const struct core_workload *w)
{
    return is_wished(w) ? w->suspend_attempt : 0;
}

static void load_wish(struct core_workload *w, int64_t attempt)
{
    w->suspend_attempt = (int32_t)attempt;
}

static const struct core_note wishes = {
    "suspending", wish_of, load_wish,
    "what is stored of workloads to be suspended cannot be read: they run on"};

/* A wish is durable before it is answered: a server that is killed carries it on. */
static void set_wish(struct core *core, struct core_workload *w, bool wished)
{
    int32_t attempt = wished ? w->tasks[0].attempt + 1 : 0;

    if (w->suspend_attempt == attempt)
        return;
    w->suspend_attempt = attempt;
    core_note_store(core, &wishes);
}

int core_suspend_load_wishes(struct core *core, struct err *err)
{
    return core_note_load(core, &wishes, err);
}

/* ---- the scheduler's view -------------------------------------------------------------------- */

static void must(int r)
{
    if (r < 0)
        abort(); /* the scheduler and core disagree about what is there */
}

/* W as the scheduler knew it is gone, with what it held. */
static void leave_sched(struct core *core, struct core_workload *w)
{
    (void)sched_task_stopped(core->sched, w->id, 0, SCHED_STOP_DONE, core->now_ms);
    (void)sched_workload_remove(core->sched, w->id);
}

/* Tells the scheduler of W with REQUEST in place of its own, under ID. */
static void enter_sched(struct core *core, const struct core_workload *w, uint64_t id,
                        const struct sched_request *request, bool firm)
{
    struct sched_task task = w->shape->sched.tasks[0];
    struct sched_workload s;

    core_shape_sched(w->shape, id, w->team->row.id, true, &s);
    s.age = w->id;
    task.request = request;
    s.tasks = &task;
    s.groups = NULL;
    s.group_count = 0;
    if (firm) {
        s.class_ = SCHED_CLASS_PRODUCTION;
        s.preemptible = false;
        s.limit_ms = s.expected_ms = 0;
    }
    must(sched_workload_add(core->sched, &s, NULL));
}

/* HOST_BYTES beside its memory stay on its node, in STATE. -EBUSY: not even its own has room. */
static int try_host_part(struct core *core, const struct core_workload *w, int64_t host_bytes,
                         enum sched_task_state state)
{
    const struct core_task *t = &w->tasks[0];
    const struct sched_request *own = w->shape->sched.tasks[0].request;
    struct sched_request request = {.cpu_milli = own->cpu_milli,
                                    .memory_bytes = qty_add_sat(own->memory_bytes, host_bytes),
                                    .only_node = t->node->row.id};
    int r;

    enter_sched(core, w, w->id | HOST_PART, &request, true);
    r = sched_task_restore(core->sched, w->id | HOST_PART, 0, state, t->node->row.id, NULL, 0,
                           core->now_ms);
    if (r < 0)
        must(sched_workload_remove(core->sched, w->id | HOST_PART));
    return r;
}

/* What stays on its node: its CPU and memory, and HOST_BYTES of that where it has them; where it
 * does not, HOST_BYTES is 0 then. -EBUSY: others were promised its CPU or memory. */
static int enter_host_part(struct core *core, struct core_workload *w, int64_t *host_bytes,
                           enum sched_task_state state)
{
    int r = try_host_part(core, w, *host_bytes, state);

    if (r < 0) {
        *host_bytes = 0;
        r = try_host_part(core, w, 0, state);
    }
    w->asleep = r == 0;
    return r;
}

static void leave_host_part(struct core *core, struct core_workload *w)
{
    (void)sched_task_stopped(core->sched, w->id | HOST_PART, 0, SCHED_STOP_DONE, core->now_ms);
    (void)sched_workload_remove(core->sched, w->id | HOST_PART);
    w->asleep = false;
}

/* Its devices, and nothing beside. */
static void enter_waking(struct core *core, const struct core_workload *w)
{
    const struct core_task *t = &w->tasks[0];
    struct sched_request request = *w->shape->sched.tasks[0].request;

    request.cpu_milli = request.memory_bytes = 0;
    request.labels = NULL;
    request.label_count = 0;
    request.gpu_types = NULL;
    request.gpu_type_count = 0;
    request.only_node = t->node->row.id;
    request.only_devices = t->devices;
    enter_sched(core, w, w->id, &request, false);
}

/* As it was submitted. */
static void know_whole(struct core *core, const struct core_workload *w)
{
    struct sched_workload s;

    core_shape_sched(w->shape, w->id, w->team->row.id, true, &s);
    must(sched_workload_add(core->sched, &s, NULL));
}

void core_suspend_one_again(struct core *core, struct core_workload *w)
{
    const struct core_task *t = &w->tasks[0];

    if (!w->asleep)
        return;
    leave_host_part(core, w);
    leave_sched(core, w);
    if (w->state == MODEL_WORKLOAD_STOPPING)
        return;
    know_whole(core, w);
    if (t->state == MODEL_TASK_STARTING)
        must(sched_task_restore(core->sched, w->id, 0, SCHED_TASK_RUNNING, t->node->row.id,
                                t->devices, (uint32_t)t->device_count, core->now_ms));
    core->dirty = true;
}

void core_suspend_decided(struct core *core, struct core_workload *w)
{
    if (w->tasks[0].state == MODEL_TASK_STARTING)
        core_suspend_one_again(core, w);
    else /* it has to leave its node: it wants its devices no more */
        (void)sched_workload_remove(core->sched, w->id);
}

/* A is over, and what the engine reported of it belongs to it from now on. */
static void count_earlier(struct core_task *t, const struct model_allocation *a)
{
    t->busy_base_ns = qty_add_sat(t->busy_base_ns, a->busy_ns);
    t->known_base_ns = qty_add_sat(t->known_base_ns, a->known_ns - core_task_launch_ns(t, a));
}

static int add_earlier(void *user, const struct model_allocation *a)
{
    struct core_task *t = user;

    if (a->end_ms > 0 && a->attempt == t->attempt)
        count_earlier(t, a);
    return 0;
}

/* The scheduler knows of W, which holds its devices, as it was submitted. */
static int restore_stopping(struct core *core, const struct core_workload *w)
{
    const struct core_task *t = &w->tasks[0];

    return sched_task_restore(core->sched, w->id, 0, SCHED_TASK_STOPPING, t->node->row.id,
                              t->devices, (uint32_t)t->device_count, core->now_ms);
}

int core_suspend_load(struct core *core, struct core_workload *w)
{
    struct core_task *t = &w->tasks[0];
    struct err err = ERR_INIT;
    int64_t host_bytes;
    int r;

    if (core->ports.store->list_allocations(core->ports.store_ctx, w->id, add_earlier, t, &err) < 0)
        log_warn("what workload %llu used before it was suspended is not known: %s",
                 (unsigned long long)w->id, err.text);
    if (t->allocation.device_count > 0)
        return t->state == MODEL_TASK_STOPPING ? restore_stopping(core, w) : 0;
    host_bytes = t->allocation.memory_bytes - w->shape->model->groups[0].request.memory_bytes;
    leave_sched(core, w);
    /* One that is to leave its node stops there; the scheduler does not hear of a cancel. */
    r = enter_host_part(core, w, &host_bytes,
                        t->state == MODEL_TASK_STOPPING && w->state != MODEL_WORKLOAD_STOPPING
                            ? SCHED_TASK_STOPPING
                            : SCHED_TASK_RUNNING);
    if (r == 0 && t->state == MODEL_TASK_SUSPENDED && w->state == MODEL_WORKLOAD_PENDING)
        enter_waking(core, w);
    return r;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A person or its own program wants its devices back. */
static void wake(struct core *core, struct core_workload *w, const char *actor, const char *why)
{
    core_workload_set_state(core, w, MODEL_WORKLOAD_PENDING);
    core_workload_set_message(w, "%s", why);
    enter_waking(core, w);
    core->dirty = true;
    core_record_workload(core, w);
    core_record_event(core, core_journal_txn(core),
                      &(struct model_event){.type = MODEL_EVENT_WAKING,
                                            .workload = w->id,
                                            .task = -1,
                                            .workload_name = w->name,
                                            .team = w->team->row.name,
                                            .actor = actor,
                                            .message = w->message}); /* WHY may have been it */
}

/* From now on it is metered as what it has: devices, or host memory alone. */
static void meter_anew(struct core *core, struct core_workload *w, enum model_release how,
                       int64_t host_bytes)
{
    struct core_task *t = &w->tasks[0];
    struct model_allocation *a = &t->allocation, next = *a;
    const struct model_request *q = &w->shape->model->groups[0].request;
    bool holds = how == MODEL_RELEASE_RESUMED;

    a->end_ms = core->now_ms;
    a->release = how;
    core_record_allocation(core, a);
    count_earlier(t, a);
    next.id = ++core->last_id;
    next.start_ms = next.seen_ms = core->now_ms;
    next.stopping_ms = 0;
    next.busy_ns = next.known_ns = 0;
    next.devices = t->devices;
    next.device_count = holds ? t->device_count : 0;
    next.gpu_milli = holds ? t->gpu_milli : 0;
    next.memory_bytes = qty_add_sat(q->memory_bytes, host_bytes);
    *a = next;
    t->usage_stored_ms = core->now_ms;
    core_record_allocation(core, a);
}

/* Its devices are free, and WHY. False: it cannot stay on its node; to the scheduler it stops. */
static bool fall_asleep(struct core *core, struct core_workload *w, int64_t host_bytes,
                        const char *why)
{
    char text[QTY_TEXT_MAX];
    int64_t charged = host_bytes;

    leave_sched(core, w);
    if (enter_host_part(core, w, &charged, SCHED_TASK_RUNNING) < 0) {
        know_whole(core, w);
        must(restore_stopping(core, w));
        return false;
    }
    core_task_set_state(core, w, 0, MODEL_TASK_SUSPENDED);
    meter_anew(core, w, MODEL_RELEASE_SUSPENDED, charged);
    core_workload_set_state(core, w, MODEL_WORKLOAD_SUSPENDED);
    core_workload_set_message(w, "%s", why);
    core->dirty = true;
    core_record_task(core, w, 0);
    core_record_workload(core, w);
    core_record_workload_event(
        core, w, 0, MODEL_EVENT_SUSPENDED,
        arena_printf(&core->turn, "{\"host_bytes\":%lld}", (long long)host_bytes),
        "its GPUs are free; what it held there, %s, is in host memory",
        qty_format_bytes(host_bytes, text));
    return true;
}

void core_suspend_start(struct core *core, struct core_workload *w)
{
    char intent[MODEL_INTENT_MAX];

    meter_anew(core, w, MODEL_RELEASE_RESUMED, 0);
    core_task_intent(w, 0, intent);
    core_journal_effect(core, EFFECT_RESUME, intent, NULL, 0);
}

bool core_suspend_try(struct core *core, struct core_workload *w)
{
    char intent[MODEL_INTENT_MAX];

    if (core->ports.engine->suspend == NULL || !core_suspend_possible(w->shape) ||
        w->tasks[0].state != MODEL_TASK_RUNNING)
        return false;
    core_task_intent(w, 0, intent);
    core_journal_effect(core, EFFECT_SUSPEND, intent, NULL, 0);
    return true;
}

bool core_suspend_evict(struct core *core, struct core_workload *w, const struct sched_decision *d)
{
    const struct core_workload *winner = map_get(&core->workloads, d->on_behalf_of);
    bool for_devices = winner && winner->shape->gpu_milli > 0 &&
                       (d->cause == SCHED_CAUSE_PREEMPT || d->cause == SCHED_CAUSE_RECLAIM ||
                        d->cause == SCHED_CAUSE_IDLE_ONLY);

    return for_devices && w->shape->model->handling == MODEL_SUSPEND && core_suspend_try(core, w);
}

bool core_suspend_wanted(const struct core_workload *w)
{
    return w->asleep || is_wished(w) ||
           (w->tasks[0].state == MODEL_TASK_STOPPING && w->state != MODEL_WORKLOAD_STOPPING &&
            w->shape->model->handling == MODEL_SUSPEND && core_suspend_possible(w->shape));
}

/* ---- what the engine reports ------------------------------------------------------------------
 */

/* It gives way as others do. */
static void stop_instead(struct core *core, struct core_workload *w)
{
    char intent[MODEL_INTENT_MAX];

    if (w->tasks[0].state != MODEL_TASK_STOPPING) {
        core_task_set_state(core, w, 0, MODEL_TASK_STOPPING);
        core_record_task(core, w, 0);
    }
    core_task_intent(w, 0, intent);
    core_journal_effect(core, EFFECT_STOP, intent, NULL, w->shape->model->grace_ms);
}

void core_suspend_suspended(struct core *core, struct core_workload *w,
                            const struct engine_event *event)
{
    struct core_task *t = &w->tasks[0];
    bool gave_way = t->state == MODEL_TASK_STOPPING;
    bool starting = t->state == MODEL_TASK_STARTING;

    if (w->state == MODEL_WORKLOAD_STOPPING || w->asleep)
        return; /* it is being stopped anyway; or this is known */
    if (core_timeline(core, event->boot_ms) <= t->allocation.start_ms)
        return; /* that was before it had its devices again */
    set_wish(core, w, false);
    if (!fall_asleep(core, w, event->host_bytes,
                     gave_way   ? w->message ? w->message : "gave way"
                     : starting ? "its devices have no room for it"
                                : "its GPUs are free until it calls one"))
        stop_instead(core, w);
    else if (gave_way)
        wake(core, w, NULL, w->message);
}

void core_suspend_resumed(struct core *core, struct core_workload *w,
                          const struct engine_event *event)
{
    struct core_task *t = &w->tasks[0];

    if (w->state == MODEL_WORKLOAD_STOPPING || w->asleep)
        return;
    if (t->state == MODEL_TASK_STARTING) {
        core_task_set_state(core, w, 0, MODEL_TASK_RUNNING);
        w->signal_ms[MODEL_SIGNAL_GPU] = core->now_ms;
        w->idle_step = 0;
        core_workload_clear_message(w);
        core_record_task(core, w, 0);
        core_record_workload(core, w);
        core_record_workload_event(core, w, 0, MODEL_EVENT_RESUMED, NULL, "it has its GPUs again");
    } else if (event->message) {
        set_wish(core, w, false);
        core_workload_set_message(w, "could not be suspended: %s", event->message);
        core_record_workload(core, w);
        core_record_workload_event(core, w, 0, MODEL_EVENT_RESUMED, NULL, "%s", w->message);
        if (t->state == MODEL_TASK_STOPPING)
            stop_instead(core, w);
    }
}

void core_suspend_wake(struct core *core, struct core_workload *w)
{
    if (w->state == MODEL_WORKLOAD_SUSPENDED)
        wake(core, w, NULL, "its program calls a GPU");
}

int core_suspend_verify(struct core *core, const struct core_workload *w, char *what, size_t size)
{
    enum sched_task_state host, own;
    bool has_host = sched_task_state(core->sched, w->id | HOST_PART, 0, &host, NULL) == 0;
    bool has_own = sched_task_state(core->sched, w->id, 0, &own, NULL) == 0;
    bool stopping = w->tasks[0].state == MODEL_TASK_STOPPING;

    if (!stopping && w->asleep && w->tasks[0].state == MODEL_TASK_SUSPENDED && has_host &&
        host == SCHED_TASK_RUNNING && has_own == (w->state == MODEL_WORKLOAD_PENDING) &&
        (!has_own || own == SCHED_TASK_PENDING || own == SCHED_TASK_HELD))
        return 0;
    if (stopping && w->asleep && has_host && host == SCHED_TASK_STOPPING)
        return 0;
    snprintf(what, size, "suspended workload %llu differs in the scheduler",
             (unsigned long long)w->id);
    return -EUCLEAN;
}

/* ---- commands ---------------------------------------------------------------------------------
 */

static int find(struct core *core, struct core_command *c, struct core_workload **ret_w)
{
    *ret_w = map_get(&core->workloads, c->id);
    if (*ret_w == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "id", "see 'allot ps --all'",
                       "no live workload has id %llu", (unsigned long long)c->id);
    return core_access_team(&c->actor, (*ret_w)->team, &c->err);
}

static int check_suspend(struct core *core, const struct core_workload *w, struct err *err)
{
    if (core->ports.engine->suspend == NULL)
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, "id", NULL,
                       "this server's engine cannot suspend workloads");
    if (!core_suspend_possible(w->shape))
        return err_set(err, -EBUSY, ERR_CONFLICT, "id",
                       "submit a notebook, or with --handling suspend, of one task with GPUs",
                       "workload %llu was not started to be suspended", (unsigned long long)w->id);
    if (w->state != MODEL_WORKLOAD_RUNNING || w->tasks[0].state != MODEL_TASK_RUNNING)
        return err_set(err, -EBUSY, ERR_CONFLICT, "id", "see 'allot show'",
                       "workload %llu does not run: it is %s", (unsigned long long)w->id,
                       model_workload_state_name(w->state));
    return 0;
}

int core_command_suspend(struct core *core, struct core_command *c)
{
    struct core_workload *w;
    char intent[MODEL_INTENT_MAX];
    int r = find(core, c, &w);

    if (r == 0 && w->state != MODEL_WORKLOAD_SUSPENDED)
        r = check_suspend(core, w, &c->err);
    if (r < 0)
        return r;
    if (w->state != MODEL_WORKLOAD_SUSPENDED) {
        core_task_intent(w, 0, intent);
        core_workload_clear_message(w);
        core_record_workload(core, w);
        core_record_event(core, core_journal_txn(core),
                          &(struct model_event){.type = MODEL_EVENT_SUSPENDING,
                                                .workload = w->id,
                                                .task = 0,
                                                .workload_name = w->name,
                                                .team = w->team->row.name,
                                                .actor = c->actor.name,
                                                .message = "is to be suspended"});
        set_wish(core, w, true);
        core_journal_effect(core, EFFECT_SUSPEND, intent, NULL, 0);
    }
    c->ret_state = w->state;
    core_journal_wait(core, c);
    return 0;
}

int core_command_resume(struct core *core, struct core_command *c)
{
    struct core_workload *w;
    int r = find(core, c, &w);

    if (r < 0)
        return r;
    if (w->state == MODEL_WORKLOAD_SUSPENDED)
        wake(core, w, c->actor.name, arena_printf(&core->turn, "resumed by %s", c->actor.name));
    else if (!w->asleep && w->state != MODEL_WORKLOAD_RUNNING)
        return err_set(&c->err, -EBUSY, ERR_CONFLICT, "id", "see 'allot show'",
                       "workload %llu is not suspended: it is %s", (unsigned long long)w->id,
                       model_workload_state_name(w->state));
    c->ret_state = w->state;
    core_journal_wait(core, c);
    return 0;
}
