/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a team may use of single GPU types: the "gpu_types" of its guarantee and of its limit.
 *
 *   "guarantee": {"gpu": 8, "gpu_types": {"H100": 2}}, "limit": {"gpu_types": {"H100": 4}}
 *
 * Both maps together are one list in the team, sorted by type, each type once. A type that is
 * not named in a map keeps what it has there; null takes it away. Functions here are used by
 * team.c, and by the store, which keeps the list as one text.
 */
#ifndef ALLOT_MODEL_TEAM_TYPES_H
#define ALLOT_MODEL_TEAM_TYPES_H

#include <stdbool.h>

#include "base/strbuf.h"
#include "model/team.h"

/* Readers for tables of fields; OUT is the whole team, its list is made anew in the arena. */
int model_team_read_type_guarantees(struct json_object *v, struct arena *a, void *out,
                                    struct err *err);
int model_team_read_type_limits(struct json_object *v, struct arena *a, void *out, struct err *err);
/* Takes all guarantees (or all LIMITS) of types away. */
void model_team_clear_types(struct model_team *t, bool limits, struct arena *a);
/* With a hard quota the guarantee of a type is its limit; -EINVAL if another one is stated. */
int model_team_harden_types(struct model_team *t, struct arena *a, struct err *err);
/* No limit of a type below its guarantee, no more guaranteed than of all GPUs. -EINVAL. */
int model_team_check_types(const struct model_team *t, struct err *err);

/* Key and map inside an object, where there is anything to say. */
void model_team_encode_types(const struct model_team *t, bool limits, struct json_writer *w);

/* The list as one text, and back into ARENA: -EINVAL or -ERANGE with ERR. */
void model_team_types_text(const struct model_team *t, struct strbuf *out);
int model_team_types_parse(const char *text, struct arena *arena, struct model_team *t,
                           struct err *err);
/* A copy of T's list in ARENA. */
void model_team_copy_types(struct model_team *t, struct arena *arena);

#endif
