/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/local/control.h"
#include "engine/local/log_parts.h"
#include "engine/local/process.h"

#define USAGE_PERIOD_S 5   /* core hears of it */
#define MEASURE_PERIOD_S 1 /* real devices, which only tell how they have been just now */
#define ADOPT_RETRY_MS 5

int engine_watch(struct engine_local *e, int fd, struct watch *w)
{
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = w};

    return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

void engine_unwatch(struct engine_local *e, int fd)
{
    (void)epoll_ctl(e->epoll, EPOLL_CTL_DEL, fd, NULL);
    close(fd);
}

void engine_step(struct engine_local *e, const char *step)
{
    if (e->settings.step)
        e->settings.step(e->settings.step_ctx, step);
}

bool engine_code_lasts(const char *code)
{
    return code && code[0] && strcmp(code, ERR_UNAVAILABLE) != 0 && strcmp(code, ERR_INTERNAL) != 0;
}

void engine_tell(struct engine_local *e, const struct local_task *t, enum engine_event_kind kind)
{
    struct engine_event ev = {.kind = kind,
                              .intent = t->intent,
                              .boot_ms = clock_boot_ms(),
                              .busy_ns = t->busy_ns,
                              .known_ns = t->known_ns};

    if (t->unwanted)
        return;
    if (kind == ENGINE_STARTED)
        ev.boot_ms = t->started_ms;
    memcpy(ev.signal_ms, t->signal_ms, sizeof(ev.signal_ms));
    ev.beyond_bytes = t->beyond_bytes;
    if (kind == ENGINE_SUSPENDED) {
        ev.boot_ms = t->slept_ms;
        ev.host_bytes = t->host_bytes;
    }
    if (kind == ENGINE_RESUMED)
        ev.message = t->sleep_message;
    if (kind == ENGINE_EXITED || kind == ENGINE_REFUSED || kind == ENGINE_LOST) {
        ev.boot_ms = t->ended_ms;
        ev.past_boot = t->past_boot;
        ev.ran_ms = t->ran_ms;
        ev.exit_code = t->exit_code;
        ev.exit_signal = t->exit_signal;
        ev.stopped = t->stopped;
        ev.lasting = t->lasting;
        ev.message = t->message;
    }
    e->host.event(e->host.host, &ev);
}

/* ---- the engine's thread ------------------------------------------------------------------- */

static void handle(struct engine_local *e, struct request *r)
{
    switch (r->kind) {
    case REQUEST_START:
        start_handle(e, r);
        return;
    case REQUEST_STOP:
        watch_stop(e, r->intent, r->grace_ms);
        break;
    case REQUEST_FORGET:
        put_away_forget(e, r->intent);
        break;
    case REQUEST_RECONCILE:
        adopt_reconcile(e, r);
        break;
    case REQUEST_EXEC:
        watch_exec(e, r);
        break;
    case REQUEST_SUSPEND:
    case REQUEST_RESUME:
        suspend_request(e, r->intent, r->kind == REQUEST_SUSPEND);
        break;
    case REQUEST_IMAGE_READY:
        start_image_ready(e, r->job);
        break;
    case REQUEST_CLEANED:
        clean_done(e, r->job);
        break;
    case REQUEST_QUIT:
        e->quit = true;
        break;
    }
    request_free(r);
}

static void queue_ready(struct engine_local *e, struct watch *w)
{
    struct request *r = queue_take(&e->queue), *next;

    for (; r; r = next) {
        next = r->next;
        handle(e, r);
    }
}

