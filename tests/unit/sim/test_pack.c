/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The packing benchmark on clusters that are small enough to count by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/pack.h"

#define GIB (1LL << 30)

static const char *const only_p100[] = {"P100"};

static struct openb_node node_rows[] = {
    {"b", "T4", 32000, 64 * GIB, 4},
    {"a", "P100", 16000, 64 * GIB, 2},
    {"cpu", NULL, 64000, 64 * GIB, 0},
};
static struct openb_pod pod_rows[] = {
    {.name = "half",
     .cpu_milli = 2000,
     .memory_bytes = GIB,
     .device_count = 1,
     .device_milli = 500},
    {.name = "half",
     .cpu_milli = 2000,
     .memory_bytes = GIB,
     .device_count = 1,
     .device_milli = 500},
    {.name = "one",
     .cpu_milli = 8000,
     .memory_bytes = GIB,
     .device_count = 1,
     .device_milli = 1000},
    {.name = "pair",
     .cpu_milli = 4000,
     .memory_bytes = GIB,
     .device_count = 2,
     .device_milli = 1000,
     .model_count = 1,
     .models = only_p100},
    {.name = "cpu", .cpu_milli = 4000, .memory_bytes = GIB},
};

struct small {
    struct pack_cluster cluster;
    struct pack_list list;
    struct pack_mix *mix;
};

static void small_make(struct small *s)
{
    struct openb_nodes nodes = {.items = node_rows, .count = ARRAY_LEN(node_rows)};
    struct openb_pods pods = {.items = pod_rows, .count = ARRAY_LEN(pod_rows)};
    assert_int_equal(pack_cluster_make(&nodes, &s->cluster, NULL), 0);
    assert_int_equal(pack_list_make(&pods, &s->cluster, &s->list, NULL), 0);
    s->mix = pack_mix_make(&s->list, s->cluster.model_count);
}

static void small_done(struct small *s)
{
    pack_mix_free(s->mix);
    pack_list_free(&s->list);
    pack_cluster_free(&s->cluster);
}

static int64_t no_clock(void)
{
    return 0;
}

static void nodes_with_gpus_come_by_name(void **state)
{
    struct small s;
    small_make(&s);
    assert_int_equal(s.cluster.count, 2);
    assert_string_equal(s.cluster.nodes[0].node->name, "a");
    assert_int_equal(s.cluster.capacity, 6000);
    assert_int_equal(s.list.shape_count, 4);
    assert_int_equal(s.list.shapes[0].frequency, 2);
    small_done(&s);
}

static void nodes_are_shuffled_once_a_run(void **state)
{
    struct small s;
    small_make(&s);
    bool first[2] = {false, false};
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct rng rng;
        rng_seed(&rng, seed);
        struct pack_node *shuffled = pack_nodes_ordered(&s.cluster, PACK_TIES_ORDER, &rng);
        struct pack_node *named = pack_nodes_ordered(&s.cluster, PACK_TIES_NAME, &rng);
        bool swapped = shuffled[0].node != s.cluster.nodes[0].node;
        assert_ptr_equal(shuffled[0].node, s.cluster.nodes[swapped ? 1 : 0].node);
        assert_ptr_equal(shuffled[1].node, s.cluster.nodes[swapped ? 0 : 1].node);
        assert_memory_equal(named, s.cluster.nodes, s.cluster.count * sizeof(*named));
        first[swapped] = true;
        free(shuffled);
        free(named);
    }
    assert_true(first[0] && first[1]);
    small_done(&s);
}

/* Pods without GPUs are alike to Packing: they go to the first node that has room. */
static void equal_nodes_are_taken_in_their_order(void **state)
{
    struct small s;
    small_make(&s);
    for (uint64_t seed = 1; seed < 5; seed++) {
        struct pack_placer placer = {.cluster = &s.cluster,
                                     .list = &s.list,
                                     .mix = s.mix,
                                     .policy = pack_policy_find("packing")};
        rng_seed(&placer.rng, seed);
        placer.nodes = pack_nodes_ordered(&s.cluster, PACK_TIES_ORDER, &placer.rng);
        pack_place_start(&placer);
        for (int64_t room = placer.nodes[0].cpu / 4000; room > 0; room--)
            assert_int_equal(pack_place_pod(&placer, 3), 0);
        assert_int_equal(pack_place_pod(&placer, 3), 1);
        pack_place_end(&placer);
        free(placer.nodes);
    }
    small_done(&s);
}

