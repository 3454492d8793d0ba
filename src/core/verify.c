/* SPDX-License-Identifier: Apache-2.0 */
/* Recounts what core keeps incrementally, and compares core's tasks with the scheduler's. */
#include "core/internal.h"

#include <errno.h>
#include <stdio.h>

static bool same_state(enum model_task_state mine, enum sched_task_state theirs)
{
    switch (theirs) {
    case SCHED_TASK_PENDING:
        return mine == MODEL_TASK_PENDING;
    case SCHED_TASK_HELD:
        return mine == MODEL_TASK_HELD;
    case SCHED_TASK_RUNNING:
        return mine == MODEL_TASK_STARTING || mine == MODEL_TASK_RUNNING ||
               mine == MODEL_TASK_UNKNOWN;
    case SCHED_TASK_STOPPING:
        return mine == MODEL_TASK_STOPPING;
    case SCHED_TASK_DONE:
        return model_task_state_is_final(mine);
    }
    return false;
}

static int verify_task(struct core *core, const struct core_workload *w, int32_t i, char *what,
                       size_t size)
{
    enum model_task_state mine = w->tasks ? w->tasks[i].state : MODEL_TASK_PENDING;
    enum sched_task_state theirs;
    bool metered = w->tasks && w->tasks[i].allocation.id != 0;

    if (metered != model_task_state_lives(mine)) {
        snprintf(what, size, "task %llu/%d is %s but its allocation is %s",
                 (unsigned long long)w->id, i, model_task_state_name(mine),
                 metered ? "open" : "closed");
        return -EUCLEAN;
    }
    if (w->state == MODEL_WORKLOAD_STOPPING)
        return 0; /* the scheduler has forgotten it but for its devices */
    if (w->asleep || mine == MODEL_TASK_SUSPENDED)
        return core_suspend_verify(core, w, what, size);
    if (sched_task_state(core->sched, w->id, (uint32_t)i, &theirs, NULL) < 0 ||
        !same_state(mine, theirs)) {
        snprintf(what, size, "task %llu/%d is %s here and differs in the scheduler",
                 (unsigned long long)w->id, i, model_task_state_name(mine));
        return -EUCLEAN;
    }
    return 0;
}

static int verify_workload(struct core *core, const struct core_workload *w, char *what,
                           size_t size)
{
    int32_t running = 0, ended = 0;

    for (int32_t i = 0; i < w->shape->model->task_count; i++) {
        enum model_task_state s = w->tasks ? w->tasks[i].state : MODEL_TASK_PENDING;
        int r = verify_task(core, w, i, what, size);

        if (r < 0)
            return r;
        running += model_task_state_holds(s);
        ended += model_task_state_is_final(s);
    }
    if (running != w->running || ended != w->ended) {
        snprintf(what, size, "workload %llu counts %d running and %d ended, it has %d and %d",
                 (unsigned long long)w->id, w->running, w->ended, running, ended);
        return -EUCLEAN;
    }
    return 0;
}

/* What was refused leaves no shape behind. */
static int verify_shapes(struct core *core, char *what, size_t size)
{
    const struct core_shape *s;
    size_t it = 0;

    while ((s = map_next(&core->shape_ids, &it)) != NULL)
        if (!s->stored && s->uses == 0) {
            snprintf(what, size, "shape %llu is kept, though nobody uses it and it is not stored",
                     (unsigned long long)s->id);
            return -EUCLEAN;
        }
    return 0;
}

int core_verify(struct core *core, char *what, size_t size)
{
    struct core_workload *w;
    uint64_t pending = 0, running = 0;
    size_t it = 0;

    while ((w = map_next(&core->workloads, &it)) != NULL) {
        int r = verify_workload(core, w, what, size);

        if (r < 0)
            return r;
        if (w->state == MODEL_WORKLOAD_PENDING)
            pending++;
        else
            running++;
    }
    if (pending != core->pending || running != core->running) {
        snprintf(what, size, "counts %llu pending and %llu running, there are %llu and %llu",
                 (unsigned long long)core->pending, (unsigned long long)core->running,
                 (unsigned long long)pending, (unsigned long long)running);
        return -EUCLEAN;
    }
    return verify_shapes(core, what, size) < 0 ? -EUCLEAN
                                               : sched_verify(core->sched, what, size);
}
