/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The replay of "what if" against the control plane itself.
 *
 * Random histories are played by the real core, with its store in memory and an engine that takes
 * no time for a launch; quotas are edited, nodes are drained, lost and back meanwhile. What core
 * recorded is written down as a server would export it, read again, and replayed by the driver of
 * "what if". Both must start every job in the same millisecond and hold the same GPU time: so
 * what is printed rests on the same decisions, although no core runs in a replay.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/vec.h"
#include "core/core.h"
#include "model/json.h"
#include "sim/drive.h"
#include "sim/memory_store.h"
#include "sim/whatif.h"

#include <json-c/json.h>

#define T0 1700000000000LL
#define NODES 3
#define JOBS 120
#define STOP_MS 3000
#define CHECKPOINT_MS 40000
#define SEEDS 25
#define IDLE_MS 600000

/* ---- the world ---------------------------------------------------------------------------- */

struct job {
    uint64_t id; /* 0 = not accepted */
    int64_t submit_ms, run_ms;
    bool saves;
    char json[500];
    int64_t saved_ms[8]; /* of each task */
};

struct running {
    char intent[MODEL_INTENT_MAX];
    uint64_t workload;
    int32_t task;
    char node[8];
    int64_t since_ms, at_ms; /* when it ends, or has stopped */
    bool stopping;
};

struct row_job {
    struct model_workload row;
    const char *shape;
};

struct world {
    struct arena arena;
    struct memory_store *store;
    struct core *core;
    struct engine_host host;
    int64_t now_ms; /* from 0 */
    struct model_node nodes[NODES];
    struct model_device devices[8];
    VEC(struct running) running;
    struct job jobs[JOBS];
    /* What became durable. */
    VEC(struct model_team) teams;
    VEC(struct model_node) node_rows;
    VEC(struct row_job) workloads;
    VEC(struct model_allocation) allocations;
    VEC(const char *) shapes;
    VEC(const char *) changes;
};

static int64_t boot_ms(void *clock)
{
    return ((struct world *)clock)->now_ms;
}

static int64_t wall_ms(void *clock)
{
    return T0 + ((struct world *)clock)->now_ms;
}

static const char *boot_id(void *clock)
{
    return "boot";
}

static const struct clock_ops clock_ops = {boot_ms, wall_ms, boot_id};

static struct job *job_of(struct world *w, uint64_t id)
{
    for (size_t i = 0; i < JOBS; i++)
        if (w->jobs[i].id == id)
            return &w->jobs[i];
    fail_msg("no workload %llu", (unsigned long long)id);
    return NULL;
}

static void tell(struct world *w, enum engine_event_kind kind, const char *intent, bool stopped)
{
    w->host.event(w->host.host,
                  &(struct engine_event){
                      .kind = kind, .intent = intent, .boot_ms = w->now_ms, .stopped = stopped});
}

static void report(struct world *w, size_t node)
{
    w->host.event(
        w->host.host,
        &(struct engine_event){.kind = ENGINE_NODE, .boot_ms = w->now_ms, .node = &w->nodes[node]});
}

static void on_start(void *engine, const struct engine_start *start)
{
    struct world *w = engine;
    struct job *j = job_of(w, start->workload);
    struct running r = {.workload = start->workload,
                        .task = start->task,
                        .since_ms = w->now_ms,
                        .at_ms = w->now_ms + j->run_ms - j->saved_ms[start->task]};

    snprintf(r.intent, sizeof(r.intent), "%s", start->intent);
    snprintf(r.node, sizeof(r.node), "%s", start->node);
    vec_push(&w->running, r);
    tell(w, ENGINE_STARTED, start->intent, false);
}

/* Falls back to what was saved. */
static void give_up(struct world *w, const struct running *r)
{
    struct job *j = job_of(w, r->workload);
    int64_t progress = j->saved_ms[r->task] + w->now_ms - r->since_ms;
    int64_t kept = j->saves ? progress - progress % CHECKPOINT_MS : 0;

    if (kept > j->saved_ms[r->task])
        j->saved_ms[r->task] = kept;
}