static void timer_ready(struct engine_local *e, struct watch *w)
{
    uint64_t count;

    if (read(e->timer, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return;
    busy_measure(e);
    if (e->meter && ++e->ticks % (USAGE_PERIOD_S / MEASURE_PERIOD_S) != 0)
        return;
    watch_usage(e);
    busy_report(e);
}

/* One event a turn: what one handler frees, no other event of the same turn can point to. */
static void *run(void *arg)
{
    struct engine_local *e = arg;

    while (!e->quit) {
        struct epoll_event ev;
        int n = epoll_wait(e->epoll, &ev, 1, e->adopting.len > 0 ? ADOPT_RETRY_MS : -1);

        if (n < 0 && errno != EINTR) {
            log_error("engine: waiting for events failed: %s", strerror(errno));
            break;
        }
        if (n > 0) {
            struct watch *w = ev.data.ptr;

            w->ready(e, w);
        }
        if (e->adopting.len > 0)
            adopt_again(e);
    }
    return NULL;
}

/* ---- the port ------------------------------------------------------------------------------ */

static struct request *request_about(enum request_kind kind, const char *intent)
{
    struct request *r = request_new(kind);

    r->intent = arena_strdup(&r->arena, intent);
    return r;
}

/* What the engine needs of a request for devices: amounts, not wishes. */
static const struct model_request *copy_request(struct arena *a, const struct model_request *q)
{
    struct model_request *copy = arena_memdup(a, q, sizeof(*q));
    struct model_mig *mig = arena_memdup(a, q->mig, sizeof(*q->mig) * (size_t)q->mig_count);

    for (int32_t i = 0; i < q->mig_count; i++)
        mig[i].profile = arena_strdup(a, q->mig[i].profile);
    copy->mig = mig;
    copy->gpu_types = NULL;
    copy->gpu_type_count = 0;
    copy->labels = NULL;
    copy->label_count = 0;
    return copy;
}

static void op_start(void *engine, const struct engine_start *start)
{
    struct engine_local *e = engine;
    struct request *r = request_about(REQUEST_START, start->intent);
    struct arena *a = &r->arena;

    r->start = *start;
    r->start.intent = r->intent;
    r->start.name = arena_strdup(a, start->name);
    r->start.team = arena_strdup(a, start->team);
    r->start.owner = arena_strdup(a, start->owner);
    r->start.node = arena_strdup(a, start->node);
    r->start.node_list = arena_strdup(a, start->node_list);
    r->start.request = copy_request(a, start->request);
    r->start.devices =
        arena_memdup(a, start->devices, sizeof(*start->devices) * (size_t)start->device_count);
    queue_push(&e->queue, r);
}

static void op_stop(void *engine, const char *intent, int64_t grace_ms)
{
    struct engine_local *e = engine;
    struct request *r = request_about(REQUEST_STOP, intent);

    r->grace_ms = grace_ms;
    queue_push(&e->queue, r);
}

static void op_suspend(void *engine, const char *intent)
{
    struct engine_local *e = engine;

    queue_push(&e->queue, request_about(REQUEST_SUSPEND, intent));
}

static void op_resume(void *engine, const char *intent)
{
    struct engine_local *e = engine;

    queue_push(&e->queue, request_about(REQUEST_RESUME, intent));
}

static void op_forget(void *engine, const char *intent)
{
    struct engine_local *e = engine;

    queue_push(&e->queue, request_about(REQUEST_FORGET, intent));
}

static void op_reconcile(void *engine, const struct engine_intent *intents, size_t count)
{
    struct engine_local *e = engine;
    struct request *r = request_new(REQUEST_RECONCILE);

    r->intents = arena_new_array(&r->arena, struct engine_intent, count);
    r->count = count;
    for (size_t i = 0; i < count; i++)
        r->intents[i] = (struct engine_intent){.intent = arena_strdup(&r->arena, intents[i].intent),
                                               .state = intents[i].state,
                                               .suspended = intents[i].suspended,
                                               .busy_ns = intents[i].busy_ns,
                                               .known_ns = intents[i].known_ns};
    queue_push(&e->queue, r);
}

/* A forget() may move the folder between two looks. */
static int open_task_folder(const struct engine_local *e, const char *intent)
{
    const int places[] = {e->tasks_fd, e->ended_fd, e->tasks_fd};

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        int fd = openat(places[i], intent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0 || errno != ENOENT)
            return fd < 0 ? -errno : fd;
    }
    return -ENOENT;
}

static int op_read_log(void *engine, const char *intent, int64_t offset, char *data, size_t size,
                       int64_t *ret_offset, size_t *ret_len)
{
    const struct engine_local *e = engine;
    _cleanup_close_ int folder = -1;

    if (!put_away_name_ok(intent))
        return -ENOENT;
    folder = open_task_folder(e, intent);
    if (folder < 0)
        return folder;
    return log_parts_read(folder, offset, data, size, ret_offset, ret_len);
}

static int op_exec(void *engine, const char *intent, const char *const *command, int tty,
                   int *ret_fd, struct err *err)
{
    struct engine_local *e = engine;
    struct exec_call call = {.command = command, .tty = tty, .err = err};
    struct request *r;
    int pair[2];

    if (command == NULL || command[0] == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, "command", NULL, "no command was given");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "raise the limit on open files",
                       "no socket for the session: %s", strerror(errno));
    call.client = pair[1];
    pthread_mutex_init(&call.lock, NULL);
    pthread_cond_init(&call.done_cond, NULL);
    r = request_about(REQUEST_EXEC, intent);
    r->exec = &call;
    queue_push(&e->queue, r);
    pthread_mutex_lock(&call.lock);
    while (!call.done)
        pthread_cond_wait(&call.done_cond, &call.lock);
    pthread_mutex_unlock(&call.lock);
    pthread_mutex_destroy(&call.lock);
    pthread_cond_destroy(&call.done_cond);
    close(pair[1]);
    if (call.result < 0) {
        close(pair[0]);
        return call.result;
    }
    *ret_fd = pair[0];
    return 0;
}

const struct engine_ops *engine_local_ops(void)
{
    static const struct engine_ops ops = {.name = "local",
                                          .start = op_start,
                                          .stop = op_stop,
                                          .suspend = op_suspend,
                                          .resume = op_resume,
                                          .forget = op_forget,
                                          .reconcile = op_reconcile,
                                          .read_log = op_read_log,
                                          .exec = op_exec};

    return &ops;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void raise_file_limit(void)
{
    struct rlimit r;

    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &r);
    }
}

