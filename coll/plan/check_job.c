/* SPDX-License-Identifier: BSD-2-Clause */
/* See check_job.h. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "coll/plan/check_job.h"

int check_fault(struct check_job *job, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(job->why, job->why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int check_fault_at(struct check_job *job, int32_t rank, uint64_t number, const char *fmt,
		   ...)
{
	static const char *const kind[] = {"send", "recv", "reduce", "copy"};
	struct plan_instance in;
	va_list ap;
	int n;

	plan_instance_at(job->rank[rank].plan, number, &in);
	n = snprintf(job->why, job->why_len,
		     "rank %d, instance %" PRIu64 " (#%u %s, trip %u): ", rank, number,
		     in.step, kind[in.kind], in.trip);
	if (n < 0 || (size_t)n >= job->why_len)
		return -EINVAL;
	va_start(ap, fmt);
	vsnprintf(job->why + n, job->why_len - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

bool check_walk_init(struct check_walk *w, const struct check_rank *rank)
{
	const struct plan *p = rank->plan;

	*w = (struct check_walk){.rank = rank};
	w->at = calloc((size_t)p->step_count + 1, sizeof(*w->at));
	for (uint32_t i = 0; w->at && i < p->step_count; i++)
		w->at[i] = (struct check_instance){.step = i,
						   .peer = p->step[i].peer,
						   .dst = p->step[i].dst.first,
						   .src = p->step[i].src.first,
						   .src2 = p->step[i].src2.first};
	return w->at;
}

void check_walk_fini(struct check_walk *w)
{
	free(w->at);
}

static uint32_t advanced(uint32_t at, int32_t by, uint32_t modulus)
{
	int64_t v = (int64_t)at + by, m = modulus;

	if (v >= 0 && v < m)
		return (uint32_t)v;
	v %= m;
	return (uint32_t)(v < 0 ? v + m : v);
}

static void range_advance(const struct check_rank *rank, const struct plan_range *r,
			  uint32_t *first, int32_t by)
{
	if (by && r->count && r->block)
		*first = advanced(*first, by, rank->space[r->part]->parts);
}

bool check_walk_next(struct check_walk *w, struct check_instance *out)
{
	const struct plan *p = w->rank->plan;
	const struct plan_step *s;
	struct check_instance *in;

	while (w->loop < p->loop_count && w->trip >= p->loop[w->loop].trips) {
		w->loop++;
		w->trip = 0;
	}
	if (w->loop >= p->loop_count)
		return false;
	in = &w->at[p->loop[w->loop].first + w->index];
	in->number = w->number++;
	in->trip = w->trip;
	*out = *in;
	s = &p->step[in->step];
	if (s->peer_advance && s->peer >= 0)
		in->peer = (int32_t)advanced((uint32_t)in->peer, s->peer_advance,
					     (uint32_t)p->size);
	range_advance(w->rank, &s->dst, &in->dst, s->dst_advance);
	range_advance(w->rank, &s->src, &in->src, s->src_advance);
	range_advance(w->rank, &s->src2, &in->src2, s->src2_advance);
	if (++w->index == p->loop[w->loop].count) {
		w->index = 0;
		w->trip++;
	}
	return true;
}

/* ---- channels -----------------------------------------------------------------------
 */

static size_t channel_search(const struct check_job *job, int32_t from, int32_t to)
{
	uint64_t h = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) *
		     UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(h >> 20) & (job->channel_slots - 1);

	while (job->channel_slot[i]) {
		const struct check_channel *c = &job->channel[job->channel_slot[i] - 1];

		if (c->from == from && c->to == to)
			break;
		i = (i + 1) & (job->channel_slots - 1);
	}
	return i;
}

/* Up to so many ranks there is a slot for each two of them: the 16 MiB are touched only
 * where ranks talk to each other, and nobody searches. */
#define CHANNELS_DIRECT 2048

static size_t channel_slot(const struct check_job *job, int32_t from, int32_t to)
{
	if (job->size <= CHANNELS_DIRECT)
		return (size_t)from * (size_t)job->size + (size_t)to;
	return channel_search(job, from, to);
}

