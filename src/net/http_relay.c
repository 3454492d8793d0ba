/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Relays: an upgraded connection and a descriptor, joined by the pump's thread.
 *
 * side[0] is the client, side[1] the descriptor; flow[i] holds what side i has sent and the other
 * has not taken yet. A side is read only while its buffer is empty, so that a slow reader slows
 * the writer down and nothing grows. When a side ends, what it has sent is delivered (for at most
 * DRAIN_MS), what was meant for it is dropped, and both are closed.
 */
#include "net/http_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/cleanup.h"

#define RELAY_BUFFER 65536
#define DRAIN_MS 5000

struct flow {
    size_t begin, end;
    char data[RELAY_BUFFER];
};

struct relay {
    struct watch watch;
    struct MHD_UpgradeResponseHandle *upgraded; /* owns side[0] */
    int side[2];
    bool deaf[2];
    uint32_t interest[2]; /* as registered with epoll; 0 = not registered */
    int ended;            /* which side has ended, -1 = none */
    struct flow flow[2];
};

/* Registers what Y waits for. A side of which nothing is wanted is taken out, because epoll
 * reports hang-ups whether asked or not. */
static int relay_set_interest(struct http_server *s, struct relay *y, int side, uint32_t interest)
{
    int op = EPOLL_CTL_MOD;

    if (interest == y->interest[side])
        return 0;
    if (interest == 0)
        op = EPOLL_CTL_DEL;
    else if (y->interest[side] == 0)
        op = EPOLL_CTL_ADD;
    y->interest[side] = interest;
    return http_pump_ctl(s, &y->watch, op, y->side[side], (unsigned)side, interest);
}

static void relay_close(struct http_server *s, struct relay *y)
{
    relay_set_interest(s, y, 0, 0);
    relay_set_interest(s, y, 1, 0);
    http_pump_remove(s, &y->watch);
    /* Others may hold duplicates of it: what is behind it shall see the end now. */
    (void)shutdown(y->side[1], SHUT_RDWR);
    close(y->side[1]);
    MHD_upgrade_action(y->upgraded, MHD_UPGRADE_ACTION_CLOSE);
    free(y);
}

/* Hands what side FROM has sent to the other, as far as that takes it. */
static void flow_write(struct relay *y, int from)
{
    struct flow *f = &y->flow[from];

    while (f->begin < f->end && !y->deaf[1 - from]) {
        ssize_t n = send(y->side[1 - from], f->data + f->begin, f->end - f->begin, MSG_NOSIGNAL);

        if (n >= 0)
            f->begin += (size_t)n;
        else if (errno == EAGAIN)
            return;
        else if (errno != EINTR)
            y->deaf[1 - from] = true;
    }
    f->begin = f->end = 0;
}

/* Reads from side FROM if its buffer is empty. 1 = something, 0 = nothing now, negative = ended. */
static int flow_read(struct relay *y, int from)
{
    struct flow *f = &y->flow[from];
    ssize_t n;

    if (f->end > 0 || y->deaf[1 - from])
        return 0;
    do
        n = recv(y->side[from], f->data, sizeof(f->data), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN ? 0 : -errno;
    if (n == 0)
        return -EPIPE;
    f->end = (size_t)n;
    return 1;
}

static void relay_move(struct relay *y, int from, int64_t now_ms)
{
    for (int turn = 0; turn < 4 && y->ended != 1 - from; turn++) {
        int r;

        flow_write(y, from);
        r = y->ended < 0 ? flow_read(y, from) : 0;
        if (r < 0) {
            y->ended = from;
            atomic_store(&y->watch.due_ms, now_ms + DRAIN_MS);
        }
        if (r <= 0)
            return;
    }
    flow_write(y, from); /* now others have a turn; epoll is level-triggered */
}

static uint32_t relay_wants(const struct relay *y, int side)
{
    const struct flow *out = &y->flow[side], *in = &y->flow[1 - side];
    bool more = y->ended < 0 && out->end == 0 && !y->deaf[1 - side];
    bool waits = y->ended != side && in->end > 0 && !y->deaf[side];

    return (more ? EPOLLIN : 0u) | (waits ? EPOLLOUT : 0u);
}

static void relay_poll(struct http_server *s, struct watch *w, unsigned tag, uint32_t events,
                       int64_t now_ms)
{
    struct relay *y = (struct relay *)w;
    bool over = events == 0 && y->ended >= 0; /* draining took too long */

    relay_move(y, 0, now_ms);
    relay_move(y, 1, now_ms);
    if (y->ended >= 0 && (y->flow[y->ended].end == 0 || y->deaf[1 - y->ended]))
        over = true;
    if (y->deaf[0] && y->deaf[1])
        over = true;
    for (int i = 0; i < 2 && !over; i++)
        over = relay_set_interest(s, y, i, relay_wants(y, i)) < 0;
    if (over)
        relay_close(s, y);
}

static void relay_stop(struct http_server *s, struct watch *w)
{
    relay_close(s, (struct relay *)w);
}

static struct relay *relay_new(int client, int fd, struct MHD_UpgradeResponseHandle *urh)
{
    struct relay *y = calloc(1, sizeof(*y));
    const int on = 1;

    if (y == NULL)
        abort();
    y->watch.poll = relay_poll;
    y->watch.stop = relay_stop;
    atomic_store(&y->watch.due_ms, NO_DEADLINE);
    y->upgraded = urh;
    y->ended = -1;
    y->side[0] = client;
    y->side[1] = fd;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(client, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    return y;
}

/* The library hands over the connection; bytes that it has read already are in EXTRA. */
static void relay_begin(void *cls, struct MHD_Connection *mhd, void *con_cls, const char *extra,
                        size_t extra_len, MHD_socket sock, struct MHD_UpgradeResponseHandle *urh)
{
    struct exchange *x = cls;
    struct http_server *s = x->server;
    struct relay *y;

    x->upgraded = true;
    http_connection_deadline(x->connection, NO_DEADLINE);
    if (extra_len > RELAY_BUFFER) { /* the head's bound is half of it */
        MHD_upgrade_action(urh, MHD_UPGRADE_ACTION_CLOSE);
        return;
    }
    y = relay_new(sock, steal_fd(&x->upgrade_fd), urh);
    if (extra_len > 0)
        memcpy(y->flow[0].data, extra, extra_len);
    y->flow[0].end = extra_len;
    pthread_mutex_lock(&s->lock);
    http_pump_ctl(s, &x->connection->watch, EPOLL_CTL_DEL, sock, 0, 0); /* ours from here on */
    http_pump_add(s, &y->watch);
    if (atomic_load(&s->stopping) || relay_set_interest(s, y, 0, relay_wants(y, 0)) < 0 ||
        relay_set_interest(s, y, 1, relay_wants(y, 1)) < 0)
        relay_close(s, y);
    pthread_mutex_unlock(&s->lock);
}

void http_reply_upgrade(struct http_request *r, const char *protocol, int fd)
{
    struct exchange *x = exchange_of(r);
    struct MHD_Response *response = MHD_create_response_for_upgrade(relay_begin, x);

    if (response == NULL)
        abort();
    x->upgrade_fd = fd; /* closed with the request unless a relay takes it */
    MHD_add_response_header(response, "Upgrade", protocol);
    http_reply_set(x, MHD_HTTP_SWITCHING_PROTOCOLS, NULL, response);
}
