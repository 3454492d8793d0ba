/* SPDX-License-Identifier: Apache-2.0 */
/* Records of known outcome, replayed as they were and otherwise; guarantees worked out by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "sim/drive.h"
#include "sim/suggest.h"
#include "sim/whatif.h"
#include "sim/whatif_change.h"
#include "sim/whatif_print.h"

#define T0 1700000000000LL
#define S 1000LL

struct fixture {
    char path[64];
    FILE *file;
    struct past past;
    struct whatif_setup setup;
    struct whatif_outcome was, is;
    int next, runs;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    snprintf(f->path, sizeof(f->path), "/tmp/allot-whatif-XXXXXX");
    f->file = fdopen(mkstemp(f->path), "w");
    assert_non_null(f->file);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    whatif_outcome_done(&f->was);
    whatif_outcome_done(&f->is);
    past_done(&f->past);
    unlink(f->path);
    free(f);
    return 0;
}

/* Teams 1 (a) and 2 (b) with these fields beside their names, one node of 4 GPUs; a record of END
 * seconds. */
static void begin_with(struct fixture *f, int64_t end_s, const char *a, const char *b)
{
    fprintf(f->file, "{\"history\":2,\"now_ms\":%lld,\"events_from_ms\":0}\n", T0 + end_s * S);
    for (int i = 1; i <= 2; i++)
        fprintf(f->file,
                "{\"team\":%d,\"parent\":0,\"deleted\":false,\"spec\":{\"name\":\"%c\",%s}}\n", i,
                'a' + i - 1, i == 1 ? a : b);
    fprintf(f->file, "{\"node\":1,\"spec\":{\"name\":\"n\",\"gpu_type\":\"H100\",\"cpu\":64,"
                     "\"memory\":\"1TiB\",\"devices\":[");
    for (int i = 0; i < 4; i++)
        fprintf(f->file, "%s{\"uuid\":\"g%d\",\"type\":\"H100\",\"memory\":\"80GiB\"}",
                i ? "," : "", i);
    fprintf(f->file, "]}}\n");
}

/* Each is assured of 2 of the 4 GPUs. */
static void begin(struct fixture *f, int64_t end_s)
{
    begin_with(f, end_s, "\"guarantee\":{\"gpu\":2}", "\"guarantee\":{\"gpu\":2}");
}

/* A job of one task, and its run; times in seconds, START -1 = it never ran. */
static void job(struct fixture *f, int team, int gpus, int64_t submit, int64_t start, int64_t end,
                bool firm)
{
    int id = ++f->next;

    fprintf(
        f->file,
        "{\"workload\":%d,\"name\":\"j%d\",\"team\":%d,\"state\":\"succeeded\","
        "\"submitted_ms\":%lld,\"started_ms\":0,\"ended_ms\":%lld,\"restarts\":0,\"failures\":0,"
        "\"shape\":"
        "{\"kind\":\"job\",\"class\":\"%s\",\"priority\":0,\"preemptible\":%s,"
        "\"burst\":%s,\"handling\":\"checkpoint\",\"max_retries\":0,\"min_tasks\":1,"
        "\"grace_ms\":0,\"limit_ms\":0,\"expected_ms\":0,\"min_run_ms\":0,"
        "\"topology_required\":null,\"topology_preferred\":null,\"groups\":[{\"name\":\"main\","
        "\"tasks\":1,\"min_tasks\":1,\"topology_required\":null,\"device_count\":%d,"
        "\"device_milli\":1000,\"device_memory_bytes\":0,\"cpu_milli\":0,\"memory_bytes\":0,"
        "\"gpu_types\":[],\"labels\":{}}]}}\n",
        id, id, team, T0 + submit * S, T0 + end * S, firm ? "production" : "training",
        firm ? "false" : "true", firm ? "false" : "true", gpus);
}

static void ran_as(struct fixture *f, int id, int attempt, int gpus, int64_t start, int64_t end,
                   const char *how)
{
    f->runs++;
    fprintf(f->file, "{\"run\":[%d,0,%d,%d,%lld,%lld,0,1,0],\"how\":\"%s\"}\n", id, attempt,
            gpus * 1000, T0 + start * S, end < 0 ? 0LL : T0 + end * S, how);
}

static void ran(struct fixture *f, int id, int gpus, int64_t start, int64_t end)
{
    ran_as(f, id, 0, gpus, start, end, "ended");
}

static void end(struct fixture *f)
{
    fprintf(f->file, "{\"end\":{\"workloads\":%d,\"runs\":%d}}\n", f->next, f->runs);
    fclose(f->file);
}

static void read_it(struct fixture *f)
{
    struct err err = ERR_INIT;

    end(f);
    if (past_read(f->path, &f->past, &err) < 0)
        fail_msg("%s", err.text);
    whatif_setup_past(&f->past, &f->setup);
}

static void replay(struct fixture *f, struct whatif_outcome *o)
{
    struct err err = ERR_INIT;

    if (whatif_replay(&f->past, &f->setup, o, &err) < 0)
        fail_msg("%s", err.text);
}

/* A change of KIND at AT seconds; texts of objects, or "null". */
static void change(struct fixture *f, const char *kind, int64_t at_s, const char *before,
                   const char *after)
{
    fprintf(f->file, "{\"change\":\"%s\",\"time_ms\":%lld,\"data\":{\"before\":%s,\"after\":%s}}\n",
            kind, T0 + at_s * S, before, after);
}

/* Four jobs of the whole node, one after the other. */
static void read_queue(struct fixture *f)
{
    begin(f, 400);
    for (int i = 0; i < 4; i++)
        job(f, 1, 4, 10 * i, 100 * i, 100 * i + 100, false);
    for (int i = 0; i < 4; i++)
        ran(f, i + 1, 4, 100 * i, 100 * i + 100);
    read_it(f);
}

