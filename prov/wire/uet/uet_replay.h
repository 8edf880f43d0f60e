/* SPDX-License-Identifier: BSD-2-Clause */
/* Which numbers of a sender were seen: each is accepted once, those that are too old
 * never. Pure. */
#ifndef WEFT_WIRE_UET_UET_REPLAY_H
#define WEFT_WIRE_UET_UET_REPLAY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* How far numbers may overtake each other: paths differ in length. */
#define UET_REPLAY_WINDOW 4096

struct uet_replay {
	uint64_t next; /* one more than the highest that was seen */
	uint64_t seen[UET_REPLAY_WINDOW / 64];
};

static inline uint64_t uet_replay_bit(uint64_t n)
{
	return UINT64_C(1) << n % 64;
}

static inline uint64_t *uet_replay_word(struct uet_replay *r, uint64_t n)
{
	return &r->seen[n / 64 % (UET_REPLAY_WINDOW / 64)];
}

/* Whether it would be accepted. The lowest 63 of the window are given up, so that words
 * can be cleared as a whole. */
static inline bool uet_replay_fresh(struct uet_replay *r, uint64_t n)
{
	if (n >= r->next)
		return true;
	if (n / 64 + UET_REPLAY_WINDOW / 64 <= (r->next - 1) / 64)
		return false;
	return !(*uet_replay_word(r, n) & uet_replay_bit(n));
}

/* Only after the sender has proved that it is its number. */
static inline void uet_replay_take(struct uet_replay *r, uint64_t n)
{
	if (n >= r->next) {
		uint64_t word = r->next ? (r->next - 1) / 64 : 0;
		uint64_t last = n / 64;

		if (last - word >= UET_REPLAY_WINDOW / 64)
			memset(r->seen, 0, sizeof(r->seen));
		for (uint64_t w = word + 1;
		     w <= last && last - word < UET_REPLAY_WINDOW / 64; w++)
			*uet_replay_word(r, w * 64) = 0;
		r->next = n + 1;
	}
	*uet_replay_word(r, n) |= uet_replay_bit(n);
}

#endif
