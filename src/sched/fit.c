/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/fit.h"

#include <string.h>

#include "sched/shape.h"
#include "sched/states.h"

bool fit_accepts(const struct node *n, const struct shape *shape)
{
    if (shape->only_node != 0 && shape->only_node != n->id)
        return false;
    if (shape->type_count > 0 && fit_type_rank(n->gpu_type, shape) == shape->type_count)
        return false;
    for (uint32_t i = 0; i < shape->label_count; i++) {
        uint32_t k = 0;
        while (k < n->label_count && (n->labels[k].key != shape->labels[i].key ||
                                      n->labels[k].value != shape->labels[i].value))
            k++;
        if (k == n->label_count)
            return false;
    }
    return true;
}

uint32_t fit_type_rank(const char *type, const struct shape *shape)
{
    uint32_t i = 0;
    while (i < shape->type_count && shape->types[i] != type)
        i++;
    return shape->types_equal && i < shape->type_count ? 0 : i;
}

/* What a task takes of one device. */
static struct use device_need(const struct device *d, const struct shape *shape)
{
    if (shape->mig_count > 0 || shape->device_milli == WHOLE_MILLI)
        return (struct use){.milli = WHOLE_MILLI, .memory = d->memory, .tenants = 1};
    if (shape->device_milli > 0) /* BYTES_MAX times a thousand does not overflow */
        return (struct use){.milli = shape->device_milli,
                            .memory = d->memory * shape->device_milli / WHOLE_MILLI,
                            .tenants = 1};
    return (struct use){.memory = shape->device_memory, .tenants = 1};
}

static bool device_is_idle(const struct device *d, unsigned mask)
{
    for (int v = 0; v < VIEWS; v++)
        if ((mask & MASK(v)) && d->use[v].tenants > 0)
            return false;
    return true;
}

/* Room for a fraction or a memory request; RET_SLACK is what remains, in milli. */
static bool device_has_room(const struct device *d, const struct shape *shape, unsigned mask,
                            int64_t *ret_slack)
{
    if (d->mig != NULL || (shape->device_milli == 0 && d->memory == 0))
        return false;
    struct use need = device_need(d, shape);
    int64_t slack = WHOLE_MILLI;
    for (int v = 0; v < VIEWS; v++) {
        if (!(mask & MASK(v)))
            continue;
        int64_t milli = WHOLE_MILLI - d->use[v].milli - need.milli;
        int64_t memory = d->memory - d->use[v].memory - need.memory;
        if (milli < 0 || memory < 0)
            return false;
        int64_t part = d->memory > 0 ? memory * WHOLE_MILLI / d->memory : WHOLE_MILLI;
        int64_t left = shape->device_milli > 0 && milli < part ? milli : part;
        slack = left < slack ? left : slack;
    }
    *ret_slack = slack;
    return true;
}

static bool host_has_room(const struct node *n, const struct shape *shape, unsigned mask)
{
    for (int v = 0; v < VIEWS; v++) {
        if (!(mask & MASK(v)))
            continue;
        if (!(mask & MASK_NO_CPU) && shape->cpu > 0 && n->cpu != SCHED_UNLIMITED &&
            n->cpu - n->cpu_used[v] < shape->cpu)
            return false;
        if (!(mask & MASK_NO_MEMORY) && shape->memory > 0 && n->memory != SCHED_UNLIMITED &&
            n->memory - n->memory_used[v] < shape->memory)
            return false;
    }
    return true;
}

static uint32_t least_idle(const struct node *n, unsigned mask)
{
    uint32_t idle = n->whole_count;
    for (int v = 0; v < VIEWS; v++)
        if ((mask & MASK(v)) && n->idle[v] < idle)
            idle = n->idle[v];
    return idle;
}

/* Free compute of all devices that are not slices, in the fullest view. */
static int64_t least_free(const struct node *n, unsigned mask)
{
    int64_t most_used = 0;
    for (int v = 0; v < VIEWS; v++)
        if ((mask & MASK(v)) && n->milli_used[v] > most_used)
            most_used = n->milli_used[v];
    return (int64_t)n->whole_count * WHOLE_MILLI - most_used;
}

static bool fit_whole(const struct node *n, const struct shape *shape, unsigned mask,
                      uint16_t *devices, struct fit *f)
{
    for (uint32_t d = 0; d < n->device_count && f->count < shape->device_count; d++)
        if (n->devices[d].mig == NULL && device_is_idle(&n->devices[d], mask))
            devices[f->count++] = (uint16_t)d;
    if (f->count < shape->device_count)
        return false;
    f->idle -= f->count;
    return true;
}

