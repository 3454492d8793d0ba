/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Server-sent events, as they arrive in pieces: lines "id: 12", "event: workload.started",
 * "data: {...}" (several are joined by a line feed), an empty line ends one. Comments and unknown
 * fields are skipped. A line or an event of more than CLI_SSE_MAX bytes ends the stream.
 */
#ifndef ALLOT_CLI_SSE_H
#define ALLOT_CLI_SSE_H

#include <stddef.h>

#include "base/strbuf.h"

#define CLI_SSE_MAX (1 << 20)

struct cli_sse {
    struct strbuf line, data;
    char id[32]; /* of the last event that came with one: where to resume */
    /* Called for every event with its data; nonzero ends the stream. */
    int (*event)(void *user, const char *data);
    void *user;
};

/* Takes LEN bytes. What event() returned if not 0; -EMSGSIZE. */
int cli_sse_feed(struct cli_sse *s, const char *bytes, size_t len);
/* Forgets a half event: the connection was lost. */
void cli_sse_reset(struct cli_sse *s);
void cli_sse_done(struct cli_sse *s);

#endif
