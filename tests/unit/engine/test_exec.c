/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions inside a running task. */
#include "fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "net/exec_protocol.h"

static struct fixture *f;

static int up(void **state)
{
    f = fixture_new();
    if (f) {
        fixture_up(f);
        fixture_script(f, 1, "echo ready; cd /tmp; echo mark > mark; sleep 1000");
        fixture_start(f, 1, 0);
        fixture_wait_log(f, "1.0.0", "ready");
        fixture_wait(f, "1.0.0", ENGINE_STARTED);
    }
    return 0;
}

static int down(void **state)
{
    fixture_drop(f);
    return 0;
}

struct result {
    struct strbuf out, err;
    int code; /* -1 = the session failed */
    char fail[256];
};

static void receive(int fd, void *data, size_t len)
{
    char *p = data;

    while (len > 0) {
        struct pollfd w = {.fd = fd, .events = POLLIN};
        ssize_t n;

        if (poll(&w, 1, FIXTURE_WAIT_MS) <= 0)
            fail_msg("the session is silent");
        n = recv(fd, p, len, 0);
        if (n <= 0)
            fail_msg("the session ended early");
        p += n;
        len -= (size_t)n;
    }
}

static void send_frame(int fd, char type, const void *body, size_t len)
{
    unsigned char head[EXEC_HEADER_BYTES] = {(unsigned char)type, 0, (unsigned char)(len >> 16),
                                             (unsigned char)(len >> 8), (unsigned char)len};

    assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
    if (len > 0)
        assert_int_equal(send(fd, body, len, MSG_NOSIGNAL), len);
}

static int begin(const char *script, int tty)
{
    const char *const command[] = {"sh", "-c", script, NULL};
    struct err err = ERR_INIT;
    int fd = -1;

    if (engine_local_ops()->exec(f->engine, "1.0.0", command, tty, &fd, &err) < 0)
        fail_msg("exec: %s", err.text);
    return fd;
}

/* Reads one frame; false after the last. */
static bool next_frame(int fd, struct result *r)
{
    static char body[EXEC_FRAME_MAX];
    unsigned char head[EXEC_HEADER_BYTES];
    size_t len;

    receive(fd, head, sizeof(head));
    len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    assert_true(len <= EXEC_FRAME_MAX);
    receive(fd, body, len);
    switch (head[0]) {
    case EXEC_OUT:
        strbuf_add(&r->out, body, len);
        return true;
    case EXEC_ERR:
        strbuf_add(&r->err, body, len);
        return true;
    case EXEC_EXIT:
        assert_int_equal(len, 4);
        r->code = (unsigned char)body[2] << 8 | (unsigned char)body[3];
        return false;
    case EXEC_FAIL:
        snprintf(r->fail, sizeof(r->fail), "%.*s", (int)len, body);
        r->code = -1;
        return false;
    default:
        fail_msg("frame '%c'", head[0]);
        return false;
    }
}

static void finish(int fd, struct result *r)
{
    while (next_frame(fd, r))
        ;
    close(fd);
}

static void drop(struct result *r)
{
    strbuf_done(&r->out);
    strbuf_done(&r->err);
}

static void a_session_runs_in_the_tasks_sandbox(void **state)
{
    struct result r = {0};

    NEED_ROOT();
    finish(begin("cat /tmp/mark; echo bad >&2; echo $ALLOT_WORKLOAD_NAME; pwd; "
                 "grep -w Seccomp /proc/self/status | tr -d '\\t'; exit 7",
                 0),
           &r);
    assert_string_equal(strbuf_str(&r.out), "mark\ndigits\n/home/task\nSeccomp:2\n");
    assert_string_equal(strbuf_str(&r.err), "bad\n");
    assert_int_equal(r.code, 7);
    drop(&r);
}

static void input_reaches_the_command_up_to_its_end(void **state)
{
    struct result r = {0};
    char block[1000];
    int fd;

    NEED_ROOT();
    memset(block, 'x', sizeof(block));
    fd = begin("wc -c", 0);
    for (int i = 0; i < 300; i++)
        send_frame(fd, EXEC_IN, block, sizeof(block));
    send_frame(fd, EXEC_IN, NULL, 0);
    finish(fd, &r);
    assert_string_equal(strbuf_str(&r.out), "300000\n");
    assert_int_equal(r.code, 0);
    drop(&r);
}

static void much_output_arrives_whole(void **state)
{
    struct result r = {0};

    NEED_ROOT();
    finish(begin("head -c 5000000 /dev/zero", 0), &r);
    assert_int_equal(r.out.len, 5000000);
    assert_int_equal(r.code, 0);
    drop(&r);
}

static void a_terminal_has_a_size_and_a_name(void **state)
{
    static const unsigned char size[] = {0, 33, 0, 77};
    struct result r = {0};
    int fd;

    NEED_ROOT();
    fd = begin("tty; stty size; echo $TERM; exit 2", 1);
    send_frame(fd, EXEC_RESIZE, size, sizeof(size));
    send_frame(fd, EXEC_TERM, "screen-256color", 15);
    finish(fd, &r);
    assert_non_null(strstr(strbuf_str(&r.out), "/dev/pts/0"));
    assert_non_null(strstr(strbuf_str(&r.out), "33 77"));
    assert_non_null(strstr(strbuf_str(&r.out), "screen-256color"));
    assert_int_equal(r.err.len, 0);
    assert_int_equal(r.code, 2);
    drop(&r);
}

