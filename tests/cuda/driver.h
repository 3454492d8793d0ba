/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the simulated libcuda.so.1: what its parts share within one process.
 *
 * Each entry point begins with ENTER(), which answers for a driver that is not initialised, for
 * the child of a fork, and for a process that is locked for a checkpoint (its callers wait there),
 * and counts who is inside. What is below entry points does not enter again.
 *
 * Ownership: contexts are never freed, only marked dead, since any thread may have one current.
 * Device addresses are found in a table of 2 MiB units (va.c) and are never looked into, so that
 * any number may be given to any call. Handles of streams, events, graphs and arrays are pointers
 * with a magic number: a made-up one is as deadly as with the driver.
 *
 * Locks, in this order: driver.mutex (addresses, contexts, pools, handles; short), then the shared
 * mutex.
 * Streams and events are shared state under the shared mutex. Bench mode uses neither for launches.
 */
#ifndef ALLOT_TESTS_CUDA_DRIVER_H
#define ALLOT_TESTS_CUDA_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "share/cuda_fns.h"
#include "shared.h"

/* The entry points, with their types and default visibility: generated from symbols.list. */
#include "exports.h"

#define DRV_STACK 32
#define DRV_GRANULARITY (UINT64_C(2) << 20)
#define DRV_POOL_CHUNK (UINT64_C(32) << 20)
#define DRV_ALIGN UINT64_C(512)

struct drv_alloc;
struct drv_capture;

struct cu_ctx {
    uint32_t magic;
    uint32_t id; /* from 1; 0 is no context */
    cu_device device;
    uint32_t real; /* index of the device in the file */
    unsigned flags;
    unsigned api;
    bool primary, dead;
    unsigned retained;
    size_t limits[CU_LIMIT_COUNT];
    uint64_t peers; /* ids of contexts that may be accessed, as bits */
    struct cu_stream *legacy;
    _Atomic uint32_t blocking_captures; /* of its blocking streams */
    struct drv_alloc *allocs;           /* of this context */
    struct cu_array *arrays;
    struct cu_ctx *next;
};

/* What one device address stands for. */
struct drv_alloc {
    cu_devptr base;
    uint64_t bytes, charged;
    uint8_t kind; /* enum dbl_kind; DBL_KINDS: memory of another process, not charged */
    bool live;
    uint16_t real;
    uint32_t refs; /* GRAPH: graphs that have it */
    struct cu_ctx *ctx;
    struct cu_pool *pool;
    struct drv_alloc *next, *prev, **list; /* of its context or pool; of what is free */
};

struct cu_stream {
    uint32_t magic, index, context;
    struct cu_ctx *ctx;
    unsigned flags;
    int priority;
    bool legacy;
    uint64_t id;
    struct drv_capture *_Atomic capture;
    struct cu_node **deps; /* while capturing: what the next node comes after */
    size_t dep_count;
};

struct cu_event {
    uint32_t magic, index;
    unsigned flags;
    struct cu_ctx *ctx;
    bool recorded;    /* in bench mode, else it is in the shared file */
    uint64_t time_ns; /* likewise */
    uint64_t capture; /* recorded in the capture with this id: joins other streams to it */
    struct cu_node **nodes;
    size_t node_count;
};

struct cu_function {
    uint32_t magic;
    struct cu_module *module;
    char *name;
    uint64_t duration_ns;
    uint32_t sms;
    bool by_param, by_grid;
    uint32_t block[3];
    struct cu_function *next;
};

struct drv_launch {
    uint64_t duration_ns;
    uint32_t sms;
};

/* The one driver of this process. */
struct driver {
    const _Atomic uint32_t *_Atomic alive; /* 1 while initialised; wiped in children */
    bool bench;
    bool initialised;
    uint32_t slot;
    struct dbl_shared *sh;
    struct dbl_proc *proc;
    int count;                     /* visible devices */
    uint32_t visible[DBL_DEVICES]; /* their index in the file */
    uint64_t kernel_ns;
    pthread_mutex_t mutex;
    struct cu_ctx *contexts;
    struct cu_ctx *primary[DBL_DEVICES];
    unsigned primary_flags[DBL_DEVICES];
    uint32_t next_context;
    _Atomic uint64_t launches;
};

extern struct driver driver;

struct drv_thread {
    struct cu_ctx *stack[DRV_STACK];
    uint32_t depth;
    bool in_callback;
    int capture_mode;
    struct cu_stream *streams[8]; /* per-thread default streams, one a context */
};

/* The calling thread's state. */
extern __thread struct drv_thread drv_thread __attribute__((tls_model("initial-exec")));

