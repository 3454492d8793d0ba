/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/states.h"

#include <stdlib.h>
#include <string.h>

#include "sched/node.h"

#define LOG_LEAST 1024
#define SORT_INSERTING 16 /* devices; beyond that many the library sorts */

/* ---- life -------------------------------------------------------------------------------- */

static void log_make(struct log *l, size_t least)
{
    size_t cap = LOG_LEAST;
    while (cap < least)
        cap *= 2;
    if (cap <= l->cap)
        return;
    free(l->ring);
    l->ring = mem_new(cap, sizeof(*l->ring));
    l->end += l->cap; /* whoever read the old ring is too far behind */
    l->cap = cap;
}

struct state_world *states_new(void)
{
    struct state_world *sw = mem_new(1, sizeof(*sw));
    log_make(&sw->changed, LOG_LEAST);
    sw->avoid_ms = INT64_MAX;
    return sw;
}

static void mask_clear(struct states *st)
{
    for (size_t i = 0; i < st->items.len; i++)
        free(st->items.items[i].key);
    vec_clear(&st->items);
    vec_clear(&st->free);
    for (size_t b = 0; b < st->bucket_count; b++)
        st->buckets[b] = STATE_NONE;
    st->live = st->dead = 0;
}

static void layout_done(struct layout *l)
{
    free(l->nodes);
    vec_done(&l->types);
    free(l->first);
    free(l->members);
    vec_done(&l->domains);
    vec_done(&l->levels);
}

void states_free(struct state_world *sw)
{
    if (sw == NULL)
        return;
    for (uint32_t i = 0; i < sw->mask_count; i++) {
        struct states *st = &sw->masks[i];
        mask_clear(st);
        vec_done(&st->items);
        vec_done(&st->free);
        free(st->buckets);
        free(st->slot_state);
        free(st->moved.ring);
        free(st->caught);
        free(st->key);
    }
    layout_done(&sw->layout);
    free(sw->changed.ring);
    free(sw);
}

/* ---- changes ----------------------------------------------------------------------------- */

void states_note(struct node *n)
{
    struct state_world *sw = n->states;
    if (sw == NULL || n->noted > sw->read) /* noted since anybody looked */
        return;
    log_add(&sw->changed, n->position);
    n->noted = sw->changed.end;
}

void states_avoided(struct sched *s, struct node *n, int64_t until_ms)
{
    states_note(n);
    if (until_ms > s->now_ms && until_ms < s->states->avoid_ms)
        s->states->avoid_ms = until_ms;
}

/* Time alone changes a node when it is avoided no more. */
static void avoid_end(struct sched *s)
{
    if (s->now_ms < s->states->avoid_ms)
        return;
    s->states->avoid_ms = INT64_MAX;
    for (size_t i = 0; i < s->node_list.len; i++) {
        struct node *n = s->node_list.items[i];
        if (n->avoid_until_ms > s->now_ms && n->avoid_until_ms < s->states->avoid_ms)
            s->states->avoid_ms = n->avoid_until_ms;
        if (n->avoid_until_ms > 0 && n->avoid_until_ms <= s->now_ms)
            states_note(n);
    }
}

/* ---- slots ------------------------------------------------------------------------------- */

static struct slots *type_slots(struct layout *l, const char *type)
{
    for (size_t i = 0; i < l->types.len; i++)
        if (l->types.items[i].type == type)
            return &l->types.items[i];
    struct slots *new = vec_add(&l->types);
    new->type = type;
    return new;
}

static void layout_make(struct sched *s, struct layout *l)
{
    vec_clear(&l->types);
    for (size_t i = 0; i < s->node_list.len; i++)
        type_slots(l, s->node_list.items[i]->gpu_type)->to++; /* how many, for now */
    uint32_t next = 0;
    for (size_t t = 0; t < l->types.len; t++) {
        struct slots *range = &l->types.items[t];
        uint32_t count = range->to;
        range->from = range->to = next;
        next += (count + SLOT_BLOCK - 1) / SLOT_BLOCK * SLOT_BLOCK;
    }
    free(l->nodes);
    l->nodes = mem_new(next, sizeof(struct node *));
    l->slot_count = next;
    for (size_t i = 0; i < s->node_list.len; i++) {
        struct node *n = s->node_list.items[i];
        n->position = (uint32_t)i;
        n->slot = type_slots(l, n->gpu_type)->to++;
        l->nodes[n->slot] = n;
    }
    log_make(&s->states->changed, 2 * s->node_list.len);
    s->states->changed.end += s->states->changed.cap + 1; /* positions are others now */
}

