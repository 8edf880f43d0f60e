/* SPDX-License-Identifier: BSD-2-Clause */
/* All contexts of an endpoint: their memory, who a packet is for, whose turn it is to
 * send, and whose timer is next. */
#include "config.h"

#include "prov/wire/uet/uet_pds_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define US UINT64_C(1000)
#define MS UINT64_C(1000000)

static void set32(uint32_t *field, uint32_t value)
{
	if (*field == 0)
		*field = value;
}

static void set64(uint64_t *field, uint64_t value)
{
	if (*field == 0)
		*field = value;
}

static void path_defaults(struct uet_path_config *p)
{
	set32(&p->paths, 8);
	set32(&p->burst, 4);
	set32(&p->strikes, 3);
	set64(&p->retry_min, 10 * MS);
	set64(&p->retry_max, 1000 * MS);
}

uint32_t uet_nominal(uint32_t payload)
{
	return payload + (uint32_t)(sizeof(struct uet_req_bytes) +
				    sizeof(struct uet_std_bytes) + UET_NSCC_OVERHEAD);
}

static void cc_defaults(struct uet_pds_config *c)
{
	set64(&c->cc.link, UINT64_C(5000000000));
	set64(&c->cc.first_rtt, 50 * US);
	set64(&c->cc.jitter, 100 * US);
	set32(&c->cc.mtu, uet_nominal(c->mtu));
	c->cc.ack_bytes = c->ack_bytes;
}

static struct uet_pds_config with_defaults(const struct uet_pds_config *config)
{
	struct uet_pds_config c = *config;

	set32(&c.contexts, 256);
	set32(&c.half_open, (c.contexts + 3) / 4);
	set32(&c.per_peer, 8);
	set32(&c.window, 256);
	set32(&c.responses, 16);
	set32(&c.mtu, 4096);
	set32(&c.ack_bytes, 16384);
	set32(&c.ack_most, c.ack_bytes);
	set32(&c.path_reorder, 3);
	set64(&c.ack_delay, 100 * US);
	set64(&c.rto_init, 20 * MS);
	set64(&c.rto_max, 500 * MS);
	set64(&c.give_up, 20000 * MS);
	set64(&c.nack_wait, 200 * US);
	set64(&c.half_open_time, 10000 * MS);
	set64(&c.close_time, 2000 * MS);
	set64(&c.quarantine, 2000 * MS);
	path_defaults(&c.path);
	cc_defaults(&c);
	return c;
}

static bool config_good(const struct uet_pds_config *c)
{
	struct uet_nscc cc;
	struct uet_paths paths;

	return c->contexts <= 32768 && c->half_open <= c->contexts &&
	       c->window >= UET_WINDOW_MIN && c->window <= UET_WINDOW_MAX &&
	       (c->window & (c->window - 1)) == 0 && c->responses <= c->window &&
	       c->mtu <= UET_PAYLOAD_MAX && c->rto_init <= c->rto_max && c->random &&
	       c->events && c->events->request && c->events->done && c->events->opened &&
	       c->events->closed && uet_nscc_init(&cc, &c->cc, 0) &&
	       uet_paths_init(&paths, &c->path, 1);
}

static uint32_t buckets_for(uint32_t contexts)
{
	uint32_t n = 16;

	while (n < contexts)
		n *= 2;
	return n;
}

/* The pieces of the one allocation, in this order; each begins at a multiple of 64. */
struct layout {
	size_t pdc, heap, by_id, by_peer, slot, bits, gtd, size;
	size_t words;
};

static size_t place(size_t *at, size_t len)
{
	size_t here = *at;

	*at += (len + 63) & ~(size_t)63;
	return here;
}

static struct layout layout_of(const struct uet_pds_config *c)
{
	size_t buckets = buckets_for(c->contexts);
	struct layout l = {.words = (c->window + 63) / 64};

