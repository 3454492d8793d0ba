/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `allot run` and `allot logs -f` against a server that is told what happens: a director thread
 * moves one workload through its life while the command watches.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "net/http_client.h"
#include "net/http_server.h"

#define TASKS_MAX 3
#define ATTEMPTS_MAX 2
#define TICK_MS 10
#define PATIENCE_MS 20000

struct log {
    const char *text;
    size_t visible; /* bytes written so far */
    bool ended;
};

/* The workload as the server shows it. */
static struct world {
    pthread_mutex_t lock;
    struct http_server *server;
    uint16_t port;
    const char *state, *message, *explain;
    int tasks, attempt, restarts, exit_code;
    bool backoff; /* it waits to be launched again */
    bool started;
    struct log logs[TASKS_MAX][ATTEMPTS_MAX];
    size_t sent;  /* log bytes, in all */
    int looks;    /* at the workload */
    int explains; /* why does it wait? */
    int stops;
} world;

/* ---- the server --------------------------------------------------------------------------- */

struct source {
    struct log *log;
    size_t offset;
    bool follow;
};

static ssize_t read_source(void *user, char *data, size_t size)
{
    struct source *s = user;
    ssize_t n = HTTP_STREAM_WAIT;

    pthread_mutex_lock(&world.lock);
    if (s->offset < s->log->visible) {
        size_t rest = s->log->visible - s->offset;

        n = (ssize_t)(rest < size ? rest : size);
        memcpy(data, s->log->text + s->offset, (size_t)n);
        s->offset += (size_t)n;
        world.sent += (size_t)n;
    } else if (s->log->ended || !s->follow) {
        n = HTTP_STREAM_END;
    }
    pthread_mutex_unlock(&world.lock);
    return n;
}

static const char *param(const struct http_request *r, const char *name)
{
    for (int i = 0; i < r->param_count; i++)
        if (strcmp(r->params[i].name, name) == 0)
            return r->params[i].value;
    return NULL;
}

static size_t number(const struct http_request *r, const char *name)
{
    const char *v = param(r, name);

    return v ? strtoul(v, NULL, 10) : 0;
}

/* Only the last line counts as a tail; enough for the test. */
static size_t tail_offset(const struct log *l)
{
    size_t at = l->visible;

    while (at > 0 && (at == l->visible || l->text[at - 1] != '\n'))
        at--;
    return at;
}

static void send_log(struct http_request *r)
{
    struct http_stream_source source = {.read = read_source, .free = free};
    struct source *s = calloc(1, sizeof(*s));
    char offset[24];

    pthread_mutex_lock(&world.lock);
    s->log = &world.logs[number(r, "task")][number(r, "attempt")];
    s->offset = param(r, "tail") ? tail_offset(s->log) : number(r, "offset");
    pthread_mutex_unlock(&world.lock);
    s->follow = param(r, "follow") != NULL;
    snprintf(offset, sizeof(offset), "%zu", s->offset);
    http_reply_header(r, "X-Log-Offset", offset);
    source.user = s;
    http_reply_stream(r, "text/plain", &source, TICK_MS, NULL);
}

static void send_workload(struct http_request *r, int status)
{
    struct strbuf b = STRBUF_INIT;

    pthread_mutex_lock(&world.lock);
    world.looks++;
    strbuf_addf(&b,
                "{\"id\":5,\"name\":\"w\",\"team\":\"nlp\",\"state\":\"%s\",\"tasks\":%d,"
                "\"restarts\":%d,\"exit_code\":%d,\"started_at\":%s,\"message\":",
                world.state, world.tasks, world.restarts, world.exit_code,
                world.started ? "\"2026-11-30T12:00:00Z\"" : "null");
    strbuf_addf(&b, world.message ? "\"%s\"," : "null,", world.message);
    if (world.backoff)
        strbuf_adds(&b, "\"reason\":\"backoff\",");
    strbuf_adds(&b, "\"tasks_detail\":[");
    for (int i = 0; i < world.tasks; i++)
        strbuf_addf(&b, "%s{\"index\":%d,\"attempt\":%d,\"state\":\"%s\"}", i ? "," : "", i,
                    world.attempt, world.state);
    strbuf_adds(&b, "]}");
    pthread_mutex_unlock(&world.lock);
    http_reply(r, status, "application/json", &b);
}

