/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "core/convert.h"

void core_node_free(struct core_node *n)
{
    if (n == NULL)
        return;
    arena_done(&n->arena);
    free(n->json);
    free(n->readings);
    free(n);
}

/* What the engine says of it, and nothing of what core adds: equal text, equal machine. */
static char *node_json(const struct model_node *row)
{
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    struct model_node machine = *row;

    machine.id = 0;
    machine.state = MODEL_NODE_UP;
    machine.drained = false;
    json_writer_init(&w, &text);
    model_node_encode(&machine, &w);
    return strbuf_steal(&text);
}

/* Takes over a deep copy of ROW, made by way of its JSON. */
static int set_row(struct core_node *n, const struct model_node *row)
{
    struct arena arena = ARENA_INIT;
    struct model_node copy = {0};
    char *json = node_json(row);
    int r = model_node_decode(json, strlen(json), &arena, &copy, NULL);

    if (r < 0) {
        free(json);
        arena_done(&arena);
        return r;
    }
    copy.id = row->id;
    copy.state = row->state;
    copy.drained = row->drained;
    arena_done(&n->arena);
    free(n->json);
    n->arena = arena;
    n->row = copy;
    n->json = json;
    return 0;
}

static int row_to_sched(struct core *core, const struct model_node *row)
{
    const struct sched_node node = core_sched_node(row, &core->turn);

    core->dirty = true;
    return sched_node_set(core->sched, &node);
}

int core_node_to_sched(struct core *core, const struct core_node *n)
{
    return row_to_sched(core, &n->row);
}

struct core_node *core_node_add(struct core *core, const struct model_node *row)
{
    struct core_node *n = calloc(1, sizeof(*n));

    if (n == NULL)
        abort();
    if (set_row(n, row) < 0) {
        free(n);
        return NULL;
    }
    map_put(&core->nodes, n->row.id, n);
    if (row->id > core->last_id)
        core->last_id = row->id;
    return n;
}

/* Keys of node_names point into the row, so they are replaced together with it. */
static void name_node(struct core *core, struct core_node *n)
{
    map_put_str(&core->node_names, n->row.name, n);
}

/* One side of a change: what may change of itself, and all of it where the MACHINE did. */
static void encode_side(const struct model_node *n, bool machine, struct json_writer *w)
{
    if (n == NULL) {
        json_null(w);
        return;
    }
    json_begin_object(w);
    if (machine)
        model_node_encode_fields(n, w);
    else
        model_node_encode_state(n, w);
    json_end_object(w);
}

/* What a change says for whoever replays it. BEFORE is NULL for a new node. */
static const char *change_json(struct arena *arena, const struct model_node *before,
                               const struct model_node *after, bool machine)
{
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    const char *copy;

    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key(&w, "before");
    encode_side(before, machine, &w);
    json_key(&w, "after");
    encode_side(after, machine, &w);
    json_end_object(&w);
    copy = arena_strdup(arena, strbuf_str(&text));
    strbuf_done(&text);
    return copy;
}

/* DATA is a change_json(). */
static void record_node(struct core *core, const struct core_node *n, struct store_txn *txn,
                        const char *actor, const char *text, const char *data)
{
    struct model_node *row = arena_new(&txn->arena, struct model_node);

    if (model_node_decode(n->json, strlen(n->json), &txn->arena, row, NULL) < 0)
        return;
    row->id = n->row.id;
    row->state = n->row.state;
    row->drained = n->row.drained;
    row->window_from_ms = n->row.window_from_ms;
    row->window_until_ms = n->row.window_until_ms;
    core_journal_op(txn, &(struct store_op){.kind = STORE_PUT_NODE, .node = row});
    core_record_event(core, txn,
                      &(struct model_event){.type = MODEL_EVENT_NODE,
                                            .task = -1,
                                            .node = n->row.name,
                                            .actor = actor,
                                            .message = text,
                                            .data = data});
}

/* Its devices changed under tasks that hold them. What is known stays, and takes nothing new. */
static void drain_changed(struct core *core, struct core_node *n)
{
    log_error("node '%s' reports other devices while tasks hold the former ones: it is drained",
              n->row.name);
    struct model_node was = n->row;

    n->outdated = true;
    n->row.drained = true;
    (void)core_node_to_sched(core, n);
    record_node(core, n, core_journal_txn(core), NULL,
                "node drained: its devices changed while tasks hold them; start the server again "
                "when they have ended, then undrain it",
                change_json(&core->turn, &was, &n->row, false));
}

/* A report that says something new. */
static void take_report(struct core *core, struct core_node *n, const struct model_node *row)
{
    map_del_str(&core->node_names, n->row.name);
    if (set_row(n, row) < 0)
        log_error("node '%s' reports what cannot be kept", n->row.name);
    name_node(core, n);
}

