/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "sim/history_internal.h"

#define WALL_START_MS 1700000000000
/* Between the start of a machine and that of the server. */
#define BOOT_MS 1000
/* How long a rest may take in turns, and how much idle time proves one: longer than holds and
 * stale gangs live. */
#define REST_TURNS 2000
#define REST_IDLE_MS 8000
/* Rounds in which nothing runs although work waits. */
#define LAST_ROUNDS 4

/* ---- clock ------------------------------------------------------------------------------ */

static int64_t clock_boot(void *clock)
{
    const struct history *h = clock;

    return h->elapsed_ms - h->booted_ms;
}

static int64_t clock_wall(void *clock)
{
    const struct history *h = clock;

    return WALL_START_MS + h->elapsed_ms + h->wall_skew_ms;
}

static const char *clock_boot_id(void *clock)
{
    return ((struct history *)clock)->boot_id;
}

static const struct clock_ops virtual_clock = {clock_boot, clock_wall, clock_boot_id};

/* ---- life ------------------------------------------------------------------------------- */

struct core *history_load(struct history *h)
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
    struct core *core = NULL;

    if (core_create(&config, &ports, &core, &err) < 0)
        history_wrong(h, "does not start again: %s", err.text);
    return core;
}

static void start_core(struct history *h)
{
    h->core = history_load(h);
    if (h->core == NULL)
        return;
    virtual_engine_attach(h->engine, core_engine_host(h->core));
    core_begin(h->core);
}

static void stop_core(struct history *h, bool durable)
{
    virtual_engine_detach(h->engine);
    durable = durable && memory_store_busy(h->store);
    if (durable)
        history_judge_group(h->judge);
    memory_store_crash(h->store, durable);
    if (durable)
        history_judge_group_end(h->judge);
    h->anchored |= durable;
    core_destroy(h->core);
    h->core = NULL;
}

static void reboot(struct history *h)
{
    snprintf(h->boot_id, sizeof(h->boot_id), "boot-%d", ++h->boots);
    h->booted_ms = h->elapsed_ms - BOOT_MS;
    h->anchored = false;
    virtual_engine_reboot(h->engine, BOOT_MS);
}

/* The timeline goes on from the wall clock when a machine starts. */
static void note_timeline(struct history *h)
{
    if (h->core)
        h->timeline_ms = core_now_ms(h->core) - h->elapsed_ms;
}

static void commit(struct history *h)
{
    if (!memory_store_busy(h->store))
        return;
    history_judge_group(h->judge);
    memory_store_commit(h->store);
    history_judge_group_end(h->judge);
    h->anchored = true;
    core_step(h->core);
}

/* Core lives until the point where it is to die. */
static void live_until(struct history *h, const struct history_step *s)
{
    if (s->crash.at == HISTORY_DURING)
        virtual_engine_cut(h->engine, (uint32_t)s->crash.calls);
    if (s->crash.at == HISTORY_DURING || s->crash.at == HISTORY_AFTER)
        commit(h);
}

static void crash(struct history *h, const struct history_step *s)
{
    h->result.crashes++;
    if (history_quiet(h))
        history_compare(h);
    live_until(h, s);
    stop_core(h, s->crash.at == HISTORY_DURABLE);
    if (s->crash.reboot)
        reboot(h);
    history_judge_outside(h->judge);
    start_core(h);
    if (!h->anchored)
        note_timeline(h);
}

/* ---- machines --------------------------------------------------------------------------- */

static struct history_node *node_new(const struct history_step *s)
{
    struct history_node *n = calloc(1, sizeof(*n));
    size_t count = (size_t)s->node.devices;
    const char *type = history_type_name((enum history_type)s->node.type);

    if (n == NULL || (n->devices = calloc(count + 1, sizeof(*n->devices))) == NULL)
        abort();
    history_name('n', s->node.node, n->name);
    for (size_t i = 0; i < count; i++)
        n->devices[i] = (struct model_device){
            .uuid = "GPU-0",
            .type = type,
            .memory_bytes = (s->node.slices ? 10LL : s->node.memory_gib) << 30,
            .mig_profile = s->node.slices ? "1g.10gb" : NULL,
            .mig_milli = s->node.slices ? 142 : 0,
            .simulated = true,
        };
    n->row = (struct model_node){
        .name = n->name,
        .cluster = "local",
        .gpu_type = count ? type : NULL,
        .sharing = "none",
        .limits = "none",
        .isolation = "none",
        .cpu_milli = s->node.cpu,
        .memory_bytes = (int64_t)s->node.memory_gib << 30,
        .devices = n->devices,
        .device_count = s->node.devices,
    };
    return n;
}