static void on_stop(void *engine, const char *intent, int64_t grace_ms)
{
    struct world *w = engine;

    for (size_t i = 0; i < w->running.len; i++) {
        struct running *r = &w->running.items[i];
        if (strcmp(r->intent, intent) != 0 || r->stopping)
            continue;
        give_up(w, r);
        r->stopping = true;
        r->at_ms = w->now_ms + (grace_ms < STOP_MS ? grace_ms : STOP_MS);
    }
}

static void on_forget(void *engine, const char *intent)
{
}

static void on_reconcile(void *engine, const struct engine_intent *intents, size_t count)
{
    for (size_t i = 0; i < NODES; i++)
        report(engine, i);
    tell(engine, ENGINE_RECONCILED, NULL, false);
}

static const struct engine_ops engine_ops = {.name = "direct",
                                             .start = on_start,
                                             .stop = on_stop,
                                             .forget = on_forget,
                                             .reconcile = on_reconcile};

/* ---- what becomes durable ----------------------------------------------------------------- */

static void keep_change(struct world *w, const struct model_event *e)
{
    if (e->data == NULL || e->workload)
        return;
    vec_push(&w->changes,
             arena_printf(&w->arena, "{\"change\":\"%s\",\"time_ms\":%lld,\"data\":%s}\n",
                          e->team   ? "team"
                          : e->node ? "node"
                                    : "server",
                          (long long)e->time_ms, e->data));
}

static struct model_node copy_node(struct world *w, const struct model_node *n)
{
    struct model_node copy = *n;

    for (size_t i = 0; i < NODES; i++)
        if (strcmp(n->name, w->nodes[i].name) == 0) {
            copy.name = w->nodes[i].name;
            copy.devices = w->nodes[i].devices;
            copy.gpu_type = w->nodes[i].gpu_type;
            copy.labels = w->nodes[i].labels;
            copy.cluster = copy.sharing = copy.limits = copy.isolation = NULL;
        }
    return copy;
}

/* The row with that ID in LIST is replaced, or ROW is the next. */
#define PUT(list, member, row)                                               \
    do {                                                                     \
        size_t at = 0;                                                       \
        while (at < (list)->len && (list)->items[at].member != (row).member) \
            at++;                                                            \
        if (at < (list)->len)                                                \
            (list)->items[at] = (row);                                       \
        else                                                                 \
            vec_push(list, row);                                             \
    } while (0)

static void keep_team(struct world *w, const struct model_team *t)
{
    struct model_team row = *t;

    row.name = arena_strdup(&w->arena, t->name);
    row.parent = arena_strdup(&w->arena, t->parent);
    PUT(&w->teams, id, row);
}

static void keep_workload(struct world *w, const struct store_new_workload *n)
{
    struct row_job j = {.row = *n->row};

    j.row.name = arena_strdup(&w->arena, n->row->name);
    while (w->shapes.len <= n->shape_id)
        vec_push(&w->shapes, NULL);
    if (n->shape_json)
        w->shapes.items[n->shape_id] = arena_strdup(&w->arena, n->shape_json);
    j.shape = w->shapes.items[n->shape_id];
    assert_non_null(j.shape);
    vec_push(&w->workloads, j);
}

static void on_durable(void *user, const struct store_op *op)
{
    struct world *w = user;

    if (op->kind == STORE_ADD_EVENT) {
        keep_change(w, op->event);
    } else if (op->kind == STORE_PUT_TEAM) {
        keep_team(w, op->team);
    } else if (op->kind == STORE_PUT_NODE) {
        struct model_node row = copy_node(w, op->node);
        PUT(&w->node_rows, id, row);
    } else if (op->kind == STORE_PUT_WORKLOAD) {
        keep_workload(w, op->new_workload);
    } else if (op->kind == STORE_UPDATE_WORKLOAD) {
        for (size_t i = 0; i < w->workloads.len; i++)
            if (w->workloads.items[i].row.id == op->workload->id)
                w->workloads.items[i].row.ended_ms = op->workload->ended_ms;
    } else if (op->kind == STORE_PUT_ALLOCATION) {
        PUT(&w->allocations, id, *op->allocation);
    }
}

/* ---- time --------------------------------------------------------------------------------- */

