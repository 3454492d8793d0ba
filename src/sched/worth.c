/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/worth.h"

#include <stdbool.h>
#include <string.h>

#define N WORTH_SIZES_MAX
#define ONE (1LL << 32)         /* of what is in fixed point here */
#define TOLERANCE (ONE >> 11)   /* of a device */
#define PIVOT_MIN (ONE >> 10)   /* smaller ones are noise */
#define INVERSE_MAX (ONE << 10) /* larger ones too: so no sum below leaves 64 bits */
#define NUMBER_MAX (1LL << 14)  /* of requests of one size, in proportion */
#define WORTH_ONE (1LL << 20)   /* of what comes out */

/* The simplex method's state: a basis of one column per size. A column is a pattern, which costs
 * a device, or what is cut of one size beyond what is asked for, which costs nothing. */
struct cutting {
    uint32_t count;
    int32_t milli[N];
    int64_t number[N];
    int64_t inverse[N][N];          /* of the basis, fixed point */
    bool costs[N];                  /* the column of each row */
    int64_t price[N];               /* of each size, in devices, fixed point */
    int32_t grain;                  /* divides all sizes and a device */
    int64_t value[WORTH_MILLI + 1]; /* of x grains, by the prices */
    int8_t last[WORTH_MILLI + 1];   /* the size to cut off x grains; -1: a grain is waste */
};

static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((__int128)a * b / ONE);
}

static int32_t divisor(int32_t a, int32_t b)
{
    while (b != 0) {
        int32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static void start(struct cutting *c, const struct worth_size *sizes, uint32_t count)
{
    int64_t most = 1;
    for (uint32_t i = 0; i < count; i++)
        most = sizes[i].number > most ? sizes[i].number : most;
    memset(c, 0, sizeof(*c));
    c->count = count;
    c->grain = WORTH_MILLI;
    for (uint32_t i = 0; i < count; i++) { /* each device cut into one size alone */
        int64_t number = (int64_t)((__int128)sizes[i].number * NUMBER_MAX / most);
        c->milli[i] = sizes[i].milli;
        c->number[i] = number > 0 ? number : 1;
        c->inverse[i][i] = ONE / (WORTH_MILLI / sizes[i].milli);
        c->costs[i] = true;
        c->grain = divisor(sizes[i].milli, c->grain);
    }
}

static void set_prices(struct cutting *c)
{
    for (uint32_t j = 0; j < c->count; j++) {
        c->price[j] = 0;
        for (uint32_t i = 0; i < c->count; i++)
            c->price[j] += c->costs[i] ? c->inverse[i][j] : 0;
    }
}

/* The best use of every hole by the prices. */
static void set_values(struct cutting *c)
{
    int32_t grains = WORTH_MILLI / c->grain;
    c->value[0] = 0;
    c->last[0] = -1;
    for (int32_t x = 1; x <= grains; x++) {
        c->value[x] = c->value[x - 1];
        c->last[x] = -1;
        for (uint32_t i = 0; i < c->count; i++) {
            int32_t rest = x - c->milli[i] / c->grain;
            if (rest < 0 || c->value[rest] + c->price[i] <= c->value[x])
                continue;
            c->value[x] = c->value[rest] + c->price[i];
            c->last[x] = (int8_t)i;
        }
    }
}

/* The column that the prices undervalue most, in RET_COLUMN; false where there is none. */
static bool entering(const struct cutting *c, int64_t ret_column[N], bool *ret_costs)
{
    int32_t x = WORTH_MILLI / c->grain;
    int64_t most = c->value[x] - ONE;
    uint32_t cheap = 0;
    for (uint32_t j = 1; j < c->count; j++)
        cheap = c->price[j] < c->price[cheap] ? j : cheap;
    memset(ret_column, 0, N * sizeof(ret_column[0]));
    if (-c->price[cheap] > most && -c->price[cheap] > TOLERANCE) {
        ret_column[cheap] = -1;
        *ret_costs = false;
        return true;
    }
    if (most <= TOLERANCE)
        return false;
    while (x > 0) {
        int8_t i = c->last[x];
        x -= i < 0 ? 1 : c->milli[i] / c->grain;
        if (i >= 0)
            ret_column[i]++;
    }
    *ret_costs = true;
    return true;
}

/* The row whose pattern the column uses up first; N where there is none. RET_TAKE: how much of
 * each row's pattern one of the column stands for. */
static uint32_t leaving(const struct cutting *c, const int64_t column[N], int64_t ret_take[N])
{
    uint32_t row = N;
    int64_t least = 0; /* devices in the row's pattern */
    for (uint32_t i = 0; i < c->count; i++) {
        int64_t amount = 0, take = 0;
        for (uint32_t j = 0; j < c->count; j++) {
            take += c->inverse[i][j] * column[j];
            amount += c->inverse[i][j] * c->number[j];
        }
        ret_take[i] = take;
        amount = amount > 0 ? amount : 0;
        if (take < PIVOT_MIN)
            continue;
        if (row < N) { /* is amount / take the smaller one? of equals the surer pivot */
            __int128 mine = (__int128)amount * ret_take[row], best = (__int128)least * take;
            if (mine > best || (mine == best && take <= ret_take[row]))
                continue;
        }
        row = i;
        least = amount;
    }
    return row;
}

/* Takes the column into the basis; false, and nothing is done, where rounding forbids it. */
static bool pivot(struct cutting *c, const int64_t column[N], bool costs)
{
    int64_t take[N], inverse[N][N];
    uint32_t row = leaving(c, column, take);
    if (row == N)
        return false;
    for (uint32_t j = 0; j < c->count; j++) {
        inverse[row][j] = (int64_t)((__int128)c->inverse[row][j] * ONE / take[row]);
        if (inverse[row][j] > INVERSE_MAX || inverse[row][j] < -INVERSE_MAX)
            return false;
    }
    for (uint32_t i = 0; i < c->count; i++)
        for (uint32_t j = 0; j < c->count && i != row; j++) {
            inverse[i][j] = c->inverse[i][j] - times(take[i], inverse[row][j]);
            if (inverse[i][j] > INVERSE_MAX || inverse[i][j] < -INVERSE_MAX)
                return false;
        }
    for (uint32_t i = 0; i < c->count; i++)
        memcpy(c->inverse[i], inverse[i], c->count * sizeof(inverse[i][0]));
    c->costs[row] = costs;
    return true;
}

void worth_make(const struct worth_size *sizes, uint32_t count, int32_t ret_worth[WORTH_MILLI + 1])
{
    struct cutting c;
    int64_t column[N];
    bool costs;
    start(&c, sizes, count);
    for (uint32_t step = 0; step < WORTH_STEPS_MAX; step++) {
        set_prices(&c);
        set_values(&c);
        if (!entering(&c, column, &costs) || !pivot(&c, column, costs))
            break;
    }
    int64_t whole = c.value[WORTH_MILLI / c.grain];
    for (int32_t x = 0; x <= WORTH_MILLI; x++)
        ret_worth[x] =
            whole > 0 ? (int32_t)((__int128)c.value[x / c.grain] * WORTH_MILLI * WORTH_ONE / whole)
                      : 0;
    ret_worth[WORTH_MILLI] = WORTH_MILLI * WORTH_ONE;
}
