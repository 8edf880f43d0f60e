/* SPDX-License-Identifier: BSD-2-Clause */
/* See net.h: reading the map, placing ranks, and ways. The links are made in
 * net_links.c. */
#include "config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/net_in.h"

static const char *const placement_name[SIM_PLACEMENTS] = {
	[SIM_PACKED] = "packed", [SIM_SCATTERED] = "scattered", [SIM_RAILS] = "rails"};

const char *sim_placement_name(enum sim_placement p)
{
	return p < SIM_PLACEMENTS ? placement_name[p] : "?";
}

int net_fail(struct net_build *b, unsigned line, const char *fmt, ...)
{
	va_list ap;

	b->error->line = line;
	va_start(ap, fmt);
	vsnprintf(b->error->text, sizeof(b->error->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

void *net_alloc(struct net_build *b, size_t count, size_t size)
{
	struct sim_net_store *s = b->net->store;
	void *p;

	if (s->count == s->room) {
		const size_t room = s->room ? 2 * s->room : 64;
		void **more = realloc(s->piece, room * sizeof(*more));

		if (!more)
			return NULL;
		s->piece = more;
		s->room = room;
	}
	p = calloc(count ? count : 1, size);
	if (p)
		s->piece[s->count++] = p;
	return p;
}

/* ---- names of places -----------------------------------------------------------------
 */

static uint32_t text_hash(uint32_t h, const char *text)
{
	for (; *text; text++)
		h = (h ^ (uint8_t)*text) * UINT32_C(16777619);
	return (h ^ '/') * UINT32_C(16777619);
}

/* What two hosts have in common at a tier, as text; false: the host's is not known. */
static bool place_at(const struct fabric_place *p, enum fabric_distance tier,
		     const char *part[3])
{
	static const char none[] = "";

	part[0] = tier <= FABRIC_OTHER_ZONE ? p->building : none;
	part[1] = tier <= FABRIC_OTHER_RACK ? p->zone : none;
	part[2] = tier <= FABRIC_SAME_RACK ? p->rack : none;
	return (tier > FABRIC_SAME_RACK || p->rack[0]) &&
	       (tier > FABRIC_OTHER_RACK || p->zone[0]) && p->building[0];
}

/* Numbers of places at one tier, by name. */
struct names {
	struct fabric_place *place;
	uint32_t *table;
	uint32_t count, room;
};

static bool names_grow(struct names *n, enum fabric_distance tier)
{
	const uint32_t room = n->room ? n->room * 2 : 64;
	struct fabric_place *place = realloc(n->place, room * sizeof(*place));
	uint32_t *table;

	if (!place)
		return false;
	n->place = place;
	table = malloc(2 * (size_t)room * sizeof(*table));
	if (!table)
		return false;
	memset(table, 0xff, 2 * (size_t)room * sizeof(*table));
	for (uint32_t i = 0; i < n->count; i++) {
		const char *part[3];
		uint32_t at;

		if (!place_at(&place[i], tier, part))
			continue;
		at = text_hash(text_hash(text_hash(0, part[0]), part[1]), part[2]);
		while (table[at & (2 * room - 1)] != SHARE_NONE)
			at++;
		table[at & (2 * room - 1)] = i;
	}
	free(n->table);
	n->table = table;
	n->room = room;
	return true;
}

/* The number of the host's place at the tier; what is not known is a new one. */
static bool name_number(struct names *n, enum fabric_distance tier,
			const struct fabric_place *p, uint32_t *number)
{
	const char *part[3];
	const bool known = place_at(p, tier, part);

	if (n->count == n->room && !names_grow(n, tier))
		return false;
	if (known) {
		uint32_t at =
			text_hash(text_hash(text_hash(0, part[0]), part[1]), part[2]);
		for (;; at++) {
			const uint32_t i = n->table[at & (2 * n->room - 1)];
			const char *other[3];

			if (i == SHARE_NONE)
				break;
			place_at(&n->place[i], tier, other);
			if (!strcmp(part[0], other[0]) && !strcmp(part[1], other[1]) &&
			    !strcmp(part[2], other[2])) {
				*number = i;
				return true;
			}
		}
		n->table[at & (2 * n->room - 1)] = n->count;
	}
	n->place[n->count] = *p;
	*number = n->count++;
	return true;
}

/* ---- hosts ---------------------------------------------------------------------------
 */

/* Rails of a host (all, where it names none), and what they carry together. */
static uint32_t host_rails(const struct fabric_map *map, const struct fabric_host *host,
			   double *rate)
{
	const unsigned rails = fabric_map_rails(map);
	uint32_t mine = 0;
	double sum = 0, all = 0;

	for (unsigned i = 0; i < rails; i++) {
		const double bytes = (double)fabric_map_rail(map, i)->bits_per_s / 8;

		all += bytes;
		if (host->device[i][0]) {
			mine |= 1u << i;
			sum += bytes;
		}
	}
	*rate = mine ? sum : all;
	return mine ? mine : (1u << rails) - 1;
}

static int host_add(struct net_build *b, const struct fabric_host *host, unsigned line,
		    struct names *names)
{
	struct net_host *h = &b->host[b->hosts];
	double rate;

	if (!host->place.building[0])
		return net_fail(b, line,
				"host %s is out of reach: its building is not known, so "
				"that no tier joins it to others",
				host->place.host);
	h->line = line;
	h->rail = h->rail_all = host_rails(b->map, host, &rate);
	h->port = (double)(uint64_t)(rate / b->per_host);
	if (h->port < 1)
		return net_fail(
			b, line,
			"host %s: a rank's share of its rails is nothing; the map "
			"needs a line like \"rail r0 400G\"",
			host->place.host);
	for (unsigned t = 0; t < FABRIC_UNKNOWN; t++) {
		if (t == FABRIC_SAME_HOST)
			h->place[t] = b->hosts;
		else if (t == FABRIC_OTHER_BUILDING)
			h->place[t] = 0;
		else if (!name_number(&names[t], (enum fabric_distance)t, &host->place,
				      &h->place[t]))
			return -ENOMEM;
	}
	b->hosts++;
	return net_fault_host(b, h, &host->place);
}

static int hosts_read(struct net_build *b)
{
	const uint64_t hosts = fabric_map_hosts(b->map);
	struct names names[FABRIC_UNKNOWN] = {{0}};
	struct fabric_cursor at = {0};
	struct fabric_host host;
	unsigned line;
	int rc = 0;

	b->per_host = fabric_map_ranks(b->map);
	if (hosts * b->per_host < (uint64_t)b->net->ranks)
		return net_fail(b, 0,
				"%d ranks, but the map has %llu hosts of %u ranks, for "
				"%llu; add hosts, or ranks to each",
				b->net->ranks, (unsigned long long)hosts, b->per_host,
				(unsigned long long)(hosts * b->per_host));
	if (hosts > SIM_RANKS_MAX)
		return net_fail(b, 0, "%llu hosts; a network has at most %d",
				(unsigned long long)hosts, SIM_RANKS_MAX);
	b->host = net_alloc(b, (size_t)hosts, sizeof(*b->host));
	if (!b->host)
		return -ENOMEM;
	while (!rc && fabric_map_next(b->map, &at, &host, &line))
		rc = host_add(b, &host, line, names);
	for (unsigned t = 0; t < FABRIC_UNKNOWN; t++) {
		b->places[t] = names[t].count;
		free(names[t].place);
		free(names[t].table);
	}
	b->places[FABRIC_SAME_HOST] = b->hosts;
	b->places[FABRIC_OTHER_BUILDING] = 1;
	return rc;
}

/* ---- placing -------------------------------------------------------------------------
 */

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(0x2545f4914f6cdd1d);
}

/* A slot is a host's place for a rank: host * per_host + index. Here of `live` hosts. */
static bool slots_scatter(struct net_build *b, uint32_t live, uint32_t *slot)
{
	const uint64_t all = (uint64_t)live * b->per_host;
	uint32_t *of = malloc((size_t)all * sizeof(*of));
	uint64_t seed = b->options->seed ? b->options->seed : 1;

	if (!of)
		return false;
	for (uint64_t i = 0; i < all; i++)
		of[i] = (uint32_t)i;
	for (int32_t r = 0; r < b->net->ranks; r++) {
		const uint64_t with =
			(uint64_t)r + random_next(&seed) % (all - (uint64_t)r);

		slot[r] = of[with];
		of[with] = of[r];
	}
	free(of);
	return true;
}

/* Hosts that are not dead; the list is the caller's. */
static int hosts_live(struct net_build *b, uint32_t **list, uint32_t *count)
{
	uint32_t *live = malloc(((size_t)b->hosts + 1) * sizeof(*live));

	if (!live)
		return -ENOMEM;
	*count = 0;
	for (uint32_t h = 0; h < b->hosts; h++)
		if (!b->host[h].dead)
			live[(*count)++] = h;
	if ((uint64_t)*count * b->per_host < (uint64_t)b->net->ranks) {
		free(live);
		return net_fail(b, 0,
				"%d ranks, but %u hosts of %u ranks are not dead; fewer "
				"ranks, or more hosts",
				b->net->ranks, *count, b->per_host);
	}
	*list = live;
	return 0;
}

static int ranks_place(struct net_build *b)
{
	struct sim_net *net = b->net;
	const uint32_t n = (uint32_t)net->ranks;
	const uint32_t used = (n + b->per_host - 1) / b->per_host;
	uint32_t count = 0, *live = NULL, *host, *seen;
	int rc = hosts_live(b, &live, &count);

	if (rc)
		return rc;
	rc = -ENOMEM;
	b->slot = net_alloc(b, n, sizeof(*b->slot));
	host = net_alloc(b, n, sizeof(*host));
	seen = calloc(b->hosts, sizeof(*seen));
	if (!b->slot || !host || !seen ||
	    (b->options->placement == SIM_SCATTERED && !slots_scatter(b, count, b->slot)))
		goto out;
	for (uint32_t r = 0; r < n; r++) {
		uint32_t slot = b->slot[r];

		if (b->options->placement == SIM_PACKED)
			slot = r;
		else if (b->options->placement == SIM_RAILS)
			slot = r % used * b->per_host + r / used;
		host[r] = live[slot / b->per_host];
		b->slot[r] = host[r] * b->per_host + slot % b->per_host;
		net->hosts += !seen[host[r]]++;
	}
	net->host = host;
	rc = 0;
out:
	free(live);
	free(seen);
	return rc;
}

/* ---- ways ----------------------------------------------------------------------------
 */

static void way_up_and_down(const struct sim_level *l, int32_t from, int32_t to,
			    struct sim_path *p)
{
	const uint32_t up = l->up[l->child[from]], down = l->down[l->child[to]];

	if (up != SHARE_NONE)
		p->link[p->links++] = up;
	if (down != SHARE_NONE)
		p->link[p->links++] = down;
}

static bool is_dead(const struct sim_level *l, uint32_t link)
{
	for (unsigned i = 0; i < l->deads; i++)
		if (l->dead[i] == link)
			return true;
	return false;
}

/* Where they meet in a mesh: the one link between the two; where that is dead, by a third
 * group, which differs by who the two are. That there is one was looked at before. */
static void way_across(const struct sim_level *l, int32_t from, int32_t to,
		       struct sim_path *p)
{
	const uint32_t group = l->group[from], first = l->pair[group];
	const uint32_t a = l->index[l->child[from]], z = l->index[l->child[to]];
	uint32_t size, k;

	if (first == SHARE_NONE)
		return;
	size = l->size[group];
	if (!l->deads || !is_dead(l, first + a * size + z)) {
		p->link[p->links++] = first + a * size + z;
		return;
	}
	k = ((uint32_t)from + (uint32_t)to) % size;
	while (k == a || k == z || is_dead(l, first + a * size + k) ||
	       is_dead(l, first + k * size + z))
		k = (k + 1) % size;
	p->link[p->links++] = first + a * size + k;
	p->link[p->links++] = first + k * size + z;
	p->latency += l->latency;
}

void sim_net_path(const struct sim_net *net, int32_t from, int32_t to, struct sim_path *p)
{
	const struct sim_level *l = net->level;
	unsigned at = 0, kind = SIM_OUT;

	p->links = 0;
	p->latency = 0;
	while (at + 1 < net->levels &&
	       (!l[at].said || l[at].group[from] != l[at].group[to]))
		at++;
	for (unsigned i = 1; i <= at; i++) {
		if (i == at && l[i].child[from] == l[i].child[to])
			break; /* ranks of a host, which has no network of its own */
		if (i == at && l[i].torus)
			net_torus_way(&l[i], from, to, p);
		else if (i == at && l[i].mesh)
			way_across(&l[i], from, to, p);
		else if (l[i].up)
			way_up_and_down(&l[i], from, to, p);
	}
	if (at == 0)
		kind = SIM_HOST_OUT;
	p->level = at;
	p->latency += l[at].latency;
	p->out = (uint32_t)from * SIM_PORTS + kind;
	p->in = (uint32_t)to * SIM_PORTS + kind + 1;
	p->most = net->capacity[net->links + p->out];
	if (net->capacity[net->links + p->in] < p->most)
		p->most = net->capacity[net->links + p->in];
}

double sim_net_setup(const struct sim_net *net)
{
	double setup = 0;

	for (unsigned i = 1; i < net->levels; i++)
		if (net->level[i].torus && net->level[i].torus->setup > setup)
			setup = net->level[i].torus->setup;
	return setup;
}

/* ---- all together --------------------------------------------------------------------
 */

static int options_check(struct net_build *b)
{
	const struct sim_net_options *o = b->options;

	if (o->ranks < 1 || o->ranks > SIM_RANKS_MAX)
		return net_fail(b, 0, "%d ranks; there can be 1 to %d", o->ranks,
				SIM_RANKS_MAX);
	return net_faults_read(b);
}

int sim_net_open(const struct fabric_map *map, const struct sim_net_options *options,
		 struct sim_net **net, struct fabric_error *error)
{
	struct net_build b = {.map = map, .options = options, .error = error};
	int rc;

	*error = (struct fabric_error){.text = "out of memory"};
	b.net = calloc(1, sizeof(*b.net));
	if (!b.net)
		return -ENOMEM;
	b.net->ranks = options->ranks;
	b.net->store = calloc(1, sizeof(*b.net->store));
	rc = b.net->store ? options_check(&b) : -ENOMEM;
	if (!rc)
		rc = hosts_read(&b);
	if (!rc)
		rc = ranks_place(&b);
	if (!rc)
		rc = net_links_make(&b);
	if (!rc && options->shape[0] && sim_net_setup(b.net) <= 0)
		rc = net_fail(
			&b, 0,
			"a shape is for an optical torus, and the map has none; add "
			"torus= and optical= to a tier, or leave the shape out");
	if (rc) {
		sim_net_close(b.net);
		return rc;
	}
	error->text[0] = '\0';
	*net = b.net;
	return 0;
}

void sim_net_close(struct sim_net *net)
{
	if (!net)
		return;
	for (size_t i = 0; net->store && i < net->store->count; i++)
		free(net->store->piece[i]);
	if (net->store)
		free(net->store->piece);
	free(net->store);
	free(net);
}
