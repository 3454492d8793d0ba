/* SPDX-License-Identifier: Apache-2.0 */
#include "store/row.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "model/team_types.h"

int row_team(struct row *row, struct arena *arena, struct model_team *ret_team)
{
    struct model_team t = {0};
    t.id = row_id(row, "id");
    t.parent_id = row_id(row, "parent_id");
    t.version = row_id(row, "version");
    t.name = row_text(row, "name");
    t.parent = row_text_or_null(row, "parent");
    _Static_assert(MODEL_RESOURCE_COUNT == 3, "the table has a column per resource");
    static const char *const names[2][MODEL_RESOURCE_COUNT] = {
        {"guarantee_gpu_milli", "guarantee_cpu_milli", "guarantee_memory_bytes"},
        {"limit_gpu_milli", "limit_cpu_milli", "limit_memory_bytes"}};
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        t.guarantee[i] = row_i64(row, names[0][i]);
    for (int i = 0; i < MODEL_RESOURCE_COUNT; i++)
        t.limit[i] = row_i64(row, names[1][i]);
    t.weight = row_i64(row, "weight");
    t.priority = row_i32(row, "priority");
    t.volume_limit = row_i64(row, "volume_limit");
    const char *quota = row_text(row, "quota");
    if (row->status == 0 && model_quota_parse(quota, &t.quota) < 0)
        row_refuse(row, "quota", "fair or hard");
    const char *types = row_text(row, "gpu_types");
    if (row->status == 0 && model_team_types_parse(types, arena, &t, NULL) < 0)
        row_refuse(row, "gpu_types", "quotas per GPU type");
    const char *idle = row_text(row, "idle");
    if (row->status == 0 && model_idle_parse(idle, t.idle) < 0)
        row_refuse(row, "idle", "rules for idle work");
    if (t.parent_id != 0 && !t.parent)
        row_refuse(row, "parent_id", "the id of a team");
    if (row->status == 0)
        *ret_team = t;
    return row->status;
}

int row_workload(struct row *row, struct row_workload *ret_workload)
{
    struct row_workload r = {0};
    struct model_workload *w = &r.workload;
    w->id = row_id(row, "id");
    w->name = row_text(row, "name");
    w->team = row_text(row, "team");
    w->team_id = row_id(row, "team_id");
    w->owner = row_text(row, "owner");
    const char *kind = row_text(row, "kind");
    const char *class_ = row_text(row, "class");
    const char *state = row_text(row, "state");
    w->submitted_ms = row_i64(row, "submitted_ms");
    w->started_ms = row_i64(row, "started_ms");
    w->ended_ms = row_i64(row, "ended_ms");
    w->evicted_ms = row_i64(row, "evicted_ms");
    w->restarts = row_count(row, "restarts");
    w->failures = row_count(row, "failures");
    w->running_tasks = row_count(row, "running_tasks");
    w->ended_tasks = row_count(row, "ended_tasks");
    w->exit_code = row_i32(row, "exit_code");
    w->message = row_text_or_null(row, "message");
    r.gpu_milli = row_count(row, "gpu_milli");
    r.shape_id = row_id(row, "shape_id");
    if (row->status < 0)
        return row->status;
    if (model_kind_parse(kind, &r.kind) < 0)
        return row_refuse(row, "kind", "a kind of workload");
    if (model_class_parse(class_, &r.class_) < 0)
        return row_refuse(row, "class", "a class");
    if (model_workload_state_parse(state, &w->state) < 0)
        return row_refuse(row, "state", "a state of workloads");
    *ret_workload = r;
    return 0;
}

static int32_t parse_devices(struct row *row, const char *text, uint16_t *devices)
{
    int count = text ? model_devices_parse(text, devices, MODEL_GPUS_MAX) : 0;
    if (count < 0) {
        row_refuse(row, "devices", "a list of device numbers");
        return 0;
    }
    return count;
}

int row_task(struct row *row, uint16_t *devices, struct model_task *ret_task)
{
    struct model_task t = {.devices = devices};
    t.workload = row_id(row, "workload");
    t.index = row_count(row, "idx");
    t.attempt = row_count(row, "attempt");
    const char *state = row_text(row, "state");
    t.node = row_id(row, "node");
    t.node_name = row_text_or_null(row, "node name");
    t.device_count = parse_devices(row, row_text(row, "devices"), devices);
    t.gpu_milli = row_count(row, "gpu_milli");
    t.held_until_ms = row_i64(row, "held_until_ms");
    t.started_ms = row_i64(row, "started_ms");
    t.ended_ms = row_i64(row, "ended_ms");
    t.exit_code = row_i32(row, "exit_code");
    t.exit_signal = row_i32(row, "exit_signal");
    t.message = row_text_or_null(row, "message");
    if (row->status < 0)
        return row->status;
    if (model_task_state_parse(state, &t.state) < 0)
        return row_refuse(row, "state", "a state of tasks");
    *ret_task = t;
    return 0;
}

