/* SPDX-License-Identifier: Apache-2.0 */
#include "model/task.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "model/amount.h"

void model_intent_format(uint64_t workload, int32_t task, int32_t attempt, char *text)
{
    snprintf(text, MODEL_INTENT_MAX, "%" PRIu64 ".%" PRId32 ".%" PRId32, workload, task, attempt);
}

/*
 * A decimal number 0..MAX as format() writes it, without sign or leading zeros, so that a name
 * has one spelling. Returns what follows, NULL if there is none.
 */
static const char *parse_number(const char *p, uint64_t max, uint64_t *ret_value)
{
    uint64_t value = 0;

    if (*p < '0' || *p > '9' || (p[0] == '0' && p[1] >= '0' && p[1] <= '9'))
        return NULL;
    for (; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value) || value > max)
            return NULL;
    }
    *ret_value = value;
    return p;
}

int model_intent_parse(const char *text, uint64_t *ret_workload, int32_t *ret_task,
                       int32_t *ret_attempt)
{
    uint64_t workload = 0, task = 0, attempt = 0;
    const char *p = text;

    p = parse_number(p, UINT64_MAX, &workload);
    if (p == NULL || *p != '.')
        return -EINVAL;
    p = parse_number(p + 1, INT32_MAX, &task);
    if (p == NULL || *p != '.')
        return -EINVAL;
    p = parse_number(p + 1, INT32_MAX, &attempt);
    if (p == NULL || *p != '\0')
        return -EINVAL;
    *ret_workload = workload;
    *ret_task = (int32_t)task;
    *ret_attempt = (int32_t)attempt;
    return 0;
}

void model_devices_format(const uint16_t *devices, int32_t count, struct strbuf *out)
{
    for (int32_t i = 0; i < count; i++) {
        if (i > 0)
            strbuf_addc(out, ',');
        strbuf_add_i64(out, devices[i]);
    }
}

int model_devices_parse(const char *text, uint16_t *devices, int32_t max)
{
    const char *p = text;
    int32_t count = 0;

    if (*p == '\0')
        return 0;
    for (;;) {
        uint64_t device = 0;

        p = parse_number(p, UINT16_MAX, &device);
        if (p == NULL)
            return -EINVAL;
        if (count == max)
            return -E2BIG;
        devices[count++] = (uint16_t)device;
        if (*p == '\0')
            return count;
        if (*p++ != ',')
            return -EINVAL;
    }
}

void model_task_encode(const struct model_task *t, struct json_writer *w)
{
    /* What was cancelled before it ran has no exit code. */
    bool ended = (model_task_state_is_final(t->state) || t->ended_ms > 0) &&
                 (t->state != MODEL_TASK_CANCELLED || t->started_ms > 0);

    json_begin_object(w);
    json_key_i64(w, "index", t->index);
    json_key_i64(w, "attempt", t->attempt);
    json_key_string(w, "state", model_task_state_name(t->state));
    json_key_string(w, "node", t->node_name);
    json_key(w, "devices");
    json_begin_array(w);
    /* A suspended task has none; those are where it will come back. */
    for (int32_t i = 0; i < t->device_count && t->state != MODEL_TASK_SUSPENDED; i++)
        json_i64(w, t->devices[i]);
    json_end_array(w);
    model_milli_encode(w, "gpu", t->gpu_milli);
    if (t->state == MODEL_TASK_HELD)
        json_key_time(w, "held_until", t->held_until_ms);
    json_key_time(w, "started_at", t->started_ms);
    json_key_time(w, "ended_at", t->ended_ms);
    json_key(w, "exit_code");
    if (ended)
        json_i64(w, t->exit_code);
    else
        json_null(w);
    json_key(w, "exit_signal");
    if (t->exit_signal > 0)
        json_i64(w, t->exit_signal);
    else
        json_null(w);
    json_key_string(w, "message", t->message);
    json_end_object(w);
}
