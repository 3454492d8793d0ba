/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/helios.h"

#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/vec.h"
#include "sim/command.h"
#include "sim/csv.h"

#define GPUS_MAX 100000
#define TEAMS_MAX 256
#define POOL_GPUS 700 /* of one pool, to compare with */

struct minute {
    const char *time; /* in the first table's text */
    int32_t total, running, pending;
};

struct table {
    char name[64];
    struct csv csv;
    VEC(struct minute) minutes;
};

struct counts VEC_BODY(int64_t);

struct helios {
    struct table tables[TEAMS_MAX];
    size_t count, minutes;
    bool *left_out; /* by minute: outage */
    size_t valid;
};

struct team_figures {
    const char *name;
    int64_t running, total, queued_minutes; /* sums over minutes */
};

struct figures {
    int64_t total, running, pending, idle, in_quota_pending, both_minutes, pool_used;
    int64_t pooled[4], apart[2]; /* p50 p95 p99 max of the sum; p99 max summed over teams */
    struct team_figures teams[TEAMS_MAX];
};

/* ---- reading ----------------------------------------------------------------------------- */

static int read_table(struct table *t, const char *path, struct err *err)
{
    const char *base = strrchr(path, '/');
    snprintf(t->name, sizeof(t->name), "%s", base == NULL ? path : base + 1);
    t->name[strcspn(t->name, ".")] = '\0';
    struct csv *c = &t->csv;
    size_t time, total, running, pending;
    int64_t v[3];
    int r = csv_open(c, path, err);
    r = r < 0 ? r : csv_column(c, "time", &time, err);
    r = r < 0 ? r : csv_column(c, "total_gpu_num", &total, err);
    r = r < 0 ? r : csv_column(c, "running_gpu_num", &running, err);
    r = r < 0 ? r : csv_column(c, "pending_gpu_num", &pending, err);
    while (r >= 0 && (r = csv_next(c, err)) > 0) {
        r = csv_int(c, total, 0, GPUS_MAX, &v[0], err);
        r = r < 0 ? r : csv_int(c, running, 0, GPUS_MAX, &v[1], err);
        r = r < 0 ? r : csv_int(c, pending, 0, GPUS_MAX, &v[2], err);
        struct minute m = {csv_text(c, time), (int32_t)v[0], (int32_t)v[1], (int32_t)v[2]};
        if (r == 0)
            vec_push(&t->minutes, m);
    }
    return r;
}

/* All tables speak of the same minutes. */
static int check_times(const struct helios *h, struct err *err)
{
    for (size_t t = 1; t < h->count; t++) {
        const struct table *a = &h->tables[0], *b = &h->tables[t];
        bool same = a->minutes.len == b->minutes.len;
        for (size_t i = 0; same && i < a->minutes.len; i++)
            same = strcmp(a->minutes.items[i].time, b->minutes.items[i].time) == 0;
        if (!same)
            return err_set(err, -EINVAL, ERR_INVALID, NULL, "tables must cover the same time",
                           "%s and %s have different minutes", a->csv.path, b->csv.path);
    }
    return 0;
}

static void find_outages(struct helios *h)
{
    h->minutes = h->tables[0].minutes.len;
    h->left_out = calloc(h->minutes + 1, sizeof(h->left_out[0]));
    if (h->left_out == NULL)
        abort();
    for (size_t i = 0; i < h->minutes; i++) {
        int64_t running = 0;
        for (size_t t = 0; t < h->count; t++)
            running += h->tables[t].minutes.items[i].running;
        h->left_out[i] = running == 0;
        h->valid += running > 0;
    }
}

