/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "engine/local/engine.h"
#include "engine/local/identity.h"

static void refuse(struct engine_local *e, struct local_task *t, const struct err *err)
{
    _cleanup_strbuf_ struct strbuf text = STRBUF_INIT;

    strbuf_adds(&text, err->text[0] ? err->text : "the task could not be started");
    if (err->remedy[0])
        strbuf_addf(&text, "; %s", err->remedy);
    t->lasting = engine_code_lasts(err->code);
    task_end(e, t, ENGINE_REFUSED, text.data);
}

/* The tasks of a gang start in a row: one load serves them. */
static int load_launch(struct engine_local *e, uint64_t workload,
                       const struct model_launch **ret_launch, struct err *err)
{
    int r;

    if (e->launch && e->launch_of == workload) {
        *ret_launch = e->launch;
        return 0;
    }
    e->launch = NULL;
    arena_reset(&e->launch_arena);
    r = e->host.load_launch(e->host.host, workload, &e->launch_arena, &e->launch, err);
    if (r < 0) {
        e->launch = NULL;
        return r;
    }
    e->launch_of = workload;
    *ret_launch = e->launch;
    return 0;
}

static int launch_now(struct engine_local *e, struct local_task *t,
                      const struct engine_start *start, const struct model_launch *launch,
                      const struct image *image, struct err *err)
{
    _cleanup_strbuf_ struct strbuf record = STRBUF_INIT;
    int r = launch_compose(e, start, launch, image, &record, err);

    return r < 0 ? r : spawn_supervisor(e, t, &record, err);
}

static void run_image_job(struct worker_job *job)
{
    struct local_job *j = (struct local_job *)job;
    struct request *r = request_new(REQUEST_IMAGE_READY);

    j->result = image_prepare(j->e->settings.images_dir, j->launch->image,
                              identity_of_team(j->e->settings.uid_base, j->start->start.team),
                              j->e->cancel, &j->start->arena, &j->image, &j->err);
    r->job = j;
    queue_push(&j->e->queue, r);
}

/* The cached launch may be replaced while the image comes: this start loads its own. */
static int begin_image(struct engine_local *e, struct local_task *t, struct request *r,
                       struct err *err)
{
    struct local_job *j;
    int res = image_check(e->launch->image, err);

    if (res < 0)
        return res;
    j = calloc(1, sizeof(*j));
    if (j == NULL)
        return err_set(err, -ENOMEM, ERR_INTERNAL, NULL, NULL, "out of memory");
    res = e->host.load_launch(e->host.host, r->start.workload, &r->arena, &j->launch, err);
    if (res < 0) {
        free(j);
        return res;
    }
    j->e = e;
    j->start = r;
    j->job.run = run_image_job;
    t->state = PREPARING;
    /* A team that has its image come slowly keeps few others waiting. */
    worker_push(e->pullers[identity_of_team(0, r->start.team) % ENGINE_PULLERS], &j->job);
    return 0;
}

void start_image_ready(struct engine_local *e, struct local_job *job)
{
    struct local_task *t = map_get_str(&e->tasks, job->start->intent);

    /* Stopped or forgotten meanwhile: then there is nothing to start. */
    if (t && t->state == PREPARING) {
        int r = job->result;

        if (r == 0)
            r = launch_now(e, t, &job->start->start, job->launch, &job->image, &job->err);
        if (r < 0)
            refuse(e, t, &job->err);
    }
    request_free(job->start);
    free(job);
}

static int begin(struct engine_local *e, struct local_task *t, struct request *r, bool *ret_kept,
                 struct err *err)
{
    const struct model_launch *launch = NULL;
    int res;

    *ret_kept = false;
    if (e->settings.no_sandbox && !e->settings.allow_unsandboxed)
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, NULL,
                       "allow user and mount namespaces on this machine, or start the server with "
                       "unsandboxed tasks allowed",
                       "node '%s' cannot isolate tasks: %s", e->node.name, e->settings.no_sandbox);
    res = share_check(e, &r->start, err);
    if (res == 0)
        res = load_launch(e, r->start.workload, &launch, err);
    if (res < 0)
        return res;
    if (launch->image == NULL)
        return launch_now(e, t, &r->start, launch, NULL, err);
    if (e->settings.no_sandbox)
        return err_set(err, -EOPNOTSUPP, ERR_UNSUPPORTED, "image", "leave the image out",
                       "images need a sandbox, which node '%s' cannot build", e->node.name);
    res = begin_image(e, t, r, err);
    *ret_kept = res == 0;
    return res;
}

void start_handle(struct engine_local *e, struct request *r)
{
    struct local_task *t = map_get_str(&e->tasks, r->intent);
    struct err err = ERR_INIT;
    bool kept = false;

    if (t) {
        /* Asked twice: one start, one more answer where there is one yet. */
        if (t->state == RUNNING)
            engine_tell(e, t, ENGINE_STARTED);
        else if (t->state == ENDED)
            engine_tell(e, t, t->end);
    } else if (!put_away_name_ok(r->intent)) {
        t = task_new(e, "invalid");
        (void)err_set(&err, -EINVAL, ERR_INVALID, NULL, NULL, "intent '%s' is not a name",
                      r->intent);
        refuse(e, t, &err);
        task_free(e, t);
    } else {
        t = task_new(e, r->intent);
        if (faccessat(e->tasks_fd, r->intent, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
            adopt_task(e, t);
        else if (begin(e, t, r, &kept, &err) < 0)
            refuse(e, t, &err);
    }
    if (!kept)
        request_free(r);
}
