/* SPDX-License-Identifier: Apache-2.0 */
/* Busy time is what the device says, and a cap holds whatever the program does. */
#include "tenants.h"

#define SECONDS 3 /* the first of which is not looked at */

/* Thousandths of each second that T had the device, over SECONDS. */
static void watch(struct stage *stage, const struct tenant *t, int64_t milli[SECONDS])
{
    uint64_t start = dbl_now(stage->driver), before = dbl_busy_ns(stage->driver, t->pid, 0);

    for (int s = 0; s < SECONDS; s++) {
        dbl_sleep_until(stage->driver, start + (uint64_t)(s + 1) * SECOND);
        uint64_t busy = dbl_busy_ns(stage->driver, t->pid, 0);
        milli[s] = (int64_t)((busy - before) / (SECOND / 1000));
        before = busy;
    }
}

static void check_share(const struct tenant *t, const int64_t milli[SECONDS])
{
    int64_t sum = 0, squares = 0, n = SECONDS - 1;

    for (int s = 1; s < SECONDS; s++)
        sum += milli[s];
    sum /= n;
    for (int s = 1; s < SECONDS; s++)
        squares += (milli[s] - sum) * (milli[s] - sum);
    if (sum < t->milli - 30 || sum > t->milli + 30 || squares / n > 50 * 50)
        fprintf(stderr, "# cap %u, kernels of %llu us, way %d: %lld, variance %lld\n", t->milli,
                (unsigned long long)(t->kernel_ns / US), t->way, (long long)sum,
                (long long)(squares / n));
    CHECK(sum >= t->milli - 30 && sum <= t->milli + 30);
    CHECK(squares / n <= 50 * 50);
}

static struct play {
    struct tenant tenant;
} play;

static void caps_hold(void)
{
    int64_t milli[SECONDS];
    struct stage stage;

    open_stage(&stage, &play.tenant, 1, SHARE_CAP);
    watch(&stage, &play.tenant, milli);
    check_share(&play.tenant, milli);
    close_stage(&stage);
}

static void test_caps_hold(void **state)
{
    static const uint64_t kernels[] = {10 * US, 500 * US, 2 * MS, 20 * MS};
    static const uint32_t caps[] = {250, 500, 750};

    for (size_t k = 0; k < 4; k++)
        for (size_t c = 0; c < 3; c++)
            for (enum way way = SYNC; way <= GRAPH; way++) {
                play.tenant =
                    (struct tenant){.milli = caps[c], .kernel_ns = kernels[k], .way = way};
                alone(caps_hold);
            }
}

/* ---- busy time ---------------------------------------------------------------------------- */

/* Nothing waits, and what is measured is what the device says: within one part in 50, and what a
 * queue of kernels of 10 us holds. */
#define QUEUE_NS (12 * MS)

static void busy_time_is_measured(void)
{
    struct tenant *t = &play.tenant;
    struct gpu_region_use use;
    struct stage stage;

    open_stage(&stage, t, 1, 0);
    dbl_sleep_until(stage.driver, dbl_now(stage.driver) + SECOND);
    uint64_t busy = dbl_busy_ns(stage.driver, t->pid, 0);
    gpu_region_use(t->m.region, 0, &use);
    if (use.busy_ns + busy / 50 + QUEUE_NS < busy || use.busy_ns > busy + busy / 50 + QUEUE_NS)
        fprintf(stderr, "# kernels of %llu us, way %d: %llu us are busy, %llu are measured\n",
                (unsigned long long)(t->kernel_ns / US), t->way, (unsigned long long)(busy / US),
                (unsigned long long)(use.busy_ns / US));
    CHECK(use.busy_ns + busy / 50 + QUEUE_NS >= busy);
    CHECK(use.busy_ns <= busy + busy / 50 + QUEUE_NS);
    CHECK(use.submitted);
    close_stage(&stage);
}

static void test_busy_time_is_measured(void **state)
{
    static const struct tenant programs[] = {
        {.kernel_ns = 10 * US, .way = SYNC, .milli = 1000},
        {.kernel_ns = 10 * US, .way = SYNC, .think_ns = 90 * US, .milli = 1000},
        {.kernel_ns = 10 * US, .way = ASYNC, .think_ns = 30 * US, .milli = 1000},
        {.kernel_ns = 2 * MS, .way = GRAPH, .think_ns = 20 * MS, .milli = 1000},
        {.kernel_ns = 10 * US, .way = ASYNC, .milli = 1000},
    };

    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        play.tenant = programs[i];
        alone(busy_time_is_measured);
    }
}

