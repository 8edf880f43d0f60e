/* SPDX-License-Identifier: BSD-2-Clause */
/* A context's life: from who opens it to the end of its quarantine. */
#include "config.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "prov/wire/uet/uet_pds_int.h"

#define BIT(state) (1u << (state))

struct state_row {
	const char *name;
	unsigned next; /* states that may follow */
};

static const struct state_row states[UET_PDC_STATES] = {
	[UET_PDC_FREE] = {"free", BIT(UET_PDC_SYN) | BIT(UET_PDC_HALF)},
	[UET_PDC_SYN] = {"syn",
			 BIT(UET_PDC_OPEN) | BIT(UET_PDC_QUIESCE) | BIT(UET_PDC_WAIT)},
	[UET_PDC_HALF] = {"half-open",
			  BIT(UET_PDC_OPEN) | BIT(UET_PDC_WAIT) | BIT(UET_PDC_FREE)},
	[UET_PDC_OPEN] = {"open", BIT(UET_PDC_QUIESCE) | BIT(UET_PDC_WAIT)},
	[UET_PDC_QUIESCE] = {"quiesce", BIT(UET_PDC_CLOSING) | BIT(UET_PDC_WAIT)},
	[UET_PDC_CLOSING] = {"closing", BIT(UET_PDC_WAIT)},
	[UET_PDC_WAIT] = {"wait", BIT(UET_PDC_FREE)},
};

void uet_pdc_become(struct uet_pdc *pdc, enum uet_pdc_state state)
{
	struct uet_pds *pds = pdc->pds;

	assert(states[pdc->state].next & BIT(state));
	pds->half -= pdc->state == UET_PDC_HALF;
	pds->half += state == UET_PDC_HALF;
	pdc->state = state;
}

const char *uet_pdc_state_name(const struct uet_pdc *pdc)
{
	return states[pdc->state].name;
}

static uint32_t peer_bucket(const struct uet_pds *pds, const struct uet_peer *peer)
{
	uint64_t a, b;

	memcpy(&a, peer->host, 8);
	memcpy(&b, peer->host + 8, 8);
	a = (a ^ (b + peer->fep) * UINT64_C(0x9e3779b97f4a7c15)) *
	    UINT64_C(0xff51afd7ed558ccd);
	return (uint32_t)(a >> 40) & (pds->buckets - 1);
}

static bool same_peer(const struct uet_peer *a, const struct uet_peer *b)
{
	return a->fep == b->fep && memcmp(a->host, b->host, sizeof(a->host)) == 0;
}

/* An id that nobody uses; 0: none was found. */
static uint16_t draw_id(struct uet_pds *pds)
{
	for (unsigned i = 0; i < 64; i++) {
		uint16_t id = (uint16_t)pds->config.random(pds->config.arg);

		if (id != 0 && !uet_pdc_find(pds, id))
			return id;
	}
	return 0;
}

static struct uet_pdc *take(struct uet_pds *pds, const struct uet_peer *peer,
			    bool ordered, uint64_t now)
{
	struct uet_path_config path = pds->config.path;
	uint16_t id = draw_id(pds);
	struct uet_pdc *pdc;

	if (id == 0 || list_empty(&pds->free))
		return NULL;
	pdc = container_of(list_pop_front(&pds->free), struct uet_pdc, ready);
	pdc->ctx = NULL;
	pdc->initiator = pdc->asked = pdc->ready_on = false;
	pdc->ordered = ordered;
	pdc->id = id;
	pdc->peer_id = 0;
	pdc->peer = *peer;
	pdc->hosts = 0;
	pdc->turn = 0;
	pdc->state_end = UET_NEVER;
	list_push_back(&pds->by_id[id & (pds->buckets - 1)], &pdc->by_id);
	if (ordered) /* one path, until it fails */
		path.burst = UINT32_MAX;
	uet_nscc_init(&pdc->cc, &pds->config.cc, now);
	uet_paths_init(&pdc->paths, &path, pds->config.random(pds->config.arg));
	return pdc;
}

int uet_pdc_dial(struct uet_pds *pds, const struct uet_peer *peer, bool ordered,
		 void *ctx, uint64_t now, struct uet_pdc **out)
{
	struct uet_pdc *pdc = take(pds, peer, ordered, now);
	uint32_t start;

	if (!pdc)
		return -EAGAIN;
	start = (uint32_t)pds->config.random(pds->config.arg);
	pdc->ctx = ctx;
	pdc->initiator = true;
	uet_pdc_become(pdc, UET_PDC_SYN);
	uet_tx_init(pdc, start, now);
	uet_rx_init(pdc, start);
	pds->stats.dialled++;
	*out = pdc;
	return 0;
}