static void send_text(struct http_request *r, const char *text)
{
    struct strbuf b = STRBUF_INIT;

    strbuf_adds(&b, text);
    http_reply(r, 200, "application/json", &b);
}

static void on_request(void *ctx, struct http_request *r)
{
    (void)ctx;
    if (strcmp(r->method, "POST") == 0 && strcmp(r->path, "/v1/workloads") == 0) {
        send_workload(r, 201);
    } else if (strcmp(r->path, "/v1/workloads/5") == 0) {
        send_workload(r, 200);
    } else if (strcmp(r->path, "/v1/workloads/5/logs") == 0) {
        send_log(r);
    } else if (strcmp(r->path, "/v1/workloads/5/explain") == 0) {
        pthread_mutex_lock(&world.lock);
        world.explains++;
        pthread_mutex_unlock(&world.lock);
        send_text(r,
                  world.explain
                      ? world.explain
                      : "{\"reason\":\"no_capacity\",\"team\":\"nlp\",\"position\":2,\"pending\":3,"
                        "\"start_at\":\"2026-11-30T12:10:00Z\",\"start_in_ms\":600000}");
    } else if (strcmp(r->path, "/v1/workloads/5/stop") == 0) {
        pthread_mutex_lock(&world.lock);
        world.stops++;
        pthread_mutex_unlock(&world.lock);
        send_text(r, "{}");
    } else {
        http_reply(r, 404, "application/json", NULL);
    }
}

static int64_t on_headers(void *ctx, struct http_request *r)
{
    (void)ctx, (void)r;
    return HTTP_BODY_DEFAULT;
}

static void start_server(void)
{
    struct http_handler handler = {.headers = on_headers, .request = on_request};
    struct http_server_config config = {.threads = 1};
    char listen[32];

    snprintf(listen, sizeof(listen), "127.0.0.1:%u", world.port);
    config.listen = listen;
    assert_int_equal(http_server_create(&config, &handler, &world.server, NULL), 0);
    world.port = http_server_port(world.server);
}

static void stop_server(void)
{
    http_server_stop(world.server);
    http_server_destroy(world.server);
    world.server = NULL;
}

/* ---- the director ------------------------------------------------------------------------- */

static void change(const char *state)
{
    pthread_mutex_lock(&world.lock);
    world.state = state;
    world.started |= strcmp(state, "running") == 0;
    pthread_mutex_unlock(&world.lock);
}

static void set_log(int task, int attempt, const char *text, size_t visible, bool ended)
{
    pthread_mutex_lock(&world.lock);
    world.logs[task][attempt] = (struct log){text, visible, ended};
    pthread_mutex_unlock(&world.lock);
}

static void pause_ms(int ms)
{
    struct timespec t = {.tv_nsec = ms * 1000000L};

    nanosleep(&t, NULL);
}

static size_t read_size(const size_t *v)
{
    size_t got;

    pthread_mutex_lock(&world.lock);
    got = *v;
    pthread_mutex_unlock(&world.lock);
    return got;
}

static void wait_sent(size_t bytes)
{
    for (int ms = 0; read_size(&world.sent) < bytes && ms < PATIENCE_MS; ms += 5)
        pause_ms(5);
}

static void wait_count(const int *v, int at_least)
{
    int got = 0;

    for (int ms = 0; got < at_least && ms < PATIENCE_MS; ms += 5) {
        pthread_mutex_lock(&world.lock);
        got = *v;
        pthread_mutex_unlock(&world.lock);
        pause_ms(5);
    }
}

/* ---- running a command -------------------------------------------------------------------- */

static char *out, *err;

static int command(void *(*director)(void *), const char *const *words)
{
    struct cli cli = {.arena = ARENA_INIT, .style = {.width = 80}};
    size_t out_len, err_len;
    pthread_t thread;
    int argc = 0, code;

    while (words[argc])
        argc++;
    free(out);
    free(err);
    cli.out = open_memstream(&out, &out_len);
    cli.err = open_memstream(&err, &err_len);
    cli.commands = cli_builtin_commands;
    cli.config.server =
        arena_printf(&cli.arena, "http://127.0.0.1:%u", http_server_port(world.server));
    if (director)
        assert_int_equal(pthread_create(&thread, NULL, director, NULL), 0);
    code = cli_run(&cli, argc, words);
    if (director)
        pthread_join(thread, NULL);
    fclose(cli.out);
    fclose(cli.err);
    http_client_destroy(cli.client);
    arena_done(&cli.arena);
    return code;
}