static void a_terminal_needs_no_introduction(void **state)
{
    struct result r = {0};
    int fd;

    NEED_ROOT();
    /* input comes first */
    fd = begin("read line; echo got $line", 1);
    send_frame(fd, EXEC_IN, "word\n", 5);
    finish(fd, &r);
    assert_non_null(strstr(strbuf_str(&r.out), "got word"));
    drop(&r);
    /* nothing comes, and what is no name of a terminal is not passed on */
    memset(&r, 0, sizeof(r));
    finish(begin("exit 3", 1), &r);
    assert_int_equal(r.code, 3);
    drop(&r);
    memset(&r, 0, sizeof(r));
    fd = begin("echo [$TERM]", 1);
    send_frame(fd, EXEC_TERM, "a/../b\0c", 8);
    finish(fd, &r);
    assert_non_null(strstr(strbuf_str(&r.out), "[]"));
    drop(&r);
}

/* The client may be in the middle of a word when the command ends. */
static void the_last_frame_waits_for_the_client(void **state)
{
    static const unsigned char size[] = {0, 33, 0, 77};
    struct result r = {0};
    int fd;

    NEED_ROOT();
    fd = begin("exit 5", 1);
    send_frame(fd, EXEC_TERM, "xterm", 5);
    for (int i = 0; i < 30; i++) {
        send_frame(fd, EXEC_RESIZE, size, sizeof(size));
        fixture_sleep_ms(10);
    }
    finish(fd, &r);
    assert_int_equal(r.code, 5);
    drop(&r);
}

static void a_signal_reaches_the_command(void **state)
{
    struct result r = {0};
    int fd;

    NEED_ROOT();
    fd = begin("echo up; exec sleep 1000", 0);
    while (r.out.len == 0)
        assert_true(next_frame(fd, &r));
    send_frame(fd, EXEC_SIGNAL, &(char){SIGINT}, 1);
    finish(fd, &r);
    assert_int_equal(r.code, 128 + SIGINT);
    drop(&r);
}

static void a_client_that_goes_away_takes_its_command_along(void **state)
{
    struct result r = {0};
    int fd;

    NEED_ROOT();
    fd = begin(fixture_marked("echo up; exec sleep 7777.9"), 0);
    while (r.out.len == 0)
        assert_true(next_frame(fd, &r));
    close(fd);
    for (int i = 0; i < FIXTURE_WAIT_MS / 10 && fixture_processes("sleep 7777.9") > 0; i++)
        fixture_sleep_ms(10);
    assert_int_equal(fixture_processes("sleep 7777.9"), 0);
    drop(&r);
}

static void a_background_child_does_not_hold_the_session(void **state)
{
    struct result r = {0};

    NEED_ROOT();
    finish(begin("sleep 1000 & echo gone", 0), &r);
    assert_string_equal(strbuf_str(&r.out), "gone\n");
    assert_int_equal(r.code, 0);
    drop(&r);
}

static void a_command_that_is_not_there_fails_with_a_text(void **state)
{
    const char *const command[] = {"no-such-program", NULL};
    struct result r = {0};
    int fd = -1;

    NEED_ROOT();
    assert_int_equal(engine_local_ops()->exec(f->engine, "1.0.0", command, 0, &fd, NULL), 0);
    finish(fd, &r);
    assert_int_equal(r.code, -1);
    assert_non_null(strstr(r.fail, "no-such-program"));
    drop(&r);
}

static void nothing_runs_in_a_task_that_does_not(void **state)
{
    const char *const command[] = {"true", NULL};
    struct err err = ERR_INIT;
    int fd = -1;

    NEED_ROOT();
    assert_int_equal(engine_local_ops()->exec(f->engine, "9.0.0", command, 0, &fd, &err), -ENOENT);
    assert_non_null(strstr(err.text, "not running"));
}

static void hostile_frames_end_the_session_and_nothing_else(void **state)
{
    static const unsigned char huge[] = {EXEC_IN, 0xff, 0xff, 0xff, 0xff, 1, 2, 3};
    struct result r = {0};
    char scrap[64];
    int fd;

    NEED_ROOT();
    fd = begin("exec sleep 1000", 0);
    assert_int_equal(send(fd, huge, sizeof(huge), MSG_NOSIGNAL), sizeof(huge));
    while (recv(fd, scrap, sizeof(scrap), 0) > 0)
        ;
    close(fd);
    /* Unknown kinds are passed over. */
    fd = begin("read x; echo $x", 0);
    send_frame(fd, '?', "abc", 3);
    send_frame(fd, EXEC_IN, "word\n", 5);
    finish(fd, &r);
    assert_string_equal(strbuf_str(&r.out), "word\n");
    drop(&r);
}

static void a_session_ends_with_its_task(void **state)
{
    struct result r = {0};
    char scrap[64];
    int fd;

    NEED_ROOT();
    fd = begin("trap '' TERM HUP; echo up; while :; do sleep 1; done", 0);
    while (r.out.len == 0)
        assert_true(next_frame(fd, &r));
    engine_local_ops()->stop(f->engine, "1.0.0", 0);
    fixture_wait(f, "1.0.0", ENGINE_EXITED);
    while (recv(fd, scrap, sizeof(scrap), 0) > 0)
        ;
    close(fd);
    drop(&r);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, up, down)
    const struct CMUnitTest tests[] = {
        T(a_session_runs_in_the_tasks_sandbox),
        T(input_reaches_the_command_up_to_its_end),
        T(much_output_arrives_whole),
        T(a_terminal_has_a_size_and_a_name),
        T(a_terminal_needs_no_introduction),
        T(the_last_frame_waits_for_the_client),
        T(a_signal_reaches_the_command),
        T(a_client_that_goes_away_takes_its_command_along),
        T(a_background_child_does_not_hold_the_session),
        T(a_command_that_is_not_there_fails_with_a_text),
        T(nothing_runs_in_a_task_that_does_not),
        T(hostile_frames_end_the_session_and_nothing_else),
        T(a_session_ends_with_its_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
