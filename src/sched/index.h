/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The placement index: the best node for one task, without looking at all nodes.
 *
 * Definitions. A need is what a request asks of a node apart from which node it is: devices, CPU,
 * memory; not types, labels, topology. A question (struct index_key) is a need, the views in which
 * it must fit, and how the node is judged. The answer is the node of the least score, and among
 * equals the first in node order: exactly what a scan of all nodes would give
 * (tests/prop/prop_index.c compares the two after every step of random histories).
 *
 * How. Each question that is asked gets an outlook on the nodes: the score of every state that a
 * node is in (states.h), and a tournament over slots: the best of each block of 64 slots, the best
 * of each row of 64 blocks, and so the best of each type. When it is asked again it catches up with
 * the slots whose state changed since: each is compared with the best of its block, and a block
 * whose best became worse is looked through. So a question costs a few comparisons for each node
 * that changed since it was last asked, however many nodes there are.
 *
 *     type rank   Acceptable types are ranges of slots; the answer is put together from the best
 *                 of each, so that requests that differ in types alone share an outlook.
 *     topology    The nodes of one domain are few: their scores are read off and compared.
 *     labels      All scores are read off; the node has to carry the labels.
 *
 * Bounds. Outlooks live in INDEX_BYTES_MAX; who was not asked for longest goes first. Where there
 * is no index (parts of several devices; one certain node; too many masks) index_find() says so
 * and the caller scans.
 *
 * The scores are the caller's: index_score_fn must depend on the state of the node, the key and
 * GENERATION alone, and on no types or labels that are asked for. One thread; struct sched owns it.
 */
#ifndef ALLOT_SCHED_INDEX_H
#define ALLOT_SCHED_INDEX_H

#include "sched/states.h"
#include "sched/world.h"

#define INDEX_BYTES_MAX (192L << 20)

struct index_score { /* smaller is better, word by word */
    uint64_t hi, lo;
};
#define INDEX_NO_PLACE ((struct index_score){UINT64_MAX, UINT64_MAX})

#define INDEX_AVOIDED (1ULL << 63) /* of hi: the node comes after all others, whatever its type */

static inline bool index_less(struct index_score a, struct index_score b)
{
    return a.hi != b.hi ? a.hi < b.hi : a.lo < b.lo;
}
static inline bool index_places(struct index_score score)
{
    return score.hi != UINT64_MAX;
}

/* Is A's place before B's? The RANKs are of the node types among those that are acceptable. */
static inline bool index_better(struct index_score a, uint32_t a_rank, struct index_score b,
                                uint32_t b_rank)
{
    if ((a.hi & INDEX_AVOIDED) != (b.hi & INDEX_AVOIDED))
        return (a.hi & INDEX_AVOIDED) == 0;
    return a_rank != b_rank ? a_rank < b_rank : index_less(a, b);
}

struct index_key {
    const struct shape *shape; /* its need alone */
    unsigned mask;             /* views and MASK_USABLE, MASK_NO_CPU, MASK_NO_MEMORY */
    bool spread;
    uint32_t rest; /* whole devices that the gang needs after this task, at most a node's */
};

/* INDEX_NO_PLACE where the task does not fit. */
typedef struct index_score (*index_score_fn)(struct sched *s, const struct index_key *key,
                                             const struct node *n);

struct index_question {
    struct index_key key;
    const struct shape *shape; /* with its types and labels */
    int level, group_level;    /* -1 = any node */
    uint32_t domain, group_domain;
};

struct index;

/* Empty; aborts when out of memory. */
struct index *index_new(void);
/* NULL is fine. */
void index_free(struct index *ix);

/* True with the best node, NULL if there is no place; false if the index cannot say. Scores are
 * kept as long as GENERATION stays the same. */
bool index_find(struct sched *s, const struct index_question *q, index_score_fn score,
                uint64_t generation, struct node **ret_node);

#endif
