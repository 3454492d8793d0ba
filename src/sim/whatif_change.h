/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person wants to change about the past, from words on a command line to a setup.
 *
 * A change of a team holds for all the time of the record, whatever was edited meanwhile. All
 * words about one team are taken together, so that their order does not matter: a limit may be
 * lowered before the guarantee is. Files of manifests mean what they mean to `allot apply`: what
 * they leave out takes its default.
 *
 * All functions return 0, or a negative errno with ERR naming the word and what would do. What
 * they make lives in the past's arena.
 *
 *     whatif_wish_init(&wish, &past);
 *     whatif_wish_team(&wish, "nlp.guarantee.gpu=6", &err);
 *     r = whatif_wish_grant(&wish, &setup, &err);
 *     whatif_wish_done(&wish);
 */
#ifndef ALLOT_SIM_WHATIF_CHANGE_H
#define ALLOT_SIM_WHATIF_CHANGE_H

#include "base/strbuf.h"
#include "sim/whatif.h"

struct json_object;

struct whatif_wished {        /* of one team */
    struct json_object *body; /* fields of model/team.h; NULL = nothing */
    bool replaces;            /* what it leaves out takes its default */
};

struct whatif_wish {
    struct past *past;
    struct whatif_wished *teams; /* one for each of the past */
    struct strbuf notes;         /* lines for people: what was given and has no meaning here */
};

/* An empty one. */
void whatif_wish_init(struct whatif_wish *w, struct past *past);
/* Frees it; a zeroed one is fine. */
void whatif_wish_done(struct whatif_wish *w);

/* "nlp.guarantee.gpu=6", "nlp.weight=2", "nlp.quota=hard", "nlp.limit.gpu=none". */
int whatif_wish_team(struct whatif_wish *w, const char *words, struct err *err);
/* The teams of a file of manifests, YAML or JSON, as `allot apply -f` takes them. */
int whatif_wish_teams(struct whatif_wish *w, const char *path, struct err *err);
/* Makes all of it so. -EINVAL: a quota that contradicts itself, a parent that cannot be one. */
int whatif_wish_grant(struct whatif_wish *w, struct whatif_setup *setup, struct err *err);

/* "4x8xH100" or "4x8xH100,2x4xA100": instead of all nodes, and of what became of them;
 * "+2x8xH100": beside them. Their CPU and memory never bind, and
 * the only label is host, their name. */
int whatif_change_nodes(struct past *past, struct whatif_setup *setup, const char *spec,
                        struct err *err);
/* "development.may_reclaim=no": a cell of the class matrix (may_preempt, may_reclaim, idle_only).
 * Whether work is preemptible is recorded with it, so that cell has no use here. */
int whatif_change_class(struct whatif_setup *setup, const char *words, struct err *err);

#endif
