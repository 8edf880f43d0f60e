/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving half of a context: what has arrived, responses that are kept, acks. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "prov/wire/uet/uet_pds_int.h"

#define LEAST_GATHERED 1024u /* an ack's due counts short packets as this long */

void uet_rx_init(struct uet_pdc *pdc, uint32_t start)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	struct uet_rx *rx = &pdc->rx;
	uint64_t *bits = rx->bits;
	struct uet_gtd *gtd = rx->gtd;

	memset(rx, 0, sizeof(*rx));
	rx->bits = bits;
	rx->gtd = gtd;
	memset(bits, 0, (c->window + 63) / 64 * sizeof(*bits));
	for (uint32_t i = 0; i < c->responses; i++)
		gtd[i].used = false;
	rx->start = rx->next = start;
	rx->cack = start - 1;
	rx->ack_at = UET_NEVER;
}

bool uet_pdc_lowest(const struct uet_pdc *pdc, uint32_t psn)
{
	return psn == pdc->rx.next;
}

static bool bit_test(const struct uet_pdc *pdc, uint32_t psn)
{
	uint32_t i = psn & (pdc->pds->config.window - 1);

	return pdc->rx.bits[i / 64] >> i % 64 & 1;
}

static void bit_flip(struct uet_pdc *pdc, uint32_t psn)
{
	uint32_t i = psn & (pdc->pds->config.window - 1);

	pdc->rx.bits[i / 64] ^= UINT64_C(1) << i % 64;
}

/* Numbers that the window has room for: above cack. */
static bool in_window(const struct uet_pdc *pdc, uint32_t psn)
{
	return psn - pdc->rx.cack - 1 < pdc->pds->config.window;
}

static bool has_arrived(const struct uet_pdc *pdc, uint32_t psn)
{
	return !uet_psn_before(pdc->rx.cack, psn) ||
	       (in_window(pdc, psn) && bit_test(pdc, psn));
}

static struct uet_gtd *gtd_of(struct uet_pdc *pdc, uint32_t psn)
{
	for (uint32_t i = 0; pdc->rx.gtds > 0 && i < pdc->pds->config.responses; i++)
		if (pdc->rx.gtd[i].used && pdc->rx.gtd[i].psn == psn)
			return &pdc->rx.gtd[i];
	return NULL;
}

static struct uet_gtd *gtd_add(struct uet_pdc *pdc, uint32_t psn)
{
	for (uint32_t i = 0; i < pdc->pds->config.responses; i++) {
		struct uet_gtd *g = &pdc->rx.gtd[i];

		if (g->used)
			continue;
		g->used = true;
		g->ready = g->due = g->retx = false;
		g->psn = psn;
		pdc->rx.gtds++;
		return g;
	}
	return NULL;
}

/* What is said to have arrived ends below the first response that must not be lost. */
static void advance(struct uet_pdc *pdc)
{
	struct uet_rx *rx = &pdc->rx;
	uint32_t end;

	while (in_window(pdc, rx->next) && bit_test(pdc, rx->next))
		rx->next++;
	end = rx->next;
	for (uint32_t i = 0; rx->gtds > 0 && i < pdc->pds->config.responses; i++)
		if (rx->gtd[i].used && uet_psn_before(rx->gtd[i].psn, end))
			end = rx->gtd[i].psn;
	while (rx->cack + 1 != end) {
		rx->cack++;
		rx->above--;
		bit_flip(pdc, rx->cack);
	}
}

static void clear(struct uet_pdc *pdc, uint32_t upto)
{
	struct uet_rx *rx = &pdc->rx;
	bool any = false;

	for (uint32_t i = 0; rx->gtds > 0 && i < pdc->pds->config.responses; i++) {
		struct uet_gtd *g = &rx->gtd[i];

		if (!g->used || !g->ready || uet_psn_before(upto, g->psn))
			continue;
		g->used = false;
		rx->gtds--;
		any = true;
	}
	if (!any)
		return;
	advance(pdc);
	rx->ack_due = true; /* the peer waits for the numbers that were held back */
}

/* What answers a packet goes the way that it came. */
static uint32_t way_of(const struct uet_pdc *pdc, const struct uet_in *in)
{
	int host = pdc->hosts ? uet_pdc_host(pdc, in) : 0;

	return (host > 0 ? (uint32_t)host << 16 : 0) | in->entropy;
}

static void refuse(struct uet_pdc *pdc, const struct uet_in *in,
		   const struct uet_pds_head *h, uint8_t code, uint32_t psn)
{
	struct uet_rx *rx = &pdc->rx;

	if (rx->nacks < UET_NACKS)
		rx->nack[rx->nacks++] =
			(struct uet_nack_due){code, h->retx, way_of(pdc, in), psn};
}

