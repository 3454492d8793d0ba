/* SPDX-License-Identifier: Apache-2.0 */
/* Events: recorded in the order of a stream, waited for by threads and by other streams. */
#include <stdlib.h>

#include "driver.h"

#define MAGIC UINT32_C(0x4576656e)

static bool valid(const struct cu_event *event)
{
    return event != NULL && event->magic == MAGIC;
}

static uint32_t take_index(void)
{
    struct dbl_proc *proc = driver.proc;
    static uint32_t next;
    uint32_t tried = 0;

    dbl_lock(driver.sh);
    while (tried < DBL_EVENTS && proc->events[next % DBL_EVENTS].used) {
        next++;
        tried++;
    }
    if (tried < DBL_EVENTS) {
        tried = next++ % DBL_EVENTS;
        /* Numbers go on, so that what is left of the last owner cannot be mistaken. */
        proc->events[tried].used = true;
        proc->events[tried].first = proc->events[tried].posted;
    }
    dbl_unlock(driver.sh);
    return tried;
}

cu_result cuEventCreate(struct cu_event **ret_event, unsigned flags)
{
    struct cu_event *event;
    struct cu_ctx *ctx;
    cu_result result;

    ENTER();
    result = drv_context(&ctx);
    if (result != CU_OK)
        return result;
    if (ret_event == NULL || (flags & ~(unsigned)CU_EVENT_FLAGS_MASK))
        return CU_INVALID_VALUE;
    event = drv_object_new(sizeof(*event));
    if (event == NULL)
        return CU_OUT_OF_MEMORY;
    event->magic = MAGIC;
    event->flags = flags;
    event->ctx = ctx;
    event->index = driver.bench ? 0 : take_index();
    if (event->index == DBL_EVENTS) {
        drv_object_free(event);
        return CU_OUT_OF_MEMORY;
    }
    *ret_event = event;
    return CU_OK;
}

cu_result cuEventDestroy_v2(struct cu_event *event)
{
    ENTER();
    if (!valid(event))
        return CU_INVALID_HANDLE;
    if (!driver.bench) {
        dbl_lock(driver.sh);
        dbl_event_drop(driver.proc, event->index);
        dbl_unlock(driver.sh);
    }
    free(event->nodes);
    event->magic = 0;
    drv_object_free(event);
    return CU_OK;
}

cu_result cuEventDestroy(struct cu_event *event)
{
    return cuEventDestroy_v2(event);
}

static cu_result record(struct cu_event *event, struct cu_stream *handle, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result;

    if (!valid(event))
        return CU_INVALID_HANDLE;
    result = drv_stream(handle, per_thread, &stream);
    if (result != CU_OK)
        return result;
    if (stream->ctx != event->ctx)
        return CU_INVALID_HANDLE;
    if (drv_capturing(stream))
        return drv_capture_record(stream, event);
    event->capture = 0;
    if (driver.bench) {
        event->time_ns = dbl_now(driver.sh);
        event->recorded = true;
        return CU_OK;
    }
    return drv_submit(stream, (struct dbl_op){.kind = DBL_OP_RECORD, .event = event->index});
}

cu_result cuEventRecord(struct cu_event *event, struct cu_stream *stream)
{
    ENTER();
    return record(event, stream, false);
}

cu_result cuEventRecord_ptsz(struct cu_event *event, struct cu_stream *stream)
{
    ENTER();
    return record(event, stream, true);
}

cu_result cuEventRecordWithFlags(struct cu_event *event, struct cu_stream *stream, unsigned flags)
{
    ENTER();
    return flags & ~(unsigned)CU_RECORD_EXTERNAL ? CU_INVALID_VALUE : record(event, stream, false);
}

cu_result cuEventRecordWithFlags_ptsz(struct cu_event *event, struct cu_stream *stream,
                                      unsigned flags)
{
    ENTER();
    return flags & ~(unsigned)CU_RECORD_EXTERNAL ? CU_INVALID_VALUE : record(event, stream, true);
}

