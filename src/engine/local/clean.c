/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a supervisor leaves behind that was killed: processes and control groups.
 *
 * Normally nothing: bubblewrap and the sandbox's init die with it. This makes sure, on a helper
 * thread, and lets LOST be reported only when nothing of the task is left, so that its devices
 * can be given away.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "engine/local/control.h"
#include "engine/local/engine.h"
#include "engine/local/process.h"
#include "engine/local/record.h"

#define PIDS_MAX ((size_t)4096)
#define GONE_POLL_MS 1000
#define LOST_MESSAGE "its supervisor was killed; what ran has been stopped"
#define NEVER_MESSAGE "the server ended before the task was started"

/* The sandbox's init: with it everything in its pid namespace ends. False: not gone yet. */
static bool kill_init(const struct local_job *j)
{
    char path[MODEL_INTENT_MAX + sizeof(CONTROL_PIDS) + 1];
    _cleanup_free_ char *data = NULL;
    _cleanup_close_ int pidfd = -1;
    struct pollfd p;
    size_t len;
    int64_t pid;

    snprintf(path, sizeof(path), "%s/%s", j->intent, CONTROL_PIDS);
    if (io_read_file(j->e->tasks_fd, path, PIDS_MAX, &data, &len) < 0)
        return true;
    pid = record_get_i64(data, len, "init", -1);
    if (pid <= 1)
        return true;
    pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    /* Opened before the check: the start time now is that of the process held. */
    if (pidfd < 0 || process_start_ticks((pid_t)pid) != record_get_i64(data, len, "init_start", -2))
        return true;
    p = (struct pollfd){.fd = pidfd, .events = POLLIN};
    (void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    return poll(&p, 1, GONE_POLL_MS) > 0;
}

/* In the boot of its launch: with that it ended. Records of older releases do not tell. */
static void write_lost(struct local_job *j)
{
    const char *boot = record_get(j->record, j->record_len, "boot_id");
    char path[MODEL_INTENT_MAX + sizeof(CONTROL_EXIT) + 1];
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "end");
    record_add(&b, "kind", "lost");
    record_add_i64(&b, "ended_boot_ms", clock_boot_ms());
    record_add(&b, "boot_id", boot ? boot : j->e->boot_id);
    record_add(&b, "message", j->record_len > 0 ? LOST_MESSAGE : NEVER_MESSAGE);
    snprintf(path, sizeof(path), "%s/%s", j->intent, CONTROL_EXIT);
    (void)io_write_file_atomic(j->e->tasks_fd, path, b.data, b.len, 0600, 0);
}

static void run_clean(struct worker_job *job)
{
    struct local_job *j = (struct local_job *)job;
    struct pollfd cancel = {.fd = j->e->cancel, .events = POLLIN};
    struct request *r = request_new(REQUEST_CLEANED);
    _cleanup_strbuf_ struct strbuf groups = STRBUF_INIT;
    struct cgroup_set set;
    char path[MODEL_INTENT_MAX + sizeof(CONTROL_SOCKET) + 1];

    /* Without a launch record that can be read, the task still has groups of known names. */
    if (record_get(j->record, j->record_len, "intent")) {
        cgroup_set_load(j->record, j->record_len, &set);
    } else {
        cgroup_site_describe(&j->e->cgroups, j->intent, true, &groups);
        cgroup_set_load(groups.data, groups.len, &set);
    }
    r->job = j;
    /* Processes in an uninterruptible wait must not hold up the others: back to the end of the
     * queue. A server that ends leaves them to the next one. */
    if (!kill_init(j) || cgroup_kill(&set) == -ETIMEDOUT) {
        if (poll(&cancel, 1, 0) > 0) {
            queue_push(&j->e->queue, r);
            return;
        }
        log_warn("task %s: processes that cannot be killed are left; waiting", j->intent);
        request_free(r);
        worker_push(j->e->cleaner, &j->job);
        return;
    }
    (void)cgroup_remove(&set);
    snprintf(path, sizeof(path), "%s/%s", j->intent, CONTROL_SOCKET);
    (void)unlinkat(j->e->tasks_fd, path, 0);
    write_lost(j);
    queue_push(&j->e->queue, r);
}

void clean_begin(struct engine_local *e, struct local_task *t)
{
    struct local_job *j = calloc(1, sizeof(*j));

    if (j == NULL)
        abort(); /* as the arena does */
    t->state = CLEANING;
    j->job.run = run_clean;
    j->e = e;
    snprintf(j->intent, sizeof(j->intent), "%s", t->intent);
    j->record = t->launch ? malloc(t->launch_len + 1) : NULL;
    if (j->record) {
        memcpy(j->record, t->launch, t->launch_len + 1);
        j->record_len = t->launch_len;
    }
    worker_push(e->cleaner, &j->job);
}

void clean_done(struct engine_local *e, struct local_job *job)
{
    struct local_task *t = map_get_str(&e->tasks, job->intent);

    if (t && t->state == CLEANING) {
        t->past_boot = task_past_boot(e, job->record, job->record_len);
        task_end(e, t, ENGINE_LOST, job->record_len > 0 ? LOST_MESSAGE : NEVER_MESSAGE);
    }
    free(job->record);
    free(job);
}
