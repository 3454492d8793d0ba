/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "share/verify/verify.h"

#define DEVICES_MAX 64
#define WHOLE 1000 /* thousandths of a device */

/*
 * Less than the part is given where contexts are counted, too: some hundred MiB. When more is
 * missing than this, somebody else holds it, and a refusal says nothing about the part.
 */
#define MISSING_MAX (UINT64_C(1) << 30)
/* Free memory that a device shows when it is as good as full. */
#define FULL (UINT64_C(64) << 20)

static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 10) : 0;
}

static void note(struct trial *t, const char *way, int code)
{
    t->answers[t->answer_count++] = (struct answer){way, code};
}

static void give_up(struct trial *t, const char *what, cu_result code)
{
    t->verdict = VERDICT_UNTESTED;
    snprintf(t->reason, sizeof(t->reason), "%s: the driver answers %d", what, code);
}

static cu_result describe(const struct driver *d, struct trial *t)
{
    size_t left = 0, total = 0;
    cu_result r = d->cuDeviceGetName(t->name, sizeof(t->name), t->device);

    if (r == CU_OK)
        r = d->cuDeviceGetUuid(&t->uuid, t->device);
    if (r == CU_OK)
        r = driver_enter(d, t->device);
    if (r == CU_OK)
        r = d->cuMemGetInfo_v2(&left, &total);
    t->free = left;
    t->total = total;
    return r;
}

/* With the part full, one more byte and then one more block in every way. */
static void ask_for_more(const struct driver *d, struct trial *t)
{
    cu_devptr p;
    cu_result r = d->cuMemAlloc_v2(&p, 1);

    note(t, "one byte more", r);
    if (r == CU_OK) {
        d->cuMemFree_v2(p);
        t->beyond = 1;
    }
    for (const struct way *w = verify_ways; w->name; w++) {
        r = w->ask(d, t->device);
        note(t, w->name, r);
        if (r == CU_OK)
            t->beyond = VERIFY_BLOCK;
    }
}

/*
 * What the part has that was not given is what a context takes: the other process is left room for
 * one, may take the rest, and no more. Where one process is not held, it would be too much.
 */
static void ask_by_another(const struct driver *d, struct trial *t, struct blocks *blocks)
{
    uint64_t overhead = t->part - t->filled;
    uint64_t freed;
    int r = -1;

    if (t->beyond == 0) {
        freed = drain(d, blocks, overhead);
        r = freed >= overhead ? second_ask(t->device, freed - overhead) : -1;
    }
    note(t, "second process", r);
    if (r == CU_OK)
        t->beyond = VERIFY_BLOCK;
}

/* Is it the part that is full, or the device? */
static bool is_part_full(const struct driver *d, struct trial *t)
{
    size_t left = 0, total = 0;

    if (t->filled == t->part)
        return true;
    if (t->part - t->filled > MISSING_MAX)
        return false;
    return t->total <= t->part || d->cuMemGetInfo_v2(&left, &total) != CU_OK || left > FULL;
}

static void try_memory(const struct driver *d, struct trial *t)
{
    struct blocks blocks = {0};
    uint64_t largest;
    cu_result r = fill(d, &blocks, t->part);

    t->filled = blocks.total;
    if (r != CU_OK && r != CU_OUT_OF_MEMORY) {
        give_up(t, "memory cannot be taken", r);
    } else if (!is_part_full(d, t)) {
        t->verdict = VERDICT_UNTESTED;
        snprintf(t->reason, sizeof(t->reason),
                 "the part could not be filled: others hold memory of the device");
    } else {
        ask_for_more(d, t);
        ask_by_another(d, t, &blocks);
        t->verdict = t->beyond > 0 ? VERDICT_BROKEN : VERDICT_HELD;
    }
    largest = blocks.count > 0 ? blocks.bytes[0] : 0;
    drain(d, &blocks, UINT64_MAX);
    if (largest > 0 && t->verdict != VERDICT_UNTESTED) {
        t->lost = fill(d, &blocks, largest) != CU_OK;
        t->verdict = t->lost ? VERDICT_BROKEN : t->verdict;
        drain(d, &blocks, UINT64_MAX);
    }
}

static void try_device(const struct driver *d, struct trial *t)
{
    cu_result r = describe(d, t);

    if (r != CU_OK)
        give_up(t, "the device cannot be used", r);
    else if (t->part_milli >= WHOLE)
        t->verdict = VERDICT_WHOLE;
    else
        try_memory(d, t);
    if (t->verdict != VERDICT_HELD && t->verdict != VERDICT_BROKEN)
        return;
    compute_try(d, t);
    if (t->unseen)
        t->verdict = VERDICT_BROKEN;
}

static int verify(bool json)
{
    static struct trial trials[DEVICES_MAX];
    uint64_t part = number_of("ALLOT_GPU_MEMORY"), milli = number_of("ALLOT_GPU_MILLI");
    const char *reason;
    struct driver d;

    if (part == 0)
        return report(trials, 0, "this is no task that holds a device: ALLOT_GPU_MEMORY is not set",
                      json);
    reason = driver_open(&d);
    if (reason)
        return report(trials, 0, reason, json);
    if (d.devices > DEVICES_MAX)
        d.devices = DEVICES_MAX;
    for (int i = 0; i < d.devices; i++) {
        trials[i] = (struct trial){
            .device = i, .part = part, .part_milli = (int)(milli / (uint64_t)d.devices)};
        try_device(&d, &trials[i]);
    }
    return report(trials, d.devices, NULL, json);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], VERIFY_SECOND) == 0)
        return second_main(argv[2], argv[3]);
    if (argc == 1 || (argc == 2 && strcmp(argv[1], "--json") == 0))
        return verify(argc == 2);
    fprintf(stderr, "usage: " VERIFY_PROGRAM " [--json]\n"
                    "Tries, inside a task, to take more of its GPUs than its part.\n"
                    "Exit status: 0 everything held, 1 not enforced, 2 could not be tested\n");
    return 2;
}
