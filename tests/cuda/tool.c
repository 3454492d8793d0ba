/* SPDX-License-Identifier: Apache-2.0 */
/* cuda-double: makes simulated machines, moves their clock, shows what is on them. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/qty.h"
#include "double.h"
#include "gpu/uuid.h"

static const char usage[] =
    "usage: cuda-double create FILE [--devices N] [--memory 80GiB] [--reserved 0] [--sms 108]\n"
    "           [--mode timeslice|mps|bench] [--clock real|virtual] [--context 300MiB]\n"
    "           [--quantum NS] [--switch NS] [--window NS] [--lag NS] [--copy BYTES/S]\n"
    "           [--pagein BYTES/S] [--host-copies yes] [--name NAME]\n"
    "           [--device UUID,BYTES,NAME]...  each adds one, in place of --devices\n"
    "       cuda-double advance FILE NS     moves the virtual clock\n"
    "       cuda-double actors FILE N       threads that the virtual clock waits for\n"
    "       cuda-double fail FILE KIND NTH CODE\n"
    "       cuda-double show FILE\n";

static int wrong(const char *subject, const char *what)
{
    fprintf(stderr, "cuda-double: '%s': %s\n", subject, what);
    return 2;
}

/* Option NAME sets a field of CONFIG from TEXT. False: no such option or a bad value. */
static bool set_number(struct dbl_config *config, const char *name, const char *text)
{
    const struct {
        const char *name;
        uint64_t *field;
        bool bytes;
    } numbers[] = {
        {"--memory", &config->memory, true},
        {"--reserved", &config->reserved, true},
        {"--context", &config->context_bytes, true},
        {"--copy", &config->copy_bytes_per_s, true},
        {"--pagein", &config->pagein_bytes_per_s, true},
        {"--quantum", &config->quantum_ns, false},
        {"--switch", &config->switch_ns, false},
        {"--window", &config->window_ns, false},
        {"--lag", &config->lag_ns, false},
    };
    struct err err = {0};
    int64_t value;

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (strcmp(numbers[i].name, name) != 0)
            continue;
        if ((numbers[i].bytes ? qty_parse_bytes(text, &value, &err)
                              : qty_parse_int(text, &value, &err)) < 0 ||
            value < 0)
            return false;
        *numbers[i].field = (uint64_t)value;
        return true;
    }
    return false;
}

static bool set_count(uint32_t *field, const char *text)
{
    struct err err = {0};
    int64_t value;

    if (qty_parse_int(text, &value, &err) < 0 || value < 0 || value > 100000)
        return false;
    *field = (uint32_t)value;
    return true;
}

static bool set_option(struct dbl_config *config, const char *name, const char *text)
{
    if (strcmp(name, "--devices") == 0)
        return set_count(&config->devices, text);
    if (strcmp(name, "--sms") == 0)
        return set_count(&config->sms, text);
    if (strcmp(name, "--name") == 0)
        return snprintf(config->name, sizeof(config->name), "%s", text) < (int)sizeof(config->name);
    if (strcmp(name, "--host-copies") == 0) {
        config->host_copies = strcmp(text, "yes") == 0;
        return true;
    }
    if (strcmp(name, "--clock") == 0) {
        config->clock = strcmp(text, "virtual") == 0 ? DBL_CLOCK_VIRTUAL : DBL_CLOCK_REAL;
        return strcmp(text, "virtual") == 0 || strcmp(text, "real") == 0;
    }
    for (int m = 0; strcmp(name, "--mode") == 0 && dbl_mode_name(m) != NULL; m++) {
        if (strcmp(text, dbl_mode_name(m)) != 0)
            continue;
        config->mode = (enum dbl_mode)m;
        return true;
    }
    return set_number(config, name, text);
}

/* TEXT is "UUID,BYTES,NAME". */
static bool read_device(const char *text, struct dbl_device_info *ret_info)
{
    char uuid[GPU_UUID_TEXT];
    int name = 0;

    *ret_info = (struct dbl_device_info){0};
    if (sscanf(text, "%40[^,],%" SCNu64 ",%n", uuid, &ret_info->memory, &name) != 2 || name == 0 ||
        gpu_uuid_parse(uuid, ret_info->uuid) < 0 || ret_info->memory == 0)
        return false;
    return snprintf(ret_info->name, sizeof(ret_info->name), "%s", text + name) <
           (int)sizeof(ret_info->name);
}

