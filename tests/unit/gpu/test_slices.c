/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of a device under a virtual clock: who gets how much of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "allot/share.h"
#include "base/rng.h"
#include "gpu/slices.h"

#define US UINT64_C(1000)
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define TICK (5 * MS)      /* the agent looks at least so often */
#define LATENCY (500 * US) /* and a grant takes up to so long to arrive */
#define HOST_GAP (10 * US) /* of a program that waits for each kernel */
#define SECONDS 40
#define WARM 5 /* seconds that are not looked at */
#define TENANTS 4

struct tenant {
    uint32_t milli;
    uint64_t kernel_ns;
    uint64_t from_s, to_s; /* when it wants the device; to 0: always */
    bool sync;             /* waits for each kernel */
    uint32_t id;
    uint64_t busy_ns;
    uint64_t in_second[SECONDS];
};

struct device {
    struct gpu_slices slices;
    struct tenant *tenants;
    uint32_t count;
    uint64_t now;
    struct rng rng;
};

static bool wants(const struct tenant *t, uint64_t now)
{
    return t->to_s == 0 || (now >= t->from_s * SECOND && now < t->to_s * SECOND);
}

static void report(struct device *d)
{
    for (uint32_t i = 0; i < d->count; i++) {
        const struct tenant *t = &d->tenants[i];

        gpu_slices_report(&d->slices, t->id, d->now, wants(t, d->now), t->busy_ns);
    }
}

/* Kernels of T until UNTIL; the last one goes on for as long as it takes. */
static void work(struct device *d, struct tenant *t, uint64_t until)
{
    while (d->now < until && wants(t, d->now)) {
        d->now += t->kernel_ns;
        t->busy_ns += t->kernel_ns;
        uint64_t second = d->now / SECOND;
        if (second < SECONDS)
            t->in_second[second] += t->kernel_ns;
        if (t->sync)
            d->now += HOST_GAP;
    }
}

static void turn(struct device *d)
{
    uint64_t next, until, began = d->now;
    uint32_t before = d->slices.holder, holders = 0;

    report(d);
    next = gpu_slices_turn(&d->slices, d->now);
    assert_true(next > d->now);
    if (d->slices.holder != before)
        d->now += rng_below(&d->rng, LATENCY);
    until = next < began + TICK ? next : began + TICK;
    for (uint32_t i = 0; i < d->count; i++) {
        struct tenant *t = &d->tenants[i];
        uint64_t end = gpu_slices_end(&d->slices, t->id);
        if (end == 0)
            continue;
        holders++;
        assert_true(end == SHARE_NO_SLICE || holders == 1);
        work(d, t, end < until ? end : until);
    }
    if (d->now < until && began + TICK > d->now)
        d->now = until;
}

static void run(struct tenant *tenants, uint32_t count, bool unused_usable)
{
    struct device d = {.tenants = tenants, .count = count};

    rng_seed(&d.rng, 7);
    gpu_slices_init(&d.slices, unused_usable);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(gpu_slices_join(&d.slices, tenants[i].milli, 0, &tenants[i].id), 0);
    while (d.now < SECONDS * SECOND)
        turn(&d);
}

/* Milli-GPU of T in seconds FROM to TO; *RET_VARIANCE in milli-GPU squared. */
static int64_t share(const struct tenant *t, int from, int to, int64_t *ret_variance)
{
    int64_t sum = 0, squares = 0;

    for (int i = from; i < to; i++)
        sum += (int64_t)(t->in_second[i] / (SECOND / 1000));
    sum /= to - from;
    for (int i = from; i < to; i++) {
        int64_t off = (int64_t)(t->in_second[i] / (SECOND / 1000)) - sum;
        squares += off * off;
    }
    *ret_variance = squares / (to - from);
    return sum;
}

/* Within 3 points of EXPECTED milli-GPU; deviation of single seconds within 5 points, if STEADY. */
static void assert_share(const struct tenant *t, int from, int to, int64_t expected, bool steady)
{
    int64_t variance, got = share(t, from, to, &variance);

    if (got < expected - 30 || got > expected + 30 || (steady && variance > 50 * 50))
        fail_msg("kernels of %ld us%s: share %ld, expected %ld, variance %ld",
                 (long)(t->kernel_ns / US), t->sync ? ", sync" : "", (long)got, (long)expected,
                 (long)variance);
}

static const uint64_t kernels[] = {10 * US, 500 * US, 2 * MS, 20 * MS};
#define KERNELS (sizeof(kernels) / sizeof(kernels[0]))

/* Every kernel of one against every kernel of the others, waited for or not. */
static void test_shares_hold_under_contention(void **state)
{
    static const uint32_t splits[][TENANTS] = {
        {500, 500}, {250, 750}, {250, 250, 500}, {250, 250, 250, 250}};

    for (size_t s = 0; s < sizeof(splits) / sizeof(splits[0]); s++)
        for (size_t k = 0; k < KERNELS * KERNELS * 4; k++) {
            bool usable = k / KERNELS / KERNELS % 2, sync = k / KERNELS / KERNELS / 2;
            struct tenant tenants[TENANTS] = {0};
            uint32_t count = 0;
            for (; count < TENANTS && splits[s][count]; count++) {
                tenants[count].milli = splits[s][count];
                tenants[count].kernel_ns = kernels[(count ? k : k / KERNELS) % KERNELS];
                /* 10 us of work in 20 us of waiting cannot fill what is its own */
                tenants[count].sync = sync && tenants[count].kernel_ns > HOST_GAP;
            }
            run(tenants, count, usable);
            for (uint32_t i = 0; i < count; i++)
                assert_share(&tenants[i], WARM, SECONDS, tenants[i].milli, true);
        }
}

