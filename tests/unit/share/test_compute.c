/* SPDX-License-Identifier: Apache-2.0 */
/* Busy time is what the device says, and shares hold whatever the programs do. */
#include <pthread.h>

#include "gpu/turns.h"
#include "tenants.h"

/* Seconds of the device's clock that shares are looked at, the first of them not. A sanitizer makes
 * them longer and sees no more in many. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SECONDS 2
#define LONG_SECONDS 3
#else
#define SECONDS 3
#define LONG_SECONDS 6
#endif

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

static void check_share(const struct tenant *t, const int64_t *milli, int seconds)
{
    int64_t sum = 0, squares = 0, n = seconds - 1;

    for (int s = 1; s < seconds; s++)
        sum += milli[s];
    sum /= n;
    for (int s = 1; s < seconds; s++)
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
    check_share(&play.tenant, milli, SECONDS);
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
    dbl_actor_leave(m->driver);
    _exit(0);
}

ALONE(capture_is_neither_held_up_nor_spoilt)
{
    struct tenant t = {.milli = 500, .run = captures};
    struct stage stage;

    open_stage(&stage, &t, 1, SHARE_COMPUTE | SHARE_CAP);
    dbl_sleep_until(stage.driver, dbl_now(stage.driver) + 150 * MS);
    gpu_region_slice(t.m.region, 0, 0);
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

/* ---- several tenants ---------------------------------------------------------------------- */

static struct {
    struct tenant tenants[TENANTS_MAX];
    struct gpu_turns *turns[TENANTS_MAX];
    int count;
} crowd;

static void open_boards(const struct stage *stage)
{
    struct err err = ERR_INIT;
    char path[128];

    snprintf(path, sizeof(path), "%s/board", stage->folder);
    for (int i = 0; i < crowd.count; i++)
        CHECK(gpu_turns_open(path, crowd.tenants[i].milli, true, &crowd.turns[i], &err) == 0);
}

/* All owners, each at its own time, until TIME_NS. */
static void arbitrate(struct stage *stage, uint64_t time_ns)
{
    struct gpu_region_use use;
    uint64_t now, end, next, first;

    while ((now = dbl_now(stage->driver)) < time_ns) {
        first = now + MS;
        serve_tenants(stage);
        for (int i = 0; i < crowd.count; i++) {
            if (crowd.turns[i] == NULL)
                continue;
            gpu_region_use(crowd.tenants[i].m.region, 0, &use);
            next = gpu_turns_step(crowd.turns[i], now, &use, &end);
            first = next < first ? next : first;
            gpu_region_slice(crowd.tenants[i].m.region, 0, end);
        }
        dbl_sleep_until(stage->driver, first);
    }
}

static void shares_hold(void)
{
    uint64_t before[TENANTS_MAX] = {0};
    int64_t milli[TENANTS_MAX][LONG_SECONDS];
    struct stage stage;

    open_stage(&stage, crowd.tenants, crowd.count, SHARE_COMPUTE);
    open_boards(&stage);
    uint64_t start = dbl_now(stage.driver);
    for (int s = 0; s < LONG_SECONDS; s++) {
        arbitrate(&stage, start + (uint64_t)(s + 1) * SECOND);
        for (int i = 0; i < crowd.count; i++) {
            uint64_t busy = dbl_busy_ns(stage.driver, crowd.tenants[i].pid, 0);
            milli[i][s] = (int64_t)((busy - before[i]) / (SECOND / 1000));
            before[i] = busy;
        }
    }
    for (int i = 0; i < crowd.count; i++)
        check_share(&crowd.tenants[i], milli[i], LONG_SECONDS);
    for (int i = 0; i < crowd.count; i++)
        gpu_turns_close(crowd.turns[i]);
    close_stage(&stage);
}

static void test_shares_hold_among_tenants(void **state)
{
    static const struct tenant crowds[][4] = {
        {{.milli = 500, .kernel_ns = 2 * MS, .way = ASYNC},
         {.milli = 500, .kernel_ns = 2 * MS, .way = SYNC}},
        {{.milli = 250, .kernel_ns = 20 * MS, .way = ASYNC},
         {.milli = 750, .kernel_ns = 500 * US, .way = GRAPH}},
        {{.milli = 250, .kernel_ns = 100 * US, .way = ASYNC},
         {.milli = 750, .kernel_ns = 20 * MS, .way = SYNC}},
        {{.milli = 250, .kernel_ns = 2 * MS, .way = SYNC},
         {.milli = 250, .kernel_ns = 20 * MS, .way = ASYNC},
         {.milli = 500, .kernel_ns = 100 * US, .way = ASYNC}},
        {{.milli = 250, .kernel_ns = 20 * MS, .way = SYNC},
         {.milli = 250, .kernel_ns = 2 * MS, .way = ASYNC},
         {.milli = 250, .kernel_ns = 500 * US, .way = GRAPH},
         {.milli = 250, .kernel_ns = 100 * US, .way = ASYNC}},
    };

    for (size_t c = 0; c < sizeof(crowds) / sizeof(crowds[0]); c++) {
        for (crowd.count = 0; crowd.count < 4 && crowds[c][crowd.count].milli; crowd.count++)
            crowd.tenants[crowd.count] = crowds[c][crowd.count];
        alone(shares_hold);
    }
}

