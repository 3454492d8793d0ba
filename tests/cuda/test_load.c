/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways by which programs get at the driver: dlopen in its variants, a copy in a namespace of
 * its own, from many threads at once, from within another pid namespace. The program is not linked
 * with the library.
 */
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "harness.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true /* the sanitizers forbid copies of themselves */
#else
#define SANITIZED false
#endif

#define THREADS 8
#define ROUNDS 150

/* The entry points that are used, by name. */
struct entries {
    fn_cuInit *init;
    fn_cuDevicePrimaryCtxRetain *retain;
    fn_cuCtxSetCurrent *set_current;
    fn_cuMemAlloc_v2 *alloc;
    fn_cuMemFree_v2 *free;
};

static void *entry(void *library, const char *name)
{
    void *at = dlsym(library, name);

    CHECK(at != NULL);
    return at;
}

static struct entries entries_of(void *library)
{
    struct entries e;

    if (library == NULL)
        fprintf(stderr, "# %s\n", dlerror());
    CHECK(library != NULL);
    e.init = (fn_cuInit *)entry(library, "cuInit");
    e.retain = (fn_cuDevicePrimaryCtxRetain *)entry(library, "cuDevicePrimaryCtxRetain");
    e.set_current = (fn_cuCtxSetCurrent *)entry(library, "cuCtxSetCurrent");
    e.alloc = (fn_cuMemAlloc_v2 *)entry(library, "cuMemAlloc_v2");
    e.free = (fn_cuMemFree_v2 *)entry(library, "cuMemFree_v2");
    return e;
}

/* A context and BYTES by E, which stay. */
static cu_devptr hold(const struct entries *e, uint64_t bytes)
{
    struct cu_ctx *ctx;
    cu_devptr ptr;

    OK(e->init(0));
    OK(e->retain(&ctx, 0));
    OK(e->set_current(ctx));
    OK(e->alloc(&ptr, bytes));
    return ptr;
}

static void opened_by_name(struct dbl_shared *sh)
{
    struct entries e = entries_of(dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_LOCAL));
    cu_devptr ptr = hold(&e, MIB);

    SAME(dbl_bytes(sh, 0, DBL_LINEAR), MIB);
    OK(e.free(ptr));
}

static void bound_deeply(struct dbl_shared *sh)
{
    struct entries e = entries_of(dlopen(CUDA_LIBRARY, RTLD_NOW | RTLD_DEEPBIND));

    hold(&e, MIB);
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), MIB);
}

/* Two copies in one process are two clients; neither takes the other for dead. */
static void in_a_namespace(struct dbl_shared *sh)
{
    struct entries one = entries_of(dlopen(CUDA_LIBRARY, RTLD_NOW));
    struct entries two = entries_of(dlmopen(LM_ID_NEWLM, CUDA_LIBRARY, RTLD_NOW));
    cu_devptr ptr;

    CHECK(one.alloc != two.alloc);
    hold(&one, MIB);
    hold(&two, 2 * MIB);
    SAME(dbl_processes(sh), 2);
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), 3 * MIB);
    OK(one.alloc(&ptr, MIB));
    OK(one.free(ptr));
    SAME(dbl_process_bytes(sh, getpid(), 0, DBL_LINEAR), 3 * MIB);
}

/* --- many threads --- */

#define ENTRY(name) ((fn_##name *)entry(storm.library, #name))

static struct {
    void *library;
    struct cu_ctx *ctx;
    struct cu_function *kernel;
} storm;

