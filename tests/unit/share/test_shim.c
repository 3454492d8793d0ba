/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs in front of the shim, the simulated driver behind it, and the owner of the region
 * beside: what the driver says is the truth that limits are judged by.
 */
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "machine.h"

/* ---- memory ------------------------------------------------------------------------------- */

PROGRAM(the_slice_is_all_there_is)
{
    size_t left, total;
    cu_devptr p, q;

    begin();
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK);
    CHECK(total == LIMIT && left == LIMIT - CONTEXT);
    CHECK(CU(cuMemGetInfo_v2)(NULL, NULL) == CU_OK);
    CHECK(CU(cuDeviceTotalMem_v2)(&total, 0) == CU_OK && total == LIMIT);
    CHECK(CU(cuMemAlloc_v2)(&p, LIMIT - CONTEXT + 1) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemAlloc_v2)(&p, LIMIT - CONTEXT) == CU_OK);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == 0);
    CHECK(CU(cuMemAlloc_v2)(&q, 1) == CU_OUT_OF_MEMORY);
    CHECK(dbl_bytes(m->driver, 0, DBL_KINDS) == LIMIT);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(CU(cuMemFree_v2)(p) == CU_INVALID_VALUE);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == LIMIT - CONTEXT);
}

PROGRAM(absurd_sizes_are_refused)
{
    size_t pitch;
    cu_devptr p;

    begin();
    CHECK(CU(cuMemAlloc_v2)(&p, SIZE_MAX) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemAllocPitch_v2)(&p, &pitch, SIZE_MAX, 2, 4) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemAllocPitch_v2)(&p, &pitch, 1 << 20, SIZE_MAX >> 20, 4) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemAlloc_v2)(&p, 0) == CU_INVALID_VALUE);
    CHECK(CU(cuMemAlloc_v2)(NULL, 8) == CU_INVALID_VALUE);
    CHECK(CU(cuMemAlloc_v2)(&p, LIMIT - CONTEXT) == CU_OK);
}

PROGRAM(pitched_memory_is_charged_by_its_pitch)
{
    size_t pitch, left, total;
    cu_devptr p;

    begin();
    CHECK(CU(cuMemAllocPitch_v2)(&p, &pitch, 1000, 1000, 4) == CU_OK);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK);
    CHECK(LIMIT - CONTEXT - left == pitch * 1000);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == LIMIT - CONTEXT);
}

PROGRAM(managed_memory_counts)
{
    cu_devptr p, q;

    begin();
    CHECK(CU(cuMemAllocManaged)(&p, 100 * MIB, CU_ATTACH_GLOBAL) == CU_OK);
    CHECK(CU(cuMemAllocManaged)(&q, 100 * MIB, CU_ATTACH_GLOBAL) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(CU(cuMemAllocManaged)(&q, 100 * MIB, CU_ATTACH_GLOBAL) == CU_OK);
}

/* The driver fails: what was reserved for it comes back. */
PROGRAM(failures_of_the_driver_cost_nothing)
{
    size_t left, total;
    struct cu_ctx *ctx;
    cu_devptr p;

    begin();
    for (int i = 0; i < 3; i++) {
        dbl_fail_nth(m->driver, DBL_FAIL_ALLOC, 1, CU_OUT_OF_MEMORY);
        CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OUT_OF_MEMORY);
        dbl_fail_nth(m->driver, DBL_FAIL_CONTEXT, 1, CU_UNKNOWN);
        CHECK(CU(cuCtxCreate_v2)(&ctx, 0, 0) == CU_UNKNOWN);
    }
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == LIMIT - CONTEXT);
    CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OK);
    dbl_fail_nth(m->driver, DBL_FAIL_FREE, 1, CU_UNKNOWN);
    CHECK(CU(cuMemFree_v2)(p) == CU_UNKNOWN);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == LIMIT - CONTEXT - 100 * MIB);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == LIMIT - CONTEXT);
}

