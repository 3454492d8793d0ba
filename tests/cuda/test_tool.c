/* SPDX-License-Identifier: Apache-2.0 */
/* cuda-double: what scripts make machines with. */
#include <string.h>
#include <sys/stat.h>

#include "harness.h"

static char file[] = "/tmp/cuda-double-tool-XXXXXX";

/* The tool with WORDS after the name of the file, its output into TEXT; its exit status. */
static int tool(const char *verb, const char *words, char *text, size_t bytes)
{
    char line[512];
    size_t length;
    FILE *pipe;

    snprintf(line, sizeof(line), "%s %s %s %s 2>&1", TOOL, verb, file, words);
    pipe = popen(line, "r");
    assert_non_null(pipe);
    length = fread(text, 1, bytes - 1, pipe);
    text[length] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

static void test_create_and_show(void **state)
{
    struct dbl_shared *sh;
    char text[2048];

    assert_int_equal(tool("create",
                          "--devices 2 --memory 40GiB --sms 72 --mode mps --clock virtual"
                          " --context 200MiB --quantum 5000000 --name 'Simulated L40S'",
                          text, sizeof(text)),
                     0);
    assert_int_equal(dbl_open(file, &sh), 0);
    assert_int_equal(dbl_config(sh)->devices, 2);
    assert_int_equal(dbl_config(sh)->mode, DBL_MPS);
    assert_int_equal(dbl_config(sh)->quantum_ns, 5000000);
    assert_int_equal(dbl_info(sh, 1)->memory, 40 * GIB);
    assert_string_equal(dbl_info(sh, 1)->name, "Simulated L40S");
    assert_int_equal(tool("create", "", text, sizeof(text)), 2); /* it exists */
    assert_int_equal(tool("advance", "250", text, sizeof(text)), 0);
    assert_int_equal(dbl_now(sh), 1000000250);
    assert_int_equal(tool("fail", "pool 2 2", text, sizeof(text)), 0);
    assert_int_equal(sh->fail_after[DBL_FAIL_POOL], 2);
    assert_int_equal(tool("show", "", text, sizeof(text)), 0);
    assert_non_null(strstr(text, "mode mps, clock 1000000250 ns, 0 processes"));
    assert_non_null(strstr(text, "device 1 GPU-"));
}

static void test_devices_of_their_own_kind(void **state)
{
    char text[2048];

    unlink(file);
    assert_int_equal(tool("create",
                          "--context 100MiB"
                          " --device GPU-00112233-4455-6677-8899-aabbccddeeff,85899345920,H100"
                          " --device 'GPU-10112233-4455-6677-8899-aabbccddeeff,1048576,L4 small'",
                          text, sizeof(text)),
                     0);
    assert_int_equal(tool("show", "", text, sizeof(text)), 0);
    assert_non_null(strstr(text, "device 0 GPU-00112233-4455-6677-8899-aabbccddeeff H100: 0 of "
                                 "85899345920 bytes"));
    assert_non_null(strstr(text, "device 1 GPU-10112233-4455-6677-8899-aabbccddeeff L4 small: 0 of "
                                 "1048576 bytes"));
    unlink(file);
    assert_int_equal(tool("create", "--device GPU-1,5,H100", text, sizeof(text)), 2);
    assert_int_equal(tool("create",
                          "--device GPU-00112233-4455-6677-8899-aabbccddeeff,0,H100", text,
                          sizeof(text)),
                     2);
}

static void test_says_what_is_wrong(void **state)
{
    struct stat status;
    char text[2048];

    unlink(file);
    assert_int_equal(tool("create", "--mode fast", text, sizeof(text)), 2);
    assert_non_null(strstr(text, "'--mode'"));
    assert_int_equal(tool("create", "--memory 10parsec", text, sizeof(text)), 2);
    assert_int_equal(tool("create", "--devices 17", text, sizeof(text)), 2);
    assert_int_equal(tool("create", "--devices", text, sizeof(text)), 2);
    assert_int_equal(stat(file, &status), -1);
    assert_int_equal(tool("show", "", text, sizeof(text)), 2);
    assert_int_equal(tool("dance", "", text, sizeof(text)), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_and_show),
        cmocka_unit_test(test_devices_of_their_own_kind),
        cmocka_unit_test(test_says_what_is_wrong),
    };
    int failed;

    close(mkstemp(file));
    unlink(file);
    failed = cmocka_run_group_tests_name("cuda tool", tests, NULL, NULL);
    unlink(file);
    return failed;
}