/* One that its peer has left without a word: nothing is open, nothing was heard. */
static bool is_idle(const struct uet_pdc *pdc, uint64_t now)
{
	return pdc->state == UET_PDC_OPEN && pdc->tx.una == pdc->tx.end &&
	       pdc->rx.gtds == 0 && now - pdc->tx.heard_at >= pdc->pds->config.give_up;
}

/* How many this peer has opened; one that can be had back, in *idle. */
static uint32_t count_of(struct uet_pds *pds, const struct uet_peer *peer, uint64_t now,
			 struct uet_pdc **idle)
{
	struct list *bucket = &pds->by_peer[peer_bucket(pds, peer)];
	uint32_t n = 0;

	*idle = NULL;
	list_foreach (pos, bucket) {
		struct uet_pdc *pdc = container_of(pos, struct uet_pdc, by_peer);

		if (!same_peer(&pdc->peer, peer))
			continue;
		n++;
		if (is_idle(pdc, now))
			*idle = pdc;
	}
	return n;
}

static struct uet_pdc *known(struct uet_pds *pds, const struct uet_peer *peer,
			     uint16_t peer_id)
{
	struct list *bucket = &pds->by_peer[peer_bucket(pds, peer)];

	list_foreach (pos, bucket) {
		struct uet_pdc *pdc = container_of(pos, struct uet_pdc, by_peer);

		if (pdc->peer_id == peer_id && same_peer(&pdc->peer, peer))
			return pdc;
	}
	return NULL;
}

/* All are in use: the one that was left alone the longest. */
static struct uet_pdc *longest_idle(struct uet_pds *pds, uint64_t now)
{
	struct uet_pdc *best = NULL;

	for (uint32_t i = 0; i < pds->config.contexts; i++) {
		struct uet_pdc *pdc = &pds->pdc[i];

		if (!pdc->initiator && is_idle(pdc, now) &&
		    (!best || pdc->tx.heard_at < best->tx.heard_at))
			best = pdc;
	}
	return best;
}

/* Room for one more of this peer's. What peers have that were heard of lately is never
 * taken from them, whoever asks; peers that died without a word must not fill the place
 * for ever. */
static bool make_room(struct uet_pds *pds, const struct uet_peer *peer, uint64_t now)
{
	struct uet_pdc *idle;
	bool full = count_of(pds, peer, now, &idle) >= pds->config.per_peer;

	if (pds->half >= pds->config.half_open)
		return false;
	if (!full && !list_empty(&pds->free))
		return true;
	if (!full)
		idle = longest_idle(pds, now);
	if (!idle)
		return false;
	pds->stats.reaped++;
	uet_pdc_end(idle, -ETIMEDOUT, 0, now);
	uet_pdc_free(idle);
	return true;
}

struct uet_pdc *uet_pdc_accept(struct uet_pds *pds, const struct uet_in *in,
			       const struct uet_pkt *pkt, uint64_t now)
{
	const struct uet_pds_head *h = &pkt->pds;
	struct uet_pdc *pdc = known(pds, &in->from, h->spdcid);

	if (pdc)
		return pdc;
	pdc = make_room(pds, &in->from, now) ? take(pds, &in->from, h->rod, now) : NULL;
	if (!pdc) {
		uet_pds_refuse(pds, in, h, UET_NACK_NO_PDC);
		return NULL;
	}
	pdc->peer_id = h->spdcid;
	pdc->state_end = now + pds->config.half_open_time;
	uet_pdc_become(pdc, UET_PDC_HALF);
	list_push_back(&pds->by_peer[peer_bucket(pds, &pdc->peer)], &pdc->by_peer);
	uet_tx_init(pdc, h->psn - h->syn_offset, now);
	uet_rx_init(pdc, h->psn - h->syn_offset);
	if (pds->config.events->opened(pds->config.arg, pdc, pkt)) {
		uet_pdc_free(pdc);
		uet_pds_refuse(pds, in, h, UET_NACK_NO_PDC);
		return NULL;
	}
	pds->stats.opened++;
	return pdc;
}

void uet_pdc_free(struct uet_pdc *pdc)
{
	struct uet_pds *pds = pdc->pds;

	uet_pdc_become(pdc, UET_PDC_FREE);
	if (pdc->ready_on)
		list_remove(&pdc->ready);
	pdc->ready_on = false;
	list_remove(&pdc->by_id);
	list_remove(&pdc->by_peer);
	/* The longest free is used first: its ids have been silent the longest. */
	list_push_back(&pds->free, &pdc->ready);
}

void uet_pdc_end(struct uet_pdc *pdc, int err, uint8_t code, uint64_t now)
{
	struct uet_pds *pds = pdc->pds;

	if (!uet_pdc_live(pdc))
		return;
	uet_pdc_become(pdc, UET_PDC_WAIT);
	pdc->state_end = now + pds->config.quarantine;
	pds->stats.closed += err == 0;
	pds->stats.failed += err != 0;
	uet_tx_fail(pdc, err ? err : -ECONNRESET);
	for (uint32_t i = 0; i < pds->config.responses; i++)
		pdc->rx.gtd[i].used = false;
	pdc->rx.gtds = 0;
	pds->config.events->closed(pds->config.arg, pdc, err, code);
	uet_pds_ready(pdc);
	uet_pds_timer(pdc);
}

