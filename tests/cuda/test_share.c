/* SPDX-License-Identifier: Apache-2.0 */
/* Several processes on one device: who gets how much of it. Virtual clock, all in lockstep. */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "harness.h"

#define TENANTS 4

/* What a tenant does until the clock shows `until`. */
struct tenant {
    struct dbl_shared *sh;
    uint64_t kernel_ns, think_ns, until;
    const char *sms, *percent;
    unsigned queue; /* launches between synchronisations */
};

static struct dbl_config machine(enum dbl_mode mode)
{
    struct dbl_config config = dbl_config_default;

    config.mode = mode;
    config.clock = DBL_CLOCK_VIRTUAL;
    return config;
}

static void work(void *arg)
{
    struct tenant *tenant = arg;
    struct cu_function *kernel;

    if (tenant->percent != NULL)
        setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", tenant->percent, 1);
    begin_on(0);
    kernel = kernel_of(tenant->kernel_ns, tenant->sms);
    while (dbl_now(tenant->sh) < tenant->until) {
        for (unsigned i = 0; i < tenant->queue; i++)
            OK(launch_in(kernel, NULL));
        OK(cuCtxSynchronize());
        if (tenant->think_ns > 0)
            dbl_sleep_until(tenant->sh, dbl_now(tenant->sh) + tenant->think_ns);
    }
    dbl_actor_leave(tenant->sh);
    /* Stays, so that its figures can be read. */
    pause();
}

/* Lets COUNT tenants work for NS; their busy times as ret_busy. */
static void play(struct dbl_shared *sh, struct tenant *tenants, int count, uint64_t ns,
                 uint64_t *ret_busy)
{
    pid_t pids[TENANTS];
    uint64_t until = dbl_now(sh) + ns;

    dbl_actors(sh, (uint32_t)count + 1);
    for (int i = 0; i < count; i++) {
        tenants[i].sh = sh;
        tenants[i].until = until + 1000 * MS_NS;
        pids[i] = spawn(work, &tenants[i]);
    }
    dbl_sleep_until(sh, until);
    for (int i = 0; i < count; i++) {
        ret_busy[i] = dbl_busy_ns(sh, pids[i], 0);
        kill(pids[i], SIGKILL);
    }
    for (int i = 0; i < count; i++)
        CHECK(!ended_well(pids[i]));
    SAME(dbl_processes(sh), 0);
}

/* Three unlike tenants that begin in a known order, looked at every millisecond. */
static uint64_t hash_of_play(struct dbl_shared *sh)
{
    struct tenant tenants[] = {{.kernel_ns = 300000, .sms = "108", .queue = 7, .think_ns = 700000},
                               {.kernel_ns = 4700000, .sms = "10", .queue = 1, .think_ns = 100000},
                               {.kernel_ns = 110000, .sms = "60", .queue = 30}};
    uint64_t hash = 0, start = dbl_now(sh);
    pid_t pids[3];

    dbl_actors(sh, 4);
    for (uint32_t i = 0; i < 3; i++) {
        tenants[i].sh = sh;
        tenants[i].until = start + 1000 * MS_NS;
        pids[i] = spawn(work, &tenants[i]);
        while (dbl_processes(sh) <= i)
            usleep(1000);
    }
    for (uint64_t ms = 1; ms <= 200; ms++) {
        dbl_sleep_until(sh, start + ms * MS_NS);
        for (int i = 0; i < 3; i++)
            hash = hash * UINT64_C(1099511628211) + dbl_busy_ns(sh, pids[i], 0);
    }
    for (int i = 0; i < 3; i++) {
        kill(pids[i], SIGKILL);
        CHECK(!ended_well(pids[i]));
    }
    return hash;
}

static uint64_t *seen_hash; /* shared with the case's process */

static void play_once(struct dbl_shared *sh)
{
    *seen_hash = hash_of_play(sh);
}

static bool near(uint64_t value, uint64_t wanted, uint64_t within)
{
    if (value + within >= wanted && value <= wanted + within)
        return true;
    fprintf(stderr, "# %llu, wanted %llu\n", (unsigned long long)value, (unsigned long long)wanted);
    return false;
}

static void slices_are_equal(struct dbl_shared *sh)
{
    struct tenant tenants[] = {{.kernel_ns = 500000, .sms = "108", .queue = 40},
                               {.kernel_ns = 20 * MS_NS, .sms = "10", .queue = 2},
                               {.kernel_ns = 3 * MS_NS, .sms = "108", .queue = 8}};
    uint64_t busy[3];

    play(sh, tenants, 3, 600 * MS_NS, busy);
    /* Each within a slice, however long its kernels are and however many SMs they fill. */
    for (int i = 0; i < 3; i++)
        CHECK(near(busy[i], 200 * MS_NS, 2 * MS_NS));
    SAME(dbl_busy_ns(sh, 0, 0), 600 * MS_NS);
}