/* Until nothing is left to do now; when the next turn is due. */
static int64_t settle(struct world *w)
{
    int64_t due_ms = 0;

    for (int i = 0; i < 4 || memory_store_busy(w->store); i++) {
        if (memory_store_busy(w->store))
            memory_store_commit(w->store);
        due_ms = core_step(w->core) - T0;
        assert_true(i < 1000);
    }
    return due_ms;
}

static void command_done(struct core_command *c)
{
}

static int run(struct world *w, struct core_command *c)
{
    c->actor = (struct core_actor){.name = "root", .admin = true};
    c->done = command_done;
    core_submit(w->core, c);
    settle(w);
    arena_done(&c->arena);
    return c->status;
}

static int compare_running(const void *a, const void *b)
{
    const struct running *x = a, *y = b;

    if (x->stopping != y->stopping)
        return x->stopping - y->stopping;
    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    return x->task - y->task;
}

/* All that ends or has stopped now. */
static void end_tasks(struct world *w)
{
    size_t kept = 0;

    if (w->running.len > 0)
        qsort(w->running.items, w->running.len, sizeof(*w->running.items), compare_running);
    for (size_t i = 0; i < w->running.len; i++) {
        const struct running *r = &w->running.items[i];
        if (r->at_ms > w->now_ms)
            w->running.items[kept++] = *r;
        else
            tell(w, ENGINE_EXITED, r->intent, r->stopping);
    }
    w->running.len = kept;
}

static void lose_tasks(struct world *w, const char *node)
{
    size_t kept = 0;

    if (w->running.len > 0)
        qsort(w->running.items, w->running.len, sizeof(*w->running.items), compare_running);
    for (size_t i = 0; i < w->running.len; i++) {
        const struct running *r = &w->running.items[i];
        if (strcmp(r->node, node) != 0) {
            w->running.items[kept++] = *r;
            continue;
        }
        if (!r->stopping)
            give_up(w, r);
        tell(w, ENGINE_LOST, r->intent, false);
    }
    w->running.len = kept;
}

/* Lets time pass until UNTIL. */
static void pass(struct world *w, int64_t until_ms)
{
    for (;;) {
        int64_t next = settle(w);

        for (size_t i = 0; i < w->running.len; i++)
            if (w->running.items[i].at_ms < next)
                next = w->running.items[i].at_ms;
        if (next >= until_ms)
            break;
        w->now_ms = next > w->now_ms ? next : w->now_ms;
        end_tasks(w);
    }
    w->now_ms = until_ms;
}

/* Until nothing has run for longer than any promise lives. */
static void pass_to_the_end(struct world *w)
{
    do {
        pass(w, w->now_ms + IDLE_MS);
    } while (w->running.len > 0);
}

/* ---- what happens ------------------------------------------------------------------------- */

static void put_team(struct world *w, const char *name, const char *parent, int64_t gpus,
                     int64_t limit, int64_t weight)
{
    struct model_team t;
    struct core_command c = {.kind = CORE_TEAM_PUT, .team = &t};

    model_team_init(&t);
    t.name = name;
    t.parent = parent;
    t.guarantee[MODEL_GPU_MILLI] = gpus * 1000;
    t.limit[MODEL_GPU_MILLI] = limit ? limit * 1000 : MODEL_UNLIMITED;
    t.weight = weight;
    assert_int_equal(run(w, &c), 0);
}

static const char *const leaves[] = {"vision", "speech", "risk", "web"};

static void edit_team(struct world *w, struct rng *rng)
{
    size_t i = rng_below(rng, ARRAY_LEN(leaves));
    int64_t gpus = (int64_t)rng_below(rng, 8), more = (int64_t)rng_below(rng, 12);

    put_team(w, leaves[i], i < 2 ? "lab" : NULL, gpus, more ? gpus + more : 0,
             (int64_t)rng_below(rng, 4));
}

