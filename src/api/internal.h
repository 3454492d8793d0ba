/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the API share. Nothing outside src/api includes this.
 *
 * A call is one request under way: who asks, which route, the command that core works on. It
 * lives in the request's arena. A handler answers at once with call_reply() or call_fail(), or
 * hands call->command to core with call_submit(), naming the function that goes on when core is
 * done; that function runs on an HTTP thread again, and only if the command succeeded.
 */
#ifndef ALLOT_API_INTERNAL_H
#define ALLOT_API_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "api/api.h"
#include "api/routes.h"
#include "base/json_writer.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "net/http_server.h"

struct json_object;
struct api_session;
struct api_stream;

#define API_ARGS_MAX 2 /* {..} segments of a path */
#define API_LIST_DEFAULT 100
#define API_LIST_MAX 1000

struct api {
    struct api_config config;
    struct http_server *http;

    /* Idempotency keys of requests under way. */
    pthread_mutex_t keys_lock;
    struct map keys;

    /* Streams that want to hear of new events, and the thread that tells them. */
    pthread_mutex_t streams_lock;
    pthread_cond_t streams_wake;
    struct api_stream *streams;
    size_t stream_count;
    struct api_session *sessions; /* also under streams_lock */
    pthread_t notifier;
    bool notifier_runs;
    _Atomic uint64_t committed; /* newest event */

    /* Calls that run on threads of their own. */
    pthread_mutex_t side_lock;
    pthread_cond_t side_idle;
    int side_count;

    _Atomic int histories; /* that are being read */
};

struct api_call {
    struct api *api;
    struct http_request *http;
    const struct api_route *route;
    const char *args[API_ARGS_MAX];
    struct model_user user;
    uint8_t token_hash[MODEL_TOKEN_HASH_BYTES];
    int64_t asked_ms; /* boot clock: when the store was asked about the token */
    struct core_command command;
    void (*then)(struct api_call *call);
    void (*gone)(struct api_call *call);    /* see call_submit() */
    void *data;                             /* the handler's */
    void (*cleanup)(struct api_call *call); /* of data, if set; called when the call ends */
    const char *key;                        /* Idempotency-Key held in api.keys, or NULL */
    void (*side)(struct api_call *call);
};

/* ---- call.c: answering ---------------------------------------------------------------------- */

/* Status for a negative errno and its ERR. */
int api_status_of(int errnum, const struct err *err);
/* Answers with a problem document. */
void call_fail(struct api_call *call, int errnum, const struct err *err);
/* Answers with BODY (application/json), whose memory is taken. */
void call_reply(struct api_call *call, int status, struct strbuf *body);
/*
 * Answers with {"KEY": [...]}: EACH writes the elements into W; a negative errno with ERR of it is
 * the answer instead.
 */
typedef int api_each_fn(struct api_call *call, struct json_writer *w, void *arg, struct err *err);
void call_reply_list(struct api_call *call, const char *key, api_each_fn *each, void *arg);
/* 204. */
void call_reply_empty(struct api_call *call);

/*
 * Hands call->command (kind and inputs filled in) to core; THEN runs when it has succeeded. What
 * was found in the store may have ended before core hears of it: where call->gone is set it runs
 * instead of a 404, and answers as for what has ended.
 */
void call_submit(struct api_call *call, enum core_command_kind kind,
                 void (*then)(struct api_call *call));
/* Runs SIDE on a thread of its own, then call->then on an HTTP thread. */
void call_aside(struct api_call *call, void (*side)(struct api_call *call),
                void (*then)(struct api_call *call));

/* Parses the body; call_fail() and NULL when it is not JSON. "" is NULL with EMPTY_OK. */
struct json_object *call_body(struct api_call *call, bool empty_ok);

/* The arena of the request. */
static inline struct arena *call_arena(struct api_call *call)
{
    return &call->http->arena;
}

/* ---- params.c ------------------------------------------------------------------------------- */

/* Value of a query parameter, or NULL. */
const char *call_param(struct api_call *call, const char *name);
/* 0, or a negative errno with ERR naming the parameter; RET keeps its value where absent. */
int call_param_int(struct api_call *call, const char *name, int64_t min, int64_t max,
                   int64_t *ret_value, struct err *err);
