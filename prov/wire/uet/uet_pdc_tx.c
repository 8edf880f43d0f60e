/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending half of a context: the ring of packets, what leaves next, timeouts. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "prov/wire/uet/uet_pds_int.h"
#include "util/copy.h"

#define PROBES	       5u
#define PROBE_TIMEOUTS 3u /* in a row */
#define PROBE_LEAST    UINT64_C(500000)
#define BACKOFF_MAX    10u
#define KEPT_FOR_BACK  8u  /* part of the ring */
#define BACKLOG_LEAST  32u /* packets: what may leave between two turns */
#define STUCK_FACTOR   4u  /* a packet that never arrives though its peer answers */

void uet_tx_init(struct uet_pdc *pdc, uint32_t start, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	struct uet_slot *slot = tx->slot;

	memset(tx, 0, sizeof(*tx));
	tx->slot = slot;
	tx->start = tx->una = tx->next = tx->end = start;
	tx->cack = start - 1;
	tx->range = pdc->pds->config.window;
	tx->flying.first = tx->flying.last = UET_NO_SLOT;
	tx->again.first = tx->again.last = UET_NO_SLOT;
	tx->rto_at = tx->hold_until = tx->probe_at = UET_NEVER;
	tx->heard_at = tx->moved_at = now;
	tx->probes_left = PROBES;
}

static uint16_t index_of(const struct uet_pdc *pdc, const struct uet_slot *s)
{
	return (uint16_t)(s - pdc->tx.slot);
}

static struct uet_slots *list_of(struct uet_pdc *pdc, const struct uet_slot *s)
{
	return s->state == UET_SLOT_FLYING ? &pdc->tx.flying : &pdc->tx.again;
}

void uet_tx_push(struct uet_pdc *pdc, struct uet_slots *list, struct uet_slot *s)
{
	uint16_t i = index_of(pdc, s);

	s->next = UET_NO_SLOT;
	s->prev = list->last;
	if (list->last == UET_NO_SLOT)
		list->first = i;
	else
		pdc->tx.slot[list->last].next = i;
	list->last = i;
}

void uet_tx_unlink(struct uet_pdc *pdc, struct uet_slot *s)
{
	struct uet_slots *list;

	if (s->state == UET_SLOT_HELD)
		pdc->tx.held--;
	if (s->state != UET_SLOT_FLYING && s->state != UET_SLOT_AGAIN)
		return;
	list = list_of(pdc, s);
	if (s->prev == UET_NO_SLOT)
		list->first = s->next;
	else
		pdc->tx.slot[s->prev].next = s->next;
	if (s->next == UET_NO_SLOT)
		list->last = s->prev;
	else
		pdc->tx.slot[s->next].prev = s->prev;
}

uint32_t uet_tx_size(const struct uet_slot *s)
{
	if (s->next_hdr == UET_NEXT_NONE)
		return 0;
	return (uint32_t)sizeof(struct uet_req_bytes) + s->ses_len + s->payload_len +
	       UET_NSCC_OVERHEAD;
}

/* One place is kept for what closes the context. */
uint32_t uet_pdc_room_back(const struct uet_pdc *pdc)
{
	uint32_t used = pdc->tx.end - pdc->tx.una;

	return pdc->pds->config.window > used + 1 ? pdc->pds->config.window - used - 1
						  : 0;
}

/* Requests leave room for answers: where both ends' rings were full of requests, neither
 * could answer any, and none would ever be over. */
uint32_t uet_pdc_room(const struct uet_pdc *pdc)
{
	uint32_t room = uet_pdc_room_back(pdc);
	uint32_t kept = pdc->pds->config.window / KEPT_FOR_BACK;

	return room > kept ? room - kept : 0;
}

bool uet_pdc_backlogged(const struct uet_pdc *pdc)
{
	uint32_t waits = pdc->tx.end - pdc->tx.next;

	return waits >= BACKLOG_LEAST && (uint64_t)waits * pdc->cc.packet >= pdc->cc.cwnd;
}

