/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/random_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sim/history_shrink.h"
#include "sim/history_trial.h"

#define SHRINK_TRIALS 5000
/* Stored and live state are compared now and then, as long as nothing is wrong. */
#define COMPARE_EVERY 64

struct run {
    FILE *out;
    const char *save;
    struct history_trial *trial; /* of the moment */
    char why[sizeof(((struct history_trial *)NULL)->why)];
};

static void copy_steps(const struct history_trial *t, struct history_steps *ret)
{
    vec_reserve(ret, t->count + 1);
    memcpy(ret->items, t->steps, t->count * sizeof(t->steps[0]));
    ret->len = t->count;
}

static void print_steps(FILE *out, const char *before, const struct history_steps *steps)
{
    char line[HISTORY_LINE_MAX];

    for (size_t i = 0; i < steps->len; i++) {
        history_step_format(&steps->items[i], line);
        fprintf(out, "%s%s\n", before, line);
    }
}

static void save_steps(const struct run *run, const struct history_steps *steps)
{
    FILE *file = fopen(run->save, "we");

    if (file == NULL) {
        fprintf(run->out, "# cannot write '%s': %s\n", run->save, strerror(errno));
        return;
    }
    fprintf(file, "# %s\n", run->why);
    print_steps(file, "", steps);
    fclose(file);
    fprintf(run->out, "# play it again: allot sim random --replay %s\n", run->save);
}

static bool still_fails(void *user, const struct history_steps *steps)
{
    struct run *run = user;

    history_trial_list(run->trial, steps, true);
    return history_trial_same(run->why, run->trial->why);
}

/* The list failed with run->why: makes it small, prints and saves it. */
static void shrink(struct run *run, struct history_steps *steps)
{
    size_t before = steps->len;
    int32_t trials = 0;

    if (strstr(run->why, HISTORY_DIFFERS))
        run->trial->compare_every = 1; /* or steps that only pass the time cannot be missed */
    if (!still_fails(run, steps)) {
        /* A list is looked at more closely: it may fail earlier, of the same cause. */
        fprintf(run->out, "# as a list, at step %zu: %s\n", run->trial->count,
                run->trial->verdict == HISTORY_HELD ? "it holds" : run->trial->why);
        snprintf(run->why, sizeof(run->why), "%s", run->trial->why);
    }
    if (run->trial->verdict != HISTORY_HELD)
        trials = history_shrink(steps, still_fails, run, SHRINK_TRIALS);
    fprintf(run->out, "# %zu steps, shrunk to %zu in %d trials:\n", before, steps->len, trials);
    print_steps(run->out, "#   ", steps);
    if (run->save)
        save_steps(run, steps);
}

static void fail(struct run *run, const char *what, uint64_t step, const char *why)
{
    snprintf(run->why, sizeof(run->why), "%s", why);
    fprintf(run->out, "# %s, step %" PRIu64 ": %s\n", what, step, why);
}

static void print_counts(FILE *out, const struct history_trial *t)
{
    const struct history_result *r = &t->result;

    fprintf(
        out,
        "%zu steps, trace %016" PRIx64 ", %" PRIu64 " accepted, %" PRIu64 " refused, %" PRIu64
        " succeeded, %" PRIu64 " failed, %" PRIu64 " cancelled, %" PRIu64 " allocations, %" PRIu64
        " evictions, %" PRIu64 " suspended, %" PRIu64 " commits, %" PRIu64 " disk faults, %" PRIu64
        " crashes, %" PRIu64 " rests, %" PRIu64 " comparisons\n",
        t->count, r->trace, r->counts.accepted, r->refused, r->counts.succeeded, r->counts.failed,
        r->counts.cancelled, r->counts.allocations, r->counts.evictions, r->counts.suspended,
        r->counts.groups, r->disk_faults, r->crashes, r->rests, r->compared);
}

/* ---- crash at every commit -------------------------------------------------------------- */

static void insert(const struct history_steps *steps, size_t at, const struct history_step *s,
                   struct history_steps *ret)
{
    vec_clear(ret);
    for (size_t i = 0; i < steps->len; i++) {
        if (i == at)
            vec_push(ret, *s);
        vec_push(ret, steps->items[i]);
    }
}

/* Plays the list again and again, each time with one more crash before one of its commits. */
static bool crash_everywhere(struct run *run, const struct history_steps *steps,
                             uint64_t *ret_points)
{
    struct history_steps list = {0};
    bool ok = true;

    for (size_t i = 0; ok && i < steps->len; i++) {
        /* Before, durable, after 0 to 2 calls, after all. */
        for (int32_t k = 0; steps->items[i].kind == HISTORY_COMMIT && ok && k < 6; k++) {
            struct history_step s = {.kind = HISTORY_CRASH};

            s.crash.at = k < 2 ? k : (k < 5 ? HISTORY_DURING : HISTORY_AFTER);
            s.crash.calls = k > 1 && k < 5 ? k - 2 : 0;
            insert(steps, i, &s, &list);
            history_trial_list(run->trial, &list, false);
            ok = run->trial->verdict == HISTORY_HELD;
            ++*ret_points;
        }
    }
    if (!ok) {
        fail(run, "with one more crash", run->trial->result.steps, run->trial->why);
        shrink(run, &list);
    }
    vec_done(&list);
    return ok;
}

