/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader makes of a driver's figures, on the simulated driver under a virtual clock. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cuda/harness.h"
#include "gpu/telemetry.h"
#include "share/nvml_abi.h"

#define WINDOW_MS 100

static struct dbl_config machine(enum dbl_mode mode)
{
    struct dbl_config config = dbl_config_default;

    config.devices = 2;
    config.mode = mode;
    config.memory = GIB;
    config.context_bytes = 64 * MIB;
    config.clock = DBL_CLOCK_VIRTUAL;
    config.window_ns = WINDOW_MS * MS_NS;
    config.lag_ns = 0;
    return config;
}

static struct gpu_telemetry *reader(void)
{
    struct gpu_telemetry *t;
    struct err err = ERR_INIT;

    if (gpu_telemetry_open(NULL, &t, &err) < 0) {
        fprintf(stderr, "# %s\n", err.text);
        _exit(1);
    }
    return t;
}

static void read_now(struct gpu_telemetry *t, struct dbl_shared *sh)
{
    SAME(gpu_telemetry_read(t, (int64_t)(dbl_now(sh) / MS_NS)), 0);
}

static void read_now_later(struct gpu_telemetry *t, struct dbl_shared *sh)
{
    dbl_advance(sh, WINDOW_MS * MS_NS);
    read_now(t, sh);
}

/* A process with a context on device 0 that launches kernels of BUSY_MS when told to. */
struct worker {
    uint64_t busy_ms;
    const char *sms; /* that they fill; NULL: all */
    int orders[2], done[2];
};

static void work(void *arg)
{
    const struct worker *w = arg;
    struct cu_function *kernel;
    char byte;

    close(w->orders[1]);
    begin_on(0);
    kernel = kernel_of(w->busy_ms * MS_NS, w->sms ? w->sms : "108");
    CHECK(write(w->done[1], "x", 1) == 1);
    while (read(w->orders[0], &byte, 1) == 1) {
        OK(launch_in(kernel, NULL));
        CHECK(write(w->done[1], "x", 1) == 1);
    }
}

static void await(const struct worker *w)
{
    char byte;

    CHECK(read(w->done[0], &byte, 1) == 1);
}

static pid_t employ(struct worker *w, uint64_t busy_ms)
{
    pid_t pid;

    w->busy_ms = busy_ms;
    CHECK(pipe(w->orders) == 0 && pipe(w->done) == 0);
    pid = spawn(work, w);
    close(w->orders[0]);
    await(w);
    return pid;
}

static void order(const struct worker *w)
{
    CHECK(write(w->orders[1], "x", 1) == 1);
    await(w);
}

/* Later workers may have copies of our ends, so that it would not see the end of its orders. */
static void dismiss(const struct worker *w, pid_t pid)
{
    close(w->orders[1]);
    kill(pid, SIGKILL);
    (void)ended_well(pid);
}

static int64_t busy_of(const struct gpu_telemetry *t, pid_t pid)
{
    size_t count;
    const struct gpu_process_reading *p = gpu_telemetry_processes(t, &count);

    for (size_t i = 0; i < count; i++)
        if (p[i].pid == pid && p[i].device == 0)
            return p[i].busy_ns;
    return -1;
}

/* 30 and 20 ms of every 100, for a second. */
static void busy_time_adds_up(struct dbl_shared *sh)
{
    int64_t of_first = 0, of_second = 0;
    struct worker first = {0}, second = {0};
    struct gpu_telemetry *t;
    pid_t a = employ(&first, 30), b = employ(&second, 20);

    t = reader();
    SAME(gpu_telemetry_device_count(t), 2);
    read_now(t, sh);
    SAME(gpu_telemetry_device(t, 0)->busy_ns, 0);
    for (int i = 0; i < 10; i++) {
        order(&first);
        order(&second);
        dbl_advance(sh, WINDOW_MS * MS_NS);
        read_now(t, sh);
        of_first += busy_of(t, a);
        of_second += busy_of(t, b);
    }
    SAME(gpu_telemetry_device(t, 0)->busy_percent, 50);
    SAME(gpu_telemetry_device(t, 0)->busy_ns, 500 * MS_NS);
    SAME(gpu_telemetry_device(t, 0)->known_ns, 1000 * MS_NS);
    SAME(gpu_telemetry_device(t, 1)->busy_ns, 0);
    SAME(gpu_telemetry_device(t, 1)->known_ns, 1000 * MS_NS);
    SAME(of_first, 300 * MS_NS);
    SAME(of_second, 200 * MS_NS);
    /* Idle: known, and not busy. Their contexts are still there. */
    dbl_advance(sh, WINDOW_MS * MS_NS);
    read_now(t, sh);
    SAME(gpu_telemetry_device(t, 0)->busy_ns, 500 * MS_NS);
    SAME(busy_of(t, a), 0);
    dismiss(&first, a);
    read_now(t, sh);
    SAME(busy_of(t, a), -1);
    SAME(busy_of(t, b), 0);
    dismiss(&second, b);
    gpu_telemetry_close(t);
}

