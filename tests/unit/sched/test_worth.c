/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worth of holes, against cuttings that are known and against bounds that always hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "sched/worth.h"

#define ONE (1LL << 20)
#define WHOLE (WORTH_MILLI * ONE)

static int32_t worth[WORTH_MILLI + 1];

/* Within a thousandth of a device? */
static void assert_worth(int32_t hole, double devices)
{
    double d = (double)worth[hole] / (double)WHOLE - devices;
    assert_true(d < 0.001 && d > -0.001);
}

static void test_a_hole_is_worth_what_fits_into_it(void **state)
{
    (void)state;
    const struct worth_size halves[] = {{500, 10}};
    worth_make(halves, 1, worth);
    assert_worth(499, 0);
    assert_worth(500, 0.5);
    assert_worth(999, 0.5);
    assert_int_equal(worth[WORTH_MILLI], WHOLE);
    const struct worth_size thirds[] = {{333, 1}};
    worth_make(thirds, 1, worth);
    assert_worth(332, 0);
    assert_worth(666, 2 / 3.0);
}

static void test_who_fits_beside_the_large_ones_is_free(void **state)
{
    (void)state;
    const struct worth_size few[] = {{600, 100}, {400, 20}};
    worth_make(few, 2, worth);
    assert_worth(400, 0); /* there are holes enough beside those of 600 */
    assert_worth(600, 1);
    const struct worth_size many[] = {{600, 20}, {400, 100}};
    worth_make(many, 2, worth);
    assert_worth(400, 0.5);
    assert_worth(600, 0.5);
}

static void test_without_fractions_no_hole_is_worth_anything(void **state)
{
    (void)state;
    worth_make(NULL, 0, worth);
    for (int32_t x = 0; x < WORTH_MILLI; x++)
        assert_int_equal(worth[x], 0);
    assert_int_equal(worth[WORTH_MILLI], WHOLE);
}

static double priced(const struct worth_size *sizes, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (double)sizes[i].number * (double)worth[sizes[i].milli] / (double)WHOLE;
    return sum;
}

/* The default list of the public trace: an LP solver says 1964.58 devices. */
static void test_prices_are_those_of_the_best_cutting(void **state)
{
    (void)state;
    const struct worth_size sizes[] = {{810, 1078}, {470, 750}, {320, 328}, {650, 253}, {230, 140},
                                       {460, 128},  {590, 75},  {160, 74},  {550, 72},  {220, 62},
                                       {370, 47},   {110, 24},  {480, 19},  {50, 7},    {330, 7},
                                       {350, 6},    {270, 4},   {440, 2},   {290, 1},   {140, 1}};
    worth_make(sizes, ARRAY_LEN(sizes), worth);
    double devices = priced(sizes, ARRAY_LEN(sizes));
    assert_true(devices > 1963.5 && devices < 1964.6);
    assert_worth(530, 0.5);
    assert_worth(210, 0); /* so 320 is not cut off a hole of 530 */
}

/* Devices that first fit, the largest first, takes: no prices may say more. */
static double first_fit(const struct worth_size *sizes, uint32_t count)
{
    static int32_t room[4096];
    size_t devices = 0;
    for (int32_t milli = WORTH_MILLI - 1; milli > 0; milli--)
        for (uint32_t i = 0; i < count; i++)
            for (int64_t k = 0; k < sizes[i].number && sizes[i].milli == milli; k++) {
                size_t d = 0;
                while (d < devices && room[d] < milli)
                    d++;
                if (d == devices)
                    room[devices++] = WORTH_MILLI;
                room[d] -= milli;
            }
    return (double)devices;
}

static uint32_t random_sizes(struct rng *rng, struct worth_size *sizes, int32_t grain)
{
    uint32_t count = 1 + (uint32_t)rng_below(rng, WORTH_SIZES_MAX);
    uint32_t kept = 0;
    bool taken[WORTH_MILLI] = {false};
    for (uint32_t i = 0; i < count; i++) {
        int32_t milli = (1 + (int32_t)rng_below(rng, (uint64_t)(WORTH_MILLI / grain - 1))) * grain;
        if (taken[milli])
            continue;
        taken[milli] = true;
        sizes[kept++] = (struct worth_size){milli, 1 + (int64_t)rng_below(rng, 60)};
    }
    return kept;
}

static void test_bounds_hold_for_any_mix(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 5);
    for (int round = 0; round < 300; round++) {
        struct worth_size sizes[WORTH_SIZES_MAX];
        uint32_t count = random_sizes(&rng, sizes, round % 3 == 0 ? 1 : 10);
        worth_make(sizes, count, worth);
        double size = 0, devices = priced(sizes, count);
        for (uint32_t i = 0; i < count; i++)
            size += (double)sizes[i].number * sizes[i].milli / WORTH_MILLI;
        assert_true(devices > size * 0.998 - 0.01);
        assert_true(devices < first_fit(sizes, count) + 0.01);
        assert_int_equal(worth[0], 0);
        assert_int_equal(worth[WORTH_MILLI], WHOLE);
        for (int32_t x = 1; x <= WORTH_MILLI; x++) {
            assert_true(worth[x] >= worth[x - 1]);
            int32_t part = (int32_t)rng_below(&rng, (uint64_t)x + 1);
            assert_true((int64_t)worth[x] + 2 >= (int64_t)worth[part] + worth[x - part]);
        }
    }
}

static void test_extreme_numbers_are_taken(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 6);
    for (int round = 0; round < 100; round++) {
        struct worth_size sizes[WORTH_SIZES_MAX];
        uint32_t count = random_sizes(&rng, sizes, 1);
        for (uint32_t i = 0; i < count; i++) {
            sizes[i].milli = round % 2 == 0 ? (int32_t)i + 1 : WORTH_MILLI - 1 - (int32_t)i;
            sizes[i].number = 1LL << rng_below(&rng, 60);
        }
        worth_make(sizes, count, worth);
        for (int32_t x = 1; x <= WORTH_MILLI; x++)
            assert_true(worth[x] >= worth[x - 1] && worth[x] <= WHOLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_hole_is_worth_what_fits_into_it),
        cmocka_unit_test(test_who_fits_beside_the_large_ones_is_free),
        cmocka_unit_test(test_without_fractions_no_hole_is_worth_anything),
        cmocka_unit_test(test_prices_are_those_of_the_best_cutting),
        cmocka_unit_test(test_bounds_hold_for_any_mix),
        cmocka_unit_test(test_extreme_numbers_are_taken),
    };
    return cmocka_run_group_tests_name("sched/worth", tests, NULL, NULL);
}
