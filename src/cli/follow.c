/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One reader goes through the attempts of its task in order. Within an attempt:
 *
 *   stream from `offset` -> the log ended, there is none yet, or the connection broke
 *   look at the workload -> the attempt goes on: stream again from where we are
 *                        -> it is over: drain what is left, then the next attempt, or the end
 *
 * The drain is what makes "ended" safe: a server that goes down ends streams too, and by the
 * time it is back the task may be over with output that was never streamed.
 */
#include "cli/follow.h"

#include <errno.h>
#include <json-c/json.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/render.h"
#include "cli/session.h"

#define LINE_MAX_BYTES 65536
#define PAUSE_MIN_MS 100
#define PAUSE_MAX_MS 2000

/* Result of on_log() that ends a stream from inside. */
#define STREAM_STOPPED 1

struct reader {
    struct cli_follow *f;
    pthread_t thread;
    bool started;
    struct http_client *client;
    uint32_t task;
    int64_t attempt, offset;
    int64_t tail;             /* lines, for the first read only; -1 = from offset */
    struct http_reply *reply; /* of the stream under way */
    bool begun;               /* it has delivered bytes: offset counts them */
    struct strbuf line;       /* begun, with several tasks */
    int pause_ms;
};

struct cli_follow {
    struct cli *cli;
    uint64_t workload;
    bool prefix, once;
    int wake;
    pthread_mutex_t output;
    atomic_bool stopped;
    atomic_uint running;
    pthread_mutex_t error_lock;
    int error; /* the first */
    struct err err;
    uint32_t count;
    struct reader readers[];
};

/* ---- output ------------------------------------------------------------------------------ */

static void write_line(struct reader *t)
{
    static const enum cli_color colors[] = {CLI_CYAN, CLI_YELLOW, CLI_GREEN, CLI_MAGENTA, CLI_BLUE};
    struct cli *cli = t->f->cli;

    if (t->line.len == 0)
        return;
    pthread_mutex_lock(&t->f->output);
    fprintf(cli->out, "%s[%u]%s ",
            cli_style_begin(&cli->style, colors[t->task % ARRAY_LEN(colors)]), t->task,
            cli_style_end(&cli->style));
    fwrite(t->line.data, 1, t->line.len, cli->out);
    if (t->line.data[t->line.len - 1] != '\n')
        fputc('\n', cli->out);
    pthread_mutex_unlock(&t->f->output);
    strbuf_truncate(&t->line, 0);
}

static void write_lines(struct reader *t, const char *data, size_t len)
{
    while (len > 0) {
        const char *end = memchr(data, '\n', len);
        size_t n = end ? (size_t)(end - data) + 1 : len;

        strbuf_add(&t->line, data, n);
        if (end || t->line.len > LINE_MAX_BYTES)
            write_line(t);
        data += n;
        len -= n;
    }
}

/* Who cannot write any more need not read. With the lock. */
static void flush(struct reader *t)
{
    if (cli_flush(t->f->cli) < 0)
        atomic_store(&t->f->stopped, true);
}

static void flush_output(struct reader *t)
{
    pthread_mutex_lock(&t->f->output);
    flush(t);
    pthread_mutex_unlock(&t->f->output);
}

/* The server says where the stream begins: later than asked where a tail was wanted or older parts
 * were rotated away. From here on bytes are counted. */
static void begin(struct reader *t)
{
    if (t->begun)
        return;
    t->begun = true;
    t->tail = -1;
    if (t->reply->offset > t->offset)
        t->offset = t->reply->offset;
}

/* Reading once is done by the main thread, so that nobody else could stop it. */
static bool is_stopped(const struct cli_follow *f)
{
    return atomic_load(&f->stopped) || (f->once && cli_interrupt_pending());
}