static void arrivals_reach_the_end_and_not_more(void **state)
{
    struct small s;
    small_make(&s);
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct rng rng;
        struct pack_arrivals a;
        rng_seed(&rng, seed);
        pack_arrivals_make(&s.list, s.cluster.capacity, &rng, &a);
        int64_t sum = 0;
        for (size_t i = 0; i < a.shapes.len; i++)
            sum += pack_shape_milli(&s.list.shapes[a.shapes.items[i]]);
        assert_in_range(sum, 6800, 8800); /* 7800, give or take one pod's further device */
        vec_done(&a.shapes);
    }
    small_done(&s);
}

/* By the definition, request by request. The five pods are all within the 95%. */
static double counted(const struct small *s, const struct pack_node *n)
{
    double sum = 0;
    for (size_t i = 0; i < s->list.shape_count; i++) {
        const struct pack_shape *shape = &s->list.shapes[i];
        uint32_t count = 0;
        double small = 0;
        for (uint32_t d = 0; d < n->devices; d++) {
            count += n->room[d] >= shape->milli;
            small += n->room[d] < shape->milli ? n->room[d] : 0;
        }
        bool useless = shape->devices == 0 || n->cpu < shape->cpu || count < shape->devices ||
                       !(shape->models & (1ULL << n->model));
        sum +=
            (double)shape->frequency / (double)s->list.count * (useless ? (double)n->idle : small);
    }
    return sum;
}

static void fragmentation_is_as_defined(void **state)
{
    struct small s;
    small_make(&s);
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 500; i++) {
        struct pack_node n = s.cluster.nodes[rng_below(&rng, 2)];
        n.cpu = (int64_t)rng_below(&rng, 12) * 1000;
        n.idle = 0;
        for (uint32_t d = 0; d < n.devices; d++)
            n.idle += n.room[d] = (int32_t)rng_below(&rng, 5) * 250;
        assert_true(fabs(counted(&s, &n) - pack_fragmentation(s.mix, &n)) < 1e-6);
    }
    small_done(&s);
}

static void every_policy_keeps_the_books(void **state)
{
    struct small s;
    small_make(&s);
    const struct pack_policy *p;
    for (size_t i = 0; (p = pack_policy_at(i)) != NULL; i++) {
        struct pack_options o = {&s.cluster, &s.list, s.mix, p, PACK_TIES_ORDER, no_clock};
        struct pack_run first, again;
        pack_run(&o, 11, &first);
        pack_run(&o, 11, &again);
        uint64_t arrived = 0;
        for (int c = 0; c < PACK_CLASSES; c++) {
            assert_true(first.dropped[c] <= first.arrived[c]);
            assert_int_equal(first.dropped[c], again.dropped[c]);
            assert_true(first.points[100].dropped[c] <= first.dropped[c]);
            assert_true(first.points[100].dropped[c] <= first.points[100].arrived[c]);
            arrived += first.arrived[c];
        }
        assert_int_equal(arrived, first.decisions);
        for (int x = 0; x < PACK_POINTS; x++) {
            double left = first.points[x].unallocated;
            assert_true(isnan(left) || (left >= fmax(0, 99.4 - x) && left <= 100));
        }
    }
    small_done(&s);
}

static void a_placed_pod_fits_where_the_policy_puts_it(void **state)
{
    struct small s;
    small_make(&s);
    const struct pack_policy *p;
    for (size_t i = 0; (p = pack_policy_at(i)) != NULL; i++) {
        struct pack_placer placer = {
            .cluster = &s.cluster, .list = &s.list, .mix = s.mix, .policy = p};
        bool library = p->score == NULL;
        rng_seed(&placer.rng, 3);
        placer.nodes = pack_nodes_ordered(&s.cluster, PACK_TIES_ORDER, &placer.rng);
        library ? pack_sched_start(&placer) : pack_place_start(&placer);
        for (int k = 0; k < 40; k++) {
            uint32_t shape = (uint32_t)(k * 7 % 4);
            bool room = false;
            for (size_t n = 0; n < s.cluster.count; n++)
                room = room || pack_fits(&placer.nodes[n], &s.list.shapes[shape]);
            int64_t node =
                library ? pack_sched_pod(&placer, shape) : pack_place_pod(&placer, shape);
            assert_int_equal(room, node >= 0);
            for (size_t n = 0; n < s.cluster.count; n++)
                for (uint32_t d = 0; d < placer.nodes[n].devices; d++)
                    assert_in_range(placer.nodes[n].room[d], 0, PACK_WHOLE);
        }
        library ? pack_sched_end(&placer) : pack_place_end(&placer);
        free(placer.nodes);
    }
    small_done(&s);
}

