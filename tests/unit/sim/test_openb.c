/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sim/openb.h"

static char path[64];

static int make_file(void **state)
{
    snprintf(path, sizeof(path), "/tmp/allot-openb-XXXXXX");
    int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int drop_file(void **state)
{
    return unlink(path);
}

static void write_text(const char *text)
{
    assert_int_equal(io_write_file_atomic(AT_FDCWD, path, text, strlen(text), 0600, 0), 0);
}

static void nodes_become_what_the_scheduler_takes(void **state)
{
    _cleanup_(openb_nodes_free) struct openb_nodes nodes = {0};
    write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,32000,1024,0,\nn1,96000,2048,8,G2\n"
               "n2,96000,2048,8,G2\n");
    assert_int_equal(openb_load_nodes(path, &nodes, NULL), 0);
    assert_int_equal(nodes.count, 3);
    assert_null(nodes.items[0].model);
    assert_ptr_equal(nodes.items[1].model, nodes.items[2].model);
    struct sched_device devices[OPENB_DEVICES_MAX];
    struct sched_node n = openb_sched_node(&nodes.items[1], 7, 9, devices);
    assert_int_equal(n.id, 7);
    assert_int_equal(n.order, 9);
    assert_string_equal(n.gpu_type, "G2");
    assert_int_equal(n.device_count, 8);
    assert_int_equal(n.cpu_milli, 96000);
    assert_int_equal(n.memory_bytes, 2048LL << 20);
    assert_true(n.up && n.schedulable);
    struct sched *s = sched_create(NULL);
    assert_int_equal(sched_node_set(s, &n), 0);
    sched_destroy(s);
}

static void pods_become_requests(void **state)
{
    _cleanup_(openb_pods_free) struct openb_pods pods = {0};
    write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
               "deletion_time,scheduled_time\n"
               "p0,4000,1,0,0,,LS,Running,5,9,\n"
               "p1,4000,1,1,470,T4|P100|T4,BE,Running,5,9,6\n"
               "p2,0,0,8,1000,,Guaranteed,Running,5,9,5\n");
    assert_int_equal(openb_load_pods(path, &pods, NULL), 0);
    assert_int_equal(pods.count, 3);
    assert_int_equal(pods.items[0].scheduled_s, -1);
    assert_int_equal(pods.items[0].created_s, 5);
    assert_int_equal(pods.items[0].deleted_s, 9);
    assert_int_equal(pods.items[0].qos, OPENB_LS);
    struct sched_request r = openb_sched_request(&pods.items[1]);
    assert_int_equal(r.device_count, 1);
    assert_int_equal(r.device_milli, 470);
    assert_int_equal(r.gpu_type_count, 2); /* the duplicate is gone */
    assert_string_equal(r.gpu_types[0], "T4");
    assert_string_equal(r.gpu_types[1], "P100");
    assert_int_equal(openb_pod_milli(&pods.items[2]), 8000);
    assert_int_equal(openb_pod_milli(&pods.items[1]), 470);
}

static void a_short_list_of_columns_is_enough(void **state)
{
    _cleanup_(openb_pods_free) struct openb_pods pods = {0};
    write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np0,4000,1,1,1000\n");
    assert_int_equal(openb_load_pods(path, &pods, NULL), 0);
    assert_int_equal(pods.count, 1);
    assert_int_equal(pods.items[0].model_count, 0);
    assert_int_equal(pods.items[0].created_s, -1);
    assert_int_equal(pods.items[0].qos, OPENB_QOS_UNKNOWN);
}

static void bad_rows_are_refused_with_their_line(void **state)
{
    static const char *const nodes_bad[] = {"n1,96000,2048,8,", "n1,96000,2048,0,G2",
                                            "n1,96000,2048,65,G2", "n1,0,2048,8,G2"};
    static const char *const pods_bad[] = {"p,1,1,2,500,",  "p,1,1,0,10,",      "p,1,1,1,0,",
                                           "p,1,1,1,1001,", "p,1,1,1,10,T4||P", "p,-1,1,0,0,"};
    char text[256];
    for (size_t i = 0; i < ARRAY_LEN(nodes_bad); i++) {
        struct openb_nodes nodes;
        struct err err = ERR_INIT;
        snprintf(text, sizeof(text), "sn,cpu_milli,memory_mib,gpu,model\nn0,1,1,0,\n%s\n",
                 nodes_bad[i]);
        write_text(text);
        assert_true(openb_load_nodes(path, &nodes, &err) < 0);
        assert_non_null(strstr(err.text, ":3'"));
    }
    for (size_t i = 0; i < ARRAY_LEN(pods_bad); i++) {
        struct openb_pods pods;
        struct err err = ERR_INIT;
        snprintf(text, sizeof(text),
                 "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1,1,0,0,\n%s\n",
                 pods_bad[i]);
        write_text(text);
        assert_true(openb_load_pods(path, &pods, &err) < 0);
        assert_non_null(strstr(err.text, ":3'"));
    }
}

static void a_missing_column_is_named(void **state)
{
    struct openb_nodes nodes;
    struct err err = ERR_INIT;
    write_text("sn,cpu_milli,memory_mib,gpu\nn0,1,1,0\n");
    assert_int_equal(openb_load_nodes(path, &nodes, &err), -ENOENT);
    assert_non_null(strstr(err.text, "model"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(nodes_become_what_the_scheduler_takes, make_file,
                                        drop_file),
        cmocka_unit_test_setup_teardown(pods_become_requests, make_file, drop_file),
        cmocka_unit_test_setup_teardown(a_short_list_of_columns_is_enough, make_file, drop_file),
        cmocka_unit_test_setup_teardown(bad_rows_are_refused_with_their_line, make_file, drop_file),
        cmocka_unit_test_setup_teardown(a_missing_column_is_named, make_file, drop_file),
    };
    return cmocka_run_group_tests_name("sim/openb", tests, NULL, NULL);
}
