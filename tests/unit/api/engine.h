/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An engine without processes, for tests of the API: a start is a start at once, a stop an exit
 * with 143, everything else happens when the test says so. Thread-safe.
 */
#ifndef ALLOT_TESTS_API_ENGINE_H
#define ALLOT_TESTS_API_ENGINE_H

#include <stdbool.h>

#include "core/engine_port.h"

struct engine_double;

extern const struct engine_ops engine_double_ops;

/* With one node "n1" of 8 simulated H100, reported at reconcile. */
struct engine_double *engine_double_create(void);
void engine_double_set_host(struct engine_double *e, struct engine_host host);
void engine_double_destroy(struct engine_double *e);

/* Appends to the log of an attempt, forgets its beginning, ends it (false: it does not run). */
void engine_double_log(struct engine_double *e, const char *intent, const char *data);
void engine_double_rotate(struct engine_double *e, const char *intent, int64_t begin);
/* Says READINGS of devices of NODE, AGE_MS ago. */
void engine_double_read(struct engine_double *e, const char *node,
                        const struct model_reading *readings, int32_t count, int64_t age_ms);
bool engine_double_exit(struct engine_double *e, const char *intent, int code);

#endif
