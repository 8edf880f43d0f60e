/* SPDX-License-Identifier: BSD-2-Clause */
/* See dynamic.h. */
#include "config.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"
#include "coll/comm/dynamic.h"

/* What is wrong at a rank; the others refuse the call for it. */
enum dynamic_wrong {
	DYNAMIC_GOOD,
	DYNAMIC_COUNT,	/* a count is over the most */
	DYNAMIC_SOURCE, /* a part ends behind the source */
	DYNAMIC_BLOCK,	/* send_blocks names one that the source has not */
	DYNAMIC_PLACE,	/* recv_blocks one that the destination has not */
	DYNAMIC_WRONGS
};

/* What a rank tells another one. All ranks run on machines of one byte order. */
struct dynamic_card {
	uint64_t count; /* blocks that it sends to that one */
	uint64_t block; /* elements of one */
	uint32_t wrong; /* at the sender of the card: the same in all of its cards */
	int32_t about;	/* the rank that the wrong part is for, or is from */
	uint64_t value; /* what it gives */
};
static_assert(sizeof(struct dynamic_card) == 32, "no padding");

/* The blocks of one buffer, and where they are: for a late partition of a part and a gap
 * for each rank, where gaps are of no length. */
struct dynamic_side {
	uint64_t *disp, *first; /* 2 * size + 1 each */
	struct plan_piece *piece;
	size_t pieces, pieces_max;
	struct plan_map map;
};

struct comm_dynamic {
	struct exec_follow follow;
	struct exec_tables tables;
	struct weft_comm *comm;
	/* Its tables are where the host reads and writes them; those that lie on a device
	 * are memory of ours, and the caller's are `user`. */
	struct dynamic_spec spec;
	uint64_t *user[DYNAMIC_TABLES];
	struct comm_plan *first;    /* the plan of the cards; NULL: no call was taken */
	uint64_t sum;		    /* of the counts that were read late */
	struct dynamic_card *cards; /* ours for each rank, then one of each rank */
	struct dynamic_side send, recv;
	const uint64_t *disp[COMM_PARTS];
	const struct plan_map *map[COMM_PARTS];
	struct plan_binding bind;
};

/* ---- life ---------------------------------------------------------------------------
 */

static bool side_alloc(struct dynamic_side *side, size_t size)
{
	side->disp = calloc(2 * size + 1, sizeof(*side->disp));
	side->first = calloc(2 * size + 1, sizeof(*side->first));
	return side->disp && side->first;
}

static void side_free(struct dynamic_side *side)
{
	free(side->disp);
	free(side->first);
	free(side->piece);
}

struct comm_dynamic *dynamic_alloc(struct weft_comm *comm)
{
	const size_t size = (size_t)comm->size;
	struct comm_dynamic *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->comm = comm;
	d->cards = calloc(2 * size, sizeof(*d->cards));
	if (!d->cards || !side_alloc(&d->send, size) || !side_alloc(&d->recv, size)) {
		dynamic_release(d);
		return NULL;
	}
	return d;
}

void dynamic_release(struct comm_dynamic *d)
{
	if (!d)
		return;
	side_free(&d->send);
	side_free(&d->recv);
	free(d->cards);
	free(d);
}

static enum weft_result dynamic_next(struct exec_follow *follow, struct exec_call *call,
				     char *text, size_t len);
static enum tables_got dynamic_come(struct exec_tables *tables, uint32_t stage);
static void dynamic_leave(struct exec_tables *tables);

/* The cards travel as any all-to-all of so many bytes. */
LOCK_HELD(lock_context)
static enum weft_result dynamic_first(struct comm_dynamic *d)
{
	struct weft_comm *comm = d->comm;
	const struct plan_call shape = {
		.rank = comm->rank,
		.size = comm->size,
		.count = sizeof(struct dynamic_card),
		.elem_size = 1,
		.fetches = exec_fetches(comm->ctx->exec),
		.crowded = exec_is_crowded(comm->ctx->exec),
		.nodes = comm->nodes,
	};
	const char *coll = weft_coll_name(WEFT_COLL_ALLTOALL);

	return comm_plan_get(comm, WEFT_COLL_ALLTOALL, algo_choose(coll, &shape), &shape,
			     &d->first);
}

/* Entries that a table may have. */
static bool table_entries(const struct comm_dynamic *d, enum dynamic_table t,
			  uint64_t *entries)
{
	const bool list = t == DYNAMIC_SEND_BLOCKS || t == DYNAMIC_RECV_BLOCKS;

	return !__builtin_mul_overflow((uint64_t)d->comm->size,
				       list ? d->spec.max_count : 1, entries);
}

