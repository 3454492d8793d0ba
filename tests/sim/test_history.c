/* SPDX-License-Identifier: Apache-2.0 */
/* Steps as text, plans of faults, and shrinking. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "sim/history_make.h"
#include "sim/history_plan.h"
#include "sim/history_shrink.h"
#include "sim/history_step.h"

/* ---- steps ------------------------------------------------------------------------------ */

struct collected {
    struct history_make make;
    struct history_steps steps;
};

static bool collect(void *user, const struct history *h, struct history_step *ret_step)
{
    struct collected *c = user;

    if (!history_make_next(&c->make, h, ret_step))
        return false;
    vec_push(&c->steps, *ret_step);
    return true;
}

static void test_every_drawn_step_reads_as_it_was_written(void **state)
{
    struct collected c = {0};
    struct history_plan plan;
    struct history_result result;
    uint32_t kinds = 0;

    log_set_level(LOG_LEVEL_NONE); /* full disks are part of the plan */
    assert_int_equal(history_plan_parse("heavy,suspend=200", &plan, NULL), 0);
    history_make_init(&c.make, 7, 1500, &plan);
    assert_int_equal(history_play(collect, &c, 64, &result), 0);
    for (size_t i = 0; i < c.steps.len; i++) {
        struct history_step again;
        char line[HISTORY_LINE_MAX], other[HISTORY_LINE_MAX];

        history_step_format(&c.steps.items[i], line);
        assert_int_equal(history_step_parse(line, &again, NULL), 0);
        history_step_format(&again, other);
        assert_string_equal(line, other);
        kinds |= 1U << again.kind;
    }
    /* All kinds came up, or the plan does not do what it says. */
    assert_int_equal(kinds, (1U << HISTORY_KINDS) - 1);
    vec_done(&c.steps);
}

static void test_a_bad_step_is_named(void **state)
{
    static const struct {
        const char *line, *text;
    } bad[] = {
        {"dance ms=3", "there is no step 'dance'"},
        {"time", "'time' lacks field 'ms'"},
        {"time ms=1 ms=2", "field 'ms' comes twice"},
        {"time ms=1 us=2", "'time' has no field 'us'"},
        {"time ms=-1", "ms '-1' is not a number from 0 to 86400000"},
        {"time ms=99999999999999999999", "is not a number"},
        {"time ms=1x", "ms '1x' is not a number"},
        {"time ms=", "ms '' is not a number"},
        {"time ms", "'time' has no field 'ms'"},
        {"crash at=noon calls=0 reboot=no", "at 'noon' is not one of before, durable, during"},
        {"lose node=16 dies=no", "node '16' is not a number from 0 to 15"},
        {"wall ms=--5", "ms '--5' is not a number"},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct history_step step;
        struct err err = ERR_INIT;

        assert_int_equal(history_step_parse(bad[i].line, &step, &err), -EINVAL);
        if (strstr(err.text, bad[i].text) == NULL)
            fail_msg("'%s': %s", bad[i].line, err.text);
    }
}

static void test_a_file_names_the_line_at_fault(void **state)
{
    static const char text[] = "# a comment\n\ncommit # and another\n  rest\ntime ms=x\ncommit\n";
    FILE *in = fmemopen((void *)text, sizeof(text) - 1, "r");
    struct history_steps steps = {0};
    struct err err = ERR_INIT;

    assert_int_equal(history_steps_read(in, &steps, &err), -EINVAL);
    fclose(in);
    assert_int_equal(steps.len, 2);
    assert_int_equal(steps.items[1].kind, HISTORY_REST);
    assert_non_null(strstr(err.text, "line 5: ms 'x' is not a number"));
    vec_done(&steps);
}

static void test_a_line_without_end_is_refused(void **state)
{
    char text[4096];
    FILE *in;
    struct history_steps steps = {0};
    struct err err = ERR_INIT;

    memset(text, 'a', sizeof(text));
    in = fmemopen(text, sizeof(text), "r");
    assert_int_equal(history_steps_read(in, &steps, &err), -EINVAL);
    fclose(in);
    assert_non_null(strstr(err.text, "line 1 is too long"));
    vec_done(&steps);
}

