/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/whatif_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/text.h"

#define HOUR_MS ((int64_t)3600 * 1000)
#define TEAMS_SHOWN 20
#define NAME_WIDTH 18
#define ALIKE_MILLI 950 /* of neighbours in the same order: below it a replay is a poor copy */

const char *whatif_time_text(int64_t ms, char *text)
{
    if (ms < 1000)
        snprintf(text, 32, ms == 0 ? "0s" : "%" PRId64 "ms", ms);
    else if (ms < 120000)
        snprintf(text, 32, "%" PRId64 ".%" PRId64 "s", ms / 1000, ms % 1000 / 100);
    else if (ms < 2 * HOUR_MS)
        snprintf(text, 32, "%" PRId64 "m", ms / 60000);
    else
        snprintf(text, 32, "%" PRId64 ".%" PRId64 "h", ms / HOUR_MS, ms % HOUR_MS * 10 / HOUR_MS);
    return text;
}

const char *whatif_hours_text(int64_t milli_ms, char *text)
{
    int64_t tenths = milli_ms / (HOUR_MS * 100), milli = milli_ms / HOUR_MS;

    if (tenths < 100)
        snprintf(text, 32, "%" PRId64 ".%03" PRId64, milli / 1000, milli % 1000);
    else
        snprintf(text, 32, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
    return text;
}

/* Columns of the character at S, whose bytes go to RET_LEN. */
static int columns(const char *s, size_t *ret_len)
{
    size_t len = text_utf8_len(s, strlen(s));
    mbstate_t state = {0};
    wchar_t c;

    *ret_len = len ? len : 1;
    /* In a locale that does not know UTF-8 a character is a column. */
    return mbrtowc(&c, s, *ret_len, &state) == *ret_len && wcwidth(c) >= 0 ? wcwidth(c) : 1;
}

const char *whatif_name_text(const char *name, int width, char *text)
{
    size_t at = 0, cut = 0, len;
    int used = 0, kept = 0; /* columns: so far, and where it would be cut */

    while (name[at] && used <= width) {
        used += columns(name + at, &len);
        at += len;
        if (used < width) {
            cut = at;
            kept = used;
        }
    }
    if (used <= width)
        snprintf(text, WHATIF_NAME_MAX, "%s%*s", name, width - used, "");
    else
        snprintf(text, WHATIF_NAME_MAX, "%.*s…%*s", (int)cut, name, width - kept - 1, "");
    return text;
}

/* In tenths of a percent, rounded down. */
static int64_t share(const struct whatif_outcome *o)
{
    return o->capacity_milli_ms > 0
               ? (int64_t)((__int128)o->window_milli_ms * 1000 / o->capacity_milli_ms)
               : 0;
}

static int64_t money(int64_t milli_ms, int64_t price)
{
    __int128 unit = (__int128)1000 * HOUR_MS;
    return (int64_t)(((__int128)milli_ms * price + unit / 2) / unit);
}

static int64_t idle_time(const struct whatif_outcome *o)
{
    return o->capacity_milli_ms > o->window_milli_ms ? o->capacity_milli_ms - o->window_milli_ms
                                                     : 0;
}

/* The group G of the record in another outcome: they are the same, in the same order. */
static const struct whatif_group *find(const struct whatif_report *r,
                                       const struct whatif_outcome *o, const struct whatif_group *g)
{
    return &o->groups.items[g - r->recorded.groups.items];
}

/* ---- waits -------------------------------------------------------------------------------- */

static const char *const run_names[] = {"recorded", "replayed", "what if"};

static void print_waits(const char *name, const char *run, const struct whatif_group *g, FILE *out)
{
    char t[4][32], n[WHATIF_NAME_MAX];

    fprintf(out, "%s %-9s %7" PRIu64 " %8s %8s %8s %8s %6" PRIu64 "\n",
            whatif_name_text(name, NAME_WIDTH, n), run, g->jobs, whatif_time_text(g->mean_ms, t[0]),
            whatif_time_text(g->p50_ms, t[1]), whatif_time_text(g->p95_ms, t[2]),
            whatif_time_text(g->p99_ms, t[3]), g->waiting + g->refused);
}

static void print_group(const struct whatif_report *r, const struct whatif_group *g, FILE *out)
{
    print_waits(g->name, run_names[0], g, out);
    print_waits("", run_names[1], find(r, &r->baseline, g), out);
    if (r->changed)
        print_waits("", run_names[2], find(r, &r->asked, g), out);
}

static int compare_held(const void *a, const void *b)
{
    const struct whatif_group *x = *(const struct whatif_group *const *)a;
    const struct whatif_group *y = *(const struct whatif_group *const *)b;

    if (x->held_milli_ms != y->held_milli_ms)
        return x->held_milli_ms > y->held_milli_ms ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Those with most GPU time; says how many are left out. */
static void print_teams(const struct whatif_report *r, FILE *out)
{
    VEC(const struct whatif_group *) teams = {0};
    uint64_t jobs = 0;

    for (size_t i = 0; i < r->recorded.groups.len; i++)
        if (r->recorded.groups.items[i].kind == WHATIF_TEAM)
            vec_push(&teams, &r->recorded.groups.items[i]);
    size_t shown = r->all_teams || teams.len <= TEAMS_SHOWN ? teams.len : TEAMS_SHOWN;
    if (shown < teams.len)
        qsort(teams.items, teams.len, sizeof(*teams.items), compare_held);
    for (size_t i = 0; i < teams.len; i++) {
        if (i < shown)
            print_group(r, teams.items[i], out);
        else
            jobs += teams.items[i]->jobs;
    }
    if (shown < teams.len)
        fprintf(out, "... and %zu more teams with %" PRIu64 " jobs: --all shows them\n",
                teams.len - shown, jobs);
    vec_done(&teams);
}

static void print_all_waits(const struct whatif_report *r, FILE *out)
{
    char n[WHATIF_NAME_MAX];

    fprintf(out, "%s %-9s %7s %8s %8s %8s %8s %6s\n",
            whatif_name_text("Wait until start", NAME_WIDTH, n), "", "JOBS", "MEAN", "P50", "P95",
            "P99", "NEVER");
    for (size_t i = 0; i < r->recorded.groups.len; i++)
        if (r->recorded.groups.items[i].kind == WHATIF_ALL)
            print_group(r, &r->recorded.groups.items[i], out);
    fputs("Teams\n", out);
    print_teams(r, out);
    fputs("Sizes of jobs\n", out);
    for (size_t i = 0; i < r->recorded.groups.len; i++)
        if (r->recorded.groups.items[i].kind == WHATIF_SIZE)
            print_group(r, &r->recorded.groups.items[i], out);
}

/* ---- use ---------------------------------------------------------------------------------- */

static const struct whatif_outcome *outcome(const struct whatif_report *r, int which)
{
    return which == 0 ? &r->recorded : which == 1 ? &r->baseline : &r->asked;
}

static int outcomes(const struct whatif_report *r)
{
    return r->changed ? 3 : 2;
}

const char *whatif_percent_text(int64_t permille, char *text)
{
    snprintf(text, 32, "%" PRId64 ".%" PRId64 "%%", permille / 10, permille % 10);
    return text;
}

static void print_use(const struct whatif_report *r, FILE *out)
{
    char n[WHATIF_NAME_MAX], t[4][32];

    fprintf(out, "\n%s %-9s %7s %9s %10s %8s %7s\n", whatif_name_text("Use of GPUs", NAME_WIDTH, n),
            "", "GPUS", "ALLOCATED", "GPU-HOURS", "EVICTED", "RETRIED");
    for (int i = 0; i < outcomes(r); i++) {
        const struct whatif_outcome *o = outcome(r, i);
        fprintf(out, "%s %-9s %7" PRId64 " %9s %10s %8" PRIu64 " %7" PRIu64 "\n",
                whatif_name_text("", NAME_WIDTH, n), run_names[i], o->capacity_milli / 1000,
                whatif_percent_text(share(o), t[0]), whatif_hours_text(o->held_milli_ms, t[1]),
                o->evictions, o->retries + o->losses);
    }
    for (int i = 1; i < outcomes(r); i++)
        if (outcome(r, i)->lost_milli_ms > 0)
            fprintf(out, "Of the GPU-hours of '%s', %s are work done again after evictions.\n",
                    run_names[i], whatif_hours_text(outcome(r, i)->lost_milli_ms, t[0]));
}

static const char *usd_text(int64_t uusd, char *text)
{
    int64_t cents = (uusd + 5000) / 10000;

    snprintf(text, 32, "%" PRId64 ".%02" PRId64, cents / 100, cents % 100);
    return text;
}

static void print_cost(const struct whatif_report *r, FILE *out)
{
    char n[WHATIF_NAME_MAX], t[2][32];

    if (r->price_uusd == 0)
        return;
    fprintf(out, "\n%s %-9s %15s %15s\n", whatif_name_text("Cost in USD", NAME_WIDTH, n), "",
            "HELD BY WORK", "IDLE");
    for (int i = 0; i < outcomes(r); i++) {
        const struct whatif_outcome *o = outcome(r, i);
        fprintf(out, "%s %-9s %15s %15s\n", whatif_name_text("", NAME_WIDTH, n), run_names[i],
                usd_text(money(o->held_milli_ms, r->price_uusd), t[0]),
                usd_text(money(idle_time(o), r->price_uusd), t[1]));
    }
    fprintf(out, "At %" PRId64 ".%06" PRId64 " USD a GPU-hour; idle is within the record.\n",
            r->price_uusd / 1000000, r->price_uusd % 1000000);
}

/* ---- how far to trust it ------------------------------------------------------------------ */

static int64_t apart(int64_t a, int64_t b)
{
    return a > b ? a - b : b - a;
}

static int64_t mean_wait(const struct whatif_outcome *o)
{
    return o->groups.len > 0 ? o->groups.items[0].mean_ms : 0;
}

static uint64_t never_started(const struct whatif_outcome *o)
{
    return o->groups.len > 0 ? o->groups.items[0].waiting + o->groups.items[0].refused : 0;
}

static void print_changes_known(const struct whatif_report *r, FILE *out)
{
    const struct past *p = r->past;
    char text[CLOCK_TEXT_MAX];

    if (r->baseline.skipped > 0)
        fprintf(out,
                "  changes    %" PRIu64 " of %zu recorded ones could not be made at their time\n",
                r->baseline.skipped, p->changes.len);
    else
        fprintf(out, "  changes    %zu of quotas and nodes, at their recorded times\n",
                p->changes.len);
    if (p->events_from_ms > p->from_ms) {
        clock_format_utc(p->events_from_ms, text);
        fprintf(out, "             those before %s are not known\n", text);
    }
}

static void print_fit(const struct whatif_report *r, FILE *out)
{
    const struct whatif_difference *d = &r->error;
    int64_t was = share(&r->recorded), is = share(&r->baseline), gap = apart(was, is);
    char t[5][32];

    fprintf(out,
            "\nFit: what is replayed without a change, against the record (%" PRIu64 " jobs)\n",
            d->jobs);
    fprintf(out, "  mean wait  %s recorded, %s replayed\n",
            whatif_time_text(mean_wait(&r->recorded), t[0]),
            whatif_time_text(mean_wait(&r->baseline), t[1]));
    fprintf(out, "  starts     half within %s, 95%% within %s, the worst %s apart\n",
            whatif_time_text(d->p50_ms, t[0]), whatif_time_text(d->p95_ms, t[1]),
            whatif_time_text(d->worst_ms, t[2]));
    fprintf(out, "  order      %s of neighbours start in the same order\n",
            whatif_percent_text((int64_t)d->order_milli, t[0]));
    if (d->order_milli < ALIKE_MILLI)
        fputs("             a poor copy of this record: what follows is a rough guess\n",
              out);
    fprintf(out, "  allocated  %s recorded, %s replayed: %" PRId64 ".%" PRId64 " points apart\n",
            whatif_percent_text(was, t[0]), whatif_percent_text(is, t[1]), gap / 10, gap % 10);
    print_changes_known(r, out);
    fprintf(out, "  stops      an evicted task takes %s to stop, ",
            whatif_time_text(r->stop_ms, t[0]));
    if (r->stops > 0)
        fprintf(out, "the median of %zu\n", r->stops);
    else
        fputs("which is assumed\n", out);
}

/* What is asked, beside the replay; and whether that is more than what the replay is off by. */
static void print_answer(const struct whatif_report *r, FILE *out)
{
    int64_t was = mean_wait(&r->baseline), is = mean_wait(&r->asked);
    char t[4][32];

    if (!r->changed)
        return;
    fprintf(out,
            "\nWhat if, beside the replay: mean wait %s instead of %s, allocated %s\n"
            "instead of %s.\n",
            whatif_time_text(is, t[0]), whatif_time_text(was, t[1]),
            whatif_percent_text(share(&r->asked), t[2]),
            whatif_percent_text(share(&r->baseline), t[3]));
    if (never_started(&r->asked) + never_started(&r->baseline) > 0)
        fprintf(out,
                "%" PRIu64 " jobs never start in it instead of %" PRIu64 ", and are in no mean.\n",
                never_started(&r->asked), never_started(&r->baseline));
    if (apart(was, is) <= apart(was, mean_wait(&r->recorded)) && was != is)
        fputs("The replay is off by more than that: of mean waits this says nothing.\n", out);
    if (r->asked.skipped > 0)
        fprintf(out, "%" PRIu64 " recorded changes could not be made in it at their time.\n",
                r->asked.skipped);
}

/* Counts of what is not known of the record. */
static void count_guesses(const struct past *p, size_t *ret_open, size_t *ret_guessed,
                          size_t *ret_left)
{
    *ret_open = *ret_guessed = *ret_left = 0;
    for (size_t i = 0; i < p->jobs.len; i++) {
        *ret_left += p->jobs.items[i].left_out;
        *ret_open += p->jobs.items[i].guess == PAST_CENSORED;
        *ret_guessed += !p->jobs.items[i].left_out && p->jobs.items[i].guess == PAST_GUESSED;
    }
}

static void print_footer(const struct whatif_report *r, FILE *out)
{
    size_t open, guessed, left;
    char t[32];

    count_guesses(r->past, &open, &guessed, &left);
    fprintf(out, "\nRecord of %s.", whatif_time_text(r->recorded.window_ms, t));
    if (open > 0)
        fprintf(out, "\n%zu jobs still ran at its end: taken to end with it, or when they expect.",
                open);
    if (guessed > 0)
        fprintf(out,
                "\n%zu jobs had not run: taken to run as long as they expect, as their limit, or"
                "\nas the median job.",
                guessed);
    if (left > 0)
        fprintf(out, "\n%zu jobs were cancelled before they ran and are left out.", left);
    fputs("\nNEVER: did not start. RETRIED: after failures, and with lost nodes.\n", out);
}

void whatif_print_text(const struct whatif_report *r, FILE *out)
{
    print_all_waits(r, out);
    print_use(r, out);
    print_cost(r, out);
    print_fit(r, out);
    print_answer(r, out);
    print_footer(r, out);
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void encode_group(const struct whatif_group *g, struct json_writer *w)
{
    static const char *const kinds[] = {"all", "team", "size"};

    json_begin_object(w);
    json_key_string(w, "kind", kinds[g->kind]);
    json_key_string(w, "name", g->name);
    json_key_i64(w, "jobs", (int64_t)g->jobs);
    json_key_i64(w, "waiting", (int64_t)g->waiting);
    json_key_i64(w, "refused", (int64_t)g->refused);
    json_key_i64(w, "wait_mean_ms", g->mean_ms);
    json_key_i64(w, "wait_p50_ms", g->p50_ms);
    json_key_i64(w, "wait_p95_ms", g->p95_ms);
    json_key_i64(w, "wait_p99_ms", g->p99_ms);
    json_key_i64(w, "held_milli_gpu_ms", g->held_milli_ms);
    json_key_i64(w, "evictions", (int64_t)g->evictions);
    json_key_i64(w, "retries", (int64_t)g->retries);
    json_key_i64(w, "node_losses", (int64_t)g->losses);
    json_end_object(w);
}

static void encode_outcome(const struct whatif_report *r, const char *key,
                           const struct whatif_outcome *o, struct json_writer *w)
{
    json_key(w, key);
    json_begin_object(w);
    json_key_i64(w, "capacity_milli_gpu", o->capacity_milli);
    json_key_i64(w, "window_ms", o->window_ms);
    json_key_i64(w, "allocated_milli_gpu_ms", o->window_milli_ms);
    json_key_i64(w, "available_milli_gpu_ms", o->capacity_milli_ms);
    json_key_i64(w, "allocated_permille", share(o));
    json_key_i64(w, "held_milli_gpu_ms", o->held_milli_ms);
    json_key_i64(w, "lost_milli_gpu_ms", o->lost_milli_ms);
    json_key_i64(w, "evictions", (int64_t)o->evictions);
    json_key_i64(w, "retries", (int64_t)o->retries);
    json_key_i64(w, "node_losses", (int64_t)o->losses);
    json_key_i64(w, "changes_left_out", (int64_t)o->skipped);
    if (r->price_uusd) {
        json_key_i64(w, "cost_uusd", money(o->held_milli_ms, r->price_uusd));
        json_key_i64(w, "idle_uusd", money(idle_time(o), r->price_uusd));
    }
    json_key(w, "groups");
    json_begin_array(w);
    for (size_t i = 0; i < o->groups.len; i++)
        encode_group(&o->groups.items[i], w);
    json_end_array(w);
    json_end_object(w);
}

void whatif_print_json(const struct whatif_report *r, FILE *out)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    size_t open, guessed, left;
    struct json_writer w;

    count_guesses(r->past, &open, &guessed, &left);
    json_writer_init(&w, &text);
    json_begin_object(&w);
    encode_outcome(r, "recorded", &r->recorded, &w);
    encode_outcome(r, "baseline", &r->baseline, &w);
    if (r->changed)
        encode_outcome(r, "whatif", &r->asked, &w);
    json_key(&w, "model_error");
    json_begin_object(&w);
    json_key_i64(&w, "jobs", (int64_t)r->error.jobs);
    json_key_i64(&w, "start_p50_ms", r->error.p50_ms);
    json_key_i64(&w, "start_p95_ms", r->error.p95_ms);
    json_key_i64(&w, "start_worst_ms", r->error.worst_ms);
    json_key_i64(&w, "same_order_permille", (int64_t)r->error.order_milli);
    json_key_i64(&w, "mean_wait_ms", apart(mean_wait(&r->recorded), mean_wait(&r->baseline)));
    json_key_i64(&w, "allocated_permille", apart(share(&r->recorded), share(&r->baseline)));
    json_end_object(&w);
    json_key_i64(&w, "jobs_still_running", (int64_t)open);
    json_key_i64(&w, "jobs_with_guessed_run_time", (int64_t)guessed);
    json_key_i64(&w, "jobs_left_out", (int64_t)left);
    json_key_i64(&w, "stop_ms", r->stop_ms);
    json_key_i64(&w, "stops_recorded", (int64_t)r->stops);
    json_key_i64(&w, "changes", (int64_t)r->past->changes.len);
    json_key_i64(&w, "changes_known_from_ms", r->past->events_from_ms);
    json_end_object(&w);
    fprintf(out, "%s\n", strbuf_str(&text));
}
