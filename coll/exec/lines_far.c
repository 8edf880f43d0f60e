/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See lines_far.h. What is added up is added up once: each rank folds its own part of the
 * vector, from all, in the order of ranks, and the parts are collected in a turn of their
 * own (reduce-scatter and all-gather, as Rabenseifner has it). In place a rank writes, in
 * the first turn, its own part only, which nobody else reads, and in the second what
 * another rank has finished, which was the only one to read it here.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "coll/exec/lines_far.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/reduce.h"

#define FAR_CHUNK (UINT64_C(128) * 1024) /* bytes folded at a time: they stay near */
#define FAR_SLICE (UINT64_C(256) * 1024) /* bytes until others get their turn */
#define FAR_TURNS 3
#define FAR_ALIGN 64 /* bytes: parts do not share a line */

enum far_gives { GIVES_NOTHING, GIVES_SOURCE, GIVES_PART };
enum far_does {
	FAR_PASS,     /* waits for nobody */
	FAR_SEE_ROOT, /* waits for the root */
	FAR_SEE_ALL,  /* waits for all */
	FAR_COPY,     /* reads the root's block */
	FAR_GATHER,   /* reads a block of each rank */
	FAR_FOLD,     /* adds up this rank's part, or its block, of all */
	FAR_PARTS,    /* reads the parts that the others have added up */
};

struct far_turn {
	uint8_t others_give, root_gives;
	uint8_t others_do, root_does;
};

struct far_kind {
	uint8_t turns;
	bool own_block; /* of what is read only the reader's block counts */
	struct far_turn turn[FAR_TURNS];
};

static const struct far_kind kinds[WEFT_COLL_COUNT] = {
	[WEFT_COLL_BROADCAST] = {2,
				 false,
				 {{GIVES_NOTHING, GIVES_SOURCE, FAR_COPY, FAR_PASS},
				  {GIVES_NOTHING, GIVES_NOTHING, FAR_PASS, FAR_SEE_ALL}}},
	[WEFT_COLL_ALLGATHER] = {2,
				 false,
				 {{GIVES_SOURCE, GIVES_SOURCE, FAR_GATHER, FAR_GATHER},
				  {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ALL,
				   FAR_SEE_ALL}}},
	[WEFT_COLL_ALLREDUCE] = {3,
				 false,
				 {{GIVES_SOURCE, GIVES_SOURCE, FAR_FOLD, FAR_FOLD},
				  {GIVES_PART, GIVES_PART, FAR_PARTS, FAR_PARTS},
				  {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ALL,
				   FAR_SEE_ALL}}},
	[WEFT_COLL_REDUCE_SCATTER] = {2,
				      true,
				      {{GIVES_SOURCE, GIVES_SOURCE, FAR_FOLD, FAR_FOLD},
				       {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ALL,
					FAR_SEE_ALL}}},
	[WEFT_COLL_ALLTOALL] = {2,
				true,
				{{GIVES_SOURCE, GIVES_SOURCE, FAR_GATHER, FAR_GATHER},
				 {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ALL,
				  FAR_SEE_ALL}}},
	[WEFT_COLL_REDUCE] = {3,
			      false,
			      {{GIVES_SOURCE, GIVES_SOURCE, FAR_FOLD, FAR_FOLD},
			       {GIVES_PART, GIVES_NOTHING, FAR_PASS, FAR_PARTS},
			       {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ROOT, FAR_PASS}}},
	[WEFT_COLL_GATHER] = {2,
			      false,
			      {{GIVES_SOURCE, GIVES_NOTHING, FAR_PASS, FAR_GATHER},
			       {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ROOT, FAR_PASS}}},
	[WEFT_COLL_SCATTER] = {2,
			       true,
			       {{GIVES_NOTHING, GIVES_SOURCE, FAR_COPY, FAR_COPY},
				{GIVES_NOTHING, GIVES_NOTHING, FAR_PASS, FAR_SEE_ALL}}},
};

/* A piece of what is moved or added up, in bytes. */
struct far_span {
	uint64_t from; /* behind what the other rank gives */
	uint64_t len;
	char *to;
};

