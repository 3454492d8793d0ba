/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Look-ups: every symbol is there under an address of its own, and what a CUDA runtime asks for at
 * its start resolves as lookups.golden says. `test_cuda_lookup --print` writes that file anew.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

#include "harness.h"

#define SYMBOLS_MOST 1024

struct symbols {
    unsigned count;
    char names[SYMBOLS_MOST][64];
    void *at[SYMBOLS_MOST];
};

static struct symbols *load_symbols(void)
{
    struct symbols *symbols = calloc(1, sizeof(*symbols));
    FILE *file = fopen(SYMBOLS_LIST, "re");

    assert_non_null(symbols);
    assert_non_null(file);
    while (symbols->count < SYMBOLS_MOST &&
           fscanf(file, "%63s", symbols->names[symbols->count]) == 1) {
        symbols->at[symbols->count] = dlsym(RTLD_DEFAULT, symbols->names[symbols->count]);
        symbols->count++;
    }
    fclose(file);
    return symbols;
}

static const char *name_of(const struct symbols *symbols, void *at)
{
    for (unsigned i = 0; at != NULL && i < symbols->count; i++)
        if (symbols->at[i] == at)
            return symbols->names[i];
    return "-";
}

static void test_all_are_there(void **state)
{
    struct symbols *symbols = load_symbols();

    assert_int_equal(symbols->count, 637);
    for (unsigned i = 0; i < symbols->count; i++) {
        assert_non_null(symbols->at[i]);
        for (unsigned j = 0; j < i; j++)
            assert_ptr_not_equal(symbols->at[i], symbols->at[j]);
    }
    free(symbols);
}

/* One line of the golden file: NAME (or "" for the empty one) VERSION FLAGS SYMBOL. */
static void check_line(const struct symbols *symbols, const char *line, FILE *print)
{
    char name[64], symbol[64];
    uint64_t flags;
    int version, status = -1;
    void *fn = NULL;

    assert_int_equal(sscanf(line, "%63s %d %" SCNu64 " %63s", name, &version, &flags, symbol), 4);
    if (strcmp(name, "\"\"") == 0)
        name[0] = '\0';
    assert_int_equal(cuGetProcAddress_v2(name, &fn, version, flags, &status), CU_OK);
    assert_int_equal(fn != NULL, status == CU_PROC_FOUND);
    if (print != NULL)
        fprintf(print, "%s %d %" PRIu64 " %s\n", name[0] != '\0' ? name : "\"\"", version, flags,
                name_of(symbols, fn));
    else
        assert_string_equal(name_of(symbols, fn), symbol);
}

static int walk_golden(FILE *print)
{
    struct symbols *symbols = load_symbols();
    FILE *file = fopen(LOOKUPS_GOLDEN, "re");
    char line[256];
    int count = 0;

    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (line[0] == '#')
            continue;
        check_line(symbols, line, print);
        count++;
    }
    fclose(file);
    free(symbols);
    return count;
}

static void test_runtime_lookups(void **state)
{
    assert_int_equal(walk_golden(NULL), 440);
}

static void *looked_up(const char *name, int version, uint64_t flags, int *ret_status)
{
    void *fn = NULL;

    assert_int_equal(cuGetProcAddress_v2(name, &fn, version, flags, ret_status), CU_OK);
    return fn;
}

static void test_versions(void **state)
{
    int status;

    assert_ptr_equal(looked_up("cuCtxCreate", 2000, 0, &status), dlsym(NULL, "cuCtxCreate"));
    assert_ptr_equal(looked_up("cuCtxCreate", 11030, 0, &status), dlsym(NULL, "cuCtxCreate_v2"));
    assert_ptr_equal(looked_up("cuCtxCreate", 12040, 0, &status), dlsym(NULL, "cuCtxCreate_v3"));
    assert_ptr_equal(looked_up("cuCtxCreate", 13000, 0, &status), dlsym(NULL, "cuCtxCreate_v4"));
    assert_null(looked_up("cuMemAllocAsync", 11010, 0, &status));
    assert_int_equal(status, CU_PROC_VERSION_NOT_SUFFICIENT);
    assert_null(looked_up("cuMemAllocAsync_ptsz", 13000, 0, &status));
    assert_int_equal(status, CU_PROC_SYMBOL_NOT_FOUND);
    assert_null(looked_up("cuNoSuchThing", 13000, 0, &status));
    assert_int_equal(status, CU_PROC_SYMBOL_NOT_FOUND);
}

static void test_streams(void **state)
{
    void *plain = looked_up("cuLaunchKernel", 13000, CU_PROC_LEGACY_STREAM, NULL);

    assert_ptr_equal(plain, dlsym(NULL, "cuLaunchKernel"));
    assert_ptr_equal(looked_up("cuLaunchKernel", 13000, CU_PROC_PER_THREAD_STREAM, NULL),
                     dlsym(NULL, "cuLaunchKernel_ptsz"));
    /* The variant came in 7.0: who is older gets the legacy one. */
    assert_ptr_equal(looked_up("cuLaunchKernel", 6050, CU_PROC_PER_THREAD_STREAM, NULL), plain);
    assert_ptr_equal(looked_up("cuMemAlloc", 13000, CU_PROC_PER_THREAD_STREAM, NULL),
                     dlsym(NULL, "cuMemAlloc_v2"));
}

static void test_bad_questions(void **state)
{
    void *fn = &fn;

    assert_int_equal(cuGetProcAddress_v2(NULL, &fn, 13000, 0, NULL), CU_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress_v2("cuInit", NULL, 13000, 0, NULL), CU_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress_v2("cuInit", &fn, 13010, 0, NULL), CU_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress_v2("cuInit", &fn, 13000, 4, NULL), CU_INVALID_VALUE);
    assert_int_equal(cuGetProcAddress("cuNoSuchThing", &fn, 13000, 0), CU_NOT_FOUND);
    assert_null(fn);
    assert_int_equal(cuGetProcAddress("cuInit", &fn, 13000, 0), CU_OK);
    assert_ptr_equal(fn, dlsym(NULL, "cuInit"));
}

static void not_simulated(struct dbl_shared *sh)
{
    struct symbols *symbols = load_symbols();
    cu_result (*fn)(void) = NULL;
    unsigned index = 0;

    OK(cuInit(0));
    while (strcmp(symbols->names[index], "cuTexRefCreate") != 0)
        index++;
    memcpy(&fn, &symbols->at[index], sizeof(fn));
    SAME(fn(), CU_NOT_SUPPORTED);
    SAME(fn(), CU_NOT_SUPPORTED);
    SAME(dbl_unsimulated(sh, index), 2);
    free(symbols);
}

static void test_not_simulated(void **state)
{
    on_machine(not_simulated, &dbl_config_default);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_there), cmocka_unit_test(test_runtime_lookups),
        cmocka_unit_test(test_versions),      cmocka_unit_test(test_streams),
        cmocka_unit_test(test_bad_questions), cmocka_unit_test(test_not_simulated),
    };

    if (argc == 2 && strcmp(argv[1], "--print") == 0)
        return walk_golden(stdout) == 440 ? 0 : 1;
    return cmocka_run_group_tests_name("cuda lookup", tests, NULL, NULL);
}
