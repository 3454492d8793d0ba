/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated devices from a short text, "8xH100": COUNT x TYPE [: MEMORY] [/ PROFILE].
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "base/text.h"
#include "model/amount.h"
#include "model/check.h"
#include "model/node.h"

#define SPEC_BYTES_MAX 128
#define MIG_SLICES 7
#define SPEC_FORM "write COUNTxTYPE, such as 8xH100, 4xA100:40GiB or 7xH100/1g.10gb"

static const struct {
    const char *type;
    int64_t gib;
} known_types[] = {
    {"H100", 80}, {"H200", 141}, {"A100", 80}, {"A10", 24},   {"L40S", 48},
    {"L4", 24},   {"T4", 16},    {"V100", 32}, {"B200", 192},
};

/* The parts of a spec; strings point into the text that split() cut. */
struct spec {
    int32_t count;
    const char *type, *memory, *profile; /* memory, profile: NULL = not given */
};

static int split(char *text, struct spec *ret_spec, struct err *err)
{
    char *x = strchr(text, 'x'), *slash, *colon;
    struct spec spec = {0};
    int64_t count = 0;

    if (strpbrk(text, "+,"))
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL, SPEC_FORM,
                       "'%s' mixes groups of devices; one node has one group", text);
    if (x == NULL)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, SPEC_FORM, "'%s' describes no devices",
                       text);
    *x = '\0';
    if (qty_parse_int(text, &count, NULL) < 0 || count < 1 || count > MODEL_DEVICES_MAX)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, SPEC_FORM,
                       "'%s' is not a number of devices from 1 to %d", text, MODEL_DEVICES_MAX);
    spec.count = (int32_t)count;
    spec.type = x + 1;
    slash = strchr(x + 1, '/');
    if (slash) {
        *slash = '\0';
        spec.profile = slash + 1;
    }
    colon = strchr(x + 1, ':');
    if (colon) {
        *colon = '\0';
        spec.memory = colon + 1;
    }
    *ret_spec = spec;
    return 0;
}

static int find_memory(const struct spec *spec, struct model_device *device, struct err *err)
{
    int r;

    r = text_check_name(spec->type, strlen(spec->type), "type of device", err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < ARRAY_LEN(known_types); i++) {
        if (strcasecmp(known_types[i].type, spec->type) == 0) {
            device->type = known_types[i].type;
            device->memory_bytes = known_types[i].gib << 30;
        }
    }
    if (spec->memory) {
        r = qty_parse_bytes(spec->memory, &device->memory_bytes, err);
        if (r == 0 && (device->memory_bytes < 1 || device->memory_bytes > MODEL_TASK_BYTES_MAX))
            r = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, "use 1 byte to 64TiB",
                        "memory '%s' of a device is out of range", spec->memory);
        return r;
    }
    if (device->memory_bytes == 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "known: H100, H200, A100, A10, L40S, L4, T4, V100, B200; for another type "
                       "give the memory too, such as 8xMI300X:192GiB",
                       "memory of type '%s' is not known", spec->type);
    return 0;
}

/* A slice has the compute and the memory that its profile names. */
static int apply_profile(const struct spec *spec, struct arena *arena, struct model_device *device,
                         struct err *err)
{
    int64_t memory;
    int slices;

    if (spec->profile == NULL)
        return 0;
    slices = model_mig_slices(spec->profile, err);
    if (slices < 0)
        return slices;
    memory = strtoll(strchr(spec->profile, '.') + 1, NULL, 10) << 30;
    if (memory > device->memory_bytes)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "choose a smaller profile",
                       "a slice of profile '%s' is larger than the device", spec->profile);
    device->mig_profile = arena_strdup(arena, spec->profile);
    device->mig_milli = slices * 1000 / MIG_SLICES;
    device->memory_bytes = memory;
    return 0;
}

int model_devices_from_spec(const char *spec_text, struct arena *arena,
                            const struct model_device **ret_devices, int32_t *ret_count,
                            struct err *err)
{
    struct model_device *devices, model = {.simulated = true};
    char text[SPEC_BYTES_MAX];
    struct spec spec = {0};
    int r;

    if (strlen(spec_text) >= sizeof(text))
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, SPEC_FORM,
                       "description of devices is too long");
    snprintf(text, sizeof(text), "%s", spec_text);
    r = split(text, &spec, err);
    if (r == 0)
        r = find_memory(&spec, &model, err);
    if (r == 0)
        r = apply_profile(&spec, arena, &model, err);
    if (r < 0)
        return r;
    if (model.type == NULL)
        model.type = arena_strdup(arena, spec.type);
    devices = arena_new_array(arena, struct model_device, (size_t)spec.count);
    for (int32_t i = 0; i < spec.count; i++) {
        devices[i] = model;
        devices[i].uuid = arena_printf(arena, "SIM-%s-%d", model.type, i);
    }
    *ret_devices = devices;
    *ret_count = spec.count;
    return 0;
}
