/* SPDX-License-Identifier: Apache-2.0 */
/* Streams: their objects, submitting to them and waiting for them. */
#include <stdlib.h>

#include "driver.h"

#define MAGIC UINT32_C(0x53747265)

static struct {
    pthread_once_t once;
    pthread_key_t key;
    _Atomic uint64_t next_id;
} streams = {.once = PTHREAD_ONCE_INIT, .next_id = 1};

/* A free stream of the shared file, or DBL_STREAMS. */
static uint32_t take_index(struct cu_ctx *ctx, unsigned flags, bool legacy)
{
    struct dbl_proc *proc = driver.proc;
    uint32_t index = 0;

    dbl_lock(driver.sh);
    while (index < DBL_STREAMS && proc->streams[index].context != 0)
        index++;
    if (index < DBL_STREAMS) {
        proc->streams[index] = (struct dbl_stream){.context = ctx->id,
                                                   .device = (uint16_t)ctx->real,
                                                   .legacy = legacy,
                                                   .nonblocking = flags & CU_STREAM_NON_BLOCKING};
        if (proc->streams_high <= index)
            proc->streams_high = index + 1;
    }
    dbl_unlock(driver.sh);
    return index;
}

struct cu_stream *drv_stream_new(struct cu_ctx *ctx, unsigned flags, int priority, bool legacy)
{
    struct cu_stream *stream = drv_object_new(sizeof(*stream));

    if (stream == NULL)
        return NULL;
    stream->magic = MAGIC;
    stream->ctx = ctx;
    stream->context = ctx->id;
    stream->flags = flags;
    stream->priority = priority;
    stream->legacy = legacy;
    stream->id = atomic_fetch_add(&streams.next_id, 1);
    if (!driver.bench)
        stream->index = take_index(ctx, flags, legacy);
    if (stream->index == DBL_STREAMS) {
        drv_object_free(stream);
        return NULL;
    }
    return stream;
}

/* What is left to do in it is done all the same. */
void drv_stream_drop(struct cu_stream *stream)
{
    if (!driver.bench) {
        struct dbl_stream *s = &driver.proc->streams[stream->index];

        dbl_lock(driver.sh);
        s->closing = true;
        if (s->head == 0)
            *s = (struct dbl_stream){0};
        dbl_unlock(driver.sh);
    }
    free(stream->deps);
    stream->magic = 0;
    drv_object_free(stream);
}

static void thread_ends(void *thread)
{
    struct drv_thread *t = thread;

    if (!atomic_load(drv_alive()))
        return;
    for (size_t i = 0; i < ARRAY_LEN(t->streams); i++)
        if (t->streams[i] != NULL)
            drv_stream_drop(t->streams[i]);
}

static void make_key(void)
{
    pthread_key_create(&streams.key, thread_ends);
}

/* The calling thread's own default stream in CTX. */
static struct cu_stream *thread_stream(struct cu_ctx *ctx)
{
    struct cu_stream **slot = NULL;

    for (size_t i = 0; i < ARRAY_LEN(drv_thread.streams); i++) {
        struct cu_stream **at = &drv_thread.streams[i];

        if (*at != NULL && (*at)->ctx == ctx)
            return *at;
        if (*at != NULL && (*at)->ctx->dead) {
            drv_stream_drop(*at);
            *at = NULL;
        }
        if (*at == NULL && slot == NULL)
            slot = at;
    }
    if (slot == NULL)
        return NULL;
    pthread_once(&streams.once, make_key);
    pthread_setspecific(streams.key, &drv_thread);
    *slot = drv_stream_new(ctx, 0, 0, false);
    return *slot;
}

static cu_result default_stream(bool per_thread, struct cu_stream **ret_stream)
{
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);

    if (result != CU_OK)
        return result;
    if (!per_thread && atomic_load_explicit(&ctx->blocking_captures, memory_order_relaxed) > 0)
        return drv_capture_implicit(ctx);
    *ret_stream = per_thread ? thread_stream(ctx) : ctx->legacy;
    return *ret_stream != NULL ? CU_OK : CU_OUT_OF_MEMORY;
}

