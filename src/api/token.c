/* SPDX-License-Identifier: Apache-2.0 */
#include "api/token.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#define SECRET_BYTES 32
#define PREFIX "alt_"

int api_token_init(void)
{
    return sodium_init() < 0 ? -EIO : 0;
}

void api_token_make(char *text)
{
    unsigned char bytes[SECRET_BYTES];

    randombytes_buf(bytes, sizeof(bytes));
    memcpy(text, PREFIX, sizeof(PREFIX));
    sodium_bin2base64(text + strlen(PREFIX), API_TOKEN_MAX - strlen(PREFIX), bytes, sizeof(bytes),
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof(bytes));
}

void api_token_hash(const char *secret, uint8_t hash[MODEL_TOKEN_HASH_BYTES])
{
    crypto_generichash(hash, MODEL_TOKEN_HASH_BYTES, (const unsigned char *)secret, strlen(secret),
                       NULL, 0);
}
