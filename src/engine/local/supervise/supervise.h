/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of one task attempt.
 *
 * Phases, and what leads from one to the next:
 *
 *   BUILDING  folders, control groups and the sandbox are being made
 *     -> RUNNING  init reported `started`: the command was executed
 *     -> ENDING   init reported `refused` or `withdrawn` (a stop came first), or the sandbox failed
 *   RUNNING   the log flows, requests are served
 *     -> ENDING   init reported `exited`, or the monitor process has died
 *   ENDING    everything of the task is killed and gone; the exit record is written
 *     -> process exit, once the record is in its file (a full disk is waited out)
 *
 * A stop is handed to init at once, in every phase. When the grace is over init kills the task,
 * because it alone can tell a command that had just ended from one that was killed; an init that
 * does not answer is killed with everything else. What init has said is heard before the end is
 * judged, in whatever order it all became known.
 *
 * The engine may come and go at any time: its connection is replaced, never needed. Its own
 * death is handled by others: bubblewrap and init die with it, and the engine empties the
 * control groups.
 */
#ifndef ALLOT_ENGINE_LOCAL_SUPERVISE_SUPERVISE_H
#define ALLOT_ENGINE_LOCAL_SUPERVISE_SUPERVISE_H

/* Supervises the task in FOLDER; ENGINE and LAUNCH as in control.h. Returns the exit code. */
int supervise_run(const char *folder, int engine, int launch);

#endif
