/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpointing a process from another: states, what it waits for, what it refuses. */
#include <signal.h>
#include <string.h>
#include <sys/select.h>

#include "harness.h"

static struct dbl_config machine(uint32_t devices)
{
    struct dbl_config config = dbl_config_default;

    config.devices = devices;
    config.memory = GIB;
    config.context_bytes = 64 * MIB;
    config.host_copies = true;
    return config;
}

/* The target: does what it is told by single letters, and answers each when it has done it. */
struct target {
    int orders, answers;
    pid_t pid;
    int others[2]; /* the ends that are not its own */
};

static void obey(void *arg)
{
    struct target *target = arg;
    struct cu_function *kernel;
    cu_devptr ptr = 0;
    char order;

    close(target->others[0]);
    close(target->others[1]);
    begin_on(0);
    kernel = kernel_of(200 * MS_NS, "108");
    OK(cuMemAlloc_v2(&ptr, 100 * MIB));
    CHECK(write(target->answers, "!", 1) == 1);
    while (read(target->orders, &order, 1) == 1) {
        cu_devptr other;
        char name[64];

        if (order == 'a') /* allocates and frees */
            OK(cuMemAlloc_v2(&other, MIB) ? 1 : cuMemFree_v2(other));
        else if (order == 'm')
            OK(cuMemAllocManaged(&other, MIB, CU_ATTACH_GLOBAL));
        else if (order == 'k')
            OK(launch_in(kernel, NULL));
        else if (order == 'f') /* its memory is where it was */
            OK(cuMemFree_v2(ptr));
        else if (order == 'u')
            OK(cuDeviceGetName(name, sizeof(name), 0));
        CHECK(write(target->answers, &order, 1) == 1);
    }
}

static void hear(struct target *target)
{
    char answer;

    CHECK(read(target->answers, &answer, 1) == 1);
}

static void tell(struct target *target, char order)
{
    CHECK(write(target->orders, &order, 1) == 1);
}

static struct target target_new(void)
{
    int down[2], up[2];
    struct target mine, its;

    CHECK(pipe(down) == 0 && pipe(up) == 0);
    its = (struct target){down[0], up[1], 0, {down[1], up[0]}};
    mine = (struct target){down[1], up[0], spawn(obey, &its), {-1, -1}};
    close(down[0]);
    close(up[1]);
    hear(&mine);
    return mine;
}

static void target_end(struct target *target)
{
    close(target->orders);
    CHECK(ended_well(target->pid));
    close(target->answers);
}

static int state_of(pid_t pid)
{
    int state = -1;

    OK(cuCheckpointProcessGetState(pid, &state));
    return state;
}

/* Whether the target has answered within MS. */
static bool answers_within(struct target *target, int ms)
{
    struct timeval timeout = {ms / 1000, ms % 1000 * 1000};
    fd_set set;

    FD_ZERO(&set);
    FD_SET(target->answers, &set);
    return select(target->answers + 1, &set, NULL, NULL, &timeout) == 1;
}

static uint64_t resident(pid_t pid)
{
    char path[64];
    unsigned long pages = 0, rss = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    file = fopen(path, "re");
    CHECK(file != NULL && fscanf(file, "%lu %lu", &pages, &rss) == 2);
    fclose(file);
    return rss * 4096;
}

