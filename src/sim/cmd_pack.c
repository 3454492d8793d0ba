/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/pack.h"

#define SEEDS_MAX 1000
#define LOAD_MAX 200 /* percent */
#define DAYS_MAX 30

struct request {
    const char *nodes, *pods;
    const struct pack_policy *policy;
    int64_t first, last; /* seeds */
    int64_t load, days;  /* of a steady state; 0 = the cluster is filled */
    int64_t slices;      /* of a device, to which fractions are rounded up; 0 = they are not */
    enum pack_ties ties;
    bool json;
};

struct loaded {
    struct openb_nodes nodes;
    struct openb_pods pods;
    struct pack_cluster cluster;
    struct pack_list list;
    struct pack_mix *mix;
};

static void loaded_done(struct loaded *l)
{
    pack_mix_free(l->mix);
    pack_list_free(&l->list);
    pack_cluster_free(&l->cluster);
    openb_pods_free(&l->pods);
    openb_nodes_free(&l->nodes);
}

static int load(const struct request *q, struct loaded *l, struct err *err)
{
    int r = openb_load_nodes(q->nodes, &l->nodes, err);
    if (r >= 0)
        r = openb_load_pods(q->pods, &l->pods, err);
    if (r >= 0)
        r = pack_cluster_make(&l->nodes, &l->cluster, err);
    if (r >= 0)
        r = pack_list_make(&l->pods, &l->cluster, &l->list, err);
    if (r >= 0 && q->slices > 0)
        pack_list_slice(&l->list, (int32_t)q->slices);
    if (r >= 0)
        l->mix = pack_mix_make(&l->list, l->cluster.model_count);
    return r;
}

/* ---- what goes in ------------------------------------------------------------------------ */

static bool ties_parse(const char *text, enum pack_ties *ret_ties)
{
    for (int t = 0; t < PACK_TIES; t++)
        if (strcmp(text, pack_ties_name((enum pack_ties)t)) == 0) {
            *ret_ties = (enum pack_ties)t;
            return true;
        }
    return false;
}

/* "47" or "47-51". */
static bool seeds_parse(const char *text, int64_t *ret_first, int64_t *ret_last)
{
    char first[24];
    size_t n = strcspn(text, "-");
    if (n >= sizeof(first))
        return false;
    memcpy(first, text, n);
    first[n] = '\0';
    const char *last = text[n] == '-' ? text + n + 1 : first;
    return qty_parse_int(first, ret_first, NULL) == 0 && qty_parse_int(last, ret_last, NULL) == 0 &&
           *ret_first <= *ret_last && *ret_last - *ret_first < SEEDS_MAX;
}

static bool number_parse(const char *text, int64_t most, int64_t *ret_number)
{
    return qty_parse_int(text, ret_number, NULL) == 0 && *ret_number >= 1 && *ret_number <= most;
}

static int refuse(struct err *err, const char *field, const char *hint, const char *value)
{
    return err_set(err, -EINVAL, ERR_INVALID, field, hint, "unknown %s '%.40s'", field, value);
}

static int option_set(struct request *q, int option, const char *value, struct err *err)
{
    if (option == 'n')
        q->nodes = value;
    else if (option == 'p')
        q->pods = value;
    else if (option == 'j')
        q->json = true;
    else if (option == 'P' && (q->policy = pack_policy_find(value)) == NULL)
        return refuse(err, "policy", "give one that --help lists", value);
    else if (option == 't' && !ties_parse(value, &q->ties))
        return refuse(err, "ties", "give order, name or random", value);
    else if (option == 's' && !seeds_parse(value, &q->first, &q->last))
        return err_set(err, -EINVAL, ERR_INVALID, "seeds", "give 47 or 47-51, at most 1000 of them",
                       "'%.40s' is no range of seeds", value);
    else if (option == 'l' && !number_parse(value, LOAD_MAX, &q->load))
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "load", "give percent, 1 to 200",
                       "'%.40s' is no load", value);
    else if (option == 'S' && !number_parse(value, PACK_WHOLE, &q->slices))
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "slices", "give 1 to 1000",
                       "'%.40s' is no number of slices", value);
    else if (option == 'd' && !number_parse(value, DAYS_MAX, &q->days))
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "days", "give 1 to 30",
                       "'%.40s' is no number of days", value);
    return 0;
}

