/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Submit: all of a batch or nothing. Staging checks every workload against the present state
 * and reserves its name; the scheduler hears of it only after the commit.
 */
#include "core/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/amount.h"
#include "model/gpu_types.h"

#define MIB (1LL << 20)

struct staged_submit {
    struct core_workload **workloads;
    size_t count;
};

static const char *amount_text(enum sched_resource r, uint64_t amount, struct arena *arena)
{
    int64_t v = amount > INT64_MAX ? INT64_MAX : (int64_t)amount;
    /* A limit somewhere between reads better rounded down: 23.5GiB, not so many bytes. */
    int64_t grain = v >= 8 * 1024 * MIB ? 512 * MIB : MIB;

    return model_amount_describe((enum model_resource)r,
                                 r == SCHED_MEMORY_BYTES ? v & ~(grain - 1) : v, arena);
}

/* The type of GPU that the request names and no node has, or NULL: it is something else. */
static const char *unknown_type(struct core *core, const struct model_request *r,
                                const char **ret_remedy)
{
    struct model_gpu_types known = {.arena = &core->turn};
    const struct core_node *n;
    size_t it = 0;

    while ((n = map_next(&core->nodes, &it)))
        model_gpu_types_add(&known, &n->row);
    for (int32_t i = 0; i < r->gpu_type_count; i++)
        if (model_gpu_types_have(&known, r->gpu_types[i]))
            return NULL;
    if (r->gpu_type_count > 0)
        *ret_remedy = model_gpu_types_remedy(&known, r->gpu_types[0]);
    return r->gpu_type_count > 0 ? r->gpu_types[0] : NULL;
}

static const char *label_value(const struct model_node *n, const char *key)
{
    for (int32_t i = 0; i < n->label_count; i++)
        if (strcmp(n->labels[i].key, key) == 0)
            return n->labels[i].value;
    return NULL;
}

/* "rack=r9", which the request asks for and no node carries, or NULL; RET_SOME is a value of that
 * key which a node does carry, or NULL. */
static const char *missing_label(struct core *core, const struct model_request *r,
                                 const char **ret_some)
{
    for (int32_t i = 0; i < r->label_count; i++) {
        const struct core_node *n;
        bool found = false;
        size_t it = 0;

        *ret_some = NULL;
        while (!found && (n = map_next(&core->nodes, &it))) {
            const char *value = label_value(&n->row, r->labels[i].key);
            found = value && strcmp(value, r->labels[i].value) == 0;
            *ret_some = value ? value : *ret_some;
        }
        if (!found)
            return arena_printf(&core->turn, "%s=%s", r->labels[i].key, r->labels[i].value);
    }
    return NULL;
}

/* "1g.10gb" where some node's devices are such slices, or NULL. */
static const char *some_slice(struct core *core)
{
    const struct core_node *n;
    size_t it = 0;

    while ((n = map_next(&core->nodes, &it)))
        for (int32_t i = 0; i < n->row.device_count; i++)
            if (n->row.devices[i].mig_profile)
                return n->row.devices[i].mig_profile;
    return NULL;
}

/* No node has such a device, whatever is free. NAME is empty, or begins with a blank. */
static int refuse_device(struct core *core, struct core_command *c, const struct model_workload *w,
                         const struct sched_refusal *f, const char *name)
{
    int32_t group = model_shape_group_of(w->shape, (int32_t)f->task, NULL);
    const struct model_request *r = &w->shape->groups[group].request;
    const char *remedy = "see 'allot node list' for what there is";
    const char *type, *some, *label = missing_label(core, r, &some);

    if (label)
        return err_set(&c->err, -E2BIG, ERR_UNSATISFIABLE, "node_labels",
                       some ? arena_printf(&core->turn, "there is %.*s=%s",
                                           (int)strcspn(label, "="), label, some)
                            : "see 'allot node show' for the labels that there are",
                       "workload%s needs a node with label %s, and none has it", name, label);
    if (r->device_count > 0 && some_slice(core))
        remedy = arena_printf(&core->turn, "ask for a slice (--mig %s), or see 'allot node list'",
                              some_slice(core));
    type = unknown_type(core, r, &remedy);
    if (type)
        return err_set(&c->err, -E2BIG, ERR_UNSATISFIABLE, NULL, remedy,
                       "workload%s asks for GPUs of type '%s', which no node has", name, type);
    return err_set(&c->err, -E2BIG, ERR_UNSATISFIABLE, NULL, remedy,
                   "workload%s asks for %s, and no node has such a device", name,
                   model_request_describe(r, &core->turn));
}

