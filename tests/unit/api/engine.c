/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "engine.h"

struct attempt {
    char intent[MODEL_INTENT_MAX];
    bool running;
    struct strbuf log;
    int64_t log_begin;
};

struct engine_double {
    pthread_mutex_t lock;
    struct map attempts; /* by intent */
    struct engine_host host;
    struct arena arena;
    struct model_node node;
};

static struct attempt *find(struct engine_double *e, const char *intent)
{
    struct attempt *a = map_get_str(&e->attempts, intent);

    if (a)
        return a;
    a = calloc(1, sizeof(*a));
    if (a == NULL)
        abort();
    memcpy(a->intent, intent, strnlen(intent, MODEL_INTENT_MAX - 1));
    map_put_str(&e->attempts, a->intent, a);
    return a;
}

static void tell(struct engine_double *e, enum engine_event_kind kind, const char *intent)
{
    struct engine_event event = {.kind = kind,
                                 .intent = intent,
                                 .boot_ms = clock_boot_ms(),
                                 .node = kind == ENGINE_NODE ? &e->node : NULL};

    e->host.event(e->host.host, &event);
}

static void on_start(void *engine, const struct engine_start *start)
{
    struct engine_double *e = engine;

    pthread_mutex_lock(&e->lock);
    find(e, start->intent)->running = true;
    pthread_mutex_unlock(&e->lock);
    tell(e, ENGINE_STARTED, start->intent);
}

/* Ends the attempt, if it runs. */
static bool end(struct engine_double *e, const char *intent, int code, bool stopped)
{
    struct engine_event event = {.kind = ENGINE_EXITED,
                                 .intent = intent,
                                 .boot_ms = clock_boot_ms(),
                                 .exit_code = code,
                                 .stopped = stopped};
    bool running;

    pthread_mutex_lock(&e->lock);
    running = find(e, intent)->running;
    find(e, intent)->running = false;
    pthread_mutex_unlock(&e->lock);
    if (running)
        e->host.event(e->host.host, &event);
    return running;
}

static void on_stop(void *engine, const char *intent, int64_t grace_ms)
{
    end(engine, intent, 143, true);
}

static void on_forget(void *engine, const char *intent)
{
}

static void on_reconcile(void *engine, const struct engine_intent *intents, size_t count)
{
    tell(engine, ENGINE_NODE, NULL);
    tell(engine, ENGINE_RECONCILED, NULL);
}

static int on_read_log(void *engine, const char *intent, int64_t offset, char *data, size_t size,
                       int64_t *ret_offset, size_t *ret_len)
{
    struct engine_double *e = engine;
    struct attempt *a;
    int64_t end;
    size_t n = 0;

    pthread_mutex_lock(&e->lock);
    a = map_get_str(&e->attempts, intent);
    if (a == NULL || a->log.data == NULL) {
        pthread_mutex_unlock(&e->lock);
        return -ENOENT;
    }
    end = (int64_t)a->log.len;
    if (offset < a->log_begin)
        offset = a->log_begin;
    if (offset < end)
        n = (size_t)(end - offset) < size ? (size_t)(end - offset) : size;
    memcpy(data, a->log.data + (offset < end ? offset : 0), n);
    pthread_mutex_unlock(&e->lock);
    *ret_offset = offset;
    *ret_len = n;
    return 0;
}

struct echo {
    int fd;
    char first[256];
};

/* Says the command, then sends back what comes. */
static void *echo_main(void *arg)
{
    struct echo *echo = arg;
    char part[1024];
    ssize_t n = (ssize_t)strlen(echo->first);

    if (send(echo->fd, echo->first, (size_t)n, MSG_NOSIGNAL) == n)
        while ((n = recv(echo->fd, part, sizeof(part), 0)) > 0)
            if (send(echo->fd, part, (size_t)n, MSG_NOSIGNAL) < 0)
                break;
    close(echo->fd);
    free(echo);
    return NULL;
}

static int on_exec(void *engine, const char *intent, const char *const *command, int tty,
                   int *ret_fd, struct err *err)
{
    struct echo *echo = calloc(1, sizeof(*echo));
    pthread_t thread;
    int pair[2];

    if (strcmp(command[0], "late") == 0) { /* for a task that has just ended */
        free(echo);
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "task %s is not running", intent);
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    snprintf(echo->first, sizeof(echo->first), "%s %s %d\n", intent, command[0], tty);
    echo->fd = pair[1];
    if (pthread_create(&thread, NULL, echo_main, echo) != 0)
        abort();
    pthread_detach(thread);
    *ret_fd = pair[0];
    return 0;
}

const struct engine_ops engine_double_ops = {
    .name = "double",
    .start = on_start,
    .stop = on_stop,
    .forget = on_forget,
    .reconcile = on_reconcile,
    .read_log = on_read_log,
    .exec = on_exec,
};

struct engine_double *engine_double_create(void)
{
    struct engine_double *e = calloc(1, sizeof(*e));

    if (e == NULL)
        abort();
    pthread_mutex_init(&e->lock, NULL);
    e->node = (struct model_node){.name = "n1",
                                  .cluster = "local",
                                  .state = MODEL_NODE_UP,
                                  .gpu_type = "H100",
                                  .sharing = "none",
                                  .limits = "cgroup2",
                                  .isolation = "bubblewrap",
                                  .cpu_milli = 64000,
                                  .memory_bytes = 512LL << 30};
    if (model_devices_from_spec("8xH100", &e->arena, &e->node.devices, &e->node.device_count,
                                NULL) < 0)
        abort();
    return e;
}

void engine_double_set_host(struct engine_double *e, struct engine_host host)
{
    e->host = host;
}

void engine_double_destroy(struct engine_double *e)
{
    struct attempt *a;
    size_t it = 0;

    while ((a = map_next(&e->attempts, &it))) {
        strbuf_done(&a->log);
        free(a);
    }
    map_done(&e->attempts);
    arena_done(&e->arena);
    pthread_mutex_destroy(&e->lock);
    free(e);
}

void engine_double_log(struct engine_double *e, const char *intent, const char *data)
{
    pthread_mutex_lock(&e->lock);
    strbuf_adds(&find(e, intent)->log, data);
    pthread_mutex_unlock(&e->lock);
}

void engine_double_rotate(struct engine_double *e, const char *intent, int64_t begin)
{
    pthread_mutex_lock(&e->lock);
    find(e, intent)->log_begin = begin;
    pthread_mutex_unlock(&e->lock);
}

bool engine_double_exit(struct engine_double *e, const char *intent, int code)
{
    return end(e, intent, code, false);
}

void engine_double_read(struct engine_double *e, const char *node,
                        const struct model_reading *readings, int32_t count, int64_t age_ms)
{
    struct engine_event event = {.kind = ENGINE_READINGS,
                                 .boot_ms = clock_boot_ms() - age_ms,
                                 .node_name = node,
                                 .readings = readings,
                                 .reading_count = count};

    e->host.event(e->host.host, &event);
}
