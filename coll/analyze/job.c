/* SPDX-License-Identifier: BSD-2-Clause */
/* See job.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/analyze/job.h"
#include "coll/api/error.h"

/* So that a damaged number of ranks does not take all memory. */
enum { RANKS_MOST = 1 << 22 };

void job_begin(struct job *job, int64_t stuck_ns)
{
	memset(job, 0, sizeof(*job));
	job->stuck_ns = stuck_ns;
	job->reference = -1;
}

void job_end(struct job *job)
{
	free(job->seat);
	free(job->part);
	free(job->group);
	free(job->bucket);
	free(job->end);
	free(job->text);
	memset(job, 0, sizeof(*job));
}

/* Room for one more; false: no memory. */
static bool grow(void **at, int64_t count, int64_t more, int64_t *max, size_t len)
{
	int64_t want = *max ? *max : 64;
	void *fresh;

	if (count + more <= *max)
		return true;
	while (want < count + more)
		want *= 2;
	fresh = realloc(*at, (size_t)want * len);
	if (!fresh)
		return false;
	*at = fresh;
	*max = want;
	return true;
}

/* Offset of a copy; -1: no memory. */
static int64_t keep_text(struct job *job, const char *text)
{
	const int64_t len = (int64_t)strlen(text) + 1, at = job->text_len;

	if (!grow((void **)&job->text, job->text_len, len, &job->text_max, 1))
		return -1;
	memcpy(job->text + at, text, (size_t)len);
	job->text_len += len;
	return at;
}

/* ---- groups ------------------------------------------------------------------------ */

static uint64_t group_hash(uint32_t number, int32_t first)
{
	const uint64_t x =
		((uint64_t)number << 32 | (uint32_t)first) * UINT64_C(0x9e3779b97f4a7c15);

	return x ^ x >> 29;
}

static void bucket_put(struct job *job, int64_t index)
{
	const struct job_group *g = &job->group[index];
	uint64_t at = group_hash(g->number, g->first);

	while (job->bucket[at & (uint64_t)(job->buckets - 1)])
		at++;
	job->bucket[at & (uint64_t)(job->buckets - 1)] = index + 1;
}

static bool buckets_grow(struct job *job)
{
	const int64_t want = job->buckets ? job->buckets * 2 : 256;
	int64_t *fresh = calloc((size_t)want, sizeof(*fresh));

	if (!fresh)
		return false;
	free(job->bucket);
	job->bucket = fresh;
	job->buckets = want;
	for (int64_t i = 0; i < job->groups; i++)
		bucket_put(job, i);
	return true;
}

/* Index; -1: no memory. */
static int64_t group_find(struct job *job, const struct trace_comm *c)
{
	uint64_t at = group_hash(c->number, c->first);
	struct job_group *g;

	if (job->groups * 2 >= job->buckets && !buckets_grow(job))
		return -1;
	for (int64_t b; (b = job->bucket[at & (uint64_t)(job->buckets - 1)]); at++) {
		g = &job->group[b - 1];
		if (g->number == c->number && g->first == c->first)
			return b - 1;
	}
	if (!grow((void **)&job->group, job->groups, 1, &job->groups_max, sizeof(*g)))
		return -1;
	g = &job->group[job->groups++];
	*g = (struct job_group){.number = c->number,
				.first = c->first,
				.size = c->size,
				.runs = c->runs,
				.parts = -1};
	memcpy(g->run, c->run, sizeof(g->run));
	bucket_put(job, job->groups - 1);
	return job->groups - 1;
}

bool job_group_has(const struct job_group *group, int32_t rank)
{
	for (uint32_t i = 0; i < group->runs; i++) {
		const struct trace_run *run = &group->run[i];
		const int64_t d = (int64_t)rank - run->first;

		if (run->step == 0 || d % run->step != 0) {
			if (d == 0)
				return true;
			continue;
		}
		if (d / run->step >= 0 && d / run->step < run->count)
			return true;
	}
	return false;
}

/* ---- a dump ------------------------------------------------------------------------ */

static bool call_is_over(const struct trace_call *c)
{
	return c->state == TRACE_CALL_DONE;
}

/* Stands still: it failed, or nothing has moved for long. */
static bool call_is_stuck(const struct job *job, const struct trace_head *h,
			  const struct trace_call *c)
{
	/* By lines, and not waited for yet: it has just begun. */
	return c->state == TRACE_CALL_FAILED ||
	       (c->start && trace_span(h, h->ticks[1] - c->moved) >= job->stuck_ns);
}

