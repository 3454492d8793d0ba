/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the local engine: its state and the verbs that act on it.
 *
 * Everything in `struct engine_local` after `queue` belongs to the engine's thread. Other
 * threads hand in a request (queue.c) and wake it. Files by subject:
 *   engine.c   create, attach, destroy, the loop, the port's table
 *   launch.c   composing a launch record
 *   share.c    what tasks see of the driver of their devices
 *   start.c    from a request to a launch; spawn.c  from a launch to a watched supervisor
 *   activity.c signs of life of tasks
 *   suspend.c  tasks that sleep, and the agent that moves their device memory
 *   watch.c    messages, deaths, usage, stop
 *   adopt.c    reconcile
 *   put_away.c forget and retention
 *   clean.c    what a dead supervisor left (helper thread)
 *   image.c    image cache (helper thread)
 *
 * States of a task, with what leads on:
 *   PREPARING  its image is being fetched        -> STARTING, or ENDED (refused, stopped)
 *   ADOPTING   a supervisor lives; no word yet   -> STARTING, RUNNING, ENDED, CLEANING
 *   STARTING   the supervisor builds the sandbox -> RUNNING, ENDED, CLEANING
 *   RUNNING    the command runs                  -> ENDED, CLEANING
 *   CLEANING   the supervisor died without a record; a helper empties the groups -> ENDED
 *   ENDED      told the host; kept until forget()
 */
#ifndef ALLOT_ENGINE_LOCAL_ENGINE_H
#define ALLOT_ENGINE_LOCAL_ENGINE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/local/cgroup.h"
#include "engine/local/engine_local.h"
#include "engine/local/image.h"
#include "engine/local/worker.h"
#include "gpu/gpu.h"
#include "gpu/uuid.h"
#include "model/task.h"

#define ENGINE_PULLERS 4 /* threads that fetch images */

enum local_task_state { PREPARING, ADOPTING, STARTING, RUNNING, CLEANING, ENDED };

/* What epoll carries: the first member of whatever is watched. */
struct watch {
    void (*ready)(struct engine_local *e, struct watch *w);
};

/* Is an error of this code (ERR_*) one that trying again cannot mend? */
bool engine_code_lasts(const char *code);

/* See suspend.c. */
enum sleep_state { AWAKE, CLOSING, SAVING, VERIFYING, ASLEEP, OPENING, RESTORING };

struct local_task {
    char intent[MODEL_INTENT_MAX];
    enum local_task_state state;
    bool unwanted; /* found running, unknown to core: ends without an event */
    bool awaited;  /* reconcile() waits for an answer about it */
    struct watch on_control;
    int control;           /* connection to the supervisor, -1 = none */
    struct reaper *reaper; /* of its supervisor, NULL = none */
    char *launch;          /* its launch record; NULL in PREPARING */
    size_t launch_len;
    struct cgroup_set cgroups; /* points into launch */
    int64_t gpu_milli;
    bool simulated;
    int64_t started_ms;
    int64_t busy_ns, known_ns; /* as in engine_event */
    int64_t stop_grace_ms;     /* asked for while there was no one to tell; -1 = no */
    int64_t beyond_bytes; /* of device memory that its programs took past the shim */
    int64_t signal_ms[MODEL_SIGNAL_COUNT]; /* see activity.c */
    int64_t seen_ms; /* the last look, and what there was then */
    int64_t seen_cpu_ns, seen_busy_ns, seen_known_ns, seen_log_bytes;
    enum sleep_state sleep;
    bool sleep_wanted;         /* the last that core asked for */
    bool sleep_known;          /* core knows that it slept when it was adopted */
    int64_t slept_ms;          /* when it fell asleep; later than roused_ms */
    int64_t roused_ms;         /* when core last asked for the contrary */
    int agent_tries;           /* of the step that is under way */
    bool still_held;           /* the driver did not count it out: it is brought back */
    int64_t host_bytes;        /* that what it holds on devices takes in host memory */
    int64_t closed_ms;         /* for how long it slept, up to the last word of its supervisor */
    int64_t closed_at_ms;      /* when that was, if it slept then; 0: it did not */
    const char *sleep_message; /* of the RESUMED that is being told, or NULL */
    char *doom;                /* why it had to be ended, or NULL */
    int64_t adopt_deadline_ms;
    int64_t patience_ms;        /* when a supervisor that says nothing is given up; 0 = no limit */
    enum engine_event_kind end; /* ENDED: how */
    int32_t exit_code, exit_signal;
    bool stopped; /* asked to before it ended */
    bool lasting; /* refused for a reason that stays */
    int64_t ended_ms;
    bool past_boot; /* as in engine_event */
    int64_t ran_ms;
    char *message;
};

