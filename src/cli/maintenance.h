/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The maintenance of nodes as the command line shows it, and `allot node maintain`. A window that
 * is over is not shown. Objects are nodes as GET /v1/nodes/NAME answers them; texts are in
 * cli->arena and safe for a terminal.
 */
#ifndef ALLOT_CLI_MAINTENANCE_H
#define ALLOT_CLI_MAINTENANCE_H

#include <stdbool.h>

#include "cli/command.h"

struct cli;
struct json_object;

/* "in 3h, for 4h" or "now, 2h left": the maintenance of node N, or NULL where none is to come. */
const char *cli_window_text(struct cli *cli, struct json_object *n);

/* The windows of {"nodes": [...]}, as a table of its own below theirs: it would not fit beside.
 * Nothing where there is none. */
void cli_print_windows(struct cli *cli, struct json_object *list);

/* Whom the maintenance of N, called NAME, touches, a line for each outcome; asks the server for
 * what waits for its end. False where it touches nobody, as far as is known. */
bool cli_print_touched(struct cli *cli, struct json_object *n, const char *name);

extern const struct cli_command cli_node_maintain;

#endif
