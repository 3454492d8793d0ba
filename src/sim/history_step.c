/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history_step.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/qty.h"
#include "base/strbuf.h"

#define DAY_MS 86400000
#define NUMBER_MAX 1000000000 /* of a workload */
#define MILLI_MAX 1000000
#define CPU_MAX 1000000

struct field {
    const char *name;
    uint16_t at; /* offset in the step */
    int32_t min, max;
    const char *const *words; /* values by name, or NULL */
};

struct form {
    const char *word;
    struct field fields[15]; /* ends with a name of NULL */
};

#define AT(member) offsetof(struct history_step, member)

static const char *const no_yes[] = {"no", "yes"};
static const char *const classes[] = {"production", "training", "development", "batch"};
static const char *const types[] = {"H100", "A100"};
/* both: A100 first, then H100 */
static const char *const accepts[] = {"H100", "A100", "any", "both"};
static const char *const sorts[] = {"job", "suspends", "notebook"};
static const char *const hinders[] = {"suspend", "resume", "driver"};
static const char *const hows[] = {"exit", "lost"};
static const char *const points[] = {"before", "durable", "during", "after"};
static const char *const errors[] = {"enospc", "eio", "erofs"};
static const char *const asks[] = {
    "gpus-1",  "gpus-2",    "gpus-4",       "gpu-0.25",    "gpu-0.5",
    "gpu-0.7", "gpu-2x0.5", "memory-10gib", "mig-1g.10gb", "cpu-4",
};

static const char *const ask_json[HISTORY_ASKS] = {
    [HISTORY_GPUS_1] = "\"gpus\":1,\"cpu\":\"500m\",\"memory\":\"1GiB\"",
    [HISTORY_GPUS_2] = "\"gpus\":2,\"cpu\":2",
    [HISTORY_GPUS_4] = "\"gpus\":4,\"cpu\":\"500m\"",
    [HISTORY_QUARTER] = "\"gpu\":0.25",
    [HISTORY_HALF] = "\"gpu\":0.5,\"cpu\":\"100m\"",
    [HISTORY_SEVEN_TENTHS] = "\"gpu\":0.7,\"memory\":\"4GiB\"",
    [HISTORY_TWO_HALVES] = "\"gpu\":0.5,\"gpu_count\":2",
    [HISTORY_MEMORY] = "\"gpu_memory\":\"10GiB\"",
    [HISTORY_SLICE] = "\"mig\":\"1g.10gb\"",
    [HISTORY_CPU] = "\"cpu\":4",
};

_Static_assert(sizeof(asks) / sizeof(asks[0]) == HISTORY_ASKS, "one name an ask");

