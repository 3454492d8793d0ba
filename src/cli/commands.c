/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

#include "cli/cli.h"

const struct cli_command *const cli_builtin_commands[] = {
    &cli_run_command, &cli_submit, &cli_apply,  &cli_ps,    &cli_why,     &cli_show,
    &cli_logs,        &cli_top,    &cli_quota,  &cli_usage, &cli_events,  &cli_stop,
    &cli_suspend,     &cli_resume, &cli_extend, &cli_exec,  &cli_gpu,     &cli_team,
    &cli_user,        &cli_token,  &cli_node,   &cli_login, &cli_version, &cli_completion,
    &cli_help,        NULL,
};
