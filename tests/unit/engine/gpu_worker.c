/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: gpu_worker BUSY_S [MIB]
 *
 * Makes a context on the first device, keeps it busy for BUSY_S seconds (0: not at all), takes MIB
 * of its memory, and waits to be killed. Says "ready", and before that "refused" if there is less.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "share/cuda_fns.h"

#define OK(call)                                           \
    do {                                                   \
        int r_ = (int)(call);                              \
        if (r_ != CU_OK) {                                 \
            fprintf(stderr, "%s failed: %d\n", #call, r_); \
            return 1;                                      \
        }                                                  \
    } while (0)

fn_cuInit cuInit;
fn_cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRetain;
fn_cuCtxSetCurrent cuCtxSetCurrent;
fn_cuModuleLoadData cuModuleLoadData;
fn_cuModuleGetFunction cuModuleGetFunction;
fn_cuLaunchKernel cuLaunchKernel;
fn_cuMemAlloc_v2 cuMemAlloc_v2;

int main(int argc, char **argv)
{
    long seconds = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    size_t mib = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
    struct cu_function *kernel;
    struct cu_module *module;
    struct cu_ctx *ctx;
    char text[64];
    cu_devptr block;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&ctx, 0));
    OK(cuCtxSetCurrent(ctx));
    if (seconds > 0) {
        snprintf(text, sizeof(text), "kernel work %ld000000000 108\n", seconds);
        OK(cuModuleLoadData(&module, text));
        OK(cuModuleGetFunction(&kernel, module, "work"));
        OK(cuLaunchKernel(kernel, 1, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL));
    }
    if (mib > 0 && cuMemAlloc_v2(&block, mib << 20) == CU_OUT_OF_MEMORY)
        puts("refused");
    puts("ready");
    fflush(stdout);
    pause();
    return 0;
}
