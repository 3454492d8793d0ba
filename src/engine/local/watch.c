/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a task as the engine sees it: what its supervisor says, how it ends, what is asked
 * of it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
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

#define RECORD_EXIT_MAX ((size_t)65536)
#define PATIENCE_MS 30000 /* beyond what a living supervisor needs to answer */

static void take_messages(struct engine_local *e, struct local_task *t);

struct local_task *task_new(struct engine_local *e, const char *intent)
{
    struct local_task *t = calloc(1, sizeof(*t));

    if (t == NULL)
        abort(); /* as the arena does */
    snprintf(t->intent, sizeof(t->intent), "%s", intent);
    t->control = -1;
    t->stop_grace_ms = -1;
    map_put_str(&e->tasks, t->intent, t);
    return t;
}

static void close_control(struct engine_local *e, struct local_task *t)
{
    if (t->control >= 0)
        engine_unwatch(e, t->control);
    t->control = -1;
}

void reaper_free(struct engine_local *e, struct reaper *r)
{
    if (r->pidfd >= 0)
        engine_unwatch(e, r->pidfd);
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
    if (r->task)
        r->task->reaper = NULL;
    free(r);
}

static struct reaper *reaper_new(struct engine_local *e, struct local_task *t)
{
    struct reaper *r = calloc(1, sizeof(*r));

    if (r == NULL)
        abort(); /* as the arena does */
    r->pidfd = -1;
    r->task = t;
    r->next = e->reapers;
    r->at = &e->reapers;
    if (r->next)
        r->next->at = &r->next;
    e->reapers = r;
    return r;
}

void task_free(struct engine_local *e, struct local_task *t)
{
    map_del_str(&e->tasks, t->intent);
    for (size_t i = 0; i < e->adopting.len; i++)
        if (e->adopting.items[i] == t) {
            vec_remove_swap(&e->adopting, i);
            break;
        }
    close_control(e, t);
    if (t->reaper)
        t->reaper->task = NULL;
    free(t->launch);
    free(t->message);
    free(t->doom);
    free(t);
}

void task_set_launch(struct local_task *t, const char *launch, size_t len)
{
    char *copy = malloc(len + 1);

    if (copy == NULL)
        abort();
    if (len > 0)
        memcpy(copy, launch, len);
    copy[len] = '\0';
    free(t->launch);
    t->launch = copy;
    t->launch_len = len;
    cgroup_set_load(copy, len, &t->cgroups);
    t->gpu_milli = record_get_i64(copy, len, "gpu_milli", 0);
    t->simulated = record_get(copy, len, "simulated") != NULL;
}

/* ---- watching ------------------------------------------------------------------------------ */

static void control_ready(struct engine_local *e, struct watch *w)
{
    struct local_task *t =
        (struct local_task *)((char *)w - offsetof(struct local_task, on_control));

    take_messages(e, t);
}

static void supervisor_died(struct engine_local *e, struct watch *w)
{
    struct reaper *r = (struct reaper *)w;
    struct local_task *t = r->task;
    char intent[MODEL_INTENT_MAX];
    siginfo_t info;

    /* ECHILD for one that another server started. */
    (void)waitid(P_PIDFD, (id_t)r->pidfd, &info, WEXITED | WNOHANG);
    reaper_free(e, r);
    if (t == NULL)
        return;
    memcpy(intent, t->intent, sizeof(intent));
    if (t->control >= 0)
        take_messages(e, t);
    /* An unwanted task is freed with its last message. */
    t = map_get_str(&e->tasks, intent);
    if (t && t->state != ENDED)
        task_bereaved(e, t);
}

int task_watch(struct engine_local *e, struct local_task *t, int control, pid_t pid)
{
    struct reaper *r = reaper_new(e, t);
    int res;

    r->on_death.ready = supervisor_died;
    t->on_control.ready = control_ready;
    r->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    res = r->pidfd < 0 ? -errno : engine_watch(e, r->pidfd, &r->on_death);
    if (res == 0)
        res = engine_watch(e, control, &t->on_control);
    if (res < 0) {
        close(control);
        reaper_free(e, r);
        return res;
    }
    t->reaper = r;
    t->control = control;
    t->patience_ms = clock_boot_ms() + PATIENCE_MS;
    if (t->stop_grace_ms >= 0)
        watch_stop(e, t->intent, t->stop_grace_ms);
    return 0;
}

