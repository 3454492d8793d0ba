/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Placement: where would the tasks of a gang go?
 *
 * place_gang() answers for all of them together or not at all, in the views of a mask, and
 * leaves those views as they were; the spots are in s->placing until the next call. A gang goes
 * where what is left of it fits, else to the emptiest node, and to no further node while the last
 * still has room. Among such nodes, and for everything else, that one is taken which leaves the
 * most for others: score.h, down to the device (but for a gang whose tasks want parts of several
 * devices and find no room so: then the emptiest). Work without devices prefers nodes that have
 * none; services spread. Preferred types come first, nodes where launches fail come last, and ties
 * go by node order.
 *
 * A gang that must start as a whole is placed hardest task first; where that fails, and its tasks
 * are not alike, other ways are tried as long as gang and cluster are small. So whether there is a
 * place does not depend on which place is best, which changes with the observed mix of requests.
 * Of an elastic workload the tasks come in start order, and none starts before one of higher rank.
 *
 * A node of a type that the team has no room left for is passed over (types.h).
 *
 * Topology: a required level holds the gang in one domain of that level (groups likewise inside
 * it); a preferred level is tried first and then let go. A workload that runs in part stays in
 * the domain it is in.
 */
#ifndef ALLOT_SCHED_PLACE_H
#define ALLOT_SCHED_PLACE_H

#include "sched/gang.h"
#include "sched/world.h"

struct spot {
    uint32_t task;
    struct shape *shape;
    struct node *node;
    uint32_t first, count; /* in placing.devices */
};

struct placing {
    VEC(struct spot) spots;
    VEC(uint16_t) devices;
    VEC(uint32_t) quota;
    struct type_rooms rooms; /* of the gang's team, less what the spots take; see types.h */
    uint16_t trial[DEVICES_MAX];
};

/* NULL is fine. */
void placing_free(struct placing *p);

/* W NULL: a fresh workload of that shape. True with the spots of GANG->total tasks. */
bool place_gang(struct sched *s, const struct job_shape *job, const struct workload *w,
                const struct gang *gang, unsigned mask);
/* What quota counts for the spots of the last place_gang(). It may differ from what the gang was
 * thought to need: other tasks of equal rank, or other devices, may have been chosen. */
struct amounts place_charge(const struct sched *s);
/* Are the gates open in MASK for what place_gang() found? Else it looks for what is charged least,
 * which may be admitted. */
bool place_admitted(struct sched *s, const struct workload *w, const struct gang *gang,
                    unsigned mask);
/* place_gang(), and place_admitted(). */
bool place_within_gates(struct sched *s, const struct workload *w, const struct gang *gang,
                        unsigned mask);
/* Is there room in MASK, per GPU type, for the spots that are loaded, for work of group G? */
bool place_types_open(struct sched *s, const struct group *g, unsigned mask);
/* Counts the spots of the last place_gang() as used, per GPU type, in one view. */
void place_types_use(struct sched *s, const struct group *g, enum view view);
/* Takes the spots of the last place_gang() in one view (SIGN 1) or gives them back (-1). */
void place_take(struct sched *s, enum view view, int sign);
static inline const uint16_t *spot_devices(const struct placing *p, const struct spot *spot)
{
    return p->devices.items + spot->first;
}

#endif
