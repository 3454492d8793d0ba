/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ^C and its kin, for commands that last.
 *
 * Between cli_interrupt_begin() and cli_interrupt_end() SIGINT, SIGTERM and SIGHUP only count;
 * the command looks with cli_interrupt_taken() and decides. The count is the one piece of
 * process-wide state here, because signals are.
 */
#ifndef ALLOT_CLI_INTERRUPT_H
#define ALLOT_CLI_INTERRUPT_H

/* Signals since the last call of this function: the number of the last one, or 0. */
int cli_interrupt_taken(void);
/* Like it, but leaves it for the next look. */
int cli_interrupt_pending(void);

/* Not nested. */
void cli_interrupt_begin(void);
/* Signals do again what they did before. */
void cli_interrupt_end(void);

#endif