/* "true", "false", "1", "0", or the bare name. */
int call_param_bool(struct api_call *call, const char *name, bool *ret_value, struct err *err);
/* A time: 2026-11-30, 2026-11-30T21:29:59.123Z, or milliseconds since 1970. */
int call_param_time(struct api_call *call, const char *name, int64_t *ret_ms, struct err *err);

/* ---- access.c ------------------------------------------------------------------------------- */

/* Fills call->user from the Authorization header. -EACCES with ERR. */
int call_authenticate(struct api_call *call, struct err *err);

/* Were the rights looked up too long ago to act on them now? A body may take minutes to come. */
bool call_is_stale(const struct api_call *call);

/*
 * What a long answer keeps of its caller: it ends when the token is revoked or expires, when the
 * user's role or teams change, or when one of the teams that it is about has left the caller's
 * sight (the client comes back and sees what it may see then).
 */
struct api_guard {
    uint8_t hash[MODEL_TOKEN_HASH_BYTES];
    uint64_t rights;          /* of the user, as they were */
    const char *const *teams; /* that the answer is about, the owner's; NULL = all, of an admin */
    int32_t team_count;
    int64_t check_ms;
};

/* Takes what it needs of an authenticated call. TEAMS must live as long as G; in the order in
 * which call_visible_teams() gives them. */
void api_guard_init(struct api_guard *g, const struct api_call *call, const char *const *teams,
                    int32_t team_count);
/* May the answer go on? Asks the store every few seconds. */
bool api_guard_check(struct api_guard *g, struct api *api);

/* The team NAME and all below it, likewise; none if there is no such team. */
int call_teams_below(struct api_call *call, const char *name, const char *const **ret_teams,
                     int32_t *ret_count, struct err *err);
/* Those of them that the caller sees, never NULL; NAME alone if there is no such team any more, as
 * its workloads and events stay. */
int call_teams_asked(struct api_call *call, const char *name, const char *const **ret_teams,
                     int32_t *ret_count, struct err *err);
/* The teams that the caller sees: RET_TEAMS NULL = all. In the request's arena. */
int call_visible_teams(struct api_call *call, const char *const **ret_teams, int32_t *ret_count,
                       struct err *err);
/* TEAMS in ARENA, for an answer that outlives its request; NULL stays NULL. */
const char *const *api_teams_copy(const char *const *teams, int32_t count, struct arena *arena);
/* Is NAME one of TEAMS (NULL = all)? */
bool api_teams_have(const char *const *teams, int32_t count, const char *name);
/* Does the caller see team NAME? 1, 0, or a negative errno. */
int call_sees_team(struct api_call *call, const char *name, struct err *err);
/* Finds the workload that a path names (number, "name" or "team:name") and checks that the
 * caller sees it. -ENOENT, -EEXIST (several of that name live). */
int call_find_workload(struct api_call *call, const char *text, struct model_workload *ret,
                       struct err *err);

/* A task as far as its log and its sandbox are concerned. */
struct api_task {
    int32_t index, attempt;
    enum model_task_state state;
    bool runs; /* it has processes: also while it is, or comes back from being, suspended */
};

/* One without a stored row is pending with attempt 0. 0 or a negative errno. */
int api_find_task(struct api *api, uint64_t workload, int32_t index, struct api_task *ret,
                  struct err *err);

/* ---- quota.c -------------------------------------------------------------------------------- */

/* "warnings" of T's quotas, an array of sentences, as a member of the object that W is in. Empty
 * where the nodes cannot be read: the quota has been taken all the same. */
void call_encode_quota_warnings(struct api_call *call, const struct model_team *t,
                                struct json_writer *w);

/* ---- privacy.c ------------------------------------------------------------------------------ */

/* Whose work a person may see; teams NULL = all, of an administrator. */
struct api_sight {
    const char *const *teams;
    int32_t count;
};

/* Of the caller; in the request's arena. 0 or a negative errno. */
int call_sight(struct api_call *call, struct api_sight *ret_sight, struct err *err);
/* Takes out of X what SIGHT does not show, and makes its sentences. */
void api_explanation_for(const struct api_sight *sight, struct model_explanation *x,
                         struct arena *arena);
