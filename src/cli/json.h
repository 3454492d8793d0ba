/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the server's JSON leniently.
 *
 * The API's answers are shown, not trusted: a field that is missing or has another type reads as
 * the default, so that a newer or older server never makes the command line fail. Paths step
 * into objects ("guarantee.gpu"). Quantities are exact integers: 0.25 is read from its text.
 * Strings live as long as the JSON object they stand in.
 */
#ifndef ALLOT_CLI_JSON_H
#define ALLOT_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Parses one document of at most 64 MiB and 32 levels; NULL if it is not JSON. The caller
 * releases it with json_object_put(). */
struct json_object *cli_json_parse(const char *text, size_t len);

/* The value at PATH, or NULL when absent or null. Not a new reference. */
struct json_object *cli_json_get(struct json_object *json, const char *path);

/* The string at PATH (numbers as their text), or NULL. */
const char *cli_json_text(struct json_object *json, const char *path);
/* The integer at PATH, or OTHERWISE. */
int64_t cli_json_int(struct json_object *json, const char *path, int64_t otherwise);
bool cli_json_bool(struct json_object *json, const char *path);
/* A count of GPUs or cores ("0.25", 0.25, 8) in thousandths; OTHERWISE when absent. */
int64_t cli_json_milli(struct json_object *json, const char *path, int64_t otherwise);
/* An amount of memory ("10GiB" or bytes); OTHERWISE when absent. */
int64_t cli_json_bytes(struct json_object *json, const char *path, int64_t otherwise);
/* A point in time (ISO text) in milliseconds since 1970; 0 when absent. */
int64_t cli_json_time(struct json_object *json, const char *path);

/* The array at PATH: its length (0 when there is none) and elements. */
size_t cli_json_len(struct json_object *json, const char *path);
struct json_object *cli_json_at(struct json_object *json, const char *path, size_t index);

#endif
