/* SPDX-License-Identifier: BSD-2-Clause */
/* What is posted next, on which lane; completions of lanes. Rules A1 to A4. */
#include "config.h"

#include "prov/dqplb/tx_quick.h"

#include <errno.h>
#include <string.h>

#define RECORDS_MAX	  4096u
#define SEGMENT_MAX	  (1u << 30)
#define LANE_SEGMENTS_MAX 4096u

#define COOKIE_PLAIN (UINT64_C(1) << 63)

/* Behind the struct: numbered slots, plain slots, a ring of bits. */
static size_t tx_layout(const struct dqplb_tx_config *c, size_t at[3])
{
	at[0] = (sizeof(struct dqplb_tx) + 15) & ~(size_t)15;
	at[1] = at[0] + c->window * sizeof(struct tx_slot);
	at[2] = at[1] + (size_t)c->lanes * c->lane_segments * sizeof(struct tx_slot);
	return at[2] + c->window / 8;
}

size_t dqplb_tx_size(const struct dqplb_tx_config *config)
{
	size_t at[3];

	return tx_layout(config, at);
}

static bool config_valid(const struct dqplb_tx_config *c)
{
	return dqplb_window_valid(c->window) && c->records > 0 &&
	       c->records <= RECORDS_MAX && c->gen <= DQPLB_GEN_MASK &&
	       c->max_segment > 0 && c->max_segment <= SEGMENT_MAX && c->turn > 0 &&
	       c->turn <= c->window / 4 && c->lane_segments > 0 &&
	       c->lane_segments <= LANE_SEGMENTS_MAX && c->lane_bytes > 0 &&
	       c->link_bytes > 0 && c->lanes > 0 && c->lanes <= DQPLB_LANES_MAX;
}

static void lists_init(struct dqplb_tx *tx)
{
	list_init(&tx->turns[0]);
	list_init(&tx->turns[1]);
	list_init(&tx->stalled);
	list_init(&tx->records);
	list_init(&tx->voids);
	list_init(&tx->finished);
	list_init(&tx->started);
	list_init(&tx->posted);
	list_init(&tx->plains);
}

static void config_take(struct dqplb_tx *tx, const struct dqplb_tx_config *c)
{
	tx->mask = c->window - 1;
	tx->gen = c->gen;
	tx->una = tx->nxt = tx->tail = c->first;
	tx->max_segment = c->max_segment;
	tx->turn = c->turn;
	tx->records_max = c->records;
	tx->lane_segments = c->lane_segments;
	tx->lane_bytes = c->lane_bytes;
	tx->link_bytes = c->link_bytes;
	tx->small = c->small;
	tx->home_rail = c->home_rail;
	tx->lanes = c->lanes;
}

int dqplb_tx_open(const struct dqplb_tx_config *config, struct dqplb_tx **out)
{
	struct dqplb_tx *tx;
	size_t at[3], size;

	if (!config_valid(config))
		return -EINVAL;
	size = tx_layout(config, at);
	tx = calloc(1, size);
	if (!tx)
		return -ENOMEM;
	config_take(tx, config);
	lists_init(tx);
	tx->slot = (void *)((char *)tx + at[0]);
	tx->plain = (void *)((char *)tx + at[1]);
	tx->acked = (struct dqplb_bits){(void *)((char *)tx + at[2]), tx->mask};
	tx->plain_count = config->lanes * config->lane_segments;
	for (uint32_t i = 0; i < tx->plain_count; i++)
		tx->plain[i].piece = i + 1 < tx->plain_count ? i + 1 : TX_NONE;
	*out = tx;
	return 0;
}

void dqplb_tx_close(struct dqplb_tx *tx)
{
	free(tx);
}

