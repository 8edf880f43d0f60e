/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rule F5 on the plans themselves: calls of one plan in a row, whose starts take turns
 * with two sides of destination and scratch. From the third on a SEND whose RECV waits
 * for nothing starts without READY. Ranks, steps and the ends of transfers come in random
 * order (printed seed), ranks run ahead as far as the plans let them. Each start must
 * find its peer in the call before, at least; each result must be right when its call
 * ends, and still when its rank starts the next call. The same with broadcasts, which may
 * not be doubled, must go wrong.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/algo/tests/interp.h"
#include "util/tap.h"

#define CALLS	 6
#define RANKS	 9
#define SPOILED	 UINT64_C(0xdeadbeefdeadbeef)
#define COUNT	 13
#define SRC_MAX	 (RANKS * COUNT)
#define INST_MAX 4096

enum state { WAITING, STARTED, DONE };

struct rank {
	struct plan *plan;
	int call; /* that runs, or runs next where it has not started */
	bool started;
	uint64_t left;	      /* instances of it that are not done */
	uint64_t *side[2][2]; /* by side: destination, scratch */
	uint64_t src[SRC_MAX];
	uint8_t *state[CALLS];
	uint64_t *known; /* by instance, of the first call: whose start came before it */
	uint32_t *peer;	 /* by instance: the number of its other half */
};

struct job {
	const struct algo *algo;
	struct plan_call call;
	struct rank rank[RANKS];
	uint64_t seed;
	char why[160];
};

static bool wrong(struct job *j, const char *what, int rank, int call, uint64_t at)
{
	snprintf(j->why, sizeof(j->why),
		 "%s (%s), %d ranks: %s: rank %d call %d, %" PRIu64, j->algo->coll,
		 j->algo->name, j->call.size, what, rank, call, at);
	return false;
}

/* What a rank gives. */
static uint64_t given(int rank, int call, uint64_t i)
{
	return (uint64_t)(rank + 1) * 1000003 + (uint64_t)(call + 1) * 7919 + i;
}

/* What a rank must have at an element of its destination. */
static uint64_t wanted(const struct job *j, int rank, int call, uint64_t i)
{
	const uint64_t n = (uint64_t)j->call.size, count = j->call.count;
	uint64_t sum = 0, at = i;

	switch (j->algo->goal) {
	case PLAN_GOAL_ALLGATHER:
		return given((int)(i / count), call, i % count);
	case PLAN_GOAL_ALLTOALL:
		return given((int)(i / count), call, (uint64_t)rank * count + i % count);
	case PLAN_GOAL_BROADCAST:
		return given(0, call, i);
	case PLAN_GOAL_REDUCE_SCATTER:
		at += (uint64_t)rank * count;
		break;
	default:
		break;
	}
	for (uint64_t r = 0; r < n; r++)
		sum += given((int)r, call, at);
	return sum;
}

static uint64_t dst_len(const struct job *j)
{
	return j->algo->goal == PLAN_GOAL_ALLGATHER || j->algo->goal == PLAN_GOAL_ALLTOALL
		       ? j->call.count * (uint64_t)j->call.size
		       : j->call.count;
}

/* Where a range of a rank is in a call; NULL at its end. */
static uint64_t *place(struct rank *r, int call, const struct plan_range *range,
		       uint64_t offset)
{
	if (range->buf == PLAN_SRC)
		return &r->src[offset];
	return &r->side[call & 1][range->buf == PLAN_SCRATCH][offset];
}

static uint64_t elements(struct rank *r, int call, const struct plan_range *range,
			 uint64_t *at[SRC_MAX * 8])
{
	struct plan_piece_iter it;
	uint64_t off, len, n = 0;

	if (range->buf == PLAN_NOBUF)
		return 0;
	plan_piece_begin(&it, r->plan, NULL, range);
	while (plan_piece_next(&it, &off, &len)) {
		for (uint64_t i = 0; i < len && n < SRC_MAX * 8; i++)
			at[n++] = place(r, call, range, off + i);
	}
	return n;
}

static bool waits_for_nothing(const struct plan *plan, const struct plan_instance *in)
{
	const struct plan_step *s = &plan->step[in->step];
	uint64_t on;

	for (uint32_t i = 0; i < s->dep_count; i++) {
		if (plan_dep_instance(plan, &plan->dep[s->dep_first + i], in, &on))
			return false;
	}
	return true;
}

/* Its dependencies in the call; and what they know. */
static bool deps_done(const struct rank *r, int call, const struct plan_instance *in,
		      uint64_t *known)
{
	const struct plan_step *s = &r->plan->step[in->step];
	uint64_t on;

	for (uint32_t i = 0; i < s->dep_count; i++) {
		if (!plan_dep_instance(r->plan, &r->plan->dep[s->dep_first + i], in, &on))
			continue;
		if (r->state[call][on] != DONE)
			return false;
		*known |= r->known[on];
	}
	return true;
}

static void finish(struct rank *r, int call, uint64_t number, uint64_t known)
{
	r->state[call][number] = DONE;
	if (call == 0)
		r->known[number] = known;
	r->left--;
}

