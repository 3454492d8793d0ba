/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share/verify/verify.h"

/* The answer of the second process: the driver's codes pass the range of an exit status. */
enum { SECOND_GIVEN = 10, SECOND_REFUSED, SECOND_OTHER };

static uint64_t power_below(uint64_t bytes)
{
    return bytes ? UINT64_C(1) << (63 - __builtin_clzll(bytes)) : 0;
}

cu_result fill(const struct driver *d, struct blocks *blocks, uint64_t most)
{
    uint64_t size = power_below(most - blocks->total);
    cu_result last = CU_OK;

    while (size > 0 && blocks->count < VERIFY_BLOCKS) {
        cu_result r = CU_OK;

        if (blocks->total + size <= most) {
            r = d->cuMemAlloc_v2(&blocks->at[blocks->count], size);
            last = r == CU_OK ? last : r;
        }
        if (r != CU_OK || blocks->total + size > most) {
            size /= 2;
            continue;
        }
        blocks->bytes[blocks->count++] = size;
        blocks->total += size;
    }
    return blocks->total == most ? CU_OK : last;
}

uint64_t drain(const struct driver *d, struct blocks *blocks, uint64_t bytes)
{
    uint64_t freed = 0;

    while (blocks->count > 0 && freed < bytes) {
        int last = --blocks->count;

        d->cuMemFree_v2(blocks->at[last]);
        blocks->total -= blocks->bytes[last];
        freed += blocks->bytes[last];
    }
    return freed;
}

int second_ask(int device, uint64_t room)
{
    char name[] = VERIFY_PROGRAM, option[] = VERIFY_SECOND, ordinal[16], bytes[24];
    char *const argv[] = {name, option, ordinal, bytes, NULL};
    int status, r;
    pid_t pid;

    snprintf(ordinal, sizeof(ordinal), "%d", device);
    snprintf(bytes, sizeof(bytes), "%" PRIu64, room);
    r = posix_spawn(&pid, "/proc/self/exe", NULL, NULL, argv, environ);
    if (r != 0)
        return -r;
    if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return -ECHILD;
    switch (WEXITSTATUS(status)) {
    case SECOND_GIVEN:
        return CU_OK;
    case SECOND_REFUSED:
        return CU_OUT_OF_MEMORY;
    default:
        return CU_UNKNOWN;
    }
}

int second_main(const char *device, const char *room)
{
    struct blocks blocks = {0};
    struct driver d;
    cu_devptr p;
    cu_result r;

    if (driver_open(&d) != NULL)
        return SECOND_OTHER;
    r = driver_enter(&d, (int)strtol(device, NULL, 10));
    if (r == CU_OK)
        r = fill(&d, &blocks, strtoull(room, NULL, 10));
    if (r == CU_OK)
        r = d.cuMemAlloc_v2(&p, VERIFY_BLOCK);
    return r == CU_OK ? SECOND_GIVEN : r == CU_OUT_OF_MEMORY ? SECOND_REFUSED : SECOND_OTHER;
}
