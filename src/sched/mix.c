/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/mix.h"

#include <stdlib.h>
#include <string.h>

#include "sched/shape.h"
#include "sched/worth.h"

#define JOB_TASKS_MAX 256 /* of one workload that count: no single one changes the mix at once */
#define WEIGHT_ONE 2      /* of a request for one device, or none */
#define WEIGHT_MORE 5     /* for each further device */
#define WORTH_RARE 256    /* 1 in so many fractions is too rare to count with */
#define HOLES_FEW 16      /* on so many devices holes and fragmentation weigh alike */
#define CPU_PLENTY (1LL << 40) /* a node without a limit */
#define CPU_SCARCE 15          /* CPU is if so many 16ths of the inventory's are asked for */
#define SCARCITY_MAX (64 * SCORE_ONE)

struct counted {
    struct shape *shape;
    uint64_t tasks;
    int64_t used; /* its share when the mix was made last, SCORE_ONE = all */
};

struct kind {
    const char *type; /* interned */
    int64_t cpu, memory;
    uint32_t devices;
};

struct mix {
    struct counted items[MIX_SHAPES_MAX]; /* shape->counted is the index + 1 */
    uint32_t count;
    uint64_t total;           /* tasks */
    uint64_t fresh;           /* of these, counted since it was looked at last */
    int64_t gone;             /* shares of shapes that are no longer counted */
    uint64_t inventory_epoch; /* of sched.inventory_epoch + 1, when it was looked at; 0 = never */
    uint64_t inventory_hash;  /* of the capacity by kind, when the form was made */
    VEC(struct kind) kinds;   /* node.kind is the index + 1 */
    size_t weight_cap;        /* elements of form.weight */
    struct score_mix form;
};

struct mix *mix_new(void)
{
    return mem_new(1, sizeof(struct mix));
}

void mix_free(struct mix *m)
{
    if (m == NULL)
        return;
    free(m->form.weight);
    vec_done(&m->kinds);
    free(m);
}

/* ---- counting ---------------------------------------------------------------------------- */

static void forget(struct sched *s, struct mix *m, uint32_t i)
{
    struct shape *shape = m->items[i].shape;
    m->gone += m->items[i].used;
    m->total -= m->items[i].tasks;
    m->items[i] = m->items[--m->count];
    if (i < m->count)
        m->items[i].shape->counted = i + 1;
    shape->counted = 0;
    shape_put(s, shape);
}

static void fade(struct sched *s, struct mix *m)
{
    for (uint32_t i = m->count; i-- > 0;) {
        m->total -= m->items[i].tasks - m->items[i].tasks / 2;
        m->items[i].tasks /= 2;
        if (m->items[i].tasks == 0)
            forget(s, m, i);
    }
}

/* Makes room for one more shape; the count that it inherits. */
static uint64_t replace_rarest(struct sched *s, struct mix *m)
{
    uint32_t rarest = 0;
    for (uint32_t i = 1; i < m->count; i++)
        if (m->items[i].tasks < m->items[rarest].tasks)
            rarest = i;
    uint64_t tasks = m->items[rarest].tasks;
    forget(s, m, rarest);
    return tasks;
}

void mix_learn(struct sched *s, struct shape *shape, uint64_t tasks)
{
    struct mix *m = s->mix;
    if (shape->mig_count > 0)
        return;
    tasks = tasks < JOB_TASKS_MAX ? tasks : JOB_TASKS_MAX;
    m->fresh += tasks;
    if (shape->counted == 0) {
        uint64_t inherited = m->count == MIX_SHAPES_MAX ? replace_rarest(s, m) : 0;
        m->total += inherited;
        m->items[m->count++] = (struct counted){.shape = shape, .tasks = inherited};
        shape->counted = m->count;
        shape->refs++;
    }
    m->items[shape->counted - 1].tasks += tasks;
    m->total += tasks;
    if (m->total >= MIX_WINDOW)
        fade(s, m);
}

void mix_learn_job(struct sched *s, const struct job_shape *job)
{
    if (job->uniform) {
        mix_learn(s, job->tasks[0].shape, job->task_count);
        return;
    }
    for (uint32_t t = 0; t < job->task_count && t < JOB_TASKS_MAX; t++)
        mix_learn(s, job->tasks[t].shape, 1);
}

/* ---- kinds of node ----------------------------------------------------------------------- */

