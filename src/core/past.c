/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Past use survives a restart: what the scheduler knows of it is written down once a minute (when
 * anything happens at all), as one stored value, and told to it again at start-up. What was in use
 * since then counts if it is still in use.
 *
 * The value is lines of numbers: when it was true, then for each team its id and one amount per
 * resource.
 */
#include "core/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/strbuf.h"

#define META_PAST "past_use"
#define SAVE_MS 60000

void core_past_save(struct core *core)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct store_txn *txn;
    struct core_team *t;
    size_t it = 0;

    if (core->config.past_half_life_ms == 0 || core->now_ms - core->past_saved_ms < SAVE_MS)
        return;
    core->past_saved_ms = core->now_ms;
    strbuf_addf(&text, "%" PRId64 "\n", core->now_ms);
    while ((t = map_next(&core->teams, &it)) != NULL) {
        struct sched_team_usage u;

        if (sched_team_usage(core->sched, t->row.id, &u) < 0)
            continue;
        strbuf_addf(&text, "%" PRIu64, t->row.id);
        for (int r = 0; r < MODEL_RESOURCE_COUNT; r++)
            strbuf_addf(&text, " %" PRId64, u.past[r]);
        strbuf_addc(&text, '\n');
    }
    txn = core_journal_txn(core);
    core_journal_op(
        txn, &(struct store_op){.kind = STORE_PUT_META,
                                .meta = {META_PAST, arena_strdup(&txn->arena, strbuf_str(&text))}});
}

/* One number, at least 0, that ENDS with that character; the text behind it, or NULL. */
static const char *number(const char *text, char ends, int64_t *ret)
{
    char *end;

    errno = 0;
    *ret = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == ends && *ret >= 0 ? end + 1 : NULL;
}

/* False where it is not what core_past_save() writes. */
static bool take(struct core *core, const char *p)
{
    int64_t at_ms, id, past[MODEL_RESOURCE_COUNT];

    for (p = number(p, '\n', &at_ms); p && *p;) {
        p = number(p, ' ', &id);
        for (int r = 0; p && r < MODEL_RESOURCE_COUNT; r++)
            p = number(p, r + 1 < MODEL_RESOURCE_COUNT ? ' ' : '\n', &past[r]);
        if (p) /* a team may have gone meanwhile */
            (void)sched_team_past_set(core->sched, (uint64_t)id, past, at_ms);
    }
    return p != NULL;
}

int core_past_load(struct core *core, struct err *err)
{
    const char *text = NULL;
    int r;

    if (core->config.past_half_life_ms == 0)
        return 0;
    r = core->ports.store->get_meta(core->ports.store_ctx, META_PAST, &core->turn, &text, err);
    if (r == -ENOENT || r == -EUCLEAN || text == NULL)
        return r == -ENOENT ? 0 : r;
    if (!take(core, text))
        log_error("what is stored of past use cannot be read: it begins anew");
    return 0;
}
