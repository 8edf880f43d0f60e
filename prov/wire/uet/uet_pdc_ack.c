/* SPDX-License-Identifier: BSD-2-Clause */
/* What the peer says of what was sent: acks, refusals, and what follows about packets
 * that it doesn't speak of. */
#include "config.h"

#include <errno.h>

#include "prov/wire/uet/uet_pds_int.h"

#define HOLD_SHIFT_MAX 7u
#define OOO_LEAST      5u /* full packets above a gap, before it says anything */

bool uet_ack_plausible(const struct uet_pdc *pdc, const struct uet_pds_head *h)
{
	const struct uet_tx *tx = &pdc->tx;
	int32_t cack = (int32_t)(h->cack - (tx->una - 1));
	int32_t psn = (int32_t)(h->psn - (tx->una - 1));
	int32_t sent = (int32_t)(tx->next - tx->una);

	return tx->next != tx->start && cack >= INT16_MIN && cack <= sent &&
	       psn <= sent && psn >= 2 * INT16_MIN;
}

/* A packet is known to have arrived. `certain`: it is known which of its copies. */
static void arrived(struct uet_pdc *pdc, struct uet_slot *s, bool certain, bool ce,
		    uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;

	if (s->state == UET_SLOT_THERE || s->state == UET_SLOT_DONE)
		return;
	/* What was taken for lost was counted as gone; the peer counts it as received. */
	if (s->state != UET_SLOT_FLYING)
		uet_nscc_sent(&pdc->cc, uet_tx_size(s));
	uet_tx_unlink(pdc, s);
	s->state = UET_SLOT_THERE;
	if (s->tries != 1 && !certain)
		return;
	uet_paths_news(&pdc->paths, s->path, s->number,
		       ce ? UET_PATH_MARKED : UET_PATH_DELIVERED, now);
	if (tx->any_acked && (int32_t)(s->order - tx->acked_order) <= 0)
		return;
	tx->any_acked = true;
	tx->acked_order = s->order;
	tx->acked_sent_at = s->sent_at;
}

/* The same of one that others before it may hold back. Nobody responds to an answer: it
 * is over, and who waits for its place may be what holds it back. */
static void arrived_early(struct uet_pdc *pdc, uint32_t psn, bool certain, bool ce,
			  uint64_t now)
{
	struct uet_slot *s = uet_tx_slot(pdc, psn);

	arrived(pdc, s, certain, ce, now);
	if (s->state == UET_SLOT_THERE && s->next_hdr == UET_NEXT_RESP_DATA)
		uet_tx_done(pdc, psn, 0, NULL);
}

static bool waits(const struct uet_slot *s)
{
	return s->state == UET_SLOT_FLYING || s->state == UET_SLOT_AGAIN ||
	       s->state == UET_SLOT_HELD;
}

/* The round trip of the packet that the ack answers, where it is certain which copy. */
static bool sample(struct uet_pdc *pdc, const struct uet_pds_head *h, uint64_t stamp,
		   uint64_t *rtt)
{
	struct uet_tx *tx = &pdc->tx;
	const struct uet_slot *s = uet_tx_slot(pdc, h->psn);
	uint64_t own = (uint64_t)h->cc.service * UET_SERVICE_NS;

	if (h->type != UET_ACK_CC || h->probe || h->cc.service == UET_SERVICE_NONE ||
	    h->cc.service == UET_SERVICE_LATE || !uet_tx_has(tx, h->psn) || !waits(s) ||
	    s->next_hdr == UET_NEXT_NONE || s->untimed || s->tries != (h->retx ? 2 : 1) ||
	    stamp < s->sent_at + own)
		return false;
	*rtt = stamp - s->sent_at - own;
	tx->srtt = tx->srtt ? tx->srtt - tx->srtt / 8 + *rtt / 8 : *rtt;
	return true;
}

static bool take_selective(struct uet_pdc *pdc, const struct uet_pds_head *h,
			   uint64_t now)
{
	bool news = false;

	for (uint64_t bits = h->sack_bits; bits; bits &= bits - 1) {
		uint32_t psn = h->sack_base + (uint32_t)__builtin_ctzll(bits);
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (!uet_tx_has(&pdc->tx, psn) || !waits(s))
			continue;
		arrived_early(pdc, psn, false, false, now);
		news = true;
	}
	return news;
}

