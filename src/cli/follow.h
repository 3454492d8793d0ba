/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following the logs of a workload's tasks: through restarts of the task (the next attempt is
 * taken up where the last ended) and of the server (reading resumes at the byte it had come to,
 * so nothing is lost or printed twice), until the workload has ended and everything was read.
 *
 * One thread a task, each with a connection of its own. They share the output under a lock:
 * with one task bytes pass as they come, with several only whole lines, each with its rank in
 * front. cli_follow_stop() ends them early. The eventfd of cli_follow_fd() becomes readable when
 * a log came to an end, which is when the state of the workload is worth a look.
 *
 *     r = cli_follow_start(cli, id, &options, &f, &err);
 *     ... poll(cli_follow_fd(f)) ...
 *     cli_follow_join(f);
 */
#ifndef ALLOT_CLI_FOLLOW_H
#define ALLOT_CLI_FOLLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct cli;
struct cli_follow;

/* More tasks than this are not followed at once. */
#define CLI_FOLLOW_MAX 64

struct cli_follow_options {
    uint32_t first_task;
    uint32_t task_count; /* 1..CLI_FOLLOW_MAX */
    bool once;           /* what is there now, task after task; start() does it all */
    bool from_now;       /* skip what was written before the newest attempt */
    int64_t tail;        /* lines of the first attempt to begin with; -1 = all */
};

/* -ENOENT, or what else kept the first look from succeeding, with ERR. */
int cli_follow_start(struct cli *cli, uint64_t workload, const struct cli_follow_options *options,
                     struct cli_follow **ret_follow, struct err *err);
/* Readable when there is reason to look; read 8 bytes from it. Owned by F. */
int cli_follow_fd(const struct cli_follow *f);
/* Have all threads come to the end? */
bool cli_follow_finished(struct cli_follow *f);
/* Holds the output back while a question is asked. */
void cli_follow_pause(struct cli_follow *f, bool pause);
/* Ends the threads at once; join still has to be called. */
void cli_follow_stop(struct cli_follow *f);
/* Waits for the threads and releases F. 0, or the first error with ERR. */
int cli_follow_join(struct cli_follow *f, struct err *err);

#endif
