/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding the hierarchies.
 *
 * /proc/self/mountinfo says where hierarchies are mounted, /proc/self/cgroup where this process
 * stands in them. On v1 tasks go beneath our own place, so that a limit on the server's
 * surroundings holds for its tasks too.
 *
 * On v2 they go beneath the root of what we can see, not beneath the server's unit: a group that
 * hands controllers down may hold no processes, and a service manager that starts the server
 * again puts it into exactly the group whose children still run tasks. In a container the root
 * that we see does hold processes; they are moved into a leaf first.
 */
#include "engine/local/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define FILE_MAX ((size_t)1024 * 1024)

struct hierarchy {
    const char *mount; /* where it is mounted, NULL = not */
    const char *root;  /* the part of it that the mount shows */
    const char *own;   /* our group, from the root of the hierarchy */
};

struct surroundings {
    struct hierarchy unified;
    struct hierarchy v1[CGROUP_ROLE_COUNT];
};

static const char *const controller[CGROUP_ROLE_COUNT] = {
    [CGROUP_CPU] = "cpu",   [CGROUP_CPUACCT] = "cpuacct", [CGROUP_MEMORY] = "memory",
    [CGROUP_PIDS] = "pids", [CGROUP_FREEZER] = "freezer",
};

/* Is WORD one of the words of LIST, which SEP divides? */
static bool has_word(const char *list, const char *word, const char *sep)
{
    size_t n = strlen(word);

    while (*list) {
        size_t len = strcspn(list, sep);

        if (len == n && memcmp(list, word, n) == 0)
            return true;
        list += len + (list[len] != '\0');
    }
    return false;
}

/* "36 35 98:0 ROOT MOUNT opts [optional...] - TYPE SOURCE SUPEROPTS" */
static void read_mount(char *line, struct arena *arena, struct surroundings *s)
{
    char *save = NULL, *fields[6], *dash = strstr(line, " - ");
    char *type, *super;

    if (dash == NULL)
        return;
    *dash = '\0';
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        fields[i] = strtok_r(i == 0 ? line : NULL, " ", &save);
        if (fields[i] == NULL)
            return;
    }
    save = NULL;
    type = strtok_r(dash + 3, " ", &save);
    (void)strtok_r(NULL, " ", &save);
    super = strtok_r(NULL, " ", &save);
    if (type == NULL || super == NULL)
        return;
    if (strcmp(type, "cgroup2") == 0 && s->unified.mount == NULL) {
        s->unified.root = arena_strdup(arena, fields[3]);
        s->unified.mount = arena_strdup(arena, fields[4]);
    }
    for (int r = 0; r < CGROUP_ROLE_COUNT && strcmp(type, "cgroup") == 0; r++) {
        if (controller[r] == NULL || !has_word(super, controller[r], ",") || s->v1[r].mount)
            continue;
        s->v1[r].root = arena_strdup(arena, fields[3]);
        s->v1[r].mount = arena_strdup(arena, fields[4]);
    }
}

/* "4:memory:/path", unified "0::/path" */
static void read_own(char *line, struct arena *arena, struct surroundings *s)
{
    char *names = strchr(line, ':');
    char *path = names ? strchr(names + 1, ':') : NULL;

    if (path == NULL)
        return;
    *path++ = '\0';
    names++;
    if (*names == '\0')
        s->unified.own = arena_strdup(arena, path);
    for (int r = 0; r < CGROUP_ROLE_COUNT; r++)
        if (controller[r] && has_word(names, controller[r], ","))
            s->v1[r].own = arena_strdup(arena, path);
}

static void for_each_line(const char *file, struct arena *arena, struct surroundings *s,
                          void (*read)(char *, struct arena *, struct surroundings *))
{
    _cleanup_free_ char *text = NULL;
    char *save = NULL;

    if (io_read_file(AT_FDCWD, file, FILE_MAX, &text, NULL) < 0)
        return;
    for (char *l = strtok_r(text, "\n", &save); l; l = strtok_r(NULL, "\n", &save))
        read(l, arena, s);
}

/* Our own group as a path, without a slash at the end; NULL when the mount does not show it. */
static const char *own_path(const struct hierarchy *h, struct arena *arena)
{
    const char *own = h->own ? h->own : "/";
    size_t n = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root);

    if (h->mount == NULL || strncmp(own, "/..", 3) == 0)
        return NULL;
    if (strncmp(own, h->root, n) != 0 || (own[n] != '/' && own[n] != '\0'))
        return NULL;
    own += n;
    return arena_printf(arena, "%s%s", h->mount, strcmp(own, "/") == 0 ? "" : own);
}

