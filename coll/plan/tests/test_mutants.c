/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The checker against plans that were right and are made wrong at random, in one place of
 * one rank: each mutant must be rejected, or be as good as the original. What counts as
 * as good:
 *  - a dependency dropped or moved, when every instance that was waited for is still
 *    waited for by way of others (worked out here, by ancestors, not by the checker);
 *  - of a barrier (it has no data): nobody waits for less than before, or the mutant has
 *    lost only an order that the others' messages give as well: see barrier_good();
 *  - operands exchanged where one rank alone computes a sum and all others get it from
 *    there: in a ring, by halves, and when recursive doubling folds a rank's neighbour
 * in;
 *  - a proof that is true: what the peer's RECV waits for was done before the peer sent
 *    the message (see proof_good()).
 * Whatever is accepted is also run on real arrays in random orders, where a false
 * acceptance shows as a wrong result. The seed is printed; WEFT_SEED repeats a run.
 */
#include "config.h"

#include <errno.h>
#include <time.h>

#include "coll/algo/algo.h"
#include "coll/algo/tests/interp.h"
#include "util/tap.h"

#define MUTANTS	  12000
#define SCHEDULES 12
#define RANKS_MAX 6
#define COUNT_MAX 40

enum mutation {
	DROP_DEP,
	MOVE_DEP,
	MOVE_RANGE,
	MOVE_ADVANCE,
	OTHER_BUFFER,
	OTHER_LENGTH,
	OTHER_PEER,
	TOGGLE_SCALE,
	SWAP_OPERANDS,
	DROP_STEP,
	DROP_TRIP,
	CLAIM_PROOF,
	MUTATIONS
};

static const char *const mutation_name[MUTATIONS] = {
	"a dependency dropped", "a dependency moved", "a range moved",
	"an advance changed",	"another buffer",     "another length",
	"another peer",		"a scale toggled",    "operands exchanged",
	"a step dropped",	"a trip dropped",     "a proof claimed",
};

struct job {
	const struct algo *algo;
	struct plan_call call;
	struct plan *plans[RANKS_MAX];
	struct plan *original; /* of the rank that is mutated */
	int32_t victim;
};

struct tally {
	int rejected;
	int as_good;
};

static uint64_t below(uint64_t *seed, uint64_t n)
{
	return (interp_random(seed) >> 11) % n;
}

static struct plan *plan_build(const struct job *j, int32_t rank)
{
	struct plan_call call = j->call;
	const char *why = "";
	struct plan *plan;

	call.rank = rank;
	if (j->algo->build(&call, &plan, &why))
		tap_bail("%s/%s: %s", j->algo->coll, j->algo->name, why);
	return plan;
}

/* Counts of at least a few elements a part: a range moved is another range. */
static struct job job_make(uint64_t *seed)
{
	struct job j = {.algo = NULL};

	/* (v) forms have blocks of nothing, which can be anywhere. */
	do {
		j.algo = &algo_table[below(seed, algo_count)];
	} while (j.algo->vector);
	j.call = (struct plan_call){
		.size = 2 + (int32_t)below(seed, RANKS_MAX - 1),
		.count = 12 + below(seed, COUNT_MAX - 12),
		.elem_size = below(seed, 3) ? 8 : 128 * 1024,
		.average = plan_goal_reduces(j.algo->goal) && below(seed, 2),
		.in_place = below(seed, 2),
	};
	j.call.ordered = plan_goal_reduces(j.algo->goal) && !j.call.average;
	j.call.ordered &= j.algo->supports(&j.call);
	j.call.chunk_bytes =
		below(seed, 2) ? (uint64_t)j.call.elem_size * 2 : UINT64_C(1) << 40;
	j.call.root = (int32_t)below(seed, (uint64_t)j.call.size);
	for (int32_t r = 0; r < j.call.size; r++)
		j.plans[r] = plan_build(&j, r);
	j.victim = (int32_t)below(seed, (uint64_t)j.call.size);
	j.original = plan_build(&j, j.victim);
	return j;
}

