/* SPDX-License-Identifier: Apache-2.0 */
#include "share/blocks.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#define SHARDS 64 /* a power of two */
#define FIRST_SLOTS 128

static struct shard {
    pthread_mutex_t lock;
    struct block *slots; /* of mmap; kind BLOCK_NONE is free */
    uint32_t mask, used;
} __attribute__((aligned(64)))
shards[SHARDS] = {[0 ... SHARDS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

/* Addresses differ above their low bits; the finaliser of MurmurHash3 spreads them. */
static uint64_t hash(uint64_t kind, uint64_t key)
{
    uint64_t h = key ^ (kind << 56);

    h ^= h >> 33;
    h *= UINT64_C(0xff51afd7ed558ccd);
    h ^= h >> 33;
    h *= UINT64_C(0xc4ceb9fe1a85ec53);
    return h ^ (h >> 33);
}

static struct shard *shard_of(uint64_t h)
{
    return &shards[h >> 58];
}

static_assert(SHARDS == 1 << (64 - 58), "shard_of() takes the top bits");

static struct block *find(const struct shard *s, uint64_t h, uint64_t kind, uint64_t key)
{
    if (s->slots == NULL)
        return NULL;
    for (uint32_t i = (uint32_t)h & s->mask; s->slots[i].kind != BLOCK_NONE; i = (i + 1) & s->mask)
        if (s->slots[i].key == key && s->slots[i].kind == kind)
            return &s->slots[i];
    return NULL;
}

static void insert(struct shard *s, const struct block *b)
{
    uint32_t i = (uint32_t)hash(b->kind, b->key) & s->mask;

    while (s->slots[i].kind != BLOCK_NONE)
        i = (i + 1) & s->mask;
    s->slots[i] = *b;
    s->used++;
}

static int grow(struct shard *s)
{
    struct shard old = *s;
    uint32_t count = s->slots ? 2 * (s->mask + 1) : FIRST_SLOTS;
    void *slots = mmap(NULL, count * sizeof(struct block), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (slots == MAP_FAILED)
        return -ENOMEM;
    s->slots = slots;
    s->mask = count - 1;
    s->used = 0;
    if (old.slots == NULL)
        return 0;
    for (uint32_t i = 0; i <= old.mask; i++)
        if (old.slots[i].kind != BLOCK_NONE)
            insert(s, &old.slots[i]);
    munmap(old.slots, (old.mask + 1) * sizeof(struct block));
    return 0;
}

/* Closes the gap: whoever stands behind it and belongs at or before it moves up. */
static void erase(struct shard *s, struct block *b)
{
    uint32_t gap = (uint32_t)(b - s->slots);

    for (uint32_t i = (gap + 1) & s->mask; s->slots[i].kind != BLOCK_NONE; i = (i + 1) & s->mask) {
        uint32_t home = (uint32_t)hash(s->slots[i].kind, s->slots[i].key) & s->mask;
        if (((i - home) & s->mask) < ((i - gap) & s->mask))
            continue;
        s->slots[gap] = s->slots[i];
        gap = i;
    }
    s->slots[gap].kind = BLOCK_NONE;
    s->used--;
}

int share_block_put(const struct block *block)
{
    uint64_t h = hash(block->kind, block->key);
    struct shard *s = shard_of(h);
    struct block *there;
    int r = 0;

    pthread_mutex_lock(&s->lock);
    there = find(s, h, block->kind, block->key);
    if (there)
        *there = *block;
    else if (s->slots == NULL || 4 * (s->used + 1) > 3 * (s->mask + 1))
        r = grow(s);
    if (there == NULL && r == 0)
        insert(s, block);
    pthread_mutex_unlock(&s->lock);
    return r;
}

static bool look(enum block_kind kind, uint64_t key, bool take, struct block *ret)
{
    uint64_t h = hash(kind, key);
    struct shard *s = shard_of(h);
    struct block *b;

    pthread_mutex_lock(&s->lock);
    b = find(s, h, kind, key);
    if (b) {
        *ret = *b;
        if (take)
            erase(s, b);
    }
    pthread_mutex_unlock(&s->lock);
    return b != NULL;
}

bool share_block_take(enum block_kind kind, uint64_t key, struct block *ret_block)
{
    return look(kind, key, true, ret_block);
}

bool share_block_find(enum block_kind kind, uint64_t key, struct block *ret_block)
{
    return look(kind, key, false, ret_block);
}

bool share_block_count(enum block_kind kind, uint64_t key, int by, struct block *ret_block)
{
    uint64_t h = hash(kind, key);
    struct shard *s = shard_of(h);
    bool gone = false;
    struct block *b;

    pthread_mutex_lock(&s->lock);
    b = find(s, h, kind, key);
    if (b) {
        b->count += (uint32_t)by;
        gone = b->count == 0;
        if (gone) {
            *ret_block = *b;
            erase(s, b);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return gone;
}
