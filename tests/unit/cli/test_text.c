/* SPDX-License-Identifier: Apache-2.0 */
/* Suggestions, words for times, bars, wrapping, server-sent events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/sse.h"
#include "cli/style.h"
#include "cli/suggest.h"

static void distance_counts_edits(void **state)
{
    (void)state;
    assert_int_equal(cli_edit_distance("", ""), 0);
    assert_int_equal(cli_edit_distance("abc", ""), 3);
    assert_int_equal(cli_edit_distance("submit", "sbmit"), 1);
    assert_int_equal(cli_edit_distance("logs", "lgos"), 1);
    assert_int_equal(cli_edit_distance("team", "teams"), 1);
    assert_int_equal(cli_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(cli_edit_distance("a-word-that-is-much-too-long-to-be-compared-here", "a"),
                     CLI_SUGGEST_MAX);
}

static const char *suggest(const char *word)
{
    static const char *const known[] = {"run", "submit", "ps", "logs", "stop", "quota"};
    struct cli_suggestion s = {.word = word};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        cli_suggestion_offer(&s, known[i]);
    return s.best;
}

static void only_near_words_are_suggested(void **state)
{
    (void)state;
    assert_string_equal(suggest("rnu"), "run");
    assert_string_equal(suggest("sumbit"), "submit");
    assert_string_equal(suggest("quo"), "quota");
    assert_null(suggest("x"));
    assert_null(suggest("kubernetes"));
    assert_null(suggest(""));
}

static void durations_are_two_units_at_most(void **state)
{
    struct arena a = ARENA_INIT;

    (void)state;
    assert_string_equal(cli_duration(-5, &a), "0s");
    assert_string_equal(cli_duration(0, &a), "0s");
    assert_string_equal(cli_duration(250, &a), "250ms");
    assert_string_equal(cli_duration(59999, &a), "59s");
    assert_string_equal(cli_duration(90000, &a), "1m 30s");
    assert_string_equal(cli_duration(620000, &a), "10m");
    assert_string_equal(cli_duration(3600000, &a), "1h");
    assert_string_equal(cli_duration(7800000, &a), "2h 10m");
    assert_string_equal(cli_duration(86400000LL * 5 + 3 * 3600000, &a), "5d 3h");
    assert_non_null(cli_duration(INT64_MAX, &a));
    arena_done(&a);
}

static void times_are_told_relative_to_now(void **state)
{
    struct arena a = ARENA_INIT;

    (void)state;
    assert_string_equal(cli_when(0, 1000000, &a), "-");
    assert_string_equal(cli_when(999900, 1000000, &a), "just now");
    assert_string_equal(cli_when(1000000 - 180000, 1000000, &a), "3m ago");
    assert_string_equal(cli_when(1000000 + 600000, 1000000, &a), "in 10m");
    arena_done(&a);
}

static void bars_are_exact_to_a_half(void **state)
{
    const struct cli_style plain = {0}, unicode = {.unicode = true};
    struct arena a = ARENA_INIT;

    (void)state;
    assert_string_equal(cli_bar(&plain, 0, 8, 4, &a), "----");
    assert_string_equal(cli_bar(&plain, 8, 8, 4, &a), "####");
    assert_string_equal(cli_bar(&plain, 5, 8, 4, &a), "##+-");
    assert_string_equal(cli_bar(&plain, 1, 1000, 4, &a), "+---");
    assert_string_equal(cli_bar(&plain, 9, 8, 4, &a), "####");
    assert_string_equal(cli_bar(&plain, 3, 0, 4, &a), "+---");
    assert_string_equal(cli_bar(&plain, INT64_MAX, INT64_MAX, 4, &a), "####");
    assert_string_equal(cli_bar(&unicode, 3, 8, 4, &a), "█▌──");
    arena_done(&a);
}

static void text_is_wrapped_and_literal_lines_kept(void **state)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    cli_wrap(out, "one two three four\nfive\n\n  kept as it is\nlast", 2, 12);
    fclose(out);
    assert_string_equal(text, "  one two\n  three four\n  five\n\n    kept as it is\n  last\n");
    free(text);
}

/* ---- server-sent events ------------------------------------------------------------------- */

struct seen {
    struct strbuf text;
    int answer;
};

static int see(void *user, const char *data)
{
    struct seen *s = user;

    strbuf_addf(&s->text, "<%s>", data);
    return s->answer;
}

static void events_may_come_in_any_pieces(void **state)
{
    static const char stream[] = ": hello\n\nid: 7\nevent: x\ndata: {\"a\":1}\n\nid:8\r\ndata:b\r\n"
                                 "data: c\r\n\r\nretry: 5\n\ndata: half";

    (void)state;
    for (size_t piece = 1; piece < sizeof(stream); piece++) {
        struct seen seen = {0};
        struct cli_sse s = {.event = see, .user = &seen};

        for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
            size_t n = sizeof(stream) - 1 - at < piece ? sizeof(stream) - 1 - at : piece;

            assert_int_equal(cli_sse_feed(&s, stream + at, n), 0);
        }
        assert_string_equal(strbuf_str(&seen.text), "<{\"a\":1}><b\nc>");
        assert_string_equal(s.id, "8");
        /* a lost connection: the half event must not leak into the next */
        cli_sse_reset(&s);
        assert_int_equal(cli_sse_feed(&s, "data: d\n\n", 9), 0);
        assert_string_equal(strbuf_str(&seen.text), "<{\"a\":1}><b\nc><d>");
        cli_sse_done(&s);
        strbuf_done(&seen.text);
    }
}

static void an_event_can_end_the_stream(void **state)
{
    struct seen seen = {.answer = 5};
    struct cli_sse s = {.event = see, .user = &seen};

    (void)state;
    assert_int_equal(cli_sse_feed(&s, "data: a\n\ndata: b\n\n", 18), 5);
    assert_string_equal(strbuf_str(&seen.text), "<a>");
    cli_sse_done(&s);
    strbuf_done(&seen.text);
}

static void endless_lines_are_refused(void **state)
{
    struct cli_sse s = {.event = see};
    static char block[65536];
    int r = 0;

    (void)state;
    memset(block, 'x', sizeof(block));
    for (int i = 0; i < 32 && r == 0; i++)
        r = cli_sse_feed(&s, block, sizeof(block));
    assert_int_equal(r, -EMSGSIZE);
    cli_sse_done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(only_near_words_are_suggested),
        cmocka_unit_test(durations_are_two_units_at_most),
        cmocka_unit_test(times_are_told_relative_to_now),
        cmocka_unit_test(bars_are_exact_to_a_half),
        cmocka_unit_test(text_is_wrapped_and_literal_lines_kept),
        cmocka_unit_test(events_may_come_in_any_pieces),
        cmocka_unit_test(an_event_can_end_the_stream),
        cmocka_unit_test(endless_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
