/* SPDX-License-Identifier: BSD-2-Clause */
/* See share.h: flows, classes and their clocks. How rates are found is in share_fill.c.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "topo/sim/share_in.h"

/* A flow has ended when so little of it is left: a part of its length, and a bit. */
#define LEFT_PART 1e-9
/* And that part of a moment is no time. */
#define SHARE_SLACK 1e-12

/* Makes room for one more. False: no memory. */
static bool list_room(struct share_list *l)
{
	uint32_t room = l->room ? l->room * 2 : 8;
	uint32_t *at;

	if (l->count < l->room)
		return true;
	at = realloc(l->at, room * sizeof(*at));
	if (!at)
		return false;
	l->at = at;
	l->room = room;
	return true;
}

bool share_list_add(struct share_list *l, uint32_t what)
{
	if (!list_room(l))
		return false;
	l->at[l->count++] = what;
	return true;
}

struct share *share_open(uint32_t links, uint32_t ports, const double *capacity)
{
	struct share *s = calloc(1, sizeof(*s));
	const size_t all = (size_t)links + ports;

	if (!s)
		return NULL;
	s->links = links;
	s->all = links + ports;
	s->capacity = capacity;
	s->link = calloc(all + 1, sizeof(*s->link));
	s->member = calloc((size_t)links + 1, sizeof(*s->member));
	s->port_flow = malloc(((size_t)ports + 1) * sizeof(*s->port_flow));
	if (!s->link || !s->member || !s->port_flow) {
		share_close(s);
		return NULL;
	}
	memset(s->port_flow, 0xff, ((size_t)ports + 1) * sizeof(*s->port_flow));
	s->flow_free = s->kind_free = SHARE_NONE;
	return s;
}

void share_close(struct share *s)
{
	if (!s)
		return;
	for (uint32_t i = 0; s->member && i < s->links; i++)
		free(s->member[i].at);
	for (uint32_t i = 0; i < s->kinds; i++)
		free(s->kind[i].heap.at);
	free(s->link);
	free(s->member);
	free(s->port_flow);
	free(s->flow);
	free(s->kind);
	free(s->route);
	free(s->route_hash);
	free(s->kind_hash);
	free(s->ends.at);
	free(s->dirty_links.at);
	free(s->dirty_kinds.at);
	free(s->todo.at);
	free(s->near_links.at);
	free(s->fill);
	free(s->by_most.at);
	free(s);
}

/* ---- routes and classes by what they are ---------------------------------------------
 */

static uint32_t hash_mix(uint32_t h, uint32_t v)
{
	h = (h ^ v) * UINT32_C(0x9e3779b1);
	return h ^ h >> 15;
}

static uint32_t route_hash_of(const uint32_t *link, unsigned n)
{
	uint32_t h = n;

	for (unsigned i = 0; i < n; i++)
		h = hash_mix(h, link[i] + 1);
	return h;
}

static uint32_t *table_new(uint32_t room)
{
	uint32_t *t = malloc(room * sizeof(*t));

	if (t)
		memset(t, 0xff, room * sizeof(*t));
	return t;
}

static void table_put(uint32_t *table, uint32_t room, uint32_t hash, uint32_t what)
{
	uint32_t at = hash & (room - 1);

	while (table[at] != SHARE_NONE)
		at = (at + 1) & (room - 1);
	table[at] = what;
}

/* Twice as many routes can be, and are found. */
static bool routes_grow(struct share *s)
{
	const uint32_t room = s->route_room ? s->route_room * 2 : 64;
	struct share_route *route = realloc(s->route, room * sizeof(*route));
	uint32_t *table;

	if (!route)
		return false;
	s->route = route;
	table = table_new(room * 2);
	if (!table)
		return false;
	for (uint32_t i = 0; i < s->routes; i++)
		table_put(table, room * 2, route_hash_of(route[i].link, route[i].count),
			  i);
	free(s->route_hash);
	s->route_hash = table;
	s->route_room = room;
	return true;
}

uint32_t share_route(struct share *s, const uint32_t *link, unsigned n)
{
	const uint32_t hash = route_hash_of(link, n);
	struct share_route *r;

	if (s->routes == s->route_room && !routes_grow(s))
		return SHARE_NONE;
	for (uint32_t at = hash & (s->route_room * 2 - 1);;
	     at = (at + 1) & (s->route_room * 2 - 1)) {
		const uint32_t i = s->route_hash[at];

		if (i == SHARE_NONE)
			break;
		if (s->route[i].count == n &&
		    (!n || memcmp(s->route[i].link, link, n * sizeof(*link)) == 0))
			return i;
	}
	r = &s->route[s->routes];
	*r = (struct share_route){.count = (uint8_t)n};
	for (unsigned i = 0; i < n; i++)
		r->link[i] = link[i];
	table_put(s->route_hash, s->route_room * 2, hash, s->routes);
	return s->routes++;
}