/* Where there is one other rank the root reads as much when it adds up all by itself as
 * when it adds up half and reads the other half, and nobody waits for anybody's half. */
static const struct far_kind reduce_of_two = {
	2,
	false,
	{{GIVES_SOURCE, GIVES_NOTHING, FAR_PASS, FAR_FOLD},
	 {GIVES_NOTHING, GIVES_NOTHING, FAR_SEE_ROOT, FAR_PASS}}};

static const struct far_kind *kind_by(enum weft_coll coll, int32_t ranks)
{
	return coll == WEFT_COLL_REDUCE && ranks == 2 ? &reduce_of_two : &kinds[coll];
}

static const struct far_kind *kind_of(const struct exec_req *req)
{
	return kind_by((enum weft_coll)req->call.id.coll, req->line.el->lines.size);
}

uint32_t far_turns(enum weft_coll coll, int32_t ranks)
{
	return kind_by(coll, ranks)->turns;
}

static bool is_root(const struct exec_req *req)
{
	return req->line.el->lines.self == req->call.id.root;
}

/* ---- parts ---------------------------------------------------------------------------
 */

/* Bytes of a part, but for the last ones: of `count` elements divided among `size`. */
static uint64_t part_bytes(uint64_t count, uint64_t elem, int32_t size)
{
	const uint64_t bytes = (count / (uint64_t)size + 1) * elem;

	return (bytes + FAR_ALIGN - 1) / FAR_ALIGN * FAR_ALIGN;
}

static struct far_span part_of(const struct exec_req *req, int32_t rank)
{
	const uint64_t per =
		part_bytes(req->call.id.count, req->elem_size, req->line.el->lines.size);
	const uint64_t all = req->line.block;
	uint64_t begin = (uint64_t)rank * per, end = begin + per;

	begin = begin < all ? begin : all;
	end = end < all ? end : all;
	return (struct far_span){.from = begin, .len = end - begin};
}

/* Who has no place for its part of a reduce adds up in memory of ours. */
static bool part_is_apart(const struct exec_req *req)
{
	return req->call.id.coll == WEFT_COLL_REDUCE && !is_root(req);
}

size_t far_scratch(const struct exec *x, const struct exec_call *call)
{
	const size_t elem = weft_type_size(call->type);
	size_t bytes = 0;

	const int32_t ranks = x->comms[call->comm].members;
	const struct far_kind *kind = kind_by((enum weft_coll)call->id.coll, ranks);

	if (kind->turn[0].root_does == FAR_FOLD)
		bytes = 2 * FAR_CHUNK;
	if (kind->turn[1].others_give == GIVES_PART)
		bytes += part_bytes(call->id.count, elem, ranks);
	return bytes;
}

/* What this rank adds up: its part, or its block. */
static struct far_span fold_span(const struct exec_req *req)
{
	const int32_t self = req->line.el->lines.self;
	struct far_span span = part_of(req, self);

	if (kind_of(req)->own_block)
		return (struct far_span){.from = (uint64_t)self * req->line.block,
					 .len = req->line.block,
					 .to = req->buf[PLAN_DST]};
	if (kind_of(req) == &reduce_of_two)
		return (struct far_span){.len = req->line.block,
					 .to = req->buf[PLAN_DST]};
	span.to = part_is_apart(req) ? req->buf[PLAN_SCRATCH] + 2 * FAR_CHUNK
				     : req->buf[PLAN_DST] + span.from;
	return span;
}

/* What is read from a rank. */
static struct far_span copy_span(const struct exec_req *req, int32_t rank)
{
	const struct req_line *line = &req->line;
	struct far_span span = {.len = line->block, .to = req->buf[PLAN_DST]};

	if (line->does == FAR_PARTS) {
		span = part_of(req, rank);
		span.to = req->buf[PLAN_DST] + span.from;
		span.from = 0;
		return span;
	}
	if (kind_of(req)->own_block)
		span.from = (uint64_t)line->el->lines.self * line->block;
	if (line->does == FAR_GATHER)
		span.to += (uint64_t)rank * line->block;
	return span;
}

/* ---- a turn --------------------------------------------------------------------------
 */

static const struct far_turn *turn_of(const struct exec_req *req)
{
	return &kind_of(req)->turn[req->line.turn];
}

