/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside sim_net: what is known while a network is made. */
#ifndef WEFT_TOPO_SIM_NET_IN_H
#define WEFT_TOPO_SIM_NET_IN_H

#include "topo/sim/net.h"

struct sim_net_store {
	void *piece[64];
	unsigned count;
};

struct net_host {
	double port;			/* bytes/s of a rank's port */
	uint32_t place[FABRIC_UNKNOWN]; /* its number at each tier */
	unsigned rails;
	unsigned line;
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
};

__attribute__((format(printf, 3, 4))) int net_fail(struct net_build *b, unsigned line,
						   const char *fmt, ...);
/* Zeroed; lives as long as the network. */
void *net_alloc(struct net_build *b, size_t count, size_t size);

int net_links_make(struct net_build *b);

#endif
