/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that come, fork, exec and die at any point: what is left of them, and who waits. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/rng.h"
#include "harness.h"

#define RACERS 8
#define VICTIMS 4
#define KILLS 120

static struct dbl_config machine(void)
{
    struct dbl_config config = dbl_config_default;

    config.memory = GIB;
    config.context_bytes = 32 * MIB;
    return config;
}

#define CASE(name)                            \
    static void test_##name(void **state)     \
    {                                         \
        struct dbl_config config = machine(); \
                                              \
        on_machine(name, &config);            \
    }

/* Says over FD that it has got so far, and stays. */
static void tell(int fd)
{
    CHECK(write(fd, "x", 1) == 1);
}

static void hear(int fd)
{
    char byte;

    CHECK(read(fd, &byte, 1) == 1);
}

static void hold_memory(void *arg)
{
    cu_devptr ptr;

    begin_on(0);
    OK(cuMemAlloc_v2(&ptr, 500 * MIB));
    OK(cuMemAllocAsync(&ptr, 10 * MIB, NULL));
    OK(launch_in(kernel_of(UINT64_C(3600) * 1000 * MS_NS, "108"), NULL));
    tell(*(int *)arg);
    pause();
}

static void a_dead_process_holds_nothing(struct dbl_shared *sh)
{
    struct cu_function *kernel;
    int ends[2];
    pid_t pid;

    CHECK(pipe(ends) == 0);
    pid = spawn(hold_memory, &ends[1]);
    hear(ends[0]);
    SAME(dbl_process_bytes(sh, pid, 0, DBL_KINDS), 564 * MIB);
    begin_on(0);
    kernel = kernel_of(MS_NS, "108");
    OK(launch_in(kernel, NULL));
    kill(pid, SIGKILL);
    CHECK(!ended_well(pid));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 32 * MIB);
    SAME(dbl_processes(sh), 1);
    /* Its endless kernel is gone too. */
    OK(cuCtxSynchronize());
}

static void die_inside(void *arg)
{
    struct dbl_shared *sh = arg;

    begin_on(0);
    dbl_lock(sh);
    kill(getpid(), SIGKILL);
}

static void killed_with_the_mutex(struct dbl_shared *sh)
{
    for (int i = 0; i < 3; i++)
        CHECK(!ended_well(spawn(die_inside, sh)));
    begin_on(0);
    OK(launch_in(kernel_of(MS_NS, "1"), NULL));
    OK(cuCtxSynchronize());
    SAME(dbl_processes(sh), 1);
}

static void race(void *arg)
{
    cu_devptr ptr;
    cu_result result;
    int *ends = arg;

    begin_on(0);
    tell(ends[1]);
    hear(ends[2]);
    do
        result = cuMemAlloc_v2(&ptr, 16 * MIB);
    while (result == CU_OK);
    SAME(result, CU_OUT_OF_MEMORY);
    tell(ends[1]);
    pause();
}

/* Never too much, and nobody is refused what there is. */
static void racers_fill_exactly(struct dbl_shared *sh)
{
    int up[2], down[2], ends[3];
    pid_t pids[RACERS];

    CHECK(pipe(up) == 0 && pipe(down) == 0);
    ends[1] = up[1];
    ends[2] = down[0];
    for (int i = 0; i < RACERS; i++)
        pids[i] = spawn(race, ends);
    for (int i = 0; i < RACERS; i++)
        hear(up[0]);
    for (int i = 0; i < RACERS; i++)
        tell(down[1]);
    for (int i = 0; i < RACERS; i++) {
        CHECK(dbl_bytes(sh, 0, DBL_KINDS) <= GIB);
        hear(up[0]);
    }
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), GIB - RACERS * 32 * MIB);
    for (int i = 0; i < RACERS; i++)
        kill(pids[i], SIGKILL);
    for (int i = 0; i < RACERS; i++)
        CHECK(!ended_well(pids[i]));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
}

