/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of life of tasks that hold devices, each with the time when it was last seen:
 *
 *   gpu       its share of a device's busy time, or work that the shim saw given to a device
 *   cpu       more than a twentieth of a core since the last look
 *   output    something new in its log
 *   session   somebody opened a session in it
 *   kernel    a kernel of a Jupyter server in it executed something
 *   unknown   the driver did not say what its devices did: that is not idleness
 *
 * Who judges them is core. A task begins with all of them: what starts is not idle.
 */
#include <string.h>

#include "base/clock.h"
#include "engine/local/control.h"
#include "engine/local/engine.h"
#include "engine/local/record.h"

#define CPU_PART 20  /* of a core's time */
#define BUSY_PART 50 /* of the time that is known of its devices */

static void seen(struct local_task *t, enum model_signal s, int64_t now_ms)
{
    t->signal_ms[s] = now_ms;
}

/* The answer comes before the next look. */
static void ask(struct local_task *t)
{
    _cleanup_strbuf_ struct strbuf b = STRBUF_INIT;

    record_add(&b, "op", "look");
    if (t->control >= 0)
        (void)control_send(t->control, &b, -1);
}

static void look_at_devices(struct local_task *t, int64_t now_ms)
{
    int64_t busy_ns = t->busy_ns - t->seen_busy_ns, known_ns = t->known_ns - t->seen_known_ns;

    if (t->simulated)
        return; /* their busy time is CPU time, which is looked at anyway */
    if (known_ns <= 0)
        seen(t, MODEL_SIGNAL_UNKNOWN, now_ms);
    else if (busy_ns > known_ns / BUSY_PART)
        seen(t, MODEL_SIGNAL_GPU, now_ms);
}

void activity_look(struct engine_local *e, struct local_task *t, int64_t cpu_ns, int64_t now_ms)
{
    int64_t elapsed_ns = (now_ms - t->seen_ms) * NS_PER_MS;

    if (t->gpu_milli == 0)
        return;
    if (t->seen_ms == 0) {
        for (int s = 0; s < MODEL_SIGNAL_UNKNOWN; s++)
            seen(t, (enum model_signal)s, now_ms);
    } else {
        if (cpu_ns < 0 || cpu_ns - t->seen_cpu_ns > elapsed_ns / CPU_PART)
            seen(t, MODEL_SIGNAL_CPU, now_ms);
        look_at_devices(t, now_ms);
    }
    t->seen_ms = now_ms;
    t->seen_cpu_ns = cpu_ns;
    t->seen_busy_ns = t->busy_ns;
    t->seen_known_ns = t->known_ns;
    ask(t);
}

void activity_told(struct local_task *t, const char *record, size_t len)
{
    int64_t log_bytes = record_get_i64(record, len, "log_bytes", 0), now_ms = clock_boot_ms();

    if (record_get_i64(record, len, "submitted", 0))
        seen(t, MODEL_SIGNAL_GPU, now_ms);
    if (record_get_i64(record, len, "executed", 0))
        seen(t, MODEL_SIGNAL_KERNEL, now_ms);
    if (log_bytes != t->seen_log_bytes)
        seen(t, MODEL_SIGNAL_OUTPUT, now_ms);
    t->seen_log_bytes = log_bytes;
    t->beyond_bytes = record_get_i64(record, len, "beyond", 0);
}

void activity_session(struct local_task *t)
{
    seen(t, MODEL_SIGNAL_SESSION, clock_boot_ms());
}
