/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/tree.h"

#include <stdlib.h>

#include "base/rng.h"
#include "small_world.h"

#define COUNT 500

struct item {
    struct tree_node node;
    uint32_t key;
    bool in;
};

static bool before(const struct tree_node *a, const struct tree_node *b)
{
    return tree_entry(a, struct item, node)->key < tree_entry(b, struct item, node)->key;
}

/* Every rank and every position agree with a sorted list. */
static void check(struct tree_node *root, const struct item *items)
{
    uint32_t rank = 0;
    for (uint32_t k = 0; k < COUNT; k++) {
        assert_int_equal(tree_rank(root, &items[k].node, before), rank);
        if (items[k].in)
            assert_ptr_equal(tree_at(root, rank++), &items[k].node);
    }
    assert_int_equal(tree_size(root), rank);
    assert_null(tree_at(root, rank));
}

static void test_ranks_follow_random_changes(void **state)
{
    (void)state;
    struct item *items = calloc(COUNT, sizeof(*items));
    struct tree_node *root = NULL;
    struct rng rng;
    rng_seed(&rng, 7);
    for (uint32_t k = 0; k < COUNT; k++)
        items[k].key = k;
    for (int step = 0; step < 4000; step++) {
        struct item *i = &items[rng_below(&rng, COUNT)];
        if (i->in)
            tree_remove(&root, &i->node, before);
        else
            tree_insert(&root, &i->node, i->key + 1, before);
        i->in = !i->in;
        if (step % 200 == 0)
            check(root, items);
    }
    check(root, items);
    free(items);
}

static uint32_t height(const struct tree_node *n)
{
    if (n == NULL)
        return 0;
    uint32_t left = height(n->left), right = height(n->right);
    return 1 + (left > right ? left : right);
}

static void test_growing_ids_make_no_list(void **state)
{
    (void)state;
    struct item *items = calloc(10000, sizeof(*items));
    struct tree_node *root = NULL;
    for (uint32_t k = 0; k < 10000; k++) {
        items[k].key = k;
        tree_insert(&root, &items[k].node, k + 1, before);
    }
    assert_true(height(root) < 60);
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_follow_random_changes),
        cmocka_unit_test(test_growing_ids_make_no_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
