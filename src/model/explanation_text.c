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

/* "'train' (81)", or "work of team nlp" where it must not be named. */
static const char *workload(const struct say *s, const struct model_explanation_holder *h)
{
    if (h->id == 0)
        return arena_printf(s->arena, "work of team %s", h->team ? h->team : "?");
    return arena_printf(s->arena, "'%s' (%" PRIu64 ")", h->name ? h->name : "", h->id);
}

static bool waits_for_somebody(const struct say *s)
{
    return s->x->waits_for.team != NULL;
}

static const char *team(const struct say *s)
{
    return s->x->team ? s->x->team : s->x->own_team ? s->x->own_team : "?";
}

static const char *own_team(const struct say *s)
{
    return s->x->own_team ? s->x->own_team : team(s);
}

/* "team nlp", "team research, to which team nlp belongs,": whose limit or guarantee binds. */
static const char *whose(const struct say *s)
{
    if (strcmp(team(s), own_team(s)) == 0)
        return arena_printf(s->arena, "team %s", team(s));
    return arena_printf(s->arena, "team %s, to which team %s belongs,", team(s), own_team(s));
}

/* " of type H100", where the numbers are of one type. */
static const char *of_type(const struct say *s)
{
    return s->x->gpu_type ? arena_printf(s->arena, " of type %s", s->x->gpu_type) : "";
}

/* Likewise where the request accepts that type alone. */
static const char *of_own_type(const struct say *s)
{
    const char *type = s->x->gpu_type ? s->x->gpu_type : s->x->type;

    if (type == NULL || s->x->resource != MODEL_GPU_MILLI)
        return "";
    return arena_printf(s->arena, " of type %s", type);
}

/* "2026-12-01 05:10 UTC"; seconds where there are any. */
static const char *moment(const struct say *s, int64_t ms)
{
    char text[CLOCK_TEXT_MAX];

    clock_format_utc(ms, text);
    return arena_printf(s->arena, "%.10s %.*s UTC", text, ms % 60000 == 0 ? 5 : 8, text + 11);
}

/* ---- sentences -------------------------------------------------------------------------- */

static void say_none(const struct say *s)
{
    if (s->x->basis == NULL || strcmp(s->x->basis, "victims") != 0)
        strbuf_adds(s->out, "nothing is in its way: it starts in the next turn");
    else if (s->x->takes > 0)
        strbuf_addf(s->out, "it starts when others have given way, who lose %s",
                    model_amount_describe(MODEL_GPU_MILLI, s->x->takes, s->arena));
    else
        strbuf_adds(s->out, "it starts when others have made room");
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
    const struct model_explanation *x = s->x;
    const char *limit = x->hard_quota ? "hard quota" : "limit";

    if (x->used >= x->limit)
        strbuf_addf(s->out, "%s is at its %s of %s%s: it uses %s", whose(s), limit,
                    amount(s, x->limit), of_type(s), amount(s, x->used));
    else
        strbuf_addf(s->out, "%s has a %s of %s%s and uses %s", whose(s), limit, amount(s, x->limit),
                    of_type(s), amount(s, x->used));
    strbuf_addf(s->out, ", and this asks for %s", amount(s, x->asked));
}

static void say_team_guarantee(const struct say *s)
{
    const struct model_explanation *x = s->x;

    if (x->firm)
        strbuf_addf(s->out,
                    "work that cannot be preempted stays within the guarantee, and %s has one of "
                    "%s%s: such work uses %s, and this asks for %s",
                    whose(s), amount(s, x->guarantee), of_type(s), amount(s, x->used),
                    amount(s, x->asked));
    else
        strbuf_addf(s->out,
                    "it does not burst, so it stays within the guarantee, and %s has one of %s%s: "
                    "it uses %s, and this asks for %s",
                    whose(s), amount(s, x->guarantee), of_type(s), amount(s, x->used),
                    amount(s, x->asked));
}

static void say_backoff(const struct say *s)
{
    if (s->x->message)
        strbuf_adds(s->out, s->x->message);
    else
        strbuf_adds(s->out, "it could not be launched and waits before the next attempt");
}

