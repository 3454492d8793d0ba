/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON schemas of what goes in and out, by name, for the OpenAPI document.
 *
 * The macros spell out members of "properties"; a member ends with the comma that follows it, so
 * the last one is written with the _ form.
 */
#include "api/internal.h"

#include "base/cleanup.h"

#define TYPE(name, type) "\"" name "\":{\"type\":" type "}"
#define STR_(name) TYPE(name, "\"string\"")
#define STR(name) STR_(name) ","
#define OPT_(name) TYPE(name, "[\"string\",\"null\"]")
#define OPT(name) OPT_(name) ","
#define INT_(name) TYPE(name, "\"integer\"")
#define INT(name) INT_(name) ","
#define NUM_(name) TYPE(name, "[\"number\",\"string\",\"null\"]")
#define NUM(name) NUM_(name) ","
#define BOOL_(name) TYPE(name, "\"boolean\"")
#define BOOL(name) BOOL_(name) ","
#define TIME_(name) "\"" name "\":{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"
#define TIME(name) TIME_(name) ","
#define REF_TO(schema) "{\"$ref\":\"#/components/schemas/" schema "\"}"
#define REF_(name, schema) "\"" name "\":" REF_TO(schema)
#define REF(name, schema) REF_(name, schema) ","
#define LIST_(name, schema) "\"" name "\":{\"type\":\"array\",\"items\":" REF_TO(schema) "}"
#define LIST(name, schema) LIST_(name, schema) ","
#define STRINGS_(name) "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}"
#define STRINGS(name) STRINGS_(name) ","
#define INTS_(name) "\"" name "\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"
#define INTS(name) INTS_(name) ","
#define MAP_(name) \
    "\"" name "\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}"
#define MAP(name) MAP_(name) ","
#define WORDS_(name, words) "\"" name "\":{\"type\":\"string\",\"enum\":[" words "]}"
#define WORDS(name, words) WORDS_(name, words) ","
#define OBJECT(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define STRICT(properties) \
    "{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{" properties "}}"
#define LIST_OF(key, schema) OBJECT(LIST_(key, schema))

#define WORKLOAD_STATES \
    "\"pending\",\"running\",\"suspended\",\"stopping\",\"succeeded\",\"failed\",\"cancelled\""
#define TASK_STATES                                                                         \
    "\"pending\",\"held\",\"starting\",\"running\",\"suspended\",\"stopping\"," \
    "\"unknown\",\"succeeded\",\"failed\",\"cancelled\""
#define KINDS "\"job\",\"notebook\",\"service\""
#define CLASSES "\"production\",\"training\",\"development\",\"batch\""

/* What a task asks for and runs: of the single group, or of each of several. */
#define GROUP_MEMBERS                                                                             \
    STR("name")                                                                                   \
    INT("tasks")                                                                                  \
    INT("min_tasks")                                                                              \
    INT("gpus")                                                                                   \
    NUM("gpu")                                                                                    \
    NUM("gpu_memory") "\"mig\":{}," INT("gpu_count") STRINGS("gpu_type") NUM("cpu") NUM("memory") \
        MAP("node_labels") "\"topology\":{\"type\":\"object\"}," STRINGS("command") MAP_("env")

#define WORKLOAD_SETTINGS                                                                   \
    STR("team")                                                                             \
    WORDS("kind", KINDS)                                                                    \
    WORDS("class", CLASSES)                                                                 \
    INT("priority")                                                                         \
    BOOL("preemptible")                                                                     \
    BOOL("burst")                                                                           \
    NUM("max_run_time") NUM("expected_run_time") NUM("min_run_time") INT("max_unavailable") \
        REF("preemption", "Preemption") INT("max_retries") OPT("image") OPT("workdir")      \
            OPT("checkpoint_dir") LIST("groups", "Group")

#define WORKLOAD_RESULTS                                                                        \
    INT("id")                                                                                   \
    STR("owner")                                                                                \
    WORDS("state", WORKLOAD_STATES)                                                             \
    TIME("submitted_at")                                                                        \
    TIME("started_at")                                                                          \
    TIME("ended_at") TIME("evicted_at") INT("running_tasks") INT("ended_tasks") INT("restarts") \
        INT("failures") INT("exit_code") OPT("message") STR("request") STR("reason")            \
            INT("position") INT("stopping_tasks") LIST("tasks_detail", "Task")

#define QUOTAS                          \
    OPT("parent")                       \
    INT("weight")                       \
    INT("priority")                     \
    WORDS("quota", "\"fair\",\"hard\"") \
    TYPE("idle", "\"object\"") ","      \
    REF("guarantee", "Amounts")         \
    REF_("limit", "Amount"              \
                  "s")

