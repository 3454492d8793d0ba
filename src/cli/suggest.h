/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": the nearest of some known words, by edit distance (insert, delete, replace,
 * swap of neighbours: optimal string alignment, Damerau 1964). And what the words of other tools
 * are called here.
 */
#ifndef ALLOT_CLI_SUGGEST_H
#define ALLOT_CLI_SUGGEST_H

#include <stddef.h>

/* Longer words are never compared. */
#define CLI_SUGGEST_MAX 40

/* Edits from A to B; CLI_SUGGEST_MAX if either is longer than that. */
size_t cli_edit_distance(const char *a, const char *b);

/* Keeps the best candidate so far: `struct cli_suggestion s = {.word = typed};`, offer each. */
struct cli_suggestion {
    const char *word;
    const char *best; /* NULL = nothing near enough */
    size_t distance;
};

/* CANDIDATE becomes the best if it is nearer, and near enough for a word of that length: a third
 * of its letters, or a prefix. */
void cli_suggestion_offer(struct cli_suggestion *s, const char *candidate);

/* The command that does here what VERB does elsewhere ("squeue": "ps"), or NULL. */
const char *cli_verb_elsewhere(const char *verb);
/* A remedy for an option that other tools have and COMMAND has not ("logs", "since"; a letter is
 * a name of its own), or NULL. */
const char *cli_option_elsewhere(const char *command, const char *option);

#endif