static uint32_t kind_hash_of(uint32_t route, double most)
{
	uint64_t bits;

	memcpy(&bits, &most, sizeof(bits));
	return hash_mix(hash_mix(route + 7, (uint32_t)bits), (uint32_t)(bits >> 32));
}

static bool kinds_hash_grow(struct share *s)
{
	const uint32_t room = s->kind_hash_room ? s->kind_hash_room * 2 : 256;
	uint32_t *table = table_new(room);

	if (!table)
		return false;
	for (uint32_t i = 0; i < s->kinds; i++)
		if (s->kind[i].shared)
			table_put(table, room,
				  kind_hash_of(s->kind[i].route, s->kind[i].most), i);
	free(s->kind_hash);
	s->kind_hash = table;
	s->kind_hash_room = room;
	return true;
}

/* One that nobody uses; SHARE_NONE: no memory. */
static uint32_t kind_new(struct share *s, uint32_t route, double most)
{
	struct share_list heap = {0};
	uint32_t i = s->kind_free;

	if (i != SHARE_NONE) {
		s->kind_free = s->kind[i].next;
		heap = s->kind[i].heap;
	} else {
		if (s->kinds == s->kind_room) {
			const uint32_t room = s->kind_room ? s->kind_room * 2 : 256;
			struct share_kind *k = realloc(s->kind, room * sizeof(*k));

			if (!k)
				return SHARE_NONE;
			s->kind = k;
			s->kind_room = room;
		}
		i = s->kinds++;
	}
	heap.count = 0;
	s->kind[i] = (struct share_kind){.route = route,
					 .most = most,
					 .heap = heap,
					 .at = SHARE_NONE,
					 .end = INFINITY,
					 .port = {SHARE_NONE, SHARE_NONE}};
	return i;
}

/* The class of flows that are alone at their ports. */
static uint32_t kind_shared(struct share *s, uint32_t route, double most)
{
	const uint32_t hash = kind_hash_of(route, most);
	uint32_t i;

	if (s->shared_kinds * 2 >= s->kind_hash_room && !kinds_hash_grow(s))
		return SHARE_NONE;
	for (uint32_t at = hash & (s->kind_hash_room - 1);;
	     at = (at + 1) & (s->kind_hash_room - 1)) {
		i = s->kind_hash[at];
		if (i == SHARE_NONE)
			break;
		if (s->kind[i].route == route && s->kind[i].most == most)
			return i;
	}
	i = kind_new(s, route, most);
	if (i == SHARE_NONE)
		return i;
	s->kind[i].shared = true;
	s->shared_kinds++;
	table_put(s->kind_hash, s->kind_hash_room, hash, i);
	return i;
}

/* ---- classes: clocks and what ends first ---------------------------------------------
 */

static bool flow_before(const struct share *s, uint32_t a, uint32_t b)
{
	return s->flow[a].target < s->flow[b].target;
}

static void heap_put(struct share *s, struct share_list *h, uint32_t at, uint32_t flow)
{
	h->at[at] = flow;
	s->flow[flow].at = at;
}

/* Flow `flow` belongs at `at` or nearer to the top. */
static void heap_up(struct share *s, struct share_list *h, uint32_t at, uint32_t flow)
{
	while (at > 0) {
		const uint32_t above = (at - 1) / 2;

		if (!flow_before(s, flow, h->at[above]))
			break;
		heap_put(s, h, at, h->at[above]);
		at = above;
	}
	heap_put(s, h, at, flow);
}

static void heap_down(struct share *s, struct share_list *h, uint32_t at, uint32_t flow)
{
	for (;;) {
		uint32_t below = 2 * at + 1;

		if (below >= h->count)
			break;
		if (below + 1 < h->count &&
		    flow_before(s, h->at[below + 1], h->at[below]))
			below++;
		if (!flow_before(s, h->at[below], flow))
			break;
		heap_put(s, h, at, h->at[below]);
		at = below;
	}
	heap_put(s, h, at, flow);
}

void share_kind_advance(struct share_kind *k, double now)
{
	if (now > k->since)
		k->clock += k->rate * (now - k->since);
	k->since = now;
}

/* The class changed: its links' rates are to be found. */
static bool kind_touch(struct share *s, uint32_t i)
{
	struct share_kind *k = &s->kind[i];

	if (k->dirty)
		return true;
	k->dirty = true;
	return share_list_add(&s->dirty_kinds, i);
}

