/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, libraries and the functions in them: names with a duration and a width. See double.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

#define MAGIC UINT32_C(0x4d6f6475)
#define TEXT_MOST 65536

struct cu_module {
    uint32_t magic;
    struct cu_ctx *ctx;
    bool open; /* has every function that is asked for */
    uint64_t bytes;
    struct cu_function *functions;
    struct cu_module *next;
};

static struct cu_module *modules; /* under driver.mutex */

static struct cu_function *function_new(struct cu_module *module, const char *name, size_t length)
{
    struct cu_function *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->name = strndup(name, length);
    if (f->name == NULL) {
        free(f);
        return NULL;
    }
    f->magic = DRV_FUNCTION_MAGIC;
    f->module = module;
    f->duration_ns = driver.kernel_ns;
    f->by_grid = true;
    f->block[0] = f->block[1] = f->block[2] = 1;
    f->next = module->functions;
    module->functions = f;
    return f;
}

/* "kernel NAME DURATION SMS" or "module BYTES"; anything else is an image that cannot be read. */
static bool parse_line(struct cu_module *module, const char *line)
{
    char name[128], duration[24], sms[24];
    struct cu_function *f;

    if (sscanf(line, "module %" SCNu64, &module->bytes) == 1)
        return module->bytes < UINT64_C(1) << 40;
    if (sscanf(line, "kernel %127s %23s %23s", name, duration, sms) != 3)
        return false;
    f = function_new(module, name, strlen(name));
    if (f == NULL)
        return false;
    f->by_param = strcmp(duration, "param") == 0;
    f->by_grid = strcmp(sms, "grid") == 0;
    f->duration_ns = f->by_param ? 0 : strtoull(duration, NULL, 10);
    f->sms = f->by_grid ? 0 : (uint32_t)strtoul(sms, NULL, 10);
    return (f->by_param || f->duration_ns > 0) && (f->by_grid || f->sms > 0) &&
           f->duration_ns < UINT64_C(1) << 45 && f->sms <= 1024;
}

static bool is_text(const char *image)
{
    return strncmp(image, "kernel ", 7) == 0 || strncmp(image, "module ", 7) == 0;
}

static bool parse(struct cu_module *module, const char *text)
{
    module->open = !is_text(text);
    while (!module->open && *text != '\0') {
        char line[256];
        size_t length = strcspn(text, "\n");

        if (length >= sizeof(line))
            return false;
        snprintf(line, sizeof(line), "%.*s", (int)length, text);
        if (length > 0 && !parse_line(module, line))
            return false;
        text += length + (text[length] == '\n');
    }
    return true;
}

static void module_free(struct cu_module *module)
{
    while (module->functions != NULL) {
        struct cu_function *f = module->functions;

        module->functions = f->next;
        f->magic = 0;
        free(f->name);
        free(f);
    }
    module->magic = 0;
    free(module);
}

static cu_result load(struct cu_module **ret_module, const char *image)
{
    struct cu_module *module;
    struct cu_ctx *ctx;
    cu_result result = drv_context(&ctx);

    if (result != CU_OK)
        return result;
    if (ret_module == NULL || image == NULL)
        return CU_INVALID_VALUE;
    INJECT(DBL_FAIL_MODULE);
    module = calloc(1, sizeof(*module));
    if (module == NULL)
        return CU_OUT_OF_MEMORY;
    module->magic = MAGIC;
    module->ctx = ctx;
    if (!parse(module, image)) {
        module_free(module);
        return CU_INVALID_IMAGE;
    }
    pthread_mutex_lock(&driver.mutex);
    if (dbl_charge(driver.sh, driver.slot, ctx->real, DBL_MODULE, module->bytes) == 0) {
        module->next = modules;
        modules = module;
    } else {
        result = CU_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&driver.mutex);
    if (result != CU_OK) {
        module_free(module);
        return result;
    }
    *ret_module = module;
    return CU_OK;
}

static void unload(struct cu_module *module)
{
    struct cu_module **at = &modules;

    pthread_mutex_lock(&driver.mutex);
    while (*at != NULL && *at != module)
        at = &(*at)->next;
    if (*at != NULL)
        *at = module->next;
    dbl_refund(driver.sh, driver.slot, module->ctx->real, DBL_MODULE, module->bytes);
    pthread_mutex_unlock(&driver.mutex);
    module_free(module);
}

void drv_module_drop(struct cu_ctx *ctx)
{
    struct cu_module *next;

    for (struct cu_module *module = modules; module != NULL; module = next) {
        next = module->next;
        if (module->ctx == ctx)
            unload(module);
    }
}

cu_result cuModuleLoadData(struct cu_module **ret_module, const void *image)
{
    ENTER();
    return load(ret_module, image);
}

cu_result cuModuleLoadDataEx(struct cu_module **ret_module, const void *image, unsigned count,
                             int *options, void **values)
{
    ENTER();
    return load(ret_module, image);
}

cu_result cuModuleLoadFatBinary(struct cu_module **ret_module, const void *image)
{
    ENTER();
    return load(ret_module, image);
}

cu_result cuModuleLoad(struct cu_module **ret_module, const char *path)
{
    _cleanup_fclose_ FILE *file = NULL;
    _cleanup_free_ char *text = NULL;
    size_t length;

    ENTER();
    if (path == NULL)
        return CU_INVALID_VALUE;
    file = fopen(path, "re");
    if (file == NULL)
        return CU_FILE_NOT_FOUND;
    text = calloc(1, TEXT_MOST + 1);
    if (text == NULL)
        return CU_OUT_OF_MEMORY;
    length = fread(text, 1, TEXT_MOST, file);
    return length < TEXT_MOST || !is_text(text) ? load(ret_module, text) : CU_INVALID_IMAGE;
}

