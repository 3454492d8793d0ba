/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The link to the agent: made once in a process, mapped for its life, made anew in the child of
 * a fork. The socket serves to ask for a wake; when it has broken, the next question goes over a
 * new one, and the agent recognises the process.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "share/call.h"
#include "share/compute.h"
#include "share/old_glibc.h"
#include "share/place.h"
#include "share/shim.h"

#define ASK_AGAIN_SECONDS 1

/* LINK_NONE: no link can be had, and the driver may be used all the same; this lasts. */
enum link_state { LINK_NEW, LINK_MADE, LINK_NONE };

static const _Atomic uint32_t open_gate;
const _Atomic uint32_t *share_gate = &open_gate;

static struct share_link {
    pthread_mutex_t lock;
    enum link_state state;
    int socket; /* -1: none */
    struct share_ledger ledger;
} link_of_process = {.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};
static _Atomic(struct share_ledger *) linked; /* NULL until the link is made */
static pthread_once_t fork_watched = PTHREAD_ONCE_INIT;

static int map_region(struct share_link *link, const struct share_welcome *welcome,
                      const int fds[2])
{
    struct share_limits *limits = mmap(NULL, sizeof *limits, PROT_READ, MAP_SHARED, fds[0], 0);
    struct share_counters *counters =
        mmap(NULL, sizeof *counters, PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);

    close(fds[0]);
    close(fds[1]);
    if (limits == MAP_FAILED || counters == MAP_FAILED)
        return -ENOMEM;
    if (limits->magic != SHARE_MAGIC || limits->version != SHARE_VERSION ||
        limits->device_count > SHARE_DEVICES || welcome->slot >= SHARE_SLOTS)
        return -EPROTO;
    share_ledger_init(&link->ledger, limits, counters, welcome->slot);
    __atomic_store_n(&share_gate, &limits->gate, __ATOMIC_RELEASE);
    return 0;
}

/* In the child of a fork: the driver is not usable from before, the slot is the parent's. */
static void forget_link(void)
{
    struct share_link *link = &link_of_process;

    if (link->socket >= 0)
        close(link->socket);
    *link = (struct share_link){.lock = PTHREAD_MUTEX_INITIALIZER, .socket = -1};
    atomic_store(&linked, NULL);
    share_gate = &open_gate;
    share_compute_forked();
}

/*
 * What pthread_atfork() is in glibc. Another C library lacks it, and would refuse to start each
 * program that the shim is preloaded into; no driver can be loaded there that would need it.
 */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *owner) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void watch_fork(void)
{
    if (__register_atfork)
        __register_atfork(NULL, NULL, forget_link, &__dso_handle);
}

static int make_link(struct share_link *link)
{
    struct share_welcome welcome;
    int fds[2];
    int fd = share_call(SHARE_HELLO, &welcome, fds);

    if (fd < 0)
        return fd;
    int r = map_region(link, &welcome, fds);
    if (r < 0) {
        close(fd);
        return r;
    }
    link->socket = fd;
    return 0;
}

/* The link, made if need be. NULL and 0: there is none, and none is needed. */
static int link_process(struct share_ledger **ret_ledger)
{
    struct share_link *link = &link_of_process;
    int r = 0;

    pthread_once(&fork_watched, watch_fork);
    pthread_mutex_lock(&link->lock);
    if (link->state == LINK_NEW) {
        r = make_link(link);
        if (r == 0) {
            link->state = LINK_MADE;
            atomic_store_explicit(&linked, &link->ledger, memory_order_release);
        } else if (access(share_place_open(), F_OK) == 0) {
            link->state = LINK_NONE;
            r = 0;
        }
    }
    *ret_ledger = link->state == LINK_MADE ? &link->ledger : NULL;
    pthread_mutex_unlock(&link->lock);
    return r;
}

struct share_ledger *share_link(void)
{
    struct share_ledger *ledger = atomic_load_explicit(&linked, memory_order_acquire);

    if (ledger == NULL)
        (void)link_process(&ledger);
    return ledger;
}

int share_forbidden(void)
{
    struct share_ledger *ledger = atomic_load_explicit(&linked, memory_order_acquire);

    return ledger ? 0 : link_process(&ledger);
}

void share_obstacle(uint32_t obstacle)
{
    struct share_ledger *ledger = share_link();

    if (ledger)
        atomic_fetch_or(&ledger->counters->slots[ledger->slot].obstacles, obstacle);
}

/* A second greeting: the region is mapped already. */
static int greet_again(void)
{
    struct share_welcome welcome;
    int fds[2];
    int fd = share_call(SHARE_HELLO, &welcome, fds);

    if (fd >= 0) {
        close(fds[0]);
        close(fds[1]);
    }
    return fd;
}

void share_ask_wake(void)
{
    struct share_link *link = &link_of_process;
    struct share_hello wake = {.message = SHARE_WAKE, .version = SHARE_VERSION};

    pthread_mutex_lock(&link->lock);
    for (int i = 0; i < 2; i++) {
        if (link->socket < 0)
            link->socket = greet_again();
        if (link->socket < 0 ||
            send(link->socket, &wake, sizeof wake, MSG_NOSIGNAL) == (ssize_t)sizeof wake)
            break;
        close(link->socket);
        link->socket = -1;
    }
    pthread_mutex_unlock(&link->lock);
}

void share_wait_open(uint32_t symbol)
{
    const _Atomic uint32_t *gate = share_gate;
    const struct timespec again = {.tv_sec = ASK_AGAIN_SECONDS};
    uint32_t seen;

    (void)symbol;
    while ((seen = atomic_load_explicit(gate, memory_order_acquire)) != 0) {
        share_ask_wake();
        syscall(SYS_futex, gate, FUTEX_WAIT, seen, &again, NULL, 0);
    }
}