static bool link_touch(struct share *s, uint32_t l)
{
	if (s->link[l].dirty)
		return true;
	s->link[l].dirty = true;
	return share_list_add(&s->dirty_links, l);
}

/* The class is one of those on its links, or is no longer. */
static bool kind_enter(struct share *s, uint32_t i)
{
	struct share_kind *k = &s->kind[i];
	const struct share_route *r = &s->route[k->route];

	for (unsigned j = 0; j < r->count; j++) {
		struct share_list *m = &s->member[r->link[j]];

		k->member[j] = m->count;
		if (!share_list_add(m, i))
			return false;
	}
	return true;
}

static void kind_leave(struct share *s, uint32_t i)
{
	const struct share_kind *k = &s->kind[i];
	const struct share_route *r = &s->route[k->route];

	for (unsigned j = 0; j < r->count; j++) {
		struct share_list *m = &s->member[r->link[j]];
		const uint32_t last = m->at[--m->count];
		struct share_kind *other = &s->kind[last];
		const struct share_route *way = &s->route[other->route];

		m->at[k->member[j]] = last;
		for (unsigned n = 0; n < way->count; n++)
			if (way->link[n] == r->link[j])
				other->member[n] = k->member[j];
	}
}

/* A flow with `left` bytes to go becomes one of the class. */
static bool kind_join(struct share *s, uint32_t i, uint32_t flow, double left, double now)
{
	struct share_kind *k = &s->kind[i];

	if (k->heap.count == 0) {
		k->clock = 0;
		k->rate = 0;
		k->since = now;
		if (!kind_enter(s, i))
			return false;
	} else {
		share_kind_advance(k, now);
	}
	s->flow[flow].kind = i;
	s->flow[flow].target = k->clock + left;
	if (!share_list_add(&k->heap, flow))
		return false;
	heap_up(s, &k->heap, k->heap.count - 1, flow);
	return kind_touch(s, i);
}

/* Takes it out of its class; returns what is left of it. */
static double kind_part(struct share *s, uint32_t flow, double now)
{
	struct share_flow *f = &s->flow[flow];
	const uint32_t i = f->kind;
	struct share_kind *k = &s->kind[i];
	struct share_list *h = &k->heap;
	const uint32_t last = h->at[--h->count];
	double left;

	share_kind_advance(k, now);
	left = f->target - k->clock;
	if (last != flow) {
		const uint32_t at = f->at;

		heap_up(s, h, at, last);
		heap_down(s, h, s->flow[last].at, last);
	}
	s->failed |= !kind_touch(s, i);
	if (!h->count) {
		kind_leave(s, i);
		share_ends_move(s, i, INFINITY);
		k->gone = !k->shared;
	}
	return left > 0 ? left : 0;
}

/* ---- ports ---------------------------------------------------------------------------
 */

static struct share_at *at_of(struct share_flow *f, unsigned side)
{
	return &f->beside[side];
}

static void port_add(struct share *s, uint32_t flow, unsigned side)
{
	struct share_flow *f = &s->flow[flow];
	const uint32_t port = f->port[side];

	if (port == SHARE_NONE)
		return;
	*at_of(f, side) = (struct share_at){SHARE_NONE, s->port_flow[port]};
	if (s->port_flow[port] != SHARE_NONE)
		at_of(&s->flow[s->port_flow[port]], side)->before = flow;
	s->port_flow[port] = flow;
}

static void port_remove(struct share *s, uint32_t flow, unsigned side)
{
	struct share_flow *f = &s->flow[flow];
	const struct share_at at = f->beside[side];
	const uint32_t port = f->port[side];

	if (port == SHARE_NONE)
		return;
	if (at.before == SHARE_NONE)
		s->port_flow[port] = at.after;
	else
		at_of(&s->flow[at.before], side)->after = at.after;
	if (at.after != SHARE_NONE)
		at_of(&s->flow[at.after], side)->before = at.before;
}

/* Whether a port is too narrow for what is there. */
static bool port_full(const struct share *s, uint32_t port)
{
	return port != SHARE_NONE && share_link_full(s, s->links + port);
}

/* Puts a flow into the class where it belongs by what is at its ports. */
static bool flow_place(struct share *s, uint32_t flow, double left, double now)
{
	struct share_flow *f = &s->flow[flow];
	uint32_t kind;

	if (!port_full(s, f->port[0]) && !port_full(s, f->port[1])) {
		kind = kind_shared(s, f->route, f->most);
		return kind != SHARE_NONE && kind_join(s, kind, flow, left, now);
	}
	kind = kind_new(s, f->route, f->most);
	if (kind == SHARE_NONE)
		return false;
	s->kind[kind].port[0] = f->port[0];
	s->kind[kind].port[1] = f->port[1];
	return kind_join(s, kind, flow, left, now);
}

