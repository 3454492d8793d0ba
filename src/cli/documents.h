/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of YAML or JSON documents, read for `apply` and `submit`.
 *
 * A path names a file, a folder (its *.yaml, *.yml and *.json, sorted by name, not below), or "-"
 * for standard input. All are read and parsed before anything is done with them. A document
 * remembers where it stood, for messages: "teams.yaml, document 2".
 */
#ifndef ALLOT_CLI_DOCUMENTS_H
#define ALLOT_CLI_DOCUMENTS_H

#include <stddef.h>

#include "base/err.h"
#include "base/vec.h"

struct cli;
struct cli_args;
struct json_object;

struct cli_document {
    const char *path;         /* of the file, in the arena; "standard input" for "-" */
    size_t number;            /* 1-based, in its file */
    struct json_object *json; /* owned */
};

/* In the order of files and of documents in them. */
struct cli_documents VEC_BODY(struct cli_document);

/* Every value of option NAME, in order. RET_DOCS must be released whatever is returned. */
int cli_documents_read(struct cli *cli, const struct cli_args *args, const char *name,
                       struct cli_documents *ret_docs, struct err *err);
void cli_documents_done(struct cli_documents *docs);

/* Puts where DOC stood in front of the text of ERR. */
void cli_documents_locate(const struct cli_document *doc, struct err *err);

#endif
