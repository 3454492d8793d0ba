/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/history_internal.h"

void history_wrong(struct history *h, const char *fmt, ...)
{
    va_list ap;

    if (h->result.wrong[0])
        return;
    va_start(ap, fmt);
    vsnprintf(h->result.wrong, sizeof(h->result.wrong), fmt, ap);
    va_end(ap);
}

/* A question that core answers within one turn, without touching the store. */
static void answered(struct core_command *c)
{
    *(bool *)c->user = true;
}

static void ask(struct history *h, struct core_command *c)
{
    bool done = false;

    c->actor = (struct core_actor){.name = "tester", .admin = true};
    c->done = answered;
    c->user = &done;
    core_submit(h->core, c);
    core_step(h->core);
    if (!done)
        history_wrong(h, "a question is not answered within a turn");
}

bool history_quiet(struct history *h)
{
    struct core_command c = {.kind = CORE_STATUS};

    if (memory_store_busy(h->store))
        return false;
    ask(h, &c);
    arena_done(&c.arena);
    return c.ret_status.store_ok && !memory_store_busy(h->store);
}

static void check_count(struct history *h)
{
    struct core_command c = {.kind = CORE_STATUS, .actor.admin = true};
    struct history_counts counts;

    ask(h, &c);
    arena_done(&c.arena);
    history_judge_counts(h->judge, &counts);
    if (c.ret_status.pending + c.ret_status.running != counts.live)
        history_wrong(h, "%" PRIu64 " workloads live, %" PRIu64 " of them are stored",
                      c.ret_status.pending + c.ret_status.running, counts.live);
}

/* ---- stored state = live state ---------------------------------------------------------- */

/* The line where both differ first, by its beginning, and what stands there from shortly before
 * the difference on. */
static void report_difference(struct history *h, const char *live, const char *stored)
{
    size_t same = 0, line = 0, from;

    for (; live[same] && live[same] == stored[same]; same++)
        if (live[same] == '\n')
            line = same + 1;
    from = same > line + 30 ? same - 30 : line;
    history_wrong(h, HISTORY_DIFFERS ": '%.40s' is live '%.*s', stored '%.*s'", live + line,
                  (int)strcspn(live + from, "\n"), live + from, (int)strcspn(stored + from, "\n"),
                  stored + from);
}

void history_compare(struct history *h)
{
    _cleanup_strbuf_ struct strbuf live = STRBUF_INIT;
    _cleanup_strbuf_ struct strbuf stored = STRBUF_INIT;
    struct core *other = history_load(h);

    if (other == NULL)
        return;
    core_describe(h->core, &live);
    core_describe(other, &stored);
    core_destroy(other);
    h->result.compared++;
    h->unchecked = 0;
    if (strcmp(strbuf_str(&live), strbuf_str(&stored)) != 0)
        report_difference(h, strbuf_str(&live), strbuf_str(&stored));
}

/* ---- after each step -------------------------------------------------------------------- */

int history_check(struct history *h)
{
    char what[200];

    if (virtual_engine_broken(h->engine))
        history_wrong(h, "%s", virtual_engine_broken(h->engine));
    if (history_judge_wrong(h->judge))
        history_wrong(h, "%s", history_judge_wrong(h->judge));
    if (core_now_ms(h->core) != h->elapsed_ms + h->timeline_ms)
        history_wrong(h, "the timeline is off by %" PRId64 " ms",
                      core_now_ms(h->core) - h->elapsed_ms - h->timeline_ms);
    if (h->result.wrong[0] == '\0' && core_verify(h->core, what, sizeof(what)) < 0)
        history_wrong(h, "%s", what);
    if (h->result.wrong[0] == '\0' && history_quiet(h)) {
        check_count(h);
        if (++h->unchecked >= h->compare_every)
            history_compare(h);
    }
    return h->result.wrong[0] ? -EUCLEAN : 0;
}

/* ---- at rest ---------------------------------------------------------------------------- */

/* All that was asked to stop had its time, if it could be reached. */
static bool all_in_sight(const struct history *h)
{
    for (uint32_t i = 0; i < HISTORY_NODES_MAX; i++)
        if (h->nodes[i] && !virtual_engine_node_up(h->engine, i))
            return false;
    return true;
}

static void check_waiting(struct history *h, uint64_t id)
{
    struct core_command c = {.kind = CORE_EXPLAIN, .id = id};

    ask(h, &c);
    if (c.status == 0 && c.ret_explanation->basis && strcmp(c.ret_explanation->basis, "now") == 0)
        history_wrong(h, "workload %" PRIu64 " could start and waits at rest (%s)", id,
                      c.ret_explanation->reason);
    if (c.status == 0 && c.ret_explanation->state == MODEL_WORKLOAD_STOPPING && all_in_sight(h))
        history_wrong(h, "workload %" PRIu64 " is still stopping at rest", id);
    arena_done(&c.arena);
}

void history_check_rest(struct history *h)
{
    for (uint64_t id = history_judge_next(h->judge, 0); id && h->result.wrong[0] == '\0';
         id = history_judge_next(h->judge, id))
        check_waiting(h, id);
}
