/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "share/verify/verify.h"

#define GIB 1073741824.0
#define WHOLE_MILLI 1000
#define NOISE_MILLI 50 /* of a measured share */

static const char *const words[] = {[VERDICT_HELD] = "held",
                                    [VERDICT_WHOLE] = "whole",
                                    [VERDICT_UNTESTED] = "untested",
                                    [VERDICT_BROKEN] = "not enforced"};

/* The worst decides. */
static enum verdict verdict_of(const struct trial *trials, int count)
{
    enum verdict worst = count > 0 ? trials[0].verdict : VERDICT_UNTESTED;

    for (int i = 1; i < count; i++)
        if (trials[i].verdict > worst)
            worst = trials[i].verdict;
    return worst;
}

static void uuid_text(const struct cu_uuid *uuid, char text[48])
{
    const uint8_t *b = uuid->bytes;

    snprintf(text, 48, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
             b[14], b[15]);
}

static const char *outcome(int code)
{
    switch (code) {
    case CU_OK:
        return "given";
    case CU_OUT_OF_MEMORY:
        return "refused";
    default:
        return code < 0 ? "not tried" : "not possible";
    }
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_bytes(const char *what, uint64_t bytes)
{
    printf("  %-16s %.2f GiB (%" PRIu64 " bytes)\n", what, (double)bytes / GIB, bytes);
}

static void print_answer(const struct answer *a)
{
    if (a->code > 0 && a->code != CU_OUT_OF_MEMORY)
        printf("  %-16s %s (the driver answers %d)\n", a->way, outcome(a->code), a->code);
    else
        printf("  %-16s %s\n", a->way, a->code == CU_OK ? "GIVEN" : outcome(a->code));
}

static bool is_computing_known(const struct trial *t)
{
    return t->answer_count > 0 && t->compute_error == CU_OK;
}

/* More than the part is no fault of a device that others do not want all the time. */
static void print_judgement(const struct trial *t)
{
    bool more = t->got_milli > t->part_milli + NOISE_MILLI;

    if (t->unseen)
        printf("PAST THE SHIM, which saw nothing of it\n");
    else if (t->contended_milli < 0)
        printf("nothing here shares it by parts, or tells who wants it\n");
    else if (t->contended_milli < NOISE_MILLI)
        printf("alone, what nobody else wants is usable\n");
    else if (t->contended_milli > WHOLE_MILLI - NOISE_MILLI)
        printf("contended, %s\n", more ? "more than the part" : "within the part");
    else
        printf("contended %d %% of the time\n", t->contended_milli / 10);
}

static void print_computing(const struct trial *t)
{
    if (!is_computing_known(t)) {
        printf("  %-16s not tried (the driver answers %d)\n", "computing", t->compute_error);
        return;
    }
    printf("  %-16s %d.%d %% of the device's time, the part is %d.%d %%: ", "computing",
           t->got_milli / 10, t->got_milli % 10, t->part_milli / 10, t->part_milli % 10);
    print_judgement(t);
}

static void print_trial(const struct trial *t)
{
    char uuid[48];

    uuid_text(&t->uuid, uuid);
    printf("GPU %d: %s, %s\n", t->device, t->name, uuid);
    print_bytes("part", t->part);
    print_bytes("total, as shown", t->total);
    print_bytes("free, as shown", t->free);
    if (t->answer_count > 0)
        print_bytes("filled", t->filled);
    for (int i = 0; i < t->answer_count; i++)
        print_answer(&t->answers[i]);
    if (t->answer_count > 0) {
        printf("  %-16s %s\n", "freed, and again", t->lost ? "LOST" : "given");
        print_computing(t);
    }
    if (t->verdict == VERDICT_UNTESTED)
        printf("  %-16s %s\n", "not tested", t->reason);
}

static void print_verdict(const struct trial *trials, int count, const char *reason)
{
    uint64_t beyond = 0;
    bool lost = false, unseen = false;

    for (int i = 0; i < count; i++) {
        beyond += trials[i].beyond;
        lost |= trials[i].lost;
        unseen |= trials[i].unseen;
    }
    switch (verdict_of(trials, count)) {
    case VERDICT_HELD:
        printf("held: no way gave more memory than the part\n");
        break;
    case VERDICT_WHOLE:
        printf("whole: a whole device has no part to hold\n");
        break;
    case VERDICT_UNTESTED:
        printf("untested: %s\n", reason);
        break;
    case VERDICT_BROKEN:
        if (beyond > 0)
            printf("not enforced: %" PRIu64 " bytes beyond the part\n", beyond);
        if (lost)
            printf("not as promised: memory that was freed did not come back\n");
        if (unseen)
            printf("not enforced: computing went past the shim\n");
        break;
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Texts are ours or names of devices: what would need to be escaped is not in them. */
static void json_text(const char *key, const char *text)
{
    printf("\"%s\":\"", key);
    for (; *text; text++)
        putchar(*text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text);
    printf("\"");
}

static void json_bytes(const char *key, uint64_t bytes)
{
    printf(",\"%s\":%" PRIu64, key, bytes);
}

static void json_answers(const struct trial *t)
{
    printf(",\"ways\":[");
    for (int i = 0; i < t->answer_count; i++) {
        const struct answer *a = &t->answers[i];

        printf("%s{", i ? "," : "");
        json_text("way", a->way);
        printf(",");
        json_text("result", outcome(a->code));
        if (a->code >= 0)
            printf(",\"code\":%d", a->code);
        printf("}");
    }
    printf("]");
}

static void json_computing(const struct trial *t)
{
    if (!is_computing_known(t))
        return;
    printf("\"computing_part\":%d.%03d,\"computing_got\":%d.%03d,", t->part_milli / WHOLE_MILLI,
           t->part_milli % WHOLE_MILLI, t->got_milli / WHOLE_MILLI, t->got_milli % WHOLE_MILLI);
    if (t->contended_milli >= 0)
        printf("\"computing_contended\":%d.%03d,\"computing_unseen\":%s,",
               t->contended_milli / WHOLE_MILLI, t->contended_milli % WHOLE_MILLI,
               t->unseen ? "true" : "false");
}

static void json_trial(const struct trial *t)
{
    char uuid[48];

    uuid_text(&t->uuid, uuid);
    printf("{\"device\":%d,", t->device);
    json_text("name", t->name);
    printf(",");
    json_text("uuid", uuid);
    json_bytes("part", t->part);
    json_bytes("total", t->total);
    json_bytes("free", t->free);
    json_bytes("filled", t->filled);
    json_bytes("beyond", t->beyond);
    json_answers(t);
    printf(",\"lost\":%s,", t->lost ? "true" : "false");
    json_computing(t);
    json_text("verdict", words[t->verdict]);
    if (t->verdict == VERDICT_UNTESTED) {
        printf(",");
        json_text("reason", t->reason);
    }
    printf("}");
}

static void print_json(const struct trial *trials, int count, const char *reason)
{
    enum verdict verdict = verdict_of(trials, count);

    printf("{");
    json_text("verdict", words[verdict]);
    if (verdict == VERDICT_UNTESTED) {
        printf(",");
        json_text("reason", reason);
    }
    printf(",\"devices\":[");
    for (int i = 0; i < count; i++) {
        printf(i ? "," : "");
        json_trial(&trials[i]);
    }
    printf("]}\n");
}

int report(const struct trial *trials, int count, const char *reason, bool json)
{
    static const int status[] = {
        [VERDICT_HELD] = 0, [VERDICT_WHOLE] = 0, [VERDICT_UNTESTED] = 2, [VERDICT_BROKEN] = 1};

    for (int i = 0; i < count && reason == NULL; i++)
        if (trials[i].verdict == VERDICT_UNTESTED)
            reason = trials[i].reason;
    if (json) {
        print_json(trials, count, reason);
    } else {
        for (int i = 0; i < count; i++)
            print_trial(&trials[i]);
        print_verdict(trials, count, reason);
    }
    return status[verdict_of(trials, count)];
}
