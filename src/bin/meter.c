/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/meter.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

static int64_t cpu_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

/* The second number of the kernel's line: pages that are resident. */
static int64_t rss_bytes(void)
{
    _cleanup_free_ char *text = NULL;
    char *end;
    size_t len;

    if (io_read_file(AT_FDCWD, "/proc/self/statm", 4096, &text, &len) < 0)
        return 0;
    strtoll(text, &end, 10);
    return strtoll(end, NULL, 10) * sysconf(_SC_PAGESIZE);
}

const struct sim_meter bin_meter = {cpu_ns, rss_bytes};