static int64_t started(const struct whatif_outcome *o, size_t i)
{
    return o->start_ms[i] == DRIVE_NEVER ? -1 : (o->start_ms[i] - T0) / S;
}

static void a_replay_as_it_was_is_the_record(void **state)
{
    struct fixture *f = *state;
    struct whatif_difference d;

    read_queue(f);
    whatif_recorded(&f->past, &f->was);
    replay(f, &f->is);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(started(&f->is, i), 100 * (int64_t)i);
    whatif_compare(&f->past, &f->was, &f->is, &d);
    assert_int_equal(d.jobs, 4);
    assert_int_equal(d.worst_ms, 0);
    assert_int_equal(d.order_milli, 1000);
    /* waits 0, 90, 180, 270 s; the node was full throughout */
    assert_int_equal(f->is.groups.items[0].mean_ms, 135 * S);
    assert_int_equal(f->is.groups.items[0].p50_ms, 90 * S);
    assert_int_equal(f->is.groups.items[0].p99_ms, 270 * S);
    assert_int_equal(f->is.window_milli_ms, 4000 * 400 * S);
    assert_int_equal(f->was.window_milli_ms, f->is.window_milli_ms);
    assert_int_equal(f->is.held_milli_ms, 4 * 4000 * 100 * S);
    assert_int_equal(f->is.evictions, 0);
}

/* Words about a team, as one wish of its own. */
static int change_team(struct fixture *f, const char *words, struct err *err)
{
    _cleanup_(whatif_wish_done) struct whatif_wish wish;
    int e;

    whatif_wish_init(&wish, &f->past);
    e = whatif_wish_team(&wish, words, err);
    return e < 0 ? e : whatif_wish_grant(&wish, &f->setup, err);
}

static void more_nodes_take_the_waits_away(void **state)
{
    struct fixture *f = *state;

    read_queue(f);
    assert_int_equal(whatif_change_nodes(&f->past, &f->setup, "2x4xH100", NULL), 0);
    replay(f, &f->was);
    assert_int_equal(started(&f->was, 1), 10);
    assert_int_equal(started(&f->was, 2), 100);
    assert_int_equal(started(&f->was, 3), 110);
    assert_int_equal(whatif_change_nodes(&f->past, &f->setup, "1x4xH100,3x4xA100", NULL), 0);
    replay(f, &f->is);
    assert_int_equal(f->is.capacity_milli, 16000);
    assert_int_equal(f->is.groups.items[0].p99_ms, 0);
    /* 1600 GPU-seconds of 16 GPUs in 400 s */
    assert_int_equal(f->is.window_milli_ms * 4, f->is.capacity_milli * f->is.window_ms);
}

static void jobs_that_no_node_holds_are_refused(void **state)
{
    struct fixture *f = *state;

    read_queue(f);
    assert_int_equal(whatif_change_nodes(&f->past, &f->setup, "9x2xH100", NULL), 0);
    replay(f, &f->is);
    assert_int_equal(f->is.groups.items[0].refused, 4);
    assert_int_equal(f->is.held_milli_ms, 0);
}

/* Four jobs of one GPU each, all of team a. */
static void read_burst(struct fixture *f)
{
    begin(f, 100);
    for (int i = 0; i < 4; i++)
        job(f, 1, 1, 0, 0, 100, false);
    for (int i = 0; i < 4; i++)
        ran(f, i + 1, 1, 0, 100);
    read_it(f);
}

static int at_once(const struct whatif_outcome *o)
{
    int n = 0;

    for (size_t i = 0; i < 4; i++)
        n += started(o, i) == 0;
    return n;
}

static void a_hard_quota_keeps_a_team_from_idle_gpus(void **state)
{
    struct fixture *f = *state;

    read_burst(f);
    replay(f, &f->was);
    assert_int_equal(at_once(&f->was), 4);
    f->setup.hard_quota = true;
    replay(f, &f->is);
    assert_int_equal(at_once(&f->is), 2);
    assert_int_equal(started(&f->is, 3), 100);
}

static void another_limit_is_kept(void **state)
{
    struct fixture *f = *state;

    read_burst(f);
    assert_int_equal(change_team(f, "a.limit.gpu=3", NULL), 0);
    replay(f, &f->was);
    assert_int_equal(at_once(&f->was), 3);
    assert_int_equal(change_team(f, "a.guarantee.gpu=1", NULL), 0);
    assert_int_equal(change_team(f, "a.limit.gpu=1", NULL), 0);
    replay(f, &f->is);
    assert_int_equal(at_once(&f->is), 1);
    assert_int_equal(started(&f->is, 3), 300);
}

/* ---- what changed meanwhile --------------------------------------------------------------- */

static void quotas_are_edited_at_their_time(void **state)
{
    struct fixture *f = *state;

    begin_with(f, 300, "\"limit\":{\"gpu\":4}", "\"weight\":1");
    change(f, "team", -10, "null", "{\"id\":1,\"name\":\"a\",\"limit\":{\"gpu\":1}}");
    change(f, "team", 50, "{\"id\":1,\"name\":\"a\",\"limit\":{\"gpu\":1}}",
           "{\"id\":1,\"name\":\"a\",\"limit\":{\"gpu\":4}}");
    for (int i = 0; i < 3; i++)
        job(f, 1, 1, 0, 0, 100, false);
    ran(f, 1, 1, 0, 100);
    ran(f, 2, 1, 50, 150);
    ran(f, 3, 1, 50, 150);
    read_it(f);
    assert_int_equal(f->past.changes.len, 1); /* the first one was before the window */
    assert_int_equal(f->past.teams.items[0].first.limit[MODEL_GPU_MILLI], 1000);
    replay(f, &f->was);
    assert_int_equal(started(&f->was, 0), 0);
    assert_int_equal(started(&f->was, 1), 50);
    assert_int_equal(started(&f->was, 2), 50);
    assert_int_equal(f->was.skipped, 0);
    /* what is asked holds for all the time */
    assert_int_equal(change_team(f, "a.limit.gpu=2", NULL), 0);
    replay(f, &f->is);
    assert_int_equal(started(&f->is, 1), 0);
    assert_int_equal(started(&f->is, 2), 100);
}

