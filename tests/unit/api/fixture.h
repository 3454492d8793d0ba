/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole server in the test's process: the real core, scheduler and store (in a temporary
 * folder), the API on a free port, and an engine that starts tasks at once, ends them when the
 * test says so, and keeps logs in memory.
 *
 * Teams: lab (no quota) above vision and speech, and other beside it. Users: root (admin),
 * ada (member of lab), bob (member of other). One node "n1" with 8 simulated H100.
 */
#ifndef ALLOT_TESTS_API_FIXTURE_H
#define ALLOT_TESTS_API_FIXTURE_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "api/token.h"
#include "net/http_client.h"

struct engine_double;

struct fixture {
    char folder[32];
    struct store *store;
    struct core *core;
    pthread_t core_thread;
    struct engine_double *engine;
    struct api *api;
    struct http_client *root, *ada, *bob, *nobody;
    char root_token[API_TOKEN_MAX], ada_token[API_TOKEN_MAX], bob_token[API_TOKEN_MAX];
    struct http_reply reply;  /* of the last ask() */
    struct json_object *json; /* its body, or NULL */
};

/* cmocka set-up and tear-down; *state is the fixture. */
int fixture_set_up(void **state);
int fixture_tear_down(void **state);

/* One call; f->reply and f->json are its answer. Returns the status. BODY may be NULL. */
int ask(struct fixture *f, struct http_client *who, const char *method, const char *path,
        const char *body);

/* A value of the last answer by path ("teams.0.name"); NULL when absent. */
struct json_object *value(struct fixture *f, const char *path);
/* Likewise; "" and -1 when absent. */
const char *text(struct fixture *f, const char *path);
int64_t number(struct fixture *f, const char *path);
/* Length of an array, or -1. */
int64_t length(struct fixture *f, const char *path);

/* Submits and returns the id. */
uint64_t submit(struct fixture *f, struct http_client *who, const char *body);

/* Waits until workload ID is in STATE, or fails. */
void wait_state(struct fixture *f, uint64_t id, const char *state);

/* ---- engine --------------------------------------------------------------------------------- */

/* Adds to the log of an attempt ("1.0.0"). */
void engine_log(struct fixture *f, const char *intent, const char *data);
/* Ends an attempt, once the engine has been asked to start it. */
void engine_exit(struct fixture *f, const char *intent, int code);
/* The bytes at which logs begin: earlier ones are "rotated away". */
void engine_rotate(struct fixture *f, const char *intent, int64_t begin);

/* Where the API listens. */
uint16_t port_of(struct fixture *f);

#endif
