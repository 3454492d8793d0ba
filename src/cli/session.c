/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/session.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "cli/cli.h"
#include "cli/json.h"

void cli_json_putp(struct json_object **json)
{
    json_object_put(*json);
}

int cli_client_new(const struct cli *cli, struct http_client **ret_client, struct err *err)
{
    return http_client_create(cli->config.server, cli->config.token, ret_client, err);
}

int cli_client(struct cli *cli, struct http_client **ret_client, struct err *err)
{
    if (cli->client == NULL) {
        int r = cli_client_new(cli, &cli->client, err);

        if (r < 0)
            return r;
    }
    *ret_client = cli->client;
    return 0;
}

const char *cli_path(struct cli *cli, const char *fmt, ...)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    va_list ap;

    va_start(ap, fmt);
    for (const char *f = fmt; *f; f++) {
        if (*f != '%') {
            strbuf_addc(&b, *f);
        } else if (f[1] == 's') {
            http_escape(va_arg(ap, const char *), &b);
            f++;
        } else if (f[1] == 'd') {
            strbuf_addf(&b, "%d", va_arg(ap, int));
            f++;
        } else if (strncmp(f + 1, "llu", 3) == 0) {
            strbuf_addf(&b, "%llu", va_arg(ap, unsigned long long));
            f += 3;
        }
    }
    va_end(ap);
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static int errno_of_status(int status)
{
    switch (status) {
    case 400:
    case 422:
        return -EINVAL;
    case 401:
    case 403:
        return -EACCES;
    case 404:
        return -ENOENT;
    case 409:
        return -EEXIST;
    case 412:
        return -ESTALE;
    case 413:
        return -E2BIG;
    case 503:
        return -EHOSTDOWN;
    case 502:
    case 504:
        return -EHOSTUNREACH;
    default:
        return -EREMOTEIO;
    }
}

/* For answers whose problem document leaves it open. */
static const char *remedy_of_status(int status)
{
    if (status == 401)
        return "log in with 'allot login', or set ALLOT_TOKEN; an administrator makes tokens";
    if (status == 412)
        return "someone else changed it meanwhile: look at it again and repeat";
    return NULL;
}

int cli_problem(const struct http_reply *reply, struct err *err)
{
    _cleanup_json_ struct json_object *json = cli_json_parse(reply->body.data, reply->body.len);
    const char *detail = cli_json_text(json, "detail"), *title = cli_json_text(json, "title");
    const char *remedy = cli_json_text(json, "remedy");
    int r = errno_of_status(reply->status);

    if (detail == NULL)
        detail = title;
    /* of a missing token the server speaks as to programs */
    if (remedy == NULL || reply->status == 401)
        remedy = remedy_of_status(reply->status);
    if (detail == NULL)
        return err_set(err, r, ERR_INTERNAL, NULL, remedy,
                       "the server answered with status %d and no reason", reply->status);
    return err_set(err, r, ERR_INVALID, cli_json_text(json, "field"), remedy, "%s", detail);
}

bool cli_is_unreachable(int r)
{
    return r == -ECONNREFUSED || r == -ECONNRESET || r == -ETIMEDOUT || r == -EHOSTDOWN ||
           r == -EHOSTUNREACH || r == -ENETUNREACH || r == -EPIPE || r == -ENOTCONN || r == -EIO ||
           r == -EPROTO || r == -ECONNABORTED;
}

int cli_call(struct cli *cli, struct cli_call *call, struct json_object **ret_json, struct err *err)
{
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    struct json_object *json;
    struct http_client *c;
    int r;

    r = cli_client(cli, &c, err);
    if (r < 0)
        return r;
    if (call->if_match)
        http_client_header(c, "If-Match", call->if_match);
    if (call->key)
        http_client_header(c, "Idempotency-Key", call->key);
    r = http_client_call(c, call->method, call->path, call->body,
                         call->body ? strlen(call->body) : 0, &reply, err);
    if (r < 0)
        return r;
    call->ret_status = reply.status;
    snprintf(call->ret_etag, sizeof(call->ret_etag), "%s", reply.etag);
    if (reply.status < 200 || reply.status > 299)
        return cli_problem(&reply, err);
    if (ret_json == NULL)
        return 0;
    json = cli_json_parse(reply.body.data, reply.body.len);
    if (json == NULL && reply.body.len > 0)
        return err_set(err, -EPROTO, ERR_INTERNAL, NULL, "is --server the address of allot?",
                       "the answer of '%s' is not JSON", cli->config.server);
    *ret_json = json;
    return 0;
}

int cli_get(struct cli *cli, const char *path, struct json_object **ret_json, struct err *err)
{
    struct cli_call call = {.method = "GET", .path = path};

    return cli_call(cli, &call, ret_json, err);
}

void cli_print_json(struct cli *cli, struct json_object *json)
{
    fprintf(cli->out, "%s\n",
            json_object_to_json_string_ext(json, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
                                                     JSON_C_TO_STRING_NOSLASHESCAPE));
}

static bool all_digits(const char *word)
{
    return *word && word[strspn(word, "0123456789")] == '\0';
}

int cli_find_workload(struct cli *cli, const char *word, uint64_t *ret_id, struct err *err)
{
    _cleanup_json_ struct json_object *w = NULL;
    int64_t id;
    int r;

    if (all_digits(word) && qty_parse_int(word, &id, NULL) == 0) {
        *ret_id = (uint64_t)id;
        return 0;
    }
    r = cli_get(cli, cli_path(cli, "/v1/workloads/%s", word), &w, err);
    if (r == 0)
        *ret_id = (uint64_t)cli_json_int(w, "id", 0);
    return r;
}

const char *cli_random_key(struct cli *cli)
{
    unsigned char bytes[16] = {0};
    char text[2 * sizeof(bytes) + 1];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return NULL;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return arena_strdup(&cli->arena, text);
}