const struct layout *states_layout(struct sched *s)
{
    struct layout *l = &s->states->layout;
    if (l->epoch != s->nodes_epoch) {
        layout_make(s, l);
        l->epoch = s->nodes_epoch;
    }
    return l;
}

static void domains_make(struct sched *s, struct layout *l)
{
    size_t levels = s->levels.len;
    l->domain_count = (uint32_t)s->domains.len + 1;
    free(l->first);
    free(l->members);
    l->first = mem_new(l->domain_count + 1, sizeof(*l->first));
    l->members = mem_new(s->node_list.len * levels, sizeof(struct node *));
    for (size_t i = 0; i < s->node_list.len; i++)
        for (size_t k = 0; k < levels; k++)
            l->first[s->node_list.items[i]->domain[k]]++;
    uint32_t sum = 0;
    for (uint32_t d = 0; d <= l->domain_count; d++) {
        uint32_t count = l->first[d];
        l->first[d] = sum;
        sum += count;
    }
    uint32_t *next = mem_new(l->domain_count + 1, sizeof(*next));
    memcpy(next, l->first, (l->domain_count + 1) * sizeof(*next));
    for (size_t i = 0; i < s->node_list.len; i++)
        for (size_t k = 0; k < levels; k++)
            l->members[next[s->node_list.items[i]->domain[k]]++] = s->node_list.items[i];
    free(next);
    bool *seen = mem_new(l->domain_count, sizeof(*seen));
    vec_clear(&l->domains);
    vec_clear(&l->levels);
    seen[0] = true; /* of nodes in no domain */
    for (size_t k = 0; k < levels; k++) {
        vec_push(&l->levels, (uint32_t)l->domains.len);
        for (size_t i = 0; i < s->node_list.len; i++) {
            uint32_t domain = s->node_list.items[i]->domain[k];
            if (!seen[domain])
                vec_push(&l->domains, domain);
            seen[domain] = true;
        }
    }
    vec_push(&l->levels, (uint32_t)l->domains.len);
    free(seen);
}

static const struct layout *domains_layout(struct sched *s)
{
    struct layout *l = &s->states->layout;
    if (l->domain_epoch != s->inventory_epoch + 1) {
        domains_make(s, l);
        l->domain_epoch = s->inventory_epoch + 1;
    }
    return l;
}

const uint32_t *states_domains(struct sched *s, int level, uint32_t *ret_count)
{
    const struct layout *l = domains_layout(s);
    *ret_count = l->levels.items[level + 1] - l->levels.items[level];
    return l->domains.items + l->levels.items[level];
}

struct node *const *states_domain(struct sched *s, uint32_t domain, uint32_t *ret_count)
{
    const struct layout *l = domains_layout(s);
    *ret_count = l->first[domain + 1] - l->first[domain];
    return l->members + l->first[domain];
}

/* ---- the state of a node ----------------------------------------------------------------- */

struct device_words {
    uint64_t a, b, c;
};

static bool words_before(const struct device_words *x, const struct device_words *y)
{
    return x->a != y->a ? x->a < y->a : x->b != y->b ? x->b < y->b : x->c < y->c;
}

static int words_compare(const void *a, const void *b)
{
    return words_before(a, b) ? -1 : words_before(b, a);
}

static struct device_words device_state(const struct device *d, unsigned mask)
{
    int64_t milli = WHOLE_MILLI, memory = d->memory;
    bool idle = true;
    for (int v = 0; v < VIEWS; v++) {
        if (!(mask & MASK(v)))
            continue;
        const struct use *u = &d->use[v];
        idle = idle && u->tenants == 0;
        milli = WHOLE_MILLI - u->milli < milli ? WHOLE_MILLI - u->milli : milli;
        memory = d->memory - u->memory < memory ? d->memory - u->memory : memory;
    }
    return (struct device_words){
        (uint64_t)d->memory << 11 | (uint64_t)milli << 1 | (uint64_t)idle, (uint64_t)memory,
        (uint64_t)(uintptr_t)d->mig};
}

static void devices_sort(struct device_words *words, uint32_t count)
{
    if (count > SORT_INSERTING) {
        qsort(words, count, sizeof(*words), words_compare);
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct device_words w = words[i];
        uint32_t k = i;
        for (; k > 0 && words_before(&w, &words[k - 1]); k--)
            words[k] = words[k - 1];
        words[k] = w;
    }
}

