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

/* That a slot's rank takes. */
static uint32_t rail_of(const struct net_build *b, uint32_t slot)
{
	return net_rail(b->host[slot / b->per_host].rail, slot % b->per_host);
}

/* What its links carry: said as a rate, or by all ports that are below. */
static void wide_set(struct net_build *b, struct tier_build *t, enum fabric_distance tier,
		     enum fabric_distance below)
{
	const double over = t->tier->over / 1000.0;

	for (uint32_t i = 0; i < b->hosts * b->per_host; i++) {
		const struct net_host *h = &b->host[i / b->per_host];
		const uint32_t rail = net_rail(h->rail_all, i % b->per_host),
			       c = child_of(t, below, h, rail);

		t->wide[c] += h->port;
		t->group_of_child[c] = group_of(t, tier, h, rail);
	}
	for (uint32_t c = 0; c < t->children; c++) {
		if (t->wide[c] <= 0)
			continue;
		t->wide[c] = t->tier->bits_per_s ? (double)(t->tier->bits_per_s / 8)
						 : (double)(uint64_t)(t->wide[c] / over);
		t->part[c] =
			t->by_rail || t->below_by_rail
				? net_fault_part(b, below, c / t->rails, c % t->rails)
				: net_fault_part(b, below, c, SHARE_NONE);
	}
}

double net_left(double wide, double part)
{
	wide *= part;
	return part == 1 ? wide : wide < 1 ? 1 : (double)(uint64_t)wide;
}

