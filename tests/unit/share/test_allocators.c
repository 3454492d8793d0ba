/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's other ways to memory, one by one and all at once, within one limit. */
#include "machine.h"

#define LEFT (LIMIT - CONTEXT)

static size_t left_now(void)
{
    size_t left, total;

    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && total == LIMIT);
    return left;
}

/* What the driver has given is within the limit, and what the ledger says of it is not less. */
static void check_books(const struct machine *m)
{
    uint64_t real = dbl_bytes(m->driver, 0, DBL_KINDS);

    CHECK(real <= LIMIT);
    CHECK(gpu_region_held(m->region, 0) >= real);
}

PROGRAM(pools_are_charged_by_what_they_take)
{
    cu_devptr p[20];
    int n = 0;

    begin();
    CHECK(CU(cuMemAllocAsync)(&p[0], MIB, NULL) == CU_OK);
    CHECK(left_now() == LEFT - dbl_bytes(m->driver, 0, DBL_POOL));
    CHECK(CU(cuMemFreeAsync)(p[0], NULL) == CU_OK);
    CHECK(CU(cuStreamSynchronize)(NULL) == CU_OK);
    CHECK(dbl_bytes(m->driver, 0, DBL_POOL) == 0 && left_now() == LEFT);
    while (n < 20 && CU(cuMemAllocAsync)(&p[n], 30 * MIB, NULL) == CU_OK) {
        check_books(m);
        n++;
    }
    CHECK(n >= 5 && n < 20);
    while (n-- > 0)
        CHECK(CU(cuMemFree_v2)(p[n]) == CU_OK); /* not in the order of a stream: as legal */
    CHECK(CU(cuCtxSynchronize)() == CU_OK);
    CHECK(left_now() == LEFT);
}

PROGRAM(a_pool_of_ones_own)
{
    struct cu_pool_props props = {.type = CU_ALLOCATION_PINNED,
                                  .location = {CU_LOCATION_DEVICE, 0}};
    struct cu_pool *pool;
    cu_devptr p, q;

    begin();
    CHECK(CU(cuMemPoolCreate)(&pool, &props) == CU_OK);
    CHECK(CU(cuMemAllocFromPoolAsync)(&p, 100 * MIB, pool, NULL) == CU_OK);
    CHECK(CU(cuMemAllocFromPoolAsync)(&q, 100 * MIB, pool, NULL) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemAlloc_v2)(&q, 100 * MIB) == CU_OUT_OF_MEMORY);
    check_books(m);
    CHECK(CU(cuMemFreeAsync)(p, NULL) == CU_OK);
    CHECK(CU(cuCtxSynchronize)() == CU_OK);
    CHECK(CU(cuMemPoolTrimTo)(pool, 0) == CU_OK);
    CHECK(left_now() == LEFT);
    CHECK(CU(cuMemPoolDestroy)(pool) == CU_OK);
    CHECK(CU(cuMemAllocFromPoolAsync)(&p, MIB, NULL, NULL) == CU_INVALID_VALUE);
}

/* The charge of a linear block that is freed behind a kernel stays until the kernel is over. */
PROGRAM(a_linear_block_freed_in_order_goes_in_order)
{
    struct cu_module *module;
    struct cu_function *work;
    cu_devptr p, q;

    begin();
    CHECK(CU(cuModuleLoadData)(&module, "kernel work 5000000 1\n") == CU_OK);
    CHECK(CU(cuModuleGetFunction)(&work, module, "work") == CU_OK);
    CHECK(CU(cuMemAlloc_v2)(&p, LEFT / 2 + MIB) == CU_OK);
    CHECK(CU(cuLaunchKernel)(work, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == CU_OK);
    CHECK(CU(cuMemFreeAsync)(p, NULL) == CU_OK);
    CHECK(CU(cuMemAlloc_v2)(&q, LEFT / 2 + MIB) == CU_OUT_OF_MEMORY);
    check_books(m);
    dbl_advance(m->driver, 10000000);
    CHECK(CU(cuCtxSynchronize)() == CU_OK);
    CHECK(CU(cuMemAlloc_v2)(&q, LEFT / 2 + MIB) == CU_OK);
    CHECK(CU(cuMemFreeAsync)(q, NULL) == CU_OK);
    CHECK(CU(cuMemFreeAsync)(q, NULL) != CU_OK);
    CHECK(CU(cuCtxSynchronize)() == CU_OK && left_now() == LEFT);
}

PROGRAM(physical_memory_lives_as_long_as_a_mapping)
{
    struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};
    cu_vmm handle, same;
    cu_devptr at;

    begin();
    CHECK(CU(cuMemAddressReserve)(&at, 128 * MIB, 0, 0, 0) == CU_OK);
    CHECK(CU(cuMemCreate)(&handle, LIMIT, &prop, 0) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemCreate)(&handle, 64 * MIB, &prop, 0) == CU_OK);
    CHECK(CU(cuMemMap)(at, 64 * MIB, 0, handle, 0) == CU_OK);
    CHECK(CU(cuMemRelease)(handle) == CU_OK);
    CHECK(left_now() == LEFT - 64 * MIB);
    CHECK(CU(cuMemRetainAllocationHandle)(&same, (void *)(uintptr_t)at) == CU_OK);
    CHECK(CU(cuMemMap)(at + 64 * MIB, 64 * MIB, 0, same, 0) == CU_OK);
    CHECK(CU(cuMemUnmap)(at, 128 * MIB) == CU_OK); /* both at once */
    CHECK(left_now() == LEFT - 64 * MIB);
    check_books(m);
    CHECK(CU(cuMemRelease)(same) == CU_OK);
    CHECK(left_now() == LEFT && dbl_bytes(m->driver, 0, DBL_VMM) == 0);
    CHECK(CU(cuMemAddressFree)(at, 128 * MIB) == CU_OK);
}

