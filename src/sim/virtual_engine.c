/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/virtual_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/virtual_engine_internal.h"

#define NODES (sizeof(((struct virtual_engine *)NULL)->nodes) / sizeof(struct vnode))

static char gone_mark;
#define GONE ((void *)&gone_mark)

void virtual_engine_note_broken(struct virtual_engine *e, const char *promise, const char *intent)
{
    if (e->broken[0] == '\0')
        snprintf(e->broken, sizeof(e->broken),
                 "the engine is asked for what cannot be: %.80s (%.40s)", promise, intent);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
    return h ^ h >> 29;
}

struct virtual_engine *virtual_engine_create(void)
{
    struct virtual_engine *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    e->late_ms = e->repeat_ms = -1;
    e->calls_left = UINT32_MAX;
    return e;
}

static void vtask_free(struct vtask *t)
{
    free(t->devices);
    free(t->name);
    free(t);
}

void virtual_engine_destroy(struct virtual_engine *e)
{
    for (size_t i = 0; i < e->tasks.len; i++)
        vtask_free(e->tasks.items[i]);
    vec_done(&e->tasks);
    vec_done(&e->mail);
    map_done(&e->by_intent);
    sim_ledger_done(&e->ledger);
    free(e);
}

/* ---- events ----------------------------------------------------------------------------- */

static uint64_t key_of(const char *intent)
{
    return map_hash(intent, strlen(intent)) | 1;
}

static struct vtask *find(struct virtual_engine *e, uint64_t key)
{
    void *t = map_get(&e->by_intent, key);

    return t == GONE ? NULL : t;
}

static bool in_sight(const struct virtual_engine *e, const struct vtask *t)
{
    return !e->nodes[t->node].lost;
}

static void send(struct virtual_engine *e, const struct mail *m)
{
    vec_push(&e->mail, *m);
    e->mail.items[e->mail.len - 1].seq = e->mail_seq++;
}

/* When what KIND tells of happened. */
static int64_t happened_ms(const struct virtual_engine *e, enum engine_event_kind kind,
                           const struct vtask *t)
{
    if (kind == ENGINE_STARTED)
        return t->started_ms;
    if (kind == ENGINE_SUSPENDED)
        return t->slept_ms;
    return kind == ENGINE_RESUMED || kind == ENGINE_WAKE ? e->now_ms : t->ended_ms;
}

void vtask_post(struct virtual_engine *e, enum engine_event_kind kind, struct vtask *t,
                const char *message)
{
    struct mail m = {
        .at_ms = e->now_ms + (int64_t)(mix(t->chance, kind) % (TRAVEL_MS + 1)),
        .kind = kind,
        .boot_ms = happened_ms(e, kind, t),
        .past_boot = t->past_boot,
        .ran_ms = t->ran_ms,
        .awake_ms = vtask_awake_ms(e, t),
        .key = key_of(t->intent),
        .node = t->node,
        .message = message,
    };

    if (e->host.event == NULL)
        return;
    if (e->late_ms >= 0)
        m.at_ms += e->late_ms;
    e->late_ms = -1;
    if (m.at_ms < t->last_mail_ms)
        m.at_ms = t->last_mail_ms;
    t->last_mail_ms = m.at_ms;
    send(e, &m);
    if (e->repeat_ms >= 0) {
        m.at_ms += e->repeat_ms;
        send(e, &m);
    }
    e->repeat_ms = -1;
}

static void post(struct virtual_engine *e, enum engine_event_kind kind, struct vtask *t)
{
    vtask_post(e, kind, t, NULL);
}

static void report_node(struct virtual_engine *e, uint32_t index)
{
    struct model_node row = *e->nodes[index].row;
    struct engine_event event = {.kind = ENGINE_NODE, .boot_ms = e->now_ms, .node = &row};

    row.state = e->nodes[index].lost ? MODEL_NODE_DOWN : MODEL_NODE_UP;
    if (e->host.event)
        e->host.event(e->host.host, &event);
}