static void touch_node(struct world *w, struct rng *rng)
{
    size_t i = rng_below(rng, NODES);
    struct model_node *n = &w->nodes[i];

    if (rng_below(rng, 2)) {
        struct core_command c = {
            .kind = CORE_NODE_DRAIN, .name = n->name, .flag = rng_below(rng, 2)};
        assert_int_equal(run(w, &c), 0);
        return;
    }
    n->state = n->state == MODEL_NODE_UP ? MODEL_NODE_DOWN : MODEL_NODE_UP;
    report(w, i);
    if (n->state == MODEL_NODE_DOWN)
        lose_tasks(w, n->name);
}

static void make_job(struct job *j, struct rng *rng, int64_t at_ms, size_t number)
{
    static const char *const asks[] = {"\"gpus\":1", "\"gpus\":2", "\"gpus\":4", "\"gpu\":0.25",
                                       "\"gpu\":0.5"};
    static const char *const classes[] = {"training", "training", "development", "batch",
                                          "production"};
    int tasks = rng_below(rng, 3) ? 1 : 1 + (int)rng_below(rng, 4);
    int min = rng_below(rng, 3) ? tasks : 1 + (int)rng_below(rng, (uint64_t)tasks);

    *j = (struct job){.submit_ms = at_ms,
                      .run_ms = 5000 + (int64_t)rng_below(rng, 200000),
                      .saves = rng_below(rng, 2)};
    snprintf(j->json, sizeof(j->json),
             "{\"name\":\"j%zu\",\"team\":\"%s\",\"class\":\"%s\",\"tasks\":%d,\"min_tasks\":%d,%s,"
             "\"priority\":%d,\"command\":[\"x\"]%s%s,\"preemption\":{\"handling\":\"%s\","
             "\"grace\":\"%dms\"}}",
             number, leaves[rng_below(rng, ARRAY_LEN(leaves))],
             classes[rng_below(rng, ARRAY_LEN(classes))], tasks, min,
             asks[rng_below(rng, ARRAY_LEN(asks))], (int)rng_below(rng, 3),
             rng_below(rng, 3) ? "" : ",\"expected_run_time\":\"1m\"",
             rng_below(rng, 4) ? "" : ",\"topology\":{\"required\":\"rack\"}",
             j->saves ? "checkpoint" : "restart", (int)rng_below(rng, 6000));
}

static void submit(struct world *w, struct job *j)
{
    struct arena arena = ARENA_INIT;
    struct json_object *json = NULL;
    struct model_workload row = {0};
    struct err err = ERR_INIT;
    struct core_command c = {.kind = CORE_WORKLOADS_SUBMIT, .workloads = &row, .workload_count = 1};

    /* Core gives ids in order; the engine must find it when it starts. */
    if (model_json_parse(j->json, strlen(j->json), &json, &err) < 0 ||
        model_workload_decode(json, &arena, &row, &err) < 0)
        fail_msg("%s: %s", j->json, err.text);
    j->id = w->workloads.len > 0 ? w->workloads.items[w->workloads.len - 1].row.id + 1 : 1;
    if (run(w, &c) < 0)
        j->id = 0;
    else
        assert_int_equal(j->id, row.id);
    json_object_put(json);
    arena_done(&arena);
}

static void play(struct world *w, struct rng *rng)
{
    int64_t at_ms = 1000;

    put_team(w, "lab", NULL, 8, 0, 1);
    for (size_t i = 0; i < ARRAY_LEN(leaves); i++)
        put_team(w, leaves[i], i < 2 ? "lab" : NULL, 4, 0, 1);
    for (size_t i = 0; i < JOBS; i++) {
        at_ms += 1 + (int64_t)rng_below(rng, rng_below(rng, 4) ? 3000 : 40000);
        pass(w, at_ms);
        make_job(&w->jobs[i], rng, at_ms, i);
        submit(w, &w->jobs[i]);
        pass(w, ++at_ms);
        if (rng_below(rng, 12) == 0)
            edit_team(w, rng);
        pass(w, ++at_ms);
        if (rng_below(rng, 12) == 0)
            touch_node(w, rng);
    }
    /* In the end everything can run. What happens in one instant is one turn of a replay. */
    for (size_t i = 0; i < NODES; i++) {
        struct core_command c = {.kind = CORE_NODE_DRAIN, .name = w->nodes[i].name};
        pass(w, ++at_ms);
        w->nodes[i].state = MODEL_NODE_UP;
        report(w, i);
        pass(w, ++at_ms);
        assert_int_equal(run(w, &c), 0);
    }
    pass(w, ++at_ms);
    put_team(w, "lab", NULL, 24, 0, 1);
    for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
        pass(w, ++at_ms);
        put_team(w, leaves[i], i < 2 ? "lab" : NULL, 24, 0, 1);
    }
    pass_to_the_end(w);
}

