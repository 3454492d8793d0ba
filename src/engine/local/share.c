/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a task sees of the driver of its devices.
 *
 * A task that holds parts of devices gets the shim where programs look for the driver: in a
 * folder that comes first in LD_LIBRARY_PATH, over each copy of the driver's library that is in
 * sight, and, as a fallback for programs that look elsewhere, by LD_PRELOAD. Its supervisor makes
 * the region that the shim asks (supervise/share.h).
 *
 * Simulated devices have a driver too, where it is installed: a libcuda.so.1 that computes
 * nothing, and shares its devices among all tasks through one file in the data folder. So what is
 * promised of a part of a GPU can be seen on a machine without one. The file is made anew in each
 * boot and for each set of devices; tasks that run go on with the one they have.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "allot/share.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/qty.h"
#include "engine/local/control.h"
#include "engine/local/engine.h"
#include "engine/local/record.h"
#include "engine/local/tool.h"
#include "gpu/backends.h"
#include "gpu/driver.h"
#include "gpu/uuid.h"

#define SIM_FILE "simulated-gpus."
#define SIM_DEVICES_MAX 16 /* of the simulated driver */
#define SIM_CONTEXT_BYTES (INT64_C(300) << 20)
/* What a context is charged where the driver does not tell: about what CUDA 12 takes. */
#define CONTEXT_BYTES (INT64_C(500) << 20)
#define TOOL_LIMIT_MS 10000
#define WHOLE 1000

/* ---- simulated devices ---------------------------------------------------------------------- */

/* Simulated devices have names; the driver's numbers for them are made of these. */
void share_uuid(const struct model_device *d, char ret_text[GPU_UUID_TEXT])
{
    uint64_t halves[2];
    uint8_t uuid[16];

    if (!d->simulated) {
        snprintf(ret_text, GPU_UUID_TEXT, "%s", d->uuid);
        return;
    }
    halves[0] = map_hash(d->uuid, strlen(d->uuid));
    halves[1] = map_hash(halves, sizeof(halves[0]));
    memcpy(uuid, halves, sizeof(uuid));
    gpu_uuid_format(uuid, ret_text);
}

/* The file that belongs to this boot and these devices. */
static const char *sim_file_name(struct engine_local *e, const char *const *argv)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    strbuf_adds(&b, e->boot_id);
    for (; *argv; argv++)
        strbuf_adds(&b, *argv);
    return arena_printf(&e->arena, SIM_FILE "%016" PRIx64, map_hash(b.data, b.len));
}

/* Those of earlier boots and of other devices: who uses one of them has it open. */
static void remove_others(const char *folder, const char *name)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;

    if (dir == NULL)
        return;
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, SIM_FILE, strlen(SIM_FILE)) == 0 &&
            strcmp(entry->d_name, name) != 0)
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
}

static int make_sim_file(const char **argv, const char *path, struct err *err)
{
    _cleanup_free_ char *fresh = NULL;
    int r;

    if (access(path, F_OK) == 0)
        return 0;
    if (asprintf(&fresh, "%s.new", path) < 0)
        return -ENOMEM;
    (void)unlink(fresh);
    argv[2] = fresh;
    r = tool_run(argv, -1, TOOL_LIMIT_MS, NULL, err);
    /* Tasks of every team work on it: nothing in it is worth more than the simulation. */
    if (r == 0 && (chmod(fresh, 0666) < 0 || rename(fresh, path) < 0))
        r = err_set(err, -errno, ERR_UNAVAILABLE, NULL, "make room in the data folder",
                    "file '%s' cannot be made: %s", path, strerror(errno));
    return r;
}

/* Why there is no driver for the simulated devices, or NULL. */
static const char *find_simulated(struct engine_local *e)
{
    struct settings *s = &e->settings;
    const char *tool = surroundings_part(e, "simulated/cuda-double");
    const char *driver = surroundings_part(e, "simulated/libcuda.so.1");
    const char **argv, *name;
    struct err err = ERR_INIT;
    int n = 5;

    if (tool == NULL || driver == NULL)
        return "the simulated driver is not installed";
    if (e->devices.count > SIM_DEVICES_MAX)
        return "the simulated driver has at most 16 devices";
    argv = arena_new_array(&e->arena, const char *, (size_t)e->devices.count * 2 + 6);
    argv[0] = tool;
    argv[1] = "create";
    argv[2] = ""; /* the file */
    argv[3] = "--context";
    argv[4] = arena_printf(&e->arena, "%" PRId64, SIM_CONTEXT_BYTES);
    for (int32_t i = 0; i < e->devices.count; i++) {
        const struct model_device *d = &e->devices.devices[i];
        char uuid[GPU_UUID_TEXT];

        share_uuid(d, uuid);
        argv[n++] = "--device";
        argv[n++] = arena_printf(&e->arena, "%s,%" PRId64 ",%s", uuid, d->memory_bytes, d->type);
    }
    name = sim_file_name(e, argv);
    s->sim_file = arena_printf(&e->arena, "%s/%s", s->data_dir, name);
    if (make_sim_file(argv, s->sim_file, &err) < 0)
        return arena_strdup(&e->arena, err.text);
    remove_others(s->data_dir, name);
    s->driver_path = driver;
    s->nvml_path = surroundings_part(e, "simulated/libnvidia-ml.so.1");
    return NULL;
}

