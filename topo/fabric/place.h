/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a host stands, and how far two hosts are from each other.
 *
 * A place is building/zone/rack, each a name or "-": not known. Zones are named within
 * their building, racks within their zone. What is not known equals nothing, not even
 * what else is not known: two hosts of unknown racks are not in the same rack.
 */
#ifndef WEFT_TOPO_FABRIC_PLACE_H
#define WEFT_TOPO_FABRIC_PLACE_H

#include <stdbool.h>
#include <stddef.h>

/* Longest names, without the zero byte. */
#define FABRIC_HOST_MAX 63
#define FABRIC_PART_MAX 31
/* Longest "building/zone/rack". */
#define FABRIC_PLACE_MAX (3 * FABRIC_PART_MAX + 2)

/* Strings that end in a zero byte; empty: not known. */
struct fabric_place {
	char host[FABRIC_HOST_MAX + 1];
	char building[FABRIC_PART_MAX + 1];
	char zone[FABRIC_PART_MAX + 1];
	char rack[FABRIC_PART_MAX + 1];
};

/* In ascending distance. What isn't known counts as the farthest that it can be within
 * what is known. */
enum fabric_distance {
	FABRIC_SAME_HOST,
	FABRIC_SAME_RACK,
	FABRIC_OTHER_RACK, /* of the same zone */
	FABRIC_OTHER_ZONE, /* of the same building */
	FABRIC_OTHER_BUILDING,
	FABRIC_UNKNOWN, /* a building is not known */
	FABRIC_DISTANCES
};

enum fabric_distance fabric_distance(const struct fabric_place *a,
				     const struct fabric_place *b);

/* "host", "rack", "zone", "building", "far", "unknown": what the two have in common. */
const char *fabric_distance_name(enum fabric_distance d);
/* FABRIC_DISTANCES: no such name. `name` has `len` bytes. */
enum fabric_distance fabric_distance_find(const char *name, size_t len);

/* Letters, digits, dot, underscore and hyphen, which isn't the first; 1 to `most`. */
bool fabric_name_valid(const char *name, size_t len, size_t most);

/*
 * Reads "building/zone/rack" of `len` bytes, which may come from a stranger, into the
 * three parts of *place; its host is left alone. False: it is not that, and *place is
 * untouched. A part below one that is not known can't be known.
 */
bool fabric_place_parse(const char *text, size_t len, struct fabric_place *place);

/* Writes what fabric_place_parse reads, and a zero byte; returns the length. */
size_t fabric_place_text(const struct fabric_place *place,
			 char text[FABRIC_PLACE_MAX + 1]);

#endif
