/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups: what bounds, measures and kills a task.
 *
 * A machine has one of
 *   cgroup2  the unified hierarchy with the cpu, memory and pids controllers;
 *   cgroup1  v1 controllers, with or without a unified hierarchy beside them (hybrid). Where it
 *            is there, its controller-less groups still give an atomic kill and CPU time;
 *            without it, the freezer stands in for the kill and cpuacct for the time;
 *   none     neither, or no right to use them. Tasks run without limits and the node says so.
 *
 * The engine finds out once (cgroup_site_probe) and makes one group per hierarchy, named
 * allot-INSTANCE. It writes the path of a task's groups into the launch
 * record, so that a later server in another place of the hierarchy still finds them. The
 * supervisor makes, fills and removes them; the engine does the same for a dead supervisor.
 *
 * CPU is shared by weight, not capped: idle cores stay usable. Memory is a hard limit where one
 * was asked for. Units: millicores, bytes, nanoseconds.
 *
 * Only hierarchies that a task needs are joined: each costs a folder and a migration.
 */
#ifndef ALLOT_ENGINE_LOCAL_CGROUP_H
#define ALLOT_ENGINE_LOCAL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/strbuf.h"
#include "base/vec.h"

enum cgroup_role {
    CGROUP_V2,      /* unified, with controllers */
    CGROUP_UNIFIED, /* unified, without: kill and CPU time only */
    CGROUP_CPU,
    CGROUP_CPUACCT,
    CGROUP_MEMORY,
    CGROUP_PIDS,
    CGROUP_FREEZER,
    CGROUP_ROLE_COUNT
};

/* Where the engine may make groups, by role; NULL = not there or not needed. */
struct cgroup_site {
    const char *limits; /* for model_node.limits */
    const char *base[CGROUP_ROLE_COUNT];
    char lacking[160]; /* for people: what cannot be enforced, or "" */
};

/* The groups of one task. The paths belong to the record that they were loaded from. */
struct cgroup_set {
    const char *path[CGROUP_ROLE_COUNT];
};

struct cgroup_limits {
    int64_t cpu_milli;    /* weight */
    int64_t memory_bytes; /* 0 = none */
    int64_t pids;         /* 0 = none */
};

/*
 * Finds the hierarchies and makes the engine's own groups there. Strings into ARENA. Never
 * fails: the answer may be "none", with the reason in `lacking`.
 */
void cgroup_site_probe(const char *instance, struct arena *arena, struct cgroup_site *ret_site);

/* Adds the fields that name the groups of task NAME to a launch record. */
void cgroup_site_describe(const struct cgroup_site *site, const char *name, bool memory_limited,
                          struct strbuf *record);

/* Reads those fields. */
void cgroup_set_load(const char *data, size_t len, struct cgroup_set *ret_set);
/* Is there any group that lists the processes of the task? */
bool cgroup_set_tracks(const struct cgroup_set *set);

/* Makes the groups with their limits; a group that exists already is taken over. */
int cgroup_create(const struct cgroup_set *set, const struct cgroup_limits *limits,
                  struct err *err);
/* Moves the calling process into all of them. */
int cgroup_join(const struct cgroup_set *set, struct err *err);

/* CPU time used so far by everything that ever ran in the groups; -1 = not known. */
int64_t cgroup_cpu_ns(const struct cgroup_set *set);
struct cgroup_pids VEC_BODY(pid_t);
/* Adds the processes of the task to PIDS (to vec_done()). -ENOENT where no group lists them. */
int cgroup_list(const struct cgroup_set *set, struct cgroup_pids *pids);
/* Has the kernel killed a process of the task for want of memory? */
bool cgroup_oom_killed(const struct cgroup_set *set);

/*
 * SIGKILL to every process, repeated until none is left. -ETIMEDOUT after ten seconds (a
 * process in an uninterruptible wait).
 */
int cgroup_kill(const struct cgroup_set *set);
/* Removes the groups; a missing one is fine. -EBUSY while processes are left. */
int cgroup_remove(const struct cgroup_set *set);

#endif
