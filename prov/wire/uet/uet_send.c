/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams leave; see uet_send.h. */
#include "config.h"

#include "prov/wire/uet/uet_send.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <rdma/fi_errno.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

/* What the kernel takes as one. Newer ones take 128. */
#define GSO_SEGMENTS 64
#define GSO_BYTES    65000
/* Calls that are handed over at once, and pieces of memory that they have. */
#define BATCH_MSGS 32
#define BATCH_IOV  256
/* A datagram that costs less to copy than to describe. */
#define SHORT 512
/* Datagrams of one call, up to this long, are put one behind the other first: the kernel
 * takes half the time for one piece of 64 KiB that it takes for a hundred. */
#define GATHERED     4096
#define GATHER_BYTES ((size_t)128 << 10)

struct uet_gather {
	uint8_t bytes[GATHER_BYTES];
};

/* Traffic class, and the size of each segment. */
union ancillary {
	char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
	struct cmsghdr align;
};

struct batch {
	struct mmsghdr msg[BATCH_MSGS];
	union ancillary control[BATCH_MSGS];
	struct iovec iov[BATCH_IOV];
	uint8_t segments[BATCH_MSGS]; /* datagrams in each */
	unsigned msgs, iovs;
	size_t gathered; /* bytes of the socket's room that are used */
};

/* The socket that one leaves by. */
static struct uet_sock_path *path_of(struct uet_sock *sock, const struct uet_tx *tx)
{
	bool fixed = sock->fixed && wire_addr_equal(tx->to, &sock->fixed_to);

	return &sock->path[(fixed ? sock->paths : 0) + tx->path];
}

static bool is_fixed(const struct uet_sock *sock, const struct uet_sock_path *path)
{
	return path >= &sock->path[sock->paths];
}

static bool same_way(const struct uet_tx *a, const struct uet_tx *b)
{
	return a->path == b->path && a->tos == b->tos &&
	       (a->to == b->to || wire_addr_equal(a->to, b->to));
}

/* How many from tx[0] on leave as one: all as long as the first, but the last, which may
 * be shorter. */
static unsigned run_of(const struct uet_sock_path *path, const struct uet_tx *tx,
		       size_t count, unsigned room)
{
	size_t bytes = tx->len;
	unsigned iovs = tx->iov_count;
	unsigned n = 1;

	if (!path->gso)
		return 1;
	while (n < count && n < GSO_SEGMENTS && same_way(tx, &tx[n]) &&
	       tx[n].len <= tx->len && bytes + tx[n].len <= GSO_BYTES &&
	       iovs + tx[n].iov_count <= room) {
		bytes += tx[n].len;
		iovs += tx[n].iov_count;
		n++;
		if (tx[n - 1].len < tx->len)
			break;
	}
	return n;
}

static struct cmsghdr *put_int(struct cmsghdr *c, int level, int type, int value)
{
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(sizeof(value));
	memcpy(CMSG_DATA(c), &value, sizeof(value));
	return (struct cmsghdr *)(void *)((char *)c + CMSG_SPACE(sizeof(value)));
}

int uet_tx_open(struct uet_sock *sock)
{
	sock->gather = malloc(sizeof(*sock->gather));
	return sock->gather ? 0 : -FI_ENOMEM;
}

void uet_tx_close(struct uet_sock *sock)
{
	free(sock->gather);
	sock->gather = NULL;
}

static bool is_piece(const struct uet_tx *tx, unsigned n)
{
	bool one = tx->iov_count == 1;

	for (unsigned i = 1; i < n && one; i++)
		one = tx[i].iov_count == 1 &&
		      tx[i].iov->iov_base ==
			      (uint8_t *)tx[i - 1].iov->iov_base + tx[i - 1].iov->iov_len;
	return one;
}

