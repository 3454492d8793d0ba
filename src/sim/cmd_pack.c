/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/pack.h"

#define SEEDS_MAX 1000

static const int points[] = {80, 90, 95, 100, 110, 130};
static const char *const class_names[PACK_CLASSES] = {"cpu_only", "fraction", "one_gpu",
                                                      "many_gpus"};

struct request {
    const char *nodes, *pods;
    const struct pack_policy *policy;
    int64_t first, last; /* seeds */
    bool json, random_ties;
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
    if (r >= 0)
        l->mix = pack_mix_make(&l->list, l->cluster.model_count);
    return r;
}

/* ---- what comes out ---------------------------------------------------------------------- */

struct stat { /* over seeds; the deviation of a sample */
    double mean, sd;
};

static struct stat stat_of(const struct pack_run *runs, size_t count, int percent, bool frag)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        const struct pack_point *p = &runs[i].points[percent];
        sum += frag ? p->frag_ratio : p->unallocated;
    }
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++) {
        const struct pack_point *p = &runs[i].points[percent];
        double d = (frag ? p->frag_ratio : p->unallocated) - mean;
        squares += d * d;
    }
    return (struct stat){mean, count > 1 ? sqrt(squares / (double)(count - 1)) : 0};
}

static void key_number(struct json_writer *w, const char *key, double value)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%.3f", value);
    json_key(w, key);
    if (isfinite(value))
        json_raw(w, text, (size_t)n);
    else
        json_null(w);
}

static void write_stats(struct json_writer *w, const char *key, const struct pack_run *runs,
                        size_t count, bool frag)
{
    json_key(w, key);
    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", points[i]);
        struct stat s = stat_of(runs, count, points[i], frag);
        json_key(w, text);
        json_begin_object(w);
        key_number(w, "mean", s.mean);
        key_number(w, "sd", s.sd);
        json_end_object(w);
    }
    json_end_object(w);
}

/* Means over seeds at each percent from 70 on, for a plot. */
static void write_curve(struct json_writer *w, const struct pack_run *runs, size_t count)
{
    json_key(w, "curve");
    json_begin_object(w);
    for (int percent = 70; percent < PACK_POINTS; percent++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", percent);
        key_number(w, text, stat_of(runs, count, percent, false).mean);
    }
    json_end_object(w);
}

static uint64_t class_sum(const struct pack_run *runs, size_t count, int class_, bool dropped)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += dropped ? runs[i].dropped[class_] : runs[i].arrived[class_];
    return sum;
}

static double us_per_decision(const struct pack_run *runs, size_t count, uint64_t *ret_decisions)
{
    uint64_t decisions = 0;
    double ns = 0;
    for (size_t i = 0; i < count; i++) {
        decisions += runs[i].decisions;
        ns += (double)runs[i].spent_ns;
    }
    *ret_decisions = decisions;
    return ns / 1000 / (double)decisions;
}

static void print_json(const struct request *q, const struct pack_run *runs, size_t count)
{
    _cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
    struct json_writer w;
    uint64_t decisions;
    double us = us_per_decision(runs, count, &decisions);
    json_writer_init(&w, &out);
    json_begin_object(&w);
    json_key_string(&w, "policy", q->policy->name);
    json_key(&w, "seeds");
    json_begin_array(&w);
    for (int64_t seed = q->first; seed <= q->last; seed++)
        json_i64(&w, seed);
    json_end_array(&w);
    json_key_string(&w, "ties", q->random_ties ? "random" : "by name");
    json_key_i64(&w, "decisions", (int64_t)decisions);
    key_number(&w, "us_per_decision", us);
    write_stats(&w, "unallocated_percent", runs, count, false);
    write_stats(&w, "fragmentation_percent_of_idle", runs, count, true);
    for (int dropped = 0; dropped < 2; dropped++) {
        json_key(&w, dropped ? "pods_dropped" : "pods_arrived");
        json_begin_object(&w);
        for (int c = 0; c < PACK_CLASSES; c++)
            json_key_i64(&w, class_names[c], (int64_t)class_sum(runs, count, c, dropped));
        json_end_object(&w);
    }
    write_curve(&w, runs, count);
    json_end_object(&w);
    puts(strbuf_str(&out));
}

