/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/virtual_engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_STOPPING, PHASE_ENDED };

struct vtask {
    char intent[MODEL_INTENT_MAX];
    enum phase phase;
    int64_t at_ms; /* when the phase ends by itself */
    enum engine_event_kind end;
    int32_t exit_code;
    bool stopped;
    int64_t ended_ms, started_ms;
    uint16_t devices[MODEL_DEVICES_MAX];
    int32_t device_count;
    int32_t milli; /* of each device */
    bool forgotten;
};

/* An event on its way to core. */
struct mail {
    int64_t at_ms;
    enum engine_event_kind kind;
    struct vtask *task;
    int64_t boot_ms;
};

struct virtual_engine {
    struct rng rng;
    struct virtual_faults faults;
    const struct model_node *node;
    struct engine_host host;
    int64_t now_ms;
    struct map by_intent;
    VEC(struct vtask *) tasks;
    VEC(struct mail) mail;
    int32_t used[MODEL_DEVICES_MAX]; /* milli */
};

static void broken(const char *promise, const char *intent)
{
    fprintf(stderr, "# the engine's contract is broken: %s (%s)\n", promise, intent);
    abort();
}

struct virtual_engine *virtual_engine_create(uint64_t seed, const struct virtual_faults *faults,
                                             const struct model_node *node)
{
    struct virtual_engine *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    rng_seed(&e->rng, seed);
    e->faults = *faults;
    e->node = node;
    return e;
}

void virtual_engine_destroy(struct virtual_engine *e)
{
    for (size_t i = 0; i < e->tasks.len; i++)
        free(e->tasks.items[i]);
    vec_done(&e->tasks);
    vec_done(&e->mail);
    map_done(&e->by_intent);
    free(e);
}

static bool chance(struct virtual_engine *e, int32_t permille)
{
    return permille > 0 && (int32_t)rng_below(&e->rng, 1000) < permille;
}

static void post(struct virtual_engine *e, enum engine_event_kind kind, struct vtask *t)
{
    int copies = chance(e, e->faults.repeat_permille) ? 2 : 1;

    if (e->host.event == NULL)
        return;
    for (int i = 0; i < copies; i++) {
        int64_t late = (int64_t)rng_below(&e->rng, (uint64_t)e->faults.delay_ms + 1);
        vec_push(&e->mail, ((struct mail){e->now_ms + late, kind, t, e->now_ms}));
    }
}

static void deliver(struct virtual_engine *e, const struct mail *m)
{
    struct engine_event event = {.kind = m->kind, .boot_ms = m->boot_ms};

    if (m->kind == ENGINE_NODE)
        event.node = e->node;
    if (m->task) {
        event.intent = m->task->intent;
        event.exit_code = m->task->exit_code;
        event.stopped = m->task->stopped;
        event.busy_ns = (m->task->ended_ms - m->task->started_ms) * 500000;
    }
    if (e->host.event)
        e->host.event(e->host.host, &event);
}

static void hold(struct virtual_engine *e, struct vtask *t, int by)
{
    for (int32_t i = 0; i < t->device_count; i++) {
        e->used[t->devices[i]] += by * t->milli;
        if (e->used[t->devices[i]] > 1000)
            broken("a device is handed out twice", t->intent);
    }
}

static void end(struct virtual_engine *e, struct vtask *t, enum engine_event_kind how, int code)
{
    hold(e, t, -1);
    t->phase = PHASE_ENDED;
    t->end = how;
    t->exit_code = code;
    t->ended_ms = e->now_ms;
    post(e, how, t);
}

static struct vtask *find(struct virtual_engine *e, const char *intent)
{
    return map_get(&e->by_intent, map_hash(intent, strlen(intent)));
}

static void ve_start(void *engine, const struct engine_start *s)
{
    struct virtual_engine *e = engine;
    struct vtask *t = find(e, s->intent);

    if (t)
        return; /* twice is once */
    t = calloc(1, sizeof(*t));
    if (t == NULL)
        abort();
    snprintf(t->intent, sizeof(t->intent), "%s", s->intent);
    t->device_count = s->device_count;
    t->milli = s->request->device_milli;
    memcpy(t->devices, s->devices, (size_t)s->device_count * sizeof(*s->devices));
    t->started_ms = t->ended_ms = e->now_ms;
    t->at_ms = e->now_ms + 1 + (int64_t)rng_below(&e->rng, 20);
    map_put(&e->by_intent, map_hash(t->intent, strlen(t->intent)), t);
    vec_push(&e->tasks, t);
    hold(e, t, 1);
    if (chance(e, e->faults.refuse_permille))
        end(e, t, ENGINE_REFUSED, 0);
}

