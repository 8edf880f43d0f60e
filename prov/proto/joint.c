/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Joint transfers: a message that the receiver pulls, in pieces from its start, while the
 * sender pushes pieces from its end, until they meet. JOIN tells the sender where; both
 * take pieces out of a cell that both see (wire.h). One copy of each byte, but two
 * processors at work; a sender that is busy with something else, or never looks, leaves
 * the whole message to the receiver.
 *
 * What the sender took must be there, or the sender gone, before the receive completes,
 * with success or without (rules D3, D4).
 */
#include "config.h"

#include <rdma/fi_errno.h>

#include "prov/proto/ep.h"

/* Pieces of one message, unless they would be too small to be worth a system call, or so
 * large that the one who is through first waits long for the other. */
#define JOINT_PIECES	4
#define JOINT_PIECE_MIN (32u << 10)
#define JOINT_PIECE_MAX (256u << 10)
/* Pieces in a row before packets are looked at again. */
#define JOINT_BURST 4

/* ---- receiver ---------------------------------------------------------------------- */

static uint32_t piece_size(uint64_t want)
{
	uint64_t piece = (want / JOINT_PIECES + 4095) & ~(uint64_t)4095;

	if (piece < JOINT_PIECE_MIN) {
		return JOINT_PIECE_MIN;
	}
	return piece < JOINT_PIECE_MAX ? (uint32_t)piece : JOINT_PIECE_MAX;
}

/* The first `want` bytes of the pieces, as the packet has them. */
static uint32_t describe(const struct iovec *iov, uint32_t count, uint64_t want,
			 struct pkt_view_iov *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count && want > 0; i++) {
		uint64_t here = iov[i].iov_len < want ? iov[i].iov_len : want;

		if (here > 0) {
			out[n].addr = (uintptr_t)iov[i].iov_base;
			out[n++].len = here;
			want -= here;
		}
	}
	return n;
}

/* Nothing was announced yet, so nobody can have taken anything. */
static bool offer_withdraw(struct proto_ep *ep, struct arrival *a)
{
	ep->wire->joint_close(ep->wep, &a->j);
	ep->wire->joint_quiet(ep->wep, &a->j);
	return false;
}

/* Where JOIN goes, and where its cell is: the same as long as the epoch runs, and nothing
 * is pulled after that. */
static struct wire_link *offer_link(const struct arrival *a)
{
	return a->peer->peer.link;
}

bool joint_offer(struct proto_ep *ep, struct arrival *a)
{
	struct wire_link *link = offer_link(a);
	struct pkt_view v = {
		.id = a->tx_id, .total = a->want, .piece = piece_size(a->want)};
	uint64_t pieces = (a->want + v.piece - 1) / v.piece;
	void *pkt;

	if (a->want < ep->joint_size || !wire_link_base(link)->caps.joints ||
	    a->peer->joint_broken || pieces < 2 || pieces > WIRE_JOINT_MAX ||
	    link_ops(link)->joint_open(link, (uint32_t)pieces, &a->j)) {
		return false;
	}
	pkt = link_reserve(link, PKT_JOIN_MAX, WIRE_CONTROL);
	if (!pkt) {
		return offer_withdraw(ep, a);
	}
	v.slot = a->j.cell;
	v.turn = a->j.turn;
	v.len = describe(a->claim.iov, a->claim.count, a->want, v.iov);
	link_commit(link, pkt, pkt_put_join(pkt, &v));
	a->joint = true;
	a->joint_met = false;
	a->piece = v.piece;
	a->x.total = 0; /* what was taken, so far */
	return true;
}

/* False: there is none. */
static bool piece_take(struct arrival *a)
{
	struct wire_link *link = offer_link(a);
	uint32_t k = link_ops(link)->joint_take(link, &a->j, true);
	uint64_t end;

	if (k == WIRE_JOINT_NONE) {
		a->joint_met = true;
		return false;
	}
	end = ((uint64_t)k + 1) * a->piece;
	a->x.total = end < a->want ? end : a->want;
	return true;
}

/* Everything was taken by one side or the other, or this side failed. */
static void joint_end(struct proto_ep *ep, struct arrival *a)
{
	struct wire_link *link = offer_link(a);
	enum wire_joint_state state =
		a->x.err ? WIRE_JOINT_BROKEN : link_ops(link)->joint_look(link, &a->j);

	if (state == WIRE_JOINT_BUSY) {
		return; /* the link gives a sign when that changes */
	}
	ep->wire->joint_close(ep->wep, &a->j);
	if (!ep->wire->joint_quiet(ep->wep, &a->j)) {
		return;
	}
	a->joint = false;
	a->x.total = a->want;
	if (state == WIRE_JOINT_DONE) {
		a->x.issued = a->want;
	} else {
		a->peer->joint_broken |= !a->x.err; /* the rest is pulled */
	}
}