static void print_text(const struct request *q, const struct pack_run *runs, size_t count)
{
    uint64_t decisions;
    double us = us_per_decision(runs, count, &decisions);
    printf("policy %s, seeds %lld-%lld, ties %s, %llu decisions of %.1f us\n\n", q->policy->name,
           (long long)q->first, (long long)q->last, q->random_ties ? "random" : "by name",
           (unsigned long long)decisions, us);
    printf("arrived %%  unallocated %%  (sd)   useless part of idle %%\n");
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct stat a = stat_of(runs, count, points[i], false);
        struct stat f = stat_of(runs, count, points[i], true);
        printf("%9d  %13.2f  (%.2f)  %22.1f\n", points[i], a.mean, a.sd, f.mean);
    }
    printf("\ndropped of arrived, mean of seeds:");
    for (int c = 0; c < PACK_CLASSES; c++)
        printf("%s %s %.1f of %.1f", c > 0 ? "," : "", class_names[c],
               (double)class_sum(runs, count, c, true) / (double)count,
               (double)class_sum(runs, count, c, false) / (double)count);
    putchar('\n');
}

/* ---- what goes in ------------------------------------------------------------------------ */

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

/* 0; 1 = help was asked for; negative = usage. */
static int options_parse(int argc, char **argv, struct request *q)
{
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'},  {"pods", required_argument, NULL, 'p'},
        {"policy", required_argument, NULL, 'P'}, {"seeds", required_argument, NULL, 's'},
        {"json", no_argument, NULL, 'j'},         {"random-ties", no_argument, NULL, 'r'},
        {"help", no_argument, NULL, 'h'},         {0},
    };
    optind = 0; /* the program may have parsed options of its own before */
    for (int c; (c = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (c == 'h')
            return 1;
        if (c == 'n')
            q->nodes = optarg;
        else if (c == 'p')
            q->pods = optarg;
        else if (c == 'j')
            q->json = true;
        else if (c == 'r')
            q->random_ties = true;
        else if (c == 'P' && (q->policy = pack_policy_find(optarg)) == NULL)
            return fprintf(stderr, "pack: unknown policy '%.40s'\n", optarg), -1;
        else if (c == 's' && !seeds_parse(optarg, &q->first, &q->last))
            return fprintf(stderr, "pack: '%.40s' is no range of seeds: give 47-51\n", optarg), -1;
        else if (c == '?')
            return -1;
    }
    return optind < argc || q->nodes == NULL || q->pods == NULL ? -1 : 0;
}

static int pack_main(int argc, char **argv, const struct sim_meter *meter)
{
    struct request q = {.policy = pack_policy_find("allot"), .first = 42, .last = 51};
    int asked = options_parse(argc, argv, &q);
    if (asked != 0)
        return sim_usage(&sim_cmd_pack, asked > 0 ? stdout : stderr, asked > 0 ? 0 : 2);
    _cleanup_(loaded_done) struct loaded l = {0};
    struct err err = ERR_INIT;
    if (load(&q, &l, &err) < 0)
        return sim_complain(&err);
    VEC(struct pack_run) runs = {0};
    struct pack_options o = {.cluster = &l.cluster,
                             .list = &l.list,
                             .mix = l.mix,
                             .policy = q.policy,
                             .random_ties = q.random_ties,
                             .cpu_ns = meter->cpu_ns};
    for (int64_t seed = q.first; seed <= q.last; seed++)
        pack_run(&o, (uint64_t)seed, vec_add(&runs));
    if (q.json)
        print_json(&q, runs.items, runs.len);
    else
        print_text(&q, runs.items, runs.len);
    vec_done(&runs);
    return 0;
}

const struct sim_command sim_cmd_pack = {
    .name = "pack",
    .summary = "fill a GPU cluster with a public trace's pods, by this or a published policy",
    .usage =
        "usage: allot sim pack --nodes FILE --pods FILE [--policy P] [--seeds A-B] [--json]\n"
        "                      [--random-ties]\n"
        "\n"
        "Fills an empty cluster with the pods of a list in random order until 130% of its GPUs\n"
        "are asked for; what does not fit is dropped. Prints how much is left unallocated.\n"
        "\n"
        "  --nodes FILE   openb_node_list_gpu_node.csv of the public trace\n"
        "  --pods FILE    one of its openb_pod_list_*.csv\n"
        "  --policy P     allot (the scheduler itself), or random, dotprod, clustering, packing,\n"
        "                 bestfit, fgd\n"
        "  --seeds A-B    orders of arrival (42-51)\n"
        "  --json         one JSON object\n"
        "  --random-ties  among equal nodes a random one, not the first by name (for the "
        "scheduler\n"
        "                 itself: its order of nodes is random)\n",
    .measure = pack_main,
};
