/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/past.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/shape.h"

#define LINE_MAX_BYTES (4 << 20)
#define TIME_MAX_MS ((int64_t)1 << 42) /* the year 2109 */
#define GPU_TIME_MAX (INT64_MAX / 64)  /* milli-GPU times ms: room for work done again */

struct reading {
    struct past *past;
    struct err *err;
    bool begun; /* the first line was there */
};

static int bad(struct reading *r, const char *field, const char *wanted)
{
    return err_set(r->err, -EINVAL, ERR_INVALID, field, NULL, "'%s' must be %s", field, wanted);
}

static int get_number(struct reading *r, struct json_object *line, const char *key, int64_t *ret)
{
    struct json_object *v = NULL;

    if (!json_object_object_get_ex(line, key, &v) || !json_object_is_type(v, json_type_int) ||
        json_object_get_int64(v) < 0 || json_object_get_int64(v) > TIME_MAX_MS)
        return bad(r, key, "a whole number from 0");
    *ret = json_object_get_int64(v);
    return 0;
}

static int get_object(struct reading *r, struct json_object *line, const char *key,
                      struct json_object **ret)
{
    if (!json_object_object_get_ex(line, key, ret) || !json_object_is_type(*ret, json_type_object))
        return bad(r, key, "an object");
    return 0;
}

static const char *get_text(struct reading *r, struct json_object *line, const char *key)
{
    struct json_object *v = NULL;

    if (!json_object_object_get_ex(line, key, &v) || !json_object_is_type(v, json_type_string)) {
        bad(r, key, "a text");
        return NULL;
    }
    return arena_strdup(&r->past->arena, json_object_get_string(v));
}

static int read_head(struct reading *r, struct json_object *line)
{
    int64_t version;

    if (get_number(r, line, "history", &version) < 0)
        return -EINVAL;
    if (version != 1)
        return err_set(r->err, -EPROTONOSUPPORT, ERR_UNSUPPORTED, "history",
                       "export it with this release", "history version %lld is not known here",
                       (long long)version);
    r->begun = true;
    return get_number(r, line, "now_ms", &r->past->until_ms);
}

/* Identities are the server's, not the spec's. */
static const char *const team_own[] = {"id", "version", "parent"};

static int read_team(struct reading *r, struct json_object *line)
{
    struct past *p = r->past;
    struct past_team team = {0};
    struct json_object *spec, *deleted = NULL;
    int64_t id, parent;

    if (get_number(r, line, "team", &id) < 0 || get_number(r, line, "parent", &parent) < 0 ||
        get_object(r, line, "spec", &spec) < 0)
        return -EINVAL;
    if (id == 0 || past_team_by_id(p, (uint64_t)id) ||
        (parent && past_team_by_id(p, (uint64_t)parent) == NULL))
        return bad(r, "team", "an id of its own, in a line after that of its parent");
    json_object_object_get_ex(line, "deleted", &deleted);
    for (size_t i = 0; i < ARRAY_LEN(team_own); i++)
        json_object_object_del(spec, team_own[i]);
    model_team_init(&team.row);
    int e = model_team_decode(spec, &p->arena, &team.row, r->err);
    if (e < 0)
        return e;
    team.row.id = (uint64_t)id;
    team.row.parent_id = (uint64_t)parent;
    team.deleted = json_object_get_boolean(deleted);
    vec_push(&p->teams, team);
    return 0;
}

static int read_node(struct reading *r, struct json_object *line)
{
    struct model_node node = {.state = MODEL_NODE_UP};
    struct json_object *spec;
    const char *text;
    int64_t id;

    if (get_number(r, line, "node", &id) < 0 || get_object(r, line, "spec", &spec) < 0)
        return -EINVAL;
    text = json_object_to_json_string_ext(spec, JSON_C_TO_STRING_PLAIN);
    int e = model_node_decode(text, strlen(text), &r->past->arena, &node, r->err);
    if (e < 0)
        return e;
    node.id = (uint64_t)id;
    node.state = MODEL_NODE_UP; /* whether it was down meanwhile is not recorded */
    node.drained = false;
    node.window_from_ms = node.window_until_ms = 0;
    vec_push(&r->past->nodes, node);
    return 0;
}

static struct core_shape *get_shape(struct reading *r, struct json_object *line)
{
    struct json_object *v;
    struct core_shape *s;
    const char *text;

