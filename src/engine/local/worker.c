/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/local/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>

struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct worker_job *first, **last;
    bool quit;
};

static void *work(void *arg)
{
    struct worker *w = arg;

    for (;;) {
        struct worker_job *job;

        pthread_mutex_lock(&w->lock);
        while (w->first == NULL && !w->quit)
            pthread_cond_wait(&w->more, &w->lock);
        job = w->first;
        if (job) {
            w->first = job->next;
            if (w->first == NULL)
                w->last = &w->first;
        }
        pthread_mutex_unlock(&w->lock);
        if (job == NULL)
            return NULL;
        job->run(job);
    }
}

int worker_create(struct worker **ret_worker)
{
    struct worker *w = calloc(1, sizeof(*w));
    sigset_t all, old;
    int r;

    if (w == NULL)
        return -ENOMEM;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->more, NULL);
    w->last = &w->first;
    /* Signals are for the main thread. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(&w->thread, NULL, work, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r != 0) {
        free(w);
        return -r;
    }
    *ret_worker = w;
    return 0;
}

void worker_push(struct worker *w, struct worker_job *job)
{
    pthread_mutex_lock(&w->lock);
    job->next = NULL;
    *w->last = job;
    w->last = &job->next;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
}

void worker_destroy(struct worker *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->quit = true;
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->more);
    free(w);
}
