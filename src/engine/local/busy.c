/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How busy tasks keep their devices.
 *
 * Simulated devices: busy time stands for CPU time, which the control group keeps, so that any
 * look gives the sum.
 *
 * Real devices: each second's figures of the driver are given to who has the device. A task that
 * has whole devices gets all that they did. One that has a part gets what the driver says of its
 * processes, at most its part; where the driver hides who it was (the clients of an MPS server) or
 * the machine does not say which processes a task has, nothing is known of it in that second.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/qty.h"
#include "engine/local/engine.h"
#include "engine/local/record.h"
#include "gpu/telemetry.h"

#define WHOLE 1000 /* milli-GPU */

struct busy_meter {
    struct gpu_telemetry *telemetry;
    /* Of each device, in the interval that was read last. */
    struct interval {
        int64_t busy_ns, known_ns;       /* of it */
        int64_t total_busy, total_known; /* until its end */
        bool hidden;                     /* somebody was busy whom the driver does not name */
    } * devices;
};

void busy_open(struct engine_local *e)
{
    const char *library = share_management(e);
    struct busy_meter *m;
    struct err err = ERR_INIT;

    if (e->devices.count == 0 || (e->devices.simulated && library == NULL))
        return;
    m = calloc(1, sizeof(*m));
    if (m == NULL)
        abort(); /* as the arena does */
    if (gpu_telemetry_open(library, &m->telemetry, &err) < 0) {
        log_warn("busy time of devices is not known: %s", err.text);
        free(m);
        return;
    }
    m->devices = calloc((size_t)gpu_telemetry_device_count(m->telemetry) + 1, sizeof(*m->devices));
    if (m->devices == NULL)
        abort();
    e->meter = m;
}

void busy_close(struct engine_local *e)
{
    if (e->meter == NULL)
        return;
    gpu_telemetry_close(e->meter->telemetry);
    free(e->meter->devices);
    free(e->meter);
    e->meter = NULL;
}

/* ---- simulated devices ---------------------------------------------------------------------- */

void busy_by_cpu(struct local_task *t, int64_t cpu_ns, int64_t now_ms)
{
    int64_t elapsed_ns = (now_ms - t->started_ms - suspend_closed_ms(t, now_ms)) * NS_PER_MS;
    int64_t busy, known;

    if (!t->simulated || t->gpu_milli == 0 || t->started_ms == 0 || elapsed_ns < 0 || cpu_ns < 0)
        return;
    busy = gpu_sim_busy_ns(cpu_ns, t->gpu_milli, elapsed_ns);
    known = qty_mul_div(elapsed_ns, t->gpu_milli, WHOLE);
    /* It never runs backwards. */
    t->busy_ns = busy > t->busy_ns ? busy : t->busy_ns;
    t->known_ns = known > t->known_ns ? known : t->known_ns;
}

/* ---- real devices --------------------------------------------------------------------------- */

/* The server of MPS works for its clients, and the driver names it in their place. */
static bool is_mps_server(pid_t pid)
{
    char path[32], name[16] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return true; /* whoever it was, he cannot be looked for */
    if (fgets(name, sizeof(name), f) == NULL)
        name[0] = '\0';
    fclose(f);
    return strncmp(name, "nvidia-cuda-mps", sizeof(name) - 1) == 0;
}

/* Who is busy and holds no memory, or serves others, stands for processes that are not named. */
static void find_hidden(struct busy_meter *m)
{
    size_t count;
    const struct gpu_process_reading *p = gpu_telemetry_processes(m->telemetry, &count);

    for (size_t i = 0; i < count; i++)
        if (p[i].busy_ns > 0 && (p[i].memory_bytes < 0 || is_mps_server(p[i].pid)))
            m->devices[p[i].device].hidden = true;
}

static void read_devices(struct busy_meter *m)
{
    if (gpu_telemetry_read(m->telemetry, clock_boot_ms()) < 0)
        log_warn("the NVIDIA driver does not answer: busy time is not known");
    for (int32_t i = 0; i < gpu_telemetry_device_count(m->telemetry); i++) {
        const struct gpu_device_reading *g = gpu_telemetry_device(m->telemetry, i);
        struct interval *v = &m->devices[i];

        *v = (struct interval){.busy_ns = g->busy_ns - v->total_busy,
                               .known_ns = g->known_ns - v->total_known,
                               .total_busy = g->busy_ns,
                               .total_known = g->known_ns};
    }
    find_hidden(m);
}

static int32_t device_of(const struct busy_meter *m, const char *uuid)
{
    for (int32_t i = 0; i < gpu_telemetry_device_count(m->telemetry); i++)
        if (strcmp(gpu_telemetry_device(m->telemetry, i)->uuid, uuid) == 0)
            return i;
    return -1;
}

