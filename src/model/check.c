/* SPDX-License-Identifier: Apache-2.0 */
#include "model/check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/qty.h"
#include "base/text.h"
#include "model/json.h"

#define LABEL_BYTES_MAX 252
#define PATH_BYTES_MAX 4095
#define IMAGE_BYTES_MAX 1024

/* ---- strings ---------------------------------------------------------------------------- */

static bool has_control(const char *s, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)s[i] < 0x20 || s[i] == 0x7f)
            return true;
    }
    return false;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

int model_check_env_name(const char *s, size_t len, struct err *err)
{
    bool ok = len > 0 && is_letter(s[0]);

    for (size_t i = 1; i < len && ok; i++)
        ok = is_letter(s[i]) || is_digit(s[i]);
    if (!ok)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "use letters, digits and '_', not starting with a digit",
                       "'%.60s' is not a name of an environment variable", s);
    if (text_starts_with(s, "ALLOT_"))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "choose a name without ALLOT_",
                       "'%.60s' is reserved: ALLOT_* is set for every task", s);
    return 0;
}

static bool has_parent_step(const char *s)
{
    for (const char *p = strstr(s, "/.."); p; p = strstr(p + 1, "/..")) {
        if (p[3] == '\0' || p[3] == '/')
            return true;
    }
    return false;
}

int model_check_path(const char *s, size_t len, struct err *err)
{
    if (len > PATH_BYTES_MAX)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, "use a shorter path",
                       "is a path of %zu bytes; %d are allowed", len, PATH_BYTES_MAX);
    if (s[0] != '/' || has_parent_step(s) || has_control(s, len))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "start with '/', without '..' in it",
                       "'%.60s' is not an absolute path", s);
    return 0;
}

int model_check_image(const char *s, size_t len, struct err *err)
{
    if (len == 0 || len > IMAGE_BYTES_MAX || has_control(s, len) || strchr(s, ' ') || s[0] == '-')
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "use a reference such as docker://python:3.12",
                       "'%.60s' is not an image reference", s);
    return 0;
}

int model_check_label(const char *s, size_t len, struct err *err)
{
    if (len == 0 || len > LABEL_BYTES_MAX || has_control(s, len) || s[0] == ' ' ||
        s[len - 1] == ' ')
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "use 1 to 252 bytes without control characters or blanks at the ends",
                       "'%.60s' is not a label", s);
    return 0;
}

int model_check_label_value(const char *s, size_t len, struct err *err)
{
    return len > 0 ? model_check_label(s, len, err) : 0;
}

int model_check_name(const char *s, size_t len, struct err *err)
{
    char subject[80];

    snprintf(subject, sizeof(subject), "'%.60s'", s);
    return text_check_name(s, len, subject, err);
}

int model_check_gpu_type(const char *s, size_t len, struct err *err)
{
    return model_check_name(s, len, err);
}

int model_mig_slices(const char *profile, struct err *err)
{
    const char *p = profile;

    /* N compute slices, "g.", memory in GB, and media extensions behind a plus: "1g.10gb+me". */
    if (p[0] >= '1' && p[0] <= '7' && p[1] == 'g' && p[2] == '.' && is_digit(p[3]) && p[3] != '0') {
        p += 4;
        for (int digits = 1; digits < 3 && is_digit(*p); digits++)
            p++;
        if (p[0] == 'g' && p[1] == 'b' &&
            (p[2] == '\0' || strcmp(p + 2, "+me") == 0 || strcmp(p + 2, "+gfx") == 0))
            return profile[0] - '0';
    }
    return err_set(err, -EINVAL, ERR_INVALID, NULL, "use a profile such as 1g.10gb or 3g.40gb",
                   "'%.40s' is not a MIG profile", profile);
}

/* ---- shapes ----------------------------------------------------------------------------- */

