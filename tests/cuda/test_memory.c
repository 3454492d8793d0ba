/* SPDX-License-Identifier: Apache-2.0 */
/* Memory: each allocator's rules, one case each, and what they charge to the device. */
#include <string.h>

#include "harness.h"

static const struct dbl_config small = {
    .devices = 2,
    .memory = GIB,
    .sms = 108,
    .context_bytes = 64 * MIB,
    .quantum_ns = 2 * MS_NS,
    .window_ns = 166 * MS_NS,
    .clock = DBL_CLOCK_VIRTUAL,
    .name = "Simulated small device",
};

#define CASE(name)                        \
    static void test_##name(void **state) \
    {                                     \
        on_machine(name, &small);         \
    }

static size_t free_bytes(void)
{
    size_t free, total;

    OK(cuMemGetInfo_v2(&free, &total));
    SAME(total, GIB);
    return free;
}

static void linear(struct dbl_shared *sh)
{
    cu_devptr a, b, base;
    size_t bytes, before, pitch;

    SAME(cuMemAlloc_v2(&a, 512), CU_NOT_INITIALIZED);
    OK(cuInit(0));
    SAME(cuMemAlloc_v2(&a, 512), CU_INVALID_CONTEXT);
    begin_on(0);
    before = free_bytes();
    SAME(before, GIB - 64 * MIB);
    SAME(cuMemAlloc_v2(&a, 0), CU_INVALID_VALUE);
    SAME(cuMemAlloc_v2(NULL, 8), CU_INVALID_VALUE);
    OK(cuMemAlloc_v2(&a, 1000));
    SAME(before - free_bytes(), 1024);
    OK(cuMemAlloc_v2(&b, 100 * MIB));
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), 100 * MIB + 1024);
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 0);
    OK(cuMemGetAddressRange_v2(&base, &bytes, b + 5 * MIB));
    SAME(base, b);
    SAME(bytes, 100 * MIB);
    SAME(cuMemGetAddressRange_v2(&base, &bytes, b + 100 * MIB), CU_NOT_FOUND);
    SAME(cuMemFree_v2(b + 512), CU_INVALID_VALUE);
    OK(cuMemFree_v2(b));
    SAME(cuMemFree_v2(b), CU_INVALID_VALUE);
    OK(cuMemFree_v2(0));
    OK(cuMemFree_v2(a));
    SAME(free_bytes(), before);
    SAME(cuMemAlloc_v2(&a, before + 1), CU_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&a, before));
    SAME(free_bytes(), 0);
    OK(cuMemFree_v2(a));
    OK(cuMemAllocPitch_v2(&a, &pitch, 1000, 100, 4));
    SAME(pitch, 1024);
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), 102400);
    SAME(cuMemAllocPitch_v2(&b, &pitch, 1000, 100, 3), CU_INVALID_VALUE);
    SAME(cuMemAllocPitch_v2(&b, &pitch, SIZE_MAX / 2, 100, 4), CU_INVALID_VALUE);
}

static void contexts(struct dbl_shared *sh)
{
    struct cu_ctx *primary, *again, *other, *top;
    cu_device device;
    unsigned flags, version;
    int active;
    cu_devptr ptr;

    OK(cuInit(0));
    SAME(cuCtxGetDevice(&device), CU_INVALID_CONTEXT);
    OK(cuDevicePrimaryCtxGetState(1, &flags, &active));
    SAME(active, 0);
    OK(cuDevicePrimaryCtxRetain(&primary, 1));
    OK(cuDevicePrimaryCtxRetain(&again, 1));
    CHECK(primary == again);
    SAME(dbl_bytes(sh, 1, DBL_CONTEXT), 64 * MIB);
    OK(cuCtxCreate_v4(&other, NULL, 0, 1));
    SAME(dbl_bytes(sh, 1, DBL_CONTEXT), 128 * MIB);
    OK(cuCtxGetDevice(&device));
    SAME(device, 1);
    OK(cuCtxGetApiVersion(other, &version));
    SAME(version, 12050);
    OK(cuMemAlloc_v2(&ptr, MIB));
    OK(cuCtxPushCurrent_v2(primary));
    OK(cuCtxPopCurrent_v2(&top));
    CHECK(top == primary);
    SAME(cuCtxDestroy_v2(primary), CU_INVALID_CONTEXT);
    OK(cuCtxDestroy_v2(other));
    SAME(cuCtxGetDevice(&device), CU_INVALID_CONTEXT);
    SAME(cuCtxDestroy_v2(other), CU_CONTEXT_IS_DESTROYED);
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 64 * MIB);
    OK(cuCtxSetCurrent(primary));
    OK(cuMemAlloc_v2(&ptr, MIB));
    OK(cuDevicePrimaryCtxRelease_v2(1));
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 65 * MIB);
    OK(cuDevicePrimaryCtxRelease_v2(1));
    SAME(dbl_bytes(sh, 1, DBL_KINDS), 0);
    SAME(cuMemAlloc_v2(&ptr, MIB), CU_CONTEXT_IS_DESTROYED);
    SAME(cuDevicePrimaryCtxRelease_v2(1), CU_INVALID_CONTEXT);
    SAME(cuDevicePrimaryCtxRetain(&primary, 2), CU_INVALID_DEVICE);
}

