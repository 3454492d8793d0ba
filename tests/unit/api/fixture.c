/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/qty.h"
#include "engine.h"
#include "store/store.h"

#define PATIENCE_MS 60000

/* ---- clock ---------------------------------------------------------------------------------- */

static int64_t boot_ms(void *clock)
{
    return clock_boot_ms();
}

static int64_t wall_ms(void *clock)
{
    return clock_wall_ms();
}

static const char *boot_id(void *clock)
{
    return "a boot";
}

static const struct clock_ops clock_double = {boot_ms, wall_ms, boot_id};

/* ---- the first users, as a program makes them -------------------------------------------------
 */

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t done;
    bool is_done;
};

static void on_done(struct core_command *c)
{
    struct waiter *w = c->user;

    pthread_mutex_lock(&w->lock);
    w->is_done = true;
    pthread_cond_signal(&w->done);
    pthread_mutex_unlock(&w->lock);
}

static void run_command(struct fixture *f, struct core_command *c)
{
    struct waiter w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

    c->actor = (struct core_actor){.name = "root", .admin = true};
    c->done = on_done;
    c->user = &w;
    core_submit(f->core, c);
    pthread_mutex_lock(&w.lock);
    while (!w.is_done)
        pthread_cond_wait(&w.done, &w.lock);
    pthread_mutex_unlock(&w.lock);
    if (c->status < 0)
        fail_msg("command %d: %s", c->kind, c->err.text);
    arena_done(&c->arena);
}

static void make_user(struct fixture *f, const char *name, const char *team, char *token)
{
    struct model_user user = {
        .name = name, .admin = team == NULL, .teams = &team, .team_count = team != NULL};
    struct core_command put = {.kind = CORE_USER_PUT, .user_row = &user};
    struct core_command make = {.kind = CORE_TOKEN_CREATE, .token.user = name};

    run_command(f, &put);
    api_token_make(token);
    api_token_hash(token, make.token.hash);
    run_command(f, &make);
}

static void make_team(struct fixture *f, const char *name, const char *parent)
{
    struct model_team team;
    struct core_command c = {.kind = CORE_TEAM_PUT, .team = &team};

    model_team_init(&team);
    team.name = name;
    team.parent = parent;
    run_command(f, &c);
}

/* ---- set-up -----------------------------------------------------------------------------------
 */

static void *core_main(void *arg)
{
    core_run(arg);
    return NULL;
}

static struct http_client *client(struct fixture *f, const char *token)
{
    struct strbuf url = STRBUF_INIT;
    struct http_client *c;

    strbuf_addf(&url, "http://%s", api_address(f->api));
    assert_int_equal(http_client_create(strbuf_str(&url), token, &c, NULL), 0);
    strbuf_done(&url);
    return c;
}

static void on_events(void *ctx, uint64_t seq)
{
    struct fixture *f = ctx;

    if (f->api)
        api_events_committed(f->api, seq);
}

static void start_core(struct fixture *f)
{
    struct core_ports ports = {.store = &store_sqlite_ops,
                               .store_ctx = f->store,
                               .engine = &engine_double_ops,
                               .engine_ctx = f->engine,
                               .clock = &clock_double,
                               .events = on_events,
                               .events_ctx = f};
    struct err err = ERR_INIT;

    if (core_create(&(struct core_config){0}, &ports, &f->core, &err) < 0)
        fail_msg("core: %s", err.text);
    engine_double_set_host(f->engine, core_engine_host(f->core));
}

static void start_api(struct fixture *f)
{
    struct api_config config = {.listen = "127.0.0.1:0",
                                .core = f->core,
                                .store = &store_sqlite_ops,
                                .store_ctx = f->store,
                                .engine = &engine_double_ops,
                                .engine_ctx = f->engine};
    struct err err = ERR_INIT;

    if (api_create(&config, &f->api, &err) < 0 || api_start(f->api, &err) < 0)
        fail_msg("api: %s", err.text);
}