/* The other half of a SEND is done, in a call that its rank may not have started. */
static void fill(struct rank *r, int call, uint64_t number, uint64_t known)
{
	r->state[call][number] = DONE;
	if (call == 0)
		r->known[number] = known;
	if (r->call == call && r->started)
		r->left--;
}

static bool send_begin(struct job *j, int from, const struct plan_instance *in,
		       const struct plan_instance *recv, bool *did)
{
	struct rank *r = &j->rank[from], *p = &j->rank[in->peer];
	const bool stands = r->call >= 2 && waits_for_nothing(p->plan, recv);
	const int begun = p->call + (p->started ? 1 : 0); /* calls that it started */
	uint64_t *at[SRC_MAX * 8], n, known = 0;

	if (!stands && (begun <= r->call || !deps_done(p, r->call, recv, &known)))
		return true;
	/* The side is free when the peer has started the call before. */
	if (begun < r->call)
		return wrong(j, "a place was written while its rank used it", in->peer,
			     r->call, recv->number);
	n = elements(p, r->call, &recv->dst, at);
	for (uint64_t i = 0; i < n; i++)
		*at[i] = SPOILED;
	r->state[r->call][in->number] = STARTED;
	*did = true;
	return true;
}

static bool send_end(struct job *j, int from, const struct plan_instance *in,
		     const struct plan_instance *recv, uint64_t known)
{
	struct rank *r = &j->rank[from], *p = &j->rank[in->peer];
	uint64_t *to[SRC_MAX * 8], *at[SRC_MAX * 8];
	const uint64_t n = elements(p, r->call, &recv->dst, to);

	if (n != elements(r, r->call, &in->src, at))
		return wrong(j, "lengths differ", from, r->call, in->number);
	for (uint64_t i = 0; i < n; i++)
		*to[i] = *at[i];
	finish(r, r->call, in->number, known);
	fill(p, r->call, recv->number, r->known[in->number]);
	return true;
}

static void local(struct rank *r, const struct plan_instance *in)
{
	uint64_t *d[SRC_MAX * 8], *a[SRC_MAX * 8], *b[SRC_MAX * 8];
	const uint64_t n = elements(r, r->call, &in->dst, d);

	elements(r, r->call, &in->src, a);
	if (in->kind == PLAN_REDUCE)
		elements(r, r->call, &in->src2, b);
	for (uint64_t i = 0; i < n; i++)
		*d[i] = in->kind == PLAN_REDUCE ? *a[i] + *b[i] : *a[i];
}

static bool step(struct job *j, int rank, uint64_t number, bool *did)
{
	struct rank *r = &j->rank[rank];
	struct plan_instance in, recv;
	uint64_t known = UINT64_C(1) << rank;

	if (r->state[r->call][number] == DONE)
		return true;
	plan_instance_at(r->plan, number, &in);
	if (in.kind == PLAN_RECV || !deps_done(r, r->call, &in, &known))
		return true;
	if (in.kind != PLAN_SEND) {
		local(r, &in);
		finish(r, r->call, number, known);
		*did = true;
		return true;
	}
	plan_instance_at(j->rank[in.peer].plan, r->peer[number], &recv);
	if (r->state[r->call][number] == WAITING)
		return send_begin(j, rank, &in, &recv, did);
	*did = true;
	return send_end(j, rank, &in, &recv, known);
}

static bool result_is_right(struct job *j, int rank, int call)
{
	for (uint64_t i = 0; i < dst_len(j); i++) {
		if (j->rank[rank].side[call & 1][0][i] != wanted(j, rank, call, i))
			return wrong(j, "the result is not right", rank, call, i);
	}
	return true;
}

/* Starts the next call, looking at the last result once more, or ends this one. */
static bool turn(struct job *j, int rank, bool *did)
{
	struct rank *r = &j->rank[rank];

	if (r->started && r->left)
		return true;
	*did = true;
	if (r->started) {
		r->started = false;
		r->call++;
		return result_is_right(j, rank, r->call - 1);
	}
	if (r->call && !result_is_right(j, rank, r->call - 1))
		return false;
	for (uint64_t i = 0; i < SRC_MAX; i++)
		r->src[i] = given(rank, r->call, i);
	r->started = true;
	r->left = 0;
	for (uint64_t i = 0; i < r->plan->instances; i++)
		r->left += r->state[r->call][i] != DONE;
	return true;
}

static bool run(struct job *j)
{
	const uint64_t n = (uint64_t)j->call.size;
	uint64_t idle = 0;
	bool done = false;

	while (!done) {
		const int rank = (int)(interp_random(&j->seed) % n);
		struct rank *r = &j->rank[rank];
		bool did = false;

		/* Now and then one rank alone for a while: it gets as far as it can. */
		for (uint64_t k = interp_random(&j->seed) % 40; k; k--) {
			if (r->call == CALLS)
				break;
			if (r->started && r->left) {
				if (!step(j, rank,
					  interp_random(&j->seed) % r->plan->instances,
					  &did))
					return false;
			} else if (!turn(j, rank, &did)) {
				return false;
			}
		}
		idle = did ? 0 : idle + 1;
		if (idle > 1000000)
			return wrong(j, "nothing can go on", rank, r->call, r->left);
		done = true;
		for (uint64_t i = 0; i < n; i++)
			done = done && j->rank[i].call == CALLS;
	}
	return true;
}

