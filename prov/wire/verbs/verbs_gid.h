/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GID table of a port: reading it, and which entry a rail is reached by. RoCE v2
 * comes before v1, and IPv4 before IPv6 before addresses of the link: what a network is
 * usually set up for first, and what can be routed.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_GID_H
#define WEFT_WIRE_VERBS_VERBS_GID_H

#include "prov/wire/verbs/verbs_dev.h"

/* An entry. */
struct verbs_gid {
	struct ibv_gid_entry entry;
	uint8_t kind;	  /* enum verbs_rail_kind */
	uint32_t ifindex; /* RoCE: its network interface; 0: the kernel doesn't say */
	/* It has the address: packets to it are answered. True where nothing is known. */
	bool owned;
};

/* -1: chosen. -FI_EINVAL: no such number. */
int verbs_gid_index_read(const char *text, int *index, struct verbs_error *error);

/* False: there is none, it is empty, or can't be read. ib: the port is one of InfiniBand.
 */
bool verbs_gid_read(const struct verbs_lib *lib, const struct verbs_rail *rail, bool ib,
		    int index, struct verbs_gid *gid);

/* Whether the interface of that index has the address (any, where it is 0), or it can't
 * be known. Looks at the network of this process. */
bool verbs_gid_owned(uint32_t ifindex, const union ibv_gid *gid);

/* Lower is better. */
unsigned verbs_gid_rank(const struct verbs_gid *gid);

/* Of RoCE: takes it for the rail's. */
void verbs_gid_take(struct verbs_reach *reach, const struct verbs_gid *gid);

/*
 * Takes the best of the port's `count` entries, or number `wanted` (-1: none is); with
 * `kind` only one of that kind (0: any). reach->kind says already whether the port is one
 * of InfiniBand, of which the first entry is the port's own. False: there is none; *reach
 * is as it was.
 */
bool verbs_gid_choose(const struct verbs_lib *lib, const struct verbs_rail *rail,
		      int count, int wanted, uint8_t kind, struct verbs_reach *reach);

#endif
