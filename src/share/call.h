/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calling the agent: the first exchange of allot/share.h, from the side of a process of the task.
 */
#ifndef ALLOT_SHARE_CALL_H
#define ALLOT_SHARE_CALL_H

#include <stdint.h>

#include "allot/share.h"

/*
 * A socket on which the agent has welcomed us after MESSAGE (SHARE_HELLO or SHARE_LOOK), the
 * caller's to close, as are RET_FDS: of the limits and of the counters. An agent that is there but
 * slow is waited for, as a program that is refused its driver ends; one that is not there is not.
 * -ENOENT, -ECONNREFUSED: it is not there. -ETIMEDOUT: it has said nothing for too long. Others as
 * it, or the system, refused.
 */
int share_call(uint32_t message, struct share_welcome *ret_welcome, int ret_fds[2]);

#endif
