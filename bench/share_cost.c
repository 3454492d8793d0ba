/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the shim adds to a call of the driver: the same calls with the simulated driver alone and
 * with the shim in front of it, found as the CUDA runtime finds them (dlopen, cuGetProcAddress),
 * one process and one thread after the other, CPU time, median of batches.
 *
 * usage: share_cost
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "double.h"
#include "gpu/region.h"
#include "share/cuda_fns.h"

#define BATCHES 101
#define CALLS 5000
#define GIB (UINT64_C(1) << 30)

#define MUST(truth)                                                                 \
    do {                                                                            \
        if (!(truth)) {                                                             \
            fprintf(stderr, "share_cost: line %d: not so: %s\n", __LINE__, #truth); \
            _exit(1);                                                               \
        }                                                                           \
    } while (0)

/* The calls that are measured, and what they need. */
struct driver {
    fn_cuMemAlloc_v2 *alloc;
    fn_cuMemFree_v2 *release;
    fn_cuMemAllocAsync *alloc_async;
    fn_cuMemFreeAsync *release_async;
    fn_cuLaunchKernel *launch;
    fn_cuMemGetInfo_v2 *info;
    fn_cuCtxGetCurrent *current;
    fn_cuCtxSynchronize *synchronize;
    fn_cuGraphLaunch *graph_launch;
    struct cu_function *kernel;
    struct cu_graph_exec *graph; /* of one kernel */
    struct cu_stream *stream;
};

static void launch(struct driver *d)
{
    MUST(d->launch(d->kernel, 64, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL) == CU_OK);
}

static void linear(struct driver *d)
{
    cu_devptr p;

    MUST(d->alloc(&p, 4096) == CU_OK && d->release(p) == CU_OK);
}

static void pool(struct driver *d)
{
    cu_devptr p;

    MUST(d->alloc_async(&p, 4096, NULL) == CU_OK && d->release_async(p, NULL) == CU_OK);
}

static void info(struct driver *d)
{
    size_t left, total;

    MUST(d->info(&left, &total) == CU_OK);
}

static void context(struct driver *d)
{
    struct cu_ctx *ctx;

    MUST(d->current(&ctx) == CU_OK);
}

static void graph(struct driver *d)
{
    MUST(d->graph_launch(d->graph, d->stream) == CU_OK);
}

static void launch_and_wait(struct driver *d)
{
    launch(d);
    MUST(d->synchronize() == CU_OK);
}

/* Every call, with LIVE blocks held meanwhile; what HAMi-core 8f3a89c, built as its own script
 * does, adds to it in front of the same kind of driver (docs/benchmarks.md), 0: not known. */
static const struct row {
    const char *name;
    void (*call)(struct driver *);
    long live;
    double peer;
} rows[] = {
    {"kernel launch", launch, 0, 50},      {"launch + wait", launch_and_wait, 0, 0},
    {"graph launch", graph, 0, 0},         {"current context", context, 0, 5},
    {"alloc + free", linear, 0, 1550},     {"  10,000 live", linear, 10000, 31000},
    {"  100,000 live", linear, 100000, 0}, {"pool alloc + free", pool, 0, 1500},
    {"memory info", info, 0, 2000},
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* ---- measuring ---------------------------------------------------------------------------------
 */

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(struct driver *d, void (*call)(struct driver *))
{
    double each[BATCHES];

    for (int b = 0; b < BATCHES; b++) {
        double start = cpu_ns();
        for (int i = 0; i < CALLS; i++)
            call(d);
        each[b] = (cpu_ns() - start) / CALLS;
    }
    qsort(each, BATCHES, sizeof(each[0]), by_value);
    return each[BATCHES / 2];
}

static void *library;

static void *look_up(const char *name, int version)
{
    static fn_cuGetProcAddress_v2 *get;
    void *found = NULL;
    int status;

    if (get == NULL)
        get = (fn_cuGetProcAddress_v2 *)dlsym(library, "cuGetProcAddress_v2");
    MUST(get && get(name, &found, version, 0, &status) == CU_OK && found);
    return found;
}

#define LOOK_UP(name, version) look_up(#name, version)

static void make_graph(struct driver *d)
{
    fn_cuStreamCreate *create = LOOK_UP(cuStreamCreate, 2000);
    fn_cuStreamBeginCapture_v2 *capture = LOOK_UP(cuStreamBeginCapture, 10010);
    fn_cuStreamEndCapture *end = LOOK_UP(cuStreamEndCapture, 10000);
    fn_cuGraphInstantiateWithFlags *instantiate = LOOK_UP(cuGraphInstantiateWithFlags, 11040);
    struct cu_graph *made;

    MUST(create(&d->stream, CU_STREAM_NON_BLOCKING) == CU_OK);
    MUST(capture(d->stream, CU_CAPTURE_GLOBAL) == CU_OK);
    MUST(d->launch(d->kernel, 64, 1, 1, 128, 1, 1, 0, d->stream, NULL, NULL) == CU_OK);
    MUST(end(d->stream, &made) == CU_OK && instantiate(&d->graph, made, 0) == CU_OK);
}

static void begin(struct driver *d)
{
    fn_cuInit *init = LOOK_UP(cuInit, 2000);
    fn_cuDevicePrimaryCtxRetain *retain = LOOK_UP(cuDevicePrimaryCtxRetain, 7000);
    fn_cuCtxSetCurrent *set = LOOK_UP(cuCtxSetCurrent, 4000);
    fn_cuModuleLoadData *load = LOOK_UP(cuModuleLoadData, 2000);
    fn_cuModuleGetFunction *function = LOOK_UP(cuModuleGetFunction, 2000);
    struct cu_module *module;
    struct cu_ctx *ctx;

    MUST(init(0) == CU_OK && retain(&ctx, 0) == CU_OK && set(ctx) == CU_OK);
    MUST(load(&module, "kernel work 1000 1\n") == CU_OK);
    MUST(function(&d->kernel, module, "work") == CU_OK);
    d->alloc = LOOK_UP(cuMemAlloc, 3020);
    d->release = LOOK_UP(cuMemFree, 3020);
    d->alloc_async = LOOK_UP(cuMemAllocAsync, 11020);
    d->release_async = LOOK_UP(cuMemFreeAsync, 11020);
    d->launch = LOOK_UP(cuLaunchKernel, 4000);
    d->info = LOOK_UP(cuMemGetInfo, 3020);
    d->current = LOOK_UP(cuCtxGetCurrent, 4000);
    d->synchronize = LOOK_UP(cuCtxSynchronize, 2000);
    d->graph_launch = LOOK_UP(cuGraphLaunch, 10000);
    make_graph(d);
}

/* In a process of its own: all rows through the library at PATH. */
static void measure(const char *path, double *ret_ns)
{
    struct driver d;
    cu_devptr p;
    long live = 0;

    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    begin(&d);
    for (size_t i = 0; i < ROWS; i++) {
        for (; live < rows[i].live; live++)
            MUST(d.alloc(&p, 4096) == CU_OK);
        ret_ns[i] = median(&d, rows[i].call);
    }
    _exit(0);
}

/* ---- the machine -------------------------------------------------------------------------------
 */

static struct gpu_region *make_machine(const char *folder, struct err *err)
{
    struct dbl_config config = dbl_config_default;
    struct gpu_region_device device = {.memory_limit = 64 * GIB, .compute_milli = 1000};
    const struct gpu_region_config region = {.folder = folder,
                                             .flags = SHARE_MEMORY | SHARE_COMPUTE | SHARE_CAP,
                                             .devices = &device,
                                             .device_count = 1};
    struct gpu_region *ret;
    struct dbl_shared *shared;
    char path[128];

    config.mode = DBL_BENCH;
    snprintf(path, sizeof(path), "%s/devices", folder);
    MUST(dbl_create(path, &config) == 0 && dbl_open(path, &shared) == 0);
    memcpy(device.uuid, dbl_info(shared, 0)->uuid, sizeof(device.uuid));
    setenv("ALLOT_DOUBLE_FILE", path, 1);
    setenv("ALLOT_SHARE_FOLDER", folder, 1);
    snprintf(path, sizeof(path), "%s/libcuda.so", folder);
    MUST(symlink(DRIVER, path) == 0);
    return gpu_region_open(&region, &ret, err) == 0 ? ret : NULL;
}

static void run(struct gpu_region *region, const char *path, double *ret_ns)
{
    struct pollfd p = {.fd = gpu_region_fd(region), .events = POLLIN};
    int status = -1;
    pid_t pid = fork();

    if (pid == 0)
        measure(path, ret_ns);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        poll(&p, 1, 10);
        gpu_region_serve(region);
    }
    MUST(status == 0);
}

int main(void)
{
    char folder[] = "/tmp/allot-share-cost-XXXXXX";
    double(*ns)[ROWS] =
        mmap(NULL, 2 * sizeof(*ns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct err err = ERR_INIT;

    MUST(ns != MAP_FAILED && mkdtemp(folder));
    struct gpu_region *region = make_machine(folder, &err);
    if (region == NULL) {
        fprintf(stderr, "share_cost: %s\n", err.text);
        return 1;
    }
    run(region, DRIVER, ns[0]);
    run(region, SHIM, ns[1]);
    gpu_region_close(region);
    io_remove_tree(AT_FDCWD, folder);
    printf("%-20s %10s %10s %10s %10s\n", "ns a call", "driver", "with shim", "added", "HAMi-core");
    for (size_t i = 0; i < ROWS; i++) {
        printf("%-20s %10.1f %10.1f %10.1f", rows[i].name, ns[0][i], ns[1][i], ns[1][i] - ns[0][i]);
        if (rows[i].peer > 0)
            printf(" %10.0f", rows[i].peer);
        puts("");
    }
    return 0;
}
