/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets leave; see uet_leave.h. */
#include "config.h"

#include "prov/wire/uet/uet_leave.h"

#include "prov/wire/uet/uet_link.h"

/* Batches as long as this one are worth a look at the clock; of so many, the last, it is
 * known when they left. */
#define NOTE_LEFT 8
/* Shorter ones with so many bytes are worth it, too: they leave in a call or two. */
#define NOTE_BYTES 16384
/* Datagrams to one peer after which it is worth sockets of its own. */
#define FIX_EVERY 1024

/* A peer that so much is sent to has sockets of its own, if nobody else has. */
static void count_sent(struct wire_ep *ep, struct wire_link *link)
{
	if (++link->sent % FIX_EVERY == 0 && !ep->sock->fixed && !link->ways)
		uet_sock_fix(ep->sock, &link->base.peer);
}

/* True: all its bytes were looked at for it. */
static bool prepare(struct wire_ep *ep, uint32_t i)
{
	struct uet_ep_out *o = &ep->out[i];
	const struct uet_out *out = &o->out;
	uint8_t type = out->head[0] >> 3;
	struct uet_tx *tx = &ep->tx[i];
	struct wire_link *link = out->pdc ? uet_pdc_ctx(out->pdc) : NULL;
	uint8_t path = uet_ways_path(ep, link, out);
	bool summed = true;
	uint32_t crc;

	if (link)
		count_sent(ep, link);
	if (link && link->ways)
		o->to = link->ways->to[path];
	else
		uet_ep_door(&out->peer, ep->sock->family, &o->to);
	*tx = (struct uet_tx){
		.to = &o->to,
		.len = out->head_len + out->payload_len,
		.path = path,
		.tos = out->cls == UET_CLASS_DATA ? UET_ECN_ECT : 0,
		.kind = type == UET_ACK || type == UET_ACK_CC ? UET_TX_ACK : UET_TX_DATA};
	tx->iov[tx->iov_count++] =
		(struct iovec){(void *)(uintptr_t)out->head, out->head_len};
	if (out->payload_len)
		tx->iov[tx->iov_count++] =
			(struct iovec){(void *)(uintptr_t)out->payload, out->payload_len};
	if (ep->secret) {
		/* The receiver's, as far as it said. */
		uet_secret_put(ep->secret, i, link ? link->base.peer_incarnation : 0, tx);
		return true;
	}
	/* What is tested with a bad network is also that its changes are found. */
	if (link && link->bare && !ep->shim) {
		o->crc = be32_of(0);
		summed = false;
	} else {
		crc = uet_crc(0, out->head, out->head_len);
		o->crc = be32_of(uet_crc(crc, out->payload, out->payload_len));
	}
	tx->len += UET_CRC_BYTES;
	tx->iov[tx->iov_count++] = (struct iovec){&o->crc, sizeof(o->crc)};
	return summed;
}

static size_t to_kernel(void *arg, const struct uet_tx *tx, size_t count)
{
	return uet_send(((struct wire_ep *)arg)->sock, tx, count);
}

/* What waits for the kernel; false: it has no room. */
static bool push(struct wire_ep *ep, uint64_t now)
{
	while (ep->out_at < ep->outs) {
		uint32_t run = 0;
		size_t gone;

		/* Forgotten ones have no length; no door can't be sent to. */
		while (ep->out_at + run < ep->outs && ep->tx[ep->out_at + run].len &&
		       uet_door_port(ep->tx[ep->out_at + run].to))
			run++;
		if (!run) {
			ep->out_at++;
			continue;
		}
		gone = uet_shim_send(ep->shim, &ep->tx[ep->out_at], run, now, to_kernel,
				     ep);
		ep->out_at += (uint32_t)gone;
		if (gone < run)
			return false;
	}
	return true;
}

/* A round trip begins when its batch has left: handing many over takes as long as the
 * network does, and longer where others want the processor. */
static uint64_t note_left(struct wire_ep *ep, uint64_t now)
{
	if (ep->outs < NOTE_LEFT)
		return now;
	now = uet_ep_now();
	for (uint32_t i = 0; i < ep->outs; i++)
		uet_pds_left(&ep->out[i].out, now, i + NOTE_LEFT >= ep->outs);
	return now;
}

/* Checksums of many bytes, and what the kernel did with those before them, took a while:
 * counted as the network's, it would look like a queue that grows with the window. */
static uint64_t note_leaves(struct wire_ep *ep, uint64_t now)
{
	size_t bytes = 0;

	if (ep->outs >= NOTE_LEFT)
		return now;
	for (uint32_t i = 0; i < ep->outs; i++)
		bytes += ep->tx[i].len;
	if (bytes < NOTE_BYTES)
		return now;
	now = uet_ep_now();
	for (uint32_t i = 0; i < ep->outs; i++)
		uet_pds_left(&ep->out[i].out, now, true);
	return now;
}

/* What is made ready at once. */
struct fill {
	size_t piece; /* bytes that leave as one with the last packet */
	size_t all;
};

/* True: it is enough. No more than the kernel takes as one where its checksum has just
 * been made, so that it is in a cache, or else two of those. What takes another path than
 * what is before it begins a piece: cut in two by the end of a batch, all after it would
 * be. */
static bool is_full(const struct wire_ep *ep, const struct uet_tx *tx, bool summed,
		    struct fill *f)
{
	size_t most = summed ? UET_LEAVE_PIECE : 2 * UET_LEAVE_PIECE;

	if (tx == ep->tx || tx->path != tx[-1].path || tx->len > tx[-1].len ||
	    f->piece + tx->len > UET_LEAVE_PIECE)
		f->piece = 0;
	f->piece += tx->len;
	f->all += tx->len;
	return f->piece + tx->len > UET_LEAVE_PIECE && f->all + UET_LEAVE_PIECE > most;
}

void uet_leave(struct wire_ep *ep, uint64_t now)
{
	while (push(ep, now)) {
		struct fill fill = {0};
		bool full = false;

		now = note_left(ep, now);
		ep->outs = ep->out_at = 0;
		while (!full && ep->outs < UET_EP_BATCH &&
		       uet_pds_next(ep->pds, now, &ep->out[ep->outs].out)) {
			bool summed = prepare(ep, ep->outs);

			full = is_full(ep, &ep->tx[ep->outs++], summed, &fill);
		}
		if (!ep->outs)
			return;
		now = note_leaves(ep, now);
	}
}

void uet_leave_late(struct wire_ep *ep, uint64_t now)
{
	uet_shim_poll(ep->shim, now, to_kernel, ep);
}

void uet_leave_forget(struct wire_ep *ep, const void *memory, size_t len)
{
	uintptr_t from = (uintptr_t)memory;

	for (uint32_t i = ep->out_at; i < ep->outs; i++) {
		uintptr_t at = (uintptr_t)ep->out[i].out.payload;

		if (at && at - from < len)
			ep->tx[i].len = 0;
	}
}
