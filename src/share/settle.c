/* SPDX-License-Identifier: Apache-2.0 */
#include "share/settle.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "share/charge.h"
#include "share/compute.h"
#include "share/shim.h"

#define MIB (UINT64_C(1) << 20)
/* The most by which drivers round up what a pool takes. What turns out to be less is given back
 * at once; a pool cannot use the last STEP of a limit. */
#define STEP (32 * MIB)
#define FIRST_HOLDERS 64
#define FREES_MAX 64

/* A pool, or the graphs' memory of a device. */
struct holder {
    struct cu_pool *pool; /* NULL: of graphs */
    cu_device ordinal;
    int device;
    uint64_t charged;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all below */
static struct holder *holders;                           /* of mmap */
static uint32_t count, room;
static struct later {
    struct cu_event *event;
    int device;
    uint64_t bytes;
} frees[FREES_MAX];
static uint32_t free_count;
static _Atomic bool dirty;

static int more_room(void)
{
    uint32_t next = room ? 2 * room : FIRST_HOLDERS;
    struct holder *more = mmap(NULL, next * sizeof(*more), PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (more == MAP_FAILED)
        return -ENOMEM;
    if (holders) {
        memcpy(more, holders, count * sizeof(*more));
        munmap(holders, room * sizeof(*holders));
    }
    holders = more;
    room = next;
    return 0;
}

static struct holder *holder_of(struct cu_pool *pool, cu_device ordinal, int device)
{
    for (uint32_t i = 0; i < count; i++)
        if (holders[i].pool == pool && (pool || holders[i].ordinal == ordinal))
            return &holders[i];
    if (count == room && more_room() < 0)
        return NULL;
    holders[count] = (struct holder){.pool = pool, .ordinal = ordinal, .device = device};
    return &holders[count++];
}

/* What H has taken of its device and what of that is in use. False: the driver does not say. */
static bool ask(const struct holder *h, uint64_t *ret_reserved, uint64_t *ret_used)
{
    if (h->pool)
        return REAL(cuMemPoolGetAttribute)(h->pool, CU_POOL_RESERVED_CURRENT, ret_reserved) ==
                   CU_OK &&
               REAL(cuMemPoolGetAttribute)(h->pool, CU_POOL_USED_CURRENT, ret_used) == CU_OK;
    return REAL(cuDeviceGetGraphMemAttribute)(h->ordinal, CU_GRAPH_MEM_RESERVED_CURRENT,
                                              ret_reserved) == CU_OK &&
           REAL(cuDeviceGetGraphMemAttribute)(h->ordinal, CU_GRAPH_MEM_USED_CURRENT, ret_used) ==
               CU_OK;
}

/* Makes the charge what the driver says, counting RESERVED as charged already. False: it grew by
 * more, and that has no room; it is charged all the same. */
static bool settle(struct holder *h, uint64_t reserved)
{
    uint64_t now = 0, used, charged = h->charged + reserved;
    bool fits = true;

    if (!ask(h, &now, &used))
        now = h->charged;
    if (now < charged)
        share_refund(h->device, charged - now);
    else if (now > charged && !share_charge(h->device, now - charged)) {
        share_charge_anyway(h->device, now - charged);
        fits = false;
    }
    h->charged = now;
    return fits;
}

static void settle_frees(void)
{
    int mode = share_relax(); /* a capture in another thread does not stand a query */

    for (uint32_t i = free_count; i-- > 0;) {
        if (REAL(cuEventQuery)(frees[i].event) == CU_NOT_READY)
            continue;
        REAL(cuEventDestroy_v2)(frees[i].event);
        share_refund(frees[i].device, frees[i].bytes);
        frees[i] = frees[--free_count];
    }
    share_unrelax(mode);
}

static void settle_all(void)
{
    atomic_store_explicit(&dirty, false, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++)
        settle(&holders[i], 0);
    settle_frees();
    if (free_count > 0)
        share_dirty();
}

bool share_grow_begin(struct growth *growth, struct cu_pool *pool, cu_device ordinal, int device,
                      uint64_t bytes)
{
    uint64_t taken, used, most = 0;
    struct holder *h;

    *growth = (struct growth){0};
    if (device < 0)
        return true;
    pthread_mutex_lock(&lock);
    h = holder_of(pool, ordinal, device);
    if (h && ask(h, &taken, &used) && bytes > taken - used &&
        (__builtin_add_overflow(bytes, STEP - 1, &most) || (most &= ~(STEP - 1)) == 0))
        h = NULL;
    if (h && !share_charge(device, most)) {
        settle_all();
        if (!share_charge(device, most))
            h = NULL;
    }
    if (h == NULL) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    *growth = (struct growth){h, most};
    return true;
}

bool share_grow_end(struct growth *growth)
{
    bool fits;

    if (growth->holder == NULL)
        return true;
    fits = settle(growth->holder, growth->reserved);
    pthread_mutex_unlock(&lock);
    return fits;
}

void share_pool_gone(struct cu_pool *pool)
{
    pthread_mutex_lock(&lock);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t taken, used = 1;
        if (holders[i].pool != pool)
            continue;
        if (ask(&holders[i], &taken, &used) && used == 0)
            share_refund(holders[i].device, holders[i].charged);
        holders[i] = holders[--count];
        break;
    }
    pthread_mutex_unlock(&lock);
}

void share_dirty(void)
{
    atomic_store_explicit(&dirty, true, memory_order_relaxed);
}

void share_settle(void)
{
    pthread_mutex_lock(&lock);
    settle_all();
    pthread_mutex_unlock(&lock);
}

void share_synchronised(void)
{
    if (atomic_load_explicit(&dirty, memory_order_relaxed))
        share_settle();
}

/* Where the driver has no event to give, or too many frees are under way, this one is waited for:
 * its charge must not go before its memory. */
void share_refund_in_order(int device, uint64_t bytes, struct cu_stream *stream, bool ptsz)
{
    struct cu_event *event = NULL;
    fn_cuEventRecord *record =
        ptsz ? REAL_AS(cuEventRecord_ptsz, cuEventRecord) : REAL(cuEventRecord);

    pthread_mutex_lock(&lock);
    settle_frees();
    if (free_count < FREES_MAX && REAL(cuEventCreate)(&event, CU_EVENT_NO_TIMING) == CU_OK &&
        record(event, stream) == CU_OK) {
        frees[free_count++] = (struct later){event, device, bytes};
        share_dirty();
        event = NULL;
    } else {
        REAL(cuCtxSynchronize)();
        share_refund(device, bytes);
    }
    if (event)
        REAL(cuEventDestroy_v2)(event);
    pthread_mutex_unlock(&lock);
}
