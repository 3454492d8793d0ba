/* SPDX-License-Identifier: Apache-2.0 */
/* The server's process, under the names that all Prometheus clients use. */
#include "api/metrics.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

#define FIELDS_BEFORE_START 19 /* of /proc/self/stat, after the name in brackets */

static void write_one(struct prom_writer *w, const char *name, const char *type, const char *help,
                      int64_t value)
{
    if (value < 0)
        return;
    prom_family(w, name, type, help);
    prom_begin(w);
    prom_i64(w, value);
}

static void write_cpu(struct prom_writer *w)
{
    struct rusage u;

    if (getrusage(RUSAGE_SELF, &u) < 0)
        return;
    prom_family(w, "process_cpu_seconds_total", "counter", "CPU time of the server, in seconds.");
    prom_begin(w);
    prom_milli(w, (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * MS_PER_S +
                      (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000);
}

static void write_memory(struct prom_writer *w)
{
    long long pages = -1, resident = -1, page = sysconf(_SC_PAGESIZE);
    FILE *f = fopen("/proc/self/statm", "re");

    if (f == NULL)
        return;
    if (fscanf(f, "%lld %lld", &pages, &resident) == 2) {
        write_one(w, "process_virtual_memory_bytes", "gauge", "Its address space.", pages * page);
        write_one(w, "process_resident_memory_bytes", "gauge", "Its memory.", resident * page);
    }
    fclose(f);
}

static void write_files(struct prom_writer *w)
{
    DIR *dir = opendir("/proc/self/fd");
    struct rlimit limit;
    int64_t n = -1; /* the folder itself */

    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    closedir(dir);
    write_one(w, "process_open_fds", "gauge", "Its open files.", n);
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        write_one(w, "process_max_fds", "gauge", "How many it may open.", (int64_t)limit.rlim_cur);
}

/* A number of seconds since 1970 that stays the same: the machine's start and what passed until
 * the process's, both as the kernel keeps them. */
static int64_t start_time(void)
{
    long long boot_s = -1, ticks = -1;
    char line[1024];
    char *at = NULL;
    FILE *f = fopen("/proc/stat", "re");

    while (f && boot_s < 0 && fgets(line, sizeof(line), f))
        (void)sscanf(line, "btime %lld", &boot_s);
    if (f)
        fclose(f);
    f = fopen("/proc/self/stat", "re");
    if (f && fgets(line, sizeof(line), f))
        at = strrchr(line, ')');
    if (f)
        fclose(f);
    for (int i = 0; at && i <= FIELDS_BEFORE_START; i++)
        at = strchr(at + 1, ' ');
    if (at)
        ticks = strtoll(at, NULL, 10);
    return boot_s < 0 || ticks < 0 ? -1 : boot_s + ticks / sysconf(_SC_CLK_TCK);
}

void api_metrics_process(struct prom_writer *w)
{
    write_cpu(w);
    write_memory(w);
    write_files(w);
    write_one(w, "process_start_time_seconds", "gauge", "When it started, seconds since 1970.",
              start_time());
}