/* ---- random ----------------------------------------------------------------------------- */

static bool play_again(struct run *run, struct history_steps *steps, const char *name)
{
    uint64_t trace = run->trial->result.trace;

    history_trial_list(run->trial, steps, false);
    if (run->trial->verdict != HISTORY_HELD) {
        fail(run, name, run->trial->count, run->trial->why);
        shrink(run, steps);
        return false;
    }
    if (run->trial->result.trace == trace)
        return true;
    fprintf(run->out, "# %s: the same steps leave another trace, %016" PRIx64 "\n", name,
            run->trial->result.trace);
    return false;
}

static bool play_seed(struct run *run, const struct sim_random_options *o, uint64_t seed)
{
    struct history_steps steps = {0};
    struct history_make make;
    char name[32];
    uint64_t points = 0;
    bool ok;

    snprintf(name, sizeof(name), "seed %" PRIu64, seed);
    history_make_init(&make, seed, o->steps, &o->plan);
    run->trial->compare_every = COMPARE_EVERY;
    history_trial_make(run->trial, &make);
    ok = run->trial->verdict == HISTORY_HELD;
    copy_steps(run->trial, &steps);
    if (!ok) {
        fail(run, name, run->trial->count, run->trial->why);
        shrink(run, &steps);
    }
    if (ok && !o->once)
        ok = play_again(run, &steps, name);
    if (ok && o->points) {
        ok = crash_everywhere(run, &steps, &points);
        fprintf(run->out, "# %s: %" PRIu64 " histories with one more crash each\n", name, points);
    }
    vec_done(&steps);
    return ok;
}

int sim_random_run(const struct sim_random_options *o, FILE *out)
{
    struct run run = {.out = out, .save = o->save};
    uint64_t played = 0;
    int status = 0;

    run.trial = history_trial_create((size_t)o->steps + HISTORY_SETUP_MAX);
    fprintf(out, "1..%" PRId64 "\n", o->seeds);
    for (int64_t i = 0; i < o->seeds; i++) {
        uint64_t seed = (uint64_t)(o->seed + i);
        bool ok = play_seed(&run, o, seed);

        played += run.trial->count;
        status |= !ok;
        fprintf(out, "%s %" PRId64 " - seed %" PRIu64 ": ", ok ? "ok" : "not ok", i + 1, seed);
        print_counts(out, run.trial);
        fflush(out);
    }
    fprintf(out, "# %" PRIu64 " steps\n", played);
    history_trial_destroy(run.trial);
    return status;
}

/* ---- replay ----------------------------------------------------------------------------- */

static int read_file(const char *path, struct history_steps *steps, FILE *out)
{
    struct err err = ERR_INIT;
    FILE *file = fopen(path, "re");
    int r;

    if (file == NULL) {
        fprintf(out, "# cannot read '%s': %s\n", path, strerror(errno));
        return -EINVAL;
    }
    r = history_steps_read(file, steps, &err);
    fclose(file);
    if (r < 0)
        fprintf(out, "# '%s': %s\n", path, err.text);
    return r;
}

static int replay(struct run *run, const char *path, size_t number, bool wanted_small)
{
    struct history_steps steps = {0};
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    int status = 2;
    bool ok = false;

    if (read_file(path, &steps, run->out) == 0) {
        history_trial_list(run->trial, &steps, false);
        ok = run->trial->verdict == HISTORY_HELD;
        status = !ok;
    }
    if (status == 1) {
        fail(run, name, run->trial->count, run->trial->why);
        if (wanted_small)
            shrink(run, &steps);
    }
    fprintf(run->out, "%s %zu - %s: ", ok ? "ok" : "not ok", number, name);
    print_counts(run->out, run->trial);
    fflush(run->out);
    vec_done(&steps);
    return status;
}

int sim_random_replay(char *const *paths, size_t count, bool wanted_small, FILE *out)
{
    struct run run = {.out = out};
    int status = 0;

    run.trial = history_trial_create(1);
    fprintf(out, "1..%zu\n", count);
    for (size_t i = 0; i < count; i++) {
        int r = replay(&run, paths[i], i + 1, wanted_small);
        status = r > status ? r : status;
    }
    history_trial_destroy(run.trial);
    return status;
}
