/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/telemetry.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "gpu/nvml.h"

#define DEVICES_MAX 64     /* of one machine */
#define PROCESSES_MAX 4096 /* of one device; more are not told apart */
#define NS_PER_MS INT64_C(1000000)
#define CLOCK_SM 1
#define CLOCK_MEMORY 2

struct device {
    struct nvml_device *handle;
    struct gpm gpm;
    uint64_t last_seen_us; /* of process samples, by the driver's clock */
    struct gpu_device_reading reading;
};

struct gpu_telemetry {
    struct nvml nvml;
    struct device devices[DEVICES_MAX];
    int32_t count;
    struct {
        struct gpu_process_reading *items;
        size_t len, cap;
    } processes;
    /* Room for the driver's lists, grown as they need it. */
    VEC(struct nvml_process_sample) samples;
    VEC(struct nvml_process) holders;
};

/* ---- opening -------------------------------------------------------------------------------- */

static int find_device(const struct nvml *n, uint32_t index, struct device *d, struct err *err)
{
    struct nvml_pci pci;
    uint32_t minor;
    int r = nvml_check(n, n->by_index(index, &d->handle), "a device's handle", err);

    if (r == 0)
        r = nvml_check(n, n->uuid(d->handle, d->reading.uuid, sizeof(d->reading.uuid)),
                       "a device's uuid", err);
    if (r == 0)
        r = nvml_check(n, n->minor(d->handle, &minor), "a device's number", err);
    if (r < 0)
        return r;
    d->reading.minor = (int32_t)minor;
    if (n->name(d->handle, d->reading.name, sizeof(d->reading.name)) != NVML_OK)
        d->reading.name[0] = '\0';
    if (n->pci && n->pci(d->handle, &pci) == NVML_OK)
        snprintf(d->reading.pci_bus_id, sizeof(d->reading.pci_bus_id), "%.*s",
                 (int)sizeof(pci.bus_id), pci.bus_id);
    gpm_open(n, d->handle, &d->gpm);
    return 0;
}

static int find_devices(struct gpu_telemetry *t, struct err *err)
{
    uint32_t count;
    int r = nvml_check(&t->nvml, t->nvml.count(&count), "how many devices there are", err);

    if (r == 0 && count > DEVICES_MAX)
        count = DEVICES_MAX;
    for (uint32_t i = 0; r == 0 && i < count; i++)
        r = find_device(&t->nvml, i, &t->devices[i], err);
    if (r == 0)
        t->count = (int32_t)count;
    return r;
}

int gpu_telemetry_open(const char *library, struct gpu_telemetry **ret_telemetry, struct err *err)
{
    struct gpu_telemetry *t = calloc(1, sizeof(*t));
    int r;

    if (t == NULL)
        abort();
    r = nvml_open(library, &t->nvml, err);
    if (r < 0) {
        free(t);
        return r;
    }
    r = find_devices(t, err);
    if (r < 0) {
        gpu_telemetry_close(t);
        return r;
    }
    *ret_telemetry = t;
    return 0;
}

void gpu_telemetry_close(struct gpu_telemetry *t)
{
    if (t == NULL)
        return;
    for (size_t i = 0; i < DEVICES_MAX; i++)
        gpm_close(&t->nvml, &t->devices[i].gpm);
    nvml_close(&t->nvml);
    vec_done(&t->processes);
    vec_done(&t->samples);
    vec_done(&t->holders);
    free(t);
}

/* ---- devices -------------------------------------------------------------------------------- */

static int32_t percent(uint32_t value)
{
    return value > 100 ? 100 : (int32_t)value;
}

static int64_t bounded(uint64_t value)
{
    return value > INT64_MAX ? -1 : (int64_t)value;
}

static void read_memory(const struct nvml *n, struct device *d)
{
    struct nvml_memory_v2 v2 = {.version = NVML_MEMORY_V2};
    struct gpu_device_reading *g = &d->reading;
    struct nvml_memory v1;

    g->memory_total = g->memory_used = g->memory_free = g->memory_reserved = -1;
    if (n->memory_v2 && n->memory_v2(d->handle, &v2) == NVML_OK) {
        g->memory_total = bounded(v2.total);
        g->memory_used = bounded(v2.used);
        g->memory_free = bounded(v2.free);
        g->memory_reserved = bounded(v2.reserved);
    } else if (n->memory(d->handle, &v1) == NVML_OK) {
        g->memory_total = bounded(v1.total);
        g->memory_used = bounded(v1.used);
        g->memory_free = bounded(v1.free);
    }
}

static void read_state(const struct nvml *n, struct device *d)
{
    struct gpu_device_reading *g = &d->reading;
    uint32_t value;
    uint64_t mj;

    g->power_mw = n->power && n->power(d->handle, &value) == NVML_OK ? (int64_t)value : -1;
    g->energy_mj = n->energy && n->energy(d->handle, &mj) == NVML_OK ? bounded(mj) : -1;
    g->temperature_c =
        n->temperature && n->temperature(d->handle, NVML_TEMPERATURE_GPU, &value) == NVML_OK
            ? (int32_t)value
            : -1;
    g->sm_clock_mhz =
        n->clock && n->clock(d->handle, CLOCK_SM, &value) == NVML_OK ? (int32_t)value : -1;
    g->memory_clock_mhz =
        n->clock && n->clock(d->handle, CLOCK_MEMORY, &value) == NVML_OK ? (int32_t)value : -1;
}