#define DEVICE_MEMBERS \
    STR("uuid")        \
    STR("type") NUM("memory") STR("mig_profile") INT("mig_milli") BOOL("simulated") STR_("path")

#define NODE_MEMBERS                                                                     \
    INT("id")                                                                            \
    STR("name")                                                                          \
    OPT("cluster")                                                                       \
    WORDS("state", "\"up\",\"down\",\"unknown\"")                                        \
    BOOL("drained")                                                                      \
    REF("maintenance", "Maintenance")                                                    \
    OPT("gpu_type")                                                                      \
    OPT("sharing") LIST("sharing_backends", "SharingBackend")                            \
    OPT("limits") OPT("isolation") NUM("cpu") NUM("memory")                              \
        LIST("devices", "Device") MAP("labels") NUM("gpu_used") LIST("use", "DeviceUse") \
            LIST_("maintenance_work", "MaintenanceWork")

static const struct api_schema schemas[] = {
    {"Problem", OBJECT(STR("type") STR("title") INT("status") STR("detail") STR("code") STR("field")
                           STR_("remedy"))},
    {"Health", OBJECT(STR_("status"))},
    {"Version", OBJECT(STR("name") STR("version") STR_("api"))},
    {"OpenAPI", "{\"type\":\"object\"}"},
    {"Text", "{\"type\":\"string\"}"},
    {"Status", OBJECT(STR("version") TIME("started_at") TIME("now") INT("pending") INT("running")
                          INT("last_event") BOOL("reconciled") REF("store", "StoreStatus")
                              REF_("user", "User"))},
    {"StoreStatus", OBJECT(BOOL("ok") OPT_("message"))},

    {"Amounts", OBJECT(NUM("gpu") NUM("cpu") NUM("memory") TYPE(
                    "volumes", "[\"integer\",\"null\"]") "," TYPE("gpu_types", "\"object\""))},
    {"TeamInput", STRICT(STR("name") QUOTAS)},
    {"Team", OBJECT(INT("id") INT("version") STR("name") REF("used", "Amounts") INT("past_gpu_ms")
                        NUM("weight_bias") TYPE("used_gpu_types", "\"object\"") "," REF(
                            "demand", "Amounts") REF("share", "Amounts") REF("entitled", "Amounts")
                            INT("pending") INT("running") QUOTAS)},
    {"TeamChanged", OBJECT(INT("id") INT("version") STR("name") STRINGS("warnings") QUOTAS)},
    {"TeamList", LIST_OF("teams", "Team")},

    {"UserInput", STRICT(STR("name") WORDS("role", "\"admin\",\"member\"") STRINGS_("teams"))},
    {"User", OBJECT(STR("name") WORDS("role", "\"admin\",\"member\"") STRINGS_("teams"))},
    {"UserList", LIST_OF("users", "User")},

    {"TokenInput", STRICT(STR("user") STR("label") NUM_("expires_in"))},
    {"Token", OBJECT(INT("id") STR("user") OPT("label") TIME("created_at") TIME_("expires_at"))},
    {"NewToken", OBJECT(INT("id") STR("user") OPT("label") TIME("created_at") TIME("expires_at")
                            STR_("token"))},
    {"TokenList", LIST_OF("tokens", "Token")},

    {"Preemption",
     OBJECT(WORDS("handling", "\"checkpoint\",\"restart\",\"suspend\"") NUM_("grace"))},
    {"Group", OBJECT(GROUP_MEMBERS)},
    {"WorkloadInput", STRICT(WORKLOAD_SETTINGS GROUP_MEMBERS)},
    {"Workload", OBJECT(WORKLOAD_RESULTS WORKLOAD_SETTINGS GROUP_MEMBERS)},
    {"WorkloadList", OBJECT(INT("next") LIST_("workloads", "Workload"))},
    {"WorkloadBatch", STRICT(LIST_("workloads", "WorkloadInput"))},
    {"Submit",
     "{\"oneOf\":[" REF_TO("WorkloadInput") "," REF_TO(
         "WorkloadBatch") ",{\"type\":\"array\",\"items\":" REF_TO("WorkloadInput") "}]}"},
    {"Submitted", "{\"oneOf\":[" REF_TO("Workload") "," REF_TO("WorkloadList") "]}"},
    {"StopInput", STRICT(NUM_("grace"))},
    {"ExtendInput", STRICT(NUM_("for"))},
    {"Stopping", OBJECT(INT("id") STR_("state"))},
    {"WorkloadState", OBJECT(INT("id") STR_("state"))},
    {"ExecInput", STRICT(STRINGS("command") BOOL_("tty"))},
    {"Task", OBJECT(INT("index") INT("attempt") WORDS("state", TASK_STATES) OPT("node")
                        INTS("devices") NUM("gpu") TIME("held_until") TIME("started_at")
                            TIME("ended_at") TYPE("exit_code", "[\"integer\",\"null\"]") "," TYPE(
                                "exit_signal", "[\"integer\",\"null\"]") "," OPT_("message"))},
    {"Holder", OBJECT(INT("id") INT("workload") STR("name") STR("team") INT("task") NUM_("gpu"))},
    /* clang-format off */
    {"NodeState", OBJECT(STR("name") STR_("state"))},
    {"ExplanationHolder",
     OBJECT("\"id\":{\"type\":[\"integer\",\"null\"]}," OPT("name") STR("team")
            INT("workloads") NUM("gpu") NUM("cpu") STR_("memory"))},
    {"Explanation",
     OBJECT(INT("id") OPT("name") STR("team") WORDS("state", WORKLOAD_STATES) OPT("reason")
            STR("sentence") OPT("remedy") OPT("request") INT("tasks") TIME("at") STR("resource")
            NUM("asked") NUM("each") NUM("free") NUM("most") NUM("missing") NUM("less")
            INT("less_tasks") NUM("takes_gpu") INT("gang_tasks") INT("fitting_tasks")
            "\"topology\":{\"type\":\"object\"}," "\"quota\":{\"type\":\"object\"},"
            "\"quota_types\":{\"type\":\"array\",\"items\":{\"type\":\"object\"}},"
            "\"overcommitted\":{\"type\":\"object\"}," INT("position") INT("pending")
            TIME("start_at") INT("start_in_ms") STR("start_basis")
            "\"waits_for\":{\"type\":[\"object\",\"null\"]}," INT("run_ms")
            "\"maintenance\":{\"type\":\"object\"}," LIST("nodes", "NodeState")
            LIST("holders", "ExplanationHolder") OPT("last_eviction") TIME_("last_eviction_at"))},
    /* clang-format on */
    {"Foreseen", OBJECT(LIST_("workloads", "Explanation"))},
    {"Allocation", OBJECT(INT("id") INT("task") INT("attempt") INTS("devices") NUM("gpu") NUM("cpu")
                              NUM("memory") TIME("started_at") TIME("ended_at") INT("busy_ms")
                                  INT("known_ms") OPT_("release"))},
    {"AllocationList", LIST_OF("allocations", "Allocation")},

    {"Device", OBJECT(DEVICE_MEMBERS)},
    {"SharingBackend",
     OBJECT(STR("name") WORDS("state", "\"absent\",\"found\",\"used\"") OPT_("reason"))},
    {"DeviceUse", OBJECT(INT("index") NUM("gpu_used") LIST_("holders", "Holder"))},
    {"DeviceWithUse",
     OBJECT(STR("node") INT("index") NUM("gpu_used") LIST("holders", "Holder") DEVICE_MEMBERS)},
    {"Maintenance", OBJECT(TIME("from") TIME_("until"))},
    {"MaintenanceWork", OBJECT(INT("workload") STR("name") STR("team") WORDS(
                            "outcome", "\"ends\",\"evicted\",\"stays\"") TIME_("ends_at"))},
    {"MaintenanceInput", STRICT(TIME("from") TIME_("until"))},
    {"DeviceList", LIST_OF("devices", "DeviceWithUse")},
    {"Node", OBJECT(NODE_MEMBERS)},
    {"NodeList", LIST_OF("nodes", "Node")},

    {"TeamUsage",
     OBJECT(STR("team") INT("allocated_milli_gpu_ms") INT("allocated_gpu_ms") INT("busy_gpu_ms")
                INT("idle_gpu_ms") INT("unknown_gpu_ms") INT("allocated_gpu_seconds")
                    INT("busy_gpu_seconds") INT("idle_gpu_seconds") INT("unknown_gpu_seconds")
                        INT("held_ms") INT("cpu_milli_ms") INT("allocations") INT_("open"))},
    {"HistoryLine", "{\"type\":\"object\",\"description\":\"One of: history (version and "
                    "time), team, node, change, workload, run, end.\"}"},
    {"Usage", OBJECT(TIME("from") TIME("to") LIST_("teams", "TeamUsage"))},

    {"Event",
     OBJECT(INT("seq") TIME("time") STR("type") INT("workload") STR("name") INT("task") STR("team")
                STR("node") OPT("actor") OPT("message") "\"data\":{\"type\":\"object\"}")},
    {"EventList", OBJECT(INT("next") LIST_("events", "Event"))},
};

const struct api_schema *api_schemas(size_t *ret_count)
{
    *ret_count = ARRAY_LEN(schemas);
    return schemas;
}
