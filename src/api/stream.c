/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notifier: one thread that lets event streams look for new events.
 *
 * Core only notes the newest event and signals. The notifier then wakes every stream and pauses,
 * the longer the more streams there are, so that a busy server with many watchers does not spend
 * itself on telling them: each wake finds everything since the last.
 *
 * It also looks after upgraded connections, of which no reader of ours would notice that the
 * caller's rights have gone.
 */
#include "api/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#define PAUSE_NS (10 * NS_PER_MS)
#define PAUSE_PER_STREAM_NS (200 * 1000LL)

void api_events_committed(struct api *api, uint64_t seq)
{
    atomic_store(&api->committed, seq);
    pthread_cond_signal(&api->streams_wake);
}

void api_stream_add(struct api *api, struct api_stream *s, struct http_stream *http)
{
    pthread_mutex_lock(&api->streams_lock);
    s->api = api;
    s->http = http;
    s->prev = NULL;
    s->next = api->streams;
    if (s->next)
        s->next->prev = s;
    api->streams = s;
    api->stream_count++;
    pthread_mutex_unlock(&api->streams_lock);
}

void api_stream_remove(struct api_stream *s)
{
    struct api *api = s->api;

    pthread_mutex_lock(&api->streams_lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        api->streams = s->next;
    if (s->next)
        s->next->prev = s->prev;
    api->stream_count--;
    pthread_mutex_unlock(&api->streams_lock);
}

int api_session_add(struct api *api, struct api_session *s, int fd)
{
    s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (s->fd < 0)
        return -errno;
    pthread_mutex_lock(&api->streams_lock);
    s->api = api;
    s->prev = NULL;
    s->next = api->sessions;
    if (s->next)
        s->next->prev = s;
    api->sessions = s;
    pthread_mutex_unlock(&api->streams_lock);
    return 0;
}

void api_session_remove(struct api_session *s)
{
    struct api *api = s->api;

    if (api == NULL)
        return;
    pthread_mutex_lock(&api->streams_lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        api->sessions = s->next;
    if (s->next)
        s->next->prev = s->prev;
    pthread_mutex_unlock(&api->streams_lock);
    s->api = NULL;
    close(s->fd);
}

/* With the lock held. The task's side sees the end, and so does the relay. */
static void check_sessions(struct api *api)
{
    for (struct api_session *s = api->sessions; s; s = s->next)
        if (!api_guard_check(&s->guard, api))
            (void)shutdown(s->fd, SHUT_RDWR);
}

/* With the lock held, which is let go meanwhile. */
static void pause_notifier(struct api *api)
{
    struct timespec pause = {0};
    int64_t ns = PAUSE_NS + (int64_t)api->stream_count * PAUSE_PER_STREAM_NS;

    pthread_mutex_unlock(&api->streams_lock);
    pause.tv_sec = ns / NS_PER_S;
    pause.tv_nsec = ns % NS_PER_S;
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&api->streams_lock);
}

static void *notifier_main(void *arg)
{
    struct api *api = arg;
    uint64_t told = 0;

    pthread_mutex_lock(&api->streams_lock);
    while (api->notifier_runs) {
        uint64_t committed = atomic_load(&api->committed);

        check_sessions(api);
        if (committed == told) {
            struct timespec at;

            /* Core signals without the lock, so a signal may be missed: look again soon. */
            clock_gettime(CLOCK_MONOTONIC, &at);
            at.tv_nsec += 100 * NS_PER_MS;
            if (at.tv_nsec >= NS_PER_S) {
                at.tv_nsec -= NS_PER_S;
                at.tv_sec++;
            }
            pthread_cond_timedwait(&api->streams_wake, &api->streams_lock, &at);
            continue;
        }
        told = committed;
        for (struct api_stream *s = api->streams; s; s = s->next)
            http_stream_wake(s->http);
        pause_notifier(api);
    }
    pthread_mutex_unlock(&api->streams_lock);
    return NULL;
}

int api_notifier_start(struct api *api)
{
    int r;

    api->notifier_runs = true;
    r = pthread_create(&api->notifier, NULL, notifier_main, api);
    if (r != 0)
        api->notifier_runs = false;
    return -r;
}

void api_notifier_stop(struct api *api)
{
    bool ran;

    pthread_mutex_lock(&api->streams_lock);
    ran = api->notifier_runs;
    api->notifier_runs = false;
    pthread_cond_signal(&api->streams_wake);
    pthread_mutex_unlock(&api->streams_lock);
    if (ran)
        pthread_join(api->notifier, NULL);
}
