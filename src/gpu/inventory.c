/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/gpu.h"

#include <errno.h>
#include <string.h>

#include "base/qty.h"
#include "base/text.h"

#define AUTO_PREFIX "auto:"

int gpu_sim_inventory(const char *spec, struct arena *arena, struct gpu_inventory *ret_inventory,
                      struct err *err)
{
    struct gpu_inventory inv = {.simulated = true};
    int r = model_devices_from_spec(spec, arena, &inv.devices, &inv.count, err);

    if (r < 0)
        return r;
    inv.notice = arena_printf(arena,
                              "devices are simulated (%s): nothing computes on a GPU, and "
                              "busy time stands for CPU time",
                              spec);
    *ret_inventory = inv;
    return 0;
}

int gpu_inventory(const char *spec, struct arena *arena, struct gpu_inventory *ret_inventory,
                  struct err *err)
{
    bool fall_back = spec && text_starts_with(spec, AUTO_PREFIX);
    struct gpu_inventory sim;
    int r;

    if (spec && !fall_back)
        return gpu_sim_inventory(spec, arena, ret_inventory, err);
    /* A bad spec is a mistake on every machine, also where it is not needed. */
    if (fall_back) {
        r = gpu_sim_inventory(spec + strlen(AUTO_PREFIX), arena, &sim, err);
        if (r < 0)
            return r;
    }
    r = gpu_nvml_inventory(arena, ret_inventory, err);
    if (r != -ENOENT)
        return r;
    *ret_inventory = (struct gpu_inventory){0};
    if (fall_back) {
        sim.notice = arena_printf(arena, "no NVIDIA driver answers; %s", sim.notice);
        *ret_inventory = sim;
    }
    return 0;
}

int64_t gpu_sim_busy_ns(int64_t cpu_ns, int64_t gpu_milli, int64_t elapsed_ns)
{
    int64_t most;

    if (cpu_ns <= 0 || gpu_milli <= 0 || elapsed_ns <= 0)
        return 0;
    most = qty_mul_div(elapsed_ns, gpu_milli, 1000);
    return cpu_ns < most ? cpu_ns : most;
}
