/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/virtual_engine_internal.h"

#define MOVE_MS 20      /* the longest move of device memory */
#define HELD_GIB_MAX 40 /* of it */

int64_t vtask_awake_ms(const struct virtual_engine *e, const struct vtask *t)
{
    return t->awake_ms + (t->awake_at_ms > 0 ? e->now_ms - t->awake_at_ms : 0);
}

static bool hindered(struct virtual_engine *e, enum virtual_hinder what)
{
    bool hinder = e->hinder[what];

    e->hinder[what] = false;
    return hinder;
}

static void begin(struct virtual_engine *e, struct vtask *t, enum sleep sleep)
{
    t->sleep = sleep;
    t->at_ms = e->now_ms + 1 + (int64_t)(t->chance / LAUNCH_MS % MOVE_MS);
}

static void begin_restoring(struct virtual_engine *e, struct vtask *t)
{
    vtask_vacate(e, t);
    begin(e, t, RESTORING);
    vtask_occupy(e, t);
    t->awake_at_ms = e->now_ms;
}

static void fall_asleep(struct virtual_engine *e, struct vtask *t)
{
    vtask_vacate(e, t);
    t->sleep = ASLEEP;
    t->slept_ms = e->now_ms;
    vtask_occupy(e, t);
}

void vtask_move(struct virtual_engine *e, struct vtask *t)
{
    if (t->sleep == AWAKE && t->to_sleep)
        begin(e, t, SAVING);
    else if (t->sleep == ASLEEP && !t->to_sleep)
        begin_restoring(e, t);
    else if (t->sleep == AWAKE)
        vtask_post(e, ENGINE_RESUMED, t, NULL);
    else if (t->sleep == ASLEEP)
        vtask_post(e, ENGINE_SUSPENDED, t, NULL);
    /* else it is on its way, and looks when it is there */
}

static void saved(struct virtual_engine *e, struct vtask *t)
{
    if (hindered(e, VIRTUAL_HINDER_SUSPEND)) {
        t->sleep = AWAKE;
        t->to_sleep = false;
        vtask_post(e, ENGINE_RESUMED, t, "its memory cannot be moved");
        return;
    }
    t->host_bytes = (int64_t)(1 + t->chance % HELD_GIB_MAX) << 30;
    fall_asleep(e, t);
    vtask_move(e, t);
}

static void restored(struct virtual_engine *e, struct vtask *t)
{
    if (hindered(e, VIRTUAL_HINDER_RESUME)) {
        fall_asleep(e, t);
        t->to_sleep = true;
    } else {
        t->sleep = AWAKE;
        t->calls = false;
    }
    vtask_move(e, t);
}

void vtask_moved(struct virtual_engine *e, struct vtask *t)
{
    t->at_ms = INT64_MAX;
    if (hindered(e, VIRTUAL_HINDER_DRIVER))
        vtask_end(e, t, ENGINE_EXITED, 1);
    else if (t->sleep == SAVING)
        saved(e, t);
    else if (t->sleep == RESTORING)
        restored(e, t);
}

void vtask_call(struct virtual_engine *e, struct vtask *t)
{
    if (t->calls && t->to_sleep)
        vtask_post(e, ENGINE_WAKE, t, NULL);
}