PROGRAM(arrays_are_charged_by_their_requirements)
{
    const struct cu_array_desc flat = {1000, 1000, CU_FORMAT_FLOAT, 4};
    const struct cu_array3d_desc deep = {256, 256, 256, CU_FORMAT_U8, 2, 0};
    const struct cu_array3d_desc huge = {SIZE_MAX / 4, 1000, 1000, CU_FORMAT_FLOAT, 4, 0};
    struct cu_array *a, *b;
    struct cu_mipmap *mip;

    begin();
    CHECK(CU(cuArrayCreate_v2)(&a, &flat) == CU_OK);
    CHECK(left_now() == LEFT - dbl_bytes(m->driver, 0, DBL_ARRAY));
    CHECK(CU(cuArray3DCreate_v2)(&b, &deep) == CU_OK);
    CHECK(CU(cuMipmappedArrayCreate)(&mip, &deep, 4) == CU_OK);
    CHECK(left_now() == LEFT - dbl_bytes(m->driver, 0, DBL_ARRAY));
    CHECK(CU(cuArray3DCreate_v2)(&b, &huge) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuArrayDestroy)(a) == CU_OK);
    CHECK(CU(cuMipmappedArrayDestroy)(mip) == CU_OK);
    CHECK(left_now() == LEFT - dbl_bytes(m->driver, 0, DBL_ARRAY));
    check_books(m);
}

PROGRAM(graphs_are_charged_when_they_are_launched)
{
    struct cu_alloc_node alloc = {
        .props = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}},
        .bytes = 100 * MIB};
    struct cu_graph *graph;
    struct cu_graph_exec *exec;
    struct cu_node *node, *end;
    cu_devptr p;

    begin();
    CHECK(CU(cuGraphCreate)(&graph, 0) == CU_OK);
    CHECK(CU(cuGraphAddMemAllocNode)(&node, graph, NULL, 0, &alloc) == CU_OK);
    CHECK(CU(cuGraphAddMemFreeNode)(&end, graph, &node, 1, alloc.ret_ptr) == CU_OK);
    CHECK(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CU_OK);
    CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OK);
    CHECK(CU(cuGraphLaunch)(exec, NULL) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(CU(cuGraphLaunch)(exec, NULL) == CU_OK);
    check_books(m);
    CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuCtxSynchronize)() == CU_OK);
    CHECK(CU(cuGraphExecDestroy)(exec) == CU_OK);
    CHECK(CU(cuDeviceGraphMemTrim)(0) == CU_OK);
    CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OK);
}

/* ---- all at once -------------------------------------------------------------------------- */

enum way { LINEAR, MANAGED, POOL, PHYSICAL, ARRAY, WAYS };

struct piece {
    enum way way;
    uint64_t id; /* 0: none */
};

static cu_result get(enum way way, uint64_t bytes, uint64_t *ret_id)
{
    const struct cu_array_desc desc = {bytes / 4096, 1024, CU_FORMAT_FLOAT, 1};
    struct cu_alloc_prop prop = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, 0}};

    switch (way) {
    case LINEAR:
        return CU(cuMemAlloc_v2)(ret_id, bytes);
    case MANAGED:
        return CU(cuMemAllocManaged)(ret_id, bytes, CU_ATTACH_GLOBAL);
    case POOL:
        return CU(cuMemAllocAsync)(ret_id, bytes, NULL);
    case PHYSICAL:
        return CU(cuMemCreate)(ret_id, (bytes + 2 * MIB - 1) & ~(2 * MIB - 1), &prop, 0);
    default:
        return CU(cuArrayCreate_v2)((struct cu_array **)ret_id, &desc);
    }
}

