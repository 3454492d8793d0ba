/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: prop-why [--seeds N] [--first SEED] [--steps N]
 *
 * What an explanation promises comes true. In random histories waiting work is explained; where
 * it is told that it would start now with so much less asked, or with so short a run, that is
 * tried in a copy of the whole process: the workload is withdrawn, submitted again as it was
 * advised, and must be given its places in the turns that follow. To ask anew is an event: now and
 * then somebody else may evict again who was not to before, or has the reservation now. That is
 * counted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "prop_options.h"
#include "prop_world.h"

#define TURNS_MAX 50
#define EXPLAINED_MAX 6 /* in one step */

struct tally {
    uint64_t explained, less, shorter, overtaken;
    uint64_t reasons[SCHED_REASONS];
};

/* ---- the copy ---------------------------------------------------------------------------- */

enum answer { STARTS, WAITS, OVERTAKEN };

/* Does it get all the places that it asks for at once, without anything else happening? */
static enum answer starts(struct sched *s, uint64_t id, uint32_t places, int64_t now_ms)
{
    uint32_t got = 0;
    bool others = false;
    for (int i = 0; i < TURNS_MAX; i++) {
        const struct sched_decisions *d = sched_turn(s, now_ms);
        for (size_t k = 0; k < d->count; k++) {
            enum sched_decision_kind kind = d->items[k].kind;
            bool own = d->items[k].workload == id;
            got += own && (kind == SCHED_START || kind == SCHED_HOLD);
            others = others || (!own && kind == SCHED_HOLD);
        }
        if (got >= places)
            return STARTS;
        if (d->count == 0 && sched_next_ms(s) > now_ms)
            break;
    }
    struct sched_explanation x;
    bool reserved = sched_explain(s, id, now_ms, &x) == 0 && x.reason == SCHED_REASON_RESERVED;
    return others || reserved ? OVERTAKEN : WAITS;
}

static enum answer in_a_copy(struct prop_world *w, const struct sched_workload *decl)
{
    int status = WAITS;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0)
        return WAITS;
    if (child == 0) {
        bool known =
            sched_workload_remove(w->s, decl->id) == 0 && sched_workload_add(w->s, decl, NULL) == 0;
        _exit(known ? (int)starts(w->s, decl->id, decl->min_tasks, w->now_ms) : WAITS);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? (enum answer)WEXITSTATUS(status) : WAITS;
}

static bool comes_true(struct prop_world *w, const struct sched_workload *decl, struct tally *sum)
{
    enum answer answer = in_a_copy(w, decl);
    sum->overtaken += answer == OVERTAKEN;
    return answer != WAITS;
}

/* ---- advice ------------------------------------------------------------------------------ */

/* One task's request with LESS of the resource that the explanation is about. */
static void shrink(struct sched_request *r, const struct sched_explanation *x, int64_t less)
{
    if (x->resource == SCHED_CPU_MILLI)
        r->cpu_milli -= less;
    else if (x->resource == SCHED_MEMORY_BYTES)
        r->memory_bytes -= less;
    else if (r->device_count > 1)
        r->device_count -= (uint32_t)(less / (x->each / r->device_count));
    else
        r->device_milli -= (int32_t)less;
}

static bool less_holds(struct prop_world *w, const struct prop_workload *p,
                       const struct sched_explanation *x, struct tally *sum)
{
    struct sched_workload decl = p->decl;
    struct sched_request request = *decl.tasks[0].request;
    struct sched_task tasks[PROP_TASKS_MAX];
    memcpy(tasks, decl.tasks, decl.task_count * sizeof(*tasks));
    for (uint32_t t = 0; t < decl.task_count; t++)
        tasks[t].request = &request;
    decl.tasks = tasks;
    decl.accepted = true;
    if (x->less_tasks > 0) {
        decl.task_count -= decl.task_count == decl.min_tasks ? x->less_tasks : 0;
        decl.min_tasks -= x->less_tasks;
    } else {
        shrink(&request, x, x->less / decl.min_tasks);
    }
    return comes_true(w, &decl, sum);
}

static bool shorter_holds(struct prop_world *w, const struct prop_workload *p,
                          const struct sched_explanation *x, struct tally *sum)
{
    struct sched_workload decl = p->decl;
    decl.limit_ms = x->run_ms;
    decl.accepted = true;
    return comes_true(w, &decl, sum);
}