/* ---- writing it down ---------------------------------------------------------------------- */

static void write_lines(struct world *w, FILE *out, const char *key, uint64_t id, uint64_t parent,
                        struct strbuf *spec)
{
    fprintf(out, "{\"%s\":%llu", key, (unsigned long long)id);
    if (strcmp(key, "team") == 0)
        fprintf(out, ",\"parent\":%llu", (unsigned long long)parent);
    fprintf(out, ",\"spec\":%s}\n", strbuf_str(spec));
    strbuf_done(spec);
}

static void write_rows(struct world *w, FILE *out)
{
    struct json_writer writer;

    for (size_t i = 0; i < w->teams.len; i++) {
        struct strbuf spec = STRBUF_INIT;
        json_writer_init(&writer, &spec);
        model_team_encode(&w->teams.items[i], &writer);
        write_lines(w, out, "team", w->teams.items[i].id, w->teams.items[i].parent_id, &spec);
    }
    for (size_t i = 0; i < w->node_rows.len; i++) {
        struct strbuf spec = STRBUF_INIT;
        json_writer_init(&writer, &spec);
        model_node_encode(&w->node_rows.items[i], &writer);
        write_lines(w, out, "node", w->node_rows.items[i].id, 0, &spec);
    }
    for (size_t i = 0; i < w->changes.len; i++)
        fputs(w->changes.items[i], out);
}

static void write_work(struct world *w, FILE *out)
{
    size_t runs = 0;

    for (size_t i = 0; i < w->workloads.len; i++) {
        const struct row_job *j = &w->workloads.items[i];
        fprintf(out,
                "{\"workload\":%llu,\"name\":\"%s\",\"team\":%llu,\"submitted_ms\":%lld,"
                "\"ended_ms\":%lld,\"failures\":0,\"shape\":%s}\n",
                (unsigned long long)j->row.id, j->row.name, (unsigned long long)j->row.team_id,
                (long long)j->row.submitted_ms, (long long)j->row.ended_ms, j->shape);
        for (size_t k = 0; k < w->allocations.len; k++) {
            const struct model_allocation *a = &w->allocations.items[k];
            if (a->workload != j->row.id)
                continue;
            runs++;
            fprintf(out, "{\"run\":[%llu,%d,%d,%d,%lld,%lld,0,%llu,%lld],\"how\":\"%s\"}\n",
                    (unsigned long long)a->workload, a->task, a->attempt, a->gpu_milli,
                    (long long)a->start_ms, (long long)a->end_ms, (unsigned long long)a->node,
                    (long long)a->stopping_ms, model_release_name(a->release));
        }
    }
    fprintf(out, "{\"end\":{\"workloads\":%zu,\"runs\":%zu}}\n", w->workloads.len, runs);
}

static void read_back(struct world *w, struct past *ret_past)
{
    FILE *file = tmpfile();
    struct err err = ERR_INIT;

    assert_non_null(file);
    fprintf(file, "{\"history\":2,\"now_ms\":%lld,\"events_from_ms\":0}\n",
            (long long)(T0 + w->now_ms));
    write_rows(w, file);
    write_work(w, file);
    rewind(file);
    if (past_read_stream(file, "it", ret_past, &err) < 0)
        fail_msg("%s", err.text);
    fclose(file);
}

/* ---- side by side ------------------------------------------------------------------------- */

