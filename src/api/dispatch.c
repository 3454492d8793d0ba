/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to its route: match, authorise, check the query, call the handler. */
#include "api/internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Next segment of PATH ("/a/b") at *P into SEGMENT; its length, or 0 at the end. */
static size_t next_segment(const char **p, const char **ret_segment)
{
    size_t n;

    if (**p != '/')
        return 0;
    *ret_segment = *p + 1;
    n = strcspn(*ret_segment, "/");
    *p = *ret_segment + n;
    return n;
}

static bool path_matches(const struct api_route *route, const struct http_request *r,
                         const char **args)
{
    const char *p = route->path, *segment;
    int arg = 0;
    size_t n;

    for (int i = 0; i < r->segment_count; i++) {
        n = next_segment(&p, &segment);
        if (n == 0)
            return false;
        if (segment[0] == '{')
            args[arg++] = r->segments[i];
        else if (strlen(r->segments[i]) != n || memcmp(r->segments[i], segment, n) != 0)
            return false;
    }
    return *p == '\0' && r->segment_count > 0;
}

static bool method_matches(const struct api_route *route, const char *method)
{
    if (strcmp(method, "HEAD") == 0)
        method = "GET";
    return strcmp(route->method, method) == 0;
}

/* The route, or NULL with the methods that the path knows in ALLOW (empty: no such path). */
static const struct api_route *match(const struct http_request *r, const char **args,
                                     struct strbuf *allow)
{
    size_t count;
    const struct api_route *routes = api_routes(&count);

    for (size_t i = 0; i < count; i++) {
        if (!path_matches(&routes[i], r, args))
            continue;
        if (method_matches(&routes[i], r->method))
            return &routes[i];
        strbuf_addf(allow, "%s%s", allow->len ? ", " : "", routes[i].method);
        if (strcmp(routes[i].method, "GET") == 0)
            strbuf_adds(allow, ", HEAD");
    }
    return NULL;
}

static void call_free(struct http_request *r)
{
    struct api_call *call = r->user;

    if (call->cleanup)
        call->cleanup(call);
    call_release_key(call);
    arena_done(&call->command.arena);
}

static bool is_known_param(const struct api_route *route, const char *name)
{
    for (const struct api_param *p = route->params; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

static int check_params(const struct api_call *call, struct err *err)
{
    const struct http_request *r = call->http;
    char remedy[sizeof(err->remedy)] = "it takes none";
    size_t n = 0;

    for (int i = 0; i < r->param_count; i++) {
        if (is_known_param(call->route, r->params[i].name))
            continue;
        for (const struct api_param *p = call->route->params; p && p->name; p++)
            n += (size_t)snprintf(remedy + n, n < sizeof(remedy) ? sizeof(remedy) - n : 0, "%s%s",
                                  n ? ", " : "known: ", p->name);
        return err_set(err, -EINVAL, ERR_UNKNOWN_FIELD, r->params[i].name, remedy,
                       "%.60s is not a query parameter of %s", r->params[i].name,
                       call->route->path);
    }
    return 0;
}

static int64_t refuse(struct api_call *call, int errnum, const struct err *err)
{
    call_fail(call, errnum, err);
    return 0;
}

static void no_such_method(struct api_call *call, const char *allow)
{
    struct http_request *r = call->http;
    struct err err = ERR_INIT;
    char remedy[128];

    snprintf(remedy, sizeof(remedy), "use %s", allow);
    err_set(&err, -EINVAL, ERR_UNSUPPORTED, NULL, remedy, "%.16s is not possible on %.200s",
            r->method, r->path);
    http_reply_header(r, "Allow", allow);
    http_reply_problem(r, 405, &err);
}

static int check_role(const struct api_call *call, struct err *err)
{
    if (call->route->auth != API_AUTH_ADMIN || call->user.admin)
        return 0;
    return err_set(err, -EACCES, ERR_FORBIDDEN, NULL, "ask an administrator",
                   "user '%.100s' may not do this", call->user.name);
}

int64_t api_on_headers(void *ctx, struct http_request *r)
{
    struct api_call *call = arena_new(&r->arena, struct api_call);
    _cleanup_strbuf_ struct strbuf allow = STRBUF_INIT;
    struct err err = ERR_INIT;
    int res = 0;

    call->api = ctx;
    call->http = r;
    call->command.grace_ms = -1;
    r->user = call;
    r->user_free = call_free;
    call->route = match(r, call->args, &allow);
    if (call->route == NULL || call->route->auth != API_AUTH_NONE)
        res = call_authenticate(call, &err);
    if (res < 0)
        return refuse(call, res, &err);
    if (call->route == NULL && allow.len > 0) {
        no_such_method(call, strbuf_str(&allow));
        return 0;
    }
    if (call->route == NULL)
        return refuse(call, -ENOENT,
                      (err_set(&err, -ENOENT, ERR_NOT_FOUND, NULL,
                               "GET /v1/openapi.json describes all of them",
                               "there is nothing at %.200s", r->path),
                       &err));
    res = check_role(call, &err);
    if (res == 0)
        res = check_params(call, &err);
    if (res < 0)
        return refuse(call, res, &err);
    return call->route->body_max;
}

void api_on_request(void *ctx, struct http_request *r)
{
    struct api_call *call = r->user;
    struct err err = ERR_INIT;
    int res = 0;

    (void)ctx;
    /* The token may have been revoked while the body came. */
    if (call->route->auth != API_AUTH_NONE && call_is_stale(call))
        res = call_authenticate(call, &err);
    if (res == 0)
        res = check_role(call, &err);
    if (res < 0)
        call_fail(call, res, &err);
    else
        call->route->handler(call);
}
