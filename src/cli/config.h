/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the server is and who asks.
 *
 * Each setting comes from the first of: its option (--server, --token), its environment variable
 * (ALLOT_SERVER, ALLOT_TOKEN, ALLOT_TEAM), the configuration file, a default. The file is
 * $XDG_CONFIG_HOME/allot/config or ~/.config/allot/config (ALLOT_CONFIG names another), with
 * lines "server = URL", "token = TOKEN", "team = NAME" and comments after '#'. It holds a secret:
 * it is written with mode 0600, and a file that others may read is used with a warning. A token
 * from the file is only ever sent to the server that stands in the same file.
 */
#ifndef ALLOT_CLI_CONFIG_H
#define ALLOT_CLI_CONFIG_H

#include "base/arena.h"
#include "base/err.h"

#define CLI_DEFAULT_SERVER "http://127.0.0.1:8080"

struct cli_config {
    const char *server;  /* never NULL after loading */
    const char *token;   /* or NULL */
    const char *team;    /* default team of new workloads, or NULL */
    const char *path;    /* of the file, or NULL when there is no home folder */
    const char *warning; /* a sentence about the file, or NULL */
};

/* Reads file and environment. -EINVAL with ERR for a line that is not understood; a missing file
 * is fine. All in ARENA. */
int cli_config_load(struct arena *arena, struct cli_config *ret_config, struct err *err);

/* Another server than the loaded one: the loaded token is not meant for it and is dropped. */
void cli_config_use_server(struct cli_config *config, const char *server);

/* Writes server, token and team (where set) to config->path; makes the folder. */
int cli_config_save(const struct cli_config *config, struct err *err);

#endif
