/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/vec.h"

static void push_keeps_order(void **state)
{
    VEC(int) v = {0};

    for (int i = 0; i < 1000; i++)
        vec_push(&v, i * 3);
    assert_int_equal(v.len, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(v.items[i], i * 3);
    vec_done(&v);
    assert_null(v.items);
    assert_int_equal(v.len + v.cap, 0);
}

static void add_yields_a_zeroed_element(void **state)
{
    struct pair {
        long a, b;
    };
    VEC(struct pair) v = {0};

    vec_push(&v, ((struct pair){1, 2}));
    vec_clear(&v);
    assert_int_equal(vec_add(&v)->b, 0);
    assert_int_equal(v.len, 1);
    vec_done(&v);
}

static void pop_takes_the_last(void **state)
{
    VEC(char) v = {0};

    vec_push(&v, 'a');
    vec_push(&v, 'b');
    assert_int_equal(vec_pop(&v), 'b');
    assert_int_equal(v.len, 1);
    vec_done(&v);
}

static void remove_swap_fills_the_gap(void **state)
{
    VEC(int) v = {0};

    for (int i = 0; i < 4; i++)
        vec_push(&v, i);
    vec_remove_swap(&v, 1);
    assert_int_equal(v.len, 3);
    assert_int_equal(v.items[1], 3);
    vec_remove_swap(&v, 2);
    assert_int_equal(v.len, 2);
    vec_done(&v);
}

static void reserve_is_enough_for_later_pushes(void **state)
{
    VEC(int) v = {0};
    int *before;

    vec_reserve(&v, 100);
    before = v.items;
    for (int i = 0; i < 100; i++)
        vec_push(&v, i);
    assert_ptr_equal(v.items, before);
    vec_done(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(push_keeps_order),
        cmocka_unit_test(add_yields_a_zeroed_element),
        cmocka_unit_test(pop_takes_the_last),
        cmocka_unit_test(remove_swap_fills_the_gap),
        cmocka_unit_test(reserve_is_enough_for_later_pushes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