static void deliver(struct virtual_engine *e, const struct mail *m)
{
    const struct vtask *t = find(e, m->key);
    struct engine_event event = {
        .kind = m->kind, .boot_ms = m->boot_ms, .past_boot = m->past_boot, .ran_ms = m->ran_ms};

    /* A repeated one may arrive when the task is forgotten: that cannot be told from silence. */
    if (t == NULL || e->host.event == NULL)
        return;
    event.intent = t->intent;
    event.exit_code = t->exit_code;
    event.stopped = t->stopped;
    event.lasting = t->lasting;
    event.message = m->message;
    event.host_bytes = t->host_bytes;
    event.known_ns = m->awake_ms * t->gpu_milli * 1000;
    event.busy_ns = event.known_ns / 2;
    e->host.event(e->host.host, &event);
}

void vtask_vacate(struct virtual_engine *e, struct vtask *t)
{
    bool asleep = t->sleep == ASLEEP;

    sim_ledger_release(&e->ledger, t->node, asleep ? t->asleep : t->request, t->devices,
                       asleep ? 0 : t->device_count);
    t->awake_ms = vtask_awake_ms(e, t);
    t->awake_at_ms = 0;
}

void vtask_end(struct virtual_engine *e, struct vtask *t, enum engine_event_kind how, int32_t code)
{
    vtask_vacate(e, t);
    t->phase = PHASE_ENDED;
    t->at_ms = INT64_MAX;
    t->end = how;
    t->exit_code = code;
    t->ended_ms = e->now_ms;
    post(e, how, t);
}

/* ---- what core asks for ----------------------------------------------------------------- */

/* Does core still live to make this call? */
static bool heard(struct virtual_engine *e, int what, const char *intent)
{
    if (e->calls_left == 0)
        return false;
    if (e->calls_left != UINT32_MAX)
        e->calls_left--;
    e->trace = mix(mix(e->trace, (uint64_t)what), key_of(intent));
    return true;
}

static uint32_t node_by_name(const struct virtual_engine *e, const char *name)
{
    for (uint32_t i = 0; i < NODES; i++)
        if (e->nodes[i].row && strcmp(e->nodes[i].row->name, name) == 0)
            return i;
    return UINT32_MAX;
}

static const struct sched_request nothing;

void vtask_occupy(struct virtual_engine *e, struct vtask *t)
{
    struct err err = ERR_INIT;
    bool open = e->ledger.nodes[t->node].open;
    bool asleep = t->sleep == ASLEEP;

    /* Drained or lost meanwhile: that is no fault of core. */
    e->ledger.nodes[t->node].open = true;
    if (sim_ledger_take(&e->ledger, t->node, asleep ? t->asleep : t->request, t->devices,
                        asleep ? 0 : t->device_count, &err) < 0) {
        virtual_engine_note_broken(e, err.text, t->intent);
        t->device_count = 0;
        t->request = t->asleep = &nothing;
    }
    e->ledger.nodes[t->node].open = open;
}

/* What T keeps when it is suspended. */
static const struct sched_request *without_devices(struct virtual_engine *e,
                                                   const struct model_request *request)
{
    struct model_request rest = {.cpu_milli = request->cpu_milli,
                                 .memory_bytes = request->memory_bytes};

    return sim_ledger_model_request(&e->ledger, &rest);
}

static struct vtask *vtask_new(struct virtual_engine *e, const struct engine_start *s,
                               uint32_t node)
{
    struct vtask *t = calloc(1, sizeof(*t));
    size_t size = (size_t)s->device_count * sizeof(*s->devices);

    if (t == NULL || (t->name = strdup(s->name)) == NULL ||
        (t->devices = malloc(size ? size : 1)) == NULL)
        abort();
    snprintf(t->intent, sizeof(t->intent), "%s", s->intent);
    t->workload = s->workload;
    t->index = s->task;
    t->node = node;
    t->request = sim_ledger_model_request(&e->ledger, s->request);
    t->asleep = without_devices(e, s->request);
    t->suspendable = s->suspendable;
    t->gpu_milli = s->request->device_count * s->request->device_milli;
    t->device_count = (uint32_t)s->device_count;
    if (size)
        memcpy(t->devices, s->devices, size);
    t->chance =
        mix(mix(map_hash(s->name, strlen(s->name)), (uint64_t)s->task), (uint64_t)s->attempt);
    t->stop_grace_ms = -1;
    t->started_ms = t->ended_ms = e->now_ms;
    t->at_ms = e->now_ms + 1 + (int64_t)(t->chance % LAUNCH_MS);
    return t;
}

