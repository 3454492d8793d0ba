/* SPDX-License-Identifier: Apache-2.0 */
/* What commands print for what the server says, and what they ask of it. */
#include "fake.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect(const char *line, int code, const char *out)
{
    int got = fake_run(line);

    if (got != code || strcmp(fake_out, out) != 0)
        fail_msg("'%s' gave %d\n%s%swanted %d\n%s", line, got, fake_out, fake_err, code, out);
}

static void expect_error(const char *line, int code, const char *text)
{
    int got = fake_run(line);

    if (got != code || strcmp(fake_err, text) != 0 || fake_out[0] != '\0')
        fail_msg("'%s' gave %d\n%s%swanted %d\n%s", line, got, fake_out, fake_err, code, text);
}

/* ---- lists -------------------------------------------------------------------------------- */

#define WAITING                                                                                  \
    "{\"id\":83,\"name\":\"serve\",\"team\":\"product\",\"owner\":\"ada\",\"kind\":\"service\"," \
    "\"class\":\"production\",\"state\":\"pending\",\"gpus\":2,\"tasks\":1,"                     \
    "\"submitted_at\":\"2026-11-30T11:59:50Z\",\"reason\":\"team_limit\",\"position\":1}"
#define RUNNING                                                                                \
    "{\"id\":81,\"name\":\"digits\",\"team\":\"research\",\"owner\":\"bo\",\"kind\":\"job\","  \
    "\"class\":\"training\",\"state\":\"running\",\"gpus\":1,\"tasks\":6,\"running_tasks\":6," \
    "\"restarts\":1,\"submitted_at\":\"2026-11-30T11:57:00Z\"}"
#define SHARED                                                                            \
    "{\"id\":9,\"name\":\"nb\",\"team\":\"research\",\"state\":\"running\",\"gpu\":0.25," \
    "\"gpu_type\":[\"H100\"],\"tasks\":1,\"running_tasks\":1,"                            \
    "\"submitted_at\":\"2026-11-29T12:00:00Z\"}"

static void ps_lists_what_lives(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200,
                "{\"workloads\":[" WAITING "," RUNNING "," SHARED "]}");
    expect("ps", 0,
           "ID  NAME    TEAM      STATE    ASKS FOR   AGE  NOTE\n"
           "83  serve   product   pending  2 GPUs     10s  #1: team at its limit\n"
           "81  digits  research  running  6 x 1 GPU   3m  6 of 6 tasks, 1 restart\n"
           " 9  nb      research  running  0.25 H100   1d  -\n");
}

static void ps_wide_tells_owner_and_class(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200, "{\"workloads\":[" RUNNING "]}");
    expect("ps --wide", 0,
           "ID  NAME    TEAM      OWNER  KIND  CLASS     STATE    ASKS FOR   AGE  NOTE\n"
           "81  digits  research  bo     job   training  running  6 x 1 GPU   3m  6 of 6 tasks, 1 "
           "restart\n");
}

static void ps_tells_what_gives_way(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200,
                "{\"workloads\":[{\"id\":4,\"name\":\"a\",\"state\":\"running\",\"gpus\":1,"
                "\"running_tasks\":1,\"stopping_tasks\":1,\"restarts\":1,"
                "\"started_at\":\"2026-11-30T11:00:00Z\",\"evicted_at\":\"2026-11-30T11:59:00Z\","
                "\"submitted_at\":\"2026-11-30T11:00:00Z\"},"
                "{\"id\":3,\"name\":\"b\",\"state\":\"running\",\"gpus\":1,\"tasks\":6,"
                "\"running_tasks\":5,\"stopping_tasks\":2,"
                "\"submitted_at\":\"2026-11-30T11:00:00Z\"},"
                "{\"id\":2,\"name\":\"c\",\"state\":\"running\",\"gpus\":1,\"tasks\":2,"
                "\"running_tasks\":1,\"stopping_tasks\":1,"
                "\"started_at\":\"2026-11-30T11:00:00Z\",\"evicted_at\":\"2026-11-30T10:59:00Z\","
                "\"submitted_at\":\"2026-11-30T11:00:00Z\"}]}");
    expect("ps", 0,
           "ID  NAME  TEAM  STATE     ASKS FOR   AGE  NOTE\n"
           " 4  a     -     stopping  1 GPU       1h  evicted, will wait again\n"
           " 3  b     -     running   6 x 1 GPU   1h  5 of 6 tasks, 2 stopping\n"
           " 2  c     -     stopping  2 x 1 GPU   1h  will start again\n");
}

static void ps_passes_filters_escaped(void **state)
{
    const char *const words[] = {"ps", "-a", "--team", "a b", "--name=x&y", "-n", "5", NULL};

    (void)state;
    fake_run_words(words);
    assert_string_equal(fake_calls(), "GET /v1/workloads?team=a%20b&name=x%26y&limit=5\n");
}

static void ps_says_where_the_ended_are(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200, "{\"workloads\":[]}");
    expect_error("ps", 0, "nothing waits or runs ('allot ps --all' shows what has ended)\n");
}

static void json_is_passed_on(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200, "{\"workloads\":[{\"id\":1}]}");
    expect("ps -o json", 0,
           "{\n"
           "  \"workloads\": [\n"
           "    {\n"
           "      \"id\": 1\n"
           "    }\n"
           "  ]\n"
           "}\n");
    assert_int_equal(fake_run("-o json ps"), 0);
    assert_non_null(strstr(fake_out, "\"id\": 1"));
}

static void ps_of_nobody_is_an_error(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&team=nlpp&limit=200", 200, "{\"workloads\":[]}");
    fake_answer("GET /v1/teams", 200, "{\"teams\":[{\"name\":\"nlp\"}]}");
    expect_error("ps --team nlpp", 1,
                 "allot: team 'nlpp' does not exist or is not yours\nhint: did you mean 'nlp'?\n");
    fake_answer("GET /v1/workloads?state=live&owner=bo&limit=200", 200, "{\"workloads\":[]}");
    fake_answer("GET /v1/users/bo", 403, "{\"detail\":\"for administrators\"}");
    expect_error("ps --owner bo", 0,
                 "nothing of that waits or runs (with --all also what has ended is shown)\n");
    fake_answer("GET /v1/users/bo", 404, "{\"detail\":\"there is no user 'bo'\"}");
    expect_error("ps --owner bo", 1, "allot: there is no user 'bo'\n");
}

static void nothing_of_a_team_that_is_not_is_an_error(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, "{\"teams\":[]}");
    fake_answer("GET /v1/events?limit=50&team=x", 200, "{\"events\":[],\"next\":0}");
    expect_error("events --team x", 1,
                 "allot: team 'x' does not exist or is not yours\n"
                 "hint: 'allot team' lists them\n");
    fake_answer("GET /v1/usage?from=2026-11-29T12:00:00.000Z&to=2026-11-30T12:00:00.000Z&team=x",
                200, "{\"teams\":[]}");
    expect_error("usage --team x", 1,
                 "allot: team 'x' does not exist or is not yours\n"
                 "hint: 'allot team' lists them\n");
}

static void names_cannot_steer_the_terminal(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200,
                "{\"workloads\":[{\"id\":1,\"name\":\"a\\u001b[2Jb\",\"state\":\"failed\","
                "\"message\":\"\\u001b]0;x\\u0007\",\"submitted_at\":\"2026-11-30T12:00:00Z\"}]}");
    assert_int_equal(fake_run("ps"), 0);
    assert_null(strchr(fake_out, '\033'));
    assert_null(strchr(fake_out, '\a'));
}

