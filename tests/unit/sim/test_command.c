/* SPDX-License-Identifier: Apache-2.0 */
/* The command lines of the simulator's commands. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "sim/command.h"

#define WORDS_MAX 8

static const struct option longs[] = {
    {"steps", required_argument, NULL, 's'},
    {"once", no_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {0},
};

/* All options of LINE (words parted by single blanks); the first error, or that of an operand. */
static int parse(const char *line, int64_t *ret_steps, struct err *err)
{
    static char text[256]; /* getopt_long() points into it */
    char *words[WORDS_MAX] = {(char *)"test"}, *rest = text, *word;
    const char *name = NULL;
    int count = 1, c;

    assert_true(strlen(line) < sizeof(text));
    memcpy(text, line, strlen(line) + 1);
    while ((word = strsep(&rest, " ")) && *word) {
        assert_true(count + 1 < WORDS_MAX);
        words[count++] = word;
    }
    optind = 0;
    while ((c = sim_option(count, words, longs, &name, err)) > 0) {
        assert_string_equal(name, c == 's' ? "steps" : c == 'o' ? "once" : "help");
        if (c == 's' && (c = sim_number(name, optarg, 1, 100, ret_steps, err)) < 0)
            return c;
    }
    return c < 0 ? c : sim_no_operands(count, words, err);
}

static void options_are_read(void **state)
{
    struct err err = ERR_INIT;
    int64_t steps = 0;

    assert_int_equal(parse("--steps 7 --once -h --help", &steps, &err), 0);
    assert_int_equal(steps, 7);
    assert_int_equal(parse("--steps=100", &steps, &err), 0);
    assert_int_equal(steps, 100);
    assert_int_equal(parse("", &steps, &err), 0);
}

static void what_is_wrong_is_named(void **state)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--nosuch", "unknown option '--nosuch'"},
        {"--once -x", "unknown option '-x'"},
        {"-xh --once", "unknown option '-x'"},
        {"--once=1", "option '--once' takes no value"},
        {"--once --steps", "option '--steps' needs a value"},
        {"--steps x", "option '--steps' takes a whole number from 1 to 100, not 'x'"},
        {"--steps 0", "option '--steps' takes a whole number from 1 to 100, not '0'"},
        {"--steps 101", "option '--steps' takes a whole number from 1 to 100, not '101'"},
        {"--steps 99999999999999999999",
         "option '--steps' takes a whole number from 1 to 100, not '99999999999999999999'"},
        {"--steps 1 more", "'more' is one word too many"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;
        int64_t steps = -1;

        assert_true(parse(cases[i].line, &steps, &err) < 0);
        assert_string_equal(err.text, cases[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(what_is_wrong_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
