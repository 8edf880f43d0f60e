/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams arrive; see uet_recv.h. */
#include "config.h"

#include "prov/wire/uet/uet_recv.h"

#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <rdma/fi_errno.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define RX_MSGS	 8
#define RX_BYTES 65536 /* the longest that the kernel puts together */
/* An arrival that is said to be longer ago is a clock that was set. */
#define STAMP_AGE_MAX UINT64_C(1000000000)

/* A stream is long when so many bytes have come with no more than one question in vain at
 * a time; and what isn't asked for then. */
#define STREAM_BYTES ((size_t)256 << 10)
#define REST_NS	     UINT64_C(4000)

struct rx_msg {
	struct sockaddr_storage from;
	struct iovec iov;
	union {
		char bytes[192];
		struct cmsghdr align;
	} control;
};

struct uet_rx {
	int ask;       /* messages that the next call asks for */
	size_t stream; /* bytes of this stream */
	bool vain;     /* the last question was */
	uint64_t rest_until;
	struct mmsghdr msg[RX_MSGS];
	struct rx_msg part[RX_MSGS];
	uint8_t data[RX_MSGS][RX_BYTES];
};

/* What the kernel said of one message. */
struct rx_note {
	size_t size;	/* of each datagram in it; 0: it is one */
	uint64_t stamp; /* wall clock; 0: none */
	uint8_t tos;
	struct wire_addr to; /* no port */
};

/* The kernel writes only what a message that arrived has. */
static void rx_arm(struct uet_rx *rx, int i)
{
	struct msghdr *h = &rx->msg[i].msg_hdr;

	h->msg_namelen = sizeof(rx->part[i].from);
	h->msg_controllen = sizeof(rx->part[i].control.bytes);
	h->msg_flags = 0;
}

int uet_rx_open(struct uet_sock *sock)
{
	/* Pages that nothing arrives in are never touched. */
	struct uet_rx *rx = calloc(1, sizeof(*rx));

	sock->rx = rx;
	if (!rx)
		return -FI_ENOMEM;
	rx->ask = 1;
	for (int i = 0; i < RX_MSGS; i++) {
		struct rx_msg *p = &rx->part[i];

		p->iov = (struct iovec){.iov_base = rx->data[i], .iov_len = RX_BYTES};
		rx->msg[i].msg_hdr = (struct msghdr){.msg_name = &p->from,
						     .msg_iov = &p->iov,
						     .msg_iovlen = 1,
						     .msg_control = p->control.bytes};
		rx_arm(rx, i);
	}
	return 0;
}

void uet_rx_close(struct uet_sock *sock)
{
	free(sock->rx);
	sock->rx = NULL;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static uint8_t read_tos(const struct cmsghdr *c)
{
	int value = 0;

	/* A byte for IPv4, an int for IPv6. */
	if (c->cmsg_len == CMSG_LEN(1))
		return *CMSG_DATA(c);
	memcpy(&value, CMSG_DATA(c), sizeof(value));
	return (uint8_t)value;
}

static void note_one(const struct cmsghdr *c, struct rx_note *note)
{
	struct timespec t;
	int value;

	if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		note->size = value > 0 ? (size_t)value : 0;
	} else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
		memcpy(&t, CMSG_DATA(c), sizeof(t));
		note->stamp =
			(uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
	} else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
		struct in_pktinfo info;

		memcpy(&info, CMSG_DATA(c), sizeof(info));
		note->to.in.sin_family = AF_INET;
		note->to.in.sin_addr = info.ipi_addr;
	} else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
		struct in6_pktinfo info;

		memcpy(&info, CMSG_DATA(c), sizeof(info));
		note->to.in6.sin6_family = AF_INET6;
		note->to.in6.sin6_addr = info.ipi6_addr;
	} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
		   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
		note->tos = read_tos(c);
	}
}

static void notes_read(struct msghdr *h, struct rx_note *note)
{
	*note = (struct rx_note){0};
	for (struct cmsghdr *c = CMSG_FIRSTHDR(h); c; c = CMSG_NXTHDR(h, c))
		note_one(c, note);
}

/* The kernel stamps by the wall clock. */
static uint64_t stamp_monotonic(uint64_t stamp, uint64_t wall, uint64_t now)
{
	uint64_t age = stamp && stamp < wall ? wall - stamp : 0;

	return age <= STAMP_AGE_MAX && age < now ? now - age : now;
}

static size_t hand_over(const struct uet_sock *sock, struct mmsghdr *m,
			const uint8_t *data, uint64_t wall, uint64_t now,
			uet_recv_call *call, void *arg)
{
	struct uet_dgram d = {0};
	struct rx_note note;
	size_t n = 0;

	notes_read(&m->msg_hdr, &note);
	/* What was cut is no datagram that somebody sent. */
	if (m->msg_hdr.msg_flags & MSG_TRUNC ||
	    !wire_addr_from_sockaddr(&d.from, m->msg_hdr.msg_name,
				     m->msg_hdr.msg_namelen))
		return 0;
	d.tos = note.tos;
	d.to = note.to;
	if (d.to.sa.sa_family == AF_INET6)
		d.to.in6.sin6_port = sock->addr.in6.sin6_port;
	else
		d.to.in.sin_port = sock->addr.in.sin_port;
	d.stamp = stamp_monotonic(note.stamp, wall, now);
	d.now = now;
	for (size_t at = 0; at < m->msg_len; at += d.len, n++) {
		d.data = data + at;
		d.len = m->msg_len - at;
		if (note.size && note.size < d.len)
			d.len = note.size;
		call(arg, &d);
	}
	return n;
}

static bool is_long(const struct uet_rx *rx)
{
	return rx->stream >= STREAM_BYTES;
}

/* In vain twice in a row, and the stream is over. */
static void found_nothing(struct uet_rx *rx, uint64_t now)
{
	if (rx->vain)
		rx->stream = 0;
	rx->vain = true;
	rx->rest_until = is_long(rx) ? now + REST_NS : 0;
	if (!is_long(rx))
		rx->ask = 1;
}

/* Who got all that was asked for asks for more the next time, and for one message where
 * none was: the kernel's look whether there is a second costs a third of the first. */
size_t uet_recv(struct uet_sock *sock, size_t budget, uint64_t now, uet_recv_call *call,
		void *arg)
{
	struct uet_rx *rx = sock->rx;
	size_t n = 0;
	bool more = !now || now >= rx->rest_until;

	while (n < budget && more) {
		uint64_t wall;
		int got = recvmmsg(sock->fd, rx->msg, (unsigned)rx->ask, MSG_DONTWAIT,
				   NULL);

		if (got <= 0) {
			found_nothing(rx, now);
			break;
		}
		rx->vain = false;
		more = got == rx->ask && got > 1;
		if (got < rx->ask)
			rx->ask = got;
		else
			rx->ask = 2 * got < RX_MSGS ? 2 * got : RX_MSGS;
		wall = clock_ns(CLOCK_REALTIME);
		now = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < got; i++) {
			rx->stream += rx->msg[i].msg_len;
			n += hand_over(sock, &rx->msg[i], rx->data[i], wall, now, call,
				       arg);
			rx_arm(rx, i);
		}
		if (is_long(rx)) {
			rx->rest_until = now + REST_NS;
			rx->ask = RX_MSGS;
			break;
		}
	}
	return n;
}