static int on_log(void *user, const char *data, size_t len)
{
    struct reader *t = user;

    if (len == 0) {
        flush_output(t);
        return is_stopped(t->f) ? STREAM_STOPPED : 0;
    }
    begin(t);
    t->offset += (int64_t)len;
    t->pause_ms = PAUSE_MIN_MS;
    if (t->f->prefix) {
        write_lines(t, data, len);
    } else {
        pthread_mutex_lock(&t->f->output);
        (void)cli_write(t->f->cli, data, len);
        flush(t);
        pthread_mutex_unlock(&t->f->output);
    }
    return is_stopped(t->f) ? STREAM_STOPPED : 0;
}

/* ---- reading ----------------------------------------------------------------------------- */

static int read_log(struct reader *t, bool follow, struct err *err)
{
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    _cleanup_strbuf_ struct strbuf path = STRBUF_INIT;
    int r;

    strbuf_addf(&path, "/v1/workloads/%llu/logs?task=%u&attempt=%lld",
                (unsigned long long)t->f->workload, t->task, (long long)t->attempt);
    if (t->tail >= 0)
        strbuf_addf(&path, "&tail=%lld", (long long)t->tail);
    else
        strbuf_addf(&path, "&offset=%lld", (long long)t->offset);
    if (follow)
        strbuf_adds(&path, "&follow=true");
    t->reply = &reply;
    t->begun = false;
    r = http_client_stream(t->client, strbuf_str(&path), NULL, on_log, t, &reply, err);
    if (reply.status == 200)
        begin(t);
    if (r == 0 && reply.status != 200)
        return cli_problem(&reply, err);
    return r;
}

/* What is known of the task and its workload. */
struct look {
    int64_t attempt;
    bool over; /* this attempt's log is complete, as far as the server is concerned */
    bool last; /* there will be no further attempt */
};

static int look_at(struct reader *t, struct look *ret_look, struct err *err)
{
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    _cleanup_json_ struct json_object *w = NULL;
    struct json_object *task;
    char path[64];
    int r;

    snprintf(path, sizeof(path), "/v1/workloads/%llu", (unsigned long long)t->f->workload);
    r = http_client_call(t->client, "GET", path, NULL, 0, &reply, err);
    if (r < 0)
        return r;
    if (reply.status != 200)
        return cli_problem(&reply, err);
    w = cli_json_parse(reply.body.data, reply.body.len);
    task = cli_task_of(w, t->task);
    ret_look->attempt = cli_json_int(task, "attempt", 0);
    ret_look->last =
        cli_is_final(cli_json_text(w, "state")) ||
        (cli_is_final(cli_json_text(task, "state")) && ret_look->attempt == t->attempt);
    ret_look->over = ret_look->last || ret_look->attempt > t->attempt;
    return 0;
}

static void rest(struct reader *t)
{
    struct timespec pause = {.tv_sec = t->pause_ms / 1000,
                             .tv_nsec = t->pause_ms % 1000 * 1000000L};

    flush_output(t);
    nanosleep(&pause, NULL);
    if (t->pause_ms < PAUSE_MAX_MS)
        t->pause_ms *= 2;
}

static void wake(struct cli_follow *f)
{
    uint64_t one = 1;

    if (write(f->wake, &one, sizeof(one)) < 0)
        return; /* it is readable already */
}

/* One step: stream, look, move on. 1 = the task has nothing more to say. */
static int step(struct reader *t, struct err *err)
{
    struct look look;
    int r = read_log(t, true, err);

    if (r == STREAM_STOPPED)
        return 1;
    if (r < 0 && r != -ENOENT && !cli_is_unreachable(r))
        return r;
    wake(t->f);
    r = look_at(t, &look, err);
    if (r < 0)
        return cli_is_unreachable(r) ? 0 : r;
    if (!look.over)
        return 0;
    r = read_log(t, false, err);
    if (cli_is_unreachable(r))
        return 0;
    if (r < 0 && r != -ENOENT)
        return r;
    write_line(t);
    if (r == STREAM_STOPPED || (look.last && look.attempt <= t->attempt))
        return 1;
    t->attempt++;
    t->offset = 0;
    t->tail = -1;
    t->pause_ms = PAUSE_MIN_MS;
    return 0;
}

