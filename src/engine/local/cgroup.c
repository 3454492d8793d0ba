/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "engine/local/record.h"

#define PATH_BYTES 1024
#define FILE_BYTES_MAX ((size_t)4 * 1024 * 1024)
#define KILL_TIMEOUT_MS 10000
#define REMOVE_TRIES 50

static const char *const role_key[CGROUP_ROLE_COUNT] = {
    [CGROUP_V2] = "cgroup.v2",           [CGROUP_UNIFIED] = "cgroup.unified",
    [CGROUP_CPU] = "cgroup.cpu",         [CGROUP_CPUACCT] = "cgroup.cpuacct",
    [CGROUP_MEMORY] = "cgroup.memory",   [CGROUP_PIDS] = "cgroup.pids",
    [CGROUP_FREEZER] = "cgroup.freezer",
};

void cgroup_site_describe(const struct cgroup_site *site, const char *name, bool memory_limited,
                          struct strbuf *record)
{
    for (int r = 0; r < CGROUP_ROLE_COUNT; r++) {
        if (site->base[r] == NULL || (r == CGROUP_MEMORY && !memory_limited))
            continue;
        strbuf_addf(record, "%s=%s/%s", role_key[r], site->base[r], name);
        strbuf_addc(record, '\0');
    }
}

void cgroup_set_load(const char *data, size_t len, struct cgroup_set *ret_set)
{
    for (int r = 0; r < CGROUP_ROLE_COUNT; r++)
        ret_set->path[r] = record_get(data, len, role_key[r]);
}

/* The group whose cgroup.procs is looked at; freezing and killing work there. */
static const char *tracking_group(const struct cgroup_set *set)
{
    static const enum cgroup_role order[] = {CGROUP_V2,      CGROUP_UNIFIED, CGROUP_FREEZER,
                                             CGROUP_CPUACCT, CGROUP_PIDS,    CGROUP_CPU};

    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (set->path[order[i]])
            return set->path[order[i]];
    return NULL;
}

bool cgroup_set_tracks(const struct cgroup_set *set)
{
    return tracking_group(set) != NULL;
}

static int write_file(const char *group, const char *file, const char *text)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s/%s", group, file);

    if (n < 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    return io_write_existing(AT_FDCWD, path, text);
}

static int write_number(const char *group, const char *file, int64_t value)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRId64, value);
    return write_file(group, file, text);
}

static int read_file(const char *group, const char *file, char **ret_text)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof(path), "%s/%s", group, file);

    if (n < 0 || (size_t)n >= sizeof(path))
        return -ENAMETOOLONG;
    return io_read_file(AT_FDCWD, path, FILE_BYTES_MAX, ret_text, NULL);
}

/* v1: 1024 shares a core, 2..262144. v2: the kernel's own mapping of shares to 1..10000. */
static int64_t cpu_shares(int64_t cpu_milli)
{
    int64_t shares = cpu_milli > 256000 ? 262144 : cpu_milli * 1024 / 1000;

    return shares < 2 ? 2 : shares;
}

static int64_t cpu_weight(int64_t cpu_milli)
{
    return 1 + (cpu_shares(cpu_milli) - 2) * 9999 / 262142;
}

/* Limits go in before any process does. */
static int apply_limits(enum cgroup_role role, const char *group,
                        const struct cgroup_limits *limits)
{
    int r = 0;

    switch (role) {
    case CGROUP_V2:
        r = write_number(group, "cpu.weight", cpu_weight(limits->cpu_milli));
        if (r == 0 && limits->pids > 0)
            r = write_number(group, "pids.max", limits->pids);
        if (r == 0 && limits->memory_bytes > 0) {
            r = write_number(group, "memory.max", limits->memory_bytes);
            /* No swap beyond the limit, and one kill for the whole task. Both are optional. */
            (void)write_file(group, "memory.swap.max", "0");
            (void)write_file(group, "memory.oom.group", "1");
        }
        return r;
    case CGROUP_CPU:
        return write_number(group, "cpu.shares", cpu_shares(limits->cpu_milli));
    case CGROUP_PIDS:
        return limits->pids > 0 ? write_number(group, "pids.max", limits->pids) : 0;
    case CGROUP_MEMORY:
        if (limits->memory_bytes == 0)
            return 0;
        r = write_number(group, "memory.limit_in_bytes", limits->memory_bytes);
        /* Only where the kernel accounts swap. */
        (void)write_number(group, "memory.memsw.limit_in_bytes", limits->memory_bytes);
        return r;
    default:
        return 0;
    }
}

int cgroup_create(const struct cgroup_set *set, const struct cgroup_limits *limits, struct err *err)
{
    for (int role = 0; role < CGROUP_ROLE_COUNT; role++) {
        const char *path = set->path[role];
        int r;

        if (path == NULL)
            continue;
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL,
                           "control group '%s' cannot be made: %s", path, strerror(errno));
        r = apply_limits((enum cgroup_role)role, path, limits);
        if (r < 0)
            return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                           "limits of control group '%s' cannot be set: %s", path, strerror(-r));
    }
    return 0;
}