static void a_team_that_comes_later_has_nothing_before(void **state)
{
    struct fixture *f = *state;

    /* b's guarantee keeps a's firm work out only once there is b: a has two, of which it may use
     * both. */
    begin(f, 200);
    change(f, "team", 40, "null", "{\"id\":2,\"name\":\"b\",\"guarantee\":{\"gpu\":2}}");
    change(f, "team", 90, "{\"id\":2,\"name\":\"b\",\"guarantee\":{\"gpu\":2}}", "null");
    job(f, 1, 1, 0, 0, 50, false);
    ran(f, 1, 1, 0, 50);
    read_it(f);
    assert_true(f->past.teams.items[1].absent);
    assert_int_equal(f->past.changes.len, 2);
    assert_true(f->past.changes.items[1].gone);
    replay(f, &f->was);
    assert_int_equal(f->was.skipped, 0);
    assert_int_equal(started(&f->was, 0), 0);
}

#define NODE_IS(state) "{\"id\":1,\"name\":\"n\",\"state\":\"" state "\",\"drained\":false}"

static void lost_nodes_take_their_work_along(void **state)
{
    struct fixture *f = *state;

    begin(f, 400);
    change(f, "node", 100, NODE_IS("up"), NODE_IS("down"));
    change(f, "node", 150, NODE_IS("down"), NODE_IS("up"));
    job(f, 1, 4, 0, 0, 350, false);
    ran_as(f, 1, 0, 4, 0, 101, "lost");
    ran_as(f, 1, 1, 4, 150, 350, "ended");
    read_it(f);
    assert_int_equal(f->past.jobs.items[0].losses, 1);
    assert_int_equal(f->past.jobs.items[0].retries, 0);
    assert_int_equal(f->past.jobs.items[0].failed_count, 0);
    replay(f, &f->was);
    assert_int_equal(f->was.losses, 1);
    assert_int_equal(f->was.evictions, 0);
    assert_int_equal(f->was.end_ms, T0 + 350 * S);
    assert_int_equal(f->was.held_milli_ms, 4000 * 300 * S);
    /* it was there all the time, if out of order */
    assert_int_equal(f->was.capacity_milli_ms, 4000 * 400 * S);
    /* on other nodes nothing is lost */
    assert_int_equal(whatif_change_nodes(&f->past, &f->setup, "1x4xH100", NULL), 0);
    replay(f, &f->is);
    assert_int_equal(f->is.losses, 0);
    assert_int_equal(f->is.end_ms, T0 + 200 * S);
}

static void drained_nodes_take_nothing_new(void **state)
{
    static const char drained[] = "{\"id\":1,\"name\":\"n\",\"state\":\"up\",\"drained\":true}";
    struct fixture *f = *state;

    begin(f, 400);
    change(f, "node", 5, NODE_IS("up"), drained);
    change(f, "node", 200, drained, NODE_IS("up"));
    job(f, 1, 1, 0, 0, 100, false);
    job(f, 1, 1, 10, 200, 300, false);
    ran(f, 1, 1, 0, 100);
    ran(f, 2, 1, 200, 300);
    read_it(f);
    replay(f, &f->was);
    assert_int_equal(started(&f->was, 0), 0);
    assert_int_equal(started(&f->was, 1), 200);
    assert_int_equal(f->was.end_ms, T0 + 300 * S);
}

static void nodes_that_come_later_are_not_there_before(void **state)
{
    struct fixture *f = *state;

    begin(f, 400);
    change(f, "node", 100, "null", NODE_IS("up"));
    job(f, 1, 4, 0, 100, 200, false);
    ran(f, 1, 4, 100, 200);
    read_it(f);
    replay(f, &f->was);
    /* it waits: what was accepted once is not refused */
    assert_int_equal(f->was.groups.items[0].refused, 0);
    assert_int_equal(started(&f->was, 0), 100);
    assert_int_equal(f->was.capacity_milli_ms, 4000 * 300 * S);
}

static void what_failed_fails_again(void **state)
{
    struct fixture *f = *state;
    int64_t backoff_s;

    begin(f, 400);
    job(f, 1, 4, 0, 0, 300, false);
    ran_as(f, 1, 0, 4, 0, 50, "failed");
    ran_as(f, 1, 1, 4, 60, 100, "gave_way"); /* saved what it did */
    ran_as(f, 1, 2, 4, 120, 150, "failed");
    ran_as(f, 1, 3, 4, 200, 300, "ended");
    read_it(f);
    assert_int_equal(f->past.jobs.items[0].restarts, 3);
    assert_int_equal(f->past.jobs.items[0].retries, 2);
    assert_int_equal(f->past.jobs.items[0].failed_count, 2);
    assert_int_equal(f->past.jobs.items[0].work_ms, 180 * S);
    past_assume(&f->past, S);
    assert_int_equal(f->past.jobs.items[0].failed_count, 2);
    assert_int_equal(f->past.jobs.items[0].failed_ms[0], 50 * S);
    assert_int_equal(f->past.jobs.items[0].failed_ms[1], 70 * S);
    assert_int_equal(f->past.jobs.items[0].work_ms, 220 * S);
    whatif_recorded(&f->past, &f->was);
    assert_int_equal(f->was.evictions, 1);
    assert_int_equal(f->was.retries, 2);
    replay(f, &f->is);
    backoff_s = f->setup.config.backoff_ms / S;
    assert_int_equal(f->is.retries, 2);
    assert_int_equal(f->is.evictions, 0);
    assert_int_equal(f->is.held_milli_ms, 4000 * 220 * S);
    assert_true(f->is.window_milli_ms <= f->is.held_milli_ms);
    assert_int_equal(f->is.end_ms, T0 + (220 + 3 * backoff_s) * S);
}

