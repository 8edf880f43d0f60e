/* SPDX-License-Identifier: BSD-2-Clause */
/* An endpoint's sockets: opened, asked what they can do, closed; see uet_sock.h. */
#include "config.h"

#include "prov/wire/uet/uet_sock.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/wire/uet/uet_recv.h"
#include "prov/wire/uet/uet_send.h"

/* Headers that netinet/udp.h of older systems lacks. */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

/* Of the events of all sockets: the door's. Paths have their numbers. */
#define DOOR UINT32_MAX

static in_port_t *port_of(struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? &a->in6.sin6_port : &a->in.sin_port;
}

static bool option(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value)) == 0;
}

/* ---- buffers ----------------------------------------------------------------------- */

/* The kernel doubles what is asked for, to count what it adds itself. */
static size_t buffer_got(int fd, int name)
{
	socklen_t len = sizeof(int);
	int got = 0;

	if (getsockopt(fd, SOL_SOCKET, name, &got, &len))
		return 0;
	return (size_t)got / 2;
}

static size_t buffer_set(int fd, int name, int force, size_t want, bool no_force)
{
	int value = want > INT32_MAX / 2 ? INT32_MAX / 2 : (int)want;

	option(fd, SOL_SOCKET, name, value);
	if (buffer_got(fd, name) < (size_t)value && !no_force)
		option(fd, SOL_SOCKET, force, value);
	return buffer_got(fd, name);
}

static void buffer_check(struct uet_sock *sock, size_t got, size_t want, const char *what,
			 const char *sysctl)
{
	if (got >= want || sock->warning[0])
		return;
	snprintf(sock->warning, sizeof(sock->warning),
		 "%s buffers of %zu bytes were asked for, and the system gives %zu: "
		 "raise it (sysctl -w %s=%zu), or packets will be lost",
		 what, want, got, sysctl, want);
}

/* ---- opening ----------------------------------------------------------------------- */

