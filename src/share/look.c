/* SPDX-License-Identifier: Apache-2.0 */
#include "share/look.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "share/call.h"

static bool is_readable(const struct share_limits *limits)
{
    return limits->magic == SHARE_MAGIC && limits->version == SHARE_VERSION &&
           limits->device_count <= SHARE_DEVICES;
}

static int map_region(const int fds[2], struct share_view *ret_view)
{
    const size_t bytes[] = {sizeof(struct share_limits), sizeof(struct share_counters)};
    void *maps[2];

    for (int i = 0; i < 2; i++)
        maps[i] = mmap(NULL, bytes[i], PROT_READ, MAP_SHARED, fds[i], 0);
    if (maps[0] != MAP_FAILED && maps[1] != MAP_FAILED && is_readable(maps[0])) {
        *ret_view = (struct share_view){.limits = maps[0], .counters = maps[1]};
        return 0;
    }
    for (int i = 0; i < 2; i++)
        if (maps[i] != MAP_FAILED)
            munmap(maps[i], bytes[i]);
    return -EPROTO;
}

int share_look(struct share_view *ret_view)
{
    struct share_welcome welcome;
    int fds[2], fd = share_call(SHARE_LOOK, &welcome, fds);
    int r = fd;

    if (fd < 0)
        return r;
    r = map_region(fds, ret_view);
    close(fds[0]);
    close(fds[1]);
    close(fd);
    return r;
}

int share_look_device(const struct share_view *view, const uint8_t *uuid)
{
    for (uint32_t i = 0; i < view->limits->device_count; i++)
        if (memcmp(view->limits->devices[i].uuid, uuid, sizeof(view->limits->devices[i].uuid)) == 0)
            return (int)i;
    return -1;
}
