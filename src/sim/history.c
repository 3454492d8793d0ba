/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/rng.h"
#include "base/vec.h"
#include "core/core.h"
#include "model/json.h"
#include "sim/memory_store.h"
#include "sim/virtual_engine.h"

#define TEAMS 4
#define DEVICES 8

struct history {
    struct rng rng;
    struct memory_store *store;
    struct virtual_engine *engine;
    struct core *core;
    struct model_node node;
    struct arena arena;
    int64_t boot_ms;
    int64_t wall_skew_ms;
    VEC(uint64_t) acknowledged;
    struct history_result result;
    FILE *out;
    const struct history_options *options;
    int32_t step;
};

/* ---- clock ------------------------------------------------------------------------------ */

static int64_t clock_boot(void *clock)
{
    return ((struct history *)clock)->boot_ms;
}

static int64_t clock_wall(void *clock)
{
    const struct history *h = clock;

    return 1700000000000 + h->boot_ms + h->wall_skew_ms;
}

static const char *clock_boot_id(void *clock)
{
    return "simulated-boot";
}

static const struct clock_ops virtual_clock = {clock_boot, clock_wall, clock_boot_id};

/* ---- commands --------------------------------------------------------------------------- */

/* A command and everything that it refers to. */
struct request {
    struct core_command command;
    struct history *history;
    struct arena arena;
};

static void request_done(struct core_command *c)
{
    struct request *r = c->user;
    struct history *h = r->history;

    if (c->kind == CORE_WORKLOADS_SUBMIT && c->status == 0)
        for (size_t i = 0; i < c->workload_count; i++)
            vec_push(&h->acknowledged, c->workloads[i].id);
    if (c->kind == CORE_WORKLOADS_SUBMIT && c->status < 0)
        h->result.refused++;
    arena_done(&c->arena);
    arena_done(&r->arena);
    free(r);
}

static struct request *request_new(struct history *h, enum core_command_kind kind)
{
    struct request *r = calloc(1, sizeof(*r));

    if (r == NULL)
        abort();
    r->history = h;
    r->command.kind = kind;
    r->command.actor = (struct core_actor){.name = "tester", .admin = true};
    r->command.done = request_done;
    r->command.user = r;
    return r;
}

static int64_t below(struct history *h, int64_t n)
{
    return (int64_t)rng_below(&h->rng, (uint64_t)n);
}

static void put_team(struct history *h, int i)
{
    struct request *r = request_new(h, CORE_TEAM_PUT);
    struct model_team *t = arena_new(&r->arena, struct model_team);

    model_team_init(t);
    t->name = arena_printf(&r->arena, "team%d", i);
    t->guarantee[MODEL_GPU_MILLI] = 1000 * below(h, DEVICES / 2);
    if (below(h, 2))
        t->limit[MODEL_GPU_MILLI] = t->guarantee[MODEL_GPU_MILLI] + 1000 * below(h, DEVICES);
    t->weight = below(h, 3);
    r->command.team = t;
    core_submit(h->core, &r->command);
}

static const char *random_json(struct history *h, struct arena *arena)
{
    static const char *const classes[] = {"production", "training", "development", "batch"};
    static const char *const asks[] = {"\"gpus\":1", "\"gpus\":2",     "\"gpus\":4",
                                       "\"gpu\":0.25", "\"gpu\":0.5", "\"gpu\":0.7"};
    int64_t tasks = below(h, 4) ? 1 : 1 + below(h, 5);
    int64_t min = below(h, 2) ? tasks : 1 + below(h, tasks);
    const char *cls = classes[below(h, 4)];

    return arena_printf(arena,
                        "{\"team\":\"team%lld\",\"class\":\"%s\",\"priority\":%lld,"
                        "\"tasks\":%lld,\"min_tasks\":%lld,%s,\"max_retries\":%lld,"
                        "\"preemption\":{\"grace\":\"%llds\"},\"cpu\":\"100m\","
                        "\"command\":[\"true\"]%s}",
                        (long long)below(h, TEAMS), cls, (long long)below(h, 3),
                        (long long)tasks, (long long)min, asks[below(h, 6)],
                        (long long)below(h, 3), (long long)(1 + below(h, 5)),
                        below(h, 4) ? "" : ",\"max_run_time\":\"3s\"");
}

