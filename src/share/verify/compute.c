/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kernel, many times. How long it takes is the least that a batch of it ever took, which is one
 * that nobody interrupted; how much of the device's time the process had, how many it finished.
 * Whether others want the device, the agent tells: it gives slices only then.
 *
 * The kernel is one thread that counts. It is PTX, which the driver compiles for its device.
 */
#include <stdatomic.h>
#include <time.h>

#include "share/look.h"
#include "share/verify/verify.h"

#define ROUNDS 50000             /* of the kernel: some hundred microseconds */
#define BATCH_NS INT64_C(300000) /* that a batch takes at least */
#define BATCH_MOST 4096          /* kernels */
#define TRIES 16                 /* batches that are looked at for their length */
#define MEASURE_NS INT64_C(2000000000)

static const char kernel[] = ".version 6.0\n"
                             ".target sm_50\n"
                             ".address_size 64\n"
                             ".visible .global .u32 sink;\n"
                             ".visible .entry count(.param .u32 rounds) {\n"
                             "  .reg .pred %p;\n"
                             "  .reg .u32 %n, %i, %x;\n"
                             "  ld.param.u32 %n, [rounds];\n"
                             "  mov.u32 %i, 0;\n"
                             "  mov.u32 %x, 1;\n"
                             "again:\n"
                             "  mad.lo.u32 %x, %x, 1664525, 1013904223;\n"
                             "  add.u32 %i, %i, 1;\n"
                             "  setp.lt.u32 %p, %i, %n;\n"
                             "  @%p bra again;\n"
                             "  st.global.u32 [sink], %x;\n"
                             "  ret;\n"
                             "}\n";

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* COUNT kernels, of which the last is waited for; RET_NS is what they took. */
static cu_result run(const struct driver *d, struct cu_function *f, int count, int64_t *ret_ns)
{
    unsigned rounds = ROUNDS;
    void *params[] = {&rounds};
    int64_t begun = now_ns();
    cu_result r = CU_OK;

    for (int i = 0; i < count && r == CU_OK; i++)
        r = d->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL);
    if (r == CU_OK)
        r = d->cuCtxSynchronize();
    *ret_ns = now_ns() - begun;
    return r;
}

/* The least that COUNT kernels take. */
static cu_result least(const struct driver *d, struct cu_function *f, int count, int64_t *ret_ns)
{
    cu_result r = CU_OK;

    *ret_ns = INT64_MAX;
    for (int i = 0; i < TRIES && r == CU_OK; i++) {
        int64_t ns;

        r = run(d, f, count, &ns);
        if (ns < *ret_ns)
            *ret_ns = ns;
    }
    return r;
}

/* ---- what the agent says --------------------------------------------------------------------- */

struct witness {
    struct share_view view;
    int device; /* of it; -1: there is no agent, or it does not know the device */
    uint64_t submits;
};

/* A number that changes with each piece of work that the shim lets to a device of the task. */
static uint64_t submits(const struct share_view *view)
{
    uint64_t sum = 0;

    for (int i = 0; i < SHARE_SLOTS; i++)
        sum += atomic_load(&view->counters->slots[i].submits);
    return sum;
}

static struct witness witness_call(const struct trial *t)
{
    struct witness w = {.device = -1};

    if (share_look(&w.view) < 0)
        return w;
    w.device = share_look_device(&w.view, t->uuid.bytes);
    w.submits = submits(&w.view);
    return w;
}

static bool is_contended(const struct witness *w)
{
    return w->device >= 0 &&
           atomic_load(&w->view.limits->devices[w->device].slice_end_ns) != SHARE_NO_SLICE;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static cu_result measure(const struct driver *d, struct cu_function *f, const struct witness *w,
                         struct trial *t)
{
    int64_t batch_ns, ns, begun, elapsed = 0, batches = 0, contended_ns = 0;
    int count = 1;
    cu_result r = least(d, f, count, &batch_ns);

    while (r == CU_OK && batch_ns < BATCH_NS && count < BATCH_MOST)
        r = least(d, f, count *= 2, &batch_ns);
    begun = now_ns();
    while (r == CU_OK && elapsed < MEASURE_NS) {
        r = run(d, f, count, &ns);
        if (ns < batch_ns)
            batch_ns = ns;
        if (is_contended(w))
            contended_ns += ns;
        batches++;
        elapsed = now_ns() - begun;
    }
    if (r == CU_OK) {
        t->got_milli = (int)(batches * batch_ns / (elapsed / 1000));
        t->contended_milli = w->device < 0 ? -1 : (int)(contended_ns / (elapsed / 1000));
    }
    return r;
}

static cu_result try(const struct driver *d, const struct witness *w, struct trial *t)
{
    struct cu_module *module;
    struct cu_function *f;
    cu_result r;

    if (!d->cuModuleLoadData || !d->cuModuleGetFunction || !d->cuModuleUnload ||
        !d->cuLaunchKernel || !d->cuCtxSynchronize)
        return CU_NOT_SUPPORTED;
    r = d->cuModuleLoadData(&module, kernel);
    if (r != CU_OK)
        return r;
    r = d->cuModuleGetFunction(&f, module, "count");
    if (r == CU_OK)
        r = measure(d, f, w, t);
    d->cuModuleUnload(module);
    return r;
}

void compute_try(const struct driver *d, struct trial *t)
{
    struct witness w = witness_call(t);

    t->compute_error = try(d, &w, t);
    t->unseen = t->compute_error == CU_OK && w.device >= 0 && submits(&w.view) == w.submits;
}
