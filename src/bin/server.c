/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/server.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/vec.h"
#include "bin/bootstrap.h"
#include "bin/clock.h"
#include "core/core.h"
#include "engine/local/engine_local.h"
#include "store/store.h"

struct server {
    const struct server_config *config;
    struct store *store;
    struct engine_local *engine;
    struct core *core;
    struct api *api;
    struct bin_clock clock;
    pthread_t core_thread;
    char *folder; /* absolute: the server may be started from anywhere */
};

static void events_committed(void *ctx, uint64_t seq)
{
    struct server *s = ctx;

    if (s->api)
        api_events_committed(s->api, seq);
}

static void *run_core(void *ctx)
{
    struct server *s = ctx;

    core_run(s->core);
    return NULL;
}

static int make_folder(struct server *s, struct err *err)
{
    int r = io_mkdirs(s->config->data, 0700);

    if (r == 0) {
        s->folder = realpath(s->config->data, NULL);
        r = s->folder ? 0 : -errno;
    }
    if (r < 0)
        return err_set(err, r, ERR_UNAVAILABLE, "data", "choose a folder that you may write to",
                       "data folder '%s': %s", s->config->data, strerror(-r));
    return 0;
}

static int create_engine(struct server *s, struct err *err)
{
    const struct engine_local_config config = {
        .data_dir = s->folder,
        .node_name = s->config->node_name,
        .labels = s->config->labels,
        .label_count = s->config->label_count,
        .devices = s->config->simulate,
        .allow_unsandboxed = s->config->allow_unsandboxed,
        .strict_sharing = s->config->strict_sharing,
        .workdir_roots = s->config->workdir_roots,
        .shown_dirs = s->config->shown_dirs,
    };

    return engine_local_create(&config, &s->engine, err);
}

static int create_core(struct server *s, struct err *err)
{
    const struct core_config config = {
        .hold_ms = s->config->hold_ms,
        .stale_gang_ms = s->config->stale_gang_ms,
        .min_run_ms = s->config->min_run_ms,
        .window_lead_ms = s->config->window_lead_ms,
        .moves_max = s->config->moves_max,
        .past_half_life_ms = s->config->past_half_life_ms,
        .topology = s->config->topology,
    };
    const struct core_ports ports = {
        .store = &store_sqlite_ops,
        .store_ctx = s->store,
        .engine = engine_local_ops(),
        .engine_ctx = s->engine,
        .clock = &bin_clock_ops,
        .clock_ctx = &s->clock,
        .events = events_committed,
        .events_ctx = s,
    };

    return core_create(&config, &ports, &s->core, err);
}

static int create_api(struct server *s, struct err *err)
{
    const struct api_config config = {
        .listen = s->config->listen,
        .core = s->core,
        .store = &store_sqlite_ops,
        .store_ctx = s->store,
        .engine = engine_local_ops(),
        .engine_ctx = s->engine,
    };

    return api_create(&config, &s->api, err);
}

static int build(struct server *s, struct err *err)
{
    int r = make_folder(s, err);

    if (r == 0)
        r = store_open(s->folder, NULL, &s->store, err);
    if (r == 0)
        r = bin_clock_init(&s->clock);
    if (r == 0)
        r = create_engine(s, err);
    if (r == 0)
        r = create_core(s, err);
    if (r == 0)
        r = create_api(s, err);
    if (r == 0)
        engine_local_attach(s->engine, core_engine_host(s->core));
    return r;
}

static int print_device(void *user, const struct model_node *node)
{
    int32_t simulated = 0;

    (void)user;
    for (int32_t i = 0; i < node->device_count; i++)
        simulated += node->devices[i].simulated;
    printf("  node         %s: %d x %s%s, tasks isolated by %s, limits by %s\n", node->name,
           node->device_count, node->gpu_type ? node->gpu_type : "no GPU",
           simulated ? " (SIMULATED: no GPU is used)" : "",
           node->isolation ? node->isolation : "nothing", node->limits ? node->limits : "nothing");
    return 0;
}

/* ---- the banner -------------------------------------------------------------------------- */

struct teams {
    struct arena arena;
    VEC(struct model_team) list;
    const char *slice; /* MIG profile of the first device, or NULL */
};

