/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a person wants to change about the past, from words on a command line to a setup.
 *
 * All functions return 0, or a negative errno with ERR naming the word and what would do. What
 * they make lives in the past's arena.
 */
#ifndef ALLOT_SIM_WHATIF_CHANGE_H
#define ALLOT_SIM_WHATIF_CHANGE_H

#include "sim/whatif.h"

/* "nlp.guarantee.gpu=6", "nlp.weight=2", "nlp.quota=hard": a field of model/team.h. */
int whatif_change_team(struct past *past, struct whatif_setup *setup, const char *words,
                       struct err *err);
/* The teams of a file of manifests, YAML or JSON, as `allot apply -f` takes them. */
int whatif_change_teams(struct past *past, struct whatif_setup *setup, const char *path,
                        struct err *err);
/* "4x8xH100" or "4x8xH100,2x4xA100": instead of all nodes. Their CPU and memory never bind. */
int whatif_change_nodes(struct past *past, struct whatif_setup *setup, const char *spec,
                        struct err *err);
/* "development.may_reclaim=no": a cell of the class matrix (may_preempt, may_reclaim, idle_only).
 * Whether work is preemptible is recorded with it, so that cell has no use here. */
int whatif_change_class(struct whatif_setup *setup, const char *words, struct err *err);

#endif
