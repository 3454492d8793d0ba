/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The number of a device: 16 bytes, as the driver says it, and the text that people see of it.
 */
#ifndef ALLOT_GPU_UUID_H
#define ALLOT_GPU_UUID_H

#include <stdint.h>

#define GPU_UUID_TEXT 41 /* "GPU-" and 36 characters, with the final NUL */

/* "GPU-1b2ba3e0-...": the form that CUDA_VISIBLE_DEVICES takes. */
void gpu_uuid_format(const uint8_t uuid[16], char ret_text[GPU_UUID_TEXT]);

/* The other way round; either case of letters. -EINVAL for anything else, RET_UUID unchanged. */
int gpu_uuid_parse(const char *text, uint8_t ret_uuid[16]);

#endif
