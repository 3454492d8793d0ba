/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent reads of a task's use of a device, and what it says back. */
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "machine.h"

/* What a process of the task writes into its slot before it sleeps. */
struct claim {
    uint64_t busy_ns, submits;
    uint32_t outstanding, waiting;
};

static struct share_slot *come_in(const struct machine *m, const struct share_limits **ret_limits)
{
    uint32_t slot;
    int fds[2];

    attach(m, fds, &slot);
    const struct share_limits *limits =
        mmap(NULL, sizeof(*limits), PROT_READ, MAP_SHARED, fds[0], 0);
    struct share_counters *counters =
        mmap(NULL, sizeof(*counters), PROT_READ | PROT_WRITE, MAP_SHARED, fds[1], 0);
    CHECK(limits != MAP_FAILED && counters != MAP_FAILED);
    *ret_limits = limits;
    return &counters->slots[slot];
}

/* A process that says CLAIM, until it is killed. */
static pid_t claims(struct machine *m, struct claim claim)
{
    const struct share_limits *limits;
    int ready[2];
    char byte;

    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct share_slot *slot = come_in(m, &limits);
        atomic_store(&slot->devices[0].held, 1);
        atomic_store(&slot->devices[0].busy_ns, claim.busy_ns);
        atomic_store(&slot->submits, claim.submits);
        atomic_store(&slot->outstanding, claim.outstanding);
        atomic_store(&slot->waiting, claim.waiting);
        CHECK(write(ready[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    fcntl(ready[0], F_SETFL, O_NONBLOCK);
    while (read(ready[0], &byte, 1) != 1)
        serve(m, 0, 1, NULL);
    close(ready[0]);
    close(ready[1]);
    return pid;
}

static void end(struct machine *m, pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
    serve(m, 0, 5, NULL);
}

ALONE(use_is_summed_over_the_living_and_the_dead)
{
    struct machine *m = machine();
    struct gpu_region_use use;
    int32_t pids[4];
    pid_t first = claims(m, (struct claim){100, 7, 1, 0});
    pid_t second = claims(m, (struct claim){20, 1, 0, 1});

    CHECK(gpu_region_pids(m->region, pids, 4) == 2);
    CHECK((pids[0] == first && pids[1] == second) || (pids[0] == second && pids[1] == first));
    CHECK(gpu_region_pids(m->region, pids, 1) == 1);
    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == 120 && use.working && use.waits && use.submitted);
    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == 120 && use.working && use.waits && !use.submitted);
    end(m, first);
    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == 120 && !use.working && use.waits);
    end(m, second);
    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == 120 && !use.working && !use.waits);
    gpu_region_use(m->region, 0, &use);
    CHECK(!use.submitted && gpu_region_pids(m->region, pids, 4) == 0);
    end_machine(m);
}

/* Another device's bits, and counters that are nonsense. */
ALONE(use_is_of_one_device_and_never_less)
{
    struct machine *m = machine();
    struct gpu_region_use use;
    pid_t pid = claims(m, (struct claim){UINT64_MAX, 1, 2, 2});

    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == UINT64_MAX && !use.working && !use.waits);
    pid_t other = claims(m, (struct claim){UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX});
    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == UINT64_MAX && use.working && use.waits);
    end(m, pid);
    end(m, other);
    gpu_region_use(m->region, 0, &use);
    CHECK(use.busy_ns == UINT64_MAX && !use.working && !use.waits);
    end_machine(m);
}

ALONE(what_nobody_accounts_for_is_held)
{
    struct machine *m = machine();

    CHECK(gpu_region_held(m->region, 0) == 0);
    gpu_region_beyond(m->region, 0, 5 * MIB);
    CHECK(gpu_region_held(m->region, 0) == 5 * MIB);
    gpu_region_beyond(m->region, 0, 0);
    CHECK(gpu_region_held(m->region, 0) == 0);
    end_machine(m);
}

/* Ends well when it has been woken to a slice until 77. */
static void waits_for_a_slice(struct machine *m)
{
    const struct share_limits *limits;
    struct share_slot *slot = come_in(m, &limits);
    const struct share_device *d = &limits->devices[0];

    while (atomic_load(&d->slice_end_ns) != 77) {
        uint32_t turn = atomic_load(&d->slice_turn);
        atomic_store(&slot->waiting, 1);
        if (atomic_load(&d->slice_end_ns) != 77)
            syscall(SYS_futex, &d->slice_turn, FUTEX_WAIT, turn, NULL, NULL, 0);
    }
    atomic_store(&slot->waiting, 0);
}

ALONE(a_slice_wakes_who_waits)
{
    struct machine *m = machine();
    struct gpu_region_use use = {0};
    int status = -1;

    gpu_region_slice(m->region, 0, 0);
    pid_t pid = program(waits_for_a_slice, m);
    while (!use.waits) {
        serve(m, 0, 1, NULL);
        gpu_region_use(m->region, 0, &use);
    }
    CHECK(!serve(m, pid, 20, &status));
    gpu_region_slice(m->region, 0, 77);
    CHECK(serve(m, pid, 60000, &status) && status == 0);
    end_machine(m);
}

/* Who only looks takes no place, however often. */
static void looks_around(struct machine *m)
{
    const struct share_limits *limits;
    struct share_welcome welcome;
    int fds[2];
    char byte;

    for (int i = 0; i < 3 * SHARE_SLOTS; i++) {
        int fd = greet(m, SHARE_LOOK, SHARE_VERSION, &welcome, fds);

        CHECK(welcome.message == SHARE_WELCOME && welcome.slot == SHARE_SLOTS);
        CHECK(recv(fd, &byte, 1, 0) == 0); /* that was all */
        limits = mmap(NULL, sizeof(*limits), PROT_READ, MAP_SHARED, fds[0], 0);
        CHECK(limits != MAP_FAILED && limits->devices[0].memory_limit == LIMIT);
        munmap((void *)(uintptr_t)limits, sizeof(*limits));
        close(fds[0]);
        close(fds[1]);
        close(fd);
    }
    close(greet(m, SHARE_LOOK, SHARE_VERSION + 1, &welcome, fds));
    CHECK(welcome.message == SHARE_REFUSAL && welcome.error == -EPROTO);
}

ALONE(looking_takes_no_place)
{
    struct machine *m = machine();
    int status = -1;
    pid_t pid = program(looks_around, m);

    while (!serve(m, pid, 1, &status))
        CHECK(gpu_region_processes(m->region) == 0);
    CHECK(status == 0);
    end_machine(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_use_is_summed_over_the_living_and_the_dead),
        cmocka_unit_test(test_use_is_of_one_device_and_never_less),
        cmocka_unit_test(test_what_nobody_accounts_for_is_held),
        cmocka_unit_test(test_a_slice_wakes_who_waits),
        cmocka_unit_test(test_looking_takes_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
