/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot-supervise FOLDER: started by the server, once per task attempt, with the descriptors of
 * control.h. The same program is the init process inside the sandbox ("inside UID GID"), where
 * it is executed through a descriptor, so that no path of the machine's has to exist in an
 * image. It is linked statically for the same reason.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <fcntl.h>

#include "engine/local/control.h"
#include "engine/local/supervise/inside.h"
#include "engine/local/supervise/supervise.h"

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], INSIDE_ARGUMENT) == 0)
        return inside_main((uid_t)strtoul(argv[2], NULL, 10), (gid_t)strtoul(argv[3], NULL, 10));
    if (argc != 2 || argv[1][0] != '/' || fcntl(CONTROL_FD_ENGINE, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(CONTROL_FD_LAUNCH, F_SETFD, FD_CLOEXEC) < 0) {
        fprintf(stderr, "allot-supervise: this program is started by 'allot server'\n");
        return 2;
    }
    return supervise_run(argv[1], CONTROL_FD_ENGINE, CONTROL_FD_LAUNCH);
}
