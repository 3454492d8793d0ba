/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/json_writer.h"
#include "sim/pack.h"

static const int points[] = {80, 90, 95, 100, 110, 130};
static const char *const class_names[PACK_CLASSES] = {"cpu_only", "fraction", "one_gpu",
                                                      "many_gpus"};
static const char *const class_titles[PACK_CLASSES] = {"CPU only", "fraction", "1 GPU", "2-8 GPU"};

const char *pack_ties_name(enum pack_ties ties)
{
    static const char *const names[PACK_TIES] = {"order", "name", "random"};
    return names[ties];
}

struct stat { /* over seeds; the deviation of a sample */
    double mean, sd;
};

static struct stat stat_of(const struct pack_report *r, int percent, bool frag)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < r->count; i++) {
        const struct pack_point *p = &r->runs[i].points[percent];
        sum += frag ? p->frag_ratio : p->unallocated;
    }
    double mean = sum / (double)r->count;
    for (size_t i = 0; i < r->count; i++) {
        const struct pack_point *p = &r->runs[i].points[percent];
        double d = (frag ? p->frag_ratio : p->unallocated) - mean;
        squares += d * d;
    }
    return (struct stat){mean, r->count > 1 ? sqrt(squares / (double)(r->count - 1)) : 0};
}

/* Percent of the pods of a class that have been dropped when PERCENT had arrived. */
static double dropped_percent(const struct pack_report *r, int percent, int class_)
{
    uint64_t dropped = 0, arrived = 0;
    for (size_t i = 0; i < r->count; i++) {
        dropped += r->runs[i].points[percent].dropped[class_];
        arrived += r->runs[i].points[percent].arrived[class_];
    }
    return arrived > 0 ? 100 * (double)dropped / (double)arrived : 0;
}

static uint64_t class_sum(const struct pack_report *r, int class_, bool dropped)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->count; i++)
        sum += dropped ? r->runs[i].dropped[class_] : r->runs[i].arrived[class_];
    return sum;
}

static double us_per_decision(const struct pack_report *r, uint64_t *ret_decisions)
{
    uint64_t decisions = 0;
    double ns = 0;
    for (size_t i = 0; i < r->count; i++) {
        decisions += r->runs[i].decisions;
        ns += (double)r->runs[i].spent_ns;
    }
    *ret_decisions = decisions;
    return ns / 1000 / (double)decisions;
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void key_number(struct json_writer *w, const char *key, double value)
{
    char text[64];
    int n = snprintf(text, sizeof(text), "%.3f", value);
    json_key(w, key);
    if (isfinite(value))
        json_raw(w, text, (size_t)n);
    else
        json_null(w);
}

static void key_percent(struct json_writer *w, int percent)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", percent);
    json_key(w, text);
}

static void write_stats(struct json_writer *w, const char *key, const struct pack_report *r,
                        bool frag)
{
    json_key(w, key);
    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct stat s = stat_of(r, points[i], frag);
        key_percent(w, points[i]);
        json_begin_object(w);
        key_number(w, "mean", s.mean);
        key_number(w, "sd", s.sd);
        json_end_object(w);
    }
    json_end_object(w);
}

static void write_dropped(struct json_writer *w, const struct pack_report *r)
{
    json_key(w, "dropped_percent");
    json_begin_object(w);
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        key_percent(w, points[i]);
        json_begin_object(w);
        for (int c = 0; c < PACK_CLASSES; c++)
            key_number(w, class_names[c], dropped_percent(r, points[i], c));
        json_end_object(w);
    }
    json_end_object(w);
}

/* Means over seeds at each percent from 70 on, for a plot. */
static void write_curve(struct json_writer *w, const struct pack_report *r)
{
    json_key(w, "curve");
    json_begin_object(w);
    for (int percent = 70; percent < PACK_POINTS; percent++) {
        char text[16];
        snprintf(text, sizeof(text), "%d", percent);
        key_number(w, text, stat_of(r, percent, false).mean);
    }
    json_end_object(w);
}

void pack_print_json(const struct pack_report *r)
{
    _cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
    struct json_writer w;
    uint64_t decisions;
    double us = us_per_decision(r, &decisions);
    json_writer_init(&w, &out);
    json_begin_object(&w);
    json_key_string(&w, "policy", r->policy->name);
    json_key(&w, "seeds");
    json_begin_array(&w);
    for (size_t i = 0; i < r->count; i++)
        json_i64(&w, r->first + (int64_t)i);
    json_end_array(&w);
    json_key_string(&w, "ties", pack_ties_name(r->ties));
    json_key_i64(&w, "decisions", (int64_t)decisions);
    key_number(&w, "us_per_decision", us);
    write_stats(&w, "unallocated_percent", r, false);
    write_stats(&w, "fragmentation_percent_of_idle", r, true);
    write_dropped(&w, r);
    for (int dropped = 0; dropped < 2; dropped++) {
        json_key(&w, dropped ? "pods_dropped" : "pods_arrived");
        json_begin_object(&w);
        for (int c = 0; c < PACK_CLASSES; c++)
            json_key_i64(&w, class_names[c], (int64_t)class_sum(r, c, dropped));
        json_end_object(&w);
    }
    write_curve(&w, r);
    json_end_object(&w);
    puts(strbuf_str(&out));
}

