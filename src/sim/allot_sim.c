/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator as a program of its own, for tests that need no server. It knows nothing of the
 * machine: figures of time and memory are 0 here; `allot sim` has them.
 */
#include "sim/sim.h"

static int64_t unknown(void)
{
    return 0;
}

int main(int argc, char **argv)
{
    static const struct sim_meter meter = {unknown, unknown};
    return sim_main(argc, argv, &meter, NULL);
}
