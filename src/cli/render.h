/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the API's objects read: words and small pieces that several commands show alike. All
 * strings are in cli->arena and safe for a terminal.
 */
#ifndef ALLOT_CLI_RENDER_H
#define ALLOT_CLI_RENDER_H

#include <stdint.h>

#include "cli/cli.h"

struct json_object;

/* Where a workload's tasks stand in the API's answer; "tasks" is their number. */
#define CLI_TASKS "tasks_detail"

/* Task INDEX of a workload as the API shows it, or NULL. Any thread. */
struct json_object *cli_task_of(struct json_object *workload, int64_t index);

/* Is that a final state of a workload or task? NULL is not. Any thread. */
bool cli_is_final(const char *state);
/* "up", "drained", "down", "unknown": the state of a node in one word. */
const char *cli_node_state(struct cli *cli, struct json_object *node);
/* "H100"; "H100/1g.10gb" where its devices are such slices. */
const char *cli_node_type(struct cli *cli, struct json_object *node);
/* Milli-GPU of all its devices; a slice is a part of one. */
int64_t cli_node_milli(struct json_object *node);

/* What a workload asks for: "6 x 1 GPU", "0.25 GPU", "10GiB of a GPU", "cpu only". */
const char *cli_request_text(struct cli *cli, struct json_object *workload);
/* Its state in one word. What runs, but has been asked to stop and will wait again, is "stopping";
 * to the server it runs until it has. */
const char *cli_workload_state(struct cli *cli, struct json_object *workload);
/* What matters about it now: place in the queue and why, tasks running, how it ended. */
const char *cli_workload_note(struct cli *cli, struct json_object *workload);
/* A reason of the scheduler in a few words: "team at its limit". */
const char *cli_reason_text(struct cli *cli, const char *reason);

/* Amounts as people read them: "2", "0.25" of thousandths; "10GiB", "23.5GiB" (cut to a tenth);
 * "-" for MODEL_UNLIMITED. */
const char *cli_milli_text(struct cli *cli, int64_t milli);
const char *cli_bytes_text(struct cli *cli, int64_t bytes);
/* The memory at PATH likewise; "-" when absent or 0. */
const char *cli_memory_text(struct cli *cli, struct json_object *json, const char *path);
/* "3.5 of 8 GPUs are free: 3 whole, at most 2 on one node, the largest part is 0.5" of {"nodes":
 * [...]}; NULL where there are no GPUs. */
const char *cli_free_text(struct cli *cli, struct json_object *nodes);
/* "3m ago" at PATH of JSON; "-" when absent. */
const char *cli_when_text(struct cli *cli, struct json_object *json, const char *path);
/* "2026-12-24 22:00Z" at PATH likewise. */
const char *cli_minute_text(struct cli *cli, struct json_object *json, const char *path);
/* "gpu 0,3" of a node: the devices of a task or allocation. */
const char *cli_devices_text(struct cli *cli, struct json_object *task);
/* The strings of an array, joined by SEPARATOR; "" when there are none. */
const char *cli_join_text(struct cli *cli, struct json_object *json, const char *path,
                          const char *separator);

/* "  label     value": one line of a description; nothing for a NULL or empty value. */
void cli_field(struct cli *cli, const char *label, const char *value);
/* Likewise for a phrase, wrapped on a terminal. */
void cli_field_phrase(struct cli *cli, const char *label, const char *value);
/* A heading above a table in a longer answer. */
void cli_heading(struct cli *cli, const char *text);
/* Text in a colour, as the style allows. */
const char *cli_colored(struct cli *cli, const char *text, enum cli_color color);

#endif
