/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a network is slow or dead: names in, parts of rates out, and whether what is
 * dead has a way around it.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "topo/sim/net_in.h"
#include "util/span.h"

/* ---- names ---------------------------------------------------------------------------
 */

static int name_fail(struct net_build *b, const char *name)
{
	return net_fail(b, 0,
			"\"%.100s\" names nothing that can be slow or dead: there are "
			"HOST, HOST:RAIL, PLACE, PLACE:RAIL and PLACE:PLACE, a place "
			"being b1/z1/k1, b1/z1/- or b1/-/-",
			name);
}

static bool rail_find(const struct fabric_map *map, struct span name, unsigned *rail)
{
	for (*rail = 0; *rail < fabric_map_rails(map); ++*rail)
		if (span_is(name, fabric_map_rail(map, *rail)->name))
			return true;
	return false;
}

/* The tier whose groups are places like that: its last part that is known. */
static enum fabric_distance place_depth(const struct fabric_place *p)
{
	if (p->rack[0])
		return FABRIC_SAME_RACK;
	return p->zone[0] ? FABRIC_OTHER_RACK : FABRIC_OTHER_ZONE;
}

static bool place_take(struct span text, struct fabric_place *place)
{
	*place = (struct fabric_place){{0}, {0}, {0}, {0}};
	return fabric_place_parse(text.at, text.len, place) && place->building[0];
}

static int host_take(struct net_build *b, const char *name, struct span text,
		     struct net_fault *f)
{
	struct fabric_host host;

	if (text.len == 0 || text.len > FABRIC_HOST_MAX)
		return name_fail(b, name);
	memcpy(f->place.host, text.at, text.len);
	f->place.host[text.len] = '\0';
	if (fabric_map_host(b->map, f->place.host, &host))
		return 0;
	return net_fail(b, 0,
			"host \"%.63s\" is to be slow or dead, but the map does not have "
			"it",
			f->place.host);
}

static int fault_read(struct net_build *b, const struct sim_fault *said,
		      struct net_fault *f)
{
	struct span behind = span_of(said->name), first = span_cut(&behind, ':');
	const bool second = first.len < strlen(said->name);
	const bool place = memchr(first.at, '/', first.len);

	*f = (struct net_fault){
		.part = said->part, .number = SHARE_NONE, .other_number = SHARE_NONE};
	if (!(said->part >= 0) || said->part > 1)
		return net_fail(b, 0, "\"%.100s\" is to have %g of its rate; 0 to 1",
				said->name, said->part);
	if (place && !place_take(first, &f->place))
		return name_fail(b, said->name);
	if (!place && host_take(b, said->name, first, f))
		return -EINVAL;
	f->below = place ? place_depth(&f->place) : FABRIC_SAME_HOST;
	f->kind = place ? FAULT_PLACE : FAULT_HOST;
	if (!second)
		return 0;
	if (place && place_take(behind, &f->other)) {
		f->kind = FAULT_PAIR;
		return place_depth(&f->other) == f->below ? 0 : name_fail(b, said->name);
	}
	f->kind = place ? FAULT_PLACE_RAIL : FAULT_RAIL;
	if (rail_find(b->map, behind, &f->rail))
		return 0;
	return net_fail(b, 0, "\"%.100s\": the map has no rail \"%.*s\"", said->name,
			SPAN_SHOWN(behind));
}

int net_faults_read(struct net_build *b)
{
	const struct sim_net_options *o = b->options;

	if (o->faults > SIM_FAULTS_MAX)
		return net_fail(b, 0, "%u things are slow or dead; there can be %u",
				o->faults, SIM_FAULTS_MAX);
	for (unsigned i = 0; i < o->faults; i++) {
		const int rc = fault_read(b, &o->fault[i], &b->fault[i]);

		if (rc)
			return rc;
	}
	return 0;
}

/* ---- hosts ---------------------------------------------------------------------------
 */

static bool inside(const struct fabric_place *host, const struct fabric_place *place,
		   enum fabric_distance depth)
{
	return !strcmp(host->building, place->building) &&
	       (depth >= FABRIC_OTHER_ZONE || !strcmp(host->zone, place->zone)) &&
	       (depth >= FABRIC_OTHER_RACK || !strcmp(host->rack, place->rack));
}

