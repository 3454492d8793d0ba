/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: prop-small
 *
 * Every sequence of a few submissions to one small node: whoever fits and whose gates are open
 * is started by the turn, whatever came before; and after each end the next is. All have equal
 * rights, so that nobody is evicted but to be moved, and whoever is moved runs again at rest.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allot/sched.h"
#include "base/cleanup.h"
#include "sim/ledger.h"

#define SLOTS 4
#define TURNS_MAX 20
#define NODE_GPUS 2
#define GIB (1LL << 30)

/* Half a device by memory is charged 500 like half a device. */
static const struct sched_request stock[] = {
    {.device_count = 1, .device_milli = 300},  {.device_count = 1, .device_milli = 500},
    {.device_count = 1, .device_milli = 700},  {.device_count = 1, .device_milli = 1000},
    {.device_count = 2, .device_milli = 1000}, {.device_count = 1, .device_memory_bytes = 40 * GIB},
    {.device_count = 2, .device_milli = 400},  {.cpu_milli = 3000},
};
#define STOCK ARRAY_LEN(stock)

struct variant {
    const char *name;
    int64_t limit_gpu, guarantee_gpu;
    bool preemptible;
};

static const struct variant variants[] = {
    {"no gates", SCHED_UNLIMITED, SCHED_UNLIMITED, true},
    {"a limit of one and a half devices", 1500, 0, true},
    {"non-preemptible under a guarantee of one device", SCHED_UNLIMITED, 1000, false},
};

enum state { ABSENT, WAITING, RUNNING, MOVING, ENDED };

struct small {
    struct sched *s;
    struct sim_ledger ledger;
    const struct variant *variant;
    const struct sched_request *asks[SLOTS];
    enum state state[SLOTS];
    uint16_t devices[SLOTS][NODE_GPUS];
    bool stopped[SLOTS]; /* to be reported */
    int64_t now_ms;
    const char *failure;
};

static int64_t charge(const struct sched_request *q)
{
    int64_t each = q->device_milli > 0 ? q->device_milli : 500;
    return q->device_count * each;
}

static int64_t used(const struct small *m)
{
    int64_t sum = 0;
    for (int i = 0; i < SLOTS; i++)
        sum += m->state[i] == RUNNING ? charge(m->asks[i]) : 0;
    return sum;
}

static bool gates_open(const struct small *m, int slot)
{
    int64_t after = used(m) + charge(m->asks[slot]);
    if (charge(m->asks[slot]) == 0)
        return true;
    int64_t limit = m->variant->limit_gpu;
    if (!m->variant->preemptible && m->variant->guarantee_gpu < limit)
        limit = m->variant->guarantee_gpu;
    return after <= limit;
}

static void build(struct small *m)
{
    static const struct sched_device devices[NODE_GPUS] = {{.memory_bytes = 80 * GIB},
                                                           {.memory_bytes = 80 * GIB}};
    struct sched_node node = {.id = 1,
                              .devices = devices,
                              .device_count = NODE_GPUS,
                              .cpu_milli = 4000,
                              .memory_bytes = SCHED_UNLIMITED,
                              .up = true,
                              .schedulable = true};
    struct sched_team team = {.id = 1, .weight = 1};
    for (int r = 0; r < SCHED_RESOURCES; r++) {
        team.guarantee[r] = SCHED_UNLIMITED;
        team.limit[r] = SCHED_UNLIMITED;
    }
    team.guarantee[SCHED_GPU_MILLI] = m->variant->guarantee_gpu;
    team.limit[SCHED_GPU_MILLI] = m->variant->limit_gpu;
    m->s = sched_create(NULL);
    if (m->s == NULL || sched_team_set(m->s, &team) < 0 || sched_node_set(m->s, &node) < 0)
        m->failure = "the world is refused";
    sim_ledger_node_set(&m->ledger, 0, &node);
}

static void submit(struct small *m, int slot)
{
    struct sched_task task = {.request = m->asks[slot]};
    struct sched_workload w = {.id = (uint64_t)slot + 1,
                               .team = 1,
                               .age = (uint64_t)slot,
                               .class_ = SCHED_CLASS_TRAINING,
                               .preemptible = m->variant->preemptible,
                               .may_burst = true,
                               .tasks = &task,
                               .task_count = 1,
                               .min_tasks = 1,
                               .accepted = true};
    m->state[slot] = WAITING;
    if (sched_workload_add(m->s, &w, NULL) < 0)
        m->failure = "a submission is refused";
}

static void start(struct small *m, int slot, const struct sched_decision *d)
{
    if (m->state[slot] != WAITING && m->state[slot] != MOVING) {
        m->failure = "a start of one who does not wait";
        return;
    }
    if (!gates_open(m, slot))
        m->failure = "a start against a gate";
    if (sim_ledger_take(&m->ledger, 0, m->asks[slot], d->devices, d->device_count, NULL) < 0) {
        m->failure = "a start on devices that are full";
        return;
    }
    if (d->device_count > 0)
        memcpy(m->devices[slot], d->devices, d->device_count * sizeof(uint16_t));
    m->state[slot] = RUNNING;
}