static void a_terminal_gets_what_fits(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 200,
                "{\"workloads\":[" WAITING "," RUNNING "]}");
    fake_style.tty = true;
    fake_style.width = 66;
    expect("ps", 0,
           "ID  NAME    TEAM      STATE    ASKS FOR   AGE  NOTE\n"
           "83  serve   product   pending  2 GPUs     10s  #1: team at its li~\n"
           "81  digits  research  running  6 x 1 GPU   3m  6 of 6 tasks, 1 re~\n");
    fake_style.width = 52;
    assert_int_equal(fake_run("ps"), 0);
    for (const char *l = fake_out; *l; l += strcspn(l, "\n") + 1)
        assert_true(strcspn(l, "\n") <= 60); /* columns have a least width */
    /* a long name leaves the note its part */
    fake_answer("GET /v1/workloads?state=live&limit=200", 200,
                "{\"workloads\":[{\"id\":8,\"name\":\"a-long-name-of-a-workload-that-goes-on\","
                "\"team\":\"a-team-of-research\",\"state\":\"pending\",\"gpus\":1,"
                "\"reason\":\"team_limit\",\"position\":1,"
                "\"submitted_at\":\"2026-11-30T11:00:00Z\"}]}");
    fake_style.width = 80;
    expect("ps", 0,
           "ID  NAME              TEAM              STATE    ASKS FOR  AGE  NOTE\n"
           " 8  a-long-name-of-~  a-team-of-resea~  pending  1 GPU      1h  #1: team at its~\n");
    fake_answer("GET /v1/workloads?state=live&limit=200", 200, "{\"workloads\":[" WAITING "]}");
    fake_style.color = true;
    assert_int_equal(fake_run("ps"), 0);
    assert_non_null(strstr(fake_out, "\033[33mpending"));
    assert_int_equal(fake_run("ps --no-color"), 0);
    assert_null(strchr(fake_out, '\033'));
}

/* ---- one workload ------------------------------------------------------------------------- */

static void show_tells_everything(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/81", 200,
                "{\"id\":81,\"name\":\"digits\",\"team\":\"research\",\"owner\":\"bo\","
                "\"kind\":\"job\",\"class\":\"training\",\"priority\":0,\"preemptible\":true,"
                "\"burst\":true,\"state\":\"running\",\"tasks\":2,\"min_tasks\":2,\"gpus\":1,"
                "\"cpu\":1,\"running_tasks\":2,\"restarts\":0,\"exit_code\":0,\"message\":null,"
                "\"submitted_at\":\"2026-11-30T11:57:00.000Z\","
                "\"started_at\":\"2026-11-30T11:58:00.000Z\",\"ended_at\":null,"
                "\"preemption\":{\"handling\":\"checkpoint\",\"grace\":\"30s\"},"
                "\"command\":[\"python3\",\"train.py\",\"it's\",\"a b\"],"
                "\"tasks_detail\":["
                "{\"index\":0,\"attempt\":0,\"state\":\"running\",\"node\":\"n1\",\"devices\":[0],"
                "\"started_at\":\"2026-11-30T11:58:00Z\",\"exit_code\":null},"
                "{\"index\":1,\"attempt\":0,\"state\":\"failed\",\"node\":\"n1\",\"devices\":[1],"
                "\"started_at\":\"2026-11-30T11:58:00Z\",\"ended_at\":\"2026-11-30T11:59:00Z\","
                "\"exit_code\":137,\"message\":\"out of memory\"}]}");
    expect("show 81", 0,
           "digits (81)  running  2 of 2 tasks\n"
           "  team          research\n"
           "  owner         bo\n"
           "  kind          job\n"
           "  class         training, preemptible\n"
           "  asks for      2 x 1 GPU\n"
           "  cpu           1\n"
           "  submitted     3m ago (2026-11-30T11:57:00.000Z)\n"
           "  started       2m ago (2026-11-30T11:58:00.000Z)\n"
           "  when evicted  checkpoint, grace 30s\n"
           "  command       python3 train.py 'it'\\''s' 'a b'\n"
           "\n"
           "Tasks\n"
           "TASK  STATE    NODE  DEVICES  ATTEMPT  STARTED  NOTE\n"
           "   0  running  n1    gpu 0          0  2m ago   -\n"
           "   1  failed   n1    gpu 1          0  2m ago   exit 137: out of memory\n");
}

static void stop_goes_on_after_a_failure(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/nb", 200, "{\"id\":9}");
    fake_answer("GET /v1/workloads/9", 200, "{\"id\":9,\"name\":\"nb\"}");
    fake_answer("POST /v1/workloads/9/stop", 202, "{\"id\":9,\"state\":\"stopping\"}");
    fake_answer("POST /v1/workloads/8/stop", 409,
                "{\"detail\":\"workload 8 has ended: failed\",\"field\":\"id\"}");
    expect("stop --grace 5s 8 nb", 1, "nb (9) stopping\n");
    assert_string_equal(fake_err, "allot: workload 8 has ended: failed\n");
    assert_string_equal(fake_calls(), "POST /v1/workloads/8/stop {\"grace\":\"5s\"}\n"
                                      "GET /v1/workloads/nb\n"
                                      "POST /v1/workloads/9/stop {\"grace\":\"5s\"}\n"
                                      "GET /v1/workloads/9\n");
}

/* ---- logs --------------------------------------------------------------------------------- */

static void logs_of_what_never_ran_say_why(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/logs", 200, "");
    fake_answer("GET /v1/workloads/6", 200,
                "{\"id\":6,\"state\":\"pending\",\"message\":\"could not be launched: no image\"}");
    expect_error("logs 6", 0,
                 "allot: no output yet: could not be launched: no image ('allot why 6' tells "
                 "more)\n");
    fake_answer("GET /v1/workloads/6", 200,
                "{\"id\":6,\"state\":\"failed\",\"message\":\"no image\",\"started_at\":null}");
    expect_error("logs 6", 0, "allot: no output: it never ran: no image\n");
}

static void silence_of_what_ran_is_its_own(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6/logs", 200, "");
    fake_answer("GET /v1/workloads/6", 200,
                "{\"id\":6,\"state\":\"succeeded\",\"started_at\":\"2026-11-30T11:00:00Z\"}");
    expect_error("logs 6", 0, "");
}

static void logs_of_all_tasks_return(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/6", 200,
                "{\"id\":6,\"state\":\"running\",\"tasks\":3,\"tasks_detail\":["
                "{\"index\":0,\"attempt\":1},{\"index\":1,\"attempt\":0},"
                "{\"index\":2,\"attempt\":0}]}");
    fake_answer("GET /v1/workloads/6/logs?task=0&attempt=1&offset=0", 200, "a\nb\n");
    fake_answer("GET /v1/workloads/6/logs?task=1&attempt=0&offset=0", 404, "{}");
    fake_answer("GET /v1/workloads/6/logs?task=2&attempt=0&offset=0", 200, "half");
    expect("logs --all 6", 0, "[0] a\n[0] b\n[2] half\n");
}

/* ---- teams, nodes, usage ------------------------------------------------------------------ */