static void submit(struct history *h)
{
    struct request *r = request_new(h, CORE_WORKLOADS_SUBMIT);
    size_t n = (size_t)(1 + below(h, 3));
    struct model_workload *rows = arena_new_array(&r->arena, struct model_workload, n);

    for (size_t i = 0; i < n; i++) {
        const char *text = random_json(h, &r->arena);
        struct json_object *json = NULL;
        struct err err = ERR_INIT;

        if (model_json_parse(text, strlen(text), &json, &err) < 0 ||
            model_workload_decode(json, &r->arena, &rows[i], &err) < 0) {
            fprintf(h->out, "# %s: %s (%s)\n", text, err.text, err.field);
            abort();
        }
        json_object_put(json);
    }
    r->command.workloads = rows;
    r->command.workload_count = n;
    h->result.submitted += (uint32_t)n;
    core_submit(h->core, &r->command);
}

static void stop_one(struct history *h)
{
    struct request *r;

    if (h->acknowledged.len == 0)
        return;
    r = request_new(h, CORE_WORKLOAD_STOP);
    r->command.id = h->acknowledged.items[below(h, (int64_t)h->acknowledged.len)];
    r->command.grace_ms = below(h, 2) ? -1 : 100;
    core_submit(h->core, &r->command);
}

static void drain(struct history *h, bool flag)
{
    struct request *r = request_new(h, CORE_NODE_DRAIN);

    r->command.name = h->node.name;
    r->command.flag = flag;
    core_submit(h->core, &r->command);
}

/* ---- life ------------------------------------------------------------------------------- */

static void start_core(struct history *h)
{
    struct core_config config = {.hold_ms = 5000, .stale_gang_ms = 4000};
    struct core_ports ports = {
        .store = &memory_store_ops,
        .store_ctx = h->store,
        .engine = &virtual_engine_ops,
        .engine_ctx = h->engine,
        .clock = &virtual_clock,
        .clock_ctx = h,
    };
    struct err err = ERR_INIT;

    if (core_create(&config, &ports, &h->core, &err) < 0) {
        fprintf(h->out, "# seed %llu step %d: does not start again: %s\n",
                (unsigned long long)h->options->seed, h->step, err.text);
        abort();
    }
    virtual_engine_attach(h->engine, core_engine_host(h->core));
    core_begin(h->core);
}

static void crash(struct history *h)
{
    h->result.crashes++;
    virtual_engine_detach(h->engine);
    memory_store_crash(h->store);
    core_destroy(h->core);
    /* The wall clock may be set while nobody looks. */
    h->wall_skew_ms = below(h, 3) ? 0 : 3600000 - 7200000 * below(h, 2);
    start_core(h);
}

static void let_time_pass(struct history *h, int64_t ms)
{
    h->boot_ms += ms;
    virtual_engine_advance(h->engine, h->boot_ms);
    core_step(h->core);
}

static void settle_store(struct history *h, bool may_fail)
{
    if (!memory_store_busy(h->store))
        return;
    if (may_fail && below(h, 20) == 0) {
        h->result.disk_faults++;
        memory_store_fail(h->store, -ENOSPC);
    } else {
        memory_store_commit(h->store);
    }
    core_step(h->core);
}

static void one_step(struct history *h)
{
    switch (below(h, 16)) {
    case 0:
    case 1:
    case 2:
        submit(h);
        break;
    case 3:
        stop_one(h);
        break;
    case 4:
        if (below(h, 4) == 0)
            put_team(h, (int)below(h, TEAMS));
        break;
    case 5:
        if (below(h, 8) == 0)
            crash(h);
        break;
    case 6:
        if (below(h, 10) == 0)
            drain(h, below(h, 3) == 0);
        break;
    case 7:
    case 8:
    case 9:
        let_time_pass(h, below(h, 400));
        break;
    default:
        settle_store(h, true);
        break;
    }
    core_step(h->core);
}

/* ---- checks ----------------------------------------------------------------------------- */

static int wrong(struct history *h, const char *what)
{
    fprintf(h->out, "# seed %llu, step %d: %s\n", (unsigned long long)h->options->seed, h->step,
            what);
    return -EUCLEAN;
}

static int check_device(struct history *h, const struct model_allocation **rows, size_t count,
                        uint16_t device)
{
    char text[160];

    /* At each start of an interval, the sum of what covers that instant must fit. */
    for (size_t i = 0; i < count; i++) {
        int32_t sum = 0;

        for (size_t k = 0; k < count; k++)
            for (int32_t d = 0; d < rows[k]->device_count; d++)
                if (rows[k]->devices[d] == device && rows[k]->start_ms <= rows[i]->start_ms &&
                    rows[i]->start_ms < rows[k]->end_ms)
                    sum += rows[k]->gpu_milli / rows[k]->device_count;
        if (sum > 1000) {
            snprintf(text, sizeof(text), "device %u is metered %d milli at %lld", device, sum,
                     (long long)rows[i]->start_ms);
            return wrong(h, text);
        }
    }
    return 0;
}