/* A rail that it cannot use: the others are left to its ranks. */
static int rail_lost(struct net_build *b, struct net_host *h, const char *name,
		     unsigned rail)
{
	double lost = 0, all = 0;

	for (unsigned i = 0; i < fabric_map_rails(b->map); i++) {
		const double rate = (double)fabric_map_rail(b->map, i)->bits_per_s;

		if (h->rail & 1u << i)
			all += rate;
		if (i == rail)
			lost = rate;
	}
	if (!(h->rail & 1u << rail))
		return 0;
	h->rail &= ~(1u << rail);
	if (!h->rail)
		return net_fail(b, h->line,
				"host %.63s has no rail left that is not dead; its ranks "
				"are out of reach: name the host dead too, and they are "
				"placed elsewhere",
				name);
	h->part *= 1 - lost / all;
	return 0;
}

int net_fault_host(struct net_build *b, struct net_host *h,
		   const struct fabric_place *place)
{
	int rc = 0;

	h->part = 1;
	for (unsigned i = 0; i < b->options->faults; i++)
		if (b->fault[i].kind == FAULT_HOST && !b->fault[i].part &&
		    !strcmp(b->fault[i].place.host, place->host))
			h->dead = b->fault[i].used = true;
	for (unsigned i = 0; !rc && i < b->options->faults; i++) {
		struct net_fault *f = &b->fault[i];
		const bool of_host = f->below == FABRIC_SAME_HOST;

		if (f->kind == FAULT_PAIR && inside(place, &f->other, f->below))
			f->other_number = h->place[f->below];
		if (of_host ? strcmp(f->place.host, place->host) != 0
			    : !inside(place, &f->place, f->below))
			continue;
		f->number = h->place[f->below];
		if (f->kind == FAULT_HOST && f->part > 0) {
			h->part *= f->part;
			f->used = true;
		} else if (f->kind == FAULT_RAIL || f->kind == FAULT_PLACE_RAIL) {
			/* The slow rail of a place is a link's: net_fault_part(). */
			if (h->rail & 1u << f->rail && (of_host || !f->part))
				f->used = true;
			h->uneven = h->uneven || (of_host && f->part > 0);
			if (!f->part && !h->dead)
				rc = rail_lost(b, h, place->host, f->rail);
		}
	}
	return rc;
}

static bool any_by_rail(const struct fabric_map *map)
{
	for (int d = 0; d < FABRIC_UNKNOWN; d++) {
		const struct fabric_tier *tier =
			fabric_map_tier(map, (enum fabric_distance)d);

		if (tier && tier->by_rail)
			return true;
	}
	return false;
}

double net_fault_port(const struct net_build *b, const struct net_host *h, uint32_t index)
{
	double part = h->part;

	for (unsigned i = 0; h->uneven && i < b->options->faults; i++) {
		const struct net_fault *f = &b->fault[i];

		if (f->kind != FAULT_RAIL || !f->part ||
		    f->number != h->place[FABRIC_SAME_HOST] || !(h->rail & 1u << f->rail))
			continue;
		/* Where rails are networks a rank has its own, else a share of all. */
		if (!any_by_rail(b->map))
			part *= 1 - (1 - f->part) / __builtin_popcount(h->rail);
		else if (net_rail(h->rail, index) == f->rail)
			part *= f->part;
	}
	part *= h->port;
	return part < 1 ? 1 : (double)(uint64_t)part;
}

/* ---- links ---------------------------------------------------------------------------
 */

double net_fault_part(struct net_build *b, enum fabric_distance below, uint32_t number,
		      uint32_t rail)
{
	double part = 1;

	for (unsigned i = 0; i < b->options->faults; i++) {
		struct net_fault *f = &b->fault[i];
		const bool whole = f->kind == FAULT_PLACE;

		if (f->below != below || f->number != number ||
		    !(whole || (f->kind == FAULT_PLACE_RAIL && f->rail == rail)))
			continue;
		f->used = true;
		/* What is dead is used by nobody: net_faults_check(). */
		part *= f->part > 0 ? f->part : 1;
	}
	return part;
}

double net_fault_pair(struct net_build *b, enum fabric_distance below, uint32_t one,
		      uint32_t other)
{
	double part = 1;

	for (unsigned i = 0; i < b->options->faults; i++) {
		struct net_fault *f = &b->fault[i];

		if (f->kind != FAULT_PAIR || f->below != below ||
		    !((f->number == one && f->other_number == other) ||
		      (f->number == other && f->other_number == one)))
			continue;
		f->used = true;
		part *= f->part;
	}
	return part;
}

/* ---- afterwards ----------------------------------------------------------------------
 */

static const char *const joined[] = {"hosts", "racks", "zones", "buildings"};

