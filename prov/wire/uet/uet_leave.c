/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets leave; see uet_leave.h. */
#include "config.h"

#include "prov/wire/uet/uet_leave.h"

#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_link.h"
#include "util/copy.h"

/* Batches as long as this one are worth a look at the clock; of so many, the last, it is
 * known when they left. */
#define NOTE_LEFT 8
/* Shorter ones with so many bytes are worth it, too: they leave in a call or two. */
#define NOTE_BYTES 16384
/* What is put together has a packet's room left when so much is used. */
#define ROOM	  ((size_t)160 << 10)
#define ROOM_USED (ROOM - UET_SECRET_MAX)
/* The longest that is. */
#define TOGETHER 4096
/* Datagrams to one peer after which it is worth sockets of its own. */
#define FIX_EVERY 1024

/* A peer that so much is sent to has sockets of its own, if nobody else has. */
static void count_sent(struct wire_ep *ep, struct wire_link *link)
{
	if (++link->sent % FIX_EVERY == 0 && !ep->sock->fixed && !link->ways)
		uet_sock_fix(ep->sock, &link->base.peer);
}

int uet_leave_open(struct wire_ep *ep)
{
	ep->room = malloc(ROOM);
	return ep->room ? 0 : -FI_ENOMEM;
}

static void add_sum(struct uet_ep_out *o, struct uet_tx *tx, bool none)
{
	const struct uet_out *out = &o->out;
	uint32_t crc = 0;

	if (!none) {
		crc = uet_crc(0, out->head, out->head_len);
		crc = uet_crc(crc, out->payload, out->payload_len);
	}
	o->crc = be32_of(crc);
	tx->len += UET_CRC_BYTES;
	tx->iov[tx->iov_count++] = (struct iovec){&o->crc, sizeof(o->crc)};
}

/* A short one with its checksum, behind the one before it: the kernel takes half the time
 * for one piece of 64 KiB that it takes for a hundred, and what is copied is summed up on
 * its way. */
static void put_together(struct wire_ep *ep, const struct uet_out *out, struct uet_tx *tx)
{
	uint8_t *at = ep->room + ep->room_at;
	struct be32 crc;

	copy_small(at, out->head, out->head_len);
	crc = be32_of(uet_crc_copy(uet_crc(0, at, out->head_len), at + out->head_len,
				   out->payload, out->payload_len));
	memcpy(at + tx->len, &crc, sizeof(crc));
	tx->len += sizeof(crc);
	tx->iov[0] = (struct iovec){at, tx->len};
	tx->iov_count = 1;
	ep->room_at += tx->len;
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
	bool bare;

	if (link)
		count_sent(ep, link);
	if (link && link->ways)
		o->to = link->ways->to[path];
	else if (link)
		o->to = link->base.peer;
	else
		uet_ep_door(&out->peer, ep->sock->family, &o->to);
	/* Not as a whole: to clear pieces that aren't used takes longer than all of it.
	 */
	tx->to = &o->to;
	tx->len = out->head_len + out->payload_len;
	tx->iov_count = 0;
	tx->path = path;
	tx->tos = out->cls == UET_CLASS_DATA ? UET_ECN_ECT : 0;
	tx->kind = type == UET_ACK || type == UET_ACK_CC ? UET_TX_ACK : UET_TX_DATA;
	tx->iov[tx->iov_count++] =
		(struct iovec){(void *)(uintptr_t)out->head, out->head_len};
	if (out->payload_len)
		tx->iov[tx->iov_count++] =
			(struct iovec){(void *)(uintptr_t)out->payload, out->payload_len};
	if (ep->secret) {
		/* The receiver's, as far as it said. */
		uet_secret_put(ep->secret, link ? link->base.peer_incarnation : 0,
			       ep->room + ep->room_at, tx);
		ep->room_at += tx->len;
		return true;
	}
	/* What is tested with a bad network is also that its changes are found. */
	bare = link && link->bare && !ep->shim;
	if (!bare && out->payload_len && tx->len <= TOGETHER)
		put_together(ep, out, tx);
	else
		add_sum(o, tx, bare);
	return !bare;
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
 * been made, so that it is in a cache, or else two of those; and not less than most of
 * one. A piece that the end of a batch cuts in two is followed by others that are, so it
 * ends where a turn of a path does. */
static bool is_full(const struct wire_ep *ep, const struct uet_tx *tx, bool last,
		    bool summed, struct fill *f)
{
	size_t most = summed ? UET_LEAVE_PIECE : 2 * UET_LEAVE_PIECE;

	if (tx == ep->tx || tx->path != tx[-1].path || tx->len > tx[-1].len ||
	    f->piece + tx->len > UET_LEAVE_PIECE)
		f->piece = 0;
	f->piece += tx->len;
	f->all += tx->len;
	return f->all + UET_LEAVE_PIECE > most &&
	       (f->piece + tx->len > UET_LEAVE_PIECE ||
		(last && f->piece > UET_LEAVE_PIECE / 2));
}

void uet_leave(struct wire_ep *ep, uint64_t now)
{
	while (push(ep, now)) {
		struct fill fill = {0};
		bool full = false;

		now = note_left(ep, now);
		ep->outs = ep->out_at = 0;
		ep->room_at = 0;
		while (!full && ep->outs < UET_EP_BATCH && ep->room_at < ROOM_USED &&
		       uet_pds_next(ep->pds, now, &ep->out[ep->outs].out)) {
			bool summed = prepare(ep, ep->outs);

			bool last = ep->out[ep->outs].out.last;

			full = is_full(ep, &ep->tx[ep->outs++], last, summed, &fill);
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