/* "'a' (3)", "'a' (3) and 2 others" */
static const char *who_stops(const struct say *s)
{
    const struct model_explanation *x = s->x;
    int32_t count = -1;

    for (int32_t i = 0; i < x->holder_count; i++)
        count += x->holders[i].id ? 1 : x->holders[i].count;
    if (count < 0)
        return NULL;
    if (count == 0)
        return workload(s, &x->holders[0]);
    return arena_printf(s->arena, "%s and %d other%s", workload(s, &x->holders[0]), count,
                        count == 1 ? "" : "s");
}

static bool many_stop(const struct say *s)
{
    return s->x->holder_count > 1 || (s->x->holder_count == 1 && s->x->holders[0].count > 1);
}

static void say_stopping(const struct say *s)
{
    const char *who = who_stops(s);

    if (who == NULL || s->x->waits_for.id == s->x->id)
        strbuf_adds(s->out, "what ran of it before is still stopping; until that has stopped it "
                            "does not start again");
    else
        strbuf_addf(s->out, "what it asks for (%s) comes free when %s %s stopped",
                    amount(s, s->x->asked), who, many_stop(s) ? "have" : "has");
}

static void say_held(const struct say *s)
{
    const char *who = who_stops(s);

    strbuf_addf(s->out, "its place (%s) is promised: it starts when ", amount(s, s->x->asked));
    if (who)
        strbuf_addf(s->out, "%s %s stopped", who, many_stop(s) ? "have" : "has");
    else
        strbuf_adds(s->out, "that is free");
}

static void say_reserved(const struct say *s)
{
    if (waits_for_somebody(s))
        strbuf_addf(s->out, "starting it now would delay %s, which has the next place",
                    workload(s, &s->x->waits_for));
    else
        strbuf_adds(s->out, "starting it now would delay a larger one that has the next place");
}

/* "; 3 of the 4 tasks that must start together fit now" */
static void say_fitting(const struct say *s)
{
    const struct model_explanation *x = s->x;

    if (x->gang > 1 && x->fitting > 0)
        strbuf_addf(s->out, "; %d of the %d tasks that must start together %s now", x->fitting,
                    x->gang, x->fitting == 1 ? "fits" : "fit");
}

static void say_topology(const struct say *s)
{
    const struct model_explanation *x = s->x;
    const char *level = x->level ? x->level : "domain";

    strbuf_addf(s->out, "it needs one %s that holds all of it (%s)", level, amount(s, x->asked));
    if (x->domain)
        strbuf_addf(s->out, ": the best, '%s', has room for %d of its %d tasks", x->domain,
                    x->fitting, x->gang);
    else
        strbuf_addf(s->out, ": %s free in total, but in no single %s", so_much_is(s, x->free),
                    level);
}

static void say_fragmented(const struct say *s)
{
    const struct model_explanation *x = s->x;
    bool part = x->asks_gpu && x->each < 1000;

    strbuf_addf(s->out, "it asks for %s%s: %s free in total, but ", amount(s, x->asked),
                of_own_type(s), so_much_is(s, x->free));
    if (x->gang > 1 && x->each <= x->most)
        strbuf_adds(s->out, "not where all of its tasks fit");
    else if (x->each <= x->most)
        strbuf_adds(s->out, "not on as many different GPUs of one node");
    else if (x->asks_gpu && x->resource == MODEL_GPU_MILLI && x->most == 0)
        strbuf_adds(s->out, "no GPU is wholly free");
    else
        strbuf_addf(s->out, "at most %s on one %s", amount(s, x->most), part ? "GPU" : "node");
    say_fitting(s);
}

/* "'gpu-01' (drained), 'gpu-02' (down)" */
static const char *node_list(const struct say *s, bool states)
{
    _cleanup_strbuf_ struct strbuf list = STRBUF_INIT;

    for (int32_t i = 0; i < s->x->node_count; i++) {
        strbuf_addf(&list, "%s'%s'", i ? ", " : "", s->x->nodes[i].name);
        if (states)
            strbuf_addf(&list, " (%s)", s->x->nodes[i].state);
    }
    return arena_strdup(s->arena, strbuf_str(&list));
}

static void say_nodes_down(const struct say *s)
{
    strbuf_adds(s->out, "only nodes that are down or drained could hold it");
    if (s->x->node_count > 0)
        strbuf_addf(s->out, ": %s", node_list(s, true));
}

