/* SPDX-License-Identifier: Apache-2.0 */
/* The file itself: making, mapping, slots of processes, the mutex, waiting. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "share/cuda_abi.h"
#include "shared.h"

#define POLL_NS UINT64_C(20000000)
#define SPIN_NS UINT64_C(30000)
#define SECOND UINT64_C(1000000000)

const struct dbl_config dbl_config_default = {
    .devices = 1,
    .mode = DBL_TIMESLICE,
    .clock = DBL_CLOCK_REAL,
    .memory = UINT64_C(80) << 30,
    .sms = 108,
    .context_bytes = UINT64_C(300) << 20,
    .quantum_ns = 2000000,
    .window_ns = 166000000,
    .name = "Simulated A100-SXM4-80GB",
};

/* The one mapping of this process: a file is never unmapped, for its locks are the process's. */
static struct {
    pthread_mutex_t mutex;
    char path[PATH_MAX];
    struct dbl_shared *shared;
    int fd;
} mapping = {PTHREAD_MUTEX_INITIALIZER, "", NULL, -1};

static uint64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static bool config_valid(const struct dbl_config *config)
{
    return config->devices >= 1 && config->devices <= DBL_DEVICES && config->mode <= DBL_BENCH &&
           config->clock <= DBL_CLOCK_VIRTUAL && config->sms >= 1 && config->sms <= 1024 &&
           config->memory > config->reserved && config->memory <= UINT64_C(1) << 42 &&
           config->quantum_ns >= 1000 && config->window_ns >= 1000000 &&
           memchr(config->name, 0, sizeof(config->name)) != NULL;
}

static void fill_device(struct dbl_device *device, const struct dbl_config *config, uint32_t index,
                        const uint8_t *seed)
{
    struct dbl_device_info *info = &device->info;

    snprintf(info->name, sizeof(info->name), "%s", config->name);
    memcpy(info->uuid, seed, 16);
    info->uuid[15] = (uint8_t)index;
    info->memory = config->memory;
    info->reserved = config->reserved;
    info->sms = config->sms;
    info->major = 8;
    info->bus = 0x10 + index;
}

static void fill(struct dbl_shared *sh, const struct dbl_config *config)
{
    pthread_mutexattr_t attr;
    uint8_t seed[16] = {0};

    sh->layout = DBL_LAYOUT;
    sh->config = *config;
    sh->virtual_ns = SECOND;
    sh->sim_ns = config->clock == DBL_CLOCK_VIRTUAL ? SECOND : monotonic_ns();
    sh->next_export = 1;
    if (getrandom(seed, sizeof(seed), 0) < 0)
        memcpy(seed, &sh->sim_ns, sizeof(sh->sim_ns));
    for (uint32_t d = 0; d < config->devices; d++)
        fill_device(&sh->devices[d], config, d, seed);
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&sh->mutex, &attr);
    pthread_mutexattr_destroy(&attr);
    atomic_store(&sh->magic, DBL_MAGIC);
}

