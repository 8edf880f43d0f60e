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
 *	# many hosts, that fill 2 buildings of 4 zones of 16 racks in order
 *	grid node[0001-4096] 2/4/16
 *	# what joins them
 *	ranks 8
 *	tier rack latency=1us
 *	tier zone latency=7us over=2.8
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
#define FABRIC_RANKS_MAX  1024u /* of a host */
#define FABRIC_TORUS_DIMS 3u
/* Places of a torus; links from one to another at most. */
#define FABRIC_TORUS_PLACES 65536u
#define FABRIC_TORUS_HOPS   32u
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

/*
 * The network in which two hosts meet whose nearest common place it is: "rack" joins
 * hosts, "zone" joins racks, and so on; "host" joins the ranks of one host.
 */
struct fabric_tier {
	unsigned line;		     /* that says it; 0: none does */
	enum fabric_distance within; /* the tier above; FABRIC_UNKNOWN: the highest */
	uint64_t latency_ps;	     /* one way, from host to host */
	uint64_t bits_per_s;	     /* each way, of what it joins each: 0: by `over` */
	uint32_t over; /* oversubscription, in thousandths: so much more can come from
			* below than goes through */
	uint32_t torus[FABRIC_TORUS_DIMS]; /* places along each way; 0: no torus.
					    * bits_per_s is of each link then */
	uint64_t optical_ps; /* torus: switched to a job's hosts in that time; 0: fixed */
	bool mesh;    /* what it joins is linked pair by pair, and not by a switch */
	bool by_rail; /* each rail has a network of its own here */
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
/* What is said of a tier; NULL: nothing. */
const struct fabric_tier *fabric_map_tier(const struct fabric_map *map,
					  enum fabric_distance d);
/* Reads "4x4x2" of `len` bytes. False: it is no torus within the limits. */
bool fabric_torus_take(const char *text, size_t len, uint32_t torus[FABRIC_TORUS_DIMS]);
/* Ranks of a host; 1 where the map doesn't say. */
uint32_t fabric_map_ranks(const struct fabric_map *map);

/* The next host, in the order of the file; begins at {0}. False: there is none. */
struct fabric_cursor {
	size_t row;
	uint32_t host;
};
bool fabric_map_next(const struct fabric_map *map, struct fabric_cursor *at,
		     struct fabric_host *host, unsigned *line);

/* How many hosts. */
uint64_t fabric_map_hosts(const struct fabric_map *map);

#endif