/* What keeps a workload within the guarantee of its team, and what would not. */
struct bound {
    const char *why, *remedy;
};

static const struct bound *bound_of(const struct model_shape *s)
{
    static const struct bound firm = {"is not preemptible",
                                      "ask for less, make it preemptible (class training or "
                                      "development), or have the guarantee raised"};
    static const struct bound firm_budget = {
        "is not preemptible", "ask for less, make it preemptible (class training or development) "
                              "and leave max_unavailable out, or have the guarantee raised"};
    static const struct bound budget = {
        "is sure of what max_unavailable leaves",
        "ask for less, leave max_unavailable out, or have the guarantee raised"};
    static const struct bound own = {"may not burst",
                                     "ask for less, let it burst, or have the guarantee raised"};

    if (!s->preemptible)
        return s->max_unavailable > 0 ? &firm_budget : &firm;
    return s->max_unavailable > 0 ? &budget : &own;
}

static int check_level(struct core *core, struct core_command *c, const char *level)
{
    const char *known = "", *const *l = core->config.topology;

    for (; level && *l && strcmp(*l, level) != 0; l++)
        known = arena_printf(&core->turn, "%s%s%s", known, *known ? ", " : "", *l);
    if (level == NULL || *l)
        return 0;
    return err_set(&c->err, -E2BIG, ERR_UNSATISFIABLE, "topology",
                   "levels are those that the server was started with ('--topology')",
                   "there is no topology level '%s'; there is %s", level, *known ? known : "none");
}

/* A wish for a level that does not exist would have no effect, and nobody would know. */
static int check_levels(struct core *core, struct core_command *c, const struct model_shape *s)
{
    int r = check_level(core, c, s->topology_required);

    if (r == 0)
        r = check_level(core, c, s->topology_preferred);
    for (int32_t i = 0; r == 0 && i < s->group_count; i++)
        r = check_level(core, c, s->groups[i].topology_required);
    return r;
}

static int refuse(struct core *core, struct core_command *c, const struct model_workload *w,
                  const struct sched_refusal *f)
{
    const struct core_team *team = map_get(&core->teams, f->team);
    const char *asked = amount_text(f->resource, f->asked, &core->turn);
    const char *most = amount_text(f->resource, f->available, &core->turn);
    const char *name = w->name ? arena_printf(&core->turn, " '%s'", w->name) : "";
    const char *where = team ? team->row.name : w->team;
    const struct bound *bound;
    const char *type = f->gpu_type ? arena_printf(&core->turn, " of type %s", f->gpu_type) : "";

    switch (f->reason) {
    case SCHED_REASON_ABOVE_LIMIT:
        return err_set(&c->err, -E2BIG, ERR_LIMIT, NULL, "ask for less, or have the limit raised",
                       "workload%s asks for %s but team '%s' may use at most %s%s", name, asked,
                       where, most, type);
    case SCHED_REASON_ABOVE_GUARANTEE:
        bound = bound_of(w->shape);
        return err_set(&c->err, -E2BIG, ERR_LIMIT, NULL, bound->remedy,
                       "workload%s %s and asks for %s but the guarantee of team '%s' is %s%s", name,
                       bound->why, asked, where, most, type);
    case SCHED_REASON_NO_SUCH_DEVICE:
        return refuse_device(core, c, w, f, name);
    case SCHED_REASON_TOPOLOGY:
        return err_set(&c->err, -E2BIG, ERR_UNSATISFIABLE, "topology",
                       "ask for less, for a wider level, or with topology 'preferred'",
                       "workload%s asks for %s within one %s, and no %s can hold that", name, asked,
                       f->level, f->level);
    default:
        return err_set(&c->err, -E2BIG, ERR_UNSATISFIABLE, NULL,
                       "ask for less, or split it into more tasks",
                       "workload%s asks for %s but no placement can ever give it more than %s",
                       name, asked, most);
    }
}