static void say_maintenance(const struct say *s)
{
    const struct model_explanation *x = s->x;
    const char *nodes = x->node_count > 0 ? node_list(s, false) : "?";
    bool many = x->node_count > 1;

    if (x->window_from_ms > x->now_ms)
        strbuf_addf(s->out,
                    "node%s %s will be under maintenance from %s until %s, and this may not have "
                    "ended by then",
                    many ? "s" : "", nodes, moment(s, x->window_from_ms),
                    moment(s, x->window_until_ms));
    else
        strbuf_addf(s->out, "node%s %s %s under maintenance until %s", many ? "s" : "", nodes,
                    many ? "are" : "is", moment(s, x->window_until_ms));
}

/* What is scarce beside the GPUs, or all that it asks for. */
static void say_host(const struct say *s, const char *what)
{
    const struct model_explanation *x = s->x;

    if (x->asks_gpu)
        strbuf_addf(s->out, "GPUs are free, but not with the %s beside them: ", what);
    strbuf_addf(s->out, "%s asks for %s, and ", x->tasks > 1 ? "a task" : "it", amount(s, x->each));
    if (x->most == 0)
        strbuf_adds(s->out, "no such node has any left");
    else if (x->each > x->most)
        strbuf_addf(s->out, "the most that is free on one node is %s", amount(s, x->most));
    else
        strbuf_adds(s->out, "not all of its tasks find that");
    say_fitting(s);
}

static void say_cpu(const struct say *s)
{
    say_host(s, "cores");
}

static void say_memory(const struct say *s)
{
    say_host(s, "memory");
}

/* Why it takes no place from others. */
static void say_no_right(const struct say *s)
{
    const struct model_explanation *x = s->x;
    int64_t after = x->used + x->asked, most = x->share > x->guarantee ? x->share : x->guarantee;

    if (x->idle_only)
        strbuf_adds(s->out, "; batch work uses what all others leave idle");
    else if (after <= most)
        strbuf_addf(s->out,
                    "; team %s is entitled to it (it uses %s of %s), but nothing that runs may be "
                    "evicted for it",
                    team(s), amount(s, x->used), amount(s, most));
    else if (x->guarantee == 0)
        strbuf_addf(s->out,
                    "; team %s has no guarantee and a fair share of %s, of which it uses %s: what "
                    "is above comes from what others leave idle",
                    team(s), amount(s, x->share), amount(s, x->used));
    else
        strbuf_addf(s->out,
                    "; team %s uses %s of its guarantee of %s (fair share %s), and what is above "
                    "comes from what others leave idle",
                    team(s), amount(s, x->used), amount(s, x->guarantee), amount(s, x->share));
}

/* "; of type H100 it uses 1 GPU of its guarantee of 2 GPUs": the right to devices of the type that
 * it asks for. That of a team above is told with the team. */
static void say_type_guarantees(const struct say *s)
{
    const struct model_explanation *x = s->x;

    for (int32_t i = 0; i < x->type_count && x->type && !x->idle_only; i++) {
        const struct model_explanation_type *t = &x->types[i];

        if (t->guarantee == MODEL_UNLIMITED || strcmp(t->type, x->type) != 0)
            continue;
        strbuf_addf(s->out, "; of type %s team %s uses %s of its guarantee of %s", t->type, t->team,
                    model_amount_describe(MODEL_GPU_MILLI, t->used, s->arena),
                    model_amount_describe(MODEL_GPU_MILLI, t->guarantee, s->arena));
    }
}

static void say_asked_and_free(const struct say *s)
{
    strbuf_addf(s->out, "it asks for %s%s, and %s free where it could run", amount(s, s->x->asked),
                of_own_type(s), so_much_is(s, s->x->free));
    say_fitting(s);
}

static void say_no_capacity(const struct say *s)
{
    say_asked_and_free(s);
    say_no_right(s);
    say_type_guarantees(s);
}

static void say_overcommitted(const struct say *s)
{
    const struct model_explanation *x = s->x;

    strbuf_addf(s->out,
                "team %s is within its guarantee of %s, but the guarantees of %s%s add up to %s, "
                "and %s %s: who uses his own guarantee loses nothing",
                team(s), amount(s, x->guarantee), x->over_team ? "the teams of " : "all teams",
                x->over_team ? x->over_team : "", amount(s, x->guarantees),
                x->over_team ? "it has" : "there are", amount(s, x->capacity));
}