PROGRAM(contexts_are_charged_while_they_are_there)
{
    struct cu_ctx *ctx[3], *primary;
    size_t left, total;

    begin();
    CHECK(CU(cuDevicePrimaryCtxRetain)(&primary, 0) == CU_OK); /* a second time: the same one */
    for (int i = 0; i < 3; i++)
        CHECK(CU(cuCtxCreate_v2)(&ctx[i], 0, 0) == CU_OK);
    CHECK(CU(cuCtxCreate_v2)(&ctx[0], 0, 0) == CU_OUT_OF_MEMORY);
    for (int i = 0; i < 3; i++)
        CHECK(CU(cuCtxDestroy_v2)(ctx[i]) == CU_OK);
    CHECK(CU(cuCtxSetCurrent)(primary) == CU_OK);
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && left == LIMIT - CONTEXT);
    CHECK(CU(cuDevicePrimaryCtxRelease_v2)(0) == CU_OK);
    CHECK(gpu_region_held(m->region, 0) == CONTEXT);
    CHECK(CU(cuDevicePrimaryCtxRelease_v2)(0) == CU_OK);
    CHECK(gpu_region_held(m->region, 0) == 0);
}

/* Look-ups give what the driver has, with what stands in front of it. */
PROGRAM(look_ups_lead_through_the_shim)
{
    fn_cuMemAlloc_v2 *alloc = NULL;
    fn_cuGetProcAddress_v2 *again = NULL;
    void *nothing = (void *)1;
    int status = -1;
    cu_devptr p;

    begin();
    CHECK(CU(cuGetProcAddress_v2)("cuGetProcAddress", (void **)&again, 12000, 0, &status) == CU_OK);
    CHECK(again == CU(cuGetProcAddress_v2));
    CHECK(again("cuMemAlloc", (void **)&alloc, 13000, 0, &status) == CU_OK);
    CHECK(alloc == CU(cuMemAlloc_v2) && status == CU_PROC_FOUND);
    CHECK(alloc(&p, LIMIT) == CU_OUT_OF_MEMORY);
    CHECK(again("cuNoSuchThing", &nothing, 13000, 0, &status) == CU_NOT_FOUND || nothing == NULL);
    CHECK(again("cuMemAllocAsync", &nothing, 13000, CU_PROC_PER_THREAD_STREAM, &status) == CU_OK);
    CHECK(nothing == find("cuMemAllocAsync_ptsz"));
}

static void stays_within_the_limit(void)
{
    cu_devptr p;

    begin();
    CHECK(CU(cuMemAlloc_v2)(&p, LIMIT) == CU_OUT_OF_MEMORY);
    CHECK(CU(cuMemAlloc_v2)(&p, LIMIT - CONTEXT) == CU_OK);
}

PROGRAM(loaded_for_all_the_limit_holds)
{
    shim = dlopen(SHIM, RTLD_LAZY | RTLD_GLOBAL);
    stays_within_the_limit();
}

/* The sanitizers forbid what would get past them. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
PROGRAM(bound_to_itself_first_the_limit_holds)
{
    shim = dlopen(SHIM, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    stays_within_the_limit();
}

PROGRAM(in_a_namespace_of_its_own_the_limit_holds)
{
    shim = dlmopen(LM_ID_NEWLM, SHIM, RTLD_NOW);
    stays_within_the_limit();
}
#endif

/* A child has a slot of its own, and the driver refuses it as it does without us. */
PROGRAM(a_fork_begins_anew)
{
    cu_devptr p;
    int status;
    pid_t pid;

    begin();
    CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OK);
    pid = fork();
    if (pid == 0)
        _exit(CU(cuMemAlloc_v2)(&p, MIB) == CU_NOT_INITIALIZED ? 0 : 1);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    CHECK(CU(cuMemFree_v2)(p) == CU_OK);
    CHECK(gpu_region_held(m->region, 0) == CONTEXT);
}

/* ---- several processes -------------------------------------------------------------------- */

#define ROUNDS 10000

static void race(struct machine *m)
{
    cu_devptr kept[16] = {0};
    struct rng rng;

    begin();
    rng_seed(&rng, (uint64_t)getpid());
    for (int i = 0; i < ROUNDS; i++) {
        cu_devptr *one = &kept[rng_below(&rng, 16)];
        if (*one) {
            CHECK(CU(cuMemFree_v2)(*one) == CU_OK);
            *one = 0;
        } else if (CU(cuMemAlloc_v2)(one, 512 * (1 + rng_below(&rng, 4096))) != CU_OK) {
            *one = 0;
        }
        CHECK(dbl_bytes(m->driver, 0, DBL_KINDS) <= LIMIT);
    }
}

