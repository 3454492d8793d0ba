/* SPDX-License-Identifier: Apache-2.0 */
#include "base/qty.h"
#include "base/strbuf.h"
#include "model/check.h"
#include "model/workload.h"

#define MIG_SLICES 7 /* compute slices of a whole device */
#define DEVICE_MEMORY_DEFAULT (80LL << 30)

int32_t model_shape_group_of(const struct model_shape *s, int32_t index, int32_t *ret_rank_in_group)
{
    int32_t g = 0;

    while (g < s->group_count - 1 && index >= s->groups[g].tasks)
        index -= s->groups[g++].tasks;
    if (ret_rank_in_group)
        *ret_rank_in_group = index;
    return g;
}

/* Memory over the device's, in milli, rounded up; never more than the device. */
static int32_t memory_milli(int64_t bytes, int64_t device_memory)
{
    int64_t device = device_memory > 0 ? device_memory : DEVICE_MEMORY_DEFAULT;
    int64_t milli;

    if (bytes >= device)
        return 1000;
    milli = qty_mul_div(bytes, 1000, device);
    if (milli == 0 || qty_mul_div(milli, device, 1000) < bytes)
        milli++;
    return (int32_t)milli;
}

bool model_request_is_part(const struct model_request *r)
{
    return r->device_count > 0 && r->device_milli < 1000;
}

int32_t model_request_gpu_milli(const struct model_request *r, int64_t device_memory)
{
    int32_t milli = 0;

    if (r->device_count > 0)
        return r->device_count * (r->device_milli > 0
                                      ? r->device_milli
                                      : memory_milli(r->device_memory_bytes, device_memory));
    for (int32_t i = 0; i < r->mig_count; i++) {
        int slices = model_mig_slices(r->mig[i].profile, NULL);

        if (slices > 0)
            milli += r->mig[i].count * (slices * 1000 / MIG_SLICES);
    }
    return milli;
}

static void describe_devices(const struct model_request *r, struct strbuf *b)
{
    char text[QTY_TEXT_MAX];

    if (r->device_milli == 1000) {
        strbuf_add_i64(b, r->device_count);
        if (r->gpu_type_count == 0)
            strbuf_adds(b, r->device_count == 1 ? " GPU" : " GPUs");
        else
            strbuf_adds(b, " x ");
        return;
    }
    if (r->device_count > 1)
        strbuf_addf(b, "%d x ", r->device_count);
    if (r->device_milli > 0)
        strbuf_addf(b, "%s %s", qty_format_milli(r->device_milli, text),
                    r->gpu_type_count == 0 ? "GPU" : "");
    else
        strbuf_addf(b, "%s of a %s", qty_format_bytes(r->device_memory_bytes, text),
                    r->gpu_type_count == 0 ? "GPU" : "");
}

void model_request_describe_into(const struct model_request *r, struct strbuf *b)
{
    if (r->device_count == 0 && r->mig_count == 0)
        strbuf_adds(b, "cpu only");
    if (r->device_count > 0)
        describe_devices(r, b);
    for (int32_t i = 0; i < r->mig_count; i++)
        strbuf_addf(b, "%s%d x %s", i ? " + " : "", r->mig[i].count, r->mig[i].profile);
    if (r->mig_count > 0 && r->gpu_type_count > 0)
        strbuf_adds(b, " of ");
    for (int32_t i = 0; i < r->gpu_type_count; i++)
        strbuf_addf(b, "%s%s", i ? "|" : "", r->gpu_types[i]);
}

const char *model_request_describe(const struct model_request *r, struct arena *arena)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    model_request_describe_into(r, &b);
    return arena_strdup(arena, strbuf_str(&b));
}
