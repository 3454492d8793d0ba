/* SPDX-License-Identifier: Apache-2.0 */
/* NVML: the library, and what it says of devices. */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define IDLE_MW 60000
#define FULL_MW 400000
#define IDLE_MHZ 210
#define FULL_MHZ 1410
#define MEMORY_MHZ 1593

NVML_EXPORT(nvmlInit);
NVML_EXPORT(nvmlInit_v2);
NVML_EXPORT(nvmlInitWithFlags);
NVML_EXPORT(nvmlShutdown);
NVML_EXPORT(nvmlErrorString);
NVML_EXPORT(nvmlSystemGetDriverVersion);
NVML_EXPORT(nvmlSystemGetNVMLVersion);
NVML_EXPORT(nvmlSystemGetCudaDriverVersion);
NVML_EXPORT(nvmlSystemGetCudaDriverVersion_v2);
NVML_EXPORT(nvmlDeviceGetCount);
NVML_EXPORT(nvmlDeviceGetCount_v2);
NVML_EXPORT(nvmlDeviceGetHandleByIndex);
NVML_EXPORT(nvmlDeviceGetHandleByIndex_v2);
NVML_EXPORT(nvmlDeviceGetHandleByUUID);
NVML_EXPORT(nvmlDeviceGetHandleByPciBusId_v2);
NVML_EXPORT(nvmlDeviceGetName);
NVML_EXPORT(nvmlDeviceGetUUID);
NVML_EXPORT(nvmlDeviceGetSerial);
NVML_EXPORT(nvmlDeviceGetIndex);
NVML_EXPORT(nvmlDeviceGetMinorNumber);
NVML_EXPORT(nvmlDeviceGetPciInfo_v2);
NVML_EXPORT(nvmlDeviceGetPciInfo_v3);
NVML_EXPORT(nvmlDeviceGetMemoryInfo);
NVML_EXPORT(nvmlDeviceGetMemoryInfo_v2);
NVML_EXPORT(nvmlDeviceGetUtilizationRates);
NVML_EXPORT(nvmlDeviceGetCudaComputeCapability);
NVML_EXPORT(nvmlDeviceGetPowerUsage);
NVML_EXPORT(nvmlDeviceGetEnforcedPowerLimit);
NVML_EXPORT(nvmlDeviceGetPowerManagementLimit);
NVML_EXPORT(nvmlDeviceGetTotalEnergyConsumption);
NVML_EXPORT(nvmlDeviceGetTemperature);
NVML_EXPORT(nvmlDeviceGetClockInfo);
NVML_EXPORT(nvmlDeviceGetMaxClockInfo);
NVML_EXPORT(nvmlDeviceGetMigMode);
NVML_EXPORT(nvmlDeviceGetPersistenceMode);
NVML_EXPORT(nvmlDeviceGetComputeMode);

static struct {
    pthread_mutex_t mutex;
    unsigned users;
    struct dbl_shared *sh;
} library = {.mutex = PTHREAD_MUTEX_INITIALIZER};

struct dbl_shared *nvml_machine(void)
{
    struct dbl_shared *sh;

    pthread_mutex_lock(&library.mutex);
    sh = library.users > 0 ? library.sh : NULL;
    pthread_mutex_unlock(&library.mutex);
    return sh;
}

nvml_result nvml_begin(const struct nvml_device *device, uint32_t *ret_index)
{
    struct dbl_shared *sh = nvml_machine();

    if (sh == NULL)
        return NVML_UNINITIALIZED;
    for (uint32_t d = 0; d < sh->config.devices; d++) {
        if ((const void *)device != (const void *)&sh->devices[d])
            continue;
        *ret_index = d;
        return dbl_injected(sh, DBL_FAIL_NVML);
    }
    return NVML_INVALID_ARGUMENT;
}

nvml_result nvmlInit_v2(void)
{
    nvml_result result = NVML_OK;

    pthread_mutex_lock(&library.mutex);
    if (library.sh == NULL && dbl_open(dbl_file(), &library.sh) < 0)
        result = NVML_DRIVER_NOT_LOADED;
    else
        library.users++;
    pthread_mutex_unlock(&library.mutex);
    return result;
}

nvml_result nvmlInit(void)
{
    return nvmlInit_v2();
}

nvml_result nvmlInitWithFlags(uint32_t flags)
{
    return nvmlInit_v2();
}

nvml_result nvmlShutdown(void)
{
    nvml_result result = NVML_OK;

    pthread_mutex_lock(&library.mutex);
    if (library.users == 0)
        result = NVML_UNINITIALIZED;
    else
        library.users--;
    pthread_mutex_unlock(&library.mutex);
    return result;
}