static void ve_start(void *engine, const struct engine_start *s)
{
    struct virtual_engine *e = engine;
    uint64_t key = key_of(s->intent);
    uint32_t node = node_by_name(e, s->node);
    struct vtask *t;

    if (!heard(e, 's', s->intent))
        return;
    if (map_get(&e->by_intent, key) == GONE)
        virtual_engine_note_broken(e, "started again after it had been forgotten", s->intent);
    if (node == UINT32_MAX)
        virtual_engine_note_broken(e, "started on a node that does not exist", s->intent);
    if (node == UINT32_MAX || map_get(&e->by_intent, key))
        return; /* twice is once */
    t = vtask_new(e, s, node);
    map_put(&e->by_intent, key, t);
    vec_push(&e->tasks, t);
    vtask_occupy(e, t);
    if (e->refuse || e->nodes[node].lost) {
        t->lasting = e->refuse && e->refuse_lasting;
        e->refuse = false;
        vtask_end(e, t, ENGINE_REFUSED, 0);
    }
}

static void ask_to_stop(struct virtual_engine *e, struct vtask *t, int64_t grace_ms)
{
    int64_t at_ms = e->now_ms + (int64_t)(mix(t->chance, 's') % (uint64_t)(grace_ms + 1));

    if (t->phase == PHASE_RUNNING && mix(t->chance, 'r') % 20 == 0) {
        vtask_end(e, t, ENGINE_EXITED, 0); /* it was about to end anyway */
    } else if (t->phase != PHASE_STOPPING || at_ms < t->at_ms) {
        t->phase = PHASE_STOPPING;
        t->at_ms = at_ms;
    }
}

static void ve_stop(void *engine, const char *intent, int64_t grace_ms)
{
    struct virtual_engine *e = engine;
    struct vtask *t;

    if (!heard(e, 'x', intent))
        return;
    t = find(e, key_of(intent));
    if (t == NULL)
        return;
    if (t->phase == PHASE_ENDED)
        post(e, t->end, t);
    else if (in_sight(e, t))
        ask_to_stop(e, t, grace_ms);
    else
        t->stop_grace_ms = grace_ms;
}

static void ask_to_sleep(struct virtual_engine *e, int what, const char *intent)
{
    struct vtask *t;

    if (!heard(e, what, intent))
        return;
    t = find(e, key_of(intent));
    if (t == NULL)
        return;
    if (!t->suspendable)
        virtual_engine_note_broken(e, "suspended although it was not started for that", intent);
    t->to_sleep = what == 'z';
    if (t->phase == PHASE_ENDED)
        post(e, t->end, t);
    else if (t->phase == PHASE_RUNNING && in_sight(e, t))
        vtask_move(e, t);
}

static void ve_suspend(void *engine, const char *intent)
{
    ask_to_sleep(engine, 'z', intent);
}

static void ve_resume(void *engine, const char *intent)
{
    ask_to_sleep(engine, 'w', intent);
}

static void drop(struct virtual_engine *e, struct vtask *t)
{
    for (size_t i = 0; i < e->tasks.len; i++) {
        if (e->tasks.items[i] != t)
            continue;
        memmove(&e->tasks.items[i], &e->tasks.items[i + 1],
                (e->tasks.len - i - 1) * sizeof(struct vtask *));
        e->tasks.len--;
        break;
    }
    map_put(&e->by_intent, key_of(t->intent), GONE);
    vtask_free(t);
}

static void ve_forget(void *engine, const char *intent)
{
    struct virtual_engine *e = engine;
    struct vtask *t;

    if (!heard(e, 'f', intent))
        return;
    t = find(e, key_of(intent));
    if (t && t->phase != PHASE_ENDED)
        virtual_engine_note_broken(e, "a running task is forgotten", intent);
    else if (t)
        drop(e, t);
}