/* ---- what is there -------------------------------------------------------------------------- */

/* Why parts of devices are not enforced, or NULL. */
static const char *find(struct engine_local *e)
{
    struct settings *s = &e->settings;
    const char *reason = NULL;

    if (s->no_sandbox)
        return "tasks have no sandbox";
    if (e->devices.simulated) {
        reason = find_simulated(e);
    } else {
        s->driver_path = gpu_driver_library("libcuda.so.1", &e->arena);
        s->nvml_path = gpu_driver_library("libnvidia-ml.so.1", &e->arena);
    }
    if (reason)
        return reason;
    if (s->driver_path == NULL)
        return "the driver's libcuda.so.1 was not found";
    s->companions = gpu_driver_companions(s->driver_path, &e->arena);
    return s->shim_path ? NULL : "'liballot-share.so' is not installed beside allot";
}

void share_find(struct engine_local *e)
{
    const char *reason = e->devices.count > 0 ? find(e) : "there are no devices";

    e->node.sharing = reason == NULL               ? "shim"
                      : e->settings.strict_sharing ? MODEL_SHARING_REFUSED
                                                   : "none";
    if (e->devices.count > 0)
        e->node.backend_count =
            gpu_backends(&e->devices, reason, &gpu_backend_places, &e->arena, &e->node.backends);
    if (reason && e->devices.count > 0)
        log_warn("parts of GPUs are %s: %s",
                 e->settings.strict_sharing ? "refused" : "counted and not enforced", reason);
}

/* ---- a task's share of them ----------------------------------------------------------------- */

/* Of D under Q: thousandths, and bytes of memory. */
static int64_t part_of(const struct model_request *q, const struct model_device *d,
                       int64_t *ret_bytes)
{
    int64_t milli = WHOLE;

    if (q->device_count > 0)
        milli = model_request_gpu_milli(q, d->memory_bytes) / q->device_count;
    *ret_bytes = d->memory_bytes;
    if (milli < WHOLE)
        *ret_bytes = q->device_memory_bytes > 0 ? q->device_memory_bytes
                                                : qty_mul_div(d->memory_bytes, milli, WHOLE);
    return milli;
}

static const struct model_device *device_at(const struct engine_local *e,
                                            const struct engine_start *start, int32_t i)
{
    return &e->devices.devices[start->devices[i]];
}

static bool holds_part(const struct engine_local *e, const struct engine_start *start)
{
    int64_t bytes;

    return start->device_count > 0 &&
           part_of(start->request, device_at(e, start, 0), &bytes) < WHOLE;
}

/* Does START meet the shim: for the parts of devices that it holds, or to be suspended? */
static bool is_shared(const struct engine_local *e, const struct engine_start *start)
{
    return e->settings.shim_path && e->settings.driver_path && start->device_count > 0 &&
           (start->suspendable || holds_part(e, start));
}

int share_check(const struct engine_local *e, const struct engine_start *start, struct err *err)
{
    if (strcmp(e->node.sharing, MODEL_SHARING_REFUSED) != 0 || !holds_part(e, start))
        return 0;
    return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL, "ask for whole GPUs",
                   "nothing enforces parts of GPUs on node '%s', which refuses them", e->node.name);
}

bool share_has_driver(const struct engine_local *e, const struct engine_start *start, bool image)
{
    if (e->settings.driver_path == NULL || start->device_count == 0)
        return false;
    return e->devices.simulated || image || is_shared(e, start);
}

/* The shim finds no use where programs find the driver otherwise: on the machine's own root, or
 * because an image brings one, as CUDA's do for machines whose own is older. */
static void cover(const struct engine_local *e, const struct image *image, struct strbuf *record)
{
    struct arena arena = ARENA_INIT;

    if (image) {
        for (const char *const *v = image_drivers(image, &arena); *v; v++)
            record_add(record, "shim_over", *v);
    } else if (!e->devices.simulated) {
        record_add(record, "shim_over", e->settings.driver_path);
        record_add(record, "nvml_over", e->settings.nvml_path);
    }
    arena_done(&arena);
}