	place(&l.size, sizeof(struct uet_pds));
	l.pdc = place(&l.size, c->contexts * sizeof(struct uet_pdc));
	l.heap = place(&l.size, c->contexts * sizeof(struct uet_pdc *));
	l.by_id = place(&l.size, buckets * sizeof(struct list));
	l.by_peer = place(&l.size, buckets * sizeof(struct list));
	l.slot =
		place(&l.size, (size_t)c->contexts * c->window * sizeof(struct uet_slot));
	l.bits = place(&l.size, c->contexts * l.words * sizeof(uint64_t));
	l.gtd = place(&l.size,
		      (size_t)c->contexts * c->responses * sizeof(struct uet_gtd));
	return l;
}

size_t uet_pds_size(const struct uet_pds_config *config)
{
	struct uet_pds_config c = with_defaults(config);

	return layout_of(&c).size;
}

int uet_pds_open(const struct uet_pds_config *config, struct uet_pds **out)
{
	struct uet_pds_config c = with_defaults(config);
	struct layout l = layout_of(&c);
	struct uet_pds *pds;
	char *base;

	if (!config_good(&c))
		return -EINVAL;
	base = calloc(1, l.size); /* what no context uses is never touched */
	if (!base)
		return -ENOMEM;
	pds = (void *)base;
	pds->config = c;
	pds->pdc = (void *)(base + l.pdc);
	pds->heap = (void *)(base + l.heap);
	pds->by_id = (void *)(base + l.by_id);
	pds->by_peer = (void *)(base + l.by_peer);
	pds->buckets = buckets_for(c.contexts);
	list_init(&pds->ready);
	list_init(&pds->free);
	for (uint32_t i = 0; i < pds->buckets; i++) {
		list_init(&pds->by_id[i]);
		list_init(&pds->by_peer[i]);
	}
	for (uint32_t i = 0; i < c.contexts; i++) {
		struct uet_pdc *pdc = &pds->pdc[i];

		pdc->pds = pds;
		pdc->tx.slot = (struct uet_slot *)(base + l.slot) + (size_t)i * c.window;
		pdc->rx.bits = (uint64_t *)(base + l.bits) + i * l.words;
		pdc->rx.gtd = (struct uet_gtd *)(base + l.gtd) + (size_t)i * c.responses;
		pdc->due = UET_NEVER;
		pdc->heap = i;
		pds->heap[i] = pdc;
		list_init(&pdc->by_id);
		list_init(&pdc->by_peer);
		list_push_back(&pds->free, &pdc->ready);
	}
	*out = pds;
	return 0;
}

void uet_pds_close(struct uet_pds *pds)
{
	free(pds);
}

const struct uet_pds_stats *uet_pds_stats(const struct uet_pds *pds)
{
	return &pds->stats;
}

const struct uet_pds_config *uet_pds_config(const struct uet_pds *pds)
{
	return &pds->config;
}

void uet_pds_press(struct uet_pds *pds, uint32_t pend)
{
	pds->restore = pend == 0;
	pds->pend = pend > 127 ? 127 : pend;
}

struct uet_pdc *uet_pdc_find(struct uet_pds *pds, uint16_t id)
{
	struct list *bucket = &pds->by_id[id & (pds->buckets - 1)];

	list_foreach (pos, bucket) {
		struct uet_pdc *pdc = container_of(pos, struct uet_pdc, by_id);

		if (pdc->id == id)
			return pdc;
	}
	return NULL;
}

void uet_pds_ready(struct uet_pdc *pdc)
{
	if (pdc->ready_on || pdc->state == UET_PDC_FREE)
		return;
	pdc->ready_on = true;
	list_push_back(&pdc->pds->ready, &pdc->ready);
}

/* The heap of timers: the earliest key on top; every context is in it. */

static void heap_put(struct uet_pds *pds, uint32_t at, struct uet_pdc *pdc)
{
	pds->heap[at] = pdc;
	pdc->heap = at;
}

static void heap_up(struct uet_pds *pds, struct uet_pdc *pdc)
{
	uint32_t at = pdc->heap;

	while (at > 0 && pds->heap[(at - 1) / 2]->due > pdc->due) {
		heap_put(pds, at, pds->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	heap_put(pds, at, pdc);
}

static void heap_down(struct uet_pds *pds, struct uet_pdc *pdc)
{
	uint32_t n = pds->config.contexts;
	uint32_t at = pdc->heap;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < n && pds->heap[child + 1]->due < pds->heap[child]->due)
			child++;
		if (child >= n || pds->heap[child]->due >= pdc->due)
			break;
		heap_put(pds, at, pds->heap[child]);
		at = child;
	}
	heap_put(pds, at, pdc);
}

