/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers that arrive, lanes that end, acknowledgements. Rules A5 to A8, C2, C3. */
#include "config.h"

#include "prov/dqplb/rx_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 4096u

/* Behind the struct: entries, claims, two rings of bits; each a multiple of 8 bytes. */
static size_t rx_layout(uint32_t window, uint32_t records, size_t at[4])
{
	at[0] = (sizeof(struct dqplb_rx) + 7) & ~(size_t)7;
	at[1] = at[0] + records * sizeof(struct rx_entry);
	at[2] = at[1] + window * sizeof(uint32_t);
	at[3] = at[2] + window / 8;
	return at[3] + window / 8;
}

size_t dqplb_rx_size(uint32_t window, uint32_t records)
{
	size_t at[4];

	return rx_layout(window, records, at);
}

int dqplb_rx_open(const struct dqplb_rx_config *config, struct dqplb_rx **out)
{
	struct dqplb_rx *rx;
	size_t at[4], size;

	if (!dqplb_window_valid(config->window) || config->records == 0 ||
	    config->records > RECORDS_MAX || config->gen > DQPLB_GEN_MASK ||
	    config->ack_bytes > INT32_MAX || !config->event)
		return -EINVAL;
	size = rx_layout(config->window, config->records, at);
	rx = calloc(1, size);
	if (!rx)
		return -ENOMEM;
	rx->mask = config->window - 1;
	rx->gen = config->gen;
	rx->cum = rx->high = config->first;
	rx->ack_every = config->window / 4;
	rx->ack_bytes = config->ack_bytes ? config->ack_bytes : UINT32_MAX;
	rx->event = config->event;
	rx->arg = config->arg;
	rx->entries = config->records;
	rx->entry = (void *)((char *)rx + at[0]);
	rx->claim = (void *)((char *)rx + at[1]);
	rx->arrived = (struct dqplb_bits){(void *)((char *)rx + at[2]), rx->mask};
	rx->ordered = (struct dqplb_bits){(void *)((char *)rx + at[3]), rx->mask};
	rx_entries_init(rx);
	*out = rx;
	return 0;
}

void dqplb_rx_close(struct dqplb_rx *rx)
{
	for (uint32_t i = 0; i < rx->queues; i++) {
		struct rx_queue *q = &rx->queue[i];

		if (q->rq)
			dqplb_rq_posted(q->rq, q->granted - q->consumed);
	}
	free(rx);
}

int rx_fail(struct dqplb_rx *rx)
{
	rx->failed = true;
	return -EPROTO;
}

int dqplb_rx_queue(struct dqplb_rx *rx, uint32_t queue, struct dqplb_rq *rq,
		   uint32_t target)
{
	if (queue >= DQPLB_LANES_MAX || !rq || rx->queue[queue].rq || target == 0 ||
	    target > DQPLB_GRANT_MAX)
		return -EINVAL;
	rx->queue[queue] = (struct rx_queue){.rq = rq, .target = target};
	if (queue >= rx->queues)
		rx->queues = queue + 1;
	rx->due = true;
	return 0;
}

uint32_t dqplb_rx_outstanding(const struct dqplb_rx *rx, uint32_t queue)
{
	return rx->queue[queue].granted - rx->queue[queue].consumed;
}

/* The one writer of a lane's state. */
static void lane_move(struct dqplb_rx *rx, uint32_t lane, enum rx_lane_state to)
{
	static const uint8_t from[RX_LANE_STATES] = {
		[RX_LANE_CLOSED] = RX_LANE_DRAINED,
		[RX_LANE_UP] = RX_LANE_CLOSED,
		[RX_LANE_DRAINED] = RX_LANE_UP,
	};

	if (rx->lane[lane].state != from[to])
		abort();
	rx->lane[lane].state = (uint8_t)to;
	if (to == RX_LANE_DRAINED)
		rx->lanes_drained |= UINT64_C(1) << lane;
	else
		rx->lanes_drained &= ~(UINT64_C(1) << lane);
}

int dqplb_rx_lane_open(struct dqplb_rx *rx, uint32_t lane, uint32_t incarnation,
		       uint32_t queue)
{
	if (lane >= DQPLB_LANES_MAX || queue >= DQPLB_LANES_MAX || !rx->queue[queue].rq ||
	    rx->lane[lane].state != RX_LANE_CLOSED ||
	    incarnation <= rx->lane[lane].incarnation)
		return -EINVAL;
	rx->lane[lane].incarnation = incarnation;
	rx->lane[lane].queue = (uint8_t)queue;
	lane_move(rx, lane, RX_LANE_UP);
	return 0;
}