/* Memory of the host for the tables that a device has. */
LOCK_HELD(lock_context)
static enum weft_result dynamic_tables_open(struct comm_dynamic *d, bool may_pin)
{
	struct dynamic_spec *s = &d->spec;
	uint64_t entries, all = 0;
	enum weft_result result;
	void *memory;

	for (uint32_t t = 0; t < DYNAMIC_TABLES; t++) {
		if (!(s->on_device & 1u << t))
			continue;
		if (!table_entries(d, (enum dynamic_table)t, &entries) ||
		    __builtin_add_overflow(all, entries, &all) ||
		    all > (uint64_t)PTRDIFF_MAX / sizeof(uint64_t))
			return error_set(WEFT_ERR_NOMEM,
					 "no memory for lists of %llu blocks of %d ranks",
					 (unsigned long long)s->max_count, d->comm->size);
	}
	if (!s->on_device)
		return WEFT_SUCCESS;
	result = exec_tables_open(d->comm->ctx->exec, &d->tables, s->table_device,
				  all * sizeof(uint64_t), may_pin, &memory);
	if (result != WEFT_SUCCESS)
		return result;
	all = 0;
	for (uint32_t t = 0; t < DYNAMIC_TABLES; t++) {
		if (!(s->on_device & 1u << t))
			continue;
		s->table[t] = (uint64_t *)memory + all;
		table_entries(d, (enum dynamic_table)t, &entries);
		all += entries;
	}
	return WEFT_SUCCESS;
}

enum weft_result dynamic_take(struct comm_dynamic *d, const struct dynamic_spec *spec,
			      const struct plan *plan, bool may_pin)
{
	enum weft_result result = dynamic_first(d);

	if (result != WEFT_SUCCESS)
		return result;
	d->spec = *spec;
	memcpy(d->user, spec->table, sizeof(d->user));
	d->tables = (struct exec_tables){.come = dynamic_come, .leave = dynamic_leave};
	result = dynamic_tables_open(d, may_pin);
	if (result != WEFT_SUCCESS)
		return result; /* dynamic_put() is called all the same */
	d->follow = (struct exec_follow){.next = dynamic_next, .plan = plan};
	for (uint32_t p = 0; p < COMM_PARTS; p++) {
		const uint8_t table =
			p < plan->part_count ? plan->part[p].table : PLAN_TABLE_OTHER;
		struct dynamic_side *side = table == PLAN_TABLE_SEND   ? &d->send
					    : table == PLAN_TABLE_RECV ? &d->recv
								       : NULL;

		d->disp[p] = side ? side->disp : NULL;
		d->map[p] = side ? &side->map : NULL;
	}
	d->bind = (struct plan_binding){.disp = d->disp, .map = d->map};
	return WEFT_SUCCESS;
}

void dynamic_put(struct comm_dynamic *d)
{
	if (!d->first)
		return;
	exec_tables_close(d->comm->ctx->exec, &d->tables);
	comm_plan_put(d->comm, d->first);
	d->first = NULL;
}

bool dynamic_is_taken(const struct comm_dynamic *d)
{
	return d->first != NULL;
}

/* ---- the blocks of a buffer ---------------------------------------------------------
 */

/* Room for so many pieces, from the first part on. */
static bool side_begin(struct dynamic_side *side, size_t pieces)
{
	if (pieces > side->pieces_max) {
		free(side->piece);
		side->piece = calloc(pieces, sizeof(*side->piece));
		side->pieces_max = side->piece ? pieces : 0;
	}
	side->pieces = 0;
	side->map = (struct plan_map){.first = side->first, .piece = side->piece};
	return side->piece || !pieces;
}

/* Another piece of part `rank`, elements; what touches the one before becomes one. */
static void side_add(struct dynamic_side *side, int32_t rank, uint64_t at,
		     uint64_t length)
{
	struct plan_piece *last = &side->piece[side->pieces];

	side->disp[2 * rank + 1] += length;
	if (side->pieces > side->first[2 * rank] && last[-1].at + last[-1].length == at) {
		last[-1].length += length;
		return;
	}
	*last = (struct plan_piece){.at = at, .length = length};
	side->pieces++;
}

static void side_part_begin(struct dynamic_side *side, int32_t rank)
{
	side->first[2 * rank] = side->pieces;
	if (rank == 0)
		side->disp[0] = 0;
	side->disp[2 * rank + 1] = side->disp[2 * rank];
}

static void side_part_end(struct dynamic_side *side, int32_t rank)
{
	side->first[2 * rank + 1] = side->pieces;
	side->first[2 * rank + 2] = side->pieces;
	side->disp[2 * rank + 2] = side->disp[2 * rank + 1];
}