/* A timer that is later now stays where it is until it comes up: most never do. */
void uet_pds_timer(struct uet_pdc *pdc)
{
	uint64_t due = uet_pdc_next_due(pdc);

	if (due >= pdc->due)
		return;
	pdc->due = due;
	heap_up(pdc->pds, pdc);
}

uint64_t uet_pds_due(const struct uet_pds *pds)
{
	return pds->heap[0]->due;
}

void uet_pds_tick(struct uet_pds *pds, uint64_t now)
{
	while (pds->heap[0]->due <= now) {
		struct uet_pdc *pdc = pds->heap[0];
		uint64_t due;

		uet_pdc_tick(pdc, now);
		due = uet_pdc_next_due(pdc);
		pdc->due = due > now ? due : now + 1;
		heap_down(pds, pdc);
	}
}

void uet_pds_refuse(struct uet_pds *pds, const struct uet_in *in,
		    const struct uet_pds_head *to, uint8_t code)
{
	struct uet_stray *stray;

	if (pds->strays == UET_STRAYS) {
		pds->stats.unanswered++;
		return;
	}
	stray = &pds->stray[(pds->stray_first + pds->strays++) % UET_STRAYS];
	stray->peer = in->from;
	stray->entropy = in->entropy;
	stray->head = (struct uet_pds_head){.type = UET_NACK,
					    .retx = to->retx,
					    .mark = in->ce,
					    .code = code,
					    .psn = to->psn,
					    .dpdcid = to->spdcid};
	pds->stats.refused++;
}

static bool stray_next(struct uet_pds *pds, struct uet_out *out)
{
	struct uet_stray *stray = &pds->stray[pds->stray_first];

	if (pds->strays == 0)
		return false;
	pds->stray_first = (pds->stray_first + 1) % UET_STRAYS;
	pds->strays--;
	out->peer = stray->peer;
	out->pdc = NULL;
	out->cls = UET_CLASS_CONTROL;
	out->path = UET_PATH_ECHO;
	out->entropy = stray->entropy;
	out->payload = NULL;
	out->payload_len = 0;
	out->slot = NULL;
	out->last = false;
	out->head_len = (uint32_t)uet_pds_put(out->head, &stray->head);
	return true;
}

bool uet_pds_next(struct uet_pds *pds, uint64_t now, struct uet_out *out)
{
	if (stray_next(pds, out))
		return true;
	while (!list_empty(&pds->ready)) {
		struct uet_pdc *pdc =
			container_of(pds->ready.next, struct uet_pdc, ready);
		bool some = uet_rx_next(pdc, now, out) || uet_tx_next(pdc, now, out);

		if (!some || ++pdc->turn >= pdc->paths.burst) {
			pdc->turn = 0;
			list_remove(&pdc->ready);
			pdc->ready_on = false;
			if (some)
				uet_pds_ready(pdc);
		}
		uet_pds_timer(pdc);
		if (some)
			return true;
	}
	return false;
}

/* Only the host: a path is a port. */
int uet_pdc_host(const struct uet_pdc *pdc, const struct uet_in *in)
{
	if (memcmp(pdc->peer.host, in->from.host, sizeof(pdc->peer.host)) == 0)
		return 0;
	for (uint32_t i = 0; i < pdc->hosts; i++) {
		if (memcmp(pdc->host[i], in->from.host, sizeof(pdc->host[i])) == 0)
			return (int)i + 1;
	}
	return -1;
}

int uet_pdc_add_host(struct uet_pdc *pdc, const uint8_t host[16])
{
	if (pdc->hosts == UET_HOSTS_MORE)
		return -ENOSPC;
	memcpy(pdc->host[pdc->hosts++], host, sizeof(pdc->host[0]));
	return 0;
}

void uet_pdc_try_path(struct uet_pdc *pdc, uint32_t path, uint64_t now)
{
	uet_paths_try(&pdc->paths, path, now);
}