static void running(struct engine_local *e, struct local_task *t, size_t len)
{
    if (t->state == RUNNING)
        return;
    t->state = RUNNING;
    t->patience_ms = t->stop_grace_ms < 0 ? 0 : t->patience_ms;
    t->started_ms = record_get_i64(e->buffer, len, "started_boot_ms", clock_boot_ms());
    engine_tell(e, t, ENGINE_STARTED);
    suspend_adopted(e, t, e->buffer, len);
    adopt_answered(e, t);
}

static void take_messages(struct engine_local *e, struct local_task *t)
{
    while (t->control >= 0) {
        ssize_t n = control_recv(t->control, e->buffer, NULL, NULL);
        const char *op;

        if (n == -EAGAIN)
            return;
        if (n <= 0) {
            close_control(e, t);
            return;
        }
        op = record_get(e->buffer, (size_t)n, "op");
        if (op == NULL || t->state == ENDED)
            continue;
        if (strcmp(op, "starting") == 0) {
            t->state = STARTING;
        } else if (strcmp(op, "running") == 0) {
            running(e, t, (size_t)n);
        } else if (strcmp(op, "gate") == 0) {
            suspend_gate_told(e, t, e->buffer, (size_t)n);
        } else if (strcmp(op, "use") == 0) {
            activity_told(t, e->buffer, (size_t)n);
        } else if (strcmp(op, "wake") == 0) {
            suspend_wake_told(e, t);
        } else if (strcmp(op, "end") == 0) {
            close_control(e, t);
            task_end_by_record(e, t, e->buffer, (size_t)n);
            return; /* T may be gone: nobody wanted it */
        }
    }
}

/* ---- ends ---------------------------------------------------------------------------------- */

void task_end(struct engine_local *e, struct local_task *t, enum engine_event_kind kind,
              const char *message)
{
    t->state = ENDED;
    t->end = kind;
    if (t->ended_ms == 0)
        t->ended_ms = clock_boot_ms();
    free(t->message);
    t->message = message ? strdup(message) : NULL;
    engine_tell(e, t, kind);
    adopt_answered(e, t);
    if (t->unwanted) {
        put_away_folder(e, t->intent);
        task_free(e, t);
    }
}

bool task_past_boot(const struct engine_local *e, const char *record, size_t len)
{
    const char *boot = record_get(record, len, "boot_id");

    return boot && e->boot_id && strcmp(boot, e->boot_id) != 0;
}

void task_end_by_record(struct engine_local *e, struct local_task *t, const char *data, size_t len)
{
    const char *kind = record_get(data, len, "kind");
    _cleanup_free_ char *message = NULL;

    if (t->doom)
        message = steal_ptr(&t->doom);
    else if (record_get(data, len, "message"))
        message = strdup(record_get(data, len, "message"));
    t->closed_ms = record_get_i64(data, len, "closed_ms", 0);
    t->closed_at_ms = 0;
    t->exit_code = (int32_t)record_get_i64(data, len, "exit_code", 0);
    t->exit_signal = (int32_t)record_get_i64(data, len, "exit_signal", 0);
    t->stopped = record_get_i64(data, len, "stopped", 0) != 0;
    t->lasting = engine_code_lasts(record_get(data, len, "code"));
    t->started_ms = record_get_i64(data, len, "started_boot_ms", t->started_ms);
    t->ended_ms = record_get_i64(data, len, "ended_boot_ms", 0);
    busy_by_cpu(t, record_get_i64(data, len, "cpu_ns", 0), t->ended_ms);
    t->past_boot = task_past_boot(e, data, len);
    if (t->past_boot) { /* its times mean nothing on this boot's clock */
        t->ran_ms = t->started_ms > 0 && t->ended_ms > t->started_ms
                        ? t->ended_ms - t->started_ms
                        : 0;
        t->ended_ms = clock_boot_ms();
    }
    if (kind && strcmp(kind, "refused") == 0)
        task_end(e, t, ENGINE_REFUSED, message);
    else if (kind && strcmp(kind, "lost") == 0)
        task_end(e, t, ENGINE_LOST, message);
    else
        task_end(e, t, ENGINE_EXITED, message);
}

/* A disk that was full or a power cut may leave one that says nothing: never a success. */
static bool is_whole(const char *data, size_t len)
{
    const char *kind = record_get(data, len, "kind");

    if (kind == NULL)
        return false;
    if (strcmp(kind, "exited") == 0)
        return record_get_i64(data, len, "exit_code", -1) >= 0;
    return strcmp(kind, "refused") == 0 || strcmp(kind, "lost") == 0;
}