static void add_node(struct history *h, const struct history_step *s)
{
    if (h->nodes[s->node.node])
        return; /* a machine does not change its devices here */
    h->nodes[s->node.node] = node_new(s);
    virtual_engine_node(h->engine, (uint32_t)s->node.node, &h->nodes[s->node.node]->row);
}

static void finish(struct history *h, const struct history_step *s)
{
    char name[HISTORY_NAME_MAX];

    history_name('w', s->finish.w, name);
    virtual_engine_finish(h->engine, name, s->finish.task, s->finish.code,
                          s->finish.how == HISTORY_LOST);
}

static void call(struct history *h, int32_t number)
{
    char name[HISTORY_NAME_MAX];

    history_name('w', number, name);
    virtual_engine_call(h->engine, name);
}

static void refuse_disk(struct history *h, const struct history_step *s)
{
    if (!memory_store_busy(h->store))
        return;
    h->result.disk_faults++;
    memory_store_fail(h->store, history_disk_errno(s->disk.error));
}

/* Returns when the engine has something to do next, on the boot clock. */
static int64_t pass(struct history *h, int64_t ms)
{
    int64_t next;

    h->elapsed_ms += ms;
    next = virtual_engine_advance(h->engine, clock_boot(h));
    core_step(h->core);
    return next;
}

/* ---- rest ------------------------------------------------------------------------------- */

/* Nothing happens from outside: launches, stops, events and the disk take their time, promises
 * run out, until nothing has happened for long enough. */
static void rest(struct history *h)
{
    int64_t idle_ms = 0;
    uint64_t trace = 0;

    h->result.rests++;
    for (int i = 0; i < REST_TURNS && h->result.wrong[0] == '\0'; i++) {
        int64_t now = clock_boot(h);
        int64_t next = pass(h, 0);
        uint64_t seen;

        commit(h);
        if (history_check(h) < 0)
            return;
        seen = history_judge_trace(h->judge) ^ virtual_engine_trace(h->engine);
        idle_ms = seen == trace ? idle_ms : 0;
        trace = seen;
        if (idle_ms >= REST_IDLE_MS) {
            history_check_rest(h);
            return;
        }
        if (memory_store_busy(h->store))
            continue;
        next = next - now < 1000 ? next - now : 1000;
        idle_ms += next;
        pass(h, next > 0 ? next : 1);
    }
    history_wrong(h, "no rest within %d turns although nothing happens from outside", REST_TURNS);
}

/* ---- steps ------------------------------------------------------------------------------ */

static void play_fault(struct history *h, const struct history_step *s)
{
    switch (s->kind) {
    case HISTORY_REFUSE:
        virtual_engine_refuse(h->engine, s->refuse.lasting);
        break;
    case HISTORY_CALL:
        call(h, s->cancel.w);
        break;
    case HISTORY_HINDER:
        virtual_engine_hinder(h->engine, (enum virtual_hinder)s->hinder.what);
        break;
    case HISTORY_LOSE:
        virtual_engine_lose(h->engine, (uint32_t)s->lose.node, s->lose.dies);
        break;
    case HISTORY_RETURN:
        virtual_engine_return(h->engine, (uint32_t)s->lose.node);
        break;
    case HISTORY_DISK:
        refuse_disk(h, s);
        break;
    case HISTORY_CRASH:
        crash(h, s);
        break;
    case HISTORY_LATE:
        virtual_engine_late(h->engine, s->time.ms);
        break;
    case HISTORY_REPEAT:
        virtual_engine_repeat(h->engine, s->time.ms);
        break;
    case HISTORY_REORDER:
        virtual_engine_reorder(h->engine);
        break;
    case HISTORY_WALL:
        h->wall_skew_ms += s->time.ms;
        break;
    default:
        break;
    }
}

