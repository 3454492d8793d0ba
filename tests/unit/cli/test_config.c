/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to ask, with which token: option, environment, file, default. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/config.h"

static char folder[] = "/tmp/allot-test-config-XXXXXX";
static char path[128];
static struct arena arena;
static struct cli_config config;
static struct err err;

static int group_setup(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/sub/config", folder);
    setenv("ALLOT_CONFIG", path, 1);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    return io_remove_tree(AT_FDCWD, folder);
}

static int setup(void **state)
{
    (void)state;
    unsetenv("ALLOT_SERVER");
    unsetenv("ALLOT_TOKEN");
    unsetenv("ALLOT_TEAM");
    unlink(path);
    memset(&config, 0, sizeof(config));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static void write_file(const char *text, mode_t mode)
{
    char sub[160];

    snprintf(sub, sizeof(sub), "%s/sub", folder);
    assert_int_equal(io_mkdirs(sub, 0700), 0);
    assert_int_equal(io_write_file_atomic(AT_FDCWD, path, text, strlen(text), mode, 0), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void without_anything_there_is_a_default(void **state)
{
    (void)state;
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_string_equal(config.server, CLI_DEFAULT_SERVER);
    assert_null(config.token);
    assert_null(config.team);
}

static void the_file_is_read_and_the_environment_wins(void **state)
{
    (void)state;
    write_file("# c\n\n server = http://a:1 \ntoken=t1\r\nteam = n l p\n", 0600);
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_string_equal(config.server, "http://a:1");
    assert_string_equal(config.token, "t1");
    assert_string_equal(config.team, "n l p");
    assert_null(config.warning);
    setenv("ALLOT_TOKEN", "t2", 1);
    setenv("ALLOT_TEAM", "vision", 1);
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_string_equal(config.token, "t2");
    assert_string_equal(config.team, "vision");
}

static void a_token_is_not_sent_to_another_server(void **state)
{
    (void)state;
    write_file("server = http://a:1\ntoken = t1\n", 0600);
    setenv("ALLOT_SERVER", "http://b:1", 1);
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_string_equal(config.server, "http://b:1");
    assert_null(config.token);
    setenv("ALLOT_SERVER", "http://a:1", 1);
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_string_equal(config.token, "t1");
    cli_config_use_server(&config, "http://b:1");
    assert_null(config.token);
}

static void a_file_that_others_read_is_warned_about(void **state)
{
    (void)state;
    write_file("token = t1\n", 0644);
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_non_null(config.warning);
}

static void what_is_not_understood_is_refused_with_its_line(void **state)
{
    (void)state;
    write_file("server = x\nnonsense\n", 0600);
    assert_int_equal(cli_config_load(&arena, &config, &err), -EINVAL);
    assert_non_null(strstr(err.text, "line 2"));
    write_file("colour = red\n", 0600);
    assert_int_equal(cli_config_load(&arena, &config, &err), -EINVAL);
    assert_non_null(strstr(err.text, "'colour'"));
}

static void what_is_saved_is_private_and_comes_back(void **state)
{
    struct cli_config saved = {.server = "http://a:1", .token = "t", .team = "nlp", .path = path};
    struct stat st;

    (void)state;
    assert_int_equal(cli_config_save(&saved, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(cli_config_load(&arena, &config, &err), 0);
    assert_string_equal(config.server, "http://a:1");
    assert_string_equal(config.token, "t");
    assert_string_equal(config.team, "nlp");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(without_anything_there_is_a_default),
        TEST(the_file_is_read_and_the_environment_wins),
        TEST(a_token_is_not_sent_to_another_server),
        TEST(a_file_that_others_read_is_warned_about),
        TEST(what_is_not_understood_is_refused_with_its_line),
        TEST(what_is_saved_is_private_and_comes_back),
    };

    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
