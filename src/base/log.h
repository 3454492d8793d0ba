/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's log: one line a message on standard error, "LEVEL text", with an ISO time when
 * standard error is a terminal or a file (journald adds its own). Only mains and the layers
 * that own a thread log; library code returns errors instead. Control characters in the text
 * are escaped, so that a hostile name cannot forge a line.
 */
#ifndef ALLOT_BASE_LOG_H
#define ALLOT_BASE_LOG_H

enum log_level { LOG_LEVEL_NONE, LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* Set once by main before threads start; default INFO. */
void log_set_level(enum log_level max);

/* Writes one line if LEVEL is within the maximum. Keeps errno. Any thread. */
void log_write(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warn(...) log_write(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