static const struct form forms[HISTORY_KINDS] = {
    [HISTORY_NODE] = {"node",
                      {{"node", AT(node.node), 0, HISTORY_NODES_MAX - 1},
                       {"devices", AT(node.devices), 0, 64},
                       {"slices", AT(node.slices), 0, 1, no_yes},
                       {"memory_gib", AT(node.memory_gib), 1, 1024},
                       {"cpu", AT(node.cpu), 1, CPU_MAX},
                       {"type", AT(node.type), 0, HISTORY_TYPES - 1, types}}},
    [HISTORY_TEAM] = {"team",
                      {{"team", AT(team.team), 0, HISTORY_TEAMS_MAX - 1},
                       {"parent", AT(team.parent), -1, HISTORY_TEAMS_MAX - 1},
                       {"guarantee", AT(team.guarantee), 0, MILLI_MAX},
                       {"limit", AT(team.limit), -1, MILLI_MAX},
                       {"cpu_limit", AT(team.cpu_limit), -1, CPU_MAX},
                       {"weight", AT(team.weight), 0, 1000},
                       {"priority", AT(team.priority), 0, 1000},
                       {"type", AT(team.type), 0, HISTORY_TYPES - 1, types},
                       {"type_guarantee", AT(team.type_guarantee), -1, MILLI_MAX},
                       {"type_limit", AT(team.type_limit), -1, MILLI_MAX}}},
    [HISTORY_DISSOLVE] = {"dissolve", {{"team", AT(team.team), 0, HISTORY_TEAMS_MAX - 1}}},
    [HISTORY_SUBMIT] = {"submit",
                        {{"w", AT(submit.w), 0, NUMBER_MAX},
                         {"count", AT(submit.count), 1, 100},
                         {"team", AT(submit.team), 0, HISTORY_TEAMS_MAX - 1},
                         {"class", AT(submit.class_), 0, 3, classes},
                         {"priority", AT(submit.priority), -100, 100},
                         {"tasks", AT(submit.tasks), 1, 100},
                         {"min", AT(submit.min), 1, 100},
                         {"ask", AT(submit.ask), 0, HISTORY_ASKS - 1, asks},
                         {"retries", AT(submit.retries), 0, 100},
                         {"grace", AT(submit.grace), 0, DAY_MS},
                         {"limit", AT(submit.limit), 0, DAY_MS},
                         {"protect", AT(submit.protect), 0, DAY_MS},
                         {"accept", AT(submit.accept), 0, HISTORY_ACCEPT_BOTH, accepts},
                         {"sort", AT(submit.sort), 0, HISTORY_NOTEBOOK, sorts}}},
    [HISTORY_CANCEL] = {"cancel",
                        {{"w", AT(cancel.w), 0, NUMBER_MAX},
                         {"grace", AT(cancel.grace), -1, DAY_MS}}},
    [HISTORY_FINISH] = {"finish",
                        {{"w", AT(finish.w), 0, NUMBER_MAX},
                         {"task", AT(finish.task), 0, 99},
                         {"code", AT(finish.code), 0, 255},
                         {"how", AT(finish.how), 0, 1, hows}}},
    [HISTORY_REFUSE] = {"refuse", {{"lasting", AT(refuse.lasting), 0, 1, no_yes}}},
    [HISTORY_DRAIN] = {"drain",
                       {{"node", AT(drain.node), 0, HISTORY_NODES_MAX - 1},
                        {"drained", AT(drain.flag), 0, 1, no_yes}}},
    [HISTORY_LOSE] = {"lose",
                      {{"node", AT(lose.node), 0, HISTORY_NODES_MAX - 1},
                       {"dies", AT(lose.dies), 0, 1, no_yes}}},
    [HISTORY_RETURN] = {"return", {{"node", AT(lose.node), 0, HISTORY_NODES_MAX - 1}}},
    [HISTORY_TIME] = {"time", {{"ms", AT(time.ms), 0, DAY_MS}}},
    [HISTORY_COMMIT] = {"commit", {{0}}},
    [HISTORY_DISK] = {"disk", {{"error", AT(disk.error), 0, 2, errors}}},
    [HISTORY_CRASH] = {"crash",
                       {{"at", AT(crash.at), 0, 3, points},
                        {"calls", AT(crash.calls), 0, 1000},
                        {"reboot", AT(crash.reboot), 0, 1, no_yes}}},
    [HISTORY_LATE] = {"late", {{"ms", AT(time.ms), 0, DAY_MS}}},
    [HISTORY_REPEAT] = {"repeat", {{"ms", AT(time.ms), 0, DAY_MS}}},
    [HISTORY_REORDER] = {"reorder", {{0}}},
    [HISTORY_WALL] = {"wall", {{"ms", AT(time.ms), -DAY_MS, DAY_MS}}},
    [HISTORY_REST] = {"rest", {{0}}},
    [HISTORY_SUSPEND] = {"suspend", {{"w", AT(cancel.w), 0, NUMBER_MAX}}},
    [HISTORY_RESUME] = {"resume", {{"w", AT(cancel.w), 0, NUMBER_MAX}}},
    [HISTORY_CALL] = {"call", {{"w", AT(cancel.w), 0, NUMBER_MAX}}},
    [HISTORY_HINDER] = {"hinder", {{"what", AT(hinder.what), 0, 2, hinders}}},
};

const char *history_type_name(enum history_type type)
{
    return types[type];
}

const char *history_ask_json(enum history_ask ask)
{
    return ask_json[ask];
}

int history_disk_errno(int32_t error)
{
    static const int numbers[] = {-ENOSPC, -EIO, -EROFS};

    return numbers[error];
}

static int32_t *value_of(struct history_step *step, const struct field *f)
{
    return (int32_t *)((char *)step + f->at);
}

void history_step_format(const struct history_step *step, char *text)
{
    const struct form *form = &forms[step->kind];
    int at = snprintf(text, HISTORY_LINE_MAX, "%s", form->word);

    for (const struct field *f = form->fields; f->name; f++) {
        int32_t v = *value_of((struct history_step *)step, f);
        size_t left = HISTORY_LINE_MAX - (size_t)at;

        if (f->words)
            at += snprintf(text + at, left, " %s=%s", f->name, f->words[v]);
        else
            at += snprintf(text + at, left, " %s=%d", f->name, v);
    }
}