void mix_kind_set(struct sched *s, struct node *n)
{
    struct mix *m = s->mix;
    for (size_t i = 0; i < m->kinds.len; i++) {
        const struct kind *k = &m->kinds.items[i];
        if (k->type != n->gpu_type || k->cpu != n->cpu || k->memory != n->memory ||
            k->devices != n->whole_count)
            continue;
        n->kind = (uint32_t)i + 1;
        return;
    }
    n->kind = 0;
    if (m->kinds.len == SCORE_KINDS_MAX)
        return;
    vec_push(&m->kinds, ((struct kind){n->gpu_type, n->cpu, n->memory, n->whole_count}));
    n->kind = (uint32_t)m->kinds.len;
}

/* GPU of the inventory by kind, in milli, and its CPU; nodes that are down are part of it. */
struct capacity {
    int64_t milli[SCORE_KINDS_MAX + 1], all;
    int64_t cpu;
};

static struct capacity capacity_of(const struct sched *s)
{
    struct capacity c = {0};
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        c.milli[n->kind] += (int64_t)n->whole_count * WHOLE_MILLI;
        c.all += (int64_t)n->whole_count * WHOLE_MILLI;
        c.cpu += n->cpu < CPU_PLENTY ? n->cpu : CPU_PLENTY;
    }
    return c;
}

/* ---- making the form --------------------------------------------------------------------- */

/* One request of the mix, with what there is of the inventory to serve it. */
struct part {
    int64_t tasks;
    int64_t share; /* of the weight of all, SCORE_ONE = all */
    int64_t cpu, memory;
    uint32_t device_count;
    int32_t milli; /* of each device */
    uint32_t type_count;
    const char *const *types;
    uint32_t seen; /* order */
};

struct parts {
    VEC(struct part) items;
};

static int by_weight(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return x->seen < y->seen ? -1 : 1;
}

static struct part part_of(const struct counted *c, uint32_t seen)
{
    const struct shape *shape = c->shape;
    struct part p = {.tasks = (int64_t)c->tasks,
                     .cpu = shape->cpu,
                     .memory = shape->memory,
                     .device_count = shape->device_count,
                     .milli = shape->device_milli,
                     .type_count = shape->type_count,
                     .types = shape->types,
                     .seen = seen};
    if (shape->device_count > 0 && shape->device_milli == 0)
        p.milli = (int32_t)(shape->charge.v[SCHED_GPU_MILLI] / shape->device_count);
    if (p.device_count > 0 && p.milli == 0)
        p.milli = 1;
    return p;
}

/* All requests, heaviest first, and the two that are always expected; shares add up to SCORE_ONE,
 * but for rounding. */
static void parts_collect(const struct mix *m, uint32_t largest_node, struct parts *parts)
{
    for (uint32_t i = 0; i < m->count; i++)
        vec_push(&parts->items, part_of(&m->items[i], i));
    struct part one = {.tasks = 1, .device_count = 1, .milli = WHOLE_MILLI, .seen = m->count};
    struct part node = one;
    node.device_count = largest_node;
    vec_push(&parts->items, one);
    if (largest_node > 1)
        vec_push(&parts->items, node);
    int64_t sum = 0;
    for (size_t i = 0; i < parts->items.len; i++) {
        struct part *p = &parts->items.items[i];
        int64_t more = p->device_count > 1 ? p->device_count - 1 : 0;
        p->share = p->tasks * (WEIGHT_ONE + WEIGHT_MORE * more);
        sum += p->share;
    }
    qsort(parts->items.items, parts->items.len, sizeof(struct part), by_weight);
    for (size_t i = 0; i < parts->items.len; i++) /* MIX_WINDOW, devices and SCORE_ONE: 2^58 */
        parts->items.items[i].share = parts->items.items[i].share * SCORE_ONE / sum;
}

static bool type_row(const struct score_mix *f, const char *type, uint32_t *ret_row)
{
    for (uint32_t i = 0; i < f->type_count; i++)
        if (f->types[i] == type) {
            *ret_row = i + 1;
            return true;
        }
    return false;
}

/* Puts the part's types, need and CPU into the tables; false where one of them is full. */
static bool tables_add(struct score_mix *f, const struct part *p)
{
    uint32_t row, new_types = 0;
    for (uint32_t i = 0; i < p->type_count; i++)
        new_types += !type_row(f, p->types[i], &row);
    uint32_t need = 0, cpu = 0;
    while (need < f->need_count &&
           (f->needs[need].milli != p->milli || f->needs[need].count != p->device_count))
        need++;
    while (cpu < f->cpu_count && f->cpus[cpu] != p->cpu)
        cpu++;
    if (f->type_count + new_types > SCORE_TYPES_MAX || need == SCORE_NEEDS_MAX ||
        cpu == SCORE_CPUS_MAX)
        return false;
    for (uint32_t i = 0; i < p->type_count; i++)
        if (!type_row(f, p->types[i], &row))
            f->types[f->type_count++] = p->types[i];
    if (need == f->need_count)
        f->needs[f->need_count++] = (struct score_need){p->milli, p->device_count};
    if (cpu == f->cpu_count)
        f->cpus[f->cpu_count++] = p->cpu;
    return true;
}

