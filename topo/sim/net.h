/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network that ranks are placed on: of the fabric map, the links that can be too
 * narrow, and the way from one rank to another.
 *
 * Every rank has a port into the network, and one into its host's own where the map has a
 * tier for that. The groups that a tier joins have a link up and a link down, or one for
 * each ordered pair (mesh). What is wide enough for all ports below it can never be too
 * narrow, and is left out: flows then share few links. Immutable once made.
 */
#ifndef WEFT_TOPO_SIM_NET_H
#define WEFT_TOPO_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "topo/fabric/map.h"
#include "topo/sim/share.h"

#define SIM_LEVELS_MAX ((unsigned)FABRIC_UNKNOWN)
#define SIM_RANKS_MAX  (1 << 24)

/* Where ranks are, on the hosts in the order of the map. */
enum sim_placement {
	SIM_PACKED,    /* host by host */
	SIM_SCATTERED, /* anywhere, by chance */
	SIM_RAILS,     /* the first ranks of all hosts, then the second ones, and so on */
	SIM_PLACEMENTS
};
const char *sim_placement_name(enum sim_placement p);

/* A host whose ports have that part of their rate; 0 < part <= 1. */
struct sim_slow {
	const char *host;
	double part;
};

struct sim_net_options {
	int32_t ranks;
	enum sim_placement placement;
	uint64_t seed; /* of SIM_SCATTERED */
	const struct sim_slow *slow;
	unsigned slows;
};

/* One tier of the way up, or the ranks' hosts (the first). */
struct sim_level {
	enum fabric_distance tier;
	bool said; /* ranks can meet here */
	bool mesh;
	double latency;		      /* s */
	const uint32_t *group;	      /* by rank: those of one group meet here */
	const uint32_t *child;	      /* by rank: what of it is joined here */
	const uint32_t *up, *down;    /* by child: links; SHARE_NONE: wide enough */
	const uint32_t *pair;	      /* mesh, by group: the first of its links... */
	const uint32_t *index, *size; /* ...child's place in it, by group how many */
	double width;		      /* bytes/s of all its links together, one way */
};

struct sim_net {
	int32_t ranks;
	unsigned levels;
	struct sim_level level[SIM_LEVELS_MAX];
	uint32_t links;		/* shared ones; then four ports of each rank */
	const double *capacity; /* bytes/s */
	const uint8_t *tier_of; /* by shared link: its level */
	const uint32_t *host;	/* by rank */
	uint32_t hosts;		/* that have ranks */
	struct sim_net_store *store;
};

/* 0, -ENOMEM, or -EINVAL and *error: more ranks than hosts have, hosts out of reach,
 * nothing said of rates. */
int sim_net_open(const struct fabric_map *map, const struct sim_net_options *options,
		 struct sim_net **net, struct fabric_error *error);
void sim_net_close(struct sim_net *net);

struct sim_path {
	uint32_t link[SHARE_ROUTE_MAX];
	unsigned links;
	uint32_t out, in; /* ports, from 0 */
	unsigned level;	  /* where the two meet */
	double latency;
	double most; /* bytes/s: of the narrower port */
};
/* Of two different ranks. */
void sim_net_path(const struct sim_net *net, int32_t from, int32_t to,
		  struct sim_path *path);

/* Ports of a rank. */
enum sim_port { SIM_OUT, SIM_IN, SIM_HOST_OUT, SIM_HOST_IN, SIM_PORTS };

#endif
