/* SPDX-License-Identifier: Apache-2.0 */
/* `allot server`: the command line of server.h. */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/qty.h"
#include "bin/commands.h"
#include "bin/server.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "model/check.h"
#include "model/workload.h"

#define MOVES_MAX 1000
#define LEVELS_MAX 16

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
    {.name = "label",
     .arg = "KEY=VALUE",
     .help = "label of this node, for requests and topology; host=NAME is there; may be repeated"},
    {.name = "topology",
     .arg = "LEVELS",
     .help = "label keys that make topology levels, outermost first: zone,rack,host (host)"},
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
    {.name = "strict-sharing", .help = "refuse parts of GPUs where nothing enforces them"},
    {.name = "verbose", .letter = 'v', .help = "log more"},
    {0},
};

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

/* One refusal for all that may be wrong with a label or a level. */
static int refuse_option(const char *option, const char *message, const char *remedy,
                         struct err *err)
{
    return err_set(err, -EINVAL, ERR_INVALID, NULL, remedy, "option '--%s': %s", option, message);
}

static int label_option(struct cli *cli, const char *text, struct model_pair *ret, struct err *err)
{
    const char *equals = strchr(text, '=');
    struct err why = ERR_INIT;

    if (equals == NULL)
        return refuse_option("label", arena_printf(&cli->arena, "'%s' is not KEY=VALUE", text),
                             "as in --label rack=r1", err);
    ret->key = arena_strndup(&cli->arena, text, (size_t)(equals - text));
    ret->value = equals + 1;
    if (model_check_label(ret->key, strlen(ret->key), &why) < 0 ||
        model_check_label_value(ret->value, strlen(ret->value), &why) < 0)
        return refuse_option("label", why.text, why.remedy, err);
    return 0;
}

/* Each key once; the later ones would be lost. */
static int label_options(struct cli *cli, const struct cli_args *args, struct server_config *config,
                         struct err *err)
{
    struct model_pair *labels =
        arena_new_array(&cli->arena, struct model_pair, MODEL_NODE_LABELS_MAX);
    const char *text;
    size_t it = 0;

    config->labels = labels;
    while ((text = cli_option_each(args, "label", &it))) {
        int32_t n = config->label_count;
        if (n == MODEL_NODE_LABELS_MAX - 1)
            return refuse_option("label", "there are too many", "a node takes 255", err);
        if (label_option(cli, text, &labels[n], err) < 0)
            return -EINVAL;
        for (int32_t i = 0; i < n; i++)
            if (strcmp(labels[i].key, labels[n].key) == 0)
                return refuse_option("label",
                                     arena_printf(&cli->arena, "'%s' comes twice", labels[n].key),
                                     "give each label once", err);
        config->label_count++;
    }
    return 0;
}

/* "zone,rack,host" */
static int topology_option(struct cli *cli, const struct cli_args *args,
                           struct server_config *config, struct err *err)
{
    const char *text = cli_option_value(args, "topology");
    const char **levels = arena_new_array(&cli->arena, const char *, LEVELS_MAX + 1);
    size_t count = 0;

    if (text == NULL)
        return 0;
    for (const char *end;; text = end + 1) {
        struct err why = ERR_INIT;
        end = strchrnul(text, ',');
        if (count == LEVELS_MAX)
            return refuse_option("topology", "there are too many levels", "give 16 at most", err);
        levels[count] = arena_strndup(&cli->arena, text, (size_t)(end - text));
        if (model_check_label(levels[count], (size_t)(end - text), &why) < 0)
            return refuse_option("topology", why.text, "as in --topology zone,rack,host", err);
        for (size_t i = 0; i < count; i++)
            if (strcmp(levels[i], levels[count]) == 0)
                return refuse_option("topology",
                                     arena_printf(&cli->arena, "'%s' comes twice", levels[count]),
                                     "give each level once", err);
        count++;
        if (*end == '\0')
            break;
    }
    config->topology = levels;
    return 0;
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
        .strict_sharing = cli_option_given(args, "strict-sharing"),
        .workdir_roots = list_option(cli, args, "workdir-root"),
        .shown_dirs = list_option(cli, args, "show-dir"),
    };
    struct err err = ERR_INIT;
    int r;

    if (cli_option_duration(args, "hold", &config.hold_ms, &err) < 0 ||
        label_options(cli, args, &config, &err) < 0 ||
        topology_option(cli, args, &config, &err) < 0 ||
        cli_option_duration(args, "stale-gang", &config.stale_gang_ms, &err) < 0 ||
        cli_option_duration(args, "min-run", &config.min_run_ms, &err) < 0 ||
        moves_option(args, &config.moves_max, &err) < 0 ||
        cli_option_duration(args, "past-use-half-life", &config.past_half_life_ms, &err) < 0 ||
        cli_option_duration(args, "maintenance-lead", &config.window_lead_ms, &err) < 0)
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
                "allot server --listen 0.0.0.0:8080\n"
                "# where this node stands, so that a gang may ask for one rack\n"
                "allot server --label zone=a --label rack=r7 --topology zone,rack,host\n",
    .options = options,
    .section = 8,
    .run = run,
};
