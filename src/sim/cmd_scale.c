/* SPDX-License-Identifier: Apache-2.0 */
/* `allot sim scale`: options, and the table or JSON of what was measured. */
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/qty.h"
#include "sim/command.h"
#include "sim/scale.h"

static const struct scale_mode *const modes[] = {
    &scale_mode_fill,       &scale_mode_churn, &scale_mode_pending, &scale_mode_reclaim,
    &scale_mode_impossible, &scale_mode_start, &scale_mode_kueue,
};

#define MODES (sizeof(modes) / sizeof(modes[0]))
#define JOBS_MAX 10000000

struct choice {
    struct scale_options o;
    const char *mode; /* NULL = all */
    bool json;
};

static void print_text(const struct scale_result *r)
{
    printf("%s: %s; %zu nodes, %" PRId64 " GPUs\n", r->mode, r->what, r->nodes, r->gpus);
    for (size_t i = 0; i < r->count; i++)
        printf("  %-32s %16.2f\n", r->figures[i].name, r->figures[i].value);
    if (r->hash != 0)
        printf("  %-32s %16" PRIx64 "\n", "hash", r->hash);
}

static void json_figure(struct json_writer *w, const struct scale_figure *f)
{
    char text[64];
    int len = snprintf(text, sizeof(text), "%.6g", f->value);
    if (f->value == (double)(int64_t)f->value)
        len = snprintf(text, sizeof(text), "%" PRId64, (int64_t)f->value);
    json_key(w, f->name);
    json_raw(w, text, (size_t)len);
}

static void print_json(const struct scale_result *r, const struct scale_options *o)
{
    struct strbuf text = STRBUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    json_key_string(&w, "mode", r->mode);
    json_key_string(&w, "what", r->what);
    json_key_i64(&w, "nodes", (int64_t)r->nodes);
    json_key_i64(&w, "gpus", r->gpus);
    json_key_i64(&w, "teams", o->departments * o->departments * o->departments);
    json_key_i64(&w, "seed", o->seed);
    for (size_t i = 0; i < r->count; i++)
        json_figure(&w, &r->figures[i]);
    json_end_object(&w);
    printf("%s\n", strbuf_str(&text));
    strbuf_done(&text);
}

static void run_mode(const struct scale_mode *mode, const struct choice *c,
                     const struct scale_input *in, const struct sim_meter *meter)
{
    struct scale_result results[SCALE_RESULTS_MAX];
    size_t count = mode->run(&c->o, in, meter, results);
    for (size_t i = 0; i < count; i++) {
        if (c->json)
            print_json(&results[i], &c->o);
        else
            print_text(&results[i]);
    }
    fflush(stdout);
}

/* 10k, 1M or a plain number. */
static int parse_count(const char *text, int64_t *ret_count)
{
    char digits[32];
    size_t len = strlen(text);
    int64_t times = 1;
    if (len == 0 || len >= sizeof(digits))
        return -1;
    memcpy(digits, text, len + 1);
    if (digits[len - 1] == 'k' || digits[len - 1] == 'M') {
        times = digits[len - 1] == 'k' ? 1000 : 1000000;
        digits[len - 1] = '\0';
    }
    if (qty_parse_int(digits, ret_count, NULL) < 0 || *ret_count > JOBS_MAX)
        return -1;
    *ret_count *= times;
    return *ret_count <= JOBS_MAX ? 0 : -1;
}

static bool number(int option, const char *text, struct scale_options *o)
{
    int64_t *value = option == 'r'   ? &o->repeat
                     : option == 'j' ? &o->jobs
                     : option == 's' ? &o->steps
                     : option == 'd' ? &o->departments
                     : option == 'f' ? &o->full_percent
                     : option == 't' ? &o->seconds
                                     : &o->seed;
    return parse_count(text, value) == 0;
}

