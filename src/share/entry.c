/* SPDX-License-Identifier: Apache-2.0 */
/* How programs come in: cuInit, and the look-up of everything else. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "share/hooks.h"
#include "share/place.h"
#include "share/shim.h"

#define ORDINALS 64
#define UNKNOWN (-2)

/* R is why this process has no link to the agent. */
static void tell(int r)
{
    static const char *const end = "the driver is not usable without its word";

    if (r == -ENOENT || r == -ECONNREFUSED)
        fprintf(stderr, "allot: this GPU is shared, and there is no agent at '%s'; %s\n",
                share_place_socket(), end);
    else if (r == -ETIMEDOUT)
        fprintf(stderr, "allot: this GPU is shared, and its agent does not answer; %s\n", end);
    else if (r == -ENOSPC)
        fprintf(stderr, "allot: more than %d processes of this task use its GPUs; end some\n",
                SHARE_SLOTS);
    else
        fprintf(stderr, "allot: this GPU is shared, and its limits cannot be read: %s; %s\n",
                strerror(-r), end);
}

cu_result hook_cuInit(unsigned flags)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;
    int r = share_forbidden();

    if (r == 0)
        return REAL(cuInit)(flags);
    if (!atomic_flag_test_and_set(&told))
        tell(r);
    return CU_NOT_PERMITTED;
}

/*
 * The driver decides what a name, a version and flags mean, and whether there is such a function;
 * only then the function that it answered is exchanged for what stands in front of it.
 */
cu_result hook_cuGetProcAddress_v2(const char *name, void **ret_fn, int version, uint64_t flags,
                                   int *ret_status)
{
    cu_result r = REAL(cuGetProcAddress_v2)(name, ret_fn, version, flags, ret_status);

    if (r == CU_OK && ret_fn && *ret_fn)
        *ret_fn = share_before(*ret_fn);
    return r;
}

cu_result hook_cuGetProcAddress(const char *name, void **ret_fn, int version, uint64_t flags)
{
    cu_result r = REAL(cuGetProcAddress)(name, ret_fn, version, flags);

    if (r == CU_OK && ret_fn && *ret_fn)
        *ret_fn = share_before(*ret_fn);
    return r;
}

static int find_device(const struct share_limits *limits, cu_device device)
{
    struct cu_uuid uuid;
    cu_result r = share_real(SYM_cuDeviceGetUuid_v2) ? REAL(cuDeviceGetUuid_v2)(&uuid, device)
                                                     : REAL(cuDeviceGetUuid)(&uuid, device);

    if (r != CU_OK)
        return UNKNOWN;
    for (uint32_t i = 0; i < limits->device_count; i++)
        if (memcmp(limits->devices[i].uuid, uuid.bytes, sizeof uuid.bytes) == 0)
            return (int)i;
    return -1;
}

int share_device(cu_device device)
{
    static _Atomic int8_t known[ORDINALS]; /* 0: not looked for yet; else index + 2 */
    const struct share_ledger *ledger = share_link();
    int index;

    if (ledger == NULL || device < 0 || device >= ORDINALS)
        return -1;
    index = atomic_load_explicit(&known[device], memory_order_relaxed);
    if (index != 0)
        return index - 2;
    index = find_device(ledger->limits, device);
    if (index == UNKNOWN)
        return -1;
    atomic_store_explicit(&known[device], (int8_t)(index + 2), memory_order_relaxed);
    return index;
}

int share_here(void)
{
    cu_device device;

    return REAL(cuCtxGetDevice)(&device) == CU_OK ? share_device(device) : -1;
}