#define TEAMS                                                                              \
    "{\"teams\":["                                                                         \
    "{\"name\":\"lab\",\"parent\":null,\"weight\":1,\"priority\":100,"                     \
    "\"guarantee\":{\"gpu\":8,\"cpu\":0,\"memory\":0},\"limit\":{\"gpu\":null},"           \
    "\"used\":{\"gpu\":6.25},\"demand\":{\"gpu\":9},\"share\":{\"gpu\":8},"                \
    "\"entitled\":{\"gpu\":8},\"running\":2,\"pending\":1},"                               \
    "{\"name\":\"nlp\",\"parent\":\"lab\",\"weight\":2,\"priority\":100,"                  \
    "\"guarantee\":{\"gpu\":4},\"limit\":{\"gpu\":6,\"volumes\":50},\"used\":{\"gpu\":5}," \
    "\"demand\":{\"gpu\":7},\"share\":{\"gpu\":4},\"entitled\":{\"gpu\":4},"               \
    "\"running\":1,\"pending\":1},"                                                        \
    "{\"name\":\"vision\",\"parent\":\"lab\",\"weight\":1,\"priority\":100,"               \
    "\"guarantee\":{\"gpu\":4},\"limit\":{\"gpu\":null},\"used\":{\"gpu\":1.25},"          \
    "\"demand\":{\"gpu\":2},\"share\":{\"gpu\":2},\"entitled\":{\"gpu\":4},"               \
    "\"running\":1,\"pending\":0}]}"

static void quota_is_a_tree_with_bars(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, TEAMS);
    expect("quota", 0,
           "TEAM                    USED  GUARANTEE  LIMIT  SHARE  DEMAND\n"
           "lab       #########---  6.25          8      -      8       9\n"
           "|-nlp     ##########--     5          4      6      4       7\n"
           "`-vision  ###+--------  1.25          4      -      2       2\n");
}

#define HELD(milli) "{\"gpu_used\":" #milli "}"

static void quota_says_what_is_free(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, "{\"teams\":[{\"name\":\"nlp\",\"used\":{\"gpu\":1.5}}]}");
    fake_answer("GET /v1/nodes", 200,
                "{\"nodes\":[{\"state\":\"up\",\"devices\":[{},{},{}],"
                "\"use\":[" HELD(0) "," HELD(0) "," HELD(
                    1) "]},"
                       "{\"state\":\"up\",\"devices\":[{},{}],\"use\":[" HELD(0) "," HELD(
                           0.4) "]},"
                                "{\"state\":\"down\",\"devices\":[{}],\"use\":[" HELD(0) "]}]}");
    assert_int_equal(fake_run("quota"), 0);
    assert_non_null(strstr(fake_out,
                           "\n3.6 of 6 GPUs are free: 3 whole, at most 2 on one node, the "
                           "largest part is 0.6; 1 on nodes that take no work now\n"));
}

static void quota_of_one_team_shows_what_is_below(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, TEAMS);
    expect("quota show vision", 0,
           "TEAM                  USED  GUARANTEE  LIMIT  SHARE  DEMAND\n"
           "vision  ###+--------  1.25          4      -      2       2\n");
    expect_error("quota visoin", 1,
                 "allot: team 'visoin' does not exist or is not yours\n"
                 "hint: did you mean 'vision'?\n");
    expect_error("quota xyzzy", 1,
                 "allot: team 'xyzzy' does not exist or is not yours\n"
                 "hint: 'allot team' lists them\n");
}

static void quota_of_one_team_is_json_of_what_is_below(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200,
                "{\"teams\":[{\"name\":\"lab\"},{\"name\":\"a\",\"parent\":\"lab\"},"
                "{\"name\":\"x\"},{\"name\":\"b\",\"parent\":\"a\"}]}");
    assert_int_equal(fake_run("quota lab -o json"), 0);
    assert_null(strstr(fake_out, "\"x\""));
    assert_non_null(strstr(fake_out, "\"lab\""));
    assert_non_null(strstr(fake_out, "\"b\""));
    assert_int_equal(fake_run("quota -o json"), 0);
    assert_non_null(strstr(fake_out, "\"x\""));
    assert_int_equal(fake_run("quota labb -o json"), 1);
}

static void only_lists_go_without_a_name(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, "{\"teams\":[]}");
    assert_int_equal(fake_run("team"), 0);
    assert_non_null(strstr(fake_err, "no teams yet"));
    assert_int_equal(fake_run("gpu"), 0);
    assert_non_null(strstr(fake_out, "usage: allot gpu verify"));
    assert_null(strstr(fake_calls(), "/v1/workloads"));
    expect_error("gpu --node n", 2,
                 "allot: 'gpu' needs a command before '--node'\n"
                 "hint: such as 'allot gpu verify'\n");
}

static void options_without_a_command(void **state)
{
    (void)state;
    assert_int_equal(fake_run("--version"), 0);
    assert_true(strncmp(fake_out, "allot ", 6) == 0);
    assert_string_equal(fake_calls(), "");
    expect_error("--nosuch", 2,
                 "allot: no command follows '--nosuch'\nhint: 'allot help' lists the commands\n");
    expect_error("team sett", 2, "allot: unknown command 'team sett'\nhint: did you mean 'set'?\n");
    expect_error("team wobble", 2,
                 "allot: unknown command 'team wobble'\n"
                 "hint: 'allot help team' lists the commands\n");
}

static void durations_name_their_option(void **state)
{
    static const struct {
        const char *line, *option;
    } cases[] = {
        {"usage --since x", "since"},
        {"stop 1 --grace x", "grace"},
        {"token create --expires x", "expires"},
        {"top --interval x", "interval"},
        {"node maintain a --for x", "for"},
    };
    char text[160];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text),
                 "allot: option '--%s' does not understand 'x'\n"
                 "hint: write a duration such as 90s, 1h30m or 2d; a bare number is seconds\n",
                 cases[i].option);
        expect_error(cases[i].line, 2, text);
    }
}

static void numbers_name_their_option(void **state)
{
    (void)state;
    expect_error("logs 1 --tail x", 2,
                 "allot: option '--tail' does not understand 'x'\n"
                 "hint: give a whole number, 0 or more\n");
    expect_error("logs 1 --task 10000", 2,
                 "allot: option '--task' does not understand '10000'\n"
                 "hint: give a whole number from 0 to 9999\n");
    expect_error("events -n 0", 2,
                 "allot: option '--last' does not understand '0'\n"
                 "hint: give a whole number from 1 to 1000\n");
    expect_error("events --after -1", 2,
                 "allot: option '--after' does not understand '-1'\n"
                 "hint: give a whole number, 0 or more\n");
    expect_error("ps -n 1001", 2,
                 "allot: option '--limit' does not understand '1001'\n"
                 "hint: give a whole number from 1 to 1000\n");
    assert_string_equal(fake_calls(), "");
}

