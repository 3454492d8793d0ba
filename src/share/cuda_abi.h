/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the binary interface of the CUDA driver library looks like, in our own words.
 *
 * Neither the CUDA toolkit nor its headers are needed to build allot, and they would not do: their
 * macros name one version of each entry point, while a library that stands in front of the driver
 * meets all of them. Here are result codes, constants and structures as they lie in memory on
 * 64-bit Linux; "share/cuda_fns.h" has the type of each entry point, by symbol version.
 *
 * Only what the driver's clients can see is declared, and of that only what we use. Layouts are
 * asserted at the end: a structure that grows by a driver release is a new structure, never an
 * edit of these. Fields called `reserved` must be zero.
 *
 * Handles are pointers to objects of the driver that are never looked into. A stream of NULL is
 * the default stream: what it means depends on the entry point called (the `_ptsz` and `_ptds`
 * symbols: one per thread; the others: the legacy one, which waits for all blocking streams of
 * its context).
 *
 * Everything is plain data; the header has no functions and no state.
 */
#ifndef ALLOT_SHARE_CUDA_ABI_H
#define ALLOT_SHARE_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CU_VERSION_13_0 13000 /* 1000 * major + 10 * minor */

typedef int cu_result;
typedef int cu_device;      /* ordinal */
typedef uint64_t cu_devptr; /* device address */
typedef uint64_t cu_vmm;    /* handle of physical memory of the virtual memory interface */

enum cu_code {
    CU_OK = 0,
    CU_INVALID_VALUE = 1,
    CU_OUT_OF_MEMORY = 2,
    CU_NOT_INITIALIZED = 3,
    CU_DEINITIALIZED = 4,
    CU_NO_DEVICE = 100,
    CU_INVALID_DEVICE = 101,
    CU_INVALID_IMAGE = 200,
    CU_INVALID_CONTEXT = 201, /* also: the thread has no current context */
    CU_UNSUPPORTED_LIMIT = 215,
    CU_PEER_ACCESS_UNSUPPORTED = 217,
    CU_FILE_NOT_FOUND = 301,
    CU_OPERATING_SYSTEM = 304,
    CU_INVALID_HANDLE = 400,
    CU_ILLEGAL_STATE = 401,
    CU_NOT_FOUND = 500,
    CU_NOT_READY = 600,
    CU_ILLEGAL_ADDRESS = 700,
    CU_PEER_ACCESS_ALREADY_ENABLED = 704,
    CU_PEER_ACCESS_NOT_ENABLED = 705,
    CU_PRIMARY_CONTEXT_ACTIVE = 708,
    CU_CONTEXT_IS_DESTROYED = 709,
    CU_HOST_ALREADY_REGISTERED = 712,
    CU_HOST_NOT_REGISTERED = 713,
    CU_LAUNCH_FAILED = 719,
    CU_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CU_NOT_PERMITTED = 800,
    CU_NOT_SUPPORTED = 801,
    CU_SYSTEM_NOT_READY = 802,
    CU_MPS_CLIENT_TERMINATED = 810,
    CU_CAPTURE_UNSUPPORTED = 900,
    CU_CAPTURE_INVALIDATED = 901,
    CU_CAPTURE_MERGE = 902,
    CU_CAPTURE_UNMATCHED = 903,
    CU_CAPTURE_UNJOINED = 904,
    CU_CAPTURE_ISOLATION = 905,
    CU_CAPTURE_IMPLICIT = 906, /* the legacy stream was used while a blocking one captures */
    CU_CAPTURED_EVENT = 907,
    CU_CAPTURE_WRONG_THREAD = 908,
    CU_UNKNOWN = 999
};

/* Objects of the driver. */
struct cu_ctx;
struct cu_green_ctx;
struct cu_module;
struct cu_library;
struct cu_function;
struct cu_kernel;
struct cu_stream;
struct cu_event;
struct cu_graph;
struct cu_node;
struct cu_graph_exec;
struct cu_pool;
struct cu_array;
struct cu_mipmap;
struct cu_external_memory;

