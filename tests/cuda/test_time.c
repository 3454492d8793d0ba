/* SPDX-License-Identifier: Apache-2.0 */
/* Work in one process: how long it takes, and what waits for what. Under the virtual clock. */
#include <string.h>

#include "harness.h"

static struct dbl_config machine(enum dbl_mode mode)
{
    struct dbl_config config = dbl_config_default;

    config.mode = mode;
    config.clock = DBL_CLOCK_VIRTUAL;
    config.copy_bytes_per_s = GIB;
    config.pagein_bytes_per_s = GIB;
    return config;
}

#define CASE(name)                                         \
    static void test_##name(void **state)                  \
    {                                                      \
        struct dbl_config config = machine(DBL_TIMESLICE); \
                                                           \
        on_machine(name, &config);                         \
    }

static void kernel_takes_its_time(struct dbl_shared *sh)
{
    struct cu_event *start, *end;
    struct cu_function *kernel;
    float ms;

    begin_on(0);
    kernel = kernel_of(5 * MS_NS, "108");
    OK(cuEventCreate(&start, 0));
    OK(cuEventCreate(&end, 0));
    SAME(cuEventElapsedTime(&ms, start, end), CU_INVALID_HANDLE);
    OK(cuEventRecord(start, NULL));
    OK(launch_in(kernel, NULL));
    OK(launch_in(kernel, NULL));
    OK(cuEventRecord(end, NULL));
    SAME(cuStreamQuery(NULL), CU_NOT_READY);
    dbl_advance(sh, 9999999);
    SAME(cuStreamQuery(NULL), CU_NOT_READY);
    SAME(cuEventElapsedTime(&ms, start, end), CU_NOT_READY);
    OK(cuEventQuery(start));
    dbl_advance(sh, 1);
    OK(cuStreamQuery(NULL));
    OK(cuEventQuery(end));
    OK(cuEventElapsedTime(&ms, start, end));
    SAME(ms * 1000, 10000);
    SAME(dbl_busy_ns(sh, 0, 0), 10 * MS_NS);
    SAME(dbl_busy_ns(sh, getpid(), 0), 10 * MS_NS);
}

static void clock_follows_the_waiter(struct dbl_shared *sh)
{
    uint64_t start = dbl_now(sh), ns = 7 * MS_NS;
    struct cu_function *kernel;
    struct cu_module *module;
    void *params[] = {&ns};

    begin_on(0);
    dbl_actors(sh, 1);
    OK(cuModuleLoadData(&module, "kernel given param grid\nmodule 1048576\n"));
    OK(cuModuleGetFunction(&kernel, module, "given"));
    SAME(dbl_bytes(sh, 0, DBL_MODULE), MIB);
    OK(cuLaunchKernel(kernel, 500, 1, 1, 128, 1, 1, 0, NULL, params, NULL));
    OK(cuCtxSynchronize());
    SAME(dbl_now(sh) - start, 7 * MS_NS);
    SAME(cuLaunchKernel(kernel, 500, 1, 1, 128, 1, 1, 0, NULL, NULL, NULL), CU_INVALID_VALUE);
    SAME(cuLaunchKernel(kernel, 0, 1, 1, 128, 1, 1, 0, NULL, params, NULL), CU_INVALID_VALUE);
    SAME(cuLaunchKernel(kernel, 1, 1, 1, 2048, 1, 1, 0, NULL, params, NULL), CU_INVALID_VALUE);
    OK(cuMemcpyHtoD_v2(4096, &ns, 512 * MIB));
    SAME(dbl_now(sh) - start, 507 * MS_NS);
    dbl_sleep_until(sh, start + 600 * MS_NS);
    SAME(dbl_now(sh) - start, 600 * MS_NS);
    SAME(cuModuleLoadData(&module, "kernel broken\n"), CU_INVALID_IMAGE);
    OK(cuModuleLoadData(&module, "\177ELF"));
    OK(cuModuleGetFunction(&kernel, module, "anything"));
    OK(launch_in(kernel, NULL));
    OK(cuCtxSynchronize());
    SAME(dbl_now(sh) - start, 600 * MS_NS + 10000);
}