int dqplb_tx_start(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	bool numbered = x->kind == DQPLB_NUMBERED;

	if (x->kind >= DQPLB_KINDS || x->len > DQPLB_LEN_MAX ||
	    (!numbered && (x->ordered || x->bare)) || tx->failed)
		return -EINVAL;
	x->state = XFER_IDLE;
	x->error = 0;
	x->next = x->in_flight = x->lost = x->unacked = x->runs = 0;
	x->lanes = 0;
	x->turn = tx->turn;
	x->pieces = 1;
	if (x->len > tx->max_segment) {
		uint64_t pieces = (x->len + tx->max_segment - 1) / tx->max_segment;

		if (pieces >= SLOT_RECORD)
			return -EINVAL;
		x->pieces = (uint32_t)pieces;
	}
	x->fast = x->bare && x->pieces == 1;
	list_init(&x->where);
	if (numbered && x->ordered && !list_empty(&tx->started)) {
		list_push_back(&tx->started, &x->order);
		xfer_move(tx, x, XFER_HELD);
		return 0;
	}
	list_push_back(numbered ? &tx->started : &tx->plains, &x->order);
	xfer_move(tx, x, XFER_TURN);
	return 0;
}

/* The segment of slot s goes to a lane of the mask. */
static inline void segment_post(struct dqplb_tx *tx, struct tx_slot *s, uint64_t mask,
				struct dqplb_post *post)
{
	struct dqplb_xfer *x = s->xfer;
	uint32_t len = xfer_piece_len(tx, x, s->piece);
	uint32_t lane = tx_lane_choose(tx, mask, len);
	struct tx_lane *l = &tx->lane[lane];

	s->lane = (uint8_t)lane;
	slot_move(s, SLOT_POSTED);
	x->in_flight++;
	l->segments++;
	l->bytes += len;
	tx->bytes += len;
	if (l->segments >= l->limit || l->bytes >= tx->lane_bytes)
		tx->ready &= ~(UINT64_C(1) << lane);
	tx->stats.segments++;
	post->lane = (uint8_t)lane;
	post->len = len;
	post->offset = (uint64_t)s->piece * tx->max_segment;
	post->xfer = x;
}

static void numbered_post(struct dqplb_tx *tx, uint32_t number, uint64_t mask,
			  struct dqplb_post *post)
{
	struct tx_slot *s = tx_slot(tx, number);
	struct tx_queue *q;

	segment_post(tx, s, mask, post);
	q = &tx->queue[tx->lane[s->lane].queue];
	if (++q->used == q->granted)
		tx->credit &= ~q->lanes;
	post->kind = DQPLB_POST_WRITE_IMM;
	post->imm = dqplb_imm_make(number, tx->gen,
				   !s->xfer->fast     ? 0
				   : s->xfer->ordered ? DQPLB_IMM_FAST | DQPLB_IMM_ORDERED
						      : DQPLB_IMM_FAST);
	post->cookie = (uint64_t)s->lane << 32 | number;
}

static inline uint64_t plain_cookie(const struct tx_slot *s, uint32_t index)
{
	return COOKIE_PLAIN | (uint64_t)s->use << 40 | (uint64_t)s->lane << 32 | index;
}

static inline __attribute__((always_inline)) void plain_post(struct dqplb_tx *tx,
							     uint32_t index,
							     uint64_t mask,
							     struct dqplb_post *post)
{
	struct tx_slot *s = &tx->plain[index];

	segment_post(tx, s, mask, post);
	post->kind = s->xfer->kind == DQPLB_READ ? DQPLB_POST_READ : DQPLB_POST_WRITE;
	post->cookie = plain_cookie(s, index);
}

uint64_t dqplb_tx_quick_keep(struct dqplb_tx *tx, struct dqplb_xfer *x, uint32_t lane)
{
	uint32_t index = tx->plain_free;
	struct tx_slot *s;

	if (index == TX_NONE)
		abort(); /* there was a place on the lane */
	x->kind = DQPLB_WRITE;
	x->ordered = x->bare = x->fast = false;
	x->error = 0;
	x->pieces = x->next = x->in_flight = 1;
	x->turn = tx->turn;
	x->lost = x->unacked = x->runs = 0;
	x->lanes = 0;
	xfer_begin_posted(tx, x);
	s = &tx->plain[index];
	tx->plain_free = s->piece;
	s->xfer = x;
	s->piece = 0;
	s->lane = (uint8_t)lane;
	s->use++;
	slot_move(s, SLOT_POSTED);
	tx->lane[lane].bytes += x->len;
	tx->bytes += x->len;
	return plain_cookie(s, index);
}

