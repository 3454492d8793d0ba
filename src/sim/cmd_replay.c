/* SPDX-License-Identifier: Apache-2.0 */
/* `allot sim replay`: options, the search for an equal wait, and what was measured. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/helios.h"
#include "sim/replay.h"

#define GPUS_MAX 100000
#define SEARCH_GRAIN 8

struct choice {
    struct replay_options o;
    const char *trace, *curve, *helios;
    int64_t p95_ms; /* search for the fewest GPUs with this; -1 = no search */
    bool json, alone;
};

/* ---- printing ---------------------------------------------------------------------------- */

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

static double hours(int64_t milli_ms)
{
    return (double)milli_ms / 1000 / 3.6e6;
}

static void json_number(struct json_writer *w, const char *key, double value)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%.2f", value);
    json_key(w, key);
    json_raw(w, text, (size_t)len);
}

static void json_spread(struct json_writer *w, const struct replay_spread *s, const char *size)
{
    json_begin_object(w);
    json_key_string(w, "gpus", size);
    json_key_i64(w, "jobs", (int64_t)s->jobs);
    json_key_i64(w, "wait_mean_s", s->mean / 1000);
    json_key_i64(w, "wait_p50_s", s->p50 / 1000);
    json_key_i64(w, "wait_p90_s", s->p90 / 1000);
    json_key_i64(w, "wait_p95_s", s->p95 / 1000);
    json_key_i64(w, "wait_p99_s", s->p99 / 1000);
    json_key_i64(w, "wait_max_s", s->max / 1000);
    json_number(w, "over_5min_percent", percent((int64_t)s->over_5min, (int64_t)s->jobs));
    json_number(w, "over_1h_percent", percent((int64_t)s->over_1h, (int64_t)s->jobs));
    json_key_i64(w, "all_waiting_mean_s", s->queued_mean / 1000);
    json_key_i64(w, "jct_mean_s", s->jct_mean / 1000);
    json_key_i64(w, "jct_p50_s", s->jct_p50 / 1000);
    json_key_i64(w, "jct_p95_s", s->jct_p95 / 1000);
    json_end_object(w);
}

static void json_options(struct json_writer *w, const struct choice *c,
                         const struct replay_result *r)
{
    const struct replay_options *o = &c->o;
    json_key_string(w, "policy", replay_policy_name(o->policy));
    json_key_i64(w, "gpus", r->gpus);
    json_key_i64(w, "node_gpus", o->node_gpus);
    json_key_i64(w, "quantile_percent", o->quantile);
    json_key_bool(w, "limits", o->limits);
    json_key_i64(w, "checkpoint_s", o->checkpoint_ms / 1000);
    json_key_i64(w, "restart_s", o->restart_ms / 1000);
    json_key_i64(w, "grace_s", o->grace_ms / 1000);
    json_key_i64(w, "idle_s", o->policy == REPLAY_IDLE ? o->idle_ms / 1000 : 0);
    json_key_i64(w, "slowdown_percent", o->slowdown);
    json_key_i64(w, "seed", (int64_t)o->seed);
}

static void print_json(const struct choice *c, const struct replay_result *r)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_options(&w, c, r);
    json_number(&w, "allocated_percent", percent(r->allocated_milli_ms, r->installed_milli_ms));
    json_number(&w, "active_percent", percent(r->active_milli_ms, r->installed_milli_ms));
    json_number(&w, "busy_percent", percent(r->busy_milli_ms, r->installed_milli_ms));
    json_number(&w, "lost_percent_of_allocated", percent(r->lost_milli_ms, r->allocated_milli_ms));
    json_number(&w, "lost_gpu_hours", hours(r->lost_total_milli_ms));
    json_number(&w, "held_gpu_hours", hours(r->held_total_milli_ms));
    json_number(&w, "goodput_percent",
                percent(r->held_total_milli_ms - r->lost_total_milli_ms, r->held_total_milli_ms));
    json_key_i64(&w, "jobs", (int64_t)r->jobs);
    json_key_i64(&w, "refused", (int64_t)r->refused);
    json_key_i64(&w, "unfinished", (int64_t)r->unfinished);
    json_number(&w, "evictions_per_1000_jobs", 1000.0 * (double)r->evictions / (double)r->jobs);
    json_key_i64(&w, "fractions", (int64_t)r->fractions);
    json_key_i64(&w, "pauses", (int64_t)r->pauses);
    json_key_i64(&w, "pauses_ended_early", (int64_t)r->early_returns);
    json_number(&w, "paused_gpu_hours", hours(r->paused_milli_ms));
    json_key_i64(&w, "resume_wait_p95_s", r->resume_p95_ms / 1000);
    json_key_i64(&w, "in_quota_jobs", (int64_t)r->in_quota);
    if (c->alone) {
        json_key_i64(&w, "in_quota_over_60s_worse", (int64_t)r->unsafe);
        json_key_i64(&w, "in_quota_worst_s", r->unsafe_worst_ms / 1000);
        json_key_i64(&w, "all_over_60s_worse", (int64_t)r->worse);
        json_key_i64(&w, "all_over_60s_better", (int64_t)r->better);
    }
    json_key_i64(&w, "turns", (int64_t)r->turns);
    json_key_i64(&w, "decisions", (int64_t)r->decisions);
    json_key_i64(&w, "window_s", r->window_ms / 1000);
    json_key_i64(&w, "end_s", r->end_ms / 1000);
    json_key(&w, "waits");
    json_begin_array(&w);
    for (int size = 0; size < REPLAY_SIZES; size++)
        json_spread(&w, &r->spread[size], replay_size_name((enum replay_size)size));
    json_end_array(&w);
    json_end_object(&w);
    printf("%s\n", strbuf_str(&text));
}

