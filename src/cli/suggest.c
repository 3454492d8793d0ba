/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include <stdbool.h>
#include <string.h>

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;

    return m < c ? m : c;
}

size_t cli_edit_distance(const char *a, const char *b)
{
    size_t rows[3][CLI_SUGGEST_MAX + 1];
    size_t *before = rows[0], *last = rows[1], *now = rows[2];
    size_t la = strlen(a), lb = strlen(b);

    if (la > CLI_SUGGEST_MAX || lb > CLI_SUGGEST_MAX)
        return CLI_SUGGEST_MAX;
    memset(rows, 0, sizeof(rows));
    for (size_t j = 0; j <= lb; j++)
        last[j] = j;
    for (size_t i = 1; i <= la; i++) {
        size_t *spare = before;

        now[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            bool same = a[i - 1] == b[j - 1];

            now[j] = min3(last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min3(now[j], before[j - 2] + 1, now[j]);
        }
        before = last;
        last = now;
        now = spare;
    }
    return last[lb];
}

void cli_suggestion_offer(struct cli_suggestion *s, const char *candidate)
{
    size_t typed = strlen(s->word);
    size_t distance = cli_edit_distance(s->word, candidate);
    bool prefix = typed >= 2 && strncmp(s->word, candidate, typed) == 0;
    size_t allowed = typed / 3 > 0 ? typed / 3 : 1;

    if (prefix)
        distance = 1;
    else if (distance > allowed || typed < 2)
        return;
    if (s->best == NULL || distance < s->distance) {
        s->best = candidate;
        s->distance = distance;
    }
}
