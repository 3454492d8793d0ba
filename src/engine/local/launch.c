/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Composing the launch record: everything a supervisor needs, so that it never asks back.
 *
 * The environment is built from the most to the least important source, and the first setting of
 * a name wins: the platform's, the workload's, the image's, defaults. Nothing of the server's own
 * environment gets in.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "allot/share.h"
#include "base/cleanup.h"
#include "engine/local/engine.h"
#include "engine/local/identity.h"
#include "engine/local/image.h"
#include "engine/local/record.h"

#define PLACE_WORK "/home/task"
#define PLACE_CHECKPOINT "/run/allot/checkpoint"
#define PLACE_DRIVER SHARE_FOLDER "/lib"
#define REPORT_NAME ".allot-report"
#define MASTER_PORT_FIRST 20000
#define MASTER_PORT_COUNT 10000
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct composer {
    const struct engine_local *e;
    const struct engine_start *start;
    const struct model_launch *launch;
    const struct image *image;
    struct strbuf *out;
    struct arena arena;
    struct map names; /* of the environment so far */
    bool bare;
    const char *work;       /* the task's folder as the task sees it */
    const char *checkpoint; /* likewise */
};

/* Unless it is set already. */
static void set_env(struct composer *c, const char *key, const char *value)
{
    if (value == NULL || map_get_str(&c->names, key))
        return;
    map_put_str(&c->names, key, (void *)key);
    strbuf_addf(c->out, "env=%s=", key);
    strbuf_add(c->out, value, strlen(value) + 1);
}

static void set_env_i64(struct composer *c, const char *key, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    set_env(c, key, text);
}

static const struct model_device *device_at(const struct composer *c, int32_t i)
{
    uint16_t index = c->start->devices[i];

    return index < c->e->devices.count ? &c->e->devices.devices[index] : NULL;
}

static int64_t charge(const struct composer *c)
{
    const struct model_device *d = c->start->device_count > 0 ? device_at(c, 0) : NULL;

    return d ? model_request_gpu_milli(c->start->request, d->memory_bytes) : 0;
}

/* Lets frameworks see the task's devices and no others. */
static void add_device_env(struct composer *c)
{
    _cleanup_strbuf_ struct strbuf indices = STRBUF_INIT, uuids = STRBUF_INIT;

    model_devices_format(c->start->devices, c->start->device_count, &indices);
    set_env(c, "ALLOT_DEVICES", strbuf_str(&indices));
    set_env_i64(c, "ALLOT_GPU_MILLI", charge(c));
    if (c->start->device_count > 0)
        set_env_i64(c, "ALLOT_GPU_MEMORY", share_memory_bytes(c->e, c->start));
    share_visible(c->e, c->start, &uuids);
    set_env(c, "CUDA_VISIBLE_DEVICES", strbuf_str(&uuids));
    set_env(c, "NVIDIA_VISIBLE_DEVICES", uuids.len ? uuids.data : "void");
}

static void add_platform_env(struct composer *c)
{
    const struct engine_start *s = c->start;

    set_env_i64(c, "ALLOT_WORKLOAD_ID", (int64_t)s->workload);
    set_env(c, "ALLOT_WORKLOAD_NAME", s->name);
    set_env(c, "ALLOT_TEAM", s->team);
    set_env_i64(c, "ALLOT_RANK", s->task);
    set_env_i64(c, "ALLOT_TASK_COUNT", s->task_count);
    set_env(c, "ALLOT_NODE_LIST", s->node_list ? s->node_list : s->node);
    set_env_i64(c, "ALLOT_RESTART_COUNT", s->attempt);
    set_env(c, "ALLOT_CHECKPOINT_DIR", c->checkpoint);
    set_env(c, "ALLOT_REPORT_PATH", arena_printf(&c->arena, "%s/%s", c->work, REPORT_NAME));
    add_device_env(c);
}

/* What launchers of distributed training expect; a workload may set its own. */
static void add_gang_env(struct composer *c)
{
    const struct engine_start *s = c->start;

    set_env_i64(c, "RANK", s->task);
    set_env_i64(c, "WORLD_SIZE", s->task_count);
    set_env(c, "LOCAL_RANK", "0");
    set_env(c, "MASTER_ADDR", "127.0.0.1");
    set_env_i64(c, "MASTER_PORT",
                MASTER_PORT_FIRST +
                    (int64_t)(map_hash(&s->workload, sizeof(s->workload)) % MASTER_PORT_COUNT));
}