static void ask_ip(int fd, int family)
{
	if (family == AF_INET6) {
		option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
		option(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
		return;
	}
	option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
}

static int socket_open(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	ask_ip(fd, family);
	return fd;
}

/* Never splits an address of the caller: the whole of it is a wire_addr. */
static int socket_bind(int fd, struct wire_addr *a)
{
	socklen_t len = sizeof(a->in6);

	if (bind(fd, &a->sa, wire_addr_len(a)))
		return -errno;
	return getsockname(fd, &a->sa, &len) ? -errno : 0;
}

static void addr_no_host(struct wire_addr *a, int family)
{
	memset(a, 0, sizeof(*a));
	a->sa.sa_family = (sa_family_t)family;
}

static void door_ask(struct uet_sock *sock, const struct uet_sock_config *config)
{
	bool v6 = sock->family == AF_INET6;

	sock->gro = !config->no_gro && option(sock->fd, SOL_UDP, UDP_GRO, 1);
	sock->stamps = option(sock->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
	option(sock->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
	       v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
	if (config->want_to)
		option(sock->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
		       v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, 1);
	sock->rcvbuf = buffer_set(sock->fd, SO_RCVBUF, SO_RCVBUFFORCE, config->rcvbuf,
				  config->no_force);
	buffer_check(sock, sock->rcvbuf, config->rcvbuf, "receive", "net.core.rmem_max");
}

static int door_open(struct uet_sock *sock, const struct uet_sock_config *config)
{
	struct wire_addr at = config->door;
	int ret;

	sock->fd = socket_open(sock->family);
	if (sock->fd < 0)
		return sock->fd;
	if (config->any) {
		addr_no_host(&at, sock->family);
		*port_of(&at) = *port_of(&sock->addr);
	}
	ret = socket_bind(sock->fd, &at);
	if (ret)
		return ret;
	*port_of(&sock->addr) = *port_of(&at);
	door_ask(sock, config);
	return 0;
}

static int path_leave_by(int fd, const char *device)
{
	if (!device[0])
		return 0;
	return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device,
			  (socklen_t)strnlen(device, IFNAMSIZ))
		       ? -errno
		       : 0;
}

static void path_ask(struct uet_sock *sock, struct uet_sock_path *path,
		     const struct uet_sock_config *config)
{
	bool v6 = sock->family == AF_INET6;
	size_t got;

	option(path->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVERR : IP_RECVERR,
	       1);
	if (config->tos && option(path->fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP,
				  v6 ? IPV6_TCLASS : IP_TOS, config->tos))
		path->tos = config->tos;
	path->gso = !config->no_gso && option(path->fd, SOL_UDP, UDP_SEGMENT, 0);
	/* Nothing is ever read from it. */
	option(path->fd, SOL_SOCKET, SO_RCVBUF, 1);
	got = buffer_set(path->fd, SO_SNDBUF, SO_SNDBUFFORCE, config->sndbuf,
			 config->no_force);
	if (!sock->sndbuf || got < sock->sndbuf)
		sock->sndbuf = got;
	buffer_check(sock, got, config->sndbuf, "send", "net.core.wmem_max");
}

static int path_open(struct uet_sock *sock, unsigned n,
		     const struct uet_sock_config *config)
{
	struct uet_sock_path *path = &sock->path[n];
	struct wire_addr at;
	int ret;

	*path = (struct uet_sock_path){.rail = (uint8_t)(n % sock->rails)};
	at = sock->rail[path->rail].addr;
	*port_of(&at) = 0;
	path->fd = socket_open(sock->family);
	if (path->fd < 0)
		return path->fd;
	ret = path_leave_by(path->fd, sock->rail[path->rail].device);
	if (!ret)
		ret = socket_bind(path->fd, &at);
	if (!ret)
		path_ask(sock, path, config);
	return ret;
}

/* Errors are always told: no event is asked for. */
static int watch(struct uet_sock *sock, unsigned n)
{
	struct epoll_event event = {.data.u32 = n};

	return epoll_ctl(sock->epoll, EPOLL_CTL_ADD, sock->path[n].fd, &event) ||
			       epoll_ctl(sock->errors, EPOLL_CTL_ADD, sock->path[n].fd,
					 &event)
		       ? -errno
		       : 0;
}

static int watch_all(struct uet_sock *sock)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u32 = DOOR};
	int ret = 0;

	sock->epoll = epoll_create1(EPOLL_CLOEXEC);
	sock->errors = epoll_create1(EPOLL_CLOEXEC);
	if (sock->epoll < 0 || sock->errors < 0 ||
	    epoll_ctl(sock->epoll, EPOLL_CTL_ADD, sock->fd, &event))
		return -errno;
	for (unsigned i = 0; i < sock->paths && !ret; i++)
		ret = watch(sock, i);
	return ret;
}

static int rails_take(struct uet_sock *sock, const struct uet_sock_config *config)
{
	sock->rails = config->rail_count;
	for (unsigned i = 0; i < sock->rails; i++) {
		sock->rail[i] = config->rails[i];
		if (sock->rail[i].addr.sa.sa_family != sock->family)
			return -FI_EINVAL;
	}
	if (sock->rails)
		return 0;
	sock->rails = 1;
	sock->rail[0].addr = config->door;
	if (config->any)
		addr_no_host(&sock->rail[0].addr, sock->family);
	return 0;
}

static int open_all(struct uet_sock *sock, const struct uet_sock_config *config)
{
	int ret = rails_take(sock, config);

	if (!ret)
		ret = door_open(sock, config);
	for (unsigned i = 0; i < config->paths && !ret; i++) {
		sock->paths = i + 1;
		ret = path_open(sock, i, config);
	}
	if (!ret)
		ret = watch_all(sock);
	if (!ret)
		ret = uet_rx_open(sock);
	if (!ret)
		ret = uet_tx_open(sock);
	return ret;
}

int uet_sock_open(const struct uet_sock_config *config, struct uet_sock **out)
{
	struct uet_sock *sock;
	int ret;

	if (config->paths < 1 || config->paths > UET_SOCK_PATHS ||
	    config->rail_count > UET_SOCK_RAILS || config->rail_count > config->paths)
		return -FI_EINVAL;
	sock = calloc(1, sizeof(*sock));
	if (!sock)
		return -FI_ENOMEM;
	sock->addr = config->door;
	sock->family = config->door.sa.sa_family;
	sock->fd = sock->epoll = sock->errors = -1;
	sock->config = *config;
	sock->config.rails = NULL;
	ret = open_all(sock, config);
	if (ret) {
		uet_sock_close(sock);
		return ret;
	}
	*out = sock;
	return 0;
}