static void print_spread(const struct replay_spread *s, const char *size)
{
    printf("  %-12s %7zu %9" PRId64 " %7" PRId64 " %8" PRId64 " %8" PRId64 " %8" PRId64 " %9" PRId64
           " %9" PRId64 "\n",
           size, s->jobs, s->mean / 1000, s->p50 / 1000, s->p90 / 1000, s->p95 / 1000,
           s->p99 / 1000, s->max / 1000, s->jct_mean / 1000);
}

static void print_text(const struct choice *c, const struct replay_result *r)
{
    printf("%s: %" PRIu32 " GPUs, %zu jobs of %" PRIu32 " teams\n", replay_policy_name(c->o.policy),
           r->gpus, r->jobs, r->teams);
    printf("  of all GPU time: allocated %.1f %%, busy %.1f %% (not idle %.1f %%)\n",
           percent(r->allocated_milli_ms, r->installed_milli_ms),
           percent(r->busy_milli_ms, r->installed_milli_ms),
           percent(r->active_milli_ms, r->installed_milli_ms));
    printf("  evictions a 1,000 jobs %.2f; lost %.0f GPU-hours (%.2f %% of what was held)\n",
           1000.0 * (double)r->evictions / (double)r->jobs, hours(r->lost_total_milli_ms),
           percent(r->lost_total_milli_ms, r->held_total_milli_ms));
    if (r->refused > 0 || r->unfinished > 0)
        printf("  refused %zu, left waiting %zu\n", r->refused, r->unfinished);
    if (r->fractions > 0)
        printf("  on half a GPU %zu\n", r->fractions);
    if (r->pauses > 0)
        printf("  gave up idle GPUs %" PRIu64 " times, %.0f GPU-hours; wait to resume p95 %" PRId64
               " s\n",
               r->pauses, hours(r->paused_milli_ms), r->resume_p95_ms / 1000);
    if (c->alone)
        printf("  within quota %zu jobs, of these > 60 s later than alone %zu (worst %" PRId64
               " s); of all jobs later %zu, earlier %zu\n",
               r->in_quota, r->unsafe, r->unsafe_worst_ms / 1000, r->worse, r->better);
    printf("  wait in s         jobs      mean     p50      p90      p95      p99       max  "
           "jct mean\n");
    for (int size = 0; size < REPLAY_SIZES; size++)
        print_spread(&r->spread[size], replay_size_name((enum replay_size)size));
}

/* ---- running ----------------------------------------------------------------------------- */

static int run_once(const struct choice *c, const struct philly *trace,
                    const struct use_curve *curve, struct replay_result *ret, struct err *err)
{
    struct replay_result alone = {0};
    struct replay_options o = c->o;
    o.policy = REPLAY_BLOCKS;
    o.gpus = c->o.gpus;
    int rc = c->alone ? replay_run(trace, curve, &o, NULL, &alone, err) : 0;
    if (rc == 0)
        rc = replay_run(trace, curve, &c->o, c->alone ? &alone : NULL, ret, err);
    replay_result_done(&alone);
    return rc;
}

