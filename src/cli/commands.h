/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of the built-in commands, one file each (cmd_NAME.c), and the few functions that
 * commands lend each other. See command.h.
 */
#ifndef ALLOT_CLI_COMMANDS_H
#define ALLOT_CLI_COMMANDS_H

#include <stdbool.h>

#include "cli/command.h"

struct cli;
struct json_object;

extern const struct cli_command cli_run_command, cli_submit, cli_apply;
extern const struct cli_command cli_ps, cli_show, cli_why, cli_logs, cli_top, cli_events, cli_usage;
extern const struct cli_command cli_stop, cli_suspend, cli_resume, cli_extend, cli_exec, cli_gpu;
extern const struct cli_command cli_team, cli_quota, cli_node, cli_user, cli_token;
extern const struct cli_command cli_login, cli_version, cli_completion, cli_help;

/* What `allot quota` says of itself, for whoever adds to it. */
#define CLI_QUOTA_ABOUT                                                                         \
    "The bar shows use of the limit (or of what the team is entitled to, where it has no "      \
    "limit). Green: within the guarantee. Yellow: borrowed, may be taken back. Red: above "     \
    "what it is entitled to, will be taken back when others ask. SHARE is the fair share as "   \
    "things are now, DEMAND what runs and waits together. [H100] is what is stated of that "    \
    "GPU type and used of it."
#define CLI_QUOTA_ALL {.name = "all", .letter = 'a', .help = "also cpu and memory, not only GPUs"}

/* What would become of each workload, as the answer to a dry run says; with -o json that answer. */
void cli_print_dry_run(struct cli *cli, struct json_object *reply);
/* Follows a workload to its end, as `allot run` does; SUBMITTED is the answer to its submission.
 * Returns the exit code of its task. */
int cli_watch_workload(struct cli *cli, struct json_object *submitted);

/* The table of `allot ps` for {"workloads": [...]}. */
void cli_print_workloads(struct cli *cli, struct json_object *list, bool wide);

/* {"teams": [...]} as a tree with bars, as in `allot quota`. TEAM (may be NULL) restricts it to
 * one and what is below it. */
void cli_print_quota(struct cli *cli, struct json_object *list, const char *team);

#endif