void core_node_report(struct core *core, const struct model_node *report)
{
    struct core_node *n = map_get_str(&core->node_names, report->name);
    struct model_node row = *report;
    _cleanup_free_ char *json = NULL;
    const char *change;

    row.id = n ? n->row.id : ++core->last_id;
    row.drained = n && n->row.drained;
    row.window_from_ms = n ? n->row.window_from_ms : 0;
    row.window_until_ms = n ? n->row.window_until_ms : 0;
    json = node_json(&row);
    if (n && strcmp(json, n->json) == 0)
        n->outdated = false;
    if (n && strcmp(json, n->json) == 0 && n->row.state == row.state)
        return;
    if (row_to_sched(core, &row) == -EBUSY && n) {
        drain_changed(core, n);
        return;
    }
    /* Before the row that it is about goes. */
    change =
        change_json(&core->turn, n ? &n->row : NULL, &row, n == NULL || strcmp(json, n->json) != 0);
    if (n) {
        n->outdated = false;
        take_report(core, n, &row);
    } else if ((n = core_node_add(core, &row)) != NULL)
        name_node(core, n);
    else
        return;
    record_node(core, n, core_journal_txn(core), NULL,
                arena_printf(&core->turn, "node is %s with %d devices",
                             model_node_state_name(row.state), row.device_count),
                change);
}

static void apply_drain(struct core *core, struct core_entry *entry)
{
    struct core_command *c = entry->command;
    struct core_node *n = entry->staged;

    n->row.drained = c->flag;
    (void)core_node_to_sched(core, n);
}

int core_command_drain(struct core *core, struct core_command *c)
{
    struct core_node *n = map_get_str(&core->node_names, c->name);
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "drain nodes", &c->err);

    if (r < 0)
        return r;
    if (n == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "name", "see 'allot node list'",
                       "node '%s' does not exist", c->name);
    if (!c->flag && n->outdated)
        return err_set(&c->err, -EBUSY, ERR_CONFLICT, NULL,
                       "when nothing runs there any more start its server again, and undrain it "
                       "then",
                       "node '%s' has other devices than those that are known of it", c->name);
    entry = core_journal_command(core, c);
    entry->staged = n;
    entry->apply = apply_drain;
    {
        struct core_node future = *n;
        future.row.drained = c->flag;
        record_node(core, &future, &entry->txn, c->actor.name,
                    c->flag ? "node drained: it takes nothing new" : "node takes work again",
                    change_json(&core->turn, &n->row, &future.row, false));
    }
    return 0;
}

/* ---- maintenance ------------------------------------------------------------------------ */

static void apply_maintenance(struct core *core, struct core_entry *entry)
{
    struct core_command *c = entry->command;
    struct core_node *n = entry->staged;

    n->row.window_from_ms = c->window_from_ms;
    n->row.window_until_ms = c->window_until_ms;
    (void)core_node_to_sched(core, n);
}

static int check_window(struct core *core, const struct core_command *c, struct err *err)
{
    if (c->window_until_ms == 0)
        return 0;
    if (c->window_from_ms <= 0 || c->window_until_ms <= c->window_from_ms)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "until", "give a time after 'from'",
                       "the maintenance would end before it begins");
    if (c->window_until_ms > CLOCK_UTC_MAX_MS)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "until", "give a time before the year 10000",
                       "the maintenance would end too late to be written down");
    if (c->window_until_ms <= core->now_ms)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "until", "give a time to come",
                       "the maintenance would be over already");
    return 0;
}

static const char *window_text(struct core *core, const struct core_command *c)
{
    char from[CLOCK_TEXT_MAX], until[CLOCK_TEXT_MAX];

    if (c->window_until_ms == 0)
        return "no maintenance any more";
    clock_format_utc(c->window_from_ms, from);
    clock_format_utc(c->window_until_ms, until);
    return arena_printf(&core->turn, "maintenance from %s until %s", from, until);
}

int core_command_maintenance(struct core *core, struct core_command *c)
{
    struct core_node *n = map_get_str(&core->node_names, c->name);
    struct core_node future;
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "announce maintenance", &c->err);

    if (r < 0)
        return r;
    if (n == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "name", "see 'allot node list'",
                       "node '%s' does not exist", c->name);
    r = check_window(core, c, &c->err);
    if (r < 0)
        return r;
    entry = core_journal_command(core, c);
    entry->staged = n;
    entry->apply = apply_maintenance;
    future = *n;
    future.row.window_from_ms = c->window_from_ms;
    future.row.window_until_ms = c->window_until_ms;
    record_node(core, &future, &entry->txn, c->actor.name, window_text(core, c),
                change_json(&core->turn, &n->row, &future.row, false));
    return 0;
}
