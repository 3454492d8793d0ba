/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pump: one thread for what the HTTP library does not do by itself. It cuts connections that
 * are past their deadline, wakes streams that are due or whose client hung up, and moves bytes
 * of relays.
 */
#include "net/http_internal.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"

#define EVENTS_MAX 64
#define LONGEST_WAIT_MS 1000 /* how late a deadline may be seen */

void http_pump_kick(struct http_server *s)
{
    const uint64_t one = 1;

    /* Cannot fail in a way that matters: a full counter has the pump awake already. */
    (void)!write(s->pump_event, &one, sizeof(one));
}

void http_pump_add(struct http_server *s, struct watch *w)
{
    w->id = ++s->last_watch;
    map_put(&s->watches, w->id, w);
}

void http_pump_remove(struct http_server *s, struct watch *w)
{
    map_del(&s->watches, w->id);
}

int http_pump_ctl(struct http_server *s, const struct watch *w, int op, int fd, unsigned tag,
                  uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.u64 = w->id << 1 | tag};

    return epoll_ctl(s->pump_epoll, op, fd, &ev) < 0 ? -errno : 0;
}

/* poll() of everything that is due; returns when the next one is. */
static int64_t poll_due(struct http_server *s, int64_t now_ms)
{
    VEC(uint64_t) due = {0};
    int64_t next_ms = now_ms + LONGEST_WAIT_MS;
    struct watch *w;
    size_t it = 0;

    http_connections_relieve(s, now_ms);
    while ((w = map_next(&s->watches, &it))) {
        int64_t due_ms = atomic_load(&w->due_ms);

        if (due_ms <= now_ms)
            vec_push(&due, w->id);
        else if (due_ms < next_ms)
            next_ms = due_ms;
    }
    for (size_t i = 0; i < due.len; i++) {
        int64_t due_ms;

        w = map_get(&s->watches, due.items[i]);
        if (w)
            w->poll(s, w, 0, 0, now_ms);
        /* It may be gone now. */
        w = map_get(&s->watches, due.items[i]);
        due_ms = w ? atomic_load(&w->due_ms) : NO_DEADLINE;
        if (due_ms < next_ms)
            next_ms = due_ms;
    }
    vec_done(&due);
    return next_ms > now_ms ? next_ms : now_ms + 1;
}

/* True for http_pump_kick(). */
static bool take_event(struct http_server *s, const struct epoll_event *ev, int64_t now_ms)
{
    struct watch *w;
    uint64_t count;

    if (ev->data.u64 == 0)
        return read(s->pump_event, &count, sizeof(count)) > 0;
    w = map_get(&s->watches, ev->data.u64 >> 1);
    if (w)
        w->poll(s, w, (unsigned)(ev->data.u64 & 1), ev->events, now_ms);
    return false;
}

static void *pump_main(void *arg)
{
    struct http_server *s = arg;
    struct epoll_event events[EVENTS_MAX];
    int64_t next_ms = clock_boot_ms();

    for (;;) {
        int64_t now_ms = clock_boot_ms();
        int wait_ms = next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
        int n = epoll_wait(s->pump_epoll, events, EVENTS_MAX, wait_ms);
        bool kicked = false;

        now_ms = clock_boot_ms();
        pthread_mutex_lock(&s->lock);
        for (int i = 0; i < n; i++)
            kicked |= take_event(s, &events[i], now_ms);
        if (kicked || now_ms >= next_ms)
            next_ms = poll_due(s, now_ms);
        if (!s->pump_runs) {
            pthread_mutex_unlock(&s->lock);
            return NULL;
        }
        pthread_mutex_unlock(&s->lock);
    }
}

int http_pump_start(struct http_server *s)
{
    struct epoll_event ev = {.events = EPOLLIN};
    int r;

    s->pump_epoll = epoll_create1(EPOLL_CLOEXEC);
    s->pump_event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->pump_epoll < 0 || s->pump_event < 0)
        return -errno;
    if (epoll_ctl(s->pump_epoll, EPOLL_CTL_ADD, s->pump_event, &ev) < 0)
        return -errno;
    s->pump_runs = true;
    r = pthread_create(&s->pump, NULL, pump_main, s);
    if (r != 0)
        s->pump_runs = false;
    return -r;
}

static void stop_watches(struct http_server *s)
{
    VEC(struct watch *) all = {0};
    struct watch *w;
    size_t it = 0;

    /* stop() may take its watch out of the map, so the map is not walked meanwhile. */
    while ((w = map_next(&s->watches, &it)))
        vec_push(&all, w);
    for (size_t i = 0; i < all.len; i++)
        all.items[i]->stop(s, all.items[i]);
    vec_done(&all);
}

void http_pump_stop(struct http_server *s)
{
    bool ran;

    pthread_mutex_lock(&s->lock);
    ran = s->pump_runs;
    s->pump_runs = false;
    stop_watches(s);
    pthread_mutex_unlock(&s->lock);
    if (!ran)
        return;
    http_pump_kick(s);
    pthread_join(s->pump, NULL);
}
