/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How work is played: a discrete-event simulation over all processes, in the shared file.
 *
 * Between two events a fixed set of kernels runs at fixed speeds. An event is: a kernel or copy
 * ends, a time slice ends while somebody else has work, a switch is over. Whoever needs to know
 * plays from `sim_ns` to the present time; nobody needs to play in between.
 *
 * Speeds: the kernels of a process share its SMs (all, or its percentage under MPS) in proportion
 * to what they ask for when they ask for more than there are; so do, under MPS, the processes.
 * In time slices only the process whose turn it is runs. Progress is counted in 1/4096 ns and
 * rounded down, the length of a step up, so that nothing ends early and the play is the same
 * wherever it is interrupted, up to that rounding.
 */
#include <string.h>

#include "share/cuda_abi.h"
#include "shared.h"

#define RUNS_MAX 1024
#define NS_MAX (UINT64_C(1) << 50)

struct run {
    struct dbl_op *op;
    uint32_t proc, device;
    uint64_t num, den; /* speed */
};

/* The kernels that run now. */
struct set {
    uint32_t count;
    struct run runs[RUNS_MAX];
};

bool dbl_proc_idle(const struct dbl_proc *proc)
{
    return proc->ops_count == 0;
}

void dbl_op_drop(struct dbl_proc *proc, uint32_t op)
{
    proc->ops[op - 1].next = proc->ops_free;
    proc->ops_free = op;
    proc->ops_count--;
}

uint32_t dbl_op_new(struct dbl_proc *proc)
{
    uint32_t op = proc->ops_free;

    if (op != 0)
        proc->ops_free = proc->ops[op - 1].next;
    else if (proc->ops_high < DBL_OPS)
        op = ++proc->ops_high;
    else
        return 0;
    proc->ops[op - 1] = (struct dbl_op){0};
    proc->ops_count++;
    return op;
}

void dbl_op_push(struct dbl_proc *proc, uint32_t stream, uint32_t op)
{
    struct dbl_stream *s = &proc->streams[stream];

    proc->ops[op - 1].order = ++proc->order;
    s->ops++;
    s->depth += proc->ops[op - 1].depth;
    atomic_signal_fence(memory_order_seq_cst);
    if (s->head == 0)
        s->head = op;
    else
        proc->ops[s->tail - 1].next = op;
    s->tail = op;
    proc->busy[stream / 64] |= UINT64_C(1) << stream % 64;
}

/* Records of it that are still to come must not be taken for one of the next owner: a record
 * names a number, and numbers go on. */
void dbl_event_drop(struct dbl_proc *proc, uint32_t event)
{
    proc->events[event].used = false;
}

static void pop(struct dbl_proc *proc, uint32_t stream)
{
    struct dbl_stream *s = &proc->streams[stream];
    uint32_t op = s->head;

    s->ops--;
    s->depth -= proc->ops[op - 1].depth;
    s->head = proc->ops[op - 1].next;
    if (s->head == 0) {
        s->tail = 0;
        proc->busy[stream / 64] &= ~(UINT64_C(1) << stream % 64);
        if (s->closing)
            *s = (struct dbl_stream){0};
    }
    dbl_op_drop(proc, op);
}

void dbl_repair(struct dbl_proc *proc)
{
    uint8_t kept[DBL_OPS] = {0};

    proc->ops_free = proc->ops_count = proc->host_calls = 0;
    for (uint32_t i = 0; i < DBL_STREAMS; i++) {
        struct dbl_stream *s = &proc->streams[i];

        s->ops = s->depth = s->tail = 0;
        proc->busy[i / 64] &= ~(UINT64_C(1) << i % 64);
        for (uint32_t op = s->head; op != 0 && !kept[op - 1]; op = proc->ops[op - 1].next) {
            kept[op - 1] = 1;
            proc->ops_count++;
            s->ops++;
            s->depth += proc->ops[op - 1].depth;
            s->tail = op;
            proc->busy[i / 64] |= UINT64_C(1) << i % 64;
            proc->host_calls +=
                proc->ops[op - 1].kind == DBL_OP_HOST && proc->ops[op - 1].called == 1;
        }
        if (s->closing && s->head == 0)
            *s = (struct dbl_stream){0};
    }
    for (uint32_t op = proc->ops_high; op > 0; op--) {
        if (kept[op - 1])
            continue;
        proc->ops[op - 1].next = proc->ops_free;
        proc->ops_free = op;
    }
}

/*
 * The legacy stream of a context and its blocking streams wait for each other: an op may begin
 * when all that were submitted before it on the other side are done.
 */
