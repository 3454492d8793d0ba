/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what is told, to whom, and what is left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "engine.h"
#include "fixture.h"

#define UNKNOWN (-1)

static struct model_reading reading(int32_t device)
{
    struct model_reading r = {.device = device,
                              .minor = device + 1,
                              .pci_bus_id = "00000000:17:00.0",
                              .name = "NVIDIA \"X\"",
                              .busy_percent = 7,
                              .memory_busy_percent = UNKNOWN,
                              .memory_used = (INT64_C(3) << 20) - 1,
                              .memory_free = 0,
                              .memory_reserved = UNKNOWN,
                              .power_mw = 70250,
                              .energy_mj = INT64_MAX,
                              .temperature_c = UNKNOWN,
                              .sm_clock_mhz = UNKNOWN,
                              .memory_clock_mhz = UNKNOWN,
                              .engine_active_ppm = 1000000,
                              .sm_active_ppm = 34521,
                              .sm_occupancy_ppm = UNKNOWN,
                              .tensor_active_ppm = 0,
                              .dram_active_ppm = 7};

    snprintf(r.uuid, sizeof(r.uuid), "GPU-%d", device);
    return r;
}

/* The node says so of its first two devices. */
static void read_two(struct fixture *f, int64_t age_ms)
{
    const struct model_reading readings[] = {reading(0), reading(1)};

    engine_double_read(f->engine, "n1", readings, 2, age_ms);
}

static const char *scrape(struct fixture *f, struct http_client *who)
{
    assert_int_equal(ask(f, who, "GET", "/metrics", NULL), 200);
    return strbuf_str(&f->reply.body);
}

/* A whole line of the last answer. */
static bool has(struct fixture *f, const char *line)
{
    const char *text = strbuf_str(&f->reply.body), *at = text;
    size_t n = strlen(line);

    for (; (at = strstr(at, line)) != NULL; at++)
        if ((at == text || at[-1] == '\n') && at[n] == '\n')
            return true;
    return false;
}

static int lines_with(struct fixture *f, const char *part)
{
    int n = 0;

    for (const char *at = strbuf_str(&f->reply.body); (at = strstr(at, part)) != NULL; at++)
        n++;
    return n;
}

#define DEVICE_0                                                                    \
    "{gpu=\"0\",UUID=\"GPU-0\",pci_bus_id=\"00000000:17:00.0\",device=\"nvidia1\"," \
    "modelName=\"NVIDIA \\\"X\\\"\",Hostname=\"n1\""

