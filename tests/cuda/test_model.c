/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random histories of four processes that allocate in every way, against a naive model: lists of
 * what is live, summed anew each time. A failing seed is printed.
 */
#include <string.h>

#include "base/rng.h"
#include "harness.h"

#define PROCESSES 4
#define STEPS 4000
#define LIVE 64

enum what { NOTHING, LINEAR, PITCHED, POOLED, PHYSICAL, ARRAY, WHATS };

struct thing {
    enum what what;
    uint64_t bytes;
    cu_devptr ptr; /* of what has an address; of the mapping of PHYSICAL, 0 while unmapped */
    cu_vmm handle;
    uint32_t handles; /* references to it */
    struct cu_array *array;
};

struct model {
    struct dbl_shared *sh;
    struct rng rng;
    uint64_t seed, reserved;
    struct cu_pool *pool;
    cu_devptr range; /* LIVE places of 64 MiB to map into */
    struct thing things[LIVE];
};

static uint64_t up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t sum_of(const struct model *m, enum what what)
{
    uint64_t sum = 0;

    for (int i = 0; i < LIVE; i++)
        if (m->things[i].what == what)
            sum += up(m->things[i].bytes, 512);
    return sum;
}

static void compare(struct model *m)
{
    uint64_t value;

    SAME(dbl_process_bytes(m->sh, getpid(), 0, DBL_LINEAR), sum_of(m, LINEAR) + sum_of(m, PITCHED));
    SAME(dbl_process_bytes(m->sh, getpid(), 0, DBL_VMM), sum_of(m, PHYSICAL));
    SAME(dbl_process_bytes(m->sh, getpid(), 0, DBL_ARRAY), sum_of(m, ARRAY));
    SAME(dbl_process_bytes(m->sh, getpid(), 0, DBL_POOL), m->reserved);
    OK(cuMemPoolGetAttribute(m->pool, CU_POOL_USED_CURRENT, &value));
    SAME(value, sum_of(m, POOLED));
}

static void create_physical(struct model *m, struct thing *t)
{
    struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};

    t->bytes = (1 + rng_below(&m->rng, 16)) * 2 * MIB;
    OK(cuMemCreate(&t->handle, t->bytes, &prop, 0));
    t->handles = 1;
    t->ptr = 0;
}

static void create_array(struct model *m, struct thing *t)
{
    struct cu_array3d_desc desc = {.width = 1 + rng_below(&m->rng, 1000),
                                   .height = rng_below(&m->rng, 1000),
                                   .depth = rng_below(&m->rng, 4),
                                   .format = CU_FORMAT_FLOAT,
                                   .channels = 1U << rng_below(&m->rng, 3)};
    struct cu_array_need need;

    if (desc.height == 0)
        desc.depth = 0;
    OK(cuArray3DCreate_v2(&t->array, &desc));
    OK(cuArrayGetMemoryRequirements(&need, t->array, 0));
    t->bytes = need.bytes;
}

static void create(struct model *m, struct thing *t)
{
    size_t pitch, height = 1 + rng_below(&m->rng, 100);

    t->what = (enum what)(1 + rng_below(&m->rng, WHATS - 1));
    t->bytes = 1 + rng_below(&m->rng, rng_below(&m->rng, 2) ? 4096 : 48 * MIB);
    if (t->what == LINEAR) {
        OK(cuMemAlloc_v2(&t->ptr, t->bytes));
    } else if (t->what == PITCHED) {
        OK(cuMemAllocPitch_v2(&t->ptr, &pitch, t->bytes / height + 1, height, 4));
        t->bytes = pitch * height;
    } else if (t->what == POOLED) {
        OK(cuMemAllocAsync(&t->ptr, t->bytes, NULL));
        while (m->reserved < sum_of(m, POOLED))
            m->reserved += 32 * MIB;
    } else if (t->what == PHYSICAL) {
        create_physical(m, t);
    } else {
        create_array(m, t);
    }
}

/* A release, a mapping or the end of one: whatever leaves nothing behind ends the thing. */
static void touch_physical(struct model *m, struct thing *t)
{
    cu_devptr place = m->range + (uint64_t)(t - m->things) * 64 * MIB;

    switch (rng_below(&m->rng, 3)) {
    case 0:
        SAME(cuMemRelease(t->handle), t->handles > 0 ? CU_OK : CU_INVALID_VALUE);
        t->handles -= t->handles > 0;
        break;
    case 1:
        if (t->ptr == 0 && t->handles > 0) {
            OK(cuMemMap(place, t->bytes, 0, t->handle, 0));
            t->ptr = place;
        } else if (t->ptr != 0) {
            OK(cuMemUnmap(place, t->bytes));
            t->ptr = 0;
        }
        break;
    default:
        if (t->ptr == 0)
            break;
        OK(cuMemRetainAllocationHandle(&t->handle, (void *)(uintptr_t)t->ptr)); /* NOLINT */
        t->handles++;
    }
    if (t->handles == 0 && t->ptr == 0)
        t->what = NOTHING;
}

static void touch(struct model *m, struct thing *t)
{
    if (t->what == NOTHING) {
        create(m, t);
    } else if (t->what == PHYSICAL) {
        touch_physical(m, t);
    } else if (t->what == ARRAY) {
        OK(cuArrayDestroy(t->array));
        t->what = NOTHING;
    } else {
        bool now = rng_below(&m->rng, 2);

        OK(now ? cuMemFree_v2(t->ptr) : cuMemFreeAsync(t->ptr, NULL));
        SAME(cuMemFreeAsync(t->ptr, NULL), CU_INVALID_VALUE);
        t->what = NOTHING;
        /* cuMemFree synchronises before it frees, and so gives back what was unused till then. */
    }
}

static void synchronise(struct model *m)
{
    OK(cuCtxSynchronize());
    m->reserved = up(sum_of(m, POOLED), 32 * MIB);
}

static void live(void *arg)
{
    struct model *m = arg;

    begin_on(0);
    OK(cuDeviceGetDefaultMemPool(&m->pool, 0));
    OK(cuMemAddressReserve(&m->range, LIVE * 64 * MIB, 0, 0, 0));
    rng_seed(&m->rng, m->seed);
    for (int step = 0; step < STEPS; step++) {
        /* So that a free that synchronises finds nothing to give back. */
        synchronise(m);
        touch(m, &m->things[rng_below(&m->rng, LIVE)]);
        compare(m);
    }
}

static void four_processes(struct dbl_shared *sh)
{
    pid_t pids[PROCESSES];

    for (int i = 0; i < PROCESSES; i++) {
        struct model model = {.sh = sh, .seed = 100 + (uint64_t)i};

        pids[i] = spawn(live, &model);
    }
    for (int i = 0; i < PROCESSES; i++) {
        if (ended_well(pids[i]))
            continue;
        fprintf(stderr, "# seed %d\n", 100 + i);
        _exit(1);
    }
    SAME(dbl_bytes(sh, 0, DBL_KINDS), 0);
}

static void test_four_processes(void **state)
{
    struct dbl_config config = dbl_config_default;

    on_machine(four_processes, &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_four_processes)};

    return cmocka_run_group_tests_name("cuda model", tests, NULL, NULL);
}
