/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A long queue: the cluster is full and many jobs wait; one in a hundred of the running ones ends.
 * How long until what is free is given to somebody, and what does a waiting job take of memory?
 *
 * Ends come one after the other, or all at one instant. After each the first turn counts: it gives
 * the place away. The turns that such a world asks for after that (other teams look for victims, a
 * part of them each turn) are taken too, up to TURNS_AFTER, and reported apart.
 */
#include "sim/scale.h"

#define FIRST_TURNS 4 /* of a world in which all jobs wait: it fills, and settles somewhat */
#define TURNS_AFTER 16

/* Draws the jobs before anything is measured, so that books do not count as the library's. */
static void submit_all(struct scale_world *w, struct scale_result *r)
{
    int64_t jobs = w->o->jobs;
    for (int64_t i = 0; i < jobs; i++)
        scale_draw(w);
    int64_t rss = w->meter->rss_bytes();
    int64_t entering = scale_enter_all(w, w->s, false);
    int64_t waiting = w->meter->rss_bytes() - rss;
    scale_mark(w);
    for (int i = 0; i < FIRST_TURNS; i++) {
        scale_turn(w, scale_begin(w));
        scale_goes_on(w, "pending: first turns", i + 1, FIRST_TURNS);
    }
    int64_t running = w->meter->rss_bytes() - rss;
    scale_result_begin(r, w, "pending", "many jobs wait, one in a hundred running ones ends");
    scale_figure(r, "jobs", (double)jobs);
    scale_figure(r, "refused", (double)w->refused);
    scale_figure(r, "bytes_per_job", (double)waiting / (double)jobs);
    scale_figure(r, "bytes_per_job_when_full", (double)running / (double)jobs);
    scale_figure(r, "add_us", (double)entering / 1e3 / (double)jobs);
    scale_figure(r, "first_turns_seconds", (double)w->spent_ns / 1e9);
    scale_figure(r, "first_turns_decisions", (double)w->decisions);
}

/* Until it rests, or for TURNS_AFTER turns; the time of these, in nanoseconds. */
static int64_t turns_after(struct scale_world *w, uint64_t *turns)
{
    int64_t before = w->spent_ns;
    for (int i = 0; i < TURNS_AFTER; i++) {
        (*turns)++;
        if (scale_turn(w, scale_begin(w)) == 0 && sched_next_ms(w->s) > w->now_ms)
            break;
    }
    return w->spent_ns - before;
}

static void one_by_one(struct scale_world *w, struct scale_result *r)
{
    VEC(int64_t) placed = {0};
    int64_t ends = (int64_t)(w->running.len + 99) / 100, done = 0, first_ns = 0, after_ns = 0;
    uint64_t evictions = w->evictions, first_starts = w->starts, turns = 0;
    bool goes_on = true;
    scale_mark(w);
    for (; done < ends && goes_on && w->running.len > 0; done++) {
        w->now_ms += 1000;
        uint32_t job = scale_random_running(w);
        uint64_t starts = w->starts;
        int64_t begun = scale_begin(w);
        scale_end(w, job);
        scale_turn(w, begun);
        first_ns += w->last_ns;
        if (w->starts > starts)
            vec_push(&placed, w->last_ns);
        after_ns += turns_after(w, &turns);
        goes_on = scale_goes_on(w, "pending", done + 1, ends);
    }
    scale_figure(r, "ends", (double)done);
    scale_figure(r, "starts", (double)(w->starts - first_starts));
    scale_figure(r, "evictions", (double)(w->evictions - evictions));
    if (done > 0) {
        scale_figure(r, "first_turn_us", (double)first_ns / 1e3 / (double)done);
        scale_figure(r, "later_turns_us", (double)after_ns / 1e3 / (double)done);
        scale_figure(r, "later_turns", (double)turns / (double)done);
    }
    if (placed.len > 0) {
        scale_figure(r, "placement_p50_us", scale_percentile_us(placed.items, placed.len, 500));
        scale_figure(r, "placement_p99_us", scale_percentile_us(placed.items, placed.len, 990));
        scale_figure(r, "placement_worst_us", scale_percentile_us(placed.items, placed.len, 1000));
    }
    scale_result_times(r, w);
    scale_figure(r, "cut_short", !goes_on);
    r->hash = w->hash;
    vec_done(&placed);
}

static void at_one_instant(struct scale_world *w, struct scale_result *r)
{
    size_t ends = (w->running.len + 99) / 100;
    uint64_t starts = w->starts, turns = 0;
    scale_mark(w);
    w->now_ms += 1000;
    int64_t begun = scale_begin(w), ending = 0;
    for (size_t i = 0; i < ends && w->running.len > 0; i++) {
        uint32_t job = scale_random_running(w);
        begun = scale_begin(w);
        scale_end(w, job);
        ending += scale_begin(w) - begun;
    }
    scale_turn(w, scale_begin(w) - ending);
    scale_result_begin(r, w, "pending", "many jobs wait, one in a hundred ends at one instant");
    scale_figure(r, "jobs", (double)w->o->jobs);
    scale_figure(r, "ends", (double)ends);
    scale_figure(r, "first_turn_ms", (double)w->last_ns / 1e6);
    scale_figure(r, "first_turn_starts", (double)(w->starts - starts));
    scale_figure(r, "later_turns_ms", (double)turns_after(w, &turns) / 1e6);
    scale_figure(r, "later_turns", (double)turns);
    scale_figure(r, "starts", (double)(w->starts - starts));
    vec_clear(&w->took);
    scale_result_times(r, w);
    r->hash = w->hash;
}

static size_t pending_run(const struct scale_options *o, const struct scale_input *in,
                          const struct sim_meter *meter, struct scale_result *results)
{
    struct scale_world w;
    scale_world_init(&w, o, in, meter);
    submit_all(&w, &results[0]);
    one_by_one(&w, &results[0]);
    at_one_instant(&w, &results[1]);
    scale_world_done(&w);
    return 2;
}

const struct scale_mode scale_mode_pending = {
    "pending", "a full cluster with a long queue, of which a few end", pending_run};
