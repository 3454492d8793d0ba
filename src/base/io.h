/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small file helpers. All descriptors are close-on-exec; all functions return 0 or a negative
 * errno.
 */
#ifndef ALLOT_BASE_IO_H
#define ALLOT_BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

/* The whole file, NUL-terminated, to free(); -EFBIG above MAX bytes. DIRFD as for openat(). */
int io_read_file(int dirfd, const char *path, size_t max, char **ret_data, size_t *ret_len);

/*
 * Writes a file so that a reader sees all of it or nothing, also after a crash: temporary
 * file, fsync if DURABLE, rename, fsync of the directory if DURABLE.
 */
int io_write_file_atomic(int dirfd, const char *path, const void *data, size_t len, mode_t mode,
                         int durable);

/* Writes the text DATA to an existing file in one write, as cgroup and proc files need it. */
int io_write_existing(int dirfd, const char *path, const char *data);
/* Writes all of DATA, in as many writes as it takes. */
int io_write_all(int fd, const void *data, size_t len);

/* mkdir -p; existing folders are fine. */
int io_mkdirs(const char *path, mode_t mode);
/* rm -r without following links; a missing path is fine. */
int io_remove_tree(int dirfd, const char *path);

#endif
