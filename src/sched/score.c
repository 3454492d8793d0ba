/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/score.h"

#include <string.h>

#include "sched/fit.h"
#include "sched/shape.h"

/* Weights, chosen on one half of the public traces' shuffles; see docs/benchmarks.md. */
#define FRAGMENT_PERMILLE 100 /* of useful idle GPU, beside holes; without them 1000 */
#define LEFTOVER_MILLI 30     /* a wholly free node of the largest kind, against a full one */
#define STARVE_PERMILLE 400   /* of a GPU that cannot be fed */
#define SCARCE_PERMILLE 700

/* Room on the devices of a node that are not slices, largest first. */
struct rooms {
    uint32_t count;
    int32_t idle;  /* sum */
    int64_t worth; /* sum */
    int16_t room[DEVICES_MAX];
};

static int64_t cpu_free(const struct node *n, unsigned mask)
{
    int64_t most = 0;
    if (n->cpu == SCHED_UNLIMITED)
        return SCHED_UNLIMITED;
    for (int v = 0; v < VIEWS; v++)
        if ((mask & MASK(v)) && n->cpu_used[v] > most)
            most = n->cpu_used[v];
    return n->cpu - most;
}

static int16_t device_room(const struct device *d, unsigned mask)
{
    int64_t room = WHOLE_MILLI;
    for (int v = 0; v < VIEWS; v++) {
        const struct use *u = &d->use[v];
        if (!(mask & MASK(v)) || u->tenants == 0)
            continue;
        int64_t left = WHOLE_MILLI - u->milli;
        if (u->memory > 0) { /* BYTES_MAX times a thousand does not overflow */
            int64_t memory = (d->memory - u->memory) * WHOLE_MILLI / d->memory;
            left = memory < left ? memory : left;
        }
        left = left < WHOLE_MILLI ? left : WHOLE_MILLI - 1; /* not idle */
        room = left < room ? left : room;
    }
    return (int16_t)room;
}

/* Moves the room at I, which has become ROOM, down to its place. */
static void rooms_sink(struct rooms *r, uint32_t i, int16_t room)
{
    for (; i + 1 < r->count && r->room[i + 1] > room; i++)
        r->room[i] = r->room[i + 1];
    r->room[i] = room;
}

static void rooms_of(const struct score_mix *mix, const struct node *n, unsigned mask,
                     struct rooms *r)
{
    r->count = 0;
    r->idle = 0;
    r->worth = 0;
    for (uint32_t d = 0; d < n->device_count; d++) {
        if (n->devices[d].mig != NULL)
            continue;
        int16_t room = device_room(&n->devices[d], mask);
        uint32_t i = r->count++;
        for (; i > 0 && r->room[i - 1] < room; i--)
            r->room[i] = r->room[i - 1];
        r->room[i] = room;
        r->idle += room;
        r->worth += mix->worth[room];
    }
}

/* MILLI are taken of a device that has ROOM. */
static void rooms_take(const struct score_mix *mix, struct rooms *r, int16_t room, int32_t milli)
{
    uint32_t i = r->count - 1;
    while (i > 0 && r->room[i] != room)
        i--;
    int32_t left = r->room[i] - milli;
    left = left > 0 ? left : 0;
    r->idle -= r->room[i] - left;
    r->worth -= mix->worth[r->room[i]] - mix->worth[left];
    rooms_sink(r, i, (int16_t)left);
}

static uint32_t mix_row(const struct score_mix *mix, const char *type)
{
    for (uint32_t i = 0; i < mix->type_count; i++)
        if (mix->types[i] == type)
            return i + 1;
    return 0;
}

/* Of the mix, by need, whose type and CPU a node of that ROW with CPU to spare offers. */
static const int32_t *mix_weights(const struct score_mix *mix, uint32_t row, int64_t cpu)
{
    uint32_t low = 0, high = mix->cpu_count; /* how many amounts are not above CPU */
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (mix->cpus[mid] <= cpu)
            low = mid + 1;
        else
            high = mid;
    }
    return mix->weight + (size_t)(row * (mix->cpu_count + 1) + low) * mix->need_count;
}

/* Idle GPU that is of use to the mix, in its mean. */
static int64_t useful(const struct score_mix *mix, const int32_t *weights, const struct rooms *r)
{
    int64_t sum = 0, large = 0;
    uint32_t i = 0;
    for (uint32_t k = 0; k < mix->need_count; k++) {
        while (i < r->count && r->room[i] >= mix->needs[k].milli)
            large += r->room[i++];
        if (i >= mix->needs[k].count)
            sum += weights[k] * large;
    }
    return sum;
}

/* ---- one node as it is before the placement ---------------------------------------------- */

struct before {
    const struct score_mix *mix;
    uint32_t row, kind;
    int64_t cpu;
    int64_t useful;
    struct rooms rooms;
};

