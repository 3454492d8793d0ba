/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/arbiter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#define MAGIC UINT64_C(0x616c6c6f74617262)
#define LAYOUT 1
#define BOOT_ID_BYTES 40
#define SILENT_NS UINT64_C(1000000000) /* an agent that says nothing for so long wants nothing */

struct agent {
    bool here; /* somebody has this place, and a lock on its byte of the file as long as it lives */
    uint64_t told_ns, busy_ns;
};

struct shared {
    uint64_t magic;
    uint32_t layout;
    char boot_id[BOOT_ID_BYTES];
    pthread_mutex_t mutex;
    struct gpu_slices slices;
    struct agent agents[GPU_SLICES_TENANTS];
};

struct gpu_arbiter {
    struct shared *shared;
    int fd;
    uint32_t tenant;
};

/* ---- the file ------------------------------------------------------------------------------- */

static void begin(struct shared *s, const char *boot_id)
{
    pthread_mutexattr_t attr;

    memset(s, 0, sizeof(*s));
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&s->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    gpu_slices_init(&s->slices, true);
    snprintf(s->boot_id, sizeof(s->boot_id), "%s", boot_id);
    s->layout = LAYOUT;
    s->magic = MAGIC;
}

/* Maps FILE; whoever comes first in this boot begins it. */
static int map(const char *file, const char *boot_id, struct gpu_arbiter *a)
{
    _cleanup_close_ int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    struct stat st;
    void *memory;

    if (fd < 0 || flock(fd, LOCK_EX) < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (st.st_size != (off_t)sizeof(struct shared) && ftruncate(fd, sizeof(struct shared)) < 0)
        return -errno;
    memory = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    a->shared = memory;
    if (a->shared->magic != MAGIC || a->shared->layout != LAYOUT ||
        strncmp(a->shared->boot_id, boot_id, BOOT_ID_BYTES - 1) != 0)
        begin(a->shared, boot_id);
    (void)flock(fd, LOCK_UN);
    a->fd = steal_fd(&fd);
    return 0;
}

static void lock(struct shared *s)
{
    if (pthread_mutex_lock(&s->mutex) == EOWNERDEAD)
        pthread_mutex_consistent(&s->mutex);
}

/* ---- who takes part ------------------------------------------------------------------------- */

static struct flock byte_of(uint32_t tenant, short type)
{
    return (struct flock){
        .l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)tenant, .l_len = 1};
}

/* Does an agent other than A live that has the place of TENANT? */
static bool lives(const struct gpu_arbiter *a, uint32_t tenant)
{
    struct flock l = byte_of(tenant, F_WRLCK);

    return fcntl(a->fd, F_OFD_GETLK, &l) < 0 || l.l_type != F_UNLCK;
}

/* Whoever is gone, or does not move, wants nothing. */
static void look_after(const struct gpu_arbiter *a, uint64_t now)
{
    struct shared *s = a->shared;

    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++) {
        struct agent *other = &s->agents[i];

        if (!other->here || i == a->tenant || now < other->told_ns ||
            now - other->told_ns < SILENT_NS)
            continue;
        if (lives(a, i)) {
            gpu_slices_report(&s->slices, i, now, false, other->busy_ns, GPU_SLICE_UNKNOWN);
        } else {
            gpu_slices_leave(&s->slices, i);
            *other = (struct agent){0};
        }
    }
}

/* With the lock. */
static int take_place(struct gpu_arbiter *a, uint32_t milli, uint64_t now)
{
    struct flock l;
    int r = gpu_slices_join(&a->shared->slices, milli, now, &a->tenant);

    if (r < 0)
        return r;
    l = byte_of(a->tenant, F_WRLCK);
    if (fcntl(a->fd, F_OFD_SETLK, &l) < 0) {
        r = -errno;
        gpu_slices_leave(&a->shared->slices, a->tenant);
        return r;
    }
    a->shared->agents[a->tenant] = (struct agent){.here = true, .told_ns = now};
    return 0;
}

static void unmap(struct gpu_arbiter *a)
{
    munmap(a->shared, sizeof(*a->shared));
    close(a->fd);
    free(a);
}

int gpu_arbiter_join(const char *file, const char *boot_id, uint32_t milli, uint64_t now,
                     struct gpu_arbiter **ret_arbiter, struct err *err)
{
    struct gpu_arbiter *a = calloc(1, sizeof(*a));
    int r;

    if (a == NULL)
        return -ENOMEM;
    a->tenant = GPU_SLICES_TENANTS;
    r = map(file, boot_id, a);
    if (r < 0) {
        free(a);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                       "sharing of a GPU: file '%s' cannot be used: %s", file, strerror(-r));
    }
    lock(a->shared);
    look_after(a, now);
    r = take_place(a, milli, now);
    pthread_mutex_unlock(&a->shared->mutex);
    if (r < 0) {
        unmap(a);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                       r == -ENOSPC ? "sharing of a GPU: %d tasks at most can share one"
                                    : "sharing of a GPU: no place among %d",
                       GPU_SLICES_TENANTS);
    }
    *ret_arbiter = a;
    return 0;
}

void gpu_arbiter_leave(struct gpu_arbiter *a)
{
    if (a == NULL)
        return;
    lock(a->shared);
    gpu_slices_leave(&a->shared->slices, a->tenant);
    a->shared->agents[a->tenant] = (struct agent){0};
    pthread_mutex_unlock(&a->shared->mutex);
    unmap(a);
}

uint64_t gpu_arbiter_step(struct gpu_arbiter *a, uint64_t now, bool wants, uint64_t busy_ns,
                          uint64_t *ret_end_ns)
{
    struct shared *s = a->shared;
    uint64_t next;

    lock(s);
    s->agents[a->tenant].told_ns = now;
    s->agents[a->tenant].busy_ns = busy_ns;
    look_after(a, now);
    gpu_slices_report(&s->slices, a->tenant, now, wants, busy_ns, GPU_SLICE_UNKNOWN);
    next = gpu_slices_turn(&s->slices, now);
    *ret_end_ns = gpu_slices_end(&s->slices, a->tenant);
    pthread_mutex_unlock(&s->mutex);
    return next;
}

uint32_t gpu_arbiter_tenants(struct gpu_arbiter *a)
{
    uint32_t n = 0;

    lock(a->shared);
    for (uint32_t i = 0; i < GPU_SLICES_TENANTS; i++)
        n += a->shared->agents[i].here;
    pthread_mutex_unlock(&a->shared->mutex);
    return n;
}
