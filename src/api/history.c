/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recorded history as a stream of lines, for `allot sim whatif` and `allot quota suggest`.
 *
 * It is about all teams, so it is for administrators and for those who see every team. Each fill
 * of the buffer is one short read of the store; nothing is held between them, however slow the
 * client is. An answer that cannot be completed is broken off, and its last line is missing.
 */
#include "api/internal.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define TICK_MS 5000
#define STREAMS_MAX 4 /* at one time: each piece of one takes an HTTP thread */

struct history_stream {
    struct api *api;
    struct api_guard guard;
    struct arena arena; /* of the guard's teams */
    struct store_history_at at;
    struct strbuf text; /* not sent yet from SENT on */
    size_t sent;
    bool complete;
};

static int refill(struct history_stream *s)
{
    const struct api_config *config = &s->api->config;
    int r = 1;

    s->sent = 0;
    strbuf_truncate(&s->text, 0);
    while (r > 0 && s->text.len == 0) /* a piece may hold nothing */
        r = config->store->history(config->store_ctx, &s->at, &s->text, NULL);
    s->complete = r == 0;
    return r;
}

static ssize_t stream_read(void *user, char *data, size_t size)
{
    struct history_stream *s = user;
    size_t n = s->text.len - s->sent;

    if (n == 0 && s->complete)
        return HTTP_STREAM_END;
    if (n == 0 && (!api_guard_check(&s->guard, s->api) || refill(s) < 0))
        return HTTP_STREAM_ABORT;
    n = s->text.len - s->sent;
    if (n > size)
        n = size;
    memcpy(data, s->text.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

static void stream_free(void *user)
{
    struct history_stream *s = user;

    atomic_fetch_sub(&s->api->histories, 1);
    strbuf_done(&s->text);
    arena_done(&s->arena);
    free(s);
}

static int count_team(void *arg, const struct model_team *team)
{
    (void)team;
    ++*(int32_t *)arg;
    return 0;
}

/* RET_TEAMS as call_visible_teams() gives them, if those are all there are. */
static int check_access(struct api_call *call, const char *const **ret_teams, int32_t *ret_count,
                        struct err *err)
{
    const struct api_config *config = &call->api->config;
    int32_t all = 0;
    int r = call_visible_teams(call, ret_teams, ret_count, err);

    if (r == 0 && *ret_teams)
        r = config->store->each_team(config->store_ctx, count_team, &all, err);
    if (r < 0 || *ret_teams == NULL || (*ret_count == all && all > 0))
        return r;
    return err_set(err, -EACCES, ERR_FORBIDDEN, NULL,
                   "ask an administrator for it, or to be put into the teams at the top",
                   "the history is about all teams and user '%.100s' does not see them all",
                   call->user.name);
}

void handle_history(struct api_call *call)
{
    struct http_stream_source source = {stream_read, stream_free, NULL};
    const char *const *teams;
    struct history_stream *s;
    struct err err = ERR_INIT;
    int32_t count;
    int r = check_access(call, &teams, &count, &err);

    if (r == 0 && atomic_fetch_add(&call->api->histories, 1) >= STREAMS_MAX) {
        atomic_fetch_sub(&call->api->histories, 1);
        r = err_set(&err, -EAGAIN, ERR_UNAVAILABLE, NULL, "ask again shortly",
                    "%d histories are being read, which is as many as are served at once",
                    STREAMS_MAX);
    }
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->api = call->api;
    api_guard_init(&s->guard, call, api_teams_copy(teams, count, &s->arena), count);
    source.user = s;
    http_reply_stream(call->http, "application/x-ndjson", &source, TICK_MS, NULL);
}