static bool gate_open(const struct dbl_proc *proc, uint32_t stream)
{
    const struct dbl_stream *mine = &proc->streams[stream];
    uint64_t order = proc->ops[mine->head - 1].order;

    if (mine->nonblocking)
        return true;
    for (uint32_t w = 0; w < DBL_STREAMS / 64; w++) {
        for (uint64_t bits = proc->busy[w]; bits != 0; bits &= bits - 1) {
            const struct dbl_stream *s = &proc->streams[w * 64 + __builtin_ctzll(bits)];

            if (s != mine && s->context == mine->context && !s->nonblocking &&
                (s->legacy || mine->legacy) && proc->ops[s->head - 1].order < order)
                return false;
        }
    }
    return true;
}

/* Asks the process to call a function; its service thread answers with `called` = 2. */
static void call_host(struct dbl_proc *proc, struct dbl_op *op)
{
    op->called = 1;
    proc->host_calls++;
    atomic_fetch_add(&proc->command, 1);
    dbl_futex_wake(&proc->command);
}

/* Whether the head of STREAM is done at NOW; makes happen what an op does at once. */
static bool head_done(struct dbl_proc *proc, uint32_t stream, uint64_t now)
{
    struct dbl_op *op = &proc->ops[proc->streams[stream].head - 1];
    struct dbl_event *event = &proc->events[op->event];

    switch ((enum dbl_op_kind)op->kind) {
    case DBL_OP_KERNEL:
    case DBL_OP_COPY:
        return op->remaining == 0;
    case DBL_OP_RECORD:
        if (op->arg > event->done && op->arg <= event->posted) {
            event->time_ns = now;
            event->done = op->arg;
        }
        return true;
    case DBL_OP_WAIT:
        return event->done >= op->arg;
    case DBL_OP_HOST:
        if (op->called == 0)
            call_host(proc, op);
        return op->called == 2;
    }
    return true;
}

/* Ends what is over at NOW in PROC, and what follows from that. True if anything was. */
static bool settle_proc(struct dbl_proc *proc, uint64_t now)
{
    bool any = false;

    for (uint32_t w = 0; w < DBL_STREAMS / 64; w++) {
        for (uint64_t bits = proc->busy[w]; bits != 0; bits &= bits - 1) {
            uint32_t s = w * 64 + (uint32_t)__builtin_ctzll(bits);

            while (proc->streams[s].head != 0 && gate_open(proc, s) && head_done(proc, s, now)) {
                pop(proc, s);
                any = true;
            }
        }
    }
    return any;
}

static void settle(struct dbl_shared *sh, uint64_t now)
{
    for (uint32_t i = 0; i < sh->procs_high; i++) {
        if (!sh->procs[i].live || sh->procs[i].ops_count == 0)
            continue;
        while (settle_proc(&sh->procs[i], now))
            ;
    }
}

/* Kernels and copies of slot I that can run on DEVICE (kernels only if WITH_KERNELS) into SET. */
static uint32_t collect_proc(struct dbl_shared *sh, uint32_t i, uint32_t device, bool with_kernels,
                             struct set *set)
{
    struct dbl_proc *proc = &sh->procs[i];
    uint32_t kernels = 0;

    for (uint32_t w = 0; w < DBL_STREAMS / 64; w++) {
        for (uint64_t bits = proc->busy[w]; bits != 0; bits &= bits - 1) {
            uint32_t s = w * 64 + (uint32_t)__builtin_ctzll(bits);
            struct dbl_op *op = &proc->ops[proc->streams[s].head - 1];

            if (proc->moved[proc->streams[s].device] != device || op->kind > DBL_OP_COPY ||
                !gate_open(proc, s))
                continue;
            if (op->kind == DBL_OP_KERNEL)
                kernels++;
            if ((op->kind == DBL_OP_KERNEL && !with_kernels) || set->count == RUNS_MAX)
                continue;
            set->runs[set->count++] = (struct run){op, i, device, 1, 1};
        }
    }
    return kernels;
}

static bool has_kernels(struct dbl_shared *sh, uint32_t i, uint32_t device)
{
    struct dbl_proc *proc = &sh->procs[i];

    if (!proc->live || proc->ops_count == 0)
        return false;
    for (uint32_t w = 0; w < DBL_STREAMS / 64; w++) {
        for (uint64_t bits = proc->busy[w]; bits != 0; bits &= bits - 1) {
            uint32_t s = w * 64 + (uint32_t)__builtin_ctzll(bits);

            if (proc->moved[proc->streams[s].device] == device &&
                proc->ops[proc->streams[s].head - 1].kind == DBL_OP_KERNEL && gate_open(proc, s))
                return true;
        }
    }
    return false;
}

