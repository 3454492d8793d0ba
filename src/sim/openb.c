/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/openb.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/vec.h"
#include "sim/csv.h"

#define CPU_MILLI_MAX (1LL << 32)
#define MEMORY_MIB_MAX (1LL << 32)
#define MIB (1LL << 20)
#define SECONDS_MAX (1LL << 40)
#define WHOLE 1000

/* Loading of one file: its texts are copied once each. */
struct loader {
    struct csv csv;
    struct map names; /* of models */
    struct arena *arena;
    struct err *err;
};

static void loader_done(struct loader *l)
{
    csv_close(&l->csv);
    map_done(&l->names);
}

static const char *intern(struct loader *l, const char *text, size_t len)
{
    char *copy = arena_strndup(l->arena, text, len);
    const char *known = map_get_str(&l->names, copy);
    if (known == NULL)
        map_put_str(&l->names, copy, copy);
    return known != NULL ? known : copy;
}

static int columns_find(struct loader *l, const char *const *names, size_t count, size_t *columns)
{
    int r = 0;
    for (size_t i = 0; r >= 0 && i < count; i++)
        r = csv_column(&l->csv, names[i], &columns[i], l->err);
    return r;
}

static int too_many(struct loader *l)
{
    return err_set(l->err, -E2BIG, ERR_TOO_LARGE, NULL, "give a shorter list",
                   "'%s' has more than %d rows", l->csv.path, OPENB_ROWS_MAX);
}

/* ---- nodes ------------------------------------------------------------------------------- */

enum { NODE_NAME, NODE_CPU, NODE_MEMORY, NODE_GPU, NODE_MODEL, NODE_COLUMNS };
static const char *const node_columns[] = {"sn", "cpu_milli", "memory_mib", "gpu", "model"};

static int node_row(struct loader *l, const size_t *at, struct openb_node *n)
{
    int64_t cpu, memory, gpus;
    int r = csv_int(&l->csv, at[NODE_CPU], 1, CPU_MILLI_MAX, &cpu, l->err);
    if (r >= 0)
        r = csv_int(&l->csv, at[NODE_MEMORY], 1, MEMORY_MIB_MAX, &memory, l->err);
    if (r >= 0)
        r = csv_int(&l->csv, at[NODE_GPU], 0, OPENB_DEVICES_MAX, &gpus, l->err);
    if (r < 0)
        return r;
    const char *model = csv_text(&l->csv, at[NODE_MODEL]);
    if ((gpus > 0) != (model[0] != '\0'))
        return csv_fail(&l->csv, at[NODE_MODEL], l->err, "name the model of a node with GPUs",
                        "does not go with the number of GPUs");
    *n = (struct openb_node){.name = arena_strdup(l->arena, csv_text(&l->csv, at[NODE_NAME])),
                             .model = gpus > 0 ? intern(l, model, strlen(model)) : NULL,
                             .cpu_milli = cpu,
                             .memory_bytes = memory * MIB,
                             .device_count = (uint32_t)gpus};
    return 0;
}

int openb_load_nodes(const char *path, struct openb_nodes *ret_nodes, struct err *err)
{
    struct openb_nodes nodes = {0};
    _cleanup_(loader_done) struct loader l = {.arena = &nodes.arena, .err = err};
    VEC(struct openb_node) rows = {0};
    size_t at[NODE_COLUMNS];
    int r = csv_open(&l.csv, path, err);
    if (r >= 0)
        r = columns_find(&l, node_columns, NODE_COLUMNS, at);
    while (r >= 0 && (r = csv_next(&l.csv, err)) > 0)
        r = rows.len < OPENB_ROWS_MAX ? node_row(&l, at, vec_add(&rows)) : too_many(&l);
    if (r >= 0) {
        nodes.count = rows.len;
        nodes.items = arena_memdup(&nodes.arena, rows.items, rows.len * sizeof(rows.items[0]));
        *ret_nodes = nodes;
    } else
        arena_done(&nodes.arena);
    vec_done(&rows);
    return r;
}

void openb_nodes_free(struct openb_nodes *nodes)
{
    arena_done(&nodes->arena);
    *nodes = (struct openb_nodes){0};
}

/* ---- pods -------------------------------------------------------------------------------- */

enum { POD_NAME, POD_CPU, POD_MEMORY, POD_GPUS, POD_MILLI, POD_COLUMNS };
static const char *const pod_columns[] = {"name", "cpu_milli", "memory_mib", "num_gpu",
                                          "gpu_milli"};
enum { MORE_SPEC, MORE_QOS, MORE_CREATED, MORE_DELETED, MORE_SCHEDULED, MORE_COLUMNS };
static const char *const more_columns[] = {"gpu_spec", "qos", "creation_time", "deletion_time",
                                           "scheduled_time"};
#define ABSENT SIZE_MAX

/* "A|B": acceptable models, each once. */
static int pod_models(struct loader *l, size_t column, struct openb_pod *p)
{
    const char *models[OPENB_MODELS_MAX];
    const char *text = csv_text(&l->csv, column);
    while (*text != '\0') {
        size_t len = strcspn(text, "|");
        if (len == 0 || p->model_count == OPENB_MODELS_MAX)
            return csv_fail(&l->csv, column, l->err, "give A|B with at most 32 models",
                            "is not a list of models");
        const char *model = intern(l, text, len);
        uint32_t i = 0;
        while (i < p->model_count && models[i] != model)
            i++;
        if (i == p->model_count)
            models[p->model_count++] = model;
        text += len + (text[len] == '|');
    }
    p->models = arena_memdup(l->arena, models, p->model_count * sizeof(models[0]));
    return 0;
}

