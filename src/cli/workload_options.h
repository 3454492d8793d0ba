/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options that describe a workload, shared by `allot run` and `allot submit`, and how they
 * become the body of POST /v1/workloads.
 *
 * Option names are the fields of model/workload.h. The body is decoded here with the server's own
 * decoder before it is sent, so that a bad quantity is refused at once and in the same words.
 */
#ifndef ALLOT_CLI_WORKLOAD_OPTIONS_H
#define ALLOT_CLI_WORKLOAD_OPTIONS_H

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/options.h"

struct cli;
struct json_object;

/* For the tables of commands: their own options come first, then these. */
#define CLI_WORKLOAD_OPTIONS                                                                    \
    {.help = "GPUs (one of these; none = a task without GPU)"},                                 \
        {.name = "gpu",                                                                         \
         .letter = 'g',                                                                         \
         .arg = "SHARE",                                                                        \
         .help = "part of one GPU, compute and memory alike: 0.25; or a whole number"},         \
        {.name = "gpus", .letter = 'G', .arg = "N", .help = "N whole GPUs for each task"},      \
        {.name = "gpu-memory", .arg = "SIZE", .help = "part of one GPU by memory: 10GiB"},      \
        {.name = "mig", .arg = "PROFILE", .help = "a MIG slice: 1g.10gb"},                      \
        {.name = "gpu-count",                                                                   \
         .arg = "N",                                                                            \
         .help = "with --gpu or --gpu-memory: that part of each of N GPUs"},                    \
        {.name = "gpu-type",                                                                    \
         .arg = "TYPE",                                                                         \
         .help = "acceptable type, H100; repeat in order of preference"},                       \
        {.help = "Shape"},                                                                      \
        {.name = "tasks",                                                                       \
         .letter = 'n',                                                                         \
         .arg = "N",                                                                            \
         .help = "number of tasks, started together (default 1)"},                              \
        {.name = "min-tasks",                                                                   \
         .arg = "N",                                                                            \
         .help = "start with N of them, the rest when there is "                                \
                 "room (default: all)"},                                                        \
        {.name = "cpu", .arg = "CORES", .help = "cores for each task: 4, 500m"},                \
        {.name = "memory",                                                                      \
         .letter = 'm',                                                                         \
         .arg = "SIZE",                                                                         \
         .help = "host memory for each task: "                                                  \
                 "16GiB"},                                                                      \
        {.name = "label", .arg = "K=V", .help = "only nodes with this label; may be repeated"}, \
        {.name = "topology-required",                                                           \
         .arg = "LEVEL",                                                                        \
         .help = "all tasks in one domain of this level: rack"},                                \
        {.name = "topology-preferred", .arg = "LEVEL", .help = "likewise, where possible"},     \
        {.help = "Policy"},                                                                     \
        {.name = "team",                                                                        \
         .letter = 't',                                                                         \
         .arg = "TEAM",                                                                         \
         .help = "who pays (default: your only "                                                \
                 "team, or that of the "                                                        \
                 "configuration)",                                                              \
         .complete = CLI_COMPLETE_TEAM},                                                        \
        {.name = "name", .arg = "NAME", .help = "a name to find it by (default: made up)"},     \
        {.name = "kind",                                                                        \
         .letter = 'k',                                                                         \
         .arg = "KIND",                                                                         \
         .help = "job, notebook or service "                                                    \
                 "(default job)",                                                               \
         .complete = CLI_COMPLETE_WORDS,                                                        \
         .words = "job notebook service"},                                                      \
        {.name = "class",                                                                       \
         .letter = 'c',                                                                         \
         .arg = "CLASS",                                                                        \
         .help = "production, training, development or batch (default by kind)",                \
         .complete = CLI_COMPLETE_WORDS,                                                        \
         .words = "production training development batch"},                                     \
        {.name = "priority", .arg = "N", .help = "inside the class; higher first (default 0)"}, \
        {.name = "no-preemptible", .help = "never evicted; stays within the guarantee"},        \
        {.name = "no-burst", .help = "stay within the guarantee of the team"},                  \
        {.name = "max-run-time",                                                                \
         .arg = "TIME",                                                                         \
         .help = "stopped after this: 2h. Also lets "                                           \
                 "others know when they can start"},                                            \
        {.name = "expected-run-time", .arg = "TIME", .help = "for estimates: 45m"},             \
        {.name = "min-run-time", .arg = "TIME", .help = "not evicted before this"},             \
        {.name = "grace",                                                                       \
         .arg = "TIME",                                                                         \
         .help = "time between SIGTERM and SIGKILL (default "                                   \
                 "30s)"},                                                                       \
        {.name = "handling",                                                                    \
         .arg = "HOW",                                                                          \
         .help = "when evicted: checkpoint, restart or "                                        \
                 "suspend",                                                                     \
         .complete = CLI_COMPLETE_WORDS,                                                        \
         .words = "checkpoint restart suspend"},                                                \
        {.name = "max-retries",                                                                 \
         .arg = "N",                                                                            \
         .help = "run again after a failure, N times at "                                       \
                 "most (default 0)"},                                                           \
        {.help = "Command"},                                                                    \
        {.name = "env",                                                                         \
         .letter = 'e',                                                                         \
         .arg = "K=V",                                                                          \
         .help = "set a variable; K alone takes "                                               \
                 "yours; may be repeated"},                                                     \
        {.name = "workdir",                                                                     \
         .letter = 'w',                                                                         \
         .arg = "FOLDER",                                                                       \
         .help = "folder to run in (default: "                                                  \
                 "a fresh one)",                                                                \
         .complete = CLI_COMPLETE_FILE},                                                        \
        {.name = "image", .arg = "IMAGE", .help = "container image: docker://python:3.12"},     \
    {                                                                                           \
        .name = "checkpoint-dir", .arg = "FOLDER",                                              \
        .help = "kept between attempts (default: "                                              \
                "kept for you)",                                                                \
        .complete = CLI_COMPLETE_FILE                                                           \
    }

/*
 * Body of POST /v1/workloads for ARGS, with its command line, in BODY. Asks the server for the
 * teams when none is named. -EINVAL with ERR.
 */
int cli_workload_body(struct cli *cli, const struct cli_args *args, struct strbuf *body,
                      struct err *err);

/* POSTs BODY under a key, so that it can be repeated until an answer comes. */
int cli_submit_body(struct cli *cli, const char *body, struct json_object **ret_json,
                    struct err *err);

#endif
