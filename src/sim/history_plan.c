/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history_plan.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/qty.h"
#include "base/strbuf.h"

static const struct rate {
    const char *name;
    size_t at;
} rates[] = {
    {"crash", offsetof(struct history_plan, crash)},
    {"reboot", offsetof(struct history_plan, reboot)},
    {"disk", offsetof(struct history_plan, disk)},
    {"late", offsetof(struct history_plan, late)},
    {"dup", offsetof(struct history_plan, dup)},
    {"reorder", offsetof(struct history_plan, reorder)},
    {"nodes", offsetof(struct history_plan, nodes)},
    {"clock", offsetof(struct history_plan, clock)},
    {"quota", offsetof(struct history_plan, quota)},
    {"refuse", offsetof(struct history_plan, refuse)},
    {"lost", offsetof(struct history_plan, lost)},
    {"suspend", offsetof(struct history_plan, suspend)},
};

static const struct named {
    const char *name;
    struct history_plan plan;
} plans[] = {
    {"none", {0}},
    {"default", {20, 10, 5, 10, 10, 10, 5, 3, 5, 5, 5, 0}},
    {"heavy", {80, 20, 40, 40, 40, 40, 30, 15, 30, 30, 30, 0}},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int32_t *rate_at(struct history_plan *plan, const struct rate *r)
{
    return (int32_t *)((char *)plan + r->at);
}

static int unknown(const char *word, struct err *err)
{
    _cleanup_strbuf_ struct strbuf known = STRBUF_INIT;

    for (size_t i = 0; i < COUNT(plans); i++)
        strbuf_addf(&known, "%s%s", i ? ", " : "use ", plans[i].name);
    for (size_t i = 0; i < COUNT(rates); i++)
        strbuf_addf(&known, ", %s=N", rates[i].name);
    return err_set(err, -EINVAL, ERR_INVALID, "faults", strbuf_str(&known),
                   "there is no fault or plan '%.40s'", word);
}

static int parse_word(char *word, struct history_plan *plan, struct err *err)
{
    char *value = strchr(word, '=');
    int64_t v;

    for (size_t i = 0; value == NULL && i < COUNT(plans); i++) {
        if (strcmp(plans[i].name, word) == 0) {
            *plan = plans[i].plan;
            return 0;
        }
    }
    if (value)
        *value++ = '\0';
    for (size_t i = 0; value && i < COUNT(rates); i++) {
        if (strcmp(rates[i].name, word) != 0)
            continue;
        if (qty_parse_int(value, &v, NULL) < 0 || v < 0 || v > 1000)
            return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "faults", "use 0 to 1000",
                           "the rate '%.40s' of '%s' is not a number from 0 to 1000", value, word);
        *rate_at(plan, &rates[i]) = (int32_t)v;
        return 0;
    }
    return unknown(word, err);
}

int history_plan_parse(const char *text, struct history_plan *ret_plan, struct err *err)
{
    struct history_plan plan = {0};
    char copy[512], *rest = NULL;
    int32_t sum = 0;

    if (strlen(text) >= sizeof(copy))
        return err_set(err, -EINVAL, ERR_TOO_LARGE, "faults", NULL, "the plan is too long");
    memcpy(copy, text, strlen(text) + 1);
    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        int r = parse_word(word, &plan, err);

        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < COUNT(rates); i++)
        sum += *rate_at(&plan, &rates[i]);
    if (sum > 1000)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, "faults", "lower some of them",
                       "the rates add up to %d of a thousand steps", sum);
    *ret_plan = plan;
    return 0;
}
