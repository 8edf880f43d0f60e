/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The structural rules of one plan by itself. What needs the plans of other ranks
 * (pairing, contributions, deadlock) is the checker's; after this it may index freely.
 */
#include "config.h"

#include <errno.h>

#include "coll/plan/plan.h"

enum range_use {
	RANGE_READ,
	RANGE_WRITE,
	RANGE_AT_PEER, /* describes the peer's memory: not bounded by our lengths */
};

static const char *part_fault(const struct plan *plan, const struct plan_part *p)
{
	uint64_t slot;

	if (!p->parts)
		return "a partition has no part";
	switch (p->kind) {
	case PLAN_BALANCED:
	case PLAN_LATE:
		return NULL;
	case PLAN_TABLE:
		if (!p->disp)
			return "a table partition has no table";
		for (uint32_t i = 0; i < p->parts; i++) {
			if (p->disp[i] > p->disp[i + 1])
				return "a table partition's displacements do not ascend";
		}
		return p->total == p->disp[p->parts]
			       ? NULL
			       : "a table partition's total is not its end";
	case PLAN_SHIFTED:
		if (p->of >= plan->part_count || plan->part[p->of].kind >= PLAN_FOLDED)
			return "a shifted partition is not of a plain partition";
		if (p->parts != plan->part[p->of].parts)
			return "a shifted partition has another number of parts";
		return p->total - p->base == plan->part[p->of].total
			       ? NULL
			       : "a shifted partition has another length";
	case PLAN_FOLDED:
		if (p->of >= plan->part_count || plan->part[p->of].kind >= PLAN_FOLDED)
			return "a folded partition is not of a plain partition";
		if (p->parts != plan->part[p->of].parts)
			return "a folded partition has another number of parts";
		if (!p->slots || p->slots > p->parts)
			return "a folded partition has no slot, or more than parts";
		if (p->base > p->total)
			return "a folded partition begins behind its end";
		slot = (p->total - p->base) / p->slots;
		return slot < plan_part_longest(&plan->part[p->of])
			       ? "a slot is shorter than the longest part"
			       : NULL;
	}
	return "a partition is of no known kind";
}

static const char *range_fault(const struct plan *plan, const struct plan_range *r,
			       enum range_use use)
{
	const struct plan_part *p;
	uint32_t most;

	if (!r->count || !r->block)
		return NULL;
	if (r->buf > PLAN_SCRATCH)
		return "a range names no buffer";
	if (use != RANGE_READ && r->buf == PLAN_SRC)
		return "the source buffer is written";
	if (r->part >= plan->part_count)
		return "a range names no partition";
	p = &plan->part[r->part];
	if (r->first >= p->parts)
		return "a range begins after the last part";
	most = p->kind == PLAN_FOLDED ? p->slots : p->parts;
	if (r->block > most || (uint64_t)r->block * r->count > most)
		return "a range has more parts than its partition (or slots)";
	if (use != RANGE_AT_PEER && p->total > plan->buf_len[r->buf])
		return "a range's partition is longer than its buffer";
	return NULL;
}

/* The least t >= 0 with (a * t) mod m == b, or m where there is none; 0 <= a, b < m. The
 * extended Euclidean algorithm. */
static int64_t congruence(int64_t a, int64_t b, int64_t m)
{
	int64_t r0 = m, r1 = a, x0 = 0, x1 = 1;

	while (r1) {
		const int64_t q = r0 / r1, r = r0 - q * r1, x = x0 - q * x1;

		r0 = r1;
		r1 = r;
		x0 = x1;
		x1 = x;
	}
	/* a * x0 == r0, their greatest common divisor, modulo m. */
	if (b % r0)
		return m;
	m /= r0;
	x0 %= m;
	return (x0 < 0 ? x0 + m : x0) * (b / r0 % m) % m;
}

static const char *peer_fault(const struct plan *plan, const struct plan_step *s,
			      uint32_t trips)
{
	const int64_t size = plan->size, advance = s->peer_advance % size,
		      away = ((int64_t)plan->rank - s->peer) % size;

	if (s->peer < 0 || s->peer >= plan->size)
		return "a peer is no rank";
	/* Trips are many where steps are few: which one meets the rank is calculated. */
	if (congruence(advance < 0 ? advance + size : advance,
		       away < 0 ? away + size : away,
		       size) < (trips < size ? trips : size))
		return "a rank sends to or receives from itself (COPY does that)";
	return NULL;
}

static const char *step_fault(const struct plan *plan, const struct plan_step *s,
			      uint32_t trips)
{
	const char *why = NULL;

	if (s->flags & ~PLAN_SCALE)
		return "a step has an unknown flag";
	if (s->flags && s->kind != PLAN_REDUCE && s->kind != PLAN_COPY)
		return "a step is scaled that is no REDUCE and no COPY";
	switch (s->kind) {
	case PLAN_SEND:
		why = range_fault(plan, &s->src, RANGE_READ);
		if (!why)
			why = range_fault(plan, &s->dst, RANGE_AT_PEER);
		return why ? why : peer_fault(plan, s, trips);
	case PLAN_RECV:
		why = range_fault(plan, &s->dst, RANGE_WRITE);
		return why ? why : peer_fault(plan, s, trips);
	case PLAN_REDUCE:
		why = range_fault(plan, &s->src2, RANGE_READ);
		/* fall through */
	case PLAN_COPY:
		if (!why)
			why = range_fault(plan, &s->dst, RANGE_WRITE);
		return why ? why : range_fault(plan, &s->src, RANGE_READ);
	}
	return "a step is of no known kind";
}