/* Streams that are no pointers. */
#define CU_STREAM_LEGACY ((struct cu_stream *)(uintptr_t)1)
#define CU_STREAM_PER_THREAD ((struct cu_stream *)(uintptr_t)2)

/* flags of cuGetProcAddress, and what its v2 says of the search */
enum {
    CU_PROC_DEFAULT = 0,
    CU_PROC_LEGACY_STREAM = 1,
    CU_PROC_PER_THREAD_STREAM = 2,
    CU_PROC_FOUND = 0,
    CU_PROC_SYMBOL_NOT_FOUND = 1,
    CU_PROC_VERSION_NOT_SUFFICIENT = 2
};

enum {
    CU_CTX_BLOCKING_SYNC = 0x04,
    CU_CTX_FLAGS_MASK = 0xff,
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_BLOCKING_SYNC = 1,
    CU_EVENT_NO_TIMING = 2,
    CU_EVENT_INTERPROCESS = 4,
    CU_EVENT_FLAGS_MASK = 7,
    CU_RECORD_EXTERNAL = 1,
    CU_HOST_PORTABLE = 1,
    CU_HOST_DEVICEMAP = 2,
    CU_HOST_WRITECOMBINED = 4,
    CU_HOST_FLAGS_MASK = 7,
    CU_HOST_REGISTER_MASK = 15,
    CU_ATTACH_GLOBAL = 1,
    CU_ATTACH_HOST = 2,
    CU_ATTACH_SINGLE = 4,
    CU_LIMIT_STACK_SIZE = 0,
    CU_LIMIT_PRINTF_FIFO_SIZE = 1,
    CU_LIMIT_MALLOC_HEAP_SIZE = 2,
    CU_LIMIT_COUNT = 10
};

/* of cuDeviceGetAttribute: those the double answers */
enum {
    CU_DEV_MAX_THREADS_PER_BLOCK = 1,
    CU_DEV_MAX_BLOCK_X = 2,
    CU_DEV_MAX_BLOCK_Y = 3,
    CU_DEV_MAX_BLOCK_Z = 4,
    CU_DEV_MAX_GRID_X = 5,
    CU_DEV_MAX_GRID_Y = 6,
    CU_DEV_MAX_GRID_Z = 7,
    CU_DEV_SHARED_PER_BLOCK = 8,
    CU_DEV_WARP_SIZE = 10,
    CU_DEV_CLOCK_KHZ = 13,
    CU_DEV_TEXTURE_ALIGNMENT = 14,
    CU_DEV_SM_COUNT = 16,
    CU_DEV_CONCURRENT_KERNELS = 31,
    CU_DEV_PCI_BUS = 33,
    CU_DEV_PCI_DEVICE = 34,
    CU_DEV_MAX_THREADS_PER_SM = 39,
    CU_DEV_ASYNC_ENGINES = 40,
    CU_DEV_UNIFIED_ADDRESSING = 41,
    CU_DEV_PCI_DOMAIN = 50,
    CU_DEV_CAPABILITY_MAJOR = 75,
    CU_DEV_CAPABILITY_MINOR = 76,
    CU_DEV_STREAM_PRIORITIES = 78,
    CU_DEV_MANAGED_MEMORY = 83,
    CU_DEV_CONCURRENT_MANAGED = 89,
    CU_DEV_PREEMPTION = 90,
    CU_DEV_COOPERATIVE_LAUNCH = 95,
    CU_DEV_VMM_SUPPORTED = 102,
    CU_DEV_HANDLE_POSIX_FD = 103,
    CU_DEV_MAX_BLOCKS_PER_SM = 106,
    CU_DEV_POOLS_SUPPORTED = 115,
    CU_DEV_POOL_HANDLE_TYPES = 119,
    CU_DEV_IPC_EVENTS = 125,
    CU_DEV_MULTICAST = 132,
    CU_DEV_MPS_ENABLED = 133,
    CU_DEV_ATTRIBUTE_MAX = 148
};