/* Who leaves half of its slices empty has half of its share, and the other all of its own. */
static void test_empty_slices_cost_only_their_owner(void **state)
{
    for (size_t k = 0; k < KERNELS; k++)
        for (int usable = 0; usable < 2; usable++) {
            struct tenant tenants[] = {{.milli = 500, .kernel_ns = HOST_GAP, .sync = true},
                                       {.milli = 500, .kernel_ns = kernels[k]}};
            run(tenants, 2, usable);
            assert_share(&tenants[0], WARM, SECONDS, 250, true);
            assert_share(&tenants[1], WARM, SECONDS, 500, true);
        }
}

static void test_a_lone_tenant_gets_what_the_policy_says(void **state)
{
    static const uint32_t limits[] = {250, 500, 750};

    for (size_t l = 0; l < 3; l++)
        for (size_t k = 0; k < KERNELS; k++) {
            struct tenant free = {.milli = limits[l], .kernel_ns = kernels[k]}, capped = free;
            run(&free, 1, true);
            assert_share(&free, WARM, SECONDS, 1000, true);
            run(&capped, 1, false);
            assert_share(&capped, WARM, SECONDS, limits[l], true);
        }
}

static void test_unused_share_goes_to_others_and_comes_back(void **state)
{
    struct tenant tenants[] = {{.milli = 500, .kernel_ns = 2 * MS},
                               {.milli = 500, .kernel_ns = 2 * MS, .from_s = 10, .to_s = 20}};

    run(tenants, 2, true);
    assert_share(&tenants[0], 0, 10, 1000, true);
    assert_share(&tenants[0], 10, 20, 500, true); /* the other has not saved its time up */
    assert_share(&tenants[1], 10, 20, 500, true);
    assert_share(&tenants[0], 20, SECONDS, 1000, true);
}

static void test_there_are_slices_only_where_two_want_one(void **state)
{
    struct gpu_slices s;
    uint32_t a, b;

    gpu_slices_init(&s, true);
    assert_int_equal(gpu_slices_join(&s, 500, 0, &a), 0);
    assert_int_equal(gpu_slices_join(&s, 500, 0, &b), 0);
    gpu_slices_report(&s, a, MS, true, MS);
    assert_true(gpu_slices_turn(&s, MS) == GPU_SLICE_NEVER);
    assert_true(gpu_slices_end(&s, a) == SHARE_NO_SLICE && gpu_slices_end(&s, b) == SHARE_NO_SLICE);
    gpu_slices_report(&s, b, 2 * MS, true, 0);
    assert_true(gpu_slices_turn(&s, 2 * MS) == 2 * MS + GPU_SLICE_NS);
    assert_true(gpu_slices_end(&s, a) == 0 && gpu_slices_end(&s, b) == 2 * MS + GPU_SLICE_NS);
    gpu_slices_leave(&s, b);
    assert_true(gpu_slices_turn(&s, 3 * MS) == GPU_SLICE_NEVER);
    assert_true(gpu_slices_end(&s, a) == SHARE_NO_SLICE);
}

static void test_absurd_reports_do_no_harm(void **state)
{
    struct gpu_slices s;
    struct rng rng;
    uint32_t a, b, none = GPU_SLICES_TENANTS;
    uint64_t now = 0;

    rng_seed(&rng, 3);
    gpu_slices_init(&s, true);
    assert_int_equal(gpu_slices_join(&s, 0, 0, &a), -EINVAL);
    assert_int_equal(gpu_slices_join(&s, 1001, 0, &a), -EINVAL);
    assert_int_equal(gpu_slices_join(&s, 1, 0, &a), 0);
    assert_int_equal(gpu_slices_join(&s, 1000, 0, &b), 0);
    for (int i = 0; i < 100000; i++) {
        s.unused_usable = rng_below(&rng, 2);
        now = rng_below(&rng, 8) ? now + rng_below(&rng, SECOND) : rng_u64(&rng) >> 2;
        gpu_slices_report(&s, a, now, rng_below(&rng, 2), rng_u64(&rng));
        gpu_slices_report(&s, b, now, rng_below(&rng, 2), UINT64_MAX);
        gpu_slices_report(&s, none, now, true, 1);
        gpu_slices_report(&s, b + 1, now, true, 1);
        gpu_slices_turn(&s, now);
        assert_true(s.holder == none || s.holder == a || s.holder == b);
        assert_true(gpu_slices_end(&s, a) == SHARE_NO_SLICE || gpu_slices_end(&s, a) == 0 ||
                    gpu_slices_end(&s, b) == 0);
    }
    gpu_slices_leave(&s, none);
    gpu_slices_leave(&s, a);
    gpu_slices_leave(&s, b);
    gpu_slices_turn(&s, now);
    assert_int_equal(s.holder, none);
}

static void test_there_is_room_for_so_many(void **state)
{
    struct gpu_slices s;
    uint32_t id;

    gpu_slices_init(&s, true);
    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++)
        assert_int_equal(gpu_slices_join(&s, 10, 0, &id), 0);
    assert_int_equal(gpu_slices_join(&s, 10, 0, &id), -ENOSPC);
    gpu_slices_leave(&s, 5);
    assert_int_equal(gpu_slices_join(&s, 10, 0, &id), 0);
    assert_int_equal(id, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_hold_under_contention),
        cmocka_unit_test(test_empty_slices_cost_only_their_owner),
        cmocka_unit_test(test_a_lone_tenant_gets_what_the_policy_says),
        cmocka_unit_test(test_unused_share_goes_to_others_and_comes_back),
        cmocka_unit_test(test_there_are_slices_only_where_two_want_one),
        cmocka_unit_test(test_absurd_reports_do_no_harm),
        cmocka_unit_test(test_there_is_room_for_so_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
