/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/memory_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct row_workload {
    struct model_workload row;
    uint64_t shape_id;
    const char *launch_json;
};

struct row_meta {
    const char *key, *value;
};

struct row_shape {
    uint64_t id;
    const char *json;
};

struct memory_store {
    struct arena arena;
    struct map teams, nodes, workloads, tasks, users, tokens, meta;
    VEC(struct row_shape) shapes;
    VEC(const struct model_allocation *) allocations;
    struct map allocation_index; /* id -> position + 1 */
    struct model_event last_event;
    uint64_t last_workload, last_other;

    struct store_txn *const *group; /* waiting */
    size_t group_len;
    store_done_fn *done;
    void *host;
};

struct memory_store *memory_store_create(void)
{
    struct memory_store *s = calloc(1, sizeof(*s));

    if (s == NULL)
        abort();
    return s;
}

void memory_store_destroy(struct memory_store *s)
{
    struct map *maps[] = {&s->teams, &s->nodes,  &s->workloads, &s->tasks,
                          &s->users, &s->tokens, &s->meta,      &s->allocation_index};

    for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++)
        map_done(maps[i]);
    vec_done(&s->shapes);
    vec_done(&s->allocations);
    arena_done(&s->arena);
    free(s);
}

/* ---- writing ---------------------------------------------------------------------------- */

static void note_id(uint64_t *last, uint64_t id)
{
    if (id > *last)
        *last = id;
}

static uint64_t task_key(uint64_t workload, int32_t index)
{
    return workload * MODEL_TASKS_MAX + (uint64_t)index + 1;
}

static void put_team(struct memory_store *s, const struct model_team *row)
{
    struct model_team *copy = arena_memdup(&s->arena, row, sizeof(*row));

    copy->name = arena_strdup(&s->arena, row->name);
    copy->parent = arena_strdup(&s->arena, row->parent);
    map_put(&s->teams, row->id, copy);
    note_id(&s->last_other, row->id);
}

static void put_node(struct memory_store *s, const struct model_node *row)
{
    struct model_node *copy = arena_new(&s->arena, struct model_node);
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    model_node_encode(row, &w);
    if (model_node_decode(strbuf_str(&text), text.len, &s->arena, copy, NULL) < 0)
        abort();
    strbuf_done(&text);
    copy->id = row->id;
    copy->state = row->state;
    copy->drained = row->drained;
    map_put(&s->nodes, row->id, copy);
    note_id(&s->last_other, row->id);
}

static void copy_workload(struct memory_store *s, struct model_workload *to,
                          const struct model_workload *from)
{
    *to = *from;
    to->name = arena_strdup(&s->arena, from->name);
    to->team = arena_strdup(&s->arena, from->team);
    to->owner = arena_strdup(&s->arena, from->owner);
    to->message = arena_strdup(&s->arena, from->message);
    to->shape = NULL;
    to->launch = NULL;
}

static void put_workload(struct memory_store *s, const struct store_new_workload *row)
{
    struct row_workload *copy = arena_new(&s->arena, struct row_workload);

    copy_workload(s, &copy->row, row->row);
    copy->shape_id = row->shape_id;
    copy->launch_json = arena_strdup(&s->arena, row->launch_json);
    map_put(&s->workloads, row->row->id, copy);
    note_id(&s->last_workload, row->row->id);
    for (size_t i = 0; row->shape_json && i < s->shapes.len; i++)
        if (s->shapes.items[i].id == row->shape_id)
            return;
    if (row->shape_json)
        vec_push(&s->shapes, ((struct row_shape){row->shape_id,
                                                 arena_strdup(&s->arena, row->shape_json)}));
}

static void put_task(struct memory_store *s, const struct model_task *row)
{
    struct model_task *copy = arena_memdup(&s->arena, row, sizeof(*row));

    copy->devices = arena_memdup(&s->arena, row->devices,
                                 (size_t)row->device_count * sizeof(*row->devices));
    copy->node_name = arena_strdup(&s->arena, row->node_name);
    copy->message = arena_strdup(&s->arena, row->message);
    map_put(&s->tasks, task_key(row->workload, row->index), copy);
}

