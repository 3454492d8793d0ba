/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPU time by team over [from, to): allocated, busy, not known, and the rest, idle.
 * Milli-GPU-milliseconds are exact; the rest is derived, rounded down.
 */
#include "api/internal.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/qty.h"

#define DAY_MS (24 * 3600 * MS_PER_S)

struct usage_list {
    struct json_writer w;
    const char *const *teams; /* visible; NULL = all */
    int32_t count;
    const char *const *only; /* those asked for; NULL = all */
    int32_t only_count;
};

static int take_usage(void *arg, const struct store_usage_row *u)
{
    struct usage_list *l = arg;
    int64_t allocated_ms = u->allocated_milli_ms / 1000;
    int64_t busy_ms = u->busy_ns / NS_PER_MS;
    int64_t unknown_ms = u->unknown_ns / NS_PER_MS;
    int64_t idle_ms = allocated_ms > busy_ms + unknown_ms ? allocated_ms - busy_ms - unknown_ms : 0;

    if (!api_teams_have(l->only, l->only_count, u->team) ||
        !api_teams_have(l->teams, l->count, u->team))
        return 0;
    json_begin_object(&l->w);
    json_key_string(&l->w, "team", u->team);
    json_key_i64(&l->w, "allocated_milli_gpu_ms", u->allocated_milli_ms);
    json_key_i64(&l->w, "allocated_gpu_ms", allocated_ms);
    json_key_i64(&l->w, "busy_gpu_ms", busy_ms);
    json_key_i64(&l->w, "idle_gpu_ms", idle_ms);
    json_key_i64(&l->w, "unknown_gpu_ms", unknown_ms);
    json_key_i64(&l->w, "allocated_gpu_seconds", allocated_ms / MS_PER_S);
    json_key_i64(&l->w, "busy_gpu_seconds", busy_ms / MS_PER_S);
    json_key_i64(&l->w, "idle_gpu_seconds", idle_ms / MS_PER_S);
    json_key_i64(&l->w, "unknown_gpu_seconds", unknown_ms / MS_PER_S);
    json_key_i64(&l->w, "held_ms", u->gpu_ms);
    json_key_i64(&l->w, "cpu_milli_ms", u->cpu_milli_ms);
    json_key_i64(&l->w, "allocations", u->allocations);
    json_key_i64(&l->w, "open", u->open);
    json_end_object(&l->w);
    return 0;
}

static int read_window(struct api_call *call, int64_t now_ms, int64_t *ret_from, int64_t *ret_to,
                       struct err *err)
{
    int64_t to = now_ms, from;
    int r = call_param_time(call, "to", &to, err);

    from = to > DAY_MS ? to - DAY_MS : 0;
    if (r == 0)
        r = call_param_time(call, "from", &from, err);
    if (r == 0 && from >= to)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "from", "choose a time before 'to'",
                       "from is not before to");
    *ret_from = from;
    *ret_to = to;
    return r;
}

void handle_usage(struct api_call *call)
{
    const struct api_config *config = &call->api->config;
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    const char *team = call_param(call, "team");
    struct usage_list l = {0};
    int64_t now_ms = core_now_ms(config->core), from = 0, to = 0;
    struct err err = ERR_INIT;
    int r = read_window(call, now_ms, &from, &to, &err);

    if (r == 0)
        r = call_visible_teams(call, &l.teams, &l.count, &err);
    if (r == 0 && team)
        r = call_teams_below(call, team, &l.only, &l.only_count, &err);
    json_writer_init(&l.w, &body);
    json_begin_object(&l.w);
    json_key_time(&l.w, "from", from);
    json_key_time(&l.w, "to", to);
    json_key(&l.w, "teams");
    json_begin_array(&l.w);
    if (r == 0)
        r = config->store->usage(config->store_ctx, from, to, now_ms, take_usage, &l, &err);
    json_end_array(&l.w);
    json_end_object(&l.w);
    if (r < 0)
        call_fail(call, r, &err);
    else
        call_reply(call, 200, &body);
}
