/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage of a window [from, to), in exact integers.
 *
 * Amounts. An allocation [start, end) counts with its overlap with the window times its charge.
 * An open one ends now.
 *
 * Busy time is known only as a total up to the last report, so it is spread evenly over what the
 * report covers: [start, end) of a closed allocation, [start, seen) of an open one. The part
 * before an instant t is
 *     before(t) = floor(busy * (clamp(t) - start) / (end - start))
 * and a window gets before(to) - before(from). Each part is thus rounded down at both of its
 * ends, and the parts of consecutive windows add up to the whole exactly.
 *
 * What is not known of a device is neither busy nor idle: the GPU time that a report covers, less
 * what it knows of, is spread in the same way. Until the first report nothing is said.
 *
 * gpu_ms is the length of the union of a team's intervals with devices: the wall time in which
 * the team held any, however many.
 *
 * Sums that do not fit in 63 bits are refused with -EOVERFLOW rather than wrapped.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/vec.h"
#include "store/row.h"
#include "store/store_private.h"

struct interval {
    int64_t start, end;
};

struct team_usage {
    struct store_usage_row row;
    VEC(struct interval) held;
};

struct window {
    int64_t from, to, now;
};

/* Per team name; a deleted team and a later one of the same name count together. */
struct usage {
    struct arena arena;
    struct map by_name;
    VEC(struct team_usage *) teams;
};

static void usage_done(struct usage *u)
{
    for (size_t i = 0; i < u->teams.len; i++)
        vec_done(&u->teams.items[i]->held);
    vec_done(&u->teams);
    map_done(&u->by_name);
    arena_done(&u->arena);
}

static struct team_usage *team_of(struct usage *u, const char *name)
{
    struct team_usage *t = map_get_str(&u->by_name, name);
    if (!t) {
        t = arena_new(&u->arena, struct team_usage);
        t->row.team = arena_strdup(&u->arena, name);
        map_put_str(&u->by_name, t->row.team, t);
        vec_push(&u->teams, t);
    }
    return t;
}

static int64_t clamp(int64_t v, int64_t min, int64_t max)
{
    return v < min ? min : v > max ? max : v;
}

static int64_t before(int64_t t, int64_t ns, int64_t start, int64_t end)
{
    if (start == end)
        return t > start ? ns : 0;
    __int128 elapsed = clamp(t, start, end) - start;
    return (int64_t)(ns * elapsed / (end - start));
}

/* SUM += amount * ms; false on overflow. */
static bool add_product(int64_t *sum, int64_t amount, int64_t ms)
{
    int64_t product;
    return !__builtin_mul_overflow(amount, ms, &product) &&
           !__builtin_add_overflow(*sum, product, sum);
}

/* What the window needs of an allocation. */
struct held {
    int64_t start, end; /* end 0 = open */
    int64_t gpu_milli, cpu_milli, busy_ns, known_ns, seen;
    bool devices;
};

/* GPU time until COVERED of which nothing is known. */
static int64_t unknown_ns(const struct held *h, int64_t covered)
{
    __int128 all = (__int128)h->gpu_milli * (covered - h->start) * (NS_PER_MS / 1000);

    if (all <= h->known_ns || (h->end == 0 && h->seen <= h->start))
        return 0;
    return all - h->known_ns > INT64_MAX ? INT64_MAX : (int64_t)(all - h->known_ns);
}

static int add_held(struct team_usage *t, const struct held *h, const struct window *w,
                    struct err *err)
{
    int64_t end = h->end != 0 ? h->end : w->now;
    if (end < h->start)
        return 0; /* open, and not yet begun at that now */
    /* A report covers the time up to it; without one there is no busy time to spread. */
    bool reported = h->end == 0 && h->seen > h->start && h->seen < end;
    int64_t busy_end = reported ? h->seen : end;
    struct interval cut = {clamp(h->start, w->from, w->to), clamp(end, w->from, w->to)};
    bool instant = h->start == end && h->start >= w->from && h->start < w->to;
    int64_t ms = cut.end - cut.start;
    if (ms <= 0 && !instant)
        return 0;

