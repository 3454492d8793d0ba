/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of whatif.h share: the world that a record is played in (whatif_world.c), the
 * replay (whatif.c), and its figures (whatif_figures.c).
 */
#ifndef ALLOT_SIM_WHATIF_INTERNAL_H
#define ALLOT_SIM_WHATIF_INTERNAL_H

#include "sim/drive.h"
#include "sim/whatif.h"

/* What became of one job. */
struct whatif_fate {
    int64_t start_ms; /* DRIVE_NEVER = not */
    bool refused;
    uint32_t evictions, retries, losses; /* of the task with most */
    int64_t held_milli_ms;
};

/* Fills in groups and sums from the FATES of all jobs. */
void whatif_summarise(const struct past *p, const struct whatif_fate *fates,
                      struct whatif_outcome *o);

/* ---- the world ---------------------------------------------------------------------------- */

/* A team of the setup as the scheduler knows it. */
struct whatif_told {
    struct sched_team team;
    bool known;
};

/*
 * Teams and nodes in the scheduler, as they are at the time that has been reached. What changes
 * meanwhile is a call of the drive, in the order of time; a change that the scheduler does not
 * take at that time, because the replay has come another way, is left out and counted.
 */
struct whatif_world {
    const struct past *past;
    const struct whatif_setup *setup;
    struct sched *s;
    struct drive *d;           /* while the record is played */
    struct whatif_team *teams; /* as they are now */
    struct whatif_told *told;
    size_t *order;             /* indices of teams, parents before children */
    struct whatif_step *steps; /* one for each change */
    uint64_t skipped;
    struct arena arena;
};

/* Teams and nodes as they are in the beginning. S is empty and stays the caller's. -EINVAL with
 * ERR; whatif_world_done() is called in any case. */
int whatif_world_begin(struct whatif_world *w, const struct past *past,
                       const struct whatif_setup *setup, struct sched *s, struct err *err);
/* Hands what changes later to D. */
void whatif_world_schedule(struct whatif_world *w, struct drive *d);
void whatif_world_done(struct whatif_world *w);

#endif
