/* SPDX-License-Identifier: BSD-2-Clause */
/* See dynamic_case.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/tests/dynamic_case.h"

uint32_t dynamic_draw(uint32_t *state, uint32_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

uint32_t dynamic_mix(uint32_t a, uint32_t b, uint32_t c)
{
	uint32_t x = a * 0x9e3779b1u + b * 0x85ebca6bu + c * 0xc2b2ae35u + 1;

	x = (x ^ x >> 15) * 0x2c1b3c6du;
	x = (x ^ x >> 12) * 0x297a2d39u;
	return x ^ x >> 15;
}

/* Some of nothing, some of the most. */
uint64_t dynamic_blocks(const struct dynamic_shape *s, int32_t from, int32_t to)
{
	const uint32_t x = dynamic_mix(s->salt, (uint32_t)from, (uint32_t)to);

	return x % 5 == 0 ? 0 : x % 5 == 1 ? s->max_count : x % (s->max_count + 1);
}

/* Which block of its source a rank sends as its k-th to another. */
static uint64_t source_of(const struct dynamic_shape *s, int32_t from, int32_t to,
			  uint64_t k)
{
	uint64_t before = 0;

	for (int32_t i = 0; i < to; i++)
		before += dynamic_blocks(s, from, i);
	switch (s->sends) {
	case BY_PLACE: /* backwards, and overlapping */
		return (uint64_t)(s->size - 1 - to) * (s->max_count / 2) + k;
	case BY_LIST: /* with runs of neighbours in it */
		return (dynamic_mix(s->salt, (uint32_t)(before + k) / 3, 7) +
			(before + k) % 3) %
		       s->src_blocks;
	default:
		return before + k;
	}
}

/* Places of a list are all blocks, in an order that is a rank's own. */
static uint64_t place_of(const struct dynamic_shape *s, int32_t rank, uint64_t i)
{
	return (i * 7 + (uint64_t)rank) % s->dst_blocks;
}

static uint64_t target_of(const struct dynamic_shape *s, int32_t from, int32_t to,
			  uint64_t k)
{
	uint64_t before = 0;

	if (s->takes == TO_LIST)
		return place_of(s, to, (uint64_t)from * s->max_count + k);
	if (s->takes == WITH_ROOM)
		return (uint64_t)from * s->max_count + k;
	for (int32_t i = 0; i < from; i++)
		before += dynamic_blocks(s, i, to);
	return before + k;
}

static uint8_t byte_of(const struct dynamic_shape *s, int32_t rank, uint64_t at)
{
	return (uint8_t)dynamic_mix(s->salt, (uint32_t)rank + 1, (uint32_t)at);
}

void dynamic_shape_draw(struct dynamic_shape *s, int32_t size, uint32_t *state)
{
	static const enum weft_type types[] = {WEFT_UINT8, WEFT_BF16, WEFT_FP32,
					       WEFT_FP64};
	static const uint64_t blocks[] = {1, 1, 3, 64, 700};

	s->size = size;
	s->sends = (enum sends)dynamic_draw(state, SENDS);
	s->takes = (enum takes)dynamic_draw(state, TAKES);
	s->type = types[dynamic_draw(state, 4)];
	s->block = blocks[dynamic_draw(state, 5)];
	s->max_count =
		dynamic_draw(state, 4) ? dynamic_draw(state, 50) : 20000 / s->block;
	s->salt = dynamic_draw(state, 1u << 30);
	s->src_blocks = (uint64_t)size * s->max_count + 1 + dynamic_draw(state, 3);
	/* Without 7 as a divisor, so that places differ. */
	s->dst_blocks = (uint64_t)size * s->max_count + 1;
	while (s->dst_blocks % 7 == 0)
		s->dst_blocks++;
}

/* ---- its buffers --------------------------------------------------------------------
 */

void dynamic_job_close(struct dynamic_job *j)
{
	free(j->src);
	free(j->dst);
	free(j->send_blocks);
	free(j->recv_blocks);
}

void dynamic_job_fill(struct dynamic_job *j, int32_t rank)
{
	const struct dynamic_shape *s = j->shape;
	uint64_t n = 0;

	for (int32_t i = 0; i < s->size; i++) {
		j->counts[i] = dynamic_blocks(s, rank, i);
		j->at[i] = (uint64_t)(s->size - 1 - i) * (s->max_count / 2);
		for (uint64_t k = 0; k < j->counts[i]; k++)
			j->send_blocks[n++] = source_of(s, rank, i, k);
	}
	for (uint64_t i = 0; i < (uint64_t)s->size * s->max_count; i++)
		j->recv_blocks[i] = place_of(s, rank, i);
	for (uint64_t i = 0; i < s->src_blocks * j->unit; i++)
		j->src[i] = byte_of(s, rank, i);
	memset(j->dst, DYNAMIC_FILL, s->dst_blocks * j->unit);
	memset(j->got, 0xff, sizeof(j->got));
}

