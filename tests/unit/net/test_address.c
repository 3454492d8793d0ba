/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "net/http_address.h"

static void takes_addresses_of_both_families(void **state)
{
    const char *texts[] = {"127.0.0.1:8080", "0.0.0.0:1", "[::1]:65535", "[::]:0"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct http_address a;
        char text[HTTP_ADDRESS_TEXT_MAX];

        assert_int_equal(http_address_parse(texts[i], &a, NULL), 0);
        assert_string_equal(http_address_format(&a, text), texts[i]);
    }
}

static void localhost_is_the_loopback_address(void **state)
{
    struct http_address a;
    char text[HTTP_ADDRESS_TEXT_MAX];

    assert_int_equal(http_address_parse("localhost:80", &a, NULL), 0);
    assert_string_equal(http_address_format(&a, text), "127.0.0.1:80");
}

static void refuses_everything_else_by_name(void **state)
{
    const char *texts[] = {"",
                           "8080",
                           ":8080",
                           "127.0.0.1",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "1.2.3.4:-1",
                           "127.0.0.1:65536",
                           "::1:80",
                           "[::1]",
                           "[::1:80",
                           "example.org:80",
                           "256.0.0.1:80",
                           "127.0.0.1:99999999999999999999"};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct http_address a;
        struct err err = ERR_INIT;

        assert_int_equal(http_address_parse(texts[i], &a, &err), -EINVAL);
        assert_non_null(strstr(err.text, texts[i]));
        assert_true(err.remedy[0] != '\0');
    }
}

static void port_zero_takes_a_free_port_and_tells_it(void **state)
{
    struct http_address a;
    int fd;

    assert_int_equal(http_address_parse("127.0.0.1:0", &a, NULL), 0);
    assert_int_equal(http_address_listen(&a, &fd, NULL), 0);
    assert_true(http_address_port(&a) > 0);
    close(fd);
}

static void port_in_use_is_an_error_that_names_it(void **state)
{
    struct http_address a;
    struct err err = ERR_INIT;
    char text[HTTP_ADDRESS_TEXT_MAX];
    int fd, second;

    assert_int_equal(http_address_parse("127.0.0.1:0", &a, NULL), 0);
    assert_int_equal(http_address_listen(&a, &fd, NULL), 0);
    assert_int_equal(http_address_listen(&a, &second, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, http_address_format(&a, text)));
    assert_non_null(strstr(err.remedy, "another port"));
    close(fd);
}

/* As a child of a server that was killed does, until it executes its program. */
static void a_port_that_comes_free_in_a_moment_is_waited_for(void **state)
{
    struct http_address a;
    int fd, second, status;
    pid_t child;

    assert_int_equal(http_address_parse("127.0.0.1:0", &a, NULL), 0);
    assert_int_equal(http_address_listen(&a, &fd, NULL), 0);
    child = fork();
    if (child == 0) {
        usleep(100000);
        _exit(0);
    }
    close(fd);
    assert_int_equal(http_address_listen(&a, &second, NULL), 0);
    close(second);
    assert_int_equal(waitpid(child, &status, 0), child);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_addresses_of_both_families),
        cmocka_unit_test(localhost_is_the_loopback_address),
        cmocka_unit_test(refuses_everything_else_by_name),
        cmocka_unit_test(port_zero_takes_a_free_port_and_tells_it),
        cmocka_unit_test(port_in_use_is_an_error_that_names_it),
        cmocka_unit_test(a_port_that_comes_free_in_a_moment_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