#define HEAD_WORDS 6

/* Writes the key of N into the scratch; how many words. */
static uint32_t state_key(struct sched *s, struct states *st, const struct node *n)
{
    size_t words = HEAD_WORDS + n->device_count * (sizeof(struct device_words) / sizeof(uint64_t));
    if (words > st->key_cap)
        st->key = vec_grow(st->key, &st->key_cap, words, sizeof(*st->key));
    int64_t cpu = n->cpu, memory = n->memory;
    uint32_t idle = n->whole_count;
    for (int v = 0; v < VIEWS; v++) {
        if (!(st->mask & MASK(v)))
            continue;
        if (n->cpu != SCHED_UNLIMITED && n->cpu - n->cpu_used[v] < cpu)
            cpu = n->cpu - n->cpu_used[v];
        if (n->memory != SCHED_UNLIMITED && n->memory - n->memory_used[v] < memory)
            memory = n->memory - n->memory_used[v];
        idle = n->idle[v] < idle ? n->idle[v] : idle;
    }
    st->key[0] = (uint64_t)(uintptr_t)n->gpu_type;
    st->key[1] = (uint64_t)node_takes(n) | (uint64_t)(n->avoid_until_ms > s->now_ms) << 1 |
                 (uint64_t)n->mark << 2;
    st->key[2] = (uint64_t)cpu;
    st->key[3] = (uint64_t)memory;
    st->key[4] = (uint64_t)idle << 32 | n->device_count;
    st->key[5] =
        (uint64_t)n->kind << 32 | (uint64_t)n->whole_count << 1 | (uint64_t)n->windowed;
    struct device_words *devices = (struct device_words *)(st->key + HEAD_WORDS);
    for (uint32_t d = 0; d < n->device_count; d++)
        devices[d] = device_state(&n->devices[d], st->mask);
    devices_sort(devices, n->device_count);
    return (uint32_t)words;
}

static uint64_t key_hash(const uint64_t *key, uint32_t words)
{
    uint64_t h = words;
    for (uint32_t i = 0; i < words; i++) {
        h = (h ^ key[i]) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 29;
    }
    return h;
}

/* ---- interning --------------------------------------------------------------------------- */

static void bucket_add(struct states *st, uint32_t id)
{
    uint32_t *bucket = &st->buckets[st->items.items[id].hash & (st->bucket_count - 1)];
    st->items.items[id].next = *bucket;
    *bucket = id;
}

static void buckets_grow(struct states *st)
{
    if (st->live + st->dead < st->bucket_count)
        return;
    size_t count = st->bucket_count > 0 ? 2 * st->bucket_count : LOG_LEAST;
    free(st->buckets);
    st->buckets = mem_new(count, sizeof(*st->buckets));
    st->bucket_count = count;
    for (size_t b = 0; b < count; b++)
        st->buckets[b] = STATE_NONE;
    for (uint32_t id = 0; id < st->items.len; id++)
        if (st->items.items[id].key != NULL)
            bucket_add(st, id);
}

/* Forgets the states without members. */
static void sweep(struct states *st)
{
    for (size_t b = 0; b < st->bucket_count; b++)
        for (uint32_t *at = &st->buckets[b]; *at != STATE_NONE;) {
            struct state *state = &st->items.items[*at];
            if (state->members > 0) {
                at = &state->next;
                continue;
            }
            vec_push(&st->free, *at);
            *at = state->next;
            free(state->key);
            state->key = NULL;
        }
    st->dead = 0;
}

static uint32_t state_new(struct states *st, uint64_t hash, uint32_t words)
{
    buckets_grow(st);
    uint32_t id;
    if (st->free.len > 0) {
        id = vec_pop(&st->free);
    } else {
        id = (uint32_t)st->items.len;
        (void)vec_add(&st->items);
    }
    struct state *state = &st->items.items[id];
    *state = (struct state){.hash = hash, .words = words, .serial = ++st->serial};
    state->key = mem_new(words, sizeof(*state->key));
    memcpy(state->key, st->key, words * sizeof(*state->key));
    st->dead++;
    bucket_add(st, id);
    return id;
}

