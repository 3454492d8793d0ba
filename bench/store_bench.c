/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the store on this machine: durable submits in batches, from many clients and one
 * at a time, start-up, and the reads that serve the API.
 *
 * usage: store_bench [WORKLOADS]     (default 100000)
 *
 * A submit is a new workload (with shape and launch) and its event. All times include fsync on
 * the disk that holds /tmp.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "support.h"

#define OPS (&store_sqlite_ops)
#define JSON                                                                                     \
    "{\"name\": \"digits\", \"tasks\": 6, \"gpus\": 1, \"command\": [\"python3\", \"train.py\"," \
    " \"--epochs\", \"20\"], \"env\": {\"LR\": \"0.1\", \"SEED\": \"17\"}}"

struct bench {
    struct fixture fixture;
    struct store_txn *model; /* holds the workload that all are copies of */
    struct store_new_workload workload;
    uint64_t next_id, next_seq;
};

static void fail(const char *what)
{
    fprintf(stderr, "store_bench: %s failed\n", what);
    exit(1);
}

/* One more submit in T: a copy of the model with an id of its own. */
static void add_submit(struct bench *b, struct store_txn *t)
{
    struct model_workload *row = arena_memdup(&t->arena, b->workload.row, sizeof(*row));
    struct store_new_workload *n = arena_memdup(&t->arena, &b->workload, sizeof(*n));
    row->id = b->next_id++;
    n->row = row;
    txn_add(t, &(struct store_op){.kind = STORE_PUT_WORKLOAD, .new_workload = n});
    struct model_event *e = arena_new(&t->arena, struct model_event);
    *e = (struct model_event){.seq = b->next_seq++,
                              .time_ms = 1700000000000,
                              .type = MODEL_EVENT_SUBMITTED,
                              .workload = row->id,
                              .task = -1,
                              .workload_name = row->name,
                              .team = row->team,
                              .actor = row->owner,
                              .message = "job"};
    txn_add(t, &(struct store_op){.kind = STORE_ADD_EVENT, .event = e});
}

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* COUNT submits in groups of TXNS txns of EACH submits. */
static void bench_submits(struct bench *b, const char *what, size_t count, size_t txns, size_t each)
{
    size_t groups = count / (txns * each), done = 0;
    int64_t *times = calloc(groups + 1, sizeof(*times)), total = 0;
    struct store_txn **group = calloc(txns, sizeof(struct store_txn *));
    if (!times || !group)
        fail("memory");
    for (size_t g = 0; g < groups; g++) {
        for (size_t i = 0; i < txns; i++) {
            group[i] = txn_new(&b->fixture);
            for (size_t j = 0; j < each; j++)
                add_submit(b, group[i]);
        }
        int64_t start = clock_boot_ns();
        if (txn_commit_group(&b->fixture, group, txns) < 0)
            fail(what);
        times[g] = clock_boot_ns() - start;
        total += times[g];
        done += txns * each;
        for (size_t i = 0; i < txns; i++)
            arena_done(&group[i]->arena);
    }
    qsort(times, groups, sizeof(*times), by_value);
    printf("%-34s %9lld submits/s   group p50 %lld us, p99 %lld us, max %lld us\n", what,
           (long long)((int64_t)done * NS_PER_S / total), (long long)(times[groups / 2] / 1000),
           (long long)(times[groups * 99 / 100] / 1000), (long long)(times[groups - 1] / 1000));
    free(times);
    free(group);
}

static int seen_workload(void *user, const struct store_workload_row *row)
{
    ++*(uint64_t *)user;
    return 0;
}

static int seen_task(void *user, const struct model_task *task)
{
    ++*(uint64_t *)user;
    return 0;
}

static int seen_allocation(void *user, const struct model_allocation *a)
{
    ++*(uint64_t *)user;
    return 0;
}

static int seen_event(void *user, const struct model_event *event)
{
    ++*(uint64_t *)user;
    return 0;
}

static int seen_usage(void *user, const struct store_usage_row *row)
{
    ++*(uint64_t *)user;
    return 0;
}

static int64_t resident_kib(void)
{
    char line[128];
    int64_t kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmRSS: %ld", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib;
}

static void report(const char *what, int64_t start_ns, uint64_t rows)
{
    int64_t us = (clock_boot_ns() - start_ns) / 1000;
    printf("%-34s %6lld.%03lld ms   %llu rows\n", what, (long long)(us / 1000),
           (long long)(us % 1000), (unsigned long long)rows);
}

