/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plan of `allot apply`: documents, checked, in the order in which they are applied.
 */
#ifndef ALLOT_CLI_APPLY_H
#define ALLOT_CLI_APPLY_H

#include "base/err.h"
#include "base/vec.h"
#include "cli/documents.h"
#include "model/manifest.h"

struct cli;
struct model_team;

struct cli_apply_item {
    const struct cli_document *document;
    struct model_manifest manifest;
    const struct model_team *team; /* what a team becomes; NULL for a workload */
    const char *workload_team;     /* NULL for a team */
};

/* In the order of application. */
struct cli_apply_plan VEC_BODY(struct cli_apply_item);

/*
 * Decodes and checks every document, then orders: teams before workloads, a team after its parent
 * where that is in DOCS too, otherwise as given. Ignored keys are reported on cli->err. Two
 * documents for one team are refused. -EINVAL with ERR naming the document. RET_PLAN points into
 * DOCS; release it with vec_done().
 */
int cli_apply_prepare(struct cli *cli, const struct cli_documents *docs,
                      struct cli_apply_plan *ret_plan, struct err *err);

#endif
