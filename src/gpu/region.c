/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/region.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "share/ledger.h"

#define CONNECTIONS_MAX (2 * SHARE_SLOTS) /* of one task; those that say nothing included */
#define EVENTS_AT_ONCE 64

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum watch_kind { WATCH_LISTENER, WATCH_CONNECTION, WATCH_PROCESS };

/* What an event of epoll is about. */
struct watch {
    enum watch_kind kind;
    int fd; /* -1: not in use */
    uint32_t slot;
    int32_t pid; /* WATCH_CONNECTION: whose; 0 until it has greeted */
};

struct gpu_region {
    struct share_limits *limits;
    struct share_counters *counters;
    int limits_fd, counters_fd;
    int32_t pids[SHARE_SLOTS]; /* who has it, 0 = nobody */
    int epoll;
    int spare; /* a descriptor to accept with, and refuse, when there are no others */
    struct watch listener;
    struct watch connections[CONNECTIONS_MAX];
    uint32_t last_connection;
    struct watch processes[SHARE_SLOTS];
    uint64_t ended_busy_ns[SHARE_DEVICES]; /* of processes that are gone */
    uint64_t told_busy_ns[SHARE_DEVICES];
    uint64_t seen_submits[SHARE_DEVICES]; /* at the last look, all processes together */
    void (*wake)(void *ctx);
    void *ctx;
};

/* ---- files -------------------------------------------------------------------------------- */

/* Anonymous memory of SIZE that nobody can resize, mapped here. SEAL: one more, put on last. */
static int map_memory(const char *name, size_t size, int seal, void **ret_map, int *ret_fd)
{
    _cleanup_close_ int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    void *map;

    if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
        return -errno;
    map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return -errno;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | seal | F_SEAL_SEAL) < 0) {
        int r = -errno;
        munmap(map, size);
        return r;
    }
    *ret_map = map;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int make_files(struct gpu_region *g, const struct gpu_region_config *c)
{
    int r = map_memory("limits", sizeof(*g->limits), F_SEAL_FUTURE_WRITE, (void **)&g->limits,
                       &g->limits_fd);

    if (r == 0)
        r = map_memory("counters", sizeof(*g->counters), 0, (void **)&g->counters, &g->counters_fd);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < c->device_count; i++) {
        struct share_device *d = &g->limits->devices[i];

        memcpy(d->uuid, c->devices[i].uuid, sizeof(d->uuid));
        d->memory_limit = c->devices[i].memory_limit;
        d->context_bytes = c->devices[i].context_bytes;
        d->compute_milli = c->devices[i].compute_milli;
        atomic_store(&d->slice_end_ns, SHARE_NO_SLICE);
    }
    g->limits->device_count = c->device_count;
    g->limits->flags = c->flags;
    g->limits->magic = g->counters->magic = SHARE_MAGIC;
    g->limits->version = g->counters->version = SHARE_VERSION;
    return 0;
}

/* ---- watching ----------------------------------------------------------------------------- */

static int watch(struct gpu_region *g, struct watch *w, enum watch_kind kind, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = w};

    if (epoll_ctl(g->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
        return -errno;
    w->kind = kind;
    w->fd = fd;
    return 0;
}

/* Closing alone is not enough: a forked child may keep the description in the epoll set. */
static void unwatch(struct gpu_region *g, struct watch *w)
{
    if (w->fd < 0)
        return;
    epoll_ctl(g->epoll, EPOLL_CTL_DEL, w->fd, NULL);
    close(w->fd);
    w->fd = -1;
    w->pid = 0;
}

static int listen_at(struct gpu_region *g, const char *folder)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_close_ int fd = -1;
    const int yes = 1;
    int r = io_mkdirs(folder, 0755);
    int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", folder);

    if (r < 0)
        return r;
    if (length < 0 || (size_t)length >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    /* Those that are accepted inherit it. Asked for after an accept it would come too late for a
     * hello that is sent in between, which nobody seems to have sent then. */
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
        return -errno;
    if (unlink(address.sun_path) < 0 && errno != ENOENT)
        return -errno;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0666) < 0 || listen(fd, CONNECTIONS_MAX) < 0)
        return -errno;
    r = watch(g, &g->listener, WATCH_LISTENER, fd);
    if (r == 0)
        fd = -1;
    return r;
}