static int link_room(struct net_build *b, uint64_t more)
{
	if (b->net->links + more <= NET_LINKS_MAX)
		return 0;
	return net_fail(b, 0, "more than %u links; leave out mesh, or join fewer groups",
			NET_LINKS_MAX);
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
		const double wide = net_left(t->wide[c], t->part[c]);
		const bool narrow = t->brings[c] > wide;

		l->width += wide;
		up[c] = narrow ? b->net->links++ : SHARE_NONE;
		down[c] = narrow ? b->net->links++ : SHARE_NONE;
		brings_above[c] = narrow ? wide : t->brings[c];
		if (b->net->links > NET_LINKS_MAX)
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
		l->width += net_left(t->wide[c], t->part[c]);
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

/* Links to neighbours hold nobody on his way up. */
static int torus_links(struct net_build *b, struct sim_level *l, struct tier_build *t,
		       double *brings_above)
{
	for (uint32_t c = 0; c < t->children; c++) {
		l->width += net_left(t->wide[c], t->part[c]);
		brings_above[c] = t->brings[c];
	}
	return net_torus_make(b, l, t);
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
			       .below = below,
			       .below_by_rail = under->by_rail};
	double *port = NULL, *above;
	int rc;

	t.by_rail = t.tier->by_rail;
	t.groups = b->places[l->tier] * (t.by_rail ? t.rails : 1);
	t.children = b->places[below] * (t.by_rail || t.below_by_rail ? t.rails : 1);
	t.group_of_child = net_alloc(b, t.children, sizeof(*t.group_of_child));
	t.brings = net_alloc(b, t.children, sizeof(*t.brings));
	t.wide = net_alloc(b, t.children, sizeof(*t.wide));
	t.part = net_alloc(b, t.children, sizeof(*t.part));
	above = net_alloc(b, t.children, sizeof(*above));
	if (!t.group_of_child || !t.brings || !t.wide || !t.part || !above)
		return -ENOMEM;
	if (at == 1) {
		port = net_alloc(b, (size_t)b->net->ranks, sizeof(*port));
		if (!port)
			return -ENOMEM;
		for (int32_t r = 0; r < b->net->ranks; r++)
			port[r] = net_fault_port(b, &b->host[b->net->host[r]],
						 b->slot[r] % b->per_host);
	}
	l->said = true;
	l->latency = (double)t.tier->latency_ps * 1e-12;
	wide_set(b, &t, l->tier, below);
	rc = ranks_group(b, l, &t, below, port);
	if (rc)
		return rc;
	if (at > 1)
		brings_pass(b, &t, under, *sends);
	if (t.tier->torus[0])
		rc = torus_links(b, l, &t, above);
	else
		rc = t.tier->mesh ? mesh_links(b, l, &t, above)
				  : tree_links(b, l, &t, above);
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
		if (above >= FABRIC_UNKNOWN ||
		    (net->levels > 1 && fabric_map_tier(b->map, top->tier)->by_rail &&
		     h->place[top->tier] == b->host[net->host[0]].place[top->tier]))
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

static void tree_capacities(const struct sim_net *net, unsigned at,
			    const struct tier_build *t, double *capacity,
			    uint8_t *tier_of)
{
	const struct sim_level *l = &net->level[at];

	for (uint32_t c = 0; c < t->children; c++) {
		if (l->up[c] == SHARE_NONE)
			continue;
		capacity[l->up[c]] = capacity[l->down[c]] =
			net_left(t->wide[c], t->part[c]);
		tier_of[l->up[c]] = tier_of[l->down[c]] = (uint8_t)at;
	}
}

/* Children of a mesh by group and index. NULL: no memory. */
static uint32_t *mesh_children(const struct sim_level *l, const struct tier_build *t,
			       uint32_t *first)
{
	uint32_t *child = malloc(((size_t)t->children + 1) * sizeof(*child)), at = 0;

	for (uint32_t g = 0; g < t->groups; g++) {
		first[g] = at;
		at += l->size[g];
	}
	for (uint32_t c = 0; child && c < t->children; c++)
		if (t->wide[c] > 0)
			child[first[t->group_of_child[c]] + l->index[c]] = c;
	return child;
}

/* The link of child c to child d. */
static int mesh_link(struct net_build *b, struct sim_level *l, const struct tier_build *t,
		     enum fabric_distance below, uint32_t c, uint32_t d, uint32_t **dead,
		     double *capacity)
{
	const uint32_t g = t->group_of_child[c], size = l->size[g];
	const uint32_t at = l->pair[g] + l->index[c] * size + l->index[d];
	const uint32_t rails = t->by_rail || t->below_by_rail ? t->rails : 1;
	const double pair = b->options->faults && c != d
				    ? net_fault_pair(b, below, c / rails, d / rails)
				    : 1;
	double part = t->part[c] * (pair > 0 ? pair : 1);

	if (c != d)
		part *= t->part[d];
	capacity[at] = net_left((double)(uint64_t)(t->wide[c] / (size - 1)), part);
	if (pair > 0)
		return 0;
	if (!(l->deads & (l->deads + 1))) { /* 0, 1, 3, 7: full */
		uint32_t *more = realloc(*dead, (2 * l->deads + 1) * sizeof(*more));

		if (!more)
			return -ENOMEM;
		*dead = more;
	}
	(*dead)[l->deads++] = at;
	return 0;
}

static int mesh_capacities(struct net_build *b, unsigned at, const struct tier_build *t,
			   enum fabric_distance below, double *capacity, uint8_t *tier_of)
{
	struct sim_level *l = &b->net->level[at];
	uint32_t *first = malloc(((size_t)t->groups + 1) * sizeof(*first));
	uint32_t *child = first ? mesh_children(l, t, first) : NULL, *dead = NULL, *kept;
	int rc = child ? 0 : -ENOMEM;

	for (uint32_t c = 0; !rc && c < t->children; c++) {
		const uint32_t g = t->group_of_child[c], size = l->size[g];

		for (uint32_t j = 0; !rc && t->wide[c] > 0 && size > 1 && j < size; j++) {
			rc = mesh_link(b, l, t, below, c, child[first[g] + j], &dead,
				       capacity);
			tier_of[l->pair[g] + l->index[c] * size + j] = (uint8_t)at;
		}
	}
	if (!rc && l->deads) {
		kept = net_alloc(b, l->deads, sizeof(*kept));
		rc = kept ? 0 : -ENOMEM;
		if (kept)
			l->dead = memcpy(kept, dead, l->deads * sizeof(*kept));
	}
	free(dead);
	free(child);
	free(first);
	return rc;
}

/* Capacities by link, once it is known how many there are. */
static int capacities_set(struct net_build *b, struct tier_build *made)
{
	struct sim_net *net = b->net;
	const struct fabric_tier *host = fabric_map_tier(b->map, FABRIC_SAME_HOST);
	double *capacity = net_alloc(b, net->links + (size_t)net->ranks * SIM_PORTS,
				     sizeof(*capacity));
	uint8_t *tier_of = net_alloc(b, net->links, sizeof(*tier_of));
	int rc = capacity && tier_of ? 0 : -ENOMEM;

	for (unsigned i = 1; !rc && i < net->levels; i++) {
		if (net->level[i].up)
			tree_capacities(net, i, &made[i], capacity, tier_of);
		else if (net->level[i].mesh)
			rc = mesh_capacities(b, i, &made[i], net->level[i - 1].tier,
					     capacity, tier_of);
		else if (net->level[i].torus)
			rc = net_torus_capacities(b, i, &made[i], capacity, tier_of);
	}
	for (int32_t r = 0; !rc && r < net->ranks; r++) {
		double *p = &capacity[net->links + (size_t)r * SIM_PORTS];
		const double port = net_fault_port(b, &b->host[net->host[r]],
						   b->slot[r] % b->per_host);

		p[SIM_OUT] = p[SIM_IN] = port;
		p[SIM_HOST_OUT] = p[SIM_HOST_IN] =
			host && host->bits_per_s ? (double)(host->bits_per_s / 8) : port;
	}
	net->capacity = capacity;
	net->tier_of = tier_of;
	return rc;
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
	if (!rc)
		rc = capacities_set(b, made);
	return rc ? rc : net_faults_check(b);
}
