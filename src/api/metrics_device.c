/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices under the names, help texts and labels of NVIDIA's exporter for DCGM, so that dashboards
 * made for it work: namespace, pod and container are team, workload and task.
 *
 * Each device is one series of each family, whoever holds it: a sum over series is a sum over
 * devices. So the three labels are there only where one task has all of the device. Who holds
 * which parts is a family of its own, to be joined with.
 */
#include "api/metrics.h"

#include <stddef.h>
#include <stdio.h>

#include "api/holders.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "model/reading.h"

#define WHOLE 1000 /* milli-GPU */

/* A device that is shown. */
struct device {
    const char *node;
    const struct model_reading *reading;
    const struct api_holder *whole; /* who has all of it; NULL: nobody, or not to be named */
};

struct devices {
    struct api_holders holders;
    VEC(struct device) items;
};

enum unit { UNIT_ONE, UNIT_MILLI, UNIT_MICRO, UNIT_MIB };

static const struct {
    const char *name, *type, *help;
    size_t offset; /* of an int64_t in a reading */
    enum unit unit;
} families[] = {
#define FIGURE(member) offsetof(struct model_reading, member)
    {"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", FIGURE(sm_clock_mhz)},
    {"DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).",
     FIGURE(memory_clock_mhz)},
    {"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", FIGURE(temperature_c)},
    {"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", FIGURE(power_mw), UNIT_MILLI},
    {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter",
     "Total energy consumption since boot (in mJ).", FIGURE(energy_mj)},
    {"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %).", FIGURE(busy_percent)},
    {"DCGM_FI_DEV_MEM_COPY_UTIL", "gauge", "Memory utilization (in %).",
     FIGURE(memory_busy_percent)},
    {"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB).", FIGURE(memory_free),
     UNIT_MIB},
    {"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB).", FIGURE(memory_used),
     UNIT_MIB},
    {"DCGM_FI_DEV_FB_RESERVED", "gauge", "Framebuffer memory reserved (in MiB).",
     FIGURE(memory_reserved), UNIT_MIB},
    {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "gauge", "Ratio of time the graphics engine is active.",
     FIGURE(engine_active_ppm), UNIT_MICRO},
    {"DCGM_FI_PROF_SM_ACTIVE", "gauge", "The ratio of cycles an SM has at least 1 warp assigned.",
     FIGURE(sm_active_ppm), UNIT_MICRO},
    {"DCGM_FI_PROF_SM_OCCUPANCY", "gauge", "The ratio of number of warps resident on an SM.",
     FIGURE(sm_occupancy_ppm), UNIT_MICRO},
    {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge",
     "Ratio of cycles the tensor (HMMA) pipe is active.", FIGURE(tensor_active_ppm), UNIT_MICRO},
    {"DCGM_FI_PROF_DRAM_ACTIVE", "gauge",
     "Ratio of cycles the device memory interface is active sending or receiving data.",
     FIGURE(dram_active_ppm), UNIT_MICRO},
#undef FIGURE
};

/* ---- who holds what ------------------------------------------------------------------------- */

/* What a holder has of each of its devices, milli-GPU. */
static int64_t share_of(const struct api_holder *x)
{
    return x->device_count > 0 ? x->gpu_milli / x->device_count : 0;
}

static bool is_on(const struct api_holders *h, size_t i, uint64_t node)
{
    return i < h->items.len && h->items.items[i].node == node;
}

/* Adds the devices of N: all of them, or those of which a holder may be named. */
static void add_devices(struct devices *d, const struct core_node_metrics *n, bool everything)
{
    const struct api_holders *h = &d->holders;
    const struct api_holder *named[MODEL_DEVICES_MAX] = {NULL};

    for (size_t i = api_holders_first_on(h, n->id); is_on(h, i, n->id); i++) {
        const struct api_holder *x = &h->items.items[i];

        for (int32_t k = 0; x->held && k < x->device_count; k++)
            if (x->devices[k] < MODEL_DEVICES_MAX)
                named[x->devices[k]] = x;
    }
    for (int32_t i = 0; i < n->reading_count; i++) {
        const struct model_reading *r = &n->readings[i];
        const struct api_holder *x = named[r->device];

        if (x || everything)
            vec_push(&d->items, ((struct device){.node = n->name,
                                                 .reading = r,
                                                 .whole = x && share_of(x) >= WHOLE ? x : NULL}));
    }
}

/* ---- writing -------------------------------------------------------------------------------- */

static void label_number(struct prom_writer *w, const char *name, const char *prefix, int64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%s%lld", prefix, (long long)value);
    prom_label(w, name, text);
}

static void label_task(struct prom_writer *w, const struct api_holder *x)
{
    label_number(w, "container", "", x->task);
    prom_label(w, "namespace", x->held->team);
    prom_label(w, "pod", x->held->name);
}

static void label_device(struct prom_writer *w, const struct device *d)
{
    label_number(w, "gpu", "", d->reading->device);
    prom_label(w, "UUID", d->reading->uuid);
    prom_label(w, "pci_bus_id", d->reading->pci_bus_id);
    label_number(w, "device", "nvidia", d->reading->minor);
    prom_label(w, "modelName", d->reading->name);
    prom_label(w, "Hostname", d->node);
    if (d->whole)
        label_task(w, d->whole);
}

static void write_value(struct prom_writer *w, int64_t value, enum unit unit)
{
    if (unit == UNIT_MILLI)
        prom_milli(w, value);
    else if (unit == UNIT_MICRO)
        prom_micro(w, value);
    else
        prom_i64(w, unit == UNIT_MIB ? value >> 20 : value);
}

static void write_readings(const struct devices *d, struct prom_writer *w)
{
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        prom_family(w, families[f].name, families[f].type, families[f].help);
        for (size_t i = 0; i < d->items.len; i++) {
            const char *reading = (const char *)d->items.items[i].reading;
            int64_t value = *(const int64_t *)(const void *)(reading + families[f].offset);

            if (value < 0)
                continue;
            prom_begin(w);
            label_device(w, &d->items.items[i]);
            write_value(w, value, families[f].unit);
        }
    }
}

static void write_parts(const struct api_holders *h, const struct core_node_metrics *n,
                        struct prom_writer *w)
{
    for (size_t i = api_holders_first_on(h, n->id); is_on(h, i, n->id); i++) {
        const struct api_holder *x = &h->items.items[i];

        for (int32_t k = 0; x->held && k < x->device_count; k++) {
            prom_begin(w);
            label_number(w, "gpu", "", x->devices[k]);
            prom_label(w, "Hostname", n->name);
            label_task(w, x);
            prom_milli(w, share_of(x));
        }
    }
}

int api_metrics_devices(struct api_call *call, bool everything, struct prom_writer *w,
                        struct err *err)
{
    const struct core_command *c = &call->command;
    struct devices d = {0};
    int r = api_holders_read(call, &d.holders, err);

    for (size_t i = 0; r == 0 && i < c->ret_node_count; i++)
        add_devices(&d, &c->ret_nodes[i], everything);
    if (r == 0) {
        write_readings(&d, w);
        prom_family(w, "allot_task_gpus", "gauge", "What a task holds of a device, in GPUs.");
    }
    for (size_t i = 0; r == 0 && i < c->ret_node_count; i++)
        write_parts(&d.holders, &c->ret_nodes[i], w);
    vec_done(&d.items);
    api_holders_done(&d.holders);
    return r;
}
