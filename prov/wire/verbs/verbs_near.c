/* SPDX-License-Identifier: BSD-2-Clause */
/* Neighbours: the kernel's routes and tables, by rtnetlink; a datagram makes it look. */
#include "config.h"

#include "prov/wire/verbs/verbs_near.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* In these the kernel has an address, whether or not it will be checked again. */
#define NUD_KNOWN \
	(NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_NOARP | NUD_PERMANENT)

#define DISCARD 9 /* a port where nobody answers */

struct ask {
	struct nlmsghdr head;
	union {
		struct rtmsg route;
		struct ndmsg neigh;
	};
	char attrs[64];
};

union answer {
	struct nlmsghdr head;
	char bytes[4096];
};

/* An address as the kernel's messages have it. */
struct host {
	uint8_t family;
	uint8_t len;
	uint8_t at[16];
};

static struct host host_of(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
	struct host h = {.family = AF_INET6, .len = 16};

	if (memcmp(gid, mapped, sizeof(mapped)) == 0) {
		h.family = AF_INET;
		h.len = 4;
		memcpy(h.at, gid + 12, 4);
	} else {
		memcpy(h.at, gid, 16);
	}
	return h;
}

static void attr_add(struct ask *q, uint16_t type, const void *data, uint16_t len)
{
	struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_SPACE(len);
}

/* The kernel answers while it is asked: 0, its error, or -EAGAIN where it said nothing.
 */
static int ask(int sock, struct ask *q, union answer *a, uint16_t type)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct iovec iov = {.iov_base = a, .iov_len = sizeof(*a)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (sendto(sock, q, q->head.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	n = recvmsg(sock, &m, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if ((m.msg_flags & MSG_TRUNC) || !NLMSG_OK(&a->head, (size_t)n))
		return -EAGAIN;
	if (a->head.nlmsg_type == NLMSG_ERROR &&
	    a->head.nlmsg_len >= NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return ((const struct nlmsgerr *)NLMSG_DATA(&a->head))->error;
	return a->head.nlmsg_type == type ? 0 : -EAGAIN;
}

/* An attribute of that length or more behind a body; NULL: there is none. */
static const void *attr_find(const union answer *a, size_t body, uint16_t type,
			     size_t len)
{
	size_t left = a->head.nlmsg_len - NLMSG_LENGTH(body);
	const struct rtattr *at =
		(const void *)(a->bytes + NLMSG_LENGTH(0) + NLMSG_ALIGN(body));

	if (a->head.nlmsg_len < NLMSG_LENGTH(body))
		return NULL;
	while (left >= sizeof(*at) && at->rta_len >= sizeof(*at) && at->rta_len <= left) {
		size_t step = RTA_ALIGN(at->rta_len);

		if (at->rta_type == type && at->rta_len >= RTA_LENGTH(len))
			return (const char *)at + RTA_LENGTH(0);
		if (step > left)
			return NULL;
		left -= step;
		at = (const void *)((const char *)at + step);
	}
	return NULL;
}

/* Whose hardware address is wanted: the peer's or its router's. False: nobody's. */
static bool next_hop(int sock, uint32_t ifindex, const struct host *peer,
		     struct host *hop)
{
	struct ask q = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
				 .nlmsg_type = RTM_GETROUTE,
				 .nlmsg_flags = NLM_F_REQUEST},
			.route = {.rtm_family = peer->family,
				  .rtm_dst_len = (uint8_t)(peer->len * 8)}};
	const struct rtmsg *route;
	const void *gateway;
	union answer a;

	attr_add(&q, RTA_DST, peer->at, peer->len);
	attr_add(&q, RTA_OIF, &ifindex, sizeof(ifindex));
	if (ask(sock, &q, &a, RTM_NEWROUTE) ||
	    a.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct rtmsg)))
		return false;
	route = NLMSG_DATA(&a.head);
	if (route->rtm_type != RTN_UNICAST || attr_find(&a, sizeof(*route), RTA_VIA, 0))
		return false;
	*hop = *peer;
	gateway = attr_find(&a, sizeof(*route), RTA_GATEWAY, peer->len);
	if (gateway)
		memcpy(hop->at, gateway, hop->len);
	return true;
}

static bool is_known(int sock, uint32_t ifindex, const struct host *hop)
{
	struct ask q = {
		.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(struct ndmsg)),
			 .nlmsg_type = RTM_GETNEIGH,
			 .nlmsg_flags = NLM_F_REQUEST},
		.neigh = {.ndm_family = hop->family, .ndm_ifindex = (int32_t)ifindex}};
	union answer a;
	int ret;

	attr_add(&q, NDA_DST, hop->at, hop->len);
	ret = ask(sock, &q, &a, RTM_NEWNEIGH);
	if (ret)
		return ret != -ENOENT; /* kernels before 5.0 have no such question */
	if (a.head.nlmsg_len < NLMSG_LENGTH(sizeof(struct ndmsg)))
		return true;
	return ((const struct ndmsg *)NLMSG_DATA(&a.head))->ndm_state & NUD_KNOWN;
}

/* An empty datagram by that interface: it is kept until the address is known. */
static void look_for(uint32_t ifindex, const struct host *own, const struct host *peer)
{
	struct sockaddr_in6 from6 = {.sin6_family = AF_INET6, .sin6_scope_id = ifindex},
			    to6 = from6;
	struct sockaddr_in from = {.sin_family = AF_INET}, to = from;
	bool six = peer->family == AF_INET6;
	uint32_t net = htonl(ifindex);
	int sock = socket(peer->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (sock < 0)
		return;
	if (six) {
		memcpy(&from6.sin6_addr, own->at, 16);
		memcpy(&to6.sin6_addr, peer->at, 16);
		to6.sin6_port = htons(DISCARD);
		(void)!setsockopt(sock, IPPROTO_IPV6, IPV6_UNICAST_IF, &net, sizeof(net));
		(void)!bind(sock, (void *)&from6, sizeof(from6));
		(void)!sendto(sock, "", 0, MSG_DONTWAIT, (void *)&to6, sizeof(to6));
	} else {
		memcpy(&from.sin_addr, own->at, 4);
		memcpy(&to.sin_addr, peer->at, 4);
		to.sin_port = htons(DISCARD);
		(void)!setsockopt(sock, IPPROTO_IP, IP_UNICAST_IF, &net, sizeof(net));
		(void)!bind(sock, (void *)&from, sizeof(from));
		(void)!sendto(sock, "", 0, MSG_DONTWAIT, (void *)&to, sizeof(to));
	}
	close(sock);
}

bool verbs_near_known(uint32_t ifindex, const uint8_t own_gid[16],
		      const uint8_t peer_gid[16])
{
	struct host own = host_of(own_gid), peer = host_of(peer_gid), hop;
	bool known = true;
	int sock;

	if (ifindex == 0 || own.family != peer.family)
		return true;
	sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (sock < 0)
		return true;
	if (next_hop(sock, ifindex, &peer, &hop))
		known = is_known(sock, ifindex, &hop);
	close(sock);
	if (!known)
		look_for(ifindex, &own, &peer);
	return known;
}
