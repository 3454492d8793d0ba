/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"

#define SCRIPT_BYTES 4096

static void on_event(void *host, const struct engine_event *ev)
{
    struct fixture *f = host;
    struct seen s = {.kind = ev->kind,
                     .boot_ms = ev->boot_ms,
                     .busy_ns = ev->busy_ns,
                     .known_ns = ev->known_ns,
                     .host_bytes = ev->host_bytes,
                     .exit_code = ev->exit_code,
                     .exit_signal = ev->exit_signal,
                     .stopped = ev->stopped};

    snprintf(s.intent, sizeof(s.intent), "%s", ev->intent ? ev->intent : "");
    snprintf(s.message, sizeof(s.message), "%s", ev->message ? ev->message : "");
    if (ev->node) {
        snprintf(s.limits, sizeof(s.limits), "%s", ev->node->limits);
        snprintf(s.isolation, sizeof(s.isolation), "%s", ev->node->isolation);
        s.devices = ev->node->device_count;
    }
    if (ev->kind == ENGINE_READINGS) {
        s.devices = ev->reading_count;
        s.used = ev->reading_count > 0 ? ev->readings[0].memory_used : -1;
    }
    pthread_mutex_lock(&f->lock);
    vec_push(&f->events, s);
    pthread_cond_broadcast(&f->more);
    pthread_mutex_unlock(&f->lock);
}

static int load_launch(void *host, uint64_t workload, struct arena *arena,
                       const struct model_launch **ret_launch, struct err *err)
{
    struct fixture *f = host;
    struct model_launch *l = arena_new(arena, struct model_launch);
    struct model_launch_group *g = arena_new(arena, struct model_launch_group);

    if (workload >= FIXTURE_WORKLOADS || f->workloads[workload].command == NULL)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, NULL, "no workload %d", (int)workload);
    g->command = f->workloads[workload].command;
    g->env = f->workloads[workload].env;
    g->env_count = f->workloads[workload].env_count;
    l->groups = g;
    l->group_count = 1;
    l->image = f->workloads[workload].image;
    l->workdir = f->workloads[workload].workdir;
    l->checkpoint_dir = f->workloads[workload].checkpoint_dir;
    *ret_launch = l;
    return 0;
}

struct fixture *fixture_new(void)
{
    struct fixture *f;

    if (geteuid() != 0) {
        print_message("# tasks are started by root: skipped\n");
        return NULL;
    }
    log_set_level(LOG_LEVEL_ERROR);
    f = calloc(1, sizeof(*f));
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->more, NULL);
    snprintf(f->folder, sizeof(f->folder), "/tmp/allot-engine-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->config.data_dir = f->folder;
    f->config.devices = "4xH100";
    f->config.supervise_path = getenv("ALLOT_SUPERVISE");
    f->request = (struct model_request){.device_count = 1, .device_milli = 1000, .cpu_milli = 1000};
    f->device_count = 1;
    f->task_count = 1;
    return f;
}

void fixture_up(struct fixture *f)
{
    struct err err = ERR_INIT;
    struct engine_host host = {.event = on_event, .load_launch = load_launch, .host = f};
    int r = engine_local_create(&f->config, &f->engine, &err);

    if (r < 0)
        fail_msg("engine: %s", err.text);
    engine_local_attach(f->engine, host);
}

void fixture_down(struct fixture *f)
{
    engine_local_destroy(f->engine);
    f->engine = NULL;
}

void fixture_drop(struct fixture *f)
{
    if (f == NULL)
        return;
    /* A server that knows nothing stops everything. */
    fixture_down(f);
    fixture_clear(f);
    fixture_up(f);
    fixture_reconcile(f, NULL, 0);
    fixture_wait(f, NULL, ENGINE_RECONCILED);
    fixture_down(f);
    (void)io_remove_tree(AT_FDCWD, f->folder);
    vec_done(&f->events);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->more);
    free(f);
}

const char *fixture_marked(const char *text)
{
    static const char mark[] = "sleep 7777";
    static char marked[SCRIPT_BYTES];
    size_t n = 0;

    while (*text && n < sizeof(marked) - 32) {
        if (strncmp(text, mark, strlen(mark)) == 0) {
            n += (size_t)snprintf(marked + n, sizeof(marked) - n, "sleep 7%d", (int)getpid());
            text += strlen(mark);
        } else {
            marked[n++] = *text++;
        }
    }
    assert_int_equal(*text, '\0');
    marked[n] = '\0';
    return marked;
}

void fixture_script(struct fixture *f, int n, const char *script)
{
    static const char *words[FIXTURE_WORKLOADS][4];
    static char scripts[FIXTURE_WORKLOADS][SCRIPT_BYTES];

    snprintf(scripts[n], sizeof(scripts[n]), "%s", fixture_marked(script));
    words[n][0] = "sh";
    words[n][1] = "-c";
    words[n][2] = scripts[n];
    words[n][3] = NULL;
    f->workloads[n].command = words[n];
}