/* False: they leave from where they are. */
static bool gather(struct batch *b, struct uet_gather *room, const struct uet_tx *tx,
		   unsigned n)
{
	uint8_t *to = room->bytes + b->gathered;
	size_t at = 0;

	if (n == 1 || is_piece(tx, n) || tx->len > GATHERED ||
	    b->gathered + n * tx->len > GATHER_BYTES)
		return false;
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < tx[i].iov_count; k++) {
			memcpy(to + at, tx[i].iov[k].iov_base, tx[i].iov[k].iov_len);
			at += tx[i].iov[k].iov_len;
		}
	}
	b->iov[b->iovs++] = (struct iovec){to, at};
	b->gathered += at;
	return true;
}

/* Pieces that lie one behind the other are one: each costs the kernel about as much as
 * 2 KiB do. */
static void pieces_add(struct batch *b, const struct uet_tx *tx, unsigned n)
{
	struct iovec *last = NULL;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < tx[i].iov_count; k++) {
			const struct iovec *one = &tx[i].iov[k];

			if (last &&
			    (uint8_t *)last->iov_base + last->iov_len == one->iov_base) {
				last->iov_len += one->iov_len;
				continue;
			}
			last = &b->iov[b->iovs++];
			*last = *one;
		}
	}
}

static void batch_add(struct batch *b, const struct uet_sock *sock,
		      const struct uet_sock_path *path, const struct uet_tx *tx,
		      unsigned n)
{
	struct msghdr *h = &b->msg[b->msgs].msg_hdr;
	union ancillary *control = &b->control[b->msgs];
	bool v6 = tx->to->sa.sa_family == AF_INET6;
	struct cmsghdr *next = &control->align;

	memset(h, 0, sizeof(*h));
	if (!is_fixed(sock, path)) {
		h->msg_name = (void *)(uintptr_t)&tx->to->sa;
		h->msg_namelen = wire_addr_len(tx->to);
	}
	h->msg_iov = &b->iov[b->iovs];
	if (!gather(b, sock->gather, tx, n))
		pieces_add(b, tx, n);
	h->msg_iovlen = (size_t)(&b->iov[b->iovs] - h->msg_iov);
	memset(control, 0, sizeof(*control));
	h->msg_control = control->bytes;
	if (tx->tos != path->tos) {
		h->msg_controllen = CMSG_SPACE(sizeof(int));
		next = put_int(next, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
			       v6 ? IPV6_TCLASS : IP_TOS, tx->tos);
	}
	if (n > 1) {
		uint16_t size = (uint16_t)tx->len;

		next->cmsg_level = SOL_UDP;
		next->cmsg_type = UDP_SEGMENT;
		next->cmsg_len = CMSG_LEN(sizeof(size));
		memcpy(CMSG_DATA(next), &size, sizeof(size));
		h->msg_controllen += CMSG_SPACE(sizeof(size));
	}
	b->segments[b->msgs++] = (uint8_t)n;
}

/* As many from tx[0] on, all of that path, as one call takes. Returns how many datagrams.
 */
static size_t batch_fill(struct batch *b, const struct uet_sock *sock,
			 const struct uet_sock_path *path, const struct uet_tx *tx,
			 size_t count)
{
	size_t at = 0;

	b->msgs = b->iovs = 0;
	b->gathered = 0;
	while (at < count && b->msgs < BATCH_MSGS &&
	       b->iovs + tx[at].iov_count <= BATCH_IOV) {
		unsigned n = run_of(path, &tx[at], count - at, BATCH_IOV - b->iovs);

		batch_add(b, sock, path, &tx[at], n);
		at += n;
	}
	return at;
}

/* One at a time, where many at once were refused: which of them, and why. */
static size_t send_singly(struct uet_sock *sock, struct uet_sock_path *path,
			  const struct uet_tx *tx, size_t count);