/* Whether the next number goes on with the transfer's last run. */
static bool run_goes_on(const struct dqplb_tx *tx, const struct dqplb_xfer *x)
{
	const struct dqplb_run *last;

	if (x->runs == 0)
		return false;
	last = &x->run[x->runs - 1];
	return last->first + last->count == tx->nxt;
}

/* Room for the next number. False: there is none until more is acknowledged. */
static bool run_room(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	if (x->runs < DQPLB_RUNS_MAX || run_goes_on(tx, x))
		return true;
	xfer_runs_forget(tx, x);
	return x->runs < DQPLB_RUNS_MAX;
}

/* The next number becomes the transfer's. */
static struct tx_slot *number_take(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	struct tx_slot *s = tx_slot(tx, tx->nxt);

	if (run_goes_on(tx, x))
		x->run[x->runs - 1].count++;
	else
		x->run[x->runs++] = (struct dqplb_run){tx->nxt, 1};
	s->xfer = x;
	x->unacked++;
	tx->nxt++;
	tx->stats.numbers++;
	return s;
}

static bool window_open(const struct dqplb_tx *tx)
{
	return tx->nxt - tx->tail <= tx->mask;
}

/* A segment of it was posted: it keeps its turn, or the next one has it. */
static void turn_use(struct dqplb_tx *tx, struct dqplb_xfer *x)
{
	if (++x->next == x->pieces) {
		if (xfer_numbered(x) && !x->fast) {
			xfer_move(tx, x, XFER_RECORD);
		} else {
			xfer_move(tx, x, XFER_POSTED);
			if (x->fast)
				xfer_numbers_end(tx, x);
		}
	} else if (--x->turn == 0) {
		x->turn = tx->turn;
		list_unlink(&x->where);
		list_push_back(&tx->turns[xfer_numbered(x)], &x->where);
	}
}

static bool turn_numbered(struct dqplb_tx *tx, struct dqplb_post *post)
{
	uint64_t mask = tx_lanes_open(tx, true);

	if (mask == 0 || !window_open(tx))
		return false;
	while (!list_empty(&tx->turns[1])) {
		struct dqplb_xfer *x =
			container_of(tx->turns[1].next, struct dqplb_xfer, where);
		uint32_t number = tx->nxt;
		struct tx_slot *s;

		if (!run_room(tx, x)) {
			xfer_move(tx, x, XFER_STALLED);
			continue;
		}
		s = number_take(tx, x);
		s->piece = x->next;
		if (x->fast)
			tx->stats.fast++;
		post->again = false;
		numbered_post(tx, number, mask, post);
		turn_use(tx, x);
		return true;
	}
	return false;
}

static bool turn_plain(struct dqplb_tx *tx, struct dqplb_post *post)
{
	uint64_t mask = tx_lanes_open(tx, false);
	uint32_t index = tx->plain_free;
	struct dqplb_xfer *x;
	struct tx_slot *s;

	if (mask == 0 || list_empty(&tx->turns[0]) || index == TX_NONE)
		return false;
	x = container_of(tx->turns[0].next, struct dqplb_xfer, where);
	s = &tx->plain[index];
	tx->plain_free = s->piece;
	s->xfer = x;
	s->piece = x->next;
	s->use++;
	post->again = false;
	plain_post(tx, index, mask, post);
	turn_use(tx, x);
	return true;
}

