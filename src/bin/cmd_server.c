/* SPDX-License-Identifier: Apache-2.0 */
/* `allot server`: the command line of server.h. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/qty.h"
#include "bin/commands.h"
#include "bin/server.h"
#include "cli/cli.h"
#include "cli/options.h"

#define MOVES_MAX 1000

static const struct cli_option options[] = {
    {.name = "listen",
     .arg = "ADDRESS",
     .help = "address and port (127.0.0.1:8080); port 0 = any free one"},
    {.name = "data",
     .arg = "FOLDER",
     .help = "where everything is kept (/var/lib/allot)",
     .complete = CLI_COMPLETE_FILE},
    {.name = "simulate",
     .arg = "SPEC",
     .help = "simulated devices, as 8xH100; auto:8xH100 = only when no NVIDIA driver answers"},
    {.name = "node-name", .arg = "NAME", .help = "name of this node (the host's name)"},
    {.name = "hold",
     .arg = "TIME",
     .help = "how long freed capacity is kept for whom it was freed (60s)"},
    {.name = "stale-gang",
     .arg = "TIME",
     .help = "how long a gang may run below its minimum (60s)"},
    {.name = "min-run", .arg = "TIME", .help = "protection from eviction after a start (0s)"},
    {.name = "moves",
     .arg = "N",
     .help = "move at most N workloads to make room for one (16; 0 = none)"},
    {.name = "past-use-half-life",
     .arg = "TIME",
     .help = "bias weights by what teams used, halved in this time: 7d (0s = not)"},
    {.name = "maintenance-lead",
     .arg = "TIME",
     .help = "how long before the maintenance of a node work of unknown length stays off it (1h)"},
    {.name = "workdir-root",
     .arg = "FOLDER",
     .help = "where working and checkpoint folders of tasks must lie, which then run as their "
             "owner (anywhere open to all); may be repeated",
     .complete = CLI_COMPLETE_FILE},
    {.name = "show-dir",
     .arg = "FOLDER",
     .help = "let tasks read it although it lies in a hidden place such as /home; may be repeated",
     .complete = CLI_COMPLETE_FILE},
    {.name = "allow-unsandboxed", .help = "run tasks even where the machine forbids namespaces"},
    {.name = "verbose", .letter = 'v', .help = "log more"},
    {0},
};

static int time_option(const struct cli_args *args, const char *name, int64_t *ret_ms,
                       struct err *err)
{
    const char *text = cli_option_value(args, name);

    return text ? qty_parse_duration_ms(text, ret_ms, err) : 0;
}

static int moves_option(const struct cli_args *args, int64_t *ret_moves, struct err *err)
{
    const char *text = cli_option_value(args, "moves");
    int64_t moves = 0;

    if (text == NULL)
        return 0;
    if (qty_parse_int(text, &moves, NULL) < 0 || moves > MOVES_MAX)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                       "option '--moves' takes a number from 0 to %d", MOVES_MAX);
    *ret_moves = moves > 0 ? moves : -1;
    return 0;
}

/* Every value of a repeated option, NULL-terminated; NULL when there is none. */
static const char *const *list_option(struct cli *cli, const struct cli_args *args,
                                      const char *name)
{
    size_t it = 0, count = 0;
    const char **list, *value;

    while (cli_option_each(args, name, &it) != NULL)
        count++;
    if (count == 0)
        return NULL;
    list = arena_new_array(&cli->arena, const char *, count + 1);
    it = count = 0;
    while ((value = cli_option_each(args, name, &it)) != NULL)
        list[count++] = value;
    return list;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *listen = cli_option_value(args, "listen");
    const char *data = cli_option_value(args, "data");
    struct server_config config = {
        .listen = listen ? listen : "127.0.0.1:8080",
        .data = data ? data : "/var/lib/allot",
        .simulate = cli_option_value(args, "simulate"),
        .node_name = cli_option_value(args, "node-name"),
        .allow_unsandboxed = cli_option_given(args, "allow-unsandboxed"),
        .workdir_roots = list_option(cli, args, "workdir-root"),
        .shown_dirs = list_option(cli, args, "show-dir"),
    };
    struct err err = ERR_INIT;
    int r;

    if (time_option(args, "hold", &config.hold_ms, &err) < 0 ||
        time_option(args, "stale-gang", &config.stale_gang_ms, &err) < 0 ||
        time_option(args, "min-run", &config.min_run_ms, &err) < 0 ||
        moves_option(args, &config.moves_max, &err) < 0 ||
        time_option(args, "past-use-half-life", &config.past_half_life_ms, &err) < 0 ||
        time_option(args, "maintenance-lead", &config.window_lead_ms, &err) < 0)
        return cli_fail_usage(cli, &err);
    if (cli_option_given(args, "verbose"))
        log_set_level(LOG_LEVEL_DEBUG);
    r = server_run(&config, &err);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

const struct cli_command bin_server = {
    .name = "server",
    .group = CLI_SETUP,
    .summary = "run the server",
    .usage = "[OPTIONS]",
    .description =
        "Runs the control plane and the local engine in the foreground until SIGINT or SIGTERM. "
        "Tasks are not harmed when it stops, or is killed: they run under their own supervisors "
        "and are found again at the next start.\n\n"
        "The first start on an empty folder makes the user 'admin', a team 'default' and an "
        "admin token, kept in FOLDER/admin-token and printed where a terminal is.",
    .examples = "# eight simulated GPUs, to try it out\n"
                "allot server --data ./data --simulate 8xH100\n"
                "# what the NVIDIA driver finds, for the whole network\n"
                "allot server --listen 0.0.0.0:8080\n",
    .options = options,
    .section = 8,
    .run = run,
};