static void job_free(struct job *j)
{
	for (int32_t r = 0; r < j->call.size; r++)
		plan_free(j->plans[r]);
	plan_free(j->original);
}

static int job_check(const struct job *j, char *why, size_t len)
{
	struct plan_check check = {.goal = j->algo->goal,
				   .call = &j->call,
				   .plans = j->plans,
				   .window = PLAN_WINDOW_MIN};

	return plan_check(&check, why, len);
}

/* ---- mutations: each returns false where there is nothing to change -----------------
 */

static struct plan_step *step_pick(struct plan *p, uint64_t *seed)
{
	return p->step_count ? &p->step[below(seed, p->step_count)] : NULL;
}

static struct plan_dep *dep_pick(struct plan *p, uint64_t *seed)
{
	return p->dep_count ? &p->dep[below(seed, p->dep_count)] : NULL;
}

/* A range of the step that is not empty, and its advance. */
static struct plan_range *range_pick(struct plan_step *s, uint64_t *seed, int32_t **adv)
{
	struct plan_range *r[3] = {&s->dst, &s->src, &s->src2};
	int32_t *a[3] = {&s->dst_advance, &s->src_advance, &s->src2_advance};
	uint64_t i = below(seed, 3);

	*adv = a[i];
	return r[i]->count && r[i]->block ? r[i] : NULL;
}

static bool dep_drop(struct plan *p, uint64_t *seed)
{
	struct plan_dep *d = dep_pick(p, seed);

	if (!d)
		return false;
	d->trip0 = INT32_MIN;
	d->advance = 0;
	return true;
}

static bool dep_move(struct plan *p, uint64_t *seed)
{
	struct plan_dep *d = dep_pick(p, seed);

	if (!d)
		return false;
	d->trip0 += below(seed, 2) ? -1 : 1;
	return true;
}

static uint32_t trips_of(const struct plan *p, const struct plan_step *s)
{
	uint32_t l = 0;

	while ((uint32_t)(s - p->step) - p->loop[l].first >= p->loop[l].count)
		l++;
	return p->loop[l].trips;
}

static bool range_change(struct plan *p, enum mutation m, uint64_t *seed)
{
	struct plan_step *s = step_pick(p, seed);
	int32_t *advance;
	struct plan_range *r = s ? range_pick(s, seed, &advance) : NULL;
	uint32_t parts;

	if (!r)
		return false;
	parts = p->part[r->part].parts;
	switch (m) {
	case MOVE_RANGE:
		r->first = (r->first + 1) % parts;
		return parts > 1;
	case MOVE_ADVANCE:
		*advance += below(seed, 2) ? -1 : 1;
		return parts > 1 && trips_of(p, s) > 1;
	case OTHER_LENGTH:
		r->block = below(seed, 2) ? r->block + 1 : r->block - 1;
		return true;
	default:
		r->buf = (uint8_t)((r->buf + 1 + below(seed, 2)) % 3);
		return true;
	}
}

static bool peer_change(struct plan *p, uint64_t *seed)
{
	struct plan_step *s = step_pick(p, seed);

	if (!s || (s->kind != PLAN_SEND && s->kind != PLAN_RECV))
		return false;
	s->peer = (s->peer + 1) % p->size;
	if (s->peer == p->rank)
		s->peer = (s->peer + 1) % p->size;
	return p->size > 2;
}

static bool scale_toggle(struct plan *p, uint64_t *seed)
{
	struct plan_step *s = step_pick(p, seed);

	if (!s || (s->kind != PLAN_REDUCE && s->kind != PLAN_COPY))
		return false;
	s->flags ^= PLAN_SCALE;
	return true;
}

static bool operands_swap(struct plan *p, uint64_t *seed)
{
	struct plan_step *s = step_pick(p, seed);
	struct plan_range r;
	int32_t a;

	if (!s || s->kind != PLAN_REDUCE)
		return false;
	r = s->src;
	s->src = s->src2;
	s->src2 = r;
	a = s->src_advance;
	s->src_advance = s->src2_advance;
	s->src2_advance = a;
	return true;
}

