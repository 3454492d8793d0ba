/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tenants of one simulated device under a virtual clock: each a task with a region and a program
 * of its own behind the shim. Who owns the regions is an actor of the clock too and looks at them
 * at times of that clock, so a play is over in a fraction of the time that it shows.
 *
 *     struct tenant tenants[] = {{.milli = 250, .kernel_ns = 2 * MS, .way = ASYNC}, ...};
 *     open_stage(&stage, tenants, 2, SHARE_CAP);
 *     while (...) step_stage(&stage, TICK);
 *     close_stage(&stage);
 */
#ifndef ALLOT_TESTS_SHARE_TENANTS_H
#define ALLOT_TESTS_SHARE_TENANTS_H

#include "machine.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define TENANTS_MAX 8

/* SYNC waits for each kernel, ASYNC for none, GRAPH launches four at a time as a graph. */
enum way { SYNC, ASYNC, GRAPH };

struct tenant {
    uint32_t milli;
    uint64_t kernel_ns;
    enum way way;
    uint64_t think_ns;              /* between pieces */
    void (*run)(struct machine *m); /* another program than work() */
    struct machine m;
    pid_t pid;
};

struct stage {
    struct dbl_shared *driver;
    char folder[64];
    struct tenant *tenants;
    int count;
};

static inline struct cu_function *kernel_of(uint64_t ns)
{
    struct cu_module *module;
    struct cu_function *function;
    char text[64];

    snprintf(text, sizeof(text), "kernel work %llu 108\n", (unsigned long long)ns);
    CHECK(CU(cuModuleLoadData)(&module, text) == CU_OK);
    CHECK(CU(cuModuleGetFunction)(&function, module, "work") == CU_OK);
    return function;
}

static inline cu_result launch(struct cu_function *kernel, struct cu_stream *stream)
{
    return CU(cuLaunchKernel)(kernel, 64, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

static inline struct cu_graph_exec *graph_of(struct cu_function *kernel, struct cu_stream *stream)
{
    struct cu_graph_exec *exec;
    struct cu_graph *graph;

    CHECK(CU(cuStreamBeginCapture_v2)(stream, CU_CAPTURE_GLOBAL) == CU_OK);
    for (int i = 0; i < 4; i++)
        CHECK(launch(kernel, stream) == CU_OK);
    CHECK(CU(cuStreamEndCapture)(stream, &graph) == CU_OK);
    CHECK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CU_OK);
    return exec;
}

static inline void enter_folder(const struct machine *m)
{
    setenv("ALLOT_SHARE_FOLDER", m->folder, 1);
}

/* Works until it is killed. */
static inline void work(struct machine *m)
{
    const struct tenant *t = (const struct tenant *)((char *)m - offsetof(struct tenant, m));
    struct cu_stream *stream;

    enter_folder(m);
    begin();
    CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CU_OK);
    struct cu_function *kernel = kernel_of(t->kernel_ns);
    struct cu_graph_exec *exec = t->way == GRAPH ? graph_of(kernel, stream) : NULL;
    for (;;) {
        if (exec)
            CHECK(CU(cuGraphLaunch)(exec, stream) == CU_OK);
        else
            CHECK(launch(kernel, stream) == CU_OK);
        if (t->way == SYNC)
            CHECK(CU(cuStreamSynchronize)(stream) == CU_OK);
        if (t->think_ns)
            dbl_sleep_until(m->driver, dbl_now(m->driver) + t->think_ns);
    }
}

static inline void make_tenant(struct stage *stage, struct tenant *t, uint32_t flags)
{
    struct gpu_region_device device = {
        .memory_limit = LIMIT, .context_bytes = CONTEXT, .compute_milli = t->milli};
    struct gpu_region_config config = {
        .folder = t->m.folder, .flags = flags, .devices = &device, .device_count = 1};
    struct err err = ERR_INIT;
    char path[128];

    t->m = (struct machine){.folder = "/tmp/allot-tenant-XXXXXX", .driver = stage->driver};
    CHECK(mkdtemp(t->m.folder) != NULL);
    path_in(&t->m, "libcuda.so", path);
    CHECK(symlink(DRIVER, path) == 0);
    memcpy(device.uuid, dbl_info(stage->driver, 0)->uuid, sizeof(device.uuid));
    CHECK(gpu_region_open(&config, &t->m.region, &err) == 0);
}

static inline void serve_tenants(struct stage *stage)
{
    for (int i = 0; i < stage->count; i++)
        gpu_region_serve(stage->tenants[i].m.region);
}

/* The clock stands until all have come in. */
static inline void start_tenant(struct stage *stage, struct tenant *t)
{
    t->pid = program(t->run ? t->run : work, &t->m);
    while (gpu_region_processes(t->m.region) == 0) {
        CHECK(waitpid(t->pid, NULL, WNOHANG) == 0);
        usleep(500);
        serve_tenants(stage);
    }
}

static inline void open_stage(struct stage *stage, struct tenant *tenants, int count,
                              uint32_t flags)
{
    struct dbl_config config = dbl_config_default;
    char path[128];

    *stage =
        (struct stage){.folder = "/tmp/allot-stage-XXXXXX", .tenants = tenants, .count = count};
    config.memory = 4 * GIB;
    config.context_bytes = CONTEXT;
    config.clock = DBL_CLOCK_VIRTUAL;
    CHECK(mkdtemp(stage->folder) != NULL);
    snprintf(path, sizeof(path), "%s/devices", stage->folder);
    CHECK(dbl_create(path, &config) == 0 && dbl_open(path, &stage->driver) == 0);
    setenv("ALLOT_DOUBLE_FILE", path, 1);
    dbl_actors(stage->driver, (uint32_t)count + 1);
    for (int i = 0; i < count; i++)
        make_tenant(stage, &tenants[i], flags);
    for (int i = 0; i < count; i++)
        start_tenant(stage, &tenants[i]);
}

static inline void kill_tenant(struct stage *stage, struct tenant *t)
{
    if (t->pid == 0)
        return;
    kill(t->pid, SIGKILL);
    CHECK(waitpid(t->pid, NULL, 0) == t->pid);
    t->pid = 0;
    dbl_actor_leave(stage->driver);
}

/* The program of T, an actor until then, ends well by itself. */
static inline void ends_well(struct stage *stage, struct tenant *t)
{
    int status = -1;

    while (waitpid(t->pid, &status, WNOHANG) == 0) {
        dbl_sleep_until(stage->driver, dbl_now(stage->driver) + MS);
        serve_tenants(stage);
    }
    CHECK(status == 0);
    t->pid = 0;
}

static inline void close_stage(struct stage *stage)
{
    for (int i = 0; i < stage->count; i++) {
        kill_tenant(stage, &stage->tenants[i]);
        end_machine(&stage->tenants[i].m);
    }
    CHECK(io_remove_tree(AT_FDCWD, stage->folder) == 0);
}

#endif