static void ve_stop(void *engine, const char *intent, int64_t grace_ms)
{
    struct virtual_engine *e = engine;
    struct vtask *t = find(e, intent);

    if (t == NULL)
        return;
    if (t->phase == PHASE_ENDED) {
        post(e, t->end, t);
    } else if (t->phase == PHASE_RUNNING && chance(e, 50)) {
        end(e, t, ENGINE_EXITED, 0); /* it was about to end anyway */
    } else if (t->phase != PHASE_STOPPING) {
        t->phase = PHASE_STOPPING;
        t->at_ms = e->now_ms + (int64_t)rng_below(&e->rng, (uint64_t)grace_ms + 1);
    }
}

static void ve_forget(void *engine, const char *intent)
{
    struct virtual_engine *e = engine;
    struct vtask *t = find(e, intent);

    if (t && t->phase != PHASE_ENDED)
        broken("a running task is forgotten", intent);
    if (t)
        t->forgotten = true;
}

static void answer_for(struct virtual_engine *e, const struct engine_intent *intent)
{
    struct vtask *t = find(e, intent->intent);
    struct engine_event lost = {
        .kind = ENGINE_LOST, .intent = intent->intent, .boot_ms = e->now_ms};

    if (t == NULL || t->forgotten)
        e->host.event(e->host.host, &lost);
    else if (t->phase == PHASE_ENDED)
        post(e, t->end, t);
    else if (t->phase != PHASE_STARTING)
        post(e, ENGINE_STARTED, t);
}

static void ve_reconcile(void *engine, const struct engine_intent *intents, size_t count)
{
    struct virtual_engine *e = engine;

    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];
        bool known = false;

        for (size_t k = 0; k < count && !known; k++)
            known = strcmp(intents[k].intent, t->intent) == 0;
        if (!known && t->phase != PHASE_ENDED)
            end(e, t, ENGINE_EXITED, 137);
    }
    for (size_t i = 0; i < count; i++)
        answer_for(e, &intents[i]);
    deliver(e, &(struct mail){.kind = ENGINE_RECONCILED, .boot_ms = e->now_ms});
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
    .forget = ve_forget,
    .reconcile = ve_reconcile,
    .read_log = ve_read_log,
    .exec = ve_exec,
};

void virtual_engine_attach(struct virtual_engine *e, struct engine_host host)
{
    e->host = host;
    deliver(e, &(struct mail){.kind = ENGINE_NODE, .boot_ms = e->now_ms});
}

void virtual_engine_detach(struct virtual_engine *e)
{
    e->host = (struct engine_host){0};
    vec_clear(&e->mail);
}

static void phase_over(struct virtual_engine *e, struct vtask *t)
{
    switch (t->phase) {
    case PHASE_STARTING:
        t->phase = PHASE_RUNNING;
        t->started_ms = e->now_ms;
        t->at_ms = e->now_ms + 1 + (int64_t)rng_below(&e->rng, (uint64_t)e->faults.run_ms);
        post(e, ENGINE_STARTED, t);
        break;
    case PHASE_RUNNING:
        if (chance(e, e->faults.lose_permille))
            end(e, t, ENGINE_LOST, 0);
        else
            end(e, t, ENGINE_EXITED, chance(e, e->faults.fail_permille) ? 3 : 0);
        break;
    case PHASE_STOPPING:
        t->stopped = true;
        end(e, t, ENGINE_EXITED, 143);
        break;
    case PHASE_ENDED:
        break;
    }
}

int64_t virtual_engine_advance(struct virtual_engine *e, int64_t now_ms)
{
    int64_t next = INT64_MAX;

    e->now_ms = now_ms;
    for (size_t i = 0; i < e->tasks.len; i++) {
        struct vtask *t = e->tasks.items[i];

        while (t->phase != PHASE_ENDED && t->at_ms <= now_ms)
            phase_over(e, t);
        if (t->phase != PHASE_ENDED && t->at_ms < next)
            next = t->at_ms;
    }
    for (size_t i = 0; i < e->mail.len;) {
        struct mail m = e->mail.items[i];

        if (m.at_ms > now_ms) {
            next = m.at_ms < next ? m.at_ms : next;
            i++;
            continue;
        }
        /* Swapping in the last one delivers mail of different tasks out of order. */
        vec_remove_swap(&e->mail, i);
        deliver(e, &m);
    }
    return next;
}

size_t virtual_engine_running(const struct virtual_engine *e)
{
    size_t n = 0;

    for (size_t i = 0; i < e->tasks.len; i++)
        n += e->tasks.items[i]->phase != PHASE_ENDED;
    return n;
}
