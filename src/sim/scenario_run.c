/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "sim/scenario.h"
#include "sim/scenario_check.h"

#define LINE_MAX_BYTES (8u << 20)
#define ROUNDS_AFTER_REST 5

struct known_failure {
    const char *id, *reason;
    bool met;
};

struct run {
    const struct sim_scenarios_options *options;
    FILE *out;
    struct arena arena; /* lives as long as the run */
    VEC(struct known_failure) known;
    uint32_t number, passed, failed, expected;
};

/* ---- the list of expected failures ------------------------------------------------------- */

static int known_add(struct run *r, char *line, uint32_t number)
{
    line[strcspn(line, "\n")] = '\0';
    char *id = line + strspn(line, " \t");
    if (*id == '\0' || *id == '#')
        return 0;
    size_t len = strcspn(id, " \t#");
    char *hash = strchr(id, '#');
    const char *reason = hash == NULL ? "" : hash + 1 + strspn(hash + 1, " \t");
    if (*reason == '\0') {
        fprintf(r->out, "# %s:%u: '%.*s' needs a reason, written as '# reason'\n",
                r->options->expect_fail, number, (int)len, id);
        return -EINVAL;
    }
    struct known_failure *k = vec_add(&r->known);
    k->id = arena_strndup(&r->arena, id, len);
    k->reason = arena_strdup(&r->arena, reason);
    return 0;
}