/* of cuPointerGetAttribute; memory types */
enum {
    CU_PTR_CONTEXT = 1,
    CU_PTR_MEMORY_TYPE = 2,
    CU_PTR_DEVICE_POINTER = 3,
    CU_PTR_HOST_POINTER = 4,
    CU_PTR_IS_MANAGED = 8,
    CU_PTR_DEVICE_ORDINAL = 9,
    CU_PTR_RANGE_START = 11,
    CU_PTR_RANGE_SIZE = 12,
    CU_PTR_MAPPED = 13,
    CU_PTR_POOL = 17,
    CU_MEMORY_HOST = 1,
    CU_MEMORY_DEVICE = 2,
    CU_MEMORY_ARRAY = 3,
    CU_MEMORY_UNIFIED = 4
};

/* of pools, and of a device's graph memory */
enum {
    CU_POOL_REUSE_EVENTS = 1,
    CU_POOL_REUSE_OPPORTUNISTIC = 2,
    CU_POOL_REUSE_INTERNAL = 3,
    CU_POOL_RELEASE_THRESHOLD = 4, /* from here on 64-bit values; those above are int */
    CU_POOL_RESERVED_CURRENT = 5,
    CU_POOL_RESERVED_HIGH = 6, /* set to 0 to begin anew; so the other one */
    CU_POOL_USED_CURRENT = 7,
    CU_POOL_USED_HIGH = 8,
    CU_GRAPH_MEM_USED_CURRENT = 0,
    CU_GRAPH_MEM_USED_HIGH = 1,
    CU_GRAPH_MEM_RESERVED_CURRENT = 2,
    CU_GRAPH_MEM_RESERVED_HIGH = 3
};

/* of cuMemCreate and pools */
enum {
    CU_LOCATION_DEVICE = 1,
    CU_LOCATION_HOST = 2,
    CU_ALLOCATION_PINNED = 1,
    CU_ALLOCATION_MANAGED = 2,
    CU_HANDLE_NONE = 0,
    CU_HANDLE_POSIX_FD = 1,
    CU_HANDLE_FABRIC = 8,
    CU_ACCESS_NONE = 0,
    CU_ACCESS_READ = 1,
    CU_ACCESS_READWRITE = 3,
    CU_GRANULARITY_MINIMUM = 0,
    CU_GRANULARITY_RECOMMENDED = 1
};

/* graphs and capture */
enum {
    CU_NODE_KERNEL = 0,
    CU_NODE_MEMCPY = 1,
    CU_NODE_MEMSET = 2,
    CU_NODE_HOST = 3,
    CU_NODE_GRAPH = 4,
    CU_NODE_EMPTY = 5,
    CU_NODE_WAIT_EVENT = 6,
    CU_NODE_EVENT_RECORD = 7,
    CU_NODE_MEM_ALLOC = 10,
    CU_NODE_MEM_FREE = 11,
    CU_CAPTURE_NONE = 0,
    CU_CAPTURE_ACTIVE = 1,
    CU_CAPTURE_INVALID = 2,
    CU_CAPTURE_GLOBAL = 0,
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_CAPTURE_RELAXED = 2,
    CU_INSTANTIATE_AUTO_FREE = 1,
    CU_INSTANTIATE_UPLOAD = 2,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_PRIORITY = 8
};

/* states of a process that is checkpointed */
enum {
    CU_PROCESS_RUNNING = 0,
    CU_PROCESS_LOCKED = 1,
    CU_PROCESS_CHECKPOINTED = 2,
    CU_PROCESS_FAILED = 3
};

/* formats of array elements */
enum {
    CU_FORMAT_U8 = 0x01,
    CU_FORMAT_U16 = 0x02,
    CU_FORMAT_U32 = 0x03,
    CU_FORMAT_S8 = 0x08,
    CU_FORMAT_S16 = 0x09,
    CU_FORMAT_S32 = 0x0a,
    CU_FORMAT_HALF = 0x10,
    CU_FORMAT_FLOAT = 0x20
};

