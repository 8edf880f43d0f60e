/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside share: flows, classes ("kinds") and links, as share.c and share_fill.c have
 * them. */
#ifndef WEFT_TOPO_SIM_SHARE_IN_H
#define WEFT_TOPO_SIM_SHARE_IN_H

#include "topo/sim/share.h"

struct share_list {
	uint32_t *at;
	uint32_t count, room;
};
bool share_list_add(struct share_list *l, uint32_t what);

struct share_route {
	uint32_t link[SHARE_ROUTE_MAX];
	uint8_t count;
};

/* Place in the list of a port's flows. */
struct share_at {
	uint32_t before, after;
};

struct share_flow {
	double target; /* where its class's clock stands when it ends */
	double most, bytes;
	uint64_t tag;
	uint32_t route, kind;
	uint32_t port[2]; /* out, in */
	struct share_at beside[2];
	uint32_t at; /* in its class's heap */
};

struct share_kind {
	double rate;  /* of each of its flows */
	double clock; /* bytes that each would have got since it had none */
	double since; /* when the clock was set */
	double end;   /* of its first flow */
	double most;
	struct share_list heap; /* its flows, the first to end on top */
	uint32_t route;
	uint32_t at;			  /* in the heap of ends; SHARE_NONE: not there */
	uint32_t next;			  /* that is free */
	uint32_t seen;			  /* in that settling */
	uint32_t member[SHARE_ROUTE_MAX]; /* its place in the lists of its links */
	uint32_t port[2];		  /* of one that is alone */
	bool shared;			  /* flows that are alone at their ports */
	bool dirty, gone, fixed;
};

struct share_link {
	double asked; /* what its flows could take, were it not there */
	double left;  /* while rates are found */
	uint32_t flows;
	uint32_t open; /* flows without a rate, while rates are found */
	uint32_t seen;
	bool dirty;
	bool full; /* when rates were found last */
};

/* A link and what it gives each flow, so far as is known. */
struct share_offer {
	double each;
	uint32_t link;
};

struct share {
	const double *capacity;
	uint32_t links, all;
	struct share_link *link;
	struct share_list *member; /* by link: classes */
	uint32_t *port_flow;	   /* by port: the first of its flows */
	struct share_flow *flow;
	uint32_t flows, flow_room, flow_free;
	struct share_kind *kind;
	uint32_t kinds, kind_room, kind_free, shared_kinds;
	uint32_t *kind_hash, kind_hash_room;
	struct share_route *route;
	uint32_t routes, route_room;
	uint32_t *route_hash;	/* twice as long */
	struct share_list ends; /* heap of classes */
	struct share_list dirty_links, dirty_kinds;
	struct share_list todo, near_links, by_most; /* while rates are found */
	struct share_offer *fill;
	uint32_t fill_count, fill_room;
	uint32_t turn; /* of settling */
	double now;
	bool failed; /* memory ran out where that cannot be said */
	struct share_cost cost;
};

/* More may come than goes through: the link counts. */
static inline bool share_link_full(const struct share *s, uint32_t l)
{
	return s->link[l].asked > s->capacity[l] * (1 + 1e-9);
}

static inline void share_link_ask(struct share_link *l, double most, int sign)
{
	if (sign > 0) {
		l->asked += most;
		l->flows++;
		return;
	}
	l->flows--;
	l->asked = l->flows ? l->asked - most : 0;
}

void share_kind_advance(struct share_kind *k, double now);
/* A class's first flow ends then; infinity: it has none. */
void share_ends_move(struct share *s, uint32_t kind, double end);

#endif
