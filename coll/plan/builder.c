/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds a plan. The first failure is kept and everything after it does nothing, so that
 * algorithms read like the mathematics; plan_builder_finish() reports it.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll/plan/plan.h"

/* A dependency as it was added; sorted by step at the end. */
struct builder_dep {
	struct plan_dep dep;
	uint32_t step;
	bool proof;
};

struct plan_builder {
	struct plan *plan;
	struct builder_dep *dep;
	uint32_t dep_count;
	uint64_t scratch;
	bool in_loop;
	int error;
	const char *why;
};

static void fail(struct plan_builder *b, int error, const char *why)
{
	if (b->error)
		return;
	b->error = error;
	b->why = why;
}

static bool failed(const struct plan_builder *b)
{
	return !b || b->error;
}

/* Makes room for one more; capacities are powers of two, so the count tells when. */
static void *grown(struct plan_builder *b, void *array, uint32_t count, size_t size)
{
	void *more;

	if (count & (count - 1) || (count && count < 8))
		return array;
	if (count >= UINT32_MAX / 2) {
		fail(b, -EINVAL, "a plan has too many steps or dependencies");
		return array;
	}
	more = realloc(array, (count ? (size_t)count * 2 : 8) * size);
	if (!more) {
		fail(b, -ENOMEM, "out of memory");
		return array;
	}
	return more;
}

struct plan_builder *plan_builder_open(const char *algorithm,
				       const struct plan_call *call)
{
	struct plan_builder *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->plan = calloc(1, sizeof(*b->plan));
	if (!b->plan) {
		free(b);
		return NULL;
	}
	b->plan->algorithm = algorithm;
	b->plan->rank = call->rank;
	b->plan->size = call->size;
	b->plan->divisor = (uint64_t)call->size;
	b->plan->in_place = call->in_place;
	if (call->size < 1 || call->rank < 0 || call->rank >= call->size)
		fail(b, -EINVAL, "the rank is not in the communicator");
	return b;
}

static uint8_t part_add(struct plan_builder *b, struct plan_part part)
{
	struct plan *plan = b->plan;

	if (!part.parts)
		fail(b, -EINVAL, "a partition has no part");
	/* Ranges name a partition in eight bits. */
	if (plan->part_count > UINT8_MAX)
		fail(b, -EINVAL, "a plan has more than 256 partitions");
	plan->part = grown(b, plan->part, plan->part_count, sizeof(part));
	if (b->error) {
		free((void *)(uintptr_t)part.disp);
		return 0;
	}
	plan->part[plan->part_count] = part;
	return (uint8_t)plan->part_count++;
}

uint8_t plan_add_balanced(struct plan_builder *b, uint64_t total, uint32_t parts)
{
	if (failed(b))
		return 0;
	return part_add(b, (struct plan_part){.kind = PLAN_BALANCED,
					      .parts = parts,
					      .total = total});
}

uint8_t plan_add_table(struct plan_builder *b, const uint64_t *disp, uint32_t parts)
{
	uint64_t *own;

	if (failed(b))
		return 0;
	own = malloc(((size_t)parts + 1) * sizeof(*own));
	if (!own) {
		fail(b, -ENOMEM, "out of memory");
		return 0;
	}
	memcpy(own, disp, ((size_t)parts + 1) * sizeof(*own));
	return part_add(b, (struct plan_part){.kind = PLAN_TABLE,
					      .parts = parts,
					      .total = own[parts],
					      .disp = own});
}

uint8_t plan_add_late(struct plan_builder *b, uint64_t most, uint32_t parts)
{
	return plan_add_late_table(b, PLAN_TABLE_OTHER, most, parts);
}

uint8_t plan_add_late_table(struct plan_builder *b, enum plan_table_kind table,
			    uint64_t most, uint32_t parts)
{
	if (failed(b))
		return 0;
	return part_add(b, (struct plan_part){.kind = PLAN_LATE,
					      .parts = parts,
					      .total = most,
					      .table = (uint8_t)table});
}

uint64_t plan_longest(const struct plan_builder *b, uint8_t part)
{
	if (failed(b) || part >= b->plan->part_count)
		return 0;
	return plan_part_longest(&b->plan->part[part]);
}

uint8_t plan_add_folded_at(struct plan_builder *b, uint8_t of, uint32_t slots,
			   uint64_t base)
{
	uint64_t total;

	if (failed(b))
		return 0;
	if (of >= b->plan->part_count || b->plan->part[of].kind >= PLAN_FOLDED) {
		fail(b, -EINVAL, "a folded partition is not of a plain partition");
		return 0;
	}
	if (__builtin_mul_overflow(plan_longest(b, of), (uint64_t)slots, &total) ||
	    __builtin_add_overflow(total, base, &total)) {
		fail(b, -EINVAL, "scratch is longer than 64 bits can say");
		return 0;
	}
	return part_add(b, (struct plan_part){.kind = PLAN_FOLDED,
					      .parts = b->plan->part[of].parts,
					      .total = total,
					      .slots = slots,
					      .base = base,
					      .of = of});
}