static void move_una(struct uet_pdc *pdc, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;

	while (tx->una != tx->next && uet_tx_slot(pdc, tx->una)->state == UET_SLOT_DONE) {
		uet_tx_slot(pdc, tx->una)->state = UET_SLOT_FREE;
		tx->una++;
		tx->moved_at = now;
	}
}

/* All up to cack have the default response, but those that had another. */
static bool take_cumulative(struct uet_pdc *pdc, const struct uet_pds_head *h,
			    uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	bool news = false;

	for (uint32_t psn = tx->una; psn != tx->next && !uet_psn_before(h->cack, psn);
	     psn++) {
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (s->state == UET_SLOT_DONE)
			continue;
		arrived(pdc, s, false, false, now);
		uet_tx_done(pdc, psn, 0, NULL);
		news = true;
	}
	if (uet_psn_before(tx->cack, h->cack)) {
		tx->cack = h->cack;
		if (h->mpr)
			tx->range = h->mpr * UET_MPR_UNIT;
	}
	return news;
}

/* Packets on the same path by which one may be overtaken. Those of a long burst leave at
 * the same moment, and may change places with each other. */
static int32_t reorder(const struct uet_pdc *pdc)
{
	const struct uet_pds_config *c = &pdc->pds->config;

	return (int32_t)(c->path_reorder + (pdc->paths.burst - c->path.burst));
}

/* Packets that left before one that came through, on the same path or long before. A path
 * on which others come through is busy with what it has, and not silent. */
static void infer(struct uet_pdc *pdc, uint64_t now)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	struct uet_tx *tx = &pdc->tx;
	uint64_t late =
		(tx->srtt > c->cc.first_rtt ? tx->srtt : c->cc.first_rtt) + c->cc.jitter;
	uint16_t i = tx->flying.first;

	if (!tx->any_acked || i == UET_NO_SLOT)
		return;
	if (pdc->ordered) {
		/* Its peer takes none that comes before its turn. */
		if ((int32_t)(tx->slot[i].order - tx->acked_order) >= 0)
			return;
		pdc->pds->stats.inferred++;
		uet_tx_lose(pdc, &tx->slot[i], UET_PATH_LOST, now);
		return;
	}
	while (i != UET_NO_SLOT) {
		struct uet_slot *s = &tx->slot[i];
		const struct uet_path *path = &pdc->paths.path[s->path];

		if ((int32_t)(s->order - tx->acked_order) >= 0)
			break;
		i = s->next;
		if (path->any && (int32_t)(path->delivered - s->number) >= reorder(pdc))
			uet_tx_lose(pdc, s, UET_PATH_LOST, now);
		else if (tx->acked_sent_at > s->sent_at + late &&
			 now > path->heard_at + late)
			uet_tx_lose(pdc, s, UET_PATH_SILENT, now);
		else
			continue;
		pdc->pds->stats.inferred++;
	}
}

/* Many packets lie above a gap: all that left before the newest of them is sent again,
 * each once, a window's worth. */
static void recover(struct uet_pdc *pdc, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	int64_t budget = (int64_t)pdc->cc.cwnd;

	tx->recovering = true;
	tx->recover = tx->next - 1;
	for (uint32_t psn = tx->una; psn != tx->next && budget > 0; psn++) {
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (s->state != UET_SLOT_FLYING ||
		    (int32_t)(s->order - tx->acked_order) >= 0)
			continue;
		budget -= uet_tx_size(s);
		uet_tx_lose(pdc, s, UET_PATH_SILENT, now);
		pdc->pds->stats.inferred++;
	}
}

static void out_of_order(struct uet_pdc *pdc, const struct uet_pds_head *h, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	const struct uet_nscc *cc = &pdc->cc;
	uint64_t most = cc->cwnd + cc->cwnd / 2;

	if (tx->recovering && !uet_psn_before(tx->una, tx->recover + 1))
		tx->recovering = false;
	if (pdc->ordered || h->type != UET_ACK_CC || h->cc.ooo == UET_OOO_NONE ||
	    tx->recovering || !tx->any_acked)
		return;
	most = most < cc->max_wnd ? most : cc->max_wnd;
	if (h->cc.ooo >= OOO_LEAST && h->cc.ooo * (uint64_t)cc->config.mtu >= most)
		recover(pdc, now);
}

