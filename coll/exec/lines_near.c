/* SPDX-License-Identifier: BSD-2-Clause */
/* See lines_near.h. */
#include "config.h"

#include <string.h>

#include "coll/exec/lines_near.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/reduce.h"

/* What a rank gives and takes in a collective. */
enum lines_give { GIVE_NOTHING, GIVE_BLOCK, GIVE_BLOCKS };
enum lines_do { DO_NOTHING, DO_FOLD, DO_GATHER, DO_COPY };

struct lines_kind {
	uint8_t root_gives, others_give;
	uint8_t root_does, others_do; /* with what each rank has given; DO_NOTHING: waits
				       * for nobody, unless... */
	bool meets;		      /* ...all wait for all */
	bool own_block;		      /* of what is read only the reader's block counts */
};

static const struct lines_kind kinds[WEFT_COLL_COUNT] = {
	[WEFT_COLL_BARRIER] = {.meets = true},
	[WEFT_COLL_BROADCAST] = {.root_gives = GIVE_BLOCK, .others_do = DO_COPY},
	[WEFT_COLL_ALLGATHER] = {.root_gives = GIVE_BLOCK,
				 .others_give = GIVE_BLOCK,
				 .root_does = DO_GATHER,
				 .others_do = DO_GATHER},
	[WEFT_COLL_ALLREDUCE] = {.root_gives = GIVE_BLOCK,
				 .others_give = GIVE_BLOCK,
				 .root_does = DO_FOLD,
				 .others_do = DO_FOLD},
	[WEFT_COLL_REDUCE_SCATTER] = {.root_gives = GIVE_BLOCKS,
				      .others_give = GIVE_BLOCKS,
				      .root_does = DO_FOLD,
				      .others_do = DO_FOLD,
				      .own_block = true},
	[WEFT_COLL_ALLTOALL] = {.root_gives = GIVE_BLOCKS,
				.others_give = GIVE_BLOCKS,
				.root_does = DO_GATHER,
				.others_do = DO_GATHER,
				.own_block = true},
	[WEFT_COLL_REDUCE] = {.root_gives = GIVE_BLOCK,
			      .others_give = GIVE_BLOCK,
			      .root_does = DO_FOLD},
	[WEFT_COLL_GATHER] = {.root_gives = GIVE_BLOCK,
			      .others_give = GIVE_BLOCK,
			      .root_does = DO_GATHER},
	[WEFT_COLL_SCATTER] = {.root_gives = GIVE_BLOCKS,
			       .root_does = DO_COPY,
			       .others_do = DO_COPY,
			       .own_block = true},
};

/* What a rank gives at most. */
static size_t call_blocks(const struct exec *x, const struct exec_call *call)
{
	return kinds[call->id.coll].root_gives == GIVE_BLOCKS
		       ? (size_t)x->comms[call->comm].members
		       : 1;
}

static bool is_root(const struct exec_req *req)
{
	return req->line.el->lines.self == req->call.id.root;
}

static const struct lines_kind *kind_of(const struct exec_req *req)
{
	return &kinds[req->call.id.coll];
}

/* Bytes of each block that go in a turn. */
static size_t near_piece(const struct req_line *line)
{
	return LINES_BYTES / line->blocks / LINES_APART * LINES_APART;
}

/* The next piece of what is given. */
static void near_aim(struct exec_req *req)
{
	const struct lines_kind *kind = kind_of(req);
	const uint8_t does = is_root(req) ? kind->root_does : kind->others_do;
	struct req_line *line = &req->line;

	line->does = does;
	line->next = 0;
	line->piece = line->block - line->at;
	if (line->piece > near_piece(line))
		line->piece = near_piece(line);
	/* As long as the longest that anybody gives: it says where the data lies. */
	line->bytes = line->piece * line->blocks;
	line->first = does == DO_COPY ? req->call.id.root : 0;
	line->end = does == DO_COPY ? 1 : kind->meets || does ? line->el->lines.size : 0;
	line->all = does != DO_COPY && line->end;
}

