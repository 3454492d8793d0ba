/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server: wires store, engine, core and API, runs until SIGINT or SIGTERM.
 *
 * Order of life: store (refuses a second server), engine (finds devices), core (loads the
 * state), API (listens), then core's thread. Down in reverse. Tasks run on: they belong to their
 * supervisors.
 *
 * The first start on an empty folder makes the user "admin", one token for it (also written to
 * DATA/admin-token, mode 0600), and a team "default" to begin with.
 */
#ifndef ALLOT_BIN_SERVER_H
#define ALLOT_BIN_SERVER_H

#include <stdint.h>

#include "base/err.h"

struct model_pair;

struct server_config {
    const char *listen;    /* "127.0.0.1:8080" */
    const char *data;      /* folder */
    const char *simulate;  /* "8xH100", "auto:8xH100", or NULL = what the driver finds */
    const char *node_name; /* NULL = host name */
    const struct model_pair *labels; /* of this node */
    int32_t label_count;
    const char *const *topology; /* NULL-terminated; NULL = default, see core/core.h */
    int64_t hold_ms, stale_gang_ms, min_run_ms, window_lead_ms; /* 0 = default */
    int64_t moves_max; /* workloads moved for one request; 0 = default, -1 = none */
    int64_t past_half_life_ms;                                  /* 0 = past use does not count */
    int allow_unsandboxed, strict_sharing;
    /* NULL-terminated or NULL; see engine/local/engine_local.h. */
    const char *const *workdir_roots, *const *shown_dirs;
};

/* Serves until a signal asks to stop. 0, or a negative errno with ERR. */
int server_run(const struct server_config *config, struct err *err);

#endif
