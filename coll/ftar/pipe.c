/* SPDX-License-Identifier: BSD-2-Clause */
/* See pipe.h. */
#include "config.h"

#include <string.h>

#include "coll/exec/reduce.h"
#include "coll/ftar/pipe.h"

/* How long a wait for a chunk goes on before it is looked whether the epoch is over. Each
 * wait begins with some milliseconds in which it does not sleep (coll/exec/engine.c):
 * with much shorter ones a member would never sleep, and take the processor from those
 * that it waits for. */
#define PIPE_LOOK_US 20000
/* A chunk of fewer bytes for each member goes by what is best for short calls. */
#define PIPE_RING_MIN 4096
#define PIPE_TALLY    PIPE_DEPTH /* the request for it */

enum { TALLY_CONTRIBUTES, TALLY_WORDS };

struct pipe {
	struct epoch *e;
	const struct pipe_call *call;
	size_t elem;
	uint64_t per_chunk; /* elements */
	uint64_t chunks;
	struct pipe_end *end;
};

static uint64_t chunk_count(const struct pipe *p, uint64_t k)
{
	const uint64_t left = p->call->count - k * p->per_chunk;

	return left < p->per_chunk ? left : p->per_chunk;
}

static char *chunk_at(const struct pipe *p, uint64_t k)
{
	return (char *)p->e->staging + k * p->per_chunk * p->elem;
}

/* Averages are sums until it is known how many contributed. */
static void chunk_copy(const struct epoch *e, const struct pipe_call *call,
		       const struct pipe_end *end, uint64_t at, uint64_t count, void *dst)
{
	const size_t elem = weft_type_size(call->type);
	const char *from = (const char *)e->staging + at * elem;
	char *to = (char *)dst + at * elem;

	if (call->op == WEFT_AVG && end->contributors > 1)
		reduce_scale(call->type, to, from, count, end->contributors);
	else
		memcpy(to, from, count * elem);
}

static enum weft_result chunk_start(struct pipe *p, uint64_t k)
{
	const struct pipe_call *call = p->call;
	const uint64_t count = chunk_count(p, k);
	struct weft_opts opts = WEFT_OPTS_INIT;
	char *at = chunk_at(p, k);

	if (call->src)
		memcpy(at, (const char *)call->src + k * p->per_chunk * p->elem,
		       count * p->elem);
	else
		memset(at, 0, count * p->elem);
	opts.timeout_us = call->timeout_us;
	if (p->e->size > 1 && count * p->elem >= PIPE_RING_MIN * (uint64_t)p->e->size)
		opts.algorithm = "ring";
	return weft_allreduce_start(p->e->comm, at, at, count, call->type,
				    call->op == WEFT_AVG ? WEFT_SUM : call->op, &opts,
				    &p->e->req[k % PIPE_DEPTH]);
}

static enum weft_result tally_start(struct pipe *p)
{
	struct weft_opts opts = WEFT_OPTS_INIT;
	struct epoch *e = p->e;

	opts.timeout_us = p->call->timeout_us;
	e->tally[0][TALLY_CONTRIBUTES] = p->call->src != NULL;
	return weft_allreduce_start(e->comm, e->tally[0], e->tally[1], TALLY_WORDS,
				    WEFT_UINT64, WEFT_SUM, &opts, &e->req[PIPE_TALLY]);
}

/* What a failure of a request, or of starting one, is for the step. */
static enum pipe_result failure(enum weft_result got, enum weft_result *result)
{
	switch (got) {
	case WEFT_ERR_ARG:
	case WEFT_ERR_UNSUPPORTED:
	case WEFT_ERR_NOMEM:
	case WEFT_ERR_MISMATCH:
	case WEFT_ERR_INTERNAL:
		*result = got;
		return PIPE_REFUSED;
	default:
		return PIPE_FAILED;
	}
}

/* Until the request has ended, which frees it. */
static enum pipe_result request_end(struct pipe *p, int i, enum weft_result *result)
{
	struct weft_req **req = &p->e->req[i];

	for (;;) {
		const enum weft_result got = weft_req_wait(*req, PIPE_LOOK_US);

		if (got == WEFT_SUCCESS) {
			*req = NULL;
			return PIPE_GOOD;
		}
		/* TIMEOUT of the wait, not of the call, says that the request goes on. */
		if (got == WEFT_ERR_TIMEOUT &&
		    strstr(weft_error_detail(), "the request goes on")) {
			if (p->call->stopped(p->call->arg))
				return PIPE_STOPPED;
			continue;
		}
		if (got != WEFT_ERR_BUSY)
			*req = NULL;
		return p->call->stopped(p->call->arg) ? PIPE_STOPPED
						      : failure(got, result);
	}
}

static enum pipe_result tally_end(struct pipe *p, enum weft_result *result)
{
	const enum pipe_result end = request_end(p, PIPE_TALLY, result);

	p->end->contributors = (uint32_t)p->e->tally[1][TALLY_CONTRIBUTES];
	return end;
}

static enum pipe_result chunk_end(struct pipe *p, uint64_t k, enum weft_result *result)
{
	const enum pipe_result end = request_end(p, (int)(k % PIPE_DEPTH), result);

	if (end == PIPE_GOOD && p->call->dst)
		chunk_copy(p->e, p->call, p->end, k * p->per_chunk, chunk_count(p, k),
			   p->call->dst);
	return end;
}

enum pipe_result pipe_run(struct epoch *e, const struct pipe_call *call,
			  struct pipe_end *end, enum weft_result *result)
{
	const size_t elem = weft_type_size(call->type);
	struct pipe p = {.e = e, .call = call, .elem = elem, .end = end};
	enum pipe_result got = PIPE_GOOD;
	enum weft_result started;

	p.per_chunk = call->chunk / elem;
	p.chunks = (call->count + p.per_chunk - 1) / p.per_chunk;
	started = epoch_staging(e, call->count * elem + !call->count);
	if (started == WEFT_SUCCESS)
		started = tally_start(&p);
	if (started != WEFT_SUCCESS)
		return failure(started, result);
	for (uint64_t k = 0; k < p.chunks + PIPE_DEPTH && got == PIPE_GOOD; k++) {
		if (k == PIPE_DEPTH)
			got = tally_end(&p, result);
		if (got == PIPE_GOOD && k >= PIPE_DEPTH)
			got = chunk_end(&p, k - PIPE_DEPTH, result);
		if (got != PIPE_GOOD || k >= p.chunks)
			continue;
		started = chunk_start(&p, k);
		if (started != WEFT_SUCCESS)
			got = call->stopped(call->arg) ? PIPE_STOPPED
						       : failure(started, result);
	}
	return got == PIPE_GOOD && !p.chunks ? tally_end(&p, result) : got;
}

void pipe_take(const struct epoch *e, const struct pipe_call *call,
	       const struct pipe_end *end, void *dst)
{
	chunk_copy(e, call, end, 0, call->count, dst);
}