static void quota_tells_gpu_types_apart(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200,
                "{\"teams\":[{\"name\":\"nlp\",\"guarantee\":{\"gpu\":4,\"gpu_types\":"
                "{\"H100\":2}},\"limit\":{\"gpu\":null,\"gpu_types\":{\"A10.v2\":1,\"H100\":3}},"
                "\"used\":{\"gpu\":2.5},\"used_gpu_types\":{\"A10.v2\":0,\"H100\":2.5},"
                "\"demand\":{\"gpu\":3},\"share\":{\"gpu\":3},\"entitled\":{\"gpu\":4}},"
                "{\"name\":\"ocr\",\"parent\":\"nlp\",\"guarantee\":{\"gpu\":1},"
                "\"used\":{\"gpu\":0},\"used_gpu_types\":{},\"entitled\":{\"gpu\":1}}]}");
    expect("quota --all", 0,
           "TEAM                      USED  GUARANTEE  LIMIT  SHARE  DEMAND\n"
           "nlp         #######+----   2.5          4      -      3       3\n"
           "|-[A10.v2]  ------------     0          -      1      -       -\n"
           "|-[H100]    ##########--   2.5          2      3      -       -\n"
           "`-ocr       ------------     0          1      -      -       0\n"
           "\nCPU\n"
           "TEAM                 USED  GUARANTEE  LIMIT  SHARE  DEMAND\n"
           "nlp    ------------     0          0      -      -       0\n"
           "`-ocr  ------------     0          0      -      -       0\n"
           "\nMemory\n"
           "TEAM                 USED  GUARANTEE  LIMIT  SHARE  DEMAND\n"
           "nlp    ------------    0B         0B      -      -      0B\n"
           "`-ocr  ------------    0B         0B      -      -      0B\n");
}

static void quota_notes_what_cannot_all_be_kept(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200,
                "{\"teams\":[{\"name\":\"a\",\"guarantee\":{\"gpu\":1}},"
                "{\"name\":\"b\",\"guarantee\":{\"gpu\":1.5}}]}");
    fake_answer("GET /v1/nodes", 200, "{\"nodes\":[{\"devices\":[{},{}]}]}");
    assert_int_equal(fake_run("quota"), 0);
    assert_non_null(strstr(fake_out, "\nguarantees add up to 2.5 GPUs; there are 2\n"));
}

static void team_list(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, TEAMS);
    expect("team", 0,
           "TEAM    PARENT  GUARANTEE  LIMIT              WEIGHT  PRIORITY\n"
           "lab     -       8 gpu      -                       1       100\n"
           "nlp     lab     4 gpu      6 gpu, 50 volumes       2       100\n"
           "vision  lab     4 gpu      -                       1       100\n");
}

static void team_set_changes_only_what_is_named(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/nlp", 200,
                "{\"id\":3,\"version\":7,\"name\":\"nlp\",\"parent\":\"lab\",\"weight\":2,"
                "\"priority\":100,\"guarantee\":{\"gpu\":4,\"cpu\":8},"
                "\"limit\":{\"gpu\":6,\"memory\":null},\"used\":{\"gpu\":5}}");
    fake_answer("PUT /v1/teams/nlp", 200, "{\"name\":\"nlp\"}");
    expect("team set nlp --guarantee gpu=5,cpu=none --limit gpu=none", 0, "team nlp changed\n");
    assert_string_equal(
        fake_calls(),
        "GET /v1/teams/nlp\n"
        "PUT /v1/teams/nlp {\"name\":\"nlp\",\"parent\":\"lab\",\"weight\":2,\"priority\":100,"
        "\"guarantee\":{\"gpu\":\"5\"},\"limit\":{\"memory\":null}}\n"
        "GET /v1/teams\n");
}

static void team_set_keeps_to_the_model_of_a_quota(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/nlp", 200,
                "{\"name\":\"nlp\",\"quota\":\"hard\",\"guarantee\":{\"gpu\":4},"
                "\"limit\":{\"gpu\":4,\"volumes\":2}}");
    fake_answer("PUT /v1/teams/nlp", 200, "{\"name\":\"nlp\"}");
    expect("team set nlp --guarantee gpu=6,gpu:H100=2", 0, "team nlp changed\n");
    assert_string_equal(fake_calls(),
                        "GET /v1/teams/nlp\n"
                        "PUT /v1/teams/nlp {\"name\":\"nlp\",\"guarantee\":{\"gpu\":\"6\","
                        "\"gpu_types\":{\"H100\":\"2\"}},\"limit\":{\"volumes\":2},"
                        "\"quota\":\"hard\"}\n"
                        "GET /v1/teams\n");
}

static void team_set_passes_on_what_the_server_remarks(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams/nlp", 404, "{}");
    fake_answer("PUT /v1/teams/nlp", 201,
                "{\"name\":\"nlp\",\"warnings\":[\"no node has GPUs of type 'h100'\"]}");
    assert_int_equal(fake_run("team set nlp --limit gpu:h100=1"), 0);
    assert_string_equal(fake_out, "team nlp created\n");
    assert_string_equal(fake_err, "allot: warning: no node has GPUs of type 'h100'\n");
}

static void team_set_refuses_before_it_asks(void **state)
{
    (void)state;
    assert_int_equal(fake_run("team set x --guarantee gpu=-1"), 2);
    assert_non_null(strstr(fake_err, "gpu"));
    assert_int_equal(fake_run("team set x --guarantee gpu=8 --limit gpu=4"), 2);
    assert_int_equal(fake_run("team set x --guarantee gpu"), 2);
    assert_null(strstr(fake_calls(), "PUT"));
}

#define NODE                                                                                       \
    "{\"name\":\"gpu-01\",\"cluster\":\"local\",\"state\":\"up\",\"drained\":false,"               \
    "\"gpu_type\":\"H100\",\"sharing\":\"none\",\"limits\":\"cgroup2\","                           \
    "\"isolation\":\"bubblewrap\",\"cpu\":64,\"memory\":\"512GiB\",\"gpu_used\":1.25,"             \
    "\"devices\":[{\"uuid\":\"SIM-0\",\"type\":\"H100\",\"memory\":\"80GiB\",\"simulated\":true}," \
    "{\"uuid\":\"SIM-1\",\"type\":\"H100\",\"memory\":\"80GiB\",\"simulated\":true}],"             \
    "\"labels\":{\"zone\":\"a\"},"                                                                 \
    "\"use\":[{\"index\":0,\"gpu_used\":1,\"holders\":[{\"workload\":81,\"name\":\"digits\","      \
    "\"team\":\"research\",\"task\":3,\"gpu\":1}]},"                                               \
    "{\"index\":1,\"gpu_used\":0.25,\"holders\":[{\"gpu\":0.25}]}]}"

static void node_list(void **state)
{
    (void)state;
    fake_answer("GET /v1/nodes", 200, "{\"nodes\":[" NODE "]}");
    expect("node", 0,
           "NODE    STATE  GPUS                  USED  FREE  CPU  MEMORY  SHARING  LIMITS\n"
           "gpu-01  up     2 x H100 (simulated)  1.25     0   64  512GiB  none     cgroup2\n");
}

static void node_show(void **state)
{
    (void)state;
    fake_answer("GET /v1/nodes/gpu-01", 200, NODE);
    expect("node show gpu-01", 0,
           "gpu-01  up\n"
           "  cluster       local\n"
           "  gpus          2 x H100 (simulated)\n"
           "  used          1.25\n"
           "  cpu           64\n"
           "  memory        512GiB\n"
           "  sharing       none: parts of a GPU are counted, not enforced\n"
           "  limits        cgroup2\n"
           "  isolation     bubblewrap\n"
           "  labels        zone=a\n"
           "\n"
           "Devices\n"
           "GPU  TYPE  MEMORY            USED  HELD BY\n"
           "  0  H100   80GiB  ########     1  digits.3 (81)\n"
           "  1  H100   80GiB  ##------  0.25  1 of other teams\n");
}