static void busy_body(void *arg)
{
    struct cu_function *kernel;
    cu_devptr ptr[3];

    begin_on(0);
    kernel = kernel_of(20000, "grid");
    tell(*(int *)arg);
    for (;;) {
        cu_result results[3] = {cuMemAlloc_v2(&ptr[0], 5 * MIB),
                                cuMemAllocAsync(&ptr[1], 5 * MIB, NULL),
                                cuMemAlloc_v2(&ptr[2], 4096)};

        OK(launch_in(kernel, NULL));
        for (int i = 0; i < 3; i++)
            if (results[i] == CU_OK)
                OK(cuMemFreeAsync(ptr[i], NULL));
        OK(cuCtxSynchronize());
    }
}

/* Killed at random points: nobody hangs, nothing stays. */
static void kills_at_random(struct dbl_shared *sh)
{
    pid_t pids[VICTIMS];
    int ends[2];
    struct rng rng;

    rng_seed(&rng, 7);
    CHECK(pipe(ends) == 0);
    for (int i = 0; i < VICTIMS; i++) {
        pids[i] = spawn(busy_body, &ends[1]);
        hear(ends[0]);
    }
    for (int k = 0; k < KILLS; k++) {
        int i = (int)(rng_u64(&rng) % VICTIMS);
        struct timespec nap = {0, (long)(rng_u64(&rng) % 3000000)};

        nanosleep(&nap, NULL);
        kill(pids[i], SIGKILL);
        CHECK(!ended_well(pids[i]));
        CHECK(dbl_bytes(sh, 0, DBL_CONTEXT) == (VICTIMS - 1) * 32 * MIB);
        pids[i] = spawn(busy_body, &ends[1]);
        hear(ends[0]);
    }
    for (int i = 0; i < VICTIMS; i++) {
        kill(pids[i], SIGKILL);
        CHECK(!ended_well(pids[i]));
    }
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
    SAME(dbl_processes(sh), 0);
}

static void nothing_works(void *arg)
{
    size_t free, total;
    int count;

    SAME(cuInit(0), CU_NOT_INITIALIZED);
    SAME(cuDeviceGetCount(&count), CU_NOT_INITIALIZED);
    SAME(cuMemGetInfo_v2(&free, &total), CU_NOT_INITIALIZED);
    SAME(cuCtxSynchronize(), CU_NOT_INITIALIZED);
}

static void all_works(void *arg)
{
    cu_devptr ptr;

    begin_on(0);
    OK(cuMemAlloc_v2(&ptr, MIB));
}

static void forked_children(struct dbl_shared *sh)
{
    cu_devptr ptr;
    pid_t pid;

    CHECK(ended_well(spawn(all_works, NULL)));
    begin_on(0);
    OK(cuMemAlloc_v2(&ptr, MIB));
    CHECK(ended_well(spawn(nothing_works, NULL)));
    /* Past the library's back: a clone without any handlers. */
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        nothing_works(NULL);
        _exit(0);
    }
    CHECK(ended_well(pid));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 33 * MIB);
    OK(cuMemFree_v2(ptr));
}

/* The new program finds the memory of the one it replaced free. */
static void exec_itself(void *arg)
{
    cu_devptr ptr;

    begin_on(0);
    OK(cuMemAlloc_v2(&ptr, 900 * MIB));
    execl("/proc/self/exe", "test_cuda_process", "--after-exec", NULL);
    _exit(1);
}

static int after_exec(void)
{
    struct dbl_shared *sh;
    cu_devptr ptr;

    SAME(dbl_open(getenv(DBL_FILE_ENV), &sh), 0);
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
    begin_on(0);
    OK(cuMemAlloc_v2(&ptr, 900 * MIB));
    return 0;
}

static void exec_starts_afresh(struct dbl_shared *sh)
{
    CHECK(ended_well(spawn(exec_itself, NULL)));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
}

