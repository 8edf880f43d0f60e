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

/*
 * Something of the network that has only that part of its rate; 0 <= part <= 1; 0: it is
 * dead. `name` says what:
 *
 *	HOST		the ports of its ranks; dead: no rank is placed there
 *	HOST:RAIL	that rail of it; dead: its ranks take its other rails, and share
 *them PLACE		(b1/z1/k1, b1/z1/-, b1/-/-) what joins it to the tier above
 *	PLACE:RAIL	the same of a rail; dead: as that rail of each of its hosts
 *	PLACE:PLACE	the link of the two, each way, where a mesh joins them; dead: each
 *			two ranks go by a third of the mesh, and are late by its latency
 *			once more
 *
 * What is dead and has no way around it is refused where it parts ranks.
 */
struct sim_fault {
	const char *name;
	double part;
};
#define SIM_FAULTS_MAX 32u

struct sim_net_options {
	int32_t ranks;
	enum sim_placement placement;
	uint64_t seed; /* of SIM_SCATTERED */
	const struct sim_fault *fault;
	unsigned faults; /* at most SIM_FAULTS_MAX */
	/* Of an optical torus, the job's; 0: the map's. */
	uint32_t shape[FABRIC_TORUS_DIMS];
};

/* Places in a circle along each way, each with a link to both neighbours. A message goes
 * the shorter way round, along one way after the other; where places are dead, along
 * shortest ways around those. */
struct sim_torus {
	uint32_t dim[FABRIC_TORUS_DIMS];
	unsigned dims;
	uint32_t places;
	double setup;	       /* s until it is switched to the job's hosts; 0: fixed */
	const uint32_t *first; /* by group: its first link; SHARE_NONE: none */
	const uint8_t **hops;  /* by group: from each place to each; NULL: none is dead */
};

/* One tier of the way up, or the ranks' hosts (the first). */
struct sim_level {
	enum fabric_distance tier;
	bool said; /* ranks can meet here */
	bool mesh;
	double latency;		       /* s */
	const uint32_t *group;	       /* by rank: those of one group meet here */
	const uint32_t *child;	       /* by rank: what of it is joined here */
	const uint32_t *up, *down;     /* by child: links; SHARE_NONE: wide enough */
	const uint32_t *pair;	       /* mesh, by group: the first of its links... */
	const uint32_t *index, *size;  /* ...child's place in it, by group how many */
	const struct sim_torus *torus; /* by child: index is its place */
	double width;		       /* bytes/s of all its links together, one way */
	const uint32_t *dead;	       /* mesh: links that are; NULL: none is */
	unsigned deads;
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

/* Seconds until circuits are switched for the job, before it begins; 0: none are. */
double sim_net_setup(const struct sim_net *net);

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