int joint_pull(struct proto_ep *ep, struct arrival *a)
{
	struct xfer *x = &a->x;
	int moved = 0;

	while (!a->joint_met && moved < JOINT_BURST) {
		int n;

		if (x->issued == x->total && !piece_take(a)) {
			break;
		}
		n = xfer_run(x, a->pull_link, ep->regs, x->total - x->issued);
		moved += n;
		if (x->err) {
			a->joint_met = true;
		} else if (n == 0) {
			break;
		}
	}
	if (a->joint_met) {
		joint_end(ep, a);
	} else {
		ep->busy = true;
	}
	return moved;
}

bool joint_abandon(struct proto_ep *ep, struct arrival *a)
{
	ep->wire->joint_close(ep->wep, &a->j);
	if (ep->wire->joint_quiet(ep->wep, &a->j)) {
		a->joint = false;
		return true;
	}
	ep->joint_orphans++;
	ep->chores = true;
	return false;
}

void joints_abandon(struct proto_ep *ep)
{
	for (uint32_t i = 0; i < pool_limit(&ep->arrivals); i++) {
		struct arrival *a = pool_at(&ep->arrivals, i);

		if (a->state == ARRIVAL_PULL && a->joint) {
			rndv_fail(ep, a, -FI_ECANCELED);
		}
	}
}

int joints_settle(struct proto_ep *ep)
{
	int settled = 0;

	list_foreach_safe (n, next, &ep->orphan_arrivals) {
		struct arrival *a = container_of(n, struct arrival, node);

		if (a->joint && ep->wire->joint_quiet(ep->wep, &a->j)) {
			a->joint = false;
			ep->joint_orphans--;
			settled++;
			arrival_complete(ep, a, a->x.err);
			arrival_release(ep, a);
		}
	}
	return settled;
}

/* ---- sender ------------------------------------------------------------------------ */

void join_arrived(struct proto_ep *ep, struct proto_peer *pp, struct wire_link *link,
		  const struct pkt_view *v)
{
	const struct wire_caps *caps = &wire_link_base(link)->caps;
	struct tx *tx = tx_find(ep, pp, v->id);

	if (!tx || tx->state != TX_WAIT_CTS) {
		return; /* failed meanwhile */
	}
	if (v->total > tx->x.total) {
		proto_violation(ep, link);
		return;
	}
	/* Who can't help needn't say so. Nor does who would push through a link that
	 * isn't its peer's. (The end of any current link is the peer's: no piece is
	 * pushed after it.) */
	if (tx->peer != pp || !peer_link_is_current(&pp->peer, link) ||
	    v->slot >= caps->joints) {
		return;
	}
	tx->link = link;
	tx->help = (struct help){
		.j = {.cell = v->slot,
		      .turn = v->turn,
		      .pieces = (uint32_t)((v->total - 1) / v->piece + 1)},
		.piece = v->piece,
		.want = v->total,
	};
	tx->x.remote_count = v->len;
	for (uint32_t i = 0; i < v->len; i++) {
		tx->x.remote[i].addr = v->iov[i].addr;
		tx->x.remote[i].len = v->iov[i].len;
	}
	list_remove(&tx->node);
	list_push_back(&pp->helps, &tx->node);
	tx_set_state(tx, TX_HELP);
	proto_activate(ep, pp);
}

/* False: nothing is left to take. */
static bool help_piece(struct proto_ep *ep, struct tx *tx)
{
	struct xfer *x = &tx->x;
	size_t length = x->total;
	uint32_t k = link_ops(tx->link)->joint_take(tx->link, &tx->help.j, false);
	uint64_t start, end;

	if (k == WIRE_JOINT_NONE) {
		return false;
	}
	start = (uint64_t)k * tx->help.piece;
	end = start + tx->help.piece;
	x->put = true;
	x->raw = true;
	x->placed = false;
	x->total = end < tx->help.want ? end : tx->help.want;
	xfer_seek(x, start);
	while (!xfer_is_over(x) &&
	       xfer_run(x, tx->link, ep->regs, x->total - x->issued) > 0) {
	}
	link_ops(tx->link)->joint_did(tx->link, &tx->help.j,
				      !x->err && x->issued == x->total);
	x->err = 0; /* the receiver pulls it, and finds out why */
	x->total = length;
	return true;
}

int helps_run(struct proto_ep *ep, struct proto_peer *pp)
{
	int moved = 0;

	list_foreach_safe (n, next, &pp->helps) {
		struct tx *tx = container_of(n, struct tx, node);

		while (help_piece(ep, tx)) {
			if (++moved == JOINT_BURST) {
				ep->busy = true;
				return moved;
			}
		}
		list_remove(n);
		list_push_back(&pp->waiting, n);
		tx_set_state(tx, TX_WAIT_CTS);
	}
	return moved;
}
