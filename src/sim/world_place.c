/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which devices the tasks hold that run at the start. A scenario names devices only where two
 * tasks share one; the rest get devices of their own, lowest index first.
 */
#include <errno.h>
#include <string.h>

#include "sim/world.h"

struct claims {
    const char **labels; /* per device of a node: NULL = free, "" = owned without a label */
    uint32_t count;
};

static int device_claim(struct claims *c, const struct sched_node *node, const char *label,
                        const char *profile, uint16_t *ret_device)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (*label != '\0' && c->labels[i] != NULL && strcmp(c->labels[i], label) == 0) {
            *ret_device = (uint16_t)i;
            return 0;
        }
    }
    for (uint32_t i = 0; i < c->count; i++) {
        const char *has = node->devices[i].mig_profile;
        bool suits = profile == NULL ? has == NULL : has != NULL && strcmp(has, profile) == 0;
        if (c->labels[i] == NULL && suits) {
            c->labels[i] = label;
            *ret_device = (uint16_t)i;
            return 0;
        }
    }
    return -ENOSPC;
}

static int devices_claim(struct claims *c, const struct sched_node *node, const char *label,
                         const struct sched_request *q, uint16_t *ret_devices)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < q->device_count; i++) {
        int r = device_claim(c, node, label, NULL, &ret_devices[found++]);
        if (r < 0)
            return r;
    }
    for (uint32_t m = 0; m < q->mig_count; m++) {
        for (uint32_t i = 0; i < q->mig[m].count; i++) {
            int r = device_claim(c, node, "", q->mig[m].profile, &ret_devices[found++]);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static int task_place(struct sim_world *w, struct claims *claims, uint32_t index, uint32_t task,
                      struct err *err)
{
    const struct sim_workload *from = &w->scenario->workloads[index];
    const struct sim_task *t = &from->tasks[task];
    struct sim_world_task *book = &w->workloads[index].tasks[task];
    const struct sched_node *node = &w->nodes[t->node].decl;
    uint32_t count = sim_ledger_device_count(book->request);
    uint16_t *devices = arena_new_array(&w->arena, uint16_t, count + 1);
    const char *label = t->device != NULL && count == 1 ? t->device : "";
    int r = devices_claim(&claims[t->node], node, label, book->request, devices);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, "move it, or add devices",
                       "node '%.80s' has no free devices for running task '%.80s/%u'", t->node_name,
                       from->name, task);
    r = sim_ledger_take(&w->ledger, t->node, book->request, devices, count, err);
    if (r < 0)
        return r;
    r = sched_task_restore(w->sched, (uint64_t)index + 1, task, SCHED_TASK_RUNNING, node->id,
                           devices, count, SIM_EPOCH_MS - SIM_RAN_BEFORE_MS);
    if (r < 0)
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "task '%.80s/%u' is not restored: %s",
                       from->name, task, strerror(-r));
    book->phase = SIM_TASK_RUNNING;
    book->node = t->node;
    book->devices = devices;
    book->device_count = count;
    return 0;
}

/* LABELLED picks one of the two passes: shared devices first, so that they get the low ones. */
static int workload_place(struct sim_world *w, struct claims *claims, uint32_t index, bool labelled,
                          struct err *err)
{
    const struct sim_workload *from = &w->scenario->workloads[index];
    for (uint32_t t = 0; t < from->task_count; t++) {
        if (!from->tasks[t].running || (from->tasks[t].device != NULL) != labelled)
            continue;
        int r = task_place(w, claims, index, t, err);
        if (r < 0)
            return r;
    }
    return 0;
}

int sim_world_place(struct sim_world *w, struct err *err)
{
    const struct sim_scenario *s = w->scenario;
    struct claims *claims = arena_new_array(&w->arena, struct claims, s->node_count + 1);
    for (uint32_t n = 0; n < s->node_count; n++) {
        claims[n].count = w->nodes[n].decl.device_count;
        claims[n].labels = arena_new_array(&w->arena, const char *, claims[n].count + 1);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < s->workload_count; i++) {
            if (s->workloads[i].at_ms != SIM_AT_START)
                continue;
            int r = workload_place(w, claims, i, pass == 0, err);
            if (r < 0)
                return r;
        }
    }
    for (uint32_t i = 0; i < s->workload_count; i++) {
        if (s->workloads[i].at_ms == SIM_AT_START)
            sim_world_run_time(w, i, -SIM_RAN_BEFORE_MS);
    }
    return 0;
}