bool dynamic_job_open(struct dynamic_job *j, const struct dynamic_shape *s, int32_t rank)
{
	const uint64_t all = (uint64_t)s->size * s->max_count + 1;

	memset(j, 0, sizeof(*j));
	j->shape = s;
	j->unit = s->block * weft_type_size(s->type);
	j->src = malloc(s->src_blocks * j->unit);
	j->dst = malloc(s->dst_blocks * j->unit);
	j->send_blocks = malloc(all * sizeof(uint64_t));
	j->recv_blocks = malloc(all * sizeof(uint64_t));
	if (!j->src || !j->dst || !j->send_blocks || !j->recv_blocks) {
		dynamic_job_close(j);
		return false;
	}
	j->send = (struct weft_counts){.counts = j->counts};
	if (s->sends == BY_PLACE)
		j->send.displacements = j->at;
	j->dynamic = (struct weft_dynamic)WEFT_DYNAMIC_INIT;
	j->dynamic.max_count = s->max_count;
	j->dynamic.block = s->block;
	j->dynamic.recv_counts = j->got;
	if (s->sends == BY_LIST)
		j->dynamic.send_blocks = j->send_blocks;
	if (s->takes == TO_LIST)
		j->dynamic.recv_blocks = j->recv_blocks;
	if (s->takes == PACKED)
		j->dynamic.flags = WEFT_DYNAMIC_PACKED;
	dynamic_job_fill(j, rank);
	return true;
}

enum weft_result dynamic_job_start(const struct dynamic_job *j, struct weft_comm *comm,
				   struct weft_req **req)
{
	const struct dynamic_shape *s = j->shape;

	return weft_alltoallv_dynamic_start(comm, j->src, s->src_blocks * s->block,
					    &j->send, j->dst, s->dst_blocks * s->block,
					    &j->dynamic, s->type, j->opts, req);
}

enum weft_result dynamic_job_init(const struct dynamic_job *j, struct weft_comm *comm,
				  struct weft_req **req)
{
	const struct dynamic_shape *s = j->shape;

	return weft_alltoallv_dynamic_init(comm, j->src, s->src_blocks * s->block,
					   &j->send, j->dst, s->dst_blocks * s->block,
					   &j->dynamic, s->type, j->opts, req);
}

enum weft_result dynamic_job_call(const struct dynamic_job *j, struct weft_comm *comm)
{
	const struct dynamic_shape *s = j->shape;

	return weft_alltoallv_dynamic(comm, j->src, s->src_blocks * s->block, &j->send,
				      j->dst, s->dst_blocks * s->block, &j->dynamic,
				      s->type, j->opts);
}

int dynamic_job_check(struct ranks *r, const struct dynamic_job *j)
{
	const struct dynamic_shape *s = j->shape;
	const size_t len = s->dst_blocks * j->unit;
	uint8_t *want = malloc(len);
	int bad = RANKS_GOOD;

	if (!want)
		return ranks_say(r, "no memory");
	memset(want, DYNAMIC_FILL, len);
	for (int32_t from = 0; from < s->size && !bad; from++) {
		if (j->got[from] != dynamic_blocks(s, from, r->rank))
			bad = ranks_say(r, "count of rank %d is %llu", from,
					(unsigned long long)j->got[from]);
		for (uint64_t k = 0; k < dynamic_blocks(s, from, r->rank); k++) {
			const uint64_t at = source_of(s, from, r->rank, k) * j->unit;
			uint8_t *to = want + target_of(s, from, r->rank, k) * j->unit;

			for (size_t i = 0; i < j->unit; i++)
				to[i] = byte_of(s, from, at + i);
		}
	}
	for (size_t i = 0; i < len && !bad; i++) {
		if (want[i] != j->dst[i])
			bad = ranks_say(r,
					"byte %zu of %zu is %u, not %u (sends %d, takes "
					"%d, most %llu blocks of %zu bytes)",
					i, len, j->dst[i], want[i], s->sends, s->takes,
					(unsigned long long)s->max_count, j->unit);
	}
	free(want);
	return bad;
}