static int check_range(const char *field, int64_t v, int64_t min, int64_t max, struct err *err)
{
    if (v >= min && v <= max)
        return 0;
    return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, field, NULL,
                   "%s %" PRId64 " is out of range %" PRId64 " to %" PRId64, field, v, min, max);
}

static int check_duration(const char *field, int64_t ms, int64_t max, struct err *err)
{
    char text[QTY_TEXT_MAX], most[QTY_TEXT_MAX];

    if (ms >= 0 && ms <= max)
        return 0;
    return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, field, NULL, "%s %s is above the maximum of %s",
                   field, qty_format_duration_ms(ms, text), qty_format_duration_ms(max, most));
}

static int check_request(const struct model_request *q, struct err *err)
{
    const char *gpus = q->device_milli > 0 && q->device_milli < 1000 ? "gpu_count" : "gpus";
    int64_t mig = 0;
    int r;

    r = check_range(gpus, q->device_count, 0, MODEL_GPUS_MAX, err);
    if (r == 0)
        r = check_range("gpu", q->device_milli, 0, 1000, err);
    if (r == 0)
        r = check_range("gpu_memory", q->device_memory_bytes, 0, MODEL_TASK_BYTES_MAX, err);
    if (r == 0)
        r = check_range("memory", q->memory_bytes, 0, MODEL_TASK_BYTES_MAX, err);
    if (r == 0 && (q->cpu_milli < 0 || q->cpu_milli > MODEL_CPU_MILLI_MAX))
        r = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "cpu", "use 0.001 to 1000000 cores",
                    "cpu is out of range");
    for (int32_t i = 0; i < q->mig_count && r == 0; i++) {
        r = check_range("mig", q->mig[i].count, 1, MODEL_GPUS_MAX, err);
        mig += q->mig[i].count;
    }
    if (r == 0)
        r = check_range("mig", mig, 0, MODEL_GPUS_MAX, err);
    if (r < 0)
        return r;
    /* Exactly one form: compute, memory, MIG, or no device at all. */
    if ((q->device_count > 0) != (q->device_milli > 0 || q->device_memory_bytes > 0) ||
        (q->device_milli > 0 && q->device_memory_bytes > 0) ||
        (q->mig_count > 0 && q->device_count > 0))
        return err_set(err, -EINVAL, ERR_INVALID, "gpus",
                       "use one of gpus, gpu, gpu_memory and mig",
                       "gpus and the other forms of a GPU request contradict each other");
    return 0;
}

static int check_group(const struct model_group *g, struct err *err)
{
    int r;

    r = check_range("tasks", g->tasks, 1, MODEL_TASKS_MAX, err);
    if (r == 0 && g->min_tasks > g->tasks)
        r = err_set(err, -EINVAL, ERR_INVALID, "min_tasks", "lower min_tasks or raise tasks",
                    "min_tasks %d is above tasks %d", g->min_tasks, g->tasks);
    if (r == 0)
        r = check_range("min_tasks", g->min_tasks, 0, MODEL_TASKS_MAX, err);
    return r < 0 ? r : check_request(&g->request, err);
}

static int check_tasks(const struct model_shape *s, struct err *err)
{
    int64_t tasks = 0, minima = 0;
    int r;

    r = check_range("groups", s->group_count, 1, MODEL_GROUPS_MAX, err);
    for (int32_t i = 0; i < s->group_count && r == 0; i++) {
        tasks += s->groups[i].tasks;
        minima += s->groups[i].min_tasks;
        r = check_range("tasks", tasks, 1, MODEL_TASKS_MAX, err);
    }
    if (r < 0)
        return r;
    if (s->task_count != tasks)
        return err_set(err, -EINVAL, ERR_INVALID, "tasks", NULL,
                       "tasks %d are not the %" PRId64 " of the groups", s->task_count, tasks);
    if (s->min_tasks < 1)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "min_tasks", "use 1 or more",
                       "min_tasks %d is below 1", s->min_tasks);
    if (s->min_tasks > tasks)
        return err_set(err, -EINVAL, ERR_INVALID, "min_tasks", "lower min_tasks or raise tasks",
                       "min_tasks %d is above tasks %" PRId64, s->min_tasks, tasks);
    if (s->min_tasks < minima)
        return err_set(
            err, -EINVAL, ERR_INVALID, "min_tasks", "raise it, or lower min_tasks of the groups",
            "min_tasks %d is below the sum of the groups' minima, %" PRId64, s->min_tasks, minima);
    return 0;
}

