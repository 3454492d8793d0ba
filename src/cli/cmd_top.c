/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot top: the cluster at a glance, refreshed.
 *
 * On a terminal on its alternate screen, every two seconds, until q or ^C; in a pipe once. What
 * cannot be had at the moment (the server restarts) is said in the first line, and the next
 * round asks again.
 */
#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/table.h"

#define INTERVAL_DEFAULT_MS 2000
#define WORKLOADS_SHOWN "15"
#define DEVICES_SHOWN 24

/* Everything that one picture needs. */
struct picture {
    struct json_object *status, *nodes, *teams, *workloads;
};

static void picture_done(struct picture *p)
{
    json_object_put(p->status);
    json_object_put(p->nodes);
    json_object_put(p->teams);
    json_object_put(p->workloads);
}

static int take_picture(struct cli *cli, struct picture *p, struct err *err)
{
    int r = cli_get(cli, "/v1/status", &p->status, err);

    if (r == 0)
        r = cli_get(cli, "/v1/nodes", &p->nodes, err);
    if (r == 0)
        r = cli_get(cli, "/v1/teams", &p->teams, err);
    if (r == 0)
        r = cli_get(cli, "/v1/workloads?state=live&limit=" WORKLOADS_SHOWN, &p->workloads, err);
    return r;
}

static bool is_parent(struct json_object *teams, const char *name)
{
    for (size_t i = 0; name && i < cli_json_len(teams, "teams"); i++) {
        const char *parent = cli_json_text(cli_json_at(teams, "teams", i), "parent");

        if (parent && strcmp(parent, name) == 0)
            return true;
    }
    return false;
}

/* How much of KEY there is in the teams that the caller sees. */
static int64_t count_of(struct json_object *teams, const char *key)
{
    int64_t sum = 0;

    for (size_t i = 0; i < cli_json_len(teams, "teams"); i++) {
        struct json_object *t = cli_json_at(teams, "teams", i);

        if (!is_parent(teams, cli_json_text(t, "name")))
            sum += cli_json_int(t, key, 0);
    }
    return sum;
}

static void print_header(struct cli *cli, struct json_object *status, struct json_object *teams)
{
    char clock[32] = "";
    time_t s = (time_t)(cli_now_ms(cli) / 1000);
    const char *store = cli_json_text(status, "store.message");
    struct tm tm;

    if (localtime_r(&s, &tm))
        strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
    fprintf(cli->out, "%sallot%s  %s  up %s  running %lld  waiting %lld\n",
            cli_style_begin(&cli->style, CLI_BOLD), cli_style_end(&cli->style), clock,
            cli_duration(cli_now_ms(cli) - cli_json_time(status, "started_at"), &cli->arena),
            (long long)count_of(teams, "running"), (long long)count_of(teams, "pending"));
    if (cli_json_get(status, "store.ok") && !cli_json_bool(status, "store.ok"))
        fprintf(cli->out, "%sthe store refuses new work: %s%s\n",
                cli_style_begin(&cli->style, CLI_RED), cli_safe(cli, store),
                cli_style_end(&cli->style));
    if (cli_json_get(status, "reconciled") && !cli_json_bool(status, "reconciled"))
        fprintf(cli->out, "finding out what still runs ...\n");
}

/* One mark a device: full, partly held, free. Nodes with very many get a plain bar. */
static const char *devices_text(struct cli *cli, struct json_object *n, int64_t used, int64_t total)
{
    static const char *const ascii[] = {"-", "+", "#"};
    static const char *const unicode[] = {"\u2500", "\u2584", "\u2588"};
    const char *const *marks = cli->style.unicode ? unicode : ascii;
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;
    size_t count = cli_json_len(n, "use");

    if (count == 0 || count > DEVICES_SHOWN)
        return cli_bar(&cli->style, used, total, DEVICES_SHOWN, &cli->arena);
    for (size_t i = 0; i < count; i++) {
        int64_t milli = cli_json_milli(cli_json_at(n, "use", i), "gpu_used", 0);

        strbuf_adds(&b, marks[milli >= 1000 ? 2 : milli > 0]);
    }
    return arena_strdup(&cli->arena, strbuf_str(&b));
}

static void print_node(struct cli *cli, struct cli_table *t, struct json_object *n)
{
    int64_t total = cli_node_milli(n);
    int64_t used = cli_json_milli(n, "gpu_used", 0);
    const char *state = cli_node_state(cli, n);

    cli_table_row(t, CLI_TABLE_TOP);
    cli_table_cell(t, cli_json_text(n, "name"), CLI_PLAIN);
    cli_table_cell(t, state, cli_state_color(state));
    cli_table_cell(t, devices_text(cli, n, used, total), CLI_GREEN);
    cli_table_cell(t,
                   arena_printf(&cli->arena, "%s of %s in use", cli_milli_text(cli, used),
                                cli_milli_text(cli, total)),
                   CLI_PLAIN);
    cli_table_cell(t, total > 0 ? cli_node_type(cli, n) : NULL, CLI_PLAIN);
}

static void print_nodes(struct cli *cli, struct json_object *nodes)
{
    static const struct cli_column columns[] = {
        {"NODE", CLI_COLUMN_CUT}, {"STATE", 0}, {"GPUS", 0}, {"", 0}, {"TYPE", 0},
    };
    struct cli_table *t = cli_table_new(cli, columns, ARRAY_LEN(columns));
    const char *free = cli_free_text(cli, nodes);

    fputc('\n', cli->out);
    for (size_t i = 0; i < cli_json_len(nodes, "nodes"); i++)
        print_node(cli, t, cli_json_at(nodes, "nodes", i));
    cli_table_end(t);
    if (free)
        fprintf(cli->out, "%s\n", free);
}