static void stops_take_as_long_as_recorded(void **state)
{
    static const int64_t stops_s[] = {1, 7, 2};
    struct fixture *f = *state;
    size_t count;

    begin(f, 400);
    job(f, 1, 4, 0, 0, 300, false);
    for (int i = 0; i < 3; i++) {
        f->runs++;
        fprintf(f->file, "{\"run\":[1,0,%d,4000,%lld,%lld,0,1,%lld],\"how\":\"gave_way\"}\n", i,
                T0 + 50 * i * S, T0 + (50 * i + 20 + stops_s[i]) * S, T0 + (50 * i + 20) * S);
    }
    ran_as(f, 1, 3, 4, 200, 300, "ended");
    read_it(f);
    assert_int_equal(past_stop_ms(&f->past, &count), 2 * S);
    assert_int_equal(count, 3);
    assert_int_equal(f->setup.stop_ms, 2 * S);
    past_assume(&f->past, 10 * S);
    assert_int_equal(f->past.jobs.items[0].work_ms, (3 * 20 + 100) * S);
}

static void each_beginning_of_a_record_is_cut_off(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;
    static char text[20000];
    size_t len;

    begin(f, 400);
    change(f, "node", 100, NODE_IS("up"), NODE_IS("down"));
    job(f, 1, 4, 0, 0, 100, false);
    ran(f, 1, 4, 0, 100);
    end(f);
    FILE *file = fopen(f->path, "r");
    len = fread(text, 1, sizeof(text), file);
    fclose(file);
    assert_in_range(len, 100, sizeof(text) - 1);
    for (size_t n = 0; n < len - 1; n++) { /* the last line break may be missing */
        file = fmemopen(text, n ? n : 1, "r");
        if (n > 0 && past_read_stream(file, "it", &f->past, &err) >= 0)
            fail_msg("%zu of %zu bytes are taken", n, len);
        fclose(file);
    }
    file = fmemopen(text, len, "r");
    assert_int_equal(past_read_stream(file, "it", &f->past, &err), 0);
    fclose(file);
}

static void damaged_bytes_are_refused_or_replayed(void **state)
{
    struct fixture *f = *state;
    static char text[20000], copy[20000];
    struct rng rng;
    size_t len;

    begin(f, 400);
    change(f, "node", 100, NODE_IS("up"), NODE_IS("down"));
    change(f, "node", 150, NODE_IS("down"), NODE_IS("up"));
    for (int i = 0; i < 3; i++)
        job(f, 1, 4, 0, 0, 100, false);
    ran_as(f, 1, 0, 4, 0, 50, "failed");
    ran_as(f, 1, 1, 4, 50, 90, "gave_way");
    ran_as(f, 1, 2, 4, 160, 200, "ended");
    ran(f, 2, 4, 200, 300);
    end(f);
    FILE *file = fopen(f->path, "r");
    len = fread(text, 1, sizeof(text), file);
    fclose(file);
    rng_seed(&rng, 7);
    for (int i = 0; i < 4000; i++) {
        struct whatif_outcome o = {0};
        struct suggest s;

        memcpy(copy, text, len);
        for (uint64_t k = rng_below(&rng, 3) + 1; k > 0; k--)
            copy[rng_below(&rng, len)] = "0123456789-,:{}[]\"ae \n"[rng_below(&rng, 23)];
        file = fmemopen(copy, len, "r");
        if (past_read_stream(file, "it", &f->past, NULL) == 0) {
            whatif_setup_past(&f->past, &f->setup);
            if (whatif_replay(&f->past, &f->setup, &o, NULL) == 0)
                whatif_outcome_done(&o);
            suggest_make(&f->past, &s);
            suggest_done(&s);
            past_done(&f->past);
            f->past = (struct past){0};
        }
        fclose(file);
    }
}

/* ---- wishes ------------------------------------------------------------------------------- */

static const struct model_team *team_a(const struct fixture *f)
{
    return &f->setup.teams[0].row;
}

static void a_hard_limit_follows_its_guarantee(void **state)
{
    struct fixture *f = *state;

    begin_with(f, 100, "\"quota\":\"hard\",\"guarantee\":{\"gpu\":2,\"gpu_types\":{\"H100\":1}}",
               "\"weight\":1");
    for (int i = 0; i < 4; i++)
        job(f, 1, 1, 0, 0, 100, false);
    for (int i = 0; i < 4; i++)
        ran(f, i + 1, 1, 0, 100);
    read_it(f);
    assert_int_equal(change_team(f, "a.guarantee.gpu=3", NULL), 0);
    assert_int_equal(team_a(f)->limit[MODEL_GPU_MILLI], 3000);
    assert_int_equal(change_team(f, "a.guarantee.gpu_types.H100=3", NULL), 0);
    assert_int_equal(team_a(f)->types[0].limit, 3000);
    replay(f, &f->was);
    assert_int_equal(at_once(&f->was), 3);
    assert_int_equal(change_team(f, "a.quota=fair", NULL), 0);
    assert_int_equal(change_team(f, "a.limit.gpu=none", NULL), 0);
    assert_int_equal(change_team(f, "a.limit.gpu_types.H100=none", NULL), 0);
    replay(f, &f->is);
    assert_int_equal(at_once(&f->is), 4);
}