static void node_show_tells_why_parts_hold_or_do_not(void **state)
{
    (void)state;
    fake_answer("GET /v1/nodes/n", 200,
                "{\"name\":\"n\",\"state\":\"up\",\"sharing\":\"shim\",\"sharing_backends\":["
                "{\"name\":\"shim\",\"state\":\"used\",\"reason\":null},"
                "{\"name\":\"mps\",\"state\":\"absent\",\"reason\":\"it is not installed\"}]}");
    assert_int_equal(fake_run("node show n"), 0);
    assert_non_null(strstr(fake_out, "\nParts of GPUs\n"
                                     "SHARING BY  STATE   WHY\n"
                                     "shim        used    -\n"
                                     "mps         absent  it is not installed\n"));
}

static void node_drain_reports_each(void **state)
{
    (void)state;
    fake_answer("POST /v1/nodes/a/drain", 200, "{}");
    fake_answer("GET /v1/nodes/a", 200, NODE);
    expect("node drain a b", 1,
           "node a takes nothing new; 2 workloads hold GPUs there and go on\n");
    assert_string_equal(fake_err, "allot: Not Found\n");
}

#define WINDOW(from, until) "\"maintenance\":{\"from\":\"" from "\",\"until\":\"" until "\"}"
#define TOUCHED                                                                            \
    "{\"name\":\"a\",\"state\":\"up\"," WINDOW(                                            \
        "2026-12-24T22:00:00.000Z",                                                        \
        "2026-12-25T02:00:00.000Z") ",\"maintenance_work\":["                              \
                                    "{\"workload\":3,\"name\":\"big\",\"team\":\"nlp\","   \
                                    "\"outcome\":\"evicted\"},"                            \
                                    "{\"workload\":4,\"name\":\"serve\",\"team\":\"nlp\"," \
                                    "\"outcome\":\"stays\"},"                              \
                                    "{\"workload\":5,\"name\":\"short\",\"team\":\"nlp\"," \
                                    "\"outcome\":\"ends\"},"                               \
                                    "{\"workload\":9,\"name\":\"nb\",\"team\":\"nlp\","    \
                                    "\"outcome\":\"evicted\"}]}"
#define TOUCHED_TEXT                                                              \
    "  evicts        big (3), nb (9)\n"                                           \
    "  stays         serve (4): not preemptible, stop it before ('allot stop')\n" \
    "  ends before   short (5)\n"                                                 \
    "  waits for it  late (7)\n"

static void answer_what_waits(void)
{
    fake_answer("GET /v1/workloads?state=pending&limit=1000", 200,
                "{\"workloads\":[{\"id\":7,\"name\":\"late\",\"reason\":\"maintenance\"},"
                "{\"id\":8,\"name\":\"other\",\"reason\":\"maintenance\"},"
                "{\"id\":6,\"name\":\"big2\",\"reason\":\"no_room\"}]}");
    fake_answer("GET /v1/workloads/7/explain", 200, "{\"maintenance\":{\"node\":\"a\"}}");
    fake_answer("GET /v1/workloads/8/explain", 200, "{\"maintenance\":{\"node\":\"b\"}}");
}

static void maintenance_is_announced_and_says_whom_it_touches(void **state)
{
    (void)state;
    fake_answer("POST /v1/nodes/a/maintenance", 200, TOUCHED);
    answer_what_waits();
    expect("node maintain a --from 2026-12-24T23:00+01:00 --for 4h", 0,
           "node a has maintenance from 2026-12-24 22:00Z until 2026-12-25 02:00Z\n" TOUCHED_TEXT);
    assert_string_equal(fake_calls(),
                        "POST /v1/nodes/a/maintenance {\"from\":\"2026-12-24T22:00:00.000Z\","
                        "\"until\":\"2026-12-25T02:00:00.000Z\"}\n"
                        "GET /v1/workloads?state=pending&limit=1000\n"
                        "GET /v1/workloads/7/explain\n"
                        "GET /v1/workloads/8/explain\n");
}

static void maintenance_that_touches_nobody_says_so(void **state)
{
    (void)state;
    fake_answer("POST /v1/nodes/a/maintenance", 200,
                "{" WINDOW("2026-11-30T12:00:00Z", "2026-11-30T13:00:00Z") "}");
    fake_answer("GET /v1/workloads?state=pending&limit=1000", 200, "{\"workloads\":[]}");
    expect("node maintain a --for 1h", 0,
           "node a has maintenance from 2026-11-30 12:00Z until 2026-11-30 13:00Z\n"
           "  nothing that runs there now is touched\n");
}

static void maintenance_is_cancelled_alone(void **state)
{
    (void)state;
    fake_answer("DELETE /v1/nodes/a/maintenance", 200, "{}");
    expect("node maintain --cancel a", 0, "node a has no maintenance any more\n");
    expect_error("node maintain a", 2,
                 "allot: say how long the maintenance takes, once\n"
                 "hint: add --for 4h, --until TIME or --cancel\n");
    expect_error("node maintain a --cancel --for 4h", 2,
                 "allot: options '--cancel' and '--for' exclude each other\n"
                 "hint: give one of them\n");
    expect_error("node maintain a --from 2026-02-30 --for 4h", 2,
                 "allot: option '--from' does not understand '2026-02-30'\n"
                 "hint: write 2026-11-30, 2026-11-30T21:00Z or 2026-11-30T22:00+01:00\n");
    expect_error("node maintain a --from 2026 --for 4h", 2,
                 "allot: option '--from' does not understand '2026'\n"
                 "hint: write 2026-11-30, 2026-11-30T21:00Z or 2026-11-30T22:00+01:00\n");
}

static void windows_of_nodes_are_shown_until_they_are_over(void **state)
{
    (void)state;
    fake_answer(
        "GET /v1/nodes", 200,
        "{\"nodes\":[{\"name\":\"now\",\"state\":\"up\"," WINDOW(
            "2026-11-30T11:00:00Z",
            "2026-11-30T14:00:00Z") "},"
                                    "{\"name\":\"next\",\"state\":\"up\",\"drained\":true," WINDOW(
                                        "2026-11-30T15:00:00Z",
                                        "2026-11-30T15:30:00Z") "},"
                                                                "{\"name\":\"over\",\"state\":"
                                                                "\"up\"," WINDOW(
                                                                    "2026-11-30T11:00:00Z",
                                                                    "2026-11-30T12:00:00Z") "}]}");
    expect("node list", 0,
           "NODE  STATE        GPUS  USED  FREE  CPU  MEMORY  SHARING  LIMITS\n"
           "now   maintenance  none     -     -    -       -  -        -\n"
           "next  drained      none     -     -    -       -  -        -\n"
           "over  up           none     -     -    -       -  -        -\n"
           "\n"
           "NODE  MAINTENANCE     FROM               UNTIL\n"
           "now   now, 2h left    2026-11-30 11:00Z  2026-11-30 14:00Z\n"
           "next  in 3h, for 30m  2026-11-30 15:00Z  2026-11-30 15:30Z\n");
    fake_answer("GET /v1/nodes/a", 200, TOUCHED);
    answer_what_waits();
    expect("node show a", 0,
           "a  up\n"
           "  gpus          none\n"
           "  maintenance   in 24d 10h, for 4h: from 2026-12-24 22:00Z until 2026-12-25 "
           "02:00Z\n" TOUCHED_TEXT);
}