/* All flows at a port that has become full, or is no longer, change their classes. */
static bool port_replace(struct share *s, uint32_t port, unsigned side, double now)
{
	for (uint32_t f = s->port_flow[port]; f != SHARE_NONE;
	     f = s->flow[f].beside[side].after) {
		const bool alone = !s->kind[s->flow[f].kind].shared;
		const bool full = port_full(s, s->flow[f].port[0]) ||
				  port_full(s, s->flow[f].port[1]);

		if (alone != full && !flow_place(s, f, kind_part(s, f, now), now))
			return false;
	}
	return true;
}

/* A flow of that limit comes (sign 1) or goes (-1): what its links are asked for. */
static bool links_ask(struct share *s, const struct share_flow *f, int sign, double now)
{
	const struct share_route *r = &s->route[f->route];

	for (unsigned i = 0; i < r->count; i++) {
		share_link_ask(&s->link[r->link[i]], f->most, sign);
		if (!link_touch(s, r->link[i]))
			return false;
	}
	for (unsigned side = 0; side < 2; side++) {
		const uint32_t port = f->port[side];
		bool before;

		if (port == SHARE_NONE)
			continue;
		before = port_full(s, port);
		share_link_ask(&s->link[s->links + port], f->most, sign);
		if (!link_touch(s, s->links + port) ||
		    (before != port_full(s, port) && !port_replace(s, port, side, now)))
			return false;
	}
	return true;
}

/* ---- flows ---------------------------------------------------------------------------
 */

static uint32_t flow_new(struct share *s)
{
	uint32_t i = s->flow_free;

	if (i != SHARE_NONE) {
		s->flow_free = s->flow[i].beside[0].after;
		return i;
	}
	if (s->flows == s->flow_room) {
		const uint32_t room = s->flow_room ? s->flow_room * 2 : 1024;
		struct share_flow *f = realloc(s->flow, room * sizeof(*f));

		if (!f)
			return SHARE_NONE;
		s->flow = f;
		s->flow_room = room;
	}
	return s->flows++;
}

uint32_t share_begin(struct share *s, uint32_t route, uint32_t out, uint32_t in,
		     double most, double bytes, uint64_t tag, double now)
{
	const uint32_t i = flow_new(s);
	struct share_flow *f;

	if (i == SHARE_NONE)
		return i;
	f = &s->flow[i];
	*f = (struct share_flow){.route = route,
				 .most = most,
				 .bytes = bytes,
				 .tag = tag,
				 .port = {out, in}};
	/* Those that are there move first; it joins where it then belongs. */
	if (!links_ask(s, f, 1, now))
		return SHARE_NONE;
	port_add(s, i, 0);
	port_add(s, i, 1);
	return flow_place(s, i, bytes, now) ? i : SHARE_NONE;
}

static void flow_remove(struct share *s, uint32_t i, double now)
{
	struct share_flow *f = &s->flow[i];

	kind_part(s, i, now);
	port_remove(s, i, 0);
	port_remove(s, i, 1);
	s->failed |= !links_ask(s, f, -1, now);
	f->beside[0].after = s->flow_free;
	s->flow_free = i;
	s->cost.flows++;
}

double share_next(const struct share *s)
{
	return s->ends.count ? s->kind[s->ends.at[0]].end : INFINITY;
}

bool share_end(struct share *s, double now, uint64_t *tag)
{
	uint32_t kind, flow;

	if (!s->ends.count)
		return false;
	kind = s->ends.at[0];
	if (s->kind[kind].end > now + now * SHARE_SLACK)
		return false;
	flow = s->kind[kind].heap.at[0];
	*tag = s->flow[flow].tag;
	flow_remove(s, flow, now);
	if (s->kind[kind].heap.count) {
		const struct share_kind *k = &s->kind[kind];
		const struct share_flow *next = &s->flow[k->heap.at[0]];
		const double left = next->target - k->clock;

		share_ends_move(s, kind,
				left <= next->bytes * LEFT_PART ? now
								: now + left / k->rate);
	}
	return true;
}

void share_recapacity(struct share *s, uint32_t link)
{
	s->failed |= !link_touch(s, link);
	if (link < s->links || s->port_flow[link - s->links] == SHARE_NONE)
		return;
	s->failed |= !port_replace(
		s, link - s->links,
		s->flow[s->port_flow[link - s->links]].port[0] == link - s->links ? 0 : 1,
		s->now);
}

double share_rate(const struct share *s, uint32_t flow)
{
	return s->kind[s->flow[flow].kind].rate;
}

struct share_cost share_cost(const struct share *s)
{
	return s->cost;
}
