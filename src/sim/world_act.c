/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions and reports in the world's books. Each function first changes the books and then
 * tells the scheduler, so that the next comparison sees both after the change.
 */
#include <errno.h>
#include <string.h>

#include "sim/world.h"

static const char *name_of(const struct sim_world *w, uint32_t workload)
{
    return w->scenario->workloads[workload].name;
}

/* Whether the minimum, of every group too, is met by tasks of at least phase FROM. */
static bool minimum_met(const struct sim_world *w, uint32_t workload, bool count_stopping)
{
    const struct sim_workload *from = &w->scenario->workloads[workload];
    uint32_t running = 0;
    for (uint32_t t = 0; t < from->task_count; t++) {
        enum sim_task_phase p = w->workloads[workload].tasks[t].phase;
        running += p == SIM_TASK_RUNNING || (count_stopping && p == SIM_TASK_STOPPING);
    }
    if (running == 0 || running < from->min_tasks)
        return false;
    for (uint32_t g = 0; g < from->group_count; g++) {
        uint32_t members = 0;
        for (uint32_t t = 0; t < from->task_count; t++) {
            enum sim_task_phase p = w->workloads[workload].tasks[t].phase;
            bool on = p == SIM_TASK_RUNNING || (count_stopping && p == SIM_TASK_STOPPING);
            members += on && from->tasks[t].group == g;
        }
        if (members < from->groups[g].min_tasks)
            return false;
    }
    return true;
}

void sim_world_run_time(struct sim_world *w, uint32_t workload, int64_t since_ms)
{
    const struct sim_workload *from = &w->scenario->workloads[workload];
    struct sim_world_workload *book = &w->workloads[workload];
    if (book->life != SIM_LIFE_KNOWN)
        return;
    bool complete = minimum_met(w, workload, false);
    if (complete == book->complete)
        return;
    book->complete = complete;
    book->run++;
    if (!complete)
        return;
    int64_t length = from->run_ms;
    if (from->limit_ms > 0 && (length == SIM_UNSET || from->limit_ms < length))
        length = from->limit_ms;
    if (length == SIM_UNSET)
        return;
    int64_t at = since_ms + length;
    sim_world_timer(w, at < w->now_ms ? w->now_ms : at, SIM_TIMER_END, workload, 0, book->run);
}

uint32_t sim_world_running_tasks(const struct sim_world *w, uint32_t workload)
{
    const struct sim_world_workload *book = &w->workloads[workload];
    uint32_t running = 0;
    for (uint32_t t = 0; book->tasks != NULL && t < w->scenario->workloads[workload].task_count;
         t++)
        running +=
            book->tasks[t].phase == SIM_TASK_RUNNING || book->tasks[t].phase == SIM_TASK_STOPPING;
    return running;
}

enum sim_state sim_world_state(const struct sim_world *w, uint32_t workload)
{
    const struct sim_world_workload *book = &w->workloads[workload];
    if (book->life == SIM_LIFE_REFUSED)
        return SIM_STATE_REFUSED;
    if (book->life == SIM_LIFE_FUTURE)
        return SIM_STATE_ANY;
    uint32_t running = sim_world_running_tasks(w, workload);
    if (book->life == SIM_LIFE_OVER && running == 0)
        return SIM_STATE_FINISHED;
    if (running == 0)
        return SIM_STATE_PENDING;
    return minimum_met(w, workload, true) ? SIM_STATE_RUNNING : SIM_STATE_PARTIAL;
}

enum sim_state sim_world_task_state(const struct sim_world *w, uint32_t workload, uint32_t task)
{
    const struct sim_world_workload *book = &w->workloads[workload];
    if (book->life == SIM_LIFE_REFUSED)
        return SIM_STATE_REFUSED;
    if (book->life == SIM_LIFE_FUTURE)
        return SIM_STATE_ANY;
    switch (book->tasks[task].phase) {
    case SIM_TASK_PENDING:
    case SIM_TASK_HELD:
        return book->life == SIM_LIFE_OVER ? SIM_STATE_FINISHED : SIM_STATE_PENDING;
    case SIM_TASK_RUNNING:
    case SIM_TASK_STOPPING:
        return SIM_STATE_RUNNING;
    case SIM_TASK_ENDED:
        return SIM_STATE_FINISHED;
    }
    return SIM_STATE_ANY;
}