static void slices_round_fractions_up(void **state)
{
    struct small s;
    small_make(&s);
    struct pack_shape *half = &s.list.shapes[0], *one = &s.list.shapes[1];
    pack_list_slice(&s.list, 7);
    assert_int_equal(half->asked, 500);
    assert_int_equal(half->milli, 4 * 142);
    assert_int_equal(pack_shape_asked(half), 500);
    assert_int_equal(one->milli, PACK_WHOLE);
    pack_list_slice(&s.list, 2);
    assert_int_equal(half->milli, 500);
    pack_list_slice(&s.list, 1);
    assert_int_equal(half->milli, PACK_WHOLE); /* a device each */
    struct pack_options o = {&s.cluster, &s.list, s.mix, pack_policy_find("allot"), 0, no_clock};
    struct pack_run run;
    pack_run(&o, 5, &run);
    assert_int_equal(run.decisions,
                     run.arrived[0] + run.arrived[1] + run.arrived[2] + run.arrived[3]);
    small_done(&s);
}

/* Two thirds of an hour each, from the list's own times. */
static void with_times(struct openb_pod *pods)
{
    memcpy(pods, pod_rows, sizeof(pod_rows));
    for (size_t i = 0; i < ARRAY_LEN(pod_rows); i++) {
        pods[i].qos = OPENB_LS;
        pods[i].created_s = 100;
        pods[i].scheduled_s = 200;
        pods[i].deleted_s = 2600;
    }
}

static void a_steady_state_carries_its_load(void **state)
{
    struct openb_pod rows[ARRAY_LEN(pod_rows)];
    with_times(rows);
    struct openb_pods pods = {.items = rows, .count = ARRAY_LEN(rows)};
    struct small s;
    small_make(&s);
    const struct pack_policy *p;
    for (size_t i = 0; (p = pack_policy_at(i)) != NULL; i++) {
        struct pack_options o = {&s.cluster, &s.list, s.mix, p, PACK_TIES_ORDER, no_clock};
        struct pack_steady low, again, high;
        assert_int_equal(pack_steady_run(&o, &pods, 20, 2, 3, &low, NULL), 0);
        assert_int_equal(pack_steady_run(&o, &pods, 20, 2, 3, &again, NULL), 0);
        assert_int_equal(pack_steady_run(&o, &pods, 150, 2, 3, &high, NULL), 0);
        assert_memory_equal(&low, &again, sizeof(low));
        assert_true(low.allocated > 10 && low.allocated < 30);
        assert_true(fabs(low.allocated - low.load) < 3);
        assert_true(low.classes[PACK_FRACTION].p50 == 0);
        assert_true(high.load > 120 && high.allocated <= 100 && high.allocated > low.allocated);
        uint64_t waiting = 0;
        for (int c = 0; c < PACK_CLASSES; c++) {
            const struct pack_steady_class *k = &high.classes[c];
            assert_true(k->p50 <= k->p95 && k->p95 <= k->p99 && k->p99 <= 3 * 86400);
            waiting += k->waiting;
        }
        assert_true(waiting > 0);
    }
    small_done(&s);
}

static void a_steady_state_needs_to_know_how_long_pods_run(void **state)
{
    struct openb_pods pods = {.items = pod_rows, .count = ARRAY_LEN(pod_rows)};
    struct small s;
    struct pack_steady steady;
    struct err err = ERR_INIT;
    small_make(&s);
    struct pack_options o = {&s.cluster, &s.list, s.mix, pack_policy_at(0), 0, no_clock};
    assert_true(pack_steady_run(&o, &pods, 50, 1, 1, &steady, &err) < 0);
    assert_string_equal(err.text, "the list does not say how long its pods ran");
    small_done(&s);
}

static void empty_lists_are_refused(void **state)
{
    struct openb_nodes nodes = {.items = &node_rows[2], .count = 1};
    struct openb_pods pods = {.items = &pod_rows[4], .count = 1};
    struct pack_cluster c = {0};
    struct pack_list l;
    struct err err = ERR_INIT;
    assert_true(pack_cluster_make(&nodes, &c, &err) < 0);
    assert_string_equal(err.text, "no node has a GPU");
    assert_true(pack_list_make(&pods, &c, &l, &err) < 0);
    assert_string_equal(err.text, "no pod asks for a GPU");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_with_gpus_come_by_name),
        cmocka_unit_test(nodes_are_shuffled_once_a_run),
        cmocka_unit_test(equal_nodes_are_taken_in_their_order),
        cmocka_unit_test(arrivals_reach_the_end_and_not_more),
        cmocka_unit_test(fragmentation_is_as_defined),
        cmocka_unit_test(every_policy_keeps_the_books),
        cmocka_unit_test(a_placed_pod_fits_where_the_policy_puts_it),
        cmocka_unit_test(slices_round_fractions_up),
        cmocka_unit_test(a_steady_state_carries_its_load),
        cmocka_unit_test(a_steady_state_needs_to_know_how_long_pods_run),
        cmocka_unit_test(empty_lists_are_refused),
    };
    return cmocka_run_group_tests_name("sim/pack", tests, NULL, NULL);
}