/* The first level above places of that kind, which joins *what; NULL: none is. */
static const struct sim_level *level_above(const struct net_build *b,
					   enum fabric_distance below,
					   enum fabric_distance *what)
{
	for (unsigned i = 1; i < b->net->levels; i++) {
		*what = b->net->level[i - 1].tier;
		if (b->net->level[i].tier > below)
			return &b->net->level[i];
	}
	*what = FABRIC_SAME_HOST;
	return NULL;
}

static int unused_fail(struct net_build *b, const char *name, const struct net_fault *f)
{
	enum fabric_distance what;
	const struct sim_level *l = level_above(b, f->below, &what);
	const bool pair = f->kind == FAULT_PAIR;

	if (f->kind == FAULT_RAIL || (f->kind == FAULT_PLACE_RAIL && !f->part))
		return net_fail(b, 0, "\"%.100s\": no host there is on rail %s", name,
				fabric_map_rail(b->map, f->rail)->name);
	if (f->number == SHARE_NONE || (pair && f->other_number == SHARE_NONE))
		return net_fail(b, 0, "\"%.100s\": no host of the map is there", name);
	if (!l || what != f->below)
		return net_fail(b, 0,
				"\"%.100s\": no tier of the map joins %s, so that it has "
				"no links%s%s%s%s",
				name, joined[f->below], l ? "; tier " : "",
				l ? fabric_distance_name(l->tier) : "",
				l ? " joins " : "", l ? joined[what] : "");
	if (pair)
		return net_fail(
			b, 0, "\"%.100s\": tier %s has %s", name,
			fabric_distance_name(l->tier),
			l->mesh	   ? "no link between those two"
			: l->torus ? "a torus, whose links have no names; name one of "
				     "the two places"
				   : "a switch, and no links pair by pair; name one "
				     "of the two places");
	return net_fail(b, 0, "\"%.100s\": tier %s has one link for all rails", name,
			fabric_distance_name(l->tier));
}

/* Ranks are in that place and out of it: its only link is dead. */
static int place_check(struct net_build *b, const char *name, const struct net_fault *f)
{
	int32_t in = 0, first = -1;

	for (int32_t r = 0; r < b->net->ranks; r++) {
		if (b->host[b->net->host[r]].place[f->below] != f->number)
			continue;
		first = in++ ? first : r;
	}
	if (!in || in == b->net->ranks)
		return 0;
	return net_fail(b, 0,
			"\"%.100s\" is dead, and there is no other way to the %d ranks "
			"that are there (the first is %d); name their hosts dead, and "
			"they are placed elsewhere",
			name, in, first);
}

static bool is_dead(const struct sim_level *l, uint32_t link)
{
	for (unsigned i = 0; i < l->deads; i++)
		if (l->dead[i] == link)
			return true;
	return false;
}

/* Children of a mesh that have ranks and no third one to go by. */
static int mesh_check(struct net_build *b, const struct sim_level *l)
{
	const struct sim_net *net = b->net;

	for (int32_t from = 0; from < net->ranks; from++) {
		const uint32_t a = l->index[l->child[from]], g = l->group[from],
			       size = l->size[g];
		const uint32_t row = l->pair[g] + a * size;

		/* Ranks of one child follow each other mostly. */
		if (from && l->child[from] == l->child[from - 1])
			continue;
		for (unsigned i = 0; i < l->deads; i++) {
			const uint32_t to = l->dead[i] - row;
			uint32_t k = 0;

			if (l->dead[i] < row || to >= size)
				continue;
			while (k < size && (k == a || k == to || is_dead(l, row + k) ||
					    is_dead(l, l->pair[g] + k * size + to)))
				k++;
			for (int32_t r = 0; k == size && r < net->ranks; r++)
				if (l->group[r] == g && l->index[l->child[r]] == to)
					return net_fail(
						b, 0,
						"a link of tier %s is dead, and no third "
						"group joins rank %d to rank %d",
						fabric_distance_name(l->tier), from, r);
		}
	}
	return 0;
}

int net_faults_check(struct net_build *b)
{
	const struct sim_net_options *o = b->options;
	int rc = 0;

	for (unsigned i = 0; !rc && i < o->faults; i++) {
		const struct net_fault *f = &b->fault[i];

		if (!f->used)
			rc = unused_fail(b, o->fault[i].name, f);
		else if (f->kind == FAULT_PLACE && !f->part)
			rc = place_check(b, o->fault[i].name, f);
	}
	for (unsigned i = 1; !rc && i < b->net->levels; i++)
		if (b->net->level[i].deads)
			rc = mesh_check(b, &b->net->level[i]);
	return rc;
}