/* ---- capture ------------------------------------------------------------------------------ */

static struct cu_stream *new_stream(void)
{
    struct cu_stream *stream;

    CHECK(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CU_OK);
    return stream;
}

static size_t end_capture(struct cu_stream *stream)
{
    struct cu_graph *graph;
    size_t count = 0;

    CHECK(CU(cuStreamEndCapture)(stream, &graph) == CU_OK);
    CHECK(CU(cuGraphGetNodes)(graph, NULL, &count) == CU_OK);
    return count;
}

/* Without a slice, and beside work that is measured and waited for. */
static void captures(struct machine *m)
{
    struct cu_stream *captured, *other;
    struct cu_function *kernel;
    cu_devptr p[4];
    uint64_t start;

    enter_folder(m);
    begin();
    captured = new_stream();
    other = new_stream();
    kernel = kernel_of(MS);
    for (int i = 0; i < 4; i++)
        CHECK(CU(cuMemAlloc_v2)(&p[i], MIB) == CU_OK);
    CHECK(CU(cuStreamBeginCapture_v2)(captured, CU_CAPTURE_GLOBAL) == CU_OK);
    for (int i = 0; i < 20; i++)
        CHECK(launch(kernel, other) == CU_OK);
    for (int i = 0; i < 4; i++)
        CHECK(CU(cuMemFreeAsync)(p[i], other) == CU_OK);
    for (int i = 0; i < 4; i++)
        CHECK(launch(kernel, captured) == CU_OK);
    CHECK(end_capture(captured) == 4);
    dbl_sleep_until(m->driver, dbl_now(m->driver) + 200 * MS); /* the slice is taken away */
    CHECK(CU(cuStreamBeginCapture_v2)(captured, CU_CAPTURE_THREAD_LOCAL) == CU_OK);
    start = dbl_now(m->driver);
    for (int i = 0; i < 4; i++)
        CHECK(launch(kernel, captured) == CU_OK);
    CHECK(dbl_now(m->driver) == start);
    CHECK(end_capture(captured) == 4);
    _exit(0);
}

ALONE(capture_is_neither_held_up_nor_spoilt)
{
    struct tenant t = {.milli = 500, .run = captures};
    struct stage stage;

    open_stage(&stage, &t, 1, SHARE_COMPUTE | SHARE_CAP);
    dbl_sleep_until(stage.driver, dbl_now(stage.driver) + 150 * MS);
    gpu_region_slice(t.m.region, 0, 0);
    dbl_actors(stage.driver, 1); /* it goes on by itself when the program ends */
    ends_well(&stage, &t);
    close_stage(&stage);
}

/* ---- slices ------------------------------------------------------------------------------- */

/* Who has no slice submits nothing, says that it waits, and is not there any more when killed. */
ALONE(who_has_no_slice_waits)
{
    struct tenant t = {.milli = 500, .kernel_ns = MS, .way = ASYNC};
    struct gpu_region_use use;
    struct stage stage;

    open_stage(&stage, &t, 1, SHARE_COMPUTE);
    for (int i = 0; i < 5; i++) {
        uint64_t now = dbl_now(stage.driver), before = dbl_busy_ns(stage.driver, t.pid, 0);
        gpu_region_slice(t.m.region, 0, now + 20 * MS);
        dbl_sleep_until(stage.driver, now + 100 * MS);
        uint64_t busy = dbl_busy_ns(stage.driver, t.pid, 0) - before;
        CHECK(busy >= 15 * MS && busy <= 21 * MS);
        gpu_region_use(t.m.region, 0, &use);
        CHECK(use.waits && !use.working);
    }
    kill_tenant(&stage, &t);
    while (gpu_region_processes(t.m.region) > 0)
        serve_tenants(&stage);
    gpu_region_use(t.m.region, 0, &use);
    CHECK(!use.waits && !use.working && use.busy_ns >= 75 * MS);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps_hold),
        cmocka_unit_test(test_busy_time_is_measured),
        cmocka_unit_test(test_capture_is_neither_held_up_nor_spoilt),
        cmocka_unit_test(test_who_has_no_slice_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