/* It stops at once; the report waits until the decisions of the turn have been read. */
static void move(struct small *m, int slot, const struct sched_decision *d)
{
    if (m->state[slot] != RUNNING || d->cause != SCHED_CAUSE_CONSOLIDATE ||
        !m->variant->preemptible) {
        m->failure = "an eviction that is no move of one who runs and may move";
        return;
    }
    sim_ledger_release(&m->ledger, 0, m->asks[slot], m->devices[slot], m->asks[slot]->device_count);
    m->state[slot] = MOVING;
    m->stopped[slot] = true;
}

static void carry_out(struct small *m, const struct sched_decision *d)
{
    if (d->workload == 0 || d->workload > SLOTS)
        m->failure = "a decision about nobody";
    else if (d->kind == SCHED_START)
        start(m, (int)d->workload - 1, d);
    else if (d->kind == SCHED_EVICT)
        move(m, (int)d->workload - 1, d);
    /* promises hold nothing in this ledger: they must end in a start by the time of rest */
}

static size_t turn_once(struct small *m)
{
    const struct sched_decisions *d = sched_turn(m->s, m->now_ms);
    size_t count = d->count;
    for (size_t i = 0; i < count && m->failure == NULL; i++)
        carry_out(m, &d->items[i]);
    for (int i = 0; i < SLOTS && m->failure == NULL; i++) {
        if (m->stopped[i] &&
            sched_task_stopped(m->s, (uint64_t)i + 1, 0, SCHED_STOP_REQUEUE, m->now_ms) < 0)
            m->failure = "a stop is refused";
        m->stopped[i] = false;
    }
    char what[100];
    if (m->failure == NULL && sched_verify(m->s, what, sizeof(what)) < 0)
        m->failure = "sched_verify";
    return count;
}

static void turn(struct small *m)
{
    int turns = 0;
    while (m->failure == NULL && (turn_once(m) > 0 || sched_next_ms(m->s) <= m->now_ms)) {
        if (++turns > TURNS_MAX)
            m->failure = "no rest";
    }
    m->now_ms++;
    uint16_t ignored[NODE_GPUS];
    for (int i = 0; i < SLOTS && m->failure == NULL; i++) {
        if (m->state[i] == MOVING)
            m->failure = "one that was moved does not run again";
        if (m->state[i] == WAITING && gates_open(m, i) &&
            sim_ledger_fit(&m->ledger, 0, m->asks[i], ignored))
            m->failure = "one that fits and whose gates are open was not started";
    }
}

static void end(struct small *m, int slot)
{
    sim_ledger_release(&m->ledger, 0, m->asks[slot], m->devices[slot], m->asks[slot]->device_count);
    m->state[slot] = ENDED;
    if (sched_task_stopped(m->s, (uint64_t)slot + 1, 0, SCHED_STOP_DONE, m->now_ms) < 0 ||
        sched_workload_remove(m->s, (uint64_t)slot + 1) < 0)
        m->failure = "an end is refused";
}

/* ENDS picks who ends next: bit i set = the youngest that runs, else the oldest. */
static void play(struct small *m, bool together, uint32_t ends)
{
    for (int i = 0; i < SLOTS && m->failure == NULL; i++) {
        submit(m, i);
        if (!together)
            turn(m);
    }
    if (m->failure == NULL && together)
        turn(m);
    for (int round = 0; round < SLOTS && m->failure == NULL; round++) {
        int pick = -1;
        for (int i = 0; i < SLOTS; i++) {
            if (m->state[i] == RUNNING && (pick < 0 || (ends & (1u << round)) != 0))
                pick = i;
        }
        if (pick < 0)
            break;
        end(m, pick);
        turn(m);
    }
}

static const char *sequence(const struct variant *variant, uint32_t code, bool together,
                            uint32_t ends)
{
    struct small m = {.variant = variant, .now_ms = 1};
    for (int i = 0; i < SLOTS; i++, code /= STOCK)
        m.asks[i] = &stock[code % STOCK];
    build(&m);
    if (m.failure == NULL)
        play(&m, together, ends);
    sched_destroy(m.s);
    sim_ledger_done(&m.ledger);
    return m.failure;
}

static bool variant_holds(const struct variant *variant)
{
    uint32_t codes = 1;
    for (int i = 0; i < SLOTS; i++)
        codes *= STOCK;
    for (uint32_t code = 0; code < codes; code++) {
        for (uint32_t how = 0; how < 4; how++) {
            const char *failure = sequence(variant, code, how & 1, how & 2 ? 5 : 0);
            if (failure == NULL)
                continue;
            printf("# sequence %u, way %u: %s\n", code, how, failure);
            return false;
        }
    }
    return true;
}

int main(void)
{
    int status = 0;
    printf("1..%zu\n", ARRAY_LEN(variants));
    for (size_t i = 0; i < ARRAY_LEN(variants); i++) {
        bool ok = variant_holds(&variants[i]);
        printf("%s %zu - every sequence of %d submissions, %s\n", ok ? "ok" : "not ok", i + 1,
               SLOTS, variants[i].name);
        fflush(stdout);
        status |= !ok;
    }
    return status;
}
