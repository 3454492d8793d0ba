/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands tell about teams beside what the server says: which team was meant where there is
 * none of that name, and whether the guarantees can all be kept. Both ask the server and stay
 * silent where it does not answer. Texts are in cli->arena and safe for a terminal.
 */
#ifndef ALLOT_CLI_TEAMS_H
#define ALLOT_CLI_TEAMS_H

#include "base/err.h"

struct cli;
struct json_object;

/* Fills ERR for a team NAME that is not there, or not the caller's to see, with the nearest name
 * as the remedy. LIST is {"teams": [...]}, or NULL to ask for it. Returns -ENOENT. */
int cli_no_team(struct cli *cli, const char *name, struct json_object *list, struct err *err);

/* The team at the server; RET_TEAM (may be NULL) is to be released with json_object_put().
 * -ENOENT as cli_no_team(), or another negative errno, with ERR. */
int cli_get_team(struct cli *cli, const char *name, struct json_object **ret_team, struct err *err);

/* "guarantees add up to 16 GPUs; there are 8", or NULL where they can all be kept, as far as the
 * caller may see the teams. LIST as above. */
const char *cli_guarantee_note(struct cli *cli, struct json_object *list);

/* What the server remarks on a change that it has made: "warnings" of REPLY (may be NULL), a line
 * each on cli->err. */
void cli_print_warnings(struct cli *cli, struct json_object *reply);

/* What a person may set of the team FOUND (may be NULL: nothing yet), called NAME, as a PUT takes
 * it: without live figures, and without the limits that follow from a hard quota. To be released
 * with json_object_put(). */
struct json_object *cli_team_settings(struct json_object *found, const char *name);

#endif
