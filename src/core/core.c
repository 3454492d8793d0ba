/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life and loop. One turn: take every message, apply it, let the scheduler decide if anything
 * changed, hand the journal's next group to the store.
 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

/* The longest sleep, so that a clock port that is set forward is noticed. */
#define IDLE_MS 1000

#define META_BOOT "boot_id"
#define META_OFFSET "clock_offset_ms"

static bool limit_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct core_workload *x = heap_entry(a, struct core_workload, timer);
    const struct core_workload *y = heap_entry(b, struct core_workload, timer);

    return x->limit_at_ms != y->limit_at_ms ? x->limit_at_ms < y->limit_at_ms : x->id < y->id;
}

const char *core_intern(struct core *core, const char *text)
{
    const char *known = map_get_str(&core->interned, text);

    if (known)
        return known;
    known = arena_strdup(&core->strings, text);
    map_put_str(&core->interned, known, (void *)known);
    return known;
}

int64_t core_timeline(struct core *core, int64_t boot_ms)
{
    return boot_ms + atomic_load(&core->offset_ms);
}

int64_t core_now_ms(struct core *core)
{
    return core_timeline(core, core->ports.clock->boot_ms(core->ports.clock_ctx));
}

/* ---- the engine's way up ---------------------------------------------------------------- */

static void host_event(void *host, const struct engine_event *event)
{
    struct core *core = host;
    struct core_message *m = core_message_new(MESSAGE_ENGINE);

    m->event = *event;
    m->event.intent = arena_strdup(&m->arena, event->intent);
    m->event.message = arena_strdup(&m->arena, event->message);
    m->event.node_name = arena_strdup(&m->arena, event->node_name);
    m->event.readings = arena_memdup(&m->arena, event->readings,
                                     sizeof(*event->readings) * (size_t)event->reading_count);
    if (event->node) {
        struct strbuf text = STRBUF_INIT;
        struct json_writer w;
        struct model_node *node = arena_new(&m->arena, struct model_node);

        json_writer_init(&w, &text);
        model_node_encode(event->node, &w);
        if (model_node_decode(strbuf_str(&text), text.len, &m->arena, node, NULL) < 0) {
            log_error("the engine reported a node that cannot be read: %s", strbuf_str(&text));
            strbuf_done(&text);
            core_message_free(m);
            return;
        }
        node->state = event->node->state;
        m->event.node = node;
        strbuf_done(&text);
    }
    core_queue_push(&core->queue, m);
}

static int host_load_launch(void *host, uint64_t workload, struct arena *arena,
                            const struct model_launch **ret_launch, struct err *err)
{
    struct core *core = host;
    struct model_workload w = {0};
    int r = core->ports.store->get_workload(core->ports.store_ctx, workload, arena, &w, err);

    if (r < 0)
        return r;
    *ret_launch = w.launch;
    return 0;
}

struct engine_host core_engine_host(struct core *core)
{
    return (struct engine_host){host_event, host_load_launch, core};
}

/* ---- commands --------------------------------------------------------------------------- */

struct command_rule {
    int (*run)(struct core *core, struct core_command *c);
    bool writes;  /* refused while the store fails */
    bool barrier; /* others and reports of nodes wait until it is applied */
};

static const struct command_rule rules[] = {
    [CORE_TEAM_PUT] = {core_command_team_put, true, true},
    [CORE_TEAM_DELETE] = {core_command_team_delete, true, true},
    [CORE_WORKLOADS_SUBMIT] = {core_command_submit, true, false},
    [CORE_WORKLOADS_DRY] = {core_command_submit_dry, true, false},
    [CORE_WORKLOAD_STOP] = {core_command_stop, true, false},
    [CORE_WORKLOAD_SUSPEND] = {core_command_suspend, true, false},
    [CORE_WORKLOAD_RESUME] = {core_command_resume, true, false},
    [CORE_WORKLOAD_EXTEND] = {core_command_extend, true, false},
    [CORE_EXPLAIN] = {core_command_explain, false, false},
    [CORE_EXPLAIN_BRIEF] = {core_command_explain_brief, false, false},
    [CORE_NODE_DRAIN] = {core_command_drain, true, true},
    [CORE_NODE_MAINTENANCE] = {core_command_maintenance, true, true},
    [CORE_USER_PUT] = {core_command_user_put, true, true},
    [CORE_USER_DELETE] = {core_command_user_delete, true, true},
    [CORE_TOKEN_CREATE] = {core_command_token_create, true, true},
    [CORE_TOKEN_DELETE] = {core_command_token_delete, true, false},
    [CORE_TEAM_USAGE] = {core_command_team_usage, false, false},
    [CORE_METRICS] = {core_command_metrics, false, false},
    [CORE_STATUS] = {core_command_status, false, false},
};

