/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What could hold parts of a GPU apart on this machine, and why it does not where it does not.
 *
 *     shim   ours, in front of the driver (share/shim.h): what is used when it is there
 *     mig    slices that the hardware holds apart; each is a device of its own
 *     mps    NVIDIA's server, which lets programs of several tasks compute at one time
 *     dmem   the kernel's account of device memory by control group (Linux 6.14, driver 615)
 *
 * Looks at files alone: nothing is started and nothing changed.
 */
#ifndef ALLOT_GPU_BACKENDS_H
#define ALLOT_GPU_BACKENDS_H

#include "gpu/gpu.h"
#include "model/node.h"

/* Where to look. */
struct gpu_backend_places {
    const char *cgroups;             /* root of the hierarchy: "/sys/fs/cgroup" */
    const char *const *mps_programs; /* places of nvidia-cuda-mps-control, NULL-terminated */
    const char *mps_pipe;            /* of a running server */
};

/* Those of a usual machine. */
extern const struct gpu_backend_places gpu_backend_places;

/*
 * All of them, for a node with DEVICES, which uses the shim where SHIM_REASON is NULL; else that is
 * why not. RET_BACKENDS and their texts are in ARENA or last for ever; how many.
 */
int32_t gpu_backends(const struct gpu_inventory *devices, const char *shim_reason,
                     const struct gpu_backend_places *places, struct arena *arena,
                     const struct model_backend **ret_backends);

#endif