static bool advice_holds(struct prop_world *w, size_t i, struct tally *sum)
{
    const struct prop_workload *p = w->workloads.items[i];
    struct sched_explanation x;
    if (sched_explain(w->s, p->decl.id, w->now_ms, &x) < 0)
        return true;
    enum sched_reason brief;
    uint32_t position;
    sum->explained++;
    sum->reasons[x.reason]++;
    if (sched_explain_brief(w->s, p->decl.id, w->now_ms, &brief, &position) < 0 ||
        position != x.position || brief != x.reason)
        return prop_fail(w, "workload %zu is explained as %s, and in short as %s", i,
                         sched_reason_name(x.reason), sched_reason_name(brief));
    if (x.reason == SCHED_REASON_NONE)
        return prop_fail(w, "workload %zu waits for nothing", i);
    bool fresh = prop_count(p, PROP_PENDING) == p->decl.task_count;
    if (x.less > 0) {
        sum->less++;
        if (!less_holds(w, p, &x, sum))
            return prop_fail(w,
                             "workload %zu (%s) does not start with %" PRId64 " less (%u tasks of "
                             "%u), takes %" PRId64,
                             i, sched_reason_name(x.reason), x.less, x.less_tasks, x.gang, x.takes);
    }
    if (fresh && x.run_ms > 0) {
        sum->shorter++;
        if (!shorter_holds(w, p, &x, sum))
            return prop_fail(w, "workload %zu (%s) does not start with a run of %" PRId64 " ms", i,
                             sched_reason_name(x.reason), x.run_ms);
    }
    return true;
}

/* ---- histories --------------------------------------------------------------------------- */

static bool step(struct prop_world *w, struct tally *sum)
{
    if (prop_chance(w, 60))
        w->now_ms += (int64_t)prop_below(w, 3000);
    if (w->windows)
        prop_outside(w);
    if ((!prop_chance(w, 30) && !prop_stops_due(w)) || !prop_happen(w) || !prop_turns(w))
        return false;
    for (int n = 0; n < EXPLAINED_MAX && w->workloads.len > 0; n++)
        if (!advice_holds(w, (size_t)prop_below(w, w->workloads.len), sum))
            return false;
    return true;
}

static bool seed_holds(uint64_t seed, int64_t steps, struct tally *sum)
{
    struct prop_world *w = prop_create(seed, false, NULL);
    while (prop_ok(w) && w->step < steps && step(w, sum) && prop_ok(w))
        w->step++;
    bool ok = prop_ok(w);
    if (!ok)
        printf("# seed %" PRIu64 ", step %u: %s\n", seed, w->step, w->failure);
    prop_destroy(w);
    return ok;
}

int main(int argc, char **argv)
{
    struct prop_options o = {.seeds = 400, .first = 1, .steps = 60};
    struct tally sum = {0};
    int64_t failed = 0;
    if (!prop_options_parse(argc, argv, "prop-why", &o))
        return 2;
    printf("1..3\n");
    for (int64_t seed = o.first; seed < o.first + o.seeds; seed++)
        failed += !seed_holds((uint64_t)seed, o.steps, &sum);
    printf("%s 1 - what is advised comes true in %" PRId64 " histories\n",
           failed == 0 ? "ok" : "not ok", o.seeds);
    bool tried = sum.less > 0 && sum.shorter > 0;
    printf("%s 2 - both kinds of advice were given\n", tried ? "ok" : "not ok");
    bool rare = sum.overtaken * 100 <= sum.less + sum.shorter;
    printf("%s 3 - hardly anybody was overtaken\n", rare ? "ok" : "not ok");
    printf("# %" PRIu64 " explanations: %" PRIu64 " times less would do, %" PRIu64
           " times a shorter run, %" PRIu64 " overtaken\n#",
           sum.explained, sum.less, sum.shorter, sum.overtaken);
    for (int r = 0; r < SCHED_REASONS; r++)
        printf(" %s %" PRIu64, sched_reason_name((enum sched_reason)r), sum.reasons[r]);
    printf("\n# %" PRId64 " failed\n", failed);
    return failed > 0 || !tried || !rare;
}
