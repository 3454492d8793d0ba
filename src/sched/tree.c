/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/tree.h"

static void update(struct tree_node *n)
{
    n->size = 1 + tree_size(n->left) + tree_size(n->right);
}

/* Everything before KEY goes to LEFT, the rest to RIGHT. */
static void split(struct tree_node *root, const struct tree_node *key, tree_before_fn before,
                  struct tree_node **left, struct tree_node **right)
{
    if (root == NULL) {
        *left = *right = NULL;
    } else if (before(root, key)) {
        split(root->right, key, before, &root->right, right);
        *left = root;
        update(root);
    } else {
        split(root->left, key, before, left, &root->left);
        *right = root;
        update(root);
    }
}

static struct tree_node *merge(struct tree_node *left, struct tree_node *right)
{
    if (left == NULL)
        return right;
    if (right == NULL)
        return left;
    if (left->weight > right->weight) {
        left->right = merge(left->right, right);
        update(left);
        return left;
    }
    right->left = merge(left, right->left);
    update(right);
    return right;
}

void tree_insert(struct tree_node **root, struct tree_node *n, uint64_t seed, tree_before_fn before)
{
    uint64_t hash = map_hash(&seed, sizeof(seed));
    n->weight = (uint32_t)(hash ^ (hash >> 32));
    struct tree_node **at = root;
    while (*at != NULL && (*at)->weight >= n->weight) {
        (*at)->size++;
        at = before(*at, n) ? &(*at)->right : &(*at)->left;
    }
    split(*at, n, before, &n->left, &n->right);
    *at = n;
    update(n);
}

void tree_remove(struct tree_node **root, struct tree_node *n, tree_before_fn before)
{
    struct tree_node **at = root;
    while (*at != n) {
        (*at)->size--;
        at = before(*at, n) ? &(*at)->right : &(*at)->left;
    }
    *at = merge(n->left, n->right);
    n->left = n->right = NULL;
    n->size = 0;
}

struct tree_node *tree_at(struct tree_node *root, uint32_t index)
{
    while (root != NULL) {
        uint32_t left = tree_size(root->left);
        if (index == left)
            return root;
        if (index < left) {
            root = root->left;
        } else {
            index -= left + 1;
            root = root->right;
        }
    }
    return NULL;
}

uint32_t tree_rank(const struct tree_node *root, const struct tree_node *n, tree_before_fn before)
{
    uint32_t rank = 0;
    while (root != NULL) {
        if (before(root, n)) {
            rank += tree_size(root->left) + 1;
            root = root->right;
        } else {
            root = root->left;
        }
    }
    return rank;
}
