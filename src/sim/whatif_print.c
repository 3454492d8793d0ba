/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/whatif_print.h"

#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json_writer.h"

#define HOUR_MS ((int64_t)3600 * 1000)

const char *whatif_time_text(int64_t ms, char *text)
{
    if (ms < 1000)
        snprintf(text, 32, ms == 0 ? "0" : "%" PRId64 "ms", ms);
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
    int64_t tenths = milli_ms / (HOUR_MS * 100);

    snprintf(text, 32, "%" PRId64 ".%" PRId64, tenths / 10, tenths % 10);
    return text;
}

/* In tenths of a percent, rounded down. */
static int64_t share(int64_t part, int64_t capacity_milli, int64_t window_ms)
{
    __int128 whole = (__int128)capacity_milli * window_ms;
    return whole > 0 ? (int64_t)((__int128)part * 1000 / whole) : 0;
}

static int64_t money(int64_t milli_ms, int64_t price)
{
    __int128 unit = (__int128)1000 * HOUR_MS;
    return (int64_t)(((__int128)milli_ms * price + unit / 2) / unit);
}

static const struct whatif_group *find(const struct whatif_outcome *o, const struct whatif_group *g)
{
    for (size_t i = 0; i < o->groups.len; i++)
        if (o->groups.items[i].kind == g->kind && strcmp(o->groups.items[i].name, g->name) == 0)
            return &o->groups.items[i];
    return NULL;
}

/* ---- tables ------------------------------------------------------------------------------- */

static void print_waits(const struct whatif_group *g, FILE *out)
{
    char t[4][32];

    fprintf(out, " | %7s %7s %7s %7s %5" PRIu64, whatif_time_text(g->mean_ms, t[0]),
            whatif_time_text(g->p50_ms, t[1]), whatif_time_text(g->p95_ms, t[2]),
            whatif_time_text(g->p99_ms, t[3]), g->waiting + g->refused);
}

static void print_group(const struct whatif_report *r, size_t i, FILE *out)
{
    const struct whatif_group *g = &r->recorded.groups.items[i];
    const struct whatif_group *b = find(&r->baseline, g), *a = find(&r->asked, g);

    fprintf(out, "%-20.20s %6" PRIu64, g->name, g->jobs);
    print_waits(g, out);
    print_waits(b, out);
    if (r->changed)
        print_waits(a, out);
    fputc('\n', out);
}

static void print_all_waits(const struct whatif_report *r, FILE *out)
{
    static const char columns[] = "    mean     p50     p95     p99 never";
    const enum whatif_group_kind kinds[] = {WHATIF_ALL, WHATIF_TEAM, WHATIF_SIZE};

    fprintf(out, "Wait from submit to start\n%-20s %6s | %-37s | %-37s", "", "", "recorded",
            "replayed as it was");
    fprintf(out, r->changed ? " | what if\n" : "\n");
    fprintf(out, "%-20s %6s |%s |%s", "", "JOBS", columns, columns);
    fprintf(out, r->changed ? " |%s\n" : "\n", columns);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
        for (size_t i = 0; i < r->recorded.groups.len; i++)
            if (r->recorded.groups.items[i].kind == kinds[k])
                print_group(r, i, out);
}

static void print_use(const struct whatif_report *r, FILE *out)
{
    const struct whatif_outcome *all[] = {&r->recorded, &r->baseline, &r->asked};
    const char *const names[] = {"recorded", "replayed as it was", "what if"};

    fprintf(out, "\n%-20s %10s %10s %10s %10s %10s", "Use", "GPUS", "ALLOCATED", "GPU-HOURS",
            "LOST", "RESTARTS");
    fprintf(out, r->price_uusd ? " %14s %14s\n" : "\n", "COST USD", "IDLE USD");
    for (size_t i = 0; i < (r->changed ? 3 : 2); i++) {
        const struct whatif_outcome *o = all[i];
        int64_t permille = share(o->window_milli_ms, o->capacity_milli, o->window_ms);
        int64_t idle = money(o->capacity_milli * o->window_ms - o->window_milli_ms, r->price_uusd);
        int64_t cost = money(o->held_milli_ms, r->price_uusd);
        char t[3][32];
        snprintf(t[2], sizeof(t[2]), "%" PRId64 ".%" PRId64 "%%", permille / 10, permille % 10);
        fprintf(out, "%-20s %10" PRId64 " %10s %10s %10s %10" PRIu64, names[i],
                o->capacity_milli / 1000, t[2], whatif_hours_text(o->held_milli_ms, t[0]),
                i == 0 ? "-" : whatif_hours_text(o->lost_milli_ms, t[1]), o->restarts);
        if (r->price_uusd)
            fprintf(out, " %11" PRId64 ".%02" PRId64 " %11" PRId64 ".%02" PRId64, cost / 1000000,
                    cost % 1000000 / 10000, idle / 1000000, idle % 1000000 / 10000);
        fputc('\n', out);
    }
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

void whatif_print_text(const struct whatif_report *r, FILE *out)
{
    const struct whatif_difference *d = &r->error;
    size_t open, guessed, left;
    char t[4][32];

    count_guesses(r->past, &open, &guessed, &left);
    print_all_waits(r, out);
    print_use(r, out);
    fprintf(out,
            "\nHow far the replay as it was is from the record, over %" PRIu64 " jobs: half of the "
            "starts\nwithin %s, 95%% within %s, the worst %s; %" PRIu64 ".%" PRIu64
            "%% of neighbours start in the same order.\n",
            d->jobs, whatif_time_text(d->p50_ms, t[0]), whatif_time_text(d->p95_ms, t[1]),
            whatif_time_text(d->worst_ms, t[2]), d->order_milli / 10, d->order_milli % 10);
    fprintf(out,
            "Record of %s. Run times: %zu jobs still ran at its end and are taken to end with it\n"
            "(or when they expect), %zu had not run and are taken to run as long as they expect or "
            "the median;\n%zu cancelled before they ran are left out. 'never': did not start.\n",
            whatif_time_text(r->recorded.window_ms, t[3]), open, guessed, left);
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
    json_key_i64(w, "restarts", (int64_t)g->restarts);
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
    json_key_i64(w, "allocated_permille",
                 share(o->window_milli_ms, o->capacity_milli, o->window_ms));
    json_key_i64(w, "held_milli_gpu_ms", o->held_milli_ms);
    json_key_i64(w, "lost_milli_gpu_ms", o->lost_milli_ms);
    json_key_i64(w, "restarts", (int64_t)o->restarts);
    if (r->price_uusd)
        json_key_i64(w, "cost_uusd", money(o->held_milli_ms, r->price_uusd));
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
    json_end_object(&w);
    json_key_i64(&w, "jobs_still_running", (int64_t)open);
    json_key_i64(&w, "jobs_with_guessed_run_time", (int64_t)guessed);
    json_key_i64(&w, "jobs_left_out", (int64_t)left);
    json_end_object(&w);
    fprintf(out, "%s\n", strbuf_str(&text));
}