/* The next ack answers this packet. */
static void answer(struct uet_pdc *pdc, const struct uet_in *in,
		   const struct uet_pds_head *h, bool now_due, uint64_t now)
{
	struct uet_rx *rx = &pdc->rx;

	if (!rx->ack_any)
		rx->ack_at = now + pdc->pds->config.ack_delay;
	rx->ack_any = true;
	rx->ack_due |= now_due || in->ce;
	rx->mark |= in->ce;
	rx->retx = h->retx;
	rx->ack_psn = h->psn;
	rx->entropy = way_of(pdc, in);
	rx->stamp = in->stamp && in->stamp < now ? in->stamp : now;
}

static void arrived(struct uet_pdc *pdc, uint32_t psn)
{
	struct uet_rx *rx = &pdc->rx;

	bit_flip(pdc, psn);
	rx->above++;
	advance(pdc);
	if (!rx->dirty || uet_psn_before(psn, rx->lo))
		rx->lo = psn;
	if (!rx->dirty || uet_psn_before(rx->hi, psn))
		rx->hi = psn;
	rx->dirty = true;
}

/* Something that arrived before, or that can't be taken. True: it is new. */
static bool is_new(struct uet_pdc *pdc, const struct uet_in *in,
		   const struct uet_pds_head *h, uint64_t now)
{
	struct uet_rx *rx = &pdc->rx;
	struct uet_gtd *g;

	if (has_arrived(pdc, h->psn)) {
		pdc->pds->stats.duplicates++;
		g = gtd_of(pdc, h->psn);
		if (g && g->ready) {
			g->due = true;
			g->retx = h->retx;
		} else if (g) {
			refuse(pdc, in, h, UET_NACK_PROCESSING, h->psn);
		} else {
			answer(pdc, in, h, true, now);
		}
		return false;
	}
	if (!uet_pdc_live(pdc)) {
		refuse(pdc, in, h, UET_NACK_CLOSING, h->psn);
		return false;
	}
	if (!in_window(pdc, h->psn)) {
		refuse(pdc, in, h, h->syn ? UET_NACK_INVALID_SYN : UET_NACK_OUT_OF_WINDOW,
		       h->psn);
		return false;
	}
	if (!pdc->ordered || h->psn == rx->next)
		return true;
	/* One refusal sends the peer back; more of them would send it again. */
	if (rx->ooo_psn != rx->next || now >= rx->ooo_until) {
		rx->ooo_psn = rx->next;
		rx->ooo_until = now + pdc->pds->config.nack_wait;
		refuse(pdc, in, h, UET_NACK_ROD_OOO, rx->next);
	}
	return false;
}

/* It is taken: counted, and acknowledged soon. */
static void take(struct uet_pdc *pdc, const struct uet_in *in, const struct uet_pkt *pkt,
		 bool due, uint64_t now)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	struct uet_rx *rx = &pdc->rx;
	uint32_t len = pkt->payload_len;

	pdc->pds->stats.received++;
	if (pkt->pds.type != UET_CP)
		rx->received += sizeof(struct uet_req_bytes) + pkt->ses_len + len +
				UET_NSCC_OVERHEAD;
	rx->gathered += len > LEAST_GATHERED ? len : LEAST_GATHERED;
	arrived(pdc, pkt->pds.psn);
	answer(pdc, in, &pkt->pds,
	       due || pkt->pds.ar || pkt->pds.syn || rx->gathered >= c->ack_most, now);
}

static void reply_set(struct uet_gtd *g, const struct uet_reply *reply)
{
	g->reply = *reply;
	g->ready = g->due = true;
}

void uet_rx_request(struct uet_pdc *pdc, const struct uet_in *in,
		    const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_reply reply = {.next = UET_NEXT_NONE};
	/* The last place is for the lowest that is missing: what lies above can be
	 * cleared only after it. */
	bool room = pdc->rx.gtds + (h->psn != pdc->rx.next) < c->responses;
	enum uet_verdict verdict;
	struct uet_gtd *g;

	clear(pdc, h->clear);
	if (!is_new(pdc, in, h, now))
		return;
	verdict = c->events->request(c->arg, pdc, pkt, room, &reply);
	if (verdict != UET_TAKEN && !room)
		verdict = UET_NO_BUFFER;
	if (verdict == UET_NO_BUFFER) {
		refuse(pdc, in, h, room ? UET_NACK_NO_BUFFER : UET_NACK_NO_GTD, h->psn);
		return;
	}
	if (verdict != UET_TAKEN) {
		g = gtd_add(pdc, h->psn);
		g->retx = h->retx;
		if (verdict == UET_REPLIED)
			reply_set(g, &reply);
	}
	take(pdc, in, pkt, false, now);
}