static int check_class(const struct model_shape *s, struct err *err)
{
    if (s->class_ == MODEL_BATCH && s->kind == MODEL_SERVICE)
        return err_set(err, -EINVAL, ERR_INVALID, "class",
                       "use production, or development where it may be evicted",
                       "class batch is for jobs and notebooks: a service would come and go");
    if (s->class_ == MODEL_BATCH && !s->preemptible)
        return err_set(err, -EINVAL, ERR_INVALID, "preemptible",
                       "leave it out, or choose another class",
                       "preemptible false contradicts class batch, which gives way to anything");
    if (s->class_ == MODEL_PRODUCTION && s->burst)
        return err_set(err, -EINVAL, ERR_INVALID, "burst", "leave it out, or choose class training",
                       "burst true contradicts class production, which stays within guarantees");
    return 0;
}

static int check_budget(const struct model_shape *s, struct err *err)
{
    if (s->max_unavailable == 0)
        return 0;
    if (s->max_unavailable < 0 || s->max_unavailable > s->task_count)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "max_unavailable", MODEL_UNAVAILABLE_BOUNDS,
                       "max_unavailable %d is out of range", s->max_unavailable);
    if (s->kind != MODEL_SERVICE)
        return err_set(err, -EINVAL, ERR_INVALID, "max_unavailable",
                       "leave it out, or choose kind service",
                       "max_unavailable is for services: other work starts again as a whole");
    if (s->burst)
        return err_set(err, -EINVAL, ERR_INVALID, "burst", "leave it out",
                       "burst true contradicts max_unavailable: what is sure to run must lie "
                       "within the guarantee");
    return 0;
}

static int check_times(const struct model_shape *s, struct err *err)
{
    int r;

    r = check_duration("preemption.grace", s->grace_ms, MODEL_GRACE_MS_MAX, err);
    if (r == 0)
        r = check_duration("max_run_time", s->limit_ms, MODEL_RUN_MS_MAX, err);
    if (r == 0)
        r = check_duration("expected_run_time", s->expected_ms, MODEL_RUN_MS_MAX, err);
    if (r == 0)
        r = check_duration("min_run_time", s->min_run_ms, MODEL_RUN_MS_MAX, err);
    if (r == 0 && s->limit_ms > 0 && s->expected_ms > s->limit_ms)
        r = err_set(err, -EINVAL, ERR_INVALID, "expected_run_time",
                    "raise max_run_time or lower expected_run_time",
                    "expected_run_time is longer than max_run_time");
    return r;
}

int model_shape_check(const struct model_shape *s, struct err *err)
{
    int r = 0;

    for (int32_t i = 0; i < s->group_count && r == 0; i++) {
        r = check_group(&s->groups[i], err);
        if (r < 0 && s->group_count > 1)
            model_json_in(err, "groups[%d]", i);
    }
    if (r == 0)
        r = check_tasks(s, err);
    if (r == 0)
        r = check_range("priority", s->priority, -MODEL_PRIORITY_MAX, MODEL_PRIORITY_MAX, err);
    if (r == 0)
        r = check_range("max_retries", s->max_retries, 0, MODEL_RETRIES_MAX, err);
    if (r == 0)
        r = check_times(s, err);
    if (r == 0)
        r = check_budget(s, err);
    return r < 0 ? r : check_class(s, err);
}