static void streams_share_the_device(struct dbl_shared *sh)
{
    struct cu_function *half, *full;
    struct cu_stream *a, *b;
    uint64_t start = dbl_now(sh);

    begin_on(0);
    dbl_actors(sh, 1);
    half = kernel_of(10 * MS_NS, "54");
    full = kernel_of(10 * MS_NS, "108");
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, -3));
    OK(launch_in(half, a));
    OK(launch_in(half, b));
    OK(cuCtxSynchronize());
    SAME(dbl_now(sh) - start, 10 * MS_NS);
    OK(launch_in(full, a));
    OK(launch_in(full, b));
    OK(cuCtxSynchronize());
    SAME(dbl_now(sh) - start, 30 * MS_NS);
    /* 108 beside 54: both at two thirds of their speed, then the rest of one alone. */
    OK(launch_in(full, a));
    OK(launch_in(half, b));
    OK(cuStreamSynchronize(b));
    SAME(dbl_now(sh) - start, 45 * MS_NS);
    OK(cuStreamSynchronize(a));
    SAME(dbl_now(sh) - start, 45 * MS_NS);
    OK(cuStreamDestroy_v2(a));
    OK(cuStreamDestroy_v2(b));
}

static void legacy_stream_waits_for_all(struct dbl_shared *sh)
{
    struct cu_stream *blocking, *free_one;
    uint64_t start = dbl_now(sh);
    struct cu_function *kernel;

    begin_on(0);
    kernel = kernel_of(10 * MS_NS, "10");
    OK(cuStreamCreate(&blocking, 0));
    OK(cuStreamCreate(&free_one, CU_STREAM_NON_BLOCKING));
    OK(launch_in(kernel, blocking));
    OK(launch_in(kernel, NULL));
    OK(launch_in(kernel, blocking));
    OK(launch_in(kernel, free_one));
    dbl_advance(sh, 10 * MS_NS);
    OK(cuStreamQuery(free_one));
    SAME(cuStreamQuery(blocking), CU_NOT_READY);
    /* The stream of the thread is a blocking one, not the legacy one. */
    OK(cuLaunchKernel_ptsz(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    dbl_advance(sh, 10 * MS_NS);
    SAME(cuStreamQuery_ptsz(NULL), CU_NOT_READY);
    dbl_advance(sh, 10 * MS_NS);
    OK(cuStreamQuery_ptsz(NULL));
    OK(cuStreamQuery(blocking));
    SAME(dbl_now(sh) - start, 30 * MS_NS);
}

static void streams_wait_for_events(struct dbl_shared *sh)
{
    struct cu_function *kernel;
    struct cu_stream *a, *b;
    struct cu_event *event, *never;

    begin_on(0);
    kernel = kernel_of(10 * MS_NS, "10");
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, CU_EVENT_NO_TIMING));
    OK(cuEventCreate(&never, CU_EVENT_NO_TIMING));
    OK(launch_in(kernel, a));
    OK(cuEventRecord(event, a));
    OK(cuStreamWaitEvent(b, event, 0));
    OK(cuStreamWaitEvent(b, never, 0));
    /* Recorded again later: who waits waits for the record there was. */
    OK(launch_in(kernel, a));
    OK(cuEventRecord(event, a));
    OK(launch_in(kernel, b));
    dbl_advance(sh, 19 * MS_NS);
    SAME(cuStreamQuery(b), CU_NOT_READY);
    SAME(cuEventQuery(event), CU_NOT_READY);
    dbl_advance(sh, MS_NS);
    OK(cuStreamQuery(b));
    OK(cuEventQuery(event));
    OK(cuEventDestroy_v2(event));
}

