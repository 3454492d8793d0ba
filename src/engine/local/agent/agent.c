/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot-gpu-agent DRIVER: moves processes from their devices to host memory and back, for the
 * engine, on the socket CONTROL_FD_ENGINE.
 *
 * A process of its own, since the driver's library is large, may block for as long as it likes,
 * and may crash: whatever becomes of it, the server goes on, and the next agent asks the driver
 * where each process is. It starts the driver once; each request has a thread.
 *
 *   engine -> agent   suspend {task, pid...}, resume {task, pid...}
 *   agent -> engine   done {task, result, message, remedy}   result: 0 or a negative errno
 *
 * It ends when the engine has gone.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "engine/local/control.h"
#include "engine/local/record.h"
#include "gpu/checkpoint.h"

#define LOCK_MS 5000 /* that work under way is waited for */

static const char *library;
static struct gpu_checkpoint *driver;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t sending = PTHREAD_MUTEX_INITIALIZER;

struct job {
    char *data;
    size_t len;
};

/* With the first request: a node whose tasks never sleep needs no driver here. */
static int open_driver(struct err *err)
{
    int r = 0;

    pthread_mutex_lock(&opening);
    if (driver == NULL)
        r = gpu_checkpoint_open(library, &driver, err);
    pthread_mutex_unlock(&opening);
    return r;
}

static int carry_out(const struct job *j, struct err *err)
{
    const char *op = record_get(j->data, j->len, "op"), *v;
    VEC(pid_t) pids = {0};
    size_t it = 0;
    int r = open_driver(err);

    while ((v = record_next(j->data, j->len, "pid", &it)))
        vec_push(&pids, (pid_t)strtol(v, NULL, 10));
    if (r == 0 && op && strcmp(op, "suspend") == 0)
        r = gpu_checkpoint_suspend(driver, pids.items, pids.len, LOCK_MS, err);
    else if (r == 0)
        r = gpu_checkpoint_resume(driver, pids.items, pids.len, err);
    vec_done(&pids);
    return r;
}

static void *work(void *arg)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    struct job *j = arg;
    struct err err = ERR_INIT;
    int r = carry_out(j, &err);

    record_add(&b, "op", "done");
    record_add(&b, "task", record_get(j->data, j->len, "task"));
    record_add_i64(&b, "result", r);
    if (r < 0) {
        record_add(&b, "message", err.text);
        record_add(&b, "remedy", err.remedy);
    }
    pthread_mutex_lock(&sending);
    (void)control_send(CONTROL_FD_ENGINE, &b, -1);
    pthread_mutex_unlock(&sending);
    free(j->data);
    free(j);
    return NULL;
}

static void begin(const char *data, size_t len)
{
    struct job *j = calloc(1, sizeof(*j));
    pthread_t thread;

    if (j)
        j->data = malloc(len + 1);
    if (j == NULL || j->data == NULL)
        _exit(1); /* the engine sees it, and starts another */
    memcpy(j->data, data, len);
    j->data[len] = '\0';
    j->len = len;
    if (pthread_create(&thread, NULL, work, j) != 0)
        _exit(1);
    pthread_detach(thread);
}

int main(int argc, char **argv)
{
    struct pollfd p = {.fd = CONTROL_FD_ENGINE, .events = POLLIN};
    char *message = malloc(CONTROL_MESSAGE_MAX);
    ssize_t n = -EAGAIN;

    if (argc != 2 || message == NULL)
        return 2;
    library = argv[1];
    while (n > 0 || n == -EAGAIN) {
        (void)poll(&p, 1, -1);
        n = control_recv(CONTROL_FD_ENGINE, message, NULL, NULL);
        if (n > 0)
            begin(message, (size_t)n);
    }
    _exit(0); /* the driver's own clean-up has no business with threads under way */
}
