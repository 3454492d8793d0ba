/* SPDX-License-Identifier: Apache-2.0 */
#include "api/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/token.h"
#include "base/cleanup.h"

DEFINE_CLEANUP(struct api *, api_destroy, api_destroyp)

static int init_locks(struct api *api)
{
    pthread_condattr_t attr;
    int r = pthread_mutex_init(&api->keys_lock, NULL);

    if (r == 0)
        r = pthread_mutex_init(&api->streams_lock, NULL);
    if (r == 0)
        r = pthread_mutex_init(&api->side_lock, NULL);
    if (r == 0)
        r = pthread_cond_init(&api->side_idle, NULL);
    if (r == 0)
        r = pthread_condattr_init(&attr);
    if (r != 0)
        return -r;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    r = pthread_cond_init(&api->streams_wake, &attr);
    pthread_condattr_destroy(&attr);
    return -r;
}

int api_create(const struct api_config *config, struct api **ret_api, struct err *err)
{
    _cleanup_(api_destroyp) struct api *api = calloc(1, sizeof(*api));
    int r;

    if (api == NULL)
        abort();
    api->config = *config;
    api->config.listen = strdup(config->listen);
    if (api->config.listen == NULL)
        abort();
    r = init_locks(api);
    if (r == 0)
        r = api_token_init();
    if (r < 0)
        return err_set(err, r, ERR_INTERNAL, NULL, NULL, "preparing the API failed: %s",
                       strerror(-r));
    *ret_api = steal_ptr(&api);
    return 0;
}

int api_start(struct api *api, struct err *err)
{
    struct http_handler handler = {api_on_headers, api_on_request, api};
    struct http_server_config config = {.listen = api->config.listen,
                                        .threads = api->config.threads,
                                        .connections = api->config.connections};
    const struct store_ops *store = api->config.store;
    uint64_t workload, event = 0, other;
    int r = store->last_ids(api->config.store_ctx, &workload, &event, &other, err);

    if (r < 0)
        return r;
    if (event > atomic_load(&api->committed))
        atomic_store(&api->committed, event);
    r = api_notifier_start(api);
    if (r < 0)
        return err_set(err, r, ERR_UNAVAILABLE, NULL, "look at the limit of processes (ulimit -u)",
                       "starting a thread of the API failed: %s", strerror(-r));
    return http_server_create(&config, &handler, &api->http, err);
}

const char *api_address(const struct api *api)
{
    return http_server_address(api->http);
}

uint16_t api_port(const struct api *api)
{
    return http_server_port(api->http);
}

void api_stop(struct api *api)
{
    api_notifier_stop(api);
    if (api->http)
        http_server_stop(api->http);
    pthread_mutex_lock(&api->side_lock);
    while (api->side_count > 0)
        pthread_cond_wait(&api->side_idle, &api->side_lock);
    pthread_mutex_unlock(&api->side_lock);
}

void api_destroy(struct api *api)
{
    if (api == NULL)
        return;
    api_stop(api);
    http_server_destroy(api->http);
    map_done(&api->keys);
    pthread_mutex_destroy(&api->keys_lock);
    pthread_mutex_destroy(&api->streams_lock);
    pthread_mutex_destroy(&api->side_lock);
    pthread_cond_destroy(&api->streams_wake);
    pthread_cond_destroy(&api->side_idle);
    free((char *)api->config.listen);
    free(api);
}
