/* SPDX-License-Identifier: Apache-2.0 */
#include "share/clock.h"

#ifndef SHARE_TEST

#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS UINT64_C(1000000000)

uint64_t share_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

void share_sleep(const _Atomic uint32_t *word, uint32_t seen, uint64_t time_ns)
{
    uint64_t now = share_now();
    uint64_t ns = time_ns > now ? time_ns - now : 0;
    const struct timespec time = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};

    if (ns > 0)
        syscall(SYS_futex, word, FUTEX_WAIT, seen, &time, NULL, 0);
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

#include "share/old_glibc.h"
#include "share/place.h"

#define LOOK_NS UINT64_C(200000) /* a futex does not wake who sleeps by this clock */

static pthread_once_t found = PTHREAD_ONCE_INIT;
static uint64_t (*driver_now)(void);
static void (*driver_sleep)(uint64_t time_ns);

static void find_clock(void)
{
    void *driver = dlopen(share_place_driver(), RTLD_NOW | RTLD_LOCAL);

    driver_now = (uint64_t(*)(void))dlsym(driver, "allot_double_now_ns");
    driver_sleep = (void (*)(uint64_t))dlsym(driver, "allot_double_sleep_until_ns");
}

uint64_t share_now(void)
{
    pthread_once(&found, find_clock);
    return driver_now();
}

void share_sleep(const _Atomic uint32_t *word, uint32_t seen, uint64_t time_ns)
{
    uint64_t soon = share_now() + LOOK_NS;

    (void)word;
    (void)seen;
    driver_sleep(time_ns < soon ? time_ns : soon);
}

#endif