static const char *make_group(const char *parent, const char *name, struct arena *arena)
{
    const char *path;

    if (parent == NULL)
        return NULL;
    path = arena_printf(arena, "%s/%s", parent, name);
    if (mkdir(path, 0755) < 0 && errno != EEXIST)
        return NULL;
    /* A read-only mount with the group left by another boot looks fine until it is used. */
    return access(path, W_OK) == 0 ? path : NULL;
}

static bool has_controllers(const char *group, const char *file, struct arena *arena)
{
    _cleanup_free_ char *text = NULL;

    if (io_read_file(AT_FDCWD, arena_printf(arena, "%s/%s", group, file), FILE_MAX, &text, NULL) <
        0)
        return false;
    return has_word(text, "cpu", " \n") && has_word(text, "memory", " \n") &&
           has_word(text, "pids", " \n");
}

static bool hand_down(const char *group, struct arena *arena)
{
    const char *file = arena_printf(arena, "%s/cgroup.subtree_control", group);

    return has_controllers(group, "cgroup.subtree_control", arena) ||
           io_write_existing(AT_FDCWD, file, "+cpu +memory +pids") == 0;
}

/* Moves what runs in GROUP itself into a leaf of it; only a container's root needs that. */
static void empty_into_leaf(const char *group, struct arena *arena)
{
    const char *leaf = make_group(group, "server", arena);
    const char *to = arena_printf(arena, "%s/server/cgroup.procs", group);
    _cleanup_free_ char *text = NULL;
    char *save = NULL;

    if (leaf == NULL || io_read_file(AT_FDCWD, arena_printf(arena, "%s/cgroup.procs", group),
                                     FILE_MAX, &text, NULL) < 0)
        return;
    for (char *pid = strtok_r(text, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save))
        (void)io_write_existing(AT_FDCWD, to, pid); /* kernel threads stay where they are */
}

static const char *v2_base(const struct hierarchy *h, const char *name, struct arena *arena)
{
    const char *own = h->mount ? own_path(h, arena) : NULL, *group;

    if (h->mount == NULL || !has_controllers(h->mount, "cgroup.controllers", arena))
        return NULL;
    if (!hand_down(h->mount, arena)) {
        if (own == NULL || strcmp(own, h->mount) != 0)
            return NULL;
        empty_into_leaf(h->mount, arena);
        if (!hand_down(h->mount, arena))
            return NULL;
    }
    group = make_group(h->mount, name, arena);
    return group && hand_down(group, arena) ? group : NULL;
}

static void lack(struct cgroup_site *site, const char *what)
{
    size_t n = strlen(site->lacking);

    snprintf(site->lacking + n, sizeof(site->lacking) - n, "%s%s", n ? ", " : "", what);
}

static void v1_bases(const struct surroundings *s, const char *name, struct arena *arena,
                     struct cgroup_site *site)
{
    static const struct {
        enum cgroup_role role;
        const char *what;
    } wanted[] = {{CGROUP_CPU, "cpu weights"},
                  {CGROUP_MEMORY, "memory limits"},
                  {CGROUP_PIDS, "process limits"}};
    bool any = false;

    for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
        enum cgroup_role r = wanted[i].role;

        site->base[r] = make_group(own_path(&s->v1[r], arena), name, arena);
        if (site->base[r])
            any = true;
        else
            lack(site, wanted[i].what);
    }
    site->base[CGROUP_UNIFIED] = make_group(own_path(&s->unified, arena), name, arena);
    if (site->base[CGROUP_UNIFIED] == NULL) {
        site->base[CGROUP_FREEZER] =
            make_group(own_path(&s->v1[CGROUP_FREEZER], arena), name, arena);
        site->base[CGROUP_CPUACCT] =
            make_group(own_path(&s->v1[CGROUP_CPUACCT], arena), name, arena);
        if (site->base[CGROUP_CPUACCT] == NULL)
            lack(site, "cpu accounting");
    }
    site->limits = any ? "cgroup1" : "none";
}

void cgroup_site_probe(const char *instance, struct arena *arena, struct cgroup_site *ret_site)
{
    const char *name = arena_printf(arena, "allot-%s", instance);
    struct surroundings s = {0};

    memset(ret_site, 0, sizeof(*ret_site));
    for_each_line("/proc/self/mountinfo", arena, &s, read_mount);
    for_each_line("/proc/self/cgroup", arena, &s, read_own);
    for (int r = 0; r < CGROUP_ROLE_COUNT; r++)
        if (s.v1[r].mount == NULL)
            s.v1[r].root = "/";
    if (s.unified.mount == NULL)
        s.unified.root = "/";
    ret_site->base[CGROUP_V2] = v2_base(&s.unified, name, arena);
    if (ret_site->base[CGROUP_V2])
        ret_site->limits = "cgroup2";
    else
        v1_bases(&s, name, arena, ret_site);
}
