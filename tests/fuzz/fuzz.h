/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One fuzz target: a function that takes any bytes and must not crash, leak or break the
 * properties that it checks with FUZZ_REQUIRE. libFuzzer calls it in `make fuzz`; replay.c calls
 * it in the normal tests with the files of the corpus.
 */
#ifndef ALLOT_TESTS_FUZZ_FUZZ_H
#define ALLOT_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* The target. DATA is not terminated. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_REQUIRE(property)                                                     \
    do {                                                                           \
        if (!(property)) {                                                         \
            fprintf(stderr, "%s:%d: broken: %s\n", __FILE__, __LINE__, #property); \
            abort();                                                               \
        }                                                                          \
    } while (0)

#endif