/* Devices that are described one by one; the rest of them is as the configuration has it. */
static int describe(const char *file, const struct dbl_device_info *infos, uint32_t count)
{
    struct dbl_shared *sh;
    int error = dbl_open(file, &sh);

    for (uint32_t i = 0; error == 0 && i < count; i++) {
        struct dbl_device_info info = *dbl_info(sh, i);

        memcpy(info.uuid, infos[i].uuid, sizeof(info.uuid));
        memcpy(info.name, infos[i].name, sizeof(info.name));
        info.memory = infos[i].memory;
        dbl_describe(sh, i, &info);
    }
    return error;
}

static int create(const char *file, int count, char **options)
{
    struct dbl_config config = dbl_config_default;
    struct dbl_device_info infos[DBL_DEVICES];
    uint32_t described = 0;
    int error;

    for (int i = 0; i < count; i += 2) {
        bool device = strcmp(options[i], "--device") == 0;

        if (i + 1 == count)
            return wrong(options[i], "needs a value");
        if (device && described == DBL_DEVICES)
            return wrong(options[i + 1], "one device more than can be simulated");
        if (device ? !read_device(options[i + 1], &infos[described++])
                   : !set_option(&config, options[i], options[i + 1]))
            return wrong(options[i], "no such option, or not a value for it");
    }
    if (described > 0)
        config.devices = described;
    error = dbl_create(file, &config);
    if (error == 0)
        error = describe(file, infos, described);
    return error == 0 ? 0 : wrong(file, strerror(-error));
}

static int show(struct dbl_shared *sh)
{
    const struct dbl_config *config = dbl_config(sh);

    printf("mode %s, clock %" PRIu64 " ns, %u processes\n", dbl_mode_name((int)config->mode),
           dbl_now(sh), dbl_processes(sh));
    for (uint32_t d = 0; d < config->devices; d++) {
        char uuid[48];

        dbl_uuid_text(dbl_info(sh, d)->uuid, uuid);
        printf("device %u %s %s: %" PRIu64 " of %" PRIu64 " bytes, busy %" PRIu64 " ns\n", d, uuid,
               dbl_info(sh, d)->name, dbl_bytes(sh, d, DBL_KINDS), dbl_info(sh, d)->memory,
               dbl_busy_ns(sh, 0, d));
        for (int k = 0; k < DBL_KINDS; k++)
            if (dbl_bytes(sh, d, (enum dbl_kind)k) > 0)
                printf("    %s %" PRIu64 "\n", dbl_kind_name(k),
                       dbl_bytes(sh, d, (enum dbl_kind)k));
    }
    for (uint32_t i = 0; i < 1024; i++)
        if (dbl_unsimulated(sh, i) > 0)
            printf("not simulated: line %u of symbols.list, %" PRIu64 " calls\n", i + 1,
                   dbl_unsimulated(sh, i));
    return 0;
}

static int fail(struct dbl_shared *sh, char **words)
{
    struct err err = {0};
    int64_t nth, code;

    if (qty_parse_int(words[1], &nth, &err) < 0 || qty_parse_int(words[2], &code, &err) < 0)
        return wrong(words[1], "not a number, or the code is none");
    for (int k = 0; k < DBL_FAILS; k++) {
        if (strcmp(words[0], dbl_fail_name(k)) != 0)
            continue;
        dbl_fail_nth(sh, (enum dbl_fail)k, nth, (int)code);
        return 0;
    }
    return wrong(words[0], "no such kind of call");
}

static int number(struct dbl_shared *sh, const char *verb, const char *text)
{
    struct err err = {0};
    int64_t value;

    if (qty_parse_int(text, &value, &err) < 0 || value < 0)
        return wrong(text, "not a number");
    if (strcmp(verb, "advance") == 0)
        dbl_advance(sh, (uint64_t)value);
    else
        dbl_actors(sh, (uint32_t)value);
    return 0;
}

int main(int argc, char **argv)
{
    struct dbl_shared *sh;
    int error;

    if (argc < 3) {
        fputs(usage, stderr);
        return 2;
    }
    if (strcmp(argv[1], "create") == 0)
        return create(argv[2], argc - 3, argv + 3);
    error = dbl_open(argv[2], &sh);
    if (error < 0)
        return wrong(argv[2], strerror(-error));
    if (strcmp(argv[1], "show") == 0 && argc == 3)
        return show(sh);
    if ((strcmp(argv[1], "advance") == 0 || strcmp(argv[1], "actors") == 0) && argc == 4)
        return number(sh, argv[1], argv[3]);
    if (strcmp(argv[1], "fail") == 0 && argc == 6)
        return fail(sh, argv + 3);
    fputs(usage, stderr);
    return 2;
}
