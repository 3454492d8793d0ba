/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A workload that is accepted keeps the bounds of model/workload.h, and the canonical texts of
 * its parts decode to parts with the same texts. The input is also read as such a stored text.
 */
#include <json-c/json.h>
#include <string.h>

#include "fuzz.h"
#include "model/json.h"
#include "model/workload.h"

static void check_request(const struct model_request *r)
{
    FUZZ_REQUIRE(r->device_count >= 0 && r->device_count <= MODEL_GPUS_MAX);
    FUZZ_REQUIRE(r->device_milli >= 0 && r->device_milli <= 1000);
    FUZZ_REQUIRE(r->device_memory_bytes >= 0 && r->cpu_milli >= 0 && r->memory_bytes >= 0);
    FUZZ_REQUIRE(r->device_count == 0 || r->mig_count == 0);
    FUZZ_REQUIRE(model_request_gpu_milli(r, 0) >= 0);
}

static void check_shape(const struct model_shape *s, struct arena *arena)
{
    int64_t tasks = 0;

    FUZZ_REQUIRE(s->group_count >= 1 && s->group_count <= MODEL_GROUPS_MAX);
    for (int32_t i = 0; i < s->group_count; i++) {
        const struct model_group *g = &s->groups[i];

        FUZZ_REQUIRE(g->tasks >= 1 && g->min_tasks >= 0 && g->min_tasks <= g->tasks);
        check_request(&g->request);
        FUZZ_REQUIRE(model_request_describe(&g->request, arena)[0]);
        tasks += g->tasks;
    }
    FUZZ_REQUIRE(tasks == s->task_count && tasks <= MODEL_TASKS_MAX);
    FUZZ_REQUIRE(s->min_tasks >= 0 && s->min_tasks <= s->task_count);
    FUZZ_REQUIRE(model_shape_group_of(s, 0, NULL) == 0);
    FUZZ_REQUIRE(model_shape_group_of(s, s->task_count - 1, NULL) == s->group_count - 1);
    FUZZ_REQUIRE(s->grace_ms >= 0 && s->limit_ms >= 0 && s->expected_ms >= 0);
}

static void check_shape_round_trip(const struct model_shape *s, struct arena *arena)
{
    _cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    const struct model_shape *again;
    struct json_writer w;

    json_writer_init(&w, &first);
    model_shape_encode(s, &w);
    FUZZ_REQUIRE(model_shape_decode(first.data, first.len, arena, &again, NULL) == 0);
    json_writer_init(&w, &second);
    model_shape_encode(again, &w);
    FUZZ_REQUIRE(strcmp(first.data, second.data) == 0);
}

static void check_launch_round_trip(const struct model_launch *l, struct arena *arena)
{
    _cleanup_strbuf_ struct strbuf first = STRBUF_INIT, second = STRBUF_INIT;
    const struct model_launch *again;
    struct json_writer w;

    json_writer_init(&w, &first);
    model_launch_encode(l, &w);
    FUZZ_REQUIRE(model_launch_decode(first.data, first.len, arena, &again, NULL) == 0);
    json_writer_init(&w, &second);
    model_launch_encode(again, &w);
    FUZZ_REQUIRE(strcmp(first.data, second.data) == 0);
}

static void read_as_stored(const char *text, size_t size, struct arena *arena)
{
    const struct model_launch *launch;
    const struct model_shape *shape;

    if (model_shape_decode(text, size, arena, &shape, NULL) == 0)
        check_shape_round_trip(shape, arena);
    if (model_launch_decode(text, size, arena, &launch, NULL) == 0)
        check_launch_round_trip(launch, arena);
}

static void read_as_written(const char *text, size_t size, struct arena *arena)
{
    struct model_workload workload = {0};
    struct err err = ERR_INIT;
    struct json_object *json;
    int r = model_json_parse(text, size, &json, &err);

    if (r == 0) {
        r = model_workload_decode(json, arena, &workload, &err);
        json_object_put(json);
    }
    if (r < 0) {
        FUZZ_REQUIRE(err.errnum == r && err.text[0]);
        return;
    }
    FUZZ_REQUIRE(workload.team && workload.shape && workload.launch);
    check_shape(workload.shape, arena);
    FUZZ_REQUIRE(workload.launch->group_count == workload.shape->group_count);
    check_shape_round_trip(workload.shape, arena);
    check_launch_round_trip(workload.launch, arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = ARENA_INIT;

    read_as_written((const char *)data, size, &arena);
    read_as_stored((const char *)data, size, &arena);
    arena_done(&arena);
    return 0;
}