static struct uet_slot *slot_add(struct uet_pdc *pdc)
{
	struct uet_tx *tx = &pdc->tx;
	struct uet_slot *s = uet_tx_slot(pdc, tx->end);

	tx->end++;
	s->state = UET_SLOT_NEW;
	s->tries = 0;
	s->emptied = false;
	return s;
}

int uet_pdc_send(struct uet_pdc *pdc, const struct uet_send *send, uint64_t now)
{
	struct uet_slot *s;

	if (!uet_pdc_live(pdc) || pdc->state >= UET_PDC_QUIESCE || pdc->asked)
		return -ESHUTDOWN;
	if (send->ses_len == 0 || send->ses_len > UET_SES_MAX ||
	    send->payload_len > pdc->pds->config.mtu ||
	    (send->next != UET_NEXT_REQ_STD && send->next != UET_NEXT_RESP_DATA))
		return -EINVAL;
	if ((send->next == UET_NEXT_RESP_DATA ? uet_pdc_room_back(pdc)
					      : uet_pdc_room(pdc)) == 0)
		return -EAGAIN;
	(void)now;
	s = slot_add(pdc);
	s->payload = send->payload;
	s->payload_len = send->payload_len;
	s->cookie = send->cookie;
	s->next_hdr = send->next;
	s->ar = send->ar;
	s->ses_len = (uint8_t)send->ses_len;
	copy_small(s->ses, send->ses, send->ses_len);
	uet_pds_ready(pdc);
	return 0;
}

void uet_pdc_empty(struct uet_pdc *pdc, const void *cookie, const void *ses,
		   uint32_t ses_len)
{
	struct uet_tx *tx = &pdc->tx;

	for (uint32_t psn = tx->una; psn != tx->end; psn++) {
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (s->state == UET_SLOT_DONE || s->cookie != cookie)
			continue;
		s->payload = NULL;
		s->emptied = true;
		s->ses_len = (uint8_t)ses_len;
		memcpy(s->ses, ses, ses_len);
	}
}

/* One of the ring's places is kept for it: uet_pdc_room. */
int uet_tx_control(struct uet_pdc *pdc, uint8_t ctl, uint64_t now)
{
	struct uet_slot *s;

	(void)now;
	if (pdc->tx.end - pdc->tx.una >= pdc->pds->config.window)
		return -EAGAIN;
	s = slot_add(pdc);
	s->payload = s->cookie = NULL;
	s->payload_len = s->ses_len = 0;
	s->next_hdr = UET_NEXT_NONE;
	s->ctl = ctl;
	s->ar = true;
	uet_pds_ready(pdc);
	return 0;
}

void uet_tx_done(struct uet_pdc *pdc, uint32_t psn, int err, const struct uet_pkt *resp)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	struct uet_slot *s = uet_tx_slot(pdc, psn);

	uet_tx_unlink(pdc, s);
	s->state = UET_SLOT_DONE;
	if (s->next_hdr != UET_NEXT_NONE)
		c->events->done(c->arg, pdc, s->cookie, err, resp);
}

void uet_tx_fail(struct uet_pdc *pdc, int err)
{
	struct uet_tx *tx = &pdc->tx;

	while (tx->una != tx->end) {
		if (uet_tx_slot(pdc, tx->una)->state != UET_SLOT_DONE)
			uet_tx_done(pdc, tx->una, err, NULL);
		tx->una++;
	}
	tx->next = tx->end;
}

/* Times. */

/* A peer that didn't run for a second has a long round trip, and not a long way: only
 * the shortest one may take the timeout beyond its limit. */
static uint64_t rto_of(const struct uet_pdc *pdc)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	uint64_t way = 4 * pdc->cc.base_rtt;
	uint64_t most = way > c->rto_max ? way : c->rto_max;
	uint64_t rto = 4 * pdc->tx.srtt > c->rto_init ? 4 * pdc->tx.srtt : c->rto_init;
	uint32_t shift = pdc->tx.backoff < BACKOFF_MAX ? pdc->tx.backoff : BACKOFF_MAX;

	rto = rto < most ? rto : most;
	return rto << shift < most ? rto << shift : most;
}