static void put_allocation(struct memory_store *s, const struct model_allocation *row)
{
    struct model_allocation *copy = arena_memdup(&s->arena, row, sizeof(*row));
    uintptr_t at = (uintptr_t)map_get(&s->allocation_index, row->id);

    copy->devices = arena_memdup(&s->arena, row->devices,
                                 (size_t)row->device_count * sizeof(*row->devices));
    note_id(&s->last_other, row->id);
    if (at) {
        s->allocations.items[at - 1] = copy;
        return;
    }
    vec_push(&s->allocations, copy);
    map_put(&s->allocation_index, row->id, (void *)(uintptr_t)s->allocations.len);
}

static void put_user(struct memory_store *s, const struct model_user *row)
{
    struct model_user *copy = arena_memdup(&s->arena, row, sizeof(*row));

    copy->name = arena_strdup(&s->arena, row->name);
    copy->teams = NULL;
    copy->team_count = 0;
    map_put_str(&s->users, copy->name, copy);
}

static void put_meta(struct memory_store *s, const char *key, const char *value)
{
    struct row_meta *copy = arena_new(&s->arena, struct row_meta);

    copy->key = arena_strdup(&s->arena, key);
    copy->value = arena_strdup(&s->arena, value);
    map_put_str(&s->meta, copy->key, copy);
}

static void apply(struct memory_store *s, const struct store_op *op)
{
    struct row_workload *w;

    switch (op->kind) {
    case STORE_PUT_TEAM:
        put_team(s, op->team);
        break;
    case STORE_DELETE_TEAM:
        map_del(&s->teams, op->id);
        break;
    case STORE_PUT_WORKLOAD:
        put_workload(s, op->new_workload);
        break;
    case STORE_UPDATE_WORKLOAD:
        w = map_get(&s->workloads, op->workload->id);
        copy_workload(s, &w->row, op->workload);
        break;
    case STORE_PUT_TASK:
        put_task(s, op->task);
        break;
    case STORE_PUT_NODE:
        put_node(s, op->node);
        break;
    case STORE_PUT_ALLOCATION:
        put_allocation(s, op->allocation);
        break;
    case STORE_PUT_USER:
        put_user(s, op->user);
        break;
    case STORE_DELETE_USER:
        map_del_str(&s->users, op->name);
        break;
    case STORE_PUT_META:
        put_meta(s, op->meta.key, op->meta.value);
        break;
    case STORE_ADD_EVENT:
        if (op->event->seq <= s->last_event.seq)
            abort(); /* events go backwards */
        s->last_event.seq = op->event->seq;
        s->last_event.time_ms = op->event->time_ms;
        break;
    case STORE_PUT_TOKEN:
    case STORE_DELETE_TOKEN:
    case STORE_PUT_REPLY:
        break; /* nothing in a simulation reads them */
    }
}

static void commit(void *store, struct store_txn *const *txns, size_t count, store_done_fn *done,
                   void *host)
{
    struct memory_store *s = store;

    if (s->group)
        abort(); /* one group at a time is the contract */
    s->group = txns;
    s->group_len = count;
    s->done = done;
    s->host = host;
}

bool memory_store_busy(const struct memory_store *s)
{
    return s->group != NULL;
}

static void answer(struct memory_store *s)
{
    struct store_txn *const *group = s->group;

    s->group = NULL;
    s->done(s->host, group, s->group_len);
}

void memory_store_commit(struct memory_store *s)
{
    for (size_t i = 0; i < s->group_len; i++) {
        s->group[i]->status = 0;
        for (const struct store_op *op = s->group[i]->first; op; op = op->next)
            apply(s, op);
    }
    answer(s);
}

void memory_store_fail(struct memory_store *s, int errnum)
{
    for (size_t i = 0; i < s->group_len; i++)
        s->group[i]->status = err_set(&s->group[i]->err, errnum, ERR_UNAVAILABLE, NULL, NULL,
                                      "the simulated disk refuses");
    answer(s);
}

void memory_store_crash(struct memory_store *s)
{
    s->group = NULL;
}

/* ---- reading ---------------------------------------------------------------------------- */