/* "job-81", unless somebody took that name by hand. */
static const char *default_name(const struct core_team *team, const struct model_workload *w,
                                uint64_t id, struct arena *arena)
{
    const char *kind = model_kind_name(w->shape->kind);
    const char *name = arena_printf(arena, "%s-%llu", kind, (unsigned long long)id);

    for (int i = 2; map_get_str(&team->names, name); i++)
        name = arena_printf(arena, "%s-%llu-%d", kind, (unsigned long long)id, i);
    return name;
}

#define LEAVES_NAMED 5

/* The teams below TEAM that the caller may submit to. */
static const char *leaves_below(struct core *core, struct core_command *c,
                                const struct core_team *team)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    const struct core_team *t;
    size_t it = 0;
    int n = 0;

    while ((t = map_next(&core->teams, &it)) != NULL) {
        const struct core_team *up = t;

        while (up && up != team)
            up = up->parent;
        if (up && t->children == 0 && core_access_team(&c->actor, t, NULL) == 0 &&
            ++n <= LEAVES_NAMED)
            strbuf_addf(&b, "%s%s", b.len ? ", " : "", t->row.name);
    }
    if (n > LEAVES_NAMED)
        strbuf_addf(&b, " and %d more", n - LEAVES_NAMED);
    return arena_strdup(&c->arena, strbuf_str(&b));
}

static int find_team(struct core *core, struct core_command *c, const struct model_workload *w,
                     struct core_team **ret_team)
{
    struct core_team *team = w->team ? map_get_str(&core->team_names, w->team) : NULL;

    if (w->team == NULL)
        return err_set(&c->err, -EINVAL, ERR_MISSING, "team", "name the team",
                       "the workload names no team");
    /* Who may not see a team is not told whether it exists. */
    if (team == NULL || core_access_team(&c->actor, team, NULL) < 0)
        return err_set(&c->err, -ENOENT, ERR_NOT_FOUND, "team",
                       "see 'allot team list' for those that are yours",
                       "team '%s' does not exist, or is not yours", w->team);
    if (team->children)
        return err_set(&c->err, -EINVAL, ERR_INVALID, "team",
                       arena_printf(&c->arena, "name one of the teams below it: %s",
                                    leaves_below(core, c, team)),
                       "team '%s' has child teams; workloads live in leaf teams", w->team);
    *ret_team = team;
    return 0;
}

/* Is there a node with devices that takes parts of them, or none at all yet? */
static bool takes_parts(struct core *core)
{
    const struct core_node *n;
    bool refused = false;
    size_t it = 0;

    while ((n = map_next(&core->nodes, &it)) != NULL) {
        if (n->row.device_count == 0)
            continue;
        if (n->row.sharing == NULL || strcmp(n->row.sharing, MODEL_SHARING_REFUSED) != 0)
            return true;
        refused = true;
    }
    return !refused;
}

/* Parts of devices go nowhere where all nodes refuse them, as nothing would enforce them. */
static int check_parts(struct core *core, struct core_command *c, const struct core_shape *shape)
{
    const struct model_shape *m = shape->model;

    for (int32_t i = 0; i < m->group_count; i++)
        if (model_request_is_part(&m->groups[i].request) && !takes_parts(core))
            return err_set(&c->err, -EINVAL, ERR_INVALID, NULL,
                           "ask for whole GPUs; 'allot node show' tells why",
                           "workload asks for a part of a GPU, which nothing would enforce: this "
                           "server refuses such work");
    return 0;
}