static bool fold_part(struct job *job, const struct trace_dump *d,
		      const struct trace_comm *c)
{
	const struct trace_call *first = NULL;
	const int64_t index = group_find(job, c);
	struct job_part *part;

	if (index < 0 ||
	    !grow((void **)&job->part, job->parts, 1, &job->parts_max, sizeof(*part)))
		return false;
	for (uint32_t i = 0; i < d->head.call_count; i++) {
		const struct trace_call *call = &d->call[i];

		if (call->comm == c->number && !(call->flags & TRACE_CALL_PAIR) &&
		    !call_is_over(call) && (!first || call->call < first->call))
			first = call;
	}
	part = &job->part[job->parts];
	*part = (struct job_part){.rank = d->head.rank,
				  .group = (uint32_t)index,
				  .next = job->group[index].parts,
				  .first = first ? first->call : c->started,
				  .open = first != NULL};
	if (first) {
		part->call = *first;
		part->stuck = call_is_stuck(job, &d->head, first);
		part->start = trace_when(&d->head, first->start);
		part->moved = trace_when(&d->head, first->moved);
	}
	job->group[index].parts = job->parts++;
	job->group[index].present++;
	return true;
}

static void fold_pair(struct job *job, struct job_seat *seat, const struct trace_dump *d,
		      const struct trace_call *c)
{
	if (seat->pairs == JOB_PAIRS || c->root < 0)
		return;
	seat->pair[seat->pairs++] = (struct job_pair){
		.peer = c->root,
		.sends = c->flags & TRACE_CALL_SENDS,
		.stuck = call_is_stuck(job, &d->head, c),
		.comm = c->comm,
		.call = c->call,
		.start = trace_when(&d->head, c->start),
	};
}

static bool holds_all(uint8_t coll)
{
	return coll == WEFT_COLL_BARRIER || coll == WEFT_COLL_ALLREDUCE ||
	       coll == WEFT_COLL_ALLGATHER || coll == WEFT_COLL_ALLTOALL ||
	       coll == WEFT_COLL_REDUCE_SCATTER;
}

static void fold_sample(struct job_seat *seat, const struct trace_dump *d,
			const struct trace_call *c, uint32_t group, uint64_t before)
{
	struct job_sample *s;

	if (seat->samples == JOB_SAMPLES) {
		memmove(seat->sample, seat->sample + 1,
			(JOB_SAMPLES - 1) * sizeof(*seat->sample));
		seat->samples--;
	}
	s = &seat->sample[seat->samples++];
	*s = (struct job_sample){
		.group = group,
		.call = c->call,
		.start = trace_when(&d->head, c->start ? c->start : c->end),
		.end = trace_when(&d->head, c->end),
		.own = trace_span(&d->head, c->stage[TRACE_STAGE_REGISTER] +
						    c->stage[TRACE_STAGE_REDUCE]),
		.sending = trace_span(&d->head, c->stage[TRACE_STAGE_TRANSFER]),
		.sent = c->sent,
		.lines = c->flags & TRACE_CALL_LINES,
		.holds = c->start && holds_all(c->coll),
	};
	if (before && c->start > before)
		s->gap = trace_span(&d->head, c->start - before);
	s->own += s->gap;
}

/* Calls, oldest first. */
static void fold_calls(struct job *job, struct job_seat *seat, const struct trace_dump *d)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < d->head.call_count; i++) {
		const struct trace_call *c = &d->call[i];
		const bool pair = c->flags & TRACE_CALL_PAIR;

		if (c->state == TRACE_CALL_FAILED && seat->result == WEFT_SUCCESS) {
			seat->result = c->result;
			seat->culprit = c->culprit;
		}
		if (!call_is_over(c)) {
			if (pair)
				fold_pair(job, seat, d, c);
			continue;
		}
		for (int64_t p = seat->part; !pair && p < seat->part + seat->parts; p++) {
			if (job->group[job->part[p].group].number == c->comm)
				fold_sample(seat, d, c, job->part[p].group, before);
		}
		before = c->end;
	}
}