/* What a lane lost goes first: others may wait for it. */
static bool again_numbered(struct dqplb_tx *tx, struct dqplb_post *post)
{
	uint64_t mask = tx_lanes_open(tx, true);

	if (mask == 0)
		return false;
	while (tx_slot(tx, tx->lost_at)->state != SLOT_LOST)
		tx->lost_at++;
	tx->lost--;
	tx_slot(tx, tx->lost_at)->xfer->lost--;
	post->again = true;
	tx->stats.again++;
	numbered_post(tx, tx->lost_at, mask, post);
	return true;
}

static bool again_plain(struct dqplb_tx *tx, struct dqplb_post *post)
{
	uint64_t mask = tx_lanes_open(tx, false);

	if (mask == 0)
		return false;
	while (tx->plain[tx->plain_lost_at].state != SLOT_LOST)
		tx->plain_lost_at++;
	tx->plain_lost--;
	tx->plain[tx->plain_lost_at].xfer->lost--;
	post->again = true;
	tx->stats.again++;
	plain_post(tx, tx->plain_lost_at, mask, post);
	return true;
}

/* The record of the first that waits for it. */
static bool record_next(struct dqplb_tx *tx, struct dqplb_post *post, struct dqplb_msg *m)
{
	struct dqplb_xfer *x = container_of(tx->records.next, struct dqplb_xfer, where);
	struct tx_slot *s = tx_slot(tx, tx->nxt);

	if (!window_open(tx) || tx->records_out == tx->records_max)
		return false;
	xfer_runs_forget(tx, x);
	m->kind = DQPLB_MSG_RECORD;
	m->gen = (uint8_t)tx->gen;
	m->flags = x->ordered ? DQPLB_MSG_F_ORDERED : 0;
	m->number = tx->nxt & DQPLB_SEQ_MASK;
	m->data = x->data;
	m->len = x->len;
	m->op = x->op;
	m->runs = x->runs;
	for (uint32_t i = 0; i < x->runs; i++)
		m->run[i] = (struct dqplb_run){x->run[i].first & DQPLB_SEQ_MASK,
					       x->run[i].count};
	s->xfer = x;
	s->piece = SLOT_RECORD;
	s->lane = SLOT_NO_LANE;
	slot_move(s, SLOT_SENT);
	x->unacked++;
	tx->nxt++;
	tx->records_out++;
	tx->stats.numbers++;
	tx->stats.records++;
	post->kind = DQPLB_POST_MSG;
	post->xfer = x;
	xfer_move(tx, x, XFER_POSTED);
	xfer_numbers_end(tx, x);
	return true;
}

bool dqplb_tx_next(struct dqplb_tx *tx, struct dqplb_post *post, struct dqplb_msg *msg)
{
	if (msg && !list_empty(&tx->voids) && xfer_void_next(tx, post, msg))
		return true;
	if (tx->lost && again_numbered(tx, post))
		return true;
	if (tx->plain_lost && again_plain(tx, post))
		return true;
	if (msg && !list_empty(&tx->records) && record_next(tx, post, msg))
		return true;
	/* By turns, where both can. */
	tx->plain_next = !tx->plain_next;
	if (tx->plain_next)
		return turn_plain(tx, post) || turn_numbered(tx, post);
	return turn_numbered(tx, post) || turn_plain(tx, post);
}

/* A segment is not in flight on its lane any more. */
static inline void segment_over(struct dqplb_tx *tx, struct tx_slot *s)
{
	uint32_t len = xfer_piece_len(tx, s->xfer, s->piece);
	struct tx_lane *l = &tx->lane[s->lane];

	s->xfer->in_flight--;
	l->segments--;
	l->bytes -= len;
	tx->bytes -= len;
	tx_lane_refill(tx, l, s->lane);
}