static void print_picture(struct cli *cli, const struct picture *p)
{
    print_header(cli, p->status, p->teams);
    print_nodes(cli, p->nodes);
    if (cli_json_len(p->teams, "teams") > 0) {
        fputc('\n', cli->out);
        cli_print_quota(cli, p->teams, NULL);
    }
    if (cli_json_len(p->workloads, "workloads") > 0) {
        fputc('\n', cli->out);
        cli_print_workloads(cli, p->workloads, false);
    }
}

/* The first lines of TEXT, as many as the screen has. */
static void print_screen(struct cli *cli, const char *text)
{
    struct winsize size;
    int lines = ioctl(fileno(cli->out), TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;

    fputs("\033[H", cli->out);
    for (int i = 0; *text && (lines <= 0 || i < lines - 1); i++) {
        size_t n = strcspn(text, "\n");

        fprintf(cli->out, "%.*s\033[K\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
    fputs("\033[J", cli->out);
    fflush(cli->out);
}

static int print_once(struct cli *cli)
{
    struct picture p = {0};
    struct err err = ERR_INIT;
    int r = take_picture(cli, &p, &err);

    if (r == 0)
        print_picture(cli, &p);
    else
        cli_fail(cli, &err);
    picture_done(&p);
    return r;
}

/* One picture in place of the last. What went wrong stands on the screen. */
static int refresh_once(struct cli *cli)
{
    FILE *out = cli->out, *errors = cli->err;
    char *text = NULL;
    size_t len;
    int r;

    cli->out = open_memstream(&text, &len);
    if (cli->out == NULL)
        abort(); /* as in base/arena.h */
    cli->err = cli->out;
    cli->style.width = cli_style_of(out).width;
    r = print_once(cli);
    fclose(cli->out);
    cli->out = out;
    cli->err = errors;
    print_screen(cli, text);
    free(text);
    return r;
}

/* Refreshes until q or a signal. Only an answer that will not change ends it. */
static int refresh(struct cli *cli, int interval_ms)
{
    int r;

    for (;;) {
        struct arena kept = cli_scratch_begin(cli);
        struct pollfd p = {.fd = cli->in_tty ? STDIN_FILENO : -1, .events = POLLIN};
        char key = 0;

        r = refresh_once(cli);
        cli_scratch_end(cli, &kept);
        if (r < 0 && !cli_is_unreachable(r))
            return r;
        if (poll(&p, 1, interval_ms) > 0 && read(STDIN_FILENO, &key, 1) <= 0)
            return 0;
        if (key == 'q' || key == 'Q' || cli_interrupt_pending())
            return 0;
    }
}

static int run_screen(struct cli *cli, int interval_ms)
{
    struct termios before, raw;
    bool is_raw = cli->in_tty && tcgetattr(STDIN_FILENO, &before) == 0;
    int r;

    if (is_raw) {
        raw = before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    }
    cli_interrupt_begin();
    fputs("\033[?1049h\033[?25l", cli->out);
    r = refresh(cli, interval_ms);
    fputs("\033[?25h\033[?1049l", cli->out);
    fflush(cli->out);
    cli_interrupt_end();
    if (is_raw)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    return r;
}

static int print_json(struct cli *cli)
{
    struct picture p = {0};
    struct err err = ERR_INIT;
    struct json_object *all;
    int code = 0;

    if (take_picture(cli, &p, &err) < 0) {
        code = cli_fail(cli, &err);
    } else {
        all = json_object_new_object();
        json_object_object_add(all, "status", json_object_get(p.status));
        json_object_object_add(all, "nodes", json_object_get(cli_json_get(p.nodes, "nodes")));
        json_object_object_add(all, "teams", json_object_get(cli_json_get(p.teams, "teams")));
        json_object_object_add(all, "workloads",
                               json_object_get(cli_json_get(p.workloads, "workloads")));
        cli_print_json(cli, all);
        json_object_put(all);
    }
    picture_done(&p);
    return code;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    int64_t ms = INTERVAL_DEFAULT_MS;
    struct err err = ERR_INIT;

    if (cli_option_duration(args, "interval", &ms, &err) < 0)
        return cli_fail_usage(cli, &err);
    if (ms < 200 || ms > 3600000) {
        err_set(&err, -ERANGE, ERR_OUT_OF_RANGE, NULL, "use 200ms to 1h",
                "option '--interval' is out of range");
        return cli_fail_usage(cli, &err);
    }
    if (cli->json)
        return print_json(cli);
    if (!cli->style.tty || cli_option_given(args, "once"))
        return print_once(cli) < 0 ? CLI_EXIT_FAILED : 0;
    if (run_screen(cli, (int)ms) == 0)
        return 0;
    return print_once(cli) < 0 ? CLI_EXIT_FAILED : 0; /* says what was wrong */
}

static const struct cli_option options[] = {
    {.name = "interval", .letter = 'i', .arg = "TIME", .help = "between two pictures (default 2s)"},
    {.name = "once", .letter = '1', .help = "one picture, then return"},
    {0},
};

const struct cli_command cli_top = {
    .name = "top",
    .group = CLI_SEE,
    .summary = "nodes, teams and workloads at a glance, refreshed",
    .usage = "[OPTIONS]",
    .description = "Shows how much of every node is in use, what every team has and uses, and the "
                   "newest workloads. q or ^C ends it. In a pipe, one picture is printed.",
    .examples = "allot top\nallot top --interval 10s\nallot top --once",
    .options = options,
    .run = run,
};