static size_t refused(struct uet_sock *sock, struct uet_sock_path *path,
		      const struct uet_tx *tx, unsigned n, int err)
{
	switch (err) {
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		return 0;
	case EIO: /* the device has no checksums, which segments need */
		path->gso = path->gso && n == 1;
		return send_singly(sock, path, tx, n);
	case EINVAL:
	case EMSGSIZE: /* segments that are too long are refused as either */
		if (n > 1)
			return send_singly(sock, path, tx, n);
		/* fallthrough */
	default:
		path->refused = true;
		return n;
	}
}

static size_t send_singly(struct uet_sock *sock, struct uet_sock_path *path,
			  const struct uet_tx *tx, size_t count)
{
	struct batch b;
	size_t at = 0;

	while (at < count) {
		b.msgs = b.iovs = 0;
		b.gathered = 0;
		batch_add(&b, sock, path, &tx[at], 1);
		if (sendmsg(path->fd, &b.msg[0].msg_hdr, MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM)
				break;
			path->refused = true;
		}
		at++;
	}
	return at;
}

/* An error that an earlier datagram brought home is told to the next call, which has
 * sent nothing then: once more. */
static bool is_told_late(struct uet_sock_path *path, int err)
{
	bool late = err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH ||
		    err == EHOSTDOWN;

	path->refused |= late;
	return late;
}

static int put_short(const struct uet_sock *sock, const struct uet_sock_path *path,
		     const struct uet_tx *tx)
{
	bool fixed = is_fixed(sock, path);
	uint8_t bytes[SHORT];
	size_t at = 0;

	for (unsigned i = 0; i < tx->iov_count; i++) {
		memcpy(bytes + at, tx->iov[i].iov_base, tx->iov[i].iov_len);
		at += tx->iov[i].iov_len;
	}
	return sendto(path->fd, bytes, at, MSG_DONTWAIT, fixed ? NULL : &tx->to->sa,
		      fixed ? 0 : wire_addr_len(tx->to)) < 0
		       ? errno
		       : 0;
}

/* A short one of the class that its socket has: there is no cheaper call. */
static size_t send_short(struct uet_sock *sock, struct uet_sock_path *path,
			 const struct uet_tx *tx)
{
	int err = put_short(sock, path, tx);

	if (err && is_told_late(path, err))
		err = put_short(sock, path, tx);
	return err ? refused(sock, path, tx, 1, err) : 1;
}

static int send_batch(struct uet_sock_path *path, struct batch *b, unsigned from,
		      int *err)
{
	int sent = sendmmsg(path->fd, &b->msg[from], b->msgs - from, MSG_DONTWAIT);

	*err = errno;
	if (sent < 0 && is_told_late(path, *err)) {
		sent = sendmmsg(path->fd, &b->msg[from], b->msgs - from, MSG_DONTWAIT);
		*err = errno;
	}
	return sent;
}

static size_t send_path(struct uet_sock *sock, struct uet_sock_path *path,
			const struct uet_tx *tx, size_t count)
{
	struct batch b;
	size_t want;
	size_t at = 0;
	unsigned msg = 0;

	if (count == 1 && tx->len <= SHORT && tx->tos == path->tos)
		return send_short(sock, path, tx);
	want = batch_fill(&b, sock, path, tx, count);
	while (at < want) {
		int err;
		int sent = send_batch(path, &b, msg, &err);
		size_t gone;

		for (int i = 0; i < sent; i++)
			at += b.segments[msg++];
		if (sent > 0)
			continue;
		gone = refused(sock, path, &tx[at], b.segments[msg], err);
		at += gone;
		if (gone < b.segments[msg])
			break;
		msg++;
	}
	return at;
}

size_t uet_send(struct uet_sock *sock, const struct uet_tx *tx, size_t count)
{
	size_t at = 0;

	while (at < count) {
		struct uet_sock_path *path = path_of(sock, &tx[at]);
		size_t run = 1;
		size_t gone;

		while (at + run < count && path_of(sock, &tx[at + run]) == path)
			run++;
		gone = send_path(sock, path, &tx[at], run);
		if (!gone)
			break;
		at += gone;
	}
	return at;
}
