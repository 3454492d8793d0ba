/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/recorded.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/session.h"
#include "store/history.h"

#define END_LINE "{\"end\":"

/* Passes a stream on and keeps an eye on its last line. */
struct passing {
    FILE *out;
    char line[sizeof(END_LINE)]; /* how the present line begins */
    size_t len;
    bool complete; /* the last whole line was the last of a history */
};

static void watch(struct passing *p, const char *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] == '\n') {
            p->complete = p->len == strlen(END_LINE) && strncmp(p->line, END_LINE, p->len) == 0;
            p->len = 0;
        } else if (p->len < strlen(END_LINE)) {
            p->line[p->len++] = data[i];
        }
    }
}

static int pass_on(void *user, const char *data, size_t len)
{
    struct passing *p = user;

    watch(p, data, len);
    return fwrite(data, 1, len, p->out) == len ? 0 : -EIO;
}

static int fetch(struct cli *cli, FILE *out, struct err *err)
{
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    struct passing p = {.out = out};
    struct http_client *c;
    int r = cli_client(cli, &c, err);

    if (r < 0)
        return r;
    r = http_client_stream(c, "/v1/history", NULL, pass_on, &p, &reply, err);
    if (out == cli->out && cli_flush(cli) < 0)
        return 0; /* said at the end, as of every command */
    if (ferror(out) || fflush(out) != 0)
        return err_set(err, -EIO, ERR_UNAVAILABLE, NULL, "make room for it",
                       "writing the history failed: %s", strerror(errno));
    if (r < 0)
        return r;
    if (reply.status != 200)
        return cli_problem(&reply, err);
    if (!p.complete)
        return err_set(err, -EPROTO, ERR_UNAVAILABLE, NULL, "ask again; the server's log says more",
                       "the history of '%.200s' is cut off", cli->config.server);
    return 0;
}

int recorded_write(struct cli *cli, const struct sim_place *place, FILE *out, struct err *err)
{
    if (place->data)
        return store_history_write(place->data, out, err);
    if (place->server)
        cli_config_use_server(&cli->config, place->server);
    if (place->token)
        cli->config.token = place->token;
    return fetch(cli, out, err);
}

/* On disk, since it may be large; in memory where there is no place for it. */
static int make_file(FILE **ret_file, struct err *err)
{
    const char *folder = getenv("TMPDIR");
    _cleanup_close_ int fd =
        open(folder && *folder ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        fd = memfd_create("history", MFD_CLOEXEC);
    *ret_file = fd < 0 ? NULL : fdopen(fd, "w+");
    if (*ret_file == NULL)
        return err_set(err, -errno, ERR_UNAVAILABLE, NULL, "make room in the folder of TMPDIR",
                       "no place for the history: %s", strerror(errno));
    (void)steal_fd(&fd);
    return 0;
}

int recorded_open(void *ctx, const struct sim_place *place, FILE **ret_file, const char **ret_name,
                  struct err *err)
{
    struct recorded *r = ctx;
    _cleanup_fclose_ FILE *file = NULL;
    int e = make_file(&file, err);

    if (e == 0)
        e = recorded_write(r->cli, place, file, err);
    if (e < 0)
        return e;
    rewind(file);
    *ret_name = place->data ? place->data : r->cli->config.server;
    *ret_file = file;
    file = NULL;
    return 0;
}