static uint64_t probe_wait(const struct uet_pdc *pdc)
{
	uint64_t most = rto_of(pdc);
	uint64_t wait = 3 * pdc->tx.srtt + 3 * pdc->pds->config.ack_delay / 2 +
			pdc->pds->config.cc.jitter;

	wait = (wait > PROBE_LEAST ? wait : PROBE_LEAST)
	       << (PROBES - pdc->tx.probes_left);
	return wait < most ? wait : most;
}

void uet_tx_rearm(struct uet_pdc *pdc, bool news, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;

	if (news) {
		tx->backoff = 0;
		tx->probes_left = PROBES;
	}
	if (tx->una == tx->next && !tx->unproven) {
		tx->rto_at = UET_NEVER;
		tx->probe_at = UET_NEVER;
		return;
	}
	if (news || tx->rto_at == UET_NEVER)
		tx->rto_at = now + rto_of(pdc);
	if (news || tx->probe_at == UET_NEVER)
		tx->probe_at = tx->probes_left > 0 && pdc->peer_id != 0
				       ? now + probe_wait(pdc)
				       : UET_NEVER;
}

uint64_t uet_tx_due(const struct uet_pdc *pdc)
{
	const struct uet_tx *tx = &pdc->tx;
	uint64_t due = tx->rto_at < tx->probe_at ? tx->rto_at : tx->probe_at;

	if (pdc->cc.waits && pdc->cc.go_at < due)
		due = pdc->cc.go_at;
	return tx->hold_until < due ? tx->hold_until : due;
}

/* All but the first of a burst that goes again in order were not lost by themselves. */
static void go_back(struct uet_pdc *pdc, enum uet_path_news news, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;
	bool first = true;

	while (tx->again.first != UET_NO_SLOT) {
		struct uet_slot *s = &tx->slot[tx->again.first];

		uet_tx_unlink(pdc, s);
		s->state = UET_SLOT_NEW;
	}
	for (uint32_t psn = tx->una; psn != tx->next; psn++) {
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (s->state == UET_SLOT_FLYING) {
			uet_nscc_lost(&pdc->cc, uet_tx_size(s),
				      first && news != UET_PATH_TIMEOUT, now);
			if (first)
				uet_paths_news(&pdc->paths, s->path, s->number, news,
					       now);
			first = false;
			uet_tx_unlink(pdc, s);
		} else if (s->state != UET_SLOT_NEW) {
			continue;
		}
		s->state = UET_SLOT_AGAIN;
		uet_tx_push(pdc, &tx->again, s);
	}
}

void uet_tx_lose(struct uet_pdc *pdc, struct uet_slot *s, enum uet_path_news news,
		 uint64_t now)
{
	if (pdc->ordered && news != UET_PATH_TIMEOUT) {
		go_back(pdc, news, now);
		return;
	}
	uet_nscc_lost(&pdc->cc, uet_tx_size(s), news != UET_PATH_TIMEOUT, now);
	uet_paths_news(&pdc->paths, s->path, s->number, news, now);
	uet_tx_unlink(pdc, s);
	s->state = UET_SLOT_AGAIN;
	uet_tx_push(pdc, &pdc->tx.again, s);
}

static void release_held(struct uet_pdc *pdc)
{
	struct uet_tx *tx = &pdc->tx;

	for (uint32_t psn = tx->una; tx->held > 0 && psn != tx->next; psn++) {
		struct uet_slot *s = uet_tx_slot(pdc, psn);

		if (s->state != UET_SLOT_HELD)
			continue;
		tx->held--;
		s->state = UET_SLOT_AGAIN;
		uet_tx_push(pdc, &tx->again, s);
	}
	tx->hold_until = UET_NEVER;
	if (pdc->ordered)
		go_back(pdc, UET_PATH_TIMEOUT, 0);
}