static void add_image_env(struct composer *c)
{
    if (c->image == NULL || c->image->env == NULL)
        return;
    for (size_t i = 0; c->image->env[i]; i++) {
        const char *item = c->image->env[i], *eq = strchr(item, '=');

        if (eq)
            set_env(c, arena_strndup(&c->arena, item, (size_t)(eq - item)), eq + 1);
    }
}

/* What the workload, or else its image, sets KEY to; NULL: neither does. */
static const char *asked_env(const struct composer *c, const struct model_launch_group *g,
                             const char *key)
{
    size_t n = strlen(key);

    for (int32_t i = 0; i < g->env_count; i++)
        if (strcmp(g->env[i].key, key) == 0)
            return g->env[i].value;
    for (size_t i = 0; c->image && c->image->env && c->image->env[i]; i++)
        if (strncmp(c->image->env[i], key, n) == 0 && c->image->env[i][n] == '=')
            return c->image->env[i] + n + 1;
    return NULL;
}

/* KEY, a list: FIRST comes before what a workload names itself. */
static void set_env_before(struct composer *c, const struct model_launch_group *g, const char *key,
                           const char *first)
{
    const char *own = asked_env(c, g, key);

    set_env(c, key, own && own[0] ? arena_printf(&c->arena, "%s:%s", first, own) : first);
}

static void add_driver_env(struct composer *c, const struct model_launch_group *g)
{
    const char *preload = share_preload(c->e, c->start, c->image);

    if (share_has_driver(c->e, c->start, c->image != NULL))
        set_env_before(c, g, "LD_LIBRARY_PATH", PLACE_DRIVER);
    if (preload)
        set_env_before(c, g, "LD_PRELOAD", preload);
}

static void add_environment(struct composer *c, const struct model_launch_group *g)
{
    add_platform_env(c);
    add_driver_env(c, g);
    for (int32_t i = 0; i < g->env_count; i++)
        set_env(c, g->env[i].key, g->env[i].value);
    add_gang_env(c);
    set_env(c, "HOME", c->work);
    set_env(c, "USER", c->start->owner);
    set_env(c, "LOGNAME", c->start->owner);
    add_image_env(c);
    set_env(c, "PATH", PATH_DEFAULT);
    set_env(c, "LANG", "C.UTF-8");
}

static int add_command(struct composer *c, const struct model_launch_group *g, struct err *err)
{
    const char *const *argv = g->command;

    if ((argv == NULL || argv[0] == NULL) && c->image)
        argv = c->image->args;
    if (argv == NULL || argv[0] == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, "command", "give a command to run",
                       "workload has no command");
    for (size_t i = 0; argv[i]; i++)
        record_add(c->out, "arg", argv[i]);
    return 0;
}

static void add_folders(struct composer *c)
{
    const struct settings *s = &c->e->settings;
    const char *own = arena_printf(&c->arena, "%s/%" PRIu64, s->checkpoint_dir, c->start->workload);

    c->work = c->bare ? arena_printf(&c->arena, "%s/%s/work", s->tasks_dir, c->start->intent)
                      : PLACE_WORK;
    record_add(c->out, "work_at", c->work);
    record_add(c->out, "workdir", c->launch->workdir);
    record_add(c->out, "cwd", c->launch->workdir ? c->launch->workdir : c->work);
    if (c->launch->checkpoint_dir) {
        c->checkpoint = c->launch->checkpoint_dir;
        record_add(c->out, "checkpoint", c->checkpoint);
    } else {
        c->checkpoint = c->bare ? own : PLACE_CHECKPOINT;
        record_add(c->out, "own_checkpoint", own);
    }
    record_add(c->out, "checkpoint_at", c->checkpoint);
    for (size_t i = 0; s->forbid[i]; i++)
        record_add(c->out, "forbid", s->forbid[i]);
    for (size_t i = 0; s->workdir_roots && s->workdir_roots[i]; i++)
        record_add(c->out, "trusted_root", s->workdir_roots[i]);
}