/* Keeps a table that is searched at most half full. */
static bool channels_grow(struct check_job *job)
{
	size_t n = job->channel_slots ? job->channel_slots * 2 : 1024;
	uint32_t *slot;

	if (job->channels * 2 < job->channel_slots ||
	    (job->channel_slots && job->size <= CHANNELS_DIRECT))
		return true;
	if (job->size <= CHANNELS_DIRECT)
		n = (size_t)job->size * (size_t)job->size;
	slot = calloc(n, sizeof(*slot));
	if (!slot)
		return false;
	free(job->channel_slot);
	job->channel_slot = slot;
	job->channel_slots = n;
	for (size_t i = 0; i < job->channels; i++) {
		const struct check_channel *c = &job->channel[i];

		slot[channel_slot(job, c->from, c->to)] = (uint32_t)i + 1;
	}
	return true;
}

uint32_t check_channel_get(struct check_job *job, int32_t from, int32_t to)
{
	size_t i;

	if (!channels_grow(job))
		return UINT32_MAX;
	i = channel_slot(job, from, to);
	if (job->channel_slot[i])
		return job->channel_slot[i] - 1;
	if (!check_reserve(&job->channel, &job->channel_room, job->channels + 1,
			   sizeof(*job->channel)))
		return UINT32_MAX;
	job->channel[job->channels] = (struct check_channel){.from = from, .to = to};
	job->channel_slot[i] = (uint32_t)++job->channels;
	return job->channel_slot[i] - 1;
}

static int step_count_pairs(struct check_job *job, int32_t rank, uint32_t step,
			    uint32_t trips)
{
	const struct plan_step *s = &job->rank[rank].plan->step[step];
	uint32_t turns = s->peer_advance ? trips : trips > 0;
	int32_t peer = s->peer;

	for (uint32_t t = 0; t < turns; t++) {
		bool send = s->kind == PLAN_SEND;
		uint32_t c =
			check_channel_get(job, send ? rank : peer, send ? peer : rank);

		if (c == UINT32_MAX)
			return -ENOMEM;
		job->rank[rank].channel[step] = c;
		*(send ? &job->channel[c].sends : &job->channel[c].recvs) +=
			s->peer_advance ? 1 : trips;
		peer = (int32_t)advanced((uint32_t)peer, s->peer_advance,
					 (uint32_t)job->size);
	}
	return 0;
}

/* Rule: the k-th SEND from a to b pairs with the k-th RECV from a at b: as many of one as
 * of the other. */
static int pairs_count(struct check_job *job)
{
	for (int32_t r = 0; r < job->size; r++) {
		const struct plan *p = job->rank[r].plan;

		for (uint32_t l = 0; l < p->loop_count; l++) {
			const struct plan_loop *loop = &p->loop[l];

			for (uint32_t i = 0; i < loop->count; i++) {
				const struct plan_step *s = &p->step[loop->first + i];

				if (s->kind != PLAN_SEND && s->kind != PLAN_RECV)
					continue;
				job->proofs |= s->proof != PLAN_NO_PROOF;
				if (step_count_pairs(job, r, loop->first + i,
						     loop->trips))
					return -ENOMEM;
			}
		}
	}
	for (size_t i = 0; i < job->channels; i++) {
		const struct check_channel *c = &job->channel[i];

		if (c->sends != c->recvs)
			return check_fault(job,
					   "pairing: rank %d sends %" PRIu64
					   " times to rank %d, which receives %" PRIu64
					   " times from it",
					   c->from, c->sends, c->to, c->recvs);
	}
	return 0;
}

/* ---- ranks --------------------------------------------------------------------------
 */

static bool deps_prepare(struct check_rank *rank)
{
	const struct plan *p = rank->plan;

	rank->dep = calloc((size_t)p->dep_count + 1, sizeof(*rank->dep));
	if (!rank->dep)
		return false;
	for (uint32_t i = 0; i < p->dep_count; i++) {
		const struct plan_dep *d = &p->dep[i];
		const struct plan_loop *l = p->loop;

		while (d->step - l->first >= l->count)
			l++;
		rank->dep[i] = (struct check_dep){.base = l->base + (d->step - l->first),
						  .body = l->count,
						  .trips = l->trips,
						  .trip0 = d->trip0,
						  .advance = d->advance};
	}
	return true;
}

static uint64_t goal_length(const struct check_job *job, int32_t rank, enum plan_buf buf)
{
	return plan_goal_length(job->check->goal, job->call, rank, buf);
}

