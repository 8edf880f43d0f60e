/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside sim_net: what is known while a network is made. */
#ifndef WEFT_TOPO_SIM_NET_IN_H
#define WEFT_TOPO_SIM_NET_IN_H

#include "topo/sim/net.h"

#define NET_LINKS_MAX (UINT32_C(1) << 24)

struct sim_net_store {
	void **piece;
	size_t count, room;
};

struct net_host {
	double port;			/* bytes/s of a rank's port, where all is well */
	double part;			/* of it that is there */
	uint32_t place[FABRIC_UNKNOWN]; /* its number at each tier */
	uint32_t rail_all;		/* a bit for each rail that it is on... */
	uint32_t rail;			/* ...and that is not dead */
	unsigned line;
	bool dead;   /* no rank is placed there */
	bool uneven; /* a rail of it is slow: see net_fault_port() */
};

/* What sim_fault.name says, and where that was found. */
enum net_fault_kind { FAULT_HOST, FAULT_RAIL, FAULT_PLACE, FAULT_PLACE_RAIL, FAULT_PAIR };

struct net_fault {
	enum net_fault_kind kind;
	struct fabric_place place, other; /* HOST: place.host */
	enum fabric_distance below; /* the tier whose groups are places like these */
	unsigned rail;
	double part;
	uint32_t number, other_number; /* of the places; SHARE_NONE: no host is there */
	bool used;
};

struct net_build {
	const struct fabric_map *map;
	const struct sim_net_options *options;
	struct fabric_error *error;
	struct sim_net *net;
	struct net_host *host;
	uint32_t hosts;
	uint32_t per_host;
	uint32_t places[FABRIC_UNKNOWN]; /* how many there are */
	uint32_t *slot;			 /* by rank: host * per_host + index */
	struct net_fault fault[SIM_FAULTS_MAX];
};

/* Rank `index` of a host has one of the host's rails (a bit each), by turns: its number
 * among the map's. */
static inline uint32_t net_rail(uint32_t left, uint32_t index)
{
	if (!left)
		return 0;
	for (index %= (uint32_t)__builtin_popcount(left); index; index--)
		left &= left - 1;
	return (uint32_t)__builtin_ctz(left);
}

__attribute__((format(printf, 3, 4))) int net_fail(struct net_build *b, unsigned line,
						   const char *fmt, ...);
/* Zeroed; lives as long as the network. */
void *net_alloc(struct net_build *b, size_t count, size_t size);

/* Groups of one level, as they are made. */
struct tier_build {
	const struct fabric_tier *tier;
	enum fabric_distance below;
	bool by_rail, below_by_rail;
	uint32_t rails;
	uint32_t groups, children;
	uint32_t *group_of_child;
	double *brings; /* by child: what ports of ranks below it can bring */
	double *wide;	/* by child: what its link carries, where all is well */
	double *part;	/* by child: of that, what is there */
};

int net_links_make(struct net_build *b);

/* ---- net_torus.c ---- */
/* Places and links of a level that is a torus. */
int net_torus_make(struct net_build *b, struct sim_level *l, const struct tier_build *t);
int net_torus_capacities(struct net_build *b, unsigned at, const struct tier_build *t,
			 double *capacity, uint8_t *tier_of);
void net_torus_way(const struct sim_level *l, int32_t from, int32_t to,
		   struct sim_path *p);
/* What is left of a link, a byte a second at least. */
double net_left(double wide, double part);

/* ---- net_fault.c ---- */
/* What the options name, before hosts are read. */
int net_faults_read(struct net_build *b);
/* A host, whose places have numbers: what of it is slow or dead, and its port. */
int net_fault_host(struct net_build *b, struct net_host *h,
		   const struct fabric_place *place);
/* The port of a host's rank. */
double net_fault_port(const struct net_build *b, const struct net_host *h,
		      uint32_t index);
/* What is left of the link of a child of a level, whose children are those groups of the
 * tier below; rail: SHARE_NONE where all rails have one. */
double net_fault_part(struct net_build *b, enum fabric_distance below, uint32_t number,
		      uint32_t rail);
/* Of the link of two children of a mesh. */
double net_fault_pair(struct net_build *b, enum fabric_distance below, uint32_t one,
		      uint32_t other);
/* After all levels: what did not happen is refused, and dead links that part ranks. */
int net_faults_check(struct net_build *b);

#endif
