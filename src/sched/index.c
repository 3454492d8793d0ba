/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/index.h"

#include <stdlib.h>
#include <string.h>

#include "sched/fit.h"

#define ROW_BLOCKS 64

struct best { /* of a block or a row of blocks */
    struct index_score score;
    uint32_t slot;
};

struct known {
    struct index_score score;
    uint64_t stamp; /* of the state when the score was made, see stamp_of(); 0 = not known */
};

struct type_rows { /* the rows of one type's range */
    uint32_t from, to;
};

struct outlook {
    struct outlook *next; /* same hash */
    uint64_t hash;
    struct index_key key;
    struct shape need; /* what key.shape refers to: a copy without types and labels */
    uint64_t layout, generation, seen, asked;
    uint32_t made; /* counts generations that it has seen */
    size_t bytes;
    VEC(struct known) scores; /* by state */
    struct best *blocks, *rows;
    VEC(struct type_rows) types;
    uint32_t row_count;
};

struct index {
    struct map views; /* by hash */
    uint64_t asked;   /* questions */
    size_t bytes;     /* of all views */
};

struct index *index_new(void)
{
    return mem_new(1, sizeof(struct index));
}

/* ---- life of a view ---------------------------------------------------------------------- */

static size_t outlook_bytes(const struct outlook *v, const struct layout *l)
{
    return sizeof(*v) + v->scores.cap * sizeof(v->scores.items[0]) +
           l->slot_count / SLOT_BLOCK * sizeof(*v->blocks) + v->row_count * sizeof(*v->rows);
}

static void outlook_free(struct outlook *v)
{
    vec_done(&v->scores);
    vec_done(&v->types);
    free(v->blocks);
    free(v->rows);
    free(v->need.mig);
    free(v);
}

void index_free(struct index *ix)
{
    if (ix == NULL)
        return;
    size_t it = 0;
    for (struct outlook *v; (v = map_next(&ix->views, &it)) != NULL;)
        for (struct outlook *next; v != NULL; v = next) {
            next = v->next;
            outlook_free(v);
        }
    map_done(&ix->views);
    free(ix);
}

static void outlook_unlink(struct index *ix, struct outlook *v)
{
    struct outlook *head = map_get(&ix->views, v->hash);
    if (head == v && v->next == NULL) {
        map_del(&ix->views, v->hash);
    } else if (head == v) {
        map_put(&ix->views, v->hash, v->next);
    } else {
        while (head->next != v)
            head = head->next;
        head->next = v->next;
    }
}

/* Forgets those of the views that were not asked for longest, a quarter of the time. */
static void forget_old(struct index *ix)
{
    uint64_t oldest = UINT64_MAX;
    size_t it = 0;
    for (struct outlook *v; (v = map_next(&ix->views, &it)) != NULL;)
        for (; v != NULL; v = v->next)
            oldest = v->asked < oldest ? v->asked : oldest;
    uint64_t until = oldest + (ix->asked - oldest) / 4;
    VEC(struct outlook *) gone = {0};
    it = 0;
    for (struct outlook *v; (v = map_next(&ix->views, &it)) != NULL;)
        for (; v != NULL; v = v->next)
            if (v->asked <= until && v->asked != ix->asked)
                vec_push(&gone, v);
    for (size_t i = 0; i < gone.len; i++) {
        outlook_unlink(ix, gone.items[i]);
        ix->bytes -= gone.items[i]->bytes;
        outlook_free(gone.items[i]);
    }
    vec_done(&gone);
}

/* V has caught up and may have grown. */
static void room_keep(struct index *ix, struct outlook *v, const struct layout *l)
{
    ix->bytes -= v->bytes;
    v->bytes = outlook_bytes(v, l);
    ix->bytes += v->bytes;
    if (ix->bytes > INDEX_BYTES_MAX)
        forget_old(ix);
}

/* ---- finding a view ---------------------------------------------------------------------- */

static uint64_t key_hash(const struct index_key *key)
{
    const struct shape *shape = key->shape;
    uint64_t words[] = {shape->device_count,
                        (uint64_t)shape->device_milli,
                        (uint64_t)shape->device_memory,
                        (uint64_t)shape->cpu,
                        (uint64_t)shape->memory,
                        shape->mig_count,
                        key->mask,
                        key->spread,
                        key->rest};
    uint64_t h = 1;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15ULL;
        h ^= h >> 32;
    }
    return h;
}

static bool key_equal(const struct index_key *a, const struct index_key *b)
{
    const struct shape *x = a->shape, *y = b->shape;
    if (a->mask != b->mask || a->spread != b->spread || a->rest != b->rest ||
        x->device_count != y->device_count || x->device_milli != y->device_milli ||
        x->device_memory != y->device_memory || x->cpu != y->cpu || x->memory != y->memory ||
        x->mig_count != y->mig_count)
        return false;
    for (uint32_t i = 0; i < x->mig_count; i++)
        if (x->mig[i].profile != y->mig[i].profile || x->mig[i].count != y->mig[i].count)
            return false;
    return true;
}

