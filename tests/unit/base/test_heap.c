/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/heap.h"
#include "base/rng.h"

struct item {
    struct heap_node node;
    long key;
};

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    return heap_entry(a, struct item, node)->key < heap_entry(b, struct item, node)->key;
}

static long pop_key(struct heap *h)
{
    return heap_entry(heap_pop(h), struct item, node)->key;
}

static void empty_heap_yields_null(void **state)
{
    struct heap h = HEAP_INIT(before);
    struct item i = {0};

    assert_null(heap_peek(&h));
    assert_null(heap_pop(&h));
    heap_remove(&h, &i.node);
    heap_update(&h, &i.node);
    heap_done(&h);
}

static void pops_in_order(void **state)
{
    static struct item items[1000];
    struct heap h = HEAP_INIT(before);
    struct rng r;
    long last = -1;

    rng_seed(&r, 1);
    for (int i = 0; i < 1000; i++) {
        items[i].key = (long)rng_below(&r, 300);
        heap_push(&h, &items[i].node);
    }
    for (int i = 0; i < 1000; i++) {
        long key = pop_key(&h);

        assert_true(key >= last);
        last = key;
    }
    assert_null(heap_peek(&h));
    heap_done(&h);
}

static void removes_from_the_middle(void **state)
{
    struct item items[64] = {0};
    struct heap h = HEAP_INIT(before);

    for (int i = 0; i < 64; i++) {
        items[i].key = (i * 37) % 64;
        heap_push(&h, &items[i].node);
    }
    for (int i = 0; i < 64; i++) {
        if (items[i].key % 2)
            heap_remove(&h, &items[i].node);
    }
    for (int i = 0; i < 64; i += 2)
        assert_int_equal(pop_key(&h), i);
    assert_null(heap_peek(&h));
    for (int i = 0; i < 64; i++)
        assert_int_equal(items[i].node.pos, 0);
    heap_done(&h);
}

static void update_moves_both_ways(void **state)
{
    struct item items[8] = {0};
    struct heap h = HEAP_INIT(before);

    for (int i = 0; i < 8; i++) {
        items[i].key = i;
        heap_push(&h, &items[i].node);
    }
    items[7].key = -1;
    heap_update(&h, &items[7].node);
    assert_ptr_equal(heap_peek(&h), &items[7].node);
    items[7].key = 100;
    heap_update(&h, &items[7].node);
    for (int i = 0; i < 7; i++)
        assert_int_equal(pop_key(&h), i);
    assert_int_equal(pop_key(&h), 100);
    heap_done(&h);
}

static void done_releases_the_nodes(void **state)
{
    struct item i = {0};
    struct heap h = HEAP_INIT(before);

    heap_push(&h, &i.node);
    assert_int_equal(i.node.pos, 1);
    heap_done(&h);
    assert_int_equal(i.node.pos, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_heap_yields_null),  cmocka_unit_test(pops_in_order),
        cmocka_unit_test(removes_from_the_middle), cmocka_unit_test(update_moves_both_ways),
        cmocka_unit_test(done_releases_the_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