ALONE(racing_processes_stay_within_the_limit)
{
    struct machine *m = machine();
    pid_t pids[3]; /* contexts take the rest */

    for (int i = 0; i < 3; i++)
        pids[i] = program(race, m);
    for (int i = 0; i < 3; i++) {
        int status = -1;
        CHECK(serve(m, pids[i], 60000, &status));
        CHECK(status == 0);
    }
    serve(m, 0, 20, NULL);
    CHECK(gpu_region_held(m->region, 0) == 0);
    end_machine(m);
}

static void hold_and_wait(struct machine *m)
{
    cu_devptr p;

    begin();
    CHECK(CU(cuMemAlloc_v2)(&p, 100 * MIB) == CU_OK);
    for (;;)
        pause();
}

ALONE(the_killed_give_back)
{
    struct machine *m = machine();

    for (int i = 0; i < 20; i++) {
        pid_t pid = program(hold_and_wait, m);
        for (int n = 0; n < 5000 && gpu_region_held(m->region, 0) < 164 * MIB; n++)
            serve(m, 0, 1, NULL);
        CHECK(gpu_region_held(m->region, 0) == 164 * MIB);
        kill(pid, SIGKILL);
        CHECK(waitpid(pid, NULL, 0) == pid);
        serve(m, 0, 5, NULL);
        CHECK(gpu_region_held(m->region, 0) == 0);
    }
    end_machine(m);
}

#define SIBLINGS 3 /* contexts take the rest */
#define KILLS 200  /* unless SHARE_KILLS says how many */

static _Atomic uint64_t *rounds; /* of each sibling's place, since ever */

static void race_for_ever(struct machine *m, int place)
{
    cu_devptr kept[16] = {0};
    size_t left, total;
    struct rng rng;

    begin();
    rng_seed(&rng, (uint64_t)getpid());
    for (;;) {
        cu_devptr *one = &kept[rng_below(&rng, 16)];
        size_t bytes = 512 * (1 + rng_below(&rng, 4096));
        if (*one)
            CHECK(CU(cuMemFree_v2)(*one) == CU_OK);
        if (*one || (rng_below(&rng, 2) ? CU(cuMemAlloc_v2)(one, bytes)
                                        : CU(cuMemAllocManaged)(one, bytes, 1)) != CU_OK)
            *one = 0;
        CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK && total == LIMIT);
        CHECK(dbl_bytes(m->driver, 0, DBL_KINDS) <= LIMIT);
        atomic_fetch_add(&rounds[place], 1);
    }
}

static pid_t sibling(struct machine *m, int place)
{
    fflush(NULL);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0)
        race_for_ever(m, place);
    return pid;
}

