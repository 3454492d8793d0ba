/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sentences of an explanation. One row a reason; the words of the reasons are the
 * scheduler's, and a word that is not in the table still gives a sentence.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"
#include "base/strbuf.h"
#include "model/amount.h"
#include "model/explanation.h"

/* One sentence under way: X's numbers, text into OUT, its parts into ARENA. */
struct say {
    const struct model_explanation *x;
    struct arena *arena;
    struct strbuf *out;
};

static const char *amount(const struct say *s, int64_t v)
{
    return model_amount_describe(s->x->resource, v, s->arena);
}

/* "2 are", "0.25 is", "none is", "10GiB is": V after its resource was named. */
static const char *so_much_is(const struct say *s, int64_t v)
{
    bool one = v <= 1000 || s->x->resource == MODEL_MEMORY_BYTES;
    char text[QTY_TEXT_MAX];

    if (v == 0)
        return "none is";
    return arena_printf(s->arena, "%s %s", model_amount_format(s->x->resource, v, text),
                        one ? "is" : "are");
}

/* "'train' (81)" */
static const char *workload(const struct say *s, const struct model_explanation_holder *h)
{
    return arena_printf(s->arena, "'%s' (%" PRIu64 ")", h->name ? h->name : "", h->id);
}

static const char *team(const struct say *s)
{
    return s->x->team ? s->x->team : s->x->own_team ? s->x->own_team : "?";
}

/* ---- sentences -------------------------------------------------------------------------- */

static void say_none(const struct say *s)
{
    strbuf_adds(s->out, "nothing is in its way: it starts in the next turn");
}

static void say_no_such_device(const struct say *s)
{
    strbuf_addf(s->out, "no node has what it asks for (%s), nodes that are down included",
                s->x->request ? s->x->request : amount(s, s->x->asked));
}

static void say_too_large(const struct say *s)
{
    strbuf_addf(s->out, "it asks for %s, more than the nodes can ever hold",
                amount(s, s->x->asked));
}

/* " of type H100", where the numbers are of one type. */
static const char *of_type(const struct say *s)
{
    return s->x->gpu_type ? arena_printf(s->arena, " of type %s", s->x->gpu_type) : "";
}

static void say_above_limit(const struct say *s)
{
    strbuf_addf(s->out, "it asks for %s, above the limit of team %s, %s%s", amount(s, s->x->asked),
                team(s), amount(s, s->x->limit), of_type(s));
}

static void say_above_guarantee(const struct say *s)
{
    strbuf_addf(s->out,
                "it asks for %s and cannot be preempted, which is above the guarantee of team %s, "
                "%s%s",
                amount(s, s->x->asked), team(s), amount(s, s->x->guarantee), of_type(s));
}

static void say_team_limit(const struct say *s)
{
    strbuf_addf(s->out, "team %s is at its limit of %s%s: it uses %s, and this asks for %s",
                team(s), amount(s, s->x->limit), of_type(s), amount(s, s->x->used),
                amount(s, s->x->asked));
}

static void say_team_guarantee(const struct say *s)
{
    strbuf_addf(s->out,
                "team %s is at its guarantee of %s%s for work that cannot be preempted, and this "
                "asks for %s",
                team(s), amount(s, s->x->guarantee), of_type(s), amount(s, s->x->asked));
}

static void say_backoff(const struct say *s)
{
    strbuf_adds(s->out, "it could not be launched and waits before the next attempt");
}

static void say_held(const struct say *s)
{
    strbuf_addf(s->out,
                "its place (%s) is promised: it starts when those who give way have stopped",
                amount(s, s->x->asked));
}

static void say_reserved(const struct say *s)
{
    if (s->x->waits_for.id)
        strbuf_addf(s->out, "starting it now would delay %s, which has the next place",
                    workload(s, &s->x->waits_for));
    else
        strbuf_adds(s->out, "starting it now would delay a larger one that has the next place");
}

static void say_topology(const struct say *s)
{
    strbuf_addf(s->out, "it asks for %s in one domain: %s free in total, but in no single one",
                amount(s, s->x->asked), so_much_is(s, s->x->free));
}

static void say_fragmented(const struct say *s)
{
    strbuf_addf(s->out, "it asks for %s: %s free in total, but in pieces too small for a task (%s)",
                amount(s, s->x->asked), so_much_is(s, s->x->free),
                s->x->request ? s->x->request : "as asked");
}

static void say_nodes_down(const struct say *s)
{
    strbuf_adds(s->out, "only nodes that are down or drained could hold it");
}