void far_aim(struct exec_req *req)
{
	struct req_line *line = &req->line;
	const struct far_turn *turn = turn_of(req);

	line->does = is_root(req) ? turn->root_does : turn->others_do;
	line->next = 0;
	line->at = 0;
	line->left = line->does == FAR_FOLD ? fold_span(req).len : 0;
	line->first = 0;
	line->all = false;
	switch ((enum far_does)line->does) {
	case FAR_PASS:
		line->end = 0;
		break;
	case FAR_SEE_ROOT:
	case FAR_COPY:
		line->first = req->call.id.root;
		line->end = 1;
		break;
	case FAR_SEE_ALL:
	case FAR_GATHER:
	case FAR_FOLD:
	case FAR_PARTS:
		/* Each begins with another one, so that not all read from one at once. */
		line->first = line->el->lines.self;
		line->end = line->el->lines.size;
		line->all = true;
		break;
	}
}

size_t far_give(const struct exec_req *req, void *place)
{
	const struct far_turn *turn = turn_of(req);
	uint64_t addr = 0;

	switch ((enum far_gives)(is_root(req) ? turn->root_gives : turn->others_give)) {
	case GIVES_NOTHING:
		return 0;
	case GIVES_SOURCE:
		addr = (uintptr_t)lines_source(req);
		break;
	case GIVES_PART:
		addr = (uintptr_t)fold_span(req).to;
		break;
	}
	memcpy(place, &addr, sizeof(addr));
	return sizeof(addr);
}

/* ---- reading -------------------------------------------------------------------------
 */

/* Whether what was read from a rank is what it gave: it has not taken it back. */
static bool still_stands(struct exec_req *req, int32_t rank)
{
	const void *data;
	struct lines_call other;

	atomic_thread_fence(memory_order_seq_cst);
	if (lines_look(&req->line.el->lines, rank, req->call.call, req->sig,
		       req->line.bytes, &data, &other) == LINES_THERE)
		return true;
	/* Its word of why is under way, or its deadline comes. */
	req->line.lost = rank;
	return false;
}

/* False: the request fails, or waits to hear why. */
static bool read_from(struct exec_req *req, int32_t rank, void *to, uint64_t from,
		      uint64_t len)
{
	struct exec *x = req->x;
	const int32_t peer = exec_comm_rank(&x->comms[req->call.comm], rank);
	const int rc =
		lines_mem_read(&x->lines, peer, to, req->line.addr[rank] + from, len);

	if (!rc)
		return true;
	if (rc == ESRCH || lines_mem_ended(&x->lines, peer))
		req_fail(req, WEFT_ERR_PEER, peer,
			 "rank %d is lost in %s: its process has ended", peer,
			 exec_req_what(req));
	else if (still_stands(req, rank))
		req_fail(req, WEFT_ERR_INTERNAL, peer,
			 "%s: %llu bytes that rank %d gives cannot be read where they "
			 "lie: %s; with WEFT_LINES=short they are sent",
			 exec_req_what(req), (unsigned long long)len, peer, strerror(rc));
	return false;
}

/* One rank's block or part, from where it goes on; false: nothing more can be done now.
 */
static bool copy_on(struct exec_req *req, int32_t rank, uint64_t *budget)
{
	struct req_line *line = &req->line;
	const struct far_span span = copy_span(req, rank);
	uint64_t len = span.len - line->at;

	if (rank == line->el->lines.self) {
		const char *own = (const char *)lines_source(req) + span.from;

		if (line->does != FAR_PARTS && own != span.to)
			memcpy(span.to, own, span.len);
		line->next++;
		return true;
	}
	if (!*budget)
		return false;
	if (len > *budget)
		len = *budget;
	if (len && !read_from(req, rank, span.to + line->at, span.from + line->at, len))
		return false;
	*budget -= len;
	line->at += len;
	if (line->at < span.len)
		return false;
	if (!still_stands(req, rank))
		return false;
	line->at = 0;
	line->next++;
	return true;
}