static void kill_sibling(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Each goes on, whatever the one that was killed had in its hands. */
static void expect_progress(struct machine *m, int but)
{
    for (int i = 0; i < SIBLINGS; i++) {
        uint64_t before = rounds[i];
        for (int ms = 0; i != but && rounds[i] == before; ms++) {
            CHECK(ms < 60000);
            serve(m, 0, 1, NULL);
        }
    }
}

static void expect_nothing_left(struct machine *m)
{
    for (int ms = 0; gpu_region_held(m->region, 0) > 0 || gpu_region_processes(m->region) > 0 ||
                     dbl_bytes(m->driver, 0, DBL_KINDS) > 0;
         ms++) {
        CHECK(ms < 60000);
        serve(m, 0, 1, NULL);
    }
}

/* At a random moment of its next MS milliseconds. Another takes its place. */
static void kill_within(struct machine *m, struct rng *rng, pid_t pids[], int victim, int ms)
{
    struct timespec nap = {.tv_nsec = (long)rng_below(rng, 1000000)};

    serve(m, 0, (int)rng_below(rng, (uint64_t)ms), NULL);
    nanosleep(&nap, NULL);
    kill_sibling(pids[victim]);
    pids[victim] = sibling(m, victim);
}

/* Wherever they are: being linked, coming in, beginning, and in the middle of each call. */
ALONE(killed_anywhere_nothing_hangs_and_nothing_is_left)
{
    struct machine *m = machine();
    const char *asked = getenv("SHARE_KILLS");
    long kills = asked ? strtol(asked, NULL, 10) : KILLS;
    pid_t pids[SIBLINGS];
    struct rng rng;

    rounds = mmap(NULL, sizeof(*rounds) * SIBLINGS, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(rounds != MAP_FAILED);
    rng_seed(&rng, 11);
    for (long n = 0; n < kills;) {
        for (int i = 0; i < SIBLINGS; i++)
            pids[i] = sibling(m, i);
        for (long end = n + 50; n < kills && n < end; n++) {
            int victim = (int)rng_below(&rng, SIBLINGS);
            if (rng_below(&rng, 2)) /* others die young */
                expect_progress(m, -1);
            kill_within(m, &rng, pids, victim, 4);
            expect_progress(m, victim);
        }
        for (int i = 0; i < SIBLINGS; i++)
            kill_sibling(pids[i]);
        expect_nothing_left(m);
    }
    end_machine(m);
}

/* ---- gate, and the agent's absence -------------------------------------------------------- */

static void call_and_end(struct machine *m)
{
    size_t left, total;

    begin();
    kill(getpid(), SIGSTOP); /* the gate is closed meanwhile */
    CHECK(CU(cuMemGetInfo_v2)(&left, &total) == CU_OK);
}

ALONE(a_closed_gate_holds_calls_and_asks)
{
    struct machine *m = machine();
    pid_t pid = program(call_and_end, m);
    siginfo_t info;
    int status = -1;

    for (int i = 0; i < 5000; i++) {
        memset(&info, 0, sizeof(info));
        serve(m, 0, 1, NULL);
        CHECK(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG) == 0);
        if (info.si_pid == pid)
            break;
    }
    CHECK(info.si_pid == pid);
    gpu_region_gate(m->region, false);
    kill(pid, SIGCONT);
    CHECK(!serve(m, pid, 200, &status));
    CHECK(m->wakes > 0);
    gpu_region_gate(m->region, true);
    CHECK(serve(m, pid, 5000, &status));
    CHECK(status == 0);
    end_machine(m);
}

static void is_refused(struct machine *m)
{
    freopen("/dev/null", "w", stderr);
    _exit(CU(cuInit)(0) == CU_NOT_PERMITTED ? 0 : 1);
}

static void ignore_signal(int number)
{
    (void)number;
}

/* A program with a timer that interrupts its calls, as profilers have them. */
static void is_disturbed(struct machine *m)
{
    const struct itimerval often = {{0, 2000}, {0, 2000}};
    const struct sigaction action = {.sa_handler = ignore_signal};

    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    CHECK(CU(cuInit)(0) == CU_OK);
    _exit(0);
}

static void comes_in(struct machine *m)
{
    _exit(CU(cuInit)(0) == CU_OK ? 0 : 1);
}

/* The agent of a node under load comes late, to one that signals wake and to one that sleeps. */
ALONE(a_slow_agent_is_waited_for)
{
    struct machine *m = machine();
    pid_t disturbed = program(is_disturbed, m), quiet = program(comes_in, m);
    int status = -1;

    usleep(2200000); /* more than twice what the shim sleeps at a time */
    CHECK(waitpid(disturbed, &status, WNOHANG) == 0 && waitpid(quiet, &status, WNOHANG) == 0);
    CHECK(serve(m, disturbed, 5000, &status) && status == 0);
    CHECK(serve(m, quiet, 5000, &status) && status == 0);
    end_machine(m);
}

/* What PROGRAM says on its way to STATUS. */
static void said_by(struct machine *m, void (*run)(struct machine *), int expected, char text[512])
{
    int ends[2], status = -1, saved = dup(2);
    pid_t pid;

    CHECK(pipe2(ends, O_CLOEXEC) == 0 && saved > 2);
    CHECK(dup2(ends[1], 2) == 2);
    pid = program(run, m);
    CHECK(dup2(saved, 2) == 2);
    close(saved);
    close(ends[1]);
    CHECK(waitpid(pid, &status, 0) == pid && status == expected);
    ssize_t n = read(ends[0], text, 511);
    CHECK(n >= 0);
    text[n] = '\0';
    close(ends[0]);
}

ALONE(a_missing_agent_is_told_at_once)
{
    struct machine *m = machine();
    char text[512];
    time_t began = time(NULL);

    gpu_region_close(m->region);
    m->region = NULL;
    said_by(m, comes_in, 1 << 8, text);
    CHECK(strstr(text, "there is no agent at '/tmp/allot-share-") != NULL);
    CHECK(time(NULL) - began < 20);
    end_machine(m);
}

static void is_free(struct machine *m)
{
    cu_devptr p;

    begin();
    CHECK(CU(cuMemAlloc_v2)(&p, 2 * LIMIT) == CU_OK);
}

ALONE(without_an_agent_the_policy_decides)
{
    struct machine *m = machine();
    char open_file[128];
    int status = -1;
    pid_t pid;

    gpu_region_close(m->region);
    m->region = NULL;
    pid = program(is_refused, m);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    path_in(m, "open", open_file);
    close(open(open_file, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    pid = program(is_free, m);
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(status == 0);
    end_machine(m);
}

/* ---- hostile tenants ---------------------------------------------------------------------- */

PROGRAM(a_tenant_cannot_raise_its_limit)
{
    char path[64];
    int fds[2], again;

    attach(m, fds, NULL);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0) == MAP_FAILED);
    CHECK(pwrite(fds[0], "x", 1, 0) < 0);
    for (int i = 0; i < 2; i++)
        CHECK(ftruncate(fds[i], 0) < 0);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
    again = open(path, O_RDWR | O_CLOEXEC);
    CHECK(again < 0 ||
          mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again, 0) == MAP_FAILED);
    void *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fds[0], 0);
    CHECK(page != MAP_FAILED && mprotect(page, 4096, PROT_READ | PROT_WRITE) < 0);
}

