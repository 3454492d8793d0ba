/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair share: what each team is entitled to, per resource, top-down.
 *
 * Every child first gets min(guarantee, limit, demand). What remains of the parent's part goes
 * to children with unmet demand: sibling priorities from high to low, and among equals by weight
 * in rounds. In a round a child whose part covers its need gets its need exactly and leaves; when
 * no part covers a need, the children get whole grains (1 GPU, 1 core, 1 GiB) and the grains left
 * over go by largest remainder, then age. The rounds are progressive filling (max-min fairness,
 * weighted; Bertsekas and Gallager, Data Networks, 6.5.2), the remainders Hamilton's method.
 *
 * Weights count as past use biases them (past.h). An unlimited guarantee means the whole capacity.
 * A team's demand counts up to its limit, and so does what it adds to its parent's. Guarantees may
 * exceed the capacity; then the shares do too, and classes decide.
 */
#ifndef ALLOT_SCHED_SHARE_H
#define ALLOT_SCHED_SHARE_H

#include "sched/world.h"

/* Makes want, share and entitled of all teams anew if anything changed; wakes the parked lines
 * if a share did. */
void share_refresh(struct sched *s);

/* One claimant of a division; exposed for tests. */
struct share_part {
    int64_t need; /* unmet; reduced by what is given */
    int64_t weight;
    int64_t given;
};
/* Divides AMOUNT among PARTS (in order of age) by weight; returns what nobody can use. */
int64_t share_divide(struct share_part *parts, size_t count, int64_t amount, int64_t grain);

#endif