struct cu_uuid {
    uint8_t bytes[16];
};

struct cu_ipc_mem {
    uint8_t reserved[64];
};

struct cu_ipc_event {
    uint8_t reserved[64];
};

struct cu_location {
    int type; /* CU_LOCATION_... */
    int id;   /* ordinal */
};

struct cu_access {
    struct cu_location location;
    int flags; /* CU_ACCESS_... */
};

struct cu_pool_props {
    int type; /* CU_ALLOCATION_PINNED */
    int handle_types;
    struct cu_location location;
    void *win32;
    uint64_t max_bytes; /* 0: as much as the device has. Read by 12.2 and later */
    uint16_t usage;
    uint8_t reserved[54];
};

struct cu_alloc_prop {
    int type;
    int handle_types;
    struct cu_location location;
    void *win32;
    uint8_t compression;
    uint8_t rdma;
    uint16_t usage;
    uint8_t reserved[4];
};

struct cu_array_desc {
    uint64_t width, height; /* elements; height 0: one-dimensional */
    int format;
    unsigned channels; /* 1, 2 or 4 */
};

struct cu_array3d_desc {
    uint64_t width, height, depth;
    int format;
    unsigned channels;
    unsigned flags;
};

struct cu_array_need {
    uint64_t bytes, alignment;
    unsigned reserved[4];
};

struct cu_copy2d {
    uint64_t src_x_bytes, src_y;
    int src_type;
    const void *src_host;
    cu_devptr src_device;
    struct cu_array *src_array;
    uint64_t src_pitch;
    uint64_t dst_x_bytes, dst_y;
    int dst_type;
    void *dst_host;
    cu_devptr dst_device;
    struct cu_array *dst_array;
    uint64_t dst_pitch;
    uint64_t width_bytes, height;
};

struct cu_copy3d {
    uint64_t src_x_bytes, src_y, src_z, src_lod;
    int src_type;
    const void *src_host;
    cu_devptr src_device;
    struct cu_array *src_array;
    void *reserved0; /* a context in the variant between peers */
    uint64_t src_pitch, src_height;
    uint64_t dst_x_bytes, dst_y, dst_z, dst_lod;
    int dst_type;
    void *dst_host;
    cu_devptr dst_device;
    struct cu_array *dst_array;
    void *reserved1;
    uint64_t dst_pitch, dst_height;
    uint64_t width_bytes, height, depth;
};

struct cu_launch_attribute {
    int id; /* CU_LAUNCH_ATTRIBUTE_... */
    int pad;
    union {
        int cooperative;
        int priority;
        uint8_t bytes[64];
    } value;
};

struct cu_launch_config {
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    struct cu_stream *stream;
    struct cu_launch_attribute *attributes;
    unsigned attribute_count;
};

struct cu_multi_launch { /* of cuLaunchCooperativeKernelMultiDevice */
    struct cu_function *function;
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    struct cu_stream *stream;
    void **params;
};

struct cu_ctx_create_params { /* of cuCtxCreate_v4 */
    void *affinity;
    int affinity_count;
    void *cig;
};

typedef void cu_host_fn(void *data);
typedef void cu_stream_callback(struct cu_stream *stream, cu_result status, void *data);

struct cu_kernel_node { /* v1 ends before `kernel` */
    struct cu_function *function;
    unsigned grid_x, grid_y, grid_z;
    unsigned block_x, block_y, block_z;
    unsigned shared_bytes;
    void **params;
    void **extra;
    struct cu_kernel *kernel;
    struct cu_ctx *ctx;
};

struct cu_memset_node {
    cu_devptr dst;
    uint64_t pitch;
    unsigned value;
    unsigned element_bytes;
    uint64_t width, height;
};

struct cu_host_node {
    cu_host_fn *fn;
    void *data;
};

struct cu_alloc_node {
    struct cu_pool_props props;
    const struct cu_access *access;
    uint64_t access_count;
    uint64_t bytes;
    cu_devptr ret_ptr; /* written when the node is added */
};