void core_command_finish(struct core_command *c, int status)
{
    c->status = status;
    c->done(c);
}

static int store_refuses(struct core *core, struct core_command *c)
{
    const struct core_journal *j = &core->journal;

    return err_set(&c->err, j->err.errnum ? j->err.errnum : -EIO, ERR_UNAVAILABLE, NULL,
                   j->err.remedy[0] ? j->err.remedy : "free disk space and try again",
                   "the store refuses writes: %s", j->err.text);
}

static void run_command(struct core *core, struct core_command *c)
{
    const struct command_rule *rule = &rules[c->kind];
    int r;

    if (rule->writes && core->journal.failing)
        r = store_refuses(core, c);
    else
        r = rule->run(core, c);
    if (r < 0)
        core_command_finish(c, r);
    else if (rule->barrier)
        core->barrier = c;
}

static void wait_behind_barrier(struct core *core, struct core_message *m)
{
    m->next = NULL;
    if (core->last_waiting)
        core->last_waiting->next = m;
    else
        core->waiting = m;
    core->last_waiting = m;
}

/* What changes rows that the structural command under way is about to write as it saw them. */
static bool waits_for_barrier(const struct core *core, const struct core_message *m)
{
    if (core->barrier == NULL)
        return false;
    if (m->kind == MESSAGE_COMMAND)
        return rules[m->command->kind].writes;
    return m->kind == MESSAGE_ENGINE && m->event.kind == ENGINE_NODE;
}

static void handle(struct core *core, struct core_message *m)
{
    if (waits_for_barrier(core, m)) {
        wait_behind_barrier(core, m);
        return;
    }
    switch (m->kind) {
    case MESSAGE_COMMAND:
        run_command(core, m->command);
        break;
    case MESSAGE_ENGINE:
        core_report_handle(core, &m->event);
        break;
    case MESSAGE_COMMITTED:
        core_journal_committed(core);
        break;
    case MESSAGE_STOP:
        core->stopping = true;
        break;
    }
    core_message_free(m);
}

/* After a commit: is the structural command through? Then the others may go on. */
static void lift_barrier(struct core *core)
{
    while (core->barrier && core->barrier_done) {
        core->barrier = NULL;
        core->barrier_done = false;
        while (core->waiting && core->barrier == NULL) {
            struct core_message *m = core->waiting;
            core->waiting = m->next;
            if (core->waiting == NULL)
                core->last_waiting = NULL;
            handle(core, m);
        }
    }
}

void core_submit(struct core *core, struct core_command *command)
{
    struct core_message *m = core_message_new(MESSAGE_COMMAND);

    m->command = command;
    core_queue_push(&core->queue, m);
}

/* ---- the loop --------------------------------------------------------------------------- */

static void read_clock(struct core *core)
{
    int64_t now = core_now_ms(core);

    if (now > core->now_ms)
        core->now_ms = now;
}

/* When the next turn is due although nothing comes in. */
static int64_t next_turn_ms(struct core *core)
{
    int64_t next = core->now_ms + IDLE_MS;
    struct heap_node *limit = heap_peek(&core->limits);

    if (limit && heap_entry(limit, struct core_workload, timer)->limit_at_ms < next)
        next = heap_entry(limit, struct core_workload, timer)->limit_at_ms;
    if (core->reconciled && !core->journal.failing && sched_next_ms(core->sched) < next)
        next = sched_next_ms(core->sched);
    if (core->journal.failing && core->journal.retry_at_ms < next)
        next = core->journal.retry_at_ms;
    return next;
}