const char *sim_state_name(enum sim_state state)
{
    switch (state) {
    case SIM_STATE_PENDING:
        return "pending";
    case SIM_STATE_RUNNING:
        return "running";
    case SIM_STATE_FINISHED:
        return "finished";
    case SIM_STATE_REFUSED:
        return "refused";
    case SIM_STATE_PARTIAL:
        return "running below its minimum";
    case SIM_STATE_ANY:
        return "not submitted yet";
    }
    return "?";
}

/* ---- decisions --------------------------------------------------------------------------- */

static int wrong(struct sim_world *w, const struct sched_decision *d, const char *what,
                 struct err *err)
{
    return err_set(err, -EUCLEAN, ERR_INTERNAL, NULL, NULL,
                   "the scheduler decided %s for task '%.80s/%u', which is not possible now", what,
                   name_of(w, (uint32_t)(d->workload - 1)), d->task);
}

static void book_place(struct sim_world *w, struct sim_world_task *book,
                       const struct sched_decision *d)
{
    book->node = (uint32_t)(d->node - 1);
    book->device_count = d->device_count;
    book->devices = arena_memdup(&w->arena, d->devices, d->device_count * sizeof(uint16_t));
}

static int act_start(struct sim_world *w, const struct sched_decision *d, struct err *err)
{
    uint32_t workload = (uint32_t)(d->workload - 1);
    struct sim_world_task *book = &w->workloads[workload].tasks[d->task];
    if (book->phase != SIM_TASK_PENDING && book->phase != SIM_TASK_HELD)
        return wrong(w, d, "a start", err);
    book_place(w, book, d);
    struct err why = ERR_INIT;
    int r = sim_ledger_take(&w->ledger, book->node, book->request, book->devices,
                            book->device_count, &why);
    if (r < 0)
        return err_set(err, -EUCLEAN, ERR_INTERNAL, NULL, NULL,
                       "start of '%.80s/%u' on node '%.80s': %s", name_of(w, workload), d->task,
                       w->scenario->nodes[book->node].name, why.text);
    book->phase = SIM_TASK_RUNNING;
    book->generation++;
    if (w->scenario->workloads[workload].launch_refused)
        sim_world_timer(w, w->now_ms, SIM_TIMER_REFUSED, workload, d->task, book->generation);
    return 0;
}

static void evicted_note(struct sim_world *w, uint32_t workload)
{
    for (size_t i = 0; i < w->evicted.len; i++) {
        if (w->evicted.items[i] == workload)
            return;
    }
    vec_push(&w->evicted, workload);
}

static int act_evict(struct sim_world *w, const struct sched_decision *d, struct err *err)
{
    uint32_t workload = (uint32_t)(d->workload - 1);
    const struct sim_workload *from = &w->scenario->workloads[workload];
    struct sim_world_task *book = &w->workloads[workload].tasks[d->task];
    if (book->phase != SIM_TASK_RUNNING)
        return wrong(w, d, "an eviction", err);
    book->phase = SIM_TASK_STOPPING;
    evicted_note(w, workload);
    sim_world_timer(w, w->now_ms + from->stop_ms, SIM_TIMER_STOPPED, workload, d->task,
                    book->generation);
    return 0;
}

static int act_hold(struct sim_world *w, const struct sched_decision *d, struct err *err)
{
    uint32_t workload = (uint32_t)(d->workload - 1);
    struct sim_world_task *book = &w->workloads[workload].tasks[d->task];
    if (book->phase != SIM_TASK_PENDING)
        return wrong(w, d, "a hold", err);
    book_place(w, book, d);
    book->phase = SIM_TASK_HELD;
    return 0;
}

static int act_unhold(struct sim_world *w, const struct sched_decision *d, struct err *err)
{
    struct sim_world_task *book = &w->workloads[d->workload - 1].tasks[d->task];
    if (book->phase != SIM_TASK_HELD)
        return wrong(w, d, "the end of a hold", err);
    book->phase = SIM_TASK_PENDING;
    return 0;
}