static enum openb_qos qos_of(const char *text)
{
    static const char *const names[] = {"", "BE", "Burstable", "LS", "Guaranteed"};
    for (enum openb_qos q = OPENB_BE; q <= OPENB_GUARANTEED; q++)
        if (strcmp(text, names[q]) == 0)
            return q;
    return OPENB_QOS_UNKNOWN;
}

static int pod_second(struct loader *l, size_t column, int64_t *second)
{
    *second = -1;
    if (column == ABSENT || csv_text(&l->csv, column)[0] == '\0')
        return 0;
    return csv_int(&l->csv, column, 0, SECONDS_MAX, second, l->err);
}

static int pod_more(struct loader *l, const size_t *more, struct openb_pod *p)
{
    if (more[MORE_QOS] != ABSENT)
        p->qos = qos_of(csv_text(&l->csv, more[MORE_QOS]));
    int r = more[MORE_SPEC] != ABSENT ? pod_models(l, more[MORE_SPEC], p) : 0;
    if (r >= 0)
        r = pod_second(l, more[MORE_CREATED], &p->created_s);
    if (r >= 0)
        r = pod_second(l, more[MORE_DELETED], &p->deleted_s);
    if (r >= 0)
        r = pod_second(l, more[MORE_SCHEDULED], &p->scheduled_s);
    return r;
}

static int pod_row(struct loader *l, const size_t *at, const size_t *more, struct openb_pod *p)
{
    int64_t cpu, memory, gpus, milli;
    int r = csv_int(&l->csv, at[POD_CPU], 0, CPU_MILLI_MAX, &cpu, l->err);
    if (r >= 0)
        r = csv_int(&l->csv, at[POD_MEMORY], 0, MEMORY_MIB_MAX, &memory, l->err);
    if (r >= 0)
        r = csv_int(&l->csv, at[POD_GPUS], 0, OPENB_DEVICES_MAX, &gpus, l->err);
    if (r >= 0)
        r = csv_int(&l->csv, at[POD_MILLI], 0, WHOLE, &milli, l->err);
    if (r < 0)
        return r;
    if ((gpus == 0 && milli != 0) || (gpus == 1 && milli == 0) || (gpus > 1 && milli != WHOLE))
        return csv_fail(&l->csv, at[POD_MILLI], l->err,
                        "give 1000 for whole GPUs, 1 to 999 for part of one, 0 without",
                        "does not go with the number of GPUs");
    *p = (struct openb_pod){.name = arena_strdup(l->arena, csv_text(&l->csv, at[POD_NAME])),
                            .cpu_milli = cpu,
                            .memory_bytes = memory * MIB,
                            .device_count = (uint32_t)gpus,
                            .device_milli = (int32_t)milli};
    return pod_more(l, more, p);
}

int openb_load_pods(const char *path, struct openb_pods *ret_pods, struct err *err)
{
    struct openb_pods pods = {0};
    _cleanup_(loader_done) struct loader l = {.arena = &pods.arena, .err = err};
    VEC(struct openb_pod) rows = {0};
    size_t at[POD_COLUMNS], more[MORE_COLUMNS];
    int r = csv_open(&l.csv, path, err);
    if (r >= 0)
        r = columns_find(&l, pod_columns, POD_COLUMNS, at);
    for (size_t i = 0; r >= 0 && i < MORE_COLUMNS; i++)
        if (csv_column(&l.csv, more_columns[i], &more[i], NULL) < 0)
            more[i] = ABSENT;
    while (r >= 0 && (r = csv_next(&l.csv, err)) > 0)
        r = rows.len < OPENB_ROWS_MAX ? pod_row(&l, at, more, vec_add(&rows)) : too_many(&l);
    if (r >= 0) {
        pods.count = rows.len;
        pods.items = arena_memdup(&pods.arena, rows.items, rows.len * sizeof(rows.items[0]));
        *ret_pods = pods;
    } else
        arena_done(&pods.arena);
    vec_done(&rows);
    return r;
}

void openb_pods_free(struct openb_pods *pods)
{
    arena_done(&pods->arena);
    *pods = (struct openb_pods){0};
}

/* ---- for the scheduler ------------------------------------------------------------------- */

struct sched_node openb_sched_node(const struct openb_node *n, uint64_t id, uint64_t order,
                                   struct sched_device *devices)
{
    memset(devices, 0, n->device_count * sizeof(*devices));
    return (struct sched_node){.id = id,
                               .order = order,
                               .gpu_type = n->model,
                               .devices = devices,
                               .device_count = n->device_count,
                               .cpu_milli = n->cpu_milli,
                               .memory_bytes = n->memory_bytes,
                               .up = true,
                               .schedulable = true};
}

struct sched_request openb_sched_request(const struct openb_pod *p)
{
    return (struct sched_request){.device_count = p->device_count,
                                  .device_milli = p->device_milli,
                                  .cpu_milli = p->cpu_milli,
                                  .memory_bytes = p->memory_bytes,
                                  .gpu_types = p->models,
                                  .gpu_type_count = p->model_count,
                                  .gpu_types_equal = true};
}
