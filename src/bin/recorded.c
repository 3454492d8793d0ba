/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "store/history.h"

int recorded_open(const char *folder, int *ret_fd, char *ret_path, struct err *err)
{
    _cleanup_close_ int fd = memfd_create("history", MFD_CLOEXEC);
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    _cleanup_fclose_ FILE *file = copy < 0 ? NULL : fdopen(copy, "w");

    if (file == NULL)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, NULL, "no memory for the history: %s",
                       strerror(errno));
    int r = store_history_write(folder, file, err);
    if (r < 0)
        return r;
    snprintf(ret_path, RECORDED_PATH_MAX, "/proc/self/fd/%d", fd);
    *ret_fd = steal_fd(&fd);
    return 0;
}
