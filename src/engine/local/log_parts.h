/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A task's log: stdout and stderr in the order written, in parts of bounded size.
 *
 * Part files are named `log.N`, N being the offset of their first byte since the start of the
 * task, so that an offset finds its part without an index and rotation is one unlink. LOG_PARTS
 * parts share the limit; when a new one begins, the oldest go. The writer is the supervisor
 * alone; readers open parts by name at any time and may lose the race with rotation, in which
 * case they move on to what is there.
 *
 * Data moves from the pipe to the file by splice(2), without passing through the supervisor.
 */
#ifndef ALLOT_ENGINE_LOCAL_LOG_PARTS_H
#define ALLOT_ENGINE_LOCAL_LOG_PARTS_H

#include <stddef.h>
#include <stdint.h>

#define LOG_PARTS 8
#define LOG_LIMIT_MIN (64 * 1024) /* bytes; smaller limits are raised to it */

struct log_writer {
    int dirfd;          /* the task's folder; not owned */
    int fd;             /* current part, -1 = none yet: it is made by the first byte */
    int64_t part_bytes; /* size of a full part */
    int64_t part_start; /* offset of the current part */
    int64_t offset;     /* bytes so far */
    int64_t lost;       /* bytes dropped because the disk was full */
};

/* A writer into the folder DIRFD, of at most LIMIT_BYTES in all. */
void log_writer_init(struct log_writer *w, int dirfd, int64_t limit_bytes);

/*
 * Moves what the non-blocking PIPE holds, at most about 1 MiB a call. Returns bytes moved, 0 at
 * the end of input, -EAGAIN when there is nothing now. A write error (disk full) never stops the
 * task: the bytes are dropped and counted in `lost`.
 */
int64_t log_writer_pump(struct log_writer *w, int pipe);

/* Closes the current part; the parts stay. */
void log_writer_done(struct log_writer *w);

/*
 * Up to SIZE bytes from OFFSET of the log in folder DIRFD. RET_OFFSET is where the data begins;
 * RET_LEN 0 = nothing there (yet). 0 or negative errno.
 */
int log_parts_read(int dirfd, int64_t offset, char *data, size_t size, int64_t *ret_offset,
                   size_t *ret_len);

#endif