/* The fewest GPUs, in steps of 8, for which the p95 wait is at most the wanted one. */
static int search(struct choice *c, const struct philly *trace, const struct use_curve *curve,
                  struct err *err)
{
    uint32_t blocks[PHILLY_TEAMS_MAX], low = 0;
    for (size_t i = 0; i < trace->count; i++)
        low = trace->jobs[i].gpus > low ? trace->jobs[i].gpus : low;
    low = low / SEARCH_GRAIN; /* the fewest that might do; nothing below can hold every job */
    uint32_t high = 2 * replay_blocks(trace, 99, 0, blocks) / SEARCH_GRAIN;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        struct replay_result r;
        c->o.gpus = mid * SEARCH_GRAIN;
        int rc = replay_run(trace, curve, &c->o, NULL, &r, err);
        if (rc < 0)
            return rc;
        bool enough = r.spread[REPLAY_ALL].p95 <= c->p95_ms && r.refused + r.unfinished == 0;
        fprintf(stderr, "# %u GPUs: p95 %" PRId64 " s\n", c->o.gpus,
                r.spread[REPLAY_ALL].p95 / 1000);
        replay_result_done(&r);
        if (enough)
            high = mid;
        else
            low = mid + 1;
    }
    c->o.gpus = high * SEARCH_GRAIN;
    return 0;
}

static int replay(struct choice *c)
{
    struct err err = ERR_INIT;
    _cleanup_(philly_free) struct philly trace = {0};
    _cleanup_(use_curve_free) struct use_curve curve = {0};
    struct replay_result r;
    int rc = philly_load(c->trace, &trace, &err);
    rc = rc < 0 ? rc : use_curve_load(c->curve, &curve, &err);
    if (rc == 0 && c->p95_ms >= 0)
        rc = search(c, &trace, &curve, &err);
    rc = rc < 0 ? rc : run_once(c, &trace, &curve, &r, &err);
    if (rc < 0)
        return sim_complain(&err);
    if (c->json)
        print_json(c, &r);
    else
        print_text(c, &r);
    replay_result_done(&r);
    return 0;
}

/* ---- options ----------------------------------------------------------------------------- */

enum option_key {
    KEY_TRACE = 256,
    KEY_CURVE,
    KEY_HELIOS,
    KEY_POLICY,
    KEY_GPUS,
    KEY_NODES,
    KEY_QUANTILE,
    KEY_LIMITS,
    KEY_CHECKPOINT,
    KEY_RESTART,
    KEY_GRACE,
    KEY_IDLE,
    KEY_SLOWDOWN,
    KEY_SEED,
    KEY_P95,
    KEY_ALONE,
    KEY_JSON
};

static int parse_number(const char *text, int64_t max, int64_t *ret, struct err *err)
{
    int64_t n;
    int rc = qty_parse_int(text, &n, err);
    if (rc < 0)
        return rc;
    if (n > max)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL, "'%s' is more than %" PRId64,
                       text, max);
    *ret = n;
    return 0;
}

static int parse_policy(const char *text, enum replay_policy *ret, struct err *err)
{
    for (int p = 0; p < REPLAY_POLICIES; p++) {
        if (strcmp(text, replay_policy_name((enum replay_policy)p)) != 0)
            continue;
        *ret = (enum replay_policy)p;
        return 0;
    }
    return err_set(err, -EINVAL, ERR_INVALID, NULL, "use blocks, pool, quota, fraction or idle",
                   "no policy is called '%s'", text);
}

static int parse_count(const char *text, uint32_t max, uint32_t *ret, struct err *err)
{
    int64_t n = 0;
    int rc = parse_number(text, max, &n, err);
    *ret = rc < 0 ? *ret : (uint32_t)n;
    return rc;
}

/* Files and switches. */
static bool set_text(struct choice *c, int key, const char *text)
{
    const char **slot = key == KEY_TRACE    ? &c->trace
                        : key == KEY_CURVE  ? &c->curve
                        : key == KEY_HELIOS ? &c->helios
                                            : NULL;
    bool *flag = key == KEY_LIMITS  ? &c->o.limits
                 : key == KEY_ALONE ? &c->alone
                 : key == KEY_JSON  ? &c->json
                                    : NULL;
    if (slot != NULL)
        *slot = text;
    if (flag != NULL)
        *flag = true;
    return slot != NULL || flag != NULL;
}