static void before_init(struct before *b, const struct score_mix *mix, const struct node *n,
                        unsigned mask)
{
    b->mix = mix;
    b->row = mix_row(mix, n->gpu_type);
    b->kind = n->kind;
    b->cpu = cpu_free(n, mask);
    rooms_of(mix, n, mask, &b->rooms);
    b->useful = useful(mix, mix_weights(mix, b->row, b->cpu), &b->rooms);
}

/* Idle GPU that CPU cannot feed, in milli. */
static int64_t starved(const struct score_mix *mix, int64_t cpu, int64_t idle)
{
    if (cpu == SCHED_UNLIMITED || mix->cpu_per_gpu == 0)
        return 0;
    int64_t fed = cpu * WHOLE_MILLI / mix->cpu_per_gpu;
    return idle > fed ? idle - fed : 0;
}

static int64_t leftover(const struct score_mix *mix, int64_t cpu, int64_t idle)
{
    int64_t sum = idle * SCORE_ONE / mix->milli_max;
    if (cpu != SCHED_UNLIMITED)
        sum += cpu * SCORE_ONE / mix->cpu_max;
    return LEFTOVER_MILLI * sum / 2;
}

/* What it costs that CPU and TAKEN milli-GPU are gone and the rooms are as AFTER says. */
static int64_t cost(const struct before *b, int64_t cpu_taken, const struct rooms *after)
{
    const struct score_mix *mix = b->mix;
    int64_t taken = b->rooms.idle - after->idle;
    int64_t cpu = b->cpu == SCHED_UNLIMITED ? b->cpu : b->cpu - cpu_taken;
    int64_t holes = b->rooms.worth - after->worth - taken * SCORE_ONE;
    int64_t lost =
        b->useful - useful(mix, mix_weights(mix, b->row, cpu), after) - taken * SCORE_ONE;
    int64_t unfed = starved(mix, cpu, after->idle) - starved(mix, b->cpu, b->rooms.idle);
    int64_t fragment = 1000 - mix->holes_permille * (1000 - FRAGMENT_PERMILLE) / 1000;
    return holes * mix->holes_permille / 1000 + lost * fragment / 1000 +
           leftover(mix, cpu, after->idle) + unfed * SCORE_ONE * STARVE_PERMILLE / 1000 +
           taken * mix->scarcity[b->kind] * SCARCE_PERMILLE / 1000;
}

static void copy_rooms(struct rooms *to, const struct rooms *from)
{
    to->count = from->count;
    to->idle = from->idle;
    to->worth = from->worth;
    memcpy(to->room, from->room, from->count * sizeof(to->room[0]));
}

/* Compute that the shape takes of the device, or its memory in such terms. */
static int32_t shape_milli(const struct shape *shape, const struct device *d)
{
    if (shape->device_milli > 0 || d->memory == 0)
        return shape->device_milli;
    return (int32_t)((shape->device_memory * WHOLE_MILLI + d->memory - 1) / d->memory);
}

/* One device for a fraction: each that differs is tried; of equals the first. */
static int64_t choose_device(const struct before *b, const struct node *n,
                             const struct shape *shape, unsigned mask, uint16_t *device)
{
    struct rooms after;
    int64_t best = INT64_MAX;
    int16_t tried = -1;
    for (uint32_t d = 0; d < n->device_count; d++) {
        uint16_t one = (uint16_t)d;
        int16_t room = device_room(&n->devices[d], mask);
        int32_t milli = shape_milli(shape, &n->devices[d]);
        if (room == tried || !fit_devices(n, shape, mask, &one, 1))
            continue;
        tried = room;
        copy_rooms(&after, &b->rooms);
        rooms_take(b->mix, &after, room, milli);
        int64_t c = cost(b, shape->cpu, &after);
        if (c >= best)
            continue;
        best = c;
        *device = one;
    }
    return best;
}

int64_t score_place(const struct score_mix *mix, const struct node *n, const struct shape *shape,
                    unsigned mask, uint16_t *devices, uint32_t count)
{
    struct before b;
    before_init(&b, mix, n, mask);
    if (count == 1 && shape->mig_count == 0 && shape_whole(shape) == 0 &&
        shape->only_devices == NULL)
        return choose_device(&b, n, shape, mask, devices);
    struct rooms after;
    copy_rooms(&after, &b.rooms);
    for (uint32_t k = 0; k < count && shape->mig_count == 0; k++) {
        const struct device *d = &n->devices[devices[k]];
        rooms_take(mix, &after, device_room(d, mask), shape_milli(shape, d));
    }
    return cost(&b, shape->cpu, &after);
}

int64_t score_fragmentation(const struct score_mix *mix, const struct node *n, unsigned mask)
{
    struct before b;
    before_init(&b, mix, n, mask);
    return b.rooms.idle * SCORE_ONE - b.useful;
}
