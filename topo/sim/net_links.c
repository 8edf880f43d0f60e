/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The links of a network, tier by tier upwards: what the ports below could bring, what is
 * there for it, and whether that can ever be too little.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/net_in.h"

#define LINKS_MAX (UINT32_C(1) << 24)

/* Groups of one level, as they are made. */
struct tier_build {
	const struct fabric_tier *tier;
	bool by_rail, below_by_rail;
	uint32_t rails;
	uint32_t groups, children;
	uint32_t *group_of_child;
	double *brings; /* by child: what ports of ranks below it can bring */
	double *wide;	/* by child: what its link carries */
};

/* What of the level below a slot belongs to, as it is joined here. */
static uint32_t child_of(const struct tier_build *t, enum fabric_distance below,
			 const struct net_host *h, uint32_t rail)
{
	const bool split = t->by_rail || t->below_by_rail;

	return split ? h->place[below] * t->rails + rail : h->place[below];
}

static uint32_t group_of(const struct tier_build *t, enum fabric_distance tier,
			 const struct net_host *h, uint32_t rail)
{
	return t->by_rail ? h->place[tier] * t->rails + rail : h->place[tier];
}

static uint32_t rail_of(const struct net_build *b, uint32_t slot)
{
	const struct net_host *h = &b->host[slot / b->per_host];

	return h->rails ? slot % b->per_host % h->rails : 0;
}

/* What its links carry: said as a rate, or by all ports that are below. */
static void wide_set(struct net_build *b, struct tier_build *t, enum fabric_distance tier,
		     enum fabric_distance below)
{
	const double over = t->tier->over / 1000.0;

	for (uint32_t i = 0; i < b->hosts * b->per_host; i++) {
		const struct net_host *h = &b->host[i / b->per_host];
		const uint32_t rail = rail_of(b, i), c = child_of(t, below, h, rail);

		t->wide[c] += h->port;
		t->group_of_child[c] = group_of(t, tier, h, rail);
	}
	for (uint32_t c = 0; c < t->children; c++) {
		if (t->wide[c] <= 0)
			continue;
		t->wide[c] = t->tier->bits_per_s ? (double)(t->tier->bits_per_s / 8)
						 : (double)(uint64_t)(t->wide[c] / over);
	}
}

static int link_room(struct net_build *b, uint64_t more)
{
	if (b->net->links + more <= LINKS_MAX)
		return 0;
	return net_fail(b, 0, "more than %u links; leave out mesh, or join fewer groups",
			LINKS_MAX);
}

/* A link up and one down for each child that could bring more than they carry. */
static int tree_links(struct net_build *b, struct sim_level *l, struct tier_build *t,
		      double *brings_above)
{
	uint32_t *up = net_alloc(b, t->children, sizeof(*up));
	uint32_t *down = net_alloc(b, t->children, sizeof(*down));

	if (!up || !down)
		return -ENOMEM;
	for (uint32_t c = 0; c < t->children; c++) {
		const bool narrow = t->brings[c] > t->wide[c];

		l->width += t->wide[c];
		up[c] = narrow ? b->net->links++ : SHARE_NONE;
		down[c] = narrow ? b->net->links++ : SHARE_NONE;
		brings_above[c] = narrow ? t->wide[c] : t->brings[c];
		if (b->net->links > LINKS_MAX)
			return link_room(b, 0);
	}
	l->up = up;
	l->down = down;
	return 0;
}

/* A link from each child of a group to each other one. */
static int mesh_links(struct net_build *b, struct sim_level *l, struct tier_build *t,
		      double *brings_above)
{
	uint32_t *pair = net_alloc(b, t->groups, sizeof(*pair));
	uint32_t *size = net_alloc(b, t->groups, sizeof(*size));
	uint32_t *index = net_alloc(b, t->children, sizeof(*index));

	if (!pair || !size || !index)
		return -ENOMEM;
	for (uint32_t c = 0; c < t->children; c++) {
		l->width += t->wide[c];
		if (t->wide[c] > 0)
			index[c] = size[t->group_of_child[c]]++;
		brings_above[c] = t->brings[c];
	}
	for (uint32_t g = 0; g < t->groups; g++) {
		const int rc = link_room(b, (uint64_t)size[g] * size[g]);

		if (rc)
			return rc;
		pair[g] = size[g] > 1 ? b->net->links : SHARE_NONE;
		if (size[g] > 1)
			b->net->links += size[g] * size[g];
	}
	l->mesh = true;
	l->pair = pair;
	l->size = size;
	l->index = index;
	return 0;
}