static void say_protected(const struct say *s)
{
    say_asked_and_free(s);
    strbuf_adds(s->out, "; what it may take the place of has not had its minimum run time yet");
}

static void say_budget(const struct say *s)
{
    say_asked_and_free(s);
    strbuf_addf(s->out,
                "; %s, which would have to give way, may have no more than %d of its tasks "
                "missing at once (max_unavailable)",
                waits_for_somebody(s) ? workload(s, &s->x->waits_for) : "a service", s->x->budget);
}

static void say_promised(const struct say *s)
{
    strbuf_addf(s->out, "%s free, but promised to ", so_much_is(s, s->x->free));
    if (waits_for_somebody(s))
        strbuf_addf(s->out, "%s, which waits for others to stop", workload(s, &s->x->waits_for));
    else
        strbuf_adds(s->out, "others that wait for stops");
}

static void say_behind(const struct say *s)
{
    strbuf_addf(s->out, "others come first: it is number %d of %d that wait in team %s",
                s->x->position, s->x->pending, own_team(s));
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

/* The next part of a remedy: " or" before all but the first. */
static void or_else(const struct say *s, const char *first)
{
    strbuf_adds(s->out, s->out->len > 0 ? ", or " : first);
}

static void advise_end(const struct say *s, const char *ends)
{
    const struct model_explanation *x = s->x;

    if (!waits_for_somebody(s))
        return;
    if (x->basis && strcmp(x->basis, "reserved") == 0) {
        strbuf_addf(s->out, "it starts after %s, which has the next place",
                    workload(s, &x->waits_for));
        return;
    }
    strbuf_addf(s->out, "it starts when %s", workload(s, &x->waits_for));
    if (x->waits_for.id && x->own_team && strcmp(x->waits_for.team, x->own_team) != 0)
        strbuf_addf(s->out, " of team %s", x->waits_for.team);
    strbuf_addf(s->out, " %s", ends);
}

/* "it would start now with 2 GPUs less (2 of its 6 tasks), which takes 1 GPU from others" */
static void advise_less(const struct say *s)
{
    const struct model_explanation *x = s->x;

    if (x->less == 0)
        return;
    or_else(s, "");
    if (x->resource != MODEL_GPU_MILLI && x->gang > 1)
        strbuf_addf(s->out, "it would start now if each of its tasks asked for %s less",
                    amount(s, x->less / x->gang));
    else
        strbuf_addf(s->out, "it would start now with %s%s less", amount(s, x->less),
                    of_own_type(s));
    if (x->less_tasks > 0)
        strbuf_addf(s->out, " (%d of the %d tasks)", x->gang - x->less_tasks, x->gang);
    if (x->takes > 0)
        strbuf_addf(s->out, ", taking %s from others",
                    model_amount_describe(MODEL_GPU_MILLI, x->takes, s->arena));
}

/* What the scheduler found: whose end helps, how much less would do. */
static void advise_waiting(const struct say *s)
{
    advise_end(s, "ends");
    advise_less(s);
    if (s->out->len == 0 && s->x->basis && strcmp(s->x->basis, "maintenance") == 0)
        strbuf_adds(s->out, "it starts when the maintenance of a node is over");
    else if (s->out->len == 0 && s->x->missing > 0)
        strbuf_addf(s->out, "it starts once %s more can be had", amount(s, s->x->missing));
}

static void advise_team_limit(const struct say *s)
{
    advise_end(s, "ends");
    advise_less(s);
    or_else(s, "it starts when work of that team ends, or ");
    strbuf_addf(s->out, "an administrator can raise the %s of team %s, if there is room beyond it",
                s->x->hard_quota ? "guarantee" : "limit", team(s));
}

static void advise_team_guarantee(const struct say *s)
{
    advise_end(s, "ends");
    advise_less(s);
    or_else(s, "it starts when such work ends, or ");
    strbuf_addf(s->out, "where there is room, if it %s",
                s->x->firm ? "may be preempted" : "may burst");
}

static void advise_backoff(const struct say *s)
{
    strbuf_addf(s->out,
                "it is tried again by itself; if the fault is its own, stop it (allot stop "
                "%" PRIu64 ") and submit it anew",
                s->x->id);
}

static void advise_nodes(const struct say *s)
{
    strbuf_adds(s->out, "it starts there when such a node is up again or undrained, and has room");
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
    if (s->out->len == 0 && waits_for_somebody(s))
        strbuf_addf(s->out,
                    "with a shorter maximum run time it would start when %s ends; as it is, when "
                    "the maintenance is over",
                    workload(s, &s->x->waits_for));
    else if (s->out->len == 0)
        strbuf_adds(s->out, "it starts when the maintenance is over");
}

static void advise_cpu(const struct say *s)
{
    advise_less(s);
    or_else(s, "ask for less cpu in each task, or ");
    strbuf_adds(s->out, "wait for cores to come free");
}

static void advise_memory(const struct say *s)
{
    advise_less(s);
    or_else(s, "ask for less memory in each task, or ");
    strbuf_adds(s->out, "wait for some to come free");
}

static void advise_topology(const struct say *s)
{
    advise_less(s);
    or_else(s, "it starts when one has room; ");
    strbuf_adds(s->out, "with topology 'preferred' it need not wait for that");
}

static void advise_overcommitted(const struct say *s)
{
    advise_end(s, "ends");
    advise_less(s);
    or_else(s, "it starts when work of other teams ends, or ");
    strbuf_adds(s->out, "an administrator can lower guarantees that are not needed");
}

static void advise_protected(const struct say *s)
{
    if (waits_for_somebody(s))
        strbuf_addf(s->out, "it takes the place of %s as soon as that time is over",
                    workload(s, &s->x->waits_for));
    advise_less(s);
}

static void advise_budget(const struct say *s)
{
    advise_less(s);
    or_else(s, "it starts when what is missing there runs again, or ");
    strbuf_adds(s->out, "when other work ends");
}

static void advise_behind(const struct say *s)
{
    if (waits_for_somebody(s))
        strbuf_addf(s->out, "next is %s; a higher priority moves it up inside its team",
                    workload(s, &s->x->waits_for));
    else
        strbuf_adds(s->out, "it starts when those before it have; a higher priority moves it up "
                            "inside its team");
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
    {"team_limit", say_team_limit, advise_team_limit},
    {"team_guarantee", say_team_guarantee, advise_team_guarantee},
    {"backoff", say_backoff, advise_backoff},
    {"stopping", say_stopping, NULL},
    {"held", say_held, NULL},
    {"reserved", say_reserved, advise_shorter},
    {"topology", say_topology, advise_topology},
    {"fragmented", say_fragmented, advise_waiting},
    {"nodes_down", say_nodes_down, advise_nodes},
    {"maintenance", say_maintenance, advise_maintenance},
    {"cpu", say_cpu, advise_cpu},
    {"memory", say_memory, advise_memory},
    {"protected", say_protected, advise_protected},
    {"budget", say_budget, advise_budget},
    {"overcommitted", say_overcommitted, advise_overcommitted},
    {"no_capacity", say_no_capacity, advise_waiting},
    {"promised", say_promised, NULL},
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
    case MODEL_WORKLOAD_SUSPENDED:
        return "it is suspended, until it calls a GPU or somebody resumes it";
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

/* "'train' (83)", "work of team nlp", "other work" */
static const char *winner(const struct model_eviction *e, struct arena *arena)
{
    if (e->for_id)
        return arena_printf(arena, "'%s' (%" PRIu64 ")", e->for_name ? e->for_name : "", e->for_id);
    return e->for_team ? arena_printf(arena, "work of team %s", e->for_team) : "other work";
}

const char *model_eviction_describe(const struct model_eviction *e, struct arena *arena)
{
    const char *who = winner(e, arena);
    const char *what =
        e->gpu_milli > 0 ? model_amount_describe(MODEL_GPU_MILLI, e->gpu_milli, arena) : "what";

    if (e->gpu_milli > 0 && e->gpu_type)
        what = arena_printf(arena, "%s of type %s", what, e->gpu_type);

    if (e->cause == NULL)
        return "never evicted";
    if (strcmp(e->cause, "preempt") == 0)
        return arena_printf(arena, "preempted: %s of the same team comes first",
                            e->for_id ? who : "other work");
    if (strcmp(e->cause, "reclaim") == 0)
        return arena_printf(arena, "reclaimed: team %s takes back %s it is entitled to%s%s",
                            e->for_team ? e->for_team : "?", what, e->for_id ? ", for " : "",
                            e->for_id ? who : "");
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
