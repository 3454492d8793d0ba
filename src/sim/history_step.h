/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Steps of a history: what people, machines and faults do to the control plane.
 *
 * A history is a list of steps and nothing else. Whether a step was drawn from a seed or read
 * from a file makes no difference to who plays it, and what a task does by itself depends on its
 * name alone: a list without some of its steps is a history again, in which the others mean what
 * they meant. Recording, replaying and shrinking are therefore one mechanism.
 *
 * Everything is known by small numbers: teams, nodes, and workloads, which are named "w17". A
 * step whose subject does not exist (any more) does nothing.
 *
 * As text a step is one line, its word and then every field by name; '#' begins a comment:
 *
 *     submit w=17 count=1 team=3 class=training priority=0 tasks=3 min=2 ask=gpus-2 ...
 *     finish w=17 task=0 code=0 how=exit
 *     crash at=durable calls=0 reboot=no
 *
 * Units: milliseconds; milli-GPU and millicores for quotas. -1 is "none" or "its own" where a
 * field allows it.
 */
#ifndef ALLOT_SIM_HISTORY_STEP_H
#define ALLOT_SIM_HISTORY_STEP_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "base/vec.h"

#define HISTORY_TEAMS_MAX 16
#define HISTORY_NODES_MAX 16

enum history_kind {
    HISTORY_NODE,     /* the engine has a node from now on */
    HISTORY_TEAM,     /* a quota is set; the team is made if need be */
    HISTORY_DISSOLVE, /* a team is deleted */
    HISTORY_SUBMIT,   /* COUNT equal workloads, W and the numbers after it, all or none */
    HISTORY_CANCEL,
    HISTORY_FINISH,  /* a task that runs ends */
    HISTORY_REFUSE,  /* the next launch is refused */
    HISTORY_DRAIN,   /* or undrain */
    HISTORY_LOSE,    /* a node is gone: its tasks die, or live on unseen */
    HISTORY_RETURN,  /* it is back */
    HISTORY_TIME,    /* time passes, events arrive */
    HISTORY_COMMIT,  /* what waits for the disk is durable */
    HISTORY_DISK,    /* the disk refuses it */
    HISTORY_CRASH,   /* the server dies and starts again */
    HISTORY_LATE,    /* the next event comes late */
    HISTORY_REPEAT,  /* the next event comes twice */
    HISTORY_REORDER, /* events on their way overtake each other */
    HISTORY_WALL,    /* the wall clock jumps */
    HISTORY_REST,    /* nothing happens from outside until nothing is left to do */
    HISTORY_SUSPEND, /* somebody wants a workload's devices back in the pool */
    HISTORY_RESUME,  /* and wants it to have them again */
    HISTORY_CALL,    /* the program of a suspended workload calls a GPU */
    HISTORY_HINDER,  /* the next move of device memory goes wrong */
    HISTORY_KINDS
};

enum history_class { HISTORY_PRODUCTION, HISTORY_TRAINING, HISTORY_DEVELOPMENT, HISTORY_BATCH };
/* GPU types; and what work accepts: one, the other, or any. */
enum history_type { HISTORY_H100, HISTORY_A100, HISTORY_TYPES };
enum history_accept { HISTORY_ACCEPT_ANY = HISTORY_TYPES, HISTORY_ACCEPT_BOTH };
/* May it be suspended, and does it give way by that? */
enum history_sort { HISTORY_JOB, HISTORY_SUSPENDS, HISTORY_NOTEBOOK };
enum history_how { HISTORY_EXIT, HISTORY_LOST };
/* Where in the life of a group of rows the server dies. */
enum history_crash {
    HISTORY_BEFORE,  /* it is not durable */
    HISTORY_DURABLE, /* it is, and nobody was told */
    HISTORY_DURING,  /* after CALLS of the calls to the engine that follow from it */
    HISTORY_AFTER    /* after all of them, before any answer */
};
/* What one task asks for; history_ask_json() says what that is. */
enum history_ask {
    HISTORY_GPUS_1,
    HISTORY_GPUS_2,
    HISTORY_GPUS_4,
    HISTORY_QUARTER,
    HISTORY_HALF,
    HISTORY_SEVEN_TENTHS,
    HISTORY_TWO_HALVES,
    HISTORY_MEMORY,
    HISTORY_SLICE,
    HISTORY_CPU,
    HISTORY_ASKS
};

struct history_step {
    enum history_kind kind;
    union {
        struct {
            int32_t node, devices, slices, memory_gib, cpu, type;
        } node;
        struct {
            int32_t team, parent, guarantee, limit, cpu_limit, weight, priority;
            int32_t type, type_guarantee, type_limit; /* of one GPU type beside all */
        } team;                                       /* and dissolve */
        struct {
            int32_t w, count, team, class_, priority, tasks, min, ask, retries, grace, limit,
                protect, accept, sort;
        } submit;
        struct {
            int32_t w, grace;
        } cancel; /* and suspend, resume, call */
        struct {
            int32_t w, task, code, how;
        } finish;
        struct {
            int32_t lasting;
        } refuse;
        struct {
            int32_t what;
        } hinder;
        struct {
            int32_t node, flag;
        } drain; /* flag: drained */
        struct {
            int32_t node, dies;
        } lose; /* and return */
        struct {
            int32_t ms;
        } time; /* and late, repeat, wall */
        struct {
            int32_t error;
        } disk;
        struct {
            int32_t at, calls, reboot;
        } crash;
    };
};

/* A list of them; vec_done() frees it. */
struct history_steps VEC_BODY(struct history_step);

/* "H100", "A100"; static. */
const char *history_type_name(enum history_type type);
/* What an ask is, as fields of a workload's JSON; static. */
const char *history_ask_json(enum history_ask ask);

/* The errno of an index of `disk error=`: negative. */
int history_disk_errno(int32_t error);

/* One line, without its end, into TEXT. */
#define HISTORY_LINE_MAX 256
void history_step_format(const struct history_step *step, char *text);
/* The reverse. -EINVAL with ERR, which names the word or field and what is allowed. */
int history_step_parse(const char *line, struct history_step *ret_step, struct err *err);

/* Reads a list of steps; empty lines and comments are skipped. -EINVAL with the number of the
 * line in ERR; steps before it have been appended. */
int history_steps_read(FILE *in, struct history_steps *steps, struct err *err);

#endif