static int take_slice(void *user, const struct model_node *node)
{
    struct teams *t = user;

    if (node->device_count > 0 && node->devices[0].mig_profile && t->slice == NULL)
        t->slice = arena_strdup(&t->arena, node->devices[0].mig_profile);
    return 0;
}

static int take_team(void *user, const struct model_team *team)
{
    struct teams *t = user;
    struct model_team kept = {
        .id = team->id, .parent_id = team->parent_id, .name = arena_strdup(&t->arena, team->name)};

    vec_push(&t->list, kept);
    return 0;
}

/* Does TEAM take workloads, and can its name be typed as it is? */
static bool is_handy(const struct teams *t, const struct model_team *team)
{
    for (size_t i = 0; i < t->list.len; i++)
        if (t->list.items[i].parent_id == team->id)
            return false;
    for (const char *c = team->name; *c; c++)
        if (!strchr("-_.", *c) && !isalnum((unsigned char)*c))
            return false;
    return true;
}

/* What to type first: run something in a team that there is, or make one. */
static void print_first_command(struct server *s)
{
    struct teams t = {0};
    const char *name = NULL;

    store_sqlite_ops.each_team(s->store, take_team, &t, NULL);
    store_sqlite_ops.each_node(s->store, take_slice, &t, NULL);
    for (size_t i = 0; i < t.list.len && name == NULL; i++)
        if (is_handy(&t, &t.list.items[i]))
            name = t.list.items[i].name;
    if (name)
        printf("  %s run --team %s %s %s -- echo hello\n", program_invocation_name, name,
               t.slice ? "--mig" : "--gpu", t.slice ? t.slice : "0.25");
    else
        printf("  %s team set research\n", program_invocation_name);
    vec_done(&t.list);
    arena_done(&t.arena);
}

static void print_banner(struct server *s, const char *token)
{
    printf("allot server\n");
    printf("  address      http://%s\n", api_address(s->api));
    printf("  data         %s\n", s->folder);
    if (s->config->simulate)
        printf("  devices      %s\n", s->config->simulate);
    store_sqlite_ops.each_node(s->store, print_device, NULL, NULL);
    if (token) {
        char file[PATH_MAX];

        /* A log is no place for a secret. */
        snprintf(file, sizeof(file), "\"$(cat '%s/admin-token')\"", s->folder);
        const char *shown = isatty(STDOUT_FILENO) ? token : file;
        printf("  admin token  %s\n\n", shown);
        printf("try in another terminal:\n");
        printf("  export ALLOT_SERVER=http://%s ALLOT_TOKEN=%s\n", api_address(s->api), shown);
        print_first_command(s);
    }
    fflush(stdout);
}

/* Blocks the signals before any thread exists, so that only wait_for_signal() sees them. */
static void block_signals(sigset_t *ret_set)
{
    sigemptyset(ret_set);
    sigaddset(ret_set, SIGINT);
    sigaddset(ret_set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, ret_set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int serve(struct server *s, const sigset_t *signals, struct err *err)
{
    _cleanup_free_ char *token = NULL;
    int caught;
    int r = pthread_create(&s->core_thread, NULL, run_core, s);

    if (r != 0)
        return err_set(err, -r, ERR_INTERNAL, NULL, NULL, "cannot start a thread: %s", strerror(r));
    r = bootstrap(s->core, &store_sqlite_ops, s->store, s->folder, &token, err);
    if (r == 0)
        r = api_start(s->api, err);
    if (r == 0) {
        print_banner(s, token);
        sigwait(signals, &caught);
        log_info("%s: stopping; tasks run on", strsignal(caught));
    }
    api_stop(s->api);
    core_stop(s->core);
    pthread_join(s->core_thread, NULL);
    return r;
}

int server_run(const struct server_config *config, struct err *err)
{
    struct server s = {.config = config};
    sigset_t signals;
    int r;

    block_signals(&signals);
    r = build(&s, err);
    if (r == 0)
        r = serve(&s, &signals, err);
    api_destroy(s.api);
    engine_local_destroy(s.engine);
    core_destroy(s.core);
    store_close(s.store);
    free(s.folder);
    return r;
}