static void words_about_a_team_are_taken_together(void **state)
{
    _cleanup_(whatif_wish_done) struct whatif_wish wish = {0};
    struct fixture *f = *state;

    read_burst(f);
    whatif_wish_init(&wish, &f->past);
    /* alone the limit would be below the guarantee of 2 */
    assert_int_equal(whatif_wish_team(&wish, "a.limit.gpu=1", NULL), 0);
    assert_int_equal(whatif_wish_team(&wish, "a.guarantee.gpu=1", NULL), 0);
    assert_int_equal(whatif_wish_grant(&wish, &f->setup, NULL), 0);
    assert_int_equal(team_a(f)->limit[MODEL_GPU_MILLI], 1000);
    assert_int_equal(team_a(f)->guarantee[MODEL_GPU_MILLI], 1000);
}

static void a_parent_is_honoured(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    begin_with(f, 100, "\"weight\":1", "\"limit\":{\"gpu\":1}");
    for (int i = 0; i < 4; i++)
        job(f, 1, 1, 0, 0, 100, false);
    for (int i = 0; i < 4; i++)
        ran(f, i + 1, 1, 0, 100);
    read_it(f);
    assert_int_equal(change_team(f, "a.parent=b", &err), 0);
    assert_int_equal(team_a(f)->parent_id, 2);
    replay(f, &f->was);
    assert_int_equal(at_once(&f->was), 1); /* the limit of b holds for what is below */
    assert_true(change_team(f, "b.parent=a", &err) < 0);
    assert_true(change_team(f, "a.name=c", &err) < 0);
    assert_non_null(strstr(err.text, "another name"));
    assert_int_equal(change_team(f, "a.name=a", &err), 0);
}

static void manifests_mean_what_they_mean_to_apply(void **state)
{
    _cleanup_(whatif_wish_done) struct whatif_wish wish = {0};
    struct fixture *f = *state;
    char path[80];

    read_burst(f);
    snprintf(path, sizeof(path), "%s.yaml", f->path);
    FILE *file = fopen(path, "w");
    fputs("apiVersion: allot/v1\nkind: Team\nmetadata: {name: a}\nspec: {weight: 3}\n", file);
    fclose(file);
    whatif_wish_init(&wish, &f->past);
    assert_int_equal(whatif_wish_teams(&wish, path, NULL), 0);
    assert_int_equal(whatif_wish_grant(&wish, &f->setup, NULL), 0);
    assert_int_equal(team_a(f)->weight, 3);
    assert_int_equal(team_a(f)->guarantee[MODEL_GPU_MILLI], 0); /* left out: the default */
    file = fopen(path, "w");
    fclose(file);
    assert_true(whatif_wish_teams(&wish, path, NULL) < 0);
    unlink(path);
}

static void more_nodes_stand_beside_the_others(void **state)
{
    struct fixture *f = *state;

    read_queue(f);
    assert_int_equal(whatif_change_nodes(&f->past, &f->setup, "+2x2xH100", NULL), 0);
    assert_int_equal(f->setup.node_count, 3);
    assert_int_equal(f->setup.capacity_milli, 8000);
    assert_int_equal(f->setup.capacity_milli_ms, 8000 * 400 * S);
}

static void bad_changes_are_refused(void **state)
{
    const char *teams[] = {"",
                           "a",
                           "a.weight",
                           "a.weight=",
                           ".weight=1",
                           "c.weight=1",
                           "a.weight=-1",
                           "a.colour=1",
                           "a.limit.gpu=1" /* < 2 */,
                           "a=1.weight",
                           "a.guarantee=6"};
    const char *nodes[] = {"", "x", "4", "0x8xH100", "1x8xNone", "1000000x1xH100", "4x8xH100,,x"};
    const char *classes[] = {"",
                             "batch",
                             "batch.may_preempt",
                             "batch.may_preempt=1",
                             "none.may_preempt=yes",
                             "batch.preemptible=yes"};
    struct fixture *f = *state;

    read_burst(f);
    for (size_t i = 0; i < ARRAY_LEN(teams); i++)
        assert_true(change_team(f, teams[i], NULL) < 0);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        assert_true(whatif_change_nodes(&f->past, &f->setup, nodes[i], NULL) < 0);
    for (size_t i = 0; i < ARRAY_LEN(classes); i++)
        assert_true(whatif_change_class(&f->setup, classes[i], NULL) < 0);
    assert_int_equal(whatif_change_class(&f->setup, "batch.may_preempt=yes", NULL), 0);
    assert_true(f->setup.config.classes[SCHED_CLASS_BATCH].may_preempt);
}

static void guarantees_are_those_worked_out_by_hand(void **state)
{
    struct fixture *f = *state;
    struct suggest s;
    const struct suggest_team *a, *b;

    /* a wants 2 GPUs for 1000 s and 4 more in the first 100; b 1 GPU that may not be evicted. */
    begin(f, 1000);
    job(f, 1, 2, 0, 0, 1000, false);
    job(f, 1, 4, 0, 0, 100, false);
    job(f, 2, 1, 0, 0, 1000, true);
    ran(f, 1, 2, 0, 1000);
    ran(f, 2, 4, 0, 100);
    ran(f, 3, 1, 0, 1000);
    read_it(f);
    suggest_make(&f->past, &s);
    assert_int_equal(s.teams.len, 2);
    a = &s.teams.items[0];
    b = &s.teams.items[1];
    assert_int_equal(a->all.p50_milli, 2000);
    assert_int_equal(a->all.p95_milli, 6000);
    assert_int_equal(a->all.peak_milli, 6000);
    assert_int_equal(a->all.firm_milli, 0);
    assert_int_equal(b->all.p50_milli, 1000);
    assert_int_equal(b->all.firm_milli, 1000);
    assert_int_equal(s.p95_milli, 7000);
    /* medians 2 and 1; the one that is left goes to a, which lacks 4 */
    assert_int_equal(a->all.gpus, 3);
    assert_int_equal(b->all.gpus, 1);
    assert_int_equal(s.gpus, 4);
    /* of 2400 GPU-seconds 2000 are within 2, 2100 within 3 */
    assert_int_equal(a->all.now_permille, 833);
    assert_int_equal(a->all.then_permille, 875);
    assert_int_equal(b->all.then_permille, 1000);
    assert_false(s.scaled);
    suggest_done(&s);
}

