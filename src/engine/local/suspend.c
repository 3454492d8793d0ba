/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that sleep: what they hold on devices lies in host memory, and their devices are free.
 *
 *   AWAKE    -suspend()-> CLOSING -gate closed-> SAVING -agent: done-> VERIFYING
 *   VERIFYING -driver: they hold nothing-> ASLEEP
 *   ASLEEP   -resume()->  OPENING -processes told-> RESTORING -agent: done, gate open-> AWAKE
 *
 * What core asks for meanwhile is done when the way is at its end; the last of it counts.
 *
 * The gate comes first: a program that calls the driver while it is closed waits in the shim, not
 * in the driver's own lock, and its supervisor tells that it does. What is in the way of a sleep
 * (managed memory, shared memory, work that does not end, too little host memory) is said in the
 * RESUMED that answers then, and the task runs on. A process that the driver loses on the way is
 * the end of its task.
 *
 * Nothing of this is kept but what supervisor and driver know: whether the gate is closed, and
 * where each process is. After a crash the gate says that something was under way, core says what
 * it was to come to, and the step is done again from its beginning.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/qty.h"
#include "engine/local/control.h"
#include "engine/local/engine.h"
#include "engine/local/record.h"

#define MEMINFO_MAX ((size_t)65536)
#define HEADROOM_PART 10 /* a tenth of what is moved has to be free beside it */
#define VERIFY_TRIES 5   /* looks at the driver's figures, which may lag behind */
#define AGENT_TRIES 3    /* of one step: a driver that crashes each time does not get better */

static void agent_ready(struct engine_local *e, struct watch *w);
static void agent_lost(struct engine_local *e);

/* ---- telling -------------------------------------------------------------------------------- */

static void tell_resumed(struct engine_local *e, struct local_task *t, const char *why)
{
    t->sleep = AWAKE;
    t->sleep_message = why;
    engine_tell(e, t, ENGINE_RESUMED);
    t->sleep_message = NULL;
}

static void ask_gate(struct engine_local *e, struct local_task *t, bool open)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "gate");
    record_add_i64(&b, "open", open);
    if (t->control < 0 || control_send(t->control, &b, -1) < 0)
        log_warn("task %s: its supervisor does not take the request to %s the gate", t->intent,
                 open ? "open" : "close");
}

/* It runs on, and WHY it does not sleep. */
static void run_on(struct engine_local *e, struct local_task *t, const char *why)
{
    t->sleep_wanted = t->sleep_wanted && why == NULL;
    ask_gate(e, t, true);
    tell_resumed(e, t, why);
}

/* The driver has lost a process of T: the others wait for it, or will. */
static void give_up(struct engine_local *e, struct local_task *t, const char *why)
{
    log_warn("task %s: %s", t->intent, why);
    t->sleep = AWAKE;
    free(t->doom);
    t->doom = strdup(why);
    watch_stop(e, t->intent, 0);
}

/* ---- the agent ------------------------------------------------------------------------------ */

static int agent_start(struct engine_local *e, struct err *err)
{
    int r;

    if (e->agent >= 0)
        return 0;
    r = spawn_agent(e, &e->agent, &e->agent_pid, err);
    if (r < 0)
        return r;
    e->on_agent.ready = agent_ready;
    return engine_watch(e, e->agent, &e->on_agent);
}

static void agent_close(struct engine_local *e)
{
    if (e->agent < 0)
        return;
    engine_unwatch(e, e->agent);
    e->agent = -1;
    (void)kill(e->agent_pid, SIGKILL);
    (void)waitpid(e->agent_pid, NULL, 0);
}

void suspend_close(struct engine_local *e)
{
    agent_close(e);
}

/* Sends B to the agent; to another one if it has died and nobody has noticed yet. */
static int agent_send(struct engine_local *e, const struct strbuf *b, struct err *err)
{
    int r = agent_start(e, err);

    if (r < 0)
        return r;
    engine_step(e, "agent");
    r = control_send(e->agent, b, -1);
    if (r < 0) {
        agent_lost(e);
        r = agent_start(e, err);
        if (r < 0)
            return r;
        r = control_send(e->agent, b, -1);
    }
    return r == 0 ? 0
                  : err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                            "the agent that moves device memory does not answer");
}