/* The peer has used our id, so it gets what we send; and it may have told us its own. */
static void proven(struct uet_pdc *pdc, const struct uet_pds_head *h, uint64_t now)
{
	if (pdc->initiator && pdc->peer_id == 0 && h->spdcid != 0) {
		pdc->peer_id = h->spdcid;
		pdc->tx.unproven = true;
		pdc->tx.probe_due = true;
		if (pdc->state == UET_PDC_SYN)
			uet_pdc_become(pdc, UET_PDC_OPEN);
	} else if (pdc->state == UET_PDC_HALF) {
		uet_pdc_become(pdc, UET_PDC_OPEN);
		if (!pdc->asked)
			pdc->state_end = UET_NEVER;
	}
	pdc->tx.heard_at = now;
}

static struct uet_pdc *context_of(struct uet_pds *pds, const struct uet_in *in,
				  const struct uet_pds_head *h)
{
	struct uet_pdc *pdc = uet_pdc_find(pds, h->dpdcid);

	if (!pdc || uet_pdc_host(pdc, in) < 0)
		return NULL;
	if (h->spdcid != pdc->peer_id && pdc->peer_id != 0)
		return h->type == UET_NACK && h->spdcid == 0 ? pdc : NULL;
	return pdc;
}

static struct uet_pdc *opened_by(struct uet_pds *pds, const struct uet_in *in,
				 const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_pdc *pdc = uet_pdc_accept(pds, in, pkt, now);

	if (pdc && h->rod != pdc->ordered) {
		uet_pds_refuse(pds, in, h, UET_NACK_MODE_MISMATCH);
		return NULL;
	}
	if (pdc && h->psn - h->syn_offset != pdc->rx.start) {
		uet_pds_refuse(pds, in, h,
			       pdc->state == UET_PDC_WAIT ? UET_NACK_NO_PDC
							  : UET_NACK_INVALID_SYN);
		return NULL;
	}
	return pdc;
}

static void rx_request(struct uet_pds *pds, const struct uet_in *in,
		       const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_pdc *pdc;

	if (h->syn) {
		pdc = h->type == UET_CP ? NULL : opened_by(pds, in, pkt, now);
		if (!pdc) {
			pds->stats.stray++;
			return;
		}
	} else {
		pdc = context_of(pds, in, h);
		if (!pdc) {
			pds->stats.stray++;
			uet_pds_refuse(pds, in, h, UET_NACK_INV_DPDCID);
			return;
		}
		if (h->rod != pdc->ordered) {
			uet_pds_refuse(pds, in, h, UET_NACK_MISMATCH);
			return;
		}
		/* Somebody who guessed an id doesn't know where its numbers begin. */
		if (pdc->peer_id == 0 && h->psn - pdc->rx.start >= pds->config.window) {
			pds->stats.stray++;
			return;
		}
		if (uet_pdc_live(pdc))
			proven(pdc, h, now);
	}
	if (h->type == UET_CP)
		uet_rx_control(pdc, in, pkt, now);
	else
		uet_rx_request(pdc, in, pkt, now);
	uet_pds_ready(pdc);
	uet_pds_timer(pdc);
}

static void rx_answer(struct uet_pds *pds, const struct uet_in *in,
		      const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_pdc *pdc = context_of(pds, in, h);

	if (!pdc || !uet_pdc_live(pdc)) {
		pds->stats.stray++;
		return;
	}
	if (h->type == UET_NACK) {
		/* Refused by a context that there is: its first ack may be far. */
		if (h->spdcid != 0 && uet_tx_has(&pdc->tx, h->psn))
			proven(pdc, h, now);
		uet_nack_rx(pdc, pkt, now);
	} else if (uet_ack_plausible(pdc, h)) {
		proven(pdc, h, now);
		uet_ack_rx(pdc, in, pkt, now);
	} else {
		pds->stats.stray++;
	}
	uet_pds_ready(pdc);
	uet_pds_timer(pdc);
}

void uet_pds_rx(struct uet_pds *pds, const struct uet_in *in, const struct uet_pkt *pkt,
		uint64_t now)
{
	switch (pkt->pds.type) {
	case UET_ACK:
	case UET_ACK_CC:
	case UET_NACK:
		rx_answer(pds, in, pkt, now);
		break;
	default:
		rx_request(pds, in, pkt, now);
	}
}