/* Takes out of E what SIGHT does not show; what is made anew goes to ARENA. */
void api_event_for(const struct api_sight *sight, struct model_event *e, struct arena *arena);

/* ---- idempotency.c -------------------------------------------------------------------------- */

/*
 * Looks at the Idempotency-Key. 0: go on (with a key, the command's reply fields are set);
 * 1: answered with the stored reply; negative errno with ERR: refuse.
 */
int call_idempotency(struct api_call *call, struct err *err);
/* Lets the key go; harmless without one. */
void call_release_key(struct api_call *call);

/* ---- stream.c ------------------------------------------------------------------------------- */

/* A stream in the list of those that are woken by new events. First member of its owner. */
struct api_stream {
    struct api *api;
    struct http_stream *http;
    struct api_stream *prev, *next;
};

/* Starts the thread that wakes streams, and ends it. 0 or a negative errno. */
int api_notifier_start(struct api *api);
void api_notifier_stop(struct api *api);
/* Registers S, whose http handle has just been made, and takes it out again (in free()). */
void api_stream_add(struct api *api, struct api_stream *s, struct http_stream *http);
void api_stream_remove(struct api_stream *s);

/*
 * An upgraded connection, watched by the same thread: when its guard says no, what FD is connected
 * to sees the end of the connection. First member of its owner.
 */
struct api_session {
    struct api *api;
    struct api_guard guard;
    int fd; /* a duplicate of the end that the relay has */
    struct api_session *prev, *next;
};

/* Registers S with a duplicate of FD; 0 or a negative errno. Takes it out and closes that. */
int api_session_add(struct api *api, struct api_session *s, int fd);
void api_session_remove(struct api_session *s);

/* ---- openapi.c, schemas.c ------------------------------------------------------------------- */

/* Writes the whole document. */
void api_openapi_write(struct json_writer *w);
/* The schemas by name, as JSON text; RET_COUNT entries. */
struct api_schema {
    const char *name, *json;
};
const struct api_schema *api_schemas(size_t *ret_count);

/* ---- dispatch.c ----------------------------------------------------------------------------- */

int64_t api_on_headers(void *ctx, struct http_request *r);
void api_on_request(void *ctx, struct http_request *r);

/* ---- handlers, by file ---------------------------------------------------------------------- */

/* server.c */
void handle_healthz(struct api_call *call);
void handle_version(struct api_call *call);
void handle_status(struct api_call *call);
void handle_openapi(struct api_call *call);
/* teams.c */
void handle_team_list(struct api_call *call);
void handle_team_get(struct api_call *call);
void handle_team_put(struct api_call *call);
void handle_team_delete(struct api_call *call);
/* users.c */
void handle_user_list(struct api_call *call);
void handle_user_get(struct api_call *call);
void handle_user_put(struct api_call *call);
void handle_user_delete(struct api_call *call);
/* tokens.c */
void handle_token_list(struct api_call *call);
void handle_token_create(struct api_call *call);
void handle_token_delete(struct api_call *call);
/* submit.c */
void handle_submit(struct api_call *call);
/* workload_list.c */
void handle_workload_list(struct api_call *call);
/* workloads.c */
void handle_workload_get(struct api_call *call);
void handle_workload_stop(struct api_call *call);
void handle_workload_suspend(struct api_call *call);
void handle_workload_resume(struct api_call *call);
void handle_workload_extend(struct api_call *call);
void handle_workload_explain(struct api_call *call);
void handle_workload_allocations(struct api_call *call);
/* logs.c */
void handle_workload_logs(struct api_call *call);
/* exec.c */
void handle_task_exec(struct api_call *call);
/* nodes.c */
void handle_node_list(struct api_call *call);
void handle_node_get(struct api_call *call);
void handle_node_drain(struct api_call *call);
void handle_node_undrain(struct api_call *call);
void handle_device_list(struct api_call *call);
/* maintenance.c */
void handle_node_maintenance(struct api_call *call);
void handle_node_maintenance_end(struct api_call *call);
/* usage.c */
void handle_usage(struct api_call *call);
/* metrics.c */
void handle_metrics(struct api_call *call);
/* history.c */
void handle_history(struct api_call *call);
/* events.c */
void handle_events(struct api_call *call);
void handle_workload_events(struct api_call *call);

#endif
