/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A simulated NVIDIA driver: `libcuda.so.1` and `libnvidia-ml.so.1` of our own, for tests.
 *
 * Why: sharing of GPUs must be shown to hold on machines without one, in seconds, with several
 * processes, deaths at any point and a clock that obeys the test. The double is a measuring
 * instrument: it says no more than what a program can see of a driver, and says that faithfully.
 *
 * Using it
 *
 *     cuda-double create gpus --devices 2 --memory 80GiB --mode timeslice
 *     export ALLOT_DOUBLE_FILE=$PWD/gpus LD_LIBRARY_PATH=build/tests/cuda
 *     program; nvidia-smi-like tools; as many processes as you like
 *     cuda-double show gpus
 *
 * Every process that names the same file sees the same devices. Without ALLOT_DOUBLE_FILE it is
 * the file of the simulated node that a task runs on; where there is none cuInit answers
 * CU_NO_DEVICE. The functions below do the same from C (link cuda_double_dep).
 *
 * Modes
 *   timeslice  processes take turns of `quantum_ns`; one whose work ends early gives way at once
 *   mps        kernels of all processes run together and share the SMs in proportion to demand;
 *              CUDA_MPS_ACTIVE_THREAD_PERCENTAGE caps the SMs of a process, as with a real server
 *   bench      no device behind the calls: work is done when it is submitted, handles are hardly
 *              looked at, nothing can be checkpointed. For measuring what stands in front of a
 *              driver: a launch costs about 5 ns, an alloc and free 50 (cuda-double-cost says)
 *
 * Clocks
 *   real       CLOCK_MONOTONIC
 *   virtual    starts at 1 s, moved by dbl_advance() or `cuda-double advance`. With dbl_actors(n)
 *              it moves by itself: as soon as n threads wait (in a synchronize, in a launch into a
 *              full queue, in dbl_sleep_until) it jumps to the earliest time any of them waits for.
 *              So a test of n threads, over any number of processes, is deterministic and fast:
 *              10 us of work cost about 1 us. An actor that ends says so (dbl_actor_leave).
 *              What stands in front of the driver and sleeps by itself finds the clock as
 *              allot_double_now_ns and allot_double_sleep_until_ns in libcuda.so.1.
 *
 * Kernels take time, and nothing else: no code is executed and device memory has no content.
 * cuModuleLoadData takes text; each line `kernel NAME DURATION SMS` defines a function:
 *     DURATION  nanoseconds alone on the device; or `param`: the first parameter, a uint64_t, says
 *     SMS       how many SMs it fills; or `grid`: as many as it has blocks, at most all
 * Any other image (PTX, cubin, fat binary) has every function anybody asks for, each taking
 * ALLOT_DOUBLE_KERNEL_NS (10,000 unless set) on as many SMs as it has blocks.
 *
 * Environment of a process: ALLOT_DOUBLE_FILE; ALLOT_DOUBLE_KERNEL_NS; CUDA_VISIBLE_DEVICES (a list
 * of ordinals or uuids); CUDA_MPS_ACTIVE_THREAD_PERCENTAGE; NVIDIA_VISIBLE_DEVICES (a list of
 * uuids: NVML sees no others, as in a container that has no files of other devices).
 *
 * What is simulated
 *  - all 637 symbols are exported; what is not simulated answers CU_NOT_SUPPORTED and is counted
 *    (dbl_unsimulated, `cuda-double show`). cuGetProcAddress, both versions, honours version and
 *    flags; `_ptsz` and `_ptds` symbols have addresses of their own.
 *  - contexts (a stack per thread, primary ones counted, each with its overhead in memory), modules
 *  - memory: linear, pitched, managed, pools, virtual memory, arrays, graph memory, host memory
 *  - streams, events, host functions, capture, graphs, cooperative launches; a stream takes 1,024
 *    launches, then the next one blocks
 *  - NVML: inventory, memory, utilisation of devices and of processes by sampling window and lag;
 *    under MPS all activity is that of the server, which pid 1 stands for; GPM where a device's
 *    name is that of a Hopper or later one: time and SMs, no warps; tensor cores and memory rest
 *  - the checkpoint interface, called from another process than its target. What is saved is
 *    taken as host memory by a thread of the target (--host-copies yes), at copy_bytes_per_s
 *  - fork: the child of a process that called cuInit gets CU_NOT_INITIALIZED, also after a bare
 *    clone(). exec: the new program starts afresh and the old one's memory is free.
 *  - the n-th call of a kind fails (dbl_fail_nth)
 *
 * Where it differs from a driver, knowingly
 *  - Small allocations are charged by 512 bytes; a driver takes 2 MiB blocks and divides them.
 *  - A pool grows by 32 MiB. Its used bytes fall when the free is called; the stream order shows
 *    only in what a synchronisation gives back to the device. Fragmentation is not simulated.
 *  - Managed memory lies on the host until it is prefetched or a kernel of its process runs; then
 *    all of it moves that fits, at `pagein_bytes_per_s`, and none is evicted again but by a
 *    prefetch to the host or a free.
 *  - Branches of a graph run one after the other. Conditional and event nodes, updates and
 *    clones of graphs are not simulated; a child graph must not allocate or free.
 *  - A restore that finds too little memory leaves the target CHECKPOINTED, to be tried again.
 *    Managed or shared memory, MPS and failures asked for by a test end it as FAILED.
 *  - Copies do not check their addresses. Pools and events of other processes, multicast, green
 *    contexts and external memory are not simulated.
 *  - Memory opened by an IPC handle stays usable when its owner frees it.
 *  - Entries older than CUDA 3.2, with 32-bit device addresses, are not simulated.
 *  - Stream priorities are stored and change nothing. Copies do not use SMs and run beside kernels.
 *  - A driver keeps the memory of a dead process while a fork of it lives; the double does not.
 *  - A time slice ends anywhere in a kernel, as on devices that preempt. A switch takes
 *    `switch_ns`.
 *  - The private tables of cuGetExportTable, which the CUDA runtime library needs, are not there:
 *    programs must use the driver interface.
 *  - The processes of one file must share a mount where POSIX record locks work. A process that
 *    closes all its descriptors is taken for dead.
 */