static uint64_t pool_number(struct cu_pool *pool, int attribute)
{
    uint64_t value;

    OK(cuMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void pools(struct dbl_shared *sh)
{
    struct cu_pool *pool, *own;
    struct cu_pool_props props = {
        .type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}, .max_bytes = 48 * MIB};
    cu_devptr a, b, c;
    uint64_t zero = 0, keep = 64 * MIB;

    begin_on(0);
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    OK(cuMemAllocAsync(&a, MIB, NULL));
    SAME(dbl_bytes(sh, 0, DBL_POOL), 32 * MIB);
    SAME(pool_number(pool, CU_POOL_USED_CURRENT), MIB);
    OK(cuMemAllocAsync(&b, 40 * MIB, NULL));
    SAME(pool_number(pool, CU_POOL_RESERVED_CURRENT), 64 * MIB);
    /* Any free takes any pointer. */
    OK(cuMemFree_v2(b));
    SAME(pool_number(pool, CU_POOL_RESERVED_CURRENT), 64 * MIB);
    OK(cuStreamSynchronize(NULL));
    SAME(dbl_bytes(sh, 0, DBL_POOL), 32 * MIB);
    SAME(pool_number(pool, CU_POOL_RESERVED_HIGH), 64 * MIB);
    OK(cuMemPoolSetAttribute(pool, CU_POOL_RESERVED_HIGH, &zero));
    SAME(pool_number(pool, CU_POOL_RESERVED_HIGH), 32 * MIB);
    OK(cuMemAlloc_v2(&c, 3 * MIB));
    OK(cuMemFreeAsync(c, NULL));
    SAME(cuMemFreeAsync(c, NULL), CU_INVALID_VALUE);
    SAME(dbl_bytes(sh, 0, DBL_LINEAR), 0);
    OK(cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &keep));
    OK(cuMemAllocAsync(&b, 100 * MIB, NULL));
    OK(cuMemFreeAsync(b, NULL));
    OK(cuCtxSynchronize());
    SAME(dbl_bytes(sh, 0, DBL_POOL), 64 * MIB);
    OK(cuMemPoolTrimTo(pool, 0));
    SAME(dbl_bytes(sh, 0, DBL_POOL), 32 * MIB);
    OK(cuMemPoolCreate(&own, &props));
    OK(cuMemAllocFromPoolAsync(&b, 40 * MIB, own, NULL));
    SAME(pool_number(own, CU_POOL_RESERVED_CURRENT), 48 * MIB);
    SAME(cuMemAllocFromPoolAsync(&c, 9 * MIB, own, NULL), CU_OUT_OF_MEMORY);
    OK(cuDeviceSetMemPool(0, own));
    OK(cuMemAllocAsync(&c, 8 * MIB, NULL));
    SAME(pool_number(own, CU_POOL_USED_CURRENT), 48 * MIB);
    OK(cuMemPoolDestroy(own));
    SAME(dbl_bytes(sh, 0, DBL_POOL), 80 * MIB);
    OK(cuMemFreeAsync(b, NULL));
    OK(cuMemFreeAsync(c, NULL));
    SAME(dbl_bytes(sh, 0, DBL_POOL), 32 * MIB);
    SAME(cuMemPoolDestroy(pool), CU_INVALID_VALUE);
    OK(cuMemFreeAsync(a, NULL));
}

