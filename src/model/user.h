/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and tokens. A token is "alt_" and 43 base64url characters of 256 random bits, shown
 * once and kept only as a hash. Roles: admin (everything) and member (works in its teams and
 * their subtrees).
 */
#ifndef ALLOT_MODEL_USER_H
#define ALLOT_MODEL_USER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/json_writer.h"

struct json_object;

#define MODEL_TOKEN_HASH_BYTES 32
#define MODEL_USER_TEAMS_MAX 64

struct model_user {
    const char *name;
    bool admin;
    const char *const *teams;
    int32_t team_count;
};

struct model_token {
    uint64_t id;
    const char *user;
    const char *label; /* what for, or NULL */
    uint8_t hash[MODEL_TOKEN_HASH_BYTES];
    int64_t created_ms, expires_ms; /* expires 0 = never */
};

/* {"name": "ada", "role": "admin"|"member", "teams": ["nlp"]}; as model_team_decode. */
int model_user_decode(struct json_object *json, struct arena *arena, struct model_user *u,
                      struct err *err);
/* One JSON object that decodes to the same user. */
void model_user_encode(const struct model_user *u, struct json_writer *w);
/* Without the hash. */
void model_token_encode(const struct model_token *t, struct json_writer *w);

#endif
