/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cold start of a large cluster from its log: the stored rows become state again.
 *
 *     start make FOLDER --nodes FILE --pods FILE [--philly FILE] [--repeat N] [--jobs N]
 *     start measure FOLDER --nodes FILE --pods FILE [--repeat N]
 *
 * `make` is a life before: core, with the store in FOLDER, takes the machines of the node list and
 * the teams and jobs of `allot sim scale` (sim/scale.h), decides until the cluster is full and the
 * rest waits, and ends without a word, as if it had been killed.
 *
 * `measure` starts a server's core on that folder, and times what a server does before it is
 * itself again: opening the store; core_create(), which reads everything and tells the scheduler;
 * the engine's nodes and its answer about every task that ran; the first turn. Store, core and
 * scheduler are the server's own. The engine is this program: it says at once that everything
 * runs. One JSON object, as of `allot sim scale --json`. The data are in the page cache.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/io.h"
#include "core/core.h"
#include "model/json.h"
#include "sim/scale.h"
#include "store/store.h"

#define BATCH 5000
#define DEVICE_BYTES (32LL << 30)
#define NODE_BYTES (1LL << 40) /* where the node list does not say */
#define LAST_STEPS 500         /* after the last submit, at most */

struct start {
    struct scale_options o;
    struct scale_input in;
    const char *folder;
    struct store *store;
    struct core *core;
    struct engine_host host;
    uint64_t asked;   /* tasks that core asked about at its start */
    uint64_t started; /* tasks */
    int64_t waiting;  /* commands without an answer */
};

static void fail(const char *what, const struct err *err)
{
    fprintf(stderr, "start: %s%s%s\n", what, err != NULL ? ": " : "", err != NULL ? err->text : "");
    exit(1);
}

/* ---- clock and meter --------------------------------------------------------------------- */

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
    return "bench";
}

static const struct clock_ops clock_ops = {boot_ms, wall_ms, boot_id};

static int64_t cpu_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static int64_t rss_bytes(void)
{
    char *text = NULL, *end;
    size_t len;
    if (io_read_file(AT_FDCWD, "/proc/self/statm", 4096, &text, &len) < 0)
        return 0;
    strtoll(text, &end, 10);
    int64_t pages = strtoll(end, NULL, 10);
    free(text);
    return pages * sysconf(_SC_PAGESIZE);
}

static const struct sim_meter meter = {cpu_ns, rss_bytes};

/* ---- the engine -------------------------------------------------------------------------- */

static void tell(struct start *s, enum engine_event_kind kind, const char *intent)
{
    struct engine_event e = {.kind = kind, .intent = intent, .boot_ms = clock_boot_ms()};
    e.stopped = kind == ENGINE_EXITED;
    s->host.event(s->host.host, &e);
}

static void engine_start(void *engine, const struct engine_start *start)
{
    struct start *s = engine;
    s->started++;
    tell(s, ENGINE_STARTED, start->intent);
}

static void engine_stop(void *engine, const char *intent, int64_t grace_ms)
{
    tell(engine, ENGINE_EXITED, intent);
}

static void engine_forget(void *engine, const char *intent)
{
}

static void engine_reconcile(void *engine, const struct engine_intent *intents, size_t count)
{
    struct start *s = engine;
    s->asked = count;
    for (size_t i = 0; i < count; i++)
        tell(s, intents[i].state == MODEL_TASK_STOPPING ? ENGINE_EXITED : ENGINE_STARTED,
             intents[i].intent);
    tell(s, ENGINE_RECONCILED, NULL);
}

static const struct engine_ops engine_ops = {.name = "bench",
                                             .start = engine_start,
                                             .stop = engine_stop,
                                             .forget = engine_forget,
                                             .reconcile = engine_reconcile};

