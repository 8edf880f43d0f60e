/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tier that is a torus. Fixed: who is joined has its place by the order of the map, and
 * dead hosts leave holes that messages go around. Optical: circuits are switched so that
 * the job's hosts are a torus by themselves, in the shape that it asks for, in the order
 * of its ranks; a dead host is not among them.
 *
 * Link numbers: of each place, along each way, one up and one down.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/net_in.h"

/* Tables of hops have a byte for each two places. */
#define HOLES_PLACES_MAX 4096u
#define UNREACHED	 UINT8_MAX

static uint32_t neighbour(const struct sim_torus *t, uint32_t place, unsigned way,
			  bool down)
{
	uint32_t stride = 1, at;

	for (unsigned i = 0; i < way; i++)
		stride *= t->dim[i];
	at = place / stride % t->dim[way];
	place -= at * stride;
	at = (at + (down ? t->dim[way] - 1 : 1)) % t->dim[way];
	return place + at * stride;
}

static uint32_t link_of(const struct sim_torus *t, uint32_t group, uint32_t place,
			unsigned way, bool down)
{
	return t->first[group] + (place * t->dims + way) * 2 + down;
}

/* ---- places --------------------------------------------------------------------------
 */

/* By the order of the map: each group fills the torus. */
static int places_fixed(struct net_build *b, const struct sim_level *l,
			const struct tier_build *t, const struct sim_torus *torus,
			uint32_t *index, uint32_t *size)
{
	for (uint32_t c = 0; c < t->children; c++)
		if (t->wide[c] > 0)
			index[c] = size[t->group_of_child[c]]++;
	for (uint32_t g = 0; g < t->groups; g++)
		if (size[g] && size[g] != torus->places)
			return net_fail(b, t->tier->line,
					"tier %s: its torus has %u places, but it joins "
					"%u; as many, or optical=",
					fabric_distance_name(l->tier), torus->places,
					size[g]);
	return 0;
}

/* By the order of ranks: only who has some has a place. */
static int places_optical(struct net_build *b, const struct sim_level *l,
			  const struct tier_build *t, const struct sim_torus *torus,
			  uint32_t *index, uint32_t *size)
{
	uint32_t used = 0;

	memset(index, 0xff, t->children * sizeof(*index));
	for (int32_t r = 0; r < b->net->ranks; r++) {
		if (l->group[r] != l->group[0])
			return net_fail(b, t->tier->line,
					"ranks 0 and %d are in two places of tier %s: an "
					"optical torus is switched within one",
					r, fabric_distance_name(l->tier));
		if (index[l->child[r]] == SHARE_NONE)
			index[l->child[r]] = used++;
	}
	size[l->group[0]] = used;
	if (used != torus->places)
		return net_fail(
			b, t->tier->line,
			"the job's torus has %u places, but tier %s joins %u that "
			"have ranks; give a shape of as many",
			torus->places, fabric_distance_name(l->tier), used);
	return 0;
}

/* ---- holes ---------------------------------------------------------------------------
 */

/* Hops from all places to one; false: a live one is out of reach, or too far. */
static bool hops_to(const struct sim_torus *t, const bool *dead, uint32_t to,
		    uint8_t *hops, uint32_t *queue)
{
	uint32_t head = 0, count = 1;

	memset(hops, UNREACHED, t->places);
	hops[to] = 0;
	queue[0] = to;
	while (head < count) {
		const uint32_t at = queue[head++];

		for (unsigned i = 0; i < 2 * t->dims; i++) {
			const uint32_t next = neighbour(t, at, i / 2, i & 1);

			if (dead[next] || hops[next] != UNREACHED)
				continue;
			hops[next] = (uint8_t)(hops[at] + 1);
			if (hops[next] > FABRIC_TORUS_HOPS)
				return false;
			queue[count++] = next;
		}
	}
	for (uint32_t p = 0; p < t->places; p++)
		if (!dead[p] && hops[p] == UNREACHED)
			return false;
	return true;
}

static int holes_group(struct net_build *b, const struct tier_build *t,
		       struct sim_torus *torus, const uint32_t *index, uint32_t group)
{
	const size_t n = torus->places;
	bool *dead = calloc(n, sizeof(*dead)), any = false, good = true;
	uint32_t *queue = malloc(n * sizeof(*queue));
	uint8_t *hops = NULL;
	int rc = dead && queue ? 0 : -ENOMEM;

	for (uint32_t c = 0; !rc && c < t->children; c++)
		if (t->wide[c] > 0 && t->group_of_child[c] == group && b->host[c].dead)
			any = dead[index[c]] = true;
	if (!rc && any && n > HOLES_PLACES_MAX)
		rc = net_fail(b, t->tier->line,
			      "a torus of more than %u places cannot have dead ones, "
			      "unless it is optical",
			      HOLES_PLACES_MAX);
	if (!rc && any) {
		hops = net_alloc(b, n * n, 1);
		rc = hops ? 0 : -ENOMEM;
	}
	for (uint32_t p = 0; !rc && any && good && p < n; p++)
		good = dead[p] || hops_to(torus, dead, p, &hops[p * n], queue);
	if (!rc && !good)
		rc = net_fail(b, t->tier->line,
			      "dead hosts part the torus, or make a way longer than %u "
			      "links; leave their neighbours out too",
			      FABRIC_TORUS_HOPS);
	if (!rc)
		torus->hops[group] = hops;
	free(dead);
	free(queue);
	return rc;
}

