/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit. Entries are sealed in the order in which things happened. While the store works
 * on one group the next one collects, so that the number of disk flushes depends on the disk and
 * not on the load.
 *
 * When the disk fails, entries that record what has happened stay first in line and are handed
 * in again every RETRY_MS; a person's command is answered with the failure. Until a retry
 * succeeds the loop takes no decisions and core.c refuses commands that write.
 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log.h"

#define RETRY_MS 500
#define GROUP_MAX 1024

static struct core_entry *entry_new(void)
{
    struct core_entry *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    return e;
}

static void entry_free(struct core_entry *e)
{
    arena_done(&e->txn.arena);
    free(e);
}

static void append(struct core_journal *j, struct core_entry *e)
{
    if (j->last)
        j->last->next = e;
    else
        j->first = e;
    j->last = e;
}

static void seal(struct core_journal *j)
{
    if (j->open == NULL)
        return;
    append(j, j->open);
    j->open = NULL;
}

struct store_txn *core_journal_txn(struct core *core)
{
    if (core->journal.open == NULL)
        core->journal.open = entry_new();
    return &core->journal.open->txn;
}

struct core_entry *core_journal_command(struct core *core, struct core_command *command)
{
    struct core_entry *e = entry_new();

    seal(&core->journal);
    e->command = command;
    append(&core->journal, e);
    return e;
}

void core_journal_wait(struct core *core, struct core_command *command)
{
    struct core_waiter *waiter = arena_new(&core_journal_txn(core)->arena, struct core_waiter);
    struct core_entry *e = core->journal.open;

    *waiter = (struct core_waiter){e->waiters, command};
    e->waiters = waiter;
}

void core_journal_op(struct store_txn *txn, const struct store_op *op)
{
    struct store_op *copy = arena_memdup(&txn->arena, op, sizeof(*op));

    copy->next = NULL;
    if (txn->last)
        txn->last->next = copy;
    else
        txn->first = copy;
    txn->last = copy;
}

void core_journal_effect(struct core *core, enum core_effect_kind kind, const char *intent,
                         const struct engine_start *start, int64_t grace_ms)
{
    struct store_txn *txn = core_journal_txn(core);
    struct core_entry *e = core->journal.open;
    struct core_effect *effect = arena_new(&txn->arena, struct core_effect);

    effect->kind = kind;
    effect->intent = arena_strdup(&txn->arena, intent);
    effect->start = start;
    effect->grace_ms = grace_ms;
    if (e->last_effect)
        e->last_effect->next = effect;
    else
        e->first_effect = effect;
    e->last_effect = effect;
}

static void store_answered(void *host, struct store_txn *const *txns, size_t count)
{
    struct core *core = host;

    (void)txns;
    (void)count;
    core_queue_push(&core->queue, core_message_new(MESSAGE_COMMITTED));
}

void core_journal_flush(struct core *core)
{
    struct core_journal *j = &core->journal;
    size_t n = 0;

    seal(j);
    if (j->committing || j->first == NULL || (j->failing && core->now_ms < j->retry_at_ms))
        return;
    if (j->group == NULL) {
        j->group = calloc(GROUP_MAX, sizeof(*j->group));
        j->group_txns = calloc(GROUP_MAX, sizeof(*j->group_txns));
        if (j->group == NULL || j->group_txns == NULL)
            abort();
    }
    while (j->first && n < GROUP_MAX) {
        j->group[n] = j->first;
        j->group_txns[n++] = &j->first->txn;
        j->first = j->first->next;
    }
    if (j->first == NULL)
        j->last = NULL;
    j->group_len = n;
    j->committing = true;
    core->ports.store->commit(core->ports.store_ctx, j->group_txns, n, store_answered, core);
}

static void run_effects(struct core *core, const struct core_entry *e)
{
    const struct engine_ops *engine = core->ports.engine;
    void *ctx = core->ports.engine_ctx;

    for (const struct core_effect *f = e->first_effect; f; f = f->next) {
        switch (f->kind) {
        case EFFECT_START:
            engine->start(ctx, f->start);
            break;
        case EFFECT_STOP:
            engine->stop(ctx, f->intent, f->grace_ms);
            break;
        case EFFECT_SUSPEND:
            engine->suspend(ctx, f->intent);
            break;
        case EFFECT_RESUME:
            engine->resume(ctx, f->intent);
            break;
        case EFFECT_FORGET:
            engine->forget(ctx, f->intent);
            break;
        }
    }
}