    if (get_object(r, line, "shape", &v) < 0)
        return NULL;
    text = json_object_to_json_string_ext(v, JSON_C_TO_STRING_PLAIN);
    s = map_get_str(&r->past->shapes, text);
    if (s)
        return s;
    s = arena_new(&r->past->arena, struct core_shape);
    s->json = arena_strdup(&r->past->arena, text);
    map_put_str(&r->past->shapes, s->json, s);
    return core_shape_ready(s, r->err) < 0 ? NULL : s;
}

static int read_workload(struct reading *r, struct json_object *line)
{
    struct past *p = r->past;
    struct past_job job = {0};
    int64_t id, team;

    if (get_number(r, line, "workload", &id) < 0 || get_number(r, line, "team", &team) < 0 ||
        get_number(r, line, "submitted_ms", &job.submitted_ms) < 0 ||
        get_number(r, line, "ended_ms", &job.ended_ms) < 0)
        return -EINVAL;
    if (id == 0 || (p->jobs.len > 0 && p->jobs.items[p->jobs.len - 1].id >= (uint64_t)id))
        return bad(r, "workload", "a larger id than the one before");
    if (past_team_by_id(p, (uint64_t)team) == NULL)
        return bad(r, "team", "the id of a team");
    job.id = (uint64_t)id;
    job.team = (uint64_t)team;
    job.name = get_text(r, line, "name");
    job.shape = get_shape(r, line);
    if (job.name == NULL || job.shape == NULL)
        return -EINVAL;
    vec_push(&p->jobs, job);
    return 0;
}

static struct past_job *job_by_id(struct past *p, uint64_t id)
{
    size_t low = 0, high = p->jobs.len;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (p->jobs.items[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < p->jobs.len && p->jobs.items[low].id == id ? &p->jobs.items[low] : NULL;
}

enum { RUN_WORKLOAD, RUN_TASK, RUN_ATTEMPT, RUN_MILLI, RUN_START, RUN_END, RUN_BUSY, RUN_FIELDS };

static int read_run(struct reading *r, struct json_object *line)
{
    struct json_object *v = NULL;
    int64_t n[RUN_FIELDS];
    struct past_run run;
    struct past_job *job;

    json_object_object_get_ex(line, "run", &v);
    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) != RUN_FIELDS)
        return bad(r, "run", "an array of seven numbers");
    for (size_t i = 0; i < RUN_FIELDS; i++) {
        struct json_object *number = json_object_array_get_idx(v, i);
        n[i] = json_object_get_int64(number);
        if (!json_object_is_type(number, json_type_int) || n[i] < 0 || n[i] > TIME_MAX_MS)
            return bad(r, "run", "an array of seven numbers from 0");
    }
    job = job_by_id(r->past, (uint64_t)n[RUN_WORKLOAD]);
    if (job == NULL || n[RUN_TASK] >= job->shape->model->task_count || n[RUN_ATTEMPT] > INT32_MAX ||
        n[RUN_MILLI] > MODEL_GPUS_MAX * 1000 || (n[RUN_END] != 0 && n[RUN_END] < n[RUN_START]))
        return bad(r, "run", "of a task of a workload before it, and end after it began");
    run = (struct past_run){.task = (int32_t)n[RUN_TASK],
                            .attempt = (int32_t)n[RUN_ATTEMPT],
                            .gpu_milli = n[RUN_MILLI],
                            .start_ms = n[RUN_START],
                            .end_ms = n[RUN_END],
                            .open = n[RUN_END] == 0};
    if (job->run_count == 0)
        job->first_run = r->past->runs.len;
    if (job->first_run + job->run_count != r->past->runs.len)
        return bad(r, "run", "beside the others of its workload");
    job->run_count++;
    vec_push(&r->past->runs, run);
    return 0;
}

static int read_line(struct reading *r, struct json_object *line)
{
    static const struct {
        const char *key;
        int (*read)(struct reading *r, struct json_object *line);
    } kinds[] = {
        /* Last the one whose key other kinds have as well. */
        {"history", read_head}, {"workload", read_workload}, {"run", read_run},
        {"node", read_node},    {"team", read_team},
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!json_object_object_get_ex(line, kinds[i].key, NULL))
            continue;
        if (!r->begun && i != 0)
            return bad(r, "history", "in the first line");
        return kinds[i].read(r, line);
    }
    return err_set(r->err, -EINVAL, ERR_INVALID, NULL, NULL, "it is none of the known kinds");
}

