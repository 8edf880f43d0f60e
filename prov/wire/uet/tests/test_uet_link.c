/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the packets of a message are. */
#include "config.h"

#include "prov/wire/uet/uet_link.h"
#include "util/tap.h"

static size_t packets(size_t len, size_t part)
{
	return (len + part - 1) / part;
}

/* No more of them than of the longest that there may be, and the last no shorter than it
 * must be. */
static bool is_even(size_t len, uint32_t most)
{
	struct wire_link link = {.part = most};
	uint32_t part = uet_link_part(&link, len);
	size_t n = packets(len, most), last;

	if (!part || part > most || packets(len, part) != n)
		return false;
	last = len - (n - 1) * part;
	return part == most || part - last < 64 * n;
}

int main(void)
{
	static const uint32_t most[] = {1, 63, 64, 65, 1200, 1412, 8192, 16064, 16383};
	struct wire_link link = {.part = 16064};
	unsigned bad = 0;

	for (unsigned i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		for (size_t len = 1; len < 200000; len += len < 4000 ? 1 : 97)
			bad += !is_even(len, most[i]);
	}
	tap_is_int(bad, 0, "as many packets as there must be, about alike");
	tap_is_int(uet_link_part(&link, 1 << 20), 15936, "of 1 MiB");
	tap_is_int(uet_link_part(&link, 100), 128, "of less than one");
	tap_is_int(uet_link_part(&link, 16064), 16064, "of one");
	return tap_done();
}
