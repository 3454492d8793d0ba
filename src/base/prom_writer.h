/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming writer of metrics in the text format of Prometheus, version 0.0.4.
 *
 * A family (name, type, help) has samples, which differ by their labels. The two comment lines of
 * a family are written with its first sample, so that one without samples leaves no trace. Values
 * of labels may be any text: they are escaped, and what is not UTF-8 is replaced by '?', since
 * one bad byte would make a reader refuse all. Names are our own and not checked.
 *
 *     struct prom_writer w;
 *     prom_writer_init(&w, &buf);
 *     prom_family(&w, "allot_nodes", "gauge", "Nodes by state.");
 *     prom_begin(&w);
 *     prom_label(&w, "state", "up");
 *     prom_i64(&w, 3);                 allot_nodes{state="up"} 3
 */
#ifndef ALLOT_BASE_PROM_WRITER_H
#define ALLOT_BASE_PROM_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"

#define PROM_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

struct prom_writer {
    struct strbuf *out;
    const char *name, *type, *help; /* of the family */
    bool told;                      /* its comment lines are written */
    bool labelled;                  /* the sample has a label already */
};

/* Starts at the end of OUT, which the caller owns. */
void prom_writer_init(struct prom_writer *w, struct strbuf *out);
/* The family of the samples that follow: one place for each. TYPE: "gauge", "counter". The texts
 * must live until the next family. */
void prom_family(struct prom_writer *w, const char *name, const char *type, const char *help);

/* A sample: begin, labels, value. */
void prom_begin(struct prom_writer *w);
void prom_label(struct prom_writer *w, const char *name, const char *value);
void prom_i64(struct prom_writer *w, int64_t value);
/* In thousandths: 250 is 0.25. */
void prom_milli(struct prom_writer *w, int64_t value);
/* In millionths, at least 0: 250 is 0.000250. */
void prom_micro(struct prom_writer *w, int64_t value);

#endif
