/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows that share links, as a fluid: at every moment rates are max-min fair (no flow can
 * have more without one that has no more than it getting less), and no flow has more than
 * its ports.
 *
 * A flow goes through a route (links that many flows share) and two ports (one where it
 * leaves, one where it enters). Flows of one route with the same limit have the same rate
 * as long as nobody else is at their ports, so that they are one class: rates are found
 * for classes, and a class's flows end in the order of their lengths by one clock. A flow
 * whose ports are too narrow for all that is there is a class alone. So 100,000 flows
 * over a thousand pairs of zones cost a thousand classes. Rates are found anew only for
 * what is joined to a change by links that are full.
 *
 * Times are in seconds, lengths in bytes, rates and capacities in bytes a second. Not
 * thread-safe; no call but those that are said to can fail. Source of the fill: the
 * progressive filling of Bertsekas and Gallager, "Data Networks", 6.5.2; classes and
 * clocks as processor sharing in virtual time.
 */
#ifndef WEFT_TOPO_SIM_SHARE_H
#define WEFT_TOPO_SIM_SHARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHARE_ROUTE_MAX 40 /* links of a route */
#define SHARE_NONE	UINT32_MAX

struct share;

/* Links 0 to links - 1 are shared, then come the ports; capacities are above 0 and
 * belong to the caller, who may change them: share_recapacity(). NULL: no memory. */
struct share *share_open(uint32_t links, uint32_t ports, const double *capacity);
void share_close(struct share *s);

/* The number of a route of n links, which are different; SHARE_NONE: no memory. */
uint32_t share_route(struct share *s, const uint32_t *link, unsigned n);

/* A flow of so many bytes (above 0) begins; tag comes back when it ends. Ports count from
 * 0; SHARE_NONE: none. most: its rate at most, above 0. Its number; SHARE_NONE: no
 * memory. */
uint32_t share_begin(struct share *s, uint32_t route, uint32_t out, uint32_t in,
		     double most, double bytes, uint64_t tag, double now);

/* After all that begins and ends at this moment: rates are found. False: no memory. */
bool share_settle(struct share *s, double now);

/* When the next flow ends, if nothing changes; infinity: none. After share_settle(). */
double share_next(const struct share *s);

/* Takes a flow that has ended by now off; false: there is none. */
bool share_end(struct share *s, double now, uint64_t *tag);

/* After the caller has changed the capacity of a link (ports after the links). */
void share_recapacity(struct share *s, uint32_t link);

/* A flow's rate since the last share_settle(). */
double share_rate(const struct share *s, uint32_t flow);

/* Counts for those who want to know what it cost. */
struct share_cost {
	uint64_t settled; /* times that rates were found */
	uint64_t classes; /* whose rates were found, in all */
	uint64_t flows;	  /* that ended */
};
struct share_cost share_cost(const struct share *s);

#endif