static void compare(struct past *past, uint64_t seed)
{
    struct whatif_outcome was, is;
    struct whatif_setup setup;
    struct err err = ERR_INIT;

    whatif_setup_past(past, &setup);
    setup.stop_ms = STOP_MS;
    setup.checkpoint_ms = CHECKPOINT_MS;
    whatif_recorded(past, &was);
    if (whatif_replay(past, &setup, &is, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(is.skipped, 0);
    for (size_t i = 0; i < past->jobs.len; i++)
        if (was.start_ms[i] != is.start_ms[i])
            fail_msg("seed %llu: %s starts at %lld and is replayed at %lld",
                     (unsigned long long)seed, past->jobs.items[i].name,
                     (long long)(was.start_ms[i] - T0), (long long)(is.start_ms[i] - T0));
    assert_int_equal(was.held_milli_ms, is.held_milli_ms);
    assert_int_equal(was.window_milli_ms, is.window_milli_ms);
    assert_int_equal(was.capacity_milli_ms, is.capacity_milli_ms);
    assert_int_equal(was.groups.len, is.groups.len);
    for (size_t i = 0; i < was.groups.len; i++) {
        assert_int_equal(was.groups.items[i].mean_ms, is.groups.items[i].mean_ms);
        assert_int_equal(was.groups.items[i].p95_ms, is.groups.items[i].p95_ms);
        assert_int_equal(was.groups.items[i].losses, is.groups.items[i].losses);
    }
    whatif_outcome_done(&was);
    whatif_outcome_done(&is);
}

static void world_begin(struct world *w)
{
    struct core_ports ports = {.store = &memory_store_ops,
                               .engine = &engine_ops,
                               .engine_ctx = w,
                               .clock = &clock_ops,
                               .clock_ctx = w};
    static const struct model_pair racks[NODES] = {{"rack", "a"}, {"rack", "b"}, {"rack", "b"}};
    static const char *const levels[] = {"rack", NULL};
    struct err err = ERR_INIT;

    for (size_t i = 0; i < ARRAY_LEN(w->devices); i++)
        w->devices[i] =
            (struct model_device){.uuid = "GPU", .type = "H100", .memory_bytes = 80LL << 30};
    for (size_t i = 0; i < NODES; i++)
        w->nodes[i] = (struct model_node){.name = arena_printf(&w->arena, "n%zu", i),
                                          .gpu_type = "H100",
                                          .cpu_milli = MODEL_UNLIMITED,
                                          .memory_bytes = MODEL_UNLIMITED,
                                          .devices = w->devices,
                                          .device_count = i == 0 ? 8 : 4,
                                          .labels = &racks[i],
                                          .label_count = 1};
    w->store = memory_store_create();
    memory_store_watch(w->store, on_durable, w);
    ports.store_ctx = w->store;
    if (core_create(&(struct core_config){.topology = levels}, &ports, &w->core, &err) < 0)
        fail_msg("%s", err.text);
    w->host = core_engine_host(w->core);
    core_begin(w->core);
    settle(w);
}

static void world_done(struct world *w)
{
    core_destroy(w->core);
    memory_store_destroy(w->store);
    vec_done(&w->running);
    vec_done(&w->teams);
    vec_done(&w->node_rows);
    vec_done(&w->workloads);
    vec_done(&w->allocations);
    vec_done(&w->shapes);
    vec_done(&w->changes);
    arena_done(&w->arena);
    free(w);
}

static void a_replay_decides_as_the_control_plane_did(void **state)
{
    uint64_t evictions = 0, losses = 0, waits = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct world *w = calloc(1, sizeof(*w));
        struct past past;
        struct rng rng;

        assert_non_null(w);
        rng_seed(&rng, seed);
        world_begin(w);
        play(w, &rng);
        read_back(w, &past);
        for (size_t i = 0; i < past.jobs.len; i++) {
            struct past_job *j = &past.jobs.items[i];
            /* A record does not tell how much was lost: this is about decisions alone. */
            j->work_ms = job_of(w, j->id)->run_ms;
            j->failed_count = 0;
            losses += j->losses;
            evictions += j->restarts - j->losses;
            waits += past_first_start(j) > j->submitted_ms;
        }
        compare(&past, seed);
        past_done(&past);
        world_done(w);
    }
    /* It would say little of histories in which nothing happens. */
    assert_true(evictions > 50);
    assert_true(losses > 20);
    assert_true(waits > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_replay_decides_as_the_control_plane_did),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