static void there_and_back(struct dbl_shared *sh)
{
    struct target target = target_new();
    uint64_t before = resident(target.pid);
    pid_t pid = target.pid;
    int tid;

    OK(cuInit(0));
    SAME(state_of(pid), CU_PROCESS_RUNNING);
    OK(cuCheckpointProcessGetRestoreThreadId(pid, &tid));
    CHECK(tid != pid && tid > 0);
    SAME(cuCheckpointProcessCheckpoint(pid, NULL), CU_ILLEGAL_STATE);
    SAME(cuCheckpointProcessUnlock(pid, NULL), CU_ILLEGAL_STATE);
    SAME(cuCheckpointProcessRestore(pid, NULL), CU_ILLEGAL_STATE);
    OK(cuCheckpointProcessLock(pid, NULL));
    SAME(state_of(pid), CU_PROCESS_LOCKED);
    SAME(cuCheckpointProcessLock(pid, NULL), CU_ILLEGAL_STATE);
    OK(cuCheckpointProcessCheckpoint(pid, NULL));
    SAME(state_of(pid), CU_PROCESS_CHECKPOINTED);
    /* The device is free, the host has it: 100 MiB and the context. */
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
    CHECK(resident(pid) >= before + 160 * MIB);
    tell(&target, 'a');
    CHECK(!answers_within(&target, 50));
    OK(cuCheckpointProcessRestore(pid, NULL));
    SAME(state_of(pid), CU_PROCESS_LOCKED);
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 164 * MIB);
    CHECK(resident(pid) < before + 100 * MIB);
    CHECK(!answers_within(&target, 20));
    OK(cuCheckpointProcessUnlock(pid, NULL));
    hear(&target);
    SAME(state_of(pid), CU_PROCESS_RUNNING);
    tell(&target, 'f');
    hear(&target);
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 64 * MIB);
    target_end(&target);
    SAME(cuCheckpointProcessLock(getpid() + 100000, NULL), CU_INVALID_VALUE);
    SAME(cuCheckpointProcessLock(1, NULL), CU_NOT_INITIALIZED);
}

static void lock_waits_for_work(struct dbl_shared *sh)
{
    struct cu_checkpoint_lock args = {.timeout_ms = 20};
    struct target target = target_new();
    uint64_t start;

    OK(cuInit(0));
    tell(&target, 'k');
    hear(&target);
    start = dbl_now(sh);
    SAME(cuCheckpointProcessLock(target.pid, &args), CU_NOT_READY);
    CHECK(dbl_now(sh) - start >= 20 * MS_NS);
    SAME(state_of(target.pid), CU_PROCESS_RUNNING);
    tell(&target, 'a');
    hear(&target);
    tell(&target, 'k');
    hear(&target);
    OK(cuCheckpointProcessLock(target.pid, NULL));
    /* Both kernels, of 200 ms each, are done. */
    SAME(dbl_busy_ns(sh, target.pid, 0), 400 * MS_NS);
    OK(cuCheckpointProcessUnlock(target.pid, NULL));
    target_end(&target);
}

static void what_cannot_be_saved(struct dbl_shared *sh)
{
    struct target target = target_new();

    OK(cuInit(0));
    tell(&target, 'm');
    hear(&target);
    OK(cuCheckpointProcessLock(target.pid, NULL));
    SAME(cuCheckpointProcessCheckpoint(target.pid, NULL), CU_NOT_SUPPORTED);
    SAME(state_of(target.pid), CU_PROCESS_FAILED);
    SAME(cuCheckpointProcessUnlock(target.pid, NULL), CU_ILLEGAL_STATE);
    SAME(cuCheckpointProcessRestore(target.pid, NULL), CU_ILLEGAL_STATE);
    kill(target.pid, SIGKILL);
    CHECK(!ended_well(target.pid));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
}

static void no_room_to_come_back(struct dbl_shared *sh)
{
    struct target target = target_new();
    cu_devptr ptr;

    begin_on(0);
    OK(cuCheckpointProcessLock(target.pid, NULL));
    OK(cuCheckpointProcessCheckpoint(target.pid, NULL));
    OK(cuMemAlloc_v2(&ptr, 900 * MIB));
    SAME(cuCheckpointProcessRestore(target.pid, NULL), CU_OUT_OF_MEMORY);
    SAME(state_of(target.pid), CU_PROCESS_CHECKPOINTED);
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 964 * MIB);
    OK(cuMemFree_v2(ptr));
    OK(cuCheckpointProcessRestore(target.pid, NULL));
    OK(cuCheckpointProcessUnlock(target.pid, NULL));
    tell(&target, 'a');
    hear(&target);
    target_end(&target);
}

static struct cu_uuid uuid_of(struct dbl_shared *sh, uint32_t device)
{
    struct cu_uuid uuid;

    memcpy(uuid.bytes, dbl_info(sh, device)->uuid, 16);
    return uuid;
}

