/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gates: may this much more be used by this team, whatever is free?
 *
 * At the leaf and at every ancestor, used + request <= limit; for non-preemptible work also
 * firm + request <= guarantee; work that may not burst stays within the guarantee of its own
 * team in all, and while it is promised a place the rest of its team does too: else what follows
 * would close the gate that was opened for it. Fair share is never a gate.
 *
 * Only resources that the request asks for are looked at: a team that is over a limit (because
 * the limit was lowered) still starts work that does not add to it.
 */
#ifndef ALLOT_SCHED_GATE_H
#define ALLOT_SCHED_GATE_H

#include "sched/world.h"

struct gate { /* the first one that is closed, from the leaf up */
    struct team *team;
    enum sched_resource resource;
    bool guarantee; /* else the limit */
    bool firm;      /* compared with the non-preemptible work alone */
};

/* Are all gates open in all views of MASK for a workload of group G? RET_GATE may be NULL. */
bool gate_open(const struct group *g, const struct amounts *need, unsigned mask,
               struct gate *ret_gate);

/* Are the gates open in VIEW_THEN for NEED that is counted there already? They close when a limit
 * or guarantee is lowered: what is kept for the work would be kept for nothing. */
bool gate_still_open(const struct group *g, const struct amounts *need);

/* Does the team stay within its fair share, with NEED added (in VIEW_THEN)? */
bool gate_within_share(const struct team *t, const struct amounts *need);
/* Likewise for the guarantee. */
bool gate_within_guarantee(const struct team *t, const struct amounts *need);

#endif