/* On the list of those that go again: to its front. */
static void go_first(struct uet_pdc *pdc, struct uet_slot *s)
{
	struct uet_slots *again = &pdc->tx.again;
	uint16_t i = index_of(pdc, s);

	if (again->first == i)
		return;
	uet_tx_unlink(pdc, s);
	s->prev = UET_NO_SLOT;
	s->next = again->first;
	pdc->tx.slot[again->first].prev = i;
	again->first = i;
}

/* Nothing was heard of what is under way. The peer may only not be running: one packet
 * asks, and the others wait for what its answer says of them. */
static void timeout(struct uet_pdc *pdc, uint64_t now)
{
	const struct uet_pds_config *c = &pdc->pds->config;
	struct uet_tx *tx = &pdc->tx;
	struct uet_slot *una = uet_tx_slot(pdc, tx->una);
	uint64_t since = tx->heard_at > tx->moved_at ? tx->heard_at : tx->moved_at;

	if (now - since >= c->give_up ||
	    now - tx->moved_at >= STUCK_FACTOR * c->give_up) {
		uet_pdc_end(pdc, -ETIMEDOUT, 0, now);
		return;
	}
	pdc->pds->stats.timeouts++;
	tx->backoff++;
	if (una->state == UET_SLOT_THERE)
		tx->ack_req_due = true;
	/* Responses that it still keeps hold back what it says has arrived. */
	if (tx->cack != tx->una - 1)
		tx->clear_due = true;
	/* What was asked may have been lost as well: two questions, on paths of their
	 * own. */
	if (tx->unproven || tx->backoff >= PROBE_TIMEOUTS)
		tx->probe_due = true;
	/* The lowest first: peers may be unable to take any other. */
	if (una->state == UET_SLOT_FLYING)
		uet_tx_lose(pdc, una, UET_PATH_TIMEOUT, now);
	tx->force = 0;
	/* Where that one is refused all the time it may be for want of another. */
	if (tx->flying.first != UET_NO_SLOT &&
	    (tx->nack_backoff > 0 || tx->again.first == UET_NO_SLOT)) {
		struct uet_slot *s = &tx->slot[tx->flying.first];

		uet_tx_lose(pdc, s, UET_PATH_TIMEOUT, now);
		go_first(pdc, s);
		tx->force++;
	}
	if (una->state == UET_SLOT_AGAIN)
		go_first(pdc, una);
	tx->force += tx->again.first != UET_NO_SLOT;
	tx->rto_at = now + rto_of(pdc);
}

void uet_tx_tick(struct uet_pdc *pdc, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;

	uet_nscc_tick(&pdc->cc, now);
	if (now >= tx->hold_until)
		release_held(pdc);
	if (now >= tx->probe_at) {
		tx->probe_at = UET_NEVER;
		if (tx->flying.first != UET_NO_SLOT && tx->probes_left > 0) {
			tx->probe_due = true;
			tx->probes_left--;
			if (tx->probes_left > 0)
				tx->probe_at = now + probe_wait(pdc);
		}
	}
	if (now >= tx->rto_at)
		timeout(pdc, now);
}

/* What leaves next. */

static void out_init(struct uet_pdc *pdc, struct uet_out *out, enum uet_class cls)
{
	out->peer = pdc->peer;
	out->pdc = pdc;
	out->cls = cls;
	out->entropy = 0;
	out->payload = NULL;
	out->payload_len = 0;
	out->slot = NULL;
	out->last = false;
}

static bool control(struct uet_pdc *pdc, uint8_t ctl, uint32_t psn, uint32_t payload,
		    uint64_t now, struct uet_out *out)
{
	struct uet_tx *tx = &pdc->tx;
	struct uet_pds_head h = {.type = UET_CP,
				 .ctl = ctl,
				 .rod = pdc->ordered,
				 .ar = true,
				 .psn = psn,
				 .spdcid = pdc->id,
				 .dpdcid = pdc->peer_id,
				 .payload = payload};

	if (ctl == UET_CTL_PROBE) {
		h.opaque = ++tx->probe_opaque;
		tx->probe_flying = true;
		tx->probe_order = tx->order;
		tx->probe_sent_at = now;
		pdc->pds->stats.probes++;
	}
	out_init(pdc, out, UET_CLASS_CONTROL);
	out->path = uet_paths_control(&pdc->paths);
	out->head_len = (uint32_t)uet_pds_put(out->head, &h);
	return true;
}

