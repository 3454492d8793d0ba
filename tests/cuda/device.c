/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of the driver and its devices without a context. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct text {
    int code;
    const char *name, *words;
};

static const struct text texts[] = {
    {CU_OK, "CUDA_SUCCESS", "no error"},
    {CU_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CU_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CU_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CU_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {CU_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CU_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CU_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CU_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CU_UNSUPPORTED_LIMIT, "CUDA_ERROR_UNSUPPORTED_LIMIT", "limit is not supported"},
    {CU_PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
     "peer access is not supported between these two devices"},
    {CU_FILE_NOT_FOUND, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {CU_OPERATING_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM", "OS call failed"},
    {CU_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CU_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "not in a state for this operation"},
    {CU_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CU_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CU_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "illegal memory access"},
    {CU_PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
     "peer access is already enabled"},
    {CU_PEER_ACCESS_NOT_ENABLED, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED",
     "peer access has not been enabled"},
    {CU_PRIMARY_CONTEXT_ACTIVE, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE",
     "the primary context is active"},
    {CU_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CU_HOST_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "host memory is already registered"},
    {CU_HOST_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "host memory is not registered"},
    {CU_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "launch failure"},
    {CU_COOPERATIVE_LAUNCH_TOO_LARGE, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
     "too many blocks in a cooperative launch"},
    {CU_NOT_PERMITTED, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {CU_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CU_SYSTEM_NOT_READY, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {CU_MPS_CLIENT_TERMINATED, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "MPS client terminated"},
    {CU_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "not permitted while a stream is capturing"},
    {CU_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "capture failed by an earlier error"},
    {CU_CAPTURE_MERGE, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "would merge two captures"},
    {CU_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not begun in this stream"},
    {CU_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED",
     "capturing streams were not joined"},
    {CU_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency on uncaptured work in another stream"},
    {CU_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "would make the legacy stream depend on a capturing one"},
    {CU_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT", "event was last recorded in a capture"},
    {CU_CAPTURE_WRONG_THREAD, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD",
     "capture was begun by another thread"},
    {CU_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const struct text *text_of(cu_result code)
{
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].code == code)
            return &texts[i];
    return NULL;
}

cu_result cuGetErrorName(cu_result code, const char **ret_text)
{
    const struct text *text = text_of(code);

    if (ret_text == NULL)
        return CU_INVALID_VALUE;
    *ret_text = text != NULL ? text->name : NULL;
    return text != NULL ? CU_OK : CU_INVALID_VALUE;
}

cu_result cuGetErrorString(cu_result code, const char **ret_text)
{
    const struct text *text = text_of(code);

    if (ret_text == NULL)
        return CU_INVALID_VALUE;
    *ret_text = text != NULL ? text->words : NULL;
    return text != NULL ? CU_OK : CU_INVALID_VALUE;
}

cu_result cuDriverGetVersion(int *ret_version)
{
    if (ret_version == NULL)
        return CU_INVALID_VALUE;
    *ret_version = CU_VERSION_13_0;
    return CU_OK;
}

cu_result cuDeviceGetCount(int *ret_count)
{
    ENTER_QUERY();
    if (ret_count == NULL)
        return CU_INVALID_VALUE;
    *ret_count = driver.count;
    return CU_OK;
}

cu_result cuDeviceGet(cu_device *ret_device, int ordinal)
{
    ENTER_QUERY();
    if (ret_device == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(ordinal))
        return CU_INVALID_DEVICE;
    *ret_device = ordinal;
    return CU_OK;
}

static const struct dbl_device_info *info(cu_device device)
{
    return dbl_info(driver.sh, driver.proc->moved[driver.visible[device]]);
}

cu_result cuDeviceGetName(char *name, int bytes, cu_device device)
{
    ENTER_QUERY();
    if (name == NULL || bytes <= 0)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    snprintf(name, (size_t)bytes, "%s", info(device)->name);
    return CU_OK;
}

cu_result cuDeviceGetUuid(struct cu_uuid *ret_uuid, cu_device device)
{
    ENTER_QUERY();
    if (ret_uuid == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    memcpy(ret_uuid->bytes, info(device)->uuid, 16);
    return CU_OK;
}

cu_result cuDeviceGetUuid_v2(struct cu_uuid *ret_uuid, cu_device device)
{
    return cuDeviceGetUuid(ret_uuid, device);
}

cu_result cuDeviceTotalMem_v2(size_t *ret_bytes, cu_device device)
{
    ENTER_QUERY();
    if (ret_bytes == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    *ret_bytes = info(device)->memory;
    return CU_OK;
}

struct attribute {
    int id, value;
};

/* Those that are the same for every device. What is not here is 0: not supported. */
static const struct attribute attributes[] = {
    {CU_DEV_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEV_MAX_BLOCK_X, 1024},
    {CU_DEV_MAX_BLOCK_Y, 1024},
    {CU_DEV_MAX_BLOCK_Z, 64},
    {CU_DEV_MAX_GRID_X, 2147483647},
    {CU_DEV_MAX_GRID_Y, 65535},
    {CU_DEV_MAX_GRID_Z, 65535},
    {CU_DEV_SHARED_PER_BLOCK, 49152},
    {CU_DEV_WARP_SIZE, 32},
    {CU_DEV_CLOCK_KHZ, 1410000},
    {CU_DEV_TEXTURE_ALIGNMENT, 512},
    {CU_DEV_CONCURRENT_KERNELS, 1},
    {CU_DEV_MAX_THREADS_PER_SM, 2048},
    {CU_DEV_ASYNC_ENGINES, 3},
    {CU_DEV_UNIFIED_ADDRESSING, 1},
    {CU_DEV_STREAM_PRIORITIES, 1},
    {CU_DEV_MANAGED_MEMORY, 1},
    {CU_DEV_CONCURRENT_MANAGED, 1},
    {CU_DEV_PREEMPTION, 1},
    {CU_DEV_COOPERATIVE_LAUNCH, 1},
    {CU_DEV_VMM_SUPPORTED, 1},
    {CU_DEV_HANDLE_POSIX_FD, 1},
    {CU_DEV_MAX_BLOCKS_PER_SM, 32},
    {CU_DEV_POOLS_SUPPORTED, 1},
};

cu_result cuDeviceGetAttribute(int *ret_value, int attribute, cu_device device)
{
    ENTER_QUERY();
    if (ret_value == NULL || attribute <= 0 || attribute >= CU_DEV_ATTRIBUTE_MAX)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    *ret_value = 0;
    for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
        if (attributes[i].id == attribute)
            *ret_value = attributes[i].value;
    if (attribute == CU_DEV_SM_COUNT)
        *ret_value = (int)info(device)->sms;
    else if (attribute == CU_DEV_PCI_BUS)
        *ret_value = (int)info(device)->bus;
    else if (attribute == CU_DEV_CAPABILITY_MAJOR)
        *ret_value = (int)info(device)->major;
    else if (attribute == CU_DEV_CAPABILITY_MINOR)
        *ret_value = (int)info(device)->minor;
    else if (attribute == CU_DEV_MPS_ENABLED)
        *ret_value = driver.sh->config.mode == DBL_MPS;
    return CU_OK;
}

cu_result cuDeviceComputeCapability(int *ret_major, int *ret_minor, cu_device device)
{
    ENTER_QUERY();
    if (ret_major == NULL || ret_minor == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    *ret_major = (int)info(device)->major;
    *ret_minor = (int)info(device)->minor;
    return CU_OK;
}

/* "0000:10:00.0", the domain first. */
cu_result cuDeviceGetPCIBusId(char *id, int bytes, cu_device device)
{
    ENTER_QUERY();
    if (id == NULL || bytes <= 0)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device))
        return CU_INVALID_DEVICE;
    snprintf(id, (size_t)bytes, "0000:%02x:00.0", info(device)->bus);
    return CU_OK;
}

cu_result cuDeviceGetByPCIBusId(cu_device *ret_device, const char *id)
{
    unsigned domain = 0, bus;

    ENTER_QUERY();
    if (ret_device == NULL || id == NULL)
        return CU_INVALID_VALUE;
    if (sscanf(id, "%x:%x", &domain, &bus) != 2)
        return CU_INVALID_VALUE;
    for (int d = 0; d < driver.count; d++) {
        if (domain != 0 || info(d)->bus != bus)
            continue;
        *ret_device = d;
        return CU_OK;
    }
    return CU_INVALID_DEVICE;
}

cu_result cuDeviceCanAccessPeer(int *ret_can, cu_device device, cu_device peer)
{
    ENTER_QUERY();
    if (ret_can == NULL)
        return CU_INVALID_VALUE;
    if (!drv_device_valid(device) || !drv_device_valid(peer))
        return CU_INVALID_DEVICE;
    *ret_can = device != peer;
    return CU_OK;
}
