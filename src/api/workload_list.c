/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/workloads: filters and pages. */
#include "api/internal.h"

#include <errno.h>
#include <string.h>

#include "base/vec.h"
#include "model/workload.h"

/* A comma-separated parameter into a mask; PARSE gives the bit of one word. */
static int read_mask(struct api_call *call, const char *name,
                     int (*parse)(const char *word, uint32_t *ret_bits), uint32_t *ret_mask,
                     struct err *err)
{
    const char *text = call_param(call, name);
    uint32_t mask = 0;

    while (text && *text) {
        size_t n = strcspn(text, ",");
        const char *word = arena_strndup(call_arena(call), text, n);
        uint32_t bits = 0;

        if (n > 0 && parse(word, &bits) < 0)
            return err_set(err, -EINVAL, ERR_INVALID, name,
                           "GET /v1/openapi.json lists the words; several are joined by commas",
                           "%s '%.40s' is not known", name, word);
        mask |= bits;
        text += n + (text[n] == ',');
    }
    *ret_mask = mask;
    return 0;
}

static int state_bits(const char *word, uint32_t *ret)
{
    enum model_workload_state v;

    if (strcmp(word, "live") == 0) {
        *ret = 1u << MODEL_WORKLOAD_PENDING | 1u << MODEL_WORKLOAD_RUNNING |
               1u << MODEL_WORKLOAD_SUSPENDED | 1u << MODEL_WORKLOAD_STOPPING;
        return 0;
    }
    if (model_workload_state_parse(word, &v) < 0)
        return -EINVAL;
    *ret = 1u << v;
    return 0;
}

static int kind_bits(const char *word, uint32_t *ret)
{
    enum model_kind v;

    if (model_kind_parse(word, &v) < 0)
        return -EINVAL;
    *ret = 1u << v;
    return 0;
}

static int class_bits(const char *word, uint32_t *ret)
{
    enum model_class v;

    if (model_class_parse(word, &v) < 0)
        return -EINVAL;
    *ret = 1u << v;
    return 0;
}

/* One team is a path of its own in the store. */
static int read_teams(struct api_call *call, struct store_workload_filter *f, struct err *err)
{
    const char *team = call_param(call, "team");
    int r = team ? call_teams_asked(call, team, &f->teams, &f->team_count, err)
                 : call_visible_teams(call, &f->teams, &f->team_count, err);

    if (r == 0 && team && f->team_count == 1)
        f->team = f->teams[0];
    return r;
}

static int read_filter(struct api_call *call, struct store_workload_filter *f, struct err *err)
{
    int64_t limit = API_LIST_DEFAULT, before = 0;
    int r;

    f->owner = call_param(call, "owner");
    f->name = call_param(call, "name");
    r = read_mask(call, "state", state_bits, &f->states, err);
    if (r == 0)
        r = read_mask(call, "kind", kind_bits, &f->kinds, err);
    if (r == 0)
        r = read_mask(call, "class", class_bits, &f->classes, err);
    if (r == 0)
        r = call_param_int(call, "limit", 1, API_LIST_MAX, &limit, err);
    if (r == 0)
        r = call_param_int(call, "before", 1, INT64_MAX, &before, err);
    if (r == 0)
        r = read_teams(call, f, err);
    f->limit = (int32_t)limit;
    f->before_id = (uint64_t)before;
    return r;
}

/*
 * Rows are encoded as the store hands them over, each without its closing brace: why it waits is
 * known only when core has answered, and rows do not outlive the walk.
 */
struct page {
    struct strbuf text;
    VEC(size_t) ends; /* of each row in text */
    VEC(uint64_t) ids;
    bool live; /* one at least waits or runs: core knows more of it */
    int32_t limit;
};

static int take_row(void *arg, const struct store_workload_row *row)
{
    struct page *p = arg;
    struct json_writer w;

    json_writer_init(&w, &p->text);
    json_begin_object(&w);
    model_workload_encode_fields(row->workload, &w);
    vec_push(&p->ends, p->text.len);
    vec_push(&p->ids, row->workload->id);
    p->live |= !model_workload_state_is_final(row->workload->state);
    return 0;
}

static void add_live(struct strbuf *out, const struct core_command *c, size_t i)
{
    /* A word of the scheduler, which needs no escaping. */
    if (c->ret_reasons && c->ret_reasons[i])
        strbuf_addf(out, ",\"reason\":\"%s\",\"position\":%u", c->ret_reasons[i],
                    c->ret_positions[i]);
    if (c->ret_stopping && c->ret_stopping[i] > 0)
        strbuf_addf(out, ",\"stopping_tasks\":%d", c->ret_stopping[i]);
}

static void reply_page(struct api_call *call)
{
    const struct page *p = call->data;
    struct strbuf body = STRBUF_INIT;
    size_t begin = 0;

    strbuf_reserve(&body, p->text.len + p->ends.len * 48 + 64);
    strbuf_adds(&body, "{\"workloads\":[");
    for (size_t i = 0; i < p->ends.len; i++) {
        if (i > 0)
            strbuf_addc(&body, ',');
        strbuf_add(&body, p->text.data + begin, p->ends.items[i] - begin);
        add_live(&body, &call->command, i);
        strbuf_addc(&body, '}');
        begin = p->ends.items[i];
    }
    strbuf_addc(&body, ']');
    if (p->ids.len == (size_t)p->limit)
        strbuf_addf(&body, ",\"next\":%llu", (unsigned long long)p->ids.items[p->ids.len - 1]);
    strbuf_addc(&body, '}');
    call_reply(call, 200, &body);
}

static void page_free(struct api_call *call)
{
    struct page *p = call->data;

    strbuf_done(&p->text);
    vec_done(&p->ends);
    vec_done(&p->ids);
}

void handle_workload_list(struct api_call *call)
{
    const struct api_config *config = &call->api->config;
    struct store_workload_filter filter = {0};
    struct page *p = arena_new(call_arena(call), struct page);
    struct err err = ERR_INIT;
    int r = read_filter(call, &filter, &err);

    call->data = p;
    call->cleanup = page_free;
    p->limit = filter.limit;
    if (r == 0)
        r = config->store->list_workloads(config->store_ctx, &filter, take_row, p, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    if (!p->live) {
        reply_page(call);
        return;
    }
    call->command.ids = p->ids.items;
    call->command.id_count = p->ids.len;
    call_submit(call, CORE_EXPLAIN_BRIEF, reply_page);
}