struct cu_edge {
    uint8_t from_port, to_port, type, reserved[5];
};

struct cu_node_params { /* of cuGraphAddNode, both versions */
    int type;           /* CU_NODE_... */
    int reserved0[3];
    union {
        int64_t reserved1[29];
        struct cu_kernel_node kernel;
        struct cu_memset_node memset;
        struct cu_host_node host;
        struct {
            int flags;
            int reserved;
            struct cu_ctx *ctx;
            struct cu_copy3d copy;
        } memcpy;
        struct {
            struct cu_graph *graph;
        } child;
        struct {
            struct cu_event *event;
        } event; /* of both kinds */
        struct cu_alloc_node alloc;
        struct {
            cu_devptr ptr;
        } free;
    };
    int64_t reserved2;
};

struct cu_instantiate_params {
    uint64_t flags;
    struct cu_stream *upload_stream;
    struct cu_node *ret_error_node;
    int ret_result;
};

struct cu_checkpoint_lock {
    unsigned timeout_ms; /* 0: waits for ever */
    unsigned reserved0;
    uint64_t reserved1[7];
};

struct cu_checkpoint_save {
    uint64_t reserved[8];
};

struct cu_checkpoint_pair {
    struct cu_uuid old_uuid, new_uuid;
};

struct cu_checkpoint_restore {
    struct cu_checkpoint_pair *pairs;
    unsigned pair_count;
    uint8_t reserved[44];
    uint64_t reserved1;
};

struct cu_checkpoint_unlock {
    uint64_t reserved[8];
};

_Static_assert(sizeof(void *) == 8, "the layouts are those of a 64-bit system");
_Static_assert(sizeof(struct cu_pool_props) == 88, "ABI");
_Static_assert(offsetof(struct cu_pool_props, max_bytes) == 24, "ABI");
_Static_assert(sizeof(struct cu_alloc_prop) == 32, "ABI");
_Static_assert(sizeof(struct cu_access) == 12, "ABI");
_Static_assert(sizeof(struct cu_array_desc) == 24, "ABI");
_Static_assert(sizeof(struct cu_array3d_desc) == 40, "ABI");
_Static_assert(sizeof(struct cu_array_need) == 32, "ABI");
_Static_assert(sizeof(struct cu_copy2d) == 128, "ABI");
_Static_assert(sizeof(struct cu_copy3d) == 200, "ABI");
_Static_assert(sizeof(struct cu_launch_attribute) == 72, "ABI");
_Static_assert(sizeof(struct cu_launch_config) == 56, "ABI");
_Static_assert(offsetof(struct cu_launch_config, stream) == 32, "ABI");
_Static_assert(sizeof(struct cu_multi_launch) == 56, "ABI");
_Static_assert(sizeof(struct cu_ctx_create_params) == 24, "ABI");
_Static_assert(sizeof(struct cu_kernel_node) == 72, "ABI");
_Static_assert(offsetof(struct cu_kernel_node, kernel) == 56, "ABI");
_Static_assert(sizeof(struct cu_memset_node) == 40, "ABI");
_Static_assert(sizeof(struct cu_alloc_node) == 120, "ABI");
_Static_assert(sizeof(struct cu_node_params) == 256, "ABI");
_Static_assert(offsetof(struct cu_node_params, kernel) == 16, "ABI");
_Static_assert(sizeof(struct cu_instantiate_params) == 32, "ABI");
_Static_assert(sizeof(struct cu_checkpoint_lock) == 64, "ABI");
_Static_assert(sizeof(struct cu_checkpoint_save) == 64, "ABI");
_Static_assert(sizeof(struct cu_checkpoint_restore) == 64, "ABI");
_Static_assert(offsetof(struct cu_checkpoint_restore, reserved1) == 56, "ABI");
_Static_assert(sizeof(struct cu_checkpoint_unlock) == 64, "ABI");
_Static_assert(sizeof(struct cu_uuid) == 16 && sizeof(struct cu_ipc_mem) == 64, "ABI");

#endif
