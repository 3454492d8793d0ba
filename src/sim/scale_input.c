/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inputs of the scale benchmark: node lists of two public traces, pods of one of them, and gang
 * sizes.
 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/csv.h"
#include "sim/scale.h"

#define REPEAT_MAX 1000
#define CORES_MAX 100000
#define SIZE_MAX_GPUS 4096

/* How many of 82,247 jobs of the Philly trace had that many GPUs, in thousandths of them; the
 * few beyond 16 count as 32. Gangs of the same sizes, without the file. */
static const struct {
    uint32_t size, parts;
} philly_sizes[] = {{1, 932}, {2, 22}, {4, 23}, {8, 20}, {16, 2}, {32, 1}};

static void node_add(struct scale_input *in, const struct scale_node *n)
{
    vec_push(&in->nodes, *n);
    in->gpus += n->device_count;
    in->cpu_milli += n->cpu_milli;
    if (n->memory_bytes == SCHED_UNLIMITED || in->memory_bytes == SCHED_UNLIMITED)
        in->memory_bytes = SCHED_UNLIMITED;
    else
        in->memory_bytes += n->memory_bytes;
}

static int openb_nodes(struct scale_input *in, const struct scale_options *o, struct err *err)
{
    int r = openb_load_nodes(o->nodes, &in->openb, err);
    for (int64_t k = 0; r >= 0 && k < o->repeat; k++)
        for (size_t i = 0; i < in->openb.count; i++) {
            const struct openb_node *n = &in->openb.items[i];
            struct scale_node node = {n->model, n->cpu_milli, n->memory_bytes, n->device_count};
            node_add(in, &node);
        }
    return r;
}

/* The list of cluster-trace-v2026-spot-gpu: gpu_model, gpu_capacity_num, cpu_num. It says nothing
 * of memory. */
static int spot_nodes(struct scale_input *in, const struct scale_options *o, struct csv *c,
                      struct err *err)
{
    size_t model, gpus, cores;
    int r = csv_column(c, "gpu_model", &model, err);
    if (r >= 0)
        r = csv_column(c, "gpu_capacity_num", &gpus, err);
    if (r >= 0)
        r = csv_column(c, "cpu_num", &cores, err);
    while (r >= 0 && (r = csv_next(c, err)) > 0) {
        int64_t count, cpus;
        if ((r = csv_int(c, gpus, 0, OPENB_DEVICES_MAX, &count, err)) < 0 ||
            (r = csv_int(c, cores, 1, CORES_MAX, &cpus, err)) < 0)
            return r;
        struct scale_node n = {arena_strdup(&in->arena, csv_text(c, model)), cpus * 1000,
                               SCHED_UNLIMITED, (uint32_t)count};
        node_add(in, &n);
    }
    size_t once = in->nodes.len;
    for (int64_t k = 1; r >= 0 && k < o->repeat; k++)
        for (size_t i = 0; i < once; i++) {
            struct scale_node n = in->nodes.items[i];
            node_add(in, &n);
        }
    return r;
}

static int load_nodes(struct scale_input *in, const struct scale_options *o, struct err *err)
{
    _cleanup_(csv_close) struct csv c = {0};
    size_t column;
    int r = csv_open(&c, o->nodes, err);
    if (r < 0)
        return r;
    return csv_column(&c, "gpu_capacity_num", &column, NULL) < 0 ? openb_nodes(in, o, err)
                                                                 : spot_nodes(in, o, &c, err);
}

static void gang_add(struct scale_input *in, uint32_t size)
{
    uint32_t tasks = size < SCALE_TASKS_MAX ? size : SCALE_TASKS_MAX;
    vec_push(&in->gangs, tasks);
}

static int load_gangs(struct scale_input *in, const char *path, struct err *err)
{
    if (path == NULL) {
        for (size_t i = 0; i < sizeof(philly_sizes) / sizeof(philly_sizes[0]); i++)
            for (uint32_t k = 0; k < philly_sizes[i].parts; k++)
                gang_add(in, philly_sizes[i].size);
        return 0;
    }
    _cleanup_(csv_close) struct csv c = {0};
    size_t column;
    int r = csv_open(&c, path, err);
    if (r >= 0)
        r = csv_column(&c, "num_gpus", &column, err);
    while (r >= 0 && (r = csv_next(&c, err)) > 0) {
        int64_t size;
        r = csv_int(&c, column, 1, SIZE_MAX_GPUS, &size, err);
        if (r >= 0)
            gang_add(in, (uint32_t)size);
    }
    return r;
}

int scale_input_load(struct scale_input *in, const struct scale_options *o, struct err *err)
{
    int r = load_nodes(in, o, err);
    if (r >= 0)
        r = openb_load_pods(o->pods, &in->pods, err);
    if (r >= 0)
        r = load_gangs(in, o->philly, err);
    if (r >= 0 && (in->nodes.len == 0 || in->pods.count == 0 || in->gangs.len == 0 ||
                   in->gpus == 0 || o->repeat > REPEAT_MAX))
        r = err_set(err, -EINVAL, ERR_INVALID, NULL, "give lists with rows, and GPUs among them",
                    "nothing to measure");
    if (r < 0)
        scale_input_done(in);
    return r;
}

void scale_input_done(struct scale_input *in)
{
    openb_nodes_free(&in->openb);
    openb_pods_free(&in->pods);
    vec_done(&in->nodes);
    vec_done(&in->gangs);
    arena_done(&in->arena);
    *in = (struct scale_input){0};
}