#define RUN(director, ...)                                            \
    command((director), (const char *const[]){"run", "--team", "nlp", \
                                              __VA_ARGS__ __VA_OPT__(, ) "--", "true", NULL})
#define LOGS(director, ...) \
    command((director), (const char *const[]){"logs", "-f", __VA_ARGS__ __VA_OPT__(, ) "5", NULL})

static int set_up(void **state)
{
    (void)state;
    memset(&world, 0, sizeof(world));
    pthread_mutex_init(&world.lock, NULL);
    world.state = "pending";
    world.tasks = 1;
    for (int t = 0; t < TASKS_MAX; t++)
        for (int a = 0; a < ATTEMPTS_MAX; a++)
            world.logs[t][a].text = "";
    start_server();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    stop_server();
    free(out);
    free(err);
    out = err = NULL;
    return 0;
}

/* ---- tests -------------------------------------------------------------------------------- */

static void *direct_wait_then_fail(void *arg)
{
    (void)arg;
    wait_count(&world.explains, 2);
    set_log(0, 0, "hello\nlast", 6, false);
    change("running");
    wait_sent(6);
    world.exit_code = 7;
    set_log(0, 0, "hello\nlast", 10, true);
    change("failed");
    return NULL;
}

static void run_waits_streams_and_passes_the_exit_code_on(void **state)
{
    (void)state;
    assert_int_equal(RUN(direct_wait_then_fail), 7);
    assert_string_equal(out, "hello\nlast");
    assert_non_null(
        strstr(err, "allot: w (5) submitted\n"
                    "allot: waiting, 2 of 3 in nlp: not enough is free; starts in about 10m\n"));
    assert_non_null(strstr(err, "allot: failed with exit code 7\n"));
}

static void a_workload_that_has_ended_at_once_still_prints(void **state)
{
    (void)state;
    change("running");
    set_log(0, 0, "quick\n", 6, true);
    change("succeeded");
    assert_int_equal(RUN(NULL), 0);
    assert_string_equal(out, "quick\n");
}

static void *direct_evict(void *arg)
{
    (void)arg;
    set_log(0, 0, "first\n", 6, false);
    change("running");
    wait_sent(6);
    set_log(0, 0, "first\nsaved\n", 12, true);
    pthread_mutex_lock(&world.lock);
    world.state = "pending";
    world.message = "reclaimed: team product takes back 2 GPUs";
    world.restarts = 1;
    world.attempt = 1;
    pthread_mutex_unlock(&world.lock);
    wait_count(&world.explains, 1);
    set_log(0, 1, "second\n", 7, true);
    change("running");
    wait_sent(19);
    change("succeeded");
    return NULL;
}

static void run_goes_on_with_the_next_attempt(void **state)
{
    (void)state;
    assert_int_equal(RUN(direct_evict), 0);
    assert_string_equal(out, "first\nsaved\nsecond\n");
    assert_non_null(strstr(err, "allot: reclaimed: team product takes back 2 GPUs; it is queued "
                                "again and goes on by itself\n"));
}

static void *direct_restart(void *arg)
{
    (void)arg;
    set_log(0, 0, "0123456789", 4, false);
    change("running");
    wait_sent(4);
    stop_server();
    /* it goes on, and ends, while no server is there */
    pause_ms(50);
    set_log(0, 0, "0123456789", 10, true);
    world.exit_code = 0;
    change("succeeded");
    start_server();
    return NULL;
}

static void nothing_is_lost_or_printed_twice_over_a_restart(void **state)
{
    (void)state;
    assert_int_equal(RUN(direct_restart), 0);
    assert_string_equal(out, "0123456789");
}

static void *direct_several(void *arg)
{
    (void)arg;
    set_log(0, 0, "a\nb\n", 4, true);
    set_log(1, 0, "half", 4, true);
    set_log(2, 0, "", 0, true);
    change("running");
    wait_sent(8);
    change("succeeded");
    return NULL;
}

static void several_tasks_print_whole_lines_with_their_rank(void **state)
{
    (void)state;
    world.tasks = 3;
    assert_int_equal(RUN(direct_several, "--tasks", "3"), 0);
    assert_int_equal(strlen(out), strlen("[0] a\n[0] b\n[1] half\n"));
    assert_non_null(strstr(out, "[0] a\n"));
    assert_non_null(strstr(out, "[0] b\n"));
    assert_non_null(strstr(out, "[1] half\n"));
}