/* T is in sight of core again. */
static void go_on_sleeping(struct virtual_engine *e, struct vtask *t)
{
    if (t->to_sleep != (t->sleep == ASLEEP) || (t->to_sleep && t->untold))
        vtask_move(e, t);
    t->untold = false;
    if (t->sleep == ASLEEP)
        vtask_call(e, t);
}

static void answer_for(struct virtual_engine *e, const struct engine_intent *intent)
{
    struct vtask *t = find(e, key_of(intent->intent));
    struct engine_event lost = {
        .kind = ENGINE_LOST, .intent = intent->intent, .boot_ms = e->now_ms};

    if (t == NULL)
        e->host.event(e->host.host, &lost);
    else if (t->phase == PHASE_ENDED)
        post(e, t->end, t);
    else if (t->phase != PHASE_STARTING && in_sight(e, t))
        post(e, ENGINE_STARTED, t);
    if (t == NULL || t->phase != PHASE_RUNNING)
        return;
    t->to_sleep = intent->suspended;
    t->untold = intent->state != MODEL_TASK_SUSPENDED;
    if (in_sight(e, t))
        go_on_sleeping(e, t);
}

static void ve_reconcile(void *engine, const struct engine_intent *intents, size_t count)
{
    struct virtual_engine *e = engine;
    struct engine_event done = {.kind = ENGINE_RECONCILED, .boot_ms = e->now_ms};

    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];
        bool known = false;

        for (size_t k = 0; k < count && !known; k++)
            known = strcmp(intents[k].intent, t->intent) == 0;
        if (known || t->phase == PHASE_ENDED)
            continue;
        if (in_sight(e, t))
            vtask_end(e, t, ENGINE_EXITED, 137);
        else
            t->unknown = true;
    }
    for (size_t i = 0; i < count; i++)
        answer_for(e, &intents[i]);
    e->host.event(e->host.host, &done);
}

static int ve_read_log(void *engine, const char *intent, int64_t offset, char *data, size_t size,
                       int64_t *ret_offset, size_t *ret_len)
{
    return -ENOENT; /* virtual tasks say nothing */
}

static int ve_exec(void *engine, const char *intent, const char *const *command, int tty,
                   int *ret_fd, struct err *err)
{
    return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL, NULL, "virtual tasks run nothing");
}

const struct engine_ops virtual_engine_ops = {
    .name = "virtual",
    .start = ve_start,
    .stop = ve_stop,
    .suspend = ve_suspend,
    .resume = ve_resume,
    .forget = ve_forget,
    .reconcile = ve_reconcile,
    .read_log = ve_read_log,
    .exec = ve_exec,
};

/* ---- nodes ------------------------------------------------------------------------------ */

void virtual_engine_node(struct virtual_engine *e, uint32_t index, const struct model_node *node)
{
    e->nodes[index].row = node;
    sim_ledger_model_node(&e->ledger, index, node);
    report_node(e, index);
}

/* What a task was about to say dies with its node. */
static void drop_mail(struct virtual_engine *e, uint64_t key)
{
    for (size_t i = 0; i < e->mail.len;) {
        if (e->mail.items[i].key == key)
            vec_remove_swap(&e->mail, i);
        else
            i++;
    }
}

void virtual_engine_lose(struct virtual_engine *e, uint32_t index, bool dies)
{
    if (index >= NODES || e->nodes[index].row == NULL || e->nodes[index].lost)
        return;
    e->nodes[index].lost = true;
    report_node(e, index);
    for (size_t i = 0; dies && i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];

        if (t->node != index || t->phase == PHASE_ENDED)
            continue;
        if (e->late_ms < 0)
            e->late_ms = FENCE_MS;
        drop_mail(e, key_of(t->intent));
        vtask_end(e, t, ENGINE_LOST, 0);
    }
}

