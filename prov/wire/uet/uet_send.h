/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams leave: as few system calls as the kernel allows. Neighbours in the list that
 * go the same way and have one size leave as one, where the path can.
 */
#ifndef WEFT_WIRE_UET_UET_SEND_H
#define WEFT_WIRE_UET_UET_SEND_H

#include <sys/uio.h>

#include "prov/wire/uet/uet_sock.h"

#define UET_TX_IOV 4

/* What only those look at who lose some of them on purpose. */
enum uet_tx_kind { UET_TX_DATA, UET_TX_ACK };

/* One datagram. Everything it points to is read during the call only. */
struct uet_tx {
	const struct wire_addr *to;
	size_t len; /* of all iov together */
	unsigned iov_count;
	struct iovec iov[UET_TX_IOV];
	uint8_t path;
	uint8_t tos;  /* traffic class: DSCP and ECN bits */
	uint8_t kind; /* enum uet_tx_kind */
};

/* What sending needs besides; called by uet_sock_open and _close. 0, -FI_ENOMEM. */
int uet_tx_open(struct uet_sock *sock);
void uet_tx_close(struct uet_sock *sock);

/*
 * How many of them are gone, from the first on; a datagram that the network refuses is
 * gone as well, and uet_sock_news may say why. Fewer than `count`: the kernel has no
 * room now.
 */
size_t uet_send(struct uet_sock *sock, const struct uet_tx *tx, size_t count);

#endif