/* Floor and ceiling of a / b for b > 0. */
static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return -floor_div(-a, b);
}

/* Trips lo..hi of the step in which 0 <= trip0 + advance * t < on_trips. */
static void dep_valid_trips(const struct plan_dep *d, uint32_t trips, uint32_t on_trips,
			    int64_t *lo, int64_t *hi)
{
	int64_t a = d->advance, t0 = d->trip0, last = (int64_t)on_trips - 1;

	*lo = 0;
	*hi = (int64_t)trips - 1;
	if (a == 0 && (t0 < 0 || t0 > last))
		*hi = -1;
	if (a > 0) {
		int64_t l = ceil_div(-t0, a), h = floor_div(last - t0, a);

		*lo = l > *lo ? l : *lo;
		*hi = h < *hi ? h : *hi;
	}
	if (a < 0) {
		int64_t l = ceil_div(t0 - last, -a), h = floor_div(t0, -a);

		*lo = l > *lo ? l : *lo;
		*hi = h < *hi ? h : *hi;
	}
}

static const char *dep_fault(const struct plan_dep *d, uint32_t step,
			     const struct plan_loop *own, const struct plan_loop *on)
{
	int64_t lo, hi, ahead_lo, ahead_hi, ahead;

	if (on < own)
		return NULL;
	dep_valid_trips(d, own->trips, on->trips, &lo, &hi);
	if (lo > hi)
		return NULL;
	if (on > own)
		return "a dependency points to a later loop";
	/* Trips ahead of the own one, linear in the trip: the ends of the interval tell.
	 */
	ahead_lo = d->trip0 + (d->advance - (int64_t)1) * lo;
	ahead_hi = d->trip0 + (d->advance - (int64_t)1) * hi;
	ahead = ahead_lo > ahead_hi ? ahead_lo : ahead_hi;
	if (ahead > 0 || (ahead == 0 && d->step >= step))
		return "a dependency points forward in program order";
	return NULL;
}

/* The loops cut the steps and the instances without gaps. */
static const char *loops_fault(const struct plan *plan)
{
	uint64_t base = 0, first = 0;

	for (uint32_t i = 0; i < plan->loop_count; i++) {
		const struct plan_loop *l = &plan->loop[i];

		if (!l->count)
			return "a loop has no step";
		if (l->first != first || l->base != base)
			return "loops do not follow one another";
		first += l->count;
		if (first > plan->step_count ||
		    __builtin_add_overflow(base, (uint64_t)l->count * l->trips, &base))
			return "loops have more steps than the plan";
	}
	if (first != plan->step_count || base != plan->instances)
		return "loops do not cover the steps";
	return NULL;
}

static const char *step_deps_fault(const struct plan *plan, uint32_t step,
				   const struct plan_loop *own)
{
	const struct plan_step *s = &plan->step[step];

	if (s->dep_first > plan->dep_count ||
	    s->dep_count > plan->dep_count - s->dep_first)
		return "a step's dependencies are outside the plan's";
	for (uint32_t i = 0; i < s->dep_count; i++) {
		const struct plan_dep *d = &plan->dep[s->dep_first + i];
		const char *why;

		if (d->step >= plan->step_count)
			return "a dependency names no step";
		why = dep_fault(d, step, own, plan_loop_of(plan, d->step));
		if (why)
			return why;
	}
	if (s->kind != PLAN_SEND || s->proof == PLAN_NO_PROOF)
		return s->proof == PLAN_NO_PROOF ? NULL
						 : "a step that is no SEND has a proof";
	if (s->proof < s->dep_first || s->proof - s->dep_first >= s->dep_count)
		return "a proof is none of the step's dependencies";
	if (s->dst.buf == PLAN_ANYBUF)
		return "a SEND has a proof, but does not know its place";
	if (plan->step[plan->dep[s->proof].step].kind != PLAN_RECV)
		return "a proof is no RECV";
	return NULL;
}

int plan_validate(const struct plan *plan, const char **why)
{
	*why = NULL;
	if (plan->size < 1 || plan->rank < 0 || plan->rank >= plan->size)
		*why = "the rank is not in the communicator";
	for (uint32_t p = 0; !*why && p < plan->part_count; p++)
		*why = part_fault(plan, &plan->part[p]);
	if (!*why)
		*why = loops_fault(plan);
	for (uint32_t l = 0; !*why && l < plan->loop_count; l++) {
		const struct plan_loop *loop = &plan->loop[l];

		for (uint32_t i = 0; !*why && i < loop->count; i++) {
			uint32_t step = loop->first + i;

			*why = step_fault(plan, &plan->step[step], loop->trips);
			if (!*why)
				*why = step_deps_fault(plan, step, loop);
		}
	}
	return *why ? -EINVAL : 0;
}