int dqplb_rx_lane_drained(struct dqplb_rx *rx, uint32_t lane, uint32_t incarnation)
{
	if (lane >= DQPLB_LANES_MAX || rx->lane[lane].state != RX_LANE_UP ||
	    rx->lane[lane].incarnation != incarnation)
		return -EINVAL;
	lane_move(rx, lane, RX_LANE_DRAINED);
	return 0;
}

bool dqplb_rx_lane_closed(const struct dqplb_rx *rx, uint32_t lane)
{
	return lane < DQPLB_LANES_MAX && rx->lane[lane].state == RX_LANE_CLOSED;
}

static void raise_fast(struct dqplb_rx *rx, uint32_t number, uint32_t len)
{
	const struct dqplb_event ev = {
		.len = len, .fast = true, .number = number & DQPLB_SEQ_MASK};

	rx->stats.events++;
	rx->due = true;
	rx->event(rx->arg, &ev);
}

/* Raises the ordered events of these slots of one word, in order. */
static void raise_ordered(struct dqplb_rx *rx, uint32_t first, uint64_t these)
{
	*bits_word(&rx->ordered, first) &= ~these;
	for (; these; these &= these - 1) {
		uint32_t n = (first & ~UINT32_C(63)) + (uint32_t)__builtin_ctzll(these);
		uint32_t claim = rx->claim[n & rx->mask];

		rx->claim[n & rx->mask] = 0;
		if (claim & RX_FAST)
			raise_fast(rx, n, claim & ~RX_FAST);
		else
			rx_entry_turn(rx, claim);
	}
}

/* Everything up to the first gap is consumed. */
static void rx_advance(struct dqplb_rx *rx)
{
	uint32_t off, run;
	uint64_t *word, these, ordered;

	do {
		off = rx->cum & 63;
		word = bits_word(&rx->arrived, rx->cum);
		these = *word >> off;
		/* Shifted in are zeros, so the run ends with the word. */
		run = these == UINT64_MAX ? 64 : (uint32_t)__builtin_ctzll(~these);
		these = bits_low(run) << off;
		*word &= ~these;
		ordered = *bits_word(&rx->ordered, rx->cum) & these;
		if (__builtin_expect(ordered != 0, 0))
			raise_ordered(rx, rx->cum, ordered);
		rx->cum += run;
	} while (run != 0 && off + run == 64);
}

static void number_note(struct dqplb_rx *rx, uint32_t number)
{
	bits_set(&rx->arrived, number);
	if ((int32_t)(number - rx->high) >= 0)
		rx->high = number + 1;
	rx->stats.numbers++;
	if (++rx->since >= rx->ack_every)
		rx->due = true;
}

void rx_arrive(struct dqplb_rx *rx, uint32_t number)
{
	uint32_t *claim = &rx->claim[number & rx->mask], claimed = *claim;

	number_note(rx, number);
	if (claimed && !bits_test(&rx->ordered, number)) {
		*claim = 0;
		rx_entry_hit(rx, claimed);
	}
	if (number == rx->cum)
		rx_advance(rx);
}

/* Fast: this one number is a transfer, so no record may claim it. */
static int fast_arrive(struct dqplb_rx *rx, uint32_t number, uint32_t imm, uint32_t len)
{
	if (rx->claim[number & rx->mask] || len >= RX_FAST)
		return rx_fail(rx);
	number_note(rx, number);
	if ((imm & DQPLB_IMM_ORDERED) && number != rx->cum) {
		rx->claim[number & rx->mask] = RX_FAST | len;
		bits_set(&rx->ordered, number);
		return 0;
	}
	raise_fast(rx, number, len);
	if (number == rx->cum)
		rx_advance(rx);
	return 0;
}

/* A receive was used and a message of the link's came in on it: whatever it says. */
static bool queue_consume(struct dqplb_rx *rx, uint32_t queue)
{
	struct rx_queue *q = &rx->queue[queue];

	if (q->consumed == q->granted)
		return false;
	q->consumed++;
	if (++q->since >= (q->target + 3) / 4)
		rx->due = true;
	return true;
}

