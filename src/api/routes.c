/* SPDX-License-Identifier: Apache-2.0 */
#include "api/routes.h"

#include "api/internal.h"
#include "base/cleanup.h"

#define SMALL_BODY (64 * 1024)

static const struct api_param page_params[] = {
    {"after", "integer", "Only events after this number."},
    {"limit", "integer", "At most so many (1..1000, default 100)."},
    {NULL},
};

static const struct api_param workload_params[] = {
    {"team", "string", "Only of this team and those below it."},
    {"owner", "string", "Only of this user."},
    {"state", "string",
     "Only in these states, joined by commas: pending, running, suspended, stopping, succeeded, "
     "failed, cancelled, or live for the first four."},
    {"kind", "string", "Only of these kinds, joined by commas: job, notebook, service."},
    {"class", "string",
     "Only of these classes, joined by commas: production, training, development, batch."},
    {"name", "string", "Only with this name."},
    {"limit", "integer", "At most so many (1..1000, default 100)."},
    {"before", "integer", "Only ids below this: the 'next' of the page before."},
    {NULL},
};

static const struct api_param log_params[] = {
    {"task", "integer", "Rank of the task (default 0)."},
    {"attempt", "integer", "Which run of the task (default: the latest with a log)."},
    {"offset", "integer", "First byte (default 0)."},
    {"tail", "integer", "Begin with the last so many lines (0..10000) instead."},
    {"follow", "boolean", "Go on until the task has ended."},
    {NULL},
};

static const struct api_param device_params[] = {
    {"node", "string", "Only of this node."},
    {NULL},
};

static const struct api_param usage_params[] = {
    {"from", "string",
     "Begin of the window: a time, a date, or milliseconds since 1970 "
     "(default: a day before 'to')."},
    {"to", "string", "End of the window, not included (default: now)."},
    {"team", "string", "Only this team and those below it."},
    {NULL},
};

static const struct api_param event_params[] = {
    {"team", "string", "Only of this team and those below it."},
    {"workload", "string", "Only of this workload (id or name)."},
    {"after", "integer", "Only events after this number."},
    {"limit", "integer", "At most so many in a page (1..1000, default 100)."},
    {NULL},
};

static const struct api_param event_headers[] = {
    {"Last-Event-ID", "integer", "Resume a stream after this event."},
    {NULL},
};

static const struct api_param submit_params[] = {
    {"dry_run", "boolean",
     "Submit nothing: refuse what would be refused, and explain what would become of each "
     "workload by itself (200)."},
    {NULL},
};

static const struct api_param submit_headers[] = {
    {"Idempotency-Key", "string",
     "A repeat with the same key and body gets the stored answer and has no further effect."},
    {NULL},
};

static const struct api_param put_headers[] = {
    {"If-Match", "string", "Change only if the ETag is still this one (412 otherwise)."},
    {NULL},
};

static const struct api_param exec_headers[] = {
    {"Upgrade", "string", "allot-exec"},
    {NULL},
};

