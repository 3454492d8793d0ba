/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what on which node: open allocations joined with the workloads that run. Work of
 * teams that the caller does not see is counted, but not named.
 *
 * All is in the arena of the request but for two tables, which api_holders_done() releases; it
 * may be called at any time, also where reading failed.
 *
 *     struct api_holders h = {0};
 *     int r = api_holders_read(call, &h, &err);
 *     for (size_t i = api_holders_first_on(&h, id); i < h.items.len; i++)
 *         if (h.items.items[i].node != id)
 *             break;
 *     api_holders_done(&h);
 */
#ifndef ALLOT_API_HOLDERS_H
#define ALLOT_API_HOLDERS_H

#include <stdbool.h>

#include "api/internal.h"
#include "base/vec.h"

/* A workload that runs. */
struct api_held {
    const char *name, *team;
    int64_t started_ms; /* of this run of it; 0 = not yet */
    int64_t span_ms;    /* how long it may run, or says that it will; 0 = it says nothing */
    bool preemptible;
};

struct api_holder {
    uint64_t node, workload, team;
    int32_t task, gpu_milli;
    const uint16_t *devices;
    int32_t device_count;
    const struct api_held *held; /* NULL: not for the caller's eyes */
};

struct api_holders {
    struct api_call *call;
    VEC(struct api_holder) items; /* by node, then by workload */
    struct map workloads;         /* id -> struct api_held */
    uint64_t last_id;             /* of the page */
    int32_t rows;
};

/* Fills H, which is zeroed, with all that is held now. 0 or a negative errno. */
int api_holders_read(struct api_call *call, struct api_holders *h, struct err *err);
void api_holders_done(struct api_holders *h);
/* Index of the first holder on NODE, by id; where there is none, of any other or the length. */
size_t api_holders_first_on(const struct api_holders *h, uint64_t node);

#endif
