/* SPDX-License-Identifier: BSD-2-Clause */
/* Transmit operations: allocation, states, completion. */
#include "config.h"

#include <stdlib.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"
#include "prov/proto/stage.h"

static const char *const state_names[] = {
	[TX_FREE] = "free",	    [TX_QUEUED] = "queued",
	[TX_WAIT_ACK] = "wait-ack", [TX_WAIT_CTS] = "wait-cts",
	[TX_HELP] = "help",	    [TX_STREAM] = "stream",
	[TX_WAIT_FIN] = "wait-fin", [TX_RMA] = "rma",
	[TX_EVENT] = "event",	    [TX_OVER] = "over",
	[TX_ATOMIC] = "atomic",	    [TX_WAIT_RESULT] = "wait-result",
	[TX_ORPHAN] = "orphan",
};
_Static_assert(sizeof(state_names) / sizeof(state_names[0]) == TX_STATES, "names");

const char *tx_state_name(enum tx_state s)
{
	return s < TX_STATES ? state_names[s] : "?";
}

/* Memory beside the operations of one chunk: their struct atomic_out, if there are any,
 * and their bounce buffers. */
struct tx_extra {
	struct tx_extra *next;
	char padding[64 - sizeof(struct tx_extra *)];
};

/* One more chunk; false: there may be none, or there is no memory. */
static bool tx_grow(struct proto_ep *ep)
{
	uint32_t first = pool_limit(&ep->tx), count = pool_chunk(&ep->tx);
	size_t outs = ep->atomics ? count * sizeof(struct atomic_out) : 0;
	struct tx_extra *extra;

	if (first >= ep->tx_max) {
		return false;
	}
	extra = malloc(sizeof(*extra) + outs + count * ep->inject_size);
	if (!extra || pool_grow(&ep->tx)) {
		free(extra);
		return false;
	}
	extra->next = ep->tx_extras;
	ep->tx_extras = extra;
	for (uint32_t i = 0; i < count; i++) {
		struct tx *tx = pool_at(&ep->tx, first + i);
		char *at = (char *)(extra + 1);

		tx->out = outs ? (struct atomic_out *)(void *)at + i : NULL;
		tx->bounce = at + outs + i * ep->inject_size;
	}
	return true;
}

int tx_pool_init(struct proto_ep *ep)
{
	int ret = pool_init(&ep->tx, sizeof(struct tx), ops_chunk(ep->tx_size));

	while (!ret && pool_limit(&ep->tx) < ep->tx_size) {
		ret = tx_grow(ep) ? 0 : -FI_ENOMEM;
	}
	return ret;
}

void tx_extras_fini(struct proto_ep *ep)
{
	while (ep->tx_extras) {
		struct tx_extra *next = ep->tx_extras->next;

		free(ep->tx_extras);
		ep->tx_extras = next;
	}
}

struct tx *tx_alloc(struct proto_ep *ep, struct proto_peer *pp)
{
	struct tx *tx = pool_alloc(&ep->tx);

	if (unlikely(!tx) && tx_grow(ep)) {
		tx = pool_alloc(&ep->tx);
	}
	if (likely(tx)) {
		tx->peer = pp;
		tx->bulk.count = 0;
		list_init(&tx->node);
	}
	return tx;
}

int tx_take_iov(struct proto_ep *ep, struct tx *tx, const struct iovec *iov, size_t count,
		size_t len)
{
	tx->x.total = len;
	if (tx->flags & PROTO_INJECT) {
		int err = iov_gather(iov, count, 0, tx->bounce, len);

		if (unlikely(err)) {
			pool_release(&ep->tx, tx);
			return err;
		}
		ep->injected++;
		tx->x.local[0] = (struct iovec){tx->bounce, len};
		tx->x.local_count = 1;
		return 0;
	}
	for (size_t i = 0; i < count; i++) {
		tx->x.local[i] = iov[i];
	}
	tx->x.local_count = count;
	return 0;
}