static void idle_time_is_given_on(struct dbl_shared *sh)
{
    struct tenant tenants[] = {{.kernel_ns = 100000, .sms = "108", .queue = 1, .think_ns = 9900000},
                               {.kernel_ns = 100000, .sms = "108", .queue = 100}};
    uint64_t busy[2];

    play(sh, tenants, 2, 1000 * MS_NS, busy);
    /* The rare one waits for the end of a slice at most: 0.1 ms of each 10.1 to 12.1 ms. */
    CHECK(busy[0] >= 8 * MS_NS && busy[0] <= 10 * MS_NS);
    SAME(busy[0] + busy[1], 1000 * MS_NS);
}

static void mps_shares_sms(struct dbl_shared *sh)
{
    struct tenant tenants[] = {{.kernel_ns = MS_NS, .sms = "54", .queue = 10},
                               {.kernel_ns = MS_NS, .sms = "54", .queue = 10}};
    uint64_t busy[2], both[2];

    play(sh, tenants, 2, 100 * MS_NS, busy);
    SAME(busy[0], 100 * MS_NS);
    SAME(busy[1], 100 * MS_NS);
    SAME(dbl_busy_ns(sh, 0, 0), 100 * MS_NS);
    tenants[0].sms = tenants[1].sms = "108";
    play(sh, tenants, 2, 100 * MS_NS, both);
    SAME(both[0], 100 * MS_NS);
}

struct timed {
    struct dbl_shared *sh;
    const char *percent, *sms;
    uint64_t expected_ns;
};

static void one_kernel(void *arg)
{
    struct timed *timed = arg;
    struct tenant tenant = {.sh = timed->sh, .percent = timed->percent};
    uint64_t start;

    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", tenant.percent, 1);
    begin_on(0);
    start = dbl_now(timed->sh);
    OK(launch_in(kernel_of(10 * MS_NS, timed->sms), NULL));
    OK(cuCtxSynchronize());
    CHECK(near(dbl_now(timed->sh) - start, timed->expected_ns, 2));
    dbl_actor_leave(timed->sh);
}

/* Two processes with one kernel of 10 ms each, at the same time. */
static void two_kernels(struct dbl_shared *sh, struct timed *timed)
{
    pid_t pids[2];

    dbl_actors(sh, 2);
    for (int i = 0; i < 2; i++)
        pids[i] = spawn(one_kernel, &timed[i]);
    CHECK(ended_well(pids[0]));
    CHECK(ended_well(pids[1]));
}

static void mps_percentages(struct dbl_shared *sh)
{
    /* Of 108 SMs, 25% are 27: a kernel that fills 108 takes four times as long. */
    struct timed apart[] = {{sh, "25", "108", 40 * MS_NS}, {sh, "75", "81", 10 * MS_NS}};
    /* Both want all: half each. Two thirds and one third of what both want: as much of it. */
    struct timed halves[] = {{sh, "100", "108", 20 * MS_NS}, {sh, "100", "108", 20 * MS_NS}};
    struct timed thirds[] = {{sh, "100", "108", 15 * MS_NS}, {sh, "100", "54", 15 * MS_NS}};

    two_kernels(sh, apart);
    two_kernels(sh, halves);
    two_kernels(sh, thirds);
}

static void a_switch_costs(struct dbl_shared *sh)
{
    struct tenant tenants[] = {{.kernel_ns = 10 * MS_NS, .sms = "108", .queue = 5},
                               {.kernel_ns = 10 * MS_NS, .sms = "108", .queue = 5}};
    uint64_t busy[2];

    play(sh, tenants, 2, 500 * MS_NS, busy);
    /* Of each 2.5 ms, half a one goes to the switch. */
    CHECK(near(busy[0] + busy[1], 400 * MS_NS, 3 * MS_NS));
}

static void test_slices_are_equal(void **state)
{
    struct dbl_config config = machine(DBL_TIMESLICE);

    on_machine(slices_are_equal, &config);
}

static void test_a_play_repeats(void **state)
{
    struct dbl_config config = machine(DBL_TIMESLICE);
    uint64_t first;

    seen_hash = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(seen_hash, MAP_FAILED);
    on_machine(play_once, &config);
    first = *seen_hash;
    assert_int_not_equal(first, 0);
    for (int again = 0; again < 3; again++) {
        on_machine(play_once, &config);
        assert_int_equal(*seen_hash, first);
    }
    munmap(seen_hash, 4096);
}

static void test_idle_time_is_given_on(void **state)
{
    struct dbl_config config = machine(DBL_TIMESLICE);

    on_machine(idle_time_is_given_on, &config);
}

static void test_mps_shares_sms(void **state)
{
    struct dbl_config config = machine(DBL_MPS);

    on_machine(mps_shares_sms, &config);
}

static void test_mps_percentages(void **state)
{
    struct dbl_config config = machine(DBL_MPS);

    on_machine(mps_percentages, &config);
}

static void test_a_switch_costs(void **state)
{
    struct dbl_config config = machine(DBL_TIMESLICE);

    config.switch_ns = 500000;
    on_machine(a_switch_costs, &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_are_equal), cmocka_unit_test(test_idle_time_is_given_on),
        cmocka_unit_test(test_mps_shares_sms),   cmocka_unit_test(test_mps_percentages),
        cmocka_unit_test(test_a_switch_costs),   cmocka_unit_test(test_a_play_repeats),
    };

    return cmocka_run_group_tests_name("cuda share", tests, NULL, NULL);
}
