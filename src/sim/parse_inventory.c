/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes and teams of a scenario. */
#include "sim/scenario_fields.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"

static int decode_node_labels(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_node *n = dst;
    return sim_parse_pairs(d, v, &n->labels, &n->label_count);
}

static int decode_node_mig(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_node *n = dst;
    return sim_parse_mig(d, v, &n->mig, &n->mig_count);
}

static int decode_window(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        {"from_s", sim_decode_seconds, offsetof(struct sim_node, window_from_ms), SIM_REQUIRED},
        {"until_s", sim_decode_seconds, offsetof(struct sim_node, window_until_ms), SIM_REQUIRED},
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_node(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_node, name, sim_decode_name),
        FIELD(struct sim_node, gpus, sim_decode_count),
        FIELD_AS(struct sim_node, "gpu_memory_mib", gpu_memory_bytes, sim_decode_mib),
        FIELD(struct sim_node, cpu_milli, sim_decode_amount),
        FIELD_AS(struct sim_node, "memory_mib", memory_bytes, sim_decode_mib),
        FIELD(struct sim_node, gpu_type, sim_decode_name),
        FIELD_WHOLE("labels", decode_node_labels),
        FIELD_WHOLE("mig", decode_node_mig),
        FIELD_WHOLE("maintenance", decode_window),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_amounts(struct sim_decoder *d, struct json_object *v, int64_t absent,
                          struct sim_amounts *ret)
{
    static const struct sim_field fields[] = {
        FIELD_AS(struct sim_amounts, "gpu_milli", v[SCHED_GPU_MILLI], sim_decode_amount),
        FIELD_AS(struct sim_amounts, "cpu_milli", v[SCHED_CPU_MILLI], sim_decode_amount),
        FIELD_AS(struct sim_amounts, "memory_mib", v[SCHED_MEMORY_BYTES], sim_decode_mib),
    };
    for (int i = 0; i < SCHED_RESOURCES; i++)
        ret->v[i] = v == NULL ? SCHED_UNLIMITED : absent;
    return v == NULL ? 0 : sim_decode_object(d, v, fields, ARRAY_LEN(fields), ret);
}

static int decode_guarantee(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_amounts(d, v, 0, dst);
}

static int decode_limit(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return decode_amounts(d, v, SCHED_UNLIMITED, dst);
}

static int decode_quota(struct sim_decoder *d, struct json_object *v, void *dst)
{
    const char *word;
    int r = sim_decode_name(d, v, &word);
    if (r < 0)
        return r;
    if (strcmp(word, "fair") != 0 && strcmp(word, "hard") != 0)
        return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "use fair or hard",
                       "'%.40s' is not a quota", word);
    *(bool *)dst = word[0] == 'h';
    return 0;
}

/* The limit of a hard quota is the guarantee; of cpu and memory where there is one. */
static void harden(struct sim_team *t)
{
    for (int i = 0; t->hard && i < SCHED_RESOURCES; i++)
        t->limit.v[i] =
            i == SCHED_GPU_MILLI || t->guarantee.v[i] > 0 ? t->guarantee.v[i] : SCHED_UNLIMITED;
}

static int decode_type(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_AS(struct sched_type_quota, "guarantee_milli", guarantee, sim_decode_amount),
        FIELD_AS(struct sched_type_quota, "limit_milli", limit, sim_decode_amount),
    };
    return sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
}

static int decode_types(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sched_type_quota preset = {.guarantee = SCHED_UNLIMITED,
                                                   .limit = SCHED_UNLIMITED};
    struct sim_team *t = dst;
    void *items;
    int r = sim_decode_map(d, v, sizeof(preset), &preset, decode_type, &items, &t->type_count);
    if (r == 0)
        t->types = items;
    return r;
}

const struct sim_team sim_team_preset = {
    .limit = {{SCHED_UNLIMITED, SCHED_UNLIMITED, SCHED_UNLIMITED}},
    .weight = 1,
    .priority = 100,
    .parent = SIM_NO_INDEX,
};

int sim_parse_team(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_field fields[] = {
        FIELD_NEEDED(struct sim_team, name, sim_decode_name),
        FIELD_AS(struct sim_team, "parent", parent_name, sim_decode_name_or_null),
        FIELD(struct sim_team, guarantee, decode_guarantee),
        FIELD(struct sim_team, limit, decode_limit),
        FIELD(struct sim_team, weight, sim_decode_amount),
        FIELD(struct sim_team, priority, sim_decode_priority),
        FIELD_AS(struct sim_team, "quota", hard, decode_quota),
        FIELD_WHOLE("gpu_types", decode_types),
    };
    int r = sim_decode_object(d, v, fields, ARRAY_LEN(fields), dst);
    if (r == 0)
        harden(dst);
    return r;
}

int sim_parse_nodes(struct sim_decoder *d, struct json_object *v, void *dst)
{
    static const struct sim_node preset = {.cpu_milli = SCHED_UNLIMITED,
                                           .memory_bytes = SCHED_UNLIMITED};
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_node), &preset, decode_node, &items,
                             &s->node_count);
    if (r == 0)
        s->nodes = items;
    return r;
}

int sim_parse_teams(struct sim_decoder *d, struct json_object *v, void *dst)
{
    struct sim_scenario *s = dst;
    void *items;
    int r = sim_decode_array(d, v, sizeof(struct sim_team), &sim_team_preset, sim_parse_team,
                             &items, &s->team_count);
    if (r == 0)
        s->teams = items;
    return r;
}
