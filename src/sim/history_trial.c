/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history_trial.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"

#define HANG_S 60
#define HANG_STEPS 256

/* Who gives the steps: a seed, or a list. */
struct source {
    struct history_trial *t;
    struct history_make *make;
    const struct history_steps *list;
};

static size_t size_of(size_t capacity)
{
    return sizeof(struct history_trial) + capacity * sizeof(struct history_step);
}

struct history_trial *history_trial_create(size_t capacity)
{
    struct history_trial *t = mmap(NULL, size_of(capacity), PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (t == MAP_FAILED)
        abort();
    t->capacity = capacity;
    t->compare_every = 1;
    return t;
}

void history_trial_destroy(struct history_trial *t)
{
    if (t)
        munmap(t, size_of(t->capacity));
}

static void watch_for_hang(void)
{
    struct itimerval limit = {.it_value = {.tv_sec = HANG_S}};

    setitimer(ITIMER_PROF, &limit, NULL);
}

static bool next(void *user, const struct history *h, struct history_step *ret_step)
{
    struct source *s = user;
    struct history_trial *t = s->t;

    if (t->count % HANG_STEPS == 0)
        watch_for_hang();
    if (s->list) {
        if (t->count == s->list->len)
            return false;
        *ret_step = s->list->items[t->count++];
        return true;
    }
    if (t->count == t->capacity || !history_make_next(s->make, h, ret_step))
        return false;
    t->steps[t->count++] = *ret_step;
    return true;
}

static void child(struct source *s, bool quiet)
{
    if (quiet) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        if (null >= 0)
            dup2(null, STDERR_FILENO);
    }
    log_set_level(LOG_LEVEL_NONE); /* full disks are part of the plan */
    history_play(next, s, s->t->compare_every, &s->t->result);
    _exit(0);
}

static void judge(struct history_trial *t, int status)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        t->verdict = t->result.wrong[0] ? HISTORY_WRONG : HISTORY_HELD;
        snprintf(t->why, sizeof(t->why), "%s", t->result.wrong);
        return;
    }
    t->verdict = HISTORY_DIED;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
        snprintf(t->why, sizeof(t->why), "it hangs");
    else if (WIFSIGNALED(status))
        snprintf(t->why, sizeof(t->why), "it dies: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(t->why, sizeof(t->why), "it exits with status %d", WEXITSTATUS(status));
}

static void play(struct source *s, bool quiet)
{
    struct history_trial *t = s->t;
    int status = 0;
    pid_t pid;

    t->count = 0;
    t->why[0] = '\0';
    memset(&t->result, 0, sizeof(t->result));
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        abort();
    if (pid == 0)
        child(s, quiet);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    judge(t, status);
}

void history_trial_make(struct history_trial *t, const struct history_make *make)
{
    struct history_make copy = *make;

    play(&(struct source){.t = t, .make = &copy}, false);
}

void history_trial_list(struct history_trial *t, const struct history_steps *steps, bool quiet)
{
    play(&(struct source){.t = t, .list = steps}, quiet);
}

/* Past a number, so that 12 equals 7. */
static const char *past_number(const char *at)
{
    while (isdigit((unsigned char)*at))
        at++;
    return at;
}

bool history_trial_same(const char *why, const char *other)
{
    /* What differs inside quotes are whole lines of state. */
    for (; *why && *other && *why != '\''; why++, other++) {
        why = past_number(why);
        other = past_number(other);
        if (*why != *other)
            return false;
        if (*why == '\0')
            return true;
    }
    return *why == *other;
}