    struct store_usage_row *row = &t->row;
    int64_t busy = before(w->to, h->busy_ns, h->start, busy_end) -
                   before(w->from, h->busy_ns, h->start, busy_end);
    int64_t all_unknown = unknown_ns(h, busy_end);
    int64_t unknown = before(w->to, all_unknown, h->start, busy_end) -
                      before(w->from, all_unknown, h->start, busy_end);
    if (!add_product(&row->allocated_milli_ms, h->gpu_milli, ms) ||
        !add_product(&row->cpu_milli_ms, h->cpu_milli, ms) ||
        __builtin_add_overflow(row->busy_ns, busy, &row->busy_ns) ||
        __builtin_add_overflow(row->unknown_ns, unknown, &row->unknown_ns))
        return err_set(err, -EOVERFLOW, ERR_OUT_OF_RANGE, NULL, "ask for a shorter window",
                       "the usage of team '%s' does not fit in 63 bits", row->team);
    row->allocations++;
    row->open += h->end == 0;
    if (h->devices && ms > 0)
        vec_push(&t->held, cut);
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

static int by_team(const void *a, const void *b)
{
    struct team_usage *const *x = a, *const *y = b;
    return strcmp((*x)->row.team, (*y)->row.team);
}

static int64_t union_ms(struct team_usage *t)
{
    if (t->held.len == 0)
        return 0;
    qsort(t->held.items, t->held.len, sizeof(*t->held.items), by_start);
    int64_t sum = 0, reached = 0;
    for (size_t i = 0; i < t->held.len; i++) {
        struct interval v = t->held.items[i];
        if (v.start < reached)
            v.start = reached;
        if (v.end > v.start) {
            sum += v.end - v.start;
            reached = v.end;
        }
    }
    return sum;
}

static int add_row(struct usage *u, struct row *row, const struct window *w)
{
    struct held h;
    row->column = 1; /* the id is for messages */
    const char *team = row_text(row, "team");
    h.start = row_i64(row, "start_ms");
    h.end = row_i64(row, "end_ms");
    h.gpu_milli = row_count(row, "gpu_milli");
    h.cpu_milli = row_i64(row, "cpu_milli");
    h.busy_ns = row_i64(row, "busy_ns");
    h.seen = row_i64(row, "seen_ms");
    h.known_ns = row_i64(row, "known_ns");
    h.devices = row_int(row, "devices", 0, 1) != 0;
    if (row->status == 0 && h.end != 0 && h.end < h.start)
        row_refuse(row, "end_ms", "after its start");
    if (row->status < 0)
        return row->status;
    return add_held(team_of(u, team), &h, w, row->err);
}

#define USAGE_SELECT                                                                             \
    "SELECT a.id, t.name, a.start_ms, a.end_ms, a.gpu_milli, a.cpu_milli, a.busy_ns, a.seen_ms," \
    " a.known_ns, a.devices <> '' FROM allocations a LEFT JOIN teams t ON t.id = a.team"

int read_usage(void *store, int64_t from_ms, int64_t to_ms, int64_t now_ms, store_usage_fn *fn,
               void *user, struct err *err)
{
    struct store *s = store;
    if (from_ms < 0 || to_ms < from_ms)
        return err_set(err, -EINVAL, ERR_OUT_OF_RANGE, "from", "use a start before the end",
                       "the window of usage starts after its end");
    struct window w = {from_ms, to_ms, now_ms};
    struct usage u __attribute__((cleanup(usage_done))) = {0};
    _cleanup_query_ struct query q = QUERY_INIT;
    int r =
        query_begin(&s->readers,
                    USAGE_SELECT " WHERE a.end_ms = 0 AND a.start_ms < ?2 UNION ALL " USAGE_SELECT
                                 " WHERE a.end_ms >= max(?1, 1) AND a.start_ms < ?2",
                    &q, err);
    if (r < 0)
        return r;
    sqlite3_bind_int64(q.stmt, 1, from_ms);
    sqlite3_bind_int64(q.stmt, 2, to_ms);
    while (r == 0 && (r = query_step(&q, err)) > 0) {
        struct row row = row_begin(q.stmt, "allocations", err);
        r = add_row(&u, &row, &w);
    }
    if (r == 0 && u.teams.len > 0)
        qsort(u.teams.items, u.teams.len, sizeof(*u.teams.items), by_team);
    for (size_t i = 0; r == 0 && i < u.teams.len; i++) {
        struct team_usage *t = u.teams.items[i];
        t->row.gpu_ms = union_ms(t);
        if (t->row.allocations > 0)
            r = fn(user, &t->row);
    }
    return r;
}
