/* SPDX-License-Identifier: BSD-2-Clause */
/* See verbs_count.h. */
#include "config.h"

#include "prov/wire/verbs/verbs_count.h"

#include <stddef.h>
#include <string.h>

static const struct {
	const char *name;
	size_t offset; /* in struct verbs_link_counts */
} link_table[] = {
	{"verbs.packets", offsetof(struct verbs_link_counts, packets)},
	{"verbs.replays", offsetof(struct verbs_link_counts, replays)},
	{"verbs.segments", offsetof(struct verbs_link_counts, segments)},
	{"verbs.again", offsetof(struct verbs_link_counts, again)},
	{"verbs.lanes_opened", offsetof(struct verbs_link_counts, opened)},
	{"verbs.lanes_retired", offsetof(struct verbs_link_counts, retired)},
	{"verbs.lanes_rebuilt", offsetof(struct verbs_link_counts, rebuilt)},
	{"verbs.silent", offsetof(struct verbs_link_counts, silent)},
	{"verbs.resumes", offsetof(struct verbs_link_counts, resumes)},
};

static const struct {
	const char *bytes, *downs, *ups;
} rail_table[DQPLB_RAILS_MAX] = {
	{"verbs.rail0_bytes", "verbs.rail0_downs", "verbs.rail0_ups"},
	{"verbs.rail1_bytes", "verbs.rail1_downs", "verbs.rail1_ups"},
	{"verbs.rail2_bytes", "verbs.rail2_downs", "verbs.rail2_ups"},
	{"verbs.rail3_bytes", "verbs.rail3_downs", "verbs.rail3_ups"},
	{"verbs.rail4_bytes", "verbs.rail4_downs", "verbs.rail4_ups"},
	{"verbs.rail5_bytes", "verbs.rail5_downs", "verbs.rail5_ups"},
	{"verbs.rail6_bytes", "verbs.rail6_downs", "verbs.rail6_ups"},
	{"verbs.rail7_bytes", "verbs.rail7_downs", "verbs.rail7_ups"},
};

/* All of it is counters. */
static void add_link(const struct verbs_link *link, struct verbs_link_counts *sum)
{
	enum { FIELDS = sizeof(*sum) / sizeof(uint64_t) };
	uint64_t a[FIELDS], b[FIELDS];
	struct verbs_link_counts c;

	verbs_link_count(link, &c);
	memcpy(a, sum, sizeof(a));
	memcpy(b, &c, sizeof(b));
	for (int i = 0; i < FIELDS; i++)
		a[i] += b[i];
	memcpy(sum, a, sizeof(a));
}

void verbs_count_bury(const struct verbs_link *link)
{
	add_link(link, &link->ep->gone);
}

struct counted {
	struct wire_counter *at;
	uint32_t n, max;
};

static void put(struct counted *c, const char *name, uint64_t value)
{
	if (c->n < c->max)
		c->at[c->n++] = (struct wire_counter){name, value};
}

uint32_t verbs_counters(struct wire_ep *wep, struct wire_counter *at, uint32_t max)
{
	struct counted c = {.at = at, .max = max};
	struct verbs_ep *ep = verbs_ep_of(wep);
	struct verbs_link_counts sum = ep->gone;

	pthread_mutex_lock(&ep->mutex);
	list_foreach (pos, &ep->links)
		add_link(container_of(pos, struct verbs_link, member), &sum);
	pthread_mutex_unlock(&ep->mutex);
	for (size_t i = 0; i < sizeof(link_table) / sizeof(link_table[0]); i++) {
		uint64_t value;

		memcpy(&value, (const char *)&sum + link_table[i].offset, sizeof(value));
		put(&c, link_table[i].name, value);
	}
	for (uint32_t r = 0; r < ep->dom->dev->rails; r++) {
		put(&c, rail_table[r].bytes, sum.bytes[r]);
		put(&c, rail_table[r].downs, ep->rail[r].downs);
		put(&c, rail_table[r].ups, ep->rail[r].ups);
	}
	return c.n;
}

static void link_lanes(const struct verbs_link *link, wire_lane_fn *each, void *arg)
{
	/* The one that is made at a door has a place behind the others. */
	for (uint32_t i = 0; i < DQPLB_LANES_MAX; i++) {
		const struct verbs_lane *l = &link->lane[i];
		struct wire_lane out = {.peer = &link->base.peer,
					.number = i,
					.rail = l->rail,
					.up = l->state == VERBS_LANE_UP,
					.packets = l->requests,
					.bytes = l->bytes,
					.retired = l->retired};

		if (l->qp) {
			out.packets += l->qp->requests;
			out.bytes += l->qp->bytes;
		}
		if (l->qp || l->incarnation)
			each(arg, &out);
	}
}

void verbs_lanes_each(struct wire_ep *wep, wire_lane_fn *each, void *arg)
{
	struct verbs_ep *ep = verbs_ep_of(wep);

	pthread_mutex_lock(&ep->mutex);
	list_foreach (pos, &ep->links) {
		const struct verbs_link *link =
			container_of(pos, struct verbs_link, member);

		if (link->state == VERBS_LINK_UP)
			link_lanes(link, each, arg);
	}
	pthread_mutex_unlock(&ep->mutex);
}