/* The state whose key is in the scratch. */
static uint32_t state_find(struct states *st, uint32_t words)
{
    uint64_t hash = key_hash(st->key, words);
    if (st->bucket_count > 0)
        for (uint32_t id = st->buckets[hash & (st->bucket_count - 1)]; id != STATE_NONE;
             id = st->items.items[id].next) {
            const struct state *state = &st->items.items[id];
            if (state->hash == hash && state->words == words &&
                memcmp(state->key, st->key, words * sizeof(*st->key)) == 0)
                return id;
        }
    return state_new(st, hash, words);
}

static void member_add(struct states *st, uint32_t id, bool adds)
{
    struct state *state = &st->items.items[id];
    if (adds ? state->members++ == 0 : --state->members == 0) {
        st->live += adds ? 1 : -1U;
        st->dead -= adds ? 1 : -1U;
    }
}

/* ---- following the nodes ----------------------------------------------------------------- */

/* 0 where nothing is. */
static uint32_t slot_serial(const struct states *st, uint32_t slot)
{
    uint32_t id = st->slot_state[slot];
    return id == STATE_NONE ? 0 : st->items.items[id].serial;
}

static void look_at(struct sched *s, struct states *st, const struct node *n)
{
    uint32_t id = state_find(st, state_key(s, st, n)), *at = &st->slot_state[n->slot];
    if (*at == id)
        return;
    member_add(st, id, true);
    if (*at != STATE_NONE)
        member_add(st, *at, false);
    log_add(&st->moved, (uint64_t)slot_serial(st, n->slot) << 32 | n->slot);
    *at = id;
}

static void look_at_all(struct sched *s, struct states *st)
{
    for (size_t i = 0; i < s->node_list.len; i++)
        look_at(s, st, s->node_list.items[i]);
}

/* The slots have been numbered anew. */
static void relayout(struct sched *s, struct states *st, const struct layout *l)
{
    mask_clear(st);
    free(st->slot_state);
    free(st->caught);
    st->slot_state = mem_new(l->slot_count, sizeof(*st->slot_state));
    st->caught = mem_new(l->slot_count, sizeof(*st->caught));
    st->catching++;
    for (uint32_t i = 0; i < l->slot_count; i++)
        st->slot_state[i] = STATE_NONE;
    log_make(&st->moved, 2 * (size_t)l->slot_count);
    st->moved.end += st->moved.cap + 1;
    st->layout = l->epoch;
    look_at_all(s, st);
    st->seen = s->states->changed.end;
}

static void follow(struct sched *s, struct states *st)
{
    struct state_world *sw = s->states;
    const struct log *log = &sw->changed;
    if (log->end - st->seen > log->cap) {
        look_at_all(s, st);
    } else {
        for (uint64_t at = st->seen; at < log->end; at++)
            look_at(s, st, s->node_list.items[log->ring[at & (log->cap - 1)]]);
    }
    st->seen = log->end;
    if (st->dead > st->live + LOG_LEAST)
        sweep(st);
}

static struct states *mask_find(struct state_world *sw, unsigned mask)
{
    for (uint32_t i = 0; i < sw->mask_count; i++)
        if (sw->masks[i].mask == mask)
            return &sw->masks[i];
    if (sw->mask_count == STATES_MASKS)
        return NULL;
    struct states *st = &sw->masks[sw->mask_count++];
    st->mask = mask;
    return st;
}

struct states *states_sync(struct sched *s, unsigned mask)
{
    struct state_world *sw = s->states;
    const struct layout *l = states_layout(s);
    struct states *st = mask_find(sw, mask);
    if (st == NULL)
        return NULL;
    avoid_end(s);
    if (st->layout != l->epoch)
        relayout(s, st, l);
    else if (st->seen != sw->changed.end)
        follow(s, st);
    sw->read = sw->changed.end;
    return st;
}

bool states_next_moved(struct states *st, uint64_t *seen, uint32_t *ret_slot)
{
    while (*seen < st->moved.end) {
        uint64_t entry = st->moved.ring[(*seen)++ & (st->moved.cap - 1)];
        uint32_t slot = (uint32_t)entry;
        if (st->caught[slot] == st->catching) /* what it was at first is what counts */
            continue;
        st->caught[slot] = st->catching;
        if (entry >> 32 == slot_serial(st, slot)) /* it has come back to that */
            continue;
        *ret_slot = slot;
        return true;
    }
    st->catching++; /* the next one begins */
    return false;
}

bool states_serve(const struct shape *shape)
{
    return shape->device_count <= 1 || shape->device_milli == WHOLE_MILLI;
}