static int open_loop(struct engine_local *e)
{
    time_t s = e->meter ? MEASURE_PERIOD_S : USAGE_PERIOD_S;
    struct itimerspec period = {.it_interval.tv_sec = s, .it_value.tv_sec = s};
    int r;

    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    e->timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    e->queue.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->cancel < 0 || e->epoll < 0 || e->timer < 0 || e->queue.wake < 0 ||
        timerfd_settime(e->timer, 0, &period, NULL) < 0)
        return -errno;
    e->on_queue.ready = queue_ready;
    e->on_timer.ready = timer_ready;
    r = engine_watch(e, e->queue.wake, &e->on_queue);
    return r < 0 ? r : engine_watch(e, e->timer, &e->on_timer);
}

static int start_helpers(struct engine_local *e, struct err *err)
{
    int r;

    busy_open(e);
    r = open_loop(e);
    if (r == 0)
        r = worker_create(&e->cleaner);
    for (int i = 0; i < ENGINE_PULLERS && r == 0; i++)
        r = worker_create(&e->pullers[i]);
    if (r == 0)
        r = put_away_load(e);
    if (r < 0)
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL, "local engine cannot start: %s",
                       strerror(-r));
    return 0;
}

int engine_local_create(const struct engine_local_config *config, struct engine_local **ret_engine,
                        struct err *err)
{
    struct engine_local *e = calloc(1, sizeof(*e));
    int r;

    if (e == NULL)
        return -ENOMEM;
    e->epoll = e->timer = e->tasks_fd = e->ended_fd = e->queue.wake = e->cancel = e->agent = -1;
    pthread_mutex_init(&e->queue.lock, NULL);
    e->queue.last = &e->queue.first;
    e->buffer = malloc(CONTROL_MESSAGE_MAX);
    e->boot_id = process_boot_id();
    raise_file_limit();
    r = e->buffer ? surroundings_find(e, config, err) : -ENOMEM;
    if (r == 0) {
        surroundings_try(e);
        r = start_helpers(e, err);
    }
    if (r < 0) {
        engine_local_destroy(e);
        return r;
    }
    *ret_engine = e;
    return 0;
}

void engine_local_attach(struct engine_local *e, struct engine_host host)
{
    struct engine_event ev = {.kind = ENGINE_NODE, .boot_ms = clock_boot_ms(), .node = &e->node};
    sigset_t all, old;

    e->host = host;
    host.event(host.host, &ev);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e->thread_runs = pthread_create(&e->thread, NULL, run, e) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (!e->thread_runs)
        log_error("engine: its thread cannot be started");
}

static void free_tasks(struct engine_local *e)
{
    struct local_task *t;
    size_t it = 0;

    while (e->reapers)
        reaper_free(e, e->reapers);
    while ((t = map_next(&e->tasks, &it))) {
        if (t->control >= 0)
            close(t->control);
        free(t->launch);
        free(t->message);
        free(t->doom);
        free(t);
    }
    map_done(&e->tasks);
}

/* Only goes where no task is left in them. */
static void remove_groups(struct engine_local *e)
{
    for (int r = 0; r < CGROUP_ROLE_COUNT; r++)
        if (e->cgroups.base[r])
            (void)rmdir(e->cgroups.base[r]);
}

/* Answers of helpers that nobody waits for any more. */
static void drop_request(struct request *r)
{
    if (r->job) {
        if (r->job->start)
            request_free(r->job->start);
        free(r->job->record);
        free(r->job);
    }
    request_free(r);
}

void engine_local_destroy(struct engine_local *e)
{
    struct request *r, *next;

    if (e == NULL)
        return;
    if (e->thread_runs) {
        queue_push(&e->queue, request_new(REQUEST_QUIT));
        pthread_join(e->thread, NULL);
    }
    if (e->cancel >= 0)
        (void)!write(e->cancel, &(uint64_t){1}, sizeof(uint64_t));
    worker_destroy(e->cleaner);
    for (int i = 0; i < ENGINE_PULLERS; i++)
        worker_destroy(e->pullers[i]);
    for (r = e->queue.first; r; r = next) {
        next = r->next;
        drop_request(r);
    }
    suspend_close(e);
    free_tasks(e);
    busy_close(e);
    remove_groups(e);
    for (size_t i = e->retained_first; i < e->retained.len; i++)
        free(e->retained.items[i]);
    vec_done(&e->retained);
    vec_done(&e->adopting);
    cleanup_close(&e->epoll);
    cleanup_close(&e->timer);
    cleanup_close(&e->cancel);
    cleanup_close(&e->queue.wake);
    cleanup_close(&e->tasks_fd);
    cleanup_close(&e->ended_fd);
    pthread_mutex_destroy(&e->queue.lock);
    arena_done(&e->launch_arena);
    arena_done(&e->arena);
    free(e->buffer);
    free(e->boot_id);
    free(e);
}
