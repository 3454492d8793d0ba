/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/qty.h"
#include "base/text.h"
#include "sim/command.h"
#include "sim/source.h"
#include "sim/suggest.h"
#include "sim/whatif_print.h"

/* A shorter record tells of one day's work, not of a habit. */
#define ENOUGH_MS (7LL * 24 * 3600 * 1000)

#define NAME_WIDTH 16
#define TEAMS_SHOWN 40
#define CHANGES_SHOWN 6

static const char *amount_text(int64_t milli, char *text)
{
    return milli == MODEL_UNLIMITED ? "all" : qty_format_milli(milli, text);
}

static void print_line(const char *name, const char *jobs, const struct suggest_line *l, FILE *out)
{
    char t[7][QTY_TEXT_MAX], n[WHATIF_NAME_MAX];

    fprintf(out, "%s %5s %6s %6s %6s %6s %6s %6s %5" PRId64 "%s %6s\n",
            whatif_name_text(name, NAME_WIDTH, n), jobs, qty_format_milli(l->p50_milli, t[0]),
            qty_format_milli(l->p95_milli, t[1]), qty_format_milli(l->peak_milli, t[2]),
            qty_format_milli(l->firm_milli, t[3]), amount_text(l->now_milli, t[4]),
            whatif_percent_text(l->now_permille, t[5]), l->gpus, l->cut ? "*" : " ",
            whatif_percent_text(l->then_permille, t[6]));
}