int row_allocation(struct row *row, uint16_t *devices, struct model_allocation *ret_allocation)
{
    struct model_allocation a = {.devices = devices};
    a.id = row_id(row, "id");
    a.workload = row_id(row, "workload");
    a.task = row_count(row, "task");
    a.attempt = row_count(row, "attempt");
    a.team = row_id(row, "team");
    a.node = row_id(row, "node");
    a.device_count = parse_devices(row, row_text(row, "devices"), devices);
    a.gpu_milli = row_count(row, "gpu_milli");
    a.cpu_milli = row_i64(row, "cpu_milli");
    a.memory_bytes = row_i64(row, "memory_bytes");
    a.start_ms = row_i64(row, "start_ms");
    a.end_ms = row_i64(row, "end_ms");
    a.busy_ns = row_i64(row, "busy_ns");
    a.seen_ms = row_i64(row, "seen_ms");
    const char *release = row_text(row, "release");
    a.stopping_ms = row_i64(row, "stopping_ms");
    a.known_ns = row_i64(row, "known_ns");
    if (row->status == 0 && model_release_parse(release, &a.release) < 0)
        row_refuse(row, "release", "an end of allocations");
    if (row->status == 0 && a.end_ms != 0 && a.end_ms < a.start_ms)
        row_refuse(row, "end_ms", "after its start");
    if (row->status == 0)
        *ret_allocation = a;
    return row->status;
}

int row_event(struct row *row, struct model_event *ret_event)
{
    struct model_event e = {0};
    e.seq = row_id(row, "seq");
    e.time_ms = row_i64(row, "time_ms");
    e.type = row_text(row, "type");
    e.workload = row_id(row, "workload");
    e.task = row_i32(row, "task");
    e.workload_name = row_text_or_null(row, "workload_name");
    e.team = row_text_or_null(row, "team");
    e.node = row_text_or_null(row, "node");
    e.actor = row_text_or_null(row, "actor");
    e.message = row_text_or_null(row, "message");
    e.data = row_text_or_null(row, "data");
    if (row->status == 0)
        *ret_event = e;
    return row->status;
}

int row_node(struct row *row, struct arena *arena, struct model_node *ret_node)
{
    uint64_t id = row_id(row, "id");
    const char *name = row_text(row, "name");
    const char *json = row_text(row, "json");
    if (row->status < 0)
        return row->status;
    struct model_node n = {0};
    struct err cause = ERR_INIT;
    if (model_node_decode(json, strlen(json), arena, &n, &cause) < 0)
        return row_refuse(row, "json", arena_printf(arena, "a node (%s)", cause.text));
    if (n.id != id || strcmp(n.name, name) != 0)
        return row_refuse(row, "json", "the node of this row");
    *ret_node = n;
    return 0;
}

/* Names of teams hold no control characters: they are kept as lines. */
static void split_lines(const char *text, struct arena *arena, struct model_user *u)
{
    int32_t count = 0;
    for (const char *p = text; *p; p++)
        count += *p == '\n';
    const char **teams = arena_new_array(arena, const char *, (size_t)count + 1);
    for (int32_t i = 0; i < count; i++) {
        const char *end = strchr(text, '\n');
        teams[i] = arena_strndup(arena, text, (size_t)(end - text));
        text = end + 1;
    }
    u->teams = teams;
    u->team_count = count;
}

int row_user(struct row *row, struct arena *arena, struct model_user *ret_user)
{
    struct model_user u = {0};
    u.name = row_text(row, "name");
    u.admin = row_int(row, "admin", 0, 1) != 0;
    const char *teams = row_text(row, "teams");
    if (row->status < 0)
        return row->status;
    size_t len = strlen(teams);
    if (len > 0 && teams[len - 1] != '\n')
        return row_refuse(row, "teams", "a list of teams");
    split_lines(teams, arena, &u);
    if (u.team_count > MODEL_USER_TEAMS_MAX)
        return row_refuse(row, "teams", "at most 64 teams");
    *ret_user = u;
    return 0;
}

int row_token(struct row *row, struct model_token *ret_token)
{
    struct model_token t = {0};
    t.id = row_id(row, "id");
    t.user = row_text(row, "user");
    t.label = row_text_or_null(row, "label");
    int hash = row->column++;
    t.created_ms = row_i64(row, "created_ms");
    t.expires_ms = row_i64(row, "expires_ms");
    if (row->status < 0)
        return row->status;
    if (sqlite3_column_type(row->stmt, hash) != SQLITE_BLOB ||
        sqlite3_column_bytes(row->stmt, hash) != MODEL_TOKEN_HASH_BYTES)
        return row_refuse(row, "hash", "a hash");
    memcpy(t.hash, sqlite3_column_blob(row->stmt, hash), sizeof(t.hash));
    *ret_token = t;
    return 0;
}