static void add_view(struct composer *c)
{
    static const char *const in_images[] = {"/run", "/var/tmp", NULL};
    const struct settings *s = &c->e->settings;
    const char *const *hide = c->image ? in_images : s->hide;

    if (c->bare)
        return;
    record_add(c->out, "bwrap", s->bwrap_path);
    record_add_i64(c->out, "tmp_bytes", s->tmp_bytes);
    if (c->image)
        record_add(c->out, "root", c->image->root);
    for (size_t i = 0; hide[i]; i++)
        record_add(c->out, "hide", hide[i]);
    for (size_t i = 0; s->show && s->show[i]; i++)
        record_add(c->out, "show", s->show[i]);
}

static void add_devices(struct composer *c)
{
    static const char *const shared[] = {"/dev/nvidiactl", "/dev/nvidia-uvm",
                                         "/dev/nvidia-uvm-tools"};
    bool real = false;

    for (int32_t i = 0; i < c->start->device_count; i++) {
        const struct model_device *d = device_at(c, i);

        if (d && d->path) {
            record_add(c->out, "device", d->path);
            real = true;
        }
        if (d && d->simulated && i == 0)
            record_add(c->out, "simulated", "1");
        if (d && !d->simulated)
            record_add(c->out, "gpu", d->uuid);
    }
    for (size_t i = 0; real && i < ARRAY_LEN(shared); i++)
        if (access(shared[i], F_OK) == 0)
            record_add(c->out, "device", shared[i]);
}

static int check_start(const struct composer *c, struct err *err)
{
    if (c->start->group < 0 || c->start->group >= c->launch->group_count)
        return err_set(err, -EINVAL, ERR_INTERNAL, "groups", NULL, "workload has no task group %d",
                       (int)c->start->group);
    for (int32_t i = 0; i < c->start->device_count; i++)
        if (device_at(c, i) == NULL)
            return err_set(err, -EINVAL, ERR_INTERNAL, NULL, NULL,
                           "node '%s' has no device %d any more", c->e->node.name,
                           (int)c->start->devices[i]);
    return 0;
}

static void add_limits(struct composer *c)
{
    const struct settings *s = &c->e->settings;
    const struct model_request *q = c->start->request;
    uint32_t uid = identity_of_team(s->uid_base, c->start->team);

    record_add_i64(c->out, "uid", uid);
    record_add_i64(c->out, "gid", uid);
    record_add_i64(c->out, "log_bytes", s->log_bytes);
    record_add_i64(c->out, "cpu_milli", q->cpu_milli);
    record_add_i64(c->out, "memory_bytes", q->memory_bytes);
    record_add_i64(c->out, "pids", s->pids_max);
    record_add_i64(c->out, "gpu_milli", charge(c));
    cgroup_site_describe(&c->e->cgroups, c->start->intent, q->memory_bytes > 0, c->out);
}

/* An image has to have a folder wherever one is mounted. */
static int make_places(const struct composer *c, struct err *err)
{
    const char *const *show = c->e->settings.show;
    int r = 0;

    for (size_t i = 0; show && show[i] && r == 0; i++)
        r = image_make_place(c->image, show[i], err);
    if (r == 0 && c->launch->workdir)
        r = image_make_place(c->image, c->launch->workdir, err);
    if (r == 0 && c->launch->checkpoint_dir)
        r = image_make_place(c->image, c->launch->checkpoint_dir, err);
    return r;
}

int launch_compose(const struct engine_local *e, const struct engine_start *start,
                   const struct model_launch *launch, const struct image *image,
                   struct strbuf *record, struct err *err)
{
    struct composer c = {.e = e,
                         .start = start,
                         .launch = launch,
                         .image = image,
                         .out = record,
                         .bare = e->settings.no_sandbox != NULL};
    int r = check_start(&c, err);

    if (r < 0)
        return r;
    if (image && !c.bare)
        r = make_places(&c, err);
    if (r < 0)
        return r;
    record_add(record, "intent", start->intent);
    record_add(record, "boot_id", e->boot_id);
    add_folders(&c);
    add_view(&c);
    add_devices(&c);
    share_compose(e, start, image, record);
    add_limits(&c);
    r = add_command(&c, &launch->groups[start->group], err);
    if (r == 0)
        add_environment(&c, &launch->groups[start->group]);
    map_done(&c.names);
    arena_done(&c.arena);
    return r;
}
