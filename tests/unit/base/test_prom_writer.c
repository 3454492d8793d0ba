/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/prom_writer.h"

static struct strbuf buf;
static struct prom_writer w;

static int begin(void **state)
{
    prom_writer_init(&w, &buf);
    return 0;
}

static int end(void **state)
{
    strbuf_done(&buf);
    return 0;
}

static void families_and_samples(void **state)
{
    prom_family(&w, "a_total", "counter", "All of them.");
    prom_begin(&w);
    prom_i64(&w, INT64_MAX);
    prom_family(&w, "b", "gauge", "By x.");
    prom_begin(&w);
    prom_label(&w, "x", "1");
    prom_label(&w, "y", "");
    prom_milli(&w, 250);
    prom_begin(&w);
    prom_label(&w, "x", "2");
    prom_i64(&w, -1);
    assert_string_equal(strbuf_str(&buf), "# HELP a_total All of them.\n# TYPE a_total counter\n"
                                          "a_total 9223372036854775807\n"
                                          "# HELP b By x.\n# TYPE b gauge\n"
                                          "b{x=\"1\",y=\"\"} 0.25\nb{x=\"2\"} -1\n");
}

static void a_family_without_samples_leaves_no_trace(void **state)
{
    prom_family(&w, "none", "gauge", "Nothing.");
    prom_family(&w, "one", "gauge", "Something.");
    prom_begin(&w);
    prom_milli(&w, 2000);
    assert_string_equal(strbuf_str(&buf), "# HELP one Something.\n# TYPE one gauge\none 2\n");
    strbuf_truncate(&buf, 0);
    prom_begin(&w);
    prom_micro(&w, 1000250);
    assert_string_equal(strbuf_str(&buf), "one 1.000250\n");
}

static void label_of(const char *value, const char *wanted)
{
    char line[128];

    strbuf_truncate(&buf, 0);
    prom_begin(&w);
    prom_label(&w, "l", value);
    prom_i64(&w, 0);
    snprintf(line, sizeof(line), "m{l=\"%s\"} 0\n", wanted);
    assert_string_equal(strbuf_str(&buf), line);
}

static void values_of_labels_are_escaped(void **state)
{
    prom_family(&w, "m", "gauge", "x");
    prom_begin(&w);
    prom_i64(&w, 0);
    label_of("a\"b", "a\\\"b");
    label_of("a\\n", "a\\\\n");
    label_of("a\nb", "a\\nb");
    label_of("{x=\"1\"} 2", "{x=\\\"1\\\"} 2");
    label_of("\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80", "\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\x98\x80");
    /* what is cut off, over-long, or no character at all */
    label_of("\xc3", "?");
    label_of("\xc0\x80x", "??x");
    label_of("\xff\xe6\xbc", "???");
}

static void help_keeps_its_quotes(void **state)
{
    prom_family(&w, "m", "gauge", "a \"b\" \\ c\nd");
    prom_begin(&w);
    prom_i64(&w, 0);
    assert_string_equal(strbuf_str(&buf), "# HELP m a \"b\" \\\\ c\\nd\n# TYPE m gauge\nm 0\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(families_and_samples),
        TEST(a_family_without_samples_leaves_no_trace),
        TEST(values_of_labels_are_escaped),
        TEST(help_keeps_its_quotes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