static int compare_peaks(const void *a, const void *b)
{
    const struct suggest_team *x = *(const struct suggest_team *const *)a;
    const struct suggest_team *y = *(const struct suggest_team *const *)b;

    if (x->all.p95_milli != y->all.p95_milli)
        return x->all.p95_milli > y->all.p95_milli ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void print_team(const struct suggest_team *m, FILE *out)
{
    char jobs[32], name[TEXT_NAME_MAX + 32];

    snprintf(jobs, sizeof(jobs), "%" PRIu64, m->jobs);
    print_line(m->team->row.name, jobs, &m->all, out);
    for (size_t k = 0; k < m->type_count; k++) {
        snprintf(name, sizeof(name), "  of %s", m->types[k].type);
        print_line(name, "", &m->types[k], out);
    }
}

/* Those that want most; says how many are left out. */
static void print_table(const struct suggest *s, bool all, FILE *out)
{
    VEC(const struct suggest_team *) teams = {0};
    char n[WHATIF_NAME_MAX];

    for (size_t i = 0; i < s->teams.len; i++)
        vec_push(&teams, &s->teams.items[i]);
    size_t shown = all || teams.len <= TEAMS_SHOWN ? teams.len : TEAMS_SHOWN;
    if (shown < teams.len)
        qsort(teams.items, teams.len, sizeof(*teams.items), compare_peaks);
    fprintf(out, "%s %5s %6s %6s %6s %6s %6s %6s %6s %6s\n",
            whatif_name_text("GPUs", NAME_WIDTH, n), "", "WANTED", "", "", "", "NOW", "", "NEW",
            "");
    fprintf(out, "%s %5s %6s %6s %6s %6s %6s %6s %6s %6s\n",
            whatif_name_text("TEAM", NAME_WIDTH, n), "JOBS", "P50", "P95", "PEAK", "FIRM", "GUAR.",
            "COVERS", "GUAR.", "COVERS");
    for (size_t i = 0; i < shown; i++)
        print_team(teams.items[i], out);
    if (shown < teams.len) {
        int64_t gpus = 0;
        for (size_t i = shown; i < teams.len; i++)
            gpus += teams.items[i]->all.gpus;
        fprintf(out, "... and %zu more teams with %" PRId64 " GPUs: --all shows them\n",
                teams.len - shown, gpus);
    }
    vec_done(&teams);
}

static bool is_changed(const struct suggest_line *l)
{
    return l->now_milli != l->gpus * 1000;
}

static bool other_changes(const struct suggest_other *o)
{
    return o->now_milli != o->gpus * 1000;
}

static void print_others(const struct suggest *s, FILE *out)
{
    char now[QTY_TEXT_MAX], n[WHATIF_NAME_MAX];

    for (size_t i = 0; i < s->others.len; i++) {
        const struct suggest_other *o = &s->others.items[i];
        bool all = o->now_milli == MODEL_UNLIMITED;

        if (!other_changes(o))
            continue;
        fprintf(out, "%s %s GPUs now, %" PRId64 " proposed: %s\n",
                whatif_name_text(o->team->row.name, NAME_WIDTH, n),
                all ? "all" : qty_format_milli(o->now_milli, now), o->gpus,
                o->gpus > 0 ? "what those below it are to have" : "it wanted none");
    }
}

/* How to try it, where that is not too long. */
static void print_try(const struct suggest *s, FILE *out)
{
    size_t changes = 0;

    for (size_t i = 0; i < s->others.len; i++)
        changes += other_changes(&s->others.items[i]);

    for (size_t i = 0; i < s->teams.len; i++) {
        changes += is_changed(&s->teams.items[i].all);
        for (size_t k = 0; k < s->teams.items[i].type_count; k++)
            changes += is_changed(&s->teams.items[i].types[k]);
    }
    if (changes == 0) {
        fputs("That is what there is already.\n", out);
        return;
    }
    fputs("Try it before it is applied: allot sim whatif", out);
    for (size_t i = 0; changes <= CHANGES_SHOWN && i < s->others.len; i++)
        if (other_changes(&s->others.items[i]))
            fprintf(out, " \\\n    --team '%s.guarantee.gpu=%" PRId64 "'",
                    s->others.items[i].team->row.name, s->others.items[i].gpus);
    for (size_t i = 0; changes <= CHANGES_SHOWN && i < s->teams.len; i++) {
        const struct suggest_team *m = &s->teams.items[i];
        if (is_changed(&m->all))
            fprintf(out, " \\\n    --team '%s.guarantee.gpu=%" PRId64 "'", m->team->row.name,
                    m->all.gpus);
        for (size_t k = 0; k < m->type_count; k++)
            if (is_changed(&m->types[k]))
                fprintf(out, " \\\n    --team '%s.guarantee.gpu_types.%s=%" PRId64 "'",
                        m->team->row.name, m->types[k].type, m->types[k].gpus);
    }
    fputs(changes <= CHANGES_SHOWN ? "\n" : " --team nlp.guarantee.gpu=6\n", out);
}

static void print_notes(const struct suggest *s, FILE *out)
{
    bool cut = false, hard = false;
    char t[2][QTY_TEXT_MAX], time[32];

    for (size_t i = 0; i < s->teams.len; i++) {
        const struct suggest_team *m = &s->teams.items[i];
        hard |= m->team->row.quota == MODEL_QUOTA_HARD;
        cut |= m->all.cut;
        for (size_t k = 0; k < m->type_count; k++)
            cut |= m->types[k].cut;
    }
    if (hard)
        fputs("A hard quota is a limit too and borrows nothing: there it is P95 from the start.\n",
              out);
    if (cut)
        fputs("* more is not possible below a limit: of the team, of one above it, of a type.\n",
              out);
    if (s->window_ms < ENOUGH_MS)
        fprintf(out,
                "The record covers %s only: take this for a first guess, and ask again\n"
                "after some days.\n",
                whatif_time_text(s->window_ms, time));
    if (s->scaled)
        fputs("There are fewer GPUs than the medians ask for: all have the same part.\n", out);
    fprintf(out, "The teams' P95 add up to %s GPUs, that of all together is %s%s.\n",
            qty_format_milli(s->sum_p95_milli, t[0]), qty_format_milli(s->p95_milli, t[1]),
            s->p95_milli < s->sum_p95_milli ? ":\nthey do not all peak at once" : "");
}

static void print_text(const struct suggest *s, bool all, FILE *out)
{
    char time[32];

    print_table(s, all, out);
    print_others(s, out);
    fprintf(out,
            "\nProposed %" PRId64 " of %" PRId64
            " GPUs. WANTED: GPUs at a time if there were no end "
            "of them,\nby share of the %s of the record; FIRM: the peak of what may not be\n"
            "evicted. Each team is to have its median (at least FIRM), then what remains is\n"
            "shared out towards each P95 in proportion to what is lacking; the rest is\n"
            "borrowed by weight. COVERS: the part of the wanted GPU time within a guarantee.\n"
            "P99 and waits are in -o json.\n",
            s->gpus, s->capacity_milli / 1000, whatif_time_text(s->window_ms, time));
    print_notes(s, out);
    print_try(s, out);
}

static void encode_amount(struct json_writer *w, const char *key, int64_t milli)
{
    json_key(w, key);
    if (milli == MODEL_UNLIMITED)
        json_null(w);
    else
        json_i64(w, milli);
}

static void encode_line(const struct suggest_line *l, struct json_writer *w)
{
    json_key_i64(w, "demand_p50_milli_gpu", l->p50_milli);
    json_key_i64(w, "demand_p95_milli_gpu", l->p95_milli);
    json_key_i64(w, "demand_p99_milli_gpu", l->p99_milli);
    json_key_i64(w, "demand_peak_milli_gpu", l->peak_milli);
    json_key_i64(w, "firm_peak_milli_gpu", l->firm_milli);
    encode_amount(w, "guarantee_milli_gpu", l->now_milli);
    encode_amount(w, "limit_milli_gpu", l->limit_milli);
    json_key_i64(w, "within_guarantee_permille", l->now_permille);
    json_key_i64(w, "proposed_gpus", l->gpus);
    json_key_bool(w, "cut_by_limit", l->cut);
    json_key_i64(w, "within_proposed_permille", l->then_permille);
}

static void encode_team(const struct suggest_team *m, struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "team", m->team->row.name);
    json_key_string(w, "quota", model_quota_name(m->team->row.quota));
    json_key_i64(w, "jobs", (int64_t)m->jobs);
    encode_line(&m->all, w);
    json_key_i64(w, "wait_p95_ms", m->wait_p95_ms);
    json_key(w, "gpu_types");
    json_begin_object(w);
    for (size_t k = 0; k < m->type_count; k++) {
        json_key(w, m->types[k].type);
        json_begin_object(w);
        encode_line(&m->types[k], w);
        json_end_object(w);
    }
    json_end_object(w);
    json_end_object(w);
}