static int parse_line(struct reading *r, struct json_tokener *parser, const char *text, size_t len)
{
    json_tokener_reset(parser);
    struct json_object *line = json_tokener_parse_ex(parser, text, (int)len);
    int e;

    if (!json_object_is_type(line, json_type_object))
        e = err_set(r->err, -EINVAL, ERR_INVALID, NULL, NULL, "it is not a JSON object");
    else
        e = read_line(r, line);
    json_object_put(line);
    return e;
}

static int read_lines(struct reading *r, FILE *file, const char *path)
{
    struct json_tokener *parser = json_tokener_new_ex(32);
    _cleanup_free_ char *text = NULL;
    size_t cap = 0, number = 0;
    ssize_t len;
    int e = 0;

    if (parser == NULL)
        abort();
    while (e == 0 && (len = getline(&text, &cap, file)) >= 0) {
        number++;
        if (len > LINE_MAX_BYTES)
            e = err_set(r->err, -E2BIG, ERR_TOO_LARGE, NULL, NULL, "it is too long");
        else if (len > 1)
            e = parse_line(r, parser, text, (size_t)len);
    }
    json_tokener_free(parser);
    if (e == 0 && !r->begun)
        e = err_set(r->err, -EINVAL, ERR_INVALID, NULL, NULL, "it is empty");
    if (e < 0 && r->err) {
        struct err cause = *r->err;
        err_set(r->err, e, cause.code, cause.field,
                *cause.remedy ? cause.remedy : "make it with 'allot export history'",
                "history '%s', line %zu: %s", path, number, cause.text);
    }
    return e;
}

/* ---- what follows from the record -------------------------------------------------------- */

struct past_team *past_team_by_id(const struct past *p, uint64_t id)
{
    for (size_t i = 0; i < p->teams.len; i++)
        if (p->teams.items[i].row.id == id)
            return &p->teams.items[i];
    return NULL;
}

struct past_team *past_team_by_name(const struct past *p, const char *name)
{
    for (size_t i = 0; i < p->teams.len; i++)
        if (!p->teams.items[i].deleted && strcmp(p->teams.items[i].row.name, name) == 0)
            return &p->teams.items[i];
    return NULL;
}

int64_t past_capacity(const struct model_node *nodes, size_t count)
{
    int64_t milli = 0;

    for (size_t i = 0; i < count; i++)
        for (int32_t k = 0; k < nodes[i].device_count; k++)
            milli += nodes[i].devices[k].mig_profile ? nodes[i].devices[k].mig_milli : 1000;
    return milli;
}

__int128 past_gpu_time(const struct past *p, const struct model_node *nodes, size_t count)
{
    return (__int128)past_capacity(nodes, count) * (p->until_ms - p->from_ms);
}

bool past_can_add_up(const struct past *p, const struct model_node *nodes, size_t count)
{
    return past_gpu_time(p, nodes, count) <= GPU_TIME_MAX;
}

int64_t past_first_start(const struct past_job *job)
{
    if (job->run_count == 0)
        return 0;
    return job->runs[0].start_ms > job->submitted_ms ? job->runs[0].start_ms : job->submitted_ms;
}

/* What the runs of one task come to. */
struct task_work {
    int64_t sum_ms, last_ms, gpu_milli;
};

/* Fills in work_ms, of the task that worked longest, and gpu_milli. */
static void measure(struct past_job *job)
{
    int32_t count = job->shape->model->task_count;
    bool kept = job->shape->model->handling != MODEL_RESTART;
    struct task_work *tasks = calloc((size_t)count, sizeof(*tasks));

    if (tasks == NULL)
        abort();
    for (size_t i = 0; i < job->run_count; i++) {
        struct task_work *t = &tasks[job->runs[i].task];
        t->last_ms = job->runs[i].end_ms - job->runs[i].start_ms;
        if (t->sum_ms <= TIME_MAX_MS) /* else it is refused in the end */
            t->sum_ms += t->last_ms;
        t->gpu_milli = job->runs[i].gpu_milli;
    }
    for (int32_t i = 0; i < count; i++) {
        int64_t work = kept ? tasks[i].sum_ms : tasks[i].last_ms;
        job->work_ms = work > job->work_ms ? work : job->work_ms;
        job->gpu_milli += tasks[i].gpu_milli;
    }
    if (job->run_count == 0)
        job->gpu_milli = job->shape->gpu_milli;
    free(tasks);
}

