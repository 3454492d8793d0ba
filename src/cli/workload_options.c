/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/workload_options.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/qty.h"
#include "cli/cli.h"
#include "cli/json.h"
#include "cli/session.h"
#include "cli/teams.h"
#include "model/json.h"
#include "model/workload.h"

/* About ten seconds: a server that is restarted is back by then. */
#define SUBMIT_RETRIES 40
#define SUBMIT_RETRY_MS 250

/* Options whose value is passed on as text under another or the same name. */
static const struct {
    const char *option, *field;
} texts[] = {
    {"name", "name"},
    {"kind", "kind"},
    {"class", "class"},
    {"gpu", "gpu"},
    {"gpu-memory", "gpu_memory"},
    {"mig", "mig"},
    {"cpu", "cpu"},
    {"memory", "memory"},
    {"max-run-time", "max_run_time"},
    {"expected-run-time", "expected_run_time"},
    {"min-run-time", "min_run_time"},
    {"image", "image"},
};

static const struct {
    const char *option, *field;
} numbers[] = {
    {"gpus", "gpus"},
    {"gpu-count", "gpu_count"},
    {"tasks", "tasks"},
    {"min-tasks", "min_tasks"},
    {"priority", "priority"},
    {"max-retries", "max_retries"},
    {"max-unavailable", "max_unavailable"},
};

static int write_number(const struct cli_args *args, const char *option, const char *field,
                        struct json_writer *w, struct err *err)
{
    const char *text = cli_option_value(args, option);
    bool negative = text && *text == '-';
    int64_t v;

    if (text == NULL)
        return 0;
    if (strcmp(option, "gpus") == 0 && strchr(text, '.'))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "part of one GPU is --gpu, as --gpu 0.25",
                       "option '--gpus' takes whole GPUs, not '%.60s'", text);
    if (qty_parse_int(text + negative, &v, NULL) < 0)
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "give a whole number",
                       "option '--%s' does not understand '%.60s'", option, text);
    json_key_i64(w, field, negative ? -v : v);
    return 0;
}

/* "K=V" options as an object. With TAKE_OWN, "K" alone takes the caller's own variable. */
static int write_pairs(struct cli *cli, const struct cli_args *args, const char *option,
                       const char *field, bool take_own, struct json_writer *w, struct err *err)
{
    const char *pair;
    size_t it = 0;

    if (!cli_option_given(args, option))
        return 0;
    json_key(w, field);
    json_begin_object(w);
    while ((pair = cli_option_each(args, option, &it))) {
        const char *equals = strchr(pair, '=');
        const char *own = equals == NULL && take_own ? getenv(pair) : NULL;

        if (equals == NULL && own == NULL)
            return err_set(err, -EINVAL, ERR_INVALID, NULL, "write K=V",
                           take_own ? "'--%s %.60s': there is no such variable here"
                                    : "'--%s %.60s' has no value",
                           option, pair);
        if (own)
            json_key_string(w, pair, own);
        else
            json_key_string(w, arena_strndup(&cli->arena, pair, (size_t)(equals - pair)),
                            equals + 1);
    }
    json_end_object(w);
    return 0;
}

static void write_array(const struct cli_args *args, const char *option, const char *field,
                        struct json_writer *w)
{
    const char *v;
    size_t it = 0;

    if (!cli_option_given(args, option))
        return;
    json_key(w, field);
    json_begin_array(w);
    while ((v = cli_option_each(args, option, &it)))
        json_string(w, v);
    json_end_array(w);
}

/* The uppermost folder of PATH (absolute, real) that other users may not enter, or NULL. */
static const char *closed_part(struct cli *cli, const char *path)
{
    for (size_t n = 1; n <= strlen(path); n++) {
        const char *part = arena_strndup(&cli->arena, path, n);
        struct stat st;

        if (path[n] != '/' && path[n] != '\0')
            continue;
        if (stat(part, &st) == 0 && !(st.st_mode & S_IXOTH))
            return part;
    }
    return NULL;
}

/* Who names a folder from where he stands means one that is here: what is wrong with it can be
 * said before anything is submitted. The server alone knows its --workdir-root. */
