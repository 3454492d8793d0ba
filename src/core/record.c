/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows and events: copies of the present state into the transaction of the moment. The copies
 * live in the transaction's arena, because the state moves on before the store reads them.
 */
#include "core/internal.h"

#include <stdarg.h>

void core_workload_row(const struct core_workload *w, struct model_workload *ret_row)
{
    *ret_row = (struct model_workload){
        .id = w->id,
        .name = w->name,
        .team = w->team->row.name,
        .team_id = w->team->row.id,
        .owner = w->owner,
        .state = w->state,
        .submitted_ms = w->submitted_ms,
        .started_ms = w->started_ms,
        .evicted_ms = w->evicted_ms,
        .restarts = w->restarts,
        .failures = w->failures,
        .running_tasks = w->running,
        .ended_tasks = w->ended,
        .exit_code = w->exit_code,
        .message = w->message,
        .shape = w->shape->model,
    };
}

void core_record_workload(struct core *core, struct core_workload *w)
{
    struct store_txn *txn = core_journal_txn(core);
    struct model_workload *row = arena_new(&txn->arena, struct model_workload);

    core_workload_row(w, row);
    row->name = arena_strdup(&txn->arena, row->name);
    row->team = arena_strdup(&txn->arena, row->team);
    row->message = arena_strdup(&txn->arena, row->message);
    if (model_workload_state_is_final(w->state))
        row->ended_ms = core->now_ms;
    core_journal_op(txn, &(struct store_op){.kind = STORE_UPDATE_WORKLOAD, .workload = row});
}

/* Does the workload's message say why a task is in this state? */
static bool has_reason(enum model_task_state state)
{
    return state == MODEL_TASK_PENDING || state == MODEL_TASK_STOPPING ||
           state == MODEL_TASK_FAILED || state == MODEL_TASK_CANCELLED;
}

void core_record_task(struct core *core, struct core_workload *w, int32_t index)
{
    struct store_txn *txn = core_journal_txn(core);
    struct model_task *row = arena_new(&txn->arena, struct model_task);
    const struct core_task *t = &core_workload_tasks(w)[index];

    *row = (struct model_task){
        .workload = w->id,
        .index = index,
        .attempt = t->attempt,
        .state = t->state,
        .node = t->node ? t->node->row.id : 0,
        .node_name = t->node ? arena_strdup(&txn->arena, t->node->row.name) : NULL,
        .devices =
            arena_memdup(&txn->arena, t->devices, (size_t)t->device_count * sizeof(*t->devices)),
        .device_count = t->device_count,
        .gpu_milli = t->gpu_milli,
        .held_until_ms = t->held_until_ms,
        .started_ms = t->started_ms,
        .ended_ms = t->ended_ms,
        .exit_code = t->exit_code,
        .exit_signal = t->exit_signal,
        .message = has_reason(t->state) ? arena_strdup(&txn->arena, w->message) : NULL,
    };
    core_journal_op(txn, &(struct store_op){.kind = STORE_PUT_TASK, .task = row});
}

void core_record_allocation(struct core *core, const struct model_allocation *a)
{
    struct store_txn *txn = core_journal_txn(core);
    struct model_allocation *row = arena_memdup(&txn->arena, a, sizeof(*a));

    row->devices =
        arena_memdup(&txn->arena, a->devices, (size_t)a->device_count * sizeof(*a->devices));
    core_journal_op(txn, &(struct store_op){.kind = STORE_PUT_ALLOCATION, .allocation = row});
}

void core_record_event(struct core *core, struct store_txn *txn, const struct model_event *event)
{
    struct model_event *row = arena_memdup(&txn->arena, event, sizeof(*event));

    row->seq = ++core->last_event;
    row->time_ms = core->now_ms;
    row->workload_name = arena_strdup(&txn->arena, event->workload_name);
    row->team = arena_strdup(&txn->arena, event->team);
    row->node = arena_strdup(&txn->arena, event->node);
    row->actor = event->actor ? arena_strdup(&txn->arena, event->actor) : "allot";
    row->message = arena_strdup(&txn->arena, event->message);
    row->data = arena_strdup(&txn->arena, event->data);
    core_journal_op(txn, &(struct store_op){.kind = STORE_ADD_EVENT, .event = row});
}

void core_record_workload_event(struct core *core, const struct core_workload *w, int32_t task,
                                const char *type, const char *data, const char *fmt, ...)
{
    struct store_txn *txn = core_journal_txn(core);
    struct strbuf text = STRBUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    strbuf_addv(&text, fmt, ap);
    va_end(ap);
    core_record_event(core, txn,
                      &(struct model_event){
                          .type = type,
                          .workload = w->id,
                          .task = task,
                          .workload_name = w->name,
                          .team = w->team->row.name,
                          .node = task >= 0 && w->tasks && w->tasks[task].node
                                      ? w->tasks[task].node->row.name
                                      : NULL,
                          .message = strbuf_str(&text),
                          .data = data,
                      });
    strbuf_done(&text);
}
