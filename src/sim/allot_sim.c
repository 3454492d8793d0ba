/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator as a program of its own, for tests that need no server. */
#include "sim/sim.h"

int main(int argc, char **argv)
{
    return sim_main(argc, argv);
}