/* ---- one peer ---------------------------------------------------------------------- */

static void paths_close(struct uet_sock *sock, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		if (sock->path[i].fd >= 0)
			close(sock->path[i].fd);
	}
}

int uet_sock_fix(struct uet_sock *sock, const struct wire_addr *to)
{
	unsigned first = sock->paths, n = 0;
	int ret = 0;

	if (sock->fixed || sock->rails > 1 || to->sa.sa_family != sock->family)
		return -FI_EBUSY;
	while (n < sock->paths && !ret) {
		struct uet_sock_path *path = &sock->path[first + n++];

		ret = path_open(sock, first + n - 1, &sock->config);
		if (!ret && connect(path->fd, &to->sa, wire_addr_len(to)))
			ret = -errno;
		if (!ret)
			ret = watch(sock, first + n - 1);
	}
	if (ret) {
		paths_close(sock, first, first + n);
		return ret;
	}
	sock->fixed = n;
	sock->fixed_to = *to;
	return 0;
}

/* What is closed isn't watched any more. */
void uet_sock_unfix(struct uet_sock *sock, const struct wire_addr *to)
{
	if (!sock->fixed || !wire_addr_equal(&sock->fixed_to, to))
		return;
	paths_close(sock, sock->paths, sock->paths + sock->fixed);
	sock->fixed = 0;
}

void uet_sock_close(struct uet_sock *sock)
{
	if (!sock)
		return;
	uet_rx_close(sock);
	uet_tx_close(sock);
	paths_close(sock, 0, sock->paths + sock->fixed);
	if (sock->fd >= 0)
		close(sock->fd);
	if (sock->epoll >= 0)
		close(sock->epoll);
	if (sock->errors >= 0)
		close(sock->errors);
	free(sock);
}

/* ---- the way to a peer ------------------------------------------------------------- */

size_t uet_sock_overhead(const struct wire_addr *to)
{
	return to->sa.sa_family == AF_INET6 ? UET_OVERHEAD_IP6 : UET_OVERHEAD_IP4;
}

/* Only a socket that is connected knows. Loopback says 65536, which is more than a
 * datagram has. */
static int mtu_ask(int fd, const struct wire_addr *to, int *mtu)
{
	bool v6 = to->sa.sa_family == AF_INET6;
	socklen_t len = sizeof(*mtu);

	if (connect(fd, &to->sa, wire_addr_len(to)) ||
	    getsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU : IP_MTU, mtu,
		       &len))
		return -errno;
	return 0;
}

size_t uet_sock_room(const struct uet_sock *sock, unsigned path,
		     const struct wire_addr *to, int *err)
{
	const struct uet_rail *rail = &sock->rail[sock->path[path].rail];
	size_t overhead = uet_sock_overhead(to);
	struct wire_addr at = rail->addr;
	int fd, mtu = 0;

	if (to->sa.sa_family != sock->family) {
		*err = -EAFNOSUPPORT;
		return 0;
	}
	fd = socket_open(sock->family);
	if (fd < 0) {
		*err = fd;
		return 0;
	}
	*port_of(&at) = 0;
	*err = path_leave_by(fd, rail->device);
	if (!*err)
		*err = socket_bind(fd, &at);
	if (!*err)
		*err = mtu_ask(fd, to, &mtu);
	close(fd);
	if (*err || (size_t)mtu <= overhead)
		return 0;
	return ((size_t)mtu > UINT16_MAX ? UINT16_MAX : (size_t)mtu) - overhead;
}

/* Of 127.0.0.0/8, all of which is local. */
static bool is_loopback(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET && ntohl(a->in.sin_addr.s_addr) >> 24 == 127;
}

static bool same_host(const struct wire_addr *a, const struct wire_addr *b)
{
	if (a->sa.sa_family != b->sa.sa_family)
		return false;
	if (a->sa.sa_family == AF_INET6)
		return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr,
			      sizeof(a->in6.sin6_addr)) == 0;
	return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr ||
	       (is_loopback(a) && is_loopback(b));
}

