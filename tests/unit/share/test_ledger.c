/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger of device memory against a driver that believes nobody: each process keeps what it
 * "really" holds in a word of its own, and their sum must never pass the limit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "share/ledger.h"

#define MIB (UINT64_C(1) << 20)
#define PROCESSES 8
#define KEPT 24 /* allocations of one process at one time: about half of them are there */

struct node {
    struct share_limits limits;
    struct share_counters counters;
    _Atomic uint64_t total;             /* of the driver */
    _Atomic uint64_t real[SHARE_SLOTS]; /* of each process, as the driver would know it */
    _Atomic uint64_t worst;             /* most that was ever in use */
    _Atomic uint64_t given, refused;
};

static int setup(void **state)
{
    struct node *n =
        mmap(NULL, sizeof *n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (n == MAP_FAILED)
        return -1;
    n->limits.device_count = 2;
    n->limits.devices[0].memory_limit = 64 * MIB;
    n->limits.devices[1].memory_limit = SHARE_NO_LIMIT;
    n->limits.slots_used = PROCESSES;
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    return munmap(*state, sizeof(struct node));
}

static uint64_t held(const struct node *n)
{
    return share_ledger_held(&n->limits, &n->counters, 0);
}

/* The driver gives: it has no idea of a limit, so the worst must be right by the ledger alone. */
static void take(struct node *n, uint32_t slot, uint64_t bytes)
{
    atomic_fetch_add(&n->real[slot], bytes);
    uint64_t now = atomic_fetch_add(&n->total, bytes) + bytes;
    uint64_t worst = atomic_load(&n->worst);

    while (now > worst && !atomic_compare_exchange_weak(&n->worst, &worst, now))
        ;
}

static void put(struct node *n, uint32_t slot, uint64_t bytes)
{
    atomic_fetch_sub(&n->total, bytes);
    atomic_fetch_sub(&n->real[slot], bytes);
}

/* Random reservations, up to KEPT at a time, ROUNDS times or for ever (0). */
static void play(struct node *n, struct share_ledger *l, uint64_t seed, long rounds)
{
    uint64_t mine[KEPT] = {0};
    struct rng rng;

    rng_seed(&rng, seed);
    for (long i = 0; rounds == 0 || i < rounds; i++) {
        uint64_t *one = &mine[rng_below(&rng, KEPT)];
        if (*one > 0) {
            put(n, l->slot, *one);
            share_ledger_release(l, 0, *one);
            *one = 0;
            continue;
        }
        uint64_t bytes = 1 + rng_below(&rng, 8 * MIB);
        if (share_ledger_reserve(l, 0, bytes) < 0) {
            atomic_fetch_add(&n->refused, 1);
            continue;
        }
        atomic_fetch_add(&n->given, 1);
        take(n, l->slot, bytes);
        *one = bytes;
    }
    for (int i = 0; i < KEPT; i++) {
        if (mine[i] > 0) {
            put(n, l->slot, mine[i]);
            share_ledger_release(l, 0, mine[i]);
        }
    }
}

static pid_t begin(struct node *n, uint32_t slot, uint64_t seed, long rounds)
{
    pid_t pid = fork();
    struct share_ledger l;

    if (pid != 0)
        return pid;
    share_ledger_init(&l, &n->limits, &n->counters, slot);
    play(n, &l, seed, rounds);
    _exit(0);
}

static void reserves_and_gives_back_exactly(void **state)
{
    struct node *n = *state;
    struct share_ledger l;

    share_ledger_init(&l, &n->limits, &n->counters, 3);
    assert_int_equal(share_ledger_reserve(&l, 0, 64 * MIB), 0);
    assert_int_equal(share_ledger_reserve(&l, 0, 1), -ENOMEM);
    assert_int_equal(held(n), 64 * MIB);
    share_ledger_release(&l, 0, 1);
    assert_int_equal(share_ledger_reserve(&l, 0, 2), -ENOMEM);
    assert_int_equal(share_ledger_reserve(&l, 0, 1), 0);
    share_ledger_release(&l, 0, 64 * MIB);
    assert_int_equal(held(n), 0);
    assert_int_equal(share_ledger_reserve(&l, 0, UINT64_MAX), -ENOMEM);
    assert_int_equal(share_ledger_reserve(&l, 1, 1000 * MIB), 0);
    assert_int_equal(share_ledger_held(&n->limits, &n->counters, 1), 1000 * MIB);
}

static void charges_of_the_agent_count(void **state)
{
    struct node *n = *state;
    struct share_ledger l;

    share_ledger_init(&l, &n->limits, &n->counters, 0);
    n->limits.devices[0].beyond = 60 * MIB;
    assert_int_equal(share_ledger_reserve(&l, 0, 4 * MIB + 1), -ENOMEM);
    assert_int_equal(share_ledger_reserve(&l, 0, 4 * MIB), 0);
    share_ledger_charge(&l, 0, 100 * MIB);
    assert_int_equal(held(n), 164 * MIB);
    assert_int_equal(share_ledger_reserve(&l, 0, 1), -ENOMEM);
}

/* A tenant may write into its counters what it likes: it must not find room by that. */
static void absurd_counters_give_no_room(void **state)
{
    struct node *n = *state;
    struct share_ledger l;

    share_ledger_init(&l, &n->limits, &n->counters, 0);
    n->counters.slots[5].devices[0].held = UINT64_MAX - 5;
    n->counters.slots[6].devices[0].held = 100;
    n->limits.slots_used = UINT32_MAX;
    assert_int_equal(share_ledger_reserve(&l, 0, 1), -ENOMEM);
    assert_true(held(n) == UINT64_MAX);
}

static void processes_race_without_a_byte_too_much(void **state)
{
    struct node *n = *state;
    pid_t pids[PROCESSES];

    for (uint32_t i = 0; i < PROCESSES; i++)
        pids[i] = begin(n, i, 100 + i, 10000);
    for (int i = 0; i < PROCESSES; i++) {
        int status;
        assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
        assert_int_equal(status, 0);
    }
    assert_true(n->worst <= 64 * MIB);
    assert_true(n->worst > 48 * MIB);
    assert_true(n->given > 10000);
    assert_true(n->refused > 100);
    assert_int_equal(held(n), 0);
}

/* All want the whole device at once: each time exactly one must get it. */
static _Atomic int winners;
static pthread_barrier_t together;

struct contender {
    struct share_ledger *ledger;
    pthread_t thread;
};

static void *want_all(void *arg)
{
    struct contender *c = arg;

    for (int round = 0; round < 200; round++) {
        pthread_barrier_wait(&together);
        int r = share_ledger_reserve(c->ledger, 0, 64 * MIB);
        if (r == 0)
            atomic_fetch_add(&winners, 1);
        pthread_barrier_wait(&together);
        if (r == 0)
            share_ledger_release(c->ledger, 0, 64 * MIB);
        pthread_barrier_wait(&together);
    }
    return NULL;
}

static void one_of_all_gets_the_last_bytes(void **state)
{
    struct node *n = *state;
    struct share_ledger ledgers[2];
    struct contender contenders[4];

    winners = 0;
    pthread_barrier_init(&together, NULL, 4);
    for (uint32_t i = 0; i < 2; i++)
        share_ledger_init(&ledgers[i], &n->limits, &n->counters, i);
    for (int i = 0; i < 4; i++) { /* two threads in each of two slots */
        contenders[i].ledger = &ledgers[i / 2];
        assert_int_equal(pthread_create(&contenders[i].thread, NULL, want_all, &contenders[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(contenders[i].thread, NULL);
    pthread_barrier_destroy(&together);
    assert_int_equal(winners, 200);
}

/* Kills at random points; the agent's part is played here. Nothing hangs, nothing is lost. */
static void killed_processes_leave_nothing(void **state)
{
    struct node *n = *state;
    pid_t pids[PROCESSES];
    struct rng rng;

    rng_seed(&rng, 7);
    for (uint32_t i = 0; i < PROCESSES; i++)
        pids[i] = begin(n, i, i, 0);
    for (int i = 0; i < 500; i++) {
        uint32_t slot = (uint32_t)rng_below(&rng, PROCESSES);
        struct timespec nap = {.tv_nsec = (long)rng_below(&rng, 2000000)};

        nanosleep(&nap, NULL);
        kill(pids[slot], SIGKILL);
        assert_int_equal(waitpid(pids[slot], NULL, 0), pids[slot]);
        atomic_fetch_sub(&n->total, atomic_exchange(&n->real[slot], 0));
        share_ledger_empty(&n->counters, slot);
        pids[slot] = begin(n, slot, rng_below(&rng, UINT32_MAX), 0);
    }
    for (uint32_t i = 0; i < PROCESSES; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
        share_ledger_empty(&n->counters, i);
    }
    assert_int_equal(held(n), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reserves_and_gives_back_exactly, setup, teardown),
        cmocka_unit_test_setup_teardown(charges_of_the_agent_count, setup, teardown),
        cmocka_unit_test_setup_teardown(absurd_counters_give_no_room, setup, teardown),
        cmocka_unit_test_setup_teardown(processes_race_without_a_byte_too_much, setup, teardown),
        cmocka_unit_test_setup_teardown(one_of_all_gets_the_last_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(killed_processes_leave_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
