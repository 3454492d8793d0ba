/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "model/json.h"
#include "sim/history_internal.h"

/* A command and everything that it refers to. */
struct request {
    struct core_command command;
    struct history *history;
    struct arena arena;
    int32_t number, count; /* of the workloads */
};

void history_name(char prefix, int32_t number, char *text)
{
    snprintf(text, HISTORY_NAME_MAX, "%c%d", prefix, number);
}

/* What was said is so: accepted work is durable, refused work is not there. */
static void check_answer(struct history *h, const struct request *r)
{
    if (r->command.status == -ECANCELED)
        return; /* core died: nobody was told anything */
    for (int32_t i = 0; i < r->count; i++) {
        uint64_t id = 0;
        bool there = history_judge_find(h->judge, r->number + i, &id) == 0;

        if (there && r->command.status < 0)
            history_wrong(h, "w%d was refused and is in the store", r->number + i);
        if (!there && r->command.status == 0)
            history_wrong(h, "w%d was accepted and is not in the store", r->number + i);
        if (there && r->command.status == 0 && id && id != r->command.workloads[i].id)
            history_wrong(h, "w%d has another id than was said", r->number + i);
    }
    h->result.refused += r->command.status < 0 ? (uint64_t)r->count : 0;
}

static void request_done(struct core_command *c)
{
    struct request *r = c->user;

    if (c->kind == CORE_WORKLOADS_SUBMIT)
        check_answer(r->history, r);
    arena_done(&c->arena);
    arena_done(&r->arena);
    free(r);
}

static struct request *request_new(struct history *h, enum core_command_kind kind)
{
    struct request *r = calloc(1, sizeof(*r));

    if (r == NULL)
        abort();
    r->history = h;
    r->command.kind = kind;
    r->command.actor = (struct core_actor){.name = "tester", .admin = true};
    r->command.done = request_done;
    r->command.user = r;
    return r;
}

static void submit(struct request *r)
{
    history_judge_outside(r->history->judge);
    core_submit(r->history->core, &r->command);
}

static const char *name_of(struct request *r, char prefix, int32_t number)
{
    char *text = arena_alloc(&r->arena, HISTORY_NAME_MAX);

    history_name(prefix, number, text);
    return text;
}

static int64_t or_none(int32_t v)
{
    return v < 0 ? MODEL_UNLIMITED : v;
}

/* What the team has of one GPU type beside all of them, if anything is said of it. */
static void state_type(struct request *r, const struct history_step *step, struct model_team *t)
{
    struct model_type_quota *q;

    if (step->team.type_guarantee < 0 && step->team.type_limit < 0)
        return;
    q = arena_new(&r->arena, struct model_type_quota);
    q->type = history_type_name((enum history_type)step->team.type);
    q->guarantee = or_none(step->team.type_guarantee);
    q->limit = or_none(step->team.type_limit);
    t->types = q;
    t->type_count = 1;
}

void history_ask_team(struct history *h, const struct history_step *step)
{
    struct request *r = request_new(h, CORE_TEAM_PUT);
    struct model_team *t = arena_new(&r->arena, struct model_team);

    model_team_init(t);
    t->name = name_of(r, 't', step->team.team);
    if (step->team.parent >= 0)
        t->parent = name_of(r, 't', step->team.parent);
    t->guarantee[MODEL_GPU_MILLI] = step->team.guarantee;
    t->limit[MODEL_GPU_MILLI] = or_none(step->team.limit);
    t->limit[MODEL_CPU_MILLI] = or_none(step->team.cpu_limit);
    t->weight = step->team.weight;
    state_type(r, step, t);
    t->priority = step->team.priority;
    r->command.team = t;
    submit(r);
}

void history_ask_dissolve(struct history *h, const struct history_step *step)
{
    struct request *r = request_new(h, CORE_TEAM_DELETE);

    r->command.name = name_of(r, 't', step->team.team);
    submit(r);
}

static const char *accept_json(struct request *r, int32_t accept)
{
    if (accept == HISTORY_ACCEPT_ANY)
        return "";
    if (accept == HISTORY_ACCEPT_BOTH)
        return ",\"gpu_type\":[\"A100\",\"H100\"]";
    return arena_printf(&r->arena, ",\"gpu_type\":[\"%s\"]",
                        history_type_name((enum history_type)accept));
}

