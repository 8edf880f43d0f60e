/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers, and the 32 bits of immediate data that carry them: the only place that knows
 * the layout (rule A1).
 *
 *   0-23   sequence number
 *   24-29  generation of the number space
 *   30     fast: the transfer is this one segment, and no record says more of it
 *   31     ordered, with fast only: its event waits for every number before it
 *
 * Inside, a number is a counter of 32 bits that wraps; its low 24 bits travel.
 */
#ifndef WEFT_DQPLB_IMM_H
#define WEFT_DQPLB_IMM_H

#include <stdbool.h>
#include <stdint.h>

#define DQPLB_SEQ_MASK	  0xffffffu
#define DQPLB_SEQ_HALF	  0x800000u
#define DQPLB_GEN_MASK	  0x3fu
#define DQPLB_GEN_SHIFT	  24
#define DQPLB_IMM_FAST	  (1u << 30)
#define DQPLB_IMM_ORDERED (1u << 31)

/* Window: a power of two, far below half the period, so that "before" and "behind" are
 * never mixed up. */
#define DQPLB_WINDOW_MIN 64u
#define DQPLB_WINDOW_MAX 16384u

/* Lanes of a link, and receive queues that they may be fed from: one bit each. */
#define DQPLB_LANES_MAX 64u

/* How far a is behind b, both cut to 24 bits. */
static inline uint32_t dqplb_seq_behind(uint32_t a, uint32_t b)
{
	return (a - b) & DQPLB_SEQ_MASK;
}

/* The counter next to `near` that has these 24 bits. */
static inline uint32_t dqplb_seq_widen(uint32_t near, uint32_t seq)
{
	uint32_t d = dqplb_seq_behind(seq, near);

	return d < DQPLB_SEQ_HALF ? near + d : near + d - (DQPLB_SEQ_MASK + 1);
}

static inline uint32_t dqplb_imm_make(uint32_t number, uint32_t gen, uint32_t flags)
{
	return (number & DQPLB_SEQ_MASK) | gen << DQPLB_GEN_SHIFT | flags;
}

static inline uint32_t dqplb_imm_gen(uint32_t imm)
{
	return imm >> DQPLB_GEN_SHIFT & DQPLB_GEN_MASK;
}

static inline bool dqplb_window_valid(uint32_t window)
{
	return window >= DQPLB_WINDOW_MIN && window <= DQPLB_WINDOW_MAX &&
	       (window & (window - 1)) == 0;
}

#endif