void share_compose(const struct engine_local *e, const struct engine_start *start,
                   const struct image *image, struct strbuf *record)
{
    const struct settings *s = &e->settings;

    if (start->device_count > 0)
        record_add(record, "verify", s->verify_path);
    if (!share_has_driver(e, start, image != NULL))
        return;
    record_add(record, "driver", s->driver_path);
    record_add(record, "driver_file", s->sim_file);
    record_add(record, "nvml", s->nvml_path);
    for (const char *const *c = s->companions; c && *c; c++)
        record_add(record, "companion", *c);
    if (!is_shared(e, start))
        return;
    record_add(record, "shim", s->shim_path);
    record_add(record, "boards", s->boards_dir);
    record_add(record, "nvml_shim", s->nvml_shim_path);
    cover(e, image, record);
    for (int32_t i = 0; i < start->device_count; i++) {
        const struct model_device *d = device_at(e, start, i);
        char uuid[GPU_UUID_TEXT];
        int64_t bytes, milli = part_of(start->request, d, &bytes);

        share_uuid(d, uuid);
        strbuf_addf(record, "share=%s %" PRIu64 " %" PRId64 " %" PRId64, uuid,
                    milli < WHOLE ? (uint64_t)bytes : SHARE_NO_LIMIT, milli,
                    d->simulated ? SIM_CONTEXT_BYTES : CONTEXT_BYTES);
        strbuf_add(record, "", 1);
    }
}

/* For programs that have lost LD_LIBRARY_PATH, or look elsewhere first: what is loaded under the
 * driver's name is found before any file. Other C libraries than glibc would stumble over it. */
const char *share_preload(const struct engine_local *e, const struct engine_start *start,
                          const struct image *image)
{
    bool preloads = is_shared(e, start) && (image == NULL || image_has_glibc(image));

    return preloads ? SHARE_FOLDER "/lib/libcuda.so.1" : NULL;
}

int64_t share_memory_bytes(const struct engine_local *e, const struct engine_start *start)
{
    int64_t bytes = 0;

    if (start->device_count > 0)
        (void)part_of(start->request, device_at(e, start, 0), &bytes);
    return bytes;
}

void share_visible(const struct engine_local *e, const struct engine_start *start,
                   struct strbuf *ret_uuids)
{
    for (int32_t i = 0; i < start->device_count; i++) {
        const struct model_device *d = device_at(e, start, i);
        char uuid[GPU_UUID_TEXT];

        if (d->simulated && e->settings.driver_path == NULL)
            continue;
        share_uuid(d, uuid);
        strbuf_addf(ret_uuids, "%s%s", ret_uuids->len ? "," : "", uuid);
    }
}

/* ---- what the driver says ------------------------------------------------------------------- */

const char *share_management(struct engine_local *e)
{
    const struct settings *s = &e->settings;
    const char *slash = s->driver_path ? strrchr(s->driver_path, '/') : NULL;
    const char *path;

    if (s->sim_file == NULL || slash == NULL)
        return NULL;
    path = arena_printf(&e->arena, "%.*s/libnvidia-ml.so.1", (int)(slash - s->driver_path),
                        s->driver_path);
    if (access(path, R_OK) < 0)
        return NULL;
    /* Where it finds its devices; tasks get an environment of their own. */
    (void)setenv("ALLOT_DOUBLE_FILE", s->sim_file, 1);
    return path;
}

/* What the driver says of each device that T shares, to BYTES; how many there are, 0 where the
 * machine does not say which processes T has. */
static int driver_bytes(const struct local_task *t, const struct busy_meter *m,
                        int64_t bytes[SHARE_DEVICES])
{
    struct cgroup_pids pids = {0};
    const char *line;
    size_t it = 0;
    int n = 0;

    if (record_get(t->launch, t->launch_len, "share") == NULL ||
        cgroup_list(&t->cgroups, &pids) < 0)
        return 0;
    while (n < SHARE_DEVICES && (line = record_next(t->launch, t->launch_len, "share", &it))) {
        char uuid[GPU_UUID_TEXT];

        snprintf(uuid, sizeof(uuid), "%s", line);
        bytes[n++] = busy_memory(m, uuid, &pids);
    }
    vec_done(&pids);
    return n;
}

void share_reconcile(struct local_task *t, const struct busy_meter *m)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    int64_t bytes[SHARE_DEVICES];
    int n = t->control < 0 ? 0 : driver_bytes(t, m, bytes);

    if (n == 0)
        return;
    record_add(&b, "op", "driver");
    for (int i = 0; i < n; i++)
        record_add_i64(&b, "bytes", bytes[i]);
    (void)control_send(t->control, &b, -1);
}

int64_t share_held(const struct local_task *t, const struct busy_meter *m)
{
    int64_t bytes[SHARE_DEVICES], sum = 0;
    int n = driver_bytes(t, m, bytes);

    for (int i = 0; i < n; i++)
        sum = bytes[i] < 0 || sum < 0 ? -1 : sum + bytes[i];
    return n > 0 ? sum : -1;
}