static int64_t sleep_ms(struct core *core)
{
    int64_t next = next_turn_ms(core);

    return next > core->now_ms ? next - core->now_ms : 0;
}

static void turn(struct core *core, struct core_message *messages)
{
    read_clock(core);
    while (messages) {
        struct core_message *m = messages;
        messages = m->next;
        handle(core, m);
        lift_barrier(core);
    }
    core_workload_check_limits(core);
    if (core->reconciled && !core->journal.failing &&
        (core->dirty || sched_next_ms(core->sched) <= core->now_ms))
        core_decide(core);
    core_past_save(core);
    core_journal_flush(core);
    arena_reset(&core->turn);
}

static const struct sched_config *scheduler_config(const struct core *core, struct sched_config *c)
{
    sched_config_default(c);
    if (core->config.hold_ms)
        c->hold_ms = core->config.hold_ms;
    if (core->config.stale_gang_ms)
        c->stale_gang_ms = core->config.stale_gang_ms;
    c->min_run_ms = core->config.min_run_ms;
    if (core->config.moves_max != 0)
        c->moves_max = core->config.moves_max > 0 ? (uint32_t)core->config.moves_max : 0;
    c->past_half_life_ms = core->config.past_half_life_ms;
    if (core->config.window_lead_ms)
        c->window_lead_ms = core->config.window_lead_ms;
    return c;
}

/* What the scheduler goes by, for whoever replays what follows. */
static const char *config_json(struct core *core)
{
    struct strbuf text = STRBUF_INIT;
    struct sched_config c;
    struct json_writer w;
    const char *copy;

    scheduler_config(core, &c);
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key_i64(&w, "hold_ms", c.hold_ms);
    json_key_i64(&w, "stale_gang_ms", c.stale_gang_ms);
    json_key_i64(&w, "min_run_ms", c.min_run_ms);
    json_key_i64(&w, "moves_max", c.moves_max);
    json_key_i64(&w, "past_half_life_ms", c.past_half_life_ms);
    json_key_i64(&w, "window_lead_ms", c.window_lead_ms);
    json_key(&w, "topology");
    json_begin_array(&w);
    for (const char *const *level = core->config.topology; *level; level++)
        json_string(&w, *level);
    json_end_array(&w);
    json_end_object(&w);
    copy = arena_strdup(&core->turn, strbuf_str(&text));
    strbuf_done(&text);
    return copy;
}

static void record_start(struct core *core)
{
    core_record_event(core, core_journal_txn(core),
                      &(struct model_event){.type = MODEL_EVENT_SERVER,
                                            .task = -1,
                                            .message = "server started",
                                            .data = config_json(core)});
}

void core_begin(struct core *core)
{
    read_clock(core);
    record_start(core);
    core_load_reconcile(core);
    core_journal_flush(core);
    arena_reset(&core->turn);
}

int64_t core_step(struct core *core)
{
    turn(core, core_queue_take(&core->queue, 0));
    return next_turn_ms(core);
}

void core_run(struct core *core)
{
    core_begin(core);
    while (!core->stopping)
        turn(core, core_queue_take(&core->queue, sleep_ms(core)));
    while (core->journal.committing || (!core_journal_idle(core) && !core->journal.failing))
        turn(core, core_queue_take(&core->queue, IDLE_MS));
}

void core_stop(struct core *core)
{
    core_queue_push(&core->queue, core_message_new(MESSAGE_STOP));
}

/* ---- create and destroy ----------------------------------------------------------------- */

static int read_meta(struct core *core, const char *key, const char **ret, struct err *err)
{
    int r = core->ports.store->get_meta(core->ports.store_ctx, key, &core->turn, ret, err);

    if (r == -ENOENT)
        *ret = NULL;
    return r == -ENOENT ? 0 : r;
}

