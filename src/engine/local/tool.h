/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Running an outside program to its end and keeping what it says.
 */
#ifndef ALLOT_ENGINE_LOCAL_TOOL_H
#define ALLOT_ENGINE_LOCAL_TOOL_H

#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

#define TOOL_FILE_MAX ((uint64_t)64 << 30)

/*
 * Runs ARGV (found in the usual folders, with a minimal environment) and appends its output to
 * OUT (may be NULL), at most 1 MiB of it. Blocks; when CANCEL (-1 = none) becomes readable the
 * program is killed and the answer is -ECANCELED; after LIMIT_MS likewise with -ETIMEDOUT. No file
 * that it writes may grow beyond TOOL_FILE_MAX. -ENOENT: no such program. -EIO: it failed; ERR has
 * the last line of its complaint.
 */
int tool_run(const char *const *argv, int cancel, int64_t limit_ms, struct strbuf *out,
             struct err *err);

#endif