/* Everything is through: the next step of closing, if it was asked for. */
void uet_pdc_try_close(struct uet_pdc *pdc, uint64_t now)
{
	if (pdc->tx.una != pdc->tx.end)
		return;
	if (pdc->state == UET_PDC_CLOSING) {
		uet_pdc_end(pdc, 0, 0, now);
	} else if (pdc->state == UET_PDC_QUIESCE && pdc->peer_id != 0) {
		uet_pdc_become(pdc, UET_PDC_CLOSING);
		uet_tx_control(pdc, UET_CTL_CLOSE_CMD, now);
	}
}

void uet_pdc_close(struct uet_pdc *pdc, uint64_t now)
{
	if (pdc->initiator && (pdc->state == UET_PDC_SYN || pdc->state == UET_PDC_OPEN)) {
		uet_pdc_become(pdc, UET_PDC_QUIESCE);
		/* Nobody knows of it yet: `closed` comes from the next tick. */
		if (pdc->peer_id == 0 && pdc->tx.una == pdc->tx.end)
			pdc->state_end = now;
		uet_pdc_try_close(pdc, now);
	} else if (!pdc->initiator && uet_pdc_live(pdc) && !pdc->asked) {
		pdc->asked = true;
		pdc->state_end = now + pdc->pds->config.close_time;
		pdc->rx.ack_due = true;
		uet_tx_control(pdc, UET_CTL_CLOSE_REQ, now);
	}
	uet_pds_ready(pdc);
	uet_pds_timer(pdc);
}

void uet_pdc_abort(struct uet_pdc *pdc, int err, uint64_t now)
{
	uet_pdc_end(pdc, err, 0, now);
}

uint64_t uet_pdc_next_due(const struct uet_pdc *pdc)
{
	uint64_t due = pdc->state_end;
	uint64_t tx;

	if (pdc->state == UET_PDC_FREE)
		return UET_NEVER;
	if (pdc->rx.ack_any && !pdc->rx.ack_due && pdc->rx.ack_at < due)
		due = pdc->rx.ack_at;
	tx = uet_pdc_live(pdc) ? uet_tx_due(pdc) : UET_NEVER;
	return tx < due ? tx : due;
}

static void state_ended(struct uet_pdc *pdc, uint64_t now)
{
	switch (pdc->state) {
	case UET_PDC_WAIT:
		uet_pdc_free(pdc);
		break;
	case UET_PDC_HALF:
		pdc->pds->stats.reaped++;
		uet_pdc_end(pdc, -ETIMEDOUT, 0, now);
		uet_pdc_free(pdc);
		break;
	case UET_PDC_QUIESCE:
		uet_pdc_end(pdc, 0, 0, now);
		break;
	default:
		uet_pdc_end(pdc, -ETIMEDOUT, 0, now);
	}
}

void uet_pdc_tick(struct uet_pdc *pdc, uint64_t now)
{
	if (pdc->state == UET_PDC_FREE)
		return;
	if (now >= pdc->state_end)
		state_ended(pdc, now);
	if (pdc->state == UET_PDC_FREE)
		return;
	if (pdc->rx.ack_any && now >= pdc->rx.ack_at)
		pdc->rx.ack_due = true;
	if (uet_pdc_live(pdc))
		uet_tx_tick(pdc, now);
	uet_pds_ready(pdc);
}

void *uet_pdc_ctx(const struct uet_pdc *pdc)
{
	return pdc->ctx;
}

void uet_pdc_set_ctx(struct uet_pdc *pdc, void *ctx)
{
	pdc->ctx = ctx;
}

const struct uet_peer *uet_pdc_peer(const struct uet_pdc *pdc)
{
	return &pdc->peer;
}

bool uet_pdc_initiator(const struct uet_pdc *pdc)
{
	return pdc->initiator;
}

bool uet_pdc_ordered(const struct uet_pdc *pdc)
{
	return pdc->ordered;
}

uint32_t uet_pdc_open_packets(const struct uet_pdc *pdc)
{
	return pdc->tx.end - pdc->tx.una;
}

void uet_pdc_set_payload(struct uet_pdc *pdc, uint32_t payload)
{
	uet_nscc_set_packet(&pdc->cc, uet_nominal(payload));
}

void uet_pdc_one_way(struct uet_pdc *pdc)
{
	pdc->paths.share = 1;
}

const struct uet_nscc *uet_pdc_nscc(const struct uet_pdc *pdc)
{
	return &pdc->cc;
}

const struct uet_paths *uet_pdc_paths(const struct uet_pdc *pdc)
{
	return &pdc->paths;
}
