/* SPDX-License-Identifier: BSD-2-Clause */
/* A ring of bits, one for each number of a window: number n is bit n modulo the window,
 * a power of two of at least 64. The words belong to whoever holds the ring. */
#ifndef WEFT_DQPLB_BITS_H
#define WEFT_DQPLB_BITS_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/dqplb/imm.h"

struct dqplb_bits {
	uint64_t *word;
	uint32_t mask; /* of numbers: window - 1 */
};

static inline uint64_t *bits_word(const struct dqplb_bits *b, uint32_t n)
{
	return &b->word[(n & b->mask) >> 6];
}

static inline bool bits_test(const struct dqplb_bits *b, uint32_t n)
{
	return *bits_word(b, n) >> (n & 63) & 1;
}

static inline void bits_set(const struct dqplb_bits *b, uint32_t n)
{
	*bits_word(b, n) |= UINT64_C(1) << (n & 63);
}

static inline void bits_clear(const struct dqplb_bits *b, uint32_t n)
{
	*bits_word(b, n) &= ~(UINT64_C(1) << (n & 63));
}

/* Bits n to n + 63: n is bit 0. */
static inline uint64_t bits_get64(const struct dqplb_bits *b, uint32_t n)
{
	uint32_t off = n & 63;
	uint64_t low = *bits_word(b, n) >> off;

	return off == 0 ? low : low | *bits_word(b, n + 64) << (64 - off);
}

/* `count` ones from bit 0 on; count <= 64. */
static inline uint64_t bits_low(uint32_t count)
{
	return count >= 64 ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

#endif
