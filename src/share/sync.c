/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a device: pools give back what they do not need, and work is seen done. */
#include <stddef.h>

#include "share/compute.h"
#include "share/hooks.h"
#include "share/settle.h"
#include "share/shim.h"

/* REAL_CALL, a synchronisation; ALL: with everything that the context was given. */
#define SYNCHRONISE(all, real_call)         \
    do {                                    \
        uint64_t submits = share_submits(); \
        cu_result r = (real_call);          \
                                            \
        share_synchronised();               \
        share_caught_up(all, submits);      \
        return r;                           \
    } while (0)

cu_result hook_cuStreamSynchronize(struct cu_stream *stream)
{
    SYNCHRONISE(false, REAL(cuStreamSynchronize)(stream));
}

cu_result hook_cuStreamSynchronize_ptsz(struct cu_stream *stream)
{
    SYNCHRONISE(false, REAL_AS(cuStreamSynchronize_ptsz, cuStreamSynchronize)(stream));
}

cu_result hook_cuCtxSynchronize(void)
{
    SYNCHRONISE(true, REAL(cuCtxSynchronize)());
}

cu_result hook_cuCtxSynchronize_v2(struct cu_ctx *ctx)
{
    SYNCHRONISE(false, REAL(cuCtxSynchronize_v2)(ctx));
}

cu_result hook_cuEventSynchronize(struct cu_event *event)
{
    SYNCHRONISE(false, REAL(cuEventSynchronize)(event));
}
