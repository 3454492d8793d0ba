/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Idempotency-Key: a repeated POST gets the stored reply of the first.
 *
 * The reply is stored by core in the same transaction as the effect, under user and key. While
 * the first is under way its key is in api.keys, so that a repeat that overtakes it is refused
 * instead of done twice; the store is asked only after the key was taken, so none slips through.
 */
#include "api/internal.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/text.h"

#define KEY_MAX 128
#define DIGEST_BYTES 16

static bool take_key(struct api *api, const char *key)
{
    bool taken = false;

    pthread_mutex_lock(&api->keys_lock);
    if (map_get_str(&api->keys, key) == NULL) {
        map_put_str(&api->keys, key, (void *)key);
        taken = true;
    }
    pthread_mutex_unlock(&api->keys_lock);
    return taken;
}

void call_release_key(struct api_call *call)
{
    struct api *api = call->api;

    if (call->key == NULL)
        return;
    pthread_mutex_lock(&api->keys_lock);
    map_del_str(&api->keys, call->key);
    pthread_mutex_unlock(&api->keys_lock);
    call->key = NULL;
}

/* Of method, path and body: what a repeat must equal. */
static const char *digest_of(struct api_call *call)
{
    const struct http_request *r = call->http;
    unsigned char hash[DIGEST_BYTES];
    char *text = arena_alloc(call_arena(call), 2 * DIGEST_BYTES + 1);
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, sizeof(hash));
    crypto_generichash_update(&state, (const unsigned char *)r->path, strlen(r->path) + 1);
    crypto_generichash_update(&state, (const unsigned char *)r->body, r->body_len);
    crypto_generichash_final(&state, hash, sizeof(hash));
    sodium_bin2hex(text, 2 * DIGEST_BYTES + 1, hash, sizeof(hash));
    return text;
}

static int check_key(const char *key, struct err *err)
{
    size_t n = strlen(key);

    for (size_t i = 0; i < n; i++)
        if (key[i] <= ' ' || key[i] > '~')
            n = 0;
    if (n == 0 || n > KEY_MAX)
        return err_set(err, -EINVAL, ERR_INVALID, "Idempotency-Key", "use a random UUID",
                       "Idempotency-Key is not 1 to %d printable characters", KEY_MAX);
    return 0;
}

static int replay(struct api_call *call, const struct store_reply *stored, const char *digest,
                  struct err *err)
{
    struct strbuf body = STRBUF_INIT;

    if (strcmp(stored->digest, digest) != 0)
        return err_set(err, -E2BIG, ERR_CONFLICT, "Idempotency-Key",
                       "use a new key for a new request",
                       "Idempotency-Key was used with another request");
    strbuf_adds(&body, stored->body);
    http_reply_header(call->http, "Idempotency-Replayed", "true");
    call_reply(call, stored->status, &body);
    return 1;
}

int call_idempotency(struct api_call *call, struct err *err)
{
    const struct api_config *config = &call->api->config;
    const char *given = http_request_header(call->http, "Idempotency-Key");
    struct store_reply stored;
    const char *key, *digest;
    int r;

    if (given == NULL)
        return 0;
    r = check_key(given, err);
    if (r < 0)
        return r;
    key = arena_printf(call_arena(call), "%s\n%s", call->user.name, given);
    digest = digest_of(call);
    if (!take_key(call->api, key))
        return err_set(err, -EBUSY, ERR_CONFLICT, "Idempotency-Key", "ask again shortly",
                       "a request with this Idempotency-Key is under way");
    call->key = key;
    r = config->store->get_reply(config->store_ctx, key, core_now_ms(config->core),
                                 call_arena(call), &stored, err);
    if (r == 0)
        return replay(call, &stored, digest, err);
    if (r != -ENOENT)
        return r;
    call->command.reply_key = key;
    call->command.reply_digest = digest;
    return 0;
}