/* The next slot after AFTER, in turn, that has kernels for DEVICE: index + 1, or 0. */
static uint32_t next_in_turn(struct dbl_shared *sh, uint32_t device, uint32_t after)
{
    uint32_t high = sh->procs_high;

    for (uint32_t n = 0; n < high; n++) {
        uint32_t i = (after + n) % high;

        if (has_kernels(sh, i, device))
            return i + 1;
    }
    return 0;
}

/* Whose turn it is on DEVICE at NOW: slot + 1, 0 for nobody or while a switch takes its time. */
static uint32_t arbitrate(struct dbl_shared *sh, uint32_t device, uint64_t now)
{
    struct dbl_turn *turn = &sh->devices[device].turn;
    bool working = turn->current != 0 && has_kernels(sh, turn->current - 1, device);
    uint32_t next;

    if (!working || now >= turn->slice_end) {
        next = next_in_turn(sh, device, turn->current);
        if (next == 0)
            return 0;
        if (next != turn->current && turn->current != 0)
            turn->stall_until = now + sh->config.switch_ns;
        if (next != turn->current || now >= turn->slice_end)
            turn->slice_end =
                now + sh->config.quantum_ns + (next != turn->current ? sh->config.switch_ns : 0);
        turn->current = next;
    }
    return now < turn->stall_until ? 0 : turn->current;
}

/* SMs of DEVICE that slot I may use. */
static uint64_t sm_cap(const struct dbl_shared *sh, uint32_t i, uint32_t device)
{
    uint64_t sms = sh->devices[device].info.sms;
    uint64_t cap = sms;

    if (sh->config.mode == DBL_MPS)
        cap = sms * sh->procs[i].percent / 100;
    return cap > 0 ? cap : 1;
}

/* Gives the kernels of SET from FIRST on, all of one device, their speeds. */
static void share(struct dbl_shared *sh, uint32_t device, struct set *set, uint32_t first)
{
    uint64_t asked[DBL_PROCS];
    uint64_t all = 0, sms = sh->devices[device].info.sms;

    memset(asked, 0, sh->procs_high * sizeof(asked[0]));
    for (uint32_t r = first; r < set->count; r++)
        if (set->runs[r].op->kind == DBL_OP_KERNEL)
            asked[set->runs[r].proc] += set->runs[r].op->sms;
    for (uint32_t i = 0; i < sh->procs_high; i++) {
        uint64_t cap = asked[i] > 0 ? sm_cap(sh, i, device) : 0;

        all += asked[i] < cap ? asked[i] : cap;
    }
    for (uint32_t r = first; r < set->count; r++) {
        struct run *run = &set->runs[r];
        uint64_t cap = sm_cap(sh, run->proc, device);

        if (run->op->kind != DBL_OP_KERNEL)
            continue;
        if (asked[run->proc] > cap) {
            run->num *= cap;
            run->den *= asked[run->proc];
        }
        if (all > sms) {
            run->num *= sms;
            run->den *= all;
        }
    }
}

static void collect(struct dbl_shared *sh, uint64_t now, struct set *set)
{
    set->count = 0;
    for (uint32_t d = 0; d < sh->config.devices; d++) {
        uint32_t first = set->count;
        uint32_t turn = sh->config.mode == DBL_TIMESLICE ? arbitrate(sh, d, now) : 0;

        for (uint32_t i = 0; i < sh->procs_high; i++)
            if (sh->procs[i].live && sh->procs[i].ops_count > 0)
                collect_proc(sh, i, d, sh->config.mode == DBL_MPS || turn == i + 1, set);
        share(sh, d, set, first);
    }
}

/* Nanoseconds until RUN is done. */
static uint64_t time_left(const struct run *run)
{
    unsigned __int128 steps = (unsigned __int128)run->op->remaining * run->den;
    unsigned __int128 each = (unsigned __int128)run->num * DBL_FRACTION;
    unsigned __int128 ns = (steps + each - 1) / each;

    return ns > NS_MAX ? NS_MAX : (uint64_t)ns;
}

