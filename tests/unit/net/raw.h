/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that sends exactly the bytes it is told to: what a well-behaved library would never
 * send. Blocking, with a time limit on every read; failures are cmocka failures.
 */
#ifndef ALLOT_TESTS_NET_RAW_H
#define ALLOT_TESTS_NET_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/* For what takes a moment, on a machine that does much else meanwhile. */
#define RAW_PATIENCE_MS 60000

/* Connects to 127.0.0.1:PORT. The descriptor is the caller's. */
int raw_connect(uint16_t port);

/* Sends all; false when the server closed meanwhile. */
bool raw_send(int fd, const void *data, size_t len);
bool raw_sends(int fd, const char *text);

/* Reads one reply with a Content-Length or chunks: head and (decoded) body. Returns the status,
 * 0 when the connection ended first. */
int raw_reply(int fd, struct strbuf *head, struct strbuf *body);

/* Sends TEXT on a new connection and reads one reply. */
int raw_ask(uint16_t port, const char *text, struct strbuf *head, struct strbuf *body);

/* Reads until NEEDLE appears in TEXT or LIMIT_MS have passed. */
bool raw_read_until(int fd, struct strbuf *text, const char *needle, int limit_ms);

/* Waits until the server closes; false after LIMIT_MS. */
bool raw_wait_closed(int fd, int limit_ms);

#endif
