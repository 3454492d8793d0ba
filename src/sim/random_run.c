/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/random_run.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/log.h"
#include "sim/history.h"

static bool seed_holds(const struct history_options *options, FILE *out,
                       struct history_result *ret_result)
{
    struct history_result again = {0};
    if (history_run(options, out, ret_result) < 0 || history_run(options, out, &again) < 0)
        return false;
    if (again.hash == ret_result->hash)
        return true;
    fprintf(out, "# seed %" PRIu64 ": the second run differs\n", options->seed);
    return false;
}

int sim_random_run(const struct sim_random_options *options, FILE *out)
{
    int status = 0;
    log_set_level(LOG_LEVEL_NONE); /* full disks are part of the plan */
    fprintf(out, "1..%" PRId64 "\n", options->seeds);
    for (int64_t i = 0; i < options->seeds; i++) {
        struct history_options h = {(uint64_t)(options->first + i), (int32_t)options->steps};
        struct history_result r = {0};
        bool ok = seed_holds(&h, out, &r);
        fprintf(out,
                "%s %" PRId64 " - seed %" PRIu64 ": %u submitted, %u refused, %u succeeded, "
                "%u failed, %u cancelled, %" PRIu64 " allocations, %u crashes, %u disk faults\n",
                ok ? "ok" : "not ok", i + 1, h.seed, r.submitted, r.refused, r.succeeded, r.failed,
                r.cancelled, r.allocations, r.crashes, r.disk_faults);
        fflush(out);
        status |= !ok;
    }
    return status;
}
