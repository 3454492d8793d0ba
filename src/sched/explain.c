/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "sched/gate.h"
#include "sched/queue.h"
#include "sched/workload.h"

int sched_explain(struct sched *s, uint64_t workload, int64_t now_ms,
                  struct sched_explanation *ret_explanation)
{
    struct workload *w = workload_find(s, workload);
    if (w == NULL)
        return -ENOENT;
    (void)now_ms;
    struct sched_explanation e = {.reason = SCHED_REASON_NO_CAPACITY};
    if (w->place != PLACE_NONE && w->place != PLACE_BACKOFF)
        e.position = queue_position(s, w, &e.pending);
    *ret_explanation = e;
    return 0;
}