static cu_result put(const struct piece *p, struct rng *rng)
{
    switch (p->way) {
    case PHYSICAL:
        return CU(cuMemRelease)(p->id);
    case ARRAY:
        return CU(cuArrayDestroy)((struct cu_array *)(uintptr_t)p->id);
    default:
        return p->way != MANAGED && rng_below(rng, 2) ? CU(cuMemFreeAsync)(p->id, NULL)
                                                      : CU(cuMemFree_v2)(p->id);
    }
}

/* Pieces of every way, given and freed again. Returns how many of the calls failed. */
static int there_and_back(struct rng *rng)
{
    struct piece pieces[5 * WAYS] = {0};
    int failed = 0;

    for (int i = 0; i < 5 * WAYS; i++) {
        pieces[i].way = (enum way)(i % WAYS);
        if (get(pieces[i].way, 2 * MIB, &pieces[i].id) != CU_OK) {
            pieces[i].id = 0;
            failed++;
        }
    }
    for (int i = 0; i < 5 * WAYS; i++)
        for (int tries = 0; pieces[i].id && put(&pieces[i], rng) != CU_OK; tries++) {
            CHECK(tries == 0);
            failed++;
        }
    CHECK(CU(cuCtxSynchronize)() == CU_OK);
    return failed;
}

PROGRAM(a_call_that_fails_costs_nothing_whichever_it_is)
{
    static const enum dbl_fail kinds[] = {DBL_FAIL_ALLOC, DBL_FAIL_POOL, DBL_FAIL_VMM,
                                          DBL_FAIL_ARRAY, DBL_FAIL_FREE};
    struct rng rng;

    begin();
    rng_seed(&rng, 5);
    CHECK(there_and_back(&rng) == 0 && left_now() == LEFT);
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (int nth = 1; nth <= 5; nth++) {
            dbl_fail_nth(m->driver, kinds[k], nth, CU_OUT_OF_MEMORY);
            CHECK(there_and_back(&rng) == 1);
            check_books(m);
            CHECK(left_now() == LEFT);
        }
    CHECK(dbl_bytes(m->driver, 0, DBL_KINDS) == CONTEXT);
}

/* Counts what was given and what was refused, which is up to others where there are any. */
static int given, refused;

static void mix(struct machine *m)
{
    struct piece pieces[40] = {0};
    struct rng rng;

    begin();
    rng_seed(&rng, (uint64_t)getpid());
    for (int i = 0; i < 5000; i++) {
        struct piece *p = &pieces[rng_below(&rng, 40)];
        if (p->id) {
            CHECK(put(p, &rng) == CU_OK);
            p->id = 0;
        } else {
            p->way = (enum way)rng_below(&rng, WAYS);
            if (get(p->way, MIB + rng_below(&rng, 12 * MIB), &p->id) == CU_OK)
                given++;
            else
                p->id = 0, refused++;
        }
        CHECK(dbl_bytes(m->driver, 0, DBL_KINDS) <= LIMIT);
        if (rng_below(&rng, 8) == 0)
            CHECK(CU(cuCtxSynchronize)() == CU_OK);
    }
    for (int i = 0; i < 40; i++)
        if (pieces[i].id)
            CHECK(put(&pieces[i], &rng) == CU_OK);
    CHECK(CU(cuCtxSynchronize)() == CU_OK);
}

PROGRAM(one_process_with_all_of_them)
{
    mix(m);
    CHECK(given > 500 && refused > 50);
    CHECK(left_now() == LEFT);
    CHECK(dbl_bytes(m->driver, 0, DBL_KINDS) == CONTEXT);
}

ALONE(processes_with_all_of_them)
{
    struct machine *m = machine();
    pid_t pids[2];

    for (int i = 0; i < 2; i++)
        pids[i] = program(mix, m);
    for (int i = 0; i < 2; i++) {
        int status = -1;
        CHECK(serve(m, pids[i], 60000, &status));
        CHECK(status == 0);
    }
    serve(m, 0, 20, NULL);
    CHECK(gpu_region_held(m->region, 0) == 0);
    end_machine(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pools_are_charged_by_what_they_take),
        cmocka_unit_test(test_a_pool_of_ones_own),
        cmocka_unit_test(test_a_linear_block_freed_in_order_goes_in_order),
        cmocka_unit_test(test_physical_memory_lives_as_long_as_a_mapping),
        cmocka_unit_test(test_arrays_are_charged_by_their_requirements),
        cmocka_unit_test(test_graphs_are_charged_when_they_are_launched),
        cmocka_unit_test(test_a_call_that_fails_costs_nothing_whichever_it_is),
        cmocka_unit_test(test_one_process_with_all_of_them),
        cmocka_unit_test(test_processes_with_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
