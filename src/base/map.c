/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CAP ((size_t)16)

/*
 * Neighbouring numbers must not fill neighbouring slots: the finaliser of splitmix64 (Steele,
 * Lea and Flood, 2014) spreads every bit of the key over the low bits that choose the slot.
 */
static size_t home_slot(const struct map *m, uint64_t key)
{
    key ^= key >> 30;
    key *= 0xbf58476d1ce4e5b9u;
    key ^= key >> 27;
    key *= 0x94d049bb133111ebu;
    key ^= key >> 31;
    return (size_t)key & (m->cap - 1);
}

static bool slot_matches(const struct map *m, size_t i, uint64_t key, const char *str)
{
    if (m->slots[i].key != key)
        return false;
    return str == NULL || strcmp(m->strings[i], str) == 0;
}

/* The slot that holds the key, or the free slot where its probe ends. The map has a free slot. */
static size_t find_slot(const struct map *m, uint64_t key, const char *str)
{
    size_t i = home_slot(m, key);

    while (m->slots[i].value && !slot_matches(m, i, key, str))
        i = (i + 1) & (m->cap - 1);
    return i;
}

/* STR is NULL where keys are numbers, and there is no array of strings then. */
static void slot_set(struct map *m, size_t i, uint64_t key, const char *str, void *value)
{
    m->slots[i] = (struct map_slot){.key = key, .value = value};
    if (m->strings)
        m->strings[i] = str;
}

static const char *slot_str(const struct map *m, size_t i)
{
    return m->strings ? m->strings[i] : NULL;
}

static void grow(struct map *m, bool strings)
{
    struct map old = *m;

    m->cap = old.cap ? old.cap * 2 : FIRST_CAP;
    m->slots = calloc(m->cap, sizeof(*m->slots));
    m->strings = strings ? calloc(m->cap, sizeof(*m->strings)) : NULL;
    if (m->slots == NULL || (strings && m->strings == NULL))
        abort();
    for (size_t i = 0; i < old.cap; i++) {
        const struct map_slot *s = &old.slots[i];
        const char *str = slot_str(&old, i);

        if (s->value)
            slot_set(m, find_slot(m, s->key, str), s->key, str, s->value);
    }
    free(old.slots);
    free(old.strings);
}

static void *get(const struct map *m, uint64_t key, const char *str)
{
    return m->cap ? m->slots[find_slot(m, key, str)].value : NULL;
}

static void *put(struct map *m, uint64_t key, const char *str, void *value)
{
    size_t i;
    void *former;

    if (value == NULL)
        abort();
    if (m->len >= m->cap / 4 * 3)
        grow(m, str != NULL);
    i = find_slot(m, key, str);
    former = m->slots[i].value;
    if (former == NULL)
        m->len++;
    slot_set(m, i, key, str, value);
    return former;
}

/*
 * Backward-shift deletion (Knuth, The Art of Computer Programming 3, 6.4, algorithm R): each
 * entry after the hole moves into it unless its home lies between the hole and itself.
 */
static void *del(struct map *m, uint64_t key, const char *str)
{
    size_t mask = m->cap - 1, hole, i;
    void *former;

    if (m->cap == 0)
        return NULL;
    hole = find_slot(m, key, str);
    former = m->slots[hole].value;
    if (former == NULL)
        return NULL;
    for (i = (hole + 1) & mask; m->slots[i].value; i = (i + 1) & mask) {
        size_t home = home_slot(m, m->slots[i].key);

        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        slot_set(m, hole, m->slots[i].key, slot_str(m, i), m->slots[i].value);
        hole = i;
    }
    slot_set(m, hole, 0, NULL, NULL);
    m->len--;
    return former;
}

void *map_get(const struct map *m, uint64_t key)
{
    return get(m, key, NULL);
}

void *map_put(struct map *m, uint64_t key, void *value)
{
    return put(m, key, NULL, value);
}

void *map_del(struct map *m, uint64_t key)
{
    return del(m, key, NULL);
}

void *map_get_str(const struct map *m, const char *key)
{
    return get(m, map_hash(key, strlen(key)), key);
}

void *map_put_str(struct map *m, const char *key, void *value)
{
    return put(m, map_hash(key, strlen(key)), key, value);
}

void *map_del_str(struct map *m, const char *key)
{
    return del(m, map_hash(key, strlen(key)), key);
}

void *map_next(const struct map *m, size_t *it)
{
    while (*it < m->cap) {
        void *value = m->slots[(*it)++].value;

        if (value)
            return value;
    }
    return NULL;
}

uint64_t map_hash(const void *data, size_t len)
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < len; i++) {
        h ^= p[i];
        h *= 0x100000001b3u;
    }
    return h;
}

void map_done(struct map *m)
{
    free(m->slots);
    free(m->strings);
    *m = (struct map)MAP_INIT;
}
