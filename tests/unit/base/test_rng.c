/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"

/* splitmix64 of seed 0 begins with these, as its authors publish. */
static void seeding_is_splitmix64(void **state)
{
    struct rng r;

    rng_seed(&r, 0);
    assert_true(r.s[0] == 0xe220a8397b1dcdafu);
    assert_true(r.s[1] == 0x6e789e6aa1b965f4u);
    assert_true(r.s[2] == 0x06c45d188009454fu);
    assert_true(r.s[3] == 0xf88bb8a8724c81ecu);
}

/* By hand from the definition: rotl(s1 * 5, 7) * 9, then the state update. */
static void sequence_follows_the_definition(void **state)
{
    struct rng r = {{1, 2, 3, 4}};

    assert_true(rng_u64(&r) == 11520);
    assert_true(rng_u64(&r) == 0);
    assert_true(rng_u64(&r) == 1509978240);
}

static void same_seed_same_sequence(void **state)
{
    struct rng a, b, c;
    int differs = 0;

    rng_seed(&a, 42);
    rng_seed(&b, 42);
    rng_seed(&c, 43);
    for (int i = 0; i < 1000; i++) {
        uint64_t x = rng_u64(&a);

        assert_true(x == rng_u64(&b));
        differs += x != rng_u64(&c);
    }
    assert_true(differs > 990);
}

static void below_stays_below_and_reaches_all(void **state)
{
    unsigned seen[7] = {0};
    struct rng r;

    rng_seed(&r, 5);
    for (int i = 0; i < 7000; i++)
        seen[rng_below(&r, 7)]++;
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 850, 1150);
    assert_int_equal(rng_below(&r, 1), 0);
}

static void below_is_unbiased_for_large_bounds(void **state)
{
    const uint64_t n = 3ull << 62;
    int lower = 0;
    struct rng r;

    rng_seed(&r, 9);
    for (int i = 0; i < 3000; i++)
        lower += rng_below(&r, n) < n / 3;
    assert_in_range(lower, 900, 1100); /* a plain modulo would give 1500 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeding_is_splitmix64),
        cmocka_unit_test(sequence_follows_the_definition),
        cmocka_unit_test(same_seed_same_sequence),
        cmocka_unit_test(below_stays_below_and_reaches_all),
        cmocka_unit_test(below_is_unbiased_for_large_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
