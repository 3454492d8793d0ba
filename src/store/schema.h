/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schema and its history.
 *
 * `PRAGMA user_version` counts the steps of schema_steps[] that a database has seen. Opening
 * runs the missing ones in order, all in one transaction: an upgrade happens completely or not
 * at all. A released step never changes; a change of the schema is a new step at the end. A
 * database that has seen more steps than this program knows is refused.
 */
#ifndef ALLOT_STORE_SCHEMA_H
#define ALLOT_STORE_SCHEMA_H

#include "base/err.h"
#include "store/db.h"

/* Types of events that say what changed of teams, nodes and the server: those of an index, whose
 * text queries must repeat. */
/* States of workloads that have not ended, as the index over them has it. */
#define SCHEMA_LIVE "'pending', 'running', 'suspended', 'stopping'"
#define SCHEMA_CHANGES "'team.changed', 'team.deleted', 'node.changed', 'server.started'"

/* One step of the schema's history. */
struct schema_step {
    const char *what; /* for the error message */
    const char *sql;
};

extern const struct schema_step schema_steps[];
extern const int schema_step_count;

/* Brings DB to the newest version with STEPS. -EPROTONOSUPPORT for a newer database. */
int schema_migrate(struct db *db, const struct schema_step *steps, int count, struct err *err);

#endif