/* Who meets where, and what each could bring. */
static int ranks_group(struct net_build *b, struct sim_level *l, struct tier_build *t,
		       enum fabric_distance below, const double *port)
{
	const uint32_t n = (uint32_t)b->net->ranks;
	uint32_t *group = net_alloc(b, n, sizeof(*group));
	uint32_t *child = net_alloc(b, n, sizeof(*child));

	if (!group || !child)
		return -ENOMEM;
	for (uint32_t r = 0; r < n; r++) {
		const struct net_host *h = &b->host[b->net->host[r]];
		const uint32_t rail = rail_of(b, b->slot[r]);

		group[r] = group_of(t, l->tier, h, rail);
		child[r] = child_of(t, below, h, rail);
		if (port)
			t->brings[child[r]] += port[r];
	}
	l->group = group;
	l->child = child;
	return 0;
}

/* Above the first level: what the level below sends on. */
static void brings_pass(struct net_build *b, struct tier_build *t,
			const struct tier_build *under, const double *sends)
{
	for (uint32_t c = 0; c < under->children; c++) {
		const uint32_t group = under->group_of_child[c];

		if (under->wide[c] <= 0)
			continue;
		if (t->by_rail == under->by_rail || under->by_rail) {
			t->brings[group] += sends[c];
			continue;
		}
		/* Any of the rails: each may get all of it. */
		for (uint32_t i = 0; i < t->rails; i++)
			t->brings[group * t->rails + i] += sends[c];
	}
	(void)b;
}

static int level_make(struct net_build *b, unsigned at, enum fabric_distance below,
		      struct tier_build *under, double **sends)
{
	struct sim_level *l = &b->net->level[at];
	struct tier_build t = {.tier = fabric_map_tier(b->map, l->tier),
			       .rails = fabric_map_rails(b->map),
			       .below_by_rail = under->by_rail};
	double *port = NULL, *above;
	int rc;

	t.by_rail = t.tier->by_rail;
	t.groups = b->places[l->tier] * (t.by_rail ? t.rails : 1);
	t.children = b->places[below] * (t.by_rail || t.below_by_rail ? t.rails : 1);
	t.group_of_child = net_alloc(b, t.children, sizeof(*t.group_of_child));
	t.brings = net_alloc(b, t.children, sizeof(*t.brings));
	t.wide = net_alloc(b, t.children, sizeof(*t.wide));
	above = net_alloc(b, t.children, sizeof(*above));
	if (!t.group_of_child || !t.brings || !t.wide || !above)
		return -ENOMEM;
	if (at == 1) {
		port = net_alloc(b, (size_t)b->net->ranks, sizeof(*port));
		if (!port)
			return -ENOMEM;
		for (int32_t r = 0; r < b->net->ranks; r++)
			port[r] = b->host[b->net->host[r]].port;
	}
	l->said = true;
	l->latency = (double)t.tier->latency_ps * 1e-12;
	wide_set(b, &t, l->tier, below);
	rc = ranks_group(b, l, &t, below, port);
	if (rc)
		return rc;
	if (at > 1)
		brings_pass(b, &t, under, *sends);
	rc = t.tier->mesh ? mesh_links(b, l, &t, above) : tree_links(b, l, &t, above);
	*under = t;
	*sends = above;
	return rc;
}

/* The tiers from the lowest up, behind the hosts themselves. */
static int levels_list(struct net_build *b)
{
	struct sim_net *net = b->net;
	const struct fabric_tier *host = fabric_map_tier(b->map, FABRIC_SAME_HOST);
	enum fabric_distance d = FABRIC_SAME_RACK;
	bool used[FABRIC_UNKNOWN] = {true};

	net->level[0] = (struct sim_level){
		.tier = FABRIC_SAME_HOST,
		.said = host,
		.latency = host ? (double)host->latency_ps * 1e-12 : 0};
	net->levels = 1;
	if (host && host->within != FABRIC_UNKNOWN)
		d = host->within;
	while (d < FABRIC_UNKNOWN && !fabric_map_tier(b->map, d))
		d++;
	for (; d < FABRIC_UNKNOWN; d = fabric_map_tier(b->map, d)->within) {
		used[d] = true;
		net->level[net->levels++].tier = d;
	}
	for (d = FABRIC_SAME_RACK; d < FABRIC_UNKNOWN; d++)
		if (fabric_map_tier(b->map, d) && !used[d])
			return net_fail(b, fabric_map_tier(b->map, d)->line,
					"tier %s is out of reach: no other is within it",
					fabric_distance_name(d));
	return 0;
}

