/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake host around a real engine: collects events, serves launches, waits.
 *
 * Each fixture has a folder of its own; fixture_drop() kills whatever still runs in it. Times
 * are milliseconds and only bound how long a failing test waits.
 */
#ifndef ALLOT_TESTS_UNIT_ENGINE_FIXTURE_H
#define ALLOT_TESTS_UNIT_ENGINE_FIXTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "engine/local/engine_local.h"

#define FIXTURE_WAIT_MS 60000
#define FIXTURE_WORKLOADS 64

struct seen {
    enum engine_event_kind kind;
    char intent[64];
    int64_t boot_ms, busy_ns, known_ns, host_bytes;
    int32_t exit_code, exit_signal;
    bool stopped;
    char message[1024];
    char limits[64], isolation[256]; /* NODE */
    int32_t devices; /* NODE, READINGS */
    int64_t used;    /* READINGS: bytes of the first device */
};

struct fixture {
    char folder[64]; /* data folder */
    struct engine_local_config config;
    struct engine_local *engine;
    pthread_mutex_t lock;
    pthread_cond_t more;
    VEC(struct seen) events;
    /* What workload N runs. */
    struct {
        const char *const *command;
        const char *image, *workdir, *checkpoint_dir;
        struct model_pair env[8];
        int env_count;
    } workloads[FIXTURE_WORKLOADS];
    struct model_request request;
    uint16_t devices[8];
    int32_t device_count;
    int32_t task_count;
    bool suspendable;
};

/* NULL = real tasks cannot be tested here (not root); prints why. */
struct fixture *fixture_new(void);
/* Skips a test whose set-up found that, and left `f` NULL. */
#define NEED_ROOT() \
    if (f == NULL)  \
    skip()
/* Starts the engine with f->config; asserts. */
void fixture_up(struct fixture *f);
/* Destroys the engine; tasks run on. */
void fixture_down(struct fixture *f);
/* Stops everything and removes the folder. NULL is fine. */
void fixture_drop(struct fixture *f);

/*
 * TEXT with each "sleep 7777" made a number that only this process uses, so that suites which look
 * for what is left of their tasks may run side by side. Static buffer, until the next call.
 */
const char *fixture_marked(const char *text);
/* `sh -c SCRIPT` as workload N, marked. */
void fixture_script(struct fixture *f, int n, const char *script);
/* Starts task RANK of workload N, attempt 0: intent "N.RANK.0". */
void fixture_start(struct fixture *f, int n, int rank);

/* The first event of KIND about INTENT (NULL = any); asserts that it comes. */
struct seen fixture_wait(struct fixture *f, const char *intent, enum engine_event_kind kind);
/* How many there are so far. */
int fixture_count(struct fixture *f, const char *intent, enum engine_event_kind kind);
/* Forgets the events so far. */
void fixture_clear(struct fixture *f);

/* The log so far, static buffer of 64 KiB. */
const char *fixture_log(struct fixture *f, const char *intent);
/* Waits until the log holds TEXT; asserts. */
void fixture_wait_log(struct fixture *f, const char *intent, const char *text);

void fixture_reconcile(struct fixture *f, const char *const *intents, int count);
/* Pid of the supervisor of INTENT, by its command line; 0 = none. */
int fixture_supervisor(struct fixture *f, const char *intent);
/* Processes anywhere whose command line holds TEXT, marked. */
int fixture_processes(const char *text);
void fixture_sleep_ms(int ms);

#endif