static void usage_sums_teams(void **state)
{
    (void)state;
    fake_answer("GET /v1/usage?from=2026-11-30T11:30:00.000Z&to=2026-11-30T12:00:00.000Z", 200,
                "{\"teams\":[{\"team\":\"nlp\",\"allocated_gpu_ms\":1234567,"
                "\"busy_gpu_ms\":617283},{\"team\":\"vision\",\"allocated_gpu_ms\":50,"
                "\"busy_gpu_ms\":0}]}");
    expect("usage --since 30m", 0,
           "TEAM    GPU-SECONDS   BUSY   IDLE                BUSY %\n"
           "nlp          1234.6  617.3  617.3  #####+------     50%\n"
           "vision          0.1    0.0    0.1  ------------      0%\n"
           "all          1234.6  617.3  617.3  #####+------     50%\n");
}

static void what_is_not_known_is_not_idle(void **state)
{
    (void)state;
    fake_answer("GET /v1/usage?from=2026-11-30T11:30:00.000Z&to=2026-11-30T12:00:00.000Z", 200,
                "{\"teams\":[{\"team\":\"nlp\",\"allocated_gpu_ms\":1000000,"
                "\"busy_gpu_ms\":100000,\"unknown_gpu_ms\":800000}]}");
    expect("usage --since 30m", 0,
           "TEAM  GPU-SECONDS   BUSY   IDLE                BUSY %  NOT KNOWN\n"
           "nlp        1000.0  100.0  100.0  ######------     50%      800.0\n");
}

static void nothing_stands_beside_no_percent(void **state)
{
    (void)state;
    fake_answer("GET /v1/usage?from=2026-11-30T11:30:00.000Z&to=2026-11-30T12:00:00.000Z", 200,
                "{\"teams\":[{\"team\":\"nlp\",\"allocated_gpu_ms\":1000000,"
                "\"busy_gpu_ms\":100}]}");
    expect("usage --since 30m", 0,
           "TEAM  GPU-SECONDS  BUSY   IDLE                BUSY %\n"
           "nlp        1000.0   0.1  999.9  ------------      0%\n");
}

static void usage_of_long_windows_is_in_hours(void **state)
{
    (void)state;
    fake_answer("GET /v1/usage?from=2026-11-01T00:00:00.000Z&to=2026-11-30T00:00:00.000Z", 200,
                "{\"teams\":[{\"team\":\"nlp\",\"allocated_gpu_ms\":3600000000,"
                "\"busy_gpu_ms\":1800000000}]}");
    expect("usage --from 2026-11-01 --to 2026-11-30", 0,
           "TEAM  GPU-HOURS   BUSY   IDLE                BUSY %\n"
           "nlp      1000.0  500.0  500.0  ######------     50%\n");
    assert_int_equal(fake_run("usage --from 2026-11-30 --to 2026-11-01"), 2);
}

static void top_is_one_picture_in_a_pipe(void **state)
{
    (void)state;
    fake_answer("GET /v1/status", 200,
                "{\"started_at\":\"2026-11-30T10:00:00Z\",\"pending\":1,\"running\":2,"
                "\"reconciled\":true,\"store\":{\"ok\":true,\"message\":null}}");
    fake_answer("GET /v1/nodes", 200, "{\"nodes\":[" NODE "]}");
    fake_answer("GET /v1/teams", 200, TEAMS);
    fake_answer("GET /v1/workloads?state=live&limit=15", 200, "{\"workloads\":[" WAITING "]}");
    assert_int_equal(fake_run("top"), 0);
    /* the clock of the first line is local time */
    assert_string_equal(strstr(fake_out, "  up "),
                        "  up 2h  running 2  waiting 1\n"
                        "\n"
                        "NODE    STATE  GPUS                    TYPE\n"
                        "gpu-01  up     #+    1.25 of 2 in use  H100\n"
                        "0.75 of 2 GPUs are free: the largest part is 0.75\n"
                        "\n"
                        "TEAM                    USED  GUARANTEE  LIMIT  SHARE  DEMAND\n"
                        "lab       #########---  6.25          8      -      8       9\n"
                        "|-nlp     ##########--     5          4      6      4       7\n"
                        "`-vision  ###+--------  1.25          4      -      2       2\n"
                        "\n"
                        "ID  NAME   TEAM     STATE    ASKS FOR  AGE  NOTE\n"
                        "83  serve  product  pending  2 GPUs    10s  #1: team at its limit\n");
}

/* ---- submitting --------------------------------------------------------------------------- */

static void submit_sends_what_the_options_say(void **state)
{
    const char *const words[] = {"submit",
                                 "--gpu",
                                 "0.25",
                                 "-n",
                                 "2",
                                 "--team",
                                 "nlp",
                                 "--env",
                                 "A=b=c",
                                 "--label",
                                 "zone=a",
                                 "--no-preemptible",
                                 "--grace",
                                 "5s",
                                 "--gpu-type",
                                 "H100",
                                 "--gpu-type=A100",
                                 "--",
                                 "echo",
                                 "--gpu",
                                 "",
                                 NULL};

    (void)state;
    fake_answer("POST /v1/workloads", 201, "{\"id\":84,\"name\":\"calm-otter\"}");
    assert_int_equal(fake_run_words(words), 0);
    assert_string_equal(fake_out, "84\n");
    assert_string_equal(
        fake_calls(), "POST /v1/workloads {\"team\":\"nlp\",\"gpu\":\"0.25\",\"tasks\":2,"
                      "\"env\":{\"A\":\"b=c\"},\"node_labels\":{\"zone\":\"a\"},"
                      "\"gpu_type\":[\"H100\",\"A100\"],\"preemptible\":false,"
                      "\"preemption\":{\"grace\":\"5s\"},\"command\":[\"echo\",\"--gpu\",\"\"]}\n");
}

