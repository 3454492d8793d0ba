/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "model/check.h"
#include "model/request_read.h"

/* ---- one string ------------------------------------------------------------------------- */

typedef int check_fn(const char *s, size_t len, struct err *err);

static int read_checked(struct json_object *v, check_fn *check, struct arena *a, void *out,
                        struct err *err)
{
    const char *text = NULL;
    int r;

    if (v == NULL)
        return 0;
    r = model_json_read_string(v, a, &text, err);
    if (r == 0)
        r = check(text, strlen(text), err);
    if (r == 0)
        *(const char **)out = text;
    return r;
}

int model_read_label(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_checked(v, model_check_label, a, out, err);
}

int model_read_path(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_checked(v, model_check_path, a, out, err);
}

int model_read_image(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return read_checked(v, model_check_image, a, out, err);
}

/* ---- words ------------------------------------------------------------------------------ */

static int refuse_word(const char *text, const char *known, struct err *err)
{
    return err_set(err, -EINVAL, ERR_INVALID, NULL, known, "'%.40s' is not known", text);
}

int model_read_kind(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r;

    r = model_json_read_string(v, a, &text, err);
    if (r == 0 && text && model_kind_parse(text, out) < 0)
        return refuse_word(text, "use job, notebook or service", err);
    return r;
}

int model_read_class(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r;

    r = model_json_read_string(v, a, &text, err);
    if (r == 0 && text && model_class_parse(text, out) < 0)
        return refuse_word(text, "use production, training, development or batch", err);
    return r;
}

int model_read_handling(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    const char *text = NULL;
    int r;

    r = model_json_read_string(v, a, &text, err);
    if (r == 0 && text && model_handling_parse(text, out) < 0)
        return refuse_word(text, "use checkpoint, restart or suspend", err);
    return r;
}

/* ---- lists ------------------------------------------------------------------------------ */

int model_read_gpu_types(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct model_strings *types = out;
    int r;

    if (v == NULL)
        return 0;
    if (json_object_is_type(v, json_type_string)) {
        const char **one = arena_new_array(a, const char *, 2);

        r = read_checked(v, model_check_gpu_type, a, one, err);
        if (r == 0)
            *types = (struct model_strings){one, 1};
        return r;
    }
    r = model_json_read_strings(v, MODEL_GPU_TYPES_MAX, model_check_gpu_type, a, &types->items,
                                &types->count, err);
    for (int32_t i = 1; i < types->count && r == 0; i++) {
        for (int32_t j = 0; j < i && r == 0; j++) {
            if (strcmp(types->items[i], types->items[j]) == 0)
                r = err_set(err, -EINVAL, ERR_INVALID, NULL, "give each type once",
                            "has '%.60s' twice", types->items[i]);
        }
    }
    return r;
}

int model_read_command(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct model_strings *command = out;
    size_t bytes = 0;
    int r;

    if (v == NULL)
        return 0;
    r = model_json_read_strings(v, MODEL_COMMAND_MAX, NULL, a, &command->items, &command->count,
                                err);
    if (r < 0)
        return r;
    if (command->count == 0 || command->items[0][0] == '\0')
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "give the program and its arguments: [\"python3\", \"train.py\"]",
                       "is empty");
    for (int32_t i = 0; i < command->count; i++)
        bytes += strlen(command->items[i]) + 1;
    if (bytes > MODEL_COMMAND_BYTES_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "put long arguments into a file",
                       "is %zu bytes long; %d are allowed", bytes, MODEL_COMMAND_BYTES_MAX);
    return 0;
}

/* ---- pairs ------------------------------------------------------------------------------ */

static int compare_pairs(const void *a, const void *b)
{
    return strcmp(((const struct model_pair *)a)->key, ((const struct model_pair *)b)->key);
}

static int read_pairs(struct json_object *v, int max, check_fn *check_key, check_fn *check_value,
                      struct arena *a, struct model_pairs *ret_pairs, struct err *err)
{
    struct model_pair *items;
    size_t bytes = 0;
    int32_t count = 0;