static const struct api_route routes[] = {
    {"GET", "/v1/healthz", "getHealth", "Is the server up? Needs no token.", API_AUTH_NONE,
     handle_healthz, NULL, "Health", .status = 200},
    {"GET", "/v1/version", "getVersion", "Version of the server.", API_AUTH_USER, handle_version,
     NULL, "Version", .status = 200},
    {"GET", "/v1/status", "getStatus", "State of the server, and who asks.", API_AUTH_USER,
     handle_status, NULL, "Status", .status = 200},
    {"GET", "/v1/openapi.json", "getOpenapi", "This description.", API_AUTH_USER, handle_openapi,
     NULL, "OpenAPI", .status = 200},

    {"GET", "/v1/teams", "listTeams", "Teams with quotas and live use.", API_AUTH_USER,
     handle_team_list, NULL, "TeamList", .status = 200},
    {"GET", "/v1/teams/{name}", "getTeam", "One team.", API_AUTH_USER, handle_team_get, NULL,
     "Team", .status = 200},
    {"PUT", "/v1/teams/{name}", "putTeam",
     "Create a team (201) or replace its settings (200); what is left out takes its default.",
     API_AUTH_ADMIN, handle_team_put, "TeamInput", "TeamChanged", .status = 200,
     .body_max = SMALL_BODY, .headers = put_headers},
    {"DELETE", "/v1/teams/{name}", "deleteTeam", "Delete a team without children and live work.",
     API_AUTH_ADMIN, handle_team_delete, NULL, NULL, .status = 204},

    {"GET", "/v1/users", "listUsers", "Users; a member sees itself.", API_AUTH_USER,
     handle_user_list, NULL, "UserList", .status = 200},
    {"GET", "/v1/users/{name}", "getUser", "One user.", API_AUTH_USER, handle_user_get, NULL,
     "User", .status = 200},
    {"PUT", "/v1/users/{name}", "putUser", "Create a user or replace role and teams.",
     API_AUTH_ADMIN, handle_user_put, "UserInput", "User", .status = 200, .body_max = SMALL_BODY},
    {"DELETE", "/v1/users/{name}", "deleteUser", "Delete a user and its tokens.", API_AUTH_ADMIN,
     handle_user_delete, NULL, NULL, .status = 204},

    {"GET", "/v1/tokens", "listTokens", "Tokens without their secrets; a member sees its own.",
     API_AUTH_USER, handle_token_list, NULL, "TokenList", .status = 200},
    {"POST", "/v1/tokens", "createToken", "Make a token; its secret is in this answer only.",
     API_AUTH_USER, handle_token_create, "TokenInput", "NewToken", .status = 201,
     .body_max = SMALL_BODY},
    {"DELETE", "/v1/tokens/{id}", "deleteToken", "Revoke a token at once.", API_AUTH_USER,
     handle_token_delete, NULL, NULL, .status = 204},

    {"GET", "/v1/workloads", "listWorkloads", "Workloads, newest first, a page at a time.",
     API_AUTH_USER, handle_workload_list, NULL, "WorkloadList", .status = 200,
     .params = workload_params},
    {"POST", "/v1/workloads", "submitWorkloads",
     "Submit one workload, or up to 10,000 of which all are taken or none.", API_AUTH_USER,
     handle_submit, "Submit", "Submitted", .status = 201, .body_max = HTTP_BODY_DEFAULT,
     .dry_response = "Foreseen", .params = submit_params, .headers = submit_headers},
    {"GET", "/v1/workloads/{id}", "getWorkload",
     "One workload with its tasks; id is a number, a name, or team:name.", API_AUTH_USER,
     handle_workload_get, NULL, "Workload", .status = 200},
    {"DELETE", "/v1/workloads/{id}", "deleteWorkload", "Stop a workload with its own grace.",
     API_AUTH_USER, handle_workload_stop, NULL, "Stopping", .status = 202},
    {"POST", "/v1/workloads/{id}/stop", "stopWorkload", "Stop a workload.", API_AUTH_USER,
     handle_workload_stop, "StopInput", "Stopping", .status = 202, .body_max = SMALL_BODY},
    {"POST", "/v1/workloads/{id}/suspend", "suspendWorkload",
     "Free its GPUs while it lives: what it holds on them moves to host memory. Its state becomes "
     "'suspended', or its message says why not.",
     API_AUTH_USER, handle_workload_suspend, NULL, "WorkloadState", .status = 202},
    {"POST", "/v1/workloads/{id}/resume", "resumeWorkload",
     "Let a suspended workload wait for the GPUs that it had.", API_AUTH_USER,
     handle_workload_resume, NULL, "WorkloadState", .status = 202},
    {"POST", "/v1/workloads/{id}/extend", "extendWorkload",
     "Let it be idle for longer than the policy of its team says.", API_AUTH_USER,
     handle_workload_extend, "ExtendInput", "WorkloadState", .status = 202, .body_max = SMALL_BODY},
    {"GET", "/v1/workloads/{id}/logs", "getLogs",
     "Output of one attempt of one task. X-Log-Offset is where it begins.", API_AUTH_USER,
     handle_workload_logs, NULL, "Text", "text/plain", .status = 200, .params = log_params},
    {"GET", "/v1/workloads/{id}/explain", "explainWorkload",
     "Why it waits, since when, for whom, and what would make it start.", API_AUTH_USER,
     handle_workload_explain, NULL, "Explanation", .status = 200},
    {"GET", "/v1/workloads/{id}/events", "listWorkloadEvents", "What happened to it.",
     API_AUTH_USER, handle_workload_events, NULL, "EventList", .status = 200,
     .params = page_params},
    {"GET", "/v1/workloads/{id}/allocations", "listAllocations",
     "Its holds on devices: what is metered.", API_AUTH_USER, handle_workload_allocations, NULL,
     "AllocationList", .status = 200},
    {"POST", "/v1/workloads/{id}/tasks/{task}/exec", "execTask",
     "Run a command inside a running task over an upgraded connection.", API_AUTH_USER,
     handle_task_exec, "ExecInput", NULL, .status = 101, .body_max = 256 * 1024,
     .headers = exec_headers},

    {"GET", "/v1/nodes", "listNodes", "Nodes, their devices, and who holds them.", API_AUTH_USER,
     handle_node_list, NULL, "NodeList", .status = 200},
    {"GET", "/v1/nodes/{name}", "getNode", "One node.", API_AUTH_USER, handle_node_get, NULL,
     "Node", .status = 200},
    {"POST", "/v1/nodes/{name}/drain", "drainNode", "Let nothing new start there.", API_AUTH_ADMIN,
     handle_node_drain, NULL, "Node", .status = 200},
    {"POST", "/v1/nodes/{name}/undrain", "undrainNode", "Use it again.", API_AUTH_ADMIN,
     handle_node_undrain, NULL, "Node", .status = 200},
    {"POST", "/v1/nodes/{name}/maintenance", "announceMaintenance",
     "Say when the node will not be there; replaces what was said before.", API_AUTH_ADMIN,
     handle_node_maintenance, "MaintenanceInput", "Node", .status = 200, .body_max = SMALL_BODY},
    {"DELETE", "/v1/nodes/{name}/maintenance", "endMaintenance",
     "No maintenance any more, whether it has begun or not.", API_AUTH_ADMIN,
     handle_node_maintenance_end, NULL, "Node", .status = 200},
    {"GET", "/v1/devices", "listDevices", "Devices of all nodes, and who holds them.",
     API_AUTH_USER, handle_device_list, NULL, "DeviceList", .status = 200, .params = device_params},

    {"GET", "/v1/usage", "getUsage", "GPU time by team: allocated, busy, idle.", API_AUTH_USER,
     handle_usage, NULL, "Usage", .status = 200, .params = usage_params},
    {"GET", "/v1/history", "getHistory",
     "Who asked for what, when it ran, and quotas and nodes meanwhile, as a line of JSON for each: "
     "what 'allot sim whatif' replays. For administrators, and users who see all teams. The line "
     "with 'end' is the last; without it the answer is not complete.",
     API_AUTH_USER, handle_history, NULL, "HistoryLine", "application/x-ndjson", .status = 200},
    {"GET", "/metrics", "getMetrics",
     "Devices, teams, workloads and nodes in the text format of Prometheus. Who does not see all "
     "teams sees what concerns its own.",
     API_AUTH_USER, handle_metrics, NULL, "Text", "text/plain", .status = 200},
    {"GET", "/v1/events", "streamEvents",
     "Events as a stream, or as a page with 'Accept: application/json', 'after' or 'limit'.",
     API_AUTH_USER, handle_events, NULL, "EventList", .status = 200, .params = event_params,
     .headers = event_headers},
};

const struct api_route *api_routes(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(routes);
    return routes;
}