/* As git leaves a clone where the umask is strict. */
static void a_folder_is_looked_at_before_anything_is_submitted(void **state)
{
    char folder[] = "/tmp/allot-test-cli-XXXXXX", sent[64], warning[160];
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(chdir(folder), 0);
    fake_answer("POST /v1/workloads", 201, "{\"id\":85}");
    snprintf(sent, sizeof(sent), "\"workdir\":\"%s\"", folder);
    snprintf(warning, sizeof(warning), "allot: warning: '%s' is closed to others; ", folder);
    expect("submit --team nlp -w . true", 0, "85\n");
    assert_non_null(strstr(fake_calls(), sent));
    assert_true(strncmp(fake_err, warning, strlen(warning)) == 0);
    assert_int_equal(chmod(folder, 0755), 0);
    expect("submit --team nlp -w . true", 0, "85\n");
    assert_string_equal(fake_err, "");
    fd = open("file", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
    snprintf(warning, sizeof(warning), "allot: option '--workdir': '%s/file' is not a folder\n",
             folder);
    assert_int_equal(fake_run("submit --team nlp -w file true"), 1);
    assert_true(strncmp(fake_err, warning, strlen(warning)) == 0);
    assert_int_equal(fake_run("submit --team nlp -w nosuch true"), 1);
    assert_int_equal(unlink("file"), 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_int_equal(rmdir(folder), 0);
}

static void submit_takes_the_only_team(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200,
                "{\"teams\":[{\"name\":\"lab\"},{\"name\":\"nlp\",\"parent\":\"lab\"}]}");
    fake_answer("POST /v1/workloads", 201, "{\"id\":85}");
    expect("submit true", 0, "85\n");
    assert_non_null(strstr(fake_calls(), "\"team\":\"nlp\""));
}

static void submit_names_the_teams_to_choose_from(void **state)
{
    (void)state;
    fake_answer("GET /v1/teams", 200, TEAMS);
    expect_error("submit true", 1,
                 "allot: for which team? nlp, vision\n"
                 "hint: choose with --team, or set ALLOT_TEAM for good\n");
}

static void submit_refuses_as_the_server_would(void **state)
{
    (void)state;
    assert_int_equal(fake_run("submit --team nlp --gpu 1e3 -- true"), 1);
    assert_non_null(strstr(fake_err, "gpu '1e3'"));
    assert_int_equal(fake_run("submit --team nlp --gpu 0.5 --gpus 1 -- true"), 1);
    assert_int_equal(fake_run("submit --team nlp --tasks x -- true"), 1);
    assert_int_equal(fake_run("submit --team nlp"), 1);
    assert_string_equal(fake_calls(), "");
}

static void whole_gpus_are_told_from_parts(void **state)
{
    (void)state;
    expect_error("submit --team nlp --gpus 0.25 -- true", 1,
                 "allot: option '--gpus' takes whole GPUs, not '0.25'\n"
                 "hint: part of one GPU is --gpu, as --gpu 0.25\n");
}

static void a_wrong_team_brings_the_right_one(void **state)
{
    (void)state;
    fake_answer("POST /v1/workloads", 422,
                "{\"detail\":\"team 'reserch' does not exist\",\"field\":\"team\"}");
    fake_answer("GET /v1/teams", 200, "{\"teams\":[{\"name\":\"research\"}]}");
    expect_error("submit --team reserch -- true", 1,
                 "allot: team 'reserch' does not exist or is not yours\n"
                 "hint: did you mean 'research'?\n");
}

static void problems_are_told_with_field_and_remedy(void **state)
{
    (void)state;
    fake_answer("POST /v1/workloads", 422,
                "{\"title\":\"Unprocessable\",\"code\":\"unsatisfiable\","
                "\"detail\":\"no node has 9 GPUs\",\"field\":\"gpus\","
                "\"remedy\":\"the largest has 8\"}");
    expect_error("submit --team nlp --gpus 9 -- true", 1,
                 "allot: no node has 9 GPUs\nhint: the largest has 8\n");
}

static void a_missing_token_is_told_as_to_people(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads?state=live&limit=200", 401,
                "{\"detail\":\"no token was given\","
                "\"remedy\":\"send 'Authorization: Bearer TOKEN'\"}");
    expect_error("ps", 1,
                 "allot: no token was given\n"
                 "hint: log in with 'allot login', or set ALLOT_TOKEN; an administrator makes "
                 "tokens\n");
}

static void on_a_terminal_errors_break_between_words(void **state)
{
    (void)state;
    fake_terminal = true;
    fake_style.width = 40;
    fake_answer("GET /v1/workloads/9", 404,
                "{\"detail\":\"there is no workload '9' that you could see from where you are\","
                "\"remedy\":\"see 'allot ps --all' for those that there are\"}");
    expect_error("show 9", 1,
                 "allot: there is no workload '9' that you\n"
                 "       could see from where you are\n"
                 "hint: see 'allot ps --all' for those\n"
                 "      that there are\n");
}

static void a_field_is_shown_where_it_leads_further(void **state)
{
    (void)state;
    fake_answer("POST /v1/workloads", 422,
                "{\"detail\":\"'x' is no quantity\",\"field\":\"groups[1].gpu\"}");
    expect_error("submit --team nlp -- true", 1, "allot: 'x' is no quantity (groups[1].gpu)\n");
    fake_answer("POST /v1/workloads", 422,
                "{\"detail\":\"groups[1].gpu 'x' is no quantity\",\"field\":\"groups[1].gpu\"}");
    expect_error("submit --team nlp -- true", 1, "allot: groups[1].gpu 'x' is no quantity\n");
}

static void no_server_is_said_so(void **state)
{
    (void)state;
    fake_unreachable();
    expect_error("ps", 1, "allot: no answer from 'fake'\nhint: check the address\n");
}

/* ---- the rest ----------------------------------------------------------------------------- */

static void logs_pass_bytes_through(void **state)
{
    (void)state;
    fake_answer("GET /v1/workloads/81/logs?task=3&tail=10", 200, "one\ntwo \033[1mbold");
    expect("logs 81 --task 3 --tail 10", 0, "one\ntwo \033[1mbold");
}

static void events_are_lines(void **state)
{
    (void)state;
    fake_answer("GET /v1/events?limit=50&team=nlp", 200,
                "{\"events\":[{\"seq\":5,\"time\":null,\"type\":\"workload.evicted\","
                "\"workload\":81,\"name\":\"digits\",\"task\":2,\"team\":\"nlp\","
                "\"message\":\"reclaimed by product\"},{\"seq\":6,\"time\":null,"
                "\"type\":\"node.changed\",\"node\":\"n1\",\"message\":\"drained\"}],\"next\":6}");
    expect("events --team nlp", 0,
           "-  workload.evicted    digits (81.2) reclaimed by product\n"
           "-  node.changed        n1 drained\n");
}

static void detail_of_events_is_for_who_asks(void **state)
{
    (void)state;
    fake_answer("GET /v1/events?limit=50", 200,
                "{\"events\":[{\"seq\":5,\"time\":null,\"type\":\"task.refused\",\"workload\":81,"
                "\"name\":\"digits\",\"task\":0,\"message\":\"no such image\","
                "\"data\":{\"detail\":\"pinging container registry\"}}],\"next\":6}");
    expect("events", 0, "-  task.refused        digits (81.0) no such image\n");
    expect("events -v", 0,
           "-  task.refused        digits (81.0) no such image\n"
           "    pinging container registry\n");
}

static void on_a_terminal_events_stand_beside_their_time(void **state)
{
    (void)state;
    fake_terminal = true;
    fake_style.width = 60;
    fake_answer("GET /v1/events?limit=50", 200,
                "{\"events\":[{\"seq\":5,\"time\":null,\"type\":\"workload.evicted\","
                "\"workload\":81,\"name\":\"digits\",\"task\":2,"
                "\"message\":\"reclaimed by product, which takes back 2 GPUs\"}],\"next\":6}");
    expect("events", 0,
           "-  workload.evicted    digits (81.2) reclaimed by product,\n"
           "                       which takes back 2 GPUs\n");
}

static void tokens_are_printed_alone(void **state)
{
    (void)state;
    fake_answer("POST /v1/tokens", 201, "{\"id\":3,\"user\":\"ada\",\"token\":\"alt_x\"}");
    expect("token create ada --label laptop --expires 90d", 0, "alt_x\n");
    assert_string_equal(fake_calls(), "POST /v1/tokens {\"user\":\"ada\",\"label\":\"laptop\","
                                      "\"expires_in\":\"90d\"}\n");
}

