/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sharing region: what a task that holds part of a GPU and its agent share.
 *
 * Who. The *agent* is privileged and keeps the ledger: whoever owns the task, its supervisor. The
 * *shim* is a libcuda.so.1 inside the task's sandbox; it asks here before it asks the driver. The
 * *tenant* is everything else in the sandbox; it can do with the shim's memory what it likes, so
 * nothing that is writable to it is believed for longer than one reconciliation with the driver.
 *
 * What. Two files in memory for each task, of fixed size and layout:
 *
 *   limits     struct share_limits     the agent writes, the shim reads. The task gets a
 *                                      descriptor that is read-only, and the file is sealed
 *                                      against further writable mappings.
 *   counters   struct share_counters   one slot per process of the task; each process writes its
 *                                      own slot, everyone reads all.
 *
 * How a process comes in. It connects to the socket SHARE_SOCKET (SOCK_SEQPACKET), sends a
 * share_hello and receives a share_welcome with both descriptors and the number of its slot. The
 * agent knows the process by the socket's credentials and a pidfd, never by what it says. The
 * socket stays open; it carries wake requests, and its end says nothing: a slot is free when the
 * pidfd says that the process is gone.
 *
 * A process that only looks, as a monitor does, sends SHARE_LOOK instead. It gets the same answer
 * with no slot, after which the agent closes the socket: it is no user of the devices, is not
 * counted as one, and does not stand in the way of a suspend.
 *
 * Memory, without locks. A process that wants N bytes of a device
 *
 *     1. adds N to its slot's `wanted`,
 *     2. sums `held` and `wanted` over all slots, and `beyond` of the limits,
 *     3. when the sum is within the limit: adds N to `held`, takes N from `wanted`; else takes N
 *        from `wanted` and has failed.
 *
 * All of it sequentially consistent. Of two that race for the last bytes at least one sees the
 * other, so the limit is never passed by a byte. When each sees the other, the one in the higher
 * slot yields and the lower one looks again, a bounded number of times. A process that is killed
 * anywhere in between leaves a sum that is too large by what it had, never too small; the agent
 * empties its slot when the process is gone. There is no counter that belongs to nobody, so
 * nothing can leak.
 *
 * Gate. `gate` is zero while the task may call the driver. The agent sets it before it locks the
 * task's processes for a suspend; whoever calls the driver then asks for a wake and sleeps on
 * the gate as a futex until it is zero again. This is one relaxed load a call.
 *
 * Compute. `slice_end_ns` says until when (CLOCK_BOOTTIME) work may be submitted to a device:
 * SHARE_NO_SLICE while nobody else wants it; the word `slice_turn` beside it changes with each
 * grant and is the futex to wait on. Busy time goes the other way, in `busy_ns` of the slots, and
 * so does activity: `submits` changes with every launch, and the agent, who looks at it now and
 * then, knows the time.
 *
 * Units: bytes, nanoseconds of CLOCK_BOOTTIME, milli-GPU. Integers are in the byte order of the
 * machine; both sides run on the same one. Fields that say _Atomic are the only ones that change
 * after the welcome.
 */
#ifndef ALLOT_SHARE_H
#define ALLOT_SHARE_H

#include <assert.h>
#include <stdint.h>

#define SHARE_MAGIC 0x616c7368u /* "alsh" */
#define SHARE_VERSION 1u

#define SHARE_FOLDER "/run/allot/gpu"           /* inside the sandbox, read-only */
#define SHARE_SOCKET SHARE_FOLDER "/agent"      /* of this task */
#define SHARE_DRIVER SHARE_FOLDER "/libcuda.so" /* the driver's own library */
#define SHARE_NVML SHARE_FOLDER "/libnvidia-ml.so" /* likewise, its management library */
#define SHARE_VERIFY SHARE_FOLDER "/verify"     /* a program that tries the limits */
#define SHARE_OPEN SHARE_FOLDER "/open"         /* is there where the driver may be used when no
                                                   agent answers */

#define SHARE_DEVICES 16 /* devices of a task */
#define SHARE_SLOTS 256  /* processes of a task that hold a device at one time */