static void onto_another_device(struct dbl_shared *sh)
{
    struct cu_checkpoint_pair pairs[2] = {{uuid_of(sh, 0), uuid_of(sh, 1)},
                                          {uuid_of(sh, 1), uuid_of(sh, 0)}};
    struct cu_checkpoint_restore args = {.pairs = pairs, .pair_count = 1};
    struct target target = target_new();

    OK(cuInit(0));
    OK(cuCheckpointProcessLock(target.pid, NULL));
    OK(cuCheckpointProcessCheckpoint(target.pid, NULL));
    /* Every device of the machine must be named, each as a new one once. */
    SAME(cuCheckpointProcessRestore(target.pid, &args), CU_INVALID_VALUE);
    args.pair_count = 2;
    pairs[1].new_uuid = uuid_of(sh, 1);
    SAME(cuCheckpointProcessRestore(target.pid, &args), CU_INVALID_VALUE);
    pairs[1].new_uuid = uuid_of(sh, 0);
    OK(cuCheckpointProcessRestore(target.pid, &args));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 164 * MIB);
    OK(cuCheckpointProcessUnlock(target.pid, NULL));
    tell(&target, 'k');
    hear(&target);
    tell(&target, 'a');
    hear(&target);
    SAME(dbl_busy_ns(sh, 0, 0), 0);
    CHECK(dbl_busy_ns(sh, 0, 1) > 0);
    tell(&target, 'f');
    hear(&target);
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 64 * MIB);
    target_end(&target);
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 0);
}

static void killed_while_saved(struct dbl_shared *sh)
{
    struct target target = target_new();
    int state;

    OK(cuInit(0));
    OK(cuCheckpointProcessLock(target.pid, NULL));
    OK(cuCheckpointProcessCheckpoint(target.pid, NULL));
    kill(target.pid, SIGKILL);
    CHECK(!ended_well(target.pid));
    SAME(cuCheckpointProcessGetState(target.pid, &state), CU_INVALID_VALUE);
    SAME(dbl_processes(sh), 1);
}

static void failures_are_terminal(struct dbl_shared *sh)
{
    struct target target = target_new();

    OK(cuInit(0));
    OK(cuCheckpointProcessLock(target.pid, NULL));
    OK(cuCheckpointProcessCheckpoint(target.pid, NULL));
    dbl_fail_nth(sh, DBL_FAIL_CHECKPOINT, 1, CU_UNKNOWN);
    SAME(cuCheckpointProcessRestore(target.pid, NULL), CU_UNKNOWN);
    SAME(state_of(target.pid), CU_PROCESS_FAILED);
    SAME(cuCheckpointProcessRestore(target.pid, NULL), CU_ILLEGAL_STATE);
    kill(target.pid, SIGKILL);
    CHECK(!ended_well(target.pid));
}

static void not_under_mps(struct dbl_shared *sh)
{
    struct target target = target_new();

    OK(cuInit(0));
    OK(cuCheckpointProcessLock(target.pid, NULL));
    SAME(cuCheckpointProcessCheckpoint(target.pid, NULL), CU_NOT_SUPPORTED);
    SAME(state_of(target.pid), CU_PROCESS_FAILED);
    kill(target.pid, SIGKILL);
    CHECK(!ended_well(target.pid));
}

#define CASE(name, devices)                          \
    static void test_##name(void **state)            \
    {                                                \
        struct dbl_config config = machine(devices); \
                                                     \
        on_machine(name, &config);                   \
    }

CASE(there_and_back, 1)
CASE(lock_waits_for_work, 1)
CASE(what_cannot_be_saved, 1)
CASE(no_room_to_come_back, 1)
CASE(onto_another_device, 2)
CASE(killed_while_saved, 1)
CASE(failures_are_terminal, 1)

static void test_not_under_mps(void **state)
{
    struct dbl_config config = machine(1);

    config.mode = DBL_MPS;
    on_machine(not_under_mps, &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),        cmocka_unit_test(test_lock_waits_for_work),
        cmocka_unit_test(test_what_cannot_be_saved),  cmocka_unit_test(test_no_room_to_come_back),
        cmocka_unit_test(test_onto_another_device),   cmocka_unit_test(test_killed_while_saved),
        cmocka_unit_test(test_failures_are_terminal), cmocka_unit_test(test_not_under_mps),
    };

    return cmocka_run_group_tests_name("cuda checkpoint", tests, NULL, NULL);
}
