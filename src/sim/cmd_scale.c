/* SPDX-License-Identifier: Apache-2.0 */
/* `allot sim scale`: options, and the table or JSON of what was measured. */
#include <errno.h>
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
    const struct scale_mode *mode; /* NULL = all */
    bool json, help;
};

static void print_text(const struct scale_result *r)
{
    printf("%s: %s; %zu nodes, %" PRId64 " GPUs\n", r->mode, r->what, r->nodes, r->gpus);
    for (size_t i = 0; i < r->count; i++) {
        double v = r->figures[i].value;
        bool whole = v == (double)(int64_t)v; /* a count */

        printf("  %-32s %16.*f\n", r->figures[i].name, whole ? 0 : 2, v);
    }
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
    char hash[24];
    snprintf(hash, sizeof(hash), "%016" PRIx64, r->hash);
    json_key_string(&w, "hash", hash);
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

/* Where a number goes, and its bounds. */
struct slot {
    int64_t *value, min, max;
};

static struct slot slot_of(int option, struct scale_options *o)
{
    switch (option) {
    case 'r':
        return (struct slot){&o->repeat, 1, JOBS_MAX};
    case 'j':
        return (struct slot){&o->jobs, 1, JOBS_MAX};
    case 's':
        return (struct slot){&o->steps, 0, JOBS_MAX};
    case 'd':
        return (struct slot){&o->departments, 1, 100};
    case 'f':
        return (struct slot){&o->full_percent, 1, 100};
    case 't':
        return (struct slot){&o->seconds, 1, JOBS_MAX};
    default:
        return (struct slot){&o->seed, 0, JOBS_MAX};
    }
}

static int set_number(int option, const char *name, struct scale_options *o, struct err *err)
{
    struct slot slot = slot_of(option, o);
    int64_t value;

    if (parse_count(optarg, &value) < 0 || value < slot.min || value > slot.max)
        return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                       "option '--%s' takes a whole number from %" PRId64 " to %" PRId64
                       "%s, not '%.40s'",
                       name, slot.min, slot.max, slot.max == JOBS_MAX ? " (20k, 1M)" : "", optarg);
    *slot.value = value;
    return 0;
}

static const struct scale_mode *mode_find(const char *name)
{
    for (size_t i = 0; i < MODES; i++)
        if (strcmp(modes[i]->name, name) == 0)
            return modes[i];
    return NULL;
}

static int set_mode(struct choice *c, struct err *err)
{
    c->mode = mode_find(optarg);
    if (c->mode == NULL)
        return err_set(err, -EINVAL, ERR_INVALID, NULL,
                       "use fill, churn, pending, reclaim, impossible, start or kueue",
                       "option '--mode' does not know '%.40s'", optarg);
    return 0;
}

static int set(int option, const char *name, struct choice *c, struct err *err)
{
    switch (option) {
    case 'h':
        c->help = true;
        return 0;
    case 'J':
        c->json = true;
        return 0;
    case 'n':
        c->o.nodes = optarg;
        return 0;
    case 'p':
        c->o.pods = optarg;
        return 0;
    case 'g':
        c->o.philly = optarg;
        return 0;
    case 'm':
        return set_mode(c, err);
    default:
        return set_number(option, name, &c->o, err);
    }
}

static int parse(int argc, char **argv, struct choice *c, struct err *err)
{
    static const struct option longs[] = {
        {"nodes", required_argument, NULL, 'n'},
        {"pods", required_argument, NULL, 'p'},
        {"philly", required_argument, NULL, 'g'},
        {"repeat", required_argument, NULL, 'r'},
        {"jobs", required_argument, NULL, 'j'},
        {"steps", required_argument, NULL, 's'},
        {"departments", required_argument, NULL, 'd'},
        {"seed", required_argument, NULL, 'e'},
        {"mode", required_argument, NULL, 'm'},
        {"json", no_argument, NULL, 'J'},
        {"full", required_argument, NULL, 'f'},
        {"seconds", required_argument, NULL, 't'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char *name;
    int r = 0;

    optind = 0; /* the program may have parsed options of its own before */
    for (int option = 1; r == 0 && option > 0;) {
        option = sim_option(argc, argv, longs, &name, err);
        r = option > 0 ? set(option, name, c, err) : option;
    }
    return r < 0 || c->help ? r : sim_no_operands(argc, argv, err);
}

/* Only the one mode that makes its own cluster needs no files. */
static int check_files(const struct choice *c, struct err *err)
{
    const char *missing = c->o.nodes == NULL ? "nodes" : "pods";

    if (c->mode == &scale_mode_kueue || (c->o.nodes && c->o.pods))
        return 0;
    return err_set(err, -EINVAL, ERR_MISSING, NULL, "allot sim scale --nodes FILE --pods FILE",
                   "option '--%s' is missing", missing);
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
    struct scale_input in = {0};
    struct err err = ERR_INIT;
    int r = parse(argc, argv, &c, &err);

    if (r == 0 && c.help)
        return sim_usage(&sim_cmd_scale, stdout, 0);
    if (r == 0)
        r = check_files(&c, &err);
    if (r < 0)
        return sim_misused(&sim_cmd_scale, &err);
    if (c.mode != &scale_mode_kueue && scale_input_load(&in, &c.o, &err) < 0)
        return sim_complain(&err);
    for (size_t i = 0; i < MODES; i++)
        if (c.mode == NULL || c.mode == modes[i])
            run_mode(modes[i], &c, &in, meter);
    scale_input_done(&in);
    return 0;
}

const struct sim_command sim_cmd_scale = {
    .name = "scale",
    .summary = "measure decisions a second, latency and memory on large clusters",
    .usage = "usage: allot sim scale --nodes FILE --pods FILE [OPTION]...\n"
             "       allot sim scale --mode kueue\n"
             "\n"
             "Measures the scheduler library alone, on one core, on the machines of public\n"
             "node lists (OpenB's, or the one of the spot-GPU trace) with the requests of a\n"
             "pod list.\n"
             "\n"
             "  --nodes FILE     node list: OpenB, or spot GPU\n"
             "  --pods FILE      OpenB pod list: what jobs ask for\n"
             "  --philly FILE    gang sizes: a table with a column num_gpus (built in)\n"
             "  --repeat N       take each node N times (1)\n"
             "  --jobs N         jobs at most: 10k, 100k, 1M (1M)\n"
             "  --steps N        jobs that end in churn (20k)\n"
             "  --departments N  three levels of N, so N^3 teams (10)\n"
             "  --full PERCENT   of the GPUs: what counts as a full cluster (95)\n"
             "  --seconds N      CPU time at most for what a mode repeats (300); progress\n"
             "                   is told on standard error\n"
             "  --seed N         of the draws (42)\n"
             "  --mode MODE      fill, churn, pending, reclaim, impossible, start or kueue\n"
             "                   (all)\n"
             "  --json           one JSON object a line\n"
             "\n"
             "example: allot sim scale --nodes node_info_df.csv \\\n"
             "             --pods openb_pod_list_default.csv --jobs 100k --mode fill\n",
    .measure = scale_main,
};
