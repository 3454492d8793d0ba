/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/convert.h"
#include "model/team_types.h"

static void set_row(struct core_team *t, const struct model_team *row)
{
    /* The name never changes: it is the key of the map. */
    const char *name = t->row.name ? t->row.name : strdup(row->name);
    const char *parent = row->parent ? strdup(row->parent) : NULL;

    free((char *)t->row.parent);
    arena_reset(&t->arena);
    t->row = *row;
    model_team_copy_types(&t->row, &t->arena);
    t->row.name = name;
    t->row.parent = parent;
}

void core_team_free(struct core_team *t)
{
    if (t == NULL)
        return;
    map_done(&t->names);
    arena_done(&t->arena);
    free((char *)t->row.name);
    free((char *)t->row.parent);
    free(t);
}

struct core_team *core_team_add(struct core *core, const struct model_team *row)
{
    struct core_team *t = calloc(1, sizeof(*t));

    if (t == NULL)
        abort();
    set_row(t, row);
    map_put(&core->teams, t->row.id, t);
    map_put_str(&core->team_names, t->row.name, t);
    if (row->id > core->last_id)
        core->last_id = row->id;
    return t;
}

/* Adds (SIGN 1) T's part to its parent's sum, or takes it out. */
static void count_below(struct core_team *t, int sign)
{
    for (int r = 0; t->parent && r < MODEL_RESOURCE_COUNT; r++)
        if (t->assured[r] != MODEL_UNLIMITED)
            t->parent->below[r] += sign * t->assured[r];
}

static int tell_sched(struct core *core, const struct core_team *t)
{
    const struct sched_team s = core_sched_team(&t->row, t->assured, &core->turn);

    core->dirty = true;
    return sched_team_set(core->sched, &s);
}

int core_team_to_sched(struct core *core, struct core_team *t)
{
    int r = 0;

    for (; t && r == 0; t = t->parent) {
        count_below(t, -1);
        core_assured(&t->row, t->below, t->assured);
        count_below(t, 1);
        r = tell_sched(core, t);
    }
    return r;
}

static int check_parent(struct core *core, const struct model_team *row,
                        const struct core_team *self, struct core_team **ret_parent,
                        struct err *err)
{
    struct core_team *parent = NULL;
    int depth = 1;

    if (row->parent) {
        parent = map_get_str(&core->team_names, row->parent);
        if (parent == NULL)
            return err_set(err, -ENOENT, ERR_NOT_FOUND, "parent", "create the parent first",
                           "parent team '%s' does not exist", row->parent);
        if (parent->live > 0)
            return err_set(err, -EBUSY, ERR_CONFLICT, "parent",
                           "workloads live in leaf teams: choose another parent or end them",
                           "team '%s' holds workloads and cannot have children", row->parent);
    }
    for (const struct core_team *t = parent; t; t = t->parent, depth++) {
        if (t == self)
            return err_set(err, -EINVAL, ERR_INVALID, "parent", "choose another parent",
                           "team '%s' would be its own ancestor", row->name);
        if (depth >= MODEL_TEAM_DEPTH_MAX)
            return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "parent", "use a flatter tree",
                           "team '%s' would be more than %d levels deep", row->name,
                           MODEL_TEAM_DEPTH_MAX);
    }
    *ret_parent = parent;
    return 0;
}

/* Moves T below PARENT (NULL = top); its former ancestors are told. */
static void attach(struct core *core, struct core_team *t, struct core_team *parent)
{
    struct core_team *former = t->parent;

    if (former == parent)
        return;
    count_below(t, -1);
    t->parent = parent;
    count_below(t, 1);
    if (former) {
        former->children--;
        (void)core_team_to_sched(core, former);
    }
    if (parent)
        parent->children++;
}

static void apply_put(struct core *core, struct core_entry *entry)
{
    const struct model_team *row = entry->staged;
    struct core_team *t = map_get(&core->teams, row->id);

    if (t == NULL)
        t = core_team_add(core, row);
    else
        set_row(t, row);
    attach(core, t, row->parent_id ? map_get(&core->teams, row->parent_id) : NULL);
    (void)core_team_to_sched(core, t);
}