/* GPU time that processes among PIDS were busy on DEVICE. */
static int64_t busy_of(const struct busy_meter *m, int32_t device, const struct cgroup_pids *pids)
{
    size_t count;
    const struct gpu_process_reading *p = gpu_telemetry_processes(m->telemetry, &count);
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; p[i].device == device && k < pids->len; k++)
            if (pids->items[k] == p[i].pid)
                sum += p[i].busy_ns;
    return sum;
}

/* A task that has PART milli-GPU of a device. */
static void measure_part(const struct busy_meter *m, struct local_task *t, int32_t device,
                         int64_t part)
{
    const struct interval *v = &m->devices[device];
    int64_t known = qty_mul_div(v->known_ns, part, WHOLE), busy;
    struct cgroup_pids pids = {0};

    if (v->hidden || cgroup_list(&t->cgroups, &pids) < 0)
        return;
    busy = busy_of(m, device, &pids);
    t->busy_ns += busy < known ? busy : known;
    t->known_ns += known;
    vec_done(&pids);
}

static void measure_task(const struct busy_meter *m, struct local_task *t)
{
    size_t count;
    _cleanup_free_ char **uuids = record_list(t->launch, t->launch_len, "gpu", &count);

    for (size_t i = 0; i < count; i++) {
        int32_t d = device_of(m, uuids[i]);
        int64_t part = t->gpu_milli / (int64_t)count;

        if (d < 0)
            continue;
        if (part < WHOLE) {
            measure_part(m, t, d, part);
        } else {
            t->busy_ns += m->devices[d].busy_ns;
            t->known_ns += m->devices[d].known_ns;
        }
    }
}

void busy_measure(struct engine_local *e)
{
    struct local_task *t;
    size_t it = 0;

    if (e->meter == NULL)
        return;
    read_devices(e->meter);
    while ((t = map_next(&e->tasks, &it))) {
        if (t->state == RUNNING && t->sleep == VERIFYING)
            suspend_verify(e, t, share_held(t, e->meter));
        if (t->state != RUNNING || t->sleep != AWAKE || t->gpu_milli == 0)
            continue;
        if (!t->simulated)
            measure_task(e->meter, t);
        share_reconcile(t, e->meter);
    }
}

int64_t busy_memory(const struct busy_meter *m, const char *uuid, const struct cgroup_pids *pids)
{
    size_t count;
    const struct gpu_process_reading *p = gpu_telemetry_processes(m->telemetry, &count);
    int32_t device = device_of(m, uuid);
    int64_t sum = 0;

    if (device < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; p[i].device == device && k < pids->len; k++)
            if (pids->items[k] == p[i].pid && p[i].memory_bytes > 0)
                sum += p[i].memory_bytes;
    return sum;
}

/* ---- what the host hears of the devices ----------------------------------------------------- */

static void fill_reading(struct model_reading *r, int32_t device,
                         const struct gpu_device_reading *g)
{
    *r = (struct model_reading){.device = device,
                                .minor = g->minor,
                                .busy_percent = g->busy_percent,
                                .memory_busy_percent = g->memory_busy_percent,
                                .memory_used = g->memory_used,
                                .memory_free = g->memory_free,
                                .memory_reserved = g->memory_reserved,
                                .power_mw = g->power_mw,
                                .energy_mj = g->energy_mj,
                                .temperature_c = g->temperature_c,
                                .sm_clock_mhz = g->sm_clock_mhz,
                                .memory_clock_mhz = g->memory_clock_mhz,
                                .engine_active_ppm = g->activity.engine_ppm,
                                .sm_active_ppm = g->activity.sm_ppm,
                                .sm_occupancy_ppm = g->activity.occupancy_ppm,
                                .tensor_active_ppm = g->activity.tensor_ppm,
                                .dram_active_ppm = g->activity.dram_ppm};
    snprintf(r->uuid, sizeof(r->uuid), "%s", g->uuid);
    snprintf(r->pci_bus_id, sizeof(r->pci_bus_id), "%s", g->pci_bus_id);
    snprintf(r->name, sizeof(r->name), "%s", g->name);
}

/* Slices of devices are not among what the driver tells of. */
void busy_report(struct engine_local *e)
{
    struct engine_event ev = {
        .kind = ENGINE_READINGS, .boot_ms = clock_boot_ms(), .node_name = e->node.name};
    _cleanup_free_ struct model_reading *readings = NULL;

    if (e->meter == NULL)
        return;
    readings = calloc((size_t)e->devices.count, sizeof(*readings));
    if (readings == NULL)
        abort();
    for (int32_t i = 0; i < e->devices.count; i++) {
        char uuid[GPU_UUID_TEXT];
        int32_t d;

        share_uuid(&e->devices.devices[i], uuid);
        d = device_of(e->meter, uuid);
        if (d >= 0)
            fill_reading(&readings[ev.reading_count++], i,
                         gpu_telemetry_device(e->meter->telemetry, d));
    }
    ev.readings = readings;
    e->host.event(e->host.host, &ev);
}