int task_read_record(const struct engine_local *e, const char *intent, char **ret_data,
                     size_t *ret_len)
{
    char path[MODEL_INTENT_MAX + sizeof(CONTROL_EXIT) + 1];

    _cleanup_free_ char *data = NULL;
    size_t len;
    int r;

    snprintf(path, sizeof(path), "%s/%s", intent, CONTROL_EXIT);
    r = io_read_file(e->tasks_fd, path, RECORD_EXIT_MAX, &data, &len);
    if (r < 0)
        return r;
    if (!is_whole(data, len)) {
        log_warn("task %s: its exit record is damaged and is not believed", intent);
        return -EBADMSG;
    }
    *ret_data = steal_ptr(&data);
    *ret_len = len;
    return 0;
}

void task_bereaved(struct engine_local *e, struct local_task *t)
{
    _cleanup_free_ char *data = NULL;
    size_t len;

    close_control(e, t);
    if (task_read_record(e, t->intent, &data, &len) == 0)
        task_end_by_record(e, t, data, len);
    else if (t->state != CLEANING)
        clean_begin(e, t);
}

/* ---- requests ------------------------------------------------------------------------------ */

void watch_stop(struct engine_local *e, const char *intent, int64_t grace_ms)
{
    struct local_task *t = map_get_str(&e->tasks, intent);
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    if (t == NULL) {
        struct engine_event ev = {.kind = ENGINE_LOST,
                                  .intent = intent,
                                  .boot_ms = clock_boot_ms(),
                                  .message = "the engine does not know this task"};

        e->host.event(e->host.host, &ev);
        return;
    }
    if (t->state == ENDED) {
        engine_tell(e, t, t->end);
    } else if (t->state == PREPARING) {
        t->exit_signal = SIGTERM;
        t->exit_code = 128 + SIGTERM;
        t->stopped = true;
        task_end(e, t, ENGINE_EXITED, "stopped before it ran");
    } else if (t->control < 0) {
        t->stop_grace_ms = grace_ms;
    } else {
        record_add(&b, "op", "stop");
        record_add_i64(&b, "grace_ms", grace_ms);
        t->patience_ms = qty_add_sat(clock_boot_ms() + PATIENCE_MS, grace_ms > 0 ? grace_ms : 0);
        if (control_send(t->control, &b, -1) < 0)
            log_warn("task %s: its supervisor does not take the stop request", intent);
    }
}

static int forward_exec(struct engine_local *e, const char *intent, struct exec_call *call)
{
    struct local_task *t = map_get_str(&e->tasks, intent);
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    int r;

    if (t == NULL || t->state != RUNNING || t->control < 0)
        return err_set(call->err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "task %s is not running",
                       intent);
    activity_session(t);
    record_add(&b, "op", "exec");
    record_add_i64(&b, "tty", call->tty != 0);
    for (size_t i = 0; call->command[i]; i++)
        record_add(&b, "arg", call->command[i]);
    r = control_send(t->control, &b, call->client);
    if (r == -EMSGSIZE)
        return err_set(call->err, r, ERR_TOO_LARGE, "command", "shorten the command",
                       "command is too long");
    if (r < 0)
        return err_set(call->err, r, ERR_UNAVAILABLE, NULL, NULL,
                       "the supervisor of task %s does not answer", intent);
    return 0;
}

void watch_exec(struct engine_local *e, struct request *r)
{
    struct exec_call *call = r->exec;
    int result = forward_exec(e, r->intent, call);

    pthread_mutex_lock(&call->lock);
    call->result = result;
    call->done = true;
    pthread_cond_signal(&call->done_cond);
    pthread_mutex_unlock(&call->lock);
}

/* A supervisor that neither starts nor stops its task in time hangs: its end is ours to make. */
static void lose_patience(struct local_task *t, int64_t now)
{
    if (t->patience_ms == 0 || now < t->patience_ms || t->reaper == NULL || t->state == ENDED)
        return;
    log_warn("task %s: its supervisor does not answer and is killed", t->intent);
    (void)syscall(SYS_pidfd_send_signal, t->reaper->pidfd, SIGKILL, NULL, 0);
    t->patience_ms = now + PATIENCE_MS;
}

void watch_usage(struct engine_local *e)
{
    int64_t now = clock_boot_ms(), cpu_ns;
    struct local_task *t;
    size_t it = 0;

    while ((t = map_next(&e->tasks, &it))) {
        lose_patience(t, now);
        if (t->state != RUNNING || t->unwanted)
            continue;
        cpu_ns = t->gpu_milli > 0 ? cgroup_cpu_ns(&t->cgroups) : 0;
        busy_by_cpu(t, cpu_ns, now);
        activity_look(e, t, cpu_ns, now);
        engine_tell(e, t, ENGINE_USAGE);
    }
}