#ifndef ALLOT_TESTS_CUDA_DOUBLE_H
#define ALLOT_TESTS_CUDA_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DBL_DEVICES 16
#define DBL_FILE_ENV "ALLOT_DOUBLE_FILE"
#define DBL_FILE_DEFAULT "/run/allot/gpu/devices" /* where a task finds its node's devices */

enum dbl_mode { DBL_TIMESLICE, DBL_MPS, DBL_BENCH };
enum dbl_clock { DBL_CLOCK_REAL, DBL_CLOCK_VIRTUAL };

/* What device memory is held for. */
enum dbl_kind {
    DBL_CONTEXT,
    DBL_LINEAR, /* pitched too */
    DBL_MANAGED,
    DBL_POOL,
    DBL_VMM,
    DBL_ARRAY,
    DBL_GRAPH,
    DBL_MODULE,
    DBL_KINDS
};

/* Kinds of calls that can be made to fail. */
enum dbl_fail {
    DBL_FAIL_INIT,
    DBL_FAIL_CONTEXT,
    DBL_FAIL_ALLOC, /* linear, pitched, managed */
    DBL_FAIL_POOL,  /* allocations from pools */
    DBL_FAIL_VMM,   /* cuMemCreate */
    DBL_FAIL_MAP,
    DBL_FAIL_ARRAY,
    DBL_FAIL_HOST,
    DBL_FAIL_FREE, /* of any kind of device address */
    DBL_FAIL_LAUNCH,
    DBL_FAIL_GRAPH, /* launches of graphs */
    DBL_FAIL_COPY,
    DBL_FAIL_SYNC,
    DBL_FAIL_MODULE,
    DBL_FAIL_CHECKPOINT, /* cuCheckpointProcessCheckpoint and Restore */
    DBL_FAIL_NVML,
    DBL_FAILS
};