static void say_maintenance(const struct say *s)
{
    const struct model_explanation *x = s->x;
    char from[CLOCK_TEXT_MAX], until[CLOCK_TEXT_MAX];

    clock_format_utc(x->window_from_ms, from);
    clock_format_utc(x->window_until_ms, until);
    if (x->run_ms > 0)
        strbuf_addf(s->out,
                    "the maintenance of node '%s' begins at %s, and this would not end before",
                    x->node ? x->node : "?", from);
    else
        strbuf_addf(s->out, "node '%s' is under maintenance until %s", x->node ? x->node : "?",
                    until);
}

static void say_cpu(const struct say *s)
{
    strbuf_addf(s->out, "GPUs are free, but not with the cores beside them: it asks for %s",
                amount(s, s->x->asked));
}

static void say_memory(const struct say *s)
{
    strbuf_addf(s->out, "GPUs are free, but not with the memory beside them: it asks for %s",
                amount(s, s->x->asked));
}

/* A team that uses its guarantee has no claim on more: it waits for what others leave. */
static void say_no_capacity(const struct say *s)
{
    const struct model_explanation *x = s->x;

    strbuf_addf(s->out, "it asks for %s, and %s free where it could run", amount(s, x->asked),
                so_much_is(s, x->free));
    if (x->guarantee > 0 && x->used + x->asked > x->guarantee)
        strbuf_addf(s->out,
                    "; team %s uses %s of its guarantee of %s, and what is above it comes from "
                    "what others leave idle",
                    team(s), amount(s, x->used), amount(s, x->guarantee));
    else if (x->guarantee == 0)
        strbuf_addf(s->out, "; team %s has no guarantee and uses what others leave idle", team(s));
}

static void say_behind(const struct say *s)
{
    strbuf_addf(s->out, "others come first: it is number %d of %d that wait in team %s",
                s->x->position, s->x->pending, s->x->own_team ? s->x->own_team : team(s));
}

/* ---- remedies --------------------------------------------------------------------------- */

static void advise_device(const struct say *s)
{
    strbuf_adds(s->out, "ask for devices that 'allot node' shows, or add such a node");
}

static void advise_largest(const struct say *s)
{
    if (s->x->missing > 0 && s->x->missing < s->x->asked)
        strbuf_addf(s->out, "ask for %s or less", amount(s, s->x->asked - s->x->missing));
    else
        strbuf_adds(s->out, "ask for less");
}

static void advise_limit(const struct say *s)
{
    strbuf_addf(s->out, "ask for %s or less, or have the limit raised", amount(s, s->x->limit));
}

static void advise_guarantee(const struct say *s)
{
    strbuf_addf(s->out, "ask for %s or less, make it preemptible, or have the guarantee raised",
                amount(s, s->x->guarantee));
}

/* What the scheduler found: whose end helps, how much less would do. */
static void advise_waiting(const struct say *s)
{
    const struct model_explanation *x = s->x;

    if (x->waits_for.id && x->waits_for.id == x->id) {
        strbuf_adds(s->out, "it starts again when its own tasks have stopped and there is room");
        return;
    }
    if (x->waits_for.id) {
        strbuf_addf(s->out, "it starts when %s", workload(s, &x->waits_for));
        if (x->waits_for.team && x->own_team && strcmp(x->waits_for.team, x->own_team) != 0)
            strbuf_addf(s->out, " of team %s", x->waits_for.team);
        strbuf_adds(s->out, " ends or gives way");
    }
    if (x->missing > 0 && x->missing < x->asked)
        strbuf_addf(s->out, "%s with %s less", x->waits_for.id ? ", or" : "it would start now",
                    amount(s, x->missing));
    else if (x->missing > 0 && x->waits_for.id == 0)
        strbuf_addf(s->out, "it starts once %s more can be had", amount(s, x->missing));
}

static void advise_backoff(const struct say *s)
{
    strbuf_addf(s->out, "see 'allot logs %" PRIu64 "' for why it could not be launched", s->x->id);
}

static void advise_nodes(const struct say *s)
{
    strbuf_adds(s->out, "it starts when such a node is up again or is undrained");
}

/* In whole minutes, or seconds where it is less: what a person would write. */
static void advise_shorter(const struct say *s)
{
    int64_t unit = s->x->run_ms >= 60000 ? 60000 : 1000, ms = s->x->run_ms / unit * unit;
    char text[QTY_TEXT_MAX];

    if (ms > 0)
        strbuf_addf(s->out, "with a maximum run time of %s or less it would start now",
                    qty_format_duration_ms(ms, text));
}

static void advise_maintenance(const struct say *s)
{
    advise_shorter(s);
    if (s->out->len == 0)
        strbuf_adds(s->out, "it starts when the maintenance is over");
}

static void advise_cpu(const struct say *s)
{
    strbuf_adds(s->out, "ask for less cpu beside each GPU, or wait for cores to come free");
}

static void advise_memory(const struct say *s)
{
    strbuf_adds(s->out, "ask for less memory beside each GPU, or wait for some to come free");
}

