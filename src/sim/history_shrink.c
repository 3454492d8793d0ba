/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/history_shrink.h"

#include <string.h>

struct shrinking {
    struct history_steps *steps;
    history_fails_fn *fails;
    void *user;
    int32_t trials, left;
};

/* Takes COUNT steps from AT on away if the rest still fails. */
static bool without(struct shrinking *s, size_t at, size_t count)
{
    struct history_steps rest = {0};
    size_t after = s->steps->len - at - count;
    bool fails;

    vec_reserve(&rest, s->steps->len);
    memcpy(rest.items, s->steps->items, at * sizeof(*rest.items));
    memcpy(rest.items + at, s->steps->items + at + count, after * sizeof(*rest.items));
    rest.len = at + after;
    s->trials++;
    s->left--;
    fails = s->fails(s->user, &rest);
    if (fails) {
        vec_done(s->steps);
        *s->steps = rest;
    } else {
        vec_done(&rest);
    }
    return fails;
}

/* One way through the list, from its end: what happens late depends on what happens early. */
static bool pass(struct shrinking *s, size_t piece)
{
    bool any = false;
    size_t at = s->steps->len;

    while (at > 0 && s->left > 0) {
        size_t count = piece < at ? piece : at;

        at -= count;
        any |= without(s, at, count);
    }
    return any;
}

int32_t history_shrink(struct history_steps *steps, history_fails_fn *fails, void *user,
                       int32_t trials)
{
    struct shrinking s = {steps, fails, user, 0, trials};
    size_t piece = steps->len / 2 + 1;

    while (s.left > 0 && steps->len > 0) {
        bool any = pass(&s, piece);

        if (piece == 1 && !any)
            break;
        piece = piece > 1 ? piece / 2 : 1;
    }
    return s.trials;
}