/* ---- processes ---------------------------------------------------------------------------- */

static uint64_t plus(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* With a process goes what it may have written into slots that are nobody's. Its busy time stays
 * the task's. */
static void let_go(struct gpu_region *g, uint32_t slot)
{
    for (uint32_t d = 0; d < SHARE_DEVICES; d++)
        g->ended_busy_ns[d] = plus(g->ended_busy_ns[d],
                                   atomic_load(&g->counters->slots[slot].devices[d].busy_ns));
    unwatch(g, &g->processes[slot]);
    g->pids[slot] = 0;
    for (uint32_t i = 0; i < SHARE_SLOTS; i++)
        if (g->pids[i] == 0)
            share_ledger_empty(g->counters, i);
}

/* Who is at the other end of FD. Before Linux 6.5 by its number: a peer that died meanwhile may
 * have left its number to another of the task, which is watched for it then. */
static int peer(int fd, int32_t *ret_pid, int *ret_pidfd)
{
    struct ucred who;
    socklen_t size = sizeof(who);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return -errno;
    if (who.pid == 0)
        return -ESRCH; /* not to be seen from here */
    size = sizeof(*ret_pidfd);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, ret_pidfd, &size) < 0)
        *ret_pidfd = (int)syscall(SYS_pidfd_open, who.pid, 0);
    if (*ret_pidfd < 0)
        return -errno;
    *ret_pid = who.pid;
    return 0;
}

static bool has_ended(int pidfd)
{
    struct pollfd p = {.fd = pidfd, .events = POLLIN};

    return poll(&p, 1, 0) != 0;
}

/* The slot of the process at the other end of FD: the one it has already, or a free one. */
static int take_slot(struct gpu_region *g, int fd, uint32_t *ret_slot)
{
    _cleanup_close_ int pidfd = -1;
    uint32_t slot = SHARE_SLOTS;
    int32_t pid = 0;
    int r = peer(fd, &pid, &pidfd);

    if (r < 0)
        return r;
    if (has_ended(pidfd))
        return -ESRCH; /* another one has its socket */
    for (uint32_t i = SHARE_SLOTS; i-- > 0;) {
        if (g->pids[i] == pid && has_ended(g->processes[i].fd))
            let_go(g, i);
        else if (g->pids[i] == pid) {
            *ret_slot = i;
            return 0;
        }
        if (g->pids[i] == 0)
            slot = i;
    }
    if (slot == SHARE_SLOTS)
        return -ENOSPC;
    g->processes[slot].slot = slot;
    r = watch(g, &g->processes[slot], WATCH_PROCESS, pidfd);
    if (r < 0)
        return r;
    pidfd = -1;
    g->pids[slot] = pid;
    share_ledger_empty(g->counters, slot); /* whatever others have written there */
    atomic_store(&g->counters->slots[slot].taken, 1);
    if (atomic_load(&g->limits->slots_used) <= slot)
        atomic_store(&g->limits->slots_used, slot + 1);
    *ret_slot = slot;
    return 0;
}

/* ---- messages ----------------------------------------------------------------------------- */

/* False: it cannot be told, for it does not read or too many descriptors are under way. */
static bool answer(const struct gpu_region *g, int fd, int error, uint32_t slot)
{
    struct share_welcome welcome = {.message = error < 0 ? SHARE_REFUSAL : SHARE_WELCOME,
                                    .version = SHARE_VERSION,
                                    .slot = slot,
                                    .error = error};
    const int fds[2] = {g->limits_fd, g->counters_fd};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(fds))];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(sizeof(fds))}};
    struct iovec part = {.iov_base = &welcome, .iov_len = sizeof(welcome)};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (error == 0) {
        memcpy(CMSG_DATA(&control.header), fds, sizeof(fds));
        message.msg_control = &control;
        message.msg_controllen = sizeof(control);
    }
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof(welcome);
}

/* SENDER is who says so; a child that speaks over its parent's socket is another one. One
 * connection is enough for a process: a second one takes the place of the first. */
static void greet(struct gpu_region *g, struct watch *w, uint32_t version, int32_t sender)
{
    uint32_t slot = 0;
    int r = version == SHARE_VERSION ? take_slot(g, w->fd, &slot) : -EPROTO;

    if (r == 0 && g->pids[slot] != sender)
        r = -EPERM;
    if (r == 0) {
        for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
            if (&g->connections[i] != w && g->connections[i].pid == sender)
                unwatch(g, &g->connections[i]);
        w->pid = sender;
    }
    if (!answer(g, w->fd, r, slot))
        unwatch(g, w); /* it hears that, and may greet again */
}