static void *direct_term(void *arg)
{
    (void)arg;
    change("running");
    wait_count(&world.looks, 3);
    kill(getpid(), SIGTERM);
    wait_count(&world.stops, 1);
    set_log(0, 0, "", 0, true);
    world.exit_code = 143;
    change("cancelled");
    return NULL;
}

static void without_a_terminal_a_signal_stops_it(void **state)
{
    (void)state;
    assert_int_equal(RUN(direct_term), 143);
    assert_int_equal(world.stops, 1);
}

static void *direct_hangup(void *arg)
{
    (void)arg;
    change("running");
    wait_count(&world.looks, 3);
    kill(getpid(), SIGHUP);
    return NULL;
}

static void a_hangup_detaches(void **state)
{
    (void)state;
    assert_int_equal(RUN(direct_hangup), 0);
    assert_int_equal(world.stops, 0);
    assert_non_null(strstr(err, "detached; it goes on. 'allot logs -f 5' watches it\n"));
}

static void a_workload_stopped_before_it_ran_ends_with_130(void **state)
{
    (void)state;
    world.state = "cancelled";
    assert_int_equal(RUN(NULL), 130);
    assert_string_equal(out, "");
}

static void *direct_refusal(void *arg)
{
    (void)arg;
    wait_count(&world.explains, 2);
    set_log(0, 0, "", 0, true);
    change("running");
    change("succeeded");
    return NULL;
}

static void a_refused_launch_is_told_once_with_its_reason(void **state)
{
    const char *said;

    (void)state;
    world.message = "could not be launched and is tried again: no such image";
    world.restarts = 1;
    world.backoff = true;
    world.explain = "{\"reason\":\"backoff\",\"team\":\"nlp\",\"position\":0}";
    assert_int_equal(RUN(direct_refusal), 0);
    said = strstr(err, "allot: could not be launched and is tried again: no such image "
                       "('allot stop 5' ends that)");
    assert_non_null(said);
    if (strstr(said + strlen("allot: could"), "could not be launched"))
        fail_msg("told again:\n%s", err);
}

/* A file that has something to read takes the place of standard input. */
static void input_that_nobody_reads_is_told(void **state)
{
    int before = dup(STDIN_FILENO), ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    dup2(ends[0], STDIN_FILENO);
    world.state = "cancelled";
    RUN(NULL);
    assert_non_null(strstr(err, "standard input does not reach the task"));
    assert_int_equal(read(ends[0], (char[4]){0}, 4), 3);
    close(ends[1]);
    RUN(NULL);
    assert_null(strstr(err, "standard input"));
    dup2(before, STDIN_FILENO);
    close(before);
    close(ends[0]);
}

static void detached_it_prints_the_id(void **state)
{
    (void)state;
    assert_int_equal(RUN(NULL, "--detach"), 0);
    assert_string_equal(out, "5\n");
    assert_string_equal(err, "");
}

static void *direct_tail(void *arg)
{
    (void)arg;
    wait_sent(4);
    stop_server();
    set_log(0, 0, "old\nold\nnew\nmore\n", 17, true);
    change("succeeded");
    start_server();
    return NULL;
}

static void a_followed_tail_resumes_where_it_was(void **state)
{
    (void)state;
    change("running");
    set_log(0, 0, "old\nold\nnew\nmore\n", 12, false);
    assert_int_equal(LOGS(direct_tail, "--tail", "1"), 0);
    assert_string_equal(out, "new\nmore\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_waits_streams_and_passes_the_exit_code_on),
        TEST(a_workload_that_has_ended_at_once_still_prints),
        TEST(run_goes_on_with_the_next_attempt),
        TEST(nothing_is_lost_or_printed_twice_over_a_restart),
        TEST(several_tasks_print_whole_lines_with_their_rank),
        TEST(without_a_terminal_a_signal_stops_it),
        TEST(a_hangup_detaches),
        TEST(a_workload_stopped_before_it_ran_ends_with_130),
        TEST(a_refused_launch_is_told_once_with_its_reason),
        TEST(input_that_nobody_reads_is_told),
        TEST(detached_it_prints_the_id),
        TEST(a_followed_tail_resumes_where_it_was),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