static void *other_thread(void *ctx)
{
    cu_device device;
    struct cu_ctx *current;
    cu_devptr ptr;

    SAME(cuCtxGetDevice(&device), CU_INVALID_CONTEXT);
    SAME(cuMemAlloc_v2(&ptr, MIB), CU_INVALID_CONTEXT);
    OK(cuCtxGetCurrent(&current));
    CHECK(current == NULL);
    OK(cuCtxSetCurrent(ctx));
    for (int i = 0; i < 200; i++) {
        OK(cuMemAlloc_v2(&ptr, 4096));
        OK(cuLaunchKernel_ptsz(kernel_of(1000, "1"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
        OK(cuStreamSynchronize_ptsz(NULL));
        OK(cuMemFree_v2(ptr));
    }
    return NULL;
}

static void threads_have_their_own_context(struct dbl_shared *sh)
{
    struct cu_ctx *ctx = begin_on(0);
    pthread_t threads[4];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++)
            CHECK(pthread_create(&threads[i], NULL, other_thread, ctx) == 0);
        for (int i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
    }
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), 0);
    /* Their streams went with them: only the context's own is left. */
    SAME(sh->procs[0].streams[0].context, 1);
    for (int i = 1; i < DBL_STREAMS; i++)
        SAME(sh->procs[0].streams[i].context, 0);
}

/* Imported memory stays when its creator is gone, and is then the importer's. */
static void export_memory(void *arg)
{
    struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED,
                                 .handle_types = CU_HANDLE_POSIX_FD,
                                 .location = {CU_LOCATION_DEVICE, 0}};
    int *ends = arg, fd;
    cu_vmm handle;

    OK(cuInit(0));
    OK(cuMemCreate(&handle, 64 * MIB, &prop, 0));
    OK(cuMemExportToShareableHandle(&fd, handle, CU_HANDLE_POSIX_FD, 0));
    /* Given on by number: the parent opens it under /proc. */
    CHECK(write(ends[1], &fd, sizeof(fd)) == sizeof(fd));
    pause();
}

static void exports_outlive_their_creator(struct dbl_shared *sh)
{
    cu_vmm handle, again;
    char path[64];
    int ends[2], fd;
    pid_t pid;

    CHECK(pipe(ends) == 0);
    pid = spawn(export_memory, ends);
    CHECK(read(ends[0], &fd, sizeof(fd)) == sizeof(fd));
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
    fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(fd >= 0);
    OK(cuInit(0));
    OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, CU_HANDLE_POSIX_FD));
    OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_HANDLE_POSIX_FD));
    SAME(handle, again);
    SAME(dbl_bytes(sh, 0, DBL_VMM), 64 * MIB);
    SAME(dbl_process_bytes(sh, getpid(), 0, DBL_VMM), 0);
    kill(pid, SIGKILL);
    CHECK(!ended_well(pid));
    SAME(dbl_bytes(sh, 0, DBL_VMM), 64 * MIB);
    SAME(dbl_process_bytes(sh, getpid(), 0, DBL_VMM), 64 * MIB);
    OK(cuMemRelease(handle));
    OK(cuMemRelease(handle));
    SAME(cuMemRelease(handle), CU_INVALID_VALUE);
    SAME(dbl_bytes(sh, 0, DBL_VMM), 0);
}

CASE(a_dead_process_holds_nothing)
CASE(killed_with_the_mutex)
CASE(racers_fill_exactly)
CASE(kills_at_random)
CASE(forked_children)
CASE(exec_starts_afresh)
CASE(threads_have_their_own_context)
CASE(exports_outlive_their_creator)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dead_process_holds_nothing),
        cmocka_unit_test(test_killed_with_the_mutex),
        cmocka_unit_test(test_racers_fill_exactly),
        cmocka_unit_test(test_kills_at_random),
        cmocka_unit_test(test_forked_children),
        cmocka_unit_test(test_exec_starts_afresh),
        cmocka_unit_test(test_threads_have_their_own_context),
        cmocka_unit_test(test_exports_outlive_their_creator),
    };

    if (argc == 2 && strcmp(argv[1], "--after-exec") == 0)
        return after_exec();
    return cmocka_run_group_tests_name("cuda process", tests, NULL, NULL);
}