static void play_step(struct history *h, const struct history_step *s)
{
    switch (s->kind) {
    case HISTORY_NODE:
        add_node(h, s);
        break;
    case HISTORY_TEAM:
        history_ask_team(h, s);
        break;
    case HISTORY_DISSOLVE:
        history_ask_dissolve(h, s);
        break;
    case HISTORY_SUBMIT:
        history_ask_submit(h, s);
        break;
    case HISTORY_CANCEL:
        history_ask_cancel(h, s);
        break;
    case HISTORY_FINISH:
        finish(h, s);
        break;
    case HISTORY_SUSPEND:
    case HISTORY_RESUME:
        history_ask_suspend(h, s);
        break;
    case HISTORY_DRAIN:
        history_ask_drain(h, s);
        break;
    case HISTORY_TIME:
        pass(h, s->time.ms);
        break;
    case HISTORY_COMMIT:
        commit(h);
        break;
    case HISTORY_REST:
        rest(h);
        break;
    default:
        history_judge_outside(h->judge);
        play_fault(h, s);
        break;
    }
    if (h->core)
        pass(h, 0);
}

/* ---- the end ---------------------------------------------------------------------------- */

static void repair(struct history *h)
{
    for (int32_t i = 0; i < HISTORY_NODES_MAX; i++)
        virtual_engine_return(h->engine, (uint32_t)i);
    /* The disk takes again what it refused, and then the rest. */
    pass(h, 1000);
    rest(h);
    for (int32_t i = 0; i < HISTORY_NODES_MAX; i++)
        history_ask_drain(
            h, &(struct history_step){.kind = HISTORY_DRAIN, .drain = {.node = i, .flag = 0}});
    history_ask_everything(h);
    rest(h);
}

/* All that has its devices ends, and what is suspended wants them back. */
static size_t finish_all(struct history *h)
{
    size_t count = virtual_engine_running(h->engine), finished = 0;
    struct virtual_task *tasks = calloc(count + 1, sizeof(*tasks));

    if (tasks == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        virtual_engine_task(h->engine, i, &tasks[i]);
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].asleep)
            virtual_engine_call(h->engine, tasks[i].name);
        else
            finished += virtual_engine_finish(h->engine, tasks[i].name, tasks[i].task, 0, false);
    }
    free(tasks);
    history_judge_outside(h->judge);
    return finished;
}

/* Everything that was accepted runs and ends, round by round. */
static void end(struct history *h)
{
    struct history_counts counts;
    int idle = 0;

    repair(h);
    for (history_judge_counts(h->judge, &counts); counts.live && h->result.wrong[0] == '\0';) {
        idle = finish_all(h) ? 0 : idle + 1;
        if (idle)
            pass(h, 120000); /* back-offs run out */
        rest(h);
        history_judge_counts(h->judge, &counts);
        if (idle > LAST_ROUNDS)
            history_wrong(h, "%" PRIu64 " accepted workloads never run and end", counts.live);
    }
    if (h->result.wrong[0] == '\0' && virtual_engine_running(h->engine))
        history_wrong(h, "%zu tasks run after all workloads have ended",
                      virtual_engine_running(h->engine));
}

static void begin(struct history *h)
{
    h->boots = 1;
    h->elapsed_ms = BOOT_MS;
    snprintf(h->boot_id, sizeof(h->boot_id), "boot-1");
    h->store = memory_store_create();
    h->engine = virtual_engine_create();
    h->judge = history_judge_create();
    memory_store_watch(h->store, history_judge_op, h->judge);
    virtual_engine_advance(h->engine, clock_boot(h));
    start_core(h);
    note_timeline(h);
}

static void done(struct history *h)
{
    history_judge_counts(h->judge, &h->result.counts);
    h->result.trace = history_judge_trace(h->judge) ^ virtual_engine_trace(h->engine);
    core_destroy(h->core);
    virtual_engine_destroy(h->engine);
    memory_store_destroy(h->store);
    history_judge_destroy(h->judge);
    map_done(&h->numbers);
    for (int i = 0; i < HISTORY_NODES_MAX; i++) {
        if (h->nodes[i])
            free(h->nodes[i]->devices);
        free(h->nodes[i]);
    }
}

int history_play(history_next_fn *next, void *user, uint64_t compare_every,
                 struct history_result *ret_result)
{
    struct history h = {.compare_every = compare_every};
    struct history_step step;

    begin(&h);
    while (h.result.wrong[0] == '\0' && next(user, &h, &step)) {
        h.result.steps++;
        play_step(&h, &step);
        if (h.core)
            history_check(&h);
    }
    if (h.result.wrong[0] == '\0')
        end(&h);
    done(&h);
    *ret_result = h.result;
    return h.result.wrong[0] ? -EUCLEAN : 0;
}