int dbl_create(const char *file, const struct dbl_config *config)
{
    _cleanup_close_ int fd = -1;
    void *memory;

    if (!config_valid(config))
        return -EINVAL;
    fd = open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, sizeof(struct dbl_shared)) < 0)
        return -errno;
    memory = mmap(NULL, sizeof(struct dbl_shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    fill(memory, config);
    munmap(memory, sizeof(struct dbl_shared));
    return 0;
}

static int map(const char *file)
{
    struct stat status;
    struct dbl_shared *sh;
    int fd = open(file, O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    if (fstat(fd, &status) < 0 || status.st_size != (off_t)sizeof(*sh)) {
        close(fd);
        return -EBADF;
    }
    sh = mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (sh == MAP_FAILED || sh->magic != DBL_MAGIC || sh->layout != DBL_LAYOUT) {
        close(fd);
        return -EBADF;
    }
    mapping.shared = sh;
    mapping.fd = fd;
    snprintf(mapping.path, sizeof(mapping.path), "%s", file);
    return 0;
}

int dbl_open(const char *file, struct dbl_shared **ret_shared)
{
    int error = 0;

    pthread_mutex_lock(&mapping.mutex);
    if (mapping.shared == NULL)
        error = map(file);
    else if (strcmp(mapping.path, file) != 0)
        error = -EBUSY;
    if (error == 0)
        *ret_shared = mapping.shared;
    pthread_mutex_unlock(&mapping.mutex);
    return error;
}

/* A random number that each exec makes anew: tells a program from the one before it. */
static uint64_t image_id(void)
{
    uint64_t id = 0;
    const void *random = (const void *)getauxval(AT_RANDOM); /* NOLINT */

    if (random != NULL)
        memcpy(&id, random, sizeof(id));
    return id;
}

static uint64_t pid_namespace(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

static struct flock slot_lock(uint32_t slot, int type)
{
    return (struct flock){
        .l_type = (short)type, .l_whence = SEEK_SET, .l_start = 1 + (off_t)slot, .l_len = 1};
}

bool dbl_alive(struct dbl_shared *sh, uint32_t slot, int *ret_pid)
{
    struct dbl_proc *proc = &sh->procs[slot];
    struct flock lock = slot_lock(slot, F_WRLCK);

    if (!atomic_load(&proc->live))
        return false;
    /* One's own lock is no conflict: know oneself, also in another copy of this library. */
    if (proc->pid == getpid() && proc->image == image_id() && proc->namespace == pid_namespace()) {
        if (ret_pid != NULL)
            *ret_pid = proc->pid;
        return true;
    }
    if (fcntl(mapping.fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK)
        return false;
    if (ret_pid != NULL)
        *ret_pid = lock.l_pid > 0 ? lock.l_pid : 0;
    return true;
}

/* What a dead process exported stays for those that hold it too: the first of them is charged. */
static void inherit_exports(struct dbl_shared *sh, uint32_t dead)
{
    for (uint32_t i = 0; i < DBL_EXPORTS; i++) {
        struct dbl_export *e = &sh->exports[i];
        uint32_t heir;

        if (!e->used)
            continue;
        e->holders[dead / 64] &= ~(UINT64_C(1) << dead % 64);
        if (e->owner != dead)
            continue;
        for (heir = 0; heir < DBL_PROCS; heir++)
            if (e->holders[heir / 64] >> heir % 64 & 1)
                break;
        e->used = heir < DBL_PROCS;
        if (!e->used)
            continue;
        e->owner = heir;
        sh->procs[heir].usage[e->device].adopted += e->bytes;
    }
}

static void release_slot(struct dbl_shared *sh, uint32_t slot)
{
    struct dbl_proc *proc = &sh->procs[slot];

    inherit_exports(sh, slot);
    for (uint32_t w = 0; w < sh->waiters_high; w++)
        if (sh->waiters[w].proc == slot + 1)
            sh->waiters[w].proc = 0;
    for (uint32_t d = 0; d < DBL_DEVICES; d++)
        if (sh->devices[d].turn.current == slot + 1)
            sh->devices[d].turn.current = 0;
    atomic_store(&proc->live, 0);
}

void dbl_reap(struct dbl_shared *sh)
{
    bool any = false;

    for (uint32_t i = 0; i < sh->procs_high; i++) {
        if (!sh->procs[i].live || dbl_alive(sh, i, NULL))
            continue;
        dbl_sim_run(sh);
        release_slot(sh, i);
        any = true;
    }
    if (any)
        dbl_notify(sh);
}

/* Wipes what the process before has left; events and ops are wiped when they are taken. */
static void wipe_slot(struct dbl_proc *proc)
{
    uint32_t streams = proc->streams_high;

    memset(proc, 0, offsetof(struct dbl_proc, streams));
    memset(proc->streams, 0, streams * sizeof(proc->streams[0]));
    memset(proc->events, 0, sizeof(proc->events));
    proc->pid = getpid();
    proc->namespace = pid_namespace();
    proc->image = image_id();
    for (uint32_t d = 0; d < DBL_DEVICES; d++)
        proc->moved[d] = (uint8_t)d;
}

int dbl_claim(struct dbl_shared *sh, uint32_t *ret_slot)
{
    int error = -ENOSPC;

    dbl_lock(sh);
    dbl_reap(sh);
    for (uint32_t i = 0; i < DBL_PROCS && error == -ENOSPC; i++) {
        struct dbl_proc *proc = &sh->procs[i];
        struct flock lock = slot_lock(i, F_WRLCK);

        if (atomic_load(&proc->live))
            continue;
        wipe_slot(proc);
        if (fcntl(mapping.fd, F_SETLK, &lock) < 0) {
            error = -errno;
            break;
        }
        atomic_store(&proc->live, 1);
        if (sh->procs_high <= i)
            sh->procs_high = i + 1;
        *ret_slot = i;
        error = 0;
    }
    dbl_unlock(sh);
    return error;
}

void dbl_lock(struct dbl_shared *sh)
{
    if (pthread_mutex_lock(&sh->mutex) != EOWNERDEAD)
        return;
    for (uint32_t i = 0; i < sh->procs_high; i++)
        if (sh->procs[i].live)
            dbl_repair(&sh->procs[i]);
    pthread_mutex_consistent(&sh->mutex);
    dbl_reap(sh);
}

void dbl_unlock(struct dbl_shared *sh)
{
    pthread_mutex_unlock(&sh->mutex);
}

uint64_t dbl_now(struct dbl_shared *sh)
{
    return sh->config.clock == DBL_CLOCK_VIRTUAL ? atomic_load(&sh->virtual_ns) : monotonic_ns();
}

void dbl_futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec timeout = {(time_t)(timeout_ns / SECOND), (long)(timeout_ns % SECOND)};

    syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void dbl_futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void wake_all(struct dbl_shared *sh)
{
    atomic_fetch_add(&sh->generation, 1);
    if (atomic_load(&sh->sleepers) > 0)
        dbl_futex_wake(&sh->generation);
}

void dbl_notify(struct dbl_shared *sh)
{
    /* Who is woken is no waiter any more, before it has had time to say so itself. */
    for (uint32_t w = 0; w < sh->waiters_high; w++)
        sh->waiters[w].proc = 0;
    wake_all(sh);
}

bool dbl_host_calls(const struct dbl_shared *sh)
{
    for (uint32_t i = 0; i < sh->procs_high; i++)
        if (sh->procs[i].live && sh->procs[i].host_calls > 0)
            return true;
    return false;
}

void dbl_clock_to(struct dbl_shared *sh, uint64_t time_ns)
{
    if (time_ns <= sh->virtual_ns)
        return;
    atomic_store(&sh->virtual_ns, time_ns);
    dbl_sim_run(sh);
    for (uint32_t w = 0; w < sh->waiters_high; w++)
        if (sh->waiters[w].wake_ns <= time_ns)
            sh->waiters[w].proc = 0;
    wake_all(sh);
}

/* In lockstep: when all actors wait, on to the earliest time that one of them waits for. */
static void advance_if_all_wait(struct dbl_shared *sh)
{
    uint32_t waiting = 0;
    uint64_t earliest = DBL_NEVER;

    for (uint32_t w = 0; w < sh->waiters_high; w++) {
        if (sh->waiters[w].proc == 0)
            continue;
        waiting++;
        if (sh->waiters[w].wake_ns < earliest)
            earliest = sh->waiters[w].wake_ns;
    }
    if (sh->actors > 0 && waiting >= sh->actors && earliest != DBL_NEVER && !dbl_host_calls(sh))
        dbl_clock_to(sh, earliest);
}

/* Sleeps without the mutex; looks for dead processes now and then, for their work blocks others. */
static void sleep_on(struct dbl_shared *sh, uint32_t generation, uint64_t ns)
{
    uint64_t now;

    atomic_fetch_add(&sh->sleepers, 1);
    dbl_unlock(sh);
    dbl_futex_wait(&sh->generation, generation, ns);
    dbl_lock(sh);
    atomic_fetch_sub(&sh->sleepers, 1);
    now = monotonic_ns();
    if (now - sh->reaped_ns < POLL_NS)
        return;
    sh->reaped_ns = now;
    dbl_reap(sh);
}

static void wait_virtual(struct dbl_shared *sh, uint32_t slot, uint64_t wake_ns)
{
    struct dbl_waiter *mine = NULL;
    uint32_t generation = sh->generation;
    uint64_t ticket = ++sh->next_ticket;

    for (uint32_t w = 0; w < DBL_WAITERS && mine == NULL; w++) {
        if (sh->waiters[w].proc != 0)
            continue;
        mine = &sh->waiters[w];
        if (sh->waiters_high <= w)
            sh->waiters_high = w + 1;
    }
    if (mine != NULL) {
        mine->wake_ns = wake_ns;
        mine->ticket = ticket;
        mine->proc = slot + 1;
    }
    advance_if_all_wait(sh);
    if (sh->generation == generation)
        sleep_on(sh, generation, POLL_NS);
    /* Still there if it was not its time that came: whoever runs is no waiter. */
    if (mine != NULL && mine->ticket == ticket)
        mine->proc = 0;
}

void dbl_wait(struct dbl_shared *sh, uint32_t slot, uint64_t wake_ns)
{
    uint32_t generation = sh->generation;
    uint64_t now = dbl_now(sh);

    if (wake_ns <= now)
        return;
    if (sh->config.clock == DBL_CLOCK_VIRTUAL) {
        wait_virtual(sh, slot, wake_ns);
        return;
    }
    if (wake_ns - now < SPIN_NS) {
        dbl_unlock(sh);
        sched_yield();
        dbl_lock(sh);
        return;
    }
    sleep_on(sh, generation, wake_ns - now < POLL_NS ? wake_ns - now : POLL_NS);
}