static void print_json(const struct suggest *s, FILE *out)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct json_writer w;

    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key_i64(&w, "capacity_milli_gpu", s->capacity_milli);
    json_key_i64(&w, "window_ms", s->window_ms);
    json_key_i64(&w, "proposed_gpus", s->gpus);
    json_key_bool(&w, "scaled_down", s->scaled);
    json_key_i64(&w, "sum_of_p95_milli_gpu", s->sum_p95_milli);
    json_key_i64(&w, "demand_p95_milli_gpu", s->p95_milli);
    json_key(&w, "teams");
    json_begin_array(&w);
    for (size_t i = 0; i < s->teams.len; i++)
        encode_team(&s->teams.items[i], &w);
    json_end_array(&w);
    json_key(&w, "others");
    json_begin_array(&w);
    for (size_t i = 0; i < s->others.len; i++) {
        json_begin_object(&w);
        json_key_string(&w, "team", s->others.items[i].team->row.name);
        encode_amount(&w, "guarantee_milli_gpu", s->others.items[i].now_milli);
        json_key_i64(&w, "proposed_gpus", s->others.items[i].gpus);
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    fprintf(out, "%s\n", strbuf_str(&text));
}

static int print(const struct past *past, bool json, bool all, struct err *err)
{
    struct suggest s;
    int e = 0;

    suggest_make(past, &s);
    if (s.teams.len == 0)
        e = err_set(
            err, -ENODATA, ERR_NOT_FOUND, NULL, "come back when some work has run",
            "the record holds no work with GPUs that ran: there is nothing to propose from");
    else if (json)
        print_json(&s, stdout);
    else
        print_text(&s, all, stdout);
    suggest_done(&s);
    return e;
}

struct asked {
    struct source source;
    bool json, all, help;
};

static int parse(int argc, char **argv, struct asked *a, struct err *err)
{
    static const struct option longs[] = {SOURCE_OPTIONS,
                                          {"all", no_argument, NULL, 'a'},
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};

    optind = opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":o:h", longs, NULL)) != -1;) {
        if (c == 'h') {
            a->help = true;
            return 0;
        }
        if (c == 'a')
            a->all = true;
        else if (c == 'o' && strcmp(optarg, "json") == 0)
            a->json = true;
        else if (c == 'o')
            return err_set(err, -EINVAL, ERR_INVALID, "output", "write -o json",
                           "'%.40s' is no kind of output", optarg);
        else if (!source_option(&a->source, c, optarg))
            return source_bad_option(c, argv, err);
    }
    return source_operands(&a->source, argc, argv, err);
}

static int suggest_main(int argc, char **argv, const struct sim_records *records)
{
    struct asked asked = {0};
    struct err err = ERR_INIT;
    struct past past;
    int e = parse(argc, argv, &asked, &err);

    if (asked.help)
        return sim_usage(&sim_cmd_suggest, stdout, 0);
    if (e == 0)
        e = source_read(&asked.source, records, &past, &err);
    if (e < 0)
        return sim_complain(&err);
    e = print(&past, asked.json, asked.all, &err);
    past_done(&past);
    if (e < 0)
        (void)sim_complain(&err);
    return e < 0 ? 1 : 0;
}

const struct sim_command sim_cmd_suggest = {
    .name = "suggest",
    .summary = "propose guarantees per team from a server's own past",
    .usage = "usage: allot sim suggest [OPTION]... [HISTORY]\n"
             "       allot quota suggest [OPTION]...\n"
             "\n"
             "Prints what every team wanted at a time, how much of it its guarantee covers,\n"
             "and a proposal that never exceeds the GPUs there are.\n"
             "\n" SOURCE_HELP "  -o json                  one JSON object\n"
             "\n"
             "  allot quota suggest\n"
             "  allot export history > history.jsonl; allot sim suggest history.jsonl\n",
    .replay = suggest_main,
};