static void fold_apply(struct exec_req *req, char *to, const char *a, const char *b,
		       uint64_t bytes)
{
	const struct exec_call *call = &req->call;
	const uint64_t count = bytes / req->elem_size;

	if (call->apply)
		call->apply(call->apply_arg, call->type, to, a, b, count);
	else
		reduce_apply(call->type, call->op, to, a, b, count);
	req->x->stats.reduced_bytes += bytes;
}

/* `len` bytes of what this rank adds up, of all ranks in their order. */
static bool fold_chunk(struct exec_req *req, const struct far_span *span, uint64_t at,
		       uint64_t len)
{
	const struct lines *l = &req->line.el->lines;
	const char *own = (const char *)lines_source(req) + span->from + at;
	char *to = span->to + at, *spare[2];
	/* In place the sum must not come over what this rank gives before its turn. */
	const bool over = own == to;
	const char *sum = NULL;

	spare[0] = req->buf[PLAN_SCRATCH];
	spare[1] = spare[0] + FAR_CHUNK;
	for (int32_t i = 0; i < l->size; i++) {
		const char *data = own;
		char *out = over && i < l->self ? spare[0] : to;

		if (i != l->self) {
			char *place = !over && sum != to ? to
				      : sum != spare[0]	 ? spare[0]
							 : spare[1];

			if (!read_from(req, i, place, span->from + at, len))
				return false;
			data = place;
			req->x->stats.staged_bytes += len;
		}
		if (sum)
			fold_apply(req, out, sum, data, len);
		sum = sum ? out : data;
	}
	if (req->call.op == WEFT_AVG && !req->call.apply)
		reduce_scale(req->call.type, to, to, len / req->elem_size,
			     (uint64_t)l->size);
	return true;
}

/* All have come. */
static bool fold_on(struct exec_req *req, uint64_t budget)
{
	struct req_line *line = &req->line;
	const struct far_span span = fold_span(req);
	const uint64_t most = FAR_CHUNK / req->elem_size * req->elem_size;
	bool moved = false;

	while (line->left && budget) {
		const uint64_t len = line->left < most ? line->left : most;

		if (!fold_chunk(req, &span, span.len - line->left, len))
			return moved;
		moved = true;
		budget -= len < budget ? len : budget;
		/* The last chunk counts when all that went into the sum still stands. */
		for (int32_t i = 0; len == line->left && i < line->el->lines.size; i++) {
			if (i != line->el->lines.self && !still_stands(req, i))
				return moved;
		}
		line->left -= len;
	}
	return moved;
}

/* What the rank says that comes next; true: it is there. */
static bool far_hear(struct exec_req *req, int32_t rank)
{
	struct req_line *line = &req->line;
	const int32_t peer = exec_comm_rank(&req->x->comms[req->call.comm], rank);
	const void *data;
	struct lines_call other;

	switch (lines_look(&line->el->lines, rank, req->call.call, req->sig, line->bytes,
			   &data, &other)) {
	case LINES_NOT_YET:
		return false;
	case LINES_THERE:
		memcpy(&line->addr[rank], data, sizeof(line->addr[rank]));
		return true;
	case LINES_OTHER:
		accord_line(req, peer, other.call, other.sig);
		return false;
	case LINES_WRONG:
		req_fail(req, WEFT_ERR_INTERNAL, peer,
			 "%s: the lines of rank %d are at a turn that cannot be",
			 exec_req_what(req), peer);
		return false;
	}
	return false;
}

bool far_run(struct exec_req *req)
{
	struct req_line *line = &req->line;
	const bool copies = line->does == FAR_COPY || line->does == FAR_GATHER ||
			    line->does == FAR_PARTS;
	uint64_t budget = FAR_SLICE;
	int32_t begin = line->next;

	/* Its memory may be another's by now: what was read is good for nothing. */
	if (line->lost >= 0)
		return false;
	while (line->next < line->end) {
		const int32_t rank = lines_rank(req, line->next);

		if (line->at == 0 && !far_hear(req, rank))
			break;
		if (!copies)
			line->next++;
		else if (!copy_on(req, rank, &budget))
			break;
	}
	if (line->next < line->end || !line->left)
		return line->next > begin || budget < FAR_SLICE ||
		       req->state != EXEC_RUNNING || req->accord.on;
	fold_on(req, budget);
	return true;
}
