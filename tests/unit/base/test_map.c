/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/map.h"
#include "base/rng.h"

static void empty_map_finds_nothing(void **state)
{
    struct map m = MAP_INIT;
    size_t it = 0;

    assert_null(map_get(&m, 1));
    assert_null(map_del(&m, 1));
    assert_null(map_get_str(&m, "a"));
    assert_null(map_next(&m, &it));
    map_done(&m);
}

static void put_replaces_and_returns_the_former(void **state)
{
    struct map m = MAP_INIT;
    int a, b;

    assert_null(map_put(&m, 0, &a));
    assert_ptr_equal(map_put(&m, 0, &b), &a);
    assert_ptr_equal(map_get(&m, 0), &b);
    assert_int_equal(m.len, 1);
    assert_ptr_equal(map_del(&m, 0), &b);
    assert_int_equal(m.len, 0);
    map_done(&m);
}

static void string_keys_compare_by_content(void **state)
{
    struct map m = MAP_INIT;
    char key[] = "team", same[] = "team";
    int v;

    map_put_str(&m, key, &v);
    assert_ptr_equal(map_get_str(&m, same), &v);
    assert_null(map_get_str(&m, "tea"));
    assert_ptr_equal(map_del_str(&m, same), &v);
    assert_null(map_get_str(&m, key));
    map_done(&m);
}

/* Few keys and many deletions, against a plain array, so that clusters are cut everywhere. */
static void random_history_matches_an_array(void **state)
{
    enum { KEYS = 500 };
    static char marks[KEYS];
    void *model[KEYS] = {0};
    struct map m = MAP_INIT;
    struct rng r;
    size_t count = 0, seen = 0, it = 0;

    rng_seed(&r, 7);
    for (int step = 0; step < 100000; step++) {
        size_t k = rng_below(&r, KEYS);

        if (rng_below(&r, 2)) {
            assert_ptr_equal(map_put(&m, k * 64, &marks[k]), model[k]);
            model[k] = &marks[k];
        } else {
            assert_ptr_equal(map_del(&m, k * 64), model[k]);
            model[k] = NULL;
        }
        k = rng_below(&r, KEYS);
        assert_ptr_equal(map_get(&m, k * 64), model[k]);
    }
    for (size_t k = 0; k < KEYS; k++)
        count += model[k] != NULL;
    while (map_next(&m, &it))
        seen++;
    assert_int_equal(seen, count);
    assert_int_equal(m.len, count);
    map_done(&m);
}

static void hash_is_fnv1a(void **state)
{
    assert_true(map_hash("", 0) == 0xcbf29ce484222325u);
    assert_true(map_hash("a", 1) == 0xaf63dc4c8601ec8cu);
    assert_true(map_hash("foobar", 6) == 0x85944171f73967e8u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_map_finds_nothing),
        cmocka_unit_test(put_replaces_and_returns_the_former),
        cmocka_unit_test(string_keys_compare_by_content),
        cmocka_unit_test(random_history_matches_an_array),
        cmocka_unit_test(hash_is_fnv1a),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