/* Whoever talks to one of his own addresses is given it for his own, too. */
bool uet_sock_stays(const struct uet_sock *sock, const struct wire_addr *to)
{
	union {
		struct sockaddr_storage all;
		struct sockaddr sa;
	} own;
	socklen_t len = sizeof(own);
	struct wire_addr from;
	bool stays = false;
	int fd;

	if (to->sa.sa_family != sock->family)
		return false;
	fd = socket_open(sock->family);
	if (fd < 0)
		return false;
	if (!connect(fd, &to->sa, wire_addr_len(to)) && !getsockname(fd, &own.sa, &len) &&
	    wire_addr_from_sockaddr(&from, &own.sa, len))
		stays = same_host(&from, to);
	close(fd);
	return stays;
}

void uet_sock_fragment(struct uet_sock *sock, unsigned path)
{
	for (unsigned i = path; i < sock->paths + sock->fixed; i += sock->paths) {
		if (sock->family == AF_INET6)
			option(sock->path[i].fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
			       IPV6_PMTUDISC_DONT);
		else
			option(sock->path[i].fd, IPPROTO_IP, IP_MTU_DISCOVER,
			       IP_PMTUDISC_DONT);
	}
}

/* ---- errors that came back --------------------------------------------------------- */

/* Of what was too long for this host it names no port. */
static void news_addr(struct wire_addr *to, const struct sockaddr_storage *from)
{
	union {
		struct sockaddr_storage all;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} named = {.all = *from};
	bool v6 = from->ss_family == AF_INET6;
	in_port_t *port = v6 ? &named.in6.sin6_port : &named.in.sin_port;
	in_port_t was = *port;

	memset(to, 0, sizeof(*to));
	if (!was)
		*port = htons(1);
	if (wire_addr_from_sockaddr(to, (const struct sockaddr *)&named.all,
				    sizeof(named)))
		*port_of(to) = was;
}

static bool news_take(const struct msghdr *msg, struct uet_sock_news *news)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c;
	     c = CMSG_NXTHDR((struct msghdr *)(uintptr_t)msg, c)) {
		struct sock_extended_err e;
		size_t overhead;

		if (!(c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) &&
		    !(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		news->err = -(int)e.ee_errno;
		overhead = c->cmsg_level == IPPROTO_IPV6 ? UET_OVERHEAD_IP6
							 : UET_OVERHEAD_IP4;
		if (e.ee_errno == EMSGSIZE && e.ee_info > overhead)
			news->room = e.ee_info - overhead;
		return e.ee_errno != 0;
	}
	return false;
}

static bool path_news(struct uet_sock_path *path, struct uet_sock_news *news)
{
	union {
		char bytes[256];
		struct cmsghdr align;
	} control;
	struct sockaddr_storage from = {0};
	char byte;
	struct iovec iov = {.iov_base = &byte, .iov_len = 1};
	struct msghdr msg;

	do {
		msg = (struct msghdr){.msg_name = &from,
				      .msg_namelen = sizeof(from),
				      .msg_iov = &iov,
				      .msg_iovlen = 1,
				      .msg_control = control.bytes,
				      .msg_controllen = sizeof(control.bytes)};
		if (recvmsg(path->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) {
			path->refused = false;
			return false;
		}
		*news = (struct uet_sock_news){0};
	} while (!news_take(&msg, news));
	news_addr(&news->to, &from);
	return true;
}

bool uet_sock_ready(struct uet_sock *sock)
{
	struct epoll_event event[UET_SOCK_PATHS + 1];
	int n = epoll_wait(sock->epoll, event, UET_SOCK_PATHS + 1, 0);

	for (int i = 0; i < n; i++) {
		if (event[i].data.u32 < sock->paths + sock->fixed)
			sock->path[event[i].data.u32].refused = true;
	}
	return n != 0; /* an error: better not to sleep */
}

bool uet_sock_news(struct uet_sock *sock, bool all, struct uet_sock_news *news)
{
	for (unsigned i = 0; i < sock->paths + sock->fixed; i++) {
		if ((all || sock->path[i].refused) && path_news(&sock->path[i], news)) {
			news->path = i % sock->paths;
			return true;
		}
	}
	return false;
}