const char *nvmlErrorString(nvml_result code)
{
    static const struct {
        nvml_result code;
        const char *text;
    } texts[] = {
        {NVML_OK, "Success"},
        {NVML_UNINITIALIZED, "Uninitialized"},
        {NVML_INVALID_ARGUMENT, "Invalid Argument"},
        {NVML_NOT_SUPPORTED, "Not Supported"},
        {NVML_NO_PERMISSION, "Insufficient Permissions"},
        {NVML_NOT_FOUND, "Not Found"},
        {NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
        {NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {NVML_FUNCTION_NOT_FOUND, "Function Not Found"},
        {NVML_GPU_IS_LOST, "GPU is lost"},
        {NVML_VERSION_MISMATCH, "Argument version mismatch"},
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i].code == code)
            return texts[i].text;
    return "Unknown Error";
}

/* TEXT into a buffer of BYTES of the caller's. */
static nvml_result put(char *buffer, uint32_t bytes, const char *text)
{
    if (buffer == NULL)
        return NVML_INVALID_ARGUMENT;
    if (strlen(text) >= bytes)
        return NVML_INSUFFICIENT_SIZE;
    snprintf(buffer, bytes, "%s", text);
    return NVML_OK;
}

nvml_result nvmlSystemGetDriverVersion(char *text, uint32_t bytes)
{
    return nvml_machine() == NULL ? NVML_UNINITIALIZED : put(text, bytes, "580.65.06");
}

nvml_result nvmlSystemGetNVMLVersion(char *text, uint32_t bytes)
{
    return nvml_machine() == NULL ? NVML_UNINITIALIZED : put(text, bytes, "13.580.65.06");
}

nvml_result nvmlSystemGetCudaDriverVersion(int *ret_version)
{
    if (ret_version == NULL)
        return NVML_INVALID_ARGUMENT;
    *ret_version = 13000;
    return NVML_OK;
}

nvml_result nvmlSystemGetCudaDriverVersion_v2(int *ret_version)
{
    return nvmlSystemGetCudaDriverVersion(ret_version);
}

/* NVIDIA_VISIBLE_DEVICES stands for the device files that a container has: devices that are not
 * in a list of uuids are not there. Other values show all. */
static bool is_visible(struct dbl_shared *sh, uint32_t d)
{
    const char *list = getenv("NVIDIA_VISIBLE_DEVICES");
    char text[48];

    dbl_uuid_text(dbl_info(sh, d)->uuid, text);
    return list == NULL || strstr(list, "GPU-") == NULL || strstr(list, text) != NULL;
}

/* How many of the first D devices are visible. */
static uint32_t visible_before(struct dbl_shared *sh, uint32_t d)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < d; i++)
        count += is_visible(sh, i);
    return count;
}

static nvml_result handle_of(struct dbl_shared *sh, uint32_t d, struct nvml_device **ret_device)
{
    if (!is_visible(sh, d))
        return NVML_NOT_FOUND;
    *ret_device = (struct nvml_device *)&sh->devices[d];
    return NVML_OK;
}

nvml_result nvmlDeviceGetCount_v2(uint32_t *ret_count)
{
    struct dbl_shared *sh = nvml_machine();

    if (sh == NULL)
        return NVML_UNINITIALIZED;
    if (ret_count == NULL)
        return NVML_INVALID_ARGUMENT;
    *ret_count = visible_before(sh, sh->config.devices);
    return NVML_OK;
}

nvml_result nvmlDeviceGetCount(uint32_t *ret_count)
{
    return nvmlDeviceGetCount_v2(ret_count);
}

nvml_result nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct nvml_device **ret_device)
{
    struct dbl_shared *sh = nvml_machine();

    if (sh == NULL)
        return NVML_UNINITIALIZED;
    if (ret_device == NULL)
        return NVML_INVALID_ARGUMENT;
    for (uint32_t d = 0; d < sh->config.devices; d++)
        if (is_visible(sh, d) && index-- == 0)
            return handle_of(sh, d, ret_device);
    return NVML_INVALID_ARGUMENT;
}

nvml_result nvmlDeviceGetHandleByIndex(uint32_t index, struct nvml_device **ret_device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, ret_device);
}

nvml_result nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **ret_device)
{
    struct dbl_shared *sh = nvml_machine();
    char text[48];

    if (sh == NULL)
        return NVML_UNINITIALIZED;
    if (uuid == NULL || ret_device == NULL)
        return NVML_INVALID_ARGUMENT;
    for (uint32_t d = 0; d < sh->config.devices; d++) {
        dbl_uuid_text(dbl_info(sh, d)->uuid, text);
        if (strcmp(text, uuid) == 0)
            return handle_of(sh, d, ret_device);
    }
    return NVML_NOT_FOUND;
}

