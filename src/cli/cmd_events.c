/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allot events: what happened, and as it happens.
 *
 * The server has one stream of all events with dense numbers. Following reads it from there and,
 * after a lost connection, from the last number seen, so that nothing is missed or shown twice.
 */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/options.h"
#include "cli/render.h"
#include "cli/session.h"
#include "cli/sse.h"
#include "cli/teams.h"

#define LAST_DEFAULT 50
#define PAGE_MAX 1000
#define RETRY_MS 500
#define TYPE_WIDTH 18

/* Ends the stream from inside. */
#define STREAM_INTERRUPTED 1

struct watch {
    struct cli *cli;
    struct cli_sse sse;
    bool any; /* an event was printed */
    bool verbose;
    const char *filter; /* "&team=nlp&workload=81", or "" */
};

static const char *clock_text(struct cli *cli, struct json_object *e)
{
    int64_t ms = cli_json_time(e, "time");
    time_t s = (time_t)(ms / 1000);
    struct tm tm;
    char text[32];

    if (ms == 0 || localtime_r(&s, &tm) == NULL)
        return "-";
    strftime(text, sizeof(text), cli_now_ms(cli) - ms < 86400000 ? "%H:%M:%S" : "%m-%d %H:%M", &tm);
    return arena_strdup(&cli->arena, text);
}

/* The part of the type that colours it: "started", "evicted". */
static enum cli_color type_color(const char *type)
{
    static const struct {
        const char *word;
        enum cli_color color;
    } colors[] = {{"evicted", CLI_YELLOW}, {"lost", CLI_RED},       {"refused", CLI_RED},
                  {"started", CLI_GREEN},  {"submitted", CLI_CYAN}, {"ended", CLI_DIM}};

    for (size_t i = 0; i < ARRAY_LEN(colors); i++)
        if (strstr(type, colors[i].word))
            return colors[i].color;
    return CLI_PLAIN;
}

/* VERBOSE: with what a program said that failed. */
static void print_event(struct cli *cli, struct json_object *e, bool verbose)
{
    const char *type = cli_safe(cli, cli_json_text(e, "type"));
    const char *name = cli_json_text(e, "name"), *message = cli_json_text(e, "message");
    int64_t id = cli_json_int(e, "workload", 0), task = cli_json_int(e, "task", -1);
    const char *who = "", *when = clock_text(cli, e), *lead;

    if (id > 0)
        who = task >= 0
                  ? arena_printf(&cli->arena, "%s (%lld.%lld) ", cli_safe(cli, name), (long long)id,
                                 (long long)task)
                  : arena_printf(&cli->arena, "%s (%lld) ", cli_safe(cli, name), (long long)id);
    else if (cli_json_text(e, "team"))
        who = arena_printf(&cli->arena, "%s ", cli_safe(cli, cli_json_text(e, "team")));
    else if (cli_json_text(e, "node"))
        who = arena_printf(&cli->arena, "%s ", cli_safe(cli, cli_json_text(e, "node")));
    lead =
        arena_printf(&cli->arena, "%s%s%s  %s%-*s%s  ", cli_style_begin(&cli->style, CLI_DIM), when,
                     cli_style_end(&cli->style), cli_style_begin(&cli->style, type_color(type)),
                     TYPE_WIDTH, type, cli_style_end(&cli->style));
    cli_wrap_after(cli->out, lead, (int)strlen(when) + 2 + TYPE_WIDTH + 2,
                   arena_printf(&cli->arena, "%s%s", who, cli_safe(cli, message)),
                   cli->style.tty ? cli->style.width : 0);
    if (verbose && cli_json_text(e, "data.detail"))
        cli_wrap_after(cli->out, "    ", 4, cli_safe(cli, cli_json_text(e, "data.detail")),
                       cli->style.tty ? cli->style.width : 0);
}

static void take_event(struct cli *cli, struct json_object *e, bool verbose)
{
    struct arena kept = cli_scratch_begin(cli);

    if (cli->json)
        fprintf(cli->out, "%s\n",
                json_object_to_json_string_ext(e, JSON_C_TO_STRING_PLAIN |
                                                      JSON_C_TO_STRING_NOSLASHESCAPE));
    else
        print_event(cli, e, verbose);
    cli_scratch_end(cli, &kept);
}

static int on_event(void *user, const char *data)
{
    struct watch *w = user;
    _cleanup_json_ struct json_object *e = cli_json_parse(data, strlen(data));

    if (e)
        take_event(w->cli, e, w->verbose);
    return 0;
}

static int on_bytes(void *user, const char *data, size_t len)
{
    struct watch *w = user;

    if (cli_interrupt_pending())
        return STREAM_INTERRUPTED;
    if (len > 0)
        return cli_sse_feed(&w->sse, data, len);
    return cli_flush(w->cli) < 0 ? STREAM_INTERRUPTED : 0;
}

