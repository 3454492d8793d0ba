/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

int bin_clock_init(struct bin_clock *clock)
{
    _cleanup_free_ char *id = NULL;
    size_t len;
    int r = io_read_file(AT_FDCWD, "/proc/sys/kernel/random/boot_id", sizeof(clock->boot_id), &id,
                         &len);

    if (r < 0)
        return r;
    id[strcspn(id, "\n")] = '\0';
    snprintf(clock->boot_id, sizeof(clock->boot_id), "%s", id);
    return 0;
}

static int64_t boot_ms(void *clock)
{
    return clock_boot_ms();
}

static int64_t wall_ms(void *clock)
{
    return clock_wall_ms();
}

static const char *boot_id(void *clock)
{
    return ((struct bin_clock *)clock)->boot_id;
}

const struct clock_ops bin_clock_ops = {boot_ms, wall_ms, boot_id};
