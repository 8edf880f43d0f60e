/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How share finds rates: which classes a change can reach, the progressive filling among
 * them, and when the first flow of each ends.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "topo/sim/share_in.h"

/* Two shares that differ by no more are the same. */
#define SAME	  (1 + 1e-12)
#define LEFT_PART 1e-9

/* ---- the heap of ends ----------------------------------------------------------------
 */

static void ends_put(struct share *s, uint32_t at, uint32_t kind)
{
	s->ends.at[at] = kind;
	s->kind[kind].at = at;
}

static void ends_up(struct share *s, uint32_t at, uint32_t kind)
{
	while (at > 0) {
		const uint32_t above = (at - 1) / 2;

		if (s->kind[s->ends.at[above]].end <= s->kind[kind].end)
			break;
		ends_put(s, at, s->ends.at[above]);
		at = above;
	}
	ends_put(s, at, kind);
}

static void ends_down(struct share *s, uint32_t at, uint32_t kind)
{
	const struct share_list *h = &s->ends;

	for (;;) {
		uint32_t below = 2 * at + 1;

		if (below >= h->count)
			break;
		if (below + 1 < h->count &&
		    s->kind[h->at[below + 1]].end < s->kind[h->at[below]].end)
			below++;
		if (s->kind[h->at[below]].end >= s->kind[kind].end)
			break;
		ends_put(s, at, h->at[below]);
		at = below;
	}
	ends_put(s, at, kind);
}

void share_ends_move(struct share *s, uint32_t kind, double end)
{
	struct share_kind *k = &s->kind[kind];
	const uint32_t at = k->at;

	k->end = end;
	if (isinf(end)) {
		uint32_t last;

		if (at == SHARE_NONE)
			return;
		k->at = SHARE_NONE;
		last = s->ends.at[--s->ends.count];
		if (last == kind)
			return;
		ends_up(s, at, last);
		ends_down(s, s->kind[last].at, last);
	} else if (at == SHARE_NONE) {
		if (!share_list_add(&s->ends, kind)) {
			s->failed = true;
			return;
		}
		ends_up(s, s->ends.count - 1, kind);
	} else {
		ends_up(s, at, kind);
		ends_down(s, k->at, kind);
	}
}

/* ---- what a change reaches -----------------------------------------------------------
 */

static bool kind_reach(struct share *s, uint32_t kind)
{
	struct share_kind *k = &s->kind[kind];

	if (k->seen == s->turn)
		return true;
	k->seen = s->turn;
	k->fixed = false;
	return share_list_add(&s->todo, kind);
}

static bool link_kinds_reach(struct share *s, uint32_t l)
{
	if (l < s->links) {
		for (uint32_t i = 0; i < s->member[l].count; i++)
			if (!kind_reach(s, s->member[l].at[i]))
				return false;
		return true;
	}
	for (uint32_t f = s->port_flow[l - s->links]; f != SHARE_NONE;) {
		const struct share_flow *flow = &s->flow[f];

		if (!kind_reach(s, flow->kind))
			return false;
		f = flow->beside[flow->port[0] == l - s->links ? 0 : 1].after;
	}
	return true;
}

static bool link_reach(struct share *s, uint32_t l)
{
	struct share_link *link = &s->link[l];

	if (!link->full || link->seen == s->turn)
		return true;
	link->seen = s->turn;
	link->left = s->capacity[l];
	link->open = link->flows;
	return share_list_add(&s->near_links, l) && link_kinds_reach(s, l);
}

/* The links that can limit a class, one after another. */
static uint32_t kind_link(const struct share *s, const struct share_kind *k, unsigned i)
{
	const struct share_route *r = &s->route[k->route];

	if (i < r->count)
		return r->link[i];
	return k->port[i - r->count] == SHARE_NONE ? SHARE_NONE
						   : s->links + k->port[i - r->count];
}

static unsigned kind_links(const struct share *s, const struct share_kind *k)
{
	return s->route[k->route].count + (k->shared ? 0u : 2u);
}

/* Classes whose flows changed, and those on links that are full or were. */
static bool changed_reach(struct share *s)
{
	bool good = true;

	for (uint32_t i = 0; i < s->dirty_links.count; i++) {
		struct share_link *link = &s->link[s->dirty_links.at[i]];
		const bool was = link->full;

		link->dirty = false;
		link->full = share_link_full(s, s->dirty_links.at[i]);
		if (was || link->full)
			good = good && link_kinds_reach(s, s->dirty_links.at[i]);
	}
	for (uint32_t i = 0; i < s->dirty_kinds.count; i++) {
		const uint32_t at = s->dirty_kinds.at[i];
		struct share_kind *k = &s->kind[at];

		k->dirty = false;
		if (k->gone) {
			k->next = s->kind_free;
			s->kind_free = at;
		} else if (k->heap.count) {
			good = good && kind_reach(s, at);
		}
	}
	s->dirty_links.count = s->dirty_kinds.count = 0;
	return good;
}

static bool all_reach(struct share *s)
{
	s->turn++;
	s->todo.count = s->near_links.count = 0;
	if (!changed_reach(s))
		return false;
	for (uint32_t i = 0; i < s->todo.count; i++) {
		const uint32_t at = s->todo.at[i];
		const unsigned links = kind_links(s, &s->kind[at]);

		for (unsigned j = 0; j < links; j++) {
			const uint32_t l = kind_link(s, &s->kind[at], j);

			if (l != SHARE_NONE && !link_reach(s, l))
				return false;
		}
	}
	return true;
}

