/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/source.h"
#include "sim/whatif_change.h"
#include "sim/whatif_print.h"

#define CHANGES_MAX 1000
#define PRICE_MAX_UUSD (10000 * 1000000LL)
#define TIME_MAX_MS (365LL * 24 * 3600 * 1000)

enum {
    OPT_TEAM = 256,
    OPT_TEAMS,
    OPT_NODES,
    OPT_HARD,
    OPT_MIN_RUN,
    OPT_CLASS,
    OPT_PRICE,
    OPT_CHECKPOINT,
    OPT_STOP,
    OPT_ALL
};

static const struct option longs[] = {SOURCE_OPTIONS,
                                      {"team", required_argument, NULL, OPT_TEAM},
                                      {"teams", required_argument, NULL, OPT_TEAMS},
                                      {"nodes", required_argument, NULL, OPT_NODES},
                                      {"hard-quota", no_argument, NULL, OPT_HARD},
                                      {"min-run", required_argument, NULL, OPT_MIN_RUN},
                                      {"class", required_argument, NULL, OPT_CLASS},
                                      {"price", required_argument, NULL, OPT_PRICE},
                                      {"checkpoint", required_argument, NULL, OPT_CHECKPOINT},
                                      {"stop", required_argument, NULL, OPT_STOP},
                                      {"all", no_argument, NULL, OPT_ALL},
                                      {"output", required_argument, NULL, 'o'},
                                      {"help", no_argument, NULL, 'h'},
                                      {0}};

/* What was asked, in the order of the command line; applied once the record is read. */
struct asked {
    struct {
        int option;
        const char *value;
    } changes[CHANGES_MAX];
    size_t count;
    struct source source;
    int64_t price_uusd;             /* 0 = not given */
    int64_t checkpoint_ms, stop_ms; /* -1 = not given */
    bool json, all_teams, help;
};

/* ---- the command line --------------------------------------------------------------------- */

/* USD with up to six decimals, exactly. */
static int parse_price(const char *text, int64_t *ret_uusd, struct err *err)
{
    int64_t uusd = 0;
    int decimals = -1;
    const char *p = text;

    for (; *p && uusd <= PRICE_MAX_UUSD && decimals < 6; p++) {
        if (*p == '.' && decimals < 0 && p > text) {
            decimals = 0;
            continue;
        }
        if (*p < '0' || *p > '9')
            break;
        uusd = uusd * 10 + (*p - '0');
        decimals += decimals >= 0;
    }
    for (int i = decimals > 0 ? decimals : 0; i < 6 && uusd <= PRICE_MAX_UUSD; i++)
        uusd *= 10;
    if (*p || p == text || decimals == 0 || uusd == 0 || uusd > PRICE_MAX_UUSD)
        return err_set(err, -EINVAL, ERR_INVALID, "price",
                       "give USD for one GPU-hour, above 0 and at most 10000: --price 2.50",
                       "'%.40s' is no price", text);
    *ret_uusd = uusd;
    return 0;
}

static int parse_time(const char *option, const char *text, const char *example, int64_t *ret_ms,
                      struct err *err)
{
    struct err cause = ERR_INIT;
    char remedy[160];

    if (qty_parse_duration_ms(text, ret_ms, &cause) == 0 && *ret_ms <= TIME_MAX_MS)
        return 0;
    snprintf(remedy, sizeof(remedy), "give a time of at most a year, as %s %s", option, example);
    return err_set(err, -EINVAL, ERR_INVALID, option + 2, remedy, "'%.40s' is no time for %s", text,
                   option);
}

static int parse_checkpoint(const char *text, int64_t *ret_ms, struct err *err)
{
    int e = strcmp(text, "never") == 0 ? 0 : parse_time("--checkpoint", text, "10m", ret_ms, err);

    if (strcmp(text, "never") == 0)
        *ret_ms = 0;
    else if (e == 0 && *ret_ms == 0)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "checkpoint",
                       "give a time above 0, as --checkpoint 1s, or --checkpoint never",
                       "work cannot be saved every 0 seconds");
    return e;
}