static const char *submit_json(struct request *r, const struct history_step *step, int32_t number)
{
    static const char *const classes[] = {"production", "training", "development", "batch"};

    return arena_printf(
        &r->arena,
        "{\"name\":\"w%d\",\"team\":\"t%d\",\"class\":\"%s\",\"priority\":%d,\"tasks\":%d,"
        "\"min_tasks\":%d,%s%s,\"max_retries\":%d,\"preemption\":{\"grace\":\"%dms\"%s},"
        "\"command\":[\"true\"]%s%s%s}",
        number, step->submit.team, classes[step->submit.class_], step->submit.priority,
        step->submit.tasks, step->submit.min, history_ask_json((enum history_ask)step->submit.ask),
        accept_json(r, step->submit.accept), step->submit.retries, step->submit.grace,
        step->submit.sort == HISTORY_SUSPENDS ? ",\"handling\":\"suspend\"" : "",
        step->submit.sort == HISTORY_NOTEBOOK ? ",\"kind\":\"notebook\"" : "",
        step->submit.limit
            ? arena_printf(&r->arena, ",\"max_run_time\":\"%dms\"", step->submit.limit)
            : "",
        step->submit.protect
            ? arena_printf(&r->arena, ",\"min_run_time\":\"%dms\"", step->submit.protect)
            : "");
}

static void decode(struct request *r, const char *text, struct model_workload *ret)
{
    struct json_object *json = NULL;
    struct err err = ERR_INIT;

    if (model_json_parse(text, strlen(text), &json, &err) < 0 ||
        model_workload_decode(json, &r->arena, ret, &err) < 0)
        history_wrong(r->history, "%s: %s (%s)", text, err.text, err.field);
    json_object_put(json);
}

void history_ask_submit(struct history *h, const struct history_step *step)
{
    struct request *r;
    int32_t count = step->submit.count;

    for (int32_t i = 0; i < count; i++)
        if (map_get(&h->numbers, (uint64_t)(step->submit.w + i) + 1))
            return; /* a number names one workload */
    r = request_new(h, CORE_WORKLOADS_SUBMIT);
    r->number = step->submit.w;
    r->count = count;
    r->command.workloads = arena_new_array(&r->arena, struct model_workload, (size_t)count);
    r->command.workload_count = (size_t)count;
    for (int32_t i = 0; i < count && h->result.wrong[0] == '\0'; i++) {
        map_put(&h->numbers, (uint64_t)(step->submit.w + i) + 1, h);
        decode(r, submit_json(r, step, step->submit.w + i), &r->command.workloads[i]);
    }
    if (h->result.wrong[0])
        request_done(&r->command);
    else
        submit(r);
}

/* What is asked for about a workload that lives. */
static struct request *about(struct history *h, int32_t number, enum core_command_kind kind)
{
    struct request *r;
    uint64_t id;

    if (history_judge_find(h->judge, number, &id) < 0 || id == 0)
        return NULL;
    r = request_new(h, kind);
    r->command.id = id;
    return r;
}

void history_ask_cancel(struct history *h, const struct history_step *step)
{
    struct request *r = about(h, step->cancel.w, CORE_WORKLOAD_STOP);

    if (r == NULL)
        return;
    r->command.grace_ms = step->cancel.grace;
    submit(r);
}

void history_ask_suspend(struct history *h, const struct history_step *step)
{
    bool suspend = step->kind == HISTORY_SUSPEND;
    struct request *r =
        about(h, step->cancel.w, suspend ? CORE_WORKLOAD_SUSPEND : CORE_WORKLOAD_RESUME);

    if (r)
        submit(r);
}

void history_ask_drain(struct history *h, const struct history_step *step)
{
    struct request *r;

    if (h->nodes[step->drain.node] == NULL)
        return;
    r = request_new(h, CORE_NODE_DRAIN);
    r->command.name = h->nodes[step->drain.node]->name;
    r->command.flag = step->drain.flag;
    submit(r);
}

void history_ask_everything(struct history *h)
{
    for (int32_t i = 0; i < HISTORY_TEAMS_MAX; i++) {
        struct request *r;
        struct model_team *t;
        int32_t parent;

        if (history_judge_team(h->judge, i, &parent) < 0)
            continue;
        r = request_new(h, CORE_TEAM_PUT);
        t = arena_new(&r->arena, struct model_team);
        model_team_init(t);
        t->name = name_of(r, 't', i);
        t->parent = parent >= 0 ? name_of(r, 't', parent) : NULL;
        for (int k = 0; k < MODEL_RESOURCE_COUNT; k++)
            t->guarantee[k] = MODEL_UNLIMITED;
        r->command.team = t;
        submit(r);
    }
}