int dqplb_rx_imm(struct dqplb_rx *rx, uint32_t lane, uint32_t incarnation, uint32_t imm,
		 uint32_t len)
{
	uint32_t behind = dqplb_seq_behind(imm & DQPLB_SEQ_MASK, rx->cum);
	uint32_t number = rx->cum + behind;

	if (__builtin_expect(rx->failed || lane >= DQPLB_LANES_MAX, 0))
		return rx_fail(rx);
	/* After its report nothing of a lane counts: the number is on its way again. */
	if (__builtin_expect(rx->lane[lane].state != RX_LANE_UP ||
				     rx->lane[lane].incarnation != incarnation,
			     0)) {
		rx->stats.stale++;
		return 0;
	}
	if (!queue_consume(rx, rx->lane[lane].queue))
		return rx_fail(rx);
	if (dqplb_imm_gen(imm) != rx->gen) {
		rx->stats.stale++;
		return 0;
	}
	rx->bytes = rx->bytes > UINT32_MAX - len ? UINT32_MAX : rx->bytes + len;
	if (rx->bytes >= rx->ack_bytes)
		rx->due = true;
	if (behind > rx->mask) {
		/* Whatever lies before cum was seen. */
		if (behind < DQPLB_SEQ_HALF)
			return rx_fail(rx);
		rx->stats.duplicates++;
		return 0;
	}
	if (bits_test(&rx->arrived, number)) {
		rx->stats.duplicates++;
		return 0;
	}
	if (imm & DQPLB_IMM_FAST)
		return fast_arrive(rx, number, imm, len);
	if (imm & DQPLB_IMM_ORDERED)
		return rx_fail(rx);
	rx_arrive(rx, number);
	return 0;
}

/* Whether there are receives now for a queue that had too few at the last message. */
static bool can_grant(const struct dqplb_rx *rx)
{
	for (uint64_t left = rx->queues_short; left; left &= left - 1)
		if (rx->queue[__builtin_ctzll(left)].rq->free)
			return true;
	return false;
}

bool dqplb_rx_due(const struct dqplb_rx *rx, bool idle)
{
	if (rx->failed)
		return false;
	return rx->due || rx->resend || rx->lanes_drained ||
	       (idle && (rx->since || rx->bytes)) || (rx->queues_short && can_grant(rx));
}

/* Tops up what each queue's peer may use, and says so where it is news. */
static void grants_put(struct dqplb_rx *rx, struct dqplb_msg *m)
{
	m->grants = 0;
	for (uint32_t i = 0; i < rx->queues; i++) {
		struct rx_queue *q = &rx->queue[i];

		if (!q->rq)
			continue;
		q->granted +=
			dqplb_rq_take(q->rq, q->target - (q->granted - q->consumed));
		if (q->granted - q->consumed < q->target)
			rx->queues_short |= UINT64_C(1) << i;
		else
			rx->queues_short &= ~(UINT64_C(1) << i);
		if (q->granted != q->told || rx->resend)
			m->grant[m->grants++] = (struct dqplb_grant){i, q->granted};
	}
}

static void words_put(struct dqplb_rx *rx, struct dqplb_msg *m)
{
	uint32_t bits = (int32_t)(rx->high - rx->cum) > 0 ? rx->high - rx->cum : 0;

	m->words = (bits + 63) / 64;
	/* The last may reach around the ring, to bits of the first. */
	for (uint32_t i = 0; i < m->words; i++)
		m->word[i] = bits_get64(&rx->arrived, rx->cum + i * 64) &
			     bits_low(bits - i * 64);
}

static void lanes_put(struct dqplb_rx *rx, struct dqplb_msg *m)
{
	m->lanes = 0;
	for (uint64_t left = rx->lanes_drained; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);

		m->lane[m->lanes++] =
			(struct dqplb_lane_name){lane, rx->lane[lane].incarnation};
	}
}

size_t dqplb_rx_ack(struct dqplb_rx *rx, void *bytes, size_t room)
{
	struct dqplb_msg m;
	size_t len;

	m.kind = rx->lanes_drained ? DQPLB_MSG_REPORT : DQPLB_MSG_ACK;
	m.gen = (uint8_t)rx->gen;
	m.flags = 0;
	m.number = rx->cum;
	lanes_put(rx, &m);
	grants_put(rx, &m);
	words_put(rx, &m);
	len = dqplb_msg_put(bytes, room, &m);
	if (len == 0)
		return 0;
	for (uint32_t i = 0; i < m.lanes; i++)
		lane_move(rx, m.lane[i].lane, RX_LANE_CLOSED);
	for (uint32_t i = 0; i < rx->queues; i++) {
		rx->queue[i].told = rx->queue[i].granted;
		rx->queue[i].since = 0;
	}
	rx->since = 0;
	rx->bytes = 0;
	rx->due = false;
	rx->resend = false;
	if (m.lanes)
		rx->stats.reports++;
	else
		rx->stats.acks++;
	return len;
}

void dqplb_rx_resend(struct dqplb_rx *rx)
{
	rx->resend = true;
}

const struct dqplb_rx_stats *dqplb_rx_stats(const struct dqplb_rx *rx)
{
	return &rx->stats;
}