static void loops_renumber(struct plan *p)
{
	uint32_t first = 0;

	p->instances = 0;
	for (uint32_t i = 0; i < p->loop_count; i++) {
		p->loop[i].first = first;
		p->loop[i].base = p->instances;
		first += p->loop[i].count;
		p->instances += (uint64_t)p->loop[i].count * p->loop[i].trips;
	}
}

static bool step_drop(struct plan *p, uint64_t *seed)
{
	uint32_t at, l = 0;

	if (!p->step_count)
		return false;
	at = (uint32_t)below(seed, p->step_count);
	while (at - p->loop[l].first >= p->loop[l].count)
		l++;
	for (uint32_t i = 0; i < p->dep_count; i++) {
		if (p->dep[i].step == at)
			p->dep[i] = (struct plan_dep){.trip0 = INT32_MIN};
		else if (p->dep[i].step > at)
			p->dep[i].step--;
	}
	for (uint32_t i = 0; i < p->step_count; i++) {
		if (p->step[i].proof != PLAN_NO_PROOF)
			p->step[i].proof = PLAN_NO_PROOF;
	}
	for (uint32_t i = at; i + 1 < p->step_count; i++)
		p->step[i] = p->step[i + 1];
	p->step_count--;
	if (--p->loop[l].count == 0) {
		for (uint32_t i = l; i + 1 < p->loop_count; i++)
			p->loop[i] = p->loop[i + 1];
		p->loop_count--;
	}
	loops_renumber(p);
	return true;
}

static bool trip_drop(struct plan *p, uint64_t *seed)
{
	if (!p->loop_count)
		return false;
	p->loop[below(seed, p->loop_count)].trips--;
	loops_renumber(p);
	return true;
}

static bool proof_claim(struct plan *p, uint64_t *seed)
{
	struct plan_step *s = step_pick(p, seed);

	if (!s || s->kind != PLAN_SEND || s->proof != PLAN_NO_PROOF)
		return false;
	for (uint32_t i = 0; i < s->dep_count; i++) {
		if (p->step[p->dep[s->dep_first + i].step].kind == PLAN_RECV)
			s->proof = s->dep_first + i;
	}
	return s->proof != PLAN_NO_PROOF;
}

static bool mutate(struct plan *p, enum mutation m, uint64_t *seed)
{
	switch (m) {
	case DROP_DEP:
		return dep_drop(p, seed);
	case MOVE_DEP:
		return dep_move(p, seed);
	case OTHER_PEER:
		return peer_change(p, seed);
	case TOGGLE_SCALE:
		return scale_toggle(p, seed);
	case SWAP_OPERANDS:
		return operands_swap(p, seed);
	case DROP_STEP:
		return step_drop(p, seed);
	case DROP_TRIP:
		return trip_drop(p, seed);
	case CLAIM_PROOF:
		return proof_claim(p, seed);
	default:
		return range_change(p, m, seed);
	}
}

/* ---- what is as good ----------------------------------------------------------------
 */

/* before[i * n + j]: j is done before i starts. */
static bool *ancestors(const struct plan *p)
{
	uint64_t n = p->instances;
	bool *before = calloc(n * n + 1, sizeof(*before));

	if (!before)
		tap_bail("out of memory");
	for (uint64_t i = 0; i < n; i++) {
		struct plan_instance in;
		const struct plan_step *s;

		plan_instance_at(p, i, &in);
		s = &p->step[in.step];
		for (uint32_t d = 0; d < s->dep_count; d++) {
			uint64_t on;

			if (!plan_dep_instance(p, &p->dep[s->dep_first + d], &in, &on))
				continue;
			before[i * n + on] = true;
			for (uint64_t j = 0; j < on; j++)
				before[i * n + j] |= before[on * n + j];
		}
	}
	return before;
}

