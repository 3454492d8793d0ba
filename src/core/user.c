/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and tokens. Core only guards existence and rights: requests are authenticated against
 * the store's committed rows, never against a copy here.
 */
#include "core/internal.h"

#include <errno.h>
#include <string.h>

static void user_event(struct core *core, struct core_entry *entry, const char *type,
                       const char *actor, const char *text)
{
    core_record_event(
        core, &entry->txn,
        &(struct model_event){.type = type, .task = -1, .actor = actor, .message = text});
}

void core_user_set(struct core *core, const char *name, bool admin)
{
    struct core_user *u = map_get_str(&core->users, name);

    if (u == NULL) {
        u = arena_new(&core->strings, struct core_user);
        u->name = core_intern(core, name);
        map_put_str(&core->users, u->name, u);
    }
    u->admin = admin;
}

/* Nobody could administer any more. */
static int keep_an_admin(struct core *core, const char *without, struct err *err)
{
    const struct core_user *u;
    size_t it = 0;

    while ((u = map_next(&core->users, &it)) != NULL)
        if (u->admin && strcmp(u->name, without) != 0)
            return 0;
    return err_set(err, -EBUSY, ERR_CONFLICT, NULL, "make another user an administrator first",
                   "user '%s' is the last administrator", without);
}

static void apply_user_put(struct core *core, struct core_entry *entry)
{
    const struct model_user *row = entry->staged;

    core_user_set(core, row->name, row->admin);
}

int core_command_user_put(struct core *core, struct core_command *c)
{
    const struct core_user *known;
    struct model_user *row;
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "change users", &c->err);

    if (r < 0)
        return r;
    for (int32_t i = 0; i < c->user_row->team_count; i++)
        if (map_get_str(&core->team_names, c->user_row->teams[i]) == NULL)
            return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "teams", "create the team first",
                           "team '%s' does not exist", c->user_row->teams[i]);
    known = map_get_str(&core->users, c->user_row->name);
    if (known && known->admin && !c->user_row->admin)
        r = keep_an_admin(core, known->name, &c->err);
    if (r < 0)
        return r;
    entry = core_journal_command(core, c);
    row = arena_memdup(&entry->txn.arena, c->user_row, sizeof(*row));
    row->name = arena_strdup(&entry->txn.arena, row->name);
    entry->staged = row;
    entry->apply = apply_user_put;
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_PUT_USER, .user = c->user_row});
    user_event(core, entry, MODEL_EVENT_USER, c->actor.name,
               arena_printf(&entry->txn.arena, "user '%s' set", c->user_row->name));
    return 0;
}

static void apply_user_delete(struct core *core, struct core_entry *entry)
{
    map_del_str(&core->users, entry->staged);
}

int core_command_user_delete(struct core *core, struct core_command *c)
{
    const struct core_user *u = map_get_str(&core->users, c->name);
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "delete users", &c->err);

    if (r < 0)
        return r;
    if (u && u->admin)
        r = keep_an_admin(core, u->name, &c->err);
    if (r < 0)
        return r;
    if (u == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "name", "see 'allot user list'",
                       "user '%s' does not exist", c->name);
    entry = core_journal_command(core, c);
    entry->staged = arena_strdup(&entry->txn.arena, c->name);
    entry->apply = apply_user_delete;
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_DELETE_USER, .name = c->name});
    user_event(core, entry, MODEL_EVENT_USER, c->actor.name,
               arena_printf(&entry->txn.arena, "user '%s' deleted", c->name));
    return 0;
}

int core_command_token_create(struct core *core, struct core_command *c)
{
    struct core_entry *entry;
    int r = 0;

    if (!c->actor.admin && strcmp(c->token.user, c->actor.name) != 0)
        r = core_access_admin(&c->actor, "make tokens for others", &c->err);
    if (r < 0)
        return r;
    if (map_get_str(&core->users, c->token.user) == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "user", "create the user first",
                       "user '%s' does not exist", c->token.user);
    c->token.id = ++core->last_id;
    c->token.created_ms = core->now_ms;
    entry = core_journal_command(core, c);
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_PUT_TOKEN, .token = &c->token});
    user_event(core, entry, MODEL_EVENT_TOKEN, c->actor.name,
               arena_printf(&entry->txn.arena, "token %llu of user '%s' created",
                            (unsigned long long)c->token.id, c->token.user));
    return 0;
}

int core_command_token_delete(struct core *core, struct core_command *c)
{
    struct core_entry *entry = core_journal_command(core, c);

    /* Whose token it is has been checked by the API against the stored row. */
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_DELETE_TOKEN, .id = c->id});
    user_event(core, entry, MODEL_EVENT_TOKEN, c->actor.name,
               arena_printf(&entry->txn.arena, "token %llu revoked", (unsigned long long)c->id));
    return 0;
}
