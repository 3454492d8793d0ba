/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The REST interface under /v1: decode, authorise, hand a command to core, encode the answer.
 *
 * One constant table of routes (routes.h) says everything about each: method, path, who may call
 * it, its query parameters, the names of its request and answer, and the handler. Requests are
 * matched with it, unknown query parameters refused by it, and the OpenAPI 3.1 document at
 * /v1/openapi.json made from it.
 *
 * Writes go to core as commands; the HTTP thread never waits for a commit (the request sleeps
 * and is resumed when core is done). Reads go to the store's readers and see committed state
 * only. Live figures (queue positions, shares) are asked of core.
 *
 * Who may what. Every route but GET /v1/healthz needs "Authorization: Bearer TOKEN". The token is
 * looked up in the store for every request, by its BLAKE2b-256 hash, so that a revoked one is
 * refused at once. An admin may do everything. A member sees and uses the teams of its user and
 * their subtrees; what it may not see does not exist for it (404). Core checks writes again.
 *
 * Errors are problem documents (RFC 9457) with a stable code, the field and a remedy.
 *
 * Threads. api_events_committed() may be called from any thread and never blocks; the rest
 * belongs to the thread that made the api. Core and store must outlive api_stop(); core must run
 * until then, and every command must be done before api_destroy().
 *
 *     struct api_config config = {.listen = "127.0.0.1:8080", .core = core, .store = &ops, ...};
 *     r = api_create(&config, &api, &err);
 *     r = api_start(api, &err);
 *     printf("listening on %s\n", api_address(api));
 *     ...
 *     api_stop(api);        then core_stop() and join, then
 *     api_destroy(api);
 */
#ifndef ALLOT_API_API_H
#define ALLOT_API_API_H

#include <stdint.h>

#include "base/err.h"
#include "core/core.h"
#include "core/engine_port.h"
#include "core/store_port.h"

struct api;

struct api_config {
    const char *listen; /* "127.0.0.1:8080"; port 0 = any free one */
    struct core *core;
    const struct store_ops *store;
    void *store_ctx;
    const struct engine_ops *engine;
    void *engine_ctx;
    unsigned threads;     /* HTTP threads, 0 = 2 */
    unsigned connections; /* at once, 0 = 2048 */
};

/* Prepares; nothing listens yet, so that core may call api_events_committed() already. */
int api_create(const struct api_config *config, struct api **ret_api, struct err *err);

/* Listens and serves. Negative errno with ERR naming the address. */
int api_start(struct api *api, struct err *err);

/* "127.0.0.1:43210", with the real port. Valid until api_destroy(). */
const char *api_address(const struct api *api);
/* The port that was given. */
uint16_t api_port(const struct api *api);

/* Events up to SEQ are committed: lets streams look. Wire it to core_ports.events. */
void api_events_committed(struct api *api, uint64_t seq);

/* Takes no more requests, ends streams, answers what waits with 503. */
void api_stop(struct api *api);

/* After api_stop() and after core has finished every command. NULL is fine. */
void api_destroy(struct api *api);

#endif