/* The answer to a probe: what had left before it and isn't there is lost, if the network
 * is not so full that it may only wait; and if it is, what has been under way for twice
 * as long as the probe was. */
static void probe_answered(struct uet_pdc *pdc, const struct uet_pds_head *h,
			   uint64_t stamp, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	uint64_t own = (uint64_t)h->cc.service * UET_SERVICE_NS;
	uint64_t rtt, full;

	if (!tx->probe_flying || h->opaque != tx->probe_opaque)
		return;
	tx->probe_flying = false;
	tx->unproven = false;
	if (h->type != UET_ACK_CC || own == 0 || h->cc.service == UET_SERVICE_LATE ||
	    stamp < tx->probe_sent_at + own)
		return;
	rtt = stamp - tx->probe_sent_at - own;
	uet_nscc_base(&pdc->cc, rtt, now);
	full = rtt < pdc->cc.base_rtt + pdc->cc.target
		       ? 0
		       : 2 * rtt + pdc->pds->config.cc.jitter;
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t psn = h->sack_base + i;
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (!uet_tx_has(tx, psn) || !uet_psn_before(h->cack, psn) ||
		    h->sack_bits >> i & 1 || s->state != UET_SLOT_FLYING ||
		    (int32_t)(s->order - tx->probe_order) > 0 || now < s->sent_at + full)
			continue;
		pdc->pds->stats.inferred++;
		uet_tx_lose(pdc, s, UET_PATH_SILENT, now);
	}
}

static bool take_response(struct uet_pdc *pdc, const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_slot *s = uet_tx_slot(pdc, h->psn);

	if (h->probe || h->next == UET_NEXT_NONE || !uet_tx_has(&pdc->tx, h->psn))
		return false;
	pdc->tx.clear_due = true;
	if (s->state == UET_SLOT_DONE)
		return false;
	arrived(pdc, s, h->retx && s->tries > 1, h->mark, now);
	uet_tx_done(pdc, h->psn, 0, pkt);
	return true;
}

/* How long the ack was on its way, by two clocks that have nothing in common. */
static uint16_t way_back(const struct uet_pds_head *h, uint64_t stamp)
{
	uint64_t left = (uint64_t)h->cc.service * UET_SERVICE_NS;

	return (uint16_t)((stamp - left) / UET_ARRIVED_NS - h->cc.arrived);
}

static void to_window(struct uet_pdc *pdc, const struct uet_pds_head *h, bool has_rtt,
		      uint64_t rtt, uint64_t sent_at, bool path_marks, uint64_t stamp,
		      uint64_t now)
{
	struct uet_nscc_ack ack = {.received = h->cc.received,
				   .has_received = h->type == UET_ACK_CC,
				   .ce = h->mark,
				   .path_marks = path_marks,
				   .restore = h->cc.restore,
				   .pend = h->cc.pend,
				   .has_rtt = has_rtt,
				   .sent_at = sent_at,
				   .has_back = h->cc.has_arrived,
				   .back = way_back(h, stamp),
				   .rtt = rtt};

	uet_nscc_ack(&pdc->cc, &ack, now);
}

void uet_ack_rx(struct uet_pdc *pdc, const struct uet_in *in, const struct uet_pkt *pkt,
		uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_tx *tx = &pdc->tx;
	uint64_t stamp = in->stamp && in->stamp < now ? in->stamp : now;
	struct uet_slot *s = uet_tx_slot(pdc, h->psn);
	bool has = !h->probe && uet_tx_has(tx, h->psn) && waits(s);
	uint64_t rtt = 0;
	bool has_rtt = sample(pdc, h, stamp, &rtt);
	bool path_marks = has && pdc->paths.path[s->path].marks;
	bool news;

	pdc->pds->stats.acks_in++;
	news = take_response(pdc, pkt, now);
	if (has && waits(s)) {
		arrived_early(pdc, h->psn, h->retx && s->tries > 1, h->mark, now);
		news = true;
	}
	news |= take_selective(pdc, h, now);
	news |= take_cumulative(pdc, h, now);
	if (!uet_pdc_live(pdc))
		return;
	move_una(pdc, now);
	to_window(pdc, h, has_rtt, rtt, s->sent_at, path_marks, stamp, now);
	if (h->probe)
		probe_answered(pdc, h, stamp, now);
	infer(pdc, now);
	out_of_order(pdc, h, now);
	if (news)
		tx->nack_backoff = 0;
	uet_tx_rearm(pdc, news, now);
	if (h->ask == UET_ASK_CLEAR)
		tx->clear_due = true;
	if (h->ask == UET_ASK_CLOSE && pdc->initiator)
		uet_pdc_close(pdc, now);
	uet_pdc_try_close(pdc, now);
}

