/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/memory_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct row_workload {
    struct model_workload row; /* strings owned */
    uint64_t shape_id;
    char *launch_json;
};

struct row_shape {
    uint64_t id;
    char *json;
};

struct memory_store {
    struct map teams, nodes, workloads, tasks, users, meta, allocations; /* rows, owned */
    struct map shape_index;                                              /* id -> any */
    VEC(struct model_allocation) ended; /* of live workloads; without devices */
    VEC(struct row_shape) shapes;
    struct model_event last_event;
    uint64_t last_workload, last_other;
    memory_store_watch_fn *watch;
    void *watcher;

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

void memory_store_watch(struct memory_store *s, memory_store_watch_fn *fn, void *user)
{
    s->watch = fn;
    s->watcher = user;
}

/* ---- rows ------------------------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    char *copy = text ? strdup(text) : NULL;

    if (text && copy == NULL)
        abort();
    return copy;
}

static void *copy_bytes(const void *from, size_t size)
{
    void *copy = malloc(size ? size : 1);

    if (copy == NULL)
        abort();
    if (size)
        memcpy(copy, from, size);
    return copy;
}

static void free_team(void *row)
{
    struct model_team *t = row;

    if (t == NULL)
        return;
    free((char *)t->name);
    free((char *)t->parent);
    for (int32_t i = 0; i < t->type_count; i++)
        free((char *)t->types[i].type);
    free((void *)t->types);
    free(t);
}

struct row_node {
    struct model_node row;
    struct arena arena;
};

static void free_node(void *row)
{
    struct row_node *n = row;

    if (n)
        arena_done(&n->arena);
    free(n);
}

static void free_workload(void *row)
{
    struct row_workload *w = row;

    if (w == NULL)
        return;
    free((char *)w->row.name);
    free((char *)w->row.team);
    free((char *)w->row.owner);
    free((char *)w->row.message);
    free(w->launch_json);
    free(w);
}

static void free_task(void *row)
{
    struct model_task *t = row;

    if (t == NULL)
        return;
    free((uint16_t *)t->devices);
    free((char *)t->node_name);
    free((char *)t->message);
    free(t);
}

static void free_allocation(void *row)
{
    struct model_allocation *a = row;

    if (a)
        free((uint16_t *)a->devices);
    free(a);
}

static void free_user(void *row)
{
    struct model_user *u = row;

    if (u)
        free((char *)u->name);
    free(u);
}

struct row_meta {
    char *key, *value;
};

static void free_meta(void *row)
{
    struct row_meta *m = row;

    if (m) {
        free(m->key);
        free(m->value);
    }
    free(m);
}

static void free_rows(struct map *m, void (*destroy)(void *row))
{
    size_t it = 0;
    void *row;

    while ((row = map_next(m, &it)) != NULL)
        destroy(row);
    map_done(m);
}

void memory_store_destroy(struct memory_store *s)
{
    free_rows(&s->teams, free_team);
    free_rows(&s->nodes, free_node);
    free_rows(&s->workloads, free_workload);
    free_rows(&s->tasks, free_task);
    free_rows(&s->users, free_user);
    free_rows(&s->meta, free_meta);
    free_rows(&s->allocations, free_allocation);
    vec_done(&s->ended);
    map_done(&s->shape_index);
    for (size_t i = 0; i < s->shapes.len; i++)
        free(s->shapes.items[i].json);
    vec_done(&s->shapes);
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
    struct model_team *copy = copy_bytes(row, sizeof(*row));
    struct model_type_quota *types;

    copy->name = copy_text(row->name);
    copy->parent = copy_text(row->parent);
    types = copy_bytes(row->types, (size_t)row->type_count * sizeof(*types));
    for (int32_t i = 0; i < row->type_count; i++)
        types[i].type = copy_text(row->types[i].type);
    copy->types = types;
    free_team(map_put(&s->teams, row->id, copy));
    note_id(&s->last_other, row->id);
}

static void put_node(struct memory_store *s, const struct model_node *row)
{
    struct row_node *copy = calloc(1, sizeof(*copy));
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    if (copy == NULL)
        abort();
    json_writer_init(&w, &text);
    model_node_encode(row, &w);
    if (model_node_decode(strbuf_str(&text), text.len, &copy->arena, &copy->row, NULL) < 0)
        abort();
    strbuf_done(&text);
    copy->row.id = row->id;
    copy->row.state = row->state;
    copy->row.drained = row->drained;
    free_node(map_put(&s->nodes, row->id, copy));
    note_id(&s->last_other, row->id);
}

static void copy_workload(struct model_workload *to, const struct model_workload *from)
{
    *to = *from;
    to->name = copy_text(from->name);
    to->team = copy_text(from->team);
    to->owner = copy_text(from->owner);
    to->message = copy_text(from->message);
    to->shape = NULL;
    to->launch = NULL;
}

static void put_shape(struct memory_store *s, uint64_t id, const char *json)
{
    if (map_get(&s->shape_index, id))
        return;
    map_put(&s->shape_index, id, s);
    vec_push(&s->shapes, ((struct row_shape){id, copy_text(json)}));
}

static void put_workload(struct memory_store *s, const struct store_new_workload *row)
{
    struct row_workload *copy = calloc(1, sizeof(*copy));

    if (copy == NULL)
        abort();
    copy_workload(&copy->row, row->row);
    copy->shape_id = row->shape_id;
    copy->launch_json = copy_text(row->launch_json);
    free_workload(map_put(&s->workloads, row->row->id, copy));
    note_id(&s->last_workload, row->row->id);
    if (row->shape_json)
        put_shape(s, row->shape_id, row->shape_json);
}

/* Nobody asks for what a workload that has ended held. */
static void drop_ended(struct memory_store *s, uint64_t workload)
{
    size_t kept = 0;

    for (size_t i = 0; i < s->ended.len; i++)
        if (s->ended.items[i].workload != workload)
            s->ended.items[kept++] = s->ended.items[i];
    s->ended.len = kept;
}

static void update_workload(struct memory_store *s, const struct model_workload *row)
{
    struct row_workload *w = map_get(&s->workloads, row->id);
    struct model_workload former = w->row;

    if (model_workload_state_is_final(row->state)) {
        free_workload(map_del(&s->workloads, row->id));
        drop_ended(s, row->id);
        for (int32_t i = 0; i < row->shape->task_count; i++)
            free_task(map_del(&s->tasks, task_key(row->id, i)));
        return;
    }
    copy_workload(&w->row, row);
    free((char *)former.name);
    free((char *)former.team);
    free((char *)former.owner);
    free((char *)former.message);
}

static void put_task(struct memory_store *s, const struct model_task *row)
{
    struct model_task *copy = copy_bytes(row, sizeof(*row));

    copy->devices = copy_bytes(row->devices, (size_t)row->device_count * sizeof(*row->devices));
    copy->node_name = copy_text(row->node_name);
    copy->message = copy_text(row->message);
    free_task(map_put(&s->tasks, task_key(row->workload, row->index), copy));
}

static void put_allocation(struct memory_store *s, const struct model_allocation *row)
{
    struct model_allocation *copy;

    note_id(&s->last_other, row->id);
    if (row->end_ms) {
        free_allocation(map_del(&s->allocations, row->id));
        vec_push(&s->ended, *row);
        s->ended.items[s->ended.len - 1].devices = NULL;
        return;
    }
    copy = copy_bytes(row, sizeof(*row));
    copy->devices = copy_bytes(row->devices, (size_t)row->device_count * sizeof(*row->devices));
    free_allocation(map_put(&s->allocations, row->id, copy));
}

static void put_user(struct memory_store *s, const struct model_user *row)
{
    struct model_user *copy = copy_bytes(row, sizeof(*row));

    copy->name = copy_text(row->name);
    copy->teams = NULL;
    copy->team_count = 0;
    free_user(map_put_str(&s->users, copy->name, copy));
}

static void put_meta(struct memory_store *s, const char *key, const char *value)
{
    struct row_meta *row = map_get_str(&s->meta, key);

    if (row == NULL) {
        row = calloc(1, sizeof(*row));
        if (row == NULL)
            abort();
        row->key = copy_text(key);
        map_put_str(&s->meta, row->key, row);
    }
    free(row->value);
    row->value = copy_text(value);
}

static void apply(struct memory_store *s, const struct store_op *op)
{
    if (s->watch)
        s->watch(s->watcher, op);
    switch (op->kind) {
    case STORE_PUT_TEAM:
        put_team(s, op->team);
        break;
    case STORE_DELETE_TEAM:
        free_team(map_del(&s->teams, op->id));
        break;
    case STORE_PUT_WORKLOAD:
        put_workload(s, op->new_workload);
        break;
    case STORE_UPDATE_WORKLOAD:
        update_workload(s, op->workload);
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
        free_user(map_del_str(&s->users, op->name));
        break;
    case STORE_PUT_META:
        put_meta(s, op->meta.key, op->meta.value);
        break;
    case STORE_ADD_EVENT:
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

static void make_durable(struct memory_store *s)
{
    for (size_t i = 0; i < s->group_len; i++) {
        s->group[i]->status = 0;
        for (const struct store_op *op = s->group[i]->first; op; op = op->next)
            apply(s, op);
    }
}

void memory_store_commit(struct memory_store *s)
{
    make_durable(s);
    answer(s);
}

void memory_store_fail(struct memory_store *s, int errnum)
{
    for (size_t i = 0; i < s->group_len; i++)
        s->group[i]->status = err_set(&s->group[i]->err, errnum, ERR_UNAVAILABLE, NULL, NULL,
                                      "the simulated disk refuses");
    answer(s);
}

void memory_store_crash(struct memory_store *s, bool durable)
{
    if (s->group && durable)
        make_durable(s);
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
    const struct row_node *n;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (n = map_next(&s->nodes, &it)) != NULL)
        r = fn(user, &n->row);
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

static int by_id(const void *a, const void *b)
{
    const struct row_workload *x = *(void *const *)a, *y = *(void *const *)b;

    return x->row.id < y->row.id ? -1 : x->row.id > y->row.id;
}

static int each_live_workload(void *store, store_workload_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    VEC(struct row_workload *) rows = {0};
    struct row_workload *w;
    size_t it = 0;
    int r = 0;

    while ((w = map_next(&s->workloads, &it)) != NULL)
        vec_push(&rows, w);
    if (rows.len)
        qsort(rows.items, rows.len, sizeof(struct row_workload *), by_id);
    for (size_t i = 0; i < rows.len && r == 0; i++)
        r = fn(user, &(struct store_workload_row){.workload = &rows.items[i]->row,
                                                  .shape_id = rows.items[i]->shape_id});
    vec_done(&rows);
    return r;
}

static int each_live_task(void *store, store_task_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    const struct model_task *row;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (row = map_next(&s->tasks, &it)) != NULL)
        r = fn(user, row);
    return r;
}

static int each_open_allocation(void *store, store_allocation_fn *fn, void *user, struct err *err)
{
    struct memory_store *s = store;
    const struct model_allocation *row;
    size_t it = 0;
    int r = 0;

    while (r == 0 && (row = map_next(&s->allocations, &it)) != NULL)
        r = fn(user, row);
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
    return model_launch_decode(w->launch_json, strlen(w->launch_json), arena, &ret_workload->launch,
                               err);
}

static int list_allocations(void *store, uint64_t workload, store_allocation_fn *fn, void *user,
                            struct err *err)
{
    struct memory_store *s = store;
    const struct model_allocation *row;
    size_t it = 0;
    int r = 0;

    for (size_t i = 0; i < s->ended.len && r == 0; i++)
        if (s->ended.items[i].workload == workload)
            r = fn(user, &s->ended.items[i]);
    while (r == 0 && (row = map_next(&s->allocations, &it)) != NULL)
        if (row->workload == workload)
            r = fn(user, row);
    return r;
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

static int last_ids(void *store, uint64_t *ret_workload, uint64_t *ret_event, uint64_t *ret_other,
                    struct err *err)
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
    .list_allocations = list_allocations,
    .get_meta = get_meta,
    .last_ids = last_ids,
};