/* ---- before: what this rank sends ---------------------------------------------------
 */

static void dynamic_wrong(struct comm_dynamic *d, enum dynamic_wrong wrong, int32_t about,
			  uint64_t value)
{
	struct dynamic_card *own = &d->cards[0];

	if (own->wrong != DYNAMIC_GOOD)
		return;
	own->wrong = wrong;
	own->about = about;
	own->value = value;
}

/* The counts, each read once; the sum of those that are not too much. */
static uint64_t send_counts_read(struct comm_dynamic *d)
{
	const struct dynamic_spec *s = &d->spec;
	uint64_t sum = 0;

	for (int32_t i = 0; i < d->comm->size; i++) {
		const uint64_t count =
			__atomic_load_n(&s->table[DYNAMIC_COUNTS][i], __ATOMIC_RELAXED);

		d->cards[i] = (struct dynamic_card){.block = s->block};
		if (count > s->max_count) {
			dynamic_wrong(d, DYNAMIC_COUNT, i, count);
			continue;
		}
		d->cards[i].count = count;
		sum += count;
	}
	return sum;
}

/* A part in one piece, from block `at` on. */
static void send_part_whole(struct comm_dynamic *d, int32_t rank, uint64_t at,
			    uint64_t count)
{
	const struct dynamic_spec *s = &d->spec;
	const uint64_t blocks = s->src_len / s->block;

	if (at > blocks || count > blocks - at)
		dynamic_wrong(d, DYNAMIC_SOURCE, rank,
			      at > UINT64_MAX - count ? UINT64_MAX : at + count);
	else if (count)
		side_add(&d->send, rank, at * s->block, count * s->block);
}

static void send_part_list(struct comm_dynamic *d, int32_t rank, const uint64_t *list,
			   uint64_t count)
{
	const struct dynamic_spec *s = &d->spec;

	for (uint64_t k = 0; k < count; k++) {
		const uint64_t block = __atomic_load_n(&list[k], __ATOMIC_RELAXED);

		if (block >= s->src_len / s->block) {
			dynamic_wrong(d, DYNAMIC_BLOCK, rank, block);
			return;
		}
		side_add(&d->send, rank, block * s->block, s->block);
	}
}

static bool send_parts(struct comm_dynamic *d, uint64_t sum)
{
	const struct dynamic_spec *s = &d->spec;
	const uint64_t *list = s->table[DYNAMIC_SEND_BLOCKS];
	const uint64_t *at = s->table[DYNAMIC_DISPLACEMENTS];
	const int32_t size = d->comm->size;
	uint64_t before = 0;

	if (!side_begin(&d->send, list ? sum : (uint64_t)size))
		return false;
	for (int32_t i = 0; i < size; i++) {
		const uint64_t count = d->cards[i].count;

		side_part_begin(&d->send, i);
		if (list)
			send_part_list(d, i, list + before, count);
		else
			send_part_whole(d, i,
					at ? __atomic_load_n(&at[i], __ATOMIC_RELAXED)
					   : before,
					count);
		side_part_end(&d->send, i);
		before += count;
	}
	return true;
}

/* Places are looked at before anybody sends, whether or not they will be needed. */
static void recv_places_check(struct comm_dynamic *d)
{
	const struct dynamic_spec *s = &d->spec;
	const uint64_t *all = s->table[DYNAMIC_RECV_BLOCKS];

	for (int32_t r = 0; all && r < d->comm->size; r++) {
		const uint64_t *list = all + (uint64_t)r * s->max_count;

		for (uint64_t k = 0; k < s->max_count; k++) {
			if (list[k] == WEFT_BLOCK_NONE)
				break;
			if (list[k] >= s->dst_len / s->block) {
				dynamic_wrong(d, DYNAMIC_PLACE, r, list[k]);
				return;
			}
		}
	}
}

/* The counts were read; false: no memory. */
static bool send_plan(struct comm_dynamic *d, uint64_t sum)
{
	if (d->cards[0].wrong == DYNAMIC_GOOD && !send_parts(d, sum))
		return false;
	recv_places_check(d);
	for (int32_t i = 1; i < d->comm->size; i++) {
		d->cards[i].wrong = d->cards[0].wrong;
		d->cards[i].about = d->cards[0].about;
		d->cards[i].value = d->cards[0].value;
	}
	return true;
}

enum weft_result dynamic_begin(struct comm_dynamic *d, struct exec_call *call)
{
	const int32_t size = d->comm->size;