static void seen_again(struct virtual_engine *e, struct vtask *t)
{
    if (t->unknown) {
        vtask_end(e, t, ENGINE_EXITED, 137);
        return;
    }
    if (t->phase == PHASE_RUNNING)
        post(e, ENGINE_STARTED, t);
    if (t->phase == PHASE_RUNNING)
        go_on_sleeping(e, t);
    if (t->stop_grace_ms >= 0)
        ask_to_stop(e, t, t->stop_grace_ms);
    t->stop_grace_ms = -1;
}

void virtual_engine_return(struct virtual_engine *e, uint32_t index)
{
    if (index >= NODES || e->nodes[index].row == NULL || !e->nodes[index].lost)
        return;
    e->nodes[index].lost = false;
    report_node(e, index);
    for (size_t i = 0; i < e->tasks.len; i++)
        if (e->tasks.items[i]->node == index && e->tasks.items[i]->phase != PHASE_ENDED)
            seen_again(e, e->tasks.items[i]);
}

bool virtual_engine_node_up(const struct virtual_engine *e, uint32_t index)
{
    return index < NODES && e->nodes[index].row && !e->nodes[index].lost;
}

/* ---- life ------------------------------------------------------------------------------- */

void virtual_engine_attach(struct virtual_engine *e, struct engine_host host)
{
    e->host = host;
    e->calls_left = UINT32_MAX;
    for (uint32_t i = 0; i < NODES; i++)
        if (e->nodes[i].row)
            report_node(e, i);
}

void virtual_engine_cut(struct virtual_engine *e, uint32_t calls)
{
    e->calls_left = calls;
}

void virtual_engine_detach(struct virtual_engine *e)
{
    e->host = (struct engine_host){0};
    vec_clear(&e->mail);
    for (size_t i = 0; i < e->tasks.len; i++)
        e->tasks.items[i]->last_mail_ms = 0;
}

void virtual_engine_reboot(struct virtual_engine *e, int64_t now_ms)
{
    e->now_ms = now_ms;
    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];

        if (t->phase == PHASE_ENDED && !t->past_boot)
            t->ran_ms = t->ended_ms - t->started_ms;
        t->past_boot = true;
        t->awake_ms = t->awake_at_ms = 0;
        t->started_ms = t->ended_ms = now_ms;
        if (t->phase != PHASE_ENDED)
            vtask_end(e, t, ENGINE_LOST, 0);
    }
}

/* ---- what is asked for from outside ----------------------------------------------------- */

bool virtual_engine_finish(struct virtual_engine *e, const char *name, int32_t task, int32_t code,
                           bool lost)
{
    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];

        if (t->index != task || t->phase == PHASE_ENDED || strcmp(t->name, name) != 0 ||
            !in_sight(e, t))
            continue;
        vtask_end(e, t, lost ? ENGINE_LOST : ENGINE_EXITED, code);
        return true;
    }
    return false;
}

void virtual_engine_refuse(struct virtual_engine *e, bool lasting)
{
    e->refuse = true;
    e->refuse_lasting = lasting;
}

bool virtual_engine_call(struct virtual_engine *e, const char *name)
{
    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];

        if (t->phase != PHASE_RUNNING || t->sleep != ASLEEP || strcmp(t->name, name) != 0)
            continue;
        t->calls = true;
        if (in_sight(e, t))
            vtask_call(e, t);
        return true;
    }
    return false;
}

void virtual_engine_hinder(struct virtual_engine *e, enum virtual_hinder what)
{
    e->hinder[what] = true;
}

void virtual_engine_late(struct virtual_engine *e, int64_t ms)
{
    e->late_ms = ms;
}

void virtual_engine_repeat(struct virtual_engine *e, int64_t ms)
{
    e->repeat_ms = ms;
}