static int check_folder(struct cli *cli, const char *option, const char *path, struct err *err)
{
    const char *closed = closed_part(cli, path);
    struct stat st;

    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
        return err_set(err, -ENOTDIR, ERR_INVALID, NULL, "name a folder",
                       "option '--%s': '%.200s' is not a folder", option, path);
    if (closed)
        cli_say(cli, arena_printf(&cli->arena,
                                  "warning: '%s' is closed to others; tasks run as a user of their "
                                  "own, unless it lies beneath a --workdir-root of the server",
                                  cli_safe(cli, closed)));
    return 0;
}

/* Folders may be given relative to where the caller stands. */
static int write_folder(struct cli *cli, const struct cli_args *args, const char *option,
                        const char *field, struct json_writer *w, struct err *err)
{
    const char *folder = cli_option_value(args, option);
    _cleanup_free_ char *here = NULL;

    if (folder == NULL)
        return 0;
    if (*folder == '/') {
        json_key_string(w, field, folder);
        return 0;
    }
    here = realpath(folder, NULL);
    if (here == NULL)
        return err_set(err, -errno, ERR_INVALID, NULL, "give an absolute path",
                       "option '--%s': no folder '%.200s' here", option, folder);
    json_key_string(w, field, here);
    return check_folder(cli, option, here, err);
}

static void write_policy(const struct cli_args *args, struct json_writer *w)
{
    const char *required = cli_option_value(args, "topology-required");
    const char *preferred = cli_option_value(args, "topology-preferred");
    const char *handling = cli_option_value(args, "handling");
    const char *grace = cli_option_value(args, "grace");

    if (cli_option_given(args, "no-preemptible"))
        json_key_bool(w, "preemptible", false);
    if (cli_option_given(args, "no-burst"))
        json_key_bool(w, "burst", false);
    if (required || preferred) {
        json_key(w, "topology");
        json_begin_object(w);
        if (required)
            json_key_string(w, "required", required);
        if (preferred)
            json_key_string(w, "preferred", preferred);
        json_end_object(w);
    }
    if (handling || grace) {
        json_key(w, "preemption");
        json_begin_object(w);
        if (handling)
            json_key_string(w, "handling", handling);
        if (grace)
            json_key_string(w, "grace", grace);
        json_end_object(w);
    }
}

static int write_fields(struct cli *cli, const struct cli_args *args, struct json_writer *w,
                        struct err *err)
{
    int r = 0;

    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (cli_option_given(args, texts[i].option))
            json_key_string(w, texts[i].field, cli_option_value(args, texts[i].option));
    for (size_t i = 0; r == 0 && i < ARRAY_LEN(numbers); i++)
        r = write_number(args, numbers[i].option, numbers[i].field, w, err);
    if (r == 0)
        r = write_pairs(cli, args, "env", "env", true, w, err);
    if (r == 0)
        r = write_pairs(cli, args, "label", "node_labels", false, w, err);
    if (r == 0)
        r = write_folder(cli, args, "workdir", "workdir", w, err);
    if (r == 0)
        r = write_folder(cli, args, "checkpoint-dir", "checkpoint_dir", w, err);
    if (r < 0)
        return r;
    write_array(args, "gpu-type", "gpu_type", w);
    write_policy(args, w);
    json_key(w, "command");
    json_begin_array(w);
    for (size_t i = 0; i < args->command_count; i++)
        json_string(w, args->command_line[i]);
    json_end_array(w);
    return 0;
}

/* Is NAME the parent of a team in the list? */
static bool is_parent(struct json_object *list, const char *name)
{
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        const char *parent = cli_json_text(cli_json_at(list, "teams", i), "parent");

        if (parent && name && strcmp(parent, name) == 0)
            return true;
    }
    return false;
}

