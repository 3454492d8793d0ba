/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/options.h"

static const struct cli_option table[] = {
    {.help = "A heading"},
    {.name = "all", .letter = 'a', .help = "a flag"},
    {.name = "force", .letter = 'x', .help = "another"},
    {.name = "gpu", .letter = 'g', .arg = "N", .help = "a value"},
    {.name = "env", .letter = 'e', .arg = "K=V", .help = "repeated"},
    {.name = "kind",
     .arg = "KIND",
     .help = "one of",
     .complete = CLI_COMPLETE_WORDS,
     .words = "job notebook"},
    {0},
};
static const struct cli_command plain = {
    .name = "plain",
    .usage = "ID...",
    .options = table,
    .min_operands = 1,
    .max_operands = 2,
};
static const struct cli_command runner = {
    .name = "runner",
    .options = table,
    .command_at = 1,
};
static const struct cli_command executor = {
    .name = "executor",
    .options = table,
    .min_operands = 1,
    .max_operands = 1,
    .command_at = 2,
};

static struct cli_args args;
static struct err err;

static int parse(const struct cli_command *c, const char *const *words)
{
    int argc = 0;

    while (words[argc])
        argc++;
    cli_args_done(&args);
    memset(&args, 0, sizeof(args));
    memset(&err, 0, sizeof(err));
    return cli_args_parse(c, argc, words, &args, &err);
}
#define PARSE(c, ...) parse((c), (const char *[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static int teardown(void **state)
{
    (void)state;
    cli_args_done(&args);
    memset(&args, 0, sizeof(args));
    return 0;
}

static void values_come_in_every_form(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "--gpu", "1", "id"), 0);
    assert_string_equal(cli_option_value(&args, "gpu"), "1");
    assert_int_equal(PARSE(&plain, "--gpu=2", "id"), 0);
    assert_string_equal(cli_option_value(&args, "gpu"), "2");
    assert_int_equal(PARSE(&plain, "-g", "3", "id"), 0);
    assert_string_equal(cli_option_value(&args, "gpu"), "3");
    assert_int_equal(PARSE(&plain, "-g4", "id"), 0);
    assert_string_equal(cli_option_value(&args, "gpu"), "4");
    assert_int_equal(PARSE(&plain, "id", "--gpu="), 0);
    assert_string_equal(cli_option_value(&args, "gpu"), "");
}

static void flags_combine_and_the_last_takes_the_value(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "-axg1", "id"), 0);
    assert_true(cli_option_given(&args, "all"));
    assert_true(cli_option_given(&args, "force"));
    assert_string_equal(cli_option_value(&args, "gpu"), "1");
}

static void absent_options_are_absent(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "id"), 0);
    assert_false(cli_option_given(&args, "all"));
    assert_null(cli_option_value(&args, "gpu"));
}

static void repeated_options_keep_their_order(void **state)
{
    size_t it = 0;

    (void)state;
    assert_int_equal(PARSE(&plain, "-e", "A=1", "id", "--env=B=2", "-eC=3"), 0);
    assert_string_equal(cli_option_each(&args, "env", &it), "A=1");
    assert_string_equal(cli_option_each(&args, "env", &it), "B=2");
    assert_string_equal(cli_option_each(&args, "env", &it), "C=3");
    assert_null(cli_option_each(&args, "env", &it));
    assert_string_equal(cli_option_value(&args, "env"), "C=3");
}

static void options_and_operands_mix_until_two_dashes(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "one", "-a", "--", "-x"), 0);
    assert_int_equal(args.operands.len, 2);
    assert_string_equal(args.operands.items[1], "-x");
    assert_false(cli_option_given(&args, "force"));
}

static void a_single_dash_is_an_operand_and_a_value(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "-", "-g", "-"), 0);
    assert_string_equal(args.operands.items[0], "-");
    assert_string_equal(cli_option_value(&args, "gpu"), "-");
}

static void a_command_line_is_kept_as_it_is(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&runner, "--gpu", "1", "--", "python", "-a", "--gpu=9", "--"), 0);
    assert_int_equal(args.command_count, 4);
    assert_string_equal(args.command_line[2], "--gpu=9");
    assert_string_equal(cli_option_value(&args, "gpu"), "1");
    assert_int_equal(PARSE(&runner, "-g1", "python", "-a"), 0);
    assert_int_equal(args.command_count, 2);
    assert_false(cli_option_given(&args, "all"));
    assert_int_equal(PARSE(&runner, "-g1"), 0);
    assert_null(args.command_line);
}

static void a_command_line_may_follow_an_operand(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&executor, "81", "-a", "--", "ls", "-l"), 0);
    assert_string_equal(args.operands.items[0], "81");
    assert_true(cli_option_given(&args, "all"));
    assert_int_equal(args.command_count, 2);
    assert_string_equal(args.command_line[1], "-l");
    assert_int_equal(PARSE(&executor, "81", "ls", "-a"), 0);
    assert_false(cli_option_given(&args, "all"));
    assert_int_equal(args.command_count, 2);
}

static void unknown_options_name_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "--gpuu=1", "id"), -EINVAL);
    assert_string_equal(err.text, "unknown option '--gpuu'");
    assert_string_equal(err.remedy, "did you mean '--gpu'?");
    assert_int_equal(PARSE(&plain, "--sever=x", "id"), -EINVAL);
    assert_string_equal(err.remedy, "did you mean '--server'?");
    assert_int_equal(PARSE(&plain, "--zzzzz", "id"), -EINVAL);
    assert_string_equal(err.remedy, "see 'allot help plain'");
    assert_int_equal(PARSE(&plain, "-z", "id"), -EINVAL);
    assert_string_equal(err.text, "unknown option '-z'");
}

static void values_are_checked(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain, "id", "--gpu"), -EINVAL);
    assert_string_equal(err.text, "option '--gpu' needs a value (N)");
    assert_int_equal(PARSE(&plain, "id", "--all=yes"), -EINVAL);
    assert_string_equal(err.text, "option '--all' takes no value");
    assert_int_equal(PARSE(&plain, "id", "--kind", "jo"), -EINVAL);
    assert_string_equal(err.remedy, "use one of: job, notebook");
    assert_int_equal(PARSE(&plain, "id", "--kind", "notebook"), 0);
}

static void operands_are_counted(void **state)
{
    (void)state;
    assert_int_equal(PARSE(&plain), -EINVAL);
    assert_string_equal(err.text, "'plain' needs ID...");
    assert_int_equal(PARSE(&plain, "a", "b", "c"), -EINVAL);
    assert_string_equal(err.text, "unexpected argument 'c'");
    assert_int_equal(PARSE(&plain, "--help"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(values_come_in_every_form, teardown),
        cmocka_unit_test_teardown(flags_combine_and_the_last_takes_the_value, teardown),
        cmocka_unit_test_teardown(absent_options_are_absent, teardown),
        cmocka_unit_test_teardown(repeated_options_keep_their_order, teardown),
        cmocka_unit_test_teardown(options_and_operands_mix_until_two_dashes, teardown),
        cmocka_unit_test_teardown(a_single_dash_is_an_operand_and_a_value, teardown),
        cmocka_unit_test_teardown(a_command_line_is_kept_as_it_is, teardown),
        cmocka_unit_test_teardown(a_command_line_may_follow_an_operand, teardown),
        cmocka_unit_test_teardown(unknown_options_name_the_nearest, teardown),
        cmocka_unit_test_teardown(values_are_checked, teardown),
        cmocka_unit_test_teardown(operands_are_counted, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
