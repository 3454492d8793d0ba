/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/convert.h"
#include "sim/whatif_internal.h"

struct whatif_step {
    struct whatif_world *world;
    const struct past_change *change;
};

/* ---- teams -------------------------------------------------------------------------------- */

static size_t team_index(const struct past *p, uint64_t id)
{
    const struct past_team *t = past_team_by_id(p, id);
    return t ? (size_t)(t - p->teams.items) : SIZE_MAX;
}

/* Parents first. A team that has come below itself is put to the top: the scheduler says so. */
static void put_in_order(struct whatif_world *w)
{
    size_t n = w->past->teams.len, placed = 0;
    bool *done = calloc(n + 1, sizeof(*done));

    if (done == NULL)
        abort();
    for (size_t round = 0; placed < n && round <= n; round++)
        for (size_t i = 0; i < n; i++) {
            uint64_t parent = w->teams[i].row.parent_id;
            size_t above = parent ? team_index(w->past, parent) : SIZE_MAX;
            if (done[i] || (above != SIZE_MAX && !done[above] && round < n))
                continue;
            done[i] = true;
            w->order[placed++] = i;
        }
    free(done);
}

static bool same_types(const struct sched_team *a, const struct sched_team *b)
{
    if (a->type_count != b->type_count)
        return false;
    for (uint32_t i = 0; i < a->type_count; i++)
        if (strcmp(a->types[i].gpu_type, b->types[i].gpu_type) != 0 ||
            a->types[i].guarantee != b->types[i].guarantee ||
            a->types[i].limit != b->types[i].limit)
            return false;
    return true;
}

static bool is_told(const struct whatif_told *told, const struct sched_team *s)
{
    return told->known && told->team.parent == s->parent && told->team.weight == s->weight &&
           told->team.priority == s->priority && same_types(&told->team, s) &&
           memcmp(told->team.guarantee, s->guarantee, sizeof(s->guarantee)) == 0 &&
           memcmp(told->team.limit, s->limit, sizeof(s->limit)) == 0;
}

static int tell_team(struct whatif_world *w, size_t index, const int64_t *assured)
{
    struct sched_team s = core_sched_team(&w->teams[index].row, assured, &w->arena);

    if (w->setup->hard_quota)
        s.limit[SCHED_GPU_MILLI] = assured[MODEL_GPU_MILLI];
    if (is_told(&w->told[index], &s))
        return 0;
    int e = sched_team_set(w->s, &s);
    if (e == 0)
        w->told[index] = (struct whatif_told){s, true};
    return e;
}

/* One that is not there (any more) has nothing; work of it may still be about. */
static struct model_team present(const struct whatif_team *t)
{
    struct model_team row = t->row;

    if (t->absent) {
        model_team_init(&row);
        row.id = t->row.id;
        row.name = t->row.name;
        row.parent_id = t->row.parent_id;
    }
    return row;
}

/* Tells the scheduler of all that is new. 0, or the first error with RET_INDEX of its team. */
static int tell_teams(struct whatif_world *w, size_t *ret_index)
{
    size_t n = w->past->teams.len;
    int64_t(*below)[MODEL_RESOURCE_COUNT] = calloc(n + 1, sizeof(*below));
    int64_t(*assured)[MODEL_RESOURCE_COUNT] = calloc(n + 1, sizeof(*assured));
    int e = 0;

    if (below == NULL || assured == NULL)
        abort();
    put_in_order(w);
    for (size_t k = n; k-- > 0;) {
        size_t i = w->order[k];
        struct model_team row = present(&w->teams[i]);
        size_t above = row.parent_id ? team_index(w->past, row.parent_id) : SIZE_MAX;
        core_assured(&row, below[i], assured[i]);
        for (int r = 0; above != SIZE_MAX && r < MODEL_RESOURCE_COUNT; r++)
            if (assured[i][r] != MODEL_UNLIMITED)
                below[above][r] += assured[i][r];
    }
    for (size_t k = 0; k < n; k++) {
        int r = tell_team(w, w->order[k], assured[w->order[k]]);
        if (r < 0 && e == 0) {
            e = r;
            *ret_index = w->order[k];
        }
    }
    free(below);
    free(assured);
    return e;
}