#define SHARE_NO_LIMIT UINT64_MAX
#define SHARE_NO_SLICE UINT64_MAX

/* What is enforced, in share_limits.flags. */
enum {
    SHARE_MEMORY = 1u << 0,  /* allocations beyond memory_limit fail */
    SHARE_COMPUTE = 1u << 1, /* submissions wait for their slice */
    SHARE_CAP = 1u << 2      /* compute_milli is all there is, whoever else wants the device */
};

/* The agent's word on one device of the task. One cache line. */
struct share_device {
    uint8_t uuid[16];               /* as cuDeviceGetUuid says */
    uint64_t memory_limit;          /* bytes, or SHARE_NO_LIMIT */
    _Atomic uint64_t beyond;        /* bytes that the driver counts and no slot accounts for */
    uint64_t context_bytes;         /* charge for a context until the driver's figure is known */
    _Atomic uint64_t slice_end_ns;  /* submit until then, or SHARE_NO_SLICE */
    uint32_t compute_milli;         /* 1..1000 */
    _Atomic uint32_t slice_turn;    /* futex: grows with each grant */
    uint64_t reserved;
};

struct share_limits {
    uint32_t magic, version;
    uint32_t flags;
    uint32_t device_count;
    _Atomic uint32_t gate;       /* futex: 0 = open; else the task is suspended or about to be */
    _Atomic uint32_t slots_used; /* slots at and beyond this have never been taken */
    uint32_t reserved[10];
    struct share_device devices[SHARE_DEVICES];
};

/* Why a process could not be suspended now, in share_slot.obstacles. */
enum {
    SHARE_HAS_MANAGED = 1u << 0,  /* managed memory is in use */
    SHARE_HAS_IPC = 1u << 1,      /* memory is exported to or imported from another process */
    SHARE_HAS_MULTICAST = 1u << 2 /* multicast objects exist */
};

/* What one process holds of one device. One cache line, so that processes do not disturb others. */
struct share_held {
    _Atomic uint64_t held;    /* bytes that the driver has given */
    _Atomic uint64_t wanted;  /* bytes asked for and not settled yet */
    _Atomic uint64_t busy_ns; /* measured busy time since the process began */
    uint64_t reserved[5];
};

struct share_slot {
    _Atomic uint32_t taken;          /* set and cleared by the agent */
    _Atomic uint32_t obstacles;      /* SHARE_HAS_... */
    _Atomic uint64_t submits;        /* changes with each piece of work given to a device */
    _Atomic uint32_t outstanding;    /* devices on which submitted work may still run, a bit each */
    _Atomic uint32_t waiting;        /* devices on whose slice it waits, a bit each */
    uint64_t reserved[5];
    struct share_held devices[SHARE_DEVICES];
};

struct share_counters {
    uint32_t magic, version;
    uint32_t reserved[14];
    struct share_slot slots[SHARE_SLOTS];
};

enum share_message { SHARE_HELLO = 1, SHARE_WELCOME, SHARE_REFUSAL, SHARE_WAKE, SHARE_LOOK };

/* Process to agent. */
struct share_hello {
    uint32_t message; /* SHARE_HELLO or SHARE_LOOK; a later SHARE_WAKE has the same form */
    uint32_t version;
};

/* Agent to process, with the descriptors of limits and counters, in this order. */
struct share_welcome {
    uint32_t message; /* SHARE_WELCOME, or SHARE_REFUSAL (no descriptors) */
    uint32_t version;
    uint32_t slot; /* SHARE_SLOTS: none */
    int32_t error; /* of a refusal, a negative errno: -ENOSPC no slot, -EPROTO version */
};

static_assert(sizeof(struct share_device) == 64, "one cache line");
static_assert(sizeof(struct share_limits) == 64 + SHARE_DEVICES * 64, "layout");
static_assert(sizeof(struct share_held) == 64, "one cache line");
static_assert(sizeof(struct share_slot) == 64 + SHARE_DEVICES * 64, "layout");
static_assert(sizeof(struct share_counters) == 64 + SHARE_SLOTS * sizeof(struct share_slot),
              "layout");

#endif
