/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which types of GPU there are, for whoever named one that there is not.
 *
 * Types are compared to the letter: "h100" is not "H100". A quota or a request that names a type
 * which no node has is mostly misspelt, so that what answers it says what there is instead.
 *
 *     struct model_gpu_types known = {.arena = arena};
 *     for each node: model_gpu_types_add(&known, node);
 *     if (!model_gpu_types_have(&known, "h100"))
 *         puts(model_gpu_types_remedy(&known, "h100"));
 *     // did you mean 'H100'? there are: A100, H100
 *
 * All strings are in the arena, the list itself included. Any thread, one at a time.
 */
#ifndef ALLOT_MODEL_GPU_TYPES_H
#define ALLOT_MODEL_GPU_TYPES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"

struct model_node;

struct model_gpu_types {
    struct arena *arena;
    const char **items; /* each once, in order of name */
    size_t count, room;
};

/* Takes the types of N's devices; N need not live on. */
void model_gpu_types_add(struct model_gpu_types *t, const struct model_node *n);
/* Has a node a device of TYPE, to the letter? */
bool model_gpu_types_have(const struct model_gpu_types *t, const char *type);
/* What to do about TYPE, which no node has: names that differ in case alone, and what there is. */
const char *model_gpu_types_remedy(const struct model_gpu_types *t, const char *type);

#endif