static void one_round(struct cu_stream *stream, struct cu_event *event, unsigned seed)
{
    cu_devptr a, b, managed;
    cu_vmm handle;
    struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
    struct cu_graph *graph;
    struct cu_graph_exec *exec;
    void *pinned;
    int relaxed = CU_CAPTURE_RELAXED;

    OK(ENTRY(cuThreadExchangeStreamCaptureMode)(&relaxed));
    OK(ENTRY(cuMemAlloc_v2)(&a, 1000 + seed));
    OK(ENTRY(cuMemAllocAsync)(&b, 5000 * (seed % 7 + 1), stream));
    OK(ENTRY(cuMemCreate)(&handle, 2 * MIB, &prop, 0));
    OK(ENTRY(cuMemHostAlloc)(&pinned, 4096, 0));
    OK(ENTRY(cuLaunchKernel)(storm.kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    OK(ENTRY(cuEventRecord)(event, stream));
    OK(ENTRY(cuStreamWaitEvent)(stream, event, 0));
    OK(ENTRY(cuEventSynchronize)(event));
    OK(ENTRY(cuStreamBeginCapture_v2)(stream, CU_CAPTURE_RELAXED));
    OK(ENTRY(cuLaunchKernel)(storm.kernel, 1, 1, 1, 32, 1, 1, 0, stream, NULL, NULL));
    OK(ENTRY(cuStreamEndCapture)(stream, &graph));
    OK(ENTRY(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    OK(ENTRY(cuGraphLaunch)(exec, stream));
    OK(ENTRY(cuGraphExecDestroy)(exec));
    OK(ENTRY(cuGraphDestroy)(graph));
    OK(ENTRY(cuMemAllocManaged)(&managed, 8192, CU_ATTACH_GLOBAL));
    OK(ENTRY(cuMemFreeAsync)(managed, stream));
    OK(ENTRY(cuMemFreeHost)(pinned));
    OK(ENTRY(cuMemRelease)(handle));
    OK(ENTRY(cuMemFreeAsync)(seed % 2 ? a : b, stream));
    OK(ENTRY(cuMemFree_v2)(seed % 2 ? b : a));
}

static void *storm_thread(void *number)
{
    struct cu_stream *stream;
    struct cu_event *event;

    OK(ENTRY(cuCtxSetCurrent)(storm.ctx));
    for (int i = 0; i < ROUNDS; i++) {
        OK(ENTRY(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        OK(ENTRY(cuEventCreate)(&event, CU_EVENT_NO_TIMING));
        one_round(stream, event, (unsigned)(uintptr_t)number + (unsigned)i);
        OK(ENTRY(cuStreamSynchronize)(stream));
        OK(ENTRY(cuEventDestroy_v2)(event));
        OK(ENTRY(cuStreamDestroy_v2)(stream));
    }
    return NULL;
}

static void a_storm_of_threads(struct dbl_shared *sh)
{
    struct cu_module *module;
    pthread_t threads[THREADS];

    storm.library = dlopen(CUDA_LIBRARY, RTLD_NOW);
    CHECK(storm.library != NULL);
    OK(ENTRY(cuInit)(0));
    OK(ENTRY(cuDevicePrimaryCtxRetain)(&storm.ctx, 0));
    OK(ENTRY(cuCtxSetCurrent)(storm.ctx));
    OK(ENTRY(cuModuleLoadData)(&module, "kernel quick 2000 1\n"));
    OK(ENTRY(cuModuleGetFunction)(&storm.kernel, module, "quick"));
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, storm_thread, (void *)i) == 0); /* NOLINT */
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    OK(ENTRY(cuCtxSynchronize)());
    SAME(dbl_calls(sh, DBL_FAIL_LAUNCH), THREADS * ROUNDS * 2);
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), 0);
    SAME(dbl_bytes(sh, 0, DBL_VMM), 0);
    SAME(dbl_bytes(sh, 0, DBL_MANAGED), 0);
    SAME(dbl_bytes(sh, 0, DBL_POOL), 0);
}

/* --- another pid namespace --- */

static void hold_and_stay(void *arg)
{
    struct entries e = entries_of(dlopen(CUDA_LIBRARY, RTLD_NOW));
    struct dbl_shared *sh;

    SAME(getpid(), 1);
    hold(&e, 3 * MIB);
    SAME(dbl_open(getenv(DBL_FILE_ENV), &sh), 0);
    SAME(dbl_process_bytes(sh, 1, 0, DBL_LINEAR), 3 * MIB);
    CHECK(write(*(int *)arg, "x", 1) == 1);
    pause();
}

static void seen_from_outside(struct dbl_shared *sh)
{
    int ends[2];
    char byte;
    pid_t pid;

    CHECK(pipe(ends) == 0);
    CHECK(unshare(CLONE_NEWPID) == 0);
    pid = spawn(hold_and_stay, &ends[1]);
    CHECK(read(ends[0], &byte, 1) == 1);
    SAME(dbl_process_bytes(sh, pid, 0, DBL_LINEAR), 3 * MIB);
    kill(pid, SIGKILL);
    CHECK(!ended_well(pid));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
}

static void try_unshare(void *unused)
{
    _exit(unshare(CLONE_NEWPID) == 0 ? 0 : 1);
}

static void test_opened_by_name(void **state)
{
    on_machine(opened_by_name, &dbl_config_default);
}

static void test_bound_deeply(void **state)
{
    if (SANITIZED)
        skip();
    on_machine(bound_deeply, &dbl_config_default);
}

static void test_in_a_namespace(void **state)
{
    if (SANITIZED)
        skip();
    on_machine(in_a_namespace, &dbl_config_default);
}

static void test_a_storm_of_threads(void **state)
{
    on_machine(a_storm_of_threads, &dbl_config_default);
}

static void test_seen_from_outside(void **state)
{
    if (!ended_well(spawn(try_unshare, NULL)))
        skip();
    on_machine(seen_from_outside, &dbl_config_default);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opened_by_name),    cmocka_unit_test(test_bound_deeply),
        cmocka_unit_test(test_in_a_namespace),    cmocka_unit_test(test_a_storm_of_threads),
        cmocka_unit_test(test_seen_from_outside),
    };

    return cmocka_run_group_tests_name("cuda load", tests, NULL, NULL);
}