int cgroup_join(const struct cgroup_set *set, struct err *err)
{
    for (int role = 0; role < CGROUP_ROLE_COUNT; role++) {
        int r = set->path[role] ? write_file(set->path[role], "cgroup.procs", "0") : 0;

        if (r < 0)
            return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                           "control group '%s' cannot be entered: %s", set->path[role],
                           strerror(-r));
    }
    return 0;
}

/* Value of KEY in a file of "key value" lines. */
static int64_t keyed_value(const char *text, const char *key)
{
    size_t n = strlen(key);

    for (const char *line = text; line && *line; line = strchr(line, '\n')) {
        if (*line == '\n')
            line++;
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            return strtoll(line + n, NULL, 10);
    }
    return -1;
}

int64_t cgroup_cpu_ns(const struct cgroup_set *set)
{
    const char *unified = set->path[CGROUP_V2] ? set->path[CGROUP_V2] : set->path[CGROUP_UNIFIED];
    _cleanup_free_ char *text = NULL;
    int64_t usec;

    if (unified) {
        if (read_file(unified, "cpu.stat", &text) < 0)
            return -1;
        usec = keyed_value(text, "usage_usec");
        return usec < 0 ? -1 : usec * 1000;
    }
    if (set->path[CGROUP_CPUACCT] == NULL ||
        read_file(set->path[CGROUP_CPUACCT], "cpuacct.usage", &text) < 0)
        return -1;
    return strtoll(text, NULL, 10);
}

bool cgroup_oom_killed(const struct cgroup_set *set)
{
    _cleanup_free_ char *text = NULL;
    int r = -ENOENT;

    if (set->path[CGROUP_V2])
        r = read_file(set->path[CGROUP_V2], "memory.events", &text);
    else if (set->path[CGROUP_MEMORY])
        r = read_file(set->path[CGROUP_MEMORY], "memory.oom_control", &text);
    return r == 0 && keyed_value(text, "oom_kill") > 0;
}

static int list_processes(const char *group, struct cgroup_pids *pids)
{
    _cleanup_free_ char *text = NULL;
    int r = read_file(group, "cgroup.procs", &text);
    char *p, *end;

    for (p = r < 0 ? NULL : text; p && *p; p = end + (*end == '\n')) {
        long pid = strtol(p, &end, 10);

        if (end == p)
            break;
        vec_push(pids, (pid_t)pid);
    }
    return r < 0 ? r : 0;
}

int cgroup_list(const struct cgroup_set *set, struct cgroup_pids *pids)
{
    const char *group = tracking_group(set);

    return group ? list_processes(group, pids) : -ENOENT;
}

/* Signals every process of GROUP (unless SIG is 0); returns how many there were. */
static size_t signal_all(const char *group, int sig)
{
    struct cgroup_pids pids = {0};
    size_t count;

    (void)list_processes(group, &pids);
    for (size_t i = 0; sig != 0 && i < pids.len; i++)
        if (pids.items[i] > 1)
            kill(pids.items[i], sig);
    count = pids.len;
    vec_done(&pids);
    return count;
}

/* Frozen processes cannot fork away from the signal; it takes effect as they thaw. */
static void kill_once(const struct cgroup_set *set, const char *group)
{
    if (group == set->path[CGROUP_V2] || group == set->path[CGROUP_UNIFIED])
        if (write_file(group, "cgroup.kill", "1") == 0)
            return;
    if (set->path[CGROUP_FREEZER])
        (void)write_file(set->path[CGROUP_FREEZER], "freezer.state", "FROZEN");
    signal_all(group, SIGKILL);
    if (set->path[CGROUP_FREEZER])
        (void)write_file(set->path[CGROUP_FREEZER], "freezer.state", "THAWED");
}

int cgroup_kill(const struct cgroup_set *set)
{
    const char *group = tracking_group(set);
    int64_t deadline = clock_boot_ms() + KILL_TIMEOUT_MS;
    struct timespec pause = {.tv_nsec = 200000};

    if (group == NULL)
        return 0;
    while (signal_all(group, 0) > 0) {
        if (clock_boot_ms() > deadline)
            return -ETIMEDOUT;
        kill_once(set, group);
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 10 * NS_PER_MS)
            pause.tv_nsec *= 2;
    }
    return 0;
}

int cgroup_remove(const struct cgroup_set *set)
{
    int result = 0;

    for (int role = 0; role < CGROUP_ROLE_COUNT; role++) {
        const char *path = set->path[role];

        if (path == NULL)
            continue;
        /* A process that has just died may be counted for a moment longer. */
        for (int i = 0; rmdir(path) < 0 && errno != ENOENT; i++) {
            if (errno != EBUSY || i == REMOVE_TRIES) {
                result = -errno;
                break;
            }
            nanosleep(&(struct timespec){.tv_nsec = NS_PER_MS}, NULL);
        }
    }
    return result;
}
