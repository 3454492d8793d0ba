/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/ledger.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct sim_ledger_node *node_at(struct sim_ledger *l, uint32_t index)
{
    if (index >= l->node_count) {
        size_t cap = l->node_count;
        l->nodes = vec_grow(l->nodes, &cap, (size_t)index + 1, sizeof(*l->nodes));
        memset(&l->nodes[l->node_count], 0, (index + 1 - l->node_count) * sizeof(*l->nodes));
        l->node_count = index + 1;
    }
    return &l->nodes[index];
}

void sim_ledger_node_set(struct sim_ledger *l, uint32_t index, const struct sched_node *node)
{
    struct sim_ledger_node *n = node_at(l, index);
    if (node->device_count > n->device_count) {
        size_t cap = n->device_count;
        n->devices = vec_grow(n->devices, &cap, node->device_count, sizeof(*n->devices));
        memset(&n->devices[n->device_count], 0,
               (node->device_count - n->device_count) * sizeof(*n->devices));
    }
    n->device_count = node->device_count;
    for (uint32_t i = 0; i < node->device_count; i++) {
        n->devices[i].mig_profile = node->devices[i].mig_profile;
        n->devices[i].memory_bytes = node->devices[i].memory_bytes;
    }
    n->cpu_milli = node->cpu_milli;
    n->memory_bytes = node->memory_bytes;
    n->open = node->up && node->schedulable;
}

uint32_t sim_ledger_device_count(const struct sched_request *q)
{
    uint32_t count = q->device_count;
    for (uint32_t i = 0; i < q->mig_count; i++)
        count += q->mig[i].count;
    return count;
}

/* Part of a device's memory that a task of this request takes; exact for bytes. */
static int64_t memory_part(const struct sim_ledger_device *d, const struct sched_request *q)
{
    if (q->device_milli == 0)
        return q->device_memory_bytes;
    /* split, so that the product stays far from overflow */
    int64_t milli = q->device_milli;
    return d->memory_bytes / 1000 * milli + d->memory_bytes % 1000 * milli / 1000;
}

static bool device_fits(const struct sim_ledger_device *d, const struct sched_request *q)
{
    if (d->mig_profile != NULL || d->whole > 0)
        return false;
    if (q->device_milli == 1000)
        return d->users == 0;
    if (d->used_milli + q->device_milli > 1000)
        return false;
    if (q->device_milli == 0 && d->memory_bytes == 0)
        return false;
    return d->memory_bytes == 0 || d->used_memory + memory_part(d, q) <= d->memory_bytes;
}

static bool slice_fits(const struct sim_ledger_device *d, const char *profile)
{
    return d->mig_profile != NULL && d->users == 0 && strcmp(d->mig_profile, profile) == 0;
}

static bool host_fits(const struct sim_ledger_node *n, const struct sched_request *q)
{
    return (n->cpu_milli == SCHED_UNLIMITED || q->cpu_milli <= n->cpu_milli - n->used_cpu) &&
           (n->memory_bytes == SCHED_UNLIMITED ||
            q->memory_bytes <= n->memory_bytes - n->used_memory);
}

static uint32_t slices_listed(const struct sim_ledger_node *n, const char *profile,
                              const uint16_t *devices, uint32_t count)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++)
        found += slice_fits(&n->devices[devices[i]], profile);
    return found;
}

static int devices_check(const struct sim_ledger_node *n, const struct sched_request *q,
                         const uint16_t *devices, uint32_t count, struct err *err)
{
    if (count != sim_ledger_device_count(q))
        return err_set(err, -EINVAL, ERR_INTERNAL, NULL, NULL, "given %u devices instead of %u",
                       count, sim_ledger_device_count(q));
    for (uint32_t i = 0; i < count; i++) {
        if (devices[i] >= n->device_count)
            return err_set(err, -EINVAL, ERR_INTERNAL, NULL, NULL, "there is no device %u",
                           devices[i]);
        for (uint32_t j = 0; j < i; j++) {
            if (devices[j] == devices[i])
                return err_set(err, -EINVAL, ERR_INTERNAL, NULL, NULL, "given device %u twice",
                               devices[i]);
        }
        if (q->mig_count == 0 && !device_fits(&n->devices[devices[i]], q))
            return err_set(err, -ENOSPC, ERR_INTERNAL, NULL, NULL, "device %u is over-allocated",
                           devices[i]);
    }
    for (uint32_t i = 0; i < q->mig_count; i++) {
        if (slices_listed(n, q->mig[i].profile, devices, count) != q->mig[i].count)
            return err_set(err, -ENOSPC, ERR_INTERNAL, NULL, NULL, "not given %u free slices of %s",
                           q->mig[i].count, q->mig[i].profile);
    }
    return 0;
}

static void account(struct sim_ledger_node *n, const struct sched_request *q,
                    const uint16_t *devices, uint32_t count, int sign)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sim_ledger_device *d = &n->devices[devices[i]];
        d->users += (uint32_t)sign;
        if (q->mig_count > 0)
            continue;
        d->used_milli += sign * q->device_milli;
        d->used_memory += sign * memory_part(d, q);
        d->whole += (uint32_t)(q->device_milli == 1000 ? sign : 0);
    }
    n->used_cpu += sign * q->cpu_milli;
    n->used_memory += sign * q->memory_bytes;
}

