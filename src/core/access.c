/* SPDX-License-Identifier: Apache-2.0 */
#include "core/internal.h"

#include <errno.h>
#include <string.h>

int core_access_admin(const struct core_actor *actor, const char *what, struct err *err)
{
    if (actor->admin)
        return 0;
    return err_set(err, -EACCES, ERR_FORBIDDEN, NULL, "ask an administrator",
                   "user '%s' may not %s", actor->name, what);
}

int core_access_team(const struct core_actor *actor, const struct core_team *team, struct err *err)
{
    if (actor->admin)
        return 0;
    for (const struct core_team *t = team; t; t = t->parent)
        for (int32_t i = 0; i < actor->team_count; i++)
            if (strcmp(actor->teams[i], t->row.name) == 0)
                return 0;
    return err_set(err, -EACCES, ERR_FORBIDDEN, "team",
                   "ask an administrator to add you to the team",
                   "user '%s' is not a member of team '%s'", actor->name, team->row.name);
}
