/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/local/record.h"
#include "gpu/uuid.h"

#define FOLDER "gpu"
#define AGENT FOLDER "/agent" /* where gpu_region_open() puts it */

/* LINE is "UUID BYTES MILLI CONTEXT_BYTES". */
static int read_share(const char *line, struct gpu_region_device *ret_device, struct err *err)
{
    char uuid[GPU_UUID_TEXT];

    if (sscanf(line, "%40s %" SCNu64 " %" SCNu32 " %" SCNu64, uuid, &ret_device->memory_limit,
               &ret_device->compute_milli, &ret_device->context_bytes) != 4 ||
        gpu_uuid_parse(uuid, ret_device->uuid) < 0 || ret_device->compute_milli < 1 ||
        ret_device->compute_milli > 1000)
        return err_set(err, -EINVAL, ERR_INTERNAL, "share", NULL,
                       "launch record: '%s' is no part of a device", line);
    return 0;
}

int share_open(const char *data, size_t len, struct gpu_region **ret_region, int *ret_agent,
               struct err *err)
{
    struct gpu_region_device devices[SHARE_DEVICES];
    struct gpu_region_config config = {.folder = FOLDER, .flags = SHARE_MEMORY, .devices = devices};
    const char *line;
    size_t it = 0;
    int r = 0;

    *ret_region = NULL;
    *ret_agent = -1;
    while (r == 0 && (line = record_next(data, len, "share", &it))) {
        if (config.device_count == SHARE_DEVICES)
            return err_set(err, -E2BIG, ERR_UNSUPPORTED, "gpus", "ask for fewer in one task",
                           "a task may hold parts of at most %d devices", SHARE_DEVICES);
        r = read_share(line, &devices[config.device_count++], err);
    }
    if (r < 0 || config.device_count == 0)
        return r;
    r = gpu_region_open(&config, ret_region, err);
    if (r == 0)
        *ret_agent = open(AGENT, O_PATH | O_CLOEXEC);
    if (r == 0 && *ret_agent < 0)
        r = err_set(err, -errno, ERR_INTERNAL, NULL, NULL, "the agent's socket is not there: %s",
                    strerror(errno));
    return r;
}
