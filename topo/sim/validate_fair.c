/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rates of share.h against max-min fairness itself: on small networks drawn by
 * chance, while flows come and go, every rate is compared with that of a plain filling
 * which raises all flows together, and with what makes an allocation max-min fair: each
 * flow has its own limit, or a link that is used up on which nobody has more.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "topo/sim/share.h"
#include "topo/sim/validate.h"

enum { LINKS = 6, PORTS = 12, FLOWS = 40, NETS = 300, STEPS = 60 };

/* Rates differ by rounding only. */
#define SAME 1e-9

struct flow {
	uint32_t id; /* of share */
	uint32_t link[LINKS + 2];
	unsigned links;
	double most, rate;
	bool here, fixed;
};

struct world {
	struct share *share;
	double capacity[LINKS + PORTS];
	struct flow flow[FLOWS];
	uint64_t seed;
	double now;
	uint64_t compared;
};

static uint32_t draw(struct world *w, uint32_t below)
{
	w->seed ^= w->seed >> 12;
	w->seed ^= w->seed << 25;
	w->seed ^= w->seed >> 27;
	return (uint32_t)(w->seed * UINT64_C(0x2545f4914f6cdd1d) >> 33) % below;
}

/* How much more each flow without a rate can have, of what the link has left. */
static double link_room(const struct world *w, uint32_t l)
{
	double left = w->capacity[l];
	unsigned open = 0;

	for (unsigned i = 0; i < FLOWS; i++) {
		const struct flow *f = &w->flow[i];

		for (unsigned j = 0; f->here && j < f->links; j++) {
			if (f->link[j] != l)
				continue;
			left -= f->fixed ? f->rate : 0;
			open += !f->fixed;
		}
	}
	return open ? left / open : INFINITY;
}

static double flow_room(const struct world *w, const struct flow *f)
{
	double room = f->most;

	for (unsigned j = 0; j < f->links; j++) {
		const double r = link_room(w, f->link[j]);

		room = r < room ? r : room;
	}
	return room;
}

/* The plain way: whoever has the least room gets it, again and again. */
static void fill_plainly(struct world *w)
{
	for (unsigned i = 0; i < FLOWS; i++)
		w->flow[i].fixed = false;
	for (;;) {
		double least = INFINITY;
		unsigned who = FLOWS;

		for (unsigned i = 0; i < FLOWS; i++) {
			const double room = w->flow[i].here && !w->flow[i].fixed
						    ? flow_room(w, &w->flow[i])
						    : INFINITY;

			if (room < least) {
				least = room;
				who = i;
			}
		}
		if (who == FLOWS)
			return;
		w->flow[who].rate = least;
		w->flow[who].fixed = true;
	}
}

/* Used up, and nobody there has more. */
static bool link_limits(const struct world *w, uint32_t l, double rate)
{
	double used = 0, highest = 0;

	for (unsigned i = 0; i < FLOWS; i++) {
		const struct flow *f = &w->flow[i];

		for (unsigned j = 0; f->here && j < f->links; j++) {
			const double r = share_rate(w->share, f->id);

			if (f->link[j] != l)
				continue;
			used += r;
			highest = r > highest ? r : highest;
		}
	}
	return used >= w->capacity[l] * (1 - SAME) && highest <= rate * (1 + SAME);
}

static bool flow_is_fair(const struct world *w, const struct flow *f)
{
	const double rate = share_rate(w->share, f->id);
	bool limited = rate >= f->most * (1 - SAME);

	for (unsigned j = 0; j < f->links && !limited; j++)
		limited = link_limits(w, f->link[j], rate);
	return limited;
}

static bool rates_right(struct world *w)
{
	fill_plainly(w);
	for (unsigned i = 0; i < FLOWS; i++) {
		const struct flow *f = &w->flow[i];
		double rate;

		if (!f->here)
			continue;
		rate = share_rate(w->share, f->id);
		w->compared++;
		if (fabs(rate - f->rate) > f->rate * SAME || !flow_is_fair(w, f)) {
			printf("WRONG flow %u has %.17g, is to have %.17g\n", i, rate,
			       f->rate);
			return false;
		}
	}
	return true;
}

static bool flow_begin(struct world *w, unsigned i)
{
	/* Few kinds of flows, so that some are of one class. */
	const uint32_t links = draw(w, 4), first = draw(w, 3);
	const uint32_t out = draw(w, PORTS / 2), in = PORTS / 2 + draw(w, PORTS / 2);
	struct flow *f = &w->flow[i];
	uint32_t route[LINKS];

	*f = (struct flow){.here = true, .most = w->capacity[LINKS + out]};
	for (uint32_t l = 0; l < links; l++)
		f->link[f->links++] = route[l] = (first + l) % LINKS;
	f->link[f->links++] = LINKS + out;
	f->link[f->links++] = LINKS + in;
	if (w->capacity[LINKS + in] < f->most)
		f->most = w->capacity[LINKS + in];
	f->id = share_begin(w->share, share_route(w->share, route, links), out, in,
			    f->most, 1 + draw(w, 1000), i, w->now);
	return f->id != SHARE_NONE;
}

/* To the next end of a flow, or not as far; one or more begin, or a link changes. */
static bool step(struct world *w)
{
	const double next = share_next(w->share);
	uint64_t tag;

	if (!isinf(next) && draw(w, 3))
		w->now = next;
	else if (!isinf(next))
		w->now += (next - w->now) / 2;
	while (share_end(w->share, w->now, &tag))
		w->flow[tag].here = false;
	for (unsigned i = draw(w, 3) ? FLOWS : 0; i < FLOWS; i++)
		if (!w->flow[i].here && draw(w, 4) == 0 && !flow_begin(w, i))
			return false;
	if (draw(w, 8) == 0) {
		const uint32_t l = draw(w, LINKS);

		w->capacity[l] = 1 + draw(w, 400);
		share_recapacity(w->share, l);
	}
	return share_settle(w->share, w->now) && rates_right(w);
}

static bool net_right(struct world *w)
{
	bool good = true;

	w->now = 0;
	for (unsigned i = 0; i < LINKS; i++)
		w->capacity[i] = 1 + draw(w, 400);
	for (unsigned i = 0; i < PORTS; i++)
		w->capacity[LINKS + i] = draw(w, 4) ? 100 : 1 + draw(w, 100);
	for (unsigned i = 0; i < FLOWS; i++)
		w->flow[i].here = false;
	w->share = share_open(LINKS, PORTS, w->capacity);
	if (!w->share)
		return false;
	for (unsigned i = 0; good && i < FLOWS; i += 1 + draw(w, 3))
		good = flow_begin(w, i);
	good = good && share_settle(w->share, w->now) && rates_right(w);
	for (unsigned i = 0; good && i < STEPS; i++)
		good = step(w);
	share_close(w->share);
	return good;
}

unsigned validate_max_min(uint64_t seed)
{
	struct world w = {.seed = seed | 1};
	unsigned wrong = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	for (unsigned i = 0; i < NETS; i++)
		wrong += !net_right(&w);
	printf("%llu rates on %d networks compared\n", (unsigned long long)w.compared,
	       NETS);
	return wrong;
}