static void figures_of_the_moment(struct dbl_shared *sh)
{
    struct gpu_telemetry *t = reader();
    const struct gpu_device_reading *g = gpu_telemetry_device(t, 0);
    const struct gpu_process_reading *p;
    struct worker w = {0};
    size_t count;
    pid_t pid = employ(&w, 100);

    order(&w);
    dbl_advance(sh, WINDOW_MS * MS_NS);
    read_now(t, sh);
    CHECK(strncmp(g->uuid, "GPU-", 4) == 0 && strlen(g->uuid) == 40);
    CHECK(g->name[0] != 0);
    CHECK(strchr(g->pci_bus_id, ':') != NULL);
    SAME(g->minor, 0);
    SAME(g->busy_percent, 100);
    SAME(g->memory_total, GIB);
    SAME(g->memory_used + g->memory_free + g->memory_reserved, GIB);
    CHECK(g->memory_used >= (int64_t)(64 * MIB));
    CHECK(g->power_mw > 0 && g->energy_mj >= 0 && g->temperature_c > 0);
    CHECK(g->sm_clock_mhz > 0 && g->memory_clock_mhz > 0);
    /* This device has no counters of its parts. */
    CHECK(g->activity.engine_ppm == -1 && g->activity.sm_ppm == -1 && g->activity.dram_ppm == -1);
    p = gpu_telemetry_processes(t, &count);
    SAME(count, 1);
    SAME(p[0].pid, pid);
    SAME(p[0].memory_bytes, g->memory_used);
    dismiss(&w, pid);
    gpu_telemetry_close(t);
}

/* What was not looked at for long is neither busy nor idle. */
static void a_long_pause_is_not_filled_in(struct dbl_shared *sh)
{
    struct gpu_telemetry *t = reader();
    struct worker w = {0};
    pid_t pid = employ(&w, 100);

    read_now(t, sh);
    dbl_advance(sh, GPU_TELEMETRY_GAP_MS * MS_NS);
    order(&w);
    dbl_advance(sh, WINDOW_MS * MS_NS);
    read_now(t, sh);
    SAME(gpu_telemetry_device(t, 0)->busy_percent, 100);
    SAME(gpu_telemetry_device(t, 0)->busy_ns, 0);
    SAME(gpu_telemetry_device(t, 0)->known_ns, 0);
    SAME(busy_of(t, pid), 0);
    dismiss(&w, pid);
    gpu_telemetry_close(t);
}

/* A device that fails in one call is unknown in that figure, and its time is not counted. */
static void what_is_not_told_is_unknown(struct dbl_shared *sh)
{
    const struct gpu_device_reading *g;
    struct gpu_telemetry *t = reader();

    g = gpu_telemetry_device(t, 0);
    read_now(t, sh);
    for (int nth = 1; nth <= 10; nth++) {
        dbl_advance(sh, WINDOW_MS * MS_NS);
        dbl_fail_nth(sh, DBL_FAIL_NVML, nth, NVML_GPU_IS_LOST);
        read_now(t, sh);
        if (g->busy_percent < 0)
            SAME(g->busy_ns, 0);
        CHECK(g->memory_total == (int64_t)GIB || g->memory_total == -1);
    }
    /* Exactly one of the ten hit the utilisation of device 0. */
    SAME(g->known_ns, 900 * MS_NS);
    SAME(gpu_telemetry_device(t, 1)->known_ns, 1000 * MS_NS);
    gpu_telemetry_close(t);
}