uint8_t plan_add_folded(struct plan_builder *b, uint8_t of, uint32_t slots)
{
	const uint8_t part = plan_add_folded_at(b, of, slots, 0);

	if (!failed(b))
		plan_need_scratch(b, b->plan->part[part].total);
	return part;
}

uint8_t plan_add_shifted(struct plan_builder *b, uint8_t of, uint64_t base)
{
	uint64_t total;

	if (failed(b))
		return 0;
	if (of >= b->plan->part_count || b->plan->part[of].kind >= PLAN_FOLDED) {
		fail(b, -EINVAL, "a shifted partition is not of a plain partition");
		return 0;
	}
	if (__builtin_add_overflow(b->plan->part[of].total, base, &total)) {
		fail(b, -EINVAL, "scratch is longer than 64 bits can say");
		return 0;
	}
	return part_add(b, (struct plan_part){.kind = PLAN_SHIFTED,
					      .parts = b->plan->part[of].parts,
					      .total = total,
					      .base = base,
					      .of = of});
}

void plan_need_scratch(struct plan_builder *b, uint64_t elements)
{
	if (!failed(b) && elements > b->scratch)
		b->scratch = elements;
}

static void loop_open(struct plan_builder *b, uint32_t trips)
{
	struct plan *plan = b->plan;

	plan->loop = grown(b, plan->loop, plan->loop_count, sizeof(*plan->loop));
	if (b->error)
		return;
	plan->loop[plan->loop_count++] =
		(struct plan_loop){.first = plan->step_count, .trips = trips};
}

void plan_loop_begin(struct plan_builder *b, uint32_t trips)
{
	if (failed(b))
		return;
	if (b->in_loop) {
		fail(b, -EINVAL, "a loop begins inside a loop");
		return;
	}
	b->in_loop = true;
	loop_open(b, trips);
}

void plan_loop_end(struct plan_builder *b)
{
	if (failed(b))
		return;
	if (!b->in_loop)
		fail(b, -EINVAL, "a loop ends that did not begin");
	else if (!b->plan->loop[b->plan->loop_count - 1].count)
		fail(b, -EINVAL, "a loop has no step");
	b->in_loop = false;
}

static uint32_t step_add(struct plan_builder *b, enum plan_kind kind, int32_t peer,
			 struct plan_range dst, struct plan_range src,
			 struct plan_range src2)
{
	struct plan *plan;

	if (failed(b))
		return 0;
	plan = b->plan;
	if (!b->in_loop)
		loop_open(b, 1);
	plan->step = grown(b, plan->step, plan->step_count, sizeof(*plan->step));
	if (b->error)
		return 0;
	plan->loop[plan->loop_count - 1].count++;
	plan->step[plan->step_count] = (struct plan_step){.kind = (uint8_t)kind,
							  .peer = peer,
							  .dst = dst,
							  .src = src,
							  .src2 = src2,
							  .proof = PLAN_NO_PROOF};
	return plan->step_count++;
}

uint32_t plan_add_send(struct plan_builder *b, int32_t peer, struct plan_range src,
		       struct plan_range at_peer)
{
	return step_add(b, PLAN_SEND, peer, at_peer, src, plan_nothing());
}

uint32_t plan_add_recv(struct plan_builder *b, int32_t peer, struct plan_range dst)
{
	return step_add(b, PLAN_RECV, peer, dst, plan_nothing(), plan_nothing());
}

uint32_t plan_add_reduce(struct plan_builder *b, struct plan_range dst,
			 struct plan_range src, struct plan_range src2)
{
	return step_add(b, PLAN_REDUCE, -1, dst, src, src2);
}

uint32_t plan_add_copy(struct plan_builder *b, struct plan_range dst,
		       struct plan_range src)
{
	return step_add(b, PLAN_COPY, -1, dst, src, plan_nothing());
}

static struct plan_step *step_get(struct plan_builder *b, uint32_t step)
{
	if (failed(b))
		return NULL;
	if (step >= b->plan->step_count) {
		fail(b, -EINVAL, "a step is changed that was not added");
		return NULL;
	}
	return &b->plan->step[step];
}

void plan_set_advance(struct plan_builder *b, uint32_t step, int32_t peer, int32_t dst,
		      int32_t src, int32_t src2)
{
	struct plan_step *s = step_get(b, step);

	if (!s)
		return;
	s->peer_advance = peer;
	s->dst_advance = dst;
	s->src_advance = src;
	s->src2_advance = src2;
}

void plan_set_scale(struct plan_builder *b, uint32_t step)
{
	struct plan_step *s = step_get(b, step);

	if (!s)
		return;
	s->flags |= PLAN_SCALE;
}