static inline const _Atomic uint32_t *drv_alive(void)
{
    return atomic_load_explicit(&driver.alive, memory_order_acquire);
}

/* The slow part of ENTER: waits while the process is locked. */
cu_result drv_enter_slow(void);

static inline cu_result drv_enter(void)
{
    if (__builtin_expect(!atomic_load_explicit(drv_alive(), memory_order_relaxed), 0))
        return CU_NOT_INITIALIZED;
    return __builtin_expect(driver.bench, 1) ? CU_OK : drv_enter_slow();
}

static inline void drv_leave(const cu_result *entered)
{
    if (!driver.bench && *entered == CU_OK)
        atomic_fetch_sub(&driver.proc->inside, 1);
}

#define ENTER()                                            \
    _cleanup_(drv_leave) cu_result entered_ = drv_enter(); \
    if (__builtin_expect(entered_ != CU_OK, 0))            \
    return entered_

/* For calls that only ask: they answer also while the process is locked. */
#define ENTER_QUERY()                                                                  \
    if (__builtin_expect(!atomic_load_explicit(drv_alive(), memory_order_relaxed), 0)) \
    return CU_NOT_INITIALIZED

#define INJECT(kind)                                   \
    do {                                               \
        int injected_ = dbl_injected(driver.sh, kind); \
        if (__builtin_expect(injected_ != 0, 0))       \
            return injected_;                          \
    } while (0)

/* The calling thread's context; NULL when it has none or a dead one. */
static inline struct cu_ctx *drv_current(void)
{
    struct drv_thread *t = &drv_thread;

    return t->depth > 0 ? t->stack[t->depth - 1] : NULL;
}

/* The context that a call works in as *ret_ctx, or CU_INVALID_CONTEXT, CU_CONTEXT_IS_DESTROYED. */
static inline cu_result drv_context(struct cu_ctx **ret_ctx)
{
    struct cu_ctx *ctx = drv_current();

    if (__builtin_expect(ctx == NULL, 0))
        return CU_INVALID_CONTEXT;
    if (__builtin_expect(ctx->dead, 0))
        return CU_CONTEXT_IS_DESTROYED;
    *ret_ctx = ctx;
    return CU_OK;
}

/* Index in the file of visible device ORDINAL where it is valid. */
static inline bool drv_device_valid(cu_device ordinal)
{
    return ordinal >= 0 && ordinal < driver.count;
}

/* --- objects behind handles (object.c). --- */

/* Zeroed memory of BYTES that stays reachable until it is freed, or NULL. */
void *drv_object_new(size_t bytes);
/* Frees it; NULL is none. */
void drv_object_free(void *object);

/* --- addresses (va.c). All with driver.mutex. --- */

/* An address range of BYTES, 512-aligned, or NULL. */
struct drv_alloc *drv_va_new(uint64_t bytes);
/* Gives it back. */
void drv_va_free(struct drv_alloc *alloc);
/* What PTR lies in, or NULL. */
struct drv_alloc *drv_va_find(cu_devptr ptr);
/* Puts an alloc on the LIST of its context or pool, takes it off. */
void drv_va_link(struct drv_alloc **list, struct drv_alloc *alloc);
void drv_va_unlink(struct drv_alloc *alloc);

/* --- memory. --- */

/* Frees what PTR stands for, whatever kind; for cuMemFree and cuMemFreeAsync alike. */
cu_result drv_free(cu_devptr ptr);
/* Managed memory at PTR is freed; false: it is not managed. */
bool drv_managed_free(cu_devptr ptr);
/* Managed range that holds PTR: its start and size. */
bool drv_managed_find(cu_devptr ptr, cu_devptr *ret_base, uint64_t *ret_bytes);
/* Makes managed memory resident on REAL as far as it fits; nanoseconds that takes. */
uint64_t drv_managed_page_in(struct cu_ctx *ctx);
/* Pinned or registered memory of the host that holds PTR. */
bool drv_host_find(const void *ptr, const void **ret_base, size_t *ret_bytes, unsigned *ret_flags);
/* A pool's memory at ALLOC goes back to it. With driver.mutex. */
void drv_pool_release(struct drv_alloc *alloc);
/* An address for BYTES of a graph in CTX, with one reference; NULL when there is no room. */
struct drv_alloc *drv_graph_address(struct cu_ctx *ctx, uint64_t bytes);
/* One reference more; one less: the last one frees address and memory. */
void drv_graph_address_ref(struct drv_alloc *alloc);
void drv_graph_address_free(struct drv_alloc *alloc);
/* Memory that a graph needs while it runs, and that stays with it afterwards. */
cu_result drv_graph_use(struct cu_ctx *ctx, uint64_t peak, uint64_t kept);
/* The memory at ALLOC is free again, its address stays. With driver.mutex. */
cu_result drv_graph_free(struct drv_alloc *alloc);
/* What graphs on REAL do not use goes back to the device. With driver.mutex. */
void drv_graph_memory_drop(uint32_t real);
/* After a synchronisation: pools of REAL give back what exceeds their thresholds. */
void drv_pools_settle(uint32_t real);
/* All memory of CTX, or with NULL whatever is left of pools on REAL when it has no context. */
void drv_memory_drop(struct cu_ctx *ctx);
void drv_pools_drop(uint32_t real);
void drv_arrays_drop(struct cu_ctx *ctx);
/* A mapping of virtual memory that holds PTR. */
bool drv_vmm_find(cu_devptr ptr, cu_devptr *ret_base, uint64_t *ret_bytes, uint32_t *ret_real);

