/* SPDX-License-Identifier: BSD-2-Clause */
/* See counts.h. */
#include "config.h"

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/exec/counts.h"
#include "weft/weft_fi.h"

#define LOOK_AGAIN_US 500000

struct counts {
	const struct net *net;
	const struct weft_fi_count_ops *ops;
	struct recorder *trace;
	int64_t looked;
	/* What is read goes here. */
	struct weft_fi_count count[TRACE_COUNTS];
	struct weft_fi_lane lane[TRACE_LANES];
	struct trace_lane fresh[TRACE_LANES];
};

/* Growth of which numbers is an event, and which; of one that is about a rail the digit
 * in its name says about which. */
static const struct {
	const char *name;
	enum trace_net what;
} event_table[] = {
	{"uet.resent", TRACE_NET_RESENT},
	{"uet.failed", TRACE_NET_PEER_LOST},
	{"verbs.again", TRACE_NET_RESENT},
	{"verbs.rail#_downs", TRACE_NET_RAIL_DOWN},
	{"verbs.rail#_ups", TRACE_NET_RAIL_UP},
};

struct counts *counts_open(const struct net *net, struct recorder *trace)
{
	struct weft_fi_count_ops *ops = NULL;
	struct counts *c;

	if (fi_open_ops(&net->domain->fid, WEFT_FI_COUNT_OPS, 0, (void **)&ops, NULL) ||
	    !ops || ops->size < sizeof(*ops))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->net = net;
	c->ops = ops;
	c->trace = trace;
	return c;
}

void counts_close(struct counts *counts)
{
	free(counts);
}

static void tell(struct counts *c, enum trace_net what, int32_t peer, uint64_t value)
{
	trace_put(c->trace, TRACE_NET, (uint8_t)what, 0, 0, peer, value);
}

/* ---- numbers of all ------------------------------------------------------------------
 */

/* # stands for a digit, which goes to *digit. */
static bool name_is(const char *name, const char *pattern, uint64_t *digit)
{
	for (; *name && *pattern; name++, pattern++) {
		if (*pattern == '#' && *name >= '0' && *name <= '9')
			*digit = (uint64_t)(*name - '0');
		else if (*name != *pattern)
			return false;
	}
	return *name == *pattern;
}

static void grown(struct counts *c, const char *name, uint64_t more)
{
	for (size_t i = 0; i < sizeof(event_table) / sizeof(event_table[0]); i++) {
		uint64_t value = more;

		if (name_is(name, event_table[i].name, &value))
			tell(c, event_table[i].what, -1, value);
	}
}

static void take_count(struct counts *c, const struct weft_fi_count *count)
{
	for (uint32_t i = 0; i < TRACE_COUNTS; i++) {
		struct trace_count *at = &c->trace->image->live.count[i];

		if (!*at->name)
			snprintf(at->name, sizeof(at->name), "%s", count->name);
		if (strncmp(at->name, count->name, sizeof(at->name) - 1) != 0)
			continue;
		if (count->value > at->value)
			grown(c, at->name, count->value - at->value);
		at->value = count->value;
		return;
	}
}

/* ---- lanes --------------------------------------------------------------------------
 */

/* Ranks are entered in order, so that Weft's index of one is its number. */
static int32_t rank_of(const struct net *net, fi_addr_t addr)
{
	return addr < (fi_addr_t)net->size && net->addr[addr] == addr ? (int32_t)addr
								      : -1;
}

static bool lane_is_same(const struct trace_lane *a, const struct trace_lane *b)
{
	return a->peer == b->peer && a->number == b->number;
}

/* What was known of it, mostly at the same place; NULL: nothing. */
static const struct trace_lane *lane_before(const struct counts *c, uint32_t at)
{
	const struct trace_live *r = &c->trace->image->live;
	const struct trace_lane *lane = &c->fresh[at];

	if (at < r->lanes && lane_is_same(&r->lane[at], lane))
		return &r->lane[at];
	for (uint32_t i = 0; i < r->lanes; i++)
		if (lane_is_same(&r->lane[i], lane))
			return &r->lane[i];
	return NULL;
}

static void lane_tell(struct counts *c, uint32_t at)
{
	const struct trace_lane *was = lane_before(c, at), *is = &c->fresh[at];
	const bool ended = is->retired > (was ? was->retired : 0);

	if (ended)
		tell(c, TRACE_NET_LANE_DOWN, is->peer, is->number);
	if (is->up && (ended || (was && !was->up && was->retired)))
		tell(c, TRACE_NET_LANE_UP, is->peer, is->number);
}

/* To those that are there. Two links to a peer, which simultaneous dials make, are one.
 */
static void lane_add(struct trace_lane *all, uint32_t *n, const struct trace_lane *lane)
{
	for (uint32_t i = 0; i < *n; i++) {
		struct trace_lane *at = &all[i];

		if (!lane_is_same(at, lane))
			continue;
		at->rail = lane->packets > at->packets ? lane->rail : at->rail;
		at->up |= lane->up;
		at->packets += lane->packets;
		at->bytes += lane->bytes;
		at->lost += lane->lost;
		at->retired += lane->retired;
		return;
	}
	all[(*n)++] = *lane;
}

static void take_lanes(struct counts *c, uint32_t lanes)
{
	struct trace_live *r = &c->trace->image->live;
	uint32_t n = 0;

	for (uint32_t i = 0; i < lanes; i++) {
		const struct weft_fi_lane *l = &c->lane[i];
		const struct trace_lane lane = {.peer = rank_of(c->net, l->peer),
						.number = l->number,
						.rail = l->rail,
						.up = l->up != 0,
						.packets = l->packets,
						.bytes = l->bytes,
						.lost = l->lost,
						.retired = l->retired};

		lane_add(c->fresh, &n, &lane);
	}
	for (uint32_t i = 0; i < n; i++)
		lane_tell(c, i);
	memcpy(r->lane, c->fresh, n * sizeof(r->lane[0]));
	r->lanes = n;
}

/* ---- looking ------------------------------------------------------------------------
 */

void counts_now(struct counts *c)
{
	size_t n = TRACE_COUNTS;

	if (!c)
		return;
	if (c->ops->read(c->net->domain, c->count, &n) == 0)
		for (size_t i = 0; i < n && i < TRACE_COUNTS; i++)
			take_count(c, &c->count[i]);
	n = TRACE_LANES;
	if (c->ops->lanes(c->net->domain, c->lane, &n) == 0)
		take_lanes(c, n < TRACE_LANES ? (uint32_t)n : TRACE_LANES);
	c->trace->image->live.counted = ticks_now(c->trace->counter);
}

void counts_look(struct counts *c, int64_t now)
{
	if (!c || now - c->looked < LOOK_AGAIN_US)
		return;
	c->looked = now;
	counts_now(c);
}
