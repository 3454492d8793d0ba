/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A scenario as plain data, and its parser.
 *
 * Purpose. The parser turns one line of JSON into these structures, resolves every name to an
 * index and refuses what does not add up, so that the code that runs a scenario has no errors
 * of spelling left to meet. The structures are constant once parsed.
 *
 * Ownership. Everything lives in the arena given to sim_scenario_parse(); strings included.
 *
 * Units. milli-GPU, millicores, bytes, milliseconds. SCHED_UNLIMITED means none. Times count
 * from the start of the scenario; SIM_AT_START marks what is there before it.
 *
 * Beyond the fields of the given format a scenario may say `class`, `may_burst`, `min_run_s`,
 * `max_unavailable`, `expected_s`, `devices` (a fraction on several devices), `gpu_types` and
 * `node_labels` of a request, `quota` and `gpu_types` of a team, `maintenance` of a node, `hold_s`,
 * `window_lead_s`,
 * `past_half_life_s`, `moves_max`, and the events `node_drain`, `node_undrain`, `cancel`,
 * `task_failed` and `team`.
 */
#ifndef ALLOT_SIM_SCENARIO_DATA_H
#define ALLOT_SIM_SCENARIO_DATA_H

#include <stdbool.h>
#include <stdint.h>

#include "allot/sched.h"
#include "base/arena.h"
#include "base/err.h"

#define SIM_AT_START (-1)
#define SIM_UNSET (-1)
#define SIM_NO_INDEX UINT32_MAX

struct sim_pair { /* key first: filled by sim_decode_map() */
    const char *key;
    const char *value;
};

struct sim_count {
    const char *key;
    uint32_t count;
    uint32_t index; /* of the node it names, where it names one */
};

struct sim_node {
    const char *name;
    uint32_t gpus;
    int64_t gpu_memory_bytes; /* 0 = unknown */
    int64_t cpu_milli;
    int64_t memory_bytes;
    const struct sim_pair *labels;
    uint32_t label_count;
    const struct sim_count *mig; /* slices by profile */
    uint32_t mig_count;
    const char *gpu_type;
    int64_t window_from_ms, window_until_ms; /* maintenance; until 0 = none */
};

struct sim_amounts {
    int64_t v[SCHED_RESOURCES];
};

struct sim_team {
    const char *name;
    const char *parent_name;
    struct sim_amounts guarantee, limit;
    bool hard; /* the limit was made from the guarantee */
    struct sched_type_quota *types;
    uint32_t type_count;
    int64_t weight;
    int32_t priority;
    uint32_t parent; /* index, or SIM_NO_INDEX */
};

struct sim_request {
    int64_t gpu_milli;
    int64_t gpu_memory_bytes;
    uint32_t devices; /* of a fraction or of memory; default 1 */
    const struct sim_count *mig;
    uint32_t mig_count;
    int64_t cpu_milli;
    int64_t memory_bytes;
    const char *const *gpu_types;
    uint32_t gpu_type_count;
    const struct sim_pair *labels;
    uint32_t label_count;
};

struct sim_task {
    struct sim_request request;
    bool running; /* at the start */
    const char *node_name, *device, *group_name, *only_node_name;
    int32_t rank;
    uint32_t node, only_node; /* indices, or SIM_NO_INDEX */
    uint32_t group;
};

struct sim_group {
    const char *name;
    uint32_t min_tasks;
    const char *required;
};

struct sim_workload {
    const char *name;
    const char *team_name;
    uint32_t team;
    enum sched_class class_;
    int32_t priority;
    int32_t preemptible; /* 0, 1, or SIM_UNSET: as its class says */
    bool may_burst;
    bool launch_refused;
    struct sim_task *tasks;
    uint32_t task_count;
    uint32_t min_tasks;
    const struct sim_group *groups;
    uint32_t group_count;
    const char *topology_required, *topology_preferred;
    int64_t at_ms; /* SIM_AT_START: there from the start, accepted earlier */
    int64_t expected_ms;
    int64_t run_ms, limit_ms, stop_ms, min_run_ms; /* run_ms: SIM_UNSET = never ends */
    uint32_t max_unavailable;                      /* 0 = no budget */
    uint64_t age;
};

