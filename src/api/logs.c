/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of one attempt of one task, as plain text, from an offset or the last lines, followed on
 * request until the attempt has ended and all of it was sent.
 */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TICK_MS 100    /* how often a followed log is looked at */
#define LOOK_MS 200    /* at least between two looks at the task's state */
#define TAIL_MAX 10000 /* lines */
#define SCAN_BYTES 65536

struct log_stream {
    struct api *api;
    struct api_guard guard;
    struct arena arena; /* what the guard looks at */
    const char *team;
    char intent[MODEL_INTENT_MAX];
    uint64_t workload;
    int32_t task, attempt;
    int64_t offset;
    bool follow;
    bool ended;    /* nothing more will be written */
    uint64_t seen; /* newest event when the task was looked at */
    int64_t look_ms;
};

/* Has the attempt ended? A later attempt, or a final state; an ended workload ends all. */
static bool attempt_ended(struct log_stream *l)
{
    struct api *api = l->api;
    struct arena arena = ARENA_INIT;
    struct model_workload w;
    struct api_task t;
    bool ended = false;

    if (api_find_task(api, l->workload, l->task, &t, NULL) < 0)
        return false;
    if (t.attempt > l->attempt || model_task_state_is_final(t.state))
        ended = true;
    else if (t.state == MODEL_TASK_PENDING)
        /* It may never run: cancelled while it waited. */
        ended = api->config.store->get_workload(api->config.store_ctx, l->workload, &arena, &w,
                                                NULL) == 0 &&
                model_workload_state_is_final(w.state);
    arena_done(&arena);
    return ended;
}

/* The state is looked at only after something happened, and not too often. */
static void look(struct log_stream *l)
{
    uint64_t committed = atomic_load(&l->api->committed);
    int64_t now_ms = clock_boot_ms();

    if (l->ended || now_ms < l->look_ms || (committed == l->seen && l->look_ms != 0))
        return;
    l->ended = attempt_ended(l);
    l->seen = committed;
    l->look_ms = now_ms + LOOK_MS;
}

static ssize_t log_read(void *user, char *data, size_t size)
{
    struct log_stream *l = user;
    const struct api_config *config = &l->api->config;
    bool ended = !l->follow || l->ended; /* before the read: what came until then is read */
    int64_t at = l->offset;
    size_t n = 0;
    int r;

    r = config->engine->read_log(config->engine_ctx, l->intent, l->offset, data, size, &at, &n);
    if (r < 0 && r != -ENOENT)
        return HTTP_STREAM_ABORT;
    if (r == 0 && n > 0) {
        l->offset = at + (int64_t)n;
        return (ssize_t)n;
    }
    if (ended || !api_guard_check(&l->guard, l->api))
        return HTTP_STREAM_END;
    look(l);
    /* Once more if it has just ended: the last lines may have come in between. */
    return l->ended ? log_read(user, data, size) : HTTP_STREAM_WAIT;
}

/* Offset at which the last LINES lines begin; with 0 the end. */
static int64_t tail_offset(struct log_stream *l, int64_t lines)
{
    const struct api_config *config = &l->api->config;
    int64_t *starts = calloc((size_t)lines + 1, sizeof(*starts));
    char *part = malloc(SCAN_BYTES);
    int64_t offset = 0, at = 0, count = 0;
    bool at_start = true;
    size_t n = 0;

    if (starts == NULL || part == NULL)
        abort();
    while (config->engine->read_log(config->engine_ctx, l->intent, offset, part, SCAN_BYTES, &at,
                                    &n) == 0 &&
           n > 0) {
        for (size_t i = 0; i < n; i++) {
            if (at_start && lines > 0)
                starts[count++ % lines] = at + (int64_t)i;
            at_start = part[i] == '\n';
        }
        offset = at + (int64_t)n;
    }
    if (lines > 0 && count >= lines)
        offset = starts[count % lines];
    else if (count > 0)
        offset = starts[0];
    free(starts);
    free(part);
    return offset;
}

static bool has_log(struct api *api, const char *intent)
{
    int64_t at;
    size_t n;
    char byte;

    return api->config.engine->read_log(api->config.engine_ctx, intent, 0, &byte, 1, &at, &n) == 0;
}

