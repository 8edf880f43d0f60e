/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See interp.h. A SEND is two events: it starts once its dependencies are done and the
 * place at the peer is READY (then the receiver's bytes are spoiled, as they may be
 * written at any moment from there), and the pair ends at a random later moment, when the
 * data that the source holds then is written: a source that changed meanwhile shows.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algo/tests/interp.h"

#define SPOILED UINT64_C(0xdeadbeefdeadbeef)

enum state { WAITING, STARTED, DONE };

struct event {
	int32_t rank;
	uint64_t number;
};

struct run {
	struct interp_rank *ranks;
	int32_t size;
	uint8_t **state; /* by rank, by instance */
	char *why;
	size_t why_len;
};

uint64_t interp_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t interp_compose(uint64_t f, uint64_t g)
{
	const uint32_t a = (uint32_t)(f >> 32), b = (uint32_t)f, c = (uint32_t)(g >> 32),
		       d = (uint32_t)g;

	return (uint64_t)(a * c) << 32 | (uint32_t)(a * d + b);
}

/* Addresses of the elements of a range, in order; *count of them. */
static uint64_t **range_elements(const struct interp_rank *r,
				 const struct plan_range *range, uint64_t *count)
{
	uint64_t n = plan_range_elements(r->plan, r->bind, range), at = 0, off, len;
	uint64_t **list = malloc((n + 1) * sizeof(*list));
	struct plan_piece_iter it;

	if (!list)
		abort();
	plan_piece_begin(&it, r->plan, r->bind, range);
	while (plan_piece_next(&it, &off, &len)) {
		for (uint64_t i = 0; i < len; i++) {
			if (at >= n || off + i >= r->buf_len[range->buf]) {
				fprintf(stderr, "piece outside the range or buffer\n");
				abort();
			}
			list[at++] = &r->buf[range->buf][off + i];
		}
	}
	*count = at == n ? n : UINT64_MAX;
	return list;
}

static bool deps_done(const struct run *run, int32_t rank, const struct plan_instance *in)
{
	const struct plan *plan = run->ranks[rank].plan;
	const struct plan_step *s = &plan->step[in->step];

	for (uint32_t i = 0; i < s->dep_count; i++) {
		uint64_t on;

		if (plan_dep_instance(plan, &plan->dep[s->dep_first + i], in, &on) &&
		    run->state[rank][on] != DONE)
			return false;
	}
	return true;
}

/* The instance at `at` that pairs with the k-th of `kind` that rank has with at. */
static bool partner(const struct run *run, int32_t rank, const struct plan_instance *in,
		    struct plan_instance *out)
{
	const struct plan *mine = run->ranks[rank].plan, *other;
	uint64_t k = 0;

	other = run->ranks[in->peer].plan;
	for (uint64_t i = 0; i < in->number; i++) {
		struct plan_instance x;

		plan_instance_at(mine, i, &x);
		k += x.kind == in->kind && x.peer == in->peer;
	}
	for (uint64_t i = 0; i < other->instances; i++) {
		plan_instance_at(other, i, out);
		if (out->kind == (in->kind == PLAN_SEND ? PLAN_RECV : PLAN_SEND) &&
		    out->peer == rank && k-- == 0)
			return true;
	}
	return false;
}

static bool broken(struct run *run, int32_t rank, uint64_t number, const char *rule)
{
	snprintf(run->why, run->why_len, "rank %d instance %" PRIu64 ": %s", rank, number,
		 rule);
	return false;
}

static bool local_do(struct run *run, int32_t rank, const struct plan_instance *in)
{
	const struct interp_rank *r = &run->ranks[rank];
	uint64_t nd, ns, n2 = 0;
	uint64_t **d = range_elements(r, &in->dst, &nd);
	uint64_t **s = range_elements(r, &in->src, &ns);
	uint64_t **s2 = range_elements(r, &in->src2, &n2);
	bool reduce = in->kind == PLAN_REDUCE;
	bool good = nd == ns && (!reduce || nd == n2) && nd != UINT64_MAX;

	for (uint64_t i = 0; good && i < nd; i++) {
		uint64_t v = *s[i] + (reduce ? *s2[i] : 0);

		if (reduce && r->ordered)
			v = interp_compose(*s[i], *s2[i]);

		*d[i] = in->flags & PLAN_SCALE ? v / r->plan->divisor : v;
	}
	free(d);
	free(s);
	free(s2);
	run->state[rank][in->number] = DONE;
	return good || broken(run, rank, in->number, "operands differ in length");
}

