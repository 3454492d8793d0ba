/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/process.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STAT_MAX ((size_t)16384)

/* Fields of /proc/PID/stat, counted from 1; and the bit in its flags of a process that exits. */
#define FIELD_FLAGS 9
#define FIELD_THREADS 20
#define FIELD_START 22
#define EXITING 0x4

/* A field of /proc/PID/stat, counted from 1 as in proc(5); -1 = no such process. */
static int64_t stat_field(pid_t pid, int number)
{
    _cleanup_free_ char *text = NULL;
    char path[32], *p;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (io_read_file(AT_FDCWD, path, STAT_MAX, &text, NULL) < 0)
        return -1;
    /* The name in field 2 may hold anything, blanks and brackets included. */
    p = strrchr(text, ')');
    for (int field = 2; p && field < number; field++)
        p = strchr(p + 1, ' ');
    return p ? strtoll(p + 1, NULL, 10) : -1;
}

/* Is SIG in the set KEY ("SigCgt", "ShdPnd", ...) of PID? */
static bool in_set(pid_t pid, const char *key, int sig)
{
    _cleanup_free_ char *text = NULL;
    char path[32], field[16], *p;

    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    if (io_read_file(AT_FDCWD, path, STAT_MAX, &text, NULL) < 0)
        return false;
    snprintf(field, sizeof(field), "\n%s:", key);
    p = strstr(text, field);
    return p && (strtoull(p + strlen(field), NULL, 16) >> (sig - 1) & 1);
}

int64_t process_start_ticks(pid_t pid)
{
    return stat_field(pid, FIELD_START);
}

/* A leading thread may end before the others: then it is not the process that ends. */
static bool is_ending(pid_t pid)
{
    int64_t flags = stat_field(pid, FIELD_FLAGS);

    return flags < 0 || ((flags & EXITING) && stat_field(pid, FIELD_THREADS) <= 1);
}

bool process_takes(pid_t pid, int sig)
{
    if (is_ending(pid) || in_set(pid, "SigIgn", sig))
        return false;
    return in_set(pid, "SigCgt", sig) || in_set(pid, "SigBlk", sig);
}

bool process_pending(pid_t pid, int sig)
{
    return in_set(pid, "ShdPnd", sig);
}

char *process_boot_id(void)
{
    char *text = NULL;

    if (io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", STAT_MAX, &text, NULL) < 0)
        return NULL;
    text[strcspn(text, "\n")] = '\0';
    return text;
}