/* What a change says for whoever replays it: both states, null where there was or is none. */
static const char *change_json(struct arena *arena, const struct model_team *before,
                               const struct model_team *after)
{
    const struct model_team *const sides[] = {before, after};
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    const char *copy;

    json_writer_init(&w, &text);
    json_begin_object(&w);
    for (int i = 0; i < 2; i++) {
        json_key(&w, i ? "after" : "before");
        if (sides[i])
            model_team_encode(sides[i], &w);
        else
            json_null(&w);
    }
    json_end_object(&w);
    copy = arena_strdup(arena, strbuf_str(&text));
    strbuf_done(&text);
    return copy;
}

int core_command_team_put(struct core *core, struct core_command *c)
{
    struct core_team *existing = map_get_str(&core->team_names, c->team->name);
    struct core_team *parent = NULL;
    struct model_team row = *c->team;
    struct core_entry *entry;
    struct model_team *staged;
    int r = core_access_admin(&c->actor, "change teams", &c->err);

    if (r < 0)
        return r;
    r = check_parent(core, &row, existing, &parent, &c->err);
    if (r < 0)
        return r;
    if (c->if_match && (existing == NULL || existing->row.version != c->if_match))
        return err_set(&c->err, -ESTALE, ERR_CONFLICT, NULL, "read it again and repeat",
                       "team '%s' has changed meanwhile", row.name);
    row.id = existing ? existing->row.id : ++core->last_id;
    row.version = existing ? existing->row.version + 1 : 1;
    row.parent_id = parent ? parent->row.id : 0;

    entry = core_journal_command(core, c);
    staged = arena_memdup(&entry->txn.arena, &row, sizeof(row));
    staged->name = arena_strdup(&entry->txn.arena, row.name);
    staged->parent = arena_strdup(&entry->txn.arena, row.parent);
    model_team_copy_types(staged, &entry->txn.arena);
    entry->staged = staged;
    entry->apply = apply_put;
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_PUT_TEAM, .team = staged});
    core_record_event(
        core, &entry->txn,
        &(struct model_event){
            .type = MODEL_EVENT_TEAM,
            .task = -1,
            .team = row.name,
            .actor = c->actor.name,
            .message = existing ? "team changed" : "team created",
            .data = change_json(&entry->txn.arena, existing ? &existing->row : NULL, staged)});
    c->ret_team = arena_memdup(&c->arena, &row, sizeof(row));
    return 0;
}

static void apply_delete(struct core *core, struct core_entry *entry)
{
    struct core_team *t = entry->staged;

    sched_team_remove(core->sched, t->row.id);
    attach(core, t, NULL);
    map_del_str(&core->team_names, t->row.name);
    map_del(&core->teams, t->row.id);
    core_team_free(t);
    core->dirty = true;
}

int core_command_team_delete(struct core *core, struct core_command *c)
{
    struct core_team *t = map_get_str(&core->team_names, c->name);
    struct core_entry *entry;
    int r = core_access_admin(&c->actor, "delete teams", &c->err);

    if (r < 0)
        return r;
    if (t == NULL)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "name", "see 'allot team list'",
                       "team '%s' does not exist", c->name);
    if (t->children || t->live)
        return err_set(&c->err, -EBUSY, ERR_CONFLICT, NULL,
                       t->children ? "delete or move the teams below it first"
                                   : "wait for what is in it, or stop it ('allot ps --team')",
                       "team '%s' has %u team%s below it and %u live workload%s", c->name,
                       t->children, t->children == 1 ? "" : "s", t->live, t->live == 1 ? "" : "s");
    entry = core_journal_command(core, c);
    entry->staged = t;
    entry->apply = apply_delete;
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_DELETE_TEAM, .id = t->row.id});
    core_record_event(core, &entry->txn,
                      &(struct model_event){.type = MODEL_EVENT_TEAM_DELETED,
                                            .task = -1,
                                            .team = t->row.name,
                                            .actor = c->actor.name,
                                            .message = "team deleted",
                                            .data = change_json(&entry->txn.arena, &t->row, NULL)});
    return 0;
}
