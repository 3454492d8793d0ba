/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets of tokens: "alt_" and 43 base64url characters of 256 random bits. Only the BLAKE2b-256
 * hash is kept. 256 random bits cannot be guessed or searched for, so the hash needs no salt and
 * no work factor. Thread-safe once api_token_init() was called.
 *
 *     char secret[API_TOKEN_MAX];
 *     uint8_t hash[MODEL_TOKEN_HASH_BYTES];
 *     api_token_make(secret);
 *     api_token_hash(secret, hash);
 */
#ifndef ALLOT_API_TOKEN_H
#define ALLOT_API_TOKEN_H

#include <stdint.h>

#include "model/user.h"

#define API_TOKEN_MAX 64 /* bytes, with NUL */

/* Prepares libsodium; may be repeated. 0 or -EIO. */
int api_token_init(void);

/* A new secret into TEXT, which holds API_TOKEN_MAX bytes. */
void api_token_make(char *text);

/* The hash that the store keeps, of any text. */
void api_token_hash(const char *secret, uint8_t hash[MODEL_TOKEN_HASH_BYTES]);

#endif
