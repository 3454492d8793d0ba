/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Amounts of the resources that quotas count, as people read and write them.
 *
 * In JSON, GPUs and cores are exact numbers (0.25), memory is text ("512GiB"), and
 * MODEL_UNLIMITED is null. Amounts that come in are bounded, so that sums over the teams and
 * tasks that fit into a server stay inside 64 bits.
 */
#ifndef ALLOT_MODEL_AMOUNT_H
#define ALLOT_MODEL_AMOUNT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/json_writer.h"
#include "model/team.h"

#define MODEL_AMOUNT_MILLI_MAX 1000000000000LL /* 10^9 GPUs or cores */
#define MODEL_AMOUNT_BYTES_MAX (1LL << 53)     /* 8 PiB */

/* "gpu", "cpu", "memory": the words of the JSON form; static. */
const char *model_resource_name(enum model_resource r);

/* The bare quantity: "0.25", "10GiB"; "unlimited". TEXT holds QTY_TEXT_MAX bytes, returned. */
const char *model_amount_format(enum model_resource r, int64_t amount, char *text);

/* With its noun: "2 GPUs", "1 GPU", "0.25 GPU", "4 cores", "10GiB of memory"; into ARENA. */
const char *model_amount_describe(enum model_resource r, int64_t amount, struct arena *arena);

/* Key and value inside an object. */
void model_amount_encode(struct json_writer *w, const char *key, enum model_resource r,
                         int64_t amount);

/* A milli amount as an exact JSON number. */
void model_milli_encode(struct json_writer *w, const char *key, int64_t milli);

#endif