static int by_milli(const void *a, const void *b)
{
    const struct score_need *x = a, *y = b;
    if (x->milli != y->milli)
        return x->milli > y->milli ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

static int by_amount(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static bool accepts(const struct part *p, const char *type)
{
    for (uint32_t i = 0; i < p->type_count; i++)
        if (p->types[i] == type)
            return true;
    return p->type_count == 0;
}

static void weights_add(struct score_mix *f, const struct part *p)
{
    uint32_t need = 0, rank = 0;
    while (f->needs[need].milli != p->milli || f->needs[need].count != p->device_count)
        need++;
    while (f->cpus[rank] != p->cpu)
        rank++;
    for (uint32_t row = 0; row <= f->type_count; row++) {
        if (row == 0 ? p->type_count > 0 : !accepts(p, f->types[row - 1]))
            continue;
        for (uint32_t r = rank + 1; r <= f->cpu_count; r++)
            f->weight[(size_t)(row * (f->cpu_count + 1) + r) * f->need_count + need] +=
                (int32_t)p->share;
    }
}

/* CPU that a GPU should have left: what its task takes along. Tasks without GPU find room on
 * nodes that have CPU to spare; only where nearly all CPU is asked for they count too. */
static void ratio_make(struct score_mix *f, const struct parts *parts, const struct capacity *c)
{
    __int128 milli = 0, own = 0, all = 0;
    for (size_t i = 0; i < parts->items.len; i++) {
        const struct part *p = &parts->items.items[i];
        milli += (__int128)p->tasks * p->milli * p->device_count;
        own += p->device_count > 0 ? (__int128)p->tasks * p->cpu : 0;
        all += (__int128)p->tasks * p->cpu;
    }
    if (all * c->all * 16 >= milli * c->cpu * CPU_SCARCE)
        own = all;
    f->cpu_per_gpu = milli > 0 ? (int64_t)(own * WHOLE_MILLI / milli) : 0;
}

static int by_number(const void *a, const void *b)
{
    const struct worth_size *x = a, *y = b;
    if (x->number != y->number)
        return x->number > y->number ? -1 : 1;
    return x->milli < y->milli ? -1 : 1;
}

/* What holes are worth to the parts that ask for less than a device. */
static void holes_make(struct score_mix *f, const struct parts *parts, const struct capacity *c)
{
    int64_t number[WHOLE_MILLI] = {0}, all = 0;
    struct worth_size sizes[WHOLE_MILLI];
    uint32_t count = 0, kept = 0;
    for (size_t i = 0; i < parts->items.len; i++) {
        const struct part *p = &parts->items.items[i];
        if (p->device_count == 0 || p->milli >= WHOLE_MILLI)
            continue;
        number[p->milli] += p->tasks * p->device_count;
        all += p->tasks * p->device_count;
    }
    for (int32_t milli = 1; milli < WHOLE_MILLI; milli++)
        if (number[milli] > 0)
            sizes[count++] = (struct worth_size){milli, number[milli]};
    qsort(sizes, count, sizeof(sizes[0]), by_number);
    while (kept < count && kept < WORTH_SIZES_MAX && sizes[kept].number >= all / WORTH_RARE)
        kept++;
    worth_make(sizes, kept, f->worth);
    f->holes_permille = c->all * 1000 / (c->all + (int64_t)HOLES_FEW * WHOLE_MILLI);
}

/* Could a node of that kind hold it, if it were empty? */
static bool kind_holds(const struct kind *k, const struct part *p)
{
    return k->devices >= p->device_count && k->cpu >= p->cpu && k->memory >= p->memory &&
           accepts(p, k->type);
}

static void scarcity_make(struct score_mix *f, const struct mix *m, const struct parts *parts,
                          const struct capacity *c)
{
    __int128 demand = 0;
    memset(f->scarcity, 0, sizeof(f->scarcity));
    for (size_t i = 0; i < parts->items.len; i++) {
        const struct part *p = &parts->items.items[i];
        demand += (__int128)p->tasks * p->milli * p->device_count;
    }
    for (size_t i = 0; i < parts->items.len && demand > 0; i++) {
        const struct part *p = &parts->items.items[i];
        int64_t accepted = 0;
        for (size_t k = 0; k < m->kinds.len; k++)
            accepted += kind_holds(&m->kinds.items[k], p) ? c->milli[k + 1] : 0;
        if (p->device_count == 0 || accepted == 0 || accepted > c->all / 2)
            continue;
        __int128 asked = (__int128)p->tasks * p->milli * p->device_count * c->all;
        int64_t per_gpu = (int64_t)(asked * SCORE_ONE / accepted / demand);
        for (size_t k = 0; k < m->kinds.len; k++)
            if (kind_holds(&m->kinds.items[k], p))
                f->scarcity[k + 1] += per_gpu;
    }
    for (uint32_t k = 1; k <= SCORE_KINDS_MAX; k++)
        if (f->scarcity[k] > SCARCITY_MAX)
            f->scarcity[k] = SCARCITY_MAX;
}

/* Largest amounts of one node. */
static uint32_t largest_make(const struct sched *s, struct score_mix *f)
{
    uint32_t devices = 1;
    f->cpu_max = 1;
    for (size_t i = 0; i < s->node_list.len; i++) {
        const struct node *n = s->node_list.items[i];
        devices = n->whole_count > devices ? n->whole_count : devices;
        if (n->cpu != SCHED_UNLIMITED && n->cpu > f->cpu_max)
            f->cpu_max = n->cpu;
    }
    f->milli_max = (int64_t)devices * WHOLE_MILLI;
    return devices;
}

/* The tables of needs, amounts of CPU and types; parts that they do not hold are dropped. */
static void tables_make(struct score_mix *f, struct parts *parts)
{
    size_t kept = 0;
    f->need_count = f->cpu_count = f->type_count = 0;
    for (size_t i = 0; i < parts->items.len; i++)
        if (parts->items.items[i].device_count == 0 || tables_add(f, &parts->items.items[i]))
            parts->items.items[kept++] = parts->items.items[i];
    parts->items.len = kept;
    qsort(f->needs, f->need_count, sizeof(f->needs[0]), by_milli);
    qsort(f->cpus, f->cpu_count, sizeof(f->cpus[0]), by_amount);
}

static void form_make(const struct sched *s, struct mix *m, const struct capacity *capacity)
{
    struct score_mix *f = &m->form;
    struct parts parts = {0};
    parts_collect(m, largest_make(s, f), &parts);
    tables_make(f, &parts);
    size_t size = (size_t)(f->type_count + 1) * (f->cpu_count + 1) * f->need_count;
    if (size > m->weight_cap)
        f->weight = vec_grow(f->weight, &m->weight_cap, size, sizeof(*f->weight));
    memset(f->weight, 0, size * sizeof(*f->weight));
    for (size_t i = 0; i < parts.items.len; i++)
        if (parts.items.items[i].device_count > 0)
            weights_add(f, &parts.items.items[i]);
    ratio_make(f, &parts, capacity);
    holes_make(f, &parts, capacity);
    scarcity_make(f, m, &parts, capacity);
    vec_done(&parts.items);
    f->generation++;
}

/* ---- when -------------------------------------------------------------------------------- */

static int64_t share_of(const struct mix *m, uint32_t i)
{
    return (int64_t)(m->items[i].tasks * SCORE_ONE / m->total);
}

static bool has_drifted(struct mix *m)
{
    int64_t moved = m->gone;
    for (uint32_t i = 0; i < m->count; i++) {
        int64_t d = share_of(m, i) - m->items[i].used;
        moved += d < 0 ? -d : d;
    }
    return moved / 2 > SCORE_ONE / MIX_DRIFT; /* what left one shape came to another */
}

const struct score_mix *mix_current(const struct sched *s)
{
    return &s->mix->form;
}

/* Has the inventory become another one? What is up and who is where does not matter. */
static bool inventory_differs(struct sched *s, const struct capacity *c)
{
    struct mix *m = s->mix;
    uint64_t hash = map_hash(c, sizeof(*c));
    bool differs = m->inventory_epoch == 0 || hash != m->inventory_hash;
    m->inventory_hash = hash;
    m->inventory_epoch = s->inventory_epoch + 1;
    return differs;
}

void mix_refresh(struct sched *s)
{
    struct mix *m = s->mix;
    bool looks = m->inventory_epoch != s->inventory_epoch + 1;
    bool counts = m->fresh > 0 && m->fresh * MIX_DRIFT >= m->total;
    if (!looks && !counts)
        return;
    struct capacity capacity = capacity_of(s);
    bool due = looks && inventory_differs(s, &capacity);
    due = (counts && has_drifted(m)) || due;
    if (counts)
        m->fresh = 0;
    if (!due)
        return;
    m->gone = 0;
    for (uint32_t i = 0; i < m->count; i++)
        m->items[i].used = share_of(m, i);
    form_make(s, m, &capacity);
}
