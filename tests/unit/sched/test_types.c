/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quota per GPU type: counted where work is placed, explained by type, checked when it is set.
 */
#include <errno.h>
#include <string.h>

#include "small_world.h"

static int team_with(struct small_world *w, const struct sched_type_quota *types, uint32_t count)
{
    struct sched_team team = {.id = 1,
                              .weight = 1,
                              .limit = {SCHED_UNLIMITED, SCHED_UNLIMITED, SCHED_UNLIMITED},
                              .types = types,
                              .type_count = count};
    return sched_team_set(w->s, &team);
}

static struct sched_type_quota limited(const char *type, int64_t limit)
{
    return (struct sched_type_quota){type, SCHED_UNLIMITED, limit};
}

static int64_t used(struct small_world *w, const char *type)
{
    int64_t milli = -1;
    assert_int_equal(sched_team_type_used(w->s, 1, type, &milli), 0);
    return milli;
}

static void test_use_is_counted_by_the_type_of_the_node(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    world_node(&w, 1, 4); /* H100 */
    struct sched_type_quota h100 = limited("H100", 2000);
    assert_int_equal(team_with(&w, &h100, 1), 0);
    uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    world_job(&w, (struct job){.team = 1, .gpu_milli = 500});
    world_settle(&w);
    assert_int_equal(used(&w, "H100"), 1500);
    int64_t ignored;
    assert_int_equal(sched_team_type_used(w.s, 1, "A100", &ignored), -ENOENT);
    assert_int_equal(sched_team_type_used(w.s, 9, "H100", &ignored), -ENOENT);
    world_finish(&w, job, 0);
    assert_int_equal(used(&w, "H100"), 500);
    struct sched_type_quota both[] = {limited("A100", 1000), limited("H100", 1000)};
    assert_int_equal(team_with(&w, both, 2), 0); /* sums follow a change of what is counted */
    assert_int_equal(used(&w, "H100"), 500);
    assert_int_equal(used(&w, "A100"), 0);
    world_done(&w);
}

static void test_the_explanation_speaks_of_the_type(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_explanation e;
    world_init(&w);
    world_node(&w, 1, 4);
    struct sched_type_quota h100 = limited("H100", 2000);
    assert_int_equal(team_with(&w, &h100, 1), 0);
    uint64_t first = world_job(&w, (struct job){.team = 1, .gpu_milli = 1000});
    uint64_t second = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
    world_settle(&w);
    assert_int_equal(sched_explain(w.s, second, w.now_ms, &e), 0);
    assert_int_equal(e.reason, SCHED_REASON_TEAM_LIMIT);
    assert_string_equal(e.gpu_type, "H100");
    assert_int_equal(e.team, 1);
    assert_int_equal(e.limit, 2000);
    assert_int_equal(e.used, 1000);
    assert_int_equal(e.free, 1000);
    assert_int_equal(e.missing, 1000);
    assert_int_equal(e.holders[0], first);
    world_done(&w);
}

static void test_more_than_a_type_s_limit_is_refused(void **state)
{
    (void)state;
    struct small_world w;
    struct sched_refusal refusal;
    world_init(&w);
    world_node(&w, 1, 4);
    struct sched_type_quota h100 = limited("H100", 2000);
    assert_int_equal(team_with(&w, &h100, 1), 0);
    assert_int_equal(
        world_try_job(&w, (struct job){.team = 1, .gpu_milli = 3000, .strict = true}, &refusal),
        -E2BIG);
    assert_int_equal(refusal.reason, SCHED_REASON_ABOVE_LIMIT);
    assert_string_equal(refusal.gpu_type, "H100");
    assert_int_equal(refusal.available, 2000);
    world_done(&w);
}

static void test_malformed_quotas_are_refused(void **state)
{
    (void)state;
    struct small_world w;
    world_init(&w);
    struct sched_type_quota twice[] = {limited("H100", 1), limited("H100", 2)};
    assert_int_equal(team_with(&w, twice, 2), -EINVAL);
    struct sched_type_quota negative = {"H100", -1, 5}, nameless = {NULL, 0, 5};
    assert_int_equal(team_with(&w, &negative, 1), -EINVAL);
    assert_int_equal(team_with(&w, &nameless, 1), -EINVAL);
    assert_int_equal(team_with(&w, NULL, SCHED_TYPES_MAX + 1), -EINVAL);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_use_is_counted_by_the_type_of_the_node),
        cmocka_unit_test(test_the_explanation_speaks_of_the_type),
        cmocka_unit_test(test_more_than_a_type_s_limit_is_refused),
        cmocka_unit_test(test_malformed_quotas_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
