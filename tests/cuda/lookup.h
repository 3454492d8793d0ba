/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuGetProcAddress finds, generated from versions.list: rows in the order of names, those of
 * one name in the order of versions. Constant.
 */
#ifndef ALLOT_TESTS_CUDA_LOOKUP_H
#define ALLOT_TESTS_CUDA_LOOKUP_H

#include <stdbool.h>

struct lookup_row {
    const char *name;   /* what is asked for */
    const char *symbol; /* what is exported */
    int version;
    bool per_thread;
    void *fn;
};

extern const struct lookup_row lookup_rows[];
extern const unsigned lookup_row_count;

#endif