/* What is left of an event's last owner is not taken for the next one's. */
static void events_are_used_again(struct dbl_shared *sh)
{
    struct cu_event *event, *other;
    struct cu_function *kernel;
    float ms;

    begin_on(0);
    kernel = kernel_of(10 * MS_NS, "10");
    OK(launch_in(kernel, NULL));
    for (int i = 0; i < DBL_EVENTS; i++) {
        OK(cuEventCreate(&event, 0));
        if (i % 100 == 0)
            OK(cuEventRecord(event, NULL));
        OK(cuEventDestroy_v2(event));
    }
    OK(cuEventCreate(&event, 0));
    OK(cuEventCreate(&other, 0));
    SAME(cuEventElapsedTime(&ms, event, event), CU_INVALID_HANDLE);
    OK(cuEventQuery(other));
    OK(cuEventRecord(event, NULL));
    SAME(cuEventQuery(event), CU_NOT_READY);
    dbl_advance(sh, 10 * MS_NS);
    OK(cuEventQuery(event));
}

static void full_queue_blocks(struct dbl_shared *sh)
{
    uint64_t start = dbl_now(sh);
    struct cu_function *kernel;

    begin_on(0);
    dbl_actors(sh, 1);
    kernel = kernel_of(MS_NS, "1");
    for (int i = 0; i < 1024; i++)
        OK(launch_in(kernel, NULL));
    SAME(dbl_now(sh), start);
    OK(launch_in(kernel, NULL));
    SAME(dbl_now(sh) - start, MS_NS);
    OK(launch_in(kernel, NULL));
    SAME(dbl_now(sh) - start, 2 * MS_NS);
    OK(cuCtxSynchronize());
    SAME(dbl_now(sh) - start, 1026 * MS_NS);
}

struct seen {
    struct dbl_shared *sh;
    uint64_t at[3];
    cu_result inside;
};

static void host_function(void *data)
{
    struct seen *seen = data;
    size_t free, total;

    seen->at[0] = dbl_now(seen->sh);
    seen->inside = cuMemGetInfo_v2(&free, &total);
}

static void stream_callback(struct cu_stream *stream, cu_result status, void *data)
{
    struct seen *seen = data;

    seen->at[1] = dbl_now(seen->sh);
    CHECK(status == CU_OK && stream != NULL);
}

static void host_functions_run_in_order(struct dbl_shared *sh)
{
    struct seen seen = {.sh = sh};
    struct cu_function *kernel;
    struct cu_stream *stream;
    uint64_t start = dbl_now(sh);

    begin_on(0);
    dbl_actors(sh, 1);
    kernel = kernel_of(MS_NS, "1");
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(launch_in(kernel, stream));
    OK(cuLaunchHostFunc(stream, host_function, &seen));
    OK(launch_in(kernel, stream));
    OK(cuStreamAddCallback(stream, stream_callback, &seen, 0));
    SAME(seen.at[0], 0);
    OK(cuStreamSynchronize(stream));
    SAME(seen.at[0] - start, MS_NS);
    SAME(seen.at[1] - start, 2 * MS_NS);
    SAME(seen.inside, CU_NOT_PERMITTED);
    SAME(dbl_now(sh) - start, 2 * MS_NS);
}