static bool decision_valid(const struct sim_world *w, const struct sched_decision *d)
{
    const struct sim_scenario *s = w->scenario;
    if (d->workload == 0 || d->workload > s->workload_count ||
        w->workloads[d->workload - 1].life != SIM_LIFE_KNOWN ||
        d->task >= s->workloads[d->workload - 1].task_count)
        return false;
    return (d->kind != SCHED_START && d->kind != SCHED_HOLD) ||
           (d->node > 0 && d->node <= s->node_count);
}

int sim_world_act(struct sim_world *w, const struct sched_decision *d, struct err *err)
{
    if (!decision_valid(w, d))
        return err_set(err, -EUCLEAN, ERR_INTERNAL, NULL, NULL,
                       "the scheduler decided something about an unknown task or node");
    switch (d->kind) {
    case SCHED_START:
        return act_start(w, d, err);
    case SCHED_HOLD:
        return act_hold(w, d, err);
    case SCHED_UNHOLD:
        return act_unhold(w, d, err);
    case SCHED_EVICT:
        return act_evict(w, d, err);
    }
    return err_set(err, -EUCLEAN, ERR_INTERNAL, NULL, NULL, "the scheduler made no known decision");
}

/* ---- reports ----------------------------------------------------------------------------- */

static int reported(struct sim_world *w, int r, uint32_t workload, const char *what,
                    struct err *err)
{
    if (r < 0)
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "%s of '%.80s' is not accepted: %s", what,
                       name_of(w, workload), strerror(-r));
    return 0;
}

int sim_world_task_off(struct sim_world *w, uint32_t workload, uint32_t task, enum sched_stop how,
                       struct err *err)
{
    static const char *const words[] = {
        [SCHED_STOP_DONE] = "ended",
        [SCHED_STOP_REQUEUE] = "off its devices, pending again",
        [SCHED_STOP_REFUSED] = "refused by the engine",
    };
    struct sim_world_task *book = &w->workloads[workload].tasks[task];
    sim_ledger_release(&w->ledger, book->node, book->request, book->devices, book->device_count);
    book->phase = how == SCHED_STOP_DONE ? SIM_TASK_ENDED : SIM_TASK_PENDING;
    sim_trace(w, "%s/%u is %s", name_of(w, workload), task, words[how]);
    int r =
        sched_task_stopped(w->sched, (uint64_t)workload + 1, task, how, SIM_EPOCH_MS + w->now_ms);
    return reported(w, r, workload, "the stop", err);
}

int sim_world_workload_end(struct sim_world *w, uint32_t workload, struct err *err)
{
    struct sim_world_workload *book = &w->workloads[workload];
    for (uint32_t t = 0; t < w->scenario->workloads[workload].task_count; t++) {
        enum sim_task_phase p = book->tasks[t].phase;
        if (p != SIM_TASK_RUNNING && p != SIM_TASK_STOPPING)
            continue;
        int r = sim_world_task_off(w, workload, t, SCHED_STOP_DONE, err);
        if (r < 0)
            return r;
    }
    book->life = SIM_LIFE_OVER;
    sim_trace(w, "%s is finished", name_of(w, workload));
    return reported(w, sched_workload_remove(w->sched, (uint64_t)workload + 1), workload, "the end",
                    err);
}

int sim_world_workload_cancel(struct sim_world *w, uint32_t workload, struct err *err)
{
    const struct sim_workload *from = &w->scenario->workloads[workload];
    struct sim_world_workload *book = &w->workloads[workload];
    if (book->life == SIM_LIFE_FUTURE)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL,
                       "'%.80s' is cancelled before it is submitted", from->name);
    if (book->life != SIM_LIFE_KNOWN)
        return 0;
    for (uint32_t t = 0; t < from->task_count; t++) {
        struct sim_world_task *task = &book->tasks[t];
        if (task->phase != SIM_TASK_RUNNING)
            continue;
        task->phase = SIM_TASK_STOPPING;
        sim_world_timer(w, w->now_ms + from->stop_ms, SIM_TIMER_STOPPED, workload, t,
                        task->generation);
        int r = sched_task_stopping(w->sched, (uint64_t)workload + 1, t, SIM_EPOCH_MS + w->now_ms);
        r = reported(w, r, workload, "the cancel", err);
        if (r < 0)
            return r;
    }
    book->life = SIM_LIFE_OVER;
    sim_trace(w, "%s is cancelled", from->name);
    return reported(w, sched_workload_remove(w->sched, (uint64_t)workload + 1), workload,
                    "the cancel", err);
}
