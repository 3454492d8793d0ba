/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of few workloads that outlive the server: a line "ID NUMBER" each, under one key. */
#include "core/internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/log.h"

void core_note_store(struct core *core, const struct core_note *note)
{
    struct store_txn *txn = core_journal_txn(core);
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    const struct core_workload *w;
    const char *lines;
    size_t it = 0;

    while ((w = map_next(&core->workloads, &it)) != NULL) {
        int64_t number = note->of(core, w);

        if (number != 0)
            strbuf_addf(&text, "%" PRIu64 " %" PRId64 "\n", w->id, number);
    }
    lines = arena_strdup(&txn->arena, strbuf_str(&text));
    core_journal_op(txn, &(struct store_op){.kind = STORE_PUT_META, .meta = {note->key, lines}});
}

int core_note_load(struct core *core, const struct core_note *note, struct err *err)
{
    const char *text = NULL;
    int r = core->ports.store->get_meta(core->ports.store_ctx, note->key, &core->turn, &text, err);

    if (r < 0 || text == NULL)
        return r == -ENOENT ? 0 : r;
    while (*text) {
        char *end;
        uint64_t id = strtoull(text, &end, 10);
        struct core_workload *w = map_get(&core->workloads, id);
        int64_t number = strtoll(end, &end, 10);

        if (*end != '\n') {
            log_error("%s", note->unreadable);
            return 0;
        }
        if (w)
            note->set(w, number);
        text = end + 1;
    }
    return 0;
}