static void every_way_to_launch(struct dbl_shared *sh)
{
    struct cu_launch_attribute attribute = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
                                            .value = {.cooperative = 1}};
    struct cu_launch_config config = {1, 1, 1, 64, 1, 1, 0, NULL, &attribute, 1};
    struct cu_multi_launch multi = {NULL, 1, 1, 1, 64, 1, 1, 0, NULL, NULL};
    struct cu_function *kernel;

    begin_on(0);
    dbl_actors(sh, 1);
    kernel = kernel_of(MS_NS, "1");
    multi.function = kernel;
    OK(cuLaunchKernelEx(&config, kernel, NULL, NULL));
    OK(cuLaunchKernelEx_ptsz(&config, kernel, NULL, NULL));
    OK(cuLaunchCooperativeKernel(kernel, 216, 1, 1, 1024, 1, 1, 0, NULL, NULL));
    SAME(cuLaunchCooperativeKernel(kernel, 217, 1, 1, 1024, 1, 1, 0, NULL, NULL),
         CU_COOPERATIVE_LAUNCH_TOO_LARGE);
    OK(cuLaunchCooperativeKernelMultiDevice(&multi, 1, 0));
    OK(cuFuncSetBlockShape(kernel, 32, 1, 1));
    OK(cuLaunch(kernel));
    OK(cuLaunchGrid(kernel, 2, 2));
    OK(cuLaunchGridAsync(kernel, 2, 2, NULL));
    SAME(dbl_calls(sh, DBL_FAIL_LAUNCH), 8);
    OK(cuCtxSynchronize());
    SAME(dbl_busy_ns(sh, 0, 0), 7 * MS_NS);
    dbl_fail_nth(sh, DBL_FAIL_LAUNCH, 2, CU_LAUNCH_FAILED);
    OK(launch_in(kernel, NULL));
    SAME(launch_in(kernel, NULL), CU_LAUNCH_FAILED);
    OK(launch_in(kernel, NULL));
}

static void managed_memory_pages_in(struct dbl_shared *sh)
{
    uint64_t start = dbl_now(sh);
    struct cu_function *kernel;
    cu_devptr ptr;

    begin_on(0);
    dbl_actors(sh, 1);
    kernel = kernel_of(MS_NS, "1");
    OK(cuMemAllocManaged(&ptr, 256 * MIB, CU_ATTACH_GLOBAL));
    OK(launch_in(kernel, NULL));
    OK(launch_in(kernel, NULL));
    OK(cuCtxSynchronize());
    SAME(dbl_now(sh) - start, 252 * MS_NS);
}

static void real_clock(struct dbl_shared *sh)
{
    struct cu_event *start, *end;
    struct cu_function *kernel;
    uint64_t before = dbl_now(sh);
    float ms;

    begin_on(0);
    kernel = kernel_of(20 * MS_NS, "1");
    OK(cuEventCreate(&start, 0));
    OK(cuEventCreate(&end, 0));
    OK(cuEventRecord(start, NULL));
    OK(launch_in(kernel, NULL));
    OK(cuEventRecord(end, NULL));
    OK(cuEventSynchronize(end));
    CHECK(dbl_now(sh) - before >= 20 * MS_NS);
    OK(cuEventElapsedTime(&ms, start, end));
    CHECK(ms >= 19.999f);
}

static void test_real_clock(void **state)
{
    on_machine(real_clock, &dbl_config_default);
}

CASE(kernel_takes_its_time)
CASE(clock_follows_the_waiter)
CASE(streams_share_the_device)
CASE(legacy_stream_waits_for_all)
CASE(streams_wait_for_events)
CASE(events_are_used_again)
CASE(full_queue_blocks)
CASE(host_functions_run_in_order)
CASE(every_way_to_launch)
CASE(managed_memory_pages_in)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernel_takes_its_time),
        cmocka_unit_test(test_clock_follows_the_waiter),
        cmocka_unit_test(test_streams_share_the_device),
        cmocka_unit_test(test_legacy_stream_waits_for_all),
        cmocka_unit_test(test_streams_wait_for_events),
        cmocka_unit_test(test_events_are_used_again),
        cmocka_unit_test(test_full_queue_blocks),
        cmocka_unit_test(test_host_functions_run_in_order),
        cmocka_unit_test(test_every_way_to_launch),
        cmocka_unit_test(test_managed_memory_pages_in),
        cmocka_unit_test(test_real_clock),
    };

    return cmocka_run_group_tests_name("cuda time", tests, NULL, NULL);
}