/* ---- suspending ------------------------------------------------------------------------- */

struct lines {
    const char *const *next;
};

static bool next_line(void *user, const struct history *h, struct history_step *ret_step)
{
    struct lines *l = user;

    if (*l->next == NULL)
        return false;
    assert_int_equal(history_step_parse(*l->next++, ret_step, NULL), 0);
    return true;
}

/* How often work is suspended in a history of LINES. */
static uint64_t suspended_in(const char *const *lines)
{
    struct lines l = {lines};
    struct history_result result;

    log_set_level(LOG_LEVEL_NONE);
    if (history_play(next_line, &l, 1, &result) < 0)
        fail_msg("step %d: %s", (int)result.steps, result.wrong);
    return result.counts.suspended;
}

#define TEAM                                                                            \
    "team team=0 parent=-1 guarantee=2000 limit=-1 cpu_limit=-1 weight=1 priority=100 " \
    "type=H100 type_guarantee=-1 type_limit=-1"
#define NODE(devices) "node node=0 devices=" devices " slices=no memory_gib=80 cpu=4000 type=H100"
#define SUBMIT(w, class_, ask, sort)                                                   \
    "submit w=" w " count=1 team=0 class=" class_ " priority=0 tasks=1 min=1 ask=" ask \
    " retries=0 grace=1000 limit=0 protect=0 accept=any sort=" sort

/* The server dies when it has asked a task to give way: it is still to be suspended, not ended. */
static void test_who_gives_way_is_suspended_over_a_crash(void **state)
{
    static const char *const lines[] = {NODE("1"), TEAM,
                                        "commit",  SUBMIT("0", "batch", "gpus-1", "suspends"),
                                        "rest",    SUBMIT("1", "production", "gpus-1", "job"),
                                        "commit",  "crash at=during calls=0 reboot=no",
                                        "rest",    NULL};

    assert_int_equal(suspended_in(lines), 1);
}

/* The server dies when it has answered, before it has told the engine: the wish is stored. */
static void test_who_is_to_be_suspended_is_so_over_a_crash(void **state)
{
    static const char *const lines[] = {NODE("1"), TEAM,
                                        "commit",  SUBMIT("0", "training", "gpus-1", "notebook"),
                                        "rest",    "suspend w=0",
                                        "commit",  "crash at=during calls=0 reboot=no",
                                        "rest",    NULL};

    assert_int_equal(suspended_in(lines), 1);
}

/* Suspended it would keep what the other one needs. */
static void test_who_gives_way_for_its_cpu_is_stopped(void **state)
{
    static const char *const lines[] = {NODE("1"), TEAM,
                                        "commit",  SUBMIT("0", "batch", "gpus-1", "suspends"),
                                        "rest",    SUBMIT("1", "production", "cpu-4", "job"),
                                        "rest",    NULL};

    assert_int_equal(suspended_in(lines), 0);
}

/* It is to go somewhere else. */
static void test_who_is_moved_is_not_suspended(void **state)
{
    static const char *const lines[] = {NODE("2"), TEAM,
                                        "commit",  SUBMIT("0", "training", "gpu-0.7", "job"),
                                        "rest",    SUBMIT("1", "training", "gpu-0.5", "job"),
                                        "rest",    SUBMIT("2", "training", "gpu-0.25", "suspends"),
                                        "rest",    "finish w=0 task=0 code=0 how=exit",
                                        "rest",    SUBMIT("3", "training", "gpus-1", "job"),
                                        "rest",    NULL};

    assert_int_equal(suspended_in(lines), 0);
}

/* ---- plans ------------------------------------------------------------------------------ */

static void test_what_stands_later_in_a_plan_counts(void **state)
{
    struct history_plan plan;

    assert_int_equal(history_plan_parse("default,crash=100,disk=0", &plan, NULL), 0);
    assert_int_equal(plan.crash, 100);
    assert_int_equal(plan.disk, 0);
    assert_int_equal(plan.late, 10);
    assert_int_equal(history_plan_parse("crash=100,none,dup=1", &plan, NULL), 0);
    assert_int_equal(plan.crash, 0);
    assert_int_equal(plan.dup, 1);
}

