/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: as a page of JSON, or as server-sent events (WHATWG HTML, section 9.2).
 *
 * A stream holds the number of the last event it has sent and reads the store from there
 * whenever it is woken: it can resume anywhere, and a slow client costs no queue.
 */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/qty.h"

#define HEARTBEAT_MS 15000
#define TICK_MS 5000 /* to look whether the token still holds */
#define BATCH 64     /* events read at once */

/* ---- filters -------------------------------------------------------------------------------- */

static int check_team(struct api_call *call, const char *team, struct err *err)
{
    int r = call_sees_team(call, team, err);

    if (r == 0)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "see 'allot team list'",
                       "there is no team '%.100s'", team);
    return r < 0 ? r : 0;
}

static int read_filter(struct api_call *call, struct store_event_filter *f, struct err *err)
{
    const char *team = call_param(call, "team"), *workload = call_param(call, "workload");
    struct model_workload w;
    int r;

    if (team) {
        r = check_team(call, team, err);
        if (r == 0)
            r = call_teams_asked(call, team, &f->teams, &f->team_count, err);
    } else {
        r = call_visible_teams(call, &f->teams, &f->team_count, err);
    }
    if (r == 0 && workload) {
        r = call_find_workload(call, workload, &w, err);
        if (r == 0)
            f->workload = w.id;
    }
    return r;
}

/* ---- pages ---------------------------------------------------------------------------------- */

struct event_page {
    struct json_writer w;
    struct api_sight sight;
    struct arena *arena;
    uint64_t last;
};

static int take_event(void *arg, const struct model_event *e)
{
    struct event_page *p = arg;
    struct model_event seen = *e;

    api_event_for(&p->sight, &seen, p->arena);
    model_event_encode(&seen, &p->w);
    p->last = e->seq;
    return 0;
}

/* Without "after" the newest, in order. */
static void reply_page(struct api_call *call, struct store_event_filter *f)
{
    const struct api_config *config = &call->api->config;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct event_page p = {.arena = call_arena(call)};
    int64_t after = 0, limit = API_LIST_DEFAULT;
    struct err err = ERR_INIT;
    int r = call_param_int(call, "after", 0, INT64_MAX, &after, &err);

    if (r == 0)
        r = call_param_int(call, "limit", 1, API_LIST_MAX, &limit, &err);
    if (r == 0)
        r = call_sight(call, &p.sight, &err);
    f->after_seq = p.last = (uint64_t)after;
    f->limit = (int32_t)limit;
    f->newest = call_param(call, "after") == NULL;
    json_writer_init(&p.w, &body);
    json_begin_object(&p.w);
    json_key(&p.w, "events");
    json_begin_array(&p.w);
    if (r == 0)
        r = config->store->list_events(config->store_ctx, f, take_event, &p, &err);
    json_end_array(&p.w);
    json_key_i64(&p.w, "next", (int64_t)p.last);
    json_end_object(&p.w);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}

void handle_workload_events(struct api_call *call)
{
    struct store_event_filter filter = {0};
    struct model_workload w;
    struct err err = ERR_INIT;
    int r = call_find_workload(call, call->args[0], &w, &err);

    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    filter.workload = w.id;
    reply_page(call, &filter);
}

/* ---- streams -------------------------------------------------------------------------------- */

struct event_stream {
    struct api_stream base; /* first */
    struct api *api;
    struct api_guard guard;
    struct store_event_filter filter; /* strings in the arena, as of sight */
    struct api_sight sight;
    struct arena arena, scratch;
    struct strbuf text; /* not sent yet from SENT on */
    size_t sent;
    int64_t beat_ms; /* when the next heartbeat is due */
};

static int take_frame(void *arg, const struct model_event *e)
{
    struct event_stream *s = arg;
    struct model_event seen = *e;
    struct json_writer w;

    arena_reset(&s->scratch);
    api_event_for(&s->sight, &seen, &s->scratch);
    strbuf_adds(&s->text, "id: ");
    strbuf_add_i64(&s->text, (int64_t)e->seq);
    strbuf_adds(&s->text, "\nevent: ");
    strbuf_adds(&s->text, e->type);
    strbuf_adds(&s->text, "\ndata: ");
    json_writer_init(&w, &s->text); /* one line: the writer escapes line breaks */
    model_event_encode(&seen, &w);
    strbuf_adds(&s->text, "\n\n");
    s->filter.after_seq = e->seq;
    return 0;
}

