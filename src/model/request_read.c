/* SPDX-License-Identifier: Apache-2.0 */
#include "model/request_read.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "model/check.h"

/* Of a task without a device. Beside a device CPU is not counted unless asked for: on a GPU node
 * it is there in plenty, and must not be what keeps the last device idle. */
#define CPU_DEFAULT_MILLI 1000

static void set_remedy(struct err *err, const char *remedy)
{
    if (err)
        snprintf(err->remedy, sizeof(err->remedy), "%s", remedy);
}

/* A quantity MIN..MAX; RANGE says so in words. */
static int read_bounded(struct json_object *v, int64_t min, int64_t max, const char *range,
                        int (*parse)(const char *text, int64_t *ret_value, struct err *err),
                        int64_t *out, struct err *err)
{
    const char *text = NULL;
    int64_t value = 0;
    int r;

    if (v == NULL)
        return 0;
    r = model_json_quantity_text(v, &text, err);
    if (r == 0)
        r = parse(text, &value, err);
    if (r == 0 && (value < min || value > max))
        r = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL, "'%.40s' is out of range", text);
    if (r < 0) {
        set_remedy(err, range);
        return r;
    }
    *out = value;
    return 0;
}

int model_read_gpus(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const char range[] = "use a whole number from 0 to 1024, or gpu for a part of a device";
    int64_t milli = -1;
    int r;

    if (v == NULL)
        return 0;
    r = read_bounded(v, 0, MODEL_GPUS_MAX * 1000LL, range, qty_parse_milli, &milli, err);
    if (r < 0)
        return r;
    if (milli % 1000 != 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "for a part of a device write gpu instead, such as \"gpu\": 0.5",
                       "'%.40s' is not a whole number", json_object_get_string(v));
    *(int64_t *)out = milli / 1000;
    return 0;
}

int model_read_gpu(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const char range[] = "use 0.001 to 0.999, or a whole number up to 1024";
    int64_t milli = -1;
    int r;

    if (v == NULL)
        return 0;
    r = read_bounded(v, 0, MODEL_GPUS_MAX * 1000LL, range, qty_parse_milli, &milli, err);
    if (r < 0)
        return r;
    if (milli > 1000 && milli % 1000 != 0)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, range,
                       "'%.40s' is neither a part of one device nor a whole number",
                       json_object_get_string(v));
    *(int64_t *)out = milli;
    return 0;
}

int model_read_gpu_memory(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_bounded(v, 1, MODEL_TASK_BYTES_MAX, "use bytes up to 64TiB, such as 10GiB",
                        qty_parse_bytes, out, err);
}

int model_read_gpu_count(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? model_json_read_range(v, 1, MODEL_GPUS_MAX, out, err) : 0;
}

int model_read_cpu(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_bounded(v, 1, MODEL_CPU_MILLI_MAX, "use 0.001 to 1000000 cores, such as 2 or 500m",
                        qty_parse_milli, out, err);
}

int model_read_memory(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_bounded(v, 0, MODEL_TASK_BYTES_MAX, "use bytes up to 64TiB, such as 2GiB",
                        qty_parse_bytes, out, err);
}

/* ---- from fields to a request ----------------------------------------------------------- */

/* At most one form; gpu_count and gpu_type only where they mean something. */
static int check_forms(const struct model_request_draft *d, struct err *err)
{
    static const char *const names[] = {"gpus", "gpu", "gpu_memory", "mig"};
    const bool given[] = {d->gpus >= 0, d->gpu >= 0, d->gpu_memory >= 0, d->mig.count > 0};
    const char *first = NULL;

    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!given[i])
            continue;
        if (first)
            return err_set(err, -EINVAL, ERR_INVALID, names[i],
                           "use one of gpus, gpu, gpu_memory and mig", "%s cannot stand beside %s",
                           names[i], first);
        first = names[i];
    }
    if (d->gpu_count >= 0 && !((d->gpu > 0 && d->gpu < 1000) || d->gpu_memory >= 0))
        return err_set(err, -EINVAL, ERR_INVALID, "gpu_count",
                       "for whole devices use gpus; for slices give mig a count",
                       "gpu_count needs a gpu below 1, or gpu_memory");
    if (d->gpu_types.count > 0 && d->gpus <= 0 && d->gpu <= 0 && d->gpu_memory < 0 &&
        d->mig.count == 0)
        return err_set(err, -EINVAL, ERR_INVALID, "gpu_type",
                       "add gpus, gpu, gpu_memory or mig, or leave gpu_type out",
                       "gpu_type is given, but no GPU is asked for");
    return 0;
}

static void set_devices(const struct model_request_draft *d, struct model_request *q)
{
    int32_t count = d->gpu_count >= 0 ? (int32_t)d->gpu_count : 1;

    if (d->gpu_memory >= 0) {
        q->device_count = count;
        q->device_memory_bytes = d->gpu_memory;
    } else if (d->gpu > 0 && d->gpu < 1000) {
        q->device_count = count;
        q->device_milli = (int32_t)d->gpu;
    } else if (d->gpu > 0 || d->gpus > 0) {
        q->device_count = (int32_t)(d->gpu > 0 ? d->gpu / 1000 : d->gpus);
        q->device_milli = 1000;
    }
}

static int64_t default_cpu(const struct model_request *q)
{
    return q->device_count || q->mig_count ? 0 : CPU_DEFAULT_MILLI;
}

int model_request_from_draft(const struct model_request_draft *d, struct model_request *ret_request,
                             struct err *err)
{
    struct model_request q = {
        .mig = d->mig.items,
        .mig_count = d->mig.count,
        .memory_bytes = d->memory > 0 ? d->memory : 0,
        .gpu_types = d->gpu_types.items,
        .gpu_type_count = d->gpu_types.count,
        .labels = d->labels.items,
        .label_count = d->labels.count,
    };
    int r;

    r = check_forms(d, err);
    if (r < 0)
        return r;
    set_devices(d, &q);
    q.cpu_milli = d->cpu >= 0 ? d->cpu : default_cpu(&q);
    *ret_request = q;
    return 0;
}
