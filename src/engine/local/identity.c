/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/identity.h"

#include <string.h>
#include <unistd.h>

#include "base/map.h"

uint32_t identity_of_team(uint32_t base, const char *team)
{
    if (geteuid() != 0)
        return geteuid();
    return base + (team ? (uint32_t)(map_hash(team, strlen(team)) % IDENTITY_COUNT) : 0);
}
