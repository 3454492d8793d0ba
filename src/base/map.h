/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hash maps with 64-bit or string keys and pointer values.
 *
 * Open addressing with linear probing and backward-shift deletion, so there are no tombstones
 * and iteration order depends only on the history of calls (never on addresses or the clock):
 * code that must be deterministic may iterate, code that must be portable across histories
 * sorts. Values are never NULL. String keys are not copied: the value normally owns its key.
 *
 *     struct map m = MAP_INIT;
 *     map_put(&m, 7, task);
 *     struct task *t = map_get(&m, 7);
 */
#ifndef ALLOT_BASE_MAP_H
#define ALLOT_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
    uint64_t key; /* the number, or the hash of the string */
    void *value;  /* NULL marks a free slot */
};

struct map {
    struct map_slot *slots;
    const char **strings; /* the key of each slot; NULL where keys are numbers */
    size_t len, cap; /* cap is 0 or a power of two */
};

#define MAP_INIT                                                                                \
    {                                                                                           \
        0                                                                                       \
    }

/* 64-bit keys. put replaces and returns the former value or NULL. */
void *map_get(const struct map *m, uint64_t key);
void *map_put(struct map *m, uint64_t key, void *value);
void *map_del(struct map *m, uint64_t key);

/* String keys; KEY must live as long as the entry. Do not mix with 64-bit keys in one map. */
void *map_get_str(const struct map *m, const char *key);
void *map_put_str(struct map *m, const char *key, void *value);
void *map_del_str(struct map *m, const char *key);

/* Visits every entry: `size_t it = 0; while ((v = map_next(&m, &it)))`. No changes meanwhile. */
void *map_next(const struct map *m, size_t *it);

/* FNV-1a; stable across runs and machines. */
uint64_t map_hash(const void *data, size_t len);

/* Frees the table, not the values. */
void map_done(struct map *m);

#endif
