/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry of the simulator for programs: `allot sim scenarios FILE...`, `allot sim random`.
 *
 * It reads files and writes to standard output; it never reads a clock and starts no threads.
 *
 *     return sim_main(argc - 1, argv + 1);  (argv[1] is "sim", argv[2] the subcommand)
 */
#ifndef ALLOT_SIM_SIM_H
#define ALLOT_SIM_SIM_H

/* ARGV[0] is the word `sim`, ARGV[1] the subcommand. Exit status: 0, 1 failed, 2 usage. */
int sim_main(int argc, char **argv);

#endif
