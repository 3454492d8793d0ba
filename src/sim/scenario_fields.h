/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of the scenario parser (parse_*.c): how a table of fields is written, and
 * the decoders that one part has for another. Internal to the parser.
 *
 * A decoder of a list takes the structure that owns the list as its destination (FIELD_WHOLE),
 * because a list is two members: the elements and their number. Everything lives in the
 * decoder's arena. Units as in scenario_data.h.
 *
 *     static const struct sim_field fields[] = {
 *         FIELD_NEEDED(struct sim_scenario, id, sim_decode_name),
 *         FIELD_WHOLE("nodes", sim_parse_nodes),
 *     };
 */
#ifndef ALLOT_SIM_SCENARIO_FIELDS_H
#define ALLOT_SIM_SCENARIO_FIELDS_H

#include <stddef.h>

#include "sim/decode.h"
#include "sim/scenario_data.h"

/* clang-format off */
#define FIELD(type, member, fn) {#member, fn, offsetof(type, member), 0}
#define FIELD_AS(type, name, member, fn) {name, fn, offsetof(type, member), 0}
#define FIELD_NEEDED(type, member, fn) {#member, fn, offsetof(type, member), SIM_REQUIRED}
#define FIELD_WHOLE(name, fn) {name, fn, 0, 0} /* the decoder sees the whole structure */
/* clang-format on */

/* What a team is where the text does not say: no guarantee, no limit, weight 1, priority 100. */
extern const struct sim_team sim_team_preset;

/* An array of texts. */
int sim_parse_names(struct sim_decoder *d, struct json_object *v, const char *const **ret_items,
                    uint32_t *ret_count);
/* An object of texts by name: labels. */
int sim_parse_pairs(struct sim_decoder *d, struct json_object *v, const struct sim_pair **ret_items,
                    uint32_t *ret_count);
/* An object of numbers by name. */
int sim_parse_counts(struct sim_decoder *d, struct json_object *v, struct sim_count **ret_items,
                     uint32_t *ret_count);
/* An object of numbers by MIG profile. */
int sim_parse_mig(struct sim_decoder *d, struct json_object *v, const struct sim_count **ret_items,
                  uint32_t *ret_count);
/* Into struct sim_team, over its preset. */
int sim_parse_team(struct sim_decoder *d, struct json_object *v, void *dst);

/* Lists of struct sim_scenario, which is the destination. */
int sim_parse_nodes(struct sim_decoder *d, struct json_object *v, void *dst);
/* Likewise. */
int sim_parse_teams(struct sim_decoder *d, struct json_object *v, void *dst);
/* Likewise. */
int sim_parse_workloads(struct sim_decoder *d, struct json_object *v, void *dst);
/* Likewise. */
int sim_parse_events(struct sim_decoder *d, struct json_object *v, void *dst);
/* Likewise. */
int sim_parse_expects(struct sim_decoder *d, struct json_object *v, void *dst);

#endif
