/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota per GPU type: what a team may use of one type, beside what it may use of all.
 *
 * A team states a limit, a guarantee, or both, for the types that it cares about; most teams
 * state none, and cost nothing (team.typed_path). What a task takes is charged to the type of
 * the node that it is placed on; while it waits it is charged to no type. So these quotas are
 * not gates on a request but room that a placement may use: a node whose type has no room left
 * is passed over like one that is full, and the next acceptable type is taken. A gang that is
 * placed on several types needs room in each.
 *
 *   limit      used of the type + the task's charge <= limit, at the team and at every ancestor
 *   guarantee  non-preemptible work of the type + the charge <= guarantee, where one is stated;
 *              work that may not burst likewise, of its own team. And work on a type of which
 *              the team is at or below its stated guarantee is not reclaimed. Who would stay
 *              within it takes GPUs of the type back from teams that are above theirs, or have
 *              none, also when those are within their share of all types: that share names no
 *              devices, the guarantee does. The taker stays within its own share of all types.
 *
 * Fair shares are made of all types together. The sums are kept in the views that teams keep
 * (world.h); types_use() is their only writer besides types_recount().
 */
#ifndef ALLOT_SCHED_TYPES_H
#define ALLOT_SCHED_TYPES_H

#include "sched/world.h"

/* T's record of a type (interned), or NULL. */
struct type_quota *types_find(const struct team *t, const char *type);

/* Installs the quotas of DECL in T; sums start at zero, so types_recount() follows. */
void types_set(struct sched *s, struct team *t, const struct sched_team *decl);
/* Are the quotas of DECL well-formed: no type twice, amounts not negative? */
bool types_ok(const struct sched_team *decl);
/* After a change of teams, or of a node's type: marks who is concerned, sums up anew. */
void types_recount(struct sched *s);

/* SIGN times MILLI of TYPE at TEAM and above. TYPE NULL, or nobody cares: nothing. */
void types_use(struct team *team, enum view view, const char *type, int64_t milli, bool firm,
               int sign);

/* Room of work of group G per type that is bounded, in the fullest view of MASK; cleared first.
 * A type that is not in the list is not bounded. */
void types_rooms(const struct group *g, unsigned mask, struct type_rooms *ret_rooms);
/* Takes (SIGN 1) room for MILLI of TYPE, or gives it back. */
void types_room_take(struct type_rooms *rooms, const char *type, int64_t milli, int sign);
/* Is there room for so much more? For nothing there is; but see types_held_open(). */
bool types_room_for(const struct type_rooms *rooms, const char *type, int64_t milli);

/* The team nearest to G's whose bound leaves the least room in VIEW_NOW and VIEW_THEN for work on
 * TYPE; NULL where nothing is bounded. RET_GUARANTEE: it is the guarantee, else the limit. */
struct team *types_tightest(const struct group *g, const char *type, int64_t *ret_room,
                            bool *ret_guarantee);

/* Is there room for the tasks that are held for W: to start (VIEW_NOW), or still, now that bounds
 * may have been lowered (VIEW_THEN, where they are counted already)? */
bool types_held_open(const struct workload *w, enum view view);

/* The most that work of group G can ever have of TYPE, and whose bound that is (or NULL). */
int64_t types_most(const struct group *g, const char *type, const struct team **ret_team,
                   bool *ret_guarantee);

/* Is there a type of which work of group G could not have MILLI more in VIEW_THEN? */
bool types_bind(const struct group *g, int64_t milli);

/* Does T keep what it has of TYPE against reclaim? */
bool types_keeps(const struct team *t, const char *type);
/* Would T stay within its stated guarantee of TYPE with MILLI more of it (negative: less)? Then
 * others make way for it there. TYPE NULL: of any type that it has a guarantee of. */
bool types_entitled(const struct team *t, const char *type, int64_t milli);

#endif