/* Fills s->text with what is new. */
static int refill(struct event_stream *s)
{
    const struct api_config *config = &s->api->config;
    uint64_t committed = atomic_load(&s->api->committed);
    int64_t now_ms = clock_boot_ms();
    int r = 0;

    strbuf_truncate(&s->text, 0);
    s->sent = 0;
    if (committed > s->filter.after_seq)
        r = config->store->list_events(config->store_ctx, &s->filter, take_frame, s, NULL);
    if (r < 0)
        return r;
    if (s->text.len == 0 && committed > s->filter.after_seq)
        s->filter.after_seq = committed; /* none of them is for us */
    if (s->text.len == 0 && now_ms >= s->beat_ms)
        strbuf_adds(&s->text, ": heartbeat\n\n");
    if (s->text.len > 0)
        s->beat_ms = now_ms + HEARTBEAT_MS;
    return 0;
}

static ssize_t stream_read(void *user, char *data, size_t size)
{
    struct event_stream *s = user;
    size_t n = s->text.len - s->sent;

    if (n == 0 && !api_guard_check(&s->guard, s->api))
        return HTTP_STREAM_END;
    if (n == 0 && refill(s) < 0)
        return HTTP_STREAM_ABORT; /* the client comes back with Last-Event-ID */
    n = s->text.len - s->sent;
    if (n > size)
        n = size;
    if (n == 0)
        return HTTP_STREAM_WAIT;
    memcpy(data, s->text.data + s->sent, n);
    s->sent += n;
    return (ssize_t)n;
}

static void stream_free(void *user)
{
    struct event_stream *s = user;

    api_stream_remove(&s->base);
    strbuf_done(&s->text);
    arena_done(&s->arena);
    arena_done(&s->scratch);
    free(s);
}

/* Where to begin: Last-Event-ID, "after", or now. */
static int read_start(struct api_call *call, uint64_t *ret_after, struct err *err)
{
    const char *header = http_request_header(call->http, "Last-Event-ID");
    int64_t after = (int64_t)atomic_load(&call->api->committed);

    if (header && qty_parse_int(header, &after, NULL) < 0)
        return err_set(err, -EINVAL, ERR_INVALID, "Last-Event-ID", "send the id as it came",
                       "Last-Event-ID '%.40s' is not a number", header);
    *ret_after = (uint64_t)after;
    if (header)
        return 0;
    if (call_param_int(call, "after", 0, INT64_MAX, &after, err) < 0)
        return -EINVAL;
    *ret_after = (uint64_t)after;
    return 0;
}

/* The guard watches over all that the caller sees: the filter shows no more than that. */
static void reply_stream(struct api_call *call, struct store_event_filter *f)
{
    struct http_stream_source source = {stream_read, stream_free, NULL};
    struct api_sight sight;
    struct http_stream *http;
    struct event_stream *s;
    struct err err = ERR_INIT;
    int r = read_start(call, &f->after_seq, &err);

    if (r == 0)
        r = call_sight(call, &sight, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    s = calloc(1, sizeof(*s));
    if (s == NULL)
        abort();
    s->api = call->api;
    s->filter = *f;
    s->filter.limit = BATCH;
    s->filter.teams = api_teams_copy(f->teams, f->team_count, &s->arena);
    s->sight.teams = api_teams_copy(sight.teams, sight.count, &s->arena);
    s->sight.count = sight.count;
    api_guard_init(&s->guard, call, s->sight.teams, s->sight.count);
    strbuf_adds(&s->text, "retry: 1000\n\n");
    s->beat_ms = clock_boot_ms() + HEARTBEAT_MS;
    source.user = s;
    http_reply_stream(call->http, "text/event-stream", &source, TICK_MS, &http);
    api_stream_add(call->api, &s->base, http);
}

/* A stream unless a page is what the client can only mean. */
static bool wants_page(struct api_call *call)
{
    const char *accept = http_request_header(call->http, "Accept");

    if (accept && strcasestr(accept, "text/event-stream"))
        return false;
    if (accept && strcasestr(accept, "application/json"))
        return true;
    return call_param(call, "after") || call_param(call, "limit");
}

void handle_events(struct api_call *call)
{
    struct store_event_filter filter = {0};
    struct err err = ERR_INIT;
    int r = read_filter(call, &filter, &err);

    if (r < 0)
        call_fail(call, r, &err);
    else if (wants_page(call))
        reply_page(call, &filter);
    else
        reply_stream(call, &filter);
}