/* Could the scheduler ever start a workload of this shape? */
static int check_shape(struct core *core, struct core_command *c, const struct model_workload *w,
                       const struct core_team *team, const struct core_shape *shape)
{
    struct sched_refusal refusal = {0};
    struct sched_workload s;
    int r;

    core_shape_sched(shape, core->last_workload + 1, team->row.id, false, &s);
    r = sched_workload_check(core->sched, &s, &refusal);
    if (r == -E2BIG)
        return refuse(core, c, w, &refusal);
    if (r < 0)
        return err_set(&c->err, r, ERR_INVALID, NULL, NULL,
                       "the scheduler does not accept the request");
    return 0;
}

static int stage(struct core *core, struct core_command *c, struct model_workload *w,
                 struct core_workload **ret)
{
    struct core_team *team = NULL;
    struct core_shape *shape;
    int r = find_team(core, c, w, &team);

    if (r < 0)
        return r;
    if (w->name && map_get_str(&team->names, w->name))
        return err_set(&c->err, -EEXIST, ERR_CONFLICT, "name",
                       "choose another name or stop the other one first",
                       "team '%s' has a live workload named '%s' already", w->team, w->name);
    r = check_levels(core, c, w->shape);
    if (r < 0)
        return r;
    shape = core_shape_intern(core, w->shape);
    if (shape == NULL)
        return err_set(&c->err, -EINVAL, ERR_INTERNAL, NULL, NULL,
                       "the shape of the workload cannot be encoded");
    r = check_parts(core, c, shape);
    if (r == 0)
        r = check_shape(core, c, w, team, shape);
    if (r < 0) {
        core_shape_let_go(core, shape);
        return r;
    }
    w->id = ++core->last_workload;
    if (w->name == NULL)
        w->name = default_name(team, w, w->id, &c->arena);
    w->owner = c->actor.name;
    w->team_id = team->row.id;
    w->submitted_ms = core->now_ms;
    *ret = core_workload_new(core, w->id, w->name, w->owner, team, shape);
    map_put_str(&team->names, (*ret)->name, *ret);
    team->live++;
    return 0;
}

static void unstage(struct core *core, struct core_workload *w)
{
    struct core_shape *shape = w->shape;

    map_del_str(&w->team->names, w->name);
    w->team->live--;
    core_workload_free(w);
    core_shape_let_go(core, shape);
}

static const char *launch_json(const struct model_launch *launch, struct arena *arena)
{
    struct strbuf text = STRBUF_INIT;
    struct json_writer out;
    const char *copy;

    json_writer_init(&out, &text);
    model_launch_encode(launch, &out);
    copy = arena_strndup(arena, text.data, text.len);
    strbuf_done(&text);
    return copy;
}

/* "submitted: job of 6 tasks, each 1 GPU" */
static const char *describe(const struct model_shape *s, struct arena *arena)
{
    const char *kind = model_kind_name(s->kind);
    const char *request = model_request_describe(&s->groups[0].request, arena);

    if (s->task_count == 1)
        return arena_printf(arena, "submitted: %s, %s", kind, request);
    return arena_printf(arena, "submitted: %s of %d tasks, each %s", kind, s->task_count, request);
}

static void record_new(struct core *core, struct core_entry *entry, struct core_workload *w,
                       const struct model_workload *m)
{
    struct arena *arena = &entry->txn.arena;
    struct store_new_workload *row = arena_new(arena, struct store_new_workload);
    struct model_workload *copy = arena_new(arena, struct model_workload);

    core_workload_row(w, copy);
    *row = (struct store_new_workload){
        .row = copy,
        .shape_id = w->shape->id,
        .shape_json = w->shape->stored ? NULL : w->shape->json,
        .launch_json = launch_json(m->launch, arena),
    };
    core_journal_op(&entry->txn,
                    &(struct store_op){.kind = STORE_PUT_WORKLOAD, .new_workload = row});
    core_record_event(core, &entry->txn,
                      &(struct model_event){
                          .type = MODEL_EVENT_SUBMITTED,
                          .workload = w->id,
                          .task = -1,
                          .workload_name = w->name,
                          .team = w->team->row.name,
                          .actor = w->owner,
                          .message = describe(w->shape->model, arena),
                      });
}

