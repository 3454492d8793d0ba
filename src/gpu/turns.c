/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gpu/slices.h"

#define MAGIC 0x616c7462u /* "altb" */
#define ROWS GPU_SLICES_TENANTS
#define LEAD 0 /* the byte of the file that the leader locks; of row I it is I + 1 */
#define PATIENCE_NS GPU_SLICE_NS /* for work that goes on after its slice */
#define TICK_NS UINT64_C(1000000)
#define HANDOVER_TICK_NS UINT64_C(200000) /* while a slice is over and the next one is not given \
                                           */
#define ALONE_TICK_NS UINT64_C(5000000)
#define IDLE_TICK_NS UINT64_C(50000000)

/* One line of memory each, written by its owner but for end_ns, which is the leader's. */
struct row {
    _Atomic uint64_t owner; /* a number that no owner before had; 0: nobody yet */
    _Atomic uint64_t end_ns, busy_ns;
    _Atomic uint32_t milli;
    _Atomic uint32_t wants, working;
    uint32_t reserved[7];
};

struct board {
    _Atomic uint32_t magic;
    uint32_t reserved;
    _Atomic uint64_t owners;  /* numbers given so far */
    _Atomic uint64_t beat_ns; /* when the leader stepped last */
    _Atomic uint64_t turn_ns; /* when the slice that somebody has is over; 0: there are none */
    uint64_t reserved2[4];
    struct row rows[ROWS];
};

/* What the leader knows of a row. */
struct known {
    uint64_t owner;   /* 0: not a tenant */
    uint64_t busy_ns; /* when it became one */
    uint32_t tenant;
};

struct gpu_turns {
    int fd;
    struct board *board;
    uint32_t row;
    bool unused_usable, leads;
    struct known known[ROWS];
    struct gpu_slices slices;
};

/* ---- locks: of the open file, so that they go with it ---------------------------------------- */

