/* SPDX-License-Identifier: BSD-2-Clause */
/* See synth.h. Moments are nanoseconds since the job began, by a clock that is right. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/analyze/tests/synth.h"

enum {
	CALL_NS = 2000000, /* from one call to the next */
	SHAKE_NS = 20000,  /* ranks come so much later, at most */
	OWN_NS = 200000,   /* reducing of a call */
	SEND_NS = 300000,  /* sending of one */
	FLIGHT_NS = 5000,  /* least that a message takes */
	BYTES = 1 << 20,
	STOOD_NS = 1000000000, /* from the hang to the dumps, times 5 */
	TABLES = 70,
};

const char *const synth_name[SYNTH_FAULTS] = {
	[SYNTH_NONE] = "none",	 [SYNTH_OUTSIDE] = "outside",
	[SYNTH_DEAD] = "dead",	 [SYNTH_MISMATCH] = "mismatch",
	[SYNTH_ORDER] = "order", [SYNTH_LINK] = "link",
	[SYNTH_SLOW] = "slow",	 [SYNTH_SLOW_LINK] = "slow-link",
	[SYNTH_TWO] = "two",
};

/* Everything is drawn from the seed and from what it is for, so that ranks agree. */
static uint64_t draw(const struct synth *s, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t x = s->seed * UINT64_C(0x9e3779b97f4a7c15) +
		     a * UINT64_C(0xbf58476d1ce4e5b9) + b * UINT64_C(0x94d049bb133111eb) +
		     c;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static double draw_part(const struct synth *s, uint64_t a, uint64_t b, uint64_t c)
{
	return (double)(draw(s, a, b, c) >> 11) * 0x1p-53;
}

int64_t synth_clock(const struct synth *s, int32_t rank, int64_t when)
{
	const double offset = (2 * draw_part(s, 1, (uint64_t)rank, 0) - 1);
	const double drift = (2 * draw_part(s, 2, (uint64_t)rank, 0) - 1) * s->drift_max;

	return INT64_C(1700000000000000000) + (int64_t)(offset * (double)s->offset_max) +
	       when + (int64_t)(drift * (double)when);
}

/* ---- what happens ------------------------------------------------------------------ */

static bool is_bad(const struct synth *s, int32_t rank)
{
	return rank == s->bad;
}

/* Even calls are of all ranks, odd ones of groups. */
static bool of_all(int call)
{
	return call % 2 == 0;
}

static int64_t call_start(const struct synth *s, int32_t rank, int call)
{
	int64_t at = 1000000 + (int64_t)call * CALL_NS;

	at += (int64_t)(draw_part(s, 3, (uint64_t)rank, (uint64_t)call) * SHAKE_NS);
	if (s->fault == SYNTH_TWO && call >= s->calls &&
	    rank / SYNTH_GROUP != s->bad / SYNTH_GROUP)
		at += 100000000;
	return at;
}

/* After everybody has come. */
static int64_t call_end(const struct synth *s, int32_t rank, int call)
{
	return 1000000 + (int64_t)call * CALL_NS + SHAKE_NS + 8 * OWN_NS +
	       (int64_t)(draw_part(s, 4, (uint64_t)rank, (uint64_t)call) * SHAKE_NS);
}

static int64_t dump_at(const struct synth *s, int32_t rank)
{
	const bool slow = s->fault == SYNTH_SLOW || s->fault == SYNTH_SLOW_LINK ||
			  s->fault == SYNTH_NONE;

	return (int64_t)(s->calls + 2) * CALL_NS + (slow ? 0 : INT64_C(5) * STOOD_NS) +
	       (int64_t)(draw_part(s, 5, (uint64_t)rank, 0) * CALL_NS);
}

/* ---- the dump ---------------------------------------------------------------------- */

struct out {
	const struct synth *s;
	int32_t rank;
	struct trace_head head;
	struct trace_comm comm[2];
	struct trace_call call[TABLES];
	struct trace_peer peer[2];
	struct trace_event *event;
};

static uint64_t ticks(const struct out *o, int64_t when)
{
	return (uint64_t)synth_clock(o->s, o->rank, when);
}

static void put_event(struct out *o, int64_t when, enum trace_kind kind, int what,
		      int call, int32_t peer, int pair)
{
	o->event[o->head.count++] = (struct trace_event){
		.ticks = ticks(o, when),
		.kind = (uint8_t)kind,
		.what = (uint8_t)what,
		.pair = (uint16_t)pair,
		.comm = !of_all(call),
		.call = (uint32_t)(call / 2),
		.peer = peer,
		.bytes = BYTES / 8,
	};
}

/* When a rank gives the k-th message of a call to the next one. */
static int64_t given(const struct synth *s, int32_t rank, int call, int k)
{
	return call_start(s, rank, call) + SHAKE_NS + (int64_t)k * 10000;
}

static void put_messages(struct out *o, int call)
{
	const struct synth *s = o->s;
	const int32_t next = (o->rank + 1) % s->size,
		      before = (o->rank + s->size - 1) % s->size;

	if (!of_all(call))
		return;
	for (int k = 0; k < s->messages; k++) {
		const int64_t flight =
			FLIGHT_NS + (int64_t)(draw_part(s, 6, (uint64_t)before,
							(uint64_t)(call * 100 + k)) *
					      4 * FLIGHT_NS);

		put_event(o, given(s, o->rank, call, k), TRACE_PUT, 0, call, next, k);
		put_event(o, given(s, before, call, k) + flight, TRACE_STEP, 1, call,
			  before, k);
	}
}

static struct trace_call *put_call(struct out *o, int call)
{
	const struct synth *s = o->s;
	const int64_t start = call_start(s, o->rank, call);
	struct trace_call *c = &o->call[o->head.call_count++];

	*c = (struct trace_call){.start = ticks(o, start),
				 .moved = ticks(o, start),
				 .count = BYTES / 4,
				 .comm = !of_all(call),
				 .call = (uint32_t)(call / 2),
				 .coll = WEFT_COLL_ALLREDUCE,
				 .type = WEFT_FP32,
				 .state = TRACE_CALL_OPEN,
				 .culprit = -1,
				 .waits = (o->rank + s->size - 1) % s->size,
				 .all = 2u * (uint32_t)s->size,
				 .on = TRACE_STAGE_WAIT};
	return c;
}

static void put_done(struct out *o, int call)
{
	const struct synth *s = o->s;
	struct trace_call *c = put_call(o, call);
	const bool slow = s->fault == SYNTH_SLOW && is_bad(s, o->rank);

	c->end = ticks(o, call_end(s, o->rank, call));
	c->moved = c->end;
	c->state = TRACE_CALL_DONE;
	c->sent = BYTES;
	c->stage[TRACE_STAGE_REDUCE] = (slow ? 7 : 1) * OWN_NS;
	c->stage[TRACE_STAGE_TRANSFER] = SEND_NS;
	put_messages(o, call);
}

static void put_peers(struct out *o)
{
	const struct synth *s = o->s;
	const uint64_t puts = (uint64_t)s->calls * 10;
	const int32_t next = (o->rank + 1) % s->size,
		      before = (o->rank + s->size - 1) % s->size;
	const bool sends = s->fault == SYNTH_LINK && is_bad(s, o->rank);
	const bool gets = s->fault == SYNTH_LINK && is_bad(s, before);
	const bool slow = s->fault == SYNTH_SLOW_LINK && is_bad(s, o->rank);

	o->head.peer_count = 2;
	o->peer[0] = (struct trace_peer){
		.rank = next,
		.used = 1,
		.lost = s->fault == SYNTH_DEAD && is_bad(s, next),
		.told = puts,
		.puts = puts,
		.put = puts - (sends ? 1 : 0),
		.bytes_out = (uint64_t)s->calls * BYTES,
		.busy = (uint64_t)s->calls * SEND_NS * (slow ? 5 : 1),
	};
	o->peer[1] = (struct trace_peer){
		.rank = before,
		.used = 1,
		.lost = s->fault == SYNTH_DEAD && is_bad(s, before),
		.notes = puts - (gets ? 1 : 0),
		.bytes_in = (uint64_t)s->calls * BYTES,
	};
}

static void put_comms(struct out *o)
{
	const struct synth *s = o->s;
	const int32_t first = o->rank / SYNTH_GROUP * SYNTH_GROUP;
	const int32_t left = s->size - first,
		      count = left < SYNTH_GROUP ? left : SYNTH_GROUP;

	o->head.comm_count = 2;
	o->comm[0] = (struct trace_comm){.number = 0,
					 .state = TRACE_COMM_OPEN,
					 .size = s->size,
					 .self = o->rank,
					 .runs = 1,
					 .run = {{0, 1, s->size}}};
	o->comm[1] = (struct trace_comm){.number = 1,
					 .state = TRACE_COMM_OPEN,
					 .first = first,
					 .size = count,
					 .self = o->rank - first,
					 .runs = 1,
					 .run = {{first, 1, count}}};
}

/* What this rank does after the calls that ended well. */
static void put_last(struct out *o)
{
	const struct synth *s = o->s;
	const bool bad = is_bad(s, o->rank);
	struct trace_call *c;

	if (s->fault == SYNTH_NONE || s->fault == SYNTH_SLOW ||
	    s->fault == SYNTH_SLOW_LINK)
		return;
	if (s->fault == SYNTH_TWO) {
		if (!bad && o->rank != 0 &&
		    (o->rank < SYNTH_GROUP ||
		     o->rank / SYNTH_GROUP == s->bad / SYNTH_GROUP))
			put_call(o, s->calls | 1);
		return;
	}
	if (s->fault == SYNTH_OUTSIDE && bad)
		return;
	if (s->fault == SYNTH_ORDER && bad) {
		put_call(o, s->calls | 1);
		return;
	}
	c = put_call(o, s->calls & ~1);
	if (s->fault == SYNTH_MISMATCH && bad)
		c->count--;
}

static void put_head(struct out *o)
{
	const int64_t at = dump_at(o->s, o->rank);
	struct trace_head *h = &o->head;

	memcpy(h->magic, TRACE_MAGIC, sizeof(h->magic));
	h->order = TRACE_ORDER;
	h->head_len = TRACE_HEAD_LEN;
	h->event_len = TRACE_EVENT_LEN;
	h->comm_len = TRACE_COMM_LEN;
	h->call_len = TRACE_CALL_LEN;
	h->peer_len = TRACE_PEER_LEN;
	h->reason = TRACE_SIGNALLED;
	h->rank = o->rank;
	h->size = o->s->size;
	h->pid = 1000 + o->rank;
	h->job = 1;
	h->ticks[0] = ticks(o, 0);
	h->ticks[1] = ticks(o, at);
	h->mono[0] = (int64_t)h->ticks[0];
	h->mono[1] = (int64_t)h->ticks[1];
	h->real[0] = (int64_t)h->ticks[0];
	h->real[1] = (int64_t)h->ticks[1];
	h->looked = ticks(o, at - 1000);
	h->calls = h->call_count;
	h->total = h->count;
	for (uint32_t i = 0; i < h->call_count; i++) {
		struct trace_comm *c = &o->comm[o->call[i].comm];

		c->started = o->call[i].call + 1;
		c->ended += o->call[i].state == TRACE_CALL_DONE;
	}
	snprintf(h->provider, sizeof(h->provider), "none");
	snprintf(h->host, sizeof(h->host), "host%d", o->rank / SYNTH_GROUP);
}

static bool write_out(const struct out *o, const char *path)
{
	const struct trace_head *h = &o->head;
	FILE *out = fopen(path, "wb");
	bool good;

	if (!out)
		return false;
	good = fwrite(h, sizeof(*h), 1, out) == 1 &&
	       fwrite(o->comm, sizeof(*o->comm), h->comm_count, out) == h->comm_count &&
	       fwrite(o->call, sizeof(*o->call), h->call_count, out) == h->call_count &&
	       fwrite(o->peer, sizeof(*o->peer), h->peer_count, out) == h->peer_count &&
	       fwrite(o->event, sizeof(*o->event), h->count, out) == h->count;
	return fclose(out) == 0 && good;
}

bool synth_write(const struct synth *s, int32_t rank, const char *folder)
{
	struct out *o;
	char path[512];
	bool good;

	if (s->fault == SYNTH_DEAD && is_bad(s, rank))
		return true;
	o = calloc(1, sizeof(*o));
	if (o)
		o->event = calloc((size_t)s->calls * (size_t)s->messages * 2 + 1,
				  sizeof(*o->event));
	if (!o || !o->event) {
		free(o);
		errno = ENOMEM;
		return false;
	}
	o->s = s;
	o->rank = rank;
	for (int call = 0; call < s->calls; call++)
		put_done(o, call);
	put_last(o);
	put_peers(o);
	put_comms(o);
	put_head(o);
	snprintf(path, sizeof(path), "%s/rank-%d.trace", folder, rank);
	good = write_out(o, path);
	free(o->event);
	free(o);
	return good;
}