/* The slot that a cookie is about, in flight on a lane that can still say so. */
static inline struct tx_slot *cookie_slot(struct dqplb_tx *tx, uint64_t cookie)
{
	uint32_t index = (uint32_t)cookie, lane = cookie >> 32 & 0xff;
	struct tx_slot *s;

	if (cookie & COOKIE_PLAIN) {
		if (index >= tx->plain_count)
			return NULL;
		s = &tx->plain[index];
		if (s->use != (cookie >> 40 & 0xffff))
			return NULL;
	} else {
		if (index - tx->tail >= tx->nxt - tx->tail)
			return NULL;
		s = tx_slot(tx, index);
	}
	if (s->state != SLOT_POSTED || s->lane != lane)
		return NULL;
	lane = tx->lane[lane].state;
	return lane == TX_LANE_UP || lane == TX_LANE_DOWN || lane == TX_LANE_REPORTED
		       ? s
		       : NULL;
}

/* The lane said what became of the segment. */
static void segment_answered(struct dqplb_tx *tx, struct tx_slot *s, uint64_t cookie)
{
	struct dqplb_xfer *x = s->xfer;

	x->lanes |= UINT64_C(1) << s->lane;
	segment_over(tx, s);
	if (cookie & COOKIE_PLAIN) {
		plain_free(tx, s);
	} else if (bits_test(&tx->acked, (uint32_t)cookie)) {
		slot_move(s, SLOT_FREE);
		tx_tail(tx);
	} else {
		slot_move(s, SLOT_SENT);
	}
	xfer_settle(tx, x);
}

int dqplb_tx_done(struct dqplb_tx *tx, uint64_t cookie)
{
	struct tx_slot *s = cookie_slot(tx, cookie);
	struct tx_lane *l;

	if (!s)
		return -EINVAL;
	l = &tx->lane[s->lane];
	l->passed = true;
	if (l->limit < tx->lane_segments)
		l->limit++;
	segment_answered(tx, s, cookie);
	return 0;
}

struct dqplb_xfer *dqplb_tx_done_take(struct dqplb_tx *tx, uint64_t cookie)
{
	struct tx_slot *s = cookie & COOKIE_PLAIN ? cookie_slot(tx, cookie) : NULL;
	struct dqplb_xfer *x = s ? s->xfer : NULL;
	struct tx_lane *l;

	if (!x || x->state != XFER_POSTED || x->in_flight > 1 || x->lost) {
		dqplb_tx_done(tx, cookie);
		return NULL;
	}
	l = &tx->lane[s->lane];
	l->passed = true;
	if (l->limit < tx->lane_segments)
		l->limit++;
	x->lanes |= UINT64_C(1) << s->lane;
	segment_over(tx, s);
	plain_free(tx, s);
	xfer_end_posted(tx, x);
	return x;
}

int dqplb_tx_fault(struct dqplb_tx *tx, uint64_t cookie, int error)
{
	struct tx_slot *s = cookie_slot(tx, cookie);

	if (!s || error >= 0)
		return -EINVAL;
	xfer_fail(tx, s->xfer, error);
	segment_answered(tx, s, cookie);
	return 0;
}

int dqplb_tx_cancel(struct dqplb_tx *tx, struct dqplb_xfer *x, int error)
{
	if (error >= 0 || x->state == XFER_IDLE)
		return -EINVAL;
	if (x->state != XFER_HELD && x->state != XFER_TURN && x->state != XFER_STALLED &&
	    x->state != XFER_RECORD)
		return -EALREADY;
	xfer_fail(tx, x, error);
	xfer_settle(tx, x);
	return 0;
}

struct dqplb_xfer *dqplb_tx_take(struct dqplb_tx *tx)
{
	struct dqplb_xfer *x;

	if (list_empty(&tx->finished))
		return NULL;
	x = container_of(tx->finished.next, struct dqplb_xfer, where);
	xfer_move(tx, x, XFER_IDLE);
	return x;
}

bool dqplb_tx_waits(const struct dqplb_tx *tx)
{
	return tx_waits(tx);
}

bool dqplb_tx_idle(const struct dqplb_tx *tx)
{
	return list_empty(&tx->started) && list_empty(&tx->posted) &&
	       list_empty(&tx->plains);
}

const struct dqplb_tx_stats *dqplb_tx_stats(const struct dqplb_tx *tx)
{
	return &tx->stats;
}
