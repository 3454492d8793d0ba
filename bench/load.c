/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A load generator that costs little beside the server it measures: one thread, non-blocking
 * keep-alive connections, one request in flight on each.
 *
 *     load HOST PORT TOKEN PATH CONNECTIONS REQUESTS < BODY
 *
 * Sends BODY with POST, REQUESTS times over CONNECTIONS, to a loopback address only. Prints one
 * JSON object: requests, failures (status other than 201), seconds, per_second, and the latency
 * in microseconds at 50, 99 and 100 percent.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/strbuf.h"

#define BODY_MAX (16 << 20)

struct connection {
    int fd;
    size_t sent;      /* of the request */
    char head[8192];  /* the reply's head and what follows it */
    size_t got;
    size_t expect;    /* bytes of the whole reply, 0 = not known yet */
    size_t received;
    int status;
    int64_t began_ns;
};

struct load {
    struct strbuf request;
    struct connection *connections;
    int count, epoll;
    long wanted, started, finished, failed;
    int64_t *latency_ns;
};

static int fail(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    return 1;
}

static int connect_one(struct load *l, struct connection *c, const struct sockaddr_in *to)
{
    int one = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)to, sizeof(*to)) < 0)
        return -errno;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd,
                     &(struct epoll_event){.events = EPOLLIN, .data.ptr = c}) < 0
               ? -errno
               : 0;
}

/* The request fits into the socket's buffer or is pushed until it does. */
static bool send_request(struct load *l, struct connection *c)
{
    if (l->started >= l->wanted)
        return true;
    l->started++;
    c->began_ns = clock_boot_ns();
    c->sent = c->got = c->expect = c->received = 0;
    while (c->sent < l->request.len) {
        ssize_t n = send(c->fd, l->request.data + c->sent, l->request.len - c->sent,
                         MSG_NOSIGNAL);
        if (n < 0)
            return false;
        c->sent += (size_t)n;
    }
    return true;
}

static void parse_head(struct connection *c)
{
    char *end, *length;

    c->head[c->got] = '\0';
    end = strstr(c->head, "\r\n\r\n");
    if (end == NULL)
        return;
    c->status = (int)strtol(c->head + 9, NULL, 10);
    length = strcasestr(c->head, "content-length:");
    c->expect = (size_t)(end + 4 - c->head) +
                (length && length < end ? (size_t)strtoul(length + 15, NULL, 10) : 0);
}

/* False when the connection broke. */
static bool receive(struct load *l, struct connection *c)
{
    char waste[65536];
    bool head = c->expect == 0;
    ssize_t n = head ? recv(c->fd, c->head + c->got, sizeof(c->head) - 1 - c->got, 0)
                     : recv(c->fd, waste, sizeof(waste), 0);

    if (n <= 0)
        return false;
    c->received += (size_t)n;
    if (head) {
        c->got += (size_t)n;
        parse_head(c);
    }
    if (c->expect == 0 || c->received < c->expect)
        return c->expect != 0 || c->got < sizeof(c->head) - 1;
    l->latency_ns[l->finished++] = clock_boot_ns() - c->began_ns;
    l->failed += c->status != 201;
    return send_request(l, c);
}

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int run(struct load *l)
{
    struct epoll_event events[256];

    for (int i = 0; i < l->count; i++)
        if (!send_request(l, &l->connections[i]))
            return fail("send");
    while (l->finished < l->wanted) {
        int n = epoll_wait(l->epoll, events, 256, 30000);

        if (n <= 0)
            return fail("no answer within 30 s");
        for (int i = 0; i < n; i++)
            if (!receive(l, events[i].data.ptr))
                return fail("a connection broke");
    }
    return 0;
}

static void report(struct load *l, int64_t ns)
{
    qsort(l->latency_ns, (size_t)l->finished, sizeof(*l->latency_ns), by_value);
    printf("{\"requests\":%ld,\"failures\":%ld,\"seconds\":%lld.%03lld,\"per_second\":%lld,"
           "\"p50_us\":%lld,\"p99_us\":%lld,\"max_us\":%lld}\n",
           l->finished, l->failed, (long long)(ns / NS_PER_S),
           (long long)(ns / NS_PER_MS % 1000), (long long)(l->finished * NS_PER_S / ns),
           (long long)l->latency_ns[l->finished / 2] / 1000,
           (long long)l->latency_ns[l->finished * 99 / 100] / 1000,
           (long long)l->latency_ns[l->finished - 1] / 1000);
}

int main(int argc, char **argv)
{
    struct load l = {0};
    struct sockaddr_in to = {.sin_family = AF_INET};
    _cleanup_free_ char *body = malloc(BODY_MAX);
    size_t body_len;
    int64_t began;
    int r;

    if (argc != 7 || body == NULL) {
        fprintf(stderr, "usage: load HOST PORT TOKEN PATH CONNECTIONS REQUESTS < BODY\n");
        return 2;
    }
    if (inet_pton(AF_INET, argv[1], &to.sin_addr) != 1 ||
        (ntohl(to.sin_addr.s_addr) >> 24) != 127) {
        fprintf(stderr, "load: '%s' is not a loopback address\n", argv[1]);
        return 2;
    }
    to.sin_port = htons((uint16_t)strtol(argv[2], NULL, 10));
    l.count = (int)strtol(argv[5], NULL, 10);
    l.wanted = strtol(argv[6], NULL, 10);
    body_len = fread(body, 1, BODY_MAX, stdin);
    strbuf_addf(&l.request,
                "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
                "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                argv[4], argv[1], argv[3], body_len);
    strbuf_add(&l.request, body, body_len);
    l.connections = calloc((size_t)l.count, sizeof(*l.connections));
    l.latency_ns = calloc((size_t)l.wanted + 1, sizeof(*l.latency_ns));
    l.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (l.connections == NULL || l.latency_ns == NULL || l.epoll < 0)
        return fail("set-up");
    for (int i = 0; i < l.count; i++)
        if (connect_one(&l, &l.connections[i], &to) < 0)
            return fail("connect");
    began = clock_boot_ns();
    r = run(&l);
    if (r == 0)
        report(&l, clock_boot_ns() - began);
    strbuf_done(&l.request);
    free(l.connections);
    free(l.latency_ns);
    return r;
}