void near_begin(struct exec_req *req)
{
	struct req_line *line = &req->line;

	line->at = 0;
	line->block = req->call.id.count * req->elem_size;
	line->blocks = call_blocks(req->x, &req->call);
	line->turns = 1;
	if (line->block > near_piece(line))
		line->turns = (uint32_t)((line->block - 1) / near_piece(line)) + 1;
	near_aim(req);
}

void near_next(struct exec_req *req)
{
	req->line.at += req->line.piece;
	near_aim(req);
}

/* Its own block is of no use to others, and is taken where it lies. Not what is added up:
 * in place the sum may come over it before its turn. */
static bool near_keeps(const struct exec_req *req)
{
	return kind_of(req)->own_block && kind_of(req)->others_do != DO_FOLD;
}

/* What `data`, of the rank that is next, is for. */
static void lines_use(struct exec_req *req, const char *data)
{
	struct req_line *line = &req->line;
	const struct exec_call *call = &req->call;
	const size_t piece = line->piece;
	const uint64_t count = line->turns == 1 ? call->id.count : piece / req->elem_size;
	char *dst = req->buf[PLAN_DST] + line->at;

	if (near_keeps(req) && lines_rank(req, line->next) == line->el->lines.self) {
		data = (const char *)lines_source(req) + line->at +
		       (size_t)line->el->lines.self * line->block;
		dst += line->does == DO_GATHER ? (size_t)line->next * line->block : 0;
		if (dst != data)
			memcpy(dst, data, piece);
		return;
	}
	if (kind_of(req)->own_block)
		data += (size_t)line->el->lines.self * piece;
	switch ((enum lines_do)line->does) {
	case DO_NOTHING:
		return;
	case DO_COPY:
		memcpy(dst, data, piece);
		return;
	case DO_GATHER:
		memcpy(dst + (size_t)line->next * line->block, data, piece);
		return;
	case DO_FOLD:
		break;
	}
	/* In the order of ranks, so that all come to the same bits. */
	if (line->next == 0) {
		line->lowest = data;
		return;
	}
	if (call->apply)
		call->apply(call->apply_arg, call->type, dst,
			    line->next == 1 ? line->lowest : dst, data, count);
	else
		reduce_apply(call->type, call->op, dst,
			     line->next == 1 ? line->lowest : dst, data, count);
	req->x->stats.reduced_bytes += piece;
	if (call->op == WEFT_AVG && line->next + 1 == line->end)
		reduce_scale(call->type, dst, dst, count, (uint64_t)line->el->lines.size);
}

size_t near_give(const struct exec_req *req, char *place)
{
	const struct req_line *line = &req->line;
	const char *src = (const char *)lines_source(req) + line->at;

	switch ((enum lines_give)(is_root(req) ? kind_of(req)->root_gives
					       : kind_of(req)->others_give)) {
	case GIVE_NOTHING:
		return 0;
	case GIVE_BLOCK:
		memcpy(place, src, line->piece);
		return line->piece;
	case GIVE_BLOCKS:
		break;
	}
	for (size_t i = 0; i < line->blocks; i++) {
		if (i != (size_t)line->el->lines.self || !near_keeps(req))
			memcpy(place + i * line->piece, src + i * line->block,
			       line->piece);
	}
	return line->bytes;
}

enum lines_look near_look(struct exec_req *req, struct lines_call *other)
{
	struct req_line *line = &req->line;

	while (line->next < line->end) {
		const void *data;
		const enum lines_look look =
			lines_look(&line->el->lines, lines_rank(req, line->next),
				   req->call.call, req->sig, line->bytes, &data, other);

		if (look != LINES_THERE)
			return look;
		lines_use(req, data);
		line->next++;
	}
	return LINES_THERE;
}
