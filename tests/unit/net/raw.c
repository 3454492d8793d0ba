/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "raw.h"

int raw_connect(uint16_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    return fd;
}

bool raw_send(int fd, const void *data, size_t len)
{
    const char *p = data;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool raw_sends(int fd, const char *text)
{
    return raw_send(fd, text, strlen(text));
}

/* One byte, -1 at the end. */
static int read_byte(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    unsigned char c;

    if (poll(&p, 1, RAW_PATIENCE_MS) != 1)
        fail_msg("no answer within %d ms", RAW_PATIENCE_MS);
    return recv(fd, &c, 1, 0) == 1 ? c : -1;
}

static bool read_line(int fd, struct strbuf *line)
{
    size_t begin = line->len;

    for (;;) {
        int c = read_byte(fd);

        if (c < 0)
            return false;
        strbuf_addc(line, (char)c);
        if (c == '\n')
            return line->len - begin > 2;
    }
}

static bool read_bytes(int fd, size_t n, struct strbuf *out)
{
    while (n > 0) {
        char part[4096];
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t got;

        if (poll(&p, 1, RAW_PATIENCE_MS) != 1)
            fail_msg("no answer within %d ms", RAW_PATIENCE_MS);
        got = recv(fd, part, n < sizeof(part) ? n : sizeof(part), 0);
        if (got <= 0)
            return false;
        strbuf_add(out, part, (size_t)got);
        n -= (size_t)got;
    }
    return true;
}

static void read_chunks(int fd, struct strbuf *body)
{
    for (;;) {
        struct strbuf line = STRBUF_INIT;
        struct strbuf end = STRBUF_INIT;
        size_t n;

        read_line(fd, &line);
        n = strtoul(strbuf_str(&line), NULL, 16);
        if (n > 0)
            read_bytes(fd, n, body);
        read_line(fd, &end);
        strbuf_done(&line);
        strbuf_done(&end);
        if (n == 0)
            return;
    }
}

int raw_reply(int fd, struct strbuf *head, struct strbuf *body)
{
    const char *length;

    if (head->data)
        strbuf_truncate(head, 0);
    if (body->data)
        strbuf_truncate(body, 0);
    while (read_line(fd, head))
        ;
    if (head->len < 12)
        return 0;
    length = strcasestr(head->data, "\r\nContent-Length:");
    if (length)
        read_bytes(fd, strtoul(length + 17, NULL, 10), body);
    else if (strcasestr(head->data, "chunked"))
        read_chunks(fd, body);
    return (int)strtol(head->data + 9, NULL, 10);
}

int raw_ask(uint16_t port, const char *text, struct strbuf *head, struct strbuf *body)
{
    int fd = raw_connect(port);
    int status;

    assert_true(raw_sends(fd, text));
    status = raw_reply(fd, head, body);
    close(fd);
    return status;
}

bool raw_read_until(int fd, struct strbuf *text, const char *needle, int limit_ms)
{
    int64_t end_ms = clock_boot_ms() + limit_ms;

    while (strstr(strbuf_str(text), needle) == NULL) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = end_ms - clock_boot_ms();
        char part[4096];
        ssize_t n;

        if (left <= 0 || poll(&p, 1, (int)left) != 1)
            return false;
        n = recv(fd, part, sizeof(part), 0);
        if (n <= 0)
            return false;
        strbuf_add(text, part, (size_t)n);
    }
    return true;
}

bool raw_wait_closed(int fd, int limit_ms)
{
    int64_t end_ms = clock_boot_ms() + limit_ms;

    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        int64_t left = end_ms - clock_boot_ms();
        char part[4096];

        if (left <= 0 || poll(&p, 1, (int)left) != 1)
            return false;
        if (recv(fd, part, sizeof(part), 0) <= 0)
            return true;
    }
}