/* Where an element of a rank's buffer is, counted from an address of its own for each
 * memory. */
static uint64_t address(const struct job *j, int32_t rank, uint8_t buf, uint64_t offset)
{
	const struct plan_goal_alias alias =
		plan_goal_in_place(j->algo->goal, &j->call, rank);

	if (alias.shared && buf == alias.inner) {
		buf = buf == PLAN_SRC ? PLAN_DST : PLAN_SRC;
		offset += alias.at;
	}
	return ((uint64_t)buf << 48) + offset;
}

static bool ranges_meet(const struct job *j, const struct plan_range *a,
			const struct plan_range *b)
{
	struct plan_piece_iter x, y;
	uint64_t xo, xn, yo, yn;

	if (a->buf > PLAN_SCRATCH || b->buf > PLAN_SCRATCH)
		return false;
	plan_piece_begin(&x, j->original, NULL, a);
	while (plan_piece_next(&x, &xo, &xn)) {
		plan_piece_begin(&y, j->original, NULL, b);
		while (plan_piece_next(&y, &yo, &yn)) {
			const uint64_t from = address(j, j->victim, a->buf, xo),
				       other = address(j, j->victim, b->buf, yo);

			if (from < other + yn && other < from + xn)
				return true;
		}
	}
	return false;
}

/* What an instance reads (two ranges) and writes here. */
static void accesses(const struct plan_instance *in, struct plan_range read[2],
		     struct plan_range *written)
{
	const struct plan_range nothing = plan_nothing();

	read[0] = in->kind == PLAN_RECV ? nothing : in->src;
	read[1] = in->kind == PLAN_REDUCE ? in->src2 : nothing;
	*written = in->kind == PLAN_SEND ? nothing : in->dst;
}

/* Whether two instances touch a place that one of them writes. */
static bool instances_meet(const struct job *j, uint64_t a, uint64_t b)
{
	struct plan_range read[2][2], written[2];
	struct plan_instance in;

	plan_instance_at(j->original, a, &in);
	accesses(&in, read[0], &written[0]);
	plan_instance_at(j->original, b, &in);
	accesses(&in, read[1], &written[1]);
	return ranges_meet(j, &written[0], &written[1]) ||
	       ranges_meet(j, &written[0], &read[1][0]) ||
	       ranges_meet(j, &written[0], &read[1][1]) ||
	       ranges_meet(j, &written[1], &read[0][0]) ||
	       ranges_meet(j, &written[1], &read[0][1]);
}

/* Whether every order of the original is one of the mutant, but for instances that do not
 * meet anywhere: some algorithms bound only how much is under way. */
static bool order_kept(const struct job *j)
{
	uint64_t n = j->original->instances;
	bool *was = ancestors(j->original), *is = ancestors(j->plans[j->victim]),
	     kept = true;

	for (uint64_t i = 0; i < n * n && kept; i++)
		kept = is[i] || !was[i] ||
		       (j->algo->goal != PLAN_GOAL_BARRIER &&
			!instances_meet(j, i / n, i % n));
	free(was);
	free(is);
	return kept;
}

/* The instance of the peer that pairs with instance `in` of rank. */
static struct plan_instance paired(const struct job *j, int32_t rank,
				   const struct plan_instance *in)
{
	const struct plan *other = j->plans[in->peer];
	struct plan_instance x = {.number = 0};
	uint64_t k = 0;

	for (uint64_t i = 0; i < in->number; i++) {
		plan_instance_at(j->plans[rank], i, &x);
		k += x.kind == in->kind && x.peer == in->peer;
	}
	for (uint64_t i = 0; i < other->instances; i++) {
		plan_instance_at(other, i, &x);
		if (x.kind != in->kind && (x.kind == PLAN_SEND || x.kind == PLAN_RECV) &&
		    x.peer == rank && !k--)
			return x;
	}
	tap_bail("an accepted plan has a SEND or RECV alone");
}