PROGRAM(one_process_has_one_slot)
{
    int fds[2];

    for (int i = 0; i < 300; i++) { /* more than there are slots */
        int fd = attach(m, fds, NULL);
        close(fds[0]);
        close(fds[1]);
        close(fd);
    }
}

/* Counters full of nonsense spoil the task's own books while their writer lives, not longer. */
PROGRAM(nonsense_in_the_counters_goes_with_its_writer)
{
    int fds[2], status;
    pid_t pid = fork();

    if (pid == 0) {
        attach(m, fds, NULL);
        void *map = mmap(NULL, sizeof(struct share_counters), PROT_READ | PROT_WRITE, MAP_SHARED,
                         fds[1], 0);
        CHECK(map != MAP_FAILED);
        memset(map, 0xff, sizeof(struct share_counters));
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    usleep(50000); /* the region's owner hears of it */
    begin();
    CHECK(gpu_region_held(m->region, 0) == CONTEXT);
}

/* A child that greets over the socket of its parent is nobody: alive or dead, that was another. */
PROGRAM(a_socket_that_is_inherited_is_worth_nothing)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct share_hello hello = {.message = SHARE_HELLO, .version = SHARE_VERSION};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", m->folder);
    for (int parent_lives = 0; parent_lives < 2; parent_lives++) {
        struct share_welcome welcome = {0};
        int result[2], status;
        CHECK(pipe2(result, O_CLOEXEC) == 0);
        pid_t parent = fork();
        if (parent == 0) {
            int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
            CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
            if (fork() == 0) {
                usleep(50000);
                CHECK(send(fd, &hello, sizeof(hello), 0) == sizeof(hello));
                CHECK(recv(fd, &welcome, sizeof(welcome), 0) == sizeof(welcome));
                CHECK(write(result[1], &welcome, sizeof(welcome)) == sizeof(welcome));
                _exit(0);
            }
            if (parent_lives)
                wait(NULL);
            _exit(0);
        }
        CHECK(read(result[0], &welcome, sizeof(welcome)) == sizeof(welcome));
        CHECK(welcome.message == SHARE_REFUSAL && welcome.error < 0);
        CHECK(waitpid(parent, &status, 0) == parent && status == 0);
        close(result[0]);
        close(result[1]);
    }
}