static void advise_topology(const struct say *s)
{
    strbuf_adds(s->out, "it starts when one domain has room; with topology 'preferred' it need "
                        "not wait for that");
}

static void advise_behind(const struct say *s)
{
    if (s->x->waits_for.id)
        advise_waiting(s);
    else
        strbuf_adds(s->out, "it starts when those before it have; a higher priority moves it up");
}

static const struct reason {
    const char *word;
    void (*say)(const struct say *s);
    void (*advise)(const struct say *s); /* NULL: there is nothing to do */
} reasons[] = {
    {"none", say_none, NULL},
    {"no_such_device", say_no_such_device, advise_device},
    {"too_large", say_too_large, advise_largest},
    {"above_limit", say_above_limit, advise_limit},
    {"above_guarantee", say_above_guarantee, advise_guarantee},
    {"team_limit", say_team_limit, advise_waiting},
    {"team_guarantee", say_team_guarantee, advise_waiting},
    {"backoff", say_backoff, advise_backoff},
    {"held", say_held, NULL},
    {"reserved", say_reserved, advise_shorter},
    {"topology", say_topology, advise_topology},
    {"fragmented", say_fragmented, advise_waiting},
    {"nodes_down", say_nodes_down, advise_nodes},
    {"maintenance", say_maintenance, advise_maintenance},
    {"cpu", say_cpu, advise_cpu},
    {"memory", say_memory, advise_memory},
    {"no_capacity", say_no_capacity, advise_waiting},
    {"behind", say_behind, advise_behind},
};

static const struct reason *find_reason(const char *word)
{
    for (size_t i = 0; i < ARRAY_LEN(reasons); i++) {
        if (strcmp(reasons[i].word, word) == 0)
            return &reasons[i];
    }
    return NULL;
}

static const char *sentence_of_state(const struct model_explanation *x)
{
    switch (x->state) {
    case MODEL_WORKLOAD_PENDING:
        return "it waits for the next turn";
    case MODEL_WORKLOAD_RUNNING:
        return "it runs: nothing of it waits";
    case MODEL_WORKLOAD_STOPPING:
        return "it is stopping";
    case MODEL_WORKLOAD_SUCCEEDED:
        return "it has ended: succeeded";
    case MODEL_WORKLOAD_FAILED:
        return "it has ended: failed";
    case MODEL_WORKLOAD_CANCELLED:
        return "it has ended: cancelled";
    default:
        return "its state is unknown";
    }
}

const char *model_explanation_sentence(const struct model_explanation *x, struct arena *arena)
{
    const struct reason *reason = x->reason ? find_reason(x->reason) : NULL;
    _cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

    if (x->reason == NULL)
        return arena_strdup(arena, sentence_of_state(x));
    if (reason)
        reason->say(&(struct say){x, arena, &out});
    else
        strbuf_addf(&out, "it waits: %s", x->reason);
    return arena_strdup(arena, strbuf_str(&out));
}

const char *model_explanation_remedy(const struct model_explanation *x, struct arena *arena)
{
    const struct reason *reason = x->reason ? find_reason(x->reason) : NULL;
    _cleanup_strbuf_ struct strbuf out = STRBUF_INIT;

    if (reason && reason->advise)
        reason->advise(&(struct say){x, arena, &out});
    return out.len > 0 ? arena_strdup(arena, out.data) : NULL;
}

/* ---- evictions -------------------------------------------------------------------------- */

const char *model_eviction_describe(const struct model_eviction *e, struct arena *arena)
{
    const char *who = e->for_id ? arena_printf(arena, "'%s' (%" PRIu64 ")",
                                               e->for_name ? e->for_name : "", e->for_id)
                                : "other work";
    const char *what =
        e->gpu_milli > 0 ? model_amount_describe(MODEL_GPU_MILLI, e->gpu_milli, arena) : "what";

    if (e->cause == NULL)
        return "never evicted";
    if (strcmp(e->cause, "preempt") == 0)
        return arena_printf(arena, "preempted: %s of the same team comes first", who);
    if (strcmp(e->cause, "reclaim") == 0)
        return arena_printf(arena, "reclaimed: team %s takes back %s it is entitled to, for %s",
                            e->for_team ? e->for_team : "?", what, who);
    if (strcmp(e->cause, "idle_only") == 0)
        return arena_printf(arena, "gave way: it runs on idle capacity only, and %s needs it", who);
    if (strcmp(e->cause, "consolidate") == 0)
        return arena_printf(arena, "moved: %s needs the room in one piece", who);
    if (strcmp(e->cause, "stale_gang") == 0)
        return "stopped: it ran with fewer tasks than its minimum for too long";
    if (strcmp(e->cause, "maintenance") == 0)
        return "stopped: the maintenance of its node begins";
    return arena_printf(arena, "evicted: %s", e->cause);
}