void plan_prefer_puts(struct plan_builder *b)
{
	if (b && !b->error)
		b->plan->puts = true;
}

void plan_by_lines(struct plan_builder *b, enum plan_lines how)
{
	if (b && !b->error)
		b->plan->lines = (uint8_t)how;
}

static void dep_add(struct plan_builder *b, uint32_t step, uint32_t on, int32_t trip0,
		    int32_t advance, bool proof)
{
	if (!step_get(b, step) || !step_get(b, on))
		return;
	b->dep = grown(b, b->dep, b->dep_count, sizeof(*b->dep));
	if (b->error)
		return;
	b->dep[b->dep_count++] = (struct builder_dep){
		.dep = {.step = on, .trip0 = trip0, .advance = advance},
		.step = step,
		.proof = proof};
}

void plan_add_dep(struct plan_builder *b, uint32_t step, uint32_t on, int32_t trip0,
		  int32_t advance)
{
	dep_add(b, step, on, trip0, advance, false);
}

void plan_add_dep_same(struct plan_builder *b, uint32_t step, uint32_t on)
{
	const struct plan_loop *own, *other;

	if (!step_get(b, step) || !step_get(b, on))
		return;
	own = plan_loop_of(b->plan, step);
	other = plan_loop_of(b->plan, on);
	if (own != other && other->trips != 1) {
		fail(b, -EINVAL, "a dependency on \"the same trip\" of another loop");
		return;
	}
	dep_add(b, step, on, 0, own == other, false);
}

void plan_set_proof(struct plan_builder *b, uint32_t step, uint32_t on, int32_t trip0,
		    int32_t advance)
{
	dep_add(b, step, on, trip0, advance, true);
}

/* Gives each step its run of dependencies, in the order in which they were added. */
static void deps_sort(struct plan_builder *b)
{
	struct plan *plan = b->plan;
	uint32_t at = 0;

	plan->dep = calloc(b->dep_count ? b->dep_count : 1, sizeof(*plan->dep));
	if (!plan->dep) {
		fail(b, -ENOMEM, "out of memory");
		return;
	}
	plan->dep_count = b->dep_count;
	for (uint32_t i = 0; i < b->dep_count; i++)
		plan->step[b->dep[i].step].dep_count++;
	for (uint32_t s = 0; s < plan->step_count; s++) {
		plan->step[s].dep_first = at;
		at += plan->step[s].dep_count;
		plan->step[s].dep_count = 0;
	}
	for (uint32_t i = 0; i < b->dep_count; i++) {
		struct plan_step *s = &plan->step[b->dep[i].step];
		uint32_t to = s->dep_first + s->dep_count++;

		plan->dep[to] = b->dep[i].dep;
		if (b->dep[i].proof && s->proof != PLAN_NO_PROOF)
			fail(b, -EINVAL, "a SEND has two proofs");
		if (b->dep[i].proof)
			s->proof = to;
	}
}

/* SRC and DST are as long as what is touched of them; scratch must have been asked for.
 */
static void lengths_set(struct plan_builder *b)
{
	struct plan *plan = b->plan;

	plan->buf_len[PLAN_SCRATCH] = b->scratch;
	for (uint32_t i = 0; i < plan->step_count; i++) {
		const struct plan_step *s = &plan->step[i];
		const struct plan_range *r[3] = {&s->src, &s->src2, &s->dst};
		int local = s->kind == PLAN_SEND ? 2 : 3;

		for (int j = 0; j < local; j++) {
			uint64_t total;

			if (!r[j]->count || !r[j]->block || r[j]->buf >= PLAN_SCRATCH ||
			    r[j]->part >= plan->part_count)
				continue;
			total = plan->part[r[j]->part].total;
			if (total > plan->buf_len[r[j]->buf])
				plan->buf_len[r[j]->buf] = total;
		}
	}
}

static void loops_number(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->loop_count; i++) {
		plan->loop[i].base = plan->instances;
		plan->instances += (uint64_t)plan->loop[i].count * plan->loop[i].trips;
	}
}

int plan_builder_finish(struct plan_builder *b, struct plan **plan, const char **why)
{
	int error;

	if (!b) {
		*why = "out of memory";
		return -ENOMEM;
	}
	if (b->in_loop)
		fail(b, -EINVAL, "a loop was not ended");
	if (!b->error) {
		deps_sort(b);
		lengths_set(b);
		loops_number(b->plan);
	}
	if (!b->error) {
		const char *fault;

		if (plan_validate(b->plan, &fault))
			fail(b, -EINVAL, fault);
	}
	error = b->error;
	if (error) {
		*why = b->why;
		plan_free(b->plan);
	} else {
		*plan = b->plan;
	}
	free(b->dep);
	free(b);
	return error;
}
