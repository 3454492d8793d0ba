/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/whatif_change.h"
#include "sim/whatif_print.h"

#define CHANGES_MAX 1000

enum {
    OPT_TEAM = 256,
    OPT_TEAMS,
    OPT_NODES,
    OPT_HARD,
    OPT_MIN_RUN,
    OPT_CLASS,
    OPT_PRICE,
    OPT_CHECKPOINT,
    OPT_STOP
};

static const struct option longs[] = {{"team", required_argument, NULL, OPT_TEAM},
                                      {"teams", required_argument, NULL, OPT_TEAMS},
                                      {"nodes", required_argument, NULL, OPT_NODES},
                                      {"hard-quota", no_argument, NULL, OPT_HARD},
                                      {"min-run", required_argument, NULL, OPT_MIN_RUN},
                                      {"class", required_argument, NULL, OPT_CLASS},
                                      {"price", required_argument, NULL, OPT_PRICE},
                                      {"checkpoint", required_argument, NULL, OPT_CHECKPOINT},
                                      {"stop", required_argument, NULL, OPT_STOP},
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
    int64_t price_uusd, checkpoint_ms, stop_ms; /* 0 = not given */
    bool json;
};

/* 0, 1 = help was asked for, -1 = usage. */
static int parse(int argc, char **argv, struct asked *a)
{
    int r = 0;

    optind = 0;
    for (int c; r == 0 && (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        if (c == 'h')
            return 1;
        if (c == 'o')
            r = (a->json = strcmp(optarg, "json") == 0) ? 0 : -1;
        else if (c == OPT_PRICE)
            r = qty_parse_int(optarg, &a->price_uusd, NULL);
        else if (c == OPT_CHECKPOINT)
            r = qty_parse_duration_ms(optarg, &a->checkpoint_ms, NULL);
        else if (c == OPT_STOP)
            r = qty_parse_duration_ms(optarg, &a->stop_ms, NULL);
        else if (c == '?' || a->count == CHANGES_MAX)
            r = -1;
        else {
            a->changes[a->count].option = c;
            a->changes[a->count++].value = optarg;
        }
    }
    if (r < 0)
        return -1;
    return optind == argc - 1 && a->price_uusd <= INT64_MAX / 1000000 ? 0 : -1;
}

static int apply(struct past *past, struct whatif_setup *setup, int option, const char *value,
                 struct err *err)
{
    switch (option) {
    case OPT_TEAM:
        return whatif_change_team(past, setup, value, err);
    case OPT_TEAMS:
        return whatif_change_teams(past, setup, value, err);
    case OPT_NODES:
        return whatif_change_nodes(past, setup, value, err);
    case OPT_CLASS:
        return whatif_change_class(setup, value, err);
    case OPT_MIN_RUN:
        return qty_parse_duration_ms(value, &setup->config.min_run_ms, err);
    default:
        setup->hard_quota = true;
        return 0;
    }
}

static int replay(struct whatif_report *r, struct past *past, const struct asked *a,
                  struct err *err)
{
    struct whatif_setup was, is;
    int e;

    whatif_setup_past(past, &was);
    whatif_setup_past(past, &is);
    if (a->checkpoint_ms)
        was.checkpoint_ms = is.checkpoint_ms = a->checkpoint_ms;
    if (a->stop_ms)
        was.stop_ms = is.stop_ms = a->stop_ms;
    for (size_t i = 0; i < a->count; i++) {
        e = apply(past, &is, a->changes[i].option, a->changes[i].value, err);
        if (e < 0)
            return e;
    }
    whatif_recorded(past, &r->recorded);
    e = whatif_replay(past, &was, &r->baseline, err);
    if (e == 0 && r->changed)
        e = whatif_replay(past, &is, &r->asked, err);
    if (e == 0)
        whatif_compare(past, &r->recorded, &r->baseline, &r->error);
    return e;
}

static int whatif_main(int argc, char **argv)
{
    struct asked asked = {0};
    struct whatif_report report = {0};
    struct err err = ERR_INIT;
    struct past past;
    int e = parse(argc, argv, &asked);

    if (e != 0)
        return sim_usage(&sim_cmd_whatif, e > 0 ? stdout : stderr, e > 0 ? 0 : 2);
    if (past_read(argv[optind], &past, &err) < 0)
        return sim_complain(&err);
    if (past.jobs.len == 0) {
        fputs("allot: the record holds no work that ran: there is nothing to replay\n", stderr);
        past_done(&past);
        return 2;
    }
    report.past = &past;
    report.changed = asked.count > 0;
    report.price_uusd = asked.price_uusd;
    e = replay(&report, &past, &asked, &err);
    if (e < 0)
        sim_complain(&err);
    else if (asked.json)
        whatif_print_json(&report, stdout);
    else
        whatif_print_text(&report, stdout);
    whatif_outcome_done(&report.recorded);
    whatif_outcome_done(&report.baseline);
    whatif_outcome_done(&report.asked);
    past_done(&past);
    return e < 0 ? 2 : 0;
}

const struct sim_command sim_cmd_whatif = {
    .name = "whatif",
    .summary = "replay a server's own past under other quotas, nodes or another policy",
    .usage =
        "usage: allot sim whatif [OPTION]... HISTORY\n"
        "       allot sim whatif [OPTION]... --data FOLDER\n"
        "\n"
        "HISTORY is a file of 'allot export history'; --data reads the data folder of a server,\n"
        "also while it runs. Prints waits, allocation and cost of the record, of a replay as it\n"
        "was (which shows how far the model is off), and of what is asked.\n"
        "\n"
        "  --team NAME.FIELD=VALUE  another quota: nlp.guarantee.gpu=6, nlp.limit.gpu=8,\n"
        "                           nlp.weight=2, nlp.quota=hard; may be repeated\n"
        "  --teams FILE             Team manifests, as for 'allot apply -f'\n"
        "  --nodes LIST             other nodes instead: 4x8xH100 or 4x8xH100,2x4xA100\n"
        "  --hard-quota             nobody above a guarantee, as with fixed reservations\n"
        "  --min-run TIME           protection from eviction after a start\n"
        "  --class CLASS.CELL=yes   the class matrix: may_preempt, may_reclaim, idle_only\n"
        "  --checkpoint TIME        between saves of work that saves (10m)\n"
        "  --stop TIME              how long an evicted task takes, within its grace (5s)\n"
        "  --price MICRO-USD        of one GPU-hour: prints cost\n"
        "  -o json                  one JSON object\n",
    .run = whatif_main,
};
