/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What drivers say of devices: the last word of each node. It is of the moment, so it is not
 * stored, nothing is decided by it, and it is forgotten when a node falls silent.
 */
#include "core/internal.h"

#include <stdlib.h>
#include <string.h>

#define READINGS_KEPT_MS 30000

void core_reading_take(struct core *core, const struct engine_event *event)
{
    struct core_node *n = map_get_str(&core->node_names, event->node_name);
    size_t size = sizeof(*event->readings) * (size_t)event->reading_count;

    if (n == NULL)
        return;
    free(n->readings);
    n->readings = malloc(size + 1);
    if (n->readings == NULL)
        abort();
    if (size > 0)
        memcpy(n->readings, event->readings, size);
    n->reading_count = event->reading_count;
    n->readings_ms = core_timeline(core, event->boot_ms);
}

static int by_name(const void *a, const void *b)
{
    const struct core_node_metrics *x = a, *y = b;

    return strcmp(x->name, y->name);
}

void core_reading_list(struct core *core, struct core_command *c)
{
    struct core_node_metrics *rows =
        arena_new_array(&c->arena, struct core_node_metrics, core->nodes.len);
    struct core_node *n;
    size_t it = 0, len = 0;

    while ((n = map_next(&core->nodes, &it)) != NULL) {
        struct core_node_metrics *row = &rows[len++];

        *row = (struct core_node_metrics){.id = n->row.id,
                                          .name = arena_strdup(&c->arena, n->row.name),
                                          .state = n->row.state,
                                          .drained = n->row.drained};
        if (core->now_ms - n->readings_ms > READINGS_KEPT_MS)
            continue;
        row->reading_count = n->reading_count;
        row->readings =
            arena_memdup(&c->arena, n->readings, sizeof(*n->readings) * (size_t)n->reading_count);
    }
    if (len > 0)
        qsort(rows, len, sizeof(*rows), by_name);
    c->ret_nodes = rows;
    c->ret_node_count = len;
}