int fixture_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    struct err err = ERR_INIT;

    snprintf(f->folder, sizeof(f->folder), "/tmp/allot-api-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    if (store_open(f->folder, NULL, &f->store, &err) < 0)
        fail_msg("store: %s", err.text);
    f->engine = engine_double_create();
    start_core(f);
    start_api(f);
    assert_int_equal(pthread_create(&f->core_thread, NULL, core_main, f->core), 0);
    make_team(f, "lab", NULL);
    make_team(f, "vision", "lab");
    make_team(f, "speech", "lab");
    make_team(f, "other", NULL);
    make_user(f, "root", NULL, f->root_token);
    make_user(f, "ada", "lab", f->ada_token);
    make_user(f, "bob", "other", f->bob_token);
    f->root = client(f, f->root_token);
    f->ada = client(f, f->ada_token);
    f->bob = client(f, f->bob_token);
    f->nobody = client(f, NULL);
    *state = f;
    return 0;
}

int fixture_tear_down(void **state)
{
    struct fixture *f = *state;

    api_stop(f->api);
    core_stop(f->core);
    pthread_join(f->core_thread, NULL);
    api_destroy(f->api);
    core_destroy(f->core);
    store_close(f->store);
    engine_double_destroy(f->engine);
    http_client_destroy(f->root);
    http_client_destroy(f->ada);
    http_client_destroy(f->bob);
    http_client_destroy(f->nobody);
    http_reply_done(&f->reply);
    json_object_put(f->json);
    io_remove_tree(AT_FDCWD, f->folder);
    free(f);
    return 0;
}

/* ---- asking -----------------------------------------------------------------------------------
 */

int ask(struct fixture *f, struct http_client *who, const char *method, const char *path,
        const char *body)
{
    struct err err = ERR_INIT;

    json_object_put(f->json);
    f->json = NULL;
    if (http_client_call(who, method, path, body, body ? strlen(body) : 0, &f->reply, &err) < 0)
        fail_msg("%s %s: %s", method, path, err.text);
    if (f->reply.body.len > 0)
        f->json = json_tokener_parse(f->reply.body.data);
    return f->reply.status;
}

struct json_object *value(struct fixture *f, const char *path)
{
    struct json_object *v = f->json;

    while (v && *path) {
        size_t n = strcspn(path, ".");
        char part[64] = "";

        memcpy(part, path, n < sizeof(part) ? n : sizeof(part) - 1);
        if (json_object_is_type(v, json_type_array))
            v = json_object_array_get_idx(v, strtoul(part, NULL, 10));
        else if (!json_object_object_get_ex(v, part, &v))
            v = NULL;
        path += n + (path[n] == '.');
    }
    return v;
}

const char *text(struct fixture *f, const char *path)
{
    struct json_object *v = value(f, path);

    return v ? json_object_get_string(v) : "";
}

int64_t number(struct fixture *f, const char *path)
{
    struct json_object *v = value(f, path);

    return v ? json_object_get_int64(v) : -1;
}

int64_t length(struct fixture *f, const char *path)
{
    struct json_object *v = value(f, path);

    return json_object_is_type(v, json_type_array) ? (int64_t)json_object_array_length(v) : -1;
}

uint64_t submit(struct fixture *f, struct http_client *who, const char *body)
{
    if (ask(f, who, "POST", "/v1/workloads", body) != 201)
        fail_msg("submit: %s", strbuf_str(&f->reply.body));
    return (uint64_t)number(f, "id");
}

void wait_state(struct fixture *f, uint64_t id, const char *state)
{
    const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};
    struct strbuf path = STRBUF_INIT;

    strbuf_addf(&path, "/v1/workloads/%llu", (unsigned long long)id);
    for (int i = 0; i < PATIENCE_MS / 2; i++) {
        assert_int_equal(ask(f, f->root, "GET", strbuf_str(&path), NULL), 200);
        if (strcmp(text(f, "state"), state) == 0)
            break;
        nanosleep(&pause, NULL);
    }
    assert_string_equal(text(f, "state"), state);
    strbuf_done(&path);
}

void engine_log(struct fixture *f, const char *intent, const char *data)
{
    engine_double_log(f->engine, intent, data);
}

void engine_exit(struct fixture *f, const char *intent, int code)
{
    const struct timespec pause = {.tv_nsec = 2 * NS_PER_MS};

    for (int i = 0; i < PATIENCE_MS / 2; i++) {
        if (engine_double_exit(f->engine, intent, code))
            return;
        nanosleep(&pause, NULL);
    }
    fail_msg("%s never ran", intent);
}

void engine_rotate(struct fixture *f, const char *intent, int64_t begin)
{
    engine_double_rotate(f->engine, intent, begin);
}

uint16_t port_of(struct fixture *f)
{
    return api_port(f->api);
}
