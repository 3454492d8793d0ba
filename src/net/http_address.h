/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listen addresses: "127.0.0.1:8080", "[::1]:0", "localhost:8080".
 *
 * The host is a literal address or the word "localhost" (names are not looked up: a server that
 * waits for DNS before it listens is a server that does not start). Port 0 asks for a free one.
 * Pure functions but for http_address_listen(), which opens the socket.
 *
 *     struct http_address a;
 *     r = http_address_parse("127.0.0.1:0", &a, &err);
 *     r = http_address_listen(&a, &fd, &err);     a now carries the port that was given
 */
#ifndef ALLOT_NET_HTTP_ADDRESS_H
#define ALLOT_NET_HTTP_ADDRESS_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/err.h"

#define HTTP_ADDRESS_TEXT_MAX 80

struct http_address {
    struct sockaddr_storage sa;
    socklen_t len;
};

/* -EINVAL with ERR when TEXT is not "ADDRESS:PORT" with a port of 0..65535. */
int http_address_parse(const char *text, struct http_address *ret_address, struct err *err);

/* "127.0.0.1:8080"; TEXT holds HTTP_ADDRESS_TEXT_MAX bytes and is returned. */
const char *http_address_format(const struct http_address *a, char *text);

/* In host byte order. */
uint16_t http_address_port(const struct http_address *a);

/*
 * Binds and listens; RET_FD is owned by the caller and A's port becomes the real one. An address
 * that somebody has is waited for, three seconds at most.
 * -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, ... with an ERR that names the address.
 */
int http_address_listen(struct http_address *a, int *ret_fd, struct err *err);

#endif