static void put_meta(struct core *core, const char *key, const char *value)
{
    struct store_txn *txn = core_journal_txn(core);

    core_journal_op(txn, &(struct store_op){.kind = STORE_PUT_META,
                                            .meta = {key, arena_strdup(&txn->arena, value)}});
}

/* Continues the stored timeline within a boot; see core.h. */
static int set_timeline(struct core *core, struct err *err)
{
    const struct clock_ops *clock = core->ports.clock;
    void *ctx = core->ports.clock_ctx;
    const char *boot, *offset, *this_boot = clock->boot_id(ctx);
    int64_t fresh = clock->wall_ms(ctx) - clock->boot_ms(ctx);
    int r = read_meta(core, META_BOOT, &boot, err);

    if (r == 0)
        r = read_meta(core, META_OFFSET, &offset, err);
    if (r < 0)
        return r;
    if (boot && offset && strcmp(boot, this_boot) == 0) {
        atomic_store(&core->offset_ms, strtoll(offset, NULL, 10));
        return 0;
    }
    if (core->last_seen_ms > clock->wall_ms(ctx))
        fresh = core->last_seen_ms - clock->boot_ms(ctx);
    atomic_store(&core->offset_ms, fresh);
    put_meta(core, META_BOOT, this_boot);
    put_meta(core, META_OFFSET, arena_printf(&core->turn, "%lld", (long long)fresh));
    return 0;
}

static int last_event_time(void *user, const struct model_event *event)
{
    struct core *core = user;

    core->last_seen_ms = event->time_ms;
    return 0;
}

static int set_topology(struct core *core)
{
    static const char *const host[] = {"host", NULL};
    uint32_t count = 0;

    if (core->config.topology == NULL)
        core->config.topology = host;
    while (core->config.topology[count])
        count++;
    return sched_topology_set(core->sched, core->config.topology, count);
}

int core_create(const struct core_config *config, const struct core_ports *ports,
                struct core **ret_core, struct err *err)
{
    struct core *core = calloc(1, sizeof(*core));
    struct store_event_filter newest = {.limit = 1, .newest = 1};
    struct sched_config sched;
    int r;

    if (core == NULL)
        return -ENOMEM;
    core->config = *config;
    core->ports = *ports;
    core->limits = (struct heap)HEAP_INIT(limit_before);
    r = core_queue_init(&core->queue);
    if (r < 0) {
        free(core);
        return r;
    }
    core->sched = sched_create(scheduler_config(core, &sched));
    r = core->sched ? set_topology(core) : -ENOMEM;
    if (r == 0)
        r = ports->store->list_events(ports->store_ctx, &newest, last_event_time, core, err);
    if (r == 0)
        r = set_timeline(core, err);
    if (r == 0) {
        read_clock(core);
        core->started_ms = core->now_ms;
        r = core_load_state(core, err);
    }
    arena_reset(&core->turn);
    if (r < 0) {
        core_destroy(core);
        return r;
    }
    *ret_core = core;
    return 0;
}

static void free_shape(struct core_shape *s)
{
    arena_done(&s->arena);
    free(s);
}

#define FREE_ALL(map_, type, destroy)                     \
    do {                                                  \
        size_t it_ = 0;                                   \
        type *item_;                                      \
        while ((item_ = map_next(&(map_), &it_)) != NULL) \
            destroy(item_);                               \
        map_done(&(map_));                                \
    } while (0)

void core_destroy(struct core *core)
{
    if (core == NULL)
        return;
    core_journal_done(core);
    core_message_abandon(core->waiting);
    core_queue_done(&core->queue);
    sched_destroy(core->sched);
    heap_done(&core->limits); /* before its elements */
    FREE_ALL(core->workloads, struct core_workload, core_workload_free);
    FREE_ALL(core->shape_ids, struct core_shape, free_shape);
    FREE_ALL(core->teams, struct core_team, core_team_free);
    FREE_ALL(core->nodes, struct core_node, core_node_free);
    map_done(&core->shapes);
    map_done(&core->team_names);
    map_done(&core->node_names);
    map_done(&core->users);
    map_done(&core->interned);
    arena_done(&core->strings);
    arena_done(&core->turn);
    free(core);
}
