/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of GET /metrics. Each appends its families to W; docs/metrics.md lists them all.
 *
 *   metrics.c         the route, and what concerns teams, workloads and nodes
 *   metrics_device.c  devices, under the names that NVIDIA's exporter for DCGM gives them
 *   metrics_process.c the server's own process
 */
#ifndef ALLOT_API_METRICS_H
#define ALLOT_API_METRICS_H

#include "api/internal.h"
#include "base/prom_writer.h"

/*
 * Devices of the nodes in CALL's answer from core, and who holds them. EVERYTHING: also those that
 * nobody holds whose work the caller sees. 0 or a negative errno with ERR.
 */
int api_metrics_devices(struct api_call *call, bool everything, struct prom_writer *w,
                        struct err *err);

/* What cannot be read of the process is left out. */
void api_metrics_process(struct prom_writer *w);

#endif