int sim_ledger_take(struct sim_ledger *l, uint32_t index, const struct sched_request *q,
                    const uint16_t *devices, uint32_t device_count, struct err *err)
{
    assert(index < l->node_count);
    struct sim_ledger_node *n = &l->nodes[index];
    if (!n->open)
        return err_set(err, -ENOSPC, ERR_INTERNAL, NULL, NULL, "the node is down or drained");
    int r = devices_check(n, q, devices, device_count, err);
    if (r < 0)
        return r;
    if (!host_fits(n, q))
        return err_set(err, -ENOSPC, ERR_INTERNAL, NULL, NULL,
                       "cpu or memory of the node is over-allocated");
    account(n, q, devices, device_count, 1);
    return 0;
}

void sim_ledger_release(struct sim_ledger *l, uint32_t index, const struct sched_request *q,
                        const uint16_t *devices, uint32_t device_count)
{
    assert(index < l->node_count);
    account(&l->nodes[index], q, devices, device_count, -1);
}

static bool slices_fit(const struct sim_ledger_node *n, const struct sched_request *q,
                       uint16_t *ret_devices)
{
    uint32_t found = 0;
    for (uint32_t m = 0; m < q->mig_count; m++) {
        uint32_t missing = q->mig[m].count;
        for (uint32_t i = 0; i < n->device_count && missing > 0; i++) {
            if (slice_fits(&n->devices[i], q->mig[m].profile)) {
                ret_devices[found++] = (uint16_t)i;
                missing--;
            }
        }
        if (missing > 0)
            return false;
    }
    return true;
}

bool sim_ledger_fit(const struct sim_ledger *l, uint32_t index, const struct sched_request *q,
                    uint16_t *ret_devices)
{
    assert(index < l->node_count);
    const struct sim_ledger_node *n = &l->nodes[index];
    if (!n->open || !host_fits(n, q))
        return false;
    if (q->mig_count > 0)
        return slices_fit(n, q, ret_devices);
    uint32_t found = 0;
    for (uint32_t i = 0; i < n->device_count && found < q->device_count; i++) {
        if (device_fits(&n->devices[i], q))
            ret_devices[found++] = (uint16_t)i;
    }
    return found == q->device_count;
}

void sim_ledger_model_node(struct sim_ledger *l, uint32_t index, const struct model_node *m)
{
    struct sched_device devices[MODEL_DEVICES_MAX];
    bool known = index < l->node_count && l->nodes[index].device_count == (uint32_t)m->device_count;

    for (int32_t i = 0; i < m->device_count; i++) {
        const char *profile = m->devices[i].mig_profile;

        devices[i] = (struct sched_device){
            .mig_profile =
                known ? l->nodes[index].devices[i].mig_profile : arena_strdup(&l->strings, profile),
            .memory_bytes = m->devices[i].memory_bytes,
            .mig_milli = m->devices[i].mig_milli,
        };
    }
    sim_ledger_node_set(l, index,
                        &(struct sched_node){
                            .devices = devices,
                            .device_count = (uint32_t)m->device_count,
                            .cpu_milli = m->cpu_milli,
                            .memory_bytes = m->memory_bytes,
                            .up = m->state == MODEL_NODE_UP,
                            .schedulable = !m->drained,
                        });
}

static bool same_request(const struct sched_request *q, const struct model_request *m)
{
    if (q->device_count != (uint32_t)m->device_count || q->device_milli != m->device_milli ||
        q->device_memory_bytes != m->device_memory_bytes || q->cpu_milli != m->cpu_milli ||
        q->memory_bytes != m->memory_bytes || q->mig_count != (uint32_t)m->mig_count)
        return false;
    for (uint32_t i = 0; i < q->mig_count; i++)
        if (q->mig[i].count != (uint32_t)m->mig[i].count ||
            strcmp(q->mig[i].profile, m->mig[i].profile) != 0)
            return false;
    return true;
}

const struct sched_request *sim_ledger_model_request(struct sim_ledger *l,
                                                     const struct model_request *m)
{
    struct sched_request *q;
    struct sched_mig_request *mig;

    for (size_t i = 0; i < l->requests.len; i++)
        if (same_request(l->requests.items[i], m))
            return l->requests.items[i];
    q = arena_new(&l->strings, struct sched_request);
    mig = arena_new_array(&l->strings, struct sched_mig_request, (size_t)m->mig_count);
    for (int32_t i = 0; i < m->mig_count; i++)
        mig[i] = (struct sched_mig_request){arena_strdup(&l->strings, m->mig[i].profile),
                                            (uint32_t)m->mig[i].count};
    *q = (struct sched_request){
        .device_count = (uint32_t)m->device_count,
        .device_milli = m->device_milli,
        .device_memory_bytes = m->device_memory_bytes,
        .mig = mig,
        .mig_count = (uint32_t)m->mig_count,
        .cpu_milli = m->cpu_milli,
        .memory_bytes = m->memory_bytes,
    };
    vec_push(&l->requests, q);
    return q;
}

void sim_ledger_done(struct sim_ledger *l)
{
    for (uint32_t i = 0; i < l->node_count; i++)
        free(l->nodes[i].devices);
    free(l->nodes);
    vec_done(&l->requests);
    arena_done(&l->strings);
    *l = (struct sim_ledger){0};
}