/* ELAPSED_MS: since the last read, 0 when that is not to be counted. */
static bool read_busy(const struct nvml *n, struct device *d, int64_t elapsed_ms)
{
    struct gpu_device_reading *g = &d->reading;
    struct nvml_rates rates;

    g->busy_percent = g->memory_busy_percent = -1;
    if (n->rates == NULL || n->rates(d->handle, &rates) != NVML_OK)
        return false;
    g->busy_percent = percent(rates.gpu);
    g->memory_busy_percent = percent(rates.memory);
    g->busy_ns += elapsed_ms * NS_PER_MS / 100 * g->busy_percent;
    g->known_ns += elapsed_ms * NS_PER_MS;
    return true;
}

/* ---- processes ------------------------------------------------------------------------------ */

static struct gpu_process_reading *process_of(struct gpu_telemetry *t, size_t first, uint32_t pid)
{
    for (size_t i = first; i < t->processes.len; i++)
        if (t->processes.items[i].pid == (pid_t)pid)
            return &t->processes.items[i];
    return NULL;
}

static struct gpu_process_reading *add_process(struct gpu_telemetry *t, int32_t device,
                                               uint32_t pid)
{
    struct gpu_process_reading *p = vec_add(&t->processes);

    *p = (struct gpu_process_reading){.pid = (pid_t)pid, .device = device, .memory_bytes = -1};
    return p;
}

/* The driver says how much room a list needs; it may grow until it is asked again. */
static size_t list_holders(struct gpu_telemetry *t, const struct device *d)
{
    uint32_t count = (uint32_t)t->holders.cap;
    nvml_result code = NVML_INSUFFICIENT_SIZE;

    if (t->nvml.processes == NULL)
        return 0;
    for (int tries = 0; tries < 4 && code == NVML_INSUFFICIENT_SIZE; tries++) {
        code = t->nvml.processes(d->handle, &count, t->holders.items);
        if (code != NVML_INSUFFICIENT_SIZE || count > PROCESSES_MAX)
            break;
        vec_reserve(&t->holders, (size_t)count + 8);
        count = (uint32_t)t->holders.cap;
    }
    return code == NVML_OK ? count : 0;
}

static size_t list_samples(struct gpu_telemetry *t, const struct device *d)
{
    uint32_t count = (uint32_t)t->samples.cap;
    nvml_result code = NVML_INSUFFICIENT_SIZE;

    if (t->nvml.process_busy == NULL)
        return 0;
    for (int tries = 0; tries < 4 && code == NVML_INSUFFICIENT_SIZE; tries++) {
        code = t->nvml.process_busy(d->handle, t->samples.items, &count, d->last_seen_us);
        if (code != NVML_INSUFFICIENT_SIZE || count > PROCESSES_MAX)
            break;
        vec_reserve(&t->samples, (size_t)count + 8);
        count = (uint32_t)t->samples.cap;
    }
    return code == NVML_OK ? count : 0;
}

/* A process with several samples in the interval is as busy as their mean. */
static int64_t mean_busy(const struct gpu_telemetry *t, size_t count, uint32_t pid)
{
    int64_t sum = 0, n = 0;

    for (size_t i = 0; i < count; i++) {
        if (t->samples.items[i].pid != pid)
            continue;
        sum += percent(t->samples.items[i].sm);
        n++;
    }
    return n ? sum / n : 0;
}

static void read_processes(struct gpu_telemetry *t, int32_t index, int64_t elapsed_ms)
{
    struct device *d = &t->devices[index];
    size_t first = t->processes.len, count = list_holders(t, d);

    for (size_t i = 0; i < count; i++) {
        const struct nvml_process *h = &t->holders.items[i];

        add_process(t, index, h->pid)->memory_bytes =
            h->used == NVML_VALUE_UNKNOWN ? -1 : bounded(h->used);
    }
    count = list_samples(t, d);
    for (size_t i = 0; i < count; i++) {
        const struct nvml_process_sample *s = &t->samples.items[i];
        struct gpu_process_reading *p = process_of(t, first, s->pid);

        if (s->time_us > d->last_seen_us)
            d->last_seen_us = s->time_us;
        if (p == NULL)
            p = add_process(t, index, s->pid);
        p->busy_ns = elapsed_ms * NS_PER_MS / 100 * mean_busy(t, count, s->pid);
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

int gpu_telemetry_read(struct gpu_telemetry *t, int64_t now_ms)
{
    int32_t answered = 0;

    vec_clear(&t->processes);
    for (int32_t i = 0; i < t->count; i++) {
        struct device *d = &t->devices[i];
        int64_t since = d->reading.read_ms ? now_ms - d->reading.read_ms : 0;
        int64_t elapsed = since > 0 && since <= GPU_TELEMETRY_GAP_MS ? since : 0;

        read_memory(&t->nvml, d);
        read_state(&t->nvml, d);
        gpm_read(&t->nvml, d->handle, &d->gpm, &d->reading.activity);
        if (read_busy(&t->nvml, d, elapsed) || d->reading.memory_total >= 0)
            answered++;
        read_processes(t, i, elapsed);
        d->reading.read_ms = now_ms;
    }
    return answered || t->count == 0 ? 0 : -EIO;
}

int32_t gpu_telemetry_device_count(const struct gpu_telemetry *t)
{
    return t->count;
}

const struct gpu_device_reading *gpu_telemetry_device(const struct gpu_telemetry *t, int32_t index)
{
    return &t->devices[index].reading;
}

const struct gpu_process_reading *gpu_telemetry_processes(const struct gpu_telemetry *t,
                                                          size_t *ret_count)
{
    *ret_count = t->processes.len;
    return t->processes.items;
}