/* All ranks meet at the top. */
static int reach_check(struct net_build *b)
{
	static const char *const joins[] = {"ranks", "hosts", "racks", "zones",
					    "buildings"};
	const struct sim_net *net = b->net;
	const struct sim_level *top = &net->level[net->levels - 1];

	for (int32_t r = 1; r < net->ranks; r++) {
		const struct net_host *h = &b->host[net->host[r]];
		const bool apart = net->levels > 1
					   ? top->group[r] != top->group[0]
					   : net->host[r] != net->host[0] || !top->said;
		unsigned above = (unsigned)top->tier + 1;

		if (!apart)
			continue;
		if (above >= FABRIC_UNKNOWN)
			return net_fail(b, h->line,
					"a host of this line is out of reach of rank 0: "
					"the highest tier is by rails; add one above, or "
					"leave out rails");
		return net_fail(b, h->line,
				"a host of this line is out of reach of rank 0: no tier "
				"joins %s; add a line \"tier %s latency=...\"",
				joins[above],
				fabric_distance_name((enum fabric_distance)above));
	}
	return 0;
}

/* Capacities by link, once it is known how many there are. */
static int capacities_set(struct net_build *b, struct tier_build *made)
{
	struct sim_net *net = b->net;
	const struct fabric_tier *host = fabric_map_tier(b->map, FABRIC_SAME_HOST);
	double *capacity = net_alloc(b, net->links + (size_t)net->ranks * SIM_PORTS,
				     sizeof(*capacity));
	uint8_t *tier_of = net_alloc(b, net->links, sizeof(*tier_of));

	if (!capacity || !tier_of)
		return -ENOMEM;
	for (unsigned i = 1; i < net->levels; i++) {
		const struct sim_level *l = &net->level[i];
		const struct tier_build *t = &made[i];

		for (uint32_t c = 0; l->up && c < t->children; c++) {
			if (l->up[c] == SHARE_NONE)
				continue;
			capacity[l->up[c]] = capacity[l->down[c]] = t->wide[c];
			tier_of[l->up[c]] = tier_of[l->down[c]] = (uint8_t)i;
		}
		for (uint32_t c = 0; l->mesh && c < t->children; c++) {
			const uint32_t g = t->group_of_child[c], size = l->size[g];

			for (uint32_t j = 0; t->wide[c] > 0 && size > 1 && j < size;
			     j++) {
				const uint32_t at = l->pair[g] + l->index[c] * size + j;

				capacity[at] =
					(double)(uint64_t)(t->wide[c] / (size - 1));
				tier_of[at] = (uint8_t)i;
			}
		}
	}
	for (int32_t r = 0; r < net->ranks; r++) {
		double *p = &capacity[net->links + (size_t)r * SIM_PORTS];
		const double port = b->host[net->host[r]].port;

		p[SIM_OUT] = p[SIM_IN] = port;
		p[SIM_HOST_OUT] = p[SIM_HOST_IN] =
			host && host->bits_per_s ? (double)(host->bits_per_s / 8) : port;
	}
	net->capacity = capacity;
	net->tier_of = tier_of;
	return 0;
}

int net_links_make(struct net_build *b)
{
	struct tier_build made[SIM_LEVELS_MAX + 1] = {{0}}, under = {0};
	enum fabric_distance below = FABRIC_SAME_HOST;
	struct sim_net *net = b->net;
	double *sends = NULL;
	int rc = levels_list(b);

	net->level[0].group = net->level[0].child = net->host;
	for (unsigned i = 1; !rc && i < net->levels; i++) {
		rc = level_make(b, i, below, &under, &sends);
		made[i] = under;
		below = net->level[i].tier;
	}
	if (!rc)
		rc = reach_check(b);
	return rc ? rc : capacities_set(b, made);
}