static int header_check(struct check_job *job, int32_t r)
{
	const struct plan *p = job->check->plans[r];
	const char *why;

	if (!p)
		return check_fault(job, "rank %d: there is no plan", r);
	if (p->rank != r || p->size != job->size)
		return check_fault(job, "rank %d of %d: the plan is of rank %d of %d", r,
				   job->size, p->rank, p->size);
	if (plan_validate(p, &why))
		return check_fault(job, "rank %d: %s", r, why);
	if (p->in_place != job->call->in_place)
		return check_fault(job, "rank %d: the plan is%s in place, the call is%s",
				   r, p->in_place ? "" : " not",
				   job->call->in_place ? "" : " not");
	if (p->puts != job->check->plans[0]->puts)
		return check_fault(job,
				   "rank %d: the plan prefers %s, the one of rank 0 the "
				   "other",
				   r, p->puts ? "puts" : "messages");
	if (p->lines != job->check->plans[0]->lines)
		return check_fault(job,
				   "rank %d: the plan is %s lines, the one of rank 0 is "
				   "the other",
				   r, p->lines ? "for" : "not for");
	if (job->call->average && p->divisor != (uint64_t)job->size)
		return check_fault(job,
				   "rank %d: the plan divides by %" PRIu64
				   ", the average is of %d",
				   r, p->divisor, job->size);
	for (int b = PLAN_SRC; b <= PLAN_DST; b++) {
		if (p->buf_len[b] > goal_length(job, r, (enum plan_buf)b))
			return check_fault(job,
					   "rank %d: the plan touches %" PRIu64
					   " elements of the %s, which has %" PRIu64,
					   r, p->buf_len[b],
					   b == PLAN_SRC ? "source" : "result",
					   goal_length(job, r, (enum plan_buf)b));
	}
	for (uint32_t i = 0; i < p->part_count; i++) {
		if (p->part[i].kind == PLAN_LATE)
			return check_fault(job,
					   "rank %d: partition %u is bound late; build "
					   "the plan with its table to check it",
					   r, i);
	}
	return 0;
}

static int rank_prepare(struct check_job *job, int32_t r)
{
	struct check_rank *rank = &job->rank[r];
	const struct plan *p = job->check->plans[r];
	int ret = header_check(job, r);

	if (ret)
		return ret;
	rank->plan = p;
	rank->alias = plan_goal_in_place(job->check->goal, job->call, r);
	rank->space = calloc((size_t)p->part_count + 1, sizeof(*rank->space));
	rank->channel = calloc((size_t)p->step_count + 1, sizeof(*rank->channel));
	if (!rank->space || !rank->channel || !deps_prepare(rank))
		return -ENOMEM;
	for (uint32_t i = 0; i < p->part_count; i++) {
		rank->space[i] = check_space_get(&job->spaces, p, (uint8_t)i);
		if (!rank->space[i])
			return -ENOMEM;
	}
	return 0;
}

int check_job_init(struct check_job *job, const struct plan_check *check, char *why,
		   size_t why_len)
{
	uint64_t all;
	int ret = 0;

	*job = (struct check_job){.check = check,
				  .call = check->call,
				  .size = check->call->size,
				  .why = why,
				  .why_len = why_len};
	if (job->size < 1)
		return check_fault(job, "a communicator of %d ranks", job->size);
	if (job->call->vector && !job->call->tables)
		return check_fault(job, "blocks of any lengths, but no tables of them");
	if (__builtin_mul_overflow(job->call->count, (uint64_t)job->size, &all) ||
	    all > INT64_MAX)
		return check_fault(job, "%" PRIu64 " elements of %d ranks do not fit",
				   job->call->count, job->size);
	job->rank = calloc((size_t)job->size, sizeof(*job->rank));
	if (!job->rank ||
	    !check_exprs_init(&job->exprs, (uint32_t)job->size, job->call->ordered))
		return -ENOMEM;
	for (int32_t r = 0; !ret && r < job->size; r++)
		ret = rank_prepare(job, r);
	return ret ? ret : pairs_count(job);
}

void check_job_fini(struct check_job *job)
{
	for (int32_t r = 0; job->rank && r < job->size; r++) {
		struct check_rank *rank = &job->rank[r];

		free(rank->space);
		free(rank->dep);
		free(rank->channel);
		free(rank->pair);
		for (int b = PLAN_SRC; b <= PLAN_SCRATCH; b++)
			check_mem_fini(&rank->mem[b]);
	}
	free(job->rank);
	free(job->channel);
	free(job->channel_slot);
	check_space_free(job->spaces);
	check_exprs_fini(&job->exprs);
}