/* Kernels of 50 ms on 27 of 108 SMs. */
static void counters_tell_what_parts_did(struct dbl_shared *sh)
{
    struct gpu_telemetry *t = reader();
    const struct gpu_activity *a = &gpu_telemetry_device(t, 0)->activity;
    struct worker w = {.sms = "27"};
    pid_t pid = employ(&w, 50);

    read_now(t, sh);
    SAME(a->engine_ppm, -1); /* since when? */
    for (int i = 0; i < 3; i++) {
        order(&w);
        dbl_advance(sh, WINDOW_MS * MS_NS);
        read_now(t, sh);
        SAME(a->engine_ppm, 500000);
        SAME(a->sm_ppm, 125000);
        SAME(a->tensor_ppm, 0);
        SAME(a->dram_ppm, 0);
        SAME(a->occupancy_ppm, -1);
    }
    SAME(gpu_telemetry_device(t, 1)->activity.sm_ppm, 0);
    /* Whatever fails, a figure is right or unknown, and the next read but one knows all again. */
    for (int nth = 1; nth <= 24; nth++) {
        dbl_advance(sh, WINDOW_MS * MS_NS);
        dbl_fail_nth(sh, DBL_FAIL_NVML, nth, NVML_GPU_IS_LOST);
        read_now(t, sh);
        CHECK(a->engine_ppm == -1 || a->engine_ppm == 0);
        read_now_later(t, sh);
        read_now_later(t, sh);
        SAME(a->engine_ppm, 0);
    }
    dismiss(&w, pid);
    gpu_telemetry_close(t);
}

static void lists_grow(struct dbl_shared *sh)
{
    struct gpu_telemetry *t = reader();
    const struct gpu_process_reading *p;
    struct worker workers[15] = {{0}};
    pid_t pids[15];
    size_t count, busy = 0;

    for (size_t i = 0; i < 15; i++) {
        pids[i] = employ(&workers[i], 2);
        if (i % 7 == 0)
            read_now(t, sh);
    }
    for (size_t i = 0; i < 15; i++)
        order(&workers[i]);
    dbl_advance(sh, WINDOW_MS * MS_NS);
    read_now(t, sh);
    p = gpu_telemetry_processes(t, &count);
    SAME(count, 15);
    for (size_t i = 0; i < count; i++)
        busy += p[i].busy_ns == 2 * (int64_t)MS_NS && p[i].memory_bytes > 0;
    SAME(busy, 15);
    for (size_t i = 0; i < 15; i++)
        dismiss(&workers[i], pids[i]);
    gpu_telemetry_close(t);
}

static void mps_hides_who_it_was(struct dbl_shared *sh)
{
    struct gpu_telemetry *t = reader();
    struct worker w = {0};
    pid_t pid = employ(&w, 30);

    read_now(t, sh);
    order(&w);
    dbl_advance(sh, WINDOW_MS * MS_NS);
    read_now(t, sh);
    SAME(gpu_telemetry_device(t, 0)->busy_ns, 30 * MS_NS);
    SAME(busy_of(t, pid), 0);
    dismiss(&w, pid);
    gpu_telemetry_close(t);
}

static void a_machine_without_a_file_has_no_reader(struct dbl_shared *sh)
{
    struct gpu_telemetry *t;
    struct err err = ERR_INIT;

    dbl_fail_nth(sh, DBL_FAIL_NVML, 1, NVML_GPU_IS_LOST);
    SAME(gpu_telemetry_open(NULL, &t, &err), -EIO);
    CHECK(strstr(err.text, "the NVIDIA driver cannot tell") != NULL);
    gpu_telemetry_close(NULL);
}

#define CASE(name, mode)                          \
    static void test_##name(void **state)         \
    {                                             \
        struct dbl_config config = machine(mode); \
                                                  \
        on_machine(name, &config);                \
    }

CASE(busy_time_adds_up, DBL_TIMESLICE)
CASE(figures_of_the_moment, DBL_TIMESLICE)
CASE(a_long_pause_is_not_filled_in, DBL_TIMESLICE)
CASE(what_is_not_told_is_unknown, DBL_TIMESLICE)
CASE(lists_grow, DBL_TIMESLICE)

static void test_counters_tell_what_parts_did(void **state)
{
    struct dbl_config config = machine(DBL_TIMESLICE);

    snprintf(config.name, sizeof(config.name), "Simulated H200");
    on_machine(counters_tell_what_parts_did, &config);
}
CASE(mps_hides_who_it_was, DBL_MPS)
CASE(a_machine_without_a_file_has_no_reader, DBL_TIMESLICE)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busy_time_adds_up),
        cmocka_unit_test(test_figures_of_the_moment),
        cmocka_unit_test(test_a_long_pause_is_not_filled_in),
        cmocka_unit_test(test_what_is_not_told_is_unknown),
        cmocka_unit_test(test_lists_grow),
        cmocka_unit_test(test_counters_tell_what_parts_did),
        cmocka_unit_test(test_mps_hides_who_it_was),
        cmocka_unit_test(test_a_machine_without_a_file_has_no_reader),
    };

    return cmocka_run_group_tests_name("gpu telemetry", tests, NULL, NULL);
}
