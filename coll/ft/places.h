/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables that are sorted by the id of a member, which each of their structs begins with.
 */
#ifndef WEFT_FT_PLACES_H
#define WEFT_FT_PLACES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Where an id is in a table of `count` structs of `size` bytes, or would be. */
static inline uint32_t ft_place(const void *table, uint32_t count, size_t size,
				uint64_t id)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		const uint32_t mid = low + (high - low) / 2;
		uint64_t at;

		memcpy(&at, (const char *)table + mid * size, sizeof(at));
		if (at < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

#endif
