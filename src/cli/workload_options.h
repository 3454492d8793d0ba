/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that describe a workload, shared by `allot run` and `allot submit`, and how they
 * become the body of POST /v1/workloads.
 *
 * Option names are the fields of model/workload.h. The body is decoded here with the server's own
 * decoder before it is sent, so that a bad quantity is refused at once and in the same words.
 */
#ifndef ALLOT_CLI_WORKLOAD_OPTIONS_H
#define ALLOT_CLI_WORKLOAD_OPTIONS_H

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/options.h"

struct cli;
struct json_object;

/* For `shared_options` of a command. */
extern const struct cli_option cli_workload_options[];

/*
 * Body of POST /v1/workloads for ARGS, with its command line, in BODY. Asks the server for the
 * teams when none is named. -EINVAL with ERR.
 */
int cli_workload_body(struct cli *cli, const struct cli_args *args, struct strbuf *body,
                      struct err *err);

/* Submits what ARGS describe, with --dry-run on trial; the answer of POST /v1/workloads. */
int cli_submit_options(struct cli *cli, const struct cli_args *args, struct json_object **ret_json,
                       struct err *err);

/* POSTs BODY under a key, so that it can be repeated until an answer comes. */
int cli_submit_body(struct cli *cli, const char *body, struct json_object **ret_json,
                    struct err *err);
/* Submits nothing; what would become of each workload of BODY, as the server answers. */
int cli_dry_run_body(struct cli *cli, const char *body, struct json_object **ret_json,
                     struct err *err);

#endif