enum sim_event_kind {
    SIM_EVENT_NONE,
    SIM_EVENT_NODE_DOWN,
    SIM_EVENT_NODE_UP,
    SIM_EVENT_NODE_DRAIN,
    SIM_EVENT_NODE_UNDRAIN,
    SIM_EVENT_CANCEL,      /* a person cancels a workload */
    SIM_EVENT_TASK_FAILED, /* a task fails with a retry left */
    SIM_EVENT_TEAM         /* the numbers of a team change */
};

struct sim_event {
    int64_t at_ms;
    enum sim_event_kind kind;
    const char *subject;  /* name of a node or workload, or id of a task */
    uint32_t index, task; /* of the node, workload or team; of the task */
    struct sim_team team; /* SIM_EVENT_TEAM */
};

enum sim_state {
    SIM_STATE_ANY,
    SIM_STATE_PENDING,
    SIM_STATE_RUNNING,
    SIM_STATE_FINISHED,
    SIM_STATE_REFUSED,
    SIM_STATE_PARTIAL /* some run, fewer than the minimum; never expected */
};

struct sim_expect_item { /* of a workload or a task */
    const char *key;
    enum sim_state state;
    const char *node_name;
    uint32_t node;
    int64_t running_tasks; /* SIM_UNSET = any */
    /* How its wait is explained; NULL and SIM_UNSET = whatever. */
    const char *reason, *waits_for;
    int64_t less_milli, start_ms, run_ms;
    uint32_t workload, task;
};

struct sim_expect_placement {
    const char *key;
    uint32_t workload;
    struct sim_count *nodes;
    uint32_t node_count;
};

struct sim_expect {
    bool settled;
    int64_t at_ms;
    struct sim_expect_item *workloads, *tasks;
    uint32_t workload_count, task_count;
    struct sim_count *per_team, *per_prefix;
    uint32_t per_team_count, per_prefix_count;
    struct sim_expect_placement *placement;
    uint32_t placement_count;
    int64_t evictions_total; /* SIM_UNSET = any */
    int64_t max_evictions_per_round;
    bool has_evicted;
    const char *const *evicted;
    uint32_t evicted_count;
};

struct sim_scenario {
    const char *format, *id, *title;
    struct sim_node *nodes;
    struct sim_team *teams;
    struct sim_workload *workloads;
    struct sim_event *events;
    struct sim_expect *expects;
    uint32_t node_count, team_count, workload_count, event_count, expect_count;
    const char *const *topology_levels;
    uint32_t topology_level_count;
    int64_t stale_gang_ms;
    int64_t hold_ms; /* SIM_UNSET = the library's default */
    uint32_t moves_max;     /* SIM_NO_INDEX = the library's default */
    int64_t window_lead_ms; /* likewise */
    int64_t past_half_life_ms; /* 0 = past use does not count */
};

/* Parses one line of LEN bytes. 0, or -EINVAL, -ERANGE, -ENOENT (an unknown name) with ERR. */
int sim_scenario_parse(struct arena *arena, const char *text, size_t len,
                       struct sim_scenario *ret_scenario, struct err *err);

/* Resolves names to indices and checks what single fields cannot; called by the parser. */
int sim_scenario_resolve(struct sim_scenario *s, struct err *err);

/* Finds "workload/index"; -ENOENT. */
int sim_task_find(const struct sim_scenario *s, const char *id, uint32_t *ret_workload,
                  uint32_t *ret_task);

/* Charge of a slice of this MIG profile in milli-GPU, 0 if the profile is not one. */
int32_t sim_mig_milli(const char *profile);

#endif