/* --- streams (stream.c). --- */

/* The stream object behind a handle: NULL by its kind of entry point, 1, 2, or itself. */
cu_result drv_stream(struct cu_stream *handle, bool per_thread, struct cu_stream **ret_stream);
/* Stream of a new context. */
struct cu_stream *drv_stream_new(struct cu_ctx *ctx, unsigned flags, int priority, bool legacy);
void drv_stream_drop(struct cu_stream *stream);
/*
 * Submits an op of KIND to STREAM; waits while its queue is full. EVENT is a number of one for
 * RECORD and WAIT. DEPTH: whether it counts against the queue. ARG as in struct dbl_op, except
 * for RECORD (the driver numbers them).
 */
cu_result drv_submit(struct cu_stream *stream, struct dbl_op op);
/* Waits for a stream; for all of CTX. */
cu_result drv_sync_stream(struct cu_stream *stream);
cu_result drv_sync_ctx(struct cu_ctx *ctx);
/* Starts the thread that runs functions of the host and serves checkpoints. Once. */
cu_result drv_service_start(void);
/* Queues a call of FN in STREAM. CALLBACK: a stream's callback instead. */
cu_result drv_submit_host(struct cu_stream *stream, cu_host_fn *fn, cu_stream_callback *callback,
                          void *data);

/* --- launches (launch.c). --- */

/* Cost of FUNCTION with BLOCKS blocks; PARAMS may be NULL. */
cu_result drv_launch_cost(struct cu_function *function, uint64_t blocks, void **params,
                          struct drv_launch *ret_launch);
cu_result drv_launch(struct cu_stream *stream, const struct drv_launch *launch);
/* Whether FUNCTION is one. */
#define DRV_FUNCTION_MAGIC UINT32_C(0x46756e63)
static inline bool drv_function_valid(const struct cu_function *function)
{
    return function != NULL && function->magic == DRV_FUNCTION_MAGIC;
}
/* Modules of CTX end with it. */
void drv_module_drop(struct cu_ctx *ctx);

/* --- capture and graphs (capture.c, graph.c). --- */

/* STREAM is being captured: the call must not touch it otherwise. */
static inline bool drv_capturing(const struct cu_stream *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

/* Appends to the capture of STREAM what would have been submitted. */
cu_result drv_capture_kernel(struct cu_stream *stream, const struct drv_launch *launch);
cu_result drv_capture_host(struct cu_stream *stream, cu_host_fn *fn, void *data);
cu_result drv_capture_copy(struct cu_stream *stream, uint64_t ns, bool set);
cu_result drv_capture_record(struct cu_stream *stream, struct cu_event *event);
cu_result drv_capture_wait(struct cu_stream *stream, struct cu_event *event);
cu_result drv_capture_alloc(struct cu_stream *stream, uint64_t bytes, cu_devptr *ret_ptr);
cu_result drv_capture_free(struct cu_stream *stream, cu_devptr ptr);
/* A call that cannot be captured spoils the capture: CU_CAPTURE_UNSUPPORTED. */
cu_result drv_capture_spoil(struct cu_stream *stream);
/* Captures that are under way in this process. */
extern _Atomic uint32_t drv_captures;
/* What cuStreamIsCapturing says. */
int drv_capture_status(const struct cu_stream *stream);
/* The legacy stream is used while a blocking stream of CTX captures: spoils that capture. */
cu_result drv_capture_implicit(struct cu_ctx *ctx);
/* A call that synchronises, by a thread that captures in a mode that forbids it. */
cu_result drv_capture_forbids(struct cu_ctx *ctx);

#endif
