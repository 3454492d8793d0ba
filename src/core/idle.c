/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workloads that hold GPUs and do nothing: what their team's policy makes of them.
 *
 * The engine tells when it last saw each sign of life (core/engine_port.h). Three levels follow:
 * active (a GPU is used), quiet (no GPU, but CPU, output or people), idle (none of these). A rule
 * goes by all signs or by the GPU alone; what cannot be seen is a sign of life. Nothing happens
 * without two warnings, each its full time ahead: one that comes late, after a stall or under a
 * rule made shorter, puts off what it warns of. Nothing happens while somebody has asked for more
 * time. After a start of the server all signs count as just seen; extensions are stored.
 */
#include "core/internal.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/qty.h"

#define WARN_FIRST_MS INT64_C(900000) /* before it is acted upon; at most half of the time */
#define WARN_LAST_MS INT64_C(300000)  /* at most a fifth of it */
#define EXTEND_MAX_MS (INT64_C(30) * 24 * 3600 * 1000)

/* The rule for W: of its team, or the first above that has one. NULL: none. */
static const struct model_idle_rule *rule_of(const struct core_workload *w)
{
    enum model_kind kind = w->shape->model->kind;

    for (const struct core_team *t = w->team; t; t = t->parent)
        if (t->row.idle[kind].after_ms > 0)
            return &t->row.idle[kind];
    return NULL;
}

/* When W last showed a sign of life that RULE goes by, and which. */
static int64_t last_sign(const struct core_workload *w, const struct model_idle_rule *rule,
                         enum model_signal *ret_signal)
{
    int64_t last_ms = w->started_ms;

    *ret_signal = MODEL_SIGNAL_GPU;
    for (int s = 0; s < MODEL_SIGNAL_COUNT; s++) {
        bool counts = s == MODEL_SIGNAL_GPU || s == MODEL_SIGNAL_UNKNOWN || !rule->gpu_only;

        if (!counts || w->signal_ms[s] <= last_ms)
            continue;
        last_ms = w->signal_ms[s];
        *ret_signal = (enum model_signal)s;
    }
    return last_ms;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* "no sign of life for 45m (the last was output)" */
static const char *describe(struct core *core, const struct model_idle_rule *rule, int64_t last_ms,
                            enum model_signal last)
{
    char text[QTY_TEXT_MAX];
    int64_t idle_ms = (core->now_ms - last_ms) / MS_PER_S * MS_PER_S;

