/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target as a plain test: its valid messages, then changed ones. The seed is
 * printed; give it as the first argument to see the same inputs again.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "tests/fuzz/fuzz.h"
#include "util/tap.h"

#define INPUTS 200000

/* xorshift64*: small, and the same everywhere. */
static uint64_t draw(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Values that lie at the edges of what a field can hold. */
static uint8_t edge_byte(uint64_t *state)
{
	static const uint8_t edge[] = {0x00, 0x01, 0x7f, 0x80, 0xff};

	return edge[draw(state) % sizeof(edge)];
}

static size_t change(uint64_t *state, uint8_t *bytes, size_t len)
{
	unsigned changes = (unsigned)(draw(state) % 4);

	for (unsigned i = 0; i < changes && len > 0; i++) {
		size_t at = draw(state) % len;

		switch (draw(state) % 5) {
		case 0:
			bytes[at] ^= (uint8_t)(1u << draw(state) % 8);
			break;
		case 1:
			bytes[at] = edge_byte(state);
			break;
		case 2:
			memset(bytes + at, edge_byte(state), len - at < 8 ? len - at : 8);
			break;
		case 3:
			len = at;
			break;
		default:
			for (size_t n = draw(state) % 16; n > 0 && len < FUZZ_ROOM; n--)
				bytes[len++] = (uint8_t)draw(state);
		}
	}
	return len;
}

/* In memory of exactly that size. */
static bool one(const uint8_t *bytes, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1);
	bool accepted;

	if (!exact)
		tap_bail("out of memory");
	memcpy(exact, bytes, len);
	accepted = fuzz_one(exact, len);
	free(exact);
	return accepted;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	uint64_t state = seed * 2 + 1;
	uint8_t bytes[FUZZ_ROOM] = {0};
	unsigned seeds = 0, accepted = 0, refused = 0;
	size_t len;

	tap_diag("seed %" PRIu64, seed);
	while ((len = fuzz_seed(seeds, bytes)) > 0) {
		tap_ok(one(bytes, len), "valid message %u is accepted", seeds);
		seeds++;
	}
	for (unsigned i = 0; i < INPUTS; i++) {
		memset(bytes, 0, sizeof(bytes));
		len = fuzz_seed((unsigned)(draw(&state) % seeds), bytes);
		len = change(&state, bytes, len);
		if (one(bytes, len))
			accepted++;
		else
			refused++;
	}
	tap_ok(accepted > 0 && refused > 0,
	       "%u changed messages: %u accepted, %u refused", INPUTS, accepted, refused);
	return tap_done();
}
