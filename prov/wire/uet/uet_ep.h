/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint of the uet wire: sockets, the delivery machine, the links over it. */
#ifndef WEFT_WIRE_UET_UET_EP_H
#define WEFT_WIRE_UET_UET_EP_H

#include <arpa/inet.h>
#include <stdatomic.h>

#include "prov/mem/keytab.h"
#include "prov/mem/params.h"
#include "prov/wire/uet/uet_crc.h"
#include "prov/wire/uet/uet_pds.h"
#include "prov/wire/uet/uet_rails.h"
#include "prov/wire/uet/uet_secret.h"
#include "prov/wire/uet/uet_send.h"
#include "prov/wire/uet/uet_shim.h"
#include "prov/wire/uet/uet_sock.h"
#include "prov/wire/uet/uet_sums.h"
#include "prov/wire/uet/uet_turn.h"
#include "prov/wire/wire.h"
#include "util/list.h"

/* Ways that datagrams take: a source port each. */
#define UET_EP_PATHS ((uint32_t)prov_params()->uet_paths)
/* Packets that are handed to the kernel at once. */
#define UET_EP_BATCH 128u

/* The checksum behind one lies before the next one's head, so that the two are one piece
 * of memory for the kernel. */
struct uet_ep_out {
	struct uet_out out;
	struct wire_addr to;
	uint32_t unused;
	struct be32 crc;
};

_Static_assert(offsetof(struct uet_out, head) == 0 &&
		       offsetof(struct uet_ep_out, crc) + sizeof(struct be32) ==
			       sizeof(struct uet_ep_out),
	       "checksum, head");

struct uet_helper;

struct wire_ep {
	struct wire_ep_base base;
	struct uet_turn turn; /* the application's or the helper's: guards all of it */
	struct uet_helper *helper;
	_Atomic(bool) armed; /* whoever makes progress sleeps */
	bool woken;	     /* wake_fd is readable */
	int wake_fd;	     /* wakes them, where the helper was before them */
	const struct wire_events *events;
	void *arg;
	uint64_t incarnation;
	struct mem_keytab *keys;
	struct mem_keyview *view;
	struct uet_sock *sock;
	uint8_t rail_bits[UET_SOCK_RAILS]; /* of each rail: its network's */
	struct uet_pds *pds;
	struct uet_shim *shim;	   /* NULL: none */
	struct uet_secret *secret; /* NULL: no key */
	struct uet_sums sums;
	struct list links;
	struct list dead; /* to be freed at the next progress */
	struct list news; /* links with something to tell */
	struct list pump;
	struct uet_loans *loans;
	bool busy; /* inside of progress: it sends what there is at its end */
	uint32_t idle;
	struct wire_addr from; /* of the datagram that is being looked at */
	uint64_t ping_at, ping_ns;
	uint64_t seen; /* the time, when progress was made last */
	/* The key that a peer's packet is using just now (quiesce). */
	_Atomic(uint64_t) using_key;
	_Atomic(bool) using_any;
	/* What the kernel had no room for, from `out_at` to `outs`. */
	uint32_t outs, out_at;
	uint8_t *room; /* where they are put together, if they are (uet_leave.h) */
	size_t room_at;
	struct uet_ep_out out[UET_EP_BATCH];
	struct uet_tx tx[UET_EP_BATCH];
	uint64_t garbled; /* datagrams that are none of ours */
};

uint64_t uet_ep_now(void);

static inline uint16_t uet_door_port(const struct wire_addr *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port);
}

/* The host of a peer, as the delivery machine wants it, and the address of its door. */
void uet_ep_peer(const struct wire_addr *addr, struct uet_peer *peer);
void uet_ep_door(const struct uet_peer *peer, int family, struct wire_addr *addr);
/* Whether datagrams to such a peer stay within this host, both ways, and may come without
 * a checksum. */
bool uet_ep_inside(struct wire_ep *ep, const struct wire_addr *peer);
/* Payload of one packet by a path to a peer; 0: it can't be reached, *err says why. */
uint32_t uet_ep_part(struct wire_ep *ep, unsigned path, const struct wire_addr *to,
		     int *err);

/* Datagrams that the helper takes before it looks whether the application is back. */
#define UET_STAND_IN_BUDGET 64
/* The helper's turn, which it has: what progress does, but no upcalls. `errors`: some
 * came back. Returns how many datagrams came; less than the budget: there may be no more.
 */
int uet_ep_stand_in(struct wire_ep *ep, bool errors);
bool uet_ep_armed(struct wire_ep *ep);

/* The wire's table. */
int uet_ep_open(const struct wire_ep_attr *attr, struct wire_ep **ep);
void uet_ep_close(struct wire_ep *ep);
int uet_progress(struct wire_ep *ep, int budget);
int uet_arm(struct wire_ep *ep);
int uet_fd(struct wire_ep *ep);
uint64_t uet_look_due(struct wire_ep *ep);
int uet_quiesce(struct wire_ep *ep, uint64_t key, uint64_t deadline_ns);

#endif