static bool lock_byte(int fd, uint32_t byte, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

static bool others_lock(int fd, uint32_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- a row ----------------------------------------------------------------------------------- */

static int take_row(struct gpu_turns *t, uint32_t milli)
{
    for (uint32_t i = 0; i < ROWS; i++) {
        struct row *r = &t->board->rows[i];

        if (!lock_byte(t->fd, i + 1, F_WRLCK))
            continue;
        t->row = i;
        atomic_store(&r->milli, milli);
        atomic_store(&r->busy_ns, 0);
        atomic_store(&r->wants, 0);
        atomic_store(&r->working, 0);
        atomic_store(&r->end_ns, SHARE_NO_SLICE);
        atomic_store(&r->owner, atomic_fetch_add(&t->board->owners, 1) + 1);
        return 0;
    }
    return -ENOSPC;
}

static int map_board(struct gpu_turns *t, const char *path)
{
    uint32_t magic = 0;

    t->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (t->fd < 0 || ftruncate(t->fd, sizeof(*t->board)) < 0)
        return -errno;
    t->board = mmap(NULL, sizeof(*t->board), PROT_READ | PROT_WRITE, MAP_SHARED, t->fd, 0);
    if (t->board == MAP_FAILED) {
        t->board = NULL;
        return -errno;
    }
    if (!atomic_compare_exchange_strong(&t->board->magic, &magic, MAGIC) && magic != MAGIC)
        return -EPROTO;
    return 0;
}

int gpu_turns_open(const char *path, uint32_t milli, bool unused_usable,
                   struct gpu_turns **ret_turns, struct err *err)
{
    struct gpu_turns *t = calloc(1, sizeof(*t));
    int r;

    if (t == NULL)
        return -ENOMEM;
    t->fd = -1;
    t->unused_usable = unused_usable;
    r = milli >= 1 && milli <= 1000 ? map_board(t, path) : -EINVAL;
    if (r == 0)
        r = take_row(t, milli);
    if (r < 0) {
        gpu_turns_close(t);
        return err_set(err, r, ERR_UNAVAILABLE, NULL, NULL,
                       "sharing of GPUs: no turn of %u milli-GPU at the board '%s': %s", milli,
                       path, strerror(-r));
    }
    *ret_turns = t;
    return 0;
}

void gpu_turns_close(struct gpu_turns *t)
{
    if (t == NULL)
        return;
    cleanup_close(&t->fd);
    if (t->board)
        munmap(t->board, sizeof(*t->board));
    free(t);
}

/* ---- leading --------------------------------------------------------------------------------- */

static bool lead(struct gpu_turns *t)
{
    if (!t->leads && lock_byte(t->fd, LEAD, F_WRLCK)) {
        t->leads = true;
        memset(t->known, 0, sizeof(t->known));
        gpu_slices_init(&t->slices, t->unused_usable);
    }
    return t->leads;
}

/* Whose row I is: 0 if nobody's. */
static uint64_t owner_of(const struct gpu_turns *t, uint32_t i)
{
    uint64_t owner = atomic_load(&t->board->rows[i].owner);

    return owner != 0 && (i == t->row || others_lock(t->fd, i + 1)) ? owner : 0;
}

static void see_row(struct gpu_turns *t, uint32_t i, uint64_t now)
{
    const struct row *r = &t->board->rows[i];
    struct known *k = &t->known[i];
    uint64_t owner = owner_of(t, i), busy = atomic_load(&r->busy_ns);

    if (k->owner != 0 && k->owner != owner)
        gpu_slices_leave(&t->slices, k->tenant);
    if (k->owner != owner) {
        *k = (struct known){.owner = owner, .busy_ns = busy};
        if (owner != 0 && gpu_slices_join(&t->slices, atomic_load(&r->milli), now, &k->tenant) < 0)
            k->owner = 0;
    }
    if (k->owner != 0)
        gpu_slices_report(&t->slices, k->tenant, now, atomic_load(&r->wants) != 0,
                          busy > k->busy_ns ? busy - k->busy_ns : 0);
}

/* Whether the work of whoever has the slice in T goes on, and is waited for. */
static bool drains(const struct gpu_turns *t, uint64_t now)
{
    for (uint32_t i = 0; i < ROWS; i++)
        if (t->known[i].owner != 0 && t->known[i].tenant == t->slices.holder)
            return now < t->slices.end_ns + PATIENCE_NS &&
                   atomic_load(&t->board->rows[i].working) != 0;
    return false;
}

static void give_slices(struct gpu_turns *t, uint64_t now)
{
    struct gpu_slices next;

    for (uint32_t i = 0; i < ROWS; i++)
        see_row(t, i, now);
    next = t->slices;
    gpu_slices_turn(&next, now);
    if (next.holder == t->slices.holder || !drains(t, now))
        t->slices = next;
    for (uint32_t i = 0; i < ROWS; i++)
        if (t->known[i].owner != 0)
            atomic_store(&t->board->rows[i].end_ns, gpu_slices_end(&t->slices, t->known[i].tenant));
    atomic_store(&t->board->turn_ns, t->slices.open ? 0 : t->slices.end_ns);
    atomic_store(&t->board->beat_ns, now);
}

static uint64_t next_step(const struct gpu_turns *t, uint64_t now, bool wants)
{
    uint64_t turn = atomic_load(&t->board->turn_ns);

    if (turn == 0)
        return now + (wants ? ALONE_TICK_NS : IDLE_TICK_NS);
    if (now >= turn)
        return now + HANDOVER_TICK_NS;
    return turn < now + TICK_NS ? turn : now + TICK_NS;
}

uint64_t gpu_turns_step(struct gpu_turns *t, uint64_t now, const struct gpu_region_use *use,
                        uint64_t *ret_end_ns)
{
    struct row *r = &t->board->rows[t->row];
    bool wants = use->waits || use->working || use->submitted;

    atomic_store(&r->busy_ns, use->busy_ns);
    atomic_store(&r->working, use->working);
    atomic_store(&r->wants, wants);
    if (lead(t))
        give_slices(t, now);
    *ret_end_ns = atomic_load(&r->end_ns);
    if (now > atomic_load(&t->board->beat_ns) + GPU_TURNS_STALE_NS)
        *ret_end_ns = SHARE_NO_SLICE;
    return next_step(t, now, wants);
}