static void hold(struct uet_pdc *pdc, struct uet_slot *s, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	uint32_t shift =
		tx->nack_backoff < HOLD_SHIFT_MAX ? tx->nack_backoff : HOLD_SHIFT_MAX;

	uet_tx_unlink(pdc, s);
	s->state = UET_SLOT_HELD;
	if (tx->held++ > 0)
		return;
	tx->hold_until = now + (pdc->pds->config.nack_wait << shift);
	tx->nack_backoff++;
}

static void later(struct uet_pdc *pdc, struct uet_slot *s, uint8_t code, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;

	/* A peer without room for a context doesn't have us; any other is there and asks
	 * us to wait. */
	if (code != UET_NACK_NO_PDC && code != UET_NACK_NO_CCC &&
	    code != UET_NACK_NO_BITMAP) {
		tx->heard_at = now;
		if (code != UET_NACK_OUT_OF_WINDOW)
			tx->moved_at = now;
	}
	if (code == UET_NACK_PROCESSING) {
		arrived(pdc, s, false, false, now);
	} else if (s->state == UET_SLOT_FLYING) {
		uet_nscc_nack(&pdc->cc, uet_tx_size(s), false, now);
		hold(pdc, s, now);
	}
}

static void again(struct uet_pdc *pdc, struct uet_slot *s, uint8_t code, uint64_t now)
{
	bool trimmed = code == UET_NACK_TRIMMED || code == UET_NACK_TRIMMED_LASTHOP;

	pdc->tx.heard_at = now;
	/* Asked for a response, it says that it needs the packet for that. What it had
	 * counted stays counted. */
	if (s->state == UET_SLOT_THERE &&
	    (code == UET_NACK_NOT_RECEIVED || code == UET_NACK_WITH_DATA)) {
		s->state = UET_SLOT_FLYING;
		uet_tx_push(pdc, &pdc->tx.flying, s);
	}
	if (s->state != UET_SLOT_FLYING)
		return;
	if (pdc->ordered || !trimmed) {
		uet_tx_lose(pdc, s, UET_PATH_LOST, now);
		return;
	}
	uet_nscc_nack(&pdc->cc, uet_tx_size(s), true, now);
	uet_tx_unlink(pdc, s);
	s->state = UET_SLOT_AGAIN;
	uet_tx_push(pdc, &pdc->tx.again, s);
}

void uet_nack_rx(struct uet_pdc *pdc, const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	enum uet_nack_class class = uet_nack_class(h->code);
	struct uet_slot *s = uet_tx_slot(pdc, h->psn);
	bool has = uet_tx_has(&pdc->tx, h->psn);

	/* A control packet without a number of its own may be refused for want of a
	 * context; its psn is the lowest open one, or the one before. */
	if (!has && !(class == UET_NACK_FATAL && h->psn == pdc->tx.una - 1)) {
		pdc->pds->stats.stray++;
		return;
	}
	pdc->pds->stats.refusals++;
	switch (class) {
	case UET_NACK_AGAIN_NOW:
		again(pdc, s, h->code, now);
		break;
	case UET_NACK_AGAIN_LATER:
		later(pdc, s, h->code, now);
		break;
	case UET_NACK_FATAL:
		/* It has closed, and forgotten that it did. */
		if (pdc->state == UET_PDC_CLOSING)
			uet_pdc_end(pdc, 0, 0, now);
		else
			uet_pdc_end(pdc, -ECONNRESET, h->code, now);
		return;
	case UET_NACK_FATAL_LOST:
		uet_pdc_end(pdc, -EPROTO, h->code, now);
		return;
	case UET_NACK_UNKNOWN:
		break;
	}
	uet_tx_rearm(pdc, false, now);
}