static void *reader_main(void *arg)
{
    struct reader *t = arg;
    struct err err = ERR_INIT;
    int r = 0;

    while (r == 0 && !atomic_load(&t->f->stopped)) {
        r = step(t, &err);
        if (r == 0)
            rest(t);
    }
    write_line(t);
    flush_output(t);
    if (r < 0) {
        pthread_mutex_lock(&t->f->error_lock);
        if (t->f->error == 0) {
            t->f->error = r;
            t->f->err = err;
        }
        pthread_mutex_unlock(&t->f->error_lock);
    }
    atomic_fetch_sub(&t->f->running, 1);
    wake(t->f);
    return NULL;
}

/* What is there of the newest attempt. A task that has not run has no log, which is no error. */
static int read_once(struct reader *t, struct err *err)
{
    int r = is_stopped(t->f) ? 0 : read_log(t, false, err);

    write_line(t);
    flush_output(t);
    return r < 0 && r != -ENOENT ? r : 0;
}

/* ---- the whole --------------------------------------------------------------------------- */

static int start_reader(struct cli_follow *f, struct reader *t, struct err *err)
{
    int r = cli_client_new(f->cli, &t->client, err);

    if (r < 0)
        return r;
    if (t->attempt < 0) {
        struct look look;

        t->attempt = 0;
        r = look_at(t, &look, err);
        if (r < 0)
            return r;
        t->attempt = look.attempt;
    }
    if (f->once)
        return read_once(t, err);
    atomic_fetch_add(&f->running, 1);
    r = -pthread_create(&t->thread, NULL, reader_main, t);
    if (r < 0) {
        atomic_fetch_sub(&f->running, 1);
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "cannot start a thread: %s", strerror(-r));
    }
    t->started = true;
    return 0;
}

int cli_follow_start(struct cli *cli, uint64_t workload, const struct cli_follow_options *options,
                     struct cli_follow **ret_follow, struct err *err)
{
    struct cli_follow *f = calloc(1, sizeof(*f) + options->task_count * sizeof(f->readers[0]));
    sigset_t all, before;
    int r = 0;

    if (f == NULL)
        abort(); /* as in base/arena.h */
    f->cli = cli;
    f->workload = workload;
    f->prefix = options->task_count > 1;
    f->once = options->once;
    f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&f->output, NULL);
    pthread_mutex_init(&f->error_lock, NULL);
    f->count = options->task_count;
    /* signals are the main thread's */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (uint32_t i = 0; r == 0 && i < f->count; i++) {
        struct reader *t = &f->readers[i];

        t->f = f;
        t->task = options->first_task + i;
        t->attempt = options->from_now ? -1 : 0;
        t->tail = options->tail;
        t->pause_ms = PAUSE_MIN_MS;
        r = start_reader(f, t, err);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0) {
        cli_follow_stop(f);
        cli_follow_join(f, NULL);
        return r;
    }
    *ret_follow = f;
    return 0;
}

int cli_follow_fd(const struct cli_follow *f)
{
    return f->wake;
}

bool cli_follow_finished(struct cli_follow *f)
{
    return atomic_load(&f->running) == 0;
}

void cli_follow_pause(struct cli_follow *f, bool pause)
{
    if (pause)
        pthread_mutex_lock(&f->output);
    else
        pthread_mutex_unlock(&f->output);
}

void cli_follow_stop(struct cli_follow *f)
{
    atomic_store(&f->stopped, true);
}

int cli_follow_join(struct cli_follow *f, struct err *err)
{
    int r;

    for (uint32_t i = 0; i < f->count; i++) {
        struct reader *t = &f->readers[i];

        if (t->started)
            pthread_join(t->thread, NULL);
        http_client_destroy(t->client);
        strbuf_done(&t->line);
    }
    r = f->error;
    if (r < 0 && err)
        *err = f->err;
    pthread_mutex_destroy(&f->output);
    pthread_mutex_destroy(&f->error_lock);
    if (f->wake >= 0)
        close(f->wake);
    free(f);
    return r;
}