static int set_option(struct choice *c, int key, const char *text, struct err *err)
{
    int64_t seed = 0;
    int rc = 0;
    switch (key) {
    case KEY_POLICY:
        return parse_policy(text, &c->o.policy, err);
    case KEY_GPUS:
        return parse_count(text, GPUS_MAX, &c->o.gpus, err);
    case KEY_NODES:
        return parse_count(text, 64, &c->o.node_gpus, err);
    case KEY_QUANTILE:
        return parse_count(text, 100, &c->o.quantile, err);
    case KEY_SLOWDOWN:
        return parse_count(text, 1000, &c->o.slowdown, err);
    case KEY_CHECKPOINT:
        return qty_parse_duration_ms(text, &c->o.checkpoint_ms, err);
    case KEY_RESTART:
        return qty_parse_duration_ms(text, &c->o.restart_ms, err);
    case KEY_GRACE:
        return qty_parse_duration_ms(text, &c->o.grace_ms, err);
    case KEY_IDLE:
        rc = qty_parse_duration_ms(text, &c->o.idle_ms, err);
        if (rc == 0 && c->o.idle_ms == 0)
            rc = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL, "--idle must be above 0");
        return rc;
    case KEY_P95:
        return qty_parse_duration_ms(text, &c->p95_ms, err);
    case KEY_SEED:
        rc = parse_number(text, INT64_MAX, &seed, err);
        c->o.seed = (uint64_t)seed;
        return rc;
    default:
        set_text(c, key, text);
        return 0;
    }
}

static const struct option longs[] = {
    {"trace", required_argument, NULL, KEY_TRACE},
    {"use", required_argument, NULL, KEY_CURVE},
    {"helios", required_argument, NULL, KEY_HELIOS},
    {"policy", required_argument, NULL, KEY_POLICY},
    {"gpus", required_argument, NULL, KEY_GPUS},
    {"node-gpus", required_argument, NULL, KEY_NODES},
    {"quantile", required_argument, NULL, KEY_QUANTILE},
    {"limits", no_argument, NULL, KEY_LIMITS},
    {"checkpoint", required_argument, NULL, KEY_CHECKPOINT},
    {"restart", required_argument, NULL, KEY_RESTART},
    {"grace", required_argument, NULL, KEY_GRACE},
    {"idle", required_argument, NULL, KEY_IDLE},
    {"slowdown", required_argument, NULL, KEY_SLOWDOWN},
    {"seed", required_argument, NULL, KEY_SEED},
    {"p95-wait", required_argument, NULL, KEY_P95},
    {"alone", no_argument, NULL, KEY_ALONE},
    {"json", no_argument, NULL, KEY_JSON},
    {"help", no_argument, NULL, 'h'},
    {0},
};

static int replay_main(int argc, char **argv)
{
    struct choice c = {.p95_ms = -1};
    struct err err = ERR_INIT;
    replay_options_default(&c.o);
    optind = 0;
    for (int key; (key = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        if (key == 'h')
            return sim_usage(&sim_cmd_replay, stdout, 0);
        if (key < KEY_TRACE)
            return sim_usage(&sim_cmd_replay, stderr, 2);
        if (set_option(&c, key, optarg, &err) < 0)
            return sim_complain(&err);
    }
    if (optind < argc || (c.helios == NULL && (c.trace == NULL || c.curve == NULL)))
        return sim_usage(&sim_cmd_replay, stderr, 2);
    if (c.helios != NULL)
        return helios_report(c.helios, c.json, stdout);
    return replay(&c);
}

const struct sim_command sim_cmd_replay = {
    .name = "replay",
    .summary = "replay real arrivals under a policy; measure waits and use",
    .usage =
        "usage: allot sim replay --trace FILE --use FILE [OPTION]...\n"
        "       allot sim replay --helios FOLDER [--json]\n"
        "\n"
        "Replays a trace of arrivals on the scheduler library in virtual time, and prints\n"
        "waits, allocated and busy GPU time. With --helios: figures of observed static\n"
        "partitions, from minute tables (earth_vc*.csv, unpacked).\n"
        "\n"
        "  --trace FILE      jobs: timestamp, duration, num_gpus, cluster\n"
        "  --use FILE        measured GPU use: util_pct, cdf_pct\n"
        "  --policy POLICY   blocks, pool, quota (default), fraction, idle\n"
        "  --gpus N          of the cluster; default: what the blocks add up to\n"
        "  --node-gpus N     GPUs of a node (8); 0 = a flat pool\n"
        "  --quantile P      percent of minutes in which a team's block covers its demand\n"
        "                    (95)\n"
        "  --limits          jobs declare their run time; else nobody knows when they end\n"
        "  --checkpoint T    between saves (30m); 0 = never saved\n"
        "  --restart T, --grace T   cost of an eviction (1m, 30s)\n"
        "  --idle T          policy idle: GPUs are given up after that (30m)\n"
        "  --slowdown P      policy fraction: percent that half a GPU costs (0)\n"
        "  --seed N          of idle periods and use (42)\n"
        "  --p95-wait T      search the fewest GPUs for that p95 wait, in steps of 8\n"
        "  --alone           compare each job with its team alone on its block\n"
        "  --json            one object\n"
        "\n"
        "example: allot sim replay --trace philly.csv --use util_gpu_philly_0.csv \\\n"
        "             --gpus 800\n",
    .run = replay_main,
};
