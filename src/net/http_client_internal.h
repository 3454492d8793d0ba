/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two parts of the HTTP client share: http_client.c (calls and streams) and
 * http_client_upgrade.c (raw connections). One thread at a time, as the client itself.
 */
#ifndef ALLOT_NET_HTTP_CLIENT_INTERNAL_H
#define ALLOT_NET_HTTP_CLIENT_INTERNAL_H

#include <curl/curl.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "net/http_client.h"

struct http_client {
    CURL *curl;
    char *base;  /* URL without a slash at the end */
    char *shown; /* as the caller wrote it, for messages */
    char *unix_path;
    char *token;
    struct curl_slist *extra; /* headers of the next call */
};

DEFINE_CLEANUP(struct http_client *, http_client_destroy, http_client_destroyp)

/* Headers of one call, to curl_slist_free_all(): those added, and the usual ones. */
struct curl_slist *http_client_take_headers(struct http_client *c, const char *accept,
                                            bool has_body);
/* Gives CURL the options that every transfer has, and forgets those of the last one. */
void http_client_common(struct http_client *c, CURL *curl);
/* Turns CODE into a negative errno with ERR naming the server. */
int http_client_failed(struct http_client *c, CURL *curl, CURLcode code, struct err *err);

#endif