static int known_load(struct run *r)
{
    if (r->options->expect_fail == NULL)
        return 0;
    _cleanup_fclose_ FILE *f = fopen(r->options->expect_fail, "re");
    if (f == NULL) {
        fprintf(r->out, "# cannot open '%s': %s\n", r->options->expect_fail, strerror(errno));
        return -errno;
    }
    _cleanup_free_ char *line = NULL;
    size_t cap = 0;
    for (uint32_t number = 1; getline(&line, &cap, f) >= 0; number++) {
        int rc = known_add(r, line, number);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static struct known_failure *known_find(struct run *r, const char *id)
{
    for (size_t i = 0; i < r->known.len; i++) {
        if (strcmp(r->known.items[i].id, id) == 0)
            return &r->known.items[i];
    }
    return NULL;
}

static void known_report_unmet(struct run *r)
{
    for (size_t i = 0; i < r->known.len && r->options->only == NULL; i++) {
        if (!r->known.items[i].met)
            fprintf(r->out, "# '%s' is listed in '%s' but is not in the files\n",
                    r->known.items[i].id, r->options->expect_fail);
    }
}

/* ---- one scenario ------------------------------------------------------------------------ */

static uint32_t world_failed(struct strbuf *text, const struct sim_world *w, const struct err *err)
{
    strbuf_addf(text, "# after %lld ms: %s%s%s\n", (long long)(w == NULL ? 0 : w->now_ms),
                err->field, err->field[0] == '\0' ? "" : ": ", err->text);
    return 1;
}

static uint32_t settled_check(struct sim_world *w, const struct sim_expect *e, struct strbuf *text)
{
    struct err err = ERR_INIT;
    if (sim_world_settle(w, &err) < 0)
        return world_failed(text, w, &err);
    uint32_t differences = sim_check(w, e, "settled", text);
    if (differences > 0)
        return differences;
    if (sim_world_rounds(w, ROUNDS_AFTER_REST, &err) < 0)
        return world_failed(text, w, &err);
    return sim_check(w, e, "five rounds after it settled", text);
}

static uint32_t instant_check(struct sim_world *w, const struct sim_expect *e, struct strbuf *text)
{
    struct err err = ERR_INIT;
    if (sim_world_advance(w, e->at_ms, &err) < 0)
        return world_failed(text, w, &err);
    char when[48];
    int64_t ms = e->at_ms % 1000;
    if (ms == 0)
        snprintf(when, sizeof(when), "at %lld s", (long long)(e->at_ms / 1000));
    else
        snprintf(when, sizeof(when), "at %lld.%03lld s", (long long)(e->at_ms / 1000),
                 (long long)ms);
    return sim_check(w, e, when, text);
}

DEFINE_CLEANUP(struct sim_world *, sim_world_destroy, world_destroyp)

/* Runs it and writes what differs into TEXT; how many differences. */
static uint32_t scenario_play(const struct sim_scenario *s, FILE *trace, struct strbuf *text)
{
    struct err err = ERR_INIT;
    _cleanup_(world_destroyp) struct sim_world *w = NULL;
    if (sim_world_create(s, trace, &w, &err) < 0)
        return world_failed(text, w, &err);
    uint32_t differences = 0;
    for (uint32_t i = 0; i < s->expect_count && differences == 0; i++) {
        const struct sim_expect *e = &s->expects[i];
        differences = e->settled ? settled_check(w, e, text) : instant_check(w, e, text);
    }
    return differences;
}

static void report(struct run *r, const char *id, const char *title, uint32_t differences,
                   const char *text)
{
    struct known_failure *known = known_find(r, id);
    r->number++;
    if (known != NULL)
        known->met = true;
    if (differences > 0 && known != NULL) {
        fprintf(r->out, "not ok %u - %s %s # TODO %s\n%s", r->number, id, title, known->reason,
                text);
        r->expected++;
    } else if (differences > 0) {
        fprintf(r->out, "not ok %u - %s %s\n%s", r->number, id, title, text);
        r->failed++;
    } else if (known != NULL) {
        fprintf(r->out,
                "not ok %u - %s %s\n# PASSES although '%s' lists it as an expected failure (%s): "
                "take it off the list\n",
                r->number, id, title, r->options->expect_fail, known->reason);
        r->failed++;
    } else {
        fprintf(r->out, "ok %u - %s %s\n", r->number, id, title);
        r->passed++;
    }
    fflush(r->out);
}

static void line_run(struct run *r, const char *file, uint32_t number, const char *line, size_t len)
{
    struct arena arena = ARENA_INIT;
    struct err err = ERR_INIT;
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;
    struct sim_scenario s;
    if (sim_scenario_parse(&arena, line, len, &s, &err) < 0) {
        strbuf_addf(&text, "# %s:%u: %s%s%s%s%s\n", file, number, err.field,
                    err.field[0] == '\0' ? "" : ": ", err.text, err.remedy[0] == '\0' ? "" : "; ",
                    err.remedy);
        char id[32];
        snprintf(id, sizeof(id), "line-%u", number);
        if (r->options->only == NULL)
            report(r, id, "cannot be read", 1, strbuf_str(&text));
    } else if (r->options->only == NULL || strcmp(r->options->only, s.id) == 0) {
        uint32_t differences = scenario_play(&s, r->options->trace ? r->out : NULL, &text);
        report(r, s.id, s.title, differences, strbuf_str(&text));
    }
    arena_done(&arena);
}

static int file_run(struct run *r, const char *path)
{
    _cleanup_fclose_ FILE *f = fopen(path, "re");
    if (f == NULL) {
        fprintf(r->out, "# cannot open '%s': %s\n", path, strerror(errno));
        return -errno;
    }
    _cleanup_free_ char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    for (uint32_t number = 1; (len = getline(&line, &cap, f)) >= 0; number++) {
        if ((size_t)len > LINE_MAX_BYTES) {
            fprintf(r->out, "# %s:%u: the line is longer than %u bytes\n", path, number,
                    LINE_MAX_BYTES);
            return -EFBIG;
        }
        if (len > 0 && line[len - 1] == '\n')
            line[--len] = '\0';
        if (strspn(line, " \t\r") < (size_t)len)
            line_run(r, path, number, line, (size_t)len);
    }
    if (ferror(f)) {
        fprintf(r->out, "# cannot read '%s': %s\n", path, strerror(errno));
        return -EIO;
    }
    return 0;
}

static int files_run(struct run *r)
{
    int rc = known_load(r);
    for (size_t i = 0; rc == 0 && i < r->options->file_count; i++)
        rc = file_run(r, r->options->files[i]);
    if (rc < 0)
        return 2;
    if (r->options->only != NULL && r->number == 0) {
        fprintf(r->out, "# no scenario has the id '%s'\n", r->options->only);
        return 2;
    }
    known_report_unmet(r);
    fprintf(r->out, "1..%u\n", r->number);
    if (r->expected > 0)
        fprintf(r->out, "# %u expected failures\n", r->expected);
    fprintf(r->out, "%u passed, %u failed\n", r->passed, r->failed);
    return r->failed > 0 ? 1 : 0;
}

int sim_scenarios_run(const struct sim_scenarios_options *options, FILE *out)
{
    struct run r = {.options = options, .out = out};
    int status = files_run(&r);
    vec_done(&r.known);
    arena_done(&r.arena);
    return status;
}