static void user_set_keeps_what_is_not_named(void **state)
{
    (void)state;
    fake_answer("GET /v1/users/ada", 200,
                "{\"name\":\"ada\",\"role\":\"admin\",\"teams\":[\"nlp\"]}");
    fake_answer("PUT /v1/users/ada", 200, "{}");
    expect("user set ada", 0, "user ada changed\n");
    assert_non_null(strstr(fake_calls(), "PUT /v1/users/ada {\"name\":\"ada\",\"role\":\"admin\","
                                         "\"teams\":[\"nlp\"]}"));
}

static void unknown_commands_are_helped(void **state)
{
    (void)state;
    expect_error("sbmit", 2, "allot: unknown command 'sbmit'\nhint: did you mean 'submit'?\n");
    expect_error("team lsit", 2,
                 "allot: unknown command 'team lsit'\nhint: did you mean 'list'?\n");
    expect_error("squeue", 2, "allot: unknown command 'squeue'\nhint: here that is 'allot ps'\n");
    expect_error("stop", 2,
                 "allot: 'stop' needs ID...\n"
                 "hint: 'allot ps' lists workloads; a number or a name will do\n");
    expect_error("run -it -- bash", 2,
                 "allot: unknown option '-i'\n"
                 "hint: use 'allot exec ID -- bash' in a task that runs\n");
    assert_int_equal(fake_run("logs --since 5m 81"), 2);
    assert_non_null(strstr(fake_err, "hint: lines carry no times: --tail N"));
    expect_error("xyzzy", 2,
                 "allot: unknown command 'xyzzy'\nhint: 'allot help' lists the commands\n");
}

static void every_command_helps_and_has_a_page(void **state)
{
    (void)state;
    for (size_t i = 0; cli_builtin_commands[i]; i++) {
        const struct cli_command *c = cli_builtin_commands[i];
        const char *const help[] = {"help", c->name, NULL};
        const char *const man[] = {"help", "--man", c->name, NULL};

        assert_int_equal(fake_run_words(help), 0);
        assert_non_null(strstr(fake_out, c->summary));
        assert_non_null(strstr(fake_out, "usage: allot "));
        assert_int_equal(fake_run_words(man), 0);
        assert_non_null(strstr(fake_out, ".SH SYNOPSIS"));
        assert_true(c->summary[0] && strlen(c->summary) <= 66);
        assert_true(c->examples != NULL);
        assert_true((c->run != NULL) != (c->subcommands != NULL));
    }
}

static void exit_codes_stand_one_a_line(void **state)
{
    (void)state;
    assert_int_equal(fake_run("help run"), 0);
    assert_non_null(strstr(fake_out, "\nExit codes:\n"
                                     "  0    it succeeded, or goes on after it was detached\n"
                                     "  N    the exit code of the task"));
    assert_non_null(strstr(fake_out, "\n  125  allot itself failed"));
}

static void help_fits_eighty_columns(void **state)
{
    (void)state;
    for (size_t i = 0; cli_builtin_commands[i]; i++) {
        const char *const help[] = {"help", cli_builtin_commands[i]->name, NULL};

        fake_run_words(help);
        for (const char *l = fake_out; *l; l += strcspn(l, "\n") + 1)
            if (strcspn(l, "\n") > 80)
                fail_msg("%.*s", (int)strcspn(l, "\n"), l);
    }
}

static void completion_knows_every_command_and_option(void **state)
{
    (void)state;
    for (int shell = 0; shell < 2; shell++) {
        assert_int_equal(fake_run(shell ? "completion zsh" : "completion bash"), 0);
        for (size_t i = 0; cli_builtin_commands[i]; i++)
            assert_non_null(strstr(fake_out, cli_builtin_commands[i]->name));
        assert_non_null(strstr(fake_out, "--gpu-memory"));
        assert_non_null(strstr(fake_out, "--guarantee"));
    }
    fake_answer("GET /v1/teams", 200, TEAMS);
    expect("completion --words team", 0, "lab\nnlp\nvision\n");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(ps_lists_what_lives),
        TEST(ps_wide_tells_owner_and_class),
        TEST(ps_tells_what_gives_way),
        TEST(ps_passes_filters_escaped),
        TEST(ps_says_where_the_ended_are),
        TEST(ps_of_nobody_is_an_error),
        TEST(nothing_of_a_team_that_is_not_is_an_error),
        TEST(json_is_passed_on),
        TEST(names_cannot_steer_the_terminal),
        TEST(a_terminal_gets_what_fits),
        TEST(show_tells_everything),
        TEST(stop_goes_on_after_a_failure),
        TEST(logs_of_what_never_ran_say_why),
        TEST(silence_of_what_ran_is_its_own),
        TEST(logs_of_all_tasks_return),
        TEST(quota_is_a_tree_with_bars),
        TEST(quota_says_what_is_free),
        TEST(quota_of_one_team_shows_what_is_below),
        TEST(quota_of_one_team_is_json_of_what_is_below),
        TEST(options_without_a_command),
        TEST(only_lists_go_without_a_name),
        TEST(durations_name_their_option),
        TEST(numbers_name_their_option),
        TEST(quota_tells_gpu_types_apart),
        TEST(quota_notes_what_cannot_all_be_kept),
        TEST(team_list),
        TEST(team_set_changes_only_what_is_named),
        TEST(team_set_keeps_to_the_model_of_a_quota),
        TEST(team_set_passes_on_what_the_server_remarks),
        TEST(team_set_refuses_before_it_asks),
        TEST(node_list),
        TEST(node_show),
        TEST(node_show_tells_why_parts_hold_or_do_not),
        TEST(node_drain_reports_each),
        TEST(usage_sums_teams),
        TEST(maintenance_is_announced_and_says_whom_it_touches),
        TEST(maintenance_that_touches_nobody_says_so),
        TEST(maintenance_is_cancelled_alone),
        TEST(windows_of_nodes_are_shown_until_they_are_over),
        TEST(what_is_not_known_is_not_idle),
        TEST(nothing_stands_beside_no_percent),
        TEST(usage_of_long_windows_is_in_hours),
        TEST(top_is_one_picture_in_a_pipe),
        TEST(submit_sends_what_the_options_say),
        TEST(a_folder_is_looked_at_before_anything_is_submitted),
        TEST(submit_takes_the_only_team),
        TEST(submit_names_the_teams_to_choose_from),
        TEST(submit_refuses_as_the_server_would),
        TEST(whole_gpus_are_told_from_parts),
        TEST(a_wrong_team_brings_the_right_one),
        TEST(problems_are_told_with_field_and_remedy),
        TEST(a_missing_token_is_told_as_to_people),
        TEST(on_a_terminal_errors_break_between_words),
        TEST(a_field_is_shown_where_it_leads_further),
        TEST(no_server_is_said_so),
        TEST(logs_pass_bytes_through),
        TEST(events_are_lines),
        TEST(detail_of_events_is_for_who_asks),
        TEST(on_a_terminal_events_stand_beside_their_time),
        TEST(tokens_are_printed_alone),
        TEST(user_set_keeps_what_is_not_named),
        TEST(unknown_commands_are_helped),
        TEST(every_command_helps_and_has_a_page),
        TEST(exit_codes_stand_one_a_line),
        TEST(help_fits_eighty_columns),
        TEST(completion_knows_every_command_and_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
