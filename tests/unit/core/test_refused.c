/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused leaves nothing behind, and takes nothing away from what was accepted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <json-c/json.h>

#include "core/core.h"
#include "core/internal.h"
#include "model/json.h"
#include "sim/memory_store.h"
#include "sim/virtual_engine.h"

#define REQUESTS 100000

struct world {
    struct memory_store *store;
    struct virtual_engine *engine;
    struct core *core;
    int64_t now_ms;
    struct model_device devices[8];
    struct model_node node;
};

static int64_t clock_now(void *ctx)
{
    return ((struct world *)ctx)->now_ms;
}

static const char *clock_boot(void *ctx)
{
    (void)ctx;
    return "boot";
}

static const struct clock_ops clock_ops = {clock_now, clock_now, clock_boot};

static void step(struct world *w)
{
    core_step(w->core);
    while (memory_store_busy(w->store)) {
        memory_store_commit(w->store);
        core_step(w->core);
    }
}

static void done(struct core_command *c)
{
    *(bool *)c->user = true;
}

/* The status of C, whose inputs are filled in; a disk that refuses it says FULL. */
static int run(struct world *w, struct core_command *c, int full)
{
    bool is_done = false;

    c->actor = (struct core_actor){.name = "root", .admin = true};
    c->done = done;
    c->user = &is_done;
    core_submit(w->core, c);
    core_step(w->core);
    if (full && memory_store_busy(w->store))
        memory_store_fail(w->store, full);
    step(w);
    assert_true(is_done);
    return c->status;
}

static void put_team(struct world *w, const char *name)
{
    struct core_command c = {.kind = CORE_TEAM_PUT};
    struct model_team t;

    model_team_init(&t);
    t.name = name;
    c.team = &t;
    assert_int_equal(run(w, &c, 0), 0);
    arena_done(&c.arena);
}

/* GPUS and CPU say what is asked for: nobody has more than 8. */
static void want(struct arena *arena, int gpus, int cpu, struct model_workload *ret)
{
    struct json_object *json = NULL;
    struct err err = ERR_INIT;
    const char *text = arena_printf(arena,
                                    "{\"team\":\"t\",\"gpus\":%d,\"cpu\":\"%dm\","
                                    "\"command\":[\"true\"]}",
                                    gpus, cpu);

    assert_int_equal(model_json_parse(text, strlen(text), &json, &err), 0);
    if (model_workload_decode(json, arena, ret, &err) < 0)
        fail_msg("%s", err.text);
    json_object_put(json);
}

/* COUNT workloads in one command, each of another shape; the last asks for GPUS. */
static int submit(struct world *w, size_t count, int gpus, int cpu, int full)
{
    struct core_command c = {.kind = CORE_WORKLOADS_SUBMIT, .workload_count = count};
    struct arena arena = ARENA_INIT;
    int r;

    c.workloads = arena_new_array(&arena, struct model_workload, count);
    for (size_t i = 0; i < count; i++)
        want(&arena, i + 1 < count ? 1 : gpus, cpu + (int)i, &c.workloads[i]);
    r = run(w, &c, full);
    arena_done(&c.arena);
    arena_done(&arena);
    return r;
}

static int set_up(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct core_ports ports = {.store = &memory_store_ops,
                               .engine = &virtual_engine_ops,
                               .clock = &clock_ops,
                               .clock_ctx = w};
    struct err err = ERR_INIT;

    for (size_t i = 0; i < 8; i++)
        w->devices[i] =
            (struct model_device){.uuid = "GPU", .type = "H100", .memory_bytes = 80LL << 30};
    w->node = (struct model_node){.name = "n1",
                                  .gpu_type = "H100",
                                  .cpu_milli = 1 << 30,
                                  .memory_bytes = 1LL << 50,
                                  .devices = w->devices,
                                  .device_count = 8};
    w->now_ms = 1000000;
    ports.store_ctx = w->store = memory_store_create();
    ports.engine_ctx = w->engine = virtual_engine_create();
    virtual_engine_node(w->engine, 0, &w->node);
    if (core_create(&(struct core_config){0}, &ports, &w->core, &err) < 0)
        fail_msg("%s", err.text);
    virtual_engine_attach(w->engine, core_engine_host(w->core));
    core_begin(w->core);
    virtual_engine_advance(w->engine, w->now_ms);
    step(w);
    put_team(w, "t");
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;

    core_destroy(w->core);
    virtual_engine_destroy(w->engine);
    memory_store_destroy(w->store);
    free(w);
    return 0;
}

static void assert_sound(struct world *w, size_t shapes)
{
    char what[256];

    assert_int_equal(w->core->shapes.len, shapes);
    assert_int_equal(w->core->shape_ids.len, shapes);
    if (core_verify(w->core, what, sizeof(what)) < 0)
        fail_msg("%s", what);
}

static void refused_requests_leave_no_shapes(void **state)
{
    struct world *w = *state;

    assert_int_equal(submit(w, 1, 1, 100, 0), 0);
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(submit(w, 1, 9, 1000 + i, 0), -E2BIG);
    assert_sound(w, 1);
    assert_int_equal(submit(w, 1, 1, 100, 0), 0);
    assert_sound(w, 1);
}

static void a_refused_batch_takes_back_all_of_it(void **state)
{
    struct world *w = *state;

    assert_int_equal(submit(w, 1, 1, 1000, 0), 0); /* the shape of the batches' first */
    for (int i = 0; i < 100; i++)
        assert_int_equal(submit(w, 50, 9, 1000, 0), -E2BIG);
    assert_sound(w, 1);
}

static void a_full_disk_leaves_no_shapes_and_takes_none(void **state)
{
    struct world *w = *state;

    assert_int_equal(submit(w, 1, 1, 1000, 0), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(submit(w, 10, 1, 1000 + i, -ENOSPC), -ENOSPC);
    assert_sound(w, 1);
    /* What was refused with the disk is stored in full when it is accepted later. */
    assert_int_equal(submit(w, 10, 1, 1000, 0), 0);
    assert_sound(w, 10);
}

/* Two commands in one group share a shape that nobody had; the disk refuses both. */
static void a_shape_shared_by_refused_commands_goes_once(void **state)
{
    struct world *w = *state;
    struct core_command c[2] = {{.kind = CORE_WORKLOADS_SUBMIT}, {.kind = CORE_WORKLOADS_SUBMIT}};
    struct model_workload rows[2] = {0};
    struct arena arena = ARENA_INIT;
    bool is_done[2] = {false, false};

    for (int i = 0; i < 2; i++) {
        want(&arena, 1, 777, &rows[i]);
        c[i].workloads = &rows[i];
        c[i].workload_count = 1;
        c[i].actor = (struct core_actor){.name = "root", .admin = true};
        c[i].done = done;
        c[i].user = &is_done[i];
        core_submit(w->core, &c[i]);
    }
    core_step(w->core);
    assert_true(memory_store_busy(w->store));
    memory_store_fail(w->store, -EIO);
    step(w);
    for (int i = 0; i < 2; i++) {
        assert_true(is_done[i]);
        assert_int_equal(c[i].status, -EIO);
        arena_done(&c[i].arena);
    }
    assert_sound(w, 0);
    assert_int_equal(submit(w, 1, 1, 777, 0), 0);
    assert_sound(w, 1);
    arena_done(&arena);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(refused_requests_leave_no_shapes),
        TEST(a_refused_batch_takes_back_all_of_it),
        TEST(a_full_disk_leaves_no_shapes_and_takes_none),
        TEST(a_shape_shared_by_refused_commands_goes_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