/* Which SEND goes with which RECV. */
static void pair_up(struct job *j)
{
	for (int a = 0; a < j->call.size; a++) {
		const struct plan *plan = j->rank[a].plan;
		uint64_t next[RANKS] = {0};

		for (uint64_t i = 0; i < plan->instances; i++) {
			struct plan_instance in, other;

			plan_instance_at(plan, i, &in);
			if (in.kind != PLAN_SEND)
				continue;
			do {
				plan_instance_at(j->rank[in.peer].plan, next[in.peer]++,
						 &other);
			} while (other.kind != PLAN_RECV || other.peer != a);
			j->rank[a].peer[i] = (uint32_t)other.number;
		}
	}
}

static bool open_rank(struct job *j, int rank)
{
	struct rank *r = &j->rank[rank];
	const char *why;

	memset(r, 0, sizeof(*r));
	j->call.rank = rank;
	if (j->algo->build(&j->call, &r->plan, &why))
		return wrong(j, why, rank, 0, 0);
	for (int i = 0; i < 4; i++)
		r->side[i / 2][i % 2] =
			calloc(r->plan->buf_len[i % 2 ? PLAN_SCRATCH : PLAN_DST] + 1, 8);
	for (int i = 0; i < CALLS; i++)
		r->state[i] = calloc(r->plan->instances + 1, 1);
	r->known = calloc(r->plan->instances + 1, sizeof(*r->known));
	r->peer = calloc(r->plan->instances + 1, sizeof(*r->peer));
	return r->plan->instances <= INST_MAX ||
	       wrong(j, "the plan is too long for this test", rank, 0, 0);
}

static void close_rank(struct rank *r)
{
	for (int i = 0; i < 4; i++)
		free(r->side[i / 2][i % 2]);
	for (int i = 0; i < CALLS; i++)
		free(r->state[i]);
	free(r->known);
	free(r->peer);
	plan_free(r->plan);
}

/* Rule F5's premise, by what each rank has got of whom when its call ends. */
static bool all_know_all(struct job *j)
{
	const uint64_t all = (UINT64_C(1) << j->call.size) - 1;

	for (int a = 0; a < j->call.size; a++) {
		uint64_t known = UINT64_C(1) << a;

		for (uint64_t i = 0; i < j->rank[a].plan->instances; i++)
			known |= j->rank[a].known[i];
		if (known != all)
			return wrong(j, "its end does not wait for the start of all", a,
				     0, known);
	}
	return true;
}

static bool try(struct job *j, bool doubled)
{
	bool good = true;
	int opened = 0;

	for (; opened < j->call.size && good; opened++)
		good = open_rank(j, opened);
	if (good) {
		pair_up(j);
		good = run(j) && (!doubled || all_know_all(j));
	}
	for (int i = 0; i < opened; i++)
		close_rank(&j->rank[i]);
	return good;
}

static bool may_be_doubled(const struct algo *algo)
{
	return !algo->vector &&
	       (algo->goal == PLAN_GOAL_ALLGATHER || algo->goal == PLAN_GOAL_ALLREDUCE ||
		algo->goal == PLAN_GOAL_REDUCE_SCATTER ||
		algo->goal == PLAN_GOAL_ALLTOALL);
}

int main(void)
{
	struct job *j = calloc(1, sizeof(*j));
	const char *text = getenv("WEFT_TEST_SEED");
	const uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
	int gone_wrong = 0;

	tap_diag("seed %" PRIu64 " (WEFT_TEST_SEED)", seed);
	j->seed = seed | 1;
	for (int i = 0; i < 8; i++)
		interp_random(&j->seed);
	for (size_t a = 0; a < algo_count; a++) {
		bool good = true;

		j->algo = &algo_table[a];
		if (!may_be_doubled(j->algo))
			continue;
		for (int32_t size = 2; size <= RANKS && good; size++) {
			for (int v = 0; v < (tap_short() ? 2 : 4) && good; v++) {
				j->call = (struct plan_call){
					.size = size,
					.count = v ? 1 + interp_random(&j->seed) % COUNT
						   : COUNT,
					.elem_size = 8,
					.roomy = v != 1,
					.chunk_bytes = v % 2 ? 16 : 0};
				if (j->algo->supports(&j->call))
					good = try(j, true);
			}
		}
		tap_ok(good, "%s (%s) in a row%s%s", j->algo->coll, j->algo->name,
		       good ? "" : ": ", good ? "" : j->why);
	}
	j->algo = algo_find("broadcast", "flat");
	for (int k = 0; k < 20; k++) {
		j->call = (struct plan_call){.size = 4, .count = COUNT, .elem_size = 8};
		gone_wrong += !try(j, false);
	}
	tap_ok(gone_wrong > 0, "a broadcast, which may not be doubled, goes wrong");
	free(j);
	return tap_done();
}