static bool fit_slices(const struct node *n, const struct shape *shape, unsigned mask,
                       uint16_t *devices, struct fit *f)
{
    uint32_t left = 0;
    for (uint32_t m = 0; m < shape->mig_count; m++) {
        uint32_t missing = shape->mig[m].count;
        for (uint32_t d = 0; d < n->device_count; d++) {
            if (n->devices[d].mig != shape->mig[m].profile || !device_is_idle(&n->devices[d], mask))
                continue;
            bool taken = false; /* by an earlier line with the same profile */
            for (uint32_t k = 0; k < f->count && !taken; k++)
                taken = devices[k] == d;
            if (taken)
                continue;
            if (missing == 0) {
                left++;
                continue;
            }
            devices[f->count++] = (uint16_t)d;
            missing--;
        }
        if (missing > 0)
            return false;
    }
    f->slack = left;
    return true;
}

/* The device with the least left over that is not chosen yet; shared ones before idle ones. */
static bool fit_share_one(const struct node *n, const struct shape *shape, unsigned mask,
                          uint16_t *devices, struct fit *f)
{
    int64_t best_key = INT64_MAX, best_slack = 0;
    uint32_t best = 0;
    for (uint32_t d = 0; d < n->device_count; d++) {
        int64_t slack;
        if (!device_has_room(&n->devices[d], shape, mask, &slack))
            continue;
        bool chosen = false;
        for (uint32_t k = 0; k < f->count && !chosen; k++)
            chosen = devices[k] == d;
        int64_t key = slack + (device_is_idle(&n->devices[d], mask) ? 2 * WHOLE_MILLI : 0);
        key = mask & MASK_LOOSE ? -slack : key;
        if (!chosen && key < best_key) {
            best_key = key;
            best_slack = slack;
            best = d;
        }
    }
    if (best_key == INT64_MAX)
        return false;
    if (device_is_idle(&n->devices[best], mask))
        f->opened++;
    f->slack += best_slack;
    devices[f->count++] = (uint16_t)best;
    return true;
}

static bool fit_shared(const struct node *n, const struct shape *shape, unsigned mask,
                       uint16_t *devices, struct fit *f)
{
    while (f->count < shape->device_count)
        if (!fit_share_one(n, shape, mask, devices, f))
            return false;
    f->idle -= f->opened < f->idle ? f->opened : f->idle;
    return true;
}

/* On those that it has to have, if they are still what they were. */
static bool fit_only(const struct node *n, const struct shape *shape, unsigned mask,
                     uint16_t *devices, struct fit *ret_fit)
{
    uint32_t count = shape_devices(shape), idle = least_idle(n, mask);
    if (!fit_devices(n, shape, mask, shape->only_devices, count))
        return false;
    for (uint32_t k = 0; k < count; k++)
        if ((n->devices[shape->only_devices[k]].mig != NULL) != (shape->mig_count > 0))
            return false;
    memcpy(devices, shape->only_devices, count * sizeof(*devices));
    *ret_fit = (struct fit){.count = count, .idle = idle > count ? idle - count : 0};
    return true;
}

bool fit_node(const struct node *n, const struct shape *shape, unsigned mask, uint16_t *devices,
              struct fit *ret_fit)
{
    if (shape->only_devices != NULL)
        return fit_only(n, shape, mask, devices, ret_fit);
    if (shape->device_count > n->whole_count || !host_has_room(n, shape, mask))
        return false;
    struct fit f = {.idle = least_idle(n, mask)};
    uint32_t whole = shape_whole(shape);
    if (whole > f.idle || least_free(n, mask) < (int64_t)shape->device_count * shape->device_milli)
        return false;
    bool fits = true;
    if (whole > 0)
        fits = fit_whole(n, shape, mask, devices, &f);
    else if (shape->mig_count > 0)
        fits = fit_slices(n, shape, mask, devices, &f);
    else if (shape->device_count > 0)
        fits = fit_shared(n, shape, mask, devices, &f);
    if (fits)
        *ret_fit = f;
    return fits;
}

/* How often NEED goes into what is free of HAVE in the view where most is used. */
static int64_t times(int64_t have, int64_t used, int64_t need, int64_t most)
{
    if (need == 0 || have == SCHED_UNLIMITED)
        return most;
    int64_t count = have > used ? (have - used) / need : 0;
    return count < most ? count : most;
}

static int64_t host_most(const struct node *n, const struct shape *shape, unsigned mask)
{
    int64_t most = UINT32_MAX;
    for (int v = 0; v < VIEWS; v++) {
        if (!(mask & MASK(v)))
            continue;
        if (!(mask & MASK_NO_CPU))
            most = times(n->cpu, n->cpu_used[v], shape->cpu, most);
        if (!(mask & MASK_NO_MEMORY))
            most = times(n->memory, n->memory_used[v], shape->memory, most);
    }
    return most;
}

/* Of one device, which is shared; a memory request takes no compute. */
static int64_t share_most(const struct device *d, const struct shape *shape, unsigned mask)
{
    int64_t most = UINT32_MAX;
    if (d->mig != NULL)
        return 0;
    struct use need = device_need(d, shape);
    for (int v = 0; v < VIEWS; v++) {
        if (!(mask & MASK(v)))
            continue;
        most = times(WHOLE_MILLI, d->use[v].milli, need.milli, most);
        most = times(d->memory, d->use[v].memory, need.memory, most);
        most = d->use[v].milli >= WHOLE_MILLI ? 0 : most;
    }
    return most;
}