static int each_shape(void *store, store_shape_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    int r = 0;

    for (size_t i = 0; i < s->shapes.len && r == 0; i++)
        r = fn(user, s->shapes.items[i].id, s->shapes.items[i].json);
    return r;
}

static int each_team(void *store, store_team_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    const struct model_team *row;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (row = map_next(&s->teams, &it)) != NULL)
        r = fn(user, row);
    return r;
}

static int each_node(void *store, store_node_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    const struct model_node *row;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (row = map_next(&s->nodes, &it)) != NULL)
        r = fn(user, row);
    return r;
}

static int each_user(void *store, store_user_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    const struct model_user *row;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (row = map_next(&s->users, &it)) != NULL)
        r = fn(user, row);
    return r;
}

static const struct row_workload *live(const struct memory_store *s, uint64_t id)
{
    const struct row_workload *w = map_get(&s->workloads, id);

    return w && !model_workload_state_is_final(w->row.state) ? w : NULL;
}

static int each_live_workload(void *store, store_workload_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    int r = 0;

    for (uint64_t id = 1; id <= s->last_workload && r == 0; id++) {
        const struct row_workload *w = live(s, id);
        struct store_workload_row row = {.workload = w ? &w->row : NULL};

        if (w == NULL)
            continue;
        row.shape_id = w->shape_id;
        r = fn(user, &row);
    }
    return r;
}

static int each_live_task(void *store, store_task_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    const struct model_task *row;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (row = map_next(&s->tasks, &it)) != NULL)
        if (live(s, row->workload))
            r = fn(user, row);
    return r;
}

static int each_open_allocation(void *store, store_allocation_fn *fn, void *user,
                                struct err *err)
{
    struct memory_store *s = store;
    int r = 0;

    for (size_t i = 0; i < s->allocations.len && r == 0; i++)
        if (s->allocations.items[i]->end_ms == 0)
            r = fn(user, s->allocations.items[i]);
    return r;
}

static int get_workload(void *store, uint64_t id, struct arena *arena,
                        struct model_workload *ret_workload, struct err *err)
{
    struct memory_store *s = store;
    const struct row_workload *w = map_get(&s->workloads, id);

    if (w == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, "id", NULL, "no such workload");
    *ret_workload = w->row;
    return model_launch_decode(w->launch_json, strlen(w->launch_json), arena,
                               &ret_workload->launch, err);
}

static int list_events(void *store, const struct store_event_filter *filter, store_event_fn *fn,
                       void *user, struct err *err)
{
    struct memory_store *s = store;

    return filter->newest && s->last_event.seq ? fn(user, &s->last_event) : 0;
}

static int get_meta(void *store, const char *key, struct arena *arena, const char **ret_value,
                    struct err *err)
{
    struct memory_store *s = store;
    const struct row_meta *row = map_get_str(&s->meta, key);

    if (row == NULL)
        return -ENOENT;
    *ret_value = arena_strdup(arena, row->value);
    return 0;
}

static int last_ids(void *store, uint64_t *ret_workload, uint64_t *ret_event,
                    uint64_t *ret_other, struct err *err)
{
    struct memory_store *s = store;

    *ret_workload = s->last_workload;
    *ret_event = s->last_event.seq;
    *ret_other = s->last_other;
    return 0;
}

const struct store_ops memory_store_ops = {
    .commit = commit,
    .each_shape = each_shape,
    .each_team = each_team,
    .each_node = each_node,
    .each_user = each_user,
    .each_live_workload = each_live_workload,
    .each_live_task = each_live_task,
    .each_open_allocation = each_open_allocation,
    .get_workload = get_workload,
    .list_events = list_events,
    .get_meta = get_meta,
    .last_ids = last_ids,
};

const struct model_workload *memory_store_workload(const struct memory_store *s, uint64_t id)
{
    const struct row_workload *w = map_get(&s->workloads, id);

    return w ? &w->row : NULL;
}

size_t memory_store_allocations(const struct memory_store *s,
                                const struct model_allocation ***ret_rows)
{
    *ret_rows = s->allocations.items;
    return s->allocations.len;
}