/* ---- nodes -------------------------------------------------------------------------------- */

static int tell_node(struct whatif_world *w, const struct model_node *n, bool drained)
{
    struct sched_node node = core_sched_node(n, &w->arena);

    node.schedulable = !drained;
    return sched_node_set(w->s, &node);
}

/* ---- changes ------------------------------------------------------------------------------ */

static void change_team(struct whatif_world *w, const struct past_change *c)
{
    struct whatif_team former = w->teams[c->index];
    size_t refused;

    w->teams[c->index] = (struct whatif_team){c->team, c->gone};
    if (tell_teams(w, &refused) == 0)
        return;
    w->skipped++;
    w->teams[c->index] = former;
    (void)tell_teams(w, &refused);
}

/* Devices that tasks hold do not go, nor does a node: it then takes nothing new. */
static void change_node(struct whatif_world *w, const struct past_change *c)
{
    if (tell_node(w, &c->node, c->node.drained || c->gone) < 0)
        w->skipped++;
    if (c->node.state == MODEL_NODE_DOWN)
        drive_lose_node(w->d, c->node.id);
}

static void on_change(struct sched *s, void *arg)
{
    struct whatif_step *step = arg;

    (void)s;
    if (step->change->of_node)
        change_node(step->world, step->change);
    else
        change_team(step->world, step->change);
}

void whatif_world_schedule(struct whatif_world *w, struct drive *d)
{
    const struct whatif_setup *setup = w->setup;

    w->d = d;
    w->steps = arena_new_array(&w->arena, struct whatif_step, setup->change_count + 1);
    for (size_t i = 0; i < setup->change_count; i++) {
        w->steps[i] = (struct whatif_step){w, &setup->changes[i]};
        drive_call(d, setup->changes[i].at_ms, on_change, &w->steps[i]);
    }
}

/* ---- the beginning ------------------------------------------------------------------------ */

static int begin_teams(struct whatif_world *w, struct err *err)
{
    size_t refused = 0;
    int e = tell_teams(w, &refused);

    return e == 0
               ? 0
               : err_set(err, e, ERR_INVALID, NULL, "is it above itself?",
                         "team '%s' cannot be set: %s", w->teams[refused].row.name, strerror(-e));
}

static int begin_nodes(struct whatif_world *w, struct err *err)
{
    for (size_t i = 0; i < w->setup->node_count; i++) {
        const struct whatif_node *n = &w->setup->nodes[i];
        int e = n->absent ? 0 : tell_node(w, &n->row, n->row.drained);

        if (e < 0)
            return err_set(err, e, ERR_INVALID, NULL, NULL, "node '%s' cannot be set: %s",
                           n->row.name, strerror(-e));
    }
    return 0;
}

int whatif_world_begin(struct whatif_world *w, const struct past *past,
                       const struct whatif_setup *setup, struct sched *s, struct err *err)
{
    size_t n = past->teams.len;
    int e;

    *w = (struct whatif_world){.past = past, .setup = setup, .s = s};
    w->teams = arena_new_array(&w->arena, struct whatif_team, n + 1);
    w->told = arena_new_array(&w->arena, struct whatif_told, n + 1);
    w->order = arena_new_array(&w->arena, size_t, n + 1);
    if (n > 0)
        memcpy(w->teams, setup->teams, n * sizeof(*w->teams));
    e = sched_topology_set(s, past->topology, past->level_count);
    if (e < 0)
        return err_set(err, e, ERR_INVALID, "topology", NULL, "the levels cannot be set: %s",
                       strerror(-e));
    e = begin_teams(w, err);
    return e < 0 ? e : begin_nodes(w, err);
}

void whatif_world_done(struct whatif_world *w)
{
    arena_done(&w->arena);
}
