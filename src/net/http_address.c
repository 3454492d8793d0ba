/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/qty.h"

#define BACKLOG 1024
#define TAKEN_WAIT_MS 3000 /* for an address that somebody has */
#define TAKEN_PAUSE_MS 20

static int bad(const char *text, struct err *err)
{
    return err_set(err, -EINVAL, ERR_INVALID, "listen",
                   "write ADDRESS:PORT, for example 127.0.0.1:8080 or [::1]:8080",
                   "listen address '%.100s' is not an address and a port", text);
}

static int parse_host(const char *host, uint16_t port, struct http_address *ret)
{
    struct sockaddr_in *in4 = (struct sockaddr_in *)&ret->sa;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->sa;

    memset(ret, 0, sizeof(*ret));
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &in4->sin_addr) == 1) {
        in4->sin_family = AF_INET;
        in4->sin_port = htons(port);
        ret->len = sizeof(*in4);
        return 0;
    }
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        ret->len = sizeof(*in6);
        return 0;
    }
    return -EINVAL;
}

int http_address_parse(const char *text, struct http_address *ret_address, struct err *err)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    int64_t port;
    size_t n;

    if (colon == NULL || qty_parse_int(colon + 1, &port, NULL) < 0 || port > UINT16_MAX)
        return bad(text, err);
    n = (size_t)(colon - text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        text++;
        n -= 2;
    } else if (memchr(text, ':', n)) {
        return bad(text, err); /* a bare IPv6 address: which colon begins the port? */
    }
    if (n == 0 || n >= sizeof(host))
        return bad(text, err);
    memcpy(host, text, n);
    host[n] = '\0';
    return parse_host(host, (uint16_t)port, ret_address) < 0 ? bad(text, err) : 0;
}

uint16_t http_address_port(const struct http_address *a)
{
    if (a->sa.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&a->sa)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&a->sa)->sin_port);
}

const char *http_address_format(const struct http_address *a, char *text)
{
    char host[INET6_ADDRSTRLEN] = "?";

    if (a->sa.ss_family == AF_INET6) {
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)&a->sa)->sin6_addr, host, sizeof(host));
        snprintf(text, HTTP_ADDRESS_TEXT_MAX, "[%s]:%u", host, http_address_port(a));
    } else {
        inet_ntop(AF_INET, &((const struct sockaddr_in *)&a->sa)->sin_addr, host, sizeof(host));
        snprintf(text, HTTP_ADDRESS_TEXT_MAX, "%s:%u", host, http_address_port(a));
    }
    return text;
}

static int listen_failed(const struct http_address *a, int errnum, struct err *err)
{
    char text[HTTP_ADDRESS_TEXT_MAX];
    const char *remedy = "choose an address of this machine";

    if (errnum == EADDRINUSE)
        remedy = "stop the program that listens there, or choose another port (0 = any free one)";
    else if (errnum == EACCES)
        remedy = "ports below 1024 need root; choose a higher one";
    return err_set(err, -errnum, ERR_UNAVAILABLE, "listen", remedy, "listening on '%s' failed: %s",
                   http_address_format(a, text), strerror(errnum));
}

/* A child of a server that was killed has its socket until it executes its program, which on a busy
 * machine outlives the moment in which the server is started again. */
static int take(int fd, const struct http_address *a)
{
    const struct timespec pause = {.tv_nsec = TAKEN_PAUSE_MS * NS_PER_MS};
    int64_t until = clock_boot_ms() + TAKEN_WAIT_MS;
    bool bound = false;

    for (;;) {
        bound = bound || bind(fd, (const struct sockaddr *)&a->sa, a->len) == 0;
        if (bound && listen(fd, BACKLOG) == 0)
            return 0;
        if (errno != EADDRINUSE || clock_boot_ms() >= until)
            return -errno;
        nanosleep(&pause, NULL);
    }
}

int http_address_listen(struct http_address *a, int *ret_fd, struct err *err)
{
    _cleanup_close_ int fd = -1;
    const int on = 1;
    int r;

    fd = socket(a->sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return listen_failed(a, errno, err);
    /* A restarted server must not wait for the old connections' TIME_WAIT; a second server on
     * the same port is still refused. */
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
        return listen_failed(a, errno, err);
    r = take(fd, a);
    if (r < 0)
        return listen_failed(a, -r, err);
    if (getsockname(fd, (struct sockaddr *)&a->sa, &a->len) < 0)
        return listen_failed(a, errno, err);
    *ret_fd = steal_fd(&fd);
    return 0;
}
