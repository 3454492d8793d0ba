/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small worlds for the scheduler's tests: short ways to say what is there, and a caller that
 * carries decisions out.
 *
 *     struct small_world w;
 *     world_init(&w);
 *     world_node(&w, 1, 8);
 *     world_team(&w, 1, 0, 4000);
 *     uint64_t job = world_job(&w, (struct job){.team = 1, .gpu_milli = 2000});
 *     world_settle(&w);
 *     assert_running(&w, job, 1);
 *
 * Ids of workloads count up from 1 and are their ages. Every turn is followed by
 * sched_verify(). Evicted tasks stop in the round after they were evicted (or when the test says
 * so: world.stop_by_hand).
 */
#ifndef ALLOT_TEST_SMALL_WORLD_H
#define ALLOT_TEST_SMALL_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "allot/sched.h"

struct small_world {
    struct sched *s;
    int64_t now_ms;
    uint64_t next_id;
    bool stop_by_hand, trace;
    unsigned starts, holds, unholds, evictions; /* decisions so far */
    struct sched_decision last_evict;
};

struct job { /* zero = the default said beside it */
    uint64_t team;
    uint64_t id;        /* the next one */
    int gpu_milli;      /* of each task: below 1000 a fraction, else whole devices */
    int64_t gpu_memory; /* instead: bytes of one device */
    const char *mig;    /* instead: one slice of this profile */
    int cpu_milli;
    int64_t memory;
    unsigned tasks, min;     /* 1; all */
    enum sched_class class_; /* training if `other_class` is not set */
    bool other_class;
    int priority;
    bool firm; /* not preemptible */
    bool no_burst, spread;
    unsigned max_unavailable;
    uint64_t only_node;
    const uint16_t *only_devices;
    const char *gpu_type;
    const char *required, *preferred;
    int64_t limit_ms, min_run_ms;
    bool strict; /* not accepted earlier: may be refused */
};

void world_init(struct small_world *w);
void world_init_config(struct small_world *w, const struct sched_config *config);
void world_done(struct small_world *w);

/* A node of whole GPUs of 80 GiB; order = id. */
void world_node(struct small_world *w, uint64_t id, uint32_t gpus);
void world_node_state(struct small_world *w, uint64_t id, uint32_t gpus, bool up, bool schedulable);
/* With maintenance announced. */
void world_node_window(struct small_world *w, uint64_t id, uint32_t gpus, int64_t from_ms,
                       int64_t until_ms);
void world_node_label(struct small_world *w, uint64_t id, uint32_t gpus, const char *key,
                      const char *value);
/* GPU guarantee in milli; weight 1, priority 100, no limit; age = id. */
void world_team(struct small_world *w, uint64_t id, uint64_t parent, int64_t guarantee);
void world_team_full(struct small_world *w, uint64_t id, uint64_t parent, int64_t guarantee,
                     int64_t limit, int64_t weight, int priority);
/* Returns the id; the test fails if it is refused. */
uint64_t world_job(struct small_world *w, struct job job);
/* Returns what sched_workload_add() said. */
int world_try_job(struct small_world *w, struct job job, struct sched_refusal *ret_refusal);
/* What sched_explain_new() says of it. */
struct sched_explanation world_foresee(struct small_world *w, struct job job);

/* One turn, verified and carried out (evicted tasks stop unless by hand). Count of decisions. */
unsigned world_turn(struct small_world *w);
/* Turns until nothing happens any more. */
void world_settle(struct small_world *w);
void world_finish(struct small_world *w, uint64_t workload, uint32_t task);
void world_stopped(struct small_world *w, uint64_t workload, uint32_t task, enum sched_stop how);

unsigned world_running(struct small_world *w, uint64_t workload, unsigned tasks);
enum sched_task_state world_state(struct small_world *w, uint64_t workload, uint32_t task);
uint64_t world_where(struct small_world *w, uint64_t workload, uint32_t task);

#define assert_running(w, id) assert_int_equal(world_state((w), (id), 0), SCHED_TASK_RUNNING)
#define assert_pending(w, id) assert_int_equal(world_state((w), (id), 0), SCHED_TASK_PENDING)
#define assert_held(w, id) assert_int_equal(world_state((w), (id), 0), SCHED_TASK_HELD)
#define assert_stopping(w, id) assert_int_equal(world_state((w), (id), 0), SCHED_TASK_STOPPING)

#endif
