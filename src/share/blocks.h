/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process holds of device memory, by address or handle: enough to give the ledger back
 * what a free frees.
 *
 * A hash table in SHARDS parts with a lock each, open addressing, so that a look-up costs the same
 * with ten and with a hundred thousand blocks, and threads seldom meet. Its memory comes from
 * mmap: a program may have replaced malloc, or call us from inside of it.
 *
 * Keys of different kinds live beside each other: device addresses, handles of physical memory
 * and arrays are pointers or numbers of the driver that may coincide, so the kind is part of the
 * key.
 *
 * Thread-safe. In the child of a fork the table is of no use and is left as it is.
 */
#ifndef ALLOT_SHARE_BLOCKS_H
#define ALLOT_SHARE_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

enum block_kind {
    BLOCK_NONE,
    BLOCK_MEMORY,   /* linear, pitched, managed: by device address */
    BLOCK_ARRAY,    /* arrays and mipmaps: by handle */
    BLOCK_PHYSICAL, /* by handle of cuMemCreate; `count` is handles and mappings that keep it */
    BLOCK_MAPPING,  /* by device address; `other` is the handle */
    BLOCK_CONTEXT,  /* by handle */
    BLOCK_GRAPH     /* by handle of an executable graph: what it allocates at launch */
};

struct block {
    uint64_t key;
    uint64_t bytes;
    uint64_t other;
    uint32_t count;
    uint16_t device; /* of the task */
    uint16_t kind;   /* enum block_kind */
};

/* Puts a copy of BLOCK, replacing what has its kind and key. -ENOMEM: not put. */
int share_block_put(const struct block *block);
/* Takes it out. False: there is none. */
bool share_block_take(enum block_kind kind, uint64_t key, struct block *ret_block);
/* Looks at it. False: there is none. */
bool share_block_find(enum block_kind kind, uint64_t key, struct block *ret_block);
/*
 * Adds BY to its count; when that makes zero it is taken out. Returns true then, with the block
 * as it was; false when it stays, or when there is none.
 */
bool share_block_count(enum block_kind kind, uint64_t key, int by, struct block *ret_block);

#endif