/* Takes in what is known before instance i of rank r; whether that is news. */
static bool barrier_hear(const struct job *j, uint64_t knows[RANKS_MAX][64], int32_t r,
			 uint64_t i)
{
	const struct plan *p = j->plans[r];
	uint64_t now = knows[r][i] | UINT64_C(1) << r;
	const struct plan_step *s;
	struct plan_instance in;

	plan_instance_at(p, i, &in);
	s = &p->step[in.step];
	for (uint32_t d = 0; d < s->dep_count; d++) {
		uint64_t on;

		if (plan_dep_instance(p, &p->dep[s->dep_first + d], &in, &on))
			now |= knows[r][on];
	}
	if (in.kind == PLAN_RECV)
		now |= knows[in.peer][paired(j, r, &in).number];
	return now != __atomic_exchange_n(&knows[r][i], now, __ATOMIC_RELAXED);
}

/* Where ranks hear again of some that they have heard of, as in the last round of a
 * barrier of no power of two, an order that is lost may be one that nobody needed.
 * Counted, from what each rank has heard of when nothing more comes of it. */
static bool barrier_good(const struct job *j)
{
	uint64_t knows[RANKS_MAX][64] = {{0}}, heard[RANKS_MAX] = {0};
	int32_t all = 0;

	for (bool moved = true; moved;) {
		moved = false;
		for (int32_t r = 0; r < j->call.size; r++) {
			for (uint64_t i = 0; i < j->plans[r]->instances; i++) {
				moved |= barrier_hear(j, knows, r, i);
				heard[r] |= knows[r][i];
			}
		}
	}
	for (int32_t r = 0; r < j->call.size; r++)
		all += heard[r] == (UINT64_C(1) << j->call.size) - 1;
	return all == j->call.size;
}

/* What the RECV waits for is done before the SEND starts, both at rank r. */
static bool ready_before(const struct job *j, int32_t r, const struct plan_instance *recv,
			 const struct plan_instance *send)
{
	const struct plan *p = j->plans[r];
	const struct plan_step *s = &p->step[recv->step];
	bool *before = ancestors(p), good = true;

	for (uint32_t d = 0; d < s->dep_count; d++) {
		uint64_t on;

		if (plan_dep_instance(p, &p->dep[s->dep_first + d], recv, &on))
			good &= before[send->number * p->instances + on];
	}
	free(before);
	return good;
}

/* A claimed proof holds in each trip: it comes from the peer itself, sent after all that
 * the peer's RECV waits for. */
static bool proof_good(const struct job *j)
{
	const struct plan *p = j->plans[j->victim];

	for (uint64_t i = 0; i < p->instances; i++) {
		struct plan_instance in, told, recv, send;
		const struct plan_step *s;
		uint64_t on;

		plan_instance_at(p, i, &in);
		s = &p->step[in.step];
		if (s->kind != PLAN_SEND || s->proof == PLAN_NO_PROOF ||
		    !plan_dep_instance(p, &p->dep[s->proof], &in, &on))
			continue;
		plan_instance_at(p, on, &told);
		if (told.peer != in.peer)
			return false;
		recv = paired(j, j->victim, &in);
		send = paired(j, j->victim, &told);
		if (!ready_before(j, in.peer, &recv, &send))
			return false;
	}
	return true;
}

/* The REDUCE that was changed is computed at the victim only, or nobody must have the
 * same bits. */
static bool sum_alone(const struct job *j)
{
	const struct plan *p = j->original, *q = j->plans[j->victim];
	int32_t power = 1;

	if (j->algo->goal != PLAN_GOAL_ALLREDUCE ||
	    strcmp(j->algo->name, "recursive-doubling") != 0)
		return true;
	while (power * 2 <= j->call.size)
		power *= 2;
	if (j->victim >= 2 * (j->call.size - power))
		return false;
	for (uint32_t i = 0; i < p->step_count; i++) {
		if (p->step[i].kind == PLAN_REDUCE)
			return p->step[i].src.buf != q->step[i].src.buf;
	}
	return false;
}

