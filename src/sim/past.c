/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/past_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/strbuf.h"
#include "core/shape.h"

#define LINE_MAX_BYTES (4 << 20)

struct reading {
    struct past *past;
    struct err *err;
    bool begun, ended; /* the first line was there, the last one was */
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
    if (version != 2)
        return err_set(r->err, -EPROTONOSUPPORT, ERR_UNSUPPORTED, "history",
                       "export it with this release", "history version %lld is not known here",
                       (long long)version);
    r->begun = true;
    if (get_number(r, line, "events_from_ms", &r->past->events_from_ms) < 0)
        return -EINVAL;
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
    map_put(&p->team_ids, team.row.id, (void *)(uintptr_t)p->teams.len);
    return 0;
}

static int read_node(struct reading *r, struct json_object *line)
{
    struct past_node node = {0};
    struct json_object *spec;
    const char *text;
    int64_t id;

    if (get_number(r, line, "node", &id) < 0 || get_object(r, line, "spec", &spec) < 0)
        return -EINVAL;
    text = json_object_to_json_string_ext(spec, JSON_C_TO_STRING_PLAIN);
    int e = model_node_decode(text, strlen(text), &r->past->arena, &node.row, r->err);
    if (e < 0)
        return e;
    if (id == 0 || (r->past->nodes.len > 0 &&
                    r->past->nodes.items[r->past->nodes.len - 1].row.id >= (uint64_t)id))
        return bad(r, "node", "a larger id than the one before");
    node.row.id = (uint64_t)id;
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
    int64_t id, team, failures;

    if (get_number(r, line, "workload", &id) < 0 || get_number(r, line, "team", &team) < 0 ||
        get_number(r, line, "submitted_ms", &job.submitted_ms) < 0 ||
        get_number(r, line, "ended_ms", &job.ended_ms) < 0 ||
        get_number(r, line, "failures", &failures) < 0)
        return -EINVAL;
    if (id == 0 || (p->jobs.len > 0 && p->jobs.items[p->jobs.len - 1].id >= (uint64_t)id))
        return bad(r, "workload", "a larger id than the one before");
    if (past_team_by_id(p, (uint64_t)team) == NULL)
        return bad(r, "team", "the id of a team");
    job.id = (uint64_t)id;
    job.team = (uint64_t)team;
    job.failures = failures < INT32_MAX ? (int32_t)failures : INT32_MAX;
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

enum {
    RUN_WORKLOAD,
    RUN_TASK,
    RUN_ATTEMPT,
    RUN_MILLI,
    RUN_START,
    RUN_END,
    RUN_BUSY,
    RUN_NODE,
    RUN_STOPPING,
    RUN_FIELDS
};

static int read_numbers(struct reading *r, struct json_object *line, int64_t *n)
{
    struct json_object *v = NULL;

    json_object_object_get_ex(line, "run", &v);
    if (!json_object_is_type(v, json_type_array) || json_object_array_length(v) != RUN_FIELDS)
        return bad(r, "run", "an array of nine numbers");
    for (size_t i = 0; i < RUN_FIELDS; i++) {
        struct json_object *number = json_object_array_get_idx(v, i);
        n[i] = json_object_get_int64(number);
        if (!json_object_is_type(number, json_type_int) || n[i] < 0 || n[i] > TIME_MAX_MS)
            return bad(r, "run", "an array of nine numbers from 0");
    }
    return 0;
}

/* Only where it lies within the run. */
static int64_t stopping(const int64_t *n)
{
    bool within =
        n[RUN_STOPPING] >= n[RUN_START] && (n[RUN_END] == 0 || n[RUN_STOPPING] <= n[RUN_END]);

    return within ? n[RUN_STOPPING] : 0;
}

static int read_run(struct reading *r, struct json_object *line)
{
    int64_t n[RUN_FIELDS];
    struct past_run run;
    struct past_job *job;
    enum model_release how;
    const char *word = get_text(r, line, "how");

    if (word == NULL || read_numbers(r, line, n) < 0)
        return -EINVAL;
    if (model_release_parse(word, &how) < 0)
        return bad(r, "how", "how a run ended, as \"gave_way\"");
    job = job_by_id(r->past, (uint64_t)n[RUN_WORKLOAD]);
    if (job == NULL || n[RUN_TASK] >= job->shape->model->task_count || n[RUN_ATTEMPT] > INT32_MAX ||
        n[RUN_MILLI] > MODEL_GPUS_MAX * 1000 || (n[RUN_END] != 0 && n[RUN_END] < n[RUN_START]))
        return bad(r, "run", "of a task of a workload before it, and end after it began");
    run = (struct past_run){.task = (int32_t)n[RUN_TASK],
                            .attempt = (int32_t)n[RUN_ATTEMPT],
                            .gpu_milli = n[RUN_MILLI],
                            .start_ms = n[RUN_START],
                            .end_ms = n[RUN_END],
                            .stopping_ms = stopping(n),
                            .node = (uint64_t)n[RUN_NODE],
                            .how = how,
                            .open = n[RUN_END] == 0};
    if (job->run_count == 0)
        job->first_run = r->past->runs.len;
    if (job->first_run + job->run_count != r->past->runs.len)
        return bad(r, "run", "beside the others of its workload");
    job->run_count++;
    vec_push(&r->past->runs, run);
    return 0;
}

static int read_change(struct reading *r, struct json_object *line)
{
    struct json_object *data;
    int64_t at_ms;
    const char *kind = get_text(r, line, "change");

    if (kind == NULL || get_number(r, line, "time_ms", &at_ms) < 0 ||
        get_object(r, line, "data", &data) < 0)
        return -EINVAL;
    return past_change_read(r->past, kind, at_ms, data, r->err);
}

static int read_end(struct reading *r, struct json_object *line)
{
    int64_t workloads, runs;
    struct json_object *v;

    if (get_object(r, line, "end", &v) < 0 || get_number(r, v, "workloads", &workloads) < 0 ||
        get_number(r, v, "runs", &runs) < 0)
        return -EINVAL;
    if ((uint64_t)workloads != r->past->jobs.len || (uint64_t)runs != r->past->runs.len)
        return err_set(r->err, -EINVAL, ERR_INVALID, NULL, NULL,
                       "it counts %lld workloads and %lld runs, but there were %zu and %zu",
                       (long long)workloads, (long long)runs, r->past->jobs.len, r->past->runs.len);
    r->ended = true;
    return 0;
}

static int read_line(struct reading *r, struct json_object *line)
{
    static const struct {
        const char *key;
        int (*read)(struct reading *r, struct json_object *line);
    } kinds[] = {
        /* Last the one whose key other kinds have as well. */
        {"history", read_head}, {"change", read_change}, {"workload", read_workload},
        {"run", read_run},      {"end", read_end},       {"node", read_node},
        {"team", read_team},
    };

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (!json_object_object_get_ex(line, kinds[i].key, NULL))
            continue;
        if (!r->begun && i != 0)
            return bad(r, "history", "in the first line");
        if (r->begun && i == 0)
            return bad(r, "history", "in the first line only");
        if (r->ended)
            return err_set(r->err, -EINVAL, ERR_INVALID, NULL, NULL,
                           "it stands behind the line that ends the history");
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

/* One line without its end into TEXT. 1, 0 at the end of the file, or -E2BIG. */
static int next_line(FILE *file, struct strbuf *text)
{
    int c;

    strbuf_truncate(text, 0);
    while ((c = getc_unlocked(file)) != EOF && c != '\n') {
        if (text->len >= LINE_MAX_BYTES)
            return -E2BIG;
        strbuf_addc(text, (char)c);
    }
    return c != EOF || text->len > 0;
}

static int read_lines(struct reading *r, FILE *file, size_t *ret_number)
{
    struct json_tokener *parser = json_tokener_new_ex(32);
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    int e = 1;

    if (parser == NULL)
        abort();
    while (e > 0 && (e = next_line(file, &text)) > 0) {
        ++*ret_number;
        if (text.len > 0 && parse_line(r, parser, text.data, text.len) < 0)
            e = -EINVAL;
    }
    json_tokener_free(parser);
    if (e == -E2BIG)
        return err_set(r->err, e, ERR_TOO_LARGE, NULL, NULL, "it is longer than 4 MiB");
    if (e == 0 && ferror(file))
        return err_set(r->err, -EIO, ERR_UNAVAILABLE, NULL, NULL, "it cannot be read");
    return e;
}

/* All of it, with the name and the line in front of what is wrong. */
static int read_all(struct reading *r, FILE *file, const char *name)
{
    size_t number = 0;
    int e = read_lines(r, file, &number);

    if (e < 0 && r->err) {
        struct err cause = *r->err;
        return err_set(r->err, e, cause.code, cause.field,
                       *cause.remedy ? cause.remedy : "make it with 'allot export history'",
                       "history '%s', line %zu: %s", name, number, cause.text);
    }
    if (e == 0 && !r->begun)
        return err_set(r->err, -EINVAL, ERR_INVALID, NULL, "make it with 'allot export history'",
                       "history '%s' is empty", name);
    if (e == 0 && !r->ended)
        return err_set(r->err, -EINVAL, ERR_INVALID, NULL, "export it again",
                       "history '%s' is cut off after line %zu: its last line is missing", name,
                       number);
    return e;
}

/* Sums of what follows stay in 63 bits, or the record is refused. */
static int check_size(const struct past *p, struct err *err)
{
    __int128 sum = past_gpu_time(p);

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

/* Not to wait for whoever may one day write into a pipe: only for who does already. */
static int open_path(const char *path, FILE **ret_file, struct err *err)
{
    _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    int flags;

    if (fd < 0 || fstat(fd, &st) < 0 || (flags = fcntl(fd, F_GETFL)) < 0)
        return err_set(err, -errno, ERR_NOT_FOUND, NULL, "make it with 'allot export history'",
                       "history '%s' cannot be read: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return err_set(err, -EISDIR, ERR_INVALID, NULL, "a data folder is read with --data",
                       "history '%s' is a folder", path);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
        return err_set(err, -EINVAL, ERR_INVALID, NULL, "make it with 'allot export history'",
                       "history '%s' is neither a file nor a pipe", path);
    (void)fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    *ret_file = fdopen(fd, "r");
    if (*ret_file == NULL)
        return -errno;
    (void)steal_fd(&fd);
    return 0;
}

int past_read(const char *path, struct past *ret_past, struct err *err)
{
    _cleanup_fclose_ FILE *file = NULL;
    int e;

    if (strcmp(path, "-") == 0)
        return past_read_stream(stdin, "standard input", ret_past, err);
    e = open_path(path, &file, err);
    return e < 0 ? e : past_read_stream(file, path, ret_past, err);
}

int past_read_stream(FILE *file, const char *name, struct past *ret_past, struct err *err)
{
    struct past past = {0};
    struct reading r = {.past = &past, .err = err};
    int e;

    sched_config_default(&past.config);
    e = read_all(&r, file, name);
    if (e == 0) {
        past_work_window(&past);
        e = past_change_resolve(&past, err);
        if (e < 0 && err) {
            struct err cause = *err;
            err_set(err, e, cause.code, cause.field, "export it again",
                    "history '%s': a recorded change cannot be: %s", name, cause.text);
        }
    }
    if (e == 0) {
        past_assume(&past, PAST_CHECKPOINT_MS);
        e = check_size(&past, err);
    }
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
    map_done(&p->team_ids);
    vec_done(&p->teams);
    vec_done(&p->nodes);
    vec_done(&p->jobs);
    vec_done(&p->runs);
    vec_done(&p->changes);
    vec_done(&p->raw);
    arena_done(&p->arena);
}
