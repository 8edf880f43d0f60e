/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The datagram sockets of one endpoint. One, the door, receives everything. The others
 * only send: each is a path of its own, since its source port is what switches choose a
 * way by (its entropy). Where there are several local interfaces (rails), paths take them
 * in turn. Paths have a second socket each for the one peer that most is sent to: it is
 * connected, so that the kernel doesn't look for the way with every call.
 *
 * What the kernel can't do is found out here and done without: one call for many
 * datagrams of a size (UDP_SEGMENT), many received at once (UDP_GRO), the marks of
 * congested switches, arrival times. Nothing here knows what is in a datagram.
 *
 * One thread at a time. Errors are negative fi_errno values.
 */
#ifndef WEFT_WIRE_UET_UET_SOCK_H
#define WEFT_WIRE_UET_UET_SOCK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prov/wire/addr.h"

#define UET_SOCK_PATHS 32
#define UET_SOCK_RAILS 8

/* Headers of a datagram, below what is sent: IP and UDP. */
#define UET_OVERHEAD_IP4 28
#define UET_OVERHEAD_IP6 48

struct uet_rail {
	struct wire_addr addr; /* local, its port is not looked at */
	char device[IFNAMSIZ]; /* datagrams leave by it; empty: as the kernel routes */
};

struct uet_sock_config {
	struct wire_addr door; /* port 0: any */
	bool any;	       /* receive at every local address */
	const struct uet_rail *rails;
	unsigned rail_count; /* 0: one, of the door's address or (any) of none */
	unsigned paths;	     /* 1 to UET_SOCK_PATHS, at least one for each rail */
	size_t rcvbuf;	     /* bytes wanted of the door, of each path */
	size_t sndbuf;
	uint8_t tos;  /* traffic class that most have: it needn't be said of each */
	bool want_to; /* each datagram says which local address it was sent to */
	bool no_gso;  /* as if the kernel couldn't */
	bool no_gro;
	bool no_force; /* as if we might not exceed the system's limit */
};

struct uet_sock_path {
	int fd;
	uint8_t rail;
	uint8_t tos;  /* of what leaves by it, where no other is asked for */
	bool gso;     /* many datagrams in one call, until one is refused */
	bool refused; /* the kernel has an error for us */
};

struct uet_rx;	   /* uet_recv.h */
struct uet_gather; /* uet_send.h */

struct uet_sock {
	struct wire_addr addr; /* the door's, with its port */
	int fd;		       /* the door */
	int epoll;	       /* all of them */
	int errors;	       /* epoll, too: an error came back on one of the paths */
	int family;
	unsigned paths;
	unsigned rails;
	bool gro;
	bool stamps;   /* arrival times by the kernel */
	size_t rcvbuf; /* what was got */
	size_t sndbuf; /* the least of all paths */
	/* Those that are connected to `fixed_to` are behind the others: 0, or as many. */
	unsigned fixed;
	struct wire_addr fixed_to;
	struct uet_sock_config config; /* as it was opened, without rails */
	struct uet_sock_path path[2 * UET_SOCK_PATHS];
	struct uet_rail rail[UET_SOCK_RAILS];
	struct uet_rx *rx;
	struct uet_gather *gather;
	/* In words, once: a buffer that is smaller than wanted, and which setting of
	 * the system to change. Empty: none. */
	char warning[256];
};

/* -FI_EADDRINUSE, -FI_EADDRNOTAVAIL, -FI_ENODEV (no such interface), -FI_EINVAL,
 * -FI_EMFILE, -FI_ENOMEM, or what the kernel said. */
int uet_sock_open(const struct uet_sock_config *config, struct uet_sock **out);
void uet_sock_close(struct uet_sock *sock);

/* From now on what goes to that address is sent by sockets that are connected to it,
 * which costs less; errors that come back are told as ever. One address at a time, and
 * only where there is one rail. 0, or what the kernel said: then all is as before. */
int uet_sock_fix(struct uet_sock *sock, const struct wire_addr *to);
/* No more, if that is the address. */
void uet_sock_unfix(struct uet_sock *sock, const struct wire_addr *to);

/* Headers below a datagram to such an address. */
size_t uet_sock_overhead(const struct wire_addr *to);

/* The largest datagram that the way to `to` carries by what the kernel knows now, headers
 * below it not counted; 0: it can't be reached (*err says why). */
size_t uet_sock_room(const struct uet_sock *sock, unsigned path,
		     const struct wire_addr *to, int *err);

/* What is sent to that address never leaves this host: it is one of its own. False where
 * that isn't certain. */
bool uet_sock_stays(const struct uet_sock *sock, const struct wire_addr *to);

/* From now on what is too long for its way is cut by this host, and put together by the
 * peer's: for what was made before the way got narrower. */
void uet_sock_fragment(struct uet_sock *sock, unsigned path);

/* What became of datagrams that were sent earlier: */
struct uet_sock_news {
	struct wire_addr to; /* where it was sent to; no host: not known; EMSGSIZE: the
			      * port may not be */
	int err;	     /* -FI_ECONNREFUSED, ...; -FI_EMSGSIZE: it was too long */
	size_t room;	     /* EMSGSIZE: what would have fitted */
	unsigned path;
};

/* The next of it; false: there is none. Cheap where no send was refused and no poll of
 * the descriptor said so; `all` asks the kernel in any case. */
bool uet_sock_news(struct uet_sock *sock, bool all, struct uet_sock_news *news);

/* Asked before sleeping: something has arrived, or some path has an error, which
 * uet_sock_news then finds. */
bool uet_sock_ready(struct uet_sock *sock);

#endif
