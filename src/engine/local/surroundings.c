/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine stands on: folders, programs, devices, limits, the sandbox.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "engine/local/engine.h"
#include "engine/local/identity.h"
#include "engine/local/record.h"

#define LINK_MAX_BYTES 4096
#define MILLI_PER_CPU 1000

static const char *or_default(struct arena *a, const char *given, const char *otherwise)
{
    return given ? arena_strdup(a, given) : otherwise;
}

static int64_t positive_or(int64_t given, int64_t otherwise)
{
    return given > 0 ? given : otherwise;
}

static const char *find_program(const char *const *candidates)
{
    for (; *candidates; candidates++)
        if (access(*candidates, X_OK) == 0)
            return *candidates;
    return NULL;
}

/* Beside the program, as in a build folder, or in the folder for such parts. */
const char *surroundings_part(struct engine_local *e, const char *name)
{
    char self[LINK_MAX_BYTES];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    struct arena *a = &e->arena;
    char *slash;

    self[n > 0 ? n : 0] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    return find_program(
        (const char *const[]){arena_printf(a, "%s/%s", self, name),
                              arena_printf(a, "%s/../libexec/allot/%s", self, name), NULL});
}

static int find_supervisor(struct engine_local *e, const char *given, struct err *err)
{
    struct settings *s = &e->settings;

    s->supervise_path =
        given ? arena_strdup(&e->arena, given) : surroundings_part(e, "allot-supervise");
    if (s->supervise_path == NULL || access(s->supervise_path, X_OK) < 0)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "install it beside allot",
                       "program 'allot-supervise' was not found");
    return 0;
}

static int make_folder(const char *path, mode_t mode, int *ret_fd, struct err *err)
{
    int r = io_mkdirs(path, mode);
    int fd = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || faccessat(fd, ".", W_OK, AT_EACCESS) < 0) {
        r = r < 0 ? r : -errno;
        if (fd >= 0)
            close(fd);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, "choose a folder that the server may write",
                       "folder '%s' cannot be used: %s", path, strerror(-r));
    }
    if (ret_fd)
        *ret_fd = fd;
    else
        close(fd);
    return 0;
}

/* The real path, so that what is compared and mounted is the same folder. */
static const char *real(struct arena *a, const char *path)
{
    _cleanup_free_ char *r = realpath(path, NULL);

    return arena_strdup(a, r ? r : path);
}

static int find_folders(struct engine_local *e, const struct engine_local_config *c,
                        struct err *err)
{
    struct settings *s = &e->settings;
    struct arena *a = &e->arena;
    int r;

    if (c->data_dir == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, "data_dir", NULL, "no data folder was given");
    r = make_folder(c->data_dir, 0711, NULL, err);
    if (r < 0)
        return r;
    s->data_dir = real(a, c->data_dir);
    s->tasks_dir = arena_printf(a, "%s/tasks", s->data_dir);
    s->ended_dir = arena_printf(a, "%s/ended", s->data_dir);
    s->images_dir = or_default(a, c->images_dir, arena_printf(a, "%s/images", s->data_dir));
    s->checkpoint_dir =
        or_default(a, c->checkpoint_dir, arena_printf(a, "%s/checkpoints", s->data_dir));
    s->boards_dir = arena_printf(a, "%s/gpus", s->data_dir);
    r = make_folder(s->boards_dir, 0700, NULL, err);
    if (r == 0)
        r = make_folder(s->tasks_dir, 0711, &e->tasks_fd, err);
    if (r == 0)
        r = make_folder(s->ended_dir, 0711, &e->ended_fd, err);
    if (r == 0)
        r = make_folder(s->images_dir, 0711, NULL, err);
    if (r == 0)
        r = make_folder(s->checkpoint_dir, 0711, NULL, err);
    if (r < 0)
        return r;
    s->images_dir = real(a, s->images_dir);
    s->checkpoint_dir = real(a, s->checkpoint_dir);
    return 0;
}

static bool lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);

    return strncmp(path, folder, n) == 0 && (path[n] == '/' || path[n] == '\0');
}

/*
 * What a tenant must not see of the machine: other people's files (/home, /root, temporary
 * folders, mail and print spools), the sockets of root's daemons (/run), logs and backups, the
 * names of other tasks (/sys/fs/cgroup), and all of the platform's own.
 */
