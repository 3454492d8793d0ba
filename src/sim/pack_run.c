/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/pack.h"

struct tally { /* of one run, per percent of arrival */
    double allocated[PACK_POINTS], frag_ratio[PACK_POINTS];
    uint64_t samples[PACK_POINTS];
};

static void tally_add(struct tally *t, double arrived, double allocated, double frag_ratio,
                      struct pack_run *run)
{
    long percent = lround(arrived * 100);
    if (percent < 0 || percent >= PACK_POINTS)
        return;
    t->allocated[percent] += allocated;
    t->frag_ratio[percent] += frag_ratio;
    t->samples[percent]++;
    memcpy(run->points[percent].dropped, run->dropped, sizeof(run->dropped));
    memcpy(run->points[percent].arrived, run->arrived, sizeof(run->arrived));
}

static void tally_result(const struct tally *t, struct pack_run *run)
{
    for (int i = 0; i < PACK_POINTS; i++) {
        double n = (double)t->samples[i];
        run->points[i].unallocated = n > 0 ? 100 * (1 - t->allocated[i] / n) : NAN;
        run->points[i].frag_ratio = n > 0 ? 100 * t->frag_ratio[i] / n : NAN;
    }
}

/* Fragmentation of the cluster, kept up to date node by node. */
struct fragments {
    double *of, sum; /* in milli-GPU */
};

static void fragments_update(struct fragments *f, const struct pack_mix *mix,
                             const struct pack_node *nodes, size_t i)
{
    double now = pack_fragmentation(mix, &nodes[i]);
    f->sum += now - f->of[i];
    f->of[i] = now;
}

/* Places all arrivals and samples after each. */
static void place_all(const struct pack_options *o, struct pack_placer *p,
                      const struct pack_arrivals *arrivals, struct fragments *f,
                      struct pack_run *run)
{
    bool library = o->policy->score == NULL;
    struct tally tally = {0};
    double capacity = (double)o->cluster->capacity;
    int64_t asked = 0, allocated = 0, taken = 0;
    for (size_t i = 0; i < arrivals->shapes.len; i++) {
        uint32_t index = arrivals->shapes.items[i];
        const struct pack_shape *shape = &o->list->shapes[index];
        int64_t node = library ? pack_sched_pod(p, index) : pack_place_pod(p, index);
        run->arrived[shape->class_]++;
        asked += pack_shape_asked(shape);
        if (node < 0) {
            run->dropped[shape->class_]++;
        } else {
            allocated += pack_shape_asked(shape);
            taken += pack_shape_milli(shape);
            fragments_update(f, o->mix, p->nodes, (size_t)node);
        }
        double idle = (double)(o->cluster->capacity - taken);
        tally_add(&tally, (double)asked / capacity, (double)allocated / capacity,
                  idle > 0 ? f->sum / idle : 0, run);
    }
    run->decisions = arrivals->shapes.len;
    tally_result(&tally, run);
}

void pack_run(const struct pack_options *o, uint64_t seed, struct pack_run *ret_run)
{
    struct pack_run run = {0};
    struct pack_arrivals arrivals;
    struct pack_placer p = {.cluster = o->cluster,
                            .list = o->list,
                            .mix = o->mix,
                            .policy = o->policy,
                            .random_ties = o->ties == PACK_TIES_RANDOM};
    rng_seed(&p.rng, seed);
    pack_arrivals_make(o->list, o->cluster->capacity, &p.rng, &arrivals);
    p.nodes = pack_nodes_ordered(o->cluster, o->ties, &p.rng);
    struct fragments f = {.of = calloc(o->cluster->count, sizeof(*f.of))};
    if (f.of == NULL)
        abort(); /* as in base/arena.h */
    bool library = o->policy->score == NULL;
    int64_t begun = o->cpu_ns();
    if (library)
        pack_sched_start(&p);
    else
        pack_place_start(&p);
    for (size_t i = 0; i < o->cluster->count; i++)
        fragments_update(&f, o->mix, p.nodes, i);
    place_all(o, &p, &arrivals, &f, &run);
    run.spent_ns = o->cpu_ns() - begun;
    if (library)
        pack_sched_end(&p);
    else
        pack_place_end(&p);
    free(f.of);
    free(p.nodes);
    vec_done(&arrivals.shapes);
    *ret_run = run;
}
