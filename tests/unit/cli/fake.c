/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/vec.h"
#include "net/http_client.h"

#define NOW_MS 1796040000000LL /* 2026-11-30T12:00:00Z */

struct answer {
    const char *call;
    int status;
    const char *body;
    bool used;
};

static VEC(struct answer) answers;
static struct strbuf calls;
static bool unreachable;
static int upgrade_fd = -1;
char *fake_out, *fake_err;
struct cli_style fake_style;
bool fake_terminal;

struct http_client {
    char unused;
};

static struct http_client the_client;

int fake_setup(void **state)
{
    (void)state;
    unreachable = fake_terminal = false;
    fake_style = (struct cli_style){.width = 80};
    return 0;
}

int fake_teardown(void **state)
{
    (void)state;
    vec_done(&answers);
    strbuf_done(&calls);
    free(fake_out);
    free(fake_err);
    fake_out = fake_err = NULL;
    return 0;
}

void fake_answer(const char *call, int status, const char *body)
{
    struct answer a = {.call = call, .status = status, .body = body};

    vec_push(&answers, a);
}

void fake_unreachable(void)
{
    unreachable = true;
}

void fake_upgrade(int fd)
{
    upgrade_fd = fd;
}

const char *fake_calls(void)
{
    return strbuf_str(&calls);
}

static struct answer *find_answer(const char *method, const char *path)
{
    struct answer *found = NULL;
    size_t n = strlen(method);

    for (size_t i = 0; i < answers.len; i++) {
        struct answer *a = &answers.items[i];

        if (strncmp(a->call, method, n) != 0 || a->call[n] != ' ' ||
            strcmp(a->call + n + 1, path) != 0)
            continue;
        found = a;
        if (!a->used)
            break;
    }
    if (found)
        found->used = true;
    return found;
}

static int answer(const char *method, const char *path, const void *body, size_t len,
                  struct http_reply *reply, struct err *err)
{
    const struct answer *a = find_answer(method, path);

    strbuf_addf(&calls, "%s %s%s%.*s\n", method, path, len ? " " : "", (int)len,
                len ? (const char *)body : "");
    if (unreachable)
        return err_set(err, -ECONNREFUSED, ERR_UNAVAILABLE, NULL, "check the address",
                       "no answer from 'fake'");
    if (reply->body.data)
        strbuf_truncate(&reply->body, 0);
    reply->status = a ? a->status : 404;
    strbuf_adds(&reply->body, a ? a->body : "{\"title\":\"Not Found\"}");
    return 0;
}

int http_client_create(const char *url, const char *token, struct http_client **ret_client,
                       struct err *err)
{
    (void)url, (void)token, (void)err;
    *ret_client = &the_client;
    return 0;
}

void http_client_destroy(struct http_client *c)
{
    (void)c;
}

void http_client_header(struct http_client *c, const char *name, const char *value)
{
    (void)c;
    if (strcmp(name, "If-Match") == 0)
        strbuf_addf(&calls, "%s: %s\n", name, value);
}

int http_client_call(struct http_client *c, const char *method, const char *path, const void *body,
                     size_t len, struct http_reply *ret_reply, struct err *err)
{
    (void)c;
    return answer(method, path, body, len, ret_reply, err);
}

int http_client_stream(struct http_client *c, const char *path, const char *last_event_id,
                       http_stream_fn *fn, void *user, struct http_reply *ret_reply,
                       struct err *err)
{
    int r = answer("GET", path, last_event_id, last_event_id ? strlen(last_event_id) : 0, ret_reply,
                   err);

    (void)c;
    if (r < 0 || ret_reply->status != 200)
        return r;
    if (ret_reply->body.len > 0)
        r = fn(user, ret_reply->body.data, ret_reply->body.len);
    return r == 0 ? fn(user, NULL, 0) : r;
}

int http_client_upgrade(struct http_client *c, const char *path, const void *body, size_t len,
                        int *ret_fd, struct http_reply *ret_reply, struct err *err)
{
    (void)c;
    if (upgrade_fd >= 0) {
        *ret_fd = upgrade_fd;
        upgrade_fd = -1;
    }
    return answer("POST", path, body, len, ret_reply, err);
}

void http_reply_done(struct http_reply *r)
{
    strbuf_done(&r->body);
}

void http_escape(const char *text, struct strbuf *out)
{
    for (const char *c = text; *c; c++) {
        if (strchr(" /?&%#", *c))
            strbuf_addf(out, "%%%02X", (unsigned char)*c);
        else
            strbuf_addc(out, *c);
    }
}

int fake_run_words(const char *const *words)
{
    size_t out_len, err_len;
    struct cli cli = {.arena = ARENA_INIT, .fixed_now_ms = NOW_MS};
    int argc = 0, code;

    free(fake_out);
    free(fake_err);
    cli.out = open_memstream(&fake_out, &out_len);
    cli.err = open_memstream(&fake_err, &err_len);
    assert_true(cli.out && cli.err);
    cli.style = fake_style;
    cli.style.tty |= fake_terminal;
    cli.in_tty = fake_terminal;
    cli.err_width = fake_terminal ? fake_style.width : 0;
    cli.config.server = "http://fake";
    cli.commands = cli_builtin_commands;
    while (words[argc])
        argc++;
    code = cli_run(&cli, argc, words);
    fclose(cli.out);
    fclose(cli.err);
    arena_done(&cli.arena);
    return code;
}

int fake_run(const char *line)
{
    char *copy = strdup(line), *save = NULL;
    const char *words[64];
    int argc = 0, code;

    for (char *w = strtok_r(copy, " ", &save); w && argc < 63; w = strtok_r(NULL, " ", &save))
        words[argc++] = w;
    words[argc] = NULL;
    code = fake_run_words(words);
    free(copy);
    return code;
}