static cu_result wait_in(struct cu_stream *handle, struct cu_event *event, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result;

    if (!valid(event))
        return CU_INVALID_HANDLE;
    result = drv_stream(handle, per_thread, &stream);
    if (result != CU_OK)
        return result;
    if (drv_capturing(stream) || event->capture != 0)
        return drv_capture_wait(stream, event);
    if (driver.bench)
        return CU_OK;
    return drv_submit(stream, (struct dbl_op){.kind = DBL_OP_WAIT, .event = event->index});
}

cu_result cuStreamWaitEvent(struct cu_stream *stream, struct cu_event *event, unsigned flags)
{
    ENTER();
    return wait_in(stream, event, false);
}

cu_result cuStreamWaitEvent_ptsz(struct cu_stream *stream, struct cu_event *event, unsigned flags)
{
    ENTER();
    return wait_in(stream, event, true);
}

cu_result cuEventQuery(struct cu_event *event)
{
    const struct dbl_event *shared;
    cu_result result;

    ENTER();
    if (!valid(event))
        return CU_INVALID_HANDLE;
    if (event->capture != 0)
        return CU_CAPTURED_EVENT;
    result = drv_capture_forbids(event->ctx);
    if (result != CU_OK || driver.bench)
        return result;
    shared = &driver.proc->events[event->index];
    dbl_lock(driver.sh);
    dbl_sim_run(driver.sh);
    result = shared->done >= shared->posted ? CU_OK : CU_NOT_READY;
    dbl_unlock(driver.sh);
    return result;
}

cu_result cuEventSynchronize(struct cu_event *event)
{
    const struct dbl_event *shared;
    uint64_t posted;

    ENTER();
    if (!valid(event))
        return CU_INVALID_HANDLE;
    if (event->capture != 0)
        return CU_CAPTURED_EVENT;
    INJECT(DBL_FAIL_SYNC);
    if (driver.bench)
        return CU_OK;
    shared = &driver.proc->events[event->index];
    dbl_lock(driver.sh);
    posted = shared->posted;
    for (dbl_sim_run(driver.sh); shared->done < posted; dbl_sim_run(driver.sh))
        dbl_wait(driver.sh, driver.slot, dbl_sim_next(driver.sh));
    dbl_unlock(driver.sh);
    drv_pools_settle(event->ctx->real);
    return CU_OK;
}

/* When EVENT was reached; CU_NOT_READY while it is not, CU_INVALID_HANDLE if never recorded. */
static cu_result time_of(const struct cu_event *event, uint64_t *ret_ns)
{
    const struct dbl_event *shared = &driver.proc->events[event->index];
    cu_result result = CU_OK;

    if (driver.bench) {
        *ret_ns = event->time_ns;
        return event->recorded ? CU_OK : CU_INVALID_HANDLE;
    }
    dbl_lock(driver.sh);
    dbl_sim_run(driver.sh);
    if (shared->posted == shared->first)
        result = CU_INVALID_HANDLE;
    else if (shared->done < shared->posted)
        result = CU_NOT_READY;
    *ret_ns = shared->time_ns;
    dbl_unlock(driver.sh);
    return result;
}

cu_result cuEventElapsedTime(float *ret_ms, struct cu_event *start, struct cu_event *end)
{
    uint64_t from, to;
    cu_result result;

    ENTER();
    if (ret_ms == NULL)
        return CU_INVALID_VALUE;
    if (!valid(start) || !valid(end) || ((start->flags | end->flags) & CU_EVENT_NO_TIMING))
        return CU_INVALID_HANDLE;
    if (start->capture != 0 || end->capture != 0)
        return CU_CAPTURED_EVENT;
    result = time_of(start, &from);
    if (result == CU_OK)
        result = time_of(end, &to);
    if (result == CU_OK)
        *ret_ms = (float)((double)((int64_t)to - (int64_t)from) / 1e6);
    return result;
}

cu_result cuEventElapsedTime_v2(float *ret_ms, struct cu_event *start, struct cu_event *end)
{
    return cuEventElapsedTime(ret_ms, start, end);
}
