/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Talking to the server.
 *
 * A call succeeds when the server answers with 2xx. Anything else is an error: the problem
 * document's detail, field and remedy in ERR, with an errno that callers may branch on (-ENOENT,
 * -EEXIST, -ESTALE, -EACCES, ...). -ECONNREFUSED, -ETIMEDOUT and the like mean that no server
 * answered; cli_is_unreachable() tells them apart, for commands that wait for it to come back.
 *
 * RET_JSON (may be NULL) is to be released with json_object_put(); it is NULL after success with
 * an empty body.
 *
 *     _cleanup_json_ struct json_object *team = NULL;
 *     r = cli_get(cli, cli_path(cli, "/v1/teams/%s", name), &team, &err);
 */
#ifndef ALLOT_CLI_SESSION_H
#define ALLOT_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/http_client.h"

struct cli;
struct json_object;

/* For _cleanup_json_. */
void cli_json_putp(struct json_object **json);
#define _cleanup_json_ __attribute__((cleanup(cli_json_putp)))

/* A client of the configured server, owned by CLI. */
int cli_client(struct cli *cli, struct http_client **ret_client, struct err *err);
/* A further one, owned by the caller: for another thread. */
int cli_client_new(const struct cli *cli, struct http_client **ret_client, struct err *err);

/* printf for paths; each string argument is percent-encoded. Knows %s, %llu (as unsigned long
 * long) and %d. In the arena. */
const char *cli_path(struct cli *cli, const char *fmt, ...);

/* GET without further ado. */
int cli_get(struct cli *cli, const char *path, struct json_object **ret_json, struct err *err);

/* BODY is JSON text or NULL; IF_MATCH (an entity tag) and KEY (Idempotency-Key) may be NULL. */
struct cli_call {
    const char *method, *path, *body;
    const char *if_match, *key;
    char ret_etag[64];
    int ret_status;
};
int cli_call(struct cli *cli, struct cli_call *call, struct json_object **ret_json,
             struct err *err);

/* Fills ERR from an answer that is not 2xx; returns its errno. Any thread. */
int cli_problem(const struct http_reply *reply, struct err *err);
/* Did no server answer, or one that is about to be restarted? */
bool cli_is_unreachable(int r);

/* Prints JSON as one document, for -o json. */
void cli_print_json(struct cli *cli, struct json_object *json);

/* A workload by number or name, as people give it; the server knows what a name means. -ENOENT;
 * -EEXIST when several that have not ended share the name. */
int cli_find_workload(struct cli *cli, const char *word, uint64_t *ret_id, struct err *err);

/* 32 random hexadecimal digits: a key that makes a repeated call harmless. */
const char *cli_random_key(struct cli *cli);

#endif