static int compare_i64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int64_t median_work(const struct past *p)
{
    VEC(int64_t) all = {0};
    int64_t median = 0;

    for (size_t i = 0; i < p->jobs.len; i++)
        if (p->jobs.items[i].run_count > 0)
            vec_push(&all, p->jobs.items[i].work_ms);
    if (all.len > 0) {
        qsort(all.items, all.len, sizeof(*all.items), compare_i64);
        median = all.items[all.len / 2];
    }
    vec_done(&all);
    return median;
}

static void know_work(struct past_job *job)
{
    const struct model_shape *m = job->shape->model;
    bool open = false;

    for (size_t i = 0; i < job->run_count; i++)
        open |= job->runs[i].open;
    measure(job);
    job->left_out = job->run_count == 0 && job->ended_ms != 0;
    if (!open && job->ended_ms != 0)
        return;
    job->guess = job->run_count > 0 ? PAST_CENSORED : PAST_GUESSED;
    if (job->run_count > 0 && m->expected_ms > job->work_ms)
        job->work_ms = m->expected_ms;
}

static void finish(struct past *p)
{
    for (size_t i = 0; i < p->runs.len; i++) {
        struct past_run *run = &p->runs.items[i];
        int64_t last = run->open ? run->start_ms : run->end_ms;
        p->until_ms = last > p->until_ms ? last : p->until_ms;
    }
    for (size_t i = 0; i < p->jobs.len; i++)
        if (p->jobs.items[i].submitted_ms > p->until_ms)
            p->until_ms = p->jobs.items[i].submitted_ms;
    for (size_t i = 0; i < p->runs.len; i++)
        if (p->runs.items[i].open)
            p->runs.items[i].end_ms = p->until_ms;
    p->from_ms = p->jobs.len > 0 ? INT64_MAX : p->until_ms;
    for (size_t i = 0; i < p->jobs.len; i++) {
        struct past_job *job = &p->jobs.items[i];
        job->runs = p->runs.items + job->first_run;
        know_work(job);
        p->from_ms = job->submitted_ms < p->from_ms ? job->submitted_ms : p->from_ms;
    }
    int64_t median = median_work(p);
    for (size_t i = 0; i < p->jobs.len; i++) {
        struct past_job *job = &p->jobs.items[i];
        const struct model_shape *m = job->shape->model;
        if (job->guess == PAST_GUESSED)
            job->work_ms = m->expected_ms ? m->expected_ms : m->limit_ms ? m->limit_ms : median;
    }
}

/* Sums of what follows stay in 63 bits, or the record is refused. */
static int check_size(const struct past *p, struct err *err)
{
    __int128 sum = past_gpu_time(p, p->nodes.items, p->nodes.len);

    for (size_t i = 0; i < p->runs.len; i++)
        sum += (__int128)p->runs.items[i].gpu_milli *
               (p->runs.items[i].end_ms - p->runs.items[i].start_ms);
    for (size_t i = 0; i < p->jobs.len; i++) {
        if (p->jobs.items[i].work_ms > TIME_MAX_MS)
            return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, NULL,
                           "the run time of workload %llu is too long",
                           (unsigned long long)p->jobs.items[i].id);
        sum += (__int128)p->jobs.items[i].gpu_milli * p->jobs.items[i].work_ms;
    }
    if (sum <= GPU_TIME_MAX)
        return 0;
    return err_set(err, -ERANGE, ERR_OUT_OF_RANGE, NULL, "export less of it",
                   "more GPU time is recorded than can be added up");
}

int past_read(const char *path, struct past *ret_past, struct err *err)
{
    struct past past = {0};
    struct reading r = {.past = &past, .err = err};
    _cleanup_fclose_ FILE *file = fopen(path, "re");

    if (file == NULL)
        return err_set(err, -errno, ERR_NOT_FOUND, NULL, "make it with 'allot export history'",
                       "history '%s' cannot be read: %s", path, strerror(errno));
    int e = read_lines(&r, file, path);
    if (e < 0) {
        past_done(&past);
        return e;
    }
    finish(&past);
    e = check_size(&past, err);
    if (e < 0) {
        past_done(&past);
        return e;
    }
    *ret_past = past;
    return 0;
}

void past_done(struct past *p)
{
    struct core_shape *s;
    size_t it = 0;

    while ((s = map_next(&p->shapes, &it)))
        arena_done(&s->arena);
    map_done(&p->shapes);
    vec_done(&p->teams);
    vec_done(&p->nodes);
    vec_done(&p->jobs);
    vec_done(&p->runs);
    arena_done(&p->arena);
}
