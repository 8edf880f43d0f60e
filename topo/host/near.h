/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How near devices of a host are to each other, and what follows: which NIC for which GPU
 * or rank, which cores for ranks and for their progress threads.
 */
#ifndef WEFT_TOPO_HOST_NEAR_H
#define WEFT_TOPO_HOST_NEAR_H

#include "topo/host/host.h"

/* In ascending distance. */
enum host_near {
	HOST_SAME_CARD,	   /* functions of one device */
	HOST_SAME_SWITCH,  /* below one port of a host bridge: no processor in between */
	HOST_SAME_BRIDGE,  /* below one host bridge */
	HOST_SAME_NODE,	   /* of one NUMA node */
	HOST_SAME_PACKAGE, /* of one package */
	HOST_FAR,	   /* of different packages */
	HOST_NEAR_UNKNOWN,
	HOST_NEARS
};
/* "card", "switch", "bridge", "node", "package", "far", "?". */
const char *host_near_name(enum host_near near);

/* Of devices i and j of the host. */
enum host_near host_near(const struct host *host, int i, int j);

/* What a rank gets: indices, -1: nothing is known that could be chosen from. */
struct host_share {
	int gpu, nic;	     /* devices */
	enum host_near near; /* of the two; HOST_NEAR_UNKNOWN where one is missing */
	int core;	     /* to run on */
	int progress;	     /* core of its progress thread; -1: none is left */
};

/*
 * Fills share[ranks]. GPUs go round; a rank's NIC is the nearest to its GPU, else to its
 * core, among equally near ones the one that the fewest have. Chosen from are NICs with
 * an RDMA device where there is one, which are not down, and at least half as fast as the
 * fastest. Cores come from the node of the GPU, else of the NIC, while there are usable
 * ones, each once, those of progress threads from the end; with fewer cores than ranks
 * several share one. False: no memory.
 */
bool host_shares(const struct host *host, unsigned ranks, struct host_share *share);

/* Whether that device is one to choose from. */
bool host_nic_chosen_from(const struct host *host, int nic);

#endif