static void answer(struct core *core, struct core_command *command, int status)
{
    if (core->barrier == command)
        core->barrier_done = true;
    core_command_finish(command, status);
}

static void answer_waiters(struct core *core, struct core_entry *e)
{
    while (e->waiters) {
        struct core_command *command = e->waiters->command;

        e->waiters = e->waiters->next;
        if (e->txn.status < 0)
            command->err = e->txn.err;
        answer(core, command, e->txn.status);
    }
}

static void entry_durable(struct core *core, struct core_entry *e)
{
    for (const struct store_op *op = e->txn.first; op; op = op->next)
        if (op->kind == STORE_ADD_EVENT && op->event->seq > core->committed_event)
            core->committed_event = op->event->seq;
    if (e->apply)
        e->apply(core, e);
    run_effects(core, e);
    if (e->command)
        answer(core, e->command, 0);
    answer_waiters(core, e);
    entry_free(e);
}

static void entry_refused(struct core *core, struct core_entry *e)
{
    if (e->drop)
        e->drop(core, e);
    e->command->err = e->txn.err;
    answer(core, e->command, e->txn.status);
    entry_free(e);
}

/* Puts entries that must not be lost back in front of the line, in their order. */
static void hand_in_again(struct core_journal *j, struct core_entry **entries, size_t count)
{
    while (count > 0) {
        struct core_entry *e = entries[--count];
        e->txn.status = 0;
        e->next = j->first;
        j->first = e;
        if (j->last == NULL)
            j->last = e;
    }
}

static void note_health(struct core *core, const struct store_txn *failed)
{
    struct core_journal *j = &core->journal;

    if (failed == NULL) {
        if (j->failing)
            log_info("the store accepts writes again");
        j->failing = false;
        return;
    }
    if (!j->failing)
        log_error("the store refuses writes: %s; new work is refused, running tasks go on",
                  failed->err.text);
    j->failing = true;
    j->err = failed->err;
    j->retry_at_ms = core->now_ms + RETRY_MS;
}

void core_journal_committed(struct core *core)
{
    struct core_journal *j = &core->journal;
    const struct store_txn *failed = NULL;
    uint64_t before = core->committed_event;
    size_t again = 0;

    j->committing = false;
    for (size_t i = 0; i < j->group_len; i++) {
        struct core_entry *e = j->group[i];
        e->next = NULL;
        if (e->txn.status == 0) {
            entry_durable(core, e);
        } else if (e->command) {
            entry_refused(core, e);
        } else {
            failed = &e->txn;
            answer_waiters(core, e);
            j->group[again++] = e;
        }
    }
    hand_in_again(j, j->group, again);
    note_health(core, failed);
    if (core->committed_event > before && core->ports.events)
        core->ports.events(core->ports.events_ctx, core->committed_event);
}

bool core_journal_idle(const struct core *core)
{
    const struct core_journal *j = &core->journal;

    return !j->committing && j->first == NULL && j->open == NULL;
}

/* Nobody will hear of it any more. */
static void abandon(struct core *core, struct core_entry *e)
{
    if (e->command) {
        if (e->drop)
            e->drop(core, e);
        core_command_finish(e->command, -ECANCELED);
    }
    for (const struct core_waiter *w = e->waiters; w; w = w->next)
        core_command_finish(w->command, -ECANCELED);
    entry_free(e);
}

void core_journal_done(struct core *core)
{
    struct core_journal *j = &core->journal;

    seal(j);
    for (size_t i = 0; j->committing && i < j->group_len; i++)
        abandon(core, j->group[i]);
    while (j->first) {
        struct core_entry *e = j->first;
        j->first = e->next;
        abandon(core, e);
    }
    free(j->group);
    free(j->group_txns);
}
