/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"

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

const char *cli_verb_elsewhere(const char *verb)
{
    static const struct {
        const char *elsewhere, *here;
    } verbs[] = {
        {"squeue", "ps"},      {"list", "ps"},       {"ls", "ps"},          {"get", "ps"},
        {"jobs", "ps"},        {"queue", "ps"},      {"status", "top"},     {"htop", "top"},
        {"nvidia-smi", "top"}, {"sbatch", "submit"}, {"qsub", "submit"},    {"srun", "run"},
        {"create", "apply"},   {"scancel", "stop"},  {"cancel", "stop"},    {"delete", "stop"},
        {"kill", "stop"},      {"rm", "stop"},       {"qdel", "stop"},      {"describe", "show"},
        {"inspect", "show"},   {"scontrol", "show"}, {"attach", "logs -f"}, {"ssh", "exec"},
        {"shell", "exec"},     {"sinfo", "node"},    {"nodes", "node"},     {"sacct", "usage"},
        {"explain", "why"},
    };

    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i].elsewhere, verb) == 0)
            return verbs[i].here;
    return NULL;
}

const char *cli_option_elsewhere(const char *command, const char *option)
{
    static const struct {
        const char *command, *option, *remedy; /* command NULL = run and submit */
    } options[] = {
        {"logs", "since",
         "lines carry no times: --tail N shows the last, 'allot events ID' tells when what "
         "happened"},
        {"logs", "timestamps", "'allot events ID' tells when what happened"},
        {NULL, "gres", "use --gpus N, or --gpu SHARE for part of one"},
        {NULL, "ntasks", "use --tasks N"},
        {NULL, "nodes", "use --tasks N: each task is placed by itself"},
        {NULL, "time", "use --max-run-time TIME"},
        {NULL, "job-name", "use --name NAME"},
        {NULL, "partition", "use --team TEAM, and --gpu-type TYPE"},
        {NULL, "interactive", "use 'allot exec ID -- bash' in a task that runs"},
        {NULL, "i", "use 'allot exec ID -- bash' in a task that runs"},
        {NULL, "tty", "use 'allot exec ID -- bash' in a task that runs"},
    };
    bool runs = strcmp(command, "run") == 0 || strcmp(command, "submit") == 0;

    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (strcmp(options[i].option, option) == 0 &&
            (options[i].command ? strcmp(options[i].command, command) == 0 : runs))
            return options[i].remedy;
    return NULL;
}
