/* SPDX-License-Identifier: Apache-2.0 */
#include "model/idle.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "model/json.h"

#define AFTER_MIN_MS INT64_C(10000) /* two looks at what a task does */
#define AFTER_MAX_MS (INT64_C(365) * 24 * 3600 * 1000)

static const char *const action_names[MODEL_IDLE_ACTION_COUNT] = {
    [MODEL_IDLE_NOTIFY] = "notify",
    [MODEL_IDLE_SUSPEND] = "suspend",
    [MODEL_IDLE_STOP] = "stop",
};

static const char *const signal_names[MODEL_SIGNAL_COUNT] = {
    [MODEL_SIGNAL_GPU] = "gpu",       [MODEL_SIGNAL_CPU] = "cpu",
    [MODEL_SIGNAL_OUTPUT] = "output", [MODEL_SIGNAL_SESSION] = "session",
    [MODEL_SIGNAL_KERNEL] = "kernel", [MODEL_SIGNAL_UNKNOWN] = "unknown",
};

const char *model_idle_action_name(enum model_idle_action a)
{
    return action_names[a];
}

const char *model_signal_name(enum model_signal s)
{
    return signal_names[s];
}

static int read_after(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    int64_t ms = 0;
    int r = model_json_read_duration(v, a, &ms, err);

    if (r < 0)
        return r;
    if (ms < AFTER_MIN_MS || ms > AFTER_MAX_MS)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, "write a time such as 1h",
                       "must be 10 seconds to 365 days");
    *(int64_t *)out = ms;
    return 0;
}

static int read_action(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r = model_json_read_string(v, a, &text, err);

    if (r < 0)
        return r;
    for (int i = 0; text && i < MODEL_IDLE_ACTION_COUNT; i++) {
        if (strcmp(text, action_names[i]) != 0)
            continue;
        *(enum model_idle_action *)out = (enum model_idle_action)i;
        return 0;
    }
    return err_set(err, -EINVAL, ERR_INVALID, NULL, "use notify, suspend or stop",
                   "'%.40s' is not what can be done with idle work", text ? text : "null");
}

static int read_signal(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r = model_json_read_string(v, a, &text, err);

    if (r < 0)
        return r;
    if (text && strcmp(text, "any") != 0 && strcmp(text, "gpu") != 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "use any or gpu",
                       "'%.40s' is not a signal to go by", text);
    *(bool *)out = text && strcmp(text, "gpu") == 0;
    return 0;
}

static int read_rule(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[] = {
        {"after", read_after, offsetof(struct model_idle_rule, after_ms), true},
        {"action", read_action, offsetof(struct model_idle_rule, action), true},
        {"signal", read_signal, offsetof(struct model_idle_rule, gpu_only)},
    };
    struct model_idle_rule rule = {0};
    int r = v ? model_json_read(v, fields, ARRAY_LEN(fields), a, &rule, err) : 0;

    if (r == 0)
        *(struct model_idle_rule *)out = rule;
    return r;
}

int model_idle_read(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    static const struct model_json_field fields[MODEL_KIND_COUNT] = {
        [MODEL_JOB] = {"job", read_rule, sizeof(struct model_idle_rule) * MODEL_JOB},
        [MODEL_NOTEBOOK] = {"notebook", read_rule, sizeof(struct model_idle_rule) * MODEL_NOTEBOOK},
        [MODEL_SERVICE] = {"service", read_rule, sizeof(struct model_idle_rule) * MODEL_SERVICE},
    };

    if (v)
        return model_json_read(v, fields, MODEL_KIND_COUNT, a, out, err);
    memset(out, 0, sizeof(struct model_idle_rule) * MODEL_KIND_COUNT);
    return 0;
}

void model_idle_encode(const struct model_idle_rule rules[MODEL_KIND_COUNT], struct json_writer *w)
{
    char text[QTY_TEXT_MAX];

    json_begin_object(w);
    for (int k = 0; k < MODEL_KIND_COUNT; k++) {
        const struct model_idle_rule *rule = &rules[k];

        if (rule->after_ms == 0)
            continue;
        json_key(w, model_kind_name((enum model_kind)k));
        json_begin_object(w);
        json_key_string(w, "after", qty_format_duration_ms(rule->after_ms, text));
        json_key_string(w, "action", model_idle_action_name(rule->action));
        json_key_string(w, "signal", rule->gpu_only ? "gpu" : "any");
        json_end_object(w);
    }
    json_end_object(w);
}

void model_idle_text(const struct model_idle_rule rules[MODEL_KIND_COUNT], struct strbuf *out)
{
    struct json_writer w;

    json_writer_init(&w, out);
    model_idle_encode(rules, &w);
}

int model_idle_parse(const char *text, struct model_idle_rule rules[MODEL_KIND_COUNT])
{
    struct model_idle_rule read[MODEL_KIND_COUNT] = {0};
    struct arena arena = {0};
    struct json_object *json = *text ? json_tokener_parse(text) : NULL;
    int r = *text && json == NULL ? -EINVAL : model_idle_read(json, &arena, read, NULL);

    if (r == 0)
        memcpy(rules, read, sizeof(read));
    json_object_put(json);
    arena_done(&arena);
    return r;
}
