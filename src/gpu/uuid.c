/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/uuid.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define PREFIX "GPU-"

static bool dash_before(int byte)
{
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void gpu_uuid_format(const uint8_t uuid[16], char ret_text[GPU_UUID_TEXT])
{
    int n = snprintf(ret_text, GPU_UUID_TEXT, PREFIX);

    for (int i = 0; i < 16; i++)
        n += snprintf(ret_text + n, (size_t)(GPU_UUID_TEXT - n), dash_before(i) ? "-%02x" : "%02x",
                      uuid[i]);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

int gpu_uuid_parse(const char *text, uint8_t ret_uuid[16])
{
    uint8_t uuid[16];

    if (strlen(text) != GPU_UUID_TEXT - 1 || strncmp(text, PREFIX, strlen(PREFIX)) != 0)
        return -EINVAL;
    text += strlen(PREFIX);
    for (int i = 0; i < 16; i++) {
        if (dash_before(i) && *text++ != '-')
            return -EINVAL;
        if (digit(text[0]) < 0 || digit(text[1]) < 0)
            return -EINVAL;
        uuid[i] = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
        text += 2;
    }
    memcpy(ret_uuid, uuid, sizeof(uuid));
    return 0;
}