uint32_t fit_most(const struct node *n, const struct shape *shape, unsigned mask)
{
    int64_t most = host_most(n, shape, mask), devices = 0;
    if (shape->only_devices != NULL)
        return most > 0 && fit_devices(n, shape, mask, shape->only_devices, shape_devices(shape));
    if (shape->device_count == 0 || most == 0)
        return (uint32_t)most; /* slices are not counted */
    if (shape_whole(shape) > 0)
        devices = least_idle(n, mask);
    for (uint32_t d = 0; shape_whole(shape) == 0 && d < n->device_count; d++)
        devices += share_most(&n->devices[d], shape, mask);
    devices /= shape->device_count;
    return (uint32_t)(devices < most ? devices : most);
}

bool fit_devices(const struct node *n, const struct shape *shape, unsigned mask,
                 const uint16_t *devices, uint32_t count)
{
    if (!host_has_room(n, shape, mask))
        return false;
    bool exclusive = shape->mig_count > 0 || shape->device_milli == WHOLE_MILLI;
    for (uint32_t k = 0; k < count; k++) {
        int64_t slack;
        if (devices[k] >= n->device_count)
            return false;
        const struct device *d = &n->devices[devices[k]];
        if (exclusive ? !device_is_idle(d, mask) : !device_has_room(d, shape, mask, &slack))
            return false;
    }
    return true;
}

void fit_take(struct node *n, const struct shape *shape, const uint16_t *devices, uint32_t count,
              enum view view, int sign)
{
    states_note(n);
    n->cpu_used[view] += sign * shape->cpu;
    n->memory_used[view] += sign * shape->memory;
    for (uint32_t k = 0; k < count; k++) {
        struct device *d = &n->devices[devices[k]];
        struct use need = device_need(d, shape);
        struct use *u = &d->use[view];
        bool was_idle = u->tenants == 0;
        u->milli += sign * need.milli;
        u->memory += sign * need.memory;
        u->tenants += sign;
        if (d->mig != NULL)
            continue;
        n->milli_used[view] += sign * need.milli;
        if (n->states != NULL)
            n->states->milli_used[view] += sign * need.milli;
        if (was_idle == (u->tenants == 0))
            continue;
        if (was_idle)
            n->idle[view]--;
        else
            n->idle[view]++;
    }
}

/* Ceiling of the share of MEMORY that BYTES are, in milli; a device of unknown size is charged
 * as a whole. */
static int32_t memory_charge(int64_t bytes, int64_t memory)
{
    if (memory <= 0 || bytes >= memory)
        return WHOLE_MILLI;
    /* ceil(bytes * 1000 / memory), with both below 2^53 */
    __int128 product = (__int128)bytes * WHOLE_MILLI + memory - 1;
    return (int32_t)(product / memory);
}

int32_t fit_charge(const struct node *n, const struct shape *shape, const uint16_t *devices,
                   uint32_t count)
{
    int32_t charge = 0;
    for (uint32_t k = 0; k < count; k++) {
        const struct device *d = &n->devices[devices[k]];
        if (shape->mig_count > 0)
            charge += d->mig_milli;
        else if (shape->device_milli > 0)
            charge += shape->device_milli;
        else
            charge += memory_charge(shape->device_memory, d->memory);
    }
    return charge;
}

/* Memory of the smallest device of the inventory that holds the request; 0 if none does. */
static int64_t smallest_device(const struct sched *s, const struct shape *shape)
{
    int64_t best = 0;
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        if (!fit_accepts(n, shape))
            continue;
        for (uint32_t d = 0; d < n->device_count; d++) {
            int64_t memory = n->devices[d].memory;
            if (n->devices[d].mig == NULL && memory >= shape->device_memory &&
                (best == 0 || memory < best))
                best = memory;
        }
    }
    return best;
}

static int32_t slice_charge(const struct sched *s, const char *profile)
{
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        for (uint32_t d = 0; d < n->device_count; d++)
            if (n->devices[d].mig == profile)
                return n->devices[d].mig_milli;
    }
    return mig_profile_milli(profile);
}

int32_t fit_pending_charge(const struct sched *s, const struct shape *shape)
{
    int32_t charge = 0;
    for (uint32_t m = 0; m < shape->mig_count; m++)
        charge += (int32_t)shape->mig[m].count * slice_charge(s, shape->mig[m].profile);
    if (shape->device_count == 0)
        return charge;
    if (shape->device_milli > 0)
        return (int32_t)shape->device_count * shape->device_milli;
    int64_t memory = smallest_device(s, shape);
    return (int32_t)shape->device_count * memory_charge(shape->device_memory, memory);
}
