/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that need more than the command line may know: the server, the simulator, the store. */
#ifndef ALLOT_BIN_COMMANDS_H
#define ALLOT_BIN_COMMANDS_H

#include "cli/command.h"

extern const struct cli_command bin_server;
extern const struct cli_command bin_sim;
extern const struct cli_command bin_export;
extern const struct cli_command bin_quota; /* instead of the command line's own */

#endif
