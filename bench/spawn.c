/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task costs on the local engine alone: no server, no store, no scheduler.
 *
 * First one after another on an idle engine: from start() to STARTED, and to EXITED. Then SLOTS
 * at a time: tasks a second, and CPU time a task of everything involved (engine, supervisor,
 * bubblewrap, init, command), read from the process and its waited-for descendants.
 *
 *     spawn SUPERVISOR [COUNT [SLOTS]]
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/qty.h"
#include "engine/local/engine_local.h"

#define COUNT_MAX 100000

struct bench {
    struct engine_local *engine;
    pthread_mutex_t lock;
    pthread_cond_t more;
    int64_t started, ended; /* how many so far */
    int64_t started_ns;
};

static void on_event(void *host, const struct engine_event *ev)
{
    struct bench *b = host;

    pthread_mutex_lock(&b->lock);
    if (ev->kind == ENGINE_STARTED) {
        b->started++;
        b->started_ns = clock_boot_ns();
    } else if (ev->kind == ENGINE_EXITED) {
        b->ended++;
        engine_local_ops()->forget(b->engine, ev->intent);
    } else if (ev->kind == ENGINE_REFUSED || ev->kind == ENGINE_LOST) {
        fprintf(stderr, "task failed: %s\n", ev->message ? ev->message : "");
        b->ended++;
    }
    pthread_cond_signal(&b->more);
    pthread_mutex_unlock(&b->lock);
}

static int load_launch(void *host, uint64_t workload, struct arena *arena,
                       const struct model_launch **ret_launch, struct err *err)
{
    static const char *const command[] = {"true", NULL};
    static const struct model_launch_group group = {.command = command};
    static const struct model_launch launch = {.groups = &group, .group_count = 1};

    *ret_launch = &launch;
    return 0;
}

static void start(struct bench *b, int64_t n)
{
    static const struct model_request request = {
        .device_count = 1, .device_milli = 1000, .cpu_milli = 1000};
    static const uint16_t device = 0;
    char intent[MODEL_INTENT_MAX];
    const struct engine_start s = {.intent = intent,
                                   .workload = 1,
                                   .task = (int32_t)n,
                                   .task_count = 1,
                                   .name = "bench",
                                   .team = "bench",
                                   .owner = "bench",
                                   .node = "node",
                                   .request = &request,
                                   .devices = &device,
                                   .device_count = 1};

    model_intent_format(1, (int32_t)n, 0, intent);
    engine_local_ops()->start(b->engine, &s);
}

static void wait_until(struct bench *b, const int64_t *counter, int64_t value)
{
    pthread_mutex_lock(&b->lock);
    while (*counter < value)
        pthread_cond_wait(&b->more, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static int by_number(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

static void print_percentiles(const char *what, int64_t *ns, int64_t count)
{
    qsort(ns, (size_t)count, sizeof(*ns), by_number);
    printf("%-28s p50 %6.2f ms  p99 %6.2f ms\n", what, (double)ns[count / 2] / NS_PER_MS,
           (double)ns[count * 99 / 100] / NS_PER_MS);
}

static void one_by_one(struct bench *b, int64_t count)
{
    int64_t *to_start = calloc((size_t)count, sizeof(int64_t));
    int64_t *to_end = calloc((size_t)count, sizeof(int64_t));

    for (int64_t i = 0; i < count && to_start && to_end; i++) {
        int64_t begin = clock_boot_ns();

        start(b, i);
        wait_until(b, &b->ended, i + 1);
        to_start[i] = b->started_ns - begin;
        to_end[i] = clock_boot_ns() - begin;
    }
    print_percentiles("start to process started", to_start, count);
    print_percentiles("start to end reported", to_end, count);
    free(to_start);
    free(to_end);
}

static double cpu_ms(void)
{
    struct rusage self, children;

    getrusage(RUSAGE_SELF, &self);
    getrusage(RUSAGE_CHILDREN, &children);
    return (double)(self.ru_utime.tv_sec + self.ru_stime.tv_sec + children.ru_utime.tv_sec +
                    children.ru_stime.tv_sec) *
               1000 +
           (double)(self.ru_utime.tv_usec + self.ru_stime.tv_usec + children.ru_utime.tv_usec +
                    children.ru_stime.tv_usec) /
               1000;
}

static void side_by_side(struct bench *b, int64_t count, int64_t slots, int64_t first)
{
    int64_t begin = clock_boot_ns(), ended = b->ended;
    double cpu = cpu_ms();
    double seconds;

    for (int64_t i = 0; i < count; i++) {
        wait_until(b, &b->ended, ended + i - slots + 1);
        start(b, first + i);
    }
    wait_until(b, &b->ended, ended + count);
    seconds = (double)(clock_boot_ns() - begin) / NS_PER_S;
    usleep(100000); /* the last supervisors are reaped */
    printf("%-28s %.0f tasks/s, %.2f ms of CPU each\n", "trivial tasks", (double)count / seconds,
           (cpu_ms() - cpu) / (double)count);
}

int main(int argc, char **argv)
{
    struct bench b = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};
    char folder[] = "/tmp/allot-bench-XXXXXX";
    struct engine_local_config config = {.devices = "8xH100", .data_dir = folder};
    struct engine_host host = {.event = on_event, .load_launch = load_launch, .host = &b};
    int64_t count = 500, slots = 8;
    struct err err = ERR_INIT;

    if (argc < 2 || (argc > 2 && qty_parse_int(argv[2], &count, &err) < 0) ||
        (argc > 3 && qty_parse_int(argv[3], &slots, &err) < 0) || count < 1 || count > COUNT_MAX ||
        slots < 1) {
        fprintf(stderr, "usage: spawn SUPERVISOR [COUNT [SLOTS]]\n");
        return 2;
    }
    log_set_level(LOG_LEVEL_ERROR);
    config.supervise_path = argv[1];
    if (mkdtemp(folder) == NULL || engine_local_create(&config, &b.engine, &err) < 0) {
        fprintf(stderr, "spawn: %s\n", err.text);
        return 1;
    }
    engine_local_attach(b.engine, host);
    one_by_one(&b, count / 4 + 1);
    side_by_side(&b, count, slots, count);
    engine_local_destroy(b.engine);
    (void)io_remove_tree(AT_FDCWD, folder);
    return 0;
}