static void find_hidden(struct engine_local *e)
{
    static const char *const usual[] = {"/home",     "/root",       "/run",          "/tmp",
                                        "/var/tmp",  "/var/log",    "/var/spool",    "/var/backups",
                                        "/var/mail", "/lost+found", "/sys/fs/cgroup"};
    struct settings *s = &e->settings;
    const char *own[] = {s->data_dir, s->images_dir, s->checkpoint_dir};
    VEC(const char *) list = {0};
    struct stat st;

    for (size_t i = 0; i < ARRAY_LEN(usual) + ARRAY_LEN(own); i++) {
        const char *path = i < ARRAY_LEN(usual) ? usual[i] : own[i - ARRAY_LEN(usual)];
        bool covered = false;

        if (lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        for (size_t k = 0; k < list.len; k++)
            covered |= lies_in(path, list.items[k]);
        if (!covered)
            vec_push(&list, path);
    }
    s->hide = arena_new_array(&e->arena, const char *, list.len + 1);
    memcpy((void *)s->hide, list.items, list.len * sizeof(char *));
    vec_done(&list);
    s->forbid = arena_memdup(&e->arena,
                             (const char *[]){s->data_dir, s->images_dir, s->checkpoint_dir, NULL},
                             4 * sizeof(char *));
}

static const char *const *copy_list(struct arena *a, const char *const *list)
{
    size_t n = 0;
    const char **copy;

    if (list == NULL || list[0] == NULL)
        return NULL;
    while (list[n])
        n++;
    copy = arena_new_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = real(a, list[i]);
    return copy;
}

/* What was given, and where the node is: on itself. */
static void label_node(struct engine_local *e, const struct engine_local_config *c)
{
    struct model_node *n = &e->node;
    struct model_pair *labels =
        arena_new_array(&e->arena, struct model_pair, (size_t)c->label_count + 1);
    bool has_host = false;

    for (int32_t i = 0; i < c->label_count; i++) {
        labels[i].key = arena_strdup(&e->arena, c->labels[i].key);
        labels[i].value = arena_strdup(&e->arena, c->labels[i].value);
        has_host |= strcmp(labels[i].key, "host") == 0;
    }
    n->labels = labels;
    n->label_count = c->label_count;
    if (!has_host)
        labels[n->label_count++] = (struct model_pair){"host", n->name};
}

static void describe_node(struct engine_local *e, const struct engine_local_config *c)
{
    const char *name = c->node_name;
    struct model_node *n = &e->node;
    struct sysinfo info;
    cpu_set_t cpus;
    char host[256] = "localhost";

    (void)gethostname(host, sizeof(host) - 1);
    n->name = or_default(&e->arena, name, arena_strdup(&e->arena, host));
    n->cluster = "local";
    label_node(e, c);
    n->state = MODEL_NODE_UP;
    n->devices = e->devices.devices;
    n->device_count = e->devices.count;
    n->gpu_type = e->devices.count > 0 ? e->devices.devices[0].type : NULL;
    n->sharing = "none"; /* see share_find() */
    n->limits = e->cgroups.limits;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0)
        n->cpu_milli = (int64_t)CPU_COUNT(&cpus) * MILLI_PER_CPU;
    if (sysinfo(&info) == 0)
        n->memory_bytes = (int64_t)info.totalram * info.mem_unit;
}