/* 0; 1 = help was asked for; -EINVAL = usage, with ERR set where there is more to say. */
static int options_parse(int argc, char **argv, struct request *q, struct err *err)
{
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'},
        {"pods", required_argument, NULL, 'p'},
        {"policy", required_argument, NULL, 'P'},
        {"seeds", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},
        {"ties", required_argument, NULL, 't'},
        {"slices", required_argument, NULL, 'S'},
        {"load", required_argument, NULL, 'l'},
        {"days", required_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    optind = 0; /* the program may have parsed options of its own before */
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h')
            return 1;
        if (c == '?')
            return -EINVAL;
        int r = option_set(q, c, optarg, err);
        if (r < 0)
            return r;
    }
    if (optind < argc)
        return err_set(err, -EINVAL, ERR_INVALID, "argument", "see allot sim pack --help",
                       "'%.40s' is not expected", argv[optind]);
    if (q->nodes == NULL || q->pods == NULL)
        return err_set(err, -EINVAL, ERR_MISSING, q->nodes == NULL ? "nodes" : "pods",
                       "give the public trace's lists with --nodes FILE --pods FILE",
                       "%s is missing", q->nodes == NULL ? "--nodes" : "--pods");
    return 0;
}

static struct pack_options options_of(const struct request *q, const struct loaded *l,
                                      const struct sim_meter *meter)
{
    return (struct pack_options){.cluster = &l->cluster,
                                 .list = &l->list,
                                 .mix = l->mix,
                                 .policy = q->policy,
                                 .ties = q->ties,
                                 .cpu_ns = meter->cpu_ns};
}

/* With an end to every pod. */
static int steady(const struct request *q, const struct loaded *l, const struct sim_meter *meter)
{
    struct err err = ERR_INIT;
    VEC(struct pack_steady) all = {0};
    struct pack_options o = options_of(q, l, meter);
    int r = 0;
    if (strcmp(q->policy->name, "clustering") == 0)
        r = err_set(&err, -EINVAL, ERR_UNSUPPORTED, "policy", "give another policy",
                    "'clustering' does not forget the pods that have ended");
    for (int64_t seed = q->first; seed <= q->last && r >= 0; seed++)
        r = pack_steady_run(&o, &l->pods, (uint32_t)q->load, (uint32_t)q->days, (uint64_t)seed,
                            vec_add(&all), &err);
    struct pack_report report = {q->policy, q->ties, q->first, NULL, all.len};
    if (r >= 0)
        pack_print_steady(&report, all.items, q->json);
    vec_done(&all);
    return r < 0 ? sim_complain(&err) : 0;
}

static int pack_main(int argc, char **argv, const struct sim_meter *meter)
{
    struct request q = {.policy = pack_policy_find("allot"), .first = 42, .last = 51, .days = 2};
    struct err err = ERR_INIT;
    int asked = options_parse(argc, argv, &q, &err);
    if (asked < 0 && err.code != NULL)
        return sim_complain(&err);
    if (asked != 0)
        return sim_usage(&sim_cmd_pack, asked > 0 ? stdout : stderr, asked > 0 ? 0 : 2);
    _cleanup_(loaded_done) struct loaded l = {0};
    if (load(&q, &l, &err) < 0)
        return sim_complain(&err);
    if (q.load > 0)
        return steady(&q, &l, meter);
    VEC(struct pack_run) runs = {0};
    struct pack_options o = options_of(&q, &l, meter);
    for (int64_t seed = q.first; seed <= q.last; seed++)
        pack_run(&o, (uint64_t)seed, vec_add(&runs));
    struct pack_report report = {q.policy, q.ties, q.first, runs.items, runs.len};
    if (q.json)
        pack_print_json(&report);
    else
        pack_print_text(&report);
    vec_done(&runs);
    return 0;
}

const struct sim_command sim_cmd_pack = {
    .name = "pack",
    .summary = "fill a cluster with a public trace's pods, by a policy",
    .usage = "usage: allot sim pack --nodes FILE --pods FILE [--policy P] [--seeds A-B]\n"
             "                      [--json] [--ties order|name|random] [--slices N]\n"
             "                      [--load PERCENT [--days N]]\n"
             "\n"
             "Fills an empty cluster with the pods of a list in random order until 130% of\n"
             "its GPUs are asked for; what does not fit is dropped. Prints how much is left\n"
             "unallocated.\n"
             "\n"
             "  --nodes FILE   openb_node_list_gpu_node.csv of the public trace\n"
             "  --pods FILE    one of its openb_pod_list_*.csv\n"
             "  --policy P     allot (the scheduler itself), or random, dotprod, clustering,\n"
             "                 packing, bestfit, fgd\n"
             "  --seeds A-B    orders of arrival and of the nodes (42-51)\n"
             "  --json         one JSON object\n"
             "  --ties T       among equal nodes the first of that order (order), the first by\n"
             "                 name (name), or any (random; the scheduler itself: as order)\n"
             "  --slices N     fractions take whole Nths of a device (7: as if cut by MIG);\n"
             "                 what they asked for counts\n"
             "  --load PERCENT pods arrive without end, run as long as others of the list did,\n"
             "                 and wait where there is no room: prints how long at that load\n"
             "  --days N       that it is measured, after one to get there (2)\n",
    .measure = pack_main,
};
