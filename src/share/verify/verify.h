/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot-gpu-verify: does what is promised of a part of a GPU hold? Run inside a task, it tries to
 * take more than the task's part of each of its devices, and says what happened.
 *
 * For each device it takes memory in halving blocks down to the last byte that is given, then one
 * byte more, and then, with the part full, one more block in every other way that it knows: what a
 * node enforces for one way of asking it must enforce for all. At the end everything is freed and
 * asked for again.
 *
 * It does no harm where nothing is enforced: of a device it never asks for more than VERIFY_EXTRA
 * bytes beyond the part, and gives those back at once. (What a context takes is not asked for.)
 * Of computing a task may have more than its part, as what nobody else wants is usable: what it got
 * of a device's time while it wanted all of it is measured, and said together with whether others
 * wanted it, too. Not enforced is what the shim has not seen.
 *
 *     main.c     the command line, the devices one after the other, the verdict
 *     driver.c   the driver as any program finds it: libcuda.so.1, nothing of ours
 *     fill.c     taking the part, and a second process that takes some of it
 *     ways.c     the other ways of asking for memory
 *     compute.c  how much of a device's time its programs get
 *     report.c   what is printed, as text and as JSON
 *
 * One thread. Sizes are bytes. What the driver answers is kept as it is (enum cu_code).
 */
#ifndef ALLOT_SHARE_VERIFY_VERIFY_H
#define ALLOT_SHARE_VERIFY_VERIFY_H

#include <stdbool.h>
#include <stdint.h>

#include "share/cuda_fns.h"

#define VERIFY_BLOCK (UINT64_C(16) << 20) /* what each way asks for with the part full */
#define VERIFY_EXTRA (UINT64_C(64) << 20)
#define VERIFY_BLOCKS 128 /* that fill a part: halving takes one for each bit of its size */
#define VERIFY_WAYS 12

#define VERIFY_PROGRAM "allot-gpu-verify"
#define VERIFY_SECOND "--second" /* what makes it the second process */

/* ---- driver.c -------------------------------------------------------------------------------- */

#define VERIFY_FUNCTIONS(X)      \
    X(cuInit)                    \
    X(cuGetProcAddress_v2)       \
    X(cuDeviceGetCount)          \
    X(cuDeviceGetName)           \
    X(cuDeviceGetUuid)           \
    X(cuDeviceGetDefaultMemPool) \
    X(cuDevicePrimaryCtxRetain)  \
    X(cuCtxSetCurrent)           \
    X(cuMemGetInfo_v2)           \
    X(cuMemAlloc_v2)             \
    X(cuMemAllocPitch_v2)        \
    X(cuMemAllocManaged)         \
    X(cuMemFree_v2)              \
    X(cuMemAllocAsync)           \
    X(cuMemAllocFromPoolAsync)   \
    X(cuMemFreeAsync)            \
    X(cuStreamSynchronize)       \
    X(cuMemPoolCreate)           \
    X(cuMemPoolDestroy)          \
    X(cuMemPoolTrimTo)           \
    X(cuMemCreate)               \
    X(cuMemRelease)              \
    X(cuArrayCreate_v2)          \
    X(cuArrayDestroy)            \
    X(cuModuleLoadData)          \
    X(cuModuleGetFunction)       \
    X(cuModuleUnload)            \
    X(cuLaunchKernel)            \
    X(cuCtxSynchronize)

/* Functions that this driver lacks are NULL. */
struct driver {
#define VERIFY_POINTER(name) fn_##name *name;
    VERIFY_FUNCTIONS(VERIFY_POINTER)
#undef VERIFY_POINTER
    int devices; /* that this process sees */
};

/* Loads the driver and initialises it. NULL, or why there is none to be used: a static text, valid
 * until the next call. */
const char *driver_open(struct driver *ret_driver);
/* Makes the context that frameworks use, of DEVICE, the current one. */
cu_result driver_enter(const struct driver *d, int device);

/* ---- fill.c ---------------------------------------------------------------------------------- */

struct blocks {
    cu_devptr at[VERIFY_BLOCKS];
    uint64_t bytes[VERIFY_BLOCKS];
    int count;
    uint64_t total;
};

/* Takes memory until no byte more is given, or MOST are held. What the last refusal was; CU_OK:
 * none, all of MOST is held. */
cu_result fill(const struct driver *d, struct blocks *blocks, uint64_t most);
/* Gives back the smallest blocks until at least BYTES are free; returns how much that is. */
uint64_t drain(const struct driver *d, struct blocks *blocks, uint64_t bytes);

/*
 * Lets another process of the task take ROOM of DEVICE and then ask for VERIFY_BLOCK more: the
 * answer to that, or to what it failed at before. -errno: there is no such process.
 */
int second_ask(int device, uint64_t room);
/* The other process: its exit status is for second_ask() alone. */
int second_main(const char *device, const char *room);

/* ---- ways.c ---------------------------------------------------------------------------------- */

struct way {
    const char *name;
    /* Asks for VERIFY_BLOCK and gives it back at once. */
    cu_result (*ask)(const struct driver *d, int device);
};

extern const struct way verify_ways[]; /* ends with a NULL name */

/* ---- what was found -------------------------------------------------------------------------- */

enum verdict { VERDICT_HELD, VERDICT_WHOLE, VERDICT_UNTESTED, VERDICT_BROKEN };

struct answer {
    const char *way;
    int code; /* of the driver; negative: it was not asked */
};

struct trial {
    int device; /* ordinal of this process */
    char name[96];
    struct cu_uuid uuid;
    uint64_t part;        /* what the task may use of it */
    uint64_t total, free; /* as cuMemGetInfo says before anything is taken */
    uint64_t filled;      /* what was given of the part */
    uint64_t beyond;      /* the most that it held, when it should have been refused */
    struct answer answers[VERIFY_WAYS];
    int answer_count;
    bool lost;               /* what was freed did not come back */
    int part_milli;          /* of its time that is the task's */
    int got_milli;           /* of it that it got, wanting all */
    int contended_milli;     /* of it that others wanted, too; negative: nothing tells */
    bool unseen;             /* the shim stands before the driver, and saw nothing of it */
    cu_result compute_error; /* why that is not known, or CU_OK */
    enum verdict verdict;
    char reason[200]; /* of VERDICT_UNTESTED */
};

/* ---- compute.c ------------------------------------------------------------------------------- */

/* Keeps the device of T, which is the current context's, busy for two seconds, and sets what T has
 * of computing. */
void compute_try(const struct driver *d, struct trial *t);

/* ---- report.c -------------------------------------------------------------------------------- */

/* Prints TRIALS; COUNT 0: nothing could be tested, for REASON. Returns the exit status. */
int report(const struct trial *trials, int count, const char *reason, bool json);

#endif