static int check_metering(struct history *h)
{
    const struct model_allocation **rows;
    size_t count = memory_store_allocations(h->store, &rows);

    h->result.allocations = count;
    for (size_t i = 0; i < count; i++) {
        if (rows[i]->end_ms == 0)
            return wrong(h, "an allocation is still open");
        if (rows[i]->end_ms < rows[i]->start_ms)
            return wrong(h, "an allocation ends before it starts");
        h->result.hash = h->result.hash * 1099511628211ULL ^ rows[i]->workload ^
                         (uint64_t)rows[i]->end_ms;
    }
    for (uint16_t d = 0; d < DEVICES; d++) {
        int r = check_device(h, rows, count, d);

        if (r < 0)
            return r;
    }
    return 0;
}

static int check_end(struct history *h)
{
    for (size_t i = 0; i < h->acknowledged.len; i++) {
        const struct model_workload *w = memory_store_workload(h->store, h->acknowledged.items[i]);

        if (w == NULL)
            return wrong(h, "an acknowledged workload is lost");
        if (!model_workload_state_is_final(w->state))
            return wrong(h, arena_printf(&h->arena, "workload %llu is still %s",
                                         (unsigned long long)w->id,
                                         model_workload_state_name(w->state)));
        h->result.succeeded += w->state == MODEL_WORKLOAD_SUCCEEDED;
        h->result.failed += w->state == MODEL_WORKLOAD_FAILED;
        h->result.cancelled += w->state == MODEL_WORKLOAD_CANCELLED;
    }
    if (virtual_engine_running(h->engine))
        return wrong(h, "tasks still run after all workloads have ended");
    return check_metering(h);
}

/* No new faults; what waits is stopped, what runs may end. */
static void wind_down(struct history *h)
{
    drain(h, false);
    for (int i = 0; i < 200; i++) {
        let_time_pass(h, 100);
        settle_store(h, false);
    }
    for (size_t i = 0; i < h->acknowledged.len; i++) {
        struct request *r = request_new(h, CORE_WORKLOAD_STOP);

        r->command.id = h->acknowledged.items[i];
        r->command.grace_ms = -1;
        core_submit(h->core, &r->command);
    }
    for (int i = 0; i < 400; i++) {
        let_time_pass(h, 100);
        settle_store(h, false);
    }
}

static void build_node(struct history *h)
{
    struct err err = ERR_INIT;

    if (model_devices_from_spec("8xH100", &h->arena, &h->node.devices, &h->node.device_count,
                                &err) < 0)
        abort();
    h->node.name = "n0";
    h->node.cluster = "local";
    h->node.gpu_type = "H100";
    h->node.sharing = h->node.limits = h->node.isolation = "none";
    h->node.cpu_milli = 64000;
    h->node.memory_bytes = 1LL << 40;
}

static int play(struct history *h)
{
    char what[200];
    int r = 0;

    for (int i = 0; i < TEAMS; i++) {
        put_team(h, i);
        core_step(h->core);
        settle_store(h, false);
    }
    for (h->step = 0; h->step < h->options->steps && r == 0; h->step++) {
        one_step(h);
        if (core_verify(h->core, what, sizeof(what)) < 0)
            r = wrong(h, what);
    }
    if (r == 0)
        wind_down(h);
    return r == 0 ? check_end(h) : r;
}

int history_run(const struct history_options *options, FILE *out,
                struct history_result *ret_result)
{
    static const struct virtual_faults faults = {
        .refuse_permille = 20,
        .lose_permille = 20,
        .fail_permille = 100,
        .repeat_permille = 50,
        .delay_ms = 100,
        .run_ms = 4000,
    };
    struct history h = {.out = out, .options = options};
    int r;

    rng_seed(&h.rng, options->seed);
    build_node(&h);
    h.store = memory_store_create();
    h.engine = virtual_engine_create(options->seed ^ 0x5eed, &faults, &h.node);
    start_core(&h);
    r = play(&h);
    *ret_result = h.result;
    core_destroy(h.core);
    virtual_engine_destroy(h.engine);
    memory_store_destroy(h.store);
    vec_done(&h.acknowledged);
    arena_done(&h.arena);
    return r;
}
