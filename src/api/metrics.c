/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /metrics, for Prometheus and what reads its format.
 *
 * Administrators, and those who see every team, see all. Others see the figures of their teams,
 * and of devices those on which their teams hold something.
 */
#include "api/metrics.h"

#include "base/cleanup.h"

struct view {
    struct api_call *call;
    const char *const *teams; /* visible; NULL = all */
    int32_t count;
    struct prom_writer *w;
};

static bool sees(const struct view *v, const struct core_team_usage *u)
{
    return api_teams_have(v->teams, v->count, u->name);
}

/* ---- workloads ------------------------------------------------------------------------------ */

static uint64_t count_workloads(const struct view *v, int state, int class_)
{
    const struct core_command *c = &v->call->command;
    uint64_t n = 0;

    for (size_t i = 0; i < c->ret_team_count; i++)
        if (sees(v, &c->ret_team_usage[i]))
            n += c->ret_team_usage[i].workloads[state][class_];
    return n;
}

static void write_workloads(const struct view *v)
{
    prom_family(v->w, "allot_workloads", "gauge", "Workloads that have not ended.");
    for (int state = 0; state < MODEL_WORKLOAD_STATE_COUNT; state++) {
        if (model_workload_state_is_final((enum model_workload_state)state))
            continue;
        for (int class_ = 0; class_ < MODEL_CLASS_COUNT; class_++) {
            prom_begin(v->w);
            prom_label(v->w, "state", model_workload_state_name((enum model_workload_state)state));
            prom_label(v->w, "class", model_class_name((enum model_class)class_));
            prom_i64(v->w, (int64_t)count_workloads(v, state, class_));
        }
    }
}

/* ---- teams ---------------------------------------------------------------------------------- */

static void write_team_gpus(const struct view *v, const char *team, const char *kind,
                            int64_t gpu_milli)
{
    if (gpu_milli == MODEL_UNLIMITED)
        return;
    prom_begin(v->w);
    prom_label(v->w, "team", team);
    prom_label(v->w, "kind", kind);
    prom_milli(v->w, gpu_milli);
}

static void write_teams(const struct view *v)
{
    const struct core_command *c = &v->call->command;

    prom_family(v->w, "allot_team_gpus", "gauge",
                "GPUs of a team and those below it: guarantee and limit as stated, used, entitled "
                "to now, and pending, which is what waits.");
    for (size_t i = 0; i < c->ret_team_count; i++) {
        const struct core_team_usage *u = &c->ret_team_usage[i];
        int64_t used = u->used[MODEL_GPU_MILLI], demand = u->demand[MODEL_GPU_MILLI];

        if (!sees(v, u))
            continue;
        write_team_gpus(v, u->name, "guarantee", u->guarantee[MODEL_GPU_MILLI]);
        write_team_gpus(v, u->name, "limit", u->limit[MODEL_GPU_MILLI]);
        write_team_gpus(v, u->name, "used", used);
        write_team_gpus(v, u->name, "entitled", u->entitled[MODEL_GPU_MILLI]);
        write_team_gpus(v, u->name, "pending", demand > used ? demand - used : 0);
    }
}

/* ---- nodes and the server ------------------------------------------------------------------- */

static void write_nodes(const struct view *v)
{
    const struct core_command *c = &v->call->command;
    int64_t counts[] = {[MODEL_NODE_UP] = 0, [MODEL_NODE_DOWN] = 0, [MODEL_NODE_UNKNOWN] = 0};
    int64_t drained = 0;

    for (size_t i = 0; i < c->ret_node_count; i++) {
        const struct core_node_metrics *n = &c->ret_nodes[i];

        if (n->state == MODEL_NODE_UP && n->drained)
            drained++;
        else
            counts[n->state]++;
    }
    prom_family(v->w, "allot_nodes", "gauge", "Nodes; drained ones are up and take nothing new.");
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        prom_begin(v->w);
        prom_label(v->w, "state", model_node_state_name((enum model_node_state)i));
        prom_i64(v->w, counts[i]);
    }
    prom_begin(v->w);
    prom_label(v->w, "state", "drained");
    prom_i64(v->w, drained);
}

static void write_build(const struct view *v)
{
    prom_family(v->w, "allot_build_info", "gauge", "1, for the version that runs.");
    prom_begin(v->w);
    prom_label(v->w, "version", ALLOT_VERSION);
    prom_i64(v->w, 1);
}

/* ---- the route ------------------------------------------------------------------------------ */

static void reply_metrics(struct api_call *call)
{
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct prom_writer w;
    struct view v = {.call = call, .w = &w};
    struct err err = ERR_INIT;
    int r = call_visible_teams(call, &v.teams, &v.count, &err);

    /* Who sees every team sees all. */
    if (r == 0 && v.count > 0 && (size_t)v.count == call->command.ret_team_count)
        v.teams = NULL;
    prom_writer_init(&w, &body);
    if (r == 0)
        r = api_metrics_devices(call, v.teams == NULL, &w, &err);
    if (r < 0) {
        call_fail(call, r, &err);
        return;
    }
    write_workloads(&v);
    write_teams(&v);
    write_nodes(&v);
    write_build(&v);
    api_metrics_process(&w);
    http_reply(call->http, 200, PROM_CONTENT_TYPE, &body);
}

void handle_metrics(struct api_call *call)
{
    call_submit(call, CORE_METRICS, reply_metrics);
}