static void report_node(struct start *s, size_t i)
{
    const struct scale_node *n = &s->in.nodes.items[i];
    struct model_device devices[OPENB_DEVICES_MAX];
    char uuid[OPENB_DEVICES_MAX][32], name[32], rack[24], zone[24];
    snprintf(name, sizeof(name), "node-%zu", i);
    snprintf(rack, sizeof(rack), "%zu", i / SCALE_RACK_NODES);
    snprintf(zone, sizeof(zone), "%zu", i / SCALE_RACK_NODES / SCALE_ZONE_RACKS);
    const struct model_pair labels[] = {{"rack", rack}, {"zone", zone}};
    for (uint32_t d = 0; d < n->device_count; d++) {
        snprintf(uuid[d], sizeof(uuid[d]), "GPU-%zu-%u", i, d);
        devices[d] = (struct model_device){
            .uuid = uuid[d], .type = n->model, .memory_bytes = DEVICE_BYTES, .simulated = true};
    }
    struct model_node node = {
        .name = name,
        .cluster = "bench",
        .gpu_type = n->model,
        .sharing = "none",
        .cpu_milli = n->cpu_milli,
        .memory_bytes = n->memory_bytes == SCHED_UNLIMITED ? NODE_BYTES : n->memory_bytes,
        .devices = devices,
        .device_count = (int32_t)n->device_count,
        .labels = labels,
        .label_count = 2};
    struct engine_event e = {.kind = ENGINE_NODE, .boot_ms = clock_boot_ms(), .node = &node};
    s->host.event(s->host.host, &e);
}

static void report_nodes(struct start *s)
{
    s->host = core_engine_host(s->core);
    for (size_t i = 0; i < s->in.nodes.len; i++)
        report_node(s, i);
}

/* ---- commands ---------------------------------------------------------------------------- */

struct command {
    struct core_command command;
    struct arena arena;
    struct start *start;
};

static void command_done(struct core_command *c)
{
    struct command *mine = c->user;
    if (c->status < 0)
        fail("a command was refused", &c->err);
    mine->start->waiting--;
    arena_done(&c->arena);
    arena_done(&mine->arena);
    free(mine);
}

static struct command *command_new(struct start *s, enum core_command_kind kind)
{
    struct command *c = calloc(1, sizeof(*c));
    if (c == NULL)
        abort();
    c->start = s;
    c->command.kind = kind;
    c->command.actor = (struct core_actor){.name = "bench", .admin = true};
    c->command.done = command_done;
    c->command.user = c;
    s->waiting++;
    return c;
}

/* Turns until every command has its answer. */
static void answered(struct start *s)
{
    while (s->waiting > 0) {
        core_step(s->core);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); /* the disk */
    }
}

/* Names as wide as the tree is deep: d3, d3-1, d3-1-7. */
static const char *team_name(struct arena *a, int64_t d, int64_t leaf, int level)
{
    return level == 0   ? arena_printf(a, "d%" PRId64, leaf / d / d)
           : level == 1 ? arena_printf(a, "d%" PRId64 "-%" PRId64, leaf / d / d, leaf / d % d)
                        : arena_printf(a, "d%" PRId64 "-%" PRId64 "-%" PRId64, leaf / d / d,
                                       leaf / d % d, leaf % d);
}

static void teams_put(struct start *s)
{
    int64_t d = s->o.departments, each[] = {d * d, d, 1};
    for (int level = 0; level < 3; level++) {
        for (int64_t leaf = 0; leaf < d * d * d; leaf += each[level]) {
            struct command *c = command_new(s, CORE_TEAM_PUT);
            struct model_team *t = arena_new(&c->arena, struct model_team);
            model_team_init(t);
            t->name = team_name(&c->arena, d, leaf, level);
            t->parent = level == 0 ? NULL : team_name(&c->arena, d, leaf, level - 1);
            t->weight = 1 + leaf / each[level] % 4;
            t->guarantee[MODEL_GPU_MILLI] =
                s->in.gpus * 1000 / 100 * SCALE_GUARANTEED_PERCENT / (d * d * d) * each[level];
            c->command.team = t;
            core_submit(s->core, &c->command);
        }
        answered(s);
    }
}