static bool next_control(struct uet_pdc *pdc, uint64_t now, struct uet_out *out)
{
	struct uet_tx *tx = &pdc->tx;

	if (pdc->peer_id == 0)
		return false;
	if (tx->probe_due) {
		tx->probe_due = false;
		return control(pdc, UET_CTL_PROBE, tx->una, tx->una, now, out);
	}
	if (tx->ack_req_due) {
		tx->ack_req_due = false;
		if (uet_tx_has(tx, tx->una))
			return control(pdc, UET_CTL_ACK_REQ, tx->una, 0, now, out);
	}
	if (tx->clear_due) {
		tx->clear_due = false;
		return control(pdc, UET_CTL_CLEAR_CMD, tx->una - 1, tx->una - 1, now,
			       out);
	}
	return false;
}

/* `asked`: for itself. */
static bool wants_ack(const struct uet_pdc *pdc, bool asked, uint32_t psn)
{
	return asked || psn == pdc->tx.cack + pdc->tx.range ||
	       uet_nscc_wants_ack(&pdc->cc);
}

/* How many packets like this one the window lets out. */
static uint64_t under_way(const struct uet_pdc *pdc, const struct uet_slot *s)
{
	uint64_t size = uet_tx_size(s) + UET_NSCC_OVERHEAD;
	uint64_t n = pdc->cc.cwnd / size;

	return n < pdc->pds->config.window ? n : pdc->pds->config.window;
}

/* Those that leave as one; 0: none do. */
static uint64_t piece_of(const struct uet_pdc *pdc, const struct uet_slot *s)
{
	return pdc->pds->config.piece / (uet_tx_size(s) + UET_NSCC_OVERHEAD);
}

/* The nominal size is counted before the packet says whether it wants an ack. */
static void slot_leaves(struct uet_pdc *pdc, struct uet_slot *s, uint64_t now)
{
	struct uet_tx *tx = &pdc->tx;

	if (s->tries == 0)
		pdc->pds->stats.sent++;
	else
		pdc->pds->stats.resent++;
	/* Until now its length was what had been counted. */
	if (s->emptied)
		s->payload_len = 0;
	if (pdc->paths.left == 0)
		uet_paths_window(&pdc->paths, under_way(pdc, s), piece_of(pdc, s));
	s->path = (uint8_t)uet_paths_pick(&pdc->paths, now, &s->number);
	pdc->paths.path[s->path].bytes += s->payload_len;
	/* One that is shorter than the one before it is the last of what leaves as one.
	 */
	if (s->payload_len < tx->last_len)
		uet_paths_piece(&pdc->paths);
	tx->last_len = s->payload_len;
	s->sent_at = now;
	s->untimed = false;
	s->order = ++tx->order;
	s->state = UET_SLOT_FLYING;
	uet_tx_push(pdc, &tx->flying, s);
	uet_nscc_sent(&pdc->cc, uet_tx_size(s));
	tx->force -= tx->force > 0;
}

static void send_slot(struct uet_pdc *pdc, uint32_t psn, uint64_t now,
		      struct uet_out *out)
{
	struct uet_slot *s = uet_tx_slot(pdc, psn);
	struct uet_pds_head h = {.psn = psn,
				 .spdcid = pdc->id,
				 .dpdcid = pdc->peer_id,
				 .retx = s->tries > 0,
				 .rod = pdc->ordered};
	bool asked = s->ar || h.retx;