struct dbl_device_info {
    char name[64];
    uint8_t uuid[16];
    uint64_t memory;   /* bytes */
    uint64_t reserved; /* of them that the driver keeps */
    uint32_t sms;
    uint32_t major, minor; /* compute capability */
    uint32_t bus;          /* PCI */
};

struct dbl_config {
    uint32_t devices; /* 1..DBL_DEVICES */
    enum dbl_mode mode;
    enum dbl_clock clock;
    uint64_t memory, reserved; /* of each */
    uint32_t sms;
    uint64_t context_bytes;
    uint64_t quantum_ns, switch_ns;
    uint64_t window_ns, lag_ns;  /* of utilisation samples */
    uint64_t copy_bytes_per_s;   /* 0: copies take no time */
    uint64_t pagein_bytes_per_s; /* likewise */
    bool host_copies;            /* a checkpoint takes real memory of its target */
    char name[64];               /* of the devices */
};

struct dbl_shared;

/* A machine with one device of 80 GiB and 108 SMs, time slices of 2 ms, a real clock. */
extern const struct dbl_config dbl_config_default;

/* The file that this process is to use. */
const char *dbl_file(void);

/* Makes FILE, which must not exist. 0, -EINVAL for a bad config, or what the system says. */
int dbl_create(const char *file, const struct dbl_config *config);

/* Maps FILE, once for each process: ever the same answer. Never unmapped. -EBADF: not of ours. */
int dbl_open(const char *file, struct dbl_shared **ret_shared);

/* Describes device INDEX otherwise than the configuration does, before anybody uses it. */
void dbl_describe(struct dbl_shared *sh, uint32_t index, const struct dbl_device_info *info);

/* The configuration, and device INDEX. */
const struct dbl_config *dbl_config(struct dbl_shared *sh);
const struct dbl_device_info *dbl_info(struct dbl_shared *sh, uint32_t index);

/* Time of the devices. */
uint64_t dbl_now(struct dbl_shared *sh);

/* Moves the virtual clock on, event by event. */
void dbl_advance(struct dbl_shared *sh, uint64_t ns);

/* How many threads the virtual clock waits for before it moves by itself; 0: it does not. */
void dbl_actors(struct dbl_shared *sh, uint32_t count);

/* One actor less: it will not wait any more. */
void dbl_actor_leave(struct dbl_shared *sh);

/* Sleeps until the clock shows TIME_NS. Counts as waiting: what sleeps by the clock is an actor. */
void dbl_sleep_until(struct dbl_shared *sh, uint64_t time_ns);

/* Lets the NTH next call of KIND (1: the next one), by any process, fail with CODE, once. */
void dbl_fail_nth(struct dbl_shared *sh, enum dbl_fail kind, int64_t nth, int code);

/* Calls of KIND so far; not counted in bench mode. */
uint64_t dbl_calls(struct dbl_shared *sh, enum dbl_fail kind);

/* Bytes of KIND that all live processes hold of DEVICE; DBL_KINDS: of all kinds. */
uint64_t dbl_bytes(struct dbl_shared *sh, uint32_t device, enum dbl_kind kind);

/* The same of one process, by its pid as seen from here. 0 when there is none such. */
uint64_t dbl_process_bytes(struct dbl_shared *sh, int pid, uint32_t device, enum dbl_kind kind);

/* Time that kernels of PID (0: of anybody) were on DEVICE, up to now. */
uint64_t dbl_busy_ns(struct dbl_shared *sh, int pid, uint32_t device);

/* Live processes. */
uint32_t dbl_processes(struct dbl_shared *sh);

/* How often the symbol with INDEX in symbols.list was called, which is not simulated. */
uint64_t dbl_unsimulated(struct dbl_shared *sh, uint32_t index);

/* "GPU-" and the usual groups of hexadecimal digits; TEXT has 48 bytes. */
void dbl_uuid_text(const uint8_t uuid[16], char text[48]);

/* Names of modes and of kinds of failures; NULL beyond the last. */
const char *dbl_mode_name(int mode);
const char *dbl_fail_name(int kind);
const char *dbl_kind_name(int kind);

#endif
