/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of routes: everything about each in one constant entry. dispatch.c matches requests
 * with it, openapi.c documents it, tests walk it.
 */
#ifndef ALLOT_API_ROUTES_H
#define ALLOT_API_ROUTES_H

#include <stddef.h>
#include <stdint.h>

struct api_call;

enum api_auth {
    API_AUTH_NONE, /* anyone */
    API_AUTH_USER, /* any valid token; what it sees depends on its teams */
    API_AUTH_ADMIN
};

struct api_param {
    const char *name;
    const char *type;        /* of the JSON schema: "string", "integer", "boolean" */
    const char *description; /* one sentence for OpenAPI */
};

struct api_route {
    const char *method;
    const char *path;      /* "/v1/workloads/{id}/stop"; a segment in braces takes any text */
    const char *operation; /* unique name for generated clients */
    const char *summary;
    enum api_auth auth;
    void (*handler)(struct api_call *call);
    const char *request;       /* schema of the body, NULL = takes none */
    const char *response;      /* schema of the answer, NULL = no body */
    const char *response_type; /* NULL = application/json */
    const char *dry_response;  /* schema of the answer (200) to a dry run, NULL = there is none */
    int status;                /* of success */
    int64_t body_max;
    const struct api_param *params; /* ends with a NULL name; NULL = none */
    const struct api_param *headers;
};

/* The table; RET_COUNT entries. */
const struct api_route *api_routes(size_t *ret_count);

#endif
