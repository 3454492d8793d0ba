/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding tasks again.
 *
 * The folder says everything, in this order: an exit record is the end; else the lock on the
 * launch record says whether a supervisor lives; a living one is reached by its socket, which it
 * opens the moment it sees that its server has gone (so there may be a moment in which it is not
 * there yet); a dead one without a record is lost.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "engine/local/control.h"
#include "engine/local/engine.h"
#include "engine/local/record.h"

#define ADOPT_WARN_MS 30000

DEFINE_CLEANUP(DIR *, closedir, closedirp)

enum care { NOBODY, SOMEBODY };

/* Does somebody hold the launch record's lock? Loads the record. */
static enum care look_at_launch(struct engine_local *e, struct local_task *t)
{
    char path[MODEL_INTENT_MAX + sizeof(CONTROL_LAUNCH) + 1];
    _cleanup_free_ char *data = NULL;
    _cleanup_close_ int fd = -1;
    size_t len;

    snprintf(path, sizeof(path), "%s/%s", t->intent, CONTROL_LAUNCH);
    fd = openat(e->tasks_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return NOBODY;
    if (io_read_file(e->tasks_fd, path, RECORD_FILE_MAX, &data, &len) == 0)
        task_set_launch(t, data, len);
    return flock(fd, LOCK_EX | LOCK_NB) == 0 ? NOBODY : SOMEBODY;
}

/* By way of /proc, because the folder's path may be longer than a socket's address can be. */
static int connect_supervisor(struct engine_local *e, const char *intent, pid_t *ret_pid)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    _cleanup_close_ int folder = -1;
    _cleanup_close_ int fd = -1;
    struct ucred cred;
    socklen_t len = sizeof(cred);

    folder = openat(e->tasks_fd, intent, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return -errno;
    snprintf(addr.sun_path, sizeof(addr.sun_path), "/proc/self/fd/%d/%s", folder, CONTROL_SOCKET);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return -errno;
    *ret_pid = cred.pid;
    return steal_fd(&fd);
}

/* True when there is no more to try: connected, or nobody is there. */
static bool try_adopt(struct engine_local *e, struct local_task *t)
{
    pid_t pid = 0;
    int fd = connect_supervisor(e, t->intent, &pid);

    if (fd >= 0 && task_watch(e, t, fd, pid) == 0) {
        if (t->unwanted)
            log_warn("task %s runs, is not known to the server, and is stopped", t->intent);
        t->state = STARTING; /* until it says more */
        return true;
    }
    if (look_at_launch(e, t) == NOBODY) {
        task_bereaved(e, t);
        return true;
    }
    if (clock_boot_ms() > t->adopt_deadline_ms) {
        t->adopt_deadline_ms = clock_boot_ms() + ADOPT_WARN_MS;
        log_warn("task %s: its supervisor lives and cannot be reached; trying on", t->intent);
    }
    return false;
}

void adopt_task(struct engine_local *e, struct local_task *t)
{
    _cleanup_free_ char *data = NULL;
    size_t len;
    enum care care = look_at_launch(e, t);

    t->state = ADOPTING;
    t->adopt_deadline_ms = clock_boot_ms() + ADOPT_WARN_MS;
    if (task_read_record(e, t->intent, &data, &len) == 0) {
        /* A supervisor that hangs after its record was written harms nobody. */
        task_end_by_record(e, t, data, len);
        return;
    }
    if (care == NOBODY)
        task_bereaved(e, t);
    else if (!try_adopt(e, t))
        vec_push(&e->adopting, t);
}

void adopt_again(struct engine_local *e)
{
    struct local_task **tries = e->adopting.items;
    size_t count = e->adopting.len;

    /* Taken off the list first: a try may free its task. */
    e->adopting.items = NULL;
    e->adopting.len = e->adopting.cap = 0;
    for (size_t i = 0; i < count; i++)
        if (!try_adopt(e, tries[i]))
            vec_push(&e->adopting, tries[i]);
    free(tries);
}

static void maybe_reconciled(struct engine_local *e)
{
    struct engine_event ev = {.kind = ENGINE_RECONCILED, .boot_ms = clock_boot_ms()};

    if (!e->reconciling || e->awaited > 0)
        return;
    e->reconciling = false;
    e->host.event(e->host.host, &ev);
}

void adopt_answered(struct engine_local *e, struct local_task *t)
{
    if (!t->awaited)
        return;
    /* Of an unwanted task only its end is an answer. */
    if (t->unwanted && t->state != ENDED)
        return;
    t->awaited = false;
    e->awaited--;
    maybe_reconciled(e);
}

static void reconcile_one(struct engine_local *e, const struct engine_intent *intent)
{
    struct local_task *t = map_get_str(&e->tasks, intent->intent);

    if (t == NULL) {
        t = task_new(e, intent->intent);
        t->busy_ns = intent->busy_ns;
        t->known_ns = intent->known_ns;
        t->sleep_wanted = intent->suspended;
        t->sleep_known = intent->state == MODEL_TASK_SUSPENDED;
        t->awaited = true;
        e->awaited++;
        adopt_task(e, t);
    } else if (t->state == ENDED) {
        engine_tell(e, t, t->end);
    } else if (t->state == RUNNING) {
        engine_tell(e, t, ENGINE_STARTED);
        if (t->sleep == ASLEEP)
            engine_tell(e, t, ENGINE_SUSPENDED);
    }
}

/* Runs, or has run, without core's knowledge: away with it. */
static void drop_unknown(struct engine_local *e, const char *name)
{
    struct local_task *t = task_new(e, name);

    t->unwanted = true;
    t->awaited = true;
    t->stop_grace_ms = 0;
    e->awaited++;
    adopt_task(e, t);
}

static void look_for_unknown(struct engine_local *e)
{
    _cleanup_(closedirp) DIR *dir = NULL;
    VEC(char *) names = {0};
    struct dirent *entry;
    int fd = openat(e->tasks_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL) {
        if (fd >= 0)
            close(fd);
        log_error("folder of tasks cannot be read: %s", strerror(errno));
        return;
    }
    while ((entry = readdir(dir)))
        if (put_away_name_ok(entry->d_name) && map_get_str(&e->tasks, entry->d_name) == NULL)
            vec_push(&names, strdup(entry->d_name));
    for (size_t i = 0; i < names.len; i++) {
        drop_unknown(e, names.items[i]);
        free(names.items[i]);
    }
    vec_done(&names);
}

void adopt_reconcile(struct engine_local *e, const struct request *r)
{
    /* One more than there are, so that answers in between do not end it early. */
    e->reconciling = true;
    e->awaited++;
    for (size_t i = 0; i < r->count; i++)
        reconcile_one(e, &r->intents[i]);
    look_for_unknown(e);
    e->awaited--;
    maybe_reconciled(e);
}
