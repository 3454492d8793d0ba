/* SPDX-License-Identifier: Apache-2.0 */
/* allot exec against a peer that speaks the frames by hand. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/exec_protocol.h"

#define EXIT_3 "x\0\0\0\4\0\0\0\3"
#define FAIL_TEXT "f\0\0\0\7no \033 sh"
#define CALL "POST /v1/workloads/5/tasks/0/exec"

static int peer;

static int set_up(void **state)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    peer = pair[1];
    fake_upgrade(pair[0]);
    setenv("TERM", "xterm-test", 1);
    fake_setup(state);
    fake_answer(CALL, 101, "");
    return 0;
}

static int tear_down(void **state)
{
    if (peer >= 0)
        close(peer);
    return fake_teardown(state);
}

static void tell(const void *frame, size_t len)
{
    assert_int_equal(send(peer, frame, len, MSG_NOSIGNAL), len);
}

static void the_exit_code_is_passed_on(void **state)
{
    (void)state;
    tell(EXIT_3, sizeof(EXIT_3) - 1);
    assert_int_equal(fake_run("exec 5 -- true"), 3);
    assert_string_equal(fake_err, "");
    assert_string_equal(fake_calls(), CALL " {\"command\":[\"true\"],\"tty\":false}\n");
}

/* The command was over before the first word of ours could be sent. */
static void an_exit_code_that_is_there_outlives_the_connection(void **state)
{
    (void)state;
    tell(EXIT_3, sizeof(EXIT_3) - 1);
    close(peer);
    peer = -1;
    fake_terminal = true;
    assert_int_equal(fake_run("exec 5 -- true"), 3);
    assert_string_equal(fake_err, "");
}

static void a_lost_session_is_no_exit_code(void **state)
{
    (void)state;
    close(peer);
    peer = -1;
    assert_int_equal(fake_run("exec 5 -- true"), 125);
    assert_non_null(strstr(fake_err, "without an exit code"));
}

static void on_a_terminal_its_kind_goes_ahead(void **state)
{
    static const char term[] = "t\0\0\0\12xterm-test";
    char got[sizeof(term) - 1];

    (void)state;
    tell(EXIT_3, sizeof(EXIT_3) - 1);
    fake_terminal = true;
    assert_int_equal(fake_run("exec -it 5 -- bash"), 3);
    assert_non_null(strstr(fake_calls(), "\"tty\":true"));
    assert_int_equal(recv(peer, got, sizeof(got), MSG_WAITALL), sizeof(got));
    assert_memory_equal(got, term, sizeof(got));
}

static void a_command_that_cannot_be_run_is_told_safely(void **state)
{
    (void)state;
    tell(FAIL_TEXT, sizeof(FAIL_TEXT) - 1);
    assert_int_equal(fake_run("exec --tty --interactive 5 -- sh"), 125);
    assert_string_equal(fake_err, "allot: no ? sh\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_exit_code_is_passed_on),
        TEST(an_exit_code_that_is_there_outlives_the_connection),
        TEST(a_lost_session_is_no_exit_code),
        TEST(on_a_terminal_its_kind_goes_ahead),
        TEST(a_command_that_cannot_be_run_is_told_safely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
