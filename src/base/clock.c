/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <stdlib.h>
#include <time.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec ts;

    /* Both clocks exist on every kernel that we run on; without time nothing is right. */
    if (clock_gettime(id, &ts) < 0)
        abort();
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

int64_t clock_boot_ns(void)
{
    return read_ns(CLOCK_BOOTTIME);
}

int64_t clock_boot_ms(void)
{
    return clock_boot_ns() / NS_PER_MS;
}

int64_t clock_wall_ms(void)
{
    return read_ns(CLOCK_REALTIME) / NS_PER_MS;
}