/* A department with a guarantee of its own, and a team that wanted nothing, count as well. */
static void guarantees_of_others_are_proposed_too(void **state)
{
    struct fixture *f = *state;
    struct suggest s;

    begin(f, 100);
    for (int i = 3; i <= 5; i++) /* 3 above 5; 4 alone */
        fprintf(f->file,
                "{\"team\":%d,\"parent\":%d,\"deleted\":false,\"spec\":{\"name\":\"%c\","
                "\"guarantee\":{\"gpu\":%d}}}\n",
                i, i == 5 ? 3 : 0, 'a' + i - 1, i == 5 ? 0 : 3);
    job(f, 5, 1, 0, 0, 100, false);
    ran(f, 1, 1, 0, 100);
    read_it(f);
    suggest_make(&f->past, &s);
    assert_int_equal(s.teams.len, 1);
    assert_int_equal(s.gpus, 1);
    assert_int_equal(s.others.len, 4);
    for (size_t i = 0; i < s.others.len; i++) {
        bool department = strcmp(s.others.items[i].team->row.name, "c") == 0;

        assert_int_equal(s.others.items[i].gpus, department ? 1 : 0);
        assert_true(s.others.items[i].now_milli >= 2000);
    }
    suggest_done(&s);
}

static void guarantees_never_exceed_what_there_is(void **state)
{
    struct fixture *f = *state;
    struct suggest s;

    begin(f, 100);
    for (int i = 0; i < 9; i++)
        job(f, i < 6 ? 1 : 2, 1, 0, 0, 100, false);
    for (int i = 0; i < 9; i++)
        ran(f, i + 1, 1, 0, 100);
    read_it(f);
    suggest_make(&f->past, &s);
    assert_true(s.scaled);
    assert_int_equal(s.teams.items[0].all.gpus, 3); /* 6 of 9, of 4: 2.67 */
    assert_int_equal(s.teams.items[1].all.gpus, 1);
    suggest_done(&s);
}

static void texts_fit_their_columns(void **state)
{
    char text[WHATIF_NAME_MAX];

    assert_string_equal(whatif_name_text("red", 6, text), "red   ");
    assert_string_equal(whatif_name_text("redred", 6, text), "redred");
    assert_string_equal(whatif_name_text("red-red", 6, text), "red-r…");
    assert_string_equal(whatif_name_text("großer-name", 6, text), "große…"); /* no half letters */
    assert_string_equal(whatif_time_text(0, text), "0s");
    assert_string_equal(whatif_time_text(999, text), "999ms");
    assert_string_equal(whatif_time_text(61500, text), "61.5s");
    assert_string_equal(whatif_time_text(7200000, text), "2.0h");
    assert_string_equal(whatif_hours_text(1000 * 3600 * S / 4, text), "0.250");
    assert_string_equal(whatif_hours_text(12345LL * 3600 * S, text), "12.3");
    assert_string_equal(whatif_percent_text(983, text), "98.3%");
}

static void proposals_stay_within_limits(void **state)
{
    struct fixture *f = *state;
    struct suggest s;

    /* a wants 4 for all the time, but may have 1 */
    begin_with(f, 1000, "\"limit\":{\"gpu\":1}", "\"weight\":1");
    job(f, 1, 4, 0, 0, 1000, false);
    job(f, 2, 4, 0, 0, 1000, false);
    ran(f, 1, 4, 0, 1000);
    ran(f, 2, 4, 0, 1000);
    read_it(f);
    suggest_make(&f->past, &s);
    assert_int_equal(s.teams.items[0].all.gpus, 1);
    assert_true(s.teams.items[0].all.cut);
    assert_int_equal(s.teams.items[1].all.gpus, 3);
    assert_false(s.teams.items[1].all.cut);
    suggest_done(&s);
}

static void proposals_stay_within_limits_above(void **state)
{
    struct fixture *f = *state;
    struct suggest s;

    begin_with(f, 1000, "\"weight\":1", "\"weight\":1");
    fprintf(f->file, "{\"team\":3,\"parent\":0,\"spec\":{\"name\":\"d\",\"quota\":\"hard\","
                     "\"guarantee\":{\"gpu\":2}}}\n"
                     "{\"team\":4,\"parent\":3,\"spec\":{\"name\":\"x\"}}\n"
                     "{\"team\":5,\"parent\":3,\"spec\":{\"name\":\"y\"}}\n");
    job(f, 4, 2, 0, 0, 1000, false);
    job(f, 5, 2, 0, 0, 1000, false);
    ran(f, 1, 2, 0, 1000);
    ran(f, 2, 2, 0, 1000);
    read_it(f);
    suggest_make(&f->past, &s);
    assert_int_equal(s.teams.len, 2);
    assert_int_equal(s.teams.items[0].all.gpus, 1);
    assert_int_equal(s.teams.items[1].all.gpus, 1);
    assert_true(s.teams.items[1].all.cut);
    suggest_done(&s);
}

