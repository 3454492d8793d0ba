/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetProcAddress: by name, version and kind of default stream. */
#include "lookup.h"

#include <string.h>

#include "driver.h"

#define FLAGS (CU_PROC_LEGACY_STREAM | CU_PROC_PER_THREAD_STREAM)

/* The first row of NAME, or NULL. */
static const struct lookup_row *first_of(const char *name)
{
    unsigned low = 0, high = lookup_row_count;

    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (strcmp(lookup_rows[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < lookup_row_count && strcmp(lookup_rows[low].name, name) == 0 ? &lookup_rows[low]
                                                                              : NULL;
}

/*
 * The latest entry that VERSION knows. A program with default streams per thread gets the entry
 * made for that where there is one, else the plain one.
 */
static void *find(const char *name, int version, uint64_t flags, int *ret_status)
{
    const struct lookup_row *end = lookup_rows + lookup_row_count, *plain = NULL, *thread = NULL;
    const struct lookup_row *row = first_of(name);

    *ret_status = row != NULL ? CU_PROC_VERSION_NOT_SUFFICIENT : CU_PROC_SYMBOL_NOT_FOUND;
    for (; row != NULL && row < end && strcmp(row->name, name) == 0; row++) {
        if (row->version > version)
            continue;
        if (row->per_thread)
            thread = row;
        else
            plain = row;
    }
    if ((flags & CU_PROC_PER_THREAD_STREAM) && thread != NULL)
        plain = thread;
    if (plain == NULL)
        return NULL;
    *ret_status = CU_PROC_FOUND;
    return plain->fn;
}

static cu_result look_up(const char *name, void **ret_fn, int version, uint64_t flags,
                         int *ret_status)
{
    int status;

    if (name == NULL || ret_fn == NULL || (flags & ~(uint64_t)FLAGS) || flags == FLAGS ||
        version > CU_VERSION_13_0)
        return CU_INVALID_VALUE;
    *ret_fn = find(name, version, flags, &status);
    if (ret_status != NULL)
        *ret_status = status;
    return CU_OK;
}

cu_result cuGetProcAddress(const char *name, void **ret_fn, int version, uint64_t flags)
{
    int status = CU_PROC_FOUND;
    cu_result result = look_up(name, ret_fn, version, flags, &status);

    return result == CU_OK && status != CU_PROC_FOUND ? CU_NOT_FOUND : result;
}

cu_result cuGetProcAddress_v2(const char *name, void **ret_fn, int version, uint64_t flags,
                              int *ret_status)
{
    return look_up(name, ret_fn, version, flags, ret_status);
}

/* The private tables are the driver's secret: there is none. */
cu_result cuGetExportTable(const void **ret_table, const struct cu_uuid *id)
{
    if (ret_table == NULL || id == NULL)
        return CU_INVALID_VALUE;
    *ret_table = NULL;
    return CU_NOT_FOUND;
}