int surroundings_find(struct engine_local *e, const struct engine_local_config *c, struct err *err)
{
    static const char *const bwraps[] = {"/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap",
                                         NULL};
    struct settings *s = &e->settings;
    char instance[24];
    int r = find_supervisor(e, c->supervise_path, err);

    if (r == 0)
        r = find_folders(e, c, err);
    if (r == 0)
        r = gpu_inventory(c->devices, &e->arena, &e->devices, err);
    if (r < 0)
        return r;
    s->bwrap_path = c->bwrap_path ? arena_strdup(&e->arena, c->bwrap_path) : find_program(bwraps);
    s->shim_path = c->share_library ? arena_strdup(&e->arena, c->share_library)
                                    : surroundings_part(e, "liballot-share.so");
    s->nvml_shim_path = surroundings_part(e, "liballot-share-nvml.so");
    s->agent_path = c->agent_path ? arena_strdup(&e->arena, c->agent_path)
                                  : surroundings_part(e, "allot-gpu-agent");
    s->verify_path = surroundings_part(e, "allot-gpu-verify");
    s->log_bytes = positive_or(c->log_bytes, ENGINE_LOCAL_LOG_BYTES);
    s->tmp_bytes = positive_or(c->tmp_bytes, ENGINE_LOCAL_TMP_BYTES);
    s->pids_max = positive_or(c->pids_max, ENGINE_LOCAL_PIDS);
    s->retain_count = positive_or(c->retain_count, ENGINE_LOCAL_RETAIN_COUNT);
    s->retain_ms = positive_or(c->retain_ms, ENGINE_LOCAL_RETAIN_MS);
    s->uid_base = c->uid_base ? c->uid_base : ENGINE_LOCAL_UID_BASE;
    s->workdir_roots = copy_list(&e->arena, c->workdir_roots);
    s->show = copy_list(&e->arena, c->shown_dirs);
    s->allow_unsandboxed = c->allow_unsandboxed;
    s->strict_sharing = c->strict_sharing;
    s->step = c->step;
    s->step_ctx = c->step_ctx;
    find_hidden(e);
    /* Two servers on one machine must not share groups. */
    snprintf(instance, sizeof(instance), "%08" PRIx32,
             (uint32_t)map_hash(s->data_dir, strlen(s->data_dir)));
    cgroup_site_probe(instance, &e->arena, &e->cgroups);
    describe_node(e, c);
    return 0;
}

/* A task that does nothing, told by what the machine allows. NULL = it ran; else the reason. */
static const char *try_task(struct engine_local *e, bool sandbox, bool cgroups)
{
    struct settings *s = &e->settings;
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    _cleanup_free_ char *record = NULL;
    struct err err = ERR_INIT;
    const char *kind, *message;
    size_t len;

    record_add(&b, "intent", "probe");
    record_add(&b, "bwrap", sandbox ? s->bwrap_path : NULL);
    for (size_t i = 0; sandbox && s->hide[i]; i++)
        record_add(&b, "hide", s->hide[i]);
    record_add_i64(&b, "tmp_bytes", s->tmp_bytes);
    record_add(&b, "work_at", "/home/task");
    record_add(&b, "cwd", "/");
    record_add_i64(&b, "uid", identity_of_team(s->uid_base, NULL));
    record_add_i64(&b, "gid", identity_of_team(s->uid_base, NULL));
    record_add_i64(&b, "pids", s->pids_max);
    if (cgroups)
        cgroup_site_describe(&e->cgroups, "probe", true, &b);
    record_add(&b, "arg", "true");
    record_add(&b, "env", "PATH=/usr/bin:/bin");
    if (spawn_probe(e, &b, &record, &len, &err) < 0)
        return arena_strdup(&e->arena, err.text);
    kind = record_get(record, len, "kind");
    message = record_get(record, len, "message");
    e->user_namespaces = record_get_i64(record, len, "user_namespace", 0) != 0;
    if (kind && strcmp(kind, "exited") == 0 && record_get_i64(record, len, "exit_code", -1) == 0)
        return NULL;
    return arena_strdup(&e->arena, message ? message : "a first task failed");
}

void surroundings_try(struct engine_local *e)
{
    struct settings *s = &e->settings;
    const char *reason;

    if (s->bwrap_path == NULL)
        s->no_sandbox = "program 'bwrap' was not found; install bubblewrap";
    else
        s->no_sandbox = try_task(e, true, false);
    reason = try_task(e, s->no_sandbox == NULL, true);
    if (reason && strcmp(e->cgroups.limits, "none") != 0) {
        log_warn("control groups cannot be used: %s", reason);
        memset(e->cgroups.base, 0, sizeof(e->cgroups.base));
        e->cgroups.limits = "none";
    }
    e->node.limits = e->cgroups.limits;
    e->node.isolation = "bubblewrap";
    if (!e->user_namespaces)
        e->node.isolation = "bubblewrap, without user namespaces of their own";
    if (s->no_sandbox)
        e->node.isolation = arena_printf(&e->arena, "none: %s", s->no_sandbox);
    if (e->cgroups.lacking[0])
        log_warn("this machine cannot enforce %s", e->cgroups.lacking);
    if (strcmp(e->cgroups.limits, "none") == 0)
        log_warn("tasks run without limits of cpu, memory and processes: no control groups");
    if (s->no_sandbox)
        log_warn("tasks cannot be isolated (%s): they are %s", s->no_sandbox,
                 s->allow_unsandboxed ? "run as plain processes" : "refused");
    if (e->devices.notice)
        log_warn("%s", e->devices.notice);
    share_find(e);
}