	if (!d->spec.late) {
		const uint64_t sum = send_counts_read(d);

		if (!send_plan(d, sum))
			return error_set(WEFT_ERR_NOMEM, "no memory for %llu blocks",
					 (unsigned long long)sum);
	}
	call->tables = d->spec.late ? &d->tables : NULL;
	call->plan = d->first->plan;
	call->src = d->cards;
	call->dst = d->cards + size;
	call->src_len = call->dst_len = (uint64_t)size * sizeof(struct dynamic_card);
	call->type = WEFT_UINT8;
	/* What it keeps for its mirrors is freed by way of the call. */
	call->device = (struct exec_device){.kept = d->spec.device.kept};
	call->bind = NULL;
	call->follow = &d->follow;
	return WEFT_SUCCESS;
}

static void table_bring(struct comm_dynamic *d, enum dynamic_table t, uint64_t entries)
{
	if (d->spec.on_device & 1u << t)
		exec_tables_bring(&d->tables, d->spec.table[t], d->user[t],
				  entries * sizeof(uint64_t));
}

/* The list of what is sent is as long as the counts say. */
static enum tables_got dynamic_come(struct exec_tables *tables, uint32_t stage)
{
	struct comm_dynamic *d = container_of(tables, struct comm_dynamic, tables);
	const uint64_t size = (uint64_t)d->comm->size;

	switch (stage) {
	case 0:
		table_bring(d, DYNAMIC_COUNTS, size);
		table_bring(d, DYNAMIC_DISPLACEMENTS, size);
		table_bring(d, DYNAMIC_RECV_BLOCKS, size * d->spec.max_count);
		return TABLES_MORE;
	case 1:
		d->sum = send_counts_read(d);
		if (d->cards[0].wrong == DYNAMIC_GOOD)
			table_bring(d, DYNAMIC_SEND_BLOCKS, d->sum);
		return TABLES_MORE;
	default:
		return send_plan(d, d->sum) ? TABLES_ALL : TABLES_NO_MEMORY;
	}
}

/* ---- between: what all ranks send ---------------------------------------------------
 */

static int32_t rank_name(const struct comm_dynamic *d, int32_t rank)
{
	return d->comm->ranks ? d->comm->ranks[rank] : rank;
}

/* All ranks print the same, from the same card. */
static void refused_print(const struct comm_dynamic *d, int32_t rank,
			  const struct dynamic_card *card, char *text, size_t len)
{
	const int32_t about = rank_name(d, card->about);
	const unsigned long long value = card->value;
	const char *unit = card->block > 1 ? "blocks" : weft_type_name(d->spec.type);

	rank = rank_name(d, rank);
	switch ((enum dynamic_wrong)card->wrong) {
	case DYNAMIC_COUNT:
		snprintf(text, len,
			 "alltoallv_dynamic: rank %d has %llu %s for rank %d, but "
			 "weft_dynamic.max_count is %llu: nothing was moved",
			 rank, value, unit, about, (unsigned long long)d->spec.max_count);
		break;
	case DYNAMIC_SOURCE:
		snprintf(text, len,
			 "alltoallv_dynamic: what rank %d has for rank %d ends at %llu "
			 "%s, which is behind the end of its source: nothing was moved",
			 rank, about, value, unit);
		break;
	case DYNAMIC_BLOCK:
		snprintf(text, len,
			 "alltoallv_dynamic: rank %d names block %llu for rank %d "
			 "(send_blocks), which its source does not have: nothing was "
			 "moved",
			 rank, value, about);
		break;
	default:
		snprintf(text, len,
			 "alltoallv_dynamic: rank %d names block %llu for what comes "
			 "from rank %d (recv_blocks), which its destination does not "
			 "have: nothing was moved",
			 rank, value, about);
		break;
	}
}

/* Cards come from peers. What the first wrong one makes of the call is the same
 * everywhere, since everybody has a card of everybody. */
static enum weft_result cards_check(struct comm_dynamic *d, char *text, size_t len)
{
	const struct dynamic_card *card = &d->cards[d->comm->size];
	const int32_t size = d->comm->size;

