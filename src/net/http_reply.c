/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"

const char *http_status_phrase(int status)
{
    const char *phrase = MHD_get_reason_phrase_for((unsigned)status);

    return phrase ? phrase : "Unknown";
}

const char *http_request_header(struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(exchange_of(r)->connection->mhd, MHD_HEADER_KIND, name);
}

void http_reply_header(struct http_request *r, const char *name, const char *value)
{
    struct exchange *x = exchange_of(r);
    size_t n = 0;

    if (x->header_count == REPLY_HEADERS_MAX)
        return;
    /* A value that came from outside must not begin another header. */
    while ((unsigned char)value[n] >= ' ' && value[n] != 0x7f)
        n++;
    x->headers[x->header_count].name = name;
    x->headers[x->header_count].value = arena_strndup(&r->arena, value, n);
    x->header_count++;
}

void http_reply_set(struct exchange *x, unsigned status, const char *content_type,
                    struct MHD_Response *response)
{
    if (x->reply) {
        /* The first reply stands; two are a bug of the handler that must not leak. */
        MHD_destroy_response(response);
        return;
    }
    if (content_type)
        MHD_add_response_header(response, "Content-Type", content_type);
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Content-Security-Policy",
                            "default-src 'none'; frame-ancestors 'none'");
    for (int i = 0; i < x->header_count; i++)
        MHD_add_response_header(response, x->headers[i].name, x->headers[i].value);
    x->reply = response;
    x->status = status;
}

void http_reply(struct http_request *r, int status, const char *content_type, struct strbuf *body)
{
    size_t len = body ? body->len : 0;
    struct MHD_Response *response;

    if (len > 0)
        response = MHD_create_response_from_buffer(len, strbuf_steal(body), MHD_RESPMEM_MUST_FREE);
    else
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response == NULL)
        abort(); /* out of memory, as in base/arena.h */
    http_reply_set(exchange_of(r), (unsigned)status, len > 0 ? content_type : NULL, response);
}

void http_reply_problem(struct http_request *r, int status, const struct err *err)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &body);
    json_begin_object(&w);
    json_key_string(&w, "type", "about:blank");
    json_key_string(&w, "title", http_status_phrase(status));
    json_key_i64(&w, "status", status);
    json_key_string(&w, "detail", err->text);
    json_key_string(&w, "code", err->code ? err->code : ERR_INTERNAL);
    if (err->field[0])
        json_key_string(&w, "field", err->field);
    if (err->remedy[0])
        json_key_string(&w, "remedy", err->remedy);
    json_end_object(&w);
    http_reply(r, status, "application/problem+json", &body);
}