static int helios_load(const char *folder, struct helios *h, struct err *err)
{
    struct strbuf pattern = STRBUF_INIT;
    strbuf_addf(&pattern, "%s/earth_vc*.csv", folder);
    glob_t found = {0};
    int r = glob(strbuf_str(&pattern), 0, NULL, &found) == 0 ? 0 : -ENOENT;
    strbuf_done(&pattern);
    if (r < 0 || found.gl_pathc > TEAMS_MAX)
        r = err_set(err, -ENOENT, ERR_NOT_FOUND, NULL, "unpack earth_vc*.csv.gz there",
                    "'%s' holds no earth_vc*.csv, or too many", folder);
    for (size_t i = 0; r == 0 && i < found.gl_pathc; i++)
        r = read_table(&h->tables[h->count++], found.gl_pathv[i], err);
    globfree(&found);
    r = r < 0 ? r : check_times(h, err);
    if (r < 0)
        return r;
    find_outages(h);
    if (h->valid == 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "nothing ever runs in '%s'", folder);
    return 0;
}

static void helios_free(struct helios *h)
{
    for (size_t t = 0; t < h->count; t++) {
        csv_close(&h->tables[t].csv);
        vec_done(&h->tables[t].minutes);
    }
    free(h->left_out);
}

/* ---- figures ----------------------------------------------------------------------------- */

static int count_compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Nearest rank; sorts. */
static int64_t quantile(struct counts *c, uint32_t percent)
{
    qsort(c->items, c->len, sizeof(c->items[0]), count_compare);
    size_t rank = (c->len * percent + 99) / 100;
    return c->items[rank > 0 ? rank - 1 : 0];
}

static void team_minutes(const struct helios *h, size_t t, struct figures *f)
{
    struct counts demand = {0};
    struct team_figures *team = &f->teams[t];
    team->name = h->tables[t].name;
    for (size_t i = 0; i < h->minutes; i++) {
        const struct minute *m = &h->tables[t].minutes.items[i];
        if (h->left_out[i])
            continue;
        int64_t wanted = (int64_t)m->running + m->pending;
        int64_t idle = m->total > m->running ? m->total - m->running : 0;
        vec_push(&demand, wanted);
        team->running += m->running;
        team->total += m->total;
        team->queued_minutes += m->pending > 0;
        f->in_quota_pending += m->pending < idle ? m->pending : idle;
    }
    f->apart[0] += quantile(&demand, 99);
    f->apart[1] += quantile(&demand, 100);
    f->running += team->running;
    f->total += team->total;
    vec_done(&demand);
}

static void pooled_minutes(const struct helios *h, struct figures *f)
{
    static const uint32_t percents[] = {50, 95, 99, 100};
    struct counts demand = {0};
    for (size_t i = 0; i < h->minutes; i++) {
        int64_t running = 0, pending = 0, total = 0;
        for (size_t t = 0; t < h->count; t++) {
            running += h->tables[t].minutes.items[i].running;
            pending += h->tables[t].minutes.items[i].pending;
            total += h->tables[t].minutes.items[i].total;
        }
        if (h->left_out[i])
            continue;
        int64_t wanted = running + pending, idle = total > running ? total - running : 0;
        vec_push(&demand, wanted);
        f->pending += pending;
        f->idle += idle;
        f->both_minutes += pending > 0 && idle > 0;
        f->pool_used += wanted < POOL_GPUS ? wanted : POOL_GPUS;
    }
    for (size_t i = 0; i < ARRAY_LEN(percents); i++)
        f->pooled[i] = quantile(&demand, percents[i]);
    vec_done(&demand);
}

/* ---- printing ---------------------------------------------------------------------------- */

static double ratio(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void json_number(struct json_writer *w, const char *key, double value)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%.2f", value);
    json_key(w, key);
    json_raw(w, text, (size_t)len);
}

