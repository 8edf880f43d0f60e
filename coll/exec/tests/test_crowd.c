/* SPDX-License-Identifier: BSD-2-Clause */
/* Who shares processors with whom. */
#include "config.h"

#include <string.h>

#include "coll/exec/crowd.h"
#include "util/tap.h"

/* Processors `first` to `last` of a machine. */
static struct crowd_place place(const char *kernel, int first, int last)
{
	struct crowd_place p = {.kernel = ""};

	memcpy(p.kernel, kernel, strlen(kernel));
	for (int i = first; i <= last; i++)
		p.cpus[i / 8] |= (uint8_t)(1u << i % 8);
	return p;
}

/* `ranks` of them at each of the places; the first place is ours. */
static bool tight(const struct crowd_place *places, int count, int ranks)
{
	struct crowd crowd = {0};

	for (int i = 0; i < count * ranks; i++)
		crowd_add(&crowd, &places[0], &places[i % count]);
	return crowd_is_tight(&crowd);
}

int main(void)
{
	const struct crowd_place anywhere = place("a", 0, 3);
	const struct crowd_place bound[] = {place("a", 0, 0), place("a", 1, 1),
					    place("a", 900, 900)};
	const struct crowd_place hosts[] = {place("a", 0, 1), place("b", 0, 1)};
	const struct crowd_place overlap[] = {place("a", 0, 1), place("a", 1, 2)};
	const struct crowd_place unknown = place("", 0, 0);
	struct crowd_place own;

	tap_ok(!tight(&anywhere, 1, 4), "as many ranks as processors");
	tap_ok(tight(&anywhere, 1, 5), "one rank more");
	tap_ok(!tight(bound, 3, 1), "ranks that are bound to one processor each");
	tap_ok(tight(bound, 3, 2), "two ranks bound to each");
	tap_ok(!tight(hosts, 2, 2), "ranks of another machine don't count");
	tap_ok(tight(hosts, 2, 3), "those of our own do");
	tap_ok(!tight(overlap, 2, 1), "two ranks on three processors");
	tap_ok(tight(overlap, 2, 2), "four ranks on three processors");
	tap_ok(!tight(&unknown, 1, 8), "where the machine is not known, nothing is");
	crowd_place_own(&own);
	tap_ok(own.kernel[CROWD_KERNEL_MAX - 1] == '\0' && !tight(&own, 1, 1),
	       "a rank alone has a processor");
	tap_ok(!own.kernel[0] || tight(&own, 1, 8 * CROWD_CPU_BYTES + 1),
	       "more than there can be are too many");
	return tap_done();
}
