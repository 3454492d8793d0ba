/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver's library for tests. FAKE_NVML_COUNT says how many devices it lists; unset, the
 * driver is not loaded; "error", it fails.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct memory {
    unsigned long long total, free, used;
};

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
EXPORT int nvmlDeviceGetCount_v2(unsigned *ret);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret);
EXPORT int nvmlDeviceGetName(void *d, char *text, unsigned bytes);
EXPORT int nvmlDeviceGetUUID(void *d, char *text, unsigned bytes);
EXPORT int nvmlDeviceGetMinorNumber(void *d, unsigned *ret);
EXPORT int nvmlDeviceGetMemoryInfo(void *d, struct memory *ret);
EXPORT const char *nvmlErrorString(int code);

static unsigned index_of(void *d)
{
    return (unsigned)((char *)d - (char *)0) - 1;
}

int nvmlInit_v2(void)
{
    return getenv("FAKE_NVML_COUNT") ? 0 : 9;
}

int nvmlShutdown(void)
{
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    snprintf(text, bytes, "570.00");
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *ret)
{
    const char *count = getenv("FAKE_NVML_COUNT");

    if (strcmp(count, "error") == 0)
        return 999;
    *ret = (unsigned)strtoul(count, NULL, 10);
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **ret)
{
    *ret = (char *)0 + index + 1;
    return 0;
}

int nvmlDeviceGetName(void *d, char *text, unsigned bytes)
{
    static const char *const names[] = {"NVIDIA H100 80GB HBM3", "Tesla V100-SXM2-16GB",
                                        "NVIDIA L40S", "NVIDIA A100-SXM4-40GB"};

    snprintf(text, bytes, "%s", names[index_of(d) % 4]);
    return 0;
}

int nvmlDeviceGetUUID(void *d, char *text, unsigned bytes)
{
    snprintf(text, bytes, "GPU-%08u", index_of(d));
    return 0;
}

int nvmlDeviceGetMinorNumber(void *d, unsigned *ret)
{
    *ret = index_of(d) + 4000;
    return 0;
}

int nvmlDeviceGetMemoryInfo(void *d, struct memory *ret)
{
    *ret = (struct memory){.total = 85899345920ULL};
    return 0;
}

const char *nvmlErrorString(int code)
{
    return code == 999 ? "unknown error" : "success";
}
