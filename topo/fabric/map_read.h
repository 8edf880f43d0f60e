/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside topo/fabric: what the files that read a map share. A row is one line of hosts
 * (of a grid: one rack of it).
 */
#ifndef WEFT_TOPO_FABRIC_MAP_READ_H
#define WEFT_TOPO_FABRIC_MAP_READ_H

#include "topo/fabric/map.h"
#include "util/span.h"

/* Hosts prefix + number of `width` digits + suffix; width 0: prefix alone. */
struct row {
	char prefix[FABRIC_HOST_MAX + 1];
	char suffix[FABRIC_HOST_MAX + 1];
	uint32_t from;
	uint32_t to;
	uint8_t width;
	unsigned line;
	struct fabric_host *host; /* without its name */
};

struct fabric_map {
	struct fabric_rail rail[FABRIC_RAILS_MAX];
	unsigned rails;
	struct row *row;
	size_t rows;
	size_t room;
	uint32_t *order; /* rows as the file has them */
	struct fabric_tier tier[FABRIC_UNKNOWN];
	uint32_t ranks; /* of a host; 0: not said */
};

/* The text of the line that is read. */
struct reader {
	struct fabric_map *map;
	struct fabric_error *error;
	struct span left; /* not read yet */
	unsigned line;
	bool named; /* the format */
};

/* -EINVAL, and what is wrong with the line. */
__attribute__((format(printf, 2, 3))) int map_fail(struct reader *r, const char *fmt,
						   ...);

/* Room for one more, zeroed; NULL: no memory. */
struct row *map_row_add(struct fabric_map *map);
/* "gpu[001-016]", whose bracket is at `open`. */
int map_row_range(struct reader *r, struct row *row, struct span name, const char *open);

/* "400G": M, G and T are powers of 1000. */
bool map_speed(struct span w, uint64_t *bits_per_s);

/* Lines of tiers: map_tier.c. What they say together is looked at in the end. */
int map_tier_read(struct reader *r);
int map_ranks_read(struct reader *r);
int map_grid_read(struct reader *r);
int map_tiers_check(struct reader *r);

#endif
