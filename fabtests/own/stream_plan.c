/* SPDX-License-Identifier: BSD-2-Clause */
/* What a checked stream consists of. See stream_plan.h. */
#include "config.h"

#include "fabtests/own/stream_plan.h"

#include <string.h>

static uint64_t mix(uint64_t z)
{
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

struct stream_unit stream_unit_of(const struct stream_plan *p, uint32_t number)
{
	/* Of sixteen, four are tiny, six of a packet, five of some, one of many. */
	static const uint32_t most[16] = {16,	    16,	      16,	16,
					  4096,	    4096,     4096,	4096,
					  4096,	    4096,     64 << 10, 64 << 10,
					  64 << 10, 64 << 10, 64 << 10, STREAM_MOST};
	uint64_t z = mix(p->seed + (number + 1) * UINT64_C(0x9e3779b97f4a7c15));
	struct stream_unit u = {.kind = (enum stream_kind)(z % STREAM_KINDS),
				.seed = mix(z + 1)};

	u.len = (z >> 16) % (most[z >> 8 & 15] + 1);
	if (u.kind == STREAM_READ)
		u.from = (z >> 40) % ((STREAM_LIBRARY - u.len) / 8) * 8;
	return u;
}

struct stream_plan stream_plan_make(uint64_t seed, uint64_t bytes)
{
	struct stream_plan p = {.seed = seed};

	while (p.bytes < bytes) {
		struct stream_unit u = stream_unit_of(&p, p.count++);

		p.bytes += u.len;
		p.kinds[u.kind]++;
	}
	return p;
}

static uint64_t word_of(uint64_t seed, size_t place)
{
	return (seed + place) * UINT64_C(0x9e3779b97f4a7c15);
}

void stream_fill(void *mem, size_t len, uint64_t seed, size_t first)
{
	uint8_t *at = mem;

	for (; len >= 8; at += 8, len -= 8) {
		uint64_t w = word_of(seed, first++);

		memcpy(at, &w, 8);
	}
	if (len) {
		uint64_t w = word_of(seed, first);

		memcpy(at, &w, len);
	}
}

bool stream_check(struct side *s, const void *mem, size_t len, uint64_t seed,
		  size_t first, const char *what)
{
	const uint8_t *b = mem;

	for (size_t at = 0; at < len; at += 8) {
		uint64_t w = word_of(seed, first + at / 8);
		size_t n = len - at < 8 ? len - at : 8;
		uint8_t want[8];

		if (memcmp(b + at, &w, n) == 0)
			continue;
		memcpy(want, &w, 8);
		for (size_t i = 0; i < n; i++) {
			if (b[at + i] != want[i])
				return side_check(
					s, false,
					"%s: byte %zu of %zu is 0x%02x, want 0x%02x",
					what, at + i, len, b[at + i], want[i]);
		}
	}
	return true;
}
