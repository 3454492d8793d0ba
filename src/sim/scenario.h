/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs scheduling scenarios on the real scheduler library in virtual time.
 *
 * Purpose. A scenario is one line of JSON (format `allot-scenario-1`, described in
 * docs/scheduling.md): a small inventory, a tree of teams, workloads, events, and what must hold
 * at the end or at an instant. Each runs in a world of its own: nothing is shared, no real clock
 * is read, and the same file prints the same text on every machine.
 *
 * Output. TAP, then the count:
 *
 *     ok 1 - X07 No node can ever hold the 4-GPU job, so nothing is evicted
 *     not ok 2 - X09 In a queue capped at 1 ...
 *     # settled: workload 'n' is pending, expected running
 *     1..2
 *     1 passed, 1 failed
 *
 * A line that cannot be read is a failed case as well: its error names file, line and field.
 *
 * Expected failures. A file of ids, one a line, each followed by `# reason`. Such a case prints
 * `not ok N - ID title # TODO reason`, is counted apart and fails nothing; if it passes, the run
 * fails, so that the list stays true.
 *
 *     struct sim_scenarios_options o = {.files = files, .file_count = 1};
 *     int status = sim_scenarios_run(&o, stdout);
 */
#ifndef ALLOT_SIM_SCENARIO_H
#define ALLOT_SIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct sim_scenarios_options {
    const char *const *files;
    size_t file_count;
    const char *only;        /* run this id alone, or NULL */
    const char *expect_fail; /* file of ids that are known to fail, or NULL */
    bool trace;              /* print every event and decision as `# ` lines */
};

/* 0: all passed; 1: something failed; 2: a file could not be read (said on OUT). */
int sim_scenarios_run(const struct sim_scenarios_options *options, FILE *out);

#endif