/* Whether two ranges are the same elements of a rank's memory, in the same order. */
static bool same_places(const struct job *j, int32_t rank, const struct plan_range *a,
			const struct plan_range *b)
{
	struct plan_piece_iter x, y;
	uint64_t xo, xn = 0, yo, yn = 0;
	bool more_x, more_y;

	if (a->buf > PLAN_SCRATCH || b->buf > PLAN_SCRATCH)
		return a->buf == b->buf;
	plan_piece_begin(&x, j->original, NULL, a);
	plan_piece_begin(&y, j->original, NULL, b);
	for (;;) {
		more_x = xn || plan_piece_next(&x, &xo, &xn);
		more_y = yn || plan_piece_next(&y, &yo, &yn);
		if (!more_x || !more_y)
			return more_x == more_y;
		for (; xn && yn; xn--, yn--) {
			if (address(j, rank, a->buf, xo++) !=
			    address(j, rank, b->buf, yo++))
				return false;
		}
	}
}

/* In place two buffers may be one, and a step that names the other means the same. */
static bool places_kept(const struct job *j)
{
	const struct plan *p = j->original, *q = j->plans[j->victim];
	struct plan_instance was, is;

	for (uint64_t i = 0; i < p->instances; i++) {
		plan_instance_at(p, i, &was);
		plan_instance_at(q, i, &is);
		if (!same_places(j, was.kind == PLAN_SEND ? was.peer : j->victim,
				 &was.dst, &is.dst) ||
		    !same_places(j, j->victim, &was.src, &is.src) ||
		    !same_places(j, j->victim, &was.src2, &is.src2))
			return false;
	}
	return true;
}

static bool as_good(const struct job *j, enum mutation m)
{
	switch (m) {
	case MOVE_RANGE:
	case MOVE_ADVANCE:
	case OTHER_BUFFER:
		return places_kept(j);
	case DROP_DEP:
	case MOVE_DEP:
		return order_kept(j) ||
		       (j->algo->goal == PLAN_GOAL_BARRIER && barrier_good(j));
	case SWAP_OPERANDS:
		return sum_alone(j);
	case CLAIM_PROOF:
		return proof_good(j);
	default:
		return false;
	}
}

/* ---- real arrays ---- */

/* What rank r's source element i is. */
static uint64_t value(int32_t r, uint64_t i)
{
	return 1000 * i + (UINT64_C(1) << (20 + r)) + (UINT64_C(3) << 32);
}

static uint64_t expected(const struct job *j, const struct plan_goal_piece *p, uint64_t i)
{
	uint64_t sum = 0;

	if (p->from >= 0)
		return value(p->from, p->pos + i);
	for (int32_t r = 0; r < j->call.size; r++)
		sum = j->call.ordered && r ? interp_compose(sum, value(r, p->pos + i))
					   : sum + value(r, p->pos + i);
	return j->call.average ? sum / (uint64_t)j->call.size : sum;
}

static void rank_fill(const struct job *j, struct interp_rank *k, int32_t r)
{
	const struct plan_goal_alias alias =
		plan_goal_in_place(j->algo->goal, &j->call, r);

	k->plan = j->plans[r];
	k->ordered = j->call.ordered;
	for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++) {
		k->buf_len[b] = b == PLAN_SCRATCH
					? k->plan->buf_len[b]
					: plan_goal_length(j->algo->goal, &j->call, r,
							   (enum plan_buf)b);
		k->buf[b] = NULL;
		if (alias.shared && b == (int)alias.inner)
			continue;
		k->buf[b] = calloc(k->buf_len[b] + 1, sizeof(uint64_t));
		if (!k->buf[b])
			tap_bail("out of memory");
	}
	if (alias.shared)
		k->buf[alias.inner] =
			k->buf[alias.inner == PLAN_SRC ? PLAN_DST : PLAN_SRC] + alias.at;
	for (uint64_t i = 0; i < k->buf_len[PLAN_SRC]; i++)
		k->buf[PLAN_SRC][i] = value(r, i);
}