    if (!json_object_is_type(v, json_type_object))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "use an object: {\"name\": \"value\"}",
                       "must be an object, not %s", model_json_type_name(v));
    if (json_object_object_length(v) > max)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, NULL, "has %d entries; %d are allowed",
                       json_object_object_length(v), max);
    items = arena_new_array(a, struct model_pair, (size_t)json_object_object_length(v) + 1);
    json_object_object_foreach(v, key, value)
    {
        int r;

        r = check_key(key, strlen(key), err);
        if (r < 0)
            return r;
        if (!json_object_is_type(value, json_type_string))
            r = err_set(err, -EINVAL, ERR_INVALID, NULL, "put it in double quotes",
                        "must be a string, not %s", model_json_type_name(value));
        else if (check_value)
            r = check_value(json_object_get_string(value),
                            (size_t)json_object_get_string_len(value), err);
        if (r < 0) {
            model_json_in(err, "%.60s", key);
            return r;
        }
        items[count].key = arena_strdup(a, key);
        items[count].value = arena_strdup(a, json_object_get_string(value));
        bytes += strlen(items[count].key) + strlen(items[count].value) + 2;
        count++;
    }
    if (bytes > MODEL_COMMAND_BYTES_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "put long values into a file",
                       "is %zu bytes long; %d are allowed", bytes, MODEL_COMMAND_BYTES_MAX);
    qsort(items, (size_t)count, sizeof(*items), compare_pairs);
    *ret_pairs = (struct model_pairs){items, count};
    return 0;
}

int model_read_labels(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? read_pairs(v, MODEL_LABELS_MAX, model_check_label, model_check_label_value, a, out,
                          err)
             : 0;
}

int model_read_node_labels(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? read_pairs(v, MODEL_NODE_LABELS_MAX, model_check_label, model_check_label_value, a,
                          out, err)
             : 0;
}

int model_read_env(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    return v ? read_pairs(v, MODEL_ENV_MAX, model_check_env_name, NULL, a, out, err) : 0;
}

/* ---- MIG -------------------------------------------------------------------------------- */

static int compare_migs(const void *a, const void *b)
{
    return strcmp(((const struct model_mig *)a)->profile, ((const struct model_mig *)b)->profile);
}

static int add_mig(const char *profile, struct json_object *count, struct arena *a,
                   struct model_mig *mig, struct err *err)
{
    int64_t n = 1;
    int r;

    r = model_mig_slices(profile, err);
    if (r < 0)
        return r;
    if (count) {
        r = model_json_read_range(count, 1, MODEL_GPUS_MAX, &n, err);
        if (r < 0) {
            model_json_in(err, "%.60s", profile);
            return r;
        }
    }
    *mig = (struct model_mig){arena_strdup(a, profile), (int32_t)n};
    return 0;
}

int model_read_migs(struct json_object *v, struct arena *a, void *out, struct err *err)
{
    struct model_mig *items;
    int32_t count = 0;
    int r;

    if (v == NULL)
        return 0;
    items = arena_new_array(a, struct model_mig, MODEL_MIG_MAX);
    if (json_object_is_type(v, json_type_string)) {
        r = add_mig(json_object_get_string(v), NULL, a, &items[count++], err);
        if (r < 0)
            return r;
    } else if (json_object_is_type(v, json_type_object) && json_object_object_length(v) > 0 &&
               json_object_object_length(v) <= MODEL_MIG_MAX) {
        json_object_object_foreach(v, profile, n)
        {
            r = add_mig(profile, n, a, &items[count++], err);
            if (r < 0)
                return r;
        }
    } else {
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "use \"1g.10gb\", or 1 to 16 profiles with counts: {\"1g.10gb\": 2}",
                       "must be a profile or an object of profiles and counts");
    }
    qsort(items, (size_t)count, sizeof(*items), compare_migs);
    *(struct model_migs *)out = (struct model_migs){items, count};
    return 0;
}