/* The leader's task and the holder of a slice are killed: who is left has the device. */
ALONE(the_killed_stop_nobody)
{
    struct stage stage;

    crowd.count = 3;
    for (int i = 0; i < 3; i++)
        crowd.tenants[i] = (struct tenant){.milli = 300, .kernel_ns = 2 * MS, .way = ASYNC};
    open_stage(&stage, crowd.tenants, 3, SHARE_COMPUTE);
    open_boards(&stage);
    for (int i = 0; i < 3; i++) {
        uint64_t before = dbl_busy_ns(stage.driver, crowd.tenants[2].pid, 0);
        arbitrate(&stage, dbl_now(stage.driver) + 500 * MS);
        uint64_t busy = dbl_busy_ns(stage.driver, crowd.tenants[2].pid, 0) - before;
        CHECK(busy >= (uint64_t)(500 / (3 - i) - 60) * MS);
        if (i == 2)
            break;
        kill_tenant(&stage, &crowd.tenants[i]);
        if (i == 0) {
            gpu_turns_close(crowd.turns[0]); /* its owner too */
            crowd.turns[0] = NULL;
        }
    }
    gpu_turns_close(crowd.turns[1]);
    gpu_turns_close(crowd.turns[2]);
    close_stage(&stage);
}

/* ---- threads ------------------------------------------------------------------------------ */

#define THREADS 4
#define LAUNCHES 400

struct storm {
    struct machine *m;
    struct cu_function *kernel;
    struct cu_ctx *ctx;
};

static void *storm(void *arg)
{
    const struct storm *s = arg;
    struct cu_stream *stream;

    CHECK(CU(cuCtxSetCurrent)(s->ctx) == CU_OK);
    stream = new_stream();
    for (int i = 0; i < LAUNCHES; i++) {
        CHECK(launch(s->kernel, i % 5 ? stream : NULL) == CU_OK);
        if (i % 7 == 0)
            CHECK(CU(cuStreamSynchronize)(stream) == CU_OK);
        if (i % 31 == 0)
            CHECK(CU(cuCtxSynchronize)() == CU_OK);
    }
    dbl_actor_leave(s->m->driver);
    return NULL;
}

static void storms(struct machine *m)
{
    pthread_t threads[THREADS];
    struct storm s = {.m = m};

    enter_folder(m);
    begin();
    CHECK(CU(cuCtxGetCurrent)(&s.ctx) == CU_OK);
    s.kernel = kernel_of(100 * US);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, storm, &s) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    exit(0);
}

/* Threads of one process while slices come and go. */
ALONE(threads_may_submit_as_they_like)
{
    struct tenant t = {.milli = 700, .run = storms};
    struct gpu_region_use use;
    struct stage stage;
    int status = -1;

    open_stage(&stage, &t, 1, SHARE_COMPUTE | SHARE_CAP);
    dbl_actors(stage.driver, THREADS + 1);
    for (int i = 0; waitpid(t.pid, &status, WNOHANG) == 0; i++) {
        uint64_t now = dbl_now(stage.driver);
        gpu_region_slice(t.m.region, 0,
                         i % 3 == 0   ? SHARE_NO_SLICE
                         : i % 3 == 1 ? 0
                                      : now + 4 * MS);
        dbl_sleep_until(stage.driver, now + 3 * MS);
        serve_tenants(&stage);
    }
    CHECK(status == 0);
    t.pid = 0;
    gpu_region_use(t.m.region, 0, &use);
    CHECK(use.busy_ns > 0 && use.busy_ns <= THREADS * LAUNCHES * 150 * US);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_caps_hold),
        cmocka_unit_test(test_busy_time_is_measured),
        cmocka_unit_test(test_capture_is_neither_held_up_nor_spoilt),
        cmocka_unit_test(test_who_has_no_slice_waits),
        cmocka_unit_test(test_shares_hold_among_tenants),
        cmocka_unit_test(test_the_killed_stop_nobody),
        cmocka_unit_test(test_threads_may_submit_as_they_like),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
