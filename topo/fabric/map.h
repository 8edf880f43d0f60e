/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fabric map: a text file that says where hosts stand and on which rails they are.
 *
 *	weft-fabric 1
 *	# name and speed of a rail, in bits per second
 *	rail r0 400G
 *	rail r1 400G
 *	# hosts, place, the device on each rail
 *	host gpu[001-016] b1/z1/k01 r0=mlx5_0 r1=mlx5_1
 *	host gpu017 b1/z1/- r0=mlx5_0
 *	host login b1/-/-
 *
 * Words are separated by blanks; '#' begins a comment; the first line that has words
 *names the format and its version. A host name may have one range, whose bounds have
 *equally many digits, and behind which no digit comes. A rail is said before it is used;
 *a host that has no rail in the map has unknown ones. The README.md beside it says the
 *same at length.
 */
#ifndef WEFT_TOPO_FABRIC_MAP_H
#define WEFT_TOPO_FABRIC_MAP_H

#include <stdint.h>

#include "topo/fabric/place.h"

#define FABRIC_RAILS_MAX  16u
#define FABRIC_DEVICE_MAX 31
/* Lines that name hosts; bytes of a file. */
#define FABRIC_ROWS_MAX 131072u
#define FABRIC_FILE_MAX ((size_t)64 << 20)

struct fabric_map;

struct fabric_rail {
	char name[FABRIC_PART_MAX + 1];
	uint64_t bits_per_s;
};

/* A host of the map: device[i] is its device on rail i, empty: none. */
struct fabric_host {
	struct fabric_place place;
	char device[FABRIC_RAILS_MAX][FABRIC_DEVICE_MAX + 1];
};

/* What was found, where, what to do about it. */
struct fabric_error {
	unsigned line; /* from 1; 0: of no line */
	char text[240];
};

/* Reads `len` bytes; *map belongs to the caller then. 0; -EINVAL: *error says why;
 * -ENOMEM. */
int fabric_map_parse(const char *text, size_t len, struct fabric_map **map,
		     struct fabric_error *error);
/* The same of a file; also -errno of opening and reading it, which *error says too. */
int fabric_map_load(const char *path, struct fabric_map **map,
		    struct fabric_error *error);
void fabric_map_free(struct fabric_map *map);

/* False: the map does not have it; *host is untouched. */
bool fabric_map_host(const struct fabric_map *map, const char *name,
		     struct fabric_host *host);

/* Rails, numbered in the order of their lines. */
unsigned fabric_map_rails(const struct fabric_map *map);
const struct fabric_rail *fabric_map_rail(const struct fabric_map *map, unsigned rail);
/* How many hosts. */
uint64_t fabric_map_hosts(const struct fabric_map *map);

#endif
