/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An ordered tree of records with ranks: insert, remove, first, n-th and rank in O(log n).
 *
 * A treap whose weights are hashes of ids, so that its form is the same in every run. The node
 * is part of the record (tree_entry() leads back), the order is the caller's and must be total.
 *
 *     tree_insert(&group->waiting, &w->wait, w->id, waits_before);
 *     struct tree_node *first = tree_at(group->waiting, 0);
 */
#ifndef ALLOT_SCHED_TREE_H
#define ALLOT_SCHED_TREE_H

#include "sched/world.h"

typedef bool (*tree_before_fn)(const struct tree_node *a, const struct tree_node *b);

#define tree_entry(node_, type, member) ((type *)((char *)(node_)-offsetof(type, member)))

/* SEED decides the weight; use the id. The node must not be in a tree. */
void tree_insert(struct tree_node **root, struct tree_node *n, uint64_t seed,
                 tree_before_fn before);
/* The node must be in this tree. */
void tree_remove(struct tree_node **root, struct tree_node *n, tree_before_fn before);
/* The INDEX-th in order, from 0; NULL past the end. */
struct tree_node *tree_at(struct tree_node *root, uint32_t index);
/* How many come before N, which need not be in the tree. */
uint32_t tree_rank(const struct tree_node *root, const struct tree_node *n, tree_before_fn before);

static inline uint32_t tree_size(const struct tree_node *root)
{
    return root == NULL ? 0 : root->size;
}

#endif
