/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded pseudo-random numbers for tests, simulation and jitter: xoshiro256** (Blackman and
 * Vigna, 2018), seeded through splitmix64. Same seed, same sequence, on every machine. Never
 * for secrets: those come from libsodium.
 */
#ifndef ALLOT_BASE_RNG_H
#define ALLOT_BASE_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

/* Starts the sequence of SEED; every seed is as good as another. */
void rng_seed(struct rng *r, uint64_t seed);
/* The next 64 bits. */
uint64_t rng_u64(struct rng *r);
/* Uniform in [0, n), without modulo bias; n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);

#endif