static bool fold_peers(struct job *job, struct job_seat *seat, const struct trace_dump *d)
{
	seat->end = job->ends;
	seat->ends = d->head.peer_count;
	if (!grow((void **)&job->end, job->ends, seat->ends, &job->ends_max,
		  sizeof(*job->end)))
		return false;
	for (uint32_t i = 0; i < d->head.peer_count; i++) {
		const struct trace_peer *p = &d->peer[i];
		uint64_t busy = p->busy;

		if (p->flying && p->since < d->head.ticks[1])
			busy += d->head.ticks[1] - p->since;
		job->end[job->ends++] = (struct job_end){
			.peer = p->rank,
			.lost = p->lost,
			.told = p->told,
			.notes = p->notes,
			.sends = p->sends,
			.sent = p->sent,
			.recvs = p->recvs,
			.puts = p->puts,
			.put = p->put,
			.ready_out = p->ready_out,
			.ready_in = p->ready_in,
			.bytes_out = p->bytes_out,
			.bytes_in = p->bytes_in,
			.busy = trace_span(&d->head, busy),
		};
	}
	return true;
}

static bool fold(struct job *job, const struct trace_dump *d, const char *path,
		 char state)
{
	const struct trace_head *h = &d->head;
	struct job_seat *seat = &job->seat[h->rank];

	*seat = (struct job_seat){
		.state = state,
		.reason = (uint8_t)h->reason,
		.signal = (uint8_t)h->signal,
		.culprit = -1,
		.pid = h->pid,
		.real = h->real[1],
		.opened = trace_when(h, h->ticks[0]),
		.looked = trace_span(h, h->ticks[1] - h->looked),
		.path = keep_text(job, path),
		.host = keep_text(job, h->host),
		.part = job->parts,
	};
	if (seat->path < 0 || seat->host < 0)
		return false;
	for (uint32_t i = 0; i < h->comm_count; i++) {
		if (!fold_part(job, d, &d->comm[i]))
			return false;
		seat->parts++;
	}
	fold_calls(job, seat, d);
	if (!fold_peers(job, seat, d))
		return false;
	seat->there = true;
	job->present++;
	return true;
}

/* True: it is to be read; false: it was left out, which was counted. */
static bool is_wanted(struct job *job, const struct trace_head *h)
{
	if (job->seat && (h->job != job->id || h->size != job->size)) {
		job->others++;
		return false;
	}
	/* One that had given one: the first stays, and it is said. */
	if (job->seat && job->seat[h->rank].there) {
		job->again++;
		return false;
	}
	return true;
}

enum weft_result job_add(struct job *job, const char *path, char state)
{
	enum weft_result result;
	struct trace_dump d;

	result = trace_load_tables(path, &d);
	if (result != WEFT_SUCCESS)
		return result;
	if (!job->seat && d.head.size > RANKS_MOST) {
		trace_free(&d);
		return error_set(WEFT_ERR_ARG, "%.200s: more than %d ranks", path,
				 RANKS_MOST);
	}
	if (!job->seat) {
		job->id = d.head.job;
		job->size = d.head.size;
		job->seat = calloc((size_t)job->size, sizeof(*job->seat));
	}
	if (!job->seat || (is_wanted(job, &d.head) && !fold(job, &d, path, state)))
		result = error_set(WEFT_ERR_NOMEM, "%.200s: no memory for what it says",
				   path);
	trace_free(&d);
	return result;
}

/* ---- looking ----------------------------------------------------------------------- */

const char *job_path(const struct job *job, int32_t rank)
{
	return job->text + job->seat[rank].path;
}

const char *job_who(const struct job *job, int32_t rank, char text[128])
{
	const struct job_seat *seat = &job->seat[rank];

	if (!seat->there)
		snprintf(text, 128, "rank %" PRId32, rank);
	else
		snprintf(text, 128, "rank %" PRId32 " (%.60s, process %" PRId64 ")", rank,
			 job->text + seat->host, seat->pid);
	return text;
}

const struct job_end *job_link(const struct job *job, int32_t rank, int32_t peer)
{
	const struct job_seat *seat = &job->seat[rank];

	for (int64_t i = seat->end; seat->there && i < seat->end + seat->ends; i++) {
		if (job->end[i].peer == peer)
			return &job->end[i];
	}
	return NULL;
}

const struct job_part *job_part(const struct job *job, int32_t rank, uint32_t group)
{
	const struct job_seat *seat = &job->seat[rank];

	for (int64_t i = seat->part; seat->there && i < seat->part + seat->parts; i++) {
		if (job->part[i].group == group)
			return &job->part[i];
	}
	return NULL;
}

int64_t job_time(const struct job *job, int32_t rank, int64_t when)
{
	const struct job_seat *seat = &job->seat[rank];

	return seat->clocked ? clock_from(&seat->clock, when) : when;
}