static void figures_have_their_units(void **state)
{
    struct fixture *f = *state;

    read_two(f, 0);
    scrape(f, f->root);
    assert_true(has(f, "# HELP DCGM_FI_DEV_POWER_USAGE Power draw (in W)."));
    assert_true(has(f, "# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter"));
    assert_true(has(f, "DCGM_FI_DEV_POWER_USAGE" DEVICE_0 "} 70.25"));
    assert_true(has(f, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION" DEVICE_0 "} 9223372036854775807"));
    assert_true(has(f, "DCGM_FI_DEV_GPU_UTIL" DEVICE_0 "} 7"));
    assert_true(has(f, "DCGM_FI_DEV_FB_USED" DEVICE_0 "} 2"));
    assert_true(has(f, "DCGM_FI_DEV_FB_FREE" DEVICE_0 "} 0"));
    assert_true(has(f, "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge"));
    assert_true(has(f, "DCGM_FI_PROF_GR_ENGINE_ACTIVE" DEVICE_0 "} 1.000000"));
    assert_true(has(f, "DCGM_FI_PROF_SM_ACTIVE" DEVICE_0 "} 0.034521"));
    assert_true(has(f, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE" DEVICE_0 "} 0.000000"));
    assert_true(has(f, "DCGM_FI_PROF_DRAM_ACTIVE" DEVICE_0 "} 0.000007"));
    /* what is not known is not there, and neither are the lines that would announce it */
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_FB_RESERVED"), 0);
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_SM_CLOCK"), 0);
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_GPU_TEMP"), 0);
    assert_int_equal(lines_with(f, "DCGM_FI_PROF_SM_OCCUPANCY"), 0);
}

static void a_silent_node_has_no_figures(void **state)
{
    struct fixture *f = *state;

    scrape(f, f->root);
    assert_int_equal(lines_with(f, "DCGM_"), 0);
    read_two(f, 29000);
    scrape(f, f->root);
    assert_true(lines_with(f, "DCGM_FI_DEV_GPU_UTIL{") == 2);
    read_two(f, 31000);
    scrape(f, f->root);
    assert_int_equal(lines_with(f, "DCGM_"), 0);
    read_two(f, 0);
    engine_double_read(f->engine, "n2", NULL, 0, 0); /* nobody knows it */
    scrape(f, f->root);
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_GPU_UTIL{"), 2);
    engine_double_read(f->engine, "n1", NULL, 0, 0);
    scrape(f, f->root);
    assert_int_equal(lines_with(f, "DCGM_"), 0);
}

static void a_whole_device_has_the_name_of_its_task(void **state)
{
    struct fixture *f = *state;

    read_two(f, 0);
    wait_state(f,
               submit(f, f->ada,
                      "{\"team\":\"vision\",\"gpus\":1,\"name\":\"one\","
                      "\"command\":[\"x\"]}"),
               "running");
    scrape(f, f->ada);
    assert_true(has(f, "DCGM_FI_DEV_GPU_UTIL" DEVICE_0
                       ",container=\"0\",namespace=\"vision\",pod=\"one\"} 7"));
    assert_true(has(f, "allot_task_gpus{gpu=\"0\",Hostname=\"n1\",container=\"0\","
                       "namespace=\"vision\",pod=\"one\"} 1"));
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_GPU_UTIL{"), 1);
}

static void others_are_not_named(void **state)
{
    struct fixture *f = *state;

    read_two(f, 0);
    wait_state(f,
               submit(f, f->ada,
                      "{\"team\":\"vision\",\"gpu\":0.5,\"name\":\"mine\","
                      "\"command\":[\"x\"]}"),
               "running");
    scrape(f, f->bob);
    assert_int_equal(lines_with(f, "DCGM_"), 0);
    wait_state(f,
               submit(f, f->bob,
                      "{\"team\":\"other\",\"gpu\":0.25,\"name\":\"yours\","
                      "\"command\":[\"x\"]}"),
               "running");
    scrape(f, f->bob);
    /* They share a device, which is one series without a name. */
    assert_true(has(f, "DCGM_FI_DEV_GPU_UTIL" DEVICE_0 "} 7"));
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_GPU_UTIL{"), 1);
    assert_int_equal(lines_with(f, "mine") + lines_with(f, "vision") + lines_with(f, "lab"), 0);
    assert_true(has(f, "allot_task_gpus{gpu=\"0\",Hostname=\"n1\",container=\"0\","
                       "namespace=\"other\",pod=\"yours\"} 0.25"));
    assert_true(has(f, "allot_workloads{state=\"running\",class=\"training\"} 1"));
    scrape(f, f->root);
    assert_int_equal(lines_with(f, "DCGM_FI_DEV_GPU_UTIL{"), 2);
    assert_int_equal(lines_with(f, "allot_task_gpus{"), 2);
    assert_true(has(f, "allot_workloads{state=\"running\",class=\"training\"} 2"));
    assert_int_equal(ask(f, f->nobody, "GET", "/metrics", NULL), 401);
}

static void teams_have_their_numbers(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(ask(f, f->root, "PUT", "/v1/teams/other",
                         "{\"guarantee\":{\"gpu\":2},\"limit\":{\"gpu\":\"2.5\"}}"),
                     200);
    submit(f, f->bob, "{\"team\":\"other\",\"gpus\":2,\"command\":[\"x\"]}");
    wait_state(f, 1, "running");
    submit(f, f->bob, "{\"team\":\"other\",\"gpus\":1,\"class\":\"batch\",\"command\":[\"x\"]}");
    scrape(f, f->bob);
    assert_true(has(f, "allot_team_gpus{team=\"other\",kind=\"guarantee\"} 2"));
    assert_true(has(f, "allot_team_gpus{team=\"other\",kind=\"limit\"} 2.5"));
    assert_true(has(f, "allot_team_gpus{team=\"other\",kind=\"used\"} 2"));
    assert_true(has(f, "allot_team_gpus{team=\"other\",kind=\"pending\"} 1"));
    assert_true(has(f, "allot_workloads{state=\"pending\",class=\"batch\"} 1"));
    assert_true(has(f, "allot_nodes{state=\"up\"} 1"));
    assert_int_equal(ask(f, f->root, "POST", "/v1/nodes/n1/drain", NULL), 200);
    scrape(f, f->root);
    assert_true(has(f, "allot_nodes{state=\"up\"} 0"));
    assert_true(has(f, "allot_nodes{state=\"drained\"} 1"));
    /* what has ended is not counted */
    engine_exit(f, "1.0.0", 0);
    wait_state(f, 1, "succeeded");
    scrape(f, f->root);
    assert_true(has(f, "allot_workloads{state=\"running\",class=\"training\"} 0"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_set_up, fixture_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(figures_have_their_units),
        TEST(a_silent_node_has_no_figures),
        TEST(a_whole_device_has_the_name_of_its_task),
        TEST(others_are_not_named),
        TEST(teams_have_their_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
