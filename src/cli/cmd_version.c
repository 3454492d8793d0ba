/* SPDX-License-Identifier: Apache-2.0 */
/* allot version: of this program, and of the server. */
#include <json-c/json.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/session.h"

static int run(struct cli *cli, const struct cli_args *args)
{
    _cleanup_json_ struct json_object *reply = NULL;
    struct err err = ERR_INIT;
    const char *server = NULL;

    if (!cli_option_given(args, "client") && cli_get(cli, "/v1/version", &reply, &err) == 0)
        server = cli_json_text(reply, "version");
    if (cli->json) {
        _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
        struct json_writer w;

        json_writer_init(&w, &b);
        json_begin_object(&w);
        json_key_string(&w, "client", ALLOT_VERSION);
        json_key_string(&w, "server", server);
        json_end_object(&w);
        fprintf(cli->out, "%s\n", strbuf_str(&b));
        return 0;
    }
    fprintf(cli->out, "allot %s\n", ALLOT_VERSION);
    if (cli_option_given(args, "client"))
        return 0;
    if (server)
        fprintf(cli->out, "server %s at %s\n", cli_safe(cli, server), cli->config.server);
    else
        fprintf(cli->out, "server: %s\n", cli_safe(cli, err.text));
    return 0;
}

static const struct cli_option options[] = {
    {.name = "client", .help = "only of this program; asks no server"},
    {0},
};

const struct cli_command cli_version = {
    .name = "version",
    .group = CLI_SETUP,
    .summary = "print the version of this program and of the server",
    .usage = "[OPTIONS]",
    .examples = "allot version\nallot version --client",
    .options = options,
    .run = run,
};