/* What the transfer had besides, or nothing. */
static void staged_end(struct tx *tx)
{
	stage_let_go(&tx->x);
	tx->x.stage = NULL;
}

void tx_complete(struct proto_ep *ep, struct tx *tx, int err)
{
	struct proto_done d = {.context = tx->context,
			       .source = FI_ADDR_NOTAVAIL,
			       .report = err || (tx->flags & PROTO_REPORT),
			       .err = -err};
	struct proto_peer *pp = tx->peer;

	if (tx->state == TX_RMA || tx->state == TX_EVENT || tx->state == TX_OVER ||
	    tx->state == TX_ORPHAN) {
		d.flags = FI_RMA | ((tx->flags & PROTO_WRITE) ? FI_WRITE : FI_READ);
	} else if (tx->state == TX_ATOMIC || tx->state == TX_WAIT_RESULT) {
		d.flags = FI_ATOMIC | ((tx->flags & PROTO_WRITE) ? FI_WRITE : FI_READ);
	} else {
		d.flags = FI_SEND | ((tx->flags & PROTO_TAGGED) ? FI_TAGGED : FI_MSG);
		d.tag = err ? tx->tag : 0;
	}
	if (unlikely(tx->bulk.count)) {
		bulk_release(ep, tx, UINT64_MAX);
	}
	if (unlikely(tx->x.regs)) { /* what it had announced by name */
		xfer_let_go(&tx->x);
	}
	if (unlikely(tx->x.stage)) {
		staged_end(tx);
	}
	if (unlikely(tx->x.lends)) {
		rndv_unlend(ep, &tx->x);
	}
	if (tx->flags & PROTO_INJECT) {
		ep->injected--;
	}
	list_remove(&tx->node);
	tx_set_state(tx, TX_FREE);
	pool_release(&ep->tx, tx);
	if (ep->closing) {
		return;
	}
	if (unlikely(err)) {
		proto_blame_set(ep, pp);
		ep->up->tx_done(ep->arg, &d);
		proto_blame_clear(ep);
		return;
	}
	ep->up->tx_done(ep->arg, &d);
}

void tx_complete_rma(struct proto_ep *ep, struct tx *tx)
{
	const struct proto_done d = {
		.context = tx->context,
		.source = FI_ADDR_NOTAVAIL,
		.flags = FI_RMA | (tx->flags & PROTO_WRITE ? FI_WRITE : FI_READ),
		.report = tx->flags & PROTO_REPORT};

	if (unlikely(tx->x.regs)) {
		xfer_let_go(&tx->x);
	}
	if (unlikely(tx->x.stage)) {
		staged_end(tx);
	}
	ep->injected -= !!(tx->flags & PROTO_INJECT);
	list_unlink(&tx->node);
	tx_set_state(tx, TX_FREE);
	pool_release(&ep->tx, tx);
	if (!ep->closing) {
		ep->up->tx_done(ep->arg, &d);
	}
}

void tx_fail(struct proto_ep *ep, struct tx *tx, int err)
{
	if (tx->state == TX_OVER) { /* done; only earlier ones held it back */
		tx_complete(ep, tx, tx->x.err);
		return;
	}
	if (tx->x.inflight == 0) {
		tx_complete(ep, tx, err);
		return;
	}
	/* Rule D3: its memory is still being written or read. */
	if (!tx->x.err) {
		tx->x.err = err;
	}
	list_remove(&tx->node);
	list_push_back(&ep->orphan_txs, &tx->node);
	tx_set_state(tx, TX_ORPHAN);
}

struct tx *tx_find(struct proto_ep *ep, struct proto_peer *pp, uint64_t id)
{
	struct tx *tx = pool_find(&ep->tx, id);

	return tx && tx->state != TX_FREE && proto_peer_is_same(tx->peer, pp) ? tx : NULL;
}