/* The wait for a supervisor's death: outlives the task's record if need be, so that no child of
 * ours stays a zombie. */
struct reaper {
    struct watch on_death;
    struct reaper *next, **at; /* all of them, from engine_local.reapers */
    int pidfd;
    struct local_task *task; /* NULL = forgotten */
};

/* A start that waits for its image, or a clean-up: the work of a helper thread. */
struct local_job {
    struct worker_job job;
    struct engine_local *e;
    struct request *start;             /* image: the request to go on with */
    const struct model_launch *launch; /* image: in the request's arena */
    struct image image;
    char intent[MODEL_INTENT_MAX]; /* clean-up */
    char *record;                  /* clean-up: launch record */
    size_t record_len;
    int result;
    struct err err;
};

enum request_kind {
    REQUEST_START,
    REQUEST_STOP,
    REQUEST_FORGET,
    REQUEST_RECONCILE,
    REQUEST_EXEC,
    REQUEST_SUSPEND,
    REQUEST_RESUME,
    REQUEST_IMAGE_READY,
    REQUEST_CLEANED,
    REQUEST_QUIT
};

/* One call for the engine's thread. Owns its memory, the arena included. */
struct request {
    struct request *next;
    enum request_kind kind;
    struct arena arena;
    const char *intent;
    struct engine_start start;     /* START; everything in the arena */
    int64_t grace_ms;              /* STOP */
    struct engine_intent *intents; /* RECONCILE */
    size_t count;
    struct exec_call *exec; /* EXEC; the caller's, who waits for it */
    struct local_job *job;  /* IMAGE_READY, CLEANED */
};

struct queue {
    pthread_mutex_t lock;
    struct request *first, **last;
    int wake; /* eventfd */
};

/* A caller of exec() waiting on the engine's thread. */
struct exec_call {
    const char *const *command;
    int tty;
    int client; /* the end for the supervisor */
    int result;
    struct err *err;
    pthread_mutex_t lock;
    pthread_cond_t done_cond;
    bool done;
};

struct settings {
    const char *data_dir, *tasks_dir, *ended_dir, *images_dir, *checkpoint_dir;
    const char *supervise_path, *bwrap_path; /* bwrap NULL = not there */
    int64_t log_bytes, tmp_bytes, pids_max, retain_count, retain_ms;
    uint32_t uid_base;
    const char *const *workdir_roots;
    const char *const *hide;   /* folders that tasks must not see, on the machine's root */
    const char *const *show;   /* read-only folders that they see all the same */
    const char *const *forbid; /* folders of the platform */
    bool allow_unsandboxed;
    bool strict_sharing;
    const char *no_sandbox; /* why there is none, or NULL */
    const char *driver_path; /* libcuda.so.1 of the devices, NULL = none is shown to tasks */
    const char *sim_file;    /* what the driver of simulated devices keeps them in, or NULL */
    const char *nvml_path;   /* its libnvidia-ml.so.1, or NULL */
    const char *const *companions; /* libraries that the driver loads, or NULL */
    const char *boards_dir; /* where tasks on one device take turns: gpu/turns.h */
    const char *shim_path;   /* NULL = parts of devices are not enforced */
    const char *nvml_shim_path; /* NULL = monitors in tasks show whole devices */
    const char *agent_path;  /* allot-gpu-agent; NULL = no task can sleep */
    const char *verify_path; /* what shows in a task whether its part holds, or NULL */
    void (*step)(void *ctx, const char *step);
    void *step_ctx;
};

struct engine_local {
    struct arena arena; /* settings, node */
    struct settings settings;
    struct model_node node;
    struct gpu_inventory devices;
    struct cgroup_site cgroups;
    bool user_namespaces; /* does each sandbox get one? */
    struct engine_host host;
    struct queue queue;
    pthread_t thread;
    bool thread_runs;

    int epoll, timer; /* timer: for usage */
    uint32_t ticks;   /* of it */
    int tasks_fd, ended_fd;
    struct busy_meter *meter; /* NULL = no driver tells of the devices */
    struct watch on_queue, on_timer;
    struct map tasks;                  /* struct local_task by intent */
    VEC(struct local_task *) adopting; /* in ADOPTING: tried again at short intervals */
    struct reaper *reapers;
    size_t awaited; /* answers that RECONCILED waits for */
    bool reconciling;
    int agent; /* connection to allot-gpu-agent, -1 = it does not run */
    pid_t agent_pid;
    struct watch on_agent;
    struct worker *cleaner;
    struct worker *pullers[ENGINE_PULLERS]; /* a team has one of them */
    int cancel;                             /* eventfd: readable when the helpers should give up */
    VEC(char *) retained;                   /* names in ENDED, oldest at retained_first */
    size_t retained_first;
    char *buffer; /* CONTROL_MESSAGE_MAX bytes */
    char *boot_id;
    struct arena launch_arena; /* the launch that was loaded last: gangs start in a row */
    uint64_t launch_of;
    const struct model_launch *launch;
    bool quit;
};