static int take(struct asked *a, int option, const char *value, struct err *err)
{
    switch (option) {
    case 'h':
        a->help = true;
        return 0;
    case 'o':
        a->json = strcmp(value, "json") == 0;
        return a->json ? 0
                       : err_set(err, -EINVAL, ERR_INVALID, "output", "write -o json",
                                 "'%.40s' is no kind of output", value);
    case OPT_ALL:
        a->all_teams = true;
        return 0;
    case OPT_PRICE:
        return parse_price(value, &a->price_uusd, err);
    case OPT_CHECKPOINT:
        return parse_checkpoint(value, &a->checkpoint_ms, err);
    case OPT_STOP:
        return parse_time("--stop", value, "5s", &a->stop_ms, err);
    default:
        break;
    }
    if (source_option(&a->source, option, value))
        return 0;
    if (a->count == CHANGES_MAX)
        return err_set(err, -E2BIG, ERR_TOO_LARGE, NULL, "put them into a file for --teams",
                       "more than %d changes", CHANGES_MAX);
    a->changes[a->count].option = option;
    a->changes[a->count++].value = value;
    return 0;
}

static int parse(int argc, char **argv, struct asked *a, struct err *err)
{
    int e = 0;

    a->checkpoint_ms = a->stop_ms = -1;
    optind = opterr = 0;
    for (int c; e == 0 && !a->help && (c = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1;)
        e = c == '?' || c == ':' ? source_bad_option(c, argv, err) : take(a, c, optarg, err);
    return e < 0 || a->help ? e : source_operands(&a->source, argc, argv, err);
}

/* ---- the replays -------------------------------------------------------------------------- */

static int apply(struct whatif_wish *wish, struct whatif_setup *setup, int option,
                 const char *value, struct err *err)
{
    switch (option) {
    case OPT_TEAM:
        return whatif_wish_team(wish, value, err);
    case OPT_TEAMS:
        return whatif_wish_teams(wish, value, err);
    case OPT_NODES:
        return whatif_change_nodes(wish->past, setup, value, err);
    case OPT_CLASS:
        return whatif_change_class(setup, value, err);
    case OPT_MIN_RUN:
        return parse_time("--min-run", value, "5m", &setup->config.min_run_ms, err);
    default:
        setup->hard_quota = true;
        setup->accepted = false;
        return 0;
    }
}

static int set_up(struct past *past, const struct asked *a, struct whatif_setup *setup,
                  struct err *err)
{
    _cleanup_(whatif_wish_done) struct whatif_wish wish;
    int e = 0;

    whatif_wish_init(&wish, past);
    for (size_t i = 0; e == 0 && i < a->count; i++)
        e = apply(&wish, setup, a->changes[i].option, a->changes[i].value, err);
    if (e == 0)
        e = whatif_wish_grant(&wish, setup, err);
    if (e == 0 && wish.notes.len > 0)
        fprintf(stderr, "note: %s", strbuf_str(&wish.notes));
    return e;
}

static void begin_setup(struct past *past, const struct asked *a, struct whatif_setup *ret_setup)
{
    whatif_setup_past(past, ret_setup);
    if (a->checkpoint_ms >= 0)
        ret_setup->checkpoint_ms = a->checkpoint_ms;
    if (a->stop_ms >= 0) {
        ret_setup->stop_ms = a->stop_ms;
        ret_setup->stops = 0;
    }
}

static int replay(struct whatif_report *r, struct past *past, const struct asked *a,
                  struct err *err)
{
    struct whatif_setup was, is;
    int e;

    if (a->checkpoint_ms >= 0)
        past_assume(past, a->checkpoint_ms);
    begin_setup(past, a, &was);
    begin_setup(past, a, &is);
    r->stop_ms = was.stop_ms;
    r->stops = was.stops;
    e = set_up(past, a, &is, err);
    if (e < 0)
        return e;
    whatif_recorded(past, &r->recorded);
    e = whatif_replay(past, &was, &r->baseline, err);
    if (e == 0 && r->changed)
        e = whatif_replay(past, &is, &r->asked, err);
    if (e == 0)
        whatif_compare(past, &r->recorded, &r->baseline, &r->error);
    return e;
}

static int report(struct past *past, const struct asked *a, struct err *err)
{
    struct whatif_report r = {.past = past,
                              .changed = a->count > 0,
                              .all_teams = a->all_teams,
                              .price_uusd = a->price_uusd};
    int e = replay(&r, past, a, err);

    if (e == 0 && a->json)
        whatif_print_json(&r, stdout);
    else if (e == 0)
        whatif_print_text(&r, stdout);
    whatif_outcome_done(&r.recorded);
    whatif_outcome_done(&r.baseline);
    whatif_outcome_done(&r.asked);
    return e;
}

static int whatif_main(int argc, char **argv, const struct sim_records *records)
{
    struct asked asked = {0};
    struct err err = ERR_INIT;
    struct past past;
    int e = parse(argc, argv, &asked, &err);

    if (asked.help)
        return sim_usage(&sim_cmd_whatif, stdout, 0);
    if (e == 0)
        e = source_read(&asked.source, records, &past, &err);
    if (e < 0)
        return sim_complain(&err);
    if (past.jobs.len == 0)
        e = err_set(&err, -ENODATA, ERR_NOT_FOUND, NULL, "come back when some work has run",
                    "the record holds no work that ran: there is nothing to replay");
    else
        e = report(&past, &asked, &err);
    past_done(&past);
    return e < 0 ? sim_complain(&err) : 0;
}

const struct sim_command sim_cmd_whatif = {
    .name = "whatif",
    .summary = "replay a server's own past under other quotas or nodes",
    .usage = "usage: allot sim whatif [OPTION]... [HISTORY]\n"
             "\n"
             "Plays what a server has recorded again: as it was, which shows how far the model\n"
             "is off, and with what is asked for. Prints waits, use and cost of both beside\n"
             "what happened. Quotas are edited and nodes are lost and back as recorded.\n"
             "\n" SOURCE_HELP "\n"
             "  --team TEAM.FIELD=VALUE  another quota: nlp.guarantee.gpu=6, nlp.limit.gpu=8,\n"
             "                           nlp.weight=2, nlp.quota=hard, nlp.parent=research,\n"
             "                           nlp.limit.gpu=none; may be repeated\n"
             "  --teams FILE             Team manifests, as for 'allot apply -f'\n"
             "  --nodes LIST             other nodes instead: 4x8xH100 or 4x8xH100,2x4xA100;\n"
             "                           more of them beside those there are: +2x8xH100\n"
             "  --hard-quota             nobody above a guarantee, as with reservations\n"
             "  --min-run TIME           protection from eviction after a start: 5m\n"
             "  --class CLASS.CELL=yes   the class matrix: may_preempt, may_reclaim, idle_only\n"
             "\n"
             "  --checkpoint TIME        between saves of work that saves (10m), or never\n"
             "  --stop TIME              how long an evicted task takes, within its grace\n"
             "                           (as recorded, in the median; else 5s)\n"
             "  --price USD              of one GPU-hour, prints cost: 2.50\n"
             "  --all                    all teams, however many\n"
             "  -o json                  one JSON object\n"
             "\n"
             "  # would eight more GPUs have shortened the waits?\n"
             "  allot sim whatif --nodes +1x8xH100\n"
             "  # a proposal, before it is applied\n"
             "  allot sim whatif --teams proposed.yaml --price 2.50\n"
             "  # a quota per team that nobody may exceed, on an exported record\n"
             "  allot export history > history.jsonl\n"
             "  allot sim whatif --hard-quota history.jsonl\n",
    .replay = whatif_main,
};