static void a_hard_quota_is_proposed_its_peak_hours(void **state)
{
    struct fixture *f = *state;
    struct suggest s;

    /* both want 2 for a fifth of the time and nothing else; b cannot borrow */
    begin_with(f, 1000, "\"weight\":1", "\"quota\":\"hard\",\"guarantee\":{\"gpu\":1}");
    job(f, 1, 3, 0, 0, 200, false);
    job(f, 2, 3, 0, 0, 200, false);
    ran(f, 1, 3, 0, 200);
    ran(f, 2, 3, 0, 200);
    read_it(f);
    suggest_make(&f->past, &s);
    assert_int_equal(s.teams.items[1].all.p50_milli, 0);
    assert_int_equal(s.teams.items[1].all.p95_milli, 3000);
    assert_int_equal(s.teams.items[1].all.gpus, 3);
    assert_int_equal(s.teams.items[0].all.gpus, 1);
    suggest_done(&s);
}

static void guarantees_of_types_are_proposed_too(void **state)
{
    struct fixture *f = *state;
    const struct suggest_team *a, *b;
    struct suggest s;

    /* a states a guarantee of H100, of which there are 4, b a limit of them */
    begin_with(f, 1000, "\"guarantee\":{\"gpu\":2,\"gpu_types\":{\"H100\":1}}",
               "\"limit\":{\"gpu_types\":{\"H100\":1}}");
    job(f, 1, 3, 0, 0, 1000, false);
    job(f, 2, 4, 0, 0, 1000, false);
    ran(f, 1, 3, 0, 1000);
    ran(f, 2, 4, 0, 1000);
    read_it(f);
    suggest_make(&f->past, &s);
    a = &s.teams.items[0];
    b = &s.teams.items[1];
    assert_int_equal(a->type_count, 1);
    assert_string_equal(a->types[0].type, "H100");
    assert_int_equal(a->types[0].p50_milli, 3000);
    assert_int_equal(a->types[0].now_milli, 1000);
    assert_int_equal(a->types[0].gpus, 3);
    assert_int_equal(a->all.gpus, 3);
    assert_int_equal(b->type_count, 0);
    assert_int_equal(b->all.gpus, 1);
    assert_true(b->all.cut);
    suggest_done(&s);
}

#define HEAD "{\"history\":2,\"now_ms\":5,\"events_from_ms\":0}\n"
#define TEAM "{\"team\":1,\"parent\":0,\"spec\":{\"name\":\"x\"}}\n"
#define END(workloads, runs) "{\"end\":{\"workloads\":" workloads ",\"runs\":" runs "}}\n"

static int read_text(struct fixture *f, const char *text, struct err *err)
{
    FILE *file = fopen(f->path, "w");

    fputs(text, file);
    fclose(file);
    return past_read(f->path, &f->past, err);
}

static void damaged_records_are_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "is empty"},
        {"\n\n", "is empty"},
        {"{}\n", "line 1: it is none of the known kinds"},
        {"[1]\n", "not a JSON object"},
        {"{\"history\":1,\"now_ms\":5,\"events_from_ms\":0}\n", "version 1"},
        {"{\"history\":2}\n", "events_from_ms"},
        {TEAM HEAD, "first line"},
        {HEAD HEAD, "first line only"},
        {"{\"history\":2,\"now_ms\":-5,\"events_from_ms\":0}\n", "now_ms"},
        {"{\"history\":2,\"now_ms\":1e99,\"events_from_ms\":0}\n", "now_ms"},
        {"{\"history\":2,\"now_ms\":99999999999999999999,\"events_from_ms\":0}\n", "now_ms"},
        {HEAD "{\"run\":[1,0,0,1,1,1,1,1,0],\"how\":\"\"}\n", "line 2"},
        {HEAD "{\"run\":[1,0,0,1,1,1,1],\"how\":\"\"}\n", "nine numbers"},
        {HEAD "{\"run\":[1,0,0,1,1,1,1,1,0],\"how\":\"well\"}\n", "how"},
        {HEAD "{\"team\":1,\"parent\":7,\"spec\":{\"name\":\"x\"}}\n", "after that of its parent"},
        {HEAD TEAM TEAM, "id of its own"},
        {HEAD "{\"team\":1,\"parent\":0,\"spec\":{\"colour\":\"x\"}}\n", "colour"},
        {HEAD "{\"workload\":1,\"team\":1}\n", "submitted_ms"},
        {HEAD "{\"node\":1,\"spec\":{\"devices\":3}}\n", "line 2"},
        {HEAD "{\"team\":", "not a JSON object"},
        {HEAD TEAM, "cut off after line 2"},
        {HEAD END("1", "0"), "counts 1 workloads"},
        {HEAD END("0", "0") TEAM, "behind the line that ends"},
        {HEAD TEAM "{\"change\":\"team\",\"time_ms\":1,\"data\":{}}\n", "before"},
        {HEAD TEAM "{\"change\":\"team\",\"time_ms\":1,\"data\":{\"before\":null,\"after\":null}}"
                   "\n",
         "after"},
        {HEAD TEAM "{\"change\":\"team\",\"time_ms\":1,\"data\":{\"before\":null,"
                   "\"after\":{\"id\":2}}}\n",
         "that of a team"},
        {HEAD TEAM "{\"change\":\"team\",\"time_ms\":2,\"data\":{\"before\":null,"
                   "\"after\":{\"id\":1}}}\n"
                   "{\"change\":\"team\",\"time_ms\":1,\"data\":{\"before\":null,"
                   "\"after\":{\"id\":1}}}\n",
         "no earlier"},
        {HEAD TEAM "{\"change\":\"team\",\"time_ms\":2,\"data\":{\"before\":null,"
                   "\"after\":{\"id\":1,\"weight\":-1}}}\n" END("0", "0"),
         "a recorded change"},
        {HEAD "{\"change\":\"server\",\"time_ms\":2,\"data\":{\"topology\":[3]}}\n", "topology"},
        {HEAD "{\"change\":\"server\",\"time_ms\":2,\"data\":{\"hold_ms\":-3}}\n", "hold_ms"},
        {HEAD "{\"change\":\"colour\",\"time_ms\":2,\"data\":{}}\n", "team, node or server"},
    };
    struct fixture *f = *state;

    fclose(f->file);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err err = ERR_INIT;

        if (read_text(f, cases[i].text, &err) >= 0)
            fail_msg("text %zu is taken", i);
        if (strstr(err.text, cases[i].says) == NULL)
            fail_msg("text %zu: %s", i, err.text);
        assert_non_null(strstr(err.text, f->path));
        assert_true(*err.remedy);
    }
}