/* The only team that could be meant, or an error that names the choices. */
static int only_team(struct cli *cli, const char **ret_team, struct err *err)
{
    _cleanup_json_ struct json_object *list = NULL;
    _cleanup_strbuf_ struct strbuf choices = STRBUF_INIT;
    const char *found = NULL;
    int count = 0, r;

    r = cli_get(cli, "/v1/teams", &list, err);
    if (r < 0)
        return r;
    for (size_t i = 0; i < cli_json_len(list, "teams"); i++) {
        const char *name = cli_json_text(cli_json_at(list, "teams", i), "name");

        if (name == NULL || is_parent(list, name))
            continue;
        found = name;
        strbuf_addf(&choices, "%s%s", count++ ? ", " : "", name);
    }
    if (count == 0)
        return err_set(err, -ENOENT, ERR_NOT_FOUND, NULL,
                       "an administrator adds one with 'allot team set NAME --guarantee gpu=N'",
                       "there is no team that could run this");
    if (count > 1)
        return err_set(err, -EINVAL, ERR_MISSING, NULL,
                       "choose with --team, or set ALLOT_TEAM for good", "for which team? %.300s",
                       cli_safe(cli, strbuf_str(&choices)));
    *ret_team = arena_strdup(&cli->arena, found);
    return 0;
}

/* Refuses here what the server would refuse. */
static int check_body(struct cli *cli, const struct strbuf *body, struct err *err)
{
    _cleanup_json_ struct json_object *json = NULL;
    struct model_workload w = {0};
    int r = model_json_parse(body->data, body->len, &json, err);

    return r < 0 ? r : model_workload_decode(json, &cli->arena, &w, err);
}

int cli_workload_body(struct cli *cli, const struct cli_args *args, struct strbuf *body,
                      struct err *err)
{
    const char *team = cli_option_value(args, "team");
    struct json_writer w;
    int r = 0;

    if (args->command_count == 0)
        return err_set(err, -EINVAL, ERR_MISSING, NULL,
                       "put it last: allot run --gpu 0.25 -- python3 train.py",
                       "no command to run");
    if (team == NULL)
        team = cli->config.team;
    if (team == NULL)
        r = only_team(cli, &team, err);
    if (r < 0)
        return r;
    json_writer_init(&w, body);
    json_begin_object(&w);
    json_key_string(&w, "team", team);
    r = write_fields(cli, args, &w, err);
    if (r < 0)
        return r;
    json_end_object(&w);
    return check_body(cli, body, err);
}

int cli_submit_options(struct cli *cli, const struct cli_args *args, struct json_object **ret_json,
                       struct err *err)
{
    const char *team = cli_option_value(args, "team");
    _cleanup_strbuf_ struct strbuf body = STRBUF_INIT;
    struct err known = ERR_INIT;
    int r = cli_workload_body(cli, args, &body, err);

    if (r == 0)
        r = (cli_option_given(args, "dry-run") ? cli_dry_run_body : cli_submit_body)(cli, body.data,
                                                                                     ret_json, err);
    if (team == NULL)
        team = cli->config.team;
    if (r < 0 && team && strcmp(err->field, "team") == 0 &&
        cli_get_team(cli, team, NULL, &known) == -ENOENT)
        *err = known;
    return r;
}

int cli_submit_body(struct cli *cli, const char *body, struct json_object **ret_json,
                    struct err *err)
{
    struct cli_call call = {
        .method = "POST", .path = "/v1/workloads", .body = body, .key = cli_random_key(cli)};
    int r = cli_call(cli, &call, ret_json, err);

    /* A connection that was refused at once did nothing, nor does a server that says that it
     * cannot now (503). One that broke may have: ask again under the same key until the server
     * tells what became of it. */
    if (r == -ECONNREFUSED || r == -EHOSTDOWN || call.key == NULL)
        return r;
    for (int i = 0; i < SUBMIT_RETRIES && cli_is_unreachable(r); i++) {
        struct timespec pause = {.tv_nsec = SUBMIT_RETRY_MS * 1000000L};

        nanosleep(&pause, NULL);
        r = cli_call(cli, &call, ret_json, err);
    }
    return r;
}

int cli_dry_run_body(struct cli *cli, const char *body, struct json_object **ret_json,
                     struct err *err)
{
    struct cli_call call = {.method = "POST", .path = "/v1/workloads?dry_run=true", .body = body};

    return cli_call(cli, &call, ret_json, err);
}