static struct outlook *outlook_new(struct index *ix, const struct index_key *key, uint64_t hash)
{
    struct outlook *v = mem_new(1, sizeof(*v));
    const struct shape *shape = key->shape;
    v->hash = hash;
    v->key = *key;
    v->need = (struct shape){.device_count = shape->device_count,
                             .device_milli = shape->device_milli,
                             .device_memory = shape->device_memory,
                             .cpu = shape->cpu,
                             .memory = shape->memory,
                             .mig_count = shape->mig_count};
    if (shape->mig_count > 0) {
        v->need.mig = mem_new(shape->mig_count, sizeof(*v->need.mig));
        memcpy(v->need.mig, shape->mig, shape->mig_count * sizeof(*v->need.mig));
    }
    v->key.shape = &v->need;
    v->next = map_put(&ix->views, hash, v);
    return v;
}

static struct outlook *outlook_get(struct index *ix, const struct index_key *key)
{
    uint64_t hash = key_hash(key);
    struct outlook *v = map_get(&ix->views, hash);
    while (v != NULL && !key_equal(&v->key, key))
        v = v->next;
    if (v == NULL)
        v = outlook_new(ix, key, hash);
    v->asked = ++ix->asked;
    return v;
}

/* ---- scores and the tournament ----------------------------------------------------------- */

struct following { /* one view catching up */
    struct sched *s;
    struct outlook *v;
    struct states *st;
    const struct layout *l;
    index_score_fn score;
};

/* What tells whether a score of the state is still right: it changes with either of the two. */
static inline uint64_t stamp_of(const struct following *f, uint32_t id)
{
    return (uint64_t)f->v->made << 32 | f->st->items.items[id].serial;
}

static struct index_score slot_score(struct following *f, uint32_t slot)
{
    uint32_t id = f->st->slot_state[slot];
    if (id == STATE_NONE)
        return INDEX_NO_PLACE;
    struct known *known = &f->v->scores.items[id];
    uint64_t stamp = stamp_of(f, id);
    if (known->stamp != stamp) {
        known->score = f->score(f->s, &f->v->key, f->l->nodes[slot]);
        known->stamp = stamp;
    }
    return known->score;
}

/* Most of what an index costs where all scores have changed: neighbours of the same state are
 * passed over, as they are no better. */
static void block_make(struct following *f, uint32_t block)
{
    const uint32_t first = block * SLOT_BLOCK;
    const uint32_t *states = &f->st->slot_state[first];
    const struct known *scores = f->v->scores.items;
    struct best best = {INDEX_NO_PLACE, first};
    for (uint32_t i = 0, former = STATE_NONE; i < SLOT_BLOCK; i++) {
        uint32_t id = states[i];
        if (id == STATE_NONE || id == former)
            continue;
        former = id;
        if (scores[id].stamp != stamp_of(f, id))
            slot_score(f, first + i);
        if (index_less(scores[id].score, best.score))
            best = (struct best){scores[id].score, first + i};
    }
    f->v->blocks[block] = best;
}

static void row_make(struct outlook *v, uint32_t row, uint32_t from, uint32_t to)
{
    struct best best = v->blocks[from];
    for (uint32_t b = from + 1; b < to; b++)
        if (index_less(v->blocks[b].score, best.score))
            best = v->blocks[b];
    v->rows[row] = best;
}

/* The row that a block belongs to, and its blocks. */
static uint32_t block_row(const struct outlook *v, const struct layout *l, uint32_t block,
                          uint32_t *ret_from, uint32_t *ret_to)
{
    size_t t = 0;
    while (block * SLOT_BLOCK >= l->types.items[t].to)
        t++;
    uint32_t first = l->types.items[t].from / SLOT_BLOCK;
    uint32_t end = (l->types.items[t].to + SLOT_BLOCK - 1) / SLOT_BLOCK;
    uint32_t row = (block - first) / ROW_BLOCKS;
    *ret_from = first + row * ROW_BLOCKS;
    *ret_to = *ret_from + ROW_BLOCKS < end ? *ret_from + ROW_BLOCKS : end;
    return v->types.items[t].from + row;
}

/* The score of SLOT may have changed. */
static void slot_update(struct following *f, uint32_t slot)
{
    uint32_t block = slot / SLOT_BLOCK, from, to;
    struct best *b = &f->v->blocks[block], before = *b;
    struct index_score score = slot_score(f, slot);
    if (b->slot == slot && !index_less(b->score, score))
        b->score = score;
    else if (b->slot == slot)
        block_make(f, block);
    else if (index_less(score, b->score) || (!index_less(b->score, score) && slot < b->slot))
        *b = (struct best){score, slot};
    if (before.slot == b->slot && !index_less(before.score, b->score) &&
        !index_less(b->score, before.score))
        return;
    uint32_t row = block_row(f->v, f->l, block, &from, &to);
    struct best *r = &f->v->rows[row];
    if (r->slot / SLOT_BLOCK != block && index_less(r->score, b->score))
        return;
    row_make(f->v, row, from, to);
}