	slot_leaves(pdc, s, now);
	h.ar = wants_ack(pdc, asked, psn);
	if (h.ar)
		uet_nscc_asked(&pdc->cc);
	s->tries += s->tries < UINT8_MAX;
	out_init(pdc, out, UET_CLASS_DATA);
	out->path = s->path;
	out->slot = s;
	out->last = pdc->paths.left == 0;
	if (s->next_hdr == UET_NEXT_NONE) {
		h.type = UET_CP;
		h.ctl = s->ctl;
		out->head_len = (uint32_t)uet_pds_put(out->head, &h);
	} else {
		h.type = pdc->ordered ? UET_ROD_REQ : UET_RUD_REQ;
		h.next = s->next_hdr;
		h.syn = pdc->initiator && pdc->peer_id == 0;
		h.syn_offset = (uint16_t)(h.syn ? psn - pdc->tx.start : 0);
		h.clear = pdc->tx.una - 1;
		out->head_len = (uint32_t)uet_pds_put(out->head, &h);
		copy_small(out->head + out->head_len, s->ses, s->ses_len);
		out->head_len += s->ses_len;
		out->payload = s->payload;
		out->payload_len = s->payload_len;
	}
	uet_tx_rearm(pdc, false, now);
}

void uet_pds_left(const struct uet_out *out, uint64_t now, bool sure)
{
	struct uet_slot *s = out->slot;

	if (!s || s->state != UET_SLOT_FLYING)
		return;
	s->sent_at = now;
	s->untimed = !sure;
}

/* A turn of a path begins where there is room for what leaves as one, if there is as much
 * of it: a few packets at a time cost as many calls as ten times as many. */
static bool may_begin(const struct uet_pdc *pdc)
{
	const struct uet_tx *tx = &pdc->tx;
	const struct uet_slot *s = uet_tx_slot(pdc, tx->next);
	uint64_t n;

	if (pdc->paths.left > 0)
		return true;
	n = piece_of(pdc, s);
	n = n < pdc->paths.burst ? n : pdc->paths.burst;
	return n == 0 || tx->end - tx->next < n ||
	       uet_nscc_has_room(&pdc->cc, n * uet_tx_size(s));
}

static bool may_send_new(const struct uet_pdc *pdc)
{
	const struct uet_tx *tx = &pdc->tx;
	bool syn = pdc->initiator && pdc->peer_id == 0;

	return tx->next != tx->end && tx->next - tx->cack <= tx->range &&
	       (!syn || tx->next - tx->start <= UET_SYN_MAX) &&
	       uet_nscc_can_send(&pdc->cc) && may_begin(pdc);
}

/* What would leave next, if anything. */
static const struct uet_slot *next_slot(const struct uet_pdc *pdc)
{
	const struct uet_tx *tx = &pdc->tx;

	if (tx->again.first != UET_NO_SLOT)
		return &tx->slot[tx->again.first];
	return tx->next != tx->end ? uet_tx_slot(pdc, tx->next) : NULL;
}

/* Answers go on while the peer refuses requests: it may be waiting for them. */
static bool is_back(const struct uet_slot *s)
{
	return s && s->next_hdr == UET_NEXT_RESP_DATA;
}

bool uet_tx_next(struct uet_pdc *pdc, uint64_t now, struct uet_out *out)
{
	struct uet_tx *tx = &pdc->tx;
	uint32_t psn;

	if (!uet_pdc_live(pdc))
		return false;
	if (next_control(pdc, now, out))
		return true;
	if (tx->held > 0 && !is_back(next_slot(pdc)))
		return false;
	if (tx->again.first != UET_NO_SLOT) {
		struct uet_slot *s = &tx->slot[tx->again.first];

		if (!tx->force && !tx->recovering && !uet_nscc_can_send(&pdc->cc))
			return false;
		/* Its number from its place: una and it are less than a ring apart. */
		psn = tx->una + ((uint32_t)(index_of(pdc, s) - tx->una) &
				 (pdc->pds->config.window - 1));
		uet_tx_unlink(pdc, s);
		send_slot(pdc, psn, now, out);
		return true;
	}
	if (!may_send_new(pdc))
		return false;
	if (tx->una == tx->next)
		tx->moved_at = now;
	psn = tx->next++;
	send_slot(pdc, psn, now, out);
	return true;
}