/* The end of the present step at the latest, DBL_NEVER if nothing runs. */
static uint64_t step_end(struct dbl_shared *sh, uint64_t now, const struct set *set)
{
    uint64_t end = DBL_NEVER;

    for (uint32_t r = 0; r < set->count; r++) {
        uint64_t done = now + time_left(&set->runs[r]);

        if (done < end)
            end = done;
    }
    for (uint32_t d = 0; sh->config.mode == DBL_TIMESLICE && d < sh->config.devices; d++) {
        const struct dbl_device *device = &sh->devices[d];
        uint64_t turn;

        if (device->turn.current == 0 || !has_kernels(sh, device->turn.current - 1, d))
            continue;
        if (now < device->turn.stall_until)
            turn = device->turn.stall_until;
        else if (next_in_turn(sh, d, device->turn.current) != device->turn.current)
            turn = device->turn.slice_end;
        else
            continue;
        if (turn < end)
            end = turn;
    }
    return end;
}

static void meter_add(struct dbl_meter *meter, uint64_t window_ns, uint64_t from, uint64_t ns,
                      uint64_t sms)
{
    meter->busy_ns += ns;
    meter->sm_ns += ns * sms;
    while (ns > 0) {
        uint64_t index = from / window_ns;
        uint64_t left = (index + 1) * window_ns - from;
        uint64_t part = ns < left ? ns : left;
        struct dbl_window *window = &meter->windows[index % DBL_WINDOWS];

        if (window->index != index)
            *window = (struct dbl_window){.index = index};
        window->busy_ns += part;
        window->sm_ns += part * sms;
        from += part;
        ns -= part;
    }
}

/* SMs that RUN has: at least 1, so that who runs counts as busy. */
static uint64_t part_of(const struct run *run)
{
    uint64_t sms = run->op->sms * run->num / run->den;

    return sms > 0 ? sms : 1;
}

/* Lets SET run for NS from NOW on. */
static void progress(struct dbl_shared *sh, uint64_t now, uint64_t ns, const struct set *set)
{
    for (uint32_t d = 0; d < sh->config.devices; d++) {
        uint64_t used[DBL_PROCS], kernels = 0, all = 0;

        memset(used, 0, sh->procs_high * sizeof(used[0]));
        for (uint32_t r = 0; r < set->count; r++) {
            const struct run *run = &set->runs[r];

            if (run->device != d || run->op->kind != DBL_OP_KERNEL)
                continue;
            kernels++;
            used[run->proc] += part_of(run);
        }
        for (uint32_t i = 0; kernels > 0 && i < sh->procs_high; i++) {
            uint64_t sms = used[i] > sh->devices[d].info.sms ? sh->devices[d].info.sms : used[i];

            if (sms == 0)
                continue;
            meter_add(&sh->procs[i].meter[d], sh->config.window_ns, now, ns, sms);
            all += sms;
        }
        if (kernels > 0)
            meter_add(&sh->devices[d].meter, sh->config.window_ns, now, ns,
                      all > sh->devices[d].info.sms ? sh->devices[d].info.sms : all);
    }
    for (uint32_t r = 0; r < set->count; r++) {
        const struct run *run = &set->runs[r];
        unsigned __int128 done = (unsigned __int128)ns * DBL_FRACTION * run->num / run->den;

        run->op->remaining = done >= run->op->remaining ? 0 : run->op->remaining - (uint64_t)done;
    }
}

static bool anything(const struct dbl_shared *sh)
{
    for (uint32_t i = 0; i < sh->procs_high; i++)
        if (sh->procs[i].live && sh->procs[i].ops_count > 0)
            return true;
    return false;
}

void dbl_sim_run(struct dbl_shared *sh)
{
    uint64_t target = dbl_now(sh);
    struct set set;

    while (sh->sim_ns <= target && anything(sh)) {
        uint64_t now = sh->sim_ns, end;

        settle(sh, now);
        if (now == target)
            break;
        collect(sh, now, &set);
        end = step_end(sh, now, &set);
        if (end > target)
            end = target;
        progress(sh, now, end - now, &set);
        sh->sim_ns = end;
    }
    if (sh->sim_ns < target)
        sh->sim_ns = target;
}

uint64_t dbl_sim_next(struct dbl_shared *sh)
{
    struct dbl_turn turns[DBL_DEVICES];
    struct set set;
    uint64_t next;

    if (sh->config.mode == DBL_BENCH || !anything(sh))
        return DBL_NEVER;
    settle(sh, sh->sim_ns);
    for (uint32_t d = 0; d < sh->config.devices; d++)
        turns[d] = sh->devices[d].turn;
    collect(sh, sh->sim_ns, &set);
    next = step_end(sh, sh->sim_ns, &set);
    /* Whose turn it is is settled when time goes on, not by who asks first at one instant. */
    for (uint32_t d = 0; d < sh->config.devices; d++)
        sh->devices[d].turn = turns[d];
    return next;
}