/* Whoever only looks is no process of the devices. */
static void show(struct gpu_region *g, struct watch *w, uint32_t version)
{
    (void)answer(g, w->fd, version == SHARE_VERSION ? 0 : -EPROTO, SHARE_SLOTS);
    unwatch(g, w);
}

/* What W has sent and who sent it. False: it has ended, or says nonsense. */
static bool receive(const struct watch *w, struct share_hello *ret_hello, int32_t *ret_sender)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct iovec part = {.iov_base = ret_hello, .iov_len = sizeof(*ret_hello)};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(w->fd, &message, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&message);
    struct ucred sender;

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        ret_hello->message = 0; /* nothing after all */
        return true;
    }
    if (n != (ssize_t)sizeof(*ret_hello) || c == NULL || c->cmsg_type != SCM_CREDENTIALS)
        return false;
    memcpy(&sender, CMSG_DATA(c), sizeof(sender));
    *ret_sender = sender.pid;
    return true;
}

static void take_message(struct gpu_region *g, struct watch *w)
{
    struct share_hello hello;
    int32_t sender = 0;

    if (!receive(w, &hello, &sender))
        unwatch(g, w);
    else if (hello.message == SHARE_HELLO)
        greet(g, w, hello.version, sender);
    else if (hello.message == SHARE_LOOK)
        show(g, w, hello.version);
    else if (hello.message == SHARE_WAKE && g->wake && atomic_load(&g->limits->gate) != 0)
        g->wake(g->ctx);
}

/* A place for a connection: the one after the last that is free, or else that of one which has
 * not said who it is. So the silent go in the order in which they came. */
static struct watch *connection_place(struct gpu_region *g)
{
    struct watch *silent = NULL;

    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++) {
        struct watch *w = &g->connections[(g->last_connection + 1 + i) % CONNECTIONS_MAX];
        if (w->fd >= 0 && (w->pid != 0 || silent))
            continue;
        silent = w;
        if (w->fd < 0)
            break;
    }
    if (silent) {
        unwatch(g, silent);
        g->last_connection = (uint32_t)(silent - g->connections);
    }
    return silent;
}

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a descriptor left a connection would stay where it is, and be told of for ever. */
static void turn_away(struct gpu_region *g)
{
    cleanup_close(&g->spare);
    g->spare = accept4(g->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    cleanup_close(&g->spare);
    g->spare = open_spare();
}

static void take_connection(struct gpu_region *g)
{
    _cleanup_close_ int fd = accept4(g->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct watch *w;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            turn_away(g);
        return;
    }
    w = connection_place(g);
    if (w == NULL) {
        answer(g, fd, -ENOSPC, 0);
        return;
    }
    if (watch(g, w, WATCH_CONNECTION, fd) == 0)
        fd = -1;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static void init(struct gpu_region *g, const struct gpu_region_config *c)
{
    g->wake = c->wake;
    g->ctx = c->ctx;
    g->limits_fd = g->counters_fd = g->epoll = g->spare = g->listener.fd = -1;
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        g->connections[i].fd = -1;
    for (uint32_t i = 0; i < SHARE_SLOTS; i++)
        g->processes[i].fd = -1;
}

int gpu_region_open(const struct gpu_region_config *config, struct gpu_region **ret_region,
                    struct err *err)
{
    struct gpu_region *g = calloc(1, sizeof(*g));
    int r;

    if (g == NULL)
        return -ENOMEM;
    init(g, config);
    g->epoll = epoll_create1(EPOLL_CLOEXEC);
    g->spare = open_spare();
    r = g->epoll < 0 || g->spare < 0 ? -errno : 0;
    if (r == 0)
        r = config->device_count <= SHARE_DEVICES ? make_files(g, config) : -E2BIG;
    if (r == 0)
        r = listen_at(g, config->folder);
    if (r < 0) {
        gpu_region_close(g);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                       "sharing of GPUs: the region in '%s' cannot be made: %s", config->folder,
                       strerror(-r));
    }
    *ret_region = g;
    return 0;
}

void gpu_region_close(struct gpu_region *g)
{
    if (g == NULL)
        return;
    unwatch(g, &g->listener);
    for (uint32_t i = 0; i < CONNECTIONS_MAX; i++)
        unwatch(g, &g->connections[i]);
    for (uint32_t i = 0; i < SHARE_SLOTS; i++)
        unwatch(g, &g->processes[i]);
    cleanup_close(&g->limits_fd);
    cleanup_close(&g->counters_fd);
    cleanup_close(&g->epoll);
    cleanup_close(&g->spare);
    if (g->limits)
        munmap(g->limits, sizeof(*g->limits));
    if (g->counters)
        munmap(g->counters, sizeof(*g->counters));
    free(g);
}

int gpu_region_fd(const struct gpu_region *g)
{
    return g->epoll;
}

void gpu_region_serve(struct gpu_region *g)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(g->epoll, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < n; i++) {
        struct watch *w = events[i].data.ptr;

        if (w->fd < 0)
            continue;
        if (w->kind == WATCH_LISTENER)
            take_connection(g);
        else if (w->kind == WATCH_CONNECTION)
            take_message(g, w);
        else if (has_ended(w->fd))
            let_go(g, w->slot);
    }
}

