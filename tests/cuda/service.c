/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The driver's own thread in a process: it calls functions of the host when their stream gets to
 * them, and holds what a checkpoint moves into this process's memory.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver.h"

#define NAP_NS UINT64_C(20000000)

struct call {
    cu_host_fn *fn;
    cu_stream_callback *callback;
    struct cu_stream *stream;
    void *data;
};

static struct {
    pthread_mutex_t mutex;
    bool running;
    _Atomic uint32_t queued;
    void *saved; /* memory that a checkpoint has moved here */
    uint64_t saved_bytes;
} service = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* A call that a stream has got to: its op, or NULL. With the shared mutex. */
static struct dbl_op *next_call(void)
{
    struct dbl_proc *proc = driver.proc;

    for (uint32_t i = 0; i < proc->streams_high; i++) {
        struct dbl_op *op;

        if (proc->streams[i].head == 0)
            continue;
        op = &proc->ops[proc->streams[i].head - 1];
        if (op->kind == DBL_OP_HOST && op->called == 1)
            return op;
    }
    return NULL;
}

static void run_call(struct dbl_op *op)
{
    struct call *call = (struct call *)(uintptr_t)op->arg;

    dbl_unlock(driver.sh);
    drv_thread.in_callback = true;
    if (call->callback != NULL)
        call->callback(call->stream, CU_OK, call->data);
    else
        call->fn(call->data);
    drv_thread.in_callback = false;
    drv_object_free(call);
    atomic_fetch_sub(&service.queued, 1);
    dbl_lock(driver.sh);
    op->called = 2;
    driver.proc->host_calls--;
    dbl_sim_run(driver.sh);
    dbl_notify(driver.sh);
}

/* Memory as the process has it after a checkpoint: touched, so that it is charged to its cgroup. */
static void hold_saved(void)
{
    uint64_t bytes = driver.sh->config.host_copies ? atomic_load(&driver.proc->saved_bytes) : 0;

    if (bytes == service.saved_bytes)
        return;
    if (service.saved != NULL)
        munmap(service.saved, service.saved_bytes);
    service.saved = NULL;
    service.saved_bytes = bytes;
    if (bytes == 0)
        return;
    service.saved = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (service.saved == MAP_FAILED)
        service.saved = NULL;
    else
        memset(service.saved, 1, bytes);
}

static void *serve(void *unused)
{
    atomic_store(&driver.proc->service_tid, (uint32_t)gettid());
    dbl_futex_wake(&driver.proc->service_tid);
    for (;;) {
        uint32_t command = atomic_load(&driver.proc->command);
        uint64_t nap = NAP_NS * 5;
        struct dbl_op *op;

        dbl_lock(driver.sh);
        dbl_sim_run(driver.sh);
        while ((op = next_call()) != NULL)
            run_call(op);
        if (atomic_load(&service.queued) > 0) {
            uint64_t now = dbl_now(driver.sh), next = dbl_sim_next(driver.sh);

            nap = next <= now ? 1 : next - now < NAP_NS ? next - now : NAP_NS;
        }
        dbl_unlock(driver.sh);
        hold_saved();
        atomic_store(&driver.proc->served, command);
        dbl_futex_wait(&driver.proc->command, command, nap);
    }
    return unused;
}

cu_result drv_service_start(void)
{
    sigset_t all, before;
    pthread_t thread;
    int error = 0;

    if (driver.bench)
        return CU_OK;
    pthread_mutex_lock(&service.mutex);
    if (!service.running) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&thread, NULL, serve, NULL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        service.running = error == 0;
        if (error == 0)
            pthread_detach(thread);
        /* It can be asked for as soon as there is a context. */
        while (error == 0 && atomic_load(&driver.proc->service_tid) == 0)
            dbl_futex_wait(&driver.proc->service_tid, 0, NAP_NS);
    }
    pthread_mutex_unlock(&service.mutex);
    return error == 0 ? CU_OK : CU_OPERATING_SYSTEM;
}

cu_result drv_submit_host(struct cu_stream *stream, cu_host_fn *fn, cu_stream_callback *callback,
                          void *data)
{
    struct call *call;
    cu_result result;

    /* In bench mode all that was submitted is done. */
    if (driver.bench) {
        if (callback != NULL)
            callback(stream, CU_OK, data);
        else
            fn(data);
        return CU_OK;
    }
    call = drv_object_new(sizeof(*call));
    if (call == NULL)
        return CU_OUT_OF_MEMORY;
    *call = (struct call){fn, callback, stream, data};
    atomic_fetch_add(&service.queued, 1);
    result =
        drv_submit(stream, (struct dbl_op){.kind = DBL_OP_HOST, .arg = (uint64_t)(uintptr_t)call});
    atomic_fetch_add(&driver.proc->command, 1);
    dbl_futex_wake(&driver.proc->command);
    return result;
}

static cu_result host_func(struct cu_stream *handle, cu_host_fn *fn, void *data, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    if (fn == NULL)
        return CU_INVALID_VALUE;
    if (drv_capturing(stream))
        return drv_capture_host(stream, fn, data);
    return drv_submit_host(stream, fn, NULL, data);
}

cu_result cuLaunchHostFunc(struct cu_stream *stream, cu_host_fn *fn, void *data)
{
    ENTER();
    return host_func(stream, fn, data, false);
}

cu_result cuLaunchHostFunc_ptsz(struct cu_stream *stream, cu_host_fn *fn, void *data)
{
    ENTER();
    return host_func(stream, fn, data, true);
}

static cu_result add_callback(struct cu_stream *handle, cu_stream_callback *callback, void *data,
                              unsigned flags, bool per_thread)
{
    struct cu_stream *stream;
    cu_result result = drv_stream(handle, per_thread, &stream);

    if (result != CU_OK)
        return result;
    if (callback == NULL || flags != 0)
        return CU_INVALID_VALUE;
    if (drv_capturing(stream))
        return drv_capture_spoil(stream);
    return drv_submit_host(stream, NULL, callback, data);
}

cu_result cuStreamAddCallback(struct cu_stream *stream, cu_stream_callback *callback, void *data,
                              unsigned flags)
{
    ENTER();
    return add_callback(stream, callback, data, flags, false);
}

cu_result cuStreamAddCallback_ptsz(struct cu_stream *stream, cu_stream_callback *callback,
                                   void *data, unsigned flags)
{
    ENTER();
    return add_callback(stream, callback, data, flags, true);
}