static void rank_empty(const struct job *j, struct interp_rank *k, int32_t r)
{
	const struct plan_goal_alias alias =
		plan_goal_in_place(j->algo->goal, &j->call, r);

	for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++) {
		if (!alias.shared || b != (int)alias.inner)
			free(k->buf[b]);
	}
}

static bool result_good(const struct job *j, const struct interp_rank *k, int32_t r)
{
	const uint64_t *dst = k->buf[PLAN_DST];
	struct plan_goal_piece p;

	for (uint32_t i = 0; plan_goal_piece(j->algo->goal, &j->call, r, i, &p); i++) {
		for (uint64_t e = 0; e < p.length; e++) {
			if (*dst++ != expected(j, &p, e))
				return false;
		}
	}
	return true;
}

static bool schedule_good(const struct job *j, uint64_t *seed, char *why, size_t len)
{
	struct interp_rank rank[RANKS_MAX] = {0};
	bool good;

	for (int32_t r = 0; r < j->call.size; r++)
		rank_fill(j, &rank[r], r);
	snprintf(why, len, "a wrong result");
	good = interp_run(rank, j->call.size, seed, why, len);
	for (int32_t r = 0; good && r < j->call.size; r++)
		good = result_good(j, &rank[r], r);
	for (int32_t r = 0; r < j->call.size; r++)
		rank_empty(j, &rank[r], r);
	return good;
}

/* ---- the test ---- */

static void line_diag(void *arg, const char *text)
{
	(void)arg;
	tap_diag("%s", text);
}

static void job_diag(const struct job *j, enum mutation m, const char *why)
{
	tap_diag("%s/%s, %d ranks, %" PRIu64 " elements%s%s, rank %d: %s: %s",
		 j->algo->coll, j->algo->name, j->call.size, j->call.count,
		 j->call.in_place ? ", in place" : "", j->call.average ? ", average" : "",
		 j->victim, mutation_name[m], why);
	plan_print(j->plans[j->victim], line_diag, NULL);
}

/* Whether the checker's word on one mutant is right. */
static bool mutant_test(const struct job *j, enum mutation m, uint64_t *seed,
			struct tally *tally)
{
	char why[256];

	if (job_check(j, why, sizeof(why))) {
		tally->rejected++;
		return true;
	}
	tally->as_good++;
	for (int i = 0; i < SCHEDULES; i++) {
		if (schedule_good(j, seed, why, sizeof(why)))
			continue;
		job_diag(j, m, why);
		return false;
	}
	if (as_good(j, m))
		return true;
	job_diag(j, m, "accepted, and not known to be as good");
	return false;
}

int main(void)
{
	const char *given = getenv("WEFT_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
	struct tally tally[MUTATIONS] = {{0, 0}};
	int wrong[MUTATIONS] = {0}, originals = 0;

	seed += !seed;
	tap_diag("seed %" PRIu64 " (repeat with WEFT_SEED=%" PRIu64 ")", seed, seed);
	for (int i = 0; i < MUTANTS; i++) {
		enum mutation m = (enum mutation)(i % MUTATIONS);
		struct job j = job_make(&seed);
		char why[256];

		originals += job_check(&j, why, sizeof(why)) != 0;
		if (mutate(j.plans[j.victim], m, &seed))
			wrong[m] += !mutant_test(&j, m, &seed, &tally[m]);
		job_free(&j);
	}
	tap_is_int(originals, 0, "the originals are proven");
	for (int m = 0; m < MUTATIONS; m++)
		tap_ok(!wrong[m] && tally[m].rejected > 0,
		       "F6: %s: %d rejected, %d as good as the original, %d wrongly "
		       "accepted",
		       mutation_name[m], tally[m].rejected, tally[m].as_good - wrong[m],
		       wrong[m]);
	return tap_done();
}