static void virtual_memory(struct dbl_shared *sh)
{
    struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 1}};
    struct cu_access access = {{CU_LOCATION_DEVICE, 1}, CU_ACCESS_READWRITE};
    cu_devptr range, base;
    cu_vmm one, two, same;
    uint64_t flags;
    size_t bytes;

    /* No context is needed for any of it. */
    OK(cuInit(0));
    OK(cuMemGetAllocationGranularity(&bytes, &prop, CU_GRANULARITY_MINIMUM));
    SAME(bytes, 2 * MIB);
    SAME(cuMemCreate(&one, 3 * MIB, &prop, 0), CU_INVALID_VALUE);
    OK(cuMemCreate(&one, 4 * MIB, &prop, 0));
    OK(cuMemCreate(&two, 2 * MIB, &prop, 0));
    SAME(dbl_bytes(sh, 1, DBL_VMM), 6 * MIB);
    OK(cuMemAddressReserve(&range, 16 * MIB, 0, 0, 0));
    SAME(cuMemMap(range + MIB, 4 * MIB, 0, one, 0), CU_INVALID_VALUE);
    OK(cuMemMap(range, 4 * MIB, 0, one, 0));
    SAME(cuMemMap(range + 2 * MIB, 2 * MIB, 0, two, 0), CU_INVALID_VALUE);
    SAME(cuMemMap(range + 14 * MIB, 4 * MIB, 0, one, 0), CU_INVALID_VALUE);
    OK(cuMemMap(range + 4 * MIB, 2 * MIB, 0, two, 0));
    OK(cuMemMap(range + 8 * MIB, 4 * MIB, 0, one, 0));
    SAME(cuMemSetAccess(range, 2 * MIB, &access, 1), CU_INVALID_VALUE);
    OK(cuMemSetAccess(range, 6 * MIB, &access, 1));
    OK(cuMemGetAccess(&flags, &access.location, range + 5 * MIB));
    SAME(flags, CU_ACCESS_READWRITE);
    OK(cuMemGetAddressRange_v2(&base, &bytes, range + 3 * MIB));
    SAME(bytes, 4 * MIB);
    SAME(cuMemFree_v2(range), CU_INVALID_CONTEXT);
    /* A released handle's memory stays while it is mapped anywhere. */
    OK(cuMemRelease(one));
    SAME(cuMemRelease(one), CU_INVALID_VALUE);
    SAME(dbl_bytes(sh, 1, DBL_VMM), 6 * MIB);
    OK(cuMemRetainAllocationHandle(&same, (void *)(uintptr_t)(range + MIB))); /* NOLINT */
    SAME(same, one);
    OK(cuMemUnmap(range, 6 * MIB));
    SAME(dbl_bytes(sh, 1, DBL_VMM), 6 * MIB);
    SAME(cuMemAddressFree(range, 16 * MIB), CU_INVALID_VALUE);
    OK(cuMemUnmap(range + 8 * MIB, 4 * MIB));
    SAME(cuMemUnmap(range + 8 * MIB, 4 * MIB), CU_INVALID_VALUE);
    OK(cuMemRelease(same));
    SAME(dbl_bytes(sh, 1, DBL_VMM), 2 * MIB);
    OK(cuMemRelease(two));
    SAME(dbl_bytes(sh, 1, DBL_VMM), 0);
    OK(cuMemAddressFree(range, 16 * MIB));
    SAME(cuMemAddressFree(range, 16 * MIB), CU_INVALID_VALUE);
}

static void arrays(struct dbl_shared *sh)
{
    struct cu_array_desc flat = {1000, 100, CU_FORMAT_FLOAT, 4};
    struct cu_array3d_desc deep = {100, 100, 10, CU_FORMAT_U8, 1, 0};
    struct cu_array_need need;
    struct cu_array *a, *b, *level;
    struct cu_mipmap *mipmap;

    begin_on(0);
    OK(cuArrayCreate_v2(&a, &flat));
    OK(cuArrayGetMemoryRequirements(&need, a, 0));
    SAME(need.bytes, (16384 * 100 + 65535) / 65536 * 65536);
    SAME(dbl_bytes(sh, 0, DBL_ARRAY), need.bytes);
    OK(cuArray3DCreate_v2(&b, &deep));
    OK(cuArrayDestroy(a));
    OK(cuArrayGetMemoryRequirements(&need, b, 0));
    SAME(dbl_bytes(sh, 0, DBL_ARRAY), need.bytes);
    OK(cuMipmappedArrayCreate(&mipmap, &deep, 3));
    OK(cuMipmappedArrayGetLevel(&level, mipmap, 2));
    SAME(cuArrayDestroy(level), CU_INVALID_HANDLE);
    OK(cuMipmappedArrayGetMemoryRequirements(&need, mipmap, 0));
    OK(cuArrayDestroy(b));
    SAME(dbl_bytes(sh, 0, DBL_ARRAY), need.bytes);
    OK(cuMipmappedArrayDestroy(mipmap));
    SAME(dbl_bytes(sh, 0, DBL_ARRAY), 0);
    flat.channels = 3;
    SAME(cuArrayCreate_v2(&a, &flat), CU_INVALID_VALUE);
    flat = (struct cu_array_desc){UINT64_C(1) << 35, 1 << 20, CU_FORMAT_FLOAT, 4};
    SAME(cuArrayCreate_v2(&a, &flat), CU_INVALID_VALUE);
    OK(cuArray3DCreate_v2(&b, &deep));
    OK(cuDevicePrimaryCtxReset_v2(0));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
}

