/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call into the double costs in bench mode: medians over batches, one thread, CPU time.
 * usage: cuda-double-cost LIVE (allocations that stay live meanwhile). Figures, no test.
 */
#include <stdlib.h>
#include <time.h>

#include "harness.h"

#define BATCHES 101
#define CALLS 20000

struct bench {
    struct cu_function *kernel;
};

static uint64_t cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void alloc_and_free(struct bench *bench)
{
    cu_devptr ptr;

    OK(cuMemAlloc_v2(&ptr, 4096));
    OK(cuMemFree_v2(ptr));
}

static void pool_and_free(struct bench *bench)
{
    cu_devptr ptr;

    OK(cuMemAllocAsync(&ptr, 4096, NULL));
    OK(cuMemFreeAsync(ptr, NULL));
}

static void launch(struct bench *bench)
{
    OK(cuLaunchKernel(bench->kernel, 64, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
}

static void info(struct bench *bench)
{
    size_t free, total;

    OK(cuMemGetInfo_v2(&free, &total));
}

static int by_value(const void *left, const void *right)
{
    double difference = *(const double *)left - *(const double *)right;

    return difference < 0 ? -1 : difference > 0;
}

static void measure(const char *name, void (*call)(struct bench *), struct bench *bench)
{
    double each[BATCHES];

    for (int b = 0; b < BATCHES; b++) {
        uint64_t start = cpu_ns();

        for (int i = 0; i < CALLS; i++)
            call(bench);
        each[b] = (double)(cpu_ns() - start) / CALLS;
    }
    qsort(each, BATCHES, sizeof(each[0]), by_value);
    printf("%-20s %8.1f ns\n", name, each[BATCHES / 2]);
}

int main(int argc, char **argv)
{
    struct dbl_config config = dbl_config_default;
    char file[] = "/tmp/cuda-double-XXXXXX";
    long live = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    struct bench bench;
    cu_devptr ptr;

    config.mode = DBL_BENCH;
    close(mkstemp(file));
    unlink(file);
    SAME(dbl_create(file, &config), 0);
    setenv(DBL_FILE_ENV, file, 1);
    begin_on(0);
    unlink(file);
    bench.kernel = kernel_of(1000, "1");
    for (long i = 0; i < live; i++)
        OK(cuMemAlloc_v2(&ptr, 4096));
    measure("launch", launch, &bench);
    measure("alloc + free", alloc_and_free, &bench);
    measure("pool alloc + free", pool_and_free, &bench);
    measure("memory info", info, &bench);
    return 0;
}
