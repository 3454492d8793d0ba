/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the double's tests run: each case in a process of its own, since a driver is initialised
 * once in one, on a machine of its own. What is not as it should be ends the process with a line
 * that says where; the case in the parent then fails.
 */
#ifndef ALLOT_TESTS_CUDA_HARNESS_H
#define ALLOT_TESTS_CUDA_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "driver.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define MS_NS UINT64_C(1000000)

#define CHECK(truth)                                                              \
    do {                                                                          \
        if (!(truth)) {                                                           \
            fprintf(stderr, "# %s:%d: not so: %s\n", __FILE__, __LINE__, #truth); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

#define SAME(left, right)                                                                        \
    do {                                                                                         \
        long long left_ = (long long)(left), right_ = (long long)(right);                        \
                                                                                                 \
        if (left_ != right_) {                                                                   \
            fprintf(stderr, "# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #left, left_, \
                    right_);                                                                     \
            _exit(1);                                                                            \
        }                                                                                        \
    } while (0)

#define OK(call) SAME(call, CU_OK)

/* A process that runs RUN(ARG) and ends well. */
static inline pid_t spawn(void (*run)(void *), void *arg)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    alarm(100);
    run(arg);
    /* Not by exit(): what the parent set up to happen at its end is the parent's. */
    fflush(NULL);
    _exit(0);
}

/* Waits for PID; true if it ended well. */
static inline bool ended_well(pid_t pid)
{
    int status;

    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct case_ {
    void (*run)(struct dbl_shared *sh);
    struct dbl_config config;
};

static inline void run_case(void *arg)
{
    const struct case_ *c = arg;
    struct dbl_shared *sh;

    SAME(dbl_open(getenv(DBL_FILE_ENV), &sh), 0);
    c->run(sh);
}

/* Runs RUN in a process of its own on a machine of CONFIG. The machine goes with the case. */
static inline void on_machine(void (*run)(struct dbl_shared *), const struct dbl_config *config)
{
    struct case_ c = {run, *config};
    char file[] = "/tmp/cuda-double-XXXXXX";
    int fd = mkstemp(file);
    bool well;

    assert_true(fd >= 0);
    close(fd);
    unlink(file);
    assert_int_equal(dbl_create(file, config), 0);
    setenv(DBL_FILE_ENV, file, 1);
    well = ended_well(spawn(run_case, &c));
    unlink(file);
    assert_true(well);
}

/* A driver with a current primary context of device ORDINAL. */
static inline struct cu_ctx *begin_on(cu_device ordinal)
{
    struct cu_ctx *ctx;

    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&ctx, ordinal));
    OK(cuCtxSetCurrent(ctx));
    return ctx;
}

/* A function NAME that takes NS alone on the device and fills SMS, or a grid. */
static inline struct cu_function *kernel_of(uint64_t ns, const char *sms)
{
    struct cu_module *module;
    struct cu_function *function;
    char text[128];

    snprintf(text, sizeof(text), "kernel work %llu %s\n", (unsigned long long)ns, sms);
    OK(cuModuleLoadData(&module, text));
    OK(cuModuleGetFunction(&function, module, "work"));
    return function;
}

static inline cu_result launch_in(struct cu_function *function, struct cu_stream *stream)
{
    return cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, stream, NULL, NULL);
}

#endif