static const char *job_json(struct start *s, const struct scale_world *w, const struct scale_job *j,
                            struct arena *a)
{
    static const char *const classes[] = {"production", "training", "development", "batch"};
    const struct openb_pod *pod = &s->in.pods.items[j->pod];
    const char *gpus = "";
    if (pod->device_milli == 1000)
        gpus = arena_printf(a, ",\"gpus\":%u", pod->device_count);
    else if (pod->device_count > 0)
        gpus = arena_printf(a, ",\"gpu\":0.%03d", (int)pod->device_milli);
    const char *bound = "";
    if (j->bound == SCALE_MODEL)
        bound = arena_printf(a, ",\"gpu_type\":[\"%s\"]", s->in.nodes.items[j->model_node].model);
    if (j->bound == SCALE_RACK || j->bound == SCALE_ZONE)
        bound = arena_printf(a, ",\"topology\":{\"required\":\"%s\"}",
                            j->bound == SCALE_RACK ? "rack" : "zone");
    return arena_printf(a,
                        "{\"name\":\"job-%zu\",\"team\":\"%s\",\"class\":\"%s\",\"tasks\":%d,"
                        "\"cpu\":\"%" PRId64 "m\",\"memory\":%" PRId64 "%s%s,"
                        "\"command\":[\"python3\",\"train.py\"]}",
                        w->jobs.len, team_name(a, s->o.departments, j->team - 1, 2),
                        classes[j->class_], (int)j->tasks, pod->cpu_milli, pod->memory_bytes, gpus,
                        bound);
}

/* The next job that is not refused for ever: a batch is refused whole. */
static const struct scale_job *job_next(struct scale_world *w)
{
    uint32_t job;
    do
        job = scale_draw(w);
    while (sched_workload_check(w->s, scale_workload(w, job), NULL) < 0);
    return &w->jobs.items[job];
}

static void jobs_submit(struct start *s, struct scale_world *w, int64_t count)
{
    struct command *c = command_new(s, CORE_WORKLOADS_SUBMIT);
    c->command.workloads = arena_new_array(&c->arena, struct model_workload, (size_t)count);
    c->command.workload_count = (size_t)count;
    for (int64_t i = 0; i < count; i++) {
        struct json_object *json = NULL;
        struct err err = ERR_INIT;
        const char *text = job_json(s, w, job_next(w), &c->arena);
        if (model_json_parse(text, strlen(text), &json, &err) < 0 ||
            model_workload_decode(json, &c->arena, &c->command.workloads[i], &err) < 0)
            fail(text, &err);
        json_object_put(json);
    }
    core_submit(s->core, &c->command);
    answered(s);
}

/* ---- the two lives ----------------------------------------------------------------------- */

static void core_new(struct start *s)
{
    static const char *const levels[] = {"zone", "rack", NULL};
    const struct core_config config = {.topology = levels};
    const struct core_ports ports = {.store = &store_sqlite_ops,
                                     .store_ctx = s->store,
                                     .engine = &engine_ops,
                                     .engine_ctx = s,
                                     .clock = &clock_ops};
    struct err err = ERR_INIT;
    if (core_create(&config, &ports, &s->core, &err) < 0)
        fail("cannot load the state", &err);
}