/* Lets the agent move the processes that RECORD names. */
static int agent_ask(struct engine_local *e, struct local_task *t, const char *op,
                     const char *record, size_t len, struct err *err)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    const char *v;
    size_t it = 0;

    record_add(&b, "op", op);
    record_add(&b, "task", t->intent);
    while ((v = record_next(record, len, "pid", &it)))
        record_add(&b, "pid", v);
    return agent_send(e, &b, err);
}

/* ---- what is in the way ---------------------------------------------------------------------- */

/* Bytes that programs of this machine can still take; -1: not known. */
static int64_t memory_available(void)
{
    _cleanup_free_ char *text = NULL;
    const char *line;
    long long kib;

    if (io_read_file(AT_FDCWD, "/proc/meminfo", MEMINFO_MAX, &text, NULL) < 0)
        return -1;
    line = strstr(text, "MemAvailable:");
    return line && sscanf(line, "MemAvailable: %lld kB", &kib) == 1 ? kib * 1024 : -1;
}

/* Why T, of which the supervisor says RECORD, cannot sleep now; NULL: it can. In ARENA. */
static const char *obstacle(struct arena *arena, const struct local_task *t, const char *record,
                            size_t len)
{
    const char *said = record_get(record, len, "obstacle");
    int64_t available = memory_available();
    char need[QTY_TEXT_MAX], have[QTY_TEXT_MAX];

    if (said)
        return arena_strdup(arena, said);
    /* Simulated memory has no content to be kept. */
    if (t->simulated || available < 0 ||
        qty_add_sat(t->host_bytes, t->host_bytes / HEADROOM_PART) <= available)
        return NULL;
    qty_format_bytes(t->host_bytes, need);
    qty_format_bytes(available, have);
    return arena_printf(
        arena, "its %s of device memory need room in host memory, where %s are free", need, have);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static void begin_saving(struct engine_local *e, struct local_task *t, const char *record,
                         size_t len)
{
    struct arena arena = {0};
    struct err err = ERR_INIT;
    const char *why;

    t->host_bytes = record_get_i64(record, len, "held", 0);
    why = obstacle(&arena, t, record, len);
    if (why == NULL && agent_ask(e, t, "suspend", record, len, &err) < 0)
        why = err.text;
    if (why)
        run_on(e, t, why);
    else
        t->sleep = SAVING;
    arena_done(&arena);
}

static void begin_restoring(struct engine_local *e, struct local_task *t, const char *record,
                            size_t len)
{
    struct err err = ERR_INIT;

    if (agent_ask(e, t, "resume", record, len, &err) < 0)
        give_up(e, t, err.text);
    else
        t->sleep = RESTORING;
}

void suspend_gate_told(struct engine_local *e, struct local_task *t, const char *record, size_t len)
{
    t->closed_ms = record_get_i64(record, len, "closed_ms", 0);
    t->closed_at_ms = record_get_i64(record, len, "closed", 0) ? clock_boot_ms() : 0;
    if (t->sleep == CLOSING)
        begin_saving(e, t, record, len);
    else if (t->sleep == OPENING)
        begin_restoring(e, t, record, len);
}

void suspend_wake_told(struct engine_local *e, struct local_task *t)
{
    if (t->sleep == ASLEEP)
        engine_tell(e, t, ENGINE_WAKE);
}

/* Goes where core wants it to be last. */
static void go_on(struct engine_local *e, struct local_task *t)
{
    if (t->sleep == (t->sleep_wanted ? ASLEEP : AWAKE))
        return;
    t->sleep = t->sleep_wanted ? CLOSING : OPENING;
    ask_gate(e, t, false);
}

/* Core is told, unless it knows or has changed its mind. */
static void fell_asleep(struct engine_local *e, struct local_task *t)
{
    int64_t now_ms = clock_boot_ms();

    t->sleep = ASLEEP;
    t->slept_ms = now_ms > t->roused_ms ? now_ms : t->roused_ms + 1;
    if (t->sleep_wanted && !t->sleep_known)
        engine_tell(e, t, ENGINE_SUSPENDED);
    t->sleep_known = false;
    go_on(e, t);
}

void suspend_verify(struct engine_local *e, struct local_task *t, int64_t bytes)
{
    if (bytes <= 0) {
        t->agent_tries = 0;
        fell_asleep(e, t);
    } else if (++t->agent_tries == VERIFY_TRIES) {
        t->agent_tries = 0;
        t->still_held = true;
        t->sleep = OPENING;
        ask_gate(e, t, false);
    }
}

/* The agent has answered about T with R and TEXT. */
static void answered(struct engine_local *e, struct local_task *t, int r, const char *text)
{
    bool saving = t->sleep == SAVING;

    t->agent_tries = 0;
    if (r == -EIO) {
        give_up(e, t, text);
    } else if (saving && r == 0) {
        t->sleep = VERIFYING;
        if (e->meter)
            busy_measure(e);
        else
            suspend_verify(e, t, -1);
    } else if (saving) {
        run_on(e, t, text);
    } else if (r == 0) {
        run_on(e, t,
               t->still_held ? "the driver counts its device memory as held all the same" : NULL);
        t->still_held = false;
        go_on(e, t);
    } else {
        /* Its devices have no room although core gave them back: it stays where it is. */
        log_warn("task %s: %s", t->intent, text);
        t->sleep_wanted = true;
        fell_asleep(e, t);
    }
}

/* The agent has died over what it was doing: each step is taken again, by another one. */
static void agent_lost(struct engine_local *e)
{
    struct local_task *t;
    size_t it = 0;

    log_warn("the agent that moves device memory has died; another one goes on");
    agent_close(e);
    while ((t = map_next(&e->tasks, &it))) {
        if (t->state != RUNNING || (t->sleep != SAVING && t->sleep != RESTORING))
            continue;
        if (++t->agent_tries == AGENT_TRIES) {
            give_up(e, t, "the driver crashes when its device memory is to be moved");
            continue;
        }
        t->sleep = t->sleep == SAVING ? CLOSING : OPENING;
        ask_gate(e, t, false);
    }
}

static void agent_ready(struct engine_local *e, struct watch *w)
{
    ssize_t n;

    while (e->agent >= 0 && (n = control_recv(e->agent, e->buffer, NULL, NULL)) != -EAGAIN) {
        const char *name, *text;
        struct local_task *t;

        if (n <= 0) {
            agent_lost(e);
            return;
        }
        name = record_get(e->buffer, (size_t)n, "task");
        text = record_get(e->buffer, (size_t)n, "message");
        t = name ? map_get_str(&e->tasks, name) : NULL;
        if (t && t->state == RUNNING && (t->sleep == SAVING || t->sleep == RESTORING))
            answered(e, t, (int)record_get_i64(e->buffer, (size_t)n, "result", -EIO),
                     text ? text : "");
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

void suspend_request(struct engine_local *e, const char *intent, bool sleep)
{
    struct local_task *t = map_get_str(&e->tasks, intent);

    if (t == NULL || t->state != RUNNING)
        return; /* core hears of its end, or of its start, and asks again */
    t->sleep_wanted = sleep;
    if (!sleep)
        t->roused_ms = clock_boot_ms();
    if (sleep && t->sleep == ASLEEP)
        engine_tell(e, t, ENGINE_SUSPENDED);
    else if (!sleep && t->sleep == AWAKE)
        tell_resumed(e, t, NULL);
    else if (t->sleep == AWAKE || t->sleep == ASLEEP)
        go_on(e, t);
}

void suspend_adopted(struct engine_local *e, struct local_task *t, const char *record, size_t len)
{
    bool closed = record_get_i64(record, len, "closed", 0) != 0;

    t->closed_ms = record_get_i64(record, len, "closed_ms", 0);
    t->closed_at_ms = closed ? clock_boot_ms() : 0;
    if (!closed && !t->sleep_wanted)
        return;
    t->sleep = t->sleep_wanted ? CLOSING : OPENING;
    ask_gate(e, t, false);
}

int64_t suspend_closed_ms(const struct local_task *t, int64_t now_ms)
{
    return t->closed_ms + (t->closed_at_ms > 0 ? now_ms - t->closed_at_ms : 0);
}