/* ---- making --------------------------------------------------------------------------
 */

static struct sim_torus *torus_new(struct net_build *b, const struct tier_build *t)
{
	struct sim_torus *torus = net_alloc(b, 1, sizeof(*torus));
	const bool optical = t->tier->optical_ps;
	const uint32_t *dim =
		optical && b->options->shape[0] ? b->options->shape : t->tier->torus;

	if (!torus)
		return NULL;
	torus->places = 1;
	for (unsigned i = 0; i < FABRIC_TORUS_DIMS && dim[i]; i++) {
		torus->dim[torus->dims++] = dim[i];
		torus->places *= dim[i];
	}
	torus->setup = (double)t->tier->optical_ps * 1e-12;
	return torus;
}

int net_torus_make(struct net_build *b, struct sim_level *l, const struct tier_build *t)
{
	struct sim_torus *torus = torus_new(b, t);
	uint32_t *index = net_alloc(b, t->children, sizeof(*index));
	uint32_t *size = net_alloc(b, t->groups, sizeof(*size));
	uint32_t *first = net_alloc(b, t->groups, sizeof(*first));
	int rc;

	if (!torus || !index || !size || !first)
		return -ENOMEM;
	torus->hops = net_alloc(b, t->groups, sizeof(*torus->hops));
	if (!torus->hops)
		return -ENOMEM;
	rc = torus->setup > 0 ? places_optical(b, l, t, torus, index, size)
			      : places_fixed(b, l, t, torus, index, size);
	for (uint32_t g = 0; !rc && g < t->groups; g++) {
		first[g] = size[g] ? b->net->links : SHARE_NONE;
		if (size[g])
			b->net->links += torus->places * torus->dims * 2;
		if (b->net->links > NET_LINKS_MAX)
			return net_fail(b, 0, "more than %u links; join fewer groups",
					NET_LINKS_MAX);
		if (size[g] && torus->setup <= 0 && t->below == FABRIC_SAME_HOST)
			rc = holes_group(b, t, torus, index, g);
	}
	torus->first = first;
	l->index = index;
	l->size = size;
	l->torus = torus;
	return rc;
}

int net_torus_capacities(struct net_build *b, unsigned at, const struct tier_build *t,
			 double *capacity, uint8_t *tier_of)
{
	const struct sim_level *l = &b->net->level[at];
	const struct sim_torus *torus = l->torus;
	const size_t all = (size_t)t->groups * torus->places;
	double *part = malloc(all * sizeof(*part));

	if (!part)
		return -ENOMEM;
	for (uint32_t c = 0; c < t->children; c++)
		if (t->wide[c] > 0 && l->index[c] != SHARE_NONE)
			part[t->group_of_child[c] * torus->places + l->index[c]] =
				t->part[c];
	for (size_t i = 0; i < all; i++) {
		const uint32_t g = (uint32_t)(i / torus->places),
			       place = (uint32_t)(i % torus->places);

		for (unsigned k = 0; torus->first[g] != SHARE_NONE && k < 2 * torus->dims;
		     k++) {
			const uint32_t link = link_of(torus, g, place, k / 2, k & 1);
			const uint32_t next = neighbour(torus, place, k / 2, k & 1);

			capacity[link] =
				net_left((double)(t->tier->bits_per_s / 8),
					 part[i] * part[g * torus->places + next]);
			tier_of[link] = (uint8_t)at;
		}
	}
	free(part);
	return 0;
}

/* ---- ways ----------------------------------------------------------------------------
 */

static void hop(const struct sim_level *l, uint32_t group, uint32_t *at, unsigned way,
		bool down, struct sim_path *p)
{
	p->link[p->links++] = link_of(l->torus, group, *at, way, down);
	*at = neighbour(l->torus, *at, way, down);
}

/* Each hop to a place that is nearer. */
static void way_around(const struct sim_level *l, uint32_t group, uint32_t at,
		       uint32_t to, struct sim_path *p)
{
	const struct sim_torus *t = l->torus;
	const uint8_t *hops = &t->hops[group][(size_t)to * t->places];

	while (at != to) {
		unsigned i = 0;

		while (hops[neighbour(t, at, i / 2, i & 1)] != hops[at] - 1)
			i++;
		hop(l, group, &at, i / 2, i & 1, p);
	}
}

void net_torus_way(const struct sim_level *l, int32_t from, int32_t to,
		   struct sim_path *p)
{
	const struct sim_torus *t = l->torus;
	const uint32_t group = l->group[from], z = l->index[l->child[to]];
	const unsigned before = p->links;
	uint32_t at = l->index[l->child[from]], stride = 1;

	if (t->hops[group])
		way_around(l, group, at, z, p);
	for (unsigned i = 0; i < t->dims && !t->hops[group]; i++) {
		const uint32_t n = t->dim[i];
		const uint32_t up = (z / stride % n + n - at / stride % n) % n;
		/* Half way round both are as long: places differ in which. */
		const bool down = 2 * up > n || (2 * up == n && at / stride % 2);

		for (uint32_t k = down ? n - up : up; k; k--)
			hop(l, group, &at, i, down, p);
		stride *= n;
	}
	/* The level's latency is of one link. */
	p->latency += l->latency * (p->links - before - 1);
}
