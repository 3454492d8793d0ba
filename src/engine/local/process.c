/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STAT_MAX ((size_t)4096)
#define START_FIELD 22 /* of /proc/PID/stat, counted from 1 */

int64_t process_start_ticks(pid_t pid)
{
    _cleanup_free_ char *text = NULL;
    char path[32], *p;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (io_read_file(AT_FDCWD, path, STAT_MAX, &text, NULL) < 0)
        return -1;
    /* The name in field 2 may hold anything, blanks and brackets included. */
    p = strrchr(text, ')');
    for (int field = 2; p && field < START_FIELD; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoll(p + 1, NULL, 10) : -1;
}

bool process_handles(pid_t pid, int sig)
{
    static const char field[] = "\nSigCgt:";
    _cleanup_free_ char *text = NULL;
    char path[32], *p;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (io_read_file(AT_FDCWD, path, STAT_MAX, &text, NULL) < 0)
        return false;
    p = strstr(text, field);
    return p && (strtoull(p + sizeof(field) - 1, NULL, 16) >> (sig - 1) & 1);
}

char *process_boot_id(void)
{
    char *text = NULL;

    if (io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", STAT_MAX, &text, NULL) < 0)
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    return text;
}