	d->follow.alike = true;
	for (int32_t r = 1; r < size; r++) {
		if (card[r].block == card[0].block)
			continue;
		snprintf(text, len,
			 "alltoallv_dynamic: rank %d has blocks of %llu elements, rank "
			 "%d of %llu (weft_dynamic.block); every rank must give the same",
			 rank_name(d, 0), (unsigned long long)card[0].block,
			 rank_name(d, r), (unsigned long long)card[r].block);
		return WEFT_ERR_MISMATCH;
	}
	for (int32_t r = 0; r < size; r++) {
		if (card[r].wrong == DYNAMIC_GOOD)
			continue;
		if (card[r].wrong >= DYNAMIC_WRONGS || card[r].about < 0 ||
		    card[r].about >= size)
			break;
		refused_print(d, r, &card[r], text, len);
		return WEFT_ERR_ARG;
	}
	d->follow.alike = false;
	for (int32_t r = 0; r < size; r++) {
		if (card[r].wrong == DYNAMIC_GOOD && card[r].count <= d->spec.max_count)
			continue;
		snprintf(text, len,
			 "alltoallv_dynamic: rank %d told rank %d counts that make no "
			 "sense",
			 rank_name(d, r), rank_name(d, d->comm->rank));
		return WEFT_ERR_INTERNAL;
	}
	return WEFT_SUCCESS;
}

/* Places of what comes from a rank, by the caller's list. The list was looked at before;
 * it is the caller's memory and may have changed since. */
static bool recv_part_list(struct comm_dynamic *d, int32_t rank, uint64_t count,
			   char *text, size_t len)
{
	const struct dynamic_spec *s = &d->spec;
	const uint64_t *list =
		s->table[DYNAMIC_RECV_BLOCKS] + (uint64_t)rank * s->max_count;

	for (uint64_t k = 0; k < count; k++) {
		const uint64_t block = __atomic_load_n(&list[k], __ATOMIC_RELAXED);

		if (block < s->dst_len / s->block) {
			side_add(&d->recv, rank, block * s->block, s->block);
			continue;
		}
		snprintf(text, len,
			 "alltoallv_dynamic: rank %d has %llu blocks for rank %d, which "
			 "has places for %llu of them (recv_blocks)",
			 rank_name(d, rank), (unsigned long long)count,
			 rank_name(d, d->comm->rank), (unsigned long long)k);
		return false;
	}
	return true;
}

static enum weft_result recv_parts(struct comm_dynamic *d, char *text, size_t len)
{
	const struct dynamic_card *card = &d->cards[d->comm->size];
	const struct dynamic_spec *s = &d->spec;
	const bool lists = s->table[DYNAMIC_RECV_BLOCKS];
	const int32_t size = d->comm->size;
	uint64_t sum = 0, before = 0;

	for (int32_t r = 0; r < size; r++)
		sum += card[r].count;
	if (!side_begin(&d->recv, lists ? sum : (uint64_t)size)) {
		snprintf(text, len, "no memory for %llu blocks", (unsigned long long)sum);
		return WEFT_ERR_NOMEM;
	}
	for (int32_t r = 0; r < size; r++) {
		const uint64_t count = card[r].count;
		const uint64_t at = s->packed ? before : (uint64_t)r * s->max_count;

		side_part_begin(&d->recv, r);
		if (lists && !recv_part_list(d, r, count, text, len))
			return WEFT_ERR_MISMATCH;
		if (!lists && count)
			side_add(&d->recv, r, at * s->block, count * s->block);
		side_part_end(&d->recv, r);
		before += count;
	}
	return WEFT_SUCCESS;
}

static enum weft_result dynamic_next(struct exec_follow *follow, struct exec_call *call,
				     char *text, size_t len)
{
	struct comm_dynamic *d = container_of(follow, struct comm_dynamic, follow);
	enum weft_result result = cards_check(d, text, len);

	if (result == WEFT_SUCCESS)
		result = recv_parts(d, text, len);
	if (result != WEFT_SUCCESS)
		return result;
	call->plan = follow->plan;
	call->bind = &d->bind;
	call->src = d->spec.src;
	call->dst = d->spec.dst;
	call->src_len = d->spec.src_len;
	call->dst_len = d->spec.dst_len;
	call->type = d->spec.type;
	call->device = d->spec.device;
	return WEFT_SUCCESS;
}

static void recv_counts_write(struct comm_dynamic *d)
{
	const int32_t size = d->comm->size;

	for (int32_t r = 0; r < size; r++)
		d->spec.table[DYNAMIC_RECV_COUNTS][r] = d->cards[size + r].count;
}

static void dynamic_leave(struct exec_tables *tables)
{
	struct comm_dynamic *d = container_of(tables, struct comm_dynamic, tables);

	recv_counts_write(d);
	if (d->spec.on_device & 1u << DYNAMIC_RECV_COUNTS)
		exec_tables_take(&d->tables, d->user[DYNAMIC_RECV_COUNTS],
				 d->spec.table[DYNAMIC_RECV_COUNTS],
				 (size_t)d->comm->size * sizeof(uint64_t));
}

void dynamic_finish(struct comm_dynamic *d)
{
	if (!d->spec.late)
		recv_counts_write(d);
}