static void make(struct start *s)
{
    struct err err = ERR_INIT;
    struct scale_world w;
    if (store_open(s->folder, NULL, &s->store, &err) < 0)
        fail(s->folder, &err);
    core_new(s);
    report_nodes(s);
    core_begin(s->core);
    teams_put(s);
    scale_world_init(&w, &s->o, &s->in, &meter); /* draws the jobs */
    for (int64_t done = 0; done < s->o.jobs; done += BATCH) {
        jobs_submit(s, &w, s->o.jobs - done < BATCH ? s->o.jobs - done : BATCH);
        fprintf(stderr, "make: %" PRId64 " of %" PRId64 " jobs, %" PRIu64 " tasks started\n", done,
                s->o.jobs, s->started);
    }
    scale_world_done(&w);
    for (int i = 0; i < LAST_STEPS && core_step(s->core) <= core_now_ms(s->core); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    struct command *c = command_new(s, CORE_STATUS); /* what was written before it is durable */
    core_submit(s->core, &c->command);
    answered(s);
    fflush(stdout);
    _exit(0); /* nobody says goodbye */
}

static int64_t lap(int64_t *since_ns)
{
    int64_t now = clock_boot_ns(), took = now - *since_ns;
    *since_ns = now;
    return took;
}

static int count_workload(void *user, const struct store_workload_row *row)
{
    ++*(int64_t *)user;
    return 0;
}

static void measure(struct start *s)
{
    struct err err = ERR_INIT;
    int64_t jobs = 0, rss = rss_bytes(), cpu = cpu_ns(), at = clock_boot_ns();
    if (store_open(s->folder, NULL, &s->store, &err) < 0)
        fail(s->folder, &err);
    int64_t open_ns = lap(&at);
    core_new(s);
    int64_t load_ns = lap(&at);
    int64_t grown = rss_bytes() - rss;
    report_nodes(s);
    core_begin(s->core); /* the engine has answered when it returns */
    core_step(s->core);  /* reads the answers, then decides */
    int64_t turn_ns = lap(&at);
    cpu = cpu_ns() - cpu;
    if (store_sqlite_ops.each_live_workload(s->store, count_workload, &jobs, &err) < 0)
        fail("cannot count", &err);
    printf("{\"mode\":\"log\",\"what\":\"core and scheduler anew from the store\",\"nodes\":%zu,"
           "\"gpus\":%" PRId64 ",\"jobs\":%" PRId64 ",\"tasks_running\":%" PRIu64
           ",\"open_seconds\":%.3f,\"load_seconds\":%.3f,\"answers_and_first_turn_seconds\":%.3f,"
           "\"seconds\":%.3f,\"cpu_seconds\":%.3f,\"bytes_per_job\":%.0f}\n",
           s->in.nodes.len, s->in.gpus, jobs, s->asked, (double)open_ns / 1e9,
           (double)load_ns / 1e9, (double)turn_ns / 1e9,
           (double)(open_ns + load_ns + turn_ns) / 1e9, (double)cpu / 1e9,
           jobs > 0 ? (double)grown / (double)jobs : 0.0);
    fflush(stdout);
    _exit(0);
}

static bool options(int argc, char **argv, struct scale_options *o)
{
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'},  {"pods", required_argument, NULL, 'p'},
        {"philly", required_argument, NULL, 'g'}, {"repeat", required_argument, NULL, 'r'},
        {"jobs", required_argument, NULL, 'j'},   {0},
    };
    for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (option == 'n' || option == 'p' || option == 'g')
            *(option == 'n' ? &o->nodes : option == 'p' ? &o->pods : &o->philly) = optarg;
        else if (option == 'r' || option == 'j')
            *(option == 'r' ? &o->repeat : &o->jobs) = strtoll(optarg, NULL, 10);
        else
            return false;
    }
    return o->nodes != NULL && o->pods != NULL && o->repeat > 0 && o->jobs > 0;
}

int main(int argc, char **argv)
{
    struct start s = {.o = {.repeat = 1, .jobs = 100000, .departments = 10, .seed = 42}};
    struct err err = ERR_INIT;
    bool makes = argc > 2 && strcmp(argv[1], "make") == 0;
    if (argc < 3 || (!makes && strcmp(argv[1], "measure") != 0) ||
        !options(argc - 2, argv + 2, &s.o)) {
        fprintf(stderr, "usage: start make|measure FOLDER --nodes FILE --pods FILE [OPTION]...\n");
        return 2;
    }
    s.folder = argv[2];
    if (scale_input_load(&s.in, &s.o, &err) < 0)
        fail("input", &err);
    if (makes)
        make(&s);
    measure(&s);
}