cu_result cuModuleUnload(struct cu_module *module)
{
    ENTER();
    if (module == NULL || module->magic != MAGIC)
        return CU_INVALID_HANDLE;
    unload(module);
    return CU_OK;
}

static cu_result find(struct cu_function **ret_function, struct cu_module *module, const char *name)
{
    struct cu_function *f;

    if (module == NULL || module->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_function == NULL || name == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    for (f = module->functions; f != NULL && strcmp(f->name, name) != 0; f = f->next)
        ;
    if (f == NULL && module->open)
        f = function_new(module, name, strlen(name));
    pthread_mutex_unlock(&driver.mutex);
    if (f == NULL)
        return CU_NOT_FOUND;
    *ret_function = f;
    return CU_OK;
}

cu_result cuModuleGetFunction(struct cu_function **ret_function, struct cu_module *module,
                              const char *name)
{
    ENTER();
    return find(ret_function, module, name);
}

cu_result cuModuleGetFunctionCount(unsigned *ret_count, struct cu_module *module)
{
    unsigned count = 0;

    ENTER();
    if (module == NULL || module->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_count == NULL)
        return CU_INVALID_VALUE;
    pthread_mutex_lock(&driver.mutex);
    for (const struct cu_function *f = module->functions; f != NULL; f = f->next)
        count++;
    pthread_mutex_unlock(&driver.mutex);
    *ret_count = count;
    return CU_OK;
}

cu_result cuModuleGetLoadingMode(int *ret_mode)
{
    ENTER();
    if (ret_mode == NULL)
        return CU_INVALID_VALUE;
    *ret_mode = 2; /* lazily */
    return CU_OK;
}

/* A library is a module of the context that loads it; a kernel is a function of it. */
cu_result cuLibraryLoadData(struct cu_library **ret_library, const void *image, int *jit,
                            void **jit_values, unsigned jit_count, int *options,
                            void **option_values, unsigned option_count)
{
    ENTER();
    return load((struct cu_module **)ret_library, image);
}

cu_result cuLibraryUnload(struct cu_library *library)
{
    return cuModuleUnload((struct cu_module *)library);
}

cu_result cuLibraryGetKernel(struct cu_kernel **ret_kernel, struct cu_library *library,
                             const char *name)
{
    ENTER();
    return find((struct cu_function **)ret_kernel, (struct cu_module *)library, name);
}

cu_result cuLibraryGetModule(struct cu_module **ret_module, struct cu_library *library)
{
    struct cu_module *module = (struct cu_module *)library;

    ENTER();
    if (module == NULL || module->magic != MAGIC)
        return CU_INVALID_HANDLE;
    if (ret_module == NULL)
        return CU_INVALID_VALUE;
    *ret_module = module;
    return CU_OK;
}

cu_result cuKernelGetFunction(struct cu_function **ret_function, struct cu_kernel *kernel)
{
    struct cu_function *f = (struct cu_function *)kernel;

    ENTER();
    if (!drv_function_valid(f))
        return CU_INVALID_HANDLE;
    if (ret_function == NULL)
        return CU_INVALID_VALUE;
    *ret_function = f;
    return CU_OK;
}

cu_result cuFuncGetModule(struct cu_module **ret_module, struct cu_function *function)
{
    ENTER();
    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    if (ret_module == NULL)
        return CU_INVALID_VALUE;
    *ret_module = function->module;
    return CU_OK;
}

cu_result cuFuncGetName(const char **ret_name, struct cu_function *function)
{
    ENTER();
    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    if (ret_name == NULL)
        return CU_INVALID_VALUE;
    *ret_name = function->name;
    return CU_OK;
}

cu_result cuFuncGetAttribute(int *ret_value, int attribute, struct cu_function *function)
{
    static const int values[] = {1024, 0, 0, 0, 32, 80, 80, 0, 49152};

    ENTER();
    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    if (ret_value == NULL || attribute < 0 || attribute > 15)
        return CU_INVALID_VALUE;
    *ret_value = attribute < (int)ARRAY_LEN(values) ? values[attribute] : 0;
    return CU_OK;
}

/* Accepted: nothing of it changes what a kernel costs. */
cu_result cuFuncSetAttribute(struct cu_function *function, int attribute, int value)
{
    ENTER();
    return drv_function_valid(function) ? CU_OK : CU_INVALID_HANDLE;
}

cu_result cuFuncSetCacheConfig(struct cu_function *function, int config)
{
    ENTER();
    return drv_function_valid(function) ? CU_OK : CU_INVALID_HANDLE;
}

cu_result cuFuncSetBlockShape(struct cu_function *function, int x, int y, int z)
{
    ENTER();
    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    if (x <= 0 || y <= 0 || z <= 0)
        return CU_INVALID_VALUE;
    function->block[0] = (uint32_t)x;
    function->block[1] = (uint32_t)y;
    function->block[2] = (uint32_t)z;
    return CU_OK;
}

/* As if threads were all that blocks compete for. */
cu_result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *ret_blocks, struct cu_function *function,
                                                      int block, size_t shared)
{
    ENTER();
    if (!drv_function_valid(function))
        return CU_INVALID_HANDLE;
    if (ret_blocks == NULL || block <= 0)
        return CU_INVALID_VALUE;
    *ret_blocks = block > 1024 ? 0 : 2048 / block > 32 ? 32 : 2048 / block;
    return CU_OK;
}