cu_result drv_stream(struct cu_stream *handle, bool per_thread, struct cu_stream **ret_stream)
{
    if (handle == NULL || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return default_stream(handle == CU_STREAM_PER_THREAD || (handle == NULL && per_thread),
                              ret_stream);
    if (handle->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (handle->ctx->dead)
        return CU_CONTEXT_IS_DESTROYED;
    *ret_stream = handle;
    return CU_OK;
}

/* Numbers a record, or finds which one to wait for. False: there is nothing to wait for. */
static bool number_event(struct dbl_op *op)
{
    struct dbl_event *event = &driver.proc->events[op->event];

    if (op->kind == DBL_OP_RECORD)
        op->arg = ++event->posted;
    else if (op->kind == DBL_OP_WAIT)
        op->arg = event->posted;
    return op->kind != DBL_OP_WAIT || event->done < op->arg;
}

cu_result drv_submit(struct cu_stream *stream, struct dbl_op op)
{
    struct dbl_proc *proc = driver.proc;
    uint32_t index = 0;

    if (driver.bench)
        return CU_OK;
    dbl_lock(driver.sh);
    for (;;) {
        dbl_sim_run(driver.sh);
        if (!op.depth || proc->streams[stream->index].depth < DBL_QUEUE)
            index = dbl_op_new(proc);
        if (index != 0)
            break;
        dbl_wait(driver.sh, driver.slot, dbl_sim_next(driver.sh));
    }
    if (!number_event(&op)) {
        dbl_op_drop(proc, index);
    } else {
        proc->ops[index - 1] = op;
        dbl_op_push(proc, stream->index, index);
        dbl_sim_run(driver.sh);
    }
    dbl_unlock(driver.sh);
    return CU_OK;
}

/* What was submitted to stream I of CONTEXT up to ORDER is done. */
static bool reached(const struct dbl_stream *s, uint64_t order)
{
    return s->head == 0 || driver.proc->ops[s->head - 1].order > order;
}

/* With the shared mutex. The legacy stream stands for all blocking ones. */
static bool stream_done(const struct cu_stream *stream, uint64_t order)
{
    const struct dbl_proc *proc = driver.proc;
    bool done = true;

    if (!stream->legacy)
        return reached(&proc->streams[stream->index], order);
    for (uint32_t i = 0; i < proc->streams_high && done; i++)
        if (proc->streams[i].context == stream->context && !proc->streams[i].nonblocking)
            done = reached(&proc->streams[i], order);
    return done;
}

static bool ctx_done(uint32_t context, uint64_t order)
{
    bool done = true;

    for (uint32_t i = 0; i < driver.proc->streams_high && done; i++)
        if (driver.proc->streams[i].context == context)
            done = reached(&driver.proc->streams[i], order);
    return done;
}

cu_result drv_sync_stream(struct cu_stream *stream)
{
    uint64_t order;

    if (driver.bench)
        return CU_OK;
    dbl_lock(driver.sh);
    order = driver.proc->order;
    for (dbl_sim_run(driver.sh); !stream_done(stream, order); dbl_sim_run(driver.sh))
        dbl_wait(driver.sh, driver.slot, dbl_sim_next(driver.sh));
    dbl_unlock(driver.sh);
    drv_pools_settle(stream->ctx->real);
    return CU_OK;
}

cu_result drv_sync_ctx(struct cu_ctx *ctx)
{
    uint64_t order;

    if (driver.bench)
        return CU_OK;
    dbl_lock(driver.sh);
    order = driver.proc->order;
    for (dbl_sim_run(driver.sh); !ctx_done(ctx->id, order); dbl_sim_run(driver.sh))
        dbl_wait(driver.sh, driver.slot, dbl_sim_next(driver.sh));
    dbl_unlock(driver.sh);
    drv_pools_settle(ctx->real);
    return CU_OK;
}

static cu_result create(struct cu_stream **ret_stream, unsigned flags, int priority)
{
    struct cu_stream *stream;
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);

    if (result != CU_OK)
        return result;
    if (ret_stream == NULL || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CU_INVALID_VALUE;
    stream = drv_stream_new(ctx, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority, false);
    if (stream == NULL)
        return CU_OUT_OF_MEMORY;
    *ret_stream = stream;
    return CU_OK;
}

cu_result cuStreamCreate(struct cu_stream **ret_stream, unsigned flags)
{
    ENTER();
    return create(ret_stream, flags, 0);
}

cu_result cuStreamCreateWithPriority(struct cu_stream **ret_stream, unsigned flags, int priority)
{
    ENTER();
    return create(ret_stream, flags, priority);
}

cu_result cuStreamDestroy_v2(struct cu_stream *stream)
{
    ENTER();
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD ||
        stream->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (drv_capturing(stream))
        return drv_capture_spoil(stream);
    drv_stream_drop(stream);
    return CU_OK;
}

cu_result cuStreamDestroy(struct cu_stream *stream)
{
    return cuStreamDestroy_v2(stream);
}

static cu_result synchronize(struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    INJECT(DBL_FAIL_SYNC);
    return drv_capturing(stream) ? drv_capture_spoil(stream) : drv_sync_stream(stream);
}

cu_result cuStreamSynchronize(struct cu_stream *stream)
{
    ENTER();
    return synchronize(stream, false);
}

cu_result cuStreamSynchronize_ptsz(struct cu_stream *stream)
{
    ENTER();
    return synchronize(stream, true);
}

static cu_result query(struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK || driver.bench)
        return result;
    if (drv_capturing(stream))
        return drv_capture_spoil(stream);
    dbl_lock(driver.sh);
    dbl_sim_run(driver.sh);
    result = stream_done(stream, driver.proc->order) ? CU_OK : CU_NOT_READY;
    dbl_unlock(driver.sh);
    return result;
}

cu_result cuStreamQuery(struct cu_stream *stream)
{
    ENTER();
    return query(stream, false);
}

cu_result cuStreamQuery_ptsz(struct cu_stream *stream)
{
    ENTER();
    return query(stream, true);
}

/* Entry points that only read a stream, for both kinds of default stream. */
#define ASK(name, parameters, wrong, answer)    \
    cu_result name parameters                   \
    {                                           \
        struct cu_stream *s;                    \
        cu_result result;                       \
                                                \
        ENTER();                                \
        if (wrong)                              \
            return CU_INVALID_VALUE;            \
        result = drv_stream(stream, false, &s); \
        if (result == CU_OK)                    \
            answer;                             \
        return result;                          \
    }                                           \
    cu_result name##_ptsz parameters            \
    {                                           \
        struct cu_stream *s;                    \
        cu_result result;                       \
                                                \
        ENTER();                                \
        if (wrong)                              \
            return CU_INVALID_VALUE;            \
        result = drv_stream(stream, true, &s);  \
        if (result == CU_OK)                    \
            answer;                             \
        return result;                          \
    }

ASK(cuStreamGetPriority, (struct cu_stream * stream, int *ret_priority), ret_priority == NULL,
    *ret_priority = s->priority)
ASK(cuStreamGetFlags, (struct cu_stream * stream, unsigned *ret_flags), ret_flags == NULL,
    *ret_flags = s->flags)
ASK(cuStreamGetId, (struct cu_stream * stream, uint64_t *ret_id), ret_id == NULL, *ret_id = s->id)
ASK(cuStreamGetCtx, (struct cu_stream * stream, struct cu_ctx **ret_ctx), ret_ctx == NULL,
    *ret_ctx = s->ctx)
ASK(cuStreamGetDevice, (struct cu_stream * stream, cu_device *ret_device), ret_device == NULL,
    *ret_device = s->ctx->device)
ASK(cuStreamIsCapturing, (struct cu_stream * stream, int *ret_status), ret_status == NULL,
    *ret_status = drv_capture_status(s))