/* Start: the receiver's place is spoiled. End: the data is copied. */
static bool send_do(struct run *run, int32_t rank, const struct plan_instance *in,
		    const struct plan_instance *recv)
{
	const struct interp_rank *r = &run->ranks[rank], *p = &run->ranks[in->peer];
	uint64_t nd, ns;
	uint64_t **d = range_elements(p, &recv->dst, &nd);
	uint64_t **s = range_elements(r, &in->src, &ns);
	bool end = run->state[rank][in->number] == STARTED;

	for (uint64_t i = 0; nd == ns && i < nd; i++)
		*d[i] = end ? *s[i] : SPOILED;
	free(d);
	free(s);
	run->state[rank][in->number] = end ? DONE : STARTED;
	if (end)
		run->state[in->peer][recv->number] = DONE;
	return nd == ns || broken(run, rank, in->number, "the pair differs in length");
}

/* Does the instance if it can be done now; *did says so. */
static bool instance_try(struct run *run, const struct event *e, bool *did)
{
	struct plan_instance in, recv;

	*did = false;
	if (run->state[e->rank][e->number] == DONE)
		return true;
	plan_instance_at(run->ranks[e->rank].plan, e->number, &in);
	if (in.kind == PLAN_RECV || !deps_done(run, e->rank, &in))
		return true;
	if (in.kind != PLAN_SEND) {
		*did = true;
		return local_do(run, e->rank, &in);
	}
	if (!partner(run, e->rank, &in, &recv))
		return broken(run, e->rank, e->number, "a SEND has no RECV");
	if (!deps_done(run, in.peer, &recv))
		return true;
	*did = true;
	return send_do(run, e->rank, &in, &recv);
}

static uint64_t events_make(const struct run *run, struct event **list)
{
	uint64_t n = 0, at = 0;

	for (int32_t r = 0; r < run->size; r++)
		n += run->ranks[r].plan->instances;
	*list = malloc((n + 1) * sizeof(**list));
	if (!*list)
		abort();
	for (int32_t r = 0; r < run->size; r++) {
		for (uint64_t i = 0; i < run->ranks[r].plan->instances; i++)
			(*list)[at++] = (struct event){r, i};
	}
	return n;
}

/* Passes over what is unfinished, each in a new random order, until nothing moves. */
static bool events_run(struct run *run, struct event *list, uint64_t n, uint64_t *seed)
{
	bool moved = true;

	while (n && moved) {
		uint64_t left = 0;

		moved = false;
		for (uint64_t i = n; i > 1; i--) {
			uint64_t j = interp_random(seed) % i;
			struct event e = list[j];

			list[j] = list[i - 1];
			list[i - 1] = e;
		}
		for (uint64_t i = 0; i < n; i++) {
			bool did;

			if (!instance_try(run, &list[i], &did))
				return false;
			moved |= did;
		}
		for (uint64_t i = 0; i < n; i++) {
			if (run->state[list[i].rank][list[i].number] != DONE)
				list[left++] = list[i];
		}
		n = left;
	}
	return !n || broken(run, list[0].rank, list[0].number, "nothing can go on");
}

bool interp_run(struct interp_rank *ranks, int32_t size, uint64_t *seed, char *why,
		size_t why_len)
{
	struct run run = {.ranks = ranks, .size = size, .why = why, .why_len = why_len};
	struct event *list;
	uint64_t n;
	bool good;

	run.state = calloc((size_t)size, sizeof(*run.state));
	for (int32_t r = 0; run.state && r < size; r++) {
		run.state[r] = calloc(ranks[r].plan->instances + 1, 1);
		if (!run.state[r])
			abort();
	}
	if (!run.state)
		abort();
	n = events_make(&run, &list);
	good = events_run(&run, list, n, seed);
	free(list);
	for (int32_t r = 0; r < size; r++)
		free(run.state[r]);
	free(run.state);
	return good;
}