/* ---- text -------------------------------------------------------------------------------- */

void pack_print_text(const struct pack_report *r)
{
    uint64_t decisions;
    double us = us_per_decision(r, &decisions);
    printf("policy %s, seeds %lld-%lld, ties by %s, %llu decisions of %.1f us\n\n", r->policy->name,
           (long long)r->first, (long long)r->first + (long long)r->count - 1,
           pack_ties_name(r->ties), (unsigned long long)decisions, us);
    printf("                             useless  dropped so far, %% of the class\n");
    printf("arrived %%  unallocated  (sd)  of idle");
    for (int c = 0; c < PACK_CLASSES; c++)
        printf("  %8s", class_titles[c]);
    putchar('\n');
    for (size_t i = 0; i < ARRAY_LEN(points); i++) {
        struct stat a = stat_of(r, points[i], false);
        struct stat f = stat_of(r, points[i], true);
        printf("%9d  %10.2f%%  (%.2f)  %5.1f%%", points[i], a.mean, a.sd, f.mean);
        for (int c = 0; c < PACK_CLASSES; c++)
            printf("  %8.1f", dropped_percent(r, points[i], c));
        putchar('\n');
    }
    printf("\ndropped of arrived, mean of seeds:\n");
    for (int c = 0; c < PACK_CLASSES; c++)
        printf("  %-8s  %8.1f of %8.1f\n", class_titles[c],
               (double)class_sum(r, c, true) / (double)r->count,
               (double)class_sum(r, c, false) / (double)r->count);
}

/* ---- steady state ------------------------------------------------------------------------ */

/* Means over seeds. */
static struct pack_steady steady_mean(const struct pack_steady *all, size_t count)
{
    struct pack_steady m = {0};
    for (size_t i = 0; i < count; i++) {
        m.allocated += all[i].allocated / (double)count;
        m.frag_ratio += all[i].frag_ratio / (double)count;
        m.load += all[i].load / (double)count;
        m.pods += all[i].pods;
        for (int c = 0; c < PACK_CLASSES; c++) {
            m.classes[c].pods += all[i].classes[c].pods;
            m.classes[c].waiting += all[i].classes[c].waiting;
            m.classes[c].p50 += all[i].classes[c].p50 / (double)count;
            m.classes[c].p95 += all[i].classes[c].p95 / (double)count;
            m.classes[c].p99 += all[i].classes[c].p99 / (double)count;
        }
    }
    return m;
}

static void steady_json(const struct pack_report *r, const struct pack_steady *m)
{
    _cleanup_strbuf_ struct strbuf out = STRBUF_INIT;
    struct json_writer w;
    json_writer_init(&w, &out);
    json_begin_object(&w);
    json_key_string(&w, "policy", r->policy->name);
    json_key(&w, "seeds");
    json_begin_array(&w);
    for (size_t i = 0; i < r->count; i++)
        json_i64(&w, r->first + (int64_t)i);
    json_end_array(&w);
    json_key_i64(&w, "pods", (int64_t)m->pods);
    key_number(&w, "load_percent", m->load);
    key_number(&w, "allocated_percent", m->allocated);
    key_number(&w, "fragmentation_percent_of_idle", m->frag_ratio);
    json_key(&w, "wait_s");
    json_begin_object(&w);
    for (int c = 0; c < PACK_CLASSES; c++) {
        json_key(&w, class_names[c]);
        json_begin_object(&w);
        json_key_i64(&w, "pods", (int64_t)m->classes[c].pods);
        json_key_i64(&w, "never_started", (int64_t)m->classes[c].waiting);
        key_number(&w, "p50", m->classes[c].p50);
        key_number(&w, "p95", m->classes[c].p95);
        key_number(&w, "p99", m->classes[c].p99);
        json_end_object(&w);
    }
    json_end_object(&w);
    json_end_object(&w);
    puts(strbuf_str(&out));
}

void pack_print_steady(const struct pack_report *r, const struct pack_steady *steady, bool json)
{
    struct pack_steady m = steady_mean(steady, r->count);
    if (json) {
        steady_json(r, &m);
        return;
    }
    printf("policy %s, seeds %lld-%lld, ties by %s: %llu pods\n", r->policy->name,
           (long long)r->first, (long long)r->first + (long long)r->count - 1,
           pack_ties_name(r->ties), (unsigned long long)m.pods);
    printf("asked for %.2f%%, allocated %.2f%%; of idle GPU %.1f%% useless\n\n", m.load,
           m.allocated, m.frag_ratio);
    printf("             pods  never started   waited, s: p50        p95        p99\n");
    for (int c = 0; c < PACK_CLASSES; c++)
        printf("%-8s %8llu  %13llu  %15.1f  %9.1f  %9.1f\n", class_titles[c],
               (unsigned long long)m.classes[c].pods, (unsigned long long)m.classes[c].waiting,
               m.classes[c].p50, m.classes[c].p95, m.classes[c].p99);
}