/* queue.c */
struct request *request_new(enum request_kind kind);
void request_free(struct request *r);
/* Takes R over. Any thread. */
void queue_push(struct queue *q, struct request *r);
/* All requests so far, in order. */
struct request *queue_take(struct queue *q);

/* engine.c */
int engine_watch(struct engine_local *e, int fd, struct watch *w);
/* Ends the watch and closes FD. Closing alone does not do: a child that is just being executed
 * may hold a copy for a moment, and epoll would report on it. */
void engine_unwatch(struct engine_local *e, int fd);
void engine_step(struct engine_local *e, const char *step);
/* Sends KIND about T to the host; nothing about unwanted tasks. */
void engine_tell(struct engine_local *e, const struct local_task *t, enum engine_event_kind kind);

/* launch.c: the launch record of START with its LAUNCH, for the folder FOLDER. IMAGE is NULL or
 * the prepared one. */
int launch_compose(const struct engine_local *e, const struct engine_start *start,
                   const struct model_launch *launch, const struct image *image,
                   struct strbuf *record, struct err *err);

/* share.c */
/* What the driver calls D, real or simulated. */
void share_uuid(const struct model_device *d, char ret_text[GPU_UUID_TEXT]);
/* Finds driver and shim, once it is known whether there are sandboxes; the node says so. */
void share_find(struct engine_local *e);
/* Refuses a part of a device where the node does so. */
int share_check(const struct engine_local *e, const struct engine_start *start, struct err *err);
/* Does START, in an IMAGE or on the machine's root, get a driver put into its sandbox? */
bool share_has_driver(const struct engine_local *e, const struct engine_start *start, bool image);
/* Adds to RECORD what the supervisor puts there, and the parts that START holds. IMAGE may be
 * NULL. */
void share_compose(const struct engine_local *e, const struct engine_start *start,
                   const struct image *image, struct strbuf *record);
/* What programs of START are to preload, or NULL. */
const char *share_preload(const struct engine_local *e, const struct engine_start *start,
                          const struct image *image);
/* The driver's management library of simulated devices, in E's arena; NULL: there is none, or the
 * devices are real. */
const char *share_management(struct engine_local *e);
/* Tells the supervisor of T what the driver says of the memory that T's processes hold. */
void share_reconcile(struct local_task *t, const struct busy_meter *m);
/* That memory, of all devices that T shares; -1: not known. */
int64_t share_held(const struct local_task *t, const struct busy_meter *m);
/* Memory that START may use of its first device. 0: it has none. */
int64_t share_memory_bytes(const struct engine_local *e, const struct engine_start *start);
/* Appends the devices of START as CUDA_VISIBLE_DEVICES has them. */
void share_visible(const struct engine_local *e, const struct engine_start *start,
                   struct strbuf *ret_uuids);

/* start.c */
/* Takes R over. */
void start_handle(struct engine_local *e, struct request *r);
/* The image has been prepared, or that failed. Takes JOB over. */
void start_image_ready(struct engine_local *e, struct local_job *job);

/* spawn.c: makes the folder of T and runs a supervisor for RECORD in it. After an error nothing
 * is left. */
int spawn_supervisor(struct engine_local *e, struct local_task *t, const struct strbuf *record,
                     struct err *err);

/* The same, waiting for the end; for trying out what the machine allows. RET_RECORD (to free())
 * is the exit record. */
int spawn_probe(struct engine_local *e, const struct strbuf *record, char **ret_record,
                size_t *ret_len, struct err *err);

/* Runs allot-gpu-agent; RET_CONTROL is a connection to it, the caller's. */
int spawn_agent(struct engine_local *e, int *ret_control, pid_t *ret_pid, struct err *err);

/* surroundings.c: fills settings, node, devices and control groups from CONFIG and the machine. */
int surroundings_find(struct engine_local *e, const struct engine_local_config *config,
                      struct err *err);
/* Tries the sandbox and the control groups with a real task; corrects what was found. */
void surroundings_try(struct engine_local *e);
/* Path of what is installed with this program under NAME, NULL = it is not; in E's arena. */
const char *surroundings_part(struct engine_local *e, const char *name);

