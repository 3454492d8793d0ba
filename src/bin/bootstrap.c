/* SPDX-License-Identifier: Apache-2.0 */
#include "bin/bootstrap.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/token.h"
#include "base/cleanup.h"
#include "base/io.h"

#define ADMIN "admin"
#define TOKEN_FILE "admin-token"

static const struct core_actor system_actor = {.name = "allot", .admin = true};

static void command_done(struct core_command *c)
{
    sem_post(c->user);
}

/* Hands the command in and waits until it is durable or refused. */
static int ask(struct core *core, struct core_command *c, struct err *err)
{
    sem_t done;

    sem_init(&done, 0, 0);
    c->actor = system_actor;
    c->done = command_done;
    c->user = &done;
    core_submit(core, c);
    while (sem_wait(&done) < 0 && errno == EINTR)
        ;
    sem_destroy(&done);
    if (c->status < 0 && err)
        *err = c->err;
    return c->status;
}

static int put_admin(struct core *core, struct err *err)
{
    const struct model_user admin = {.name = ADMIN, .admin = true};
    struct core_command c = {.kind = CORE_USER_PUT, .user_row = &admin};
    int r = ask(core, &c, err);

    arena_done(&c.arena);
    return r;
}

static int put_team(struct core *core, struct err *err)
{
    struct model_team team;
    struct core_command c = {.kind = CORE_TEAM_PUT, .team = &team};
    int r;

    model_team_init(&team);
    team.name = "default";
    r = ask(core, &c, err);
    arena_done(&c.arena);
    return r;
}

static int make_token(struct core *core, const char *folder, char **ret_token, struct err *err)
{
    char secret[API_TOKEN_MAX];
    struct core_command c = {.kind = CORE_TOKEN_CREATE,
                             .token = {.user = ADMIN, .label = "first start"}};
    _cleanup_close_ int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r;

    api_token_make(secret);
    api_token_hash(secret, c.token.hash);
    /* The file first: a token that nobody knows would be worth nothing. */
    r = dir < 0 ? -errno : io_write_file_atomic(dir, TOKEN_FILE, secret, strlen(secret), 0600, 1);
    if (r < 0)
        return err_set(err, r, ERR_UNAVAILABLE, "data", "check the folder's rights",
                       "cannot write '%s/%s': %s", folder, TOKEN_FILE, strerror(-r));
    r = ask(core, &c, err);
    arena_done(&c.arena);
    if (r == 0)
        *ret_token = strdup(secret);
    return r;
}

static int count_one(void *user, const struct model_team *team)
{
    ++*(int *)user;
    return 0;
}

/* ---- who may enter already --------------------------------------------------------------- */

struct entrance {
    const struct store_ops *store;
    void *store_ctx;
    int64_t now_ms;
    bool open; /* some administrator has a token that is good now */
};

static int note_token(void *user, const struct model_token *token)
{
    struct entrance *e = user;

    e->open = e->open || token->expires_ms == 0 || token->expires_ms > e->now_ms;
    return 0;
}

static int note_user(void *user, const struct model_user *row)
{
    struct entrance *e = user;

    return row->admin ? e->store->each_token(e->store_ctx, row->name, note_token, e, NULL) : 0;
}

/* A known token in the file, or NULL; RET_FILE: there is such a file. */
static char *read_token(const struct store_ops *store, void *store_ctx, const char *folder,
                        int64_t now_ms, bool *ret_file)
{
    _cleanup_close_ int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    _cleanup_free_ char *secret = NULL;
    struct arena arena = ARENA_INIT;
    struct model_token token = {0};
    struct model_user user = {0};
    uint8_t hash[MODEL_TOKEN_HASH_BYTES];
    size_t len;
    int r;

    *ret_file = false;
    if (dir < 0 || io_read_file(dir, TOKEN_FILE, API_TOKEN_MAX, &secret, &len) < 0)
        return NULL;
    *ret_file = true;
    secret[strcspn(secret, "\n")] = '\0';
    api_token_hash(secret, hash);
    r = store->find_token(store_ctx, hash, now_ms, &arena, &token, &user, NULL);
    arena_done(&arena);
    return r == 0 ? steal_ptr(&secret) : NULL;
}

int bootstrap(struct core *core, const struct store_ops *store, void *store_ctx, const char *folder,
              char **ret_token, struct err *err)
{
    int teams = 0;
    int r = api_token_init();

    if (r == 0)
        r = store->each_team(store_ctx, count_one, &teams, err);
    if (r < 0)
        return r;
    struct entrance entrance = {store, store_ctx, core_now_ms(core), false};
    bool file;

    *ret_token = read_token(store, store_ctx, folder, entrance.now_ms, &file);
    if (*ret_token)
        return 0;
    r = store->each_user(store_ctx, note_user, &entrance, err);
    /* What was revoked stays revoked while others can enter; without the file it was lost. */
    if (r < 0 || (file && entrance.open))
        return r;
    r = put_admin(core, err);
    if (r == 0 && teams == 0)
        r = put_team(core, err);
    if (r == 0)
        r = make_token(core, folder, ret_token, err);
    return r;
}
