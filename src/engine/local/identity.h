/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The user that a team's tasks run as.
 *
 * Each team has a number of its own in a range that no account uses, so that the files of one
 * team's tasks are closed to another's even where both can be seen. It is computed from the
 * team's name: two teams may share a number (1 in 65,536); what keeps tasks apart is their
 * namespaces, this is the second line.
 */
#ifndef ALLOT_ENGINE_LOCAL_IDENTITY_H
#define ALLOT_ENGINE_LOCAL_IDENTITY_H

#include <stdint.h>

#define IDENTITY_COUNT 65536

/* BASE + 0..IDENTITY_COUNT-1. TEAM may be NULL. When the server is not root: its own user. */
uint32_t identity_of_team(uint32_t base, const char *team);

#endif
