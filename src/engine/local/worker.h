/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper thread with a queue: what may take long is done here, in order, and answered through
 * a callback on the helper's thread.
 */
#ifndef ALLOT_ENGINE_LOCAL_WORKER_H
#define ALLOT_ENGINE_LOCAL_WORKER_H

struct worker;

struct worker_job {
    struct worker_job *next;
    /* Does the work. The job belongs to whoever gets it next, or is freed here. */
    void (*run)(struct worker_job *job);
};

/* 0 or negative errno. */
int worker_create(struct worker **ret_worker);

/* Takes JOB over. Any thread. */
void worker_push(struct worker *w, struct worker_job *job);

/* Lets the job under way end, runs the others too, joins the thread. NULL is fine. */
void worker_destroy(struct worker *w);

#endif
