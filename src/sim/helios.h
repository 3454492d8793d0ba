/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observed static partitions: minutes of the Helios Earth cluster, a table for each team.
 *
 * Nothing is simulated here. Each table says minute by minute what the team's partition holds,
 * runs and keeps waiting. The figures show how much waits beside idle GPUs, and what one pool
 * would need for the same demand.
 *
 * Columns used: time, total_gpu_num, running_gpu_num, pending_gpu_num. Tables are joined by row;
 * each must have the same times. Minutes in which nothing at all runs are an outage of the logger
 * and are left out.
 */
#ifndef ALLOT_SIM_HELIOS_H
#define ALLOT_SIM_HELIOS_H

#include <stdbool.h>
#include <stdio.h>

/* Reads FOLDER/earth_vc*.csv and prints the figures, as text or one JSON object. Exit status: 0,
 * or 2 with the reason on standard error. */
int helios_report(const char *folder, bool json, FILE *out);

#endif