nvml_result nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **ret_device)
{
    struct dbl_shared *sh = nvml_machine();
    unsigned domain, bus;

    if (sh == NULL)
        return NVML_UNINITIALIZED;
    if (bus_id == NULL || ret_device == NULL || sscanf(bus_id, "%x:%x", &domain, &bus) != 2)
        return NVML_INVALID_ARGUMENT;
    for (uint32_t d = 0; d < sh->config.devices; d++)
        if (domain == 0 && dbl_info(sh, d)->bus == bus)
            return handle_of(sh, d, ret_device);
    return NVML_NOT_FOUND;
}

nvml_result nvmlDeviceGetName(struct nvml_device *device, char *text, uint32_t bytes)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    return result == NVML_OK ? put(text, bytes, dbl_info(nvml_machine(), d)->name) : result;
}

nvml_result nvmlDeviceGetUUID(struct nvml_device *device, char *text, uint32_t bytes)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);
    char uuid[48];

    if (result != NVML_OK)
        return result;
    dbl_uuid_text(dbl_info(nvml_machine(), d)->uuid, uuid);
    return put(text, bytes, uuid);
}

nvml_result nvmlDeviceGetSerial(struct nvml_device *device, char *text, uint32_t bytes)
{
    return NVML_NOT_SUPPORTED;
}

/* A number about DEVICE: where to write VALUE was checked by the name of the macro's user. */
#define ANSWER(ret, value)                       \
    uint32_t d;                                  \
    nvml_result result = nvml_begin(device, &d); \
                                                 \
    if (result == NVML_OK && (ret) == NULL)      \
        result = NVML_INVALID_ARGUMENT;          \
    if (result == NVML_OK)                       \
        *(ret) = (value);                        \
    return result

nvml_result nvmlDeviceGetIndex(struct nvml_device *device, uint32_t *ret_value)
{
    ANSWER(ret_value, visible_before(nvml_machine(), d));
}

nvml_result nvmlDeviceGetMinorNumber(struct nvml_device *device, uint32_t *ret_value)
{
    ANSWER(ret_value, d);
}

nvml_result nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci *ret_pci)
{
    uint32_t d, bus;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (ret_pci == NULL)
        return NVML_INVALID_ARGUMENT;
    bus = dbl_info(nvml_machine(), d)->bus & 0xff;
    *ret_pci = (struct nvml_pci){.bus = bus, .id = 0x20b210de, .subsystem = 0x147f10de};
    snprintf(ret_pci->bus_id_legacy, sizeof(ret_pci->bus_id_legacy), "0000:%02X:00.0", bus);
    snprintf(ret_pci->bus_id, sizeof(ret_pci->bus_id), "00000000:%02X:00.0", bus);
    return NVML_OK;
}

nvml_result nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_v2 *ret_pci)
{
    struct nvml_pci pci;
    nvml_result result = nvmlDeviceGetPciInfo_v3(device, &pci);

    if (result != NVML_OK)
        return result;
    if (ret_pci == NULL)
        return NVML_INVALID_ARGUMENT;
    *ret_pci = (struct nvml_pci_v2){.bus = pci.bus, .id = pci.id, .subsystem = pci.subsystem};
    memcpy(ret_pci->bus_id, pci.bus_id_legacy, sizeof(ret_pci->bus_id));
    return NVML_OK;
}

static struct nvml_memory_v2 memory_of(struct dbl_shared *sh, uint32_t d)
{
    struct nvml_memory_v2 memory = {NVML_MEMORY_V2};

    memory.total = dbl_info(sh, d)->memory;
    memory.reserved = dbl_info(sh, d)->reserved;
    memory.used = dbl_bytes(sh, d, DBL_KINDS);
    memory.free = memory.total - memory.reserved - memory.used;
    return memory;
}

nvml_result nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *ret_memory)
{
    struct nvml_memory_v2 memory;
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (ret_memory == NULL)
        return NVML_INVALID_ARGUMENT;
    memory = memory_of(nvml_machine(), d);
    *ret_memory = (struct nvml_memory){memory.total, memory.free, memory.used + memory.reserved};
    return NVML_OK;
}

nvml_result nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (memory == NULL)
        return NVML_INVALID_ARGUMENT;
    if (memory->version != NVML_MEMORY_V2)
        return NVML_VERSION_MISMATCH;
    *memory = memory_of(nvml_machine(), d);
    return NVML_OK;
}

bool nvml_window(struct dbl_shared *sh, uint64_t *ret_window)
{
    uint64_t now = dbl_now(sh), lag = sh->config.lag_ns;
    uint64_t ended = now > lag ? (now - lag) / sh->config.window_ns : 0;

    if (ended == 0)
        return false;
    *ret_window = ended - 1;
    return true;
}