static void outlook_make(struct following *f)
{
    struct outlook *v = f->v;
    free(v->blocks);
    free(v->rows);
    vec_clear(&v->types);
    v->row_count = 0;
    for (size_t t = 0; t < f->l->types.len; t++) {
        const struct slots *range = &f->l->types.items[t];
        uint32_t blocks = (range->to - range->from + SLOT_BLOCK - 1) / SLOT_BLOCK;
        struct type_rows rows = {.from = v->row_count};
        v->row_count += (blocks + ROW_BLOCKS - 1) / ROW_BLOCKS;
        rows.to = v->row_count;
        vec_push(&v->types, rows);
    }
    v->blocks = mem_new(f->l->slot_count / SLOT_BLOCK, sizeof(*v->blocks));
    v->rows = mem_new(v->row_count, sizeof(*v->rows));
    for (uint32_t b = 0; b < f->l->slot_count / SLOT_BLOCK; b++)
        block_make(f, b);
    for (size_t t = 0; t < f->l->types.len; t++) {
        uint32_t first = f->l->types.items[t].from / SLOT_BLOCK;
        uint32_t end = (f->l->types.items[t].to + SLOT_BLOCK - 1) / SLOT_BLOCK;
        for (uint32_t row = v->types.items[t].from; row < v->types.items[t].to; row++) {
            uint32_t from = first + (row - v->types.items[t].from) * ROW_BLOCKS;
            row_make(v, row, from, from + ROW_BLOCKS < end ? from + ROW_BLOCKS : end);
        }
    }
    v->layout = f->l->epoch;
}

static void scores_grow(struct outlook *v, const struct states *st)
{
    size_t before = v->scores.len;
    if (before >= st->items.len)
        return;
    vec_reserve(&v->scores, st->items.len);
    memset(&v->scores.items[before], 0, (st->items.len - before) * sizeof(v->scores.items[0]));
    v->scores.len = st->items.len;
}

static void outlook_sync(struct following *f, uint64_t generation)
{
    struct outlook *v = f->v;
    const struct log *log = &f->st->moved;
    uint32_t slot;
    scores_grow(v, f->st);
    if (v->generation != generation || v->made == 0) /* all scores are old */
        v->made++;
    if (v->layout != f->l->epoch || v->generation != generation || log->end - v->seen > log->cap)
        outlook_make(f);
    else
        while (states_next_moved(f->st, &v->seen, &slot))
            slot_update(f, slot);
    v->generation = generation;
    v->seen = log->end;
}

/* ---- answers ----------------------------------------------------------------------------- */

struct answer {
    struct node *node;
    struct index_score score;
    uint32_t rank;
};

static void answer_offer(struct answer *a, struct node *n, struct index_score score, uint32_t rank)
{
    if (!index_places(score))
        return;
    if (a->node == NULL || index_better(score, rank, a->score, a->rank) ||
        (!index_better(a->score, a->rank, score, rank) && n->position < a->node->position))
        *a = (struct answer){n, score, rank};
}

static void offer_slots(struct following *f, const struct index_question *q, struct answer *a)
{
    for (uint32_t slot = 0; slot < f->l->slot_count; slot++) {
        struct node *n = f->l->nodes[slot];
        if (n == NULL || !fit_accepts(n, q->shape))
            continue;
        answer_offer(a, n, slot_score(f, slot), fit_type_rank(n->gpu_type, q->shape));
    }
}

static void offer_types(struct following *f, const struct index_question *q, struct answer *a)
{
    for (size_t t = 0; t < f->l->types.len; t++) {
        uint32_t rank = fit_type_rank(f->l->types.items[t].type, q->shape);
        if (q->shape->type_count > 0 && rank == q->shape->type_count)
            continue;
        for (uint32_t row = f->v->types.items[t].from; row < f->v->types.items[t].to; row++)
            answer_offer(a, f->l->nodes[f->v->rows[row].slot], f->v->rows[row].score, rank);
    }
}

static void offer_domain(struct following *f, const struct index_question *q, struct answer *a)
{
    uint32_t count;
    bool inner = q->group_level >= 0;
    struct node *const *members = states_domain(f->s, inner ? q->group_domain : q->domain, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct node *n = members[i];
        if ((q->level >= 0 && n->domain[q->level] != q->domain) || !fit_accepts(n, q->shape))
            continue;
        answer_offer(a, n, slot_score(f, n->slot), fit_type_rank(n->gpu_type, q->shape));
    }
}

bool index_find(struct sched *s, const struct index_question *q, index_score_fn score,
                uint64_t generation, struct node **ret_node)
{
    if (!states_serve(q->shape) || q->shape->only_node != 0)
        return false;
    struct states *st = states_sync(s, q->key.mask & (MASK(VIEWS) - 1));
    if (st == NULL)
        return false;
    struct following f = {s, outlook_get(s->index, &q->key), st, states_layout(s), score};
    outlook_sync(&f, generation);
    room_keep(s->index, f.v, f.l);
    struct answer a = {0};
    if (q->level >= 0 || q->group_level >= 0)
        offer_domain(&f, q, &a);
    else if (q->shape->label_count > 0)
        offer_slots(&f, q, &a);
    else
        offer_types(&f, q, &a);
    *ret_node = a.node;
    return true;
}
