/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shapes: interned requests of tasks and of whole workloads.
 *
 * Purpose. A hundred thousand pending workloads ask for a handful of different things. Each
 * different thing exists once, is charged once per inventory, and remembers once that it found
 * no place. Equal content means the same pointer, so shapes are compared by pointer.
 *
 * Ownership. shape_get() and job_shape_get() return a counted reference; give it back with the
 * matching put. Strings are interned in the scheduler and live as long as it does.
 *
 * Charges (gpu, cpu, memory) of a pending task follow the inventory: a memory request costs the
 * share of the smallest device that fits it, a MIG request the slices' share. A placed task is
 * charged for its own device; see fit_charge().
 */
#ifndef ALLOT_SCHED_SHAPE_H
#define ALLOT_SCHED_SHAPE_H

#include "sched/world.h"

/* The one copy of TEXT; NULL for NULL. */
const char *string_intern(struct sched *s, const char *text);
/* What is interned in between is forgotten at the end; nothing may refer to it then. So a request
 * that is only checked leaves no strings behind. */
void strings_check_begin(struct sched *s);
void strings_check_end(struct sched *s);

/* 0 with a counted reference, or -EINVAL: malformed or out of bounds. */
int shape_get(struct sched *s, const struct sched_request *r, struct shape **ret_shape);
/* Gives a reference back. */
void shape_put(struct sched *s, struct shape *shape);

/* Likewise for the whole workload. */
int job_shape_get(struct sched *s, const struct sched_workload *w, struct job_shape **ret_job);
/* Gives a reference back. */
void job_shape_put(struct sched *s, struct job_shape *job);

/* After a change of the inventory: makes all charges anew; true if any of them changed. */
bool shape_charges_refresh(struct sched *s);

/* Does the shape ask for devices at all? */
static inline bool shape_has_devices(const struct shape *shape)
{
    return shape->device_count > 0 || shape->mig_count > 0;
}
/* Devices that it takes as a whole, MIG slices not counted. */
static inline uint32_t shape_whole(const struct shape *shape)
{
    return shape->device_milli == WHOLE_MILLI ? shape->device_count : 0;
}

/* Devices and slices of one task. */
static inline uint32_t shape_devices(const struct shape *shape)
{
    uint32_t count = shape->device_count;
    for (uint32_t i = 0; i < shape->mig_count; i++)
        count += shape->mig[i].count;
    return count;
}

/* Compute slices over the device's, in milli, as the profile's name says: "2g.20gb" = 2/7. For
 * profiles that no device of the inventory has; 0 if the name says nothing. */
int32_t mig_profile_milli(const char *profile);

#endif