void virtual_engine_reorder(struct virtual_engine *e)
{
    size_t n = e->mail.len;

    /* The first on its way changes places with the last, and so on, unless the task has others:
     * those keep their order. */
    for (size_t i = 0; i < n / 2; i++) {
        struct mail *a = &e->mail.items[i], *b = &e->mail.items[n - 1 - i];
        int64_t at_ms = a->at_ms;
        bool alone = true;

        for (size_t k = 0; k < n && alone; k++)
            alone = (k == i || e->mail.items[k].key != a->key) &&
                    (k == n - 1 - i || e->mail.items[k].key != b->key);
        if (!alone)
            continue;
        a->at_ms = b->at_ms;
        b->at_ms = at_ms;
    }
}

/* ---- time ------------------------------------------------------------------------------- */

static void phase_over(struct virtual_engine *e, struct vtask *t)
{
    switch (t->phase) {
    case PHASE_STARTING:
        t->phase = PHASE_RUNNING;
        t->started_ms = t->awake_at_ms = e->now_ms;
        t->at_ms = INT64_MAX;
        post(e, ENGINE_STARTED, t);
        break;
    case PHASE_STOPPING:
        t->stopped = true;
        vtask_end(e, t, ENGINE_EXITED, 143);
        break;
    case PHASE_RUNNING:
        vtask_moved(e, t);
        break;
    case PHASE_ENDED:
        break;
    }
}

/* The first thing of tasks that is due until UNTIL, or NULL. */
static struct vtask *next_task(const struct virtual_engine *e, int64_t until_ms)
{
    struct vtask *first = NULL;

    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];

        if (t->at_ms <= until_ms && (first == NULL || t->at_ms < first->at_ms))
            first = t;
    }
    return first;
}

static bool can_arrive(const struct virtual_engine *e, const struct mail *m)
{
    /* What ended with its node is known without it. */
    return !e->nodes[m->node].lost || m->kind == ENGINE_LOST || m->kind == ENGINE_REFUSED;
}

static size_t next_mail(const struct virtual_engine *e, int64_t until_ms)
{
    size_t first = SIZE_MAX;

    for (size_t i = 0; i < e->mail.len; i++) {
        const struct mail *m = &e->mail.items[i];
        const struct mail *f = first == SIZE_MAX ? NULL : &e->mail.items[first];

        if (m->at_ms <= until_ms && can_arrive(e, m) &&
            (f == NULL || m->at_ms < f->at_ms || (m->at_ms == f->at_ms && m->seq < f->seq)))
            first = i;
    }
    return first;
}

int64_t virtual_engine_advance(struct virtual_engine *e, int64_t now_ms)
{
    struct vtask *t;
    size_t i;
    int64_t next;

    while ((t = next_task(e, now_ms)) != NULL) {
        e->now_ms = t->at_ms > e->now_ms ? t->at_ms : e->now_ms;
        phase_over(e, t);
    }
    e->now_ms = now_ms;
    while ((i = next_mail(e, now_ms)) != SIZE_MAX) {
        struct mail m = e->mail.items[i];

        vec_remove_swap(&e->mail, i);
        deliver(e, &m);
    }
    t = next_task(e, INT64_MAX - 1);
    next = t ? t->at_ms : INT64_MAX;
    i = next_mail(e, INT64_MAX - 1);
    if (i != SIZE_MAX && e->mail.items[i].at_ms < next)
        next = e->mail.items[i].at_ms;
    return next;
}

size_t virtual_engine_running(const struct virtual_engine *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->tasks.len; i++)
        n += e->tasks.items[i]->phase != PHASE_ENDED;
    return n;
}

int virtual_engine_task(const struct virtual_engine *e, size_t index, struct virtual_task *ret)
{
    for (size_t i = 0; i < e->tasks.len; i++) {
        const struct vtask *t = e->tasks.items[i];

        if (t->phase == PHASE_ENDED || index-- > 0)
            continue;
        *ret = (struct virtual_task){.workload = t->workload,
                                     .name = t->name,
                                     .task = t->index,
                                     .suspendable = t->suspendable,
                                     .asleep = t->sleep == ASLEEP};
        return 0;
    }
    return -ENOENT;
}

uint64_t virtual_engine_trace(const struct virtual_engine *e)
{
    return e->trace;
}

const char *virtual_engine_broken(const struct virtual_engine *e)
{
    return e->broken[0] ? e->broken : NULL;
}