static void print_json(const struct helios *h, const struct figures *f, FILE *out)
{
    static const char *const names[] = {"pooled_demand_p50", "pooled_demand_p95",
                                        "pooled_demand_p99", "pooled_demand_max"};
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    int64_t n = (int64_t)h->valid;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key_i64(&w, "minutes", n);
    json_key_i64(&w, "outage_minutes", (int64_t)(h->minutes - h->valid));
    json_number(&w, "allocated_percent", 100 * ratio(f->running, f->total));
    json_number(&w, "gpus_mean", ratio(f->total, n));
    json_number(&w, "pending_mean", ratio(f->pending, n));
    json_number(&w, "idle_mean", ratio(f->idle, n));
    json_number(&w, "both_percent_of_minutes", 100 * ratio(f->both_minutes, n));
    json_number(&w, "in_quota_pending_mean", ratio(f->in_quota_pending, n));
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        json_key_i64(&w, names[i], f->pooled[i]);
    json_key_i64(&w, "sum_of_team_p99", f->apart[0]);
    json_key_i64(&w, "sum_of_team_max", f->apart[1]);
    json_key_i64(&w, "pool_gpus", POOL_GPUS);
    json_number(&w, "pool_allocated_percent", 100 * ratio(f->pool_used, n * POOL_GPUS));
    json_key(&w, "teams");
    json_begin_array(&w);
    for (size_t t = 0; t < h->count; t++) {
        json_begin_object(&w);
        json_key_string(&w, "name", f->teams[t].name);
        json_number(&w, "gpus_mean", ratio(f->teams[t].total, n));
        json_number(&w, "allocated_percent", 100 * ratio(f->teams[t].running, f->teams[t].total));
        json_number(&w, "queue_percent_of_minutes", 100 * ratio(f->teams[t].queued_minutes, n));
        json_end_object(&w);
    }
    json_end_array(&w);
    json_end_object(&w);
    fprintf(out, "%s\n", strbuf_str(&text));
    strbuf_done(&text);
}

static void print_text(const struct helios *h, const struct figures *f, FILE *out)
{
    int64_t n = (int64_t)h->valid;
    fprintf(out, "%zu teams, %zu minutes (%zu of outage left out)\n", h->count, h->valid,
            h->minutes - h->valid);
    fprintf(out,
            "  allocated %.1f %% of %.0f GPUs; %.1f pending while %.1f idle, both at once in "
            "%.0f %% of minutes\n",
            100 * ratio(f->running, f->total), ratio(f->total, n), ratio(f->pending, n),
            ratio(f->idle, n), 100 * ratio(f->both_minutes, n));
    fprintf(out, "  pending within idle GPUs of its own team: %.1f\n",
            ratio(f->in_quota_pending, n));
    fprintf(out,
            "  demand of all p50 %" PRId64 ", p95 %" PRId64 ", p99 %" PRId64 ", max %" PRId64
            "; sum of the teams' p99 %" PRId64 ", max %" PRId64 "\n",
            f->pooled[0], f->pooled[1], f->pooled[2], f->pooled[3], f->apart[0], f->apart[1]);
    fprintf(out, "  a pool of %d GPUs would be %.0f %% allocated\n", POOL_GPUS,
            100 * ratio(f->pool_used, n * POOL_GPUS));
    for (size_t t = 0; t < h->count; t++)
        fprintf(out, "  %-12s %5.0f GPUs, allocated %5.1f %%, a queue in %5.1f %% of minutes\n",
                f->teams[t].name, ratio(f->teams[t].total, n),
                100 * ratio(f->teams[t].running, f->teams[t].total),
                100 * ratio(f->teams[t].queued_minutes, n));
}

int helios_report(const char *folder, bool json, FILE *out)
{
    struct helios *h = calloc(1, sizeof(*h));
    struct figures *f = calloc(1, sizeof(*f));
    struct err err = ERR_INIT;
    if (h == NULL || f == NULL)
        abort();
    int r = helios_load(folder, h, &err);
    if (r == 0) {
        for (size_t t = 0; t < h->count; t++)
            team_minutes(h, t, f);
        pooled_minutes(h, f);
        if (json)
            print_json(h, f, out);
        else
            print_text(h, f, out);
    } else {
        sim_complain(&err);
    }
    helios_free(h);
    free(h);
    free(f);
    return r < 0 ? 2 : 0;
}