void fixture_start(struct fixture *f, int n, int rank)
{
    char intent[MODEL_INTENT_MAX];
    struct engine_start s = {.intent = intent,
                             .workload = (uint64_t)n,
                             .task = rank,
                             .task_count = f->task_count,
                             .name = "digits",
                             .team = "research",
                             .owner = "ada",
                             .node = "node",
                             .node_list = "node",
                             .request = &f->request,
                             .devices = f->devices,
                             .device_count = f->device_count,
                             .suspendable = f->suspendable};

    snprintf(intent, sizeof(intent), "%d.%d.0", n, rank);
    engine_local_ops()->start(f->engine, &s);
}

static const struct seen *find(struct fixture *f, const char *intent, enum engine_event_kind kind)
{
    for (size_t i = 0; i < f->events.len; i++)
        if (f->events.items[i].kind == kind &&
            (intent == NULL || strcmp(f->events.items[i].intent, intent) == 0))
            return &f->events.items[i];
    return NULL;
}

struct seen fixture_wait(struct fixture *f, const char *intent, enum engine_event_kind kind)
{
    const struct seen *s;
    struct seen copy = {0};
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FIXTURE_WAIT_MS / 1000;
    pthread_mutex_lock(&f->lock);
    while ((s = find(f, intent, kind)) == NULL)
        if (pthread_cond_timedwait(&f->more, &f->lock, &until) == ETIMEDOUT)
            break;
    if (s)
        copy = *s;
    else
        for (size_t i = 0; i < f->events.len; i++)
            print_error("event %d %s %s\n", (int)f->events.items[i].kind, f->events.items[i].intent,
                        f->events.items[i].message);
    pthread_mutex_unlock(&f->lock);
    if (s == NULL)
        fail_msg("no event %d about %s", (int)kind, intent ? intent : "anything");
    return copy;
}

int fixture_count(struct fixture *f, const char *intent, enum engine_event_kind kind)
{
    int n = 0;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->events.len; i++)
        n += f->events.items[i].kind == kind &&
             (intent == NULL || strcmp(f->events.items[i].intent, intent) == 0);
    pthread_mutex_unlock(&f->lock);
    return n;
}

void fixture_clear(struct fixture *f)
{
    pthread_mutex_lock(&f->lock);
    vec_clear(&f->events);
    pthread_mutex_unlock(&f->lock);
}

const char *fixture_log(struct fixture *f, const char *intent)
{
    static char data[65537];
    int64_t at;
    size_t n = 0;
    int r = engine_local_ops()->read_log(f->engine, intent, 0, data, sizeof(data) - 1, &at, &n);

    data[r == 0 ? n : 0] = '\0';
    return data;
}

void fixture_wait_log(struct fixture *f, const char *intent, const char *text)
{
    int64_t until = clock_boot_ms() + FIXTURE_WAIT_MS;

    while (strstr(fixture_log(f, intent), text) == NULL) {
        if (clock_boot_ms() > until)
            fail_msg("log of %s has no '%s': %s", intent, text, fixture_log(f, intent));
        fixture_sleep_ms(5);
    }
}

void fixture_reconcile(struct fixture *f, const char *const *intents, int count)
{
    struct engine_intent *list = calloc((size_t)count + 1, sizeof(*list));

    for (int i = 0; i < count; i++)
        list[i] = (struct engine_intent){.intent = intents[i], .state = MODEL_TASK_RUNNING};
    engine_local_ops()->reconcile(f->engine, list, (size_t)count);
    free(list);
}

static int scan(const char *text, int *ret_count)
{
    DIR *dir = opendir("/proc");
    struct dirent *e;
    int found = 0;

    *ret_count = 0;
    while (dir && (e = readdir(dir))) {
        char path[300], *data;
        size_t len;

        if (strtol(e->d_name, NULL, 10) <= 0)
            continue;
        snprintf(path, sizeof(path), "/proc/%s/cmdline", e->d_name);
        if (io_read_file(AT_FDCWD, path, 65536, &data, &len) < 0)
            continue;
        for (size_t i = 0; i + 1 < len; i++)
            if (data[i] == '\0')
                data[i] = ' ';
        if (strstr(data, text)) {
            found = (int)strtol(e->d_name, NULL, 10);
            (*ret_count)++;
        }
        free(data);
    }
    if (dir)
        closedir(dir);
    return found;
}

int fixture_supervisor(struct fixture *f, const char *intent)
{
    char text[200];
    int count;

    snprintf(text, sizeof(text), "allot-supervise %s/tasks/%s", f->folder, intent);
    return scan(text, &count);
}

int fixture_processes(const char *text)
{
    int count;

    scan(fixture_marked(text), &count);
    return count;
}

void fixture_sleep_ms(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}, NULL);
}
