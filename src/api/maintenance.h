/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the maintenance of a node touches, of what runs there now.
 *
 *     "maintenance_work": [{"workload": 3, "name": "big", "team": "nlp", "outcome": "evicted",
 *                           "ends_at": null}, ...]
 *
 * "ends": by its own limit, or as it expects, before the maintenance begins; "evicted": it will
 * be stopped with its grace then, and wait again; "stays": it is not preemptible, and for its
 * owner to stop. The rules are those of sched/window.h. Work that the caller does not see is
 * left out.
 */
#ifndef ALLOT_API_MAINTENANCE_H
#define ALLOT_API_MAINTENANCE_H

#include "api/holders.h"

struct model_node;

/* "maintenance_work" of N as a member of the object that W is in; empty where no maintenance is
 * to come. */
void api_encode_maintenance_work(const struct api_holders *h, const struct model_node *n,
                                 struct json_writer *w);

#endif