static void bench_startup(struct bench *b)
{
    struct fixture *f = &b->fixture;
    uint64_t rows = 0, last[3];
    fixture_close(f);
    malloc_trim(0);
    int64_t before = resident_kib(), start = clock_boot_ns();
    if (fixture_open(f, NULL) < 0)
        fail("open");
    report("open", start, 0);
    int64_t all = clock_boot_ns();
    start = all;
    OPS->last_ids(f->store, &last[0], &last[1], &last[2], NULL);
    OPS->each_live_workload(f->store, seen_workload, &rows, NULL);
    report("live workloads", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->each_live_task(f->store, seen_task, &rows, NULL);
    report("live tasks", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->each_open_allocation(f->store, seen_allocation, &rows, NULL);
    report("open allocations", start, rows);
    report("start-up reads in all", all, last[0]);
    printf("%-34s %6lld KiB\n", "memory of an open store", (long long)(resident_kib() - before));
}

static void bench_lists(struct bench *b)
{
    struct fixture *f = &b->fixture;
    struct store_workload_filter page = {.limit = 100};
    struct store_workload_filter team = {.limit = 100, .team = "nlp", .before_id = 50000};
    struct store_workload_filter owner = {.limit = 100, .owner = "nobody"};
    struct store_event_filter events = {.limit = 100, .newest = 1};
    const char *const teams[] = {"vision"};
    struct store_event_filter rare = {.limit = 100, .teams = teams, .team_count = 1};
    uint64_t rows = 0;
    int64_t start = clock_boot_ns();
    OPS->list_workloads(f->store, &page, seen_workload, &rows, NULL);
    report("page of 100 workloads, first time", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->list_workloads(f->store, &page, seen_workload, &rows, NULL);
    report("page of 100 workloads, again", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->list_workloads(f->store, &team, seen_workload, &rows, NULL);
    report("page of one team", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->list_workloads(f->store, &owner, seen_workload, &rows, NULL);
    report("owner without any (walks all)", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->list_events(f->store, &events, seen_event, &rows, NULL);
    report("newest 100 events", start, rows);
    rows = 0;
    start = clock_boot_ns();
    OPS->list_events(f->store, &rare, seen_event, &rows, NULL);
    report("events of a team without (all)", start, rows);
}

static void bench_get(struct bench *b)
{
    struct fixture *f = &b->fixture;
    struct model_workload w;
    enum { READS = 2000 };
    int64_t start = clock_boot_ns();
    for (uint64_t i = 0; i < READS; i++) {
        if (OPS->get_workload(f->store, 1 + i * 7 % (b->next_id - 1), &f->arena, &w, NULL) < 0)
            fail("get");
        arena_reset(&f->arena);
    }
    printf("%-34s %6lld us\n", "one workload, decoded",
           (long long)((clock_boot_ns() - start) / 1000 / READS));
    struct model_token token;
    struct model_user user;
    uint8_t hash[MODEL_TOKEN_HASH_BYTES];
    memset(hash, 1, sizeof(hash));
    start = clock_boot_ns();
    for (int i = 0; i < READS; i++) {
        if (OPS->find_token(f->store, hash, 0, &f->arena, &token, &user, NULL) < 0)
            fail("find_token");
        arena_reset(&f->arena);
    }
    printf("%-34s %6lld ns\n", "one token", (long long)((clock_boot_ns() - start) / READS));
}

static void bench_usage(struct bench *b, uint64_t count)
{
    struct fixture *f = &b->fixture;
    uint64_t rows = 0;
    for (uint64_t id = 1; id <= count;) {
        struct store_txn *t = txn_new(f);
        for (int i = 0; i < 1000 && id <= count; i++, id++)
            put_allocation(t, id, id, 1, 1000, (int64_t)id, (int64_t)id + 5000, 1000);
        if (txn_commit(f, t) < 0)
            fail("allocations");
        arena_done(&t->arena);
    }
    int64_t start = clock_boot_ns();
    OPS->usage(f->store, 0, INT64_MAX, 1 << 30, seen_usage, &rows, NULL);
    report("usage over that many allocations", start, count);
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 100000;
    struct bench b = {.next_id = 1, .next_seq = 1};
    if (count < 20000 || count > 10000000) {
        fprintf(stderr, "usage: store_bench [WORKLOADS]   (20000 to 10000000)\n");
        return 2;
    }
    fixture_start(&b.fixture);
    if (fixture_open(&b.fixture, NULL) < 0)
        fail("open");
    b.model = txn_new(&b.fixture);
    put_workload(b.model, 1, "nlp", 1, "ada", 1, JSON);
    b.workload = *b.model->first->new_workload;
    struct store_txn *t = txn_new(&b.fixture);
    put_team(t, 1, "nlp", 0);
    put_team(t, 2, "vision", 0);
    put_user(t, "ada", "nlp");
    put_token(t, 1, "ada", 1, 0);
    if (txn_commit(&b.fixture, t) < 0)
        fail("teams");

    bench_submits(&b, "batches of 1000", count - 15000, 1, 1000);
    bench_submits(&b, "batches of 10000", 10000, 1, 10000);
    bench_submits(&b, "64 clients, groups of 64", 4096, 64, 1);
    bench_submits(&b, "one client, groups of 1", 904, 1, 1);
    bench_startup(&b);
    bench_lists(&b);
    bench_get(&b);
    bench_usage(&b, count - 1);
    fixture_finish(&b.fixture);
    return 0;
}