/* ---- filling -------------------------------------------------------------------------
 */

static void fill_down(struct share *s, uint32_t at)
{
	const struct share_offer o = s->fill[at];

	for (;;) {
		uint32_t below = 2 * at + 1;

		if (below >= s->fill_count)
			break;
		if (below + 1 < s->fill_count &&
		    s->fill[below + 1].each < s->fill[below].each)
			below++;
		if (s->fill[below].each >= o.each)
			break;
		s->fill[at] = s->fill[below];
		at = below;
	}
	s->fill[at] = o;
}

static double offer_of(const struct share_link *l)
{
	return l->left > 0 ? l->left / l->open : 0;
}

static bool fill_make(struct share *s)
{
	if (s->fill_room < s->near_links.count) {
		const uint32_t room = s->near_links.count * 2;
		struct share_offer *f = realloc(s->fill, room * sizeof(*f));

		if (!f)
			return false;
		s->fill = f;
		s->fill_room = room;
	}
	s->fill_count = s->near_links.count;
	for (uint32_t i = 0; i < s->fill_count; i++)
		s->fill[i] = (struct share_offer){offer_of(&s->link[s->near_links.at[i]]),
						  s->near_links.at[i]};
	for (uint32_t i = s->fill_count / 2; i-- > 0;)
		fill_down(s, i);
	return true;
}

/* The link that gives the least, on top; false: none is left with flows to serve. What
 * links give only grows as others are served, so that only the top is to be looked at. */
static bool fill_top(struct share *s)
{
	while (s->fill_count) {
		const struct share_link *l = &s->link[s->fill[0].link];
		double each;

		if (!l->open) {
			s->fill[0] = s->fill[--s->fill_count];
			if (s->fill_count)
				fill_down(s, 0);
			continue;
		}
		each = offer_of(l);
		if (each <= s->fill[0].each * SAME)
			return true;
		s->fill[0].each = each;
		fill_down(s, 0);
	}
	return false;
}

static void kind_fix(struct share *s, uint32_t kind, double rate)
{
	struct share_kind *k = &s->kind[kind];
	const unsigned links = kind_links(s, k);

	k->fixed = true;
	k->rate = rate;
	for (unsigned j = 0; j < links; j++) {
		const uint32_t l = kind_link(s, k, j);

		if (l == SHARE_NONE || !s->link[l].full)
			continue;
		s->link[l].left -= rate * k->heap.count;
		s->link[l].open -= k->heap.count;
	}
}

static void link_fix(struct share *s, uint32_t l, double rate)
{
	if (l < s->links) {
		for (uint32_t i = 0; i < s->member[l].count; i++)
			if (!s->kind[s->member[l].at[i]].fixed)
				kind_fix(s, s->member[l].at[i], rate);
		return;
	}
	for (uint32_t f = s->port_flow[l - s->links]; f != SHARE_NONE;) {
		const struct share_flow *flow = &s->flow[f];

		if (!s->kind[flow->kind].fixed)
			kind_fix(s, flow->kind, rate);
		f = flow->beside[flow->port[0] == l - s->links ? 0 : 1].after;
	}
}

static int most_compare(const void *left, const void *right, void *arg)
{
	const struct share *s = arg;
	const double a = s->kind[*(const uint32_t *)left].most,
		     b = s->kind[*(const uint32_t *)right].most;

	return (a > b) - (a < b);
}

/* Classes in the order of their own limits. */
static bool by_most_make(struct share *s)
{
	bool same = true;

	s->by_most.count = 0;
	for (uint32_t i = 0; i < s->todo.count; i++) {
		same = same && s->kind[s->todo.at[i]].most == s->kind[s->todo.at[0]].most;
		if (!share_list_add(&s->by_most, s->todo.at[i]))
			return false;
	}
	if (!same)
		qsort_r(s->by_most.at, s->by_most.count, sizeof(*s->by_most.at),
			most_compare, s);
	return true;
}

static bool fill(struct share *s)
{
	uint32_t next = 0;

	if (!fill_make(s) || !by_most_make(s))
		return false;
	while (next < s->by_most.count) {
		const uint32_t kind = s->by_most.at[next];

		if (s->kind[kind].fixed)
			next++;
		else if (!fill_top(s) || s->kind[kind].most <= s->fill[0].each * SAME)
			kind_fix(s, kind, s->kind[kind].most);
		else
			link_fix(s, s->fill[0].link, s->fill[0].each);
	}
	return true;
}

bool share_settle(struct share *s, double now)
{
	s->now = now;
	if (!s->dirty_links.count && !s->dirty_kinds.count)
		return !s->failed;
	if (!all_reach(s))
		return false;
	for (uint32_t i = 0; i < s->todo.count; i++)
		share_kind_advance(&s->kind[s->todo.at[i]], now);
	if (!fill(s))
		return false;
	for (uint32_t i = 0; i < s->todo.count; i++) {
		const struct share_kind *k = &s->kind[s->todo.at[i]];
		const struct share_flow *first = &s->flow[k->heap.at[0]];
		const double left = first->target - k->clock;

		/* A rate of 0: the link is dead, and the flow never ends. */
		share_ends_move(s, s->todo.at[i],
				left <= first->bytes * LEFT_PART ? now
				: k->rate > 0			 ? now + left / k->rate
								 : INFINITY);
	}
	s->cost.settled++;
	s->cost.classes += s->todo.count;
	return !s->failed;
}
