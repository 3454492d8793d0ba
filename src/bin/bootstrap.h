/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First start: an empty store gets the user "admin" with one token and a team "default".
 *
 * Everything goes through core's commands, like anything a person does, and is repeated safely
 * when a crash came in between. The token's secret is kept in FOLDER/admin-token (mode 0600),
 * because the store has its hash only; when that file is lost the next start makes a new token.
 * A token in the file that was revoked stays so as long as some administrator has another one.
 */
#ifndef ALLOT_BIN_BOOTSTRAP_H
#define ALLOT_BIN_BOOTSTRAP_H

#include "base/err.h"
#include "core/core.h"

/* Core's thread must run. RET_TOKEN is the admin token, to free(), or NULL where the
 * file has none that is good. */
int bootstrap(struct core *core, const struct store_ops *store, void *store_ctx,
              const char *folder, char **ret_token, struct err *err);

#endif