static void test_a_bad_plan_is_named(void **state)
{
    static const struct {
        const char *plan, *text;
        int status;
    } bad[] = {
        {"crsh=5", "there is no fault or plan 'crsh'", -EINVAL},
        {"crash", "there is no fault or plan 'crash'", -EINVAL},
        {"default=1", "there is no fault or plan 'default'", -EINVAL},
        {"crash=1001", "the rate '1001' of 'crash' is not a number from 0 to 1000", -ERANGE},
        {"crash=-1", "the rate '-1' of 'crash'", -ERANGE},
        {"crash=", "the rate '' of 'crash'", -ERANGE},
        {"crash=600,disk=600", "the rates add up to 1200", -ERANGE},
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct history_plan plan;
        struct err err = ERR_INIT;

        assert_int_equal(history_plan_parse(bad[i].plan, &plan, &err), bad[i].status);
        if (strstr(err.text, bad[i].text) == NULL)
            fail_msg("'%s': %s", bad[i].plan, err.text);
        if (i < 3)
            assert_non_null(strstr(err.remedy, "use none, default, heavy, crash=N, "));
    }
}

/* ---- shrinking -------------------------------------------------------------------------- */

/* Fails with a time of 7 ms somewhere before one of 9 ms. */
static bool seven_before_nine(void *user, const struct history_steps *steps)
{
    bool seven = false;

    ++*(int *)user;
    for (size_t i = 0; i < steps->len; i++) {
        if (steps->items[i].kind != HISTORY_TIME)
            continue;
        seven |= steps->items[i].time.ms == 7;
        if (seven && steps->items[i].time.ms == 9)
            return true;
    }
    return false;
}

static void test_only_what_matters_is_left(void **state)
{
    struct history_steps steps = {0};
    int trials = 0;
    int32_t told;

    for (int32_t i = 0; i < 1000; i++)
        vec_push(&steps, ((struct history_step){.kind = HISTORY_TIME, .time.ms = i % 100}));
    told = history_shrink(&steps, seven_before_nine, &trials, 5000);
    assert_int_equal(told, trials);
    assert_int_equal(steps.len, 2);
    assert_int_equal(steps.items[0].time.ms, 7);
    assert_int_equal(steps.items[1].time.ms, 9);
    assert_in_range(trials, 10, 200);
    vec_done(&steps);
}

static void test_shrinking_ends_with_its_budget(void **state)
{
    struct history_steps steps = {0};
    int trials = 0;
    int32_t told;

    for (int32_t i = 0; i < 1000; i++)
        vec_push(&steps, ((struct history_step){.kind = HISTORY_TIME, .time.ms = i % 100}));
    told = history_shrink(&steps, seven_before_nine, &trials, 3);
    assert_int_equal(told, 3);
    assert_int_equal(trials, 3);
    assert_true(seven_before_nine(&trials, &steps));
    vec_done(&steps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_drawn_step_reads_as_it_was_written),
        cmocka_unit_test(test_a_bad_step_is_named),
        cmocka_unit_test(test_a_file_names_the_line_at_fault),
        cmocka_unit_test(test_a_line_without_end_is_refused),
        cmocka_unit_test(test_who_gives_way_is_suspended_over_a_crash),
        cmocka_unit_test(test_who_is_to_be_suspended_is_so_over_a_crash),
        cmocka_unit_test(test_who_gives_way_for_its_cpu_is_stopped),
        cmocka_unit_test(test_who_is_moved_is_not_suspended),
        cmocka_unit_test(test_what_stands_later_in_a_plan_counts),
        cmocka_unit_test(test_a_bad_plan_is_named),
        cmocka_unit_test(test_only_what_matters_is_left),
        cmocka_unit_test(test_shrinking_ends_with_its_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
