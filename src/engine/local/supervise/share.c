/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/supervise/share.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "engine/local/record.h"
#include "gpu/uuid.h"

#define FOLDER "gpu"
#define AGENT FOLDER "/agent" /* where gpu_region_open() puts it */
#define WHOLE 1000
#define TIMEOUT_MAX_MS 60000

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

static void ask_for_wake(void *ctx)
{
    ((struct share *)ctx)->wake = true;
}

/* Takes part in the turns on each device of which it has a part. */
static int join_others(struct share *s, const char *data, size_t len,
                       const struct gpu_region_config *c, struct err *err)
{
    const char *folder = record_get(data, len, "boards");
    int r = 0;

    for (uint32_t i = 0; folder && r == 0 && i < c->device_count; i++) {
        char uuid[GPU_UUID_TEXT], path[PATH_MAX];

        if (c->devices[i].compute_milli == WHOLE)
            continue;
        gpu_uuid_format(c->devices[i].uuid, uuid);
        snprintf(path, sizeof(path), "%s/%s", folder, uuid);
        r = gpu_turns_open(path, c->devices[i].compute_milli, true, &s->turns[i], err);
        s->next_ns = 1;
    }
    return r;
}

int share_open(const char *data, size_t len, struct share *ret_share, struct err *err)
{
    struct gpu_region_device devices[SHARE_DEVICES];
    struct gpu_region_config config = {.folder = FOLDER,
                                       .flags = SHARE_MEMORY | SHARE_COMPUTE,
                                       .devices = devices,
                                       .wake = ask_for_wake,
                                       .ctx = ret_share};
    const char *line;
    size_t it = 0;
    int r = 0;

    *ret_share = (struct share){.agent = -1};
    while (r == 0 && (line = record_next(data, len, "share", &it))) {
        if (config.device_count == SHARE_DEVICES)
            return err_set(err, -E2BIG, ERR_UNSUPPORTED, "gpus", "ask for fewer in one task",
                           "a task may share at most %d devices", SHARE_DEVICES);
        r = read_share(line, &devices[config.device_count++], err);
    }
    if (r < 0 || config.device_count == 0)
        return r;
    r = gpu_region_open(&config, &ret_share->region, err);
    if (r == 0)
        ret_share->agent = open(AGENT, O_PATH | O_CLOEXEC);
    if (r == 0 && ret_share->agent < 0)
        r = err_set(err, -errno, ERR_INTERNAL, NULL, NULL, "the agent's socket is not there: %s",
                    strerror(errno));
    return r == 0 ? join_others(ret_share, data, len, &config, err) : r;
}

/* ---- turns on a device ----------------------------------------------------------------------- */

static void step_device(struct share *s, uint32_t device, uint64_t now)
{
    struct gpu_region_use use;
    uint64_t end_ns, next;

    gpu_region_use(s->region, device, &use);
    s->used |= use.submitted || use.working || use.waits;
    if (s->closed) /* it waits for its devices, not for a turn */
        use.waits = use.working = use.submitted = false;
    next = gpu_turns_step(s->turns[device], now, &use, &end_ns);
    gpu_region_slice(s->region, device, end_ns);
    if (next < s->next_ns)
        s->next_ns = next;
}

void share_step(struct share *s)
{
    uint64_t now = (uint64_t)clock_boot_ns();

    if (s->next_ns == 0 || now < s->next_ns)
        return;
    s->next_ns = UINT64_MAX;
    for (uint32_t d = 0; d < SHARE_DEVICES; d++)
        if (s->turns[d])
            step_device(s, d, now);
}

int share_timeout_ms(const struct share *s)
{
    uint64_t now = (uint64_t)clock_boot_ns();

    if (s->next_ns == 0)
        return -1;
    if (s->next_ns <= now)
        return 0;
    now = (s->next_ns - now) / NS_PER_MS;
    return now < TIMEOUT_MAX_MS ? (int)now + 1 : TIMEOUT_MAX_MS;
}

void share_close(struct share *s)
{
    for (uint32_t d = 0; d < SHARE_DEVICES; d++) {
        gpu_turns_close(s->turns[d]);
        s->turns[d] = NULL;
    }
    s->next_ns = 0;
    gpu_region_close(s->region);
    s->region = NULL;
    cleanup_close(&s->agent);
}

void share_gate(struct share *s, bool open)
{
    if (s->region == NULL || s->closed == !open)
        return;
    if (open)
        s->closed_ms = share_closed_ms(s);
    s->closed = !open;
    s->closed_at_ms = clock_boot_ms();
    s->wake = false;
    gpu_region_gate(s->region, open);
}

int64_t share_closed_ms(const struct share *s)
{
    return s->closed_ms + (s->closed ? clock_boot_ms() - s->closed_at_ms : 0);
}

static void describe_obstacles(uint32_t obstacles, struct strbuf *record)
{
    if (obstacles & SHARE_HAS_MANAGED)
        record_add(record, "obstacle", "it uses managed memory");
    if (obstacles & SHARE_HAS_IPC)
        record_add(record, "obstacle", "it shares device memory with another process");
    if (obstacles & SHARE_HAS_MULTICAST)
        record_add(record, "obstacle", "it uses multicast objects");
}

void share_describe(const struct share *s, struct strbuf *record)
{
    int32_t pids[SHARE_SLOTS];
    uint64_t held = 0;
    uint32_t count;

    if (s->region == NULL) {
        record_add(record, "obstacle", "its programs use the driver without the shim");
        return;
    }
    count = gpu_region_pids(s->region, pids, SHARE_SLOTS);
    for (uint32_t i = 0; i < count; i++)
        record_add_i64(record, "pid", pids[i]);
    describe_obstacles(gpu_region_obstacles(s->region), record);
    for (uint32_t i = 0; i < SHARE_DEVICES; i++)
        held += gpu_region_held(s->region, i);
    record_add_i64(record, "held", (int64_t)held);
}

bool share_in_use(struct share *s)
{
    bool used = s->used; /* steps look at it, too */

    for (uint32_t i = 0; s->region && i < SHARE_DEVICES; i++) {
        struct gpu_region_use use;

        if (s->turns[i])
            continue;
        gpu_region_use(s->region, i, &use);
        used |= use.submitted || use.working || use.waits;
    }
    s->used = false;
    return used;
}

/* What the driver counts of DEVICE and no process does; BYTES is the driver's figure. */
static uint64_t difference(const struct share *s, uint32_t device, int64_t bytes)
{
    uint64_t charged = gpu_region_charged(s->region, device);

    return bytes < 0 || (uint64_t)bytes <= charged ? 0 : (uint64_t)bytes - charged;
}

static uint64_t least(const struct share *s, uint32_t device)
{
    uint64_t bytes = UINT64_MAX;

    for (int i = 0; i < SHARE_LOOKS; i++)
        bytes = s->beyond[device][i] < bytes ? s->beyond[device][i] : bytes;
    return bytes;
}

void share_driver_says(struct share *s, const char *data, size_t len)
{
    const char *v;
    size_t it = 0;

    if (s->region == NULL || s->closed)
        return;
    for (uint32_t d = 0; d < SHARE_DEVICES && (v = record_next(data, len, "bytes", &it)); d++) {
        s->beyond[d][s->looks % SHARE_LOOKS] = difference(s, d, strtoll(v, NULL, 10));
        gpu_region_beyond(s->region, d, least(s, d));
    }
    s->looks++;
}

int64_t share_beyond(const struct share *s)
{
    uint64_t bytes = 0;

    for (uint32_t d = 0; s->region && d < SHARE_DEVICES; d++)
        bytes += least(s, d);
    return bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
}