struct log_wish {
    int64_t task, attempt, offset, tail;
    bool follow;
};

static int read_wish(struct api_call *call, struct log_wish *w, struct err *err)
{
    int r;

    *w = (struct log_wish){.attempt = -1, .tail = -1};
    r = call_param_int(call, "task", 0, MODEL_TASKS_MAX - 1, &w->task, err);
    if (r == 0)
        r = call_param_int(call, "attempt", 0, INT32_MAX, &w->attempt, err);
    if (r == 0)
        r = call_param_int(call, "offset", 0, INT64_MAX, &w->offset, err);
    if (r == 0)
        r = call_param_int(call, "tail", 0, TAIL_MAX, &w->tail, err);
    if (r == 0)
        r = call_param_bool(call, "follow", &w->follow, err);
    return r;
}

/* Without a word about it: the attempt under way, or the last one that has a log. */
static int32_t choose_attempt(struct api *api, uint64_t workload, const struct api_task *t,
                              bool follow)
{
    char intent[MODEL_INTENT_MAX];

    model_intent_format(workload, t->index, t->attempt, intent);
    if (!follow && t->attempt > 0 && t->state == MODEL_TASK_PENDING && !has_log(api, intent))
        return t->attempt - 1;
    return t->attempt;
}

static int open_log(struct api_call *call, const struct log_wish *wish, struct log_stream *l,
                    struct err *err)
{
    struct model_workload w;
    struct api_task t;
    int r = call_find_workload(call, call->args[0], &w, err);

    if (r == 0 && wish->task >= w.shape->task_count)
        r = err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "task", NULL,
                    "task %lld does not exist: workload %llu has %d", (long long)wish->task,
                    (unsigned long long)w.id, w.shape->task_count);
    if (r == 0)
        r = api_find_task(call->api, w.id, (int32_t)wish->task, &t, err);
    if (r < 0)
        return r;
    l->api = call->api;
    l->team = arena_strdup(&l->arena, w.team);
    api_guard_init(&l->guard, call, &l->team, 1);
    l->workload = w.id;
    l->task = t.index;
    l->attempt = wish->attempt >= 0 ? (int32_t)wish->attempt
                                    : choose_attempt(call->api, w.id, &t, wish->follow);
    l->follow = wish->follow;
    l->offset = wish->offset;
    model_intent_format(l->workload, l->task, l->attempt, l->intent);
    if (wish->attempt > t.attempt)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL,
                       "task %d has not come to attempt %d", l->task, l->attempt);
    return 0;
}

static void log_free(void *user)
{
    struct log_stream *l = user;

    arena_done(&l->arena);
    free(l);
}

/* Where the data will begin: later than asked if older parts were rotated away. */
static void find_begin(struct log_stream *l)
{
    const struct api_config *config = &l->api->config;
    int64_t at;
    size_t n;
    char byte;

    if (config->engine->read_log(config->engine_ctx, l->intent, l->offset, &byte, 1, &at, &n) ==
            0 &&
        n > 0)
        l->offset = at;
}

void handle_workload_logs(struct api_call *call)
{
    struct http_stream_source source = {log_read, log_free, NULL};
    struct log_stream *l = calloc(1, sizeof(*l));
    struct log_wish wish;
    struct err err = ERR_INIT;
    int r;

    if (l == NULL)
        abort();
    r = read_wish(call, &wish, &err);
    if (r == 0)
        r = open_log(call, &wish, l, &err);
    if (r < 0) {
        log_free(l);
        call_fail(call, r, &err);
        return;
    }
    if (wish.tail >= 0)
        l->offset = tail_offset(l, wish.tail);
    find_begin(l);
    source.user = l;
    http_reply_header(call->http, "X-Log-Offset",
                      arena_printf(call_arena(call), "%lld", (long long)l->offset));
    http_reply_header(call->http, "X-Log-Attempt",
                      arena_printf(call_arena(call), "%d", l->attempt));
    http_reply_stream(call->http, "text/plain; charset=utf-8", &source, TICK_MS, NULL);
}
