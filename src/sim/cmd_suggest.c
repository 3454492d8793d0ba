/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/source.h"
#include "sim/suggest.h"
#include "sim/whatif_print.h"

/* A shorter record tells of one day's work, not of a habit. */
#define ENOUGH_MS (7LL * 24 * 3600 * 1000)

static void print_text(const struct suggest *s, FILE *out)
{
    char t[8][QTY_TEXT_MAX], n[WHATIF_NAME_MAX];

    fprintf(out, "%s %6s %6s %6s %6s %6s %6s %6s %8s %6s\n", whatif_name_text("TEAM", 14, n),
            "JOBS", "P50", "P95", "PEAK", "FIRM", "NOW", "COVERS", "PROPOSED", "COVERS");
    for (size_t i = 0; i < s->teams.len; i++) {
        const struct suggest_team *m = &s->teams.items[i];
        bool whole = m->now_milli == MODEL_UNLIMITED;
        fprintf(out,
                "%s %6" PRIu64 " %6s %6s %6s %6s %6s %3" PRId64 ".%" PRId64 "%% %8" PRId64
                " %3" PRId64 ".%" PRId64 "%%\n",
                whatif_name_text(m->team->row.name, 14, n), m->jobs,
                qty_format_milli(m->p50_milli, t[0]), qty_format_milli(m->p95_milli, t[1]),
                qty_format_milli(m->peak_milli, t[3]), qty_format_milli(m->firm_milli, t[4]),
                whole ? "all" : qty_format_milli(m->now_milli, t[5]), m->now_permille / 10,
                m->now_permille % 10, m->gpus, m->then_permille / 10, m->then_permille % 10);
    }
    fprintf(out,
            "\nProposed %" PRId64 " of %" PRId64
            " GPUs. P50 to PEAK: GPUs wanted at a time if there "
            "were no\nend of them, by share of the %s of the record; FIRM: the peak of what may\n"
            "not be evicted.\n",
            s->gpus, s->capacity_milli / 1000, whatif_time_text(s->window_ms, t[0]));
    fputs("Each team is to have its median (at least FIRM), then what remains is shared\n"
          "out towards each P95 in proportion to what is lacking; the rest is borrowed by\n"
          "weight. COVERS: the part of the wanted GPU time that NOW or PROPOSED covers.\n"
          "P99 and waits are in -o json.\n",
          out);
    if (s->window_ms < ENOUGH_MS)
        fprintf(out,
                "The record covers %s only: take this for a first guess, and ask again\n"
                "after some days.\n",
                whatif_time_text(s->window_ms, t[0]));
    if (s->scaled)
        fputs("There are fewer GPUs than the medians ask for: all have the same part.\n", out);
    fprintf(out, "The teams' P95 add up to %s GPUs, that of all together is %s%s.\n",
            qty_format_milli(s->sum_p95_milli, t[1]), qty_format_milli(s->p95_milli, t[2]),
            s->p95_milli < s->sum_p95_milli ? ":\nthey do not all peak at once" : "");
}

static void encode_team(const struct suggest_team *m, struct json_writer *w)
{
    json_begin_object(w);
    json_key_string(w, "team", m->team->row.name);
    json_key_i64(w, "jobs", (int64_t)m->jobs);
    json_key_i64(w, "demand_p50_milli_gpu", m->p50_milli);
    json_key_i64(w, "demand_p95_milli_gpu", m->p95_milli);
    json_key_i64(w, "demand_p99_milli_gpu", m->p99_milli);
    json_key_i64(w, "demand_peak_milli_gpu", m->peak_milli);
    json_key_i64(w, "firm_peak_milli_gpu", m->firm_milli);
    json_key(w, "guarantee_milli_gpu");
    if (m->now_milli == MODEL_UNLIMITED)
        json_null(w);
    else
        json_i64(w, m->now_milli);
    json_key_i64(w, "within_guarantee_permille", m->now_permille);
    json_key_i64(w, "proposed_gpus", m->gpus);
    json_key_i64(w, "within_proposed_permille", m->then_permille);
    json_key_i64(w, "wait_p95_ms", m->wait_p95_ms);
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
    json_end_object(&w);
    fprintf(out, "%s\n", strbuf_str(&text));
}

static int print(const struct past *past, bool json, struct err *err)
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
        print_text(&s, stdout);
    suggest_done(&s);
    return e;
}

static int suggest_main(int argc, char **argv, const struct sim_records *records)
{
    static const struct option longs[] = {SOURCE_OPTIONS,
                                          {"output", required_argument, NULL, 'o'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct source source = {0};
    struct err err = ERR_INIT;
    struct past past;
    bool json = false;

    optind = 0;
    for (int c; (c = getopt_long(argc, argv, "o:h", longs, NULL)) != -1;) {
        if (c == 'h')
            return sim_usage(&sim_cmd_suggest, stdout, 0);
        if (c == 'o' && strcmp(optarg, "json") == 0)
            json = true;
        else if (!source_option(&source, c, optarg))
            return sim_usage(&sim_cmd_suggest, stderr, 2);
    }
    int e = source_operands(&source, argc, argv, &err);
    if (e == 0)
        e = source_read(&source, records, &past, &err);
    if (e < 0)
        return sim_complain(&err);
    e = print(&past, json, &err);
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
