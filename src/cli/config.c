/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/strbuf.h"

#define CONFIG_BYTES_MAX 65536

static const char *environment(const char *name)
{
    const char *v = getenv(name);

    return v && *v ? v : NULL;
}

static const char *config_path(struct arena *arena)
{
    const char *path = environment("ALLOT_CONFIG"), *xdg = environment("XDG_CONFIG_HOME");
    const char *home = environment("HOME");

    if (path)
        return arena_strdup(arena, path);
    if (xdg && *xdg == '/')
        return arena_printf(arena, "%s/allot/config", xdg);
    return home ? arena_printf(arena, "%s/.config/allot/config", home) : NULL;
}

static char *trim(char *s)
{
    char *end;

    s += strspn(s, " \t");
    end = s + strlen(s);
    while (end > s && strchr(" \t\r", end[-1]))
        *--end = '\0';
    return s;
}

static int read_line(struct cli_config *c, char *line, int number, struct err *err)
{
    char *equals, *key, *value;

    line = trim(line);
    if (*line == '\0' || *line == '#')
        return 0;
    equals = strchr(line, '=');
    if (equals == NULL)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "write KEY = VALUE",
                       "line %d of '%s' is not understood", number, c->path);
    *equals = '\0';
    key = trim(line);
    value = trim(equals + 1);
    if (strcmp(key, "server") == 0)
        c->server = value;
    else if (strcmp(key, "token") == 0)
        c->token = value;
    else if (strcmp(key, "team") == 0)
        c->team = value;
    else
        return err_set(err, -EINVAL, ERR_UNKNOWN_FIELD, NULL, "known are: server, token, team",
                       "unknown setting '%.40s' in line %d of '%s'", key, number, c->path);
    return 0;
}

static int read_config(struct arena *arena, struct cli_config *c, struct err *err)
{
    _cleanup_free_ char *data = NULL;
    struct stat st;
    size_t len;
    char *line;
    int number = 0, r;

    r = io_read_file(AT_FDCWD, c->path, CONFIG_BYTES_MAX, &data, &len);
    if (r == -ENOENT || r == -ENOTDIR)
        return 0;
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, NULL, "cannot read '%s': %s", c->path,
                       strerror(-r));
    line = arena_strdup(arena, data);
    while (line) {
        char *next = strchr(line, '\n');

        if (next)
            *next++ = '\0';
        r = read_line(c, line, ++number, err);
        if (r < 0)
            return r;
        line = next;
    }
    if (c->token && stat(c->path, &st) == 0 && (st.st_mode & 077))
        c->warning =
            arena_printf(arena, "'%s' holds a token and others may read it: chmod 600", c->path);
    return 0;
}

int cli_config_load(struct arena *arena, struct cli_config *ret_config, struct err *err)
{
    struct cli_config c = {.path = config_path(arena)};
    const char *server = environment("ALLOT_SERVER"), *token = environment("ALLOT_TOKEN");
    const char *team = environment("ALLOT_TEAM");

    if (c.path) {
        int r = read_config(arena, &c, err);

        if (r < 0)
            return r;
    }
    if (c.server == NULL)
        c.server = CLI_DEFAULT_SERVER;
    if (server)
        cli_config_use_server(&c, server);
    if (token)
        c.token = token;
    if (team)
        c.team = team;
    *ret_config = c;
    return 0;
}

void cli_config_use_server(struct cli_config *config, const char *server)
{
    if (strcmp(server, config->server) != 0)
        config->token = NULL;
    config->server = server;
}

int cli_config_save(const struct cli_config *config, struct err *err)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    _cleanup_free_ char *folder = NULL;
    int r = 0;

    if (config->path == NULL)
        return err_set(err, -ENOENT, ERR_INVALID, NULL, "set HOME, or ALLOT_CONFIG to a file",
                       "there is no place for a configuration file");
    strbuf_adds(&b, "# written by 'allot login'; holds a secret, keep it to yourself\n");
    strbuf_addf(&b, "server = %s\n", config->server);
    if (config->token)
        strbuf_addf(&b, "token = %s\n", config->token);
    if (config->team)
        strbuf_addf(&b, "team = %s\n", config->team);
    folder = strdup(config->path);
    if (folder && strrchr(folder, '/')) {
        *strrchr(folder, '/') = '\0';
        if (*folder)
            r = io_mkdirs(folder, 0700);
    }
    if (r == 0)
        r = io_write_file_atomic(AT_FDCWD, config->path, b.data, b.len, 0600, 1);
    if (r < 0)
        return err_set(err, r, ERR_INVALID, NULL, NULL, "cannot write '%s': %s", config->path,
                       strerror(-r));
    return 0;
}
