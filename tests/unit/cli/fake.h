/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server in memory: takes the place of net/http_client.c at link time. Tests say what each
 * "METHOD PATH" answers, run a command line, and look at what it printed and asked for.
 */
#ifndef ALLOT_TESTS_CLI_FAKE_H
#define ALLOT_TESTS_CLI_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "cli/cli.h"

/* Answers CALL ("GET /v1/teams") with STATUS and BODY. Several for one call are given one after
 * the other; the last stays. */
void fake_answer(const char *call, int status, const char *body);
/* From now on no server answers. */
void fake_unreachable(void);
/* The next upgraded connection is FD, which the command line closes. */
void fake_upgrade(int fd);
/* Every call so far, with bodies, one a line: "PUT /v1/teams/nlp {...}". */
const char *fake_calls(void);

/* Runs "ps --all" (blanks part words); what it printed is in OUT and ERR. The clock stands at
 * 2026-11-30T12:00:00Z, output is plain. */
int fake_run(const char *line);
/* Likewise with words as they are, NULL-terminated. */
int fake_run_words(const char *const *words);
extern char *fake_out, *fake_err;
/* How output may look; plain and 80 columns wide at the start of each test. */
extern struct cli_style fake_style;
/* Input, output and errors stand on a terminal; false at the start of each test. */
extern bool fake_terminal;

/* setup and teardown of every test */
int fake_setup(void **state);
int fake_teardown(void **state);

#endif