static int parse_word(const struct field *f, const char *text, int32_t *ret, struct err *err)
{
    _cleanup_strbuf_ struct strbuf allowed = STRBUF_INIT;

    for (int32_t i = f->min; i <= f->max; i++) {
        if (strcmp(f->words[i], text) == 0) {
            *ret = i;
            return 0;
        }
        strbuf_addf(&allowed, "%s%s", i > f->min ? ", " : "", f->words[i]);
    }
    return err_set(err, -EINVAL, ERR_INVALID, f->name, NULL, "%s '%.40s' is not one of %s", f->name,
                   text, strbuf_str(&allowed));
}

static int parse_number(const struct field *f, const char *text, int32_t *ret, struct err *err)
{
    bool negative = text[0] == '-';
    int64_t v;

    if (qty_parse_int(text + negative, &v, NULL) < 0 || v > INT32_MAX ||
        (negative ? -v : v) < f->min || (negative ? -v : v) > f->max)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, f->name, NULL,
                       "%s '%.40s' is not a number from %d to %d", f->name, text, f->min, f->max);
    *ret = (int32_t)(negative ? -v : v);
    return 0;
}

static int parse_field(const struct form *form, char *text, struct history_step *step,
                       uint32_t *seen, struct err *err)
{
    char *value = strchr(text, '=');

    if (value)
        *value++ = '\0';
    for (const struct field *f = form->fields; f->name; f++) {
        uint32_t bit = 1U << (f - form->fields);

        if (value == NULL || strcmp(f->name, text) != 0)
            continue;
        if (*seen & bit)
            return err_set(err, -EINVAL, ERR_INVALID, f->name, NULL, "field '%s' comes twice",
                           f->name);
        *seen |= bit;
        return f->words ? parse_word(f, value, value_of(step, f), err)
                        : parse_number(f, value, value_of(step, f), err);
    }
    return err_set(err, -EINVAL, ERR_UNKNOWN_FIELD, NULL, NULL, "'%s' has no field '%.40s'",
                   form->word, text);
}

static int require_all(const struct form *form, uint32_t seen, struct err *err)
{
    for (const struct field *f = form->fields; f->name; f++)
        if (!(seen & (1U << (f - form->fields))))
            return err_set(err, -EINVAL, ERR_MISSING, f->name, NULL, "'%s' lacks field '%s'",
                           form->word, f->name);
    return 0;
}

static const struct form *form_of(const char *word)
{
    for (size_t k = 0; word && k < HISTORY_KINDS; k++)
        if (strcmp(forms[k].word, word) == 0)
            return &forms[k];
    return NULL;
}

int history_step_parse(const char *line, struct history_step *ret_step, struct err *err)
{
    char copy[HISTORY_LINE_MAX], *rest = NULL, *word;
    struct history_step step = {0};
    const struct form *form;
    uint32_t seen = 0;
    int r = 0;

    if (strlen(line) >= sizeof(copy))
        return err_set(err, -EINVAL, ERR_TOO_LARGE, NULL, NULL, "the line is too long");
    memcpy(copy, line, strlen(line) + 1);
    word = strtok_r(copy, " \t", &rest);
    form = form_of(word);
    if (form == NULL)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "there is no step '%.40s'",
                       word ? word : "");
    step.kind = (enum history_kind)(form - forms);
    while (r == 0 && (word = strtok_r(NULL, " \t", &rest)) != NULL)
        r = parse_field(form, word, &step, &seen, err);
    if (r == 0)
        r = require_all(form, seen, err);
    if (r == 0 && step.kind == HISTORY_SUBMIT && step.submit.min > step.submit.tasks)
        r = err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "min", NULL, "min is larger than tasks");
    if (r == 0)
        *ret_step = step;
    return r;
}

int history_steps_read(FILE *in, struct history_steps *steps, struct err *err)
{
    char line[HISTORY_LINE_MAX + 2];

    for (int number = 1; fgets(line, sizeof(line), in); number++) {
        struct history_step step;
        struct err why = ERR_INIT;
        size_t blank;

        if (strchr(line, '\n') == NULL && !feof(in))
            return err_set(err, -EINVAL, ERR_TOO_LARGE, NULL, NULL, "line %d is too long", number);
        line[strcspn(line, "#\r\n")] = '\0';
        blank = strspn(line, " \t");
        if (line[blank] == '\0')
            continue;
        if (history_step_parse(line, &step, &why) < 0)
            return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "line %d: %s", number, why.text);
        vec_push(steps, step);
    }
    if (ferror(in))
        return err_set(err, -EIO, ERR_UNAVAILABLE, NULL, NULL, "cannot be read");
    return 0;
}