/* One connection. Why it ended. */
static int stream_once(struct watch *w, struct err *err)
{
    _cleanup_(http_reply_done) struct http_reply reply = HTTP_REPLY_INIT;
    struct http_client *c;
    const char *path = "/v1/events";
    int r = cli_client(w->cli, &c, err);

    if (r < 0)
        return r;
    if (*w->filter)
        path = arena_printf(&w->cli->arena, "%s?%s", path, w->filter + 1);
    cli_sse_reset(&w->sse);
    r = http_client_stream(c, path, w->sse.id, on_bytes, w, &reply, err);
    if (r == 0 && reply.status != 200)
        return cli_problem(&reply, err);
    return r;
}

/* Until a signal. A server that is away is waited for. */
static int follow(struct watch *w, struct err *err)
{
    bool told = false;

    while (!cli_interrupt_pending()) {
        struct timespec pause = {.tv_nsec = RETRY_MS * 1000000L};
        int r = stream_once(w, err);

        if (r == STREAM_INTERRUPTED)
            break;
        if (r < 0 && !cli_is_unreachable(r))
            return r;
        if (r < 0 && !told)
            cli_say(w->cli, "lost the server; waiting for it to come back");
        told = r < 0;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* One page: after --after, or the last N. The number to go on from is kept for the stream. */
static int print_page(struct watch *w, const struct cli_args *args, struct err *err)
{
    const char *after = cli_option_value(args, "after");
    _cleanup_json_ struct json_object *page = NULL;
    const char *path;
    int64_t last = after ? PAGE_MAX : LAST_DEFAULT;
    int r = cli_option_number(args, "last", 1, PAGE_MAX, &last, err);

    if (r < 0)
        return r;
    path =
        arena_printf(&w->cli->arena, "/v1/events?limit=%lld%s%s%s", (long long)last,
                     after ? "&after=" : "", after ? cli_path(w->cli, "%s", after) : "", w->filter);
    r = cli_get(w->cli, path, &page, err);
    if (r < 0)
        return r;
    w->any = cli_json_len(page, "events") > 0;
    if (w->cli->json && !cli_option_given(args, "follow")) {
        cli_print_json(w->cli, page);
        return 0;
    }
    for (size_t i = 0; i < cli_json_len(page, "events"); i++)
        take_event(w->cli, cli_json_at(page, "events", i), w->verbose);
    (void)cli_flush(w->cli);
    snprintf(w->sse.id, sizeof(w->sse.id), "%lld", (long long)cli_json_int(page, "next", 0));
    return 0;
}

static int run(struct cli *cli, const struct cli_args *args)
{
    const char *team = cli_option_value(args, "team");
    struct watch w = {.cli = cli, .filter = "", .verbose = cli_option_given(args, "verbose")};
    struct err err = ERR_INIT;
    int64_t number;
    int r;

    if (cli_option_number(args, "last", 1, PAGE_MAX, &number, &err) < 0 ||
        cli_option_number(args, "after", 0, INT64_MAX, &number, &err) < 0)
        return cli_fail_usage(cli, &err);
    w.sse.event = on_event;
    w.sse.user = &w;
    if (team)
        w.filter = cli_path(cli, "&team=%s", team);
    if (args->operands.len > 0)
        w.filter = arena_printf(&cli->arena, "%s%s", w.filter,
                                cli_path(cli, "&workload=%s", args->operands.items[0]));
    cli_interrupt_begin();
    r = print_page(&w, args, &err);
    if (r == 0 && team && !w.any) /* silence for want of such a team is an error */
        r = cli_get_team(cli, team, NULL, &err);
    if (r == 0 && !w.any && !cli->json && !cli_option_given(args, "follow"))
        fprintf(cli->err, "no such events\n");
    if (r == 0 && cli_option_given(args, "follow"))
        r = follow(&w, &err);
    cli_interrupt_end();
    cli_sse_done(&w.sse);
    return r < 0 ? cli_fail(cli, &err) : 0;
}

static const struct cli_option options[] = {
    {.name = "follow", .letter = 'f', .help = "go on as they happen"},
    {.name = "last",
     .letter = 'n',
     .arg = "N",
     .help = "N events at most (default 50; 1000 with --after)"},
    {.name = "after", .arg = "SEQ", .help = "begin after the event of this number"},
    {.name = "verbose", .letter = 'v', .help = "also what a program said that failed"},
    {.name = "team",
     .letter = 't',
     .arg = "TEAM",
     .help = "only of this team and those below it",
     .complete = CLI_COMPLETE_TEAM},
    {0},
};

const struct cli_command cli_events = {
    .name = "events",
    .group = CLI_SEE,
    .summary = "what happened, and as it happens",
    .usage = "[OPTIONS] [ID]",
    .description = "Prints the record of what happened and why, oldest first; with ID of one "
                   "workload alone. With --follow it goes on, and resumes where it was after the "
                   "server was away. With -o json and --follow, one document a line.",
    .examples = "allot events -f\nallot events --last 500 --team research\nallot events 81\n"
                "allot events -f -o json | jq 'select(.type == \"workload.evicted\")'",
    .options = options,
    .max_operands = 1,
    .operand = CLI_COMPLETE_WORKLOAD,
    .run = run,
};
