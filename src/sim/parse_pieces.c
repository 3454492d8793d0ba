/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces that several structures of a scenario share. */
#include "sim/scenario_fields.h"

#include <errno.h>

static int decode_pair(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return sim_decode_name(d, v, &((struct sim_pair *)dst)->value);
}

static int decode_counted(struct sim_decoder *d, struct json_object *v, void *dst)
{
    return sim_decode_count(d, v, &((struct sim_count *)dst)->count);
}

int sim_parse_names(struct sim_decoder *d, struct json_object *v, const char *const **ret_items,
                    uint32_t *ret_count)
{
    void *items;
    int r = sim_decode_array(d, v, sizeof(char *), NULL, sim_decode_name, &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

int sim_parse_pairs(struct sim_decoder *d, struct json_object *v, const struct sim_pair **ret_items,
                    uint32_t *ret_count)
{
    void *items;
    int r = sim_decode_map(d, v, sizeof(struct sim_pair), NULL, decode_pair, &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

int sim_parse_counts(struct sim_decoder *d, struct json_object *v, struct sim_count **ret_items,
                     uint32_t *ret_count)
{
    static const struct sim_count preset = {.index = SIM_NO_INDEX};
    void *items;
    int r =
        sim_decode_map(d, v, sizeof(struct sim_count), &preset, decode_counted, &items, ret_count);
    if (r == 0)
        *ret_items = items;
    return r;
}

int sim_parse_mig(struct sim_decoder *d, struct json_object *v, const struct sim_count **ret_items,
                  uint32_t *ret_count)
{
    struct sim_count *items = NULL;
    int r = sim_parse_counts(d, v, &items, ret_count);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < *ret_count; i++) {
        if (sim_mig_milli(items[i].key) == 0)
            return err_set(d->err, -EINVAL, ERR_INVALID, NULL, "write it like 1g.10gb",
                           "'%.40s' is not a MIG profile", items[i].key);
    }
    *ret_items = items;
    return 0;
}