static void managed(struct dbl_shared *sh)
{
    struct cu_location host = {CU_LOCATION_HOST, 0};
    struct cu_function *kernel;
    cu_devptr a, b, base;
    unsigned is_managed;
    size_t bytes;
    char *memory;

    begin_on(0);
    OK(cuMemAllocManaged(&a, 256 * MIB, CU_ATTACH_GLOBAL));
    memory = (char *)(uintptr_t)a; /* NOLINT */
    memory[0] = 1;
    SAME(dbl_bytes(sh, 0, DBL_MANAGED), 0);
    OK(cuMemGetAddressRange_v2(&base, &bytes, a + 5));
    SAME(base, a);
    OK(cuPointerGetAttribute(&is_managed, CU_PTR_IS_MANAGED, a));
    SAME(is_managed, 1);
    OK(cuMemPrefetchAsync(a, MIB, 0, NULL));
    SAME(dbl_bytes(sh, 0, DBL_MANAGED), 256 * MIB);
    OK(cuMemPrefetchAsync_v2(a, MIB, host, 0, NULL));
    SAME(dbl_bytes(sh, 0, DBL_MANAGED), 0);
    kernel = kernel_of(1000, "1");
    OK(launch_in(kernel, NULL));
    SAME(dbl_bytes(sh, 0, DBL_MANAGED), 256 * MIB);
    /* More than there is: what does not fit stays on the host. */
    OK(cuMemAllocManaged(&b, 2 * GIB, CU_ATTACH_GLOBAL));
    OK(launch_in(kernel, NULL));
    CHECK(dbl_bytes(sh, 0, DBL_MANAGED) > 512 * MIB);
    CHECK(dbl_bytes(sh, 0, DBL_KINDS) <= GIB);
    dbl_advance(sh, MS_NS);
    OK(cuMemFree_v2(b));
    SAME(dbl_bytes(sh, 0, DBL_MANAGED), 256 * MIB);
    OK(cuMemPrefetchAsync_v2(a, MIB, host, 0, NULL));
}

static void host_memory(struct dbl_shared *sh)
{
    static char buffer[8192];
    void *pinned;
    cu_devptr seen;
    unsigned flags, type;

    begin_on(0);
    OK(cuMemHostAlloc(&pinned, 8192, CU_HOST_PORTABLE));
    OK(cuMemHostGetFlags(&flags, pinned));
    SAME(flags, CU_HOST_PORTABLE);
    OK(cuMemHostGetDevicePointer_v2(&seen, pinned, 0));
    OK(cuPointerGetAttribute(&type, CU_PTR_MEMORY_TYPE, seen));
    SAME(type, CU_MEMORY_HOST);
    memset(pinned, 1, 8192);
    SAME(cuMemHostUnregister(pinned), CU_HOST_NOT_REGISTERED);
    OK(cuMemFreeHost(pinned));
    SAME(cuMemFreeHost(pinned), CU_INVALID_VALUE);
    OK(cuMemHostRegister_v2(buffer, sizeof(buffer), 0));
    SAME(cuMemHostRegister_v2(buffer + 100, 8, 0), CU_HOST_ALREADY_REGISTERED);
    OK(cuMemHostUnregister(buffer));
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 64 * MIB);
}

static void injected(struct dbl_shared *sh)
{
    cu_devptr ptr;

    begin_on(0);
    dbl_fail_nth(sh, DBL_FAIL_ALLOC, 3, CU_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&ptr, 8));
    OK(cuMemAlloc_v2(&ptr, 8));
    SAME(cuMemAlloc_v2(&ptr, 8), CU_OUT_OF_MEMORY);
    OK(cuMemAlloc_v2(&ptr, 8));
    SAME(dbl_calls(sh, DBL_FAIL_ALLOC), 4);
    dbl_fail_nth(sh, DBL_FAIL_FREE, 1, CU_LAUNCH_FAILED);
    SAME(cuMemFree_v2(ptr), CU_LAUNCH_FAILED);
    OK(cuMemFree_v2(ptr));
}

CASE(linear)
CASE(contexts)
CASE(pools)
CASE(virtual_memory)
CASE(arrays)
CASE(managed)
CASE(host_memory)
CASE(injected)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear),      cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_pools),       cmocka_unit_test(test_virtual_memory),
        cmocka_unit_test(test_arrays),      cmocka_unit_test(test_managed),
        cmocka_unit_test(test_host_memory), cmocka_unit_test(test_injected),
    };

    return cmocka_run_group_tests_name("cuda memory", tests, NULL, NULL);
}