void gpu_region_gate(struct gpu_region *g, bool open)
{
    atomic_store(&g->limits->gate, open ? 0 : 1);
    if (open)
        syscall(SYS_futex, &g->limits->gate, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gpu_region_beyond(struct gpu_region *g, uint32_t device, uint64_t bytes)
{
    atomic_store(&g->limits->devices[device].beyond, bytes);
}

void gpu_region_slice(struct gpu_region *g, uint32_t device, uint64_t end_ns)
{
    struct share_device *d = &g->limits->devices[device];

    if (atomic_load(&d->slice_end_ns) == end_ns)
        return;
    atomic_store(&d->slice_end_ns, end_ns);
    atomic_fetch_add(&d->slice_turn, 1);
    syscall(SYS_futex, &d->slice_turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gpu_region_use(struct gpu_region *g, uint32_t device, struct gpu_region_use *ret_use)
{
    uint64_t busy = g->ended_busy_ns[device], submits = 0;
    struct gpu_region_use use = {0};

    for (uint32_t i = 0; i < SHARE_SLOTS; i++) {
        struct share_slot *s = &g->counters->slots[i];
        if (g->pids[i] == 0)
            continue;
        busy = plus(busy, atomic_load(&s->devices[device].busy_ns));
        use.waits |= atomic_load(&s->waiting) >> device & 1;
        use.working |= atomic_load(&s->outstanding) >> device & 1;
        /* Without memory on it, a context's, there is nothing that could be submitted to it. */
        if (atomic_load(&s->devices[device].held) > 0)
            submits += atomic_load(&s->submits);
    }
    use.submitted = submits != g->seen_submits[device];
    g->seen_submits[device] = submits;
    if (busy > g->told_busy_ns[device])
        g->told_busy_ns[device] = busy;
    use.busy_ns = g->told_busy_ns[device];
    *ret_use = use;
}

uint64_t gpu_region_held(const struct gpu_region *g, uint32_t device)
{
    return share_ledger_held(g->limits, g->counters, device);
}

uint64_t gpu_region_charged(const struct gpu_region *g, uint32_t device)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < SHARE_SLOTS; i++)
        if (g->pids[i] != 0)
            sum = plus(sum, atomic_load(&g->counters->slots[i].devices[device].held));
    return sum;
}

uint32_t gpu_region_processes(const struct gpu_region *g)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < SHARE_SLOTS; i++)
        n += g->pids[i] != 0;
    return n;
}

uint32_t gpu_region_pids(const struct gpu_region *g, int32_t *ret_pids, uint32_t max)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < SHARE_SLOTS && n < max; i++)
        if (g->pids[i] != 0)
            ret_pids[n++] = g->pids[i];
    return n;
}

uint32_t gpu_region_obstacles(const struct gpu_region *g)
{
    uint32_t obstacles = 0;

    for (uint32_t i = 0; i < SHARE_SLOTS; i++)
        if (g->pids[i] != 0)
            obstacles |= atomic_load(&g->counters->slots[i].obstacles);
    return obstacles;
}
