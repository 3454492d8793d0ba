/* SPDX-License-Identifier: Apache-2.0 */
/* What is made of a Jupyter server's file and answers, which a task may make up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "engine/local/supervise/kernels.h"

static void a_servers_file(void **state)
{
    struct kernels_server s;

    assert_true(
        kernels_find_server("{\n  \"base_url\": \"/lab/\",\n  \"hostname\": \"localhost\",\n"
                            "  \"password\": false,\n  \"pid\": 7,\n  \"port\": 8888,\n"
                            "  \"root_dir\": \"/x/\\\"port\\\": 1\",\n"
                            "  \"secure\": false,\n  \"sock\": \"\",\n"
                            "  \"token\": \"ab12\",\n  \"version\": \"2.14.0\"\n}",
                            &s));
    assert_string_equal(s.base, "/lab/");
    assert_string_equal(s.host, "127.0.0.1");
    assert_string_equal(s.token, "ab12");
    assert_int_equal(s.port, 8888);
    assert_true(kernels_find_server(
        "{\"port\":1,\"hostname\":\"10.1.2.3\",\"token\":\"a\",\"base_url\":\"/\"}", &s));
    assert_string_equal(s.host, "10.1.2.3");
}

#define PORT "\"port\": 80"
#define TOKEN ", \"token\": \"a\""
#define BASE ", \"base_url\": \"/\""

static void a_file_that_leads_nowhere(void **state)
{
    static const char *const texts[] = {
        "",
        "{",
        "\"port\"",
        "\"port\":",
        PORT TOKEN,
        PORT BASE,
        TOKEN BASE,
        "\"port\": 0" TOKEN BASE,
        "\"port\": -1" TOKEN BASE,
        "\"port\": 65536" TOKEN BASE,
        "\"port\": 99999999999999999999" TOKEN BASE,
        PORT TOKEN ", \"base_url\": \"lab\"",
        PORT TOKEN ", \"base_url\": \"\"",
        PORT TOKEN ", \"base_url\": \"/",
        PORT BASE ", \"token\": \"\"",
        PORT BASE ", \"token\": \"a b\"",
        PORT BASE ", \"token\": \"a\r\nX: y\"",
        PORT BASE ", \"token\": \"a\\r\"",
        PORT TOKEN BASE ", \"secure\": true",
        PORT TOKEN BASE ", \"sock\": \"/run/x\"",
    };
    struct kernels_server s;
    char text[2 * KERNELS_TEXT_MAX];

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (kernels_find_server(texts[i], &s))
            fail_msg("taken for a server: %s", texts[i]);
    snprintf(text, sizeof(text), PORT BASE ", \"token\": \"%0*d\"", KERNELS_TEXT_MAX - 1, 0);
    assert_true(kernels_find_server(text, &s));
    snprintf(text, sizeof(text), PORT BASE ", \"token\": \"%0*d\"", KERNELS_TEXT_MAX, 0);
    assert_false(kernels_find_server(text, &s));
}

#define OK_HEAD "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
#define KERNEL(at, what)                                         \
    "{\"id\": \"1\", \"last_activity\": \"2026-01-01T00:00:0" at \
    "Z\", \"execution_state\": \"" what "\", \"connections\": 1}"

static struct kernels hear(const char *answer)
{
    struct kernels k = {0};

    assert_true(kernels_add_answer(answer, &k));
    return k;
}

static void answers(void **state)
{
    uint64_t one = hear(OK_HEAD "[" KERNEL("1", "idle") "]").mark;

    assert_false(hear(OK_HEAD "[]").busy);
    assert_int_equal(hear(OK_HEAD "[]").mark, 0);
    assert_false(hear(OK_HEAD "[" KERNEL("1", "idle") "]").busy);
    assert_true(hear(OK_HEAD "[" KERNEL("1", "busy") "]").busy);
    assert_true(hear(OK_HEAD "[" KERNEL("1", "idle") "," KERNEL("2", "busy") "]").busy);
    /* The state alone changes no mark; a time does, and so does one kernel more. */
    assert_true(hear(OK_HEAD "[" KERNEL("1", "busy") "]").mark == one);
    assert_true(hear(OK_HEAD "[" KERNEL("2", "idle") "]").mark != one);
    assert_true(hear(OK_HEAD "[" KERNEL("1", "idle") "," KERNEL("1", "idle") "]").mark != one);
    assert_true(hear(OK_HEAD "[" KERNEL("1", "idle") "," KERNEL("2", "idle") "]").mark ==
                hear(OK_HEAD "[" KERNEL("2", "idle") "," KERNEL("1", "idle") "]").mark);
}

static void what_is_no_answer(void **state)
{
    static const char *const texts[] = {
        "",
        "HTTP/1.",
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 403 Forbidden\r\n\r\n[" KERNEL("1", "busy") "]",
        "HTTP/1.1 200 OK\r\n\r\n{\"message\": \"x\"}",
        "SSH-2.0\r\n\r\n[" KERNEL("1", "busy") "]",
    };

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct kernels k = {0};

        if (kernels_add_answer(texts[i], &k) || k.busy || k.mark)
            fail_msg("taken for an answer: %s", texts[i]);
    }
    assert_false(hear(OK_HEAD "[\"execution_state\"").busy);
    assert_false(hear(OK_HEAD "[\"execution_state\": \"bus").busy);
    assert_false(hear(OK_HEAD "[\"execution_state\" \"execution_state\":").busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_servers_file),
        cmocka_unit_test(a_file_that_leads_nowhere),
        cmocka_unit_test(answers),
        cmocka_unit_test(what_is_no_answer),
    };

    return cmocka_run_group_tests_name("engine kernels", tests, NULL, NULL);
}