int uet_pdc_respond(struct uet_pdc *pdc, uint32_t psn, const struct uet_reply *reply,
		    uint64_t now)
{
	struct uet_gtd *g = gtd_of(pdc, psn);

	(void)now;
	if (!uet_pdc_live(pdc) || !g || g->ready)
		return -ENOENT;
	if (reply) {
		reply_set(g, reply);
	} else {
		g->used = false;
		pdc->rx.gtds--;
		advance(pdc);
		pdc->rx.ack_due = true;
	}
	uet_pds_ready(pdc);
	return 0;
}

/* Control packets that have a number of their own. */
static void numbered(struct uet_pdc *pdc, const struct uet_in *in,
		     const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	bool close = h->ctl == UET_CTL_CLOSE_CMD;

	if (!is_new(pdc, in, h, now))
		return;
	if (close && pdc->initiator) {
		refuse(pdc, in, h, UET_NACK_UNEXPECTED, h->psn);
		return;
	}
	/* What this end has under way goes first; what it still works at, too. */
	if (close) {
		clear(pdc, h->psn);
		if (h->psn != pdc->rx.next || pdc->rx.gtds > 0 ||
		    uet_pdc_open_packets(pdc) > 0) {
			refuse(pdc, in, h, UET_NACK_NO_RESOURCE, h->psn);
			return;
		}
	}
	take(pdc, in, pkt, true, now);
	if (close)
		uet_pdc_end(pdc, 0, 0, now);
	else if (h->ctl == UET_CTL_CLOSE_REQ && pdc->initiator)
		uet_pdc_close(pdc, now);
}

static void query(struct uet_pdc *pdc, const struct uet_in *in, const struct uet_pkt *pkt,
		  uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_gtd *g = gtd_of(pdc, h->psn);

	if (!has_arrived(pdc, h->psn))
		refuse(pdc, in, h, UET_NACK_NOT_RECEIVED, h->psn);
	else if (!g)
		answer(pdc, in, h, true, now);
	else if (g->ready)
		g->due = true;
	else
		refuse(pdc, in, h, UET_NACK_PROCESSING, h->psn);
}

void uet_rx_control(struct uet_pdc *pdc, const struct uet_in *in,
		    const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_rx *rx = &pdc->rx;

	switch (h->ctl) {
	case UET_CTL_ACK_REQ:
		query(pdc, in, pkt, now);
		break;
	case UET_CTL_CLEAR_CMD:
		clear(pdc, h->payload);
		break;
	case UET_CTL_CLEAR_REQ:
		pdc->tx.clear_due = true;
		break;
	case UET_CTL_PROBE:
		rx->probe = true;
		rx->probe_opaque = h->opaque;
		rx->probe_base = h->payload;
		rx->probe_entropy = way_of(pdc, in);
		rx->probe_stamp = in->stamp && in->stamp < now ? in->stamp : now;
		break;
	default:
		numbered(pdc, in, pkt, now);
	}
}

/* What goes back. */

static uint64_t bits_from(const struct uet_pdc *pdc, uint32_t base)
{
	uint64_t bits = 0;

	if (pdc->rx.above == 0)
		return 0;
	for (uint32_t i = 0; i < 64; i++)
		if (in_window(pdc, base + i) && bit_test(pdc, base + i))
			bits |= UINT64_C(1) << i;
	return bits;
}

static uint16_t service_since(uint64_t stamp, uint64_t now)
{
	uint64_t units = (now - stamp) / UET_SERVICE_NS;

	if (units == 0)
		return 1;
	return units < UET_SERVICE_LATE ? (uint16_t)units : UET_SERVICE_LATE;
}

static struct uet_pds_head ack_head(const struct uet_pdc *pdc, uint32_t base,
				    uint64_t stamp, uint64_t now)
{
	const struct uet_pds *pds = pdc->pds;
	const struct uet_rx *rx = &pdc->rx;
	uint32_t ooo = rx->above - (rx->next - 1 - rx->cack);

	if (uet_psn_before(base, rx->cack + 1) || !in_window(pdc, base))
		base = rx->cack + 1;
	return (struct uet_pds_head){
		.type = UET_ACK_CC,
		.spdcid = pdc->id,
		.dpdcid = pdc->peer_id,
		.cack = rx->cack,
		.ask = pdc->asked			      ? UET_ASK_CLOSE
		       : rx->gtds * 2 > pds->config.responses ? UET_ASK_CLEAR
							      : UET_ASK_NOTHING,
		.mpr = (uint8_t)(pds->config.window / UET_MPR_UNIT),
		.sack_base = base,
		.sack_bits = bits_from(pdc, base),
		.cc = {.service = service_since(stamp, now),
		       .restore = pds->restore,
		       .pend = (uint8_t)pds->pend,
		       .received = (uint32_t)((rx->received + UET_RECEIVED_UNIT - 1) /
					      UET_RECEIVED_UNIT) &
				   0xffffffu,
		       .ooo = (uint16_t)ooo,
		       .has_arrived = ooo == 0,
		       .arrived = (uint16_t)(stamp / UET_ARRIVED_NS)},
	};
}