/* -1 to go on, or the exit status. */
static int parse(int argc, char **argv, struct choice *c)
{
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'},       {"pods", required_argument, NULL, 'p'},
        {"philly", required_argument, NULL, 'g'},      {"repeat", required_argument, NULL, 'r'},
        {"jobs", required_argument, NULL, 'j'},        {"steps", required_argument, NULL, 's'},
        {"departments", required_argument, NULL, 'd'}, {"seed", required_argument, NULL, 'e'},
        {"mode", required_argument, NULL, 'm'},        {"json", no_argument, NULL, 'J'},
        {"full", required_argument, NULL, 'f'},        {"seconds", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},              {0},
    };
    optind = 0; /* the program may have parsed options of its own before */
    for (int option; (option = getopt_long(argc, argv, "h", longs, NULL)) != -1;) {
        switch (option) {
        case 'h':
            return sim_usage(&sim_cmd_scale, stdout, 0);
        case 'J':
            c->json = true;
            break;
        case 'n':
        case 'p':
        case 'g':
        case 'm':
            *(option == 'n'   ? &c->o.nodes
              : option == 'p' ? &c->o.pods
              : option == 'g' ? &c->o.philly
                              : &c->mode) = optarg;
            break;
        default:
            if (option == '?' || !number(option, optarg, &c->o))
                return sim_usage(&sim_cmd_scale, stderr, 2);
        }
    }
    bool ok = optind >= argc && c->o.repeat > 0 && c->o.jobs > 0 && c->o.departments > 0 &&
              c->o.departments <= 100 && c->o.full_percent > 0 && c->o.full_percent <= 100 &&
              c->o.seconds > 0;
    return ok ? -1 : sim_usage(&sim_cmd_scale, stderr, 2);
}

static const struct scale_mode *mode_find(const char *name)
{
    for (size_t i = 0; i < MODES; i++)
        if (strcmp(modes[i]->name, name) == 0)
            return modes[i];
    return NULL;
}

static int scale_main(int argc, char **argv, const struct sim_meter *meter)
{
    struct choice c = {.o = {.repeat = 1,
                             .jobs = 1000000,
                             .steps = 20000,
                             .departments = 10,
                             .seed = 42,
                             .full_percent = 95,
                             .seconds = 300,
                             .progress = stderr}};
    int status = parse(argc, argv, &c);
    if (status >= 0)
        return status;
    const struct scale_mode *one = c.mode == NULL ? NULL : mode_find(c.mode);
    bool needs_files = one != &scale_mode_kueue;
    if ((c.mode != NULL && one == NULL) ||
        (needs_files && (c.o.nodes == NULL || c.o.pods == NULL)))
        return sim_usage(&sim_cmd_scale, stderr, 2);
    struct scale_input in = {0};
    struct err err = ERR_INIT;
    if (needs_files && scale_input_load(&in, &c.o, &err) < 0)
        return sim_complain(&err);
    for (size_t i = 0; i < MODES; i++)
        if (one == NULL || one == modes[i])
            run_mode(modes[i], &c, &in, meter);
    scale_input_done(&in);
    return 0;
}

const struct sim_command sim_cmd_scale = {
    .name = "scale",
    .summary = "measure decisions a second, latency and memory on large clusters",
    .usage =
        "usage: allot sim scale --nodes FILE --pods FILE [OPTION]...\n"
        "       allot sim scale --mode kueue\n"
        "\n"
        "Measures the scheduler library alone, on one core, on the machines of public node\n"
        "lists (OpenB's, or the one of the spot-GPU trace) with the requests of a pod list.\n"
        "\n"
        "  --nodes FILE     node list: OpenB, or spot GPU\n"
        "  --pods FILE      OpenB pod list: what jobs ask for\n"
        "  --philly FILE    gang sizes: a table with a column num_gpus (built in)\n"
        "  --repeat N       take each node N times (1)\n"
        "  --jobs N         jobs at most: 10k, 100k, 1M (1M)\n"
        "  --steps N        jobs that end in churn (20k)\n"
        "  --departments N  three levels of N, so N^3 teams (10)\n"
        "  --full PERCENT   of the GPUs: what counts as a full cluster (95)\n"
        "  --seconds N      CPU time at most for what a mode repeats (300); progress is told on\n"
        "                   standard error\n"
        "  --seed N         of the draws (42)\n"
        "  --mode MODE      fill, churn, pending, reclaim, impossible, start or kueue (all)\n"
        "  --json           one JSON object a line\n"
        "\n"
        "example: allot sim scale --nodes node_info_df.csv --pods openb_pod_list_default.csv \\\n"
        "             --jobs 100k --mode fill\n",
    .measure = scale_main,
};