/* Who connects and says nothing stands in nobody's way, not even of an owner without descriptors.
 */
static void connect_silently(struct machine *m)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int made = 0;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", m->folder);
    for (int i = 0; i < 700; i++) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        made += fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    }
    CHECK(made > 500);
    for (;;)
        pause();
}

static void greet_well(struct machine *m)
{
    int fds[2];

    attach(m, fds, NULL);
}

static void enter(struct machine *m)
{
    begin();
}

static void crowd(rlim_t descriptors)
{
    struct machine *m = machine();
    const struct rlimit ours = {descriptors, descriptors}, theirs = {1024, 1024};
    int status = -1;
    pid_t silent, honest, patient;

    CHECK(setrlimit(RLIMIT_NOFILE, &theirs) == 0);
    silent = program(connect_silently, m);
    serve(m, 0, 300, NULL);
    honest = program(greet_well, m);
    patient = program(enter, m); /* what hangs up on it now may not do so later */
    if (descriptors < 1024) {
        struct rlimit low = ours;
        low.rlim_max = theirs.rlim_max;
        CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    }
    for (int i = 0; i < 5000 && waitpid(honest, &status, WNOHANG) == 0; i++)
        serve(m, 0, 1, NULL);
    kill(silent, SIGKILL);
    waitpid(silent, NULL, 0);
    CHECK(descriptors < 1024 || status == 0);
    serve(m, 0, 50, NULL);
    CHECK(serve(m, patient, 5000, &status) && status == 0);
    honest = program(greet_well, m);
    CHECK(serve(m, honest, 5000, &status) && status == 0);
    end_machine(m);
}

ALONE(silent_connections_give_way)
{
    crowd(1024);
}

ALONE(an_owner_without_descriptors_goes_on_later)
{
    crowd(64);
}

PROGRAM(nonsense_ends_the_connection)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char noise[4096] = "x";
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/agent", m->folder);
    CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    CHECK(send(fd, noise, sizeof(noise), 0) == sizeof(noise));
    CHECK(recv(fd, noise, sizeof(noise), 0) <= 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_slice_is_all_there_is),
        cmocka_unit_test(test_absurd_sizes_are_refused),
        cmocka_unit_test(test_pitched_memory_is_charged_by_its_pitch),
        cmocka_unit_test(test_managed_memory_counts),
        cmocka_unit_test(test_failures_of_the_driver_cost_nothing),
        cmocka_unit_test(test_contexts_are_charged_while_they_are_there),
        cmocka_unit_test(test_look_ups_lead_through_the_shim),
        cmocka_unit_test(test_loaded_for_all_the_limit_holds),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(test_bound_to_itself_first_the_limit_holds),
        cmocka_unit_test(test_in_a_namespace_of_its_own_the_limit_holds),
#endif
        cmocka_unit_test(test_a_fork_begins_anew),
        cmocka_unit_test(test_racing_processes_stay_within_the_limit),
        cmocka_unit_test(test_the_killed_give_back),
        cmocka_unit_test(test_killed_anywhere_nothing_hangs_and_nothing_is_left),
        cmocka_unit_test(test_a_closed_gate_holds_calls_and_asks),
        cmocka_unit_test(test_a_slow_agent_is_waited_for),
        cmocka_unit_test(test_a_missing_agent_is_told_at_once),
        cmocka_unit_test(test_without_an_agent_the_policy_decides),
        cmocka_unit_test(test_a_tenant_cannot_raise_its_limit),
        cmocka_unit_test(test_one_process_has_one_slot),
        cmocka_unit_test(test_nonsense_in_the_counters_goes_with_its_writer),
        cmocka_unit_test(test_a_socket_that_is_inherited_is_worth_nothing),
        cmocka_unit_test(test_silent_connections_give_way),
        cmocka_unit_test(test_an_owner_without_descriptors_goes_on_later),
        cmocka_unit_test(test_nonsense_ends_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
