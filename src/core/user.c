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

static void apply_user_put(struct core *core, struct core_entry *entry)
{
    const char *name = core_intern(core, entry->staged);

    map_put_str(&core->users, name, (void *)name);
}

int core_command_user_put(struct core *core, struct core_command *c)
{
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "change users", &c->err);

    if (r < 0)
        return r;
    for (int32_t i = 0; i < c->user_row->team_count; i++)
        if (map_get_str(&core->team_names, c->user_row->teams[i]) == NULL)
            return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "teams", "create the team first",
                           "team '%s' does not exist", c->user_row->teams[i]);
    entry = core_journal_command(core, c);
    entry->staged = arena_strdup(&entry->txn.arena, c->user_row->name);
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
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "delete users", &c->err);

    if (r < 0)
        return r;
    if (map_get_str(&core->users, c->name) == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "name", NULL, "user '%s' does not exist",
                       c->name);
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