struct dbl_window nvml_in_window(const struct dbl_meter *meter, uint64_t window)
{
    const struct dbl_window *w = &meter->windows[window % DBL_WINDOWS];

    return w->index == window ? *w : (struct dbl_window){.index = window};
}

/* Per cent of the last window that DEVICE D was busy. */
static uint32_t busy_percent(struct dbl_shared *sh, uint32_t d)
{
    uint64_t window, busy = 0;

    dbl_lock(sh);
    dbl_reap(sh);
    dbl_sim_run(sh);
    if (nvml_window(sh, &window))
        busy = nvml_in_window(&sh->devices[d].meter, window).busy_ns;
    dbl_unlock(sh);
    return (uint32_t)(busy * 100 / sh->config.window_ns);
}

nvml_result nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_rates *ret_rates)
{
    ANSWER(ret_rates, ((struct nvml_rates){busy_percent(nvml_machine(), d), 0}));
}

nvml_result nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *ret_major,
                                               int *ret_minor)
{
    uint32_t d;
    nvml_result result = nvml_begin(device, &d);

    if (result != NVML_OK)
        return result;
    if (ret_major == NULL || ret_minor == NULL)
        return NVML_INVALID_ARGUMENT;
    *ret_major = (int)dbl_info(nvml_machine(), d)->major;
    *ret_minor = (int)dbl_info(nvml_machine(), d)->minor;
    return NVML_OK;
}

/* Power, temperature and clocks follow the busy time of the last window. */
nvml_result nvmlDeviceGetPowerUsage(struct nvml_device *device, uint32_t *ret_mw)
{
    ANSWER(ret_mw, IDLE_MW + (FULL_MW - IDLE_MW) / 100 * busy_percent(nvml_machine(), d));
}

nvml_result nvmlDeviceGetEnforcedPowerLimit(struct nvml_device *device, uint32_t *ret_mw)
{
    ANSWER(ret_mw, FULL_MW);
}

nvml_result nvmlDeviceGetPowerManagementLimit(struct nvml_device *device, uint32_t *ret_mw)
{
    ANSWER(ret_mw, FULL_MW);
}

/* Since the clock's zero: what is idle draws too. */
static uint64_t energy_mj(struct dbl_shared *sh, uint32_t d)
{
    uint64_t busy_ms = dbl_busy_ns(sh, 0, d) / 1000000, all_ms = dbl_now(sh) / 1000000;

    return (all_ms * IDLE_MW + busy_ms * (FULL_MW - IDLE_MW)) / 1000;
}

nvml_result nvmlDeviceGetTotalEnergyConsumption(struct nvml_device *device, uint64_t *ret_mj)
{
    ANSWER(ret_mj, energy_mj(nvml_machine(), d));
}

nvml_result nvmlDeviceGetTemperature(struct nvml_device *device, int sensor, uint32_t *ret_celsius)
{
    if (sensor != NVML_TEMPERATURE_GPU)
        return NVML_INVALID_ARGUMENT;
    {
        ANSWER(ret_celsius, 32 + 40 * busy_percent(nvml_machine(), d) / 100);
    }
}

/* Clocks: 0 graphics, 1 SM, 2 memory, 3 video. */
nvml_result nvmlDeviceGetClockInfo(struct nvml_device *device, int clock, uint32_t *ret_mhz)
{
    if (clock < 0 || clock > 3)
        return NVML_INVALID_ARGUMENT;
    {
        ANSWER(ret_mhz, clock == 2                            ? MEMORY_MHZ
                        : busy_percent(nvml_machine(), d) > 0 ? FULL_MHZ
                                                              : IDLE_MHZ);
    }
}

nvml_result nvmlDeviceGetMaxClockInfo(struct nvml_device *device, int clock, uint32_t *ret_mhz)
{
    if (clock < 0 || clock > 3)
        return NVML_INVALID_ARGUMENT;
    {
        ANSWER(ret_mhz, clock == 2 ? MEMORY_MHZ : FULL_MHZ);
    }
}

nvml_result nvmlDeviceGetMigMode(struct nvml_device *device, uint32_t *ret_current,
                                 uint32_t *ret_pending)
{
    if (ret_pending != NULL)
        *ret_pending = 0;
    {
        ANSWER(ret_current, 0);
    }
}

nvml_result nvmlDeviceGetPersistenceMode(struct nvml_device *device, int *ret_mode)
{
    ANSWER(ret_mode, 1);
}

nvml_result nvmlDeviceGetComputeMode(struct nvml_device *device, int *ret_mode)
{
    ANSWER(ret_mode, 0);
}
