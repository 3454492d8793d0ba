/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine for tests of the shim: a simulated device of 1 GiB with the driver's double, and a
 * region of LIMIT on it for one task. Programs run in processes of their own and find the driver
 * through the shim, as CU(cuMemAlloc_v2)(...); what the double says of its memory is the truth
 * that limits are judged by.
 *
 *     PROGRAM(name) { ... }    a test: this program in front of the shim ends well, and leaves
 *                              nothing; `m` is the machine
 *     ALONE(name) { ... }      a test that makes its machine, and programs, itself
 *
 * Checks are CHECK(): each ends its process, which fails the test.
 */
#ifndef ALLOT_TESTS_SHARE_MACHINE_H
#define ALLOT_TESTS_SHARE_MACHINE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/rng.h"
#include "double.h"
#include "gpu/region.h"
#include "share/cuda_fns.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define LIMIT (256 * MIB)
#define CONTEXT (64 * MIB)

/* A driver's function as a program finds it: through the shim. */
#define CU(symbol) ((fn_##symbol *)find(#symbol))

#define CHECK(truth)                                                              \
    do {                                                                          \
        if (!(truth)) {                                                           \
            fprintf(stderr, "# %s:%d: not so: %s\n", __FILE__, __LINE__, #truth); \
            _exit(1);                                                             \
        }                                                                         \
    } while (0)

static void *shim;

static inline void *find(const char *symbol)
{
    void *function;

    if (shim == NULL)
        shim = dlopen(SHIM, RTLD_NOW | RTLD_LOCAL);
    CHECK(shim != NULL);
    function = dlsym(shim, symbol);
    CHECK(function != NULL);
    return function;
}

/* ---- the machine: a simulated device, a region of LIMIT on it ----------------------------- */

struct machine {
    char folder[64];
    struct dbl_shared *driver;
    struct gpu_region *region;
    int wakes;
};

static inline void count_wake(void *ctx)
{
    struct machine *m = ctx;

    m->wakes++;
}

static inline void path_in(const struct machine *m, const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", m->folder, name);
}

static inline void make_driver(struct machine *m)
{
    struct dbl_config config = dbl_config_default;
    char path[128];

    config.memory = GIB;
    config.context_bytes = CONTEXT;
    config.clock = DBL_CLOCK_VIRTUAL;
    path_in(m, "libcuda.so", path);
    CHECK(symlink(DRIVER, path) == 0);
    path_in(m, "devices", path);
    CHECK(dbl_create(path, &config) == 0);
    CHECK(dbl_open(path, &m->driver) == 0);
    setenv("ALLOT_DOUBLE_FILE", path, 1);
    setenv("ALLOT_SHARE_FOLDER", m->folder, 1);
}

static inline void make_region(struct machine *m)
{
    struct gpu_region_device device = {
        .memory_limit = LIMIT, .context_bytes = CONTEXT, .compute_milli = 250};
    const struct gpu_region_config config = {.folder = m->folder,
                                             .flags = SHARE_MEMORY,
                                             .devices = &device,
                                             .device_count = 1,
                                             .wake = count_wake,
                                             .ctx = m};
    struct err err = ERR_INIT;

    memcpy(device.uuid, dbl_info(m->driver, 0)->uuid, sizeof(device.uuid));
    if (gpu_region_open(&config, &m->region, &err) < 0) {
        fprintf(stderr, "# %s\n", err.text);
        _exit(1);
    }
}

static inline struct machine *machine(void)
{
    static struct machine m;

    m = (struct machine){.folder = "/tmp/allot-share-XXXXXX"};
    CHECK(mkdtemp(m.folder) != NULL);
    make_driver(&m);
    make_region(&m);
    return &m;
}

static inline void end_machine(struct machine *m)
{
    gpu_region_close(m->region);
    CHECK(io_remove_tree(AT_FDCWD, m->folder) == 0);
}

/* Serves the region for up to MS, or until PID has ended; true then, with its status. */
static inline bool serve(struct machine *m, pid_t pid, int ms, int *ret_status)
{
    struct pollfd p = {.fd = gpu_region_fd(m->region), .events = POLLIN};

    for (int i = 0; i < ms; i++) {
        poll(&p, 1, 1);
        gpu_region_serve(m->region);
        if (pid > 0 && waitpid(pid, ret_status, WNOHANG) == pid)
            return true;
    }
    return false;
}

static inline pid_t program(void (*run)(struct machine *), struct machine *m)
{
    pid_t pid;

    fflush(NULL);
    pid = fork();
    CHECK(pid >= 0);
    if (pid > 0)
        return pid;
    alarm(60);
    run(m);
    exit(0);
}

/* RUN in a program of its own, which must end well; nothing is held afterwards. */
static inline void runs_well(void (*run)(struct machine *))
{
    struct machine *m = machine();
    int status = -1;
    pid_t pid = program(run, m);

    CHECK(serve(m, pid, 60000, &status));
    CHECK(status == 0);
    serve(m, 0, 20, NULL);
    CHECK(gpu_region_processes(m->region) == 0);
    CHECK(gpu_region_held(m->region, 0) == 0);
    end_machine(m);
}

/* A driver with a current primary context, for which others may have to make room first. */
static inline void begin(void)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    struct cu_ctx *ctx;
    cu_result r;

    CHECK(CU(cuInit)(0) == CU_OK);
    while ((r = CU(cuDevicePrimaryCtxRetain)(&ctx, 0)) == CU_OUT_OF_MEMORY)
        nanosleep(&moment, NULL);
    CHECK(r == CU_OK);
    CHECK(CU(cuCtxSetCurrent)(ctx) == CU_OK);
}

/* Sends MESSAGE to the agent by hand: the socket, its answer, and the descriptors of limits and
 * counters where it welcomes. */
static inline int greet(const struct machine *m, uint32_t message, uint32_t version,
                        struct share_welcome *ret_welcome, int ret_fds[2])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct share_hello hello = {.message = message, .version = version};
    char control[CMSG_SPACE(2 * sizeof(int))];
    struct iovec part = {.iov_base = ret_welcome, .iov_len = sizeof(*ret_welcome)};
    struct msghdr answer = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", m->folder);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
    CHECK(recvmsg(fd, &answer, 0) == sizeof(*ret_welcome));
    if (ret_welcome->message != SHARE_WELCOME)
        return fd;
    CHECK(CMSG_FIRSTHDR(&answer) != NULL);
    memcpy(ret_fds, CMSG_DATA(CMSG_FIRSTHDR(&answer)), 2 * sizeof(int));
    return fd;
}

/* Comes in as the shim does. */
static inline int attach(const struct machine *m, int fds[2], uint32_t *ret_slot)
{
    struct share_welcome welcome;
    int fd = greet(m, SHARE_HELLO, SHARE_VERSION, &welcome, fds);

    CHECK(welcome.message == SHARE_WELCOME);
    if (ret_slot)
        *ret_slot = welcome.slot;
    return fd;
}

/* A test in a process of its own: the double's file is opened once in one. */
static inline void alone(void (*run)(void))
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

#define ALONE(name)                       \
    static void name(void);               \
    static void test_##name(void **state) \
    {                                     \
        alone(name);                      \
    }                                     \
    static void name(void)

/* The same for what one program does in front of the shim. */
#define PROGRAM(name)                              \
    static void name##_program(struct machine *m); \
    ALONE(name)                                    \
    {                                              \
        runs_well(name##_program);                 \
    }                                              \
    static void name##_program(struct machine *m)

#endif