    return arena_printf(&core->turn, "no %s for %s (the last sign of life: %s)",
                        rule->gpu_only ? "use of a GPU" : "sign of life",
                        qty_format_duration_ms(idle_ms, text), model_signal_name(last));
}

static void record(struct core *core, struct core_workload *w, const struct model_idle_rule *rule,
                   int64_t last_ms, enum model_signal last, const char *text)
{
    core_workload_set_message(w, "%s", text);
    core_record_workload(core, w);
    core_record_workload_event(
        core, w, -1, MODEL_EVENT_IDLE,
        arena_printf(
            &core->turn, "{\"action\":\"%s\",\"idle_ms\":%" PRId64 ",\"last_signal\":\"%s\"}",
            model_idle_action_name(rule->action), core->now_ms - last_ms, model_signal_name(last)),
        "%s", text);
}

static void warn(struct core *core, struct core_workload *w, const struct model_idle_rule *rule,
                 int64_t last_ms, enum model_signal last, int64_t due_ms)
{
    static const char *const done[MODEL_IDLE_ACTION_COUNT] = {[MODEL_IDLE_NOTIFY] = "reported",
                                                              [MODEL_IDLE_SUSPEND] = "suspended",
                                                              [MODEL_IDLE_STOP] = "stopped"};
    char text[QTY_TEXT_MAX];
    int64_t left_ms = (due_ms - core->now_ms + MS_PER_S - 1) / MS_PER_S * MS_PER_S;

    record(core, w, rule, last_ms, last,
           arena_printf(&core->turn, "%s: it will be %s in %s; 'allot extend' keeps it",
                        describe(core, rule, last_ms, last), done[rule->action],
                        qty_format_duration_ms(left_ms, text)));
}

static void act(struct core *core, struct core_workload *w, const struct model_idle_rule *rule,
                int64_t last_ms, enum model_signal last)
{
    const char *why = describe(core, rule, last_ms, last);

    if (rule->action == MODEL_IDLE_STOP) {
        core_workload_stop(core, w, 0, -1, NULL, arena_printf(&core->turn, "stopped: %s", why));
        return;
    }
    record(core, w, rule, last_ms, last, why);
    if (rule->action == MODEL_IDLE_SUSPEND && !core_suspend_try(core, w))
        record(core, w, rule, last_ms, last,
               arena_printf(&core->turn,
                            "%s; it cannot be suspended, as it was not started for that", why));
}

/* It lives: what was said of its idleness is history. */
static void lives(struct core *core, struct core_workload *w)
{
    if (w->idle_step == 0)
        return;
    w->idle_step = 0;
    core_workload_clear_message(w);
    core_record_workload(core, w);
}

static void judge(struct core *core, struct core_workload *w)
{
    const struct model_idle_rule *rule = rule_of(w);
    enum model_signal last;
    int64_t last_ms, due_ms, after_ms, before_ms[] = {0, 0, 0};
    int step = 0;

    if (rule == NULL || w->started_ms == 0 || w->shape->gpu_milli == 0)
        return;
    after_ms = rule->after_ms;
    last_ms = last_sign(w, rule, &last);
    due_ms = qty_add_sat(last_ms, after_ms);
    due_ms = most(due_ms, w->extended_ms);
    before_ms[0] = least(WARN_FIRST_MS, after_ms / 2);
    before_ms[1] = least(WARN_LAST_MS, after_ms / 5);
    if (w->idle_step > 0)
        due_ms = most(due_ms, w->idle_told_ms + before_ms[w->idle_step - 1]);
    while (step < 3 && core->now_ms >= due_ms - before_ms[step])
        step++;
    if (step == 0)
        lives(core, w);
    if (step <= w->idle_step)
        return;
    step = ++w->idle_step;
    w->idle_told_ms = core->now_ms;
    if (step < 3)
        warn(core, w, rule, last_ms, last, most(due_ms, core->now_ms + before_ms[step - 1]));
    else
        act(core, w, rule, last_ms, last);
}

void core_idle_seen(struct core *core, struct core_workload *w, const struct engine_event *event)
{
    for (int s = 0; s < MODEL_SIGNAL_COUNT; s++) {
        int64_t at_ms = event->signal_ms[s] ? core_timeline(core, event->signal_ms[s]) : 0;

        w->signal_ms[s] = at_ms > w->signal_ms[s] ? at_ms : w->signal_ms[s];
    }
    if (w->state == MODEL_WORKLOAD_RUNNING && w->stopping == 0)
        judge(core, w);
}

/* ---- more time ------------------------------------------------------------------------------- */

static int64_t extension_of(const struct core *core, const struct core_workload *w)
{
    return w->extended_ms > core->now_ms ? w->extended_ms : 0;
}

static void set_extension(struct core_workload *w, int64_t until_ms)
{
    w->extended_ms = until_ms;
}

static const struct core_note extensions = {
    "extended", extension_of, set_extension,
    "what is stored of extensions cannot be read: they are over"};

int core_idle_load(struct core *core, struct err *err)
{
    return core_note_load(core, &extensions, err);
}

int core_command_extend(struct core *core, struct core_command *c)
{
    struct core_workload *w = map_get(&core->workloads, c->id);
    const struct model_idle_rule *rule;
    char text[QTY_TEXT_MAX];
    int r;

    if (w == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "id", "see 'allot ps --all'",
                       "no live workload has id %llu", (unsigned long long)c->id);
    r = core_access_team(&c->actor, w->team, &c->err);
    if (r < 0)
        return r;
    rule = rule_of(w);
    if (c->grace_ms < 0)
        c->grace_ms = rule ? rule->after_ms : 0;
    if (rule == NULL)
        return err_set(&c->err, -EBUSY, ERR_CONFLICT, "id", NULL,
                       "nothing ends workload %llu when it is idle", (unsigned long long)w->id);
    if (c->grace_ms > EXTEND_MAX_MS)
        return err_set(&c->err, -ERANGE, ERR_OUT_OF_RANGE, "for", "ask again later",
                       "more than 30 days cannot be asked for at once");
    w->extended_ms = core->now_ms + c->grace_ms;
    lives(core, w);
    core_note_store(core, &extensions);
    core_record_event(
        core, core_journal_txn(core),
        &(struct model_event){.type = MODEL_EVENT_EXTENDED,
                              .workload = w->id,
                              .task = -1,
                              .workload_name = w->name,
                              .team = w->team->row.name,
                              .actor = c->actor.name,
                              .message = arena_printf(&core->turn, "may be idle for another %s",
                                                      qty_format_duration_ms(c->grace_ms, text))});
    c->ret_state = w->state;
    core_journal_wait(core, c);
    return 0;
}