/* watch.c */
void reaper_free(struct engine_local *e, struct reaper *r);
struct local_task *task_new(struct engine_local *e, const char *intent);
void task_free(struct engine_local *e, struct local_task *t);
/* Watches CONTROL and the process PID; takes CONTROL over, also after an error. */
int task_watch(struct engine_local *e, struct local_task *t, int control, pid_t pid);
/* Keeps a copy of the launch record and reads what the engine needs of it. */
void task_set_launch(struct local_task *t, const char *launch, size_t len);
/* T has ended as told; informs the host. MESSAGE may be NULL. */
void task_end(struct engine_local *e, struct local_task *t, enum engine_event_kind kind,
              const char *message);
/* Was RECORD, of a launch or an end, written in an earlier boot? Those of older releases say no. */
bool task_past_boot(const struct engine_local *e, const char *record, size_t len);
/* Ends T by its exit record, DATA. */
void task_end_by_record(struct engine_local *e, struct local_task *t, const char *data, size_t len);
/* Reads the exit record of INTENT; -ENOENT when there is none. */
int task_read_record(const struct engine_local *e, const char *intent, char **ret_data,
                     size_t *ret_len);
/* Its supervisor is dead: the end by the exit record, or clean up and then LOST. */
void task_bereaved(struct engine_local *e, struct local_task *t);
void watch_stop(struct engine_local *e, const char *intent, int64_t grace_ms);
void watch_exec(struct engine_local *e, struct request *r);
/* Gives up supervisors that hang, and tells how busy the tasks were. */
void watch_usage(struct engine_local *e);

/* activity.c */
/* Looks what T has done since the last look; it has used CPU_NS so far. */
void activity_look(struct engine_local *e, struct local_task *t, int64_t cpu_ns, int64_t now_ms);
/* What the supervisor of T says: whether work was given to a device, how much was written. */
void activity_told(struct local_task *t, const char *record, size_t len);
/* Somebody opened a session in T. */
void activity_session(struct local_task *t);

/* suspend.c */
/* Core wants INTENT to sleep, or not to. Answered by SUSPENDED or RESUMED. */
void suspend_request(struct engine_local *e, const char *intent, bool sleep);
/* What the supervisor of T says of its gate, and that a program waits there. */
void suspend_gate_told(struct engine_local *e, struct local_task *t, const char *record,
                       size_t len);
void suspend_wake_told(struct engine_local *e, struct local_task *t);
/* T was found running: goes on with what was under way. RECORD: its supervisor's first word. */
void suspend_adopted(struct engine_local *e, struct local_task *t, const char *record, size_t len);
/* T is VERIFYING, and the driver says that its processes hold BYTES of devices; -1: not known. */
void suspend_verify(struct engine_local *e, struct local_task *t, int64_t bytes);
/* For how long T has slept until NOW_MS. */
int64_t suspend_closed_ms(const struct local_task *t, int64_t now_ms);
/* Ends the agent; tasks that sleep do so on. */
void suspend_close(struct engine_local *e);

/* busy.c: how busy the tasks keep their devices. */
/* Begins to measure real devices, where there are any. */
void busy_open(struct engine_local *e);
void busy_close(struct engine_local *e);
/* Reads the driver's figures: measures the running tasks on real devices, and lets the supervisors
 * of those that share some compare the memory that they have charged. */
void busy_measure(struct engine_local *e);
/* Tells the host what the driver said last of the devices of the node. */
void busy_report(struct engine_local *e);
/* Memory that the processes PIDS hold of the device UUID, as the driver says. -1: not known. */
int64_t busy_memory(const struct busy_meter *m, const char *uuid, const struct cgroup_pids *pids);
/* The same of T if its devices are simulated: it has used CPU_NS until NOW_MS. */
void busy_by_cpu(struct local_task *t, int64_t cpu_ns, int64_t now_ms);

/* clean.c */
void clean_begin(struct engine_local *e, struct local_task *t);
/* Takes JOB over. */
void clean_done(struct engine_local *e, struct local_job *job);

/* adopt.c */
void adopt_reconcile(struct engine_local *e, const struct request *r);
/* Looks for what is left of INTENT on disk; T is new. Answers at once or later. */
void adopt_task(struct engine_local *e, struct local_task *t);
/* Tries those in ADOPTING again. */
void adopt_again(struct engine_local *e);
/* An answer about T was given. */
void adopt_answered(struct engine_local *e, struct local_task *t);

/* put_away.c */
void put_away_forget(struct engine_local *e, const char *intent);
/* Moves the folder of INTENT to the ended ones. */
void put_away_folder(struct engine_local *e, const char *intent);
/* Lists what is retained; at start. */
int put_away_load(struct engine_local *e);
/* Is NAME an intent's name, fit to be a folder? */
bool put_away_name_ok(const char *name);

#endif
