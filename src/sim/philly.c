/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/philly.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "sim/csv.h"

#define SECOND 1000
#define RUN_MAX_S (10LL * 366 * 86400)
#define SPAN_MAX_MS (10LL * 366 * 86400 * 1000) /* demand is counted by the minute */
#define JOBS_MAX 10000000

/* ---- time -------------------------------------------------------------------------------- */

/* Days from 1970-01-01, proleptic Gregorian: years are counted from March, so that leap days come
 * last. */
static int64_t days_from_date(int64_t year, int64_t month, int64_t day)
{
    int64_t y = month <= 2 ? year - 1 : year, era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

/* The DIGITS at TEXT + AT as a number within MIN..MAX; -1 if they are none. */
static int64_t digits(const char *text, size_t at, size_t count, int64_t min, int64_t max)
{
    int64_t n = 0;
    for (size_t i = at; i < at + count; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -1;
        n = n * 10 + text[i] - '0';
    }
    return n >= min && n <= max ? n : -1;
}

/* "2017-10-09 07:01:55" in seconds; -1 if it is not of that form. */
static int64_t parse_time(const char *text)
{
    static const char form[] = "dddd-dd-dd dd:dd:dd";
    if (strlen(text) != sizeof(form) - 1)
        return -1;
    for (size_t i = 0; form[i] != '\0'; i++)
        if (form[i] != 'd' && form[i] != text[i])
            return -1;
    int64_t year = digits(text, 0, 4, 1970, 9999), month = digits(text, 5, 2, 1, 12),
            day = digits(text, 8, 2, 1, 31), hour = digits(text, 11, 2, 0, 23),
            minute = digits(text, 14, 2, 0, 59), second = digits(text, 17, 2, 0, 60);
    if (year < 0 || month < 0 || day < 0 || hour < 0 || minute < 0 || second < 0)
        return -1;
    return ((days_from_date(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
}

/* ---- jobs -------------------------------------------------------------------------------- */

struct columns {
    size_t time, duration, gpus, team;
};

struct row {
    struct philly_job job;
    size_t line;
};

static int find_columns(const struct csv *c, struct columns *ret, struct err *err)
{
    int r = csv_column(c, "timestamp", &ret->time, err);
    r = r < 0 ? r : csv_column(c, "duration", &ret->duration, err);
    r = r < 0 ? r : csv_column(c, "num_gpus", &ret->gpus, err);
    return r < 0 ? r : csv_column(c, "cluster", &ret->team, err);
}

/* Index of the team of that name, which is added if it is new; -1 if there are too many. */
static int64_t team_index(struct philly *p, const char *name)
{
    for (uint32_t i = 0; i < p->team_count; i++)
        if (strcmp(p->teams[i], name) == 0)
            return i;
    if (p->team_count == PHILLY_TEAMS_MAX)
        return -1;
    p->teams[p->team_count] = arena_strdup(&p->arena, name);
    return p->team_count++;
}

static int read_row(struct philly *p, const struct csv *c, const struct columns *at,
                    struct row *ret_row, struct err *err)
{
    int64_t seconds = parse_time(csv_text(c, at->time)), run = 0, gpus = 0;
    if (seconds < 0)
        return csv_fail(c, at->time, err, "write it as 2017-10-09 07:01:55", "no point in time");
    int r = csv_int(c, at->duration, 0, RUN_MAX_S, &run, err);
    r = r < 0 ? r : csv_int(c, at->gpus, 1, PHILLY_GPUS_MAX, &gpus, err);
    if (r < 0)
        return r;
    int64_t team = team_index(p, csv_text(c, at->team));
    if (team < 0)
        return csv_fail(c, at->team, err, NULL, "more teams than can be");
    *ret_row = (struct row){.job = {.submit_ms = seconds * SECOND,
                                    .run_ms = run * SECOND,
                                    .gpus = (uint32_t)gpus,
                                    .team = (uint32_t)team},
                            .line = c->line};
    return 0;
}

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    if (x->job.submit_ms != y->job.submit_ms)
        return x->job.submit_ms < y->job.submit_ms ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

static int read_rows(struct philly *p, const char *path, struct err *err)
{
    _cleanup_(csv_close) struct csv c = {0};
    struct columns at;
    struct row row;
    VEC(struct row) rows = {0};
    int r = csv_open(&c, path, err);
    if (r < 0 || (r = find_columns(&c, &at, err)) < 0)
        return r;
    while ((r = csv_next(&c, err)) > 0 && (r = read_row(p, &c, &at, &row, err)) == 0 &&
           rows.len < JOBS_MAX)
        vec_push(&rows, row);
    if (r == 0 && rows.len == 0)
        r = err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "%s: holds no jobs", path);
    if (r == 0) {
        qsort(rows.items, rows.len, sizeof(rows.items[0]), row_order);
        const struct row *last = &rows.items[rows.len - 1];
        if (last->job.submit_ms - rows.items[0].job.submit_ms > SPAN_MAX_MS)
            r = err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, "look at the year in that line",
                        "%s:%zu: over ten years after the first job", path, last->line);
    }
    if (r == 0) {
        p->jobs = arena_new_array(&p->arena, struct philly_job, rows.len);
        p->count = rows.len;
        for (size_t i = 0; i < rows.len; i++) {
            p->jobs[i] = rows.items[i].job;
            p->jobs[i].submit_ms -= rows.items[0].job.submit_ms;
        }
    }
    vec_done(&rows);
    return r;
}

int philly_load(const char *path, struct philly *ret_trace, struct err *err)
{
    struct philly p = {0};
    int r = read_rows(&p, path, err);
    if (r < 0) {
        philly_free(&p);
        return r;
    }
    *ret_trace = p;
    return 0;
}

void philly_free(struct philly *trace)
{
    arena_done(&trace->arena);
    *trace = (struct philly){0};
}

/* ---- distributions of use ---------------------------------------------------------------- */

/* A percentage of at most 100 in hundredths, rounded; -1 if it is none. */
static int32_t parse_percent(const char *text)
{
    char *end;
    if (text[0] < '0' || text[0] > '9')
        return -1;
    double v = strtod(text, &end);
    return *end == '\0' && v >= 0 && v <= 100.005 ? (int32_t)(v * 100 + 0.5) : -1;
}

static int read_points(struct use_curve *curve, const char *path, struct err *err)
{
    _cleanup_(csv_close) struct csv c = {0};
    VEC(struct use_point) points = {0};
    struct use_point last = {0};
    size_t use, below;
    int r = csv_open(&c, path, err);
    r = r < 0 ? r : csv_column(&c, "util_pct", &use, err);
    r = r < 0 ? r : csv_column(&c, "cdf_pct", &below, err);
    while (r >= 0 && (r = csv_next(&c, err)) > 0) {
        struct use_point p = {parse_percent(csv_text(&c, use)), parse_percent(csv_text(&c, below))};
        if (p.use < last.use || p.below < last.below)
            r = csv_fail(&c, p.use < last.use ? use : below, err, NULL,
                         "not an ascending percentage");
        else
            vec_push(&points, last = p);
    }
    if (r == 0 && (points.len < 2 || last.below < 9900))
        r = err_set(err, -EINVAL, ERR_INVALID, NULL, NULL, "%s: ends before 100 percent", path);
    if (r == 0) {
        curve->points = arena_new_array(&curve->arena, struct use_point, points.len);
        memcpy(curve->points, points.items, points.len * sizeof(points.items[0]));
        curve->count = points.len;
    }
    vec_done(&points);
    return r;
}

int use_curve_load(const char *path, struct use_curve *ret_curve, struct err *err)
{
    struct use_curve curve = {0};
    int r = read_points(&curve, path, err);
    if (r < 0) {
        use_curve_free(&curve);
        return r;
    }
    *ret_curve = curve;
    return 0;
}

void use_curve_free(struct use_curve *curve)
{
    arena_done(&curve->arena);
    *curve = (struct use_curve){0};
}

int32_t use_curve_busy(const struct use_curve *curve, struct rng *rng)
{
    const struct use_point *points = curve->points;
    size_t i = 0;
    while (i + 1 < curve->count && points[i + 1].use == 0)
        i++;
    int32_t idle = points[0].use == 0 ? points[i].below : 0;
    int32_t top = points[curve->count - 1].below;
    int32_t at = idle + 1 + (int32_t)rng_below(rng, (uint64_t)(top > idle ? top - idle : 1));
    while (i + 1 < curve->count && points[i + 1].below < at)
        i++;
    return points[i + 1 < curve->count ? i + 1 : i].use;
}