static void what_is_no_file_is_refused(void **state)
{
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    fclose(f->file);
    assert_int_equal(past_read("/no/such/file", &f->past, &err), -ENOENT);
    assert_int_equal(past_read("/tmp", &f->past, &err), -EISDIR);
    assert_non_null(strstr(err.remedy, "--data"));
    assert_int_equal(past_read("/dev/null", &f->past, &err), -EINVAL);
    /* a pipe that nobody writes into is not waited for */
    unlink(f->path);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    assert_int_equal(past_read(f->path, &f->past, &err), -EINVAL);
    assert_non_null(strstr(err.text, "is empty"));
}

static void nothing_at_all_is_a_record(void **state)
{
    struct fixture *f = *state;

    fclose(f->file);
    assert_int_equal(read_text(f, HEAD END("0", "0"), NULL), 0);
    whatif_setup_past(&f->past, &f->setup);
    replay(f, &f->is);
    assert_int_equal(f->is.groups.len, 0);
}

static void what_cannot_be_added_up_is_refused(void **state)
{
    const int64_t far = ((int64_t)1 << 42) - 1;
    struct fixture *f = *state;
    struct err err = ERR_INIT;

    begin(f, 100);
    job(f, 1, 1, 0, 0, 100, false);
    for (int i = 0; i < 3; i++)
        fprintf(f->file, "{\"run\":[1,0,%d,1000000,0,%lld,0,1,0],\"how\":\"ended\"}\n", i,
                (long long)far);
    f->runs = 3;
    end(f);
    assert_int_equal(past_read(f->path, &f->past, &err), -ERANGE);
    assert_true(*err.text != '\0');
}

static void nodes_that_cannot_be_added_up_are_refused(void **state)
{
    struct fixture *f = *state;

    read_burst(f);
    f->past.from_ms = 0; /* half a century */
    assert_int_equal(whatif_change_nodes(&f->past, &f->setup, "100000x1024xH100", NULL), -ERANGE);
}

static void work_is_read_from_the_runs(void **state)
{
    struct fixture *f = *state;
    const struct past_job *j;

    begin(f, 500);
    job(f, 1, 1, 0, 0, 300, false);     /* twice on devices, with checkpoints */
    job(f, 1, 1, 0, 0, -T0 / S, false); /* runs still */
    job(f, 1, 1, 0, 0, -T0 / S, false); /* has not run */
    job(f, 1, 1, 0, 0, 50, false);      /* cancelled before it ran */
    ran_as(f, 1, 0, 1, 0, 100, "gave_way");
    ran_as(f, 1, 1, 1, 200, 300, "ended");
    ran_as(f, 2, 0, 1, 100, -1, "");
    read_it(f);
    j = f->past.jobs.items;
    assert_int_equal(j[0].work_ms, 100 * S); /* nothing is saved within ten minutes */
    past_assume(&f->past, S);
    assert_int_equal(j[0].work_ms, 200 * S);
    assert_int_equal(j[0].guess, PAST_KNOWN);
    assert_int_equal(j[1].work_ms, 400 * S);
    assert_int_equal(j[1].guess, PAST_CENSORED);
    assert_int_equal(j[2].guess, PAST_GUESSED);
    assert_int_equal(j[2].work_ms, 400 * S); /* the upper median of 200 and 400 */
    assert_true(j[3].left_out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replay_as_it_was_is_the_record),
        TEST(more_nodes_take_the_waits_away),
        TEST(jobs_that_no_node_holds_are_refused),
        TEST(a_hard_quota_keeps_a_team_from_idle_gpus),
        TEST(another_limit_is_kept),
        TEST(quotas_are_edited_at_their_time),
        TEST(a_team_that_comes_later_has_nothing_before),
        TEST(lost_nodes_take_their_work_along),
        TEST(drained_nodes_take_nothing_new),
        TEST(nodes_that_come_later_are_not_there_before),
        TEST(what_failed_fails_again),
        TEST(stops_take_as_long_as_recorded),
        TEST(each_beginning_of_a_record_is_cut_off),
        TEST(damaged_bytes_are_refused_or_replayed),
        TEST(a_hard_limit_follows_its_guarantee),
        TEST(words_about_a_team_are_taken_together),
        TEST(a_parent_is_honoured),
        TEST(manifests_mean_what_they_mean_to_apply),
        TEST(more_nodes_stand_beside_the_others),
        TEST(texts_fit_their_columns),
        TEST(proposals_stay_within_limits),
        TEST(proposals_stay_within_limits_above),
        TEST(a_hard_quota_is_proposed_its_peak_hours),
        TEST(guarantees_of_types_are_proposed_too),
        TEST(bad_changes_are_refused),
        TEST(guarantees_are_those_worked_out_by_hand),
        TEST(guarantees_of_others_are_proposed_too),
        TEST(guarantees_never_exceed_what_there_is),
        TEST(damaged_records_are_refused),
        TEST(what_is_no_file_is_refused),
        TEST(nothing_at_all_is_a_record),
        TEST(what_cannot_be_added_up_is_refused),
        TEST(nodes_that_cannot_be_added_up_are_refused),
        TEST(work_is_read_from_the_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