static bool leave(struct uet_pdc *pdc, const struct uet_pds_head *h, uint32_t entropy,
		  struct uet_out *out)
{
	out->peer = pdc->peer;
	out->pdc = pdc;
	out->cls = UET_CLASS_CONTROL;
	out->path = UET_PATH_ECHO;
	out->entropy = entropy;
	out->payload = NULL;
	out->payload_len = 0;
	out->slot = NULL;
	out->last = false;
	out->head_len = (uint32_t)uet_pds_put(out->head, h);
	return true;
}

static bool next_nack(struct uet_pdc *pdc, struct uet_out *out)
{
	struct uet_rx *rx = &pdc->rx;
	const struct uet_nack_due *due = &rx->nack[--rx->nacks];
	struct uet_pds_head h = {.type = UET_NACK,
				 .retx = due->retx,
				 .code = due->code,
				 .psn = due->psn,
				 .spdcid = pdc->id,
				 .dpdcid = pdc->peer_id,
				 .payload = rx->next};

	pdc->pds->stats.refused++;
	return leave(pdc, &h, due->entropy, out);
}

static bool next_probe(struct uet_pdc *pdc, uint64_t now, struct uet_out *out)
{
	struct uet_rx *rx = &pdc->rx;
	struct uet_pds_head h = ack_head(pdc, rx->probe_base, rx->probe_stamp, now);

	h.probe = true;
	h.opaque = rx->probe_opaque;
	rx->probe = false;
	pdc->pds->stats.acks_out++;
	return leave(pdc, &h, rx->probe_entropy, out);
}

static bool next_response(struct uet_pdc *pdc, uint64_t now, struct uet_out *out)
{
	struct uet_rx *rx = &pdc->rx;

	for (uint32_t i = 0; rx->gtds > 0 && i < pdc->pds->config.responses; i++) {
		struct uet_gtd *g = &rx->gtd[i];
		struct uet_pds_head h;

		if (!g->used || !g->due)
			continue;
		g->due = false;
		h = ack_head(pdc, rx->cack + 1, now, now);
		h.psn = g->psn;
		h.retx = g->retx;
		h.next = g->reply.next;
		h.cc.service = UET_SERVICE_NONE; /* whose stamp it was isn't kept */
		h.cc.has_arrived = false;
		leave(pdc, &h, rx->entropy, out);
		memcpy(out->head + out->head_len, g->reply.bytes, g->reply.len);
		out->head_len += g->reply.len;
		pdc->pds->stats.acks_out++;
		return true;
	}
	return false;
}

static bool next_ack(struct uet_pdc *pdc, uint64_t now, struct uet_out *out)
{
	struct uet_rx *rx = &pdc->rx;
	uint32_t base = rx->dirty && !uet_psn_before(rx->lo, rx->cack + 1) ? rx->lo
									   : rx->cack + 1;
	struct uet_pds_head h = ack_head(pdc, base, rx->stamp, now);

	h.psn = rx->ack_psn;
	h.retx = rx->retx;
	h.mark = rx->mark;
	/* What doesn't fit the bits of one goes with the next. */
	if (rx->dirty && uet_psn_before(base + 63, rx->hi) && in_window(pdc, base + 64)) {
		rx->lo = base + 64;
	} else {
		rx->dirty = rx->ack_due = rx->ack_any = false;
		rx->mark = false;
		rx->gathered = 0;
		rx->ack_at = UET_NEVER;
	}
	pdc->pds->stats.acks_out++;
	return leave(pdc, &h, rx->entropy, out);
}

bool uet_rx_next(struct uet_pdc *pdc, uint64_t now, struct uet_out *out)
{
	struct uet_rx *rx = &pdc->rx;

	if (pdc->state == UET_PDC_FREE || pdc->peer_id == 0)
		return false;
	if (rx->nacks > 0)
		return next_nack(pdc, out);
	if (rx->probe)
		return next_probe(pdc, now, out);
	if (next_response(pdc, now, out))
		return true;
	if (rx->ack_any && now >= rx->ack_at)
		rx->ack_due = true;
	return rx->ack_due && next_ack(pdc, now, out);
}
