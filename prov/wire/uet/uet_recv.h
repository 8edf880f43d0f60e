/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams arrive: many in one system call, and those that the kernel has put together
 * taken apart again. */
#ifndef WEFT_WIRE_UET_UET_RECV_H
#define WEFT_WIRE_UET_UET_RECV_H

#include "prov/wire/uet/uet_sock.h"

struct uet_dgram {
	const uint8_t *data; /* may be read until the callback returns */
	size_t len;
	struct wire_addr from; /* the path that it was sent on */
	struct wire_addr to;   /* where it was sent to; no family: to the door's address,
				* or wasn't asked for (uet_sock_config.want_to) */
	uint8_t tos;	       /* traffic class: DSCP and ECN bits */
	uint64_t stamp;	       /* monotonic ns: when the kernel had it */
	uint64_t now;	       /* when it was taken from there */
};

#define UET_TOS_ECN 0x03
#define UET_ECN_ECT 0x02 /* ECT(0): may be marked */
#define UET_ECN_CE  0x03 /* marked */

typedef void uet_recv_call(void *arg, const struct uet_dgram *dgram);

/* Memory for what uet_recv receives; part of uet_sock_open and uet_sock_close. */
int uet_rx_open(struct uet_sock *sock);
void uet_rx_close(struct uet_sock *sock);

/* Calls `call` for what is there; asks the kernel no more often than until `budget`
 * datagrams were handed over. Returns how many were. `now`: the time, or 0 to ask in any
 * case: in the middle of a long stream the kernel isn't asked again for some microseconds
 * once it had nothing, since each question keeps the sender from adding to the queue. */
size_t uet_recv(struct uet_sock *sock, size_t budget, uint64_t now, uet_recv_call *call,
		void *arg);

#endif
