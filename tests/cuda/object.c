/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects behind handles. What a program does not destroy the driver still owns: all are on one
 * list, so that a leak checker does not take a program's carelessness for the driver's.
 */
#include <stdalign.h>
#include <stdlib.h>

#include "driver.h"

struct header {
    alignas(16) struct header *next;
    struct header **at;
};

static struct {
    pthread_mutex_t mutex;
    struct header *all;
} objects = {PTHREAD_MUTEX_INITIALIZER, NULL};

void *drv_object_new(size_t bytes)
{
    struct header *header = calloc(1, sizeof(*header) + bytes);

    if (header == NULL)
        return NULL;
    pthread_mutex_lock(&objects.mutex);
    header->at = &objects.all;
    header->next = objects.all;
    if (header->next != NULL)
        header->next->at = &header->next;
    objects.all = header;
    pthread_mutex_unlock(&objects.mutex);
    return header + 1;
}

void drv_object_free(void *object)
{
    struct header *header = object;

    if (object == NULL)
        return;
    header--;
    pthread_mutex_lock(&objects.mutex);
    *header->at = header->next;
    if (header->next != NULL)
        header->next->at = header->at;
    pthread_mutex_unlock(&objects.mutex);
    free(header);
}