static void apply_submit(struct core *core, struct core_entry *entry)
{
    struct staged_submit *s = entry->staged;

    for (size_t i = 0; i < s->count; i++) {
        struct core_workload *w = s->workloads[i];
        struct sched_workload view;

        w->shape->stored = true;
        map_put(&core->workloads, w->id, w);
        core->pending++;
        /* Accepted: if the inventory shrank meanwhile, it waits. */
        core_shape_sched(w->shape, w->id, w->team->row.id, true, &view);
        if (sched_workload_add(core->sched, &view, NULL) < 0)
            abort();
    }
    core->dirty = true;
}

static void drop_submit(struct core *core, struct core_entry *entry)
{
    struct staged_submit *s = entry->staged;

    for (size_t i = 0; i < s->count; i++)
        unstage(core, s->workloads[i]);
}

/* The reply that a repeated request will get, in the same transaction as the effect. */
int core_command_record_reply(struct core *core, struct core_command *c, struct core_entry *entry)
{
    struct store_reply *reply;
    int r;

    if (c->reply_key == NULL)
        return 0;
    reply = arena_new(&entry->txn.arena, struct store_reply);
    r = c->make_reply(c, &reply->status, &reply->body);
    if (r < 0)
        return r;
    reply->key = arena_strdup(&entry->txn.arena, c->reply_key);
    reply->digest = arena_strdup(&entry->txn.arena, c->reply_digest);
    reply->expires_ms = core->now_ms + CORE_REPLY_TTL_MS;
    core_journal_op(&entry->txn, &(struct store_op){.kind = STORE_PUT_REPLY, .reply = reply});
    return 0;
}

/* The workloads of C, staged: in an array of the heap. A refusal leaves none. */
static int stage_all(struct core *core, struct core_command *c, struct core_workload ***ret)
{
    size_t n = c->workload_count;
    struct core_workload **staged = calloc(n ? n : 1, sizeof(struct core_workload *));
    int r = 0;

    if (staged == NULL)
        abort();
    for (size_t i = 0; i < n && r == 0; i++) {
        r = stage(core, c, &c->workloads[i], &staged[i]);
        if (r < 0 && n > 1)
            err_prefix_field(&c->err, "workloads[%zu]", i);
    }
    if (r == 0) {
        *ret = staged;
        return 0;
    }
    for (size_t i = 0; i < n && staged[i]; i++)
        unstage(core, staged[i]);
    free(staged);
    return r;
}

/* What is refused is refused here as there; of the rest, what the scheduler would say. */
int core_command_submit_dry(struct core *core, struct core_command *c)
{
    const char **names = arena_new_array(&c->arena, const char *, c->workload_count);
    uint64_t last = core->last_workload;
    struct core_workload **staged;
    int r;

    for (size_t i = 0; i < c->workload_count; i++)
        names[i] = c->workloads[i].name; /* none yet where none is given */
    r = stage_all(core, c, &staged);
    core->last_workload = last;
    if (r < 0)
        return r;
    c->ret_explanation = arena_new_array(&c->arena, struct model_explanation, c->workload_count);
    for (size_t i = 0; i < c->workload_count; i++) {
        core_explain_new(core, staged[i], &c->arena, &c->ret_explanation[i]);
        c->ret_explanation[i].id = 0;
        c->ret_explanation[i].name = names[i];
        unstage(core, staged[i]);
    }
    free(staged);
    core_command_finish(c, 0);
    return 0;
}

int core_command_submit(struct core *core, struct core_command *c)
{
    size_t n = c->workload_count;
    struct core_workload **staged;
    struct core_entry *entry;
    struct staged_submit *s;
    int r = stage_all(core, c, &staged);

    if (r < 0)
        return r;
    entry = core_journal_command(core, c);
    s = arena_new(&entry->txn.arena, struct staged_submit);
    s->workloads = arena_memdup(&entry->txn.arena, staged, n * sizeof(*staged));
    s->count = n;
    free(staged);
    entry->staged = s;
    entry->apply = apply_submit;
    entry->drop = drop_submit;
    for (size_t i = 0; i < n; i++)
        record_new(core, entry, s->workloads[i], &c->workloads[i]);
    return core_command_record_reply(core, c, entry);
}
