/* SPDX-License-Identifier: BSD-2-Clause */
/* Doors: opening one's own, knocking at another's. */
#include "config.h"

#include "prov/wire/shm/shm_door.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#define DOOR_PREFIX  "weft-1/"
#define DOOR_BACKLOG 1024
#define DOOR_TRIES   16 /* ephemeral ports tried before giving up */

static int socket_error(int err)
{
	switch (err) {
	case EADDRINUSE:
		return -FI_EADDRINUSE;
	case EMFILE:
	case ENFILE:
		return -FI_EMFILE;
	case ENOMEM:
	case ENOBUFS:
		return -FI_ENOMEM;
	case EACCES:
	case EPERM:
		return -FI_EACCES;
	default:
		return -FI_EADDRNOTAVAIL;
	}
}

static in_port_t addr_port(const struct wire_addr *a)
{
	return a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port;
}

static void addr_set_port(struct wire_addr *a, in_port_t port)
{
	if (a->sa.sa_family == AF_INET6)
		a->in6.sin6_port = port;
	else
		a->in.sin_port = port;
}

/* The abstract name of a door; any: the one that stands for every local address. */
static socklen_t door_name(const struct wire_addr *a, bool any, struct sockaddr_un *un)
{
	char text[WIRE_ADDR_TEXT_MAX];
	int len;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	if (any && a->context)
		snprintf(text, sizeof(text), "any%c:%u/%u",
			 a->sa.sa_family == AF_INET6 ? '6' : '4',
			 (unsigned)ntohs(addr_port(a)), (unsigned)a->context);
	else if (any)
		snprintf(text, sizeof(text), "any%c:%u",
			 a->sa.sa_family == AF_INET6 ? '6' : '4',
			 (unsigned)ntohs(addr_port(a)));
	else
		wire_addr_text(a, text);
	len = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, DOOR_PREFIX "%s",
		       text);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
}

/* Binds a TCP socket: from then on nobody else gets the port. Fills in port 0. */
static int port_reserve(struct wire_addr *a, int *fd_out)
{
	socklen_t len = wire_addr_len(a);
	struct wire_addr got;
	int fd, one = 1;

	fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return socket_error(errno);
	if (a->sa.sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	memset(&got, 0, sizeof(got));
	if (bind(fd, &a->sa, len) < 0 || getsockname(fd, &got.sa, &len) < 0) {
		int ret = socket_error(errno);

		close(fd);
		return ret;
	}
	addr_set_port(a, addr_port(&got));
	*fd_out = fd;
	return 0;
}

static int name_listen(const struct wire_addr *a, bool any, int *fd_out)
{
	struct sockaddr_un un;
	socklen_t len = door_name(a, any, &un);
	int fd;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return socket_error(errno);
	if (bind(fd, (struct sockaddr *)&un, len) < 0 || listen(fd, DOOR_BACKLOG) < 0) {
		int ret = socket_error(errno);

		close(fd);
		return ret;
	}
	*fd_out = fd;
	return 0;
}

static int door_try(struct shm_door *door, const struct wire_addr *want, bool any,
		    bool held)
{
	struct wire_addr bound = *want;
	int ret;

	/* The port of a context is the endpoint's, which has it already. */
	door->port_fd = -1;
	ret = want->context || held ? 0 : port_reserve(&bound, &door->port_fd);
	if (ret)
		return ret;
	door->addr = bound;
	if (any && !want->context)
		wire_addr_find_host(&door->addr);
	ret = name_listen(&door->addr, false, &door->listen_fd);
	if (ret)
		goto err_port;
	door->any_fd = -1;
	if (any) {
		ret = name_listen(&door->addr, true, &door->any_fd);
		if (ret)
			goto err_listen;
	}
	return 0;

err_listen:
	close(door->listen_fd);
err_port:
	if (door->port_fd >= 0)
		close(door->port_fd);
	return ret;
}

int shm_door_open(struct shm_door *door, const struct wire_addr *want, bool any,
		  bool held)
{
	int ret = -FI_EADDRINUSE;

	if (want->sa.sa_family != AF_INET && want->sa.sa_family != AF_INET6)
		return -FI_EADDRNOTAVAIL;
	if (want->context && (!addr_port(want) || !wire_addr_has_host(want)))
		return -FI_EADDRNOTAVAIL;
	if (held && !addr_port(want))
		return -FI_EADDRNOTAVAIL;
	any = any || !wire_addr_has_host(want);
	/* Whoever holds the name of a port that was free: another one will do, unless
	 * just this one was asked for. */
	for (int i = 0; i < DOOR_TRIES && ret == -FI_EADDRINUSE; i++) {
		ret = door_try(door, want, any, held);
		if (addr_port(want) != 0)
			break;
	}
	return ret;
}

void shm_door_close(struct shm_door *door)
{
	close(door->listen_fd);
	if (door->any_fd >= 0)
		close(door->any_fd);
	if (door->port_fd >= 0)
		close(door->port_fd);
}

/* Whether `a` is an address of this host (in this network namespace): one can bind to it.
 */
static bool addr_is_local(const struct wire_addr *a)
{
	struct wire_addr probe = *a;
	bool local;
	int fd;

	fd = socket(a->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	addr_set_port(&probe, 0);
	local = bind(fd, &probe.sa, wire_addr_len(a)) == 0;
	close(fd);
	return local;
}

static int name_connect(const struct wire_addr *to, bool any, int fd)
{
	struct sockaddr_un un;
	socklen_t len = door_name(to, any, &un);

	return connect(fd, (struct sockaddr *)&un, len) == 0 ? 0 : errno;
}

int shm_door_knock(const struct wire_addr *to, int *fd_out)
{
	int fd, err, ret;

	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return socket_error(errno);
	err = name_connect(to, false, fd);
	if (err == ECONNREFUSED) {
		if (!addr_is_local(to)) {
			close(fd);
			return -FI_EHOSTUNREACH;
		}
		err = name_connect(to, true, fd);
	}
	switch (err) {
	case 0:
		*fd_out = fd;
		return 0;
	case EPERM:
	case EACCES:
		ret = -FI_EACCES;
		break;
	case ENOMEM:
	case ENOBUFS:
		ret = -FI_ENOMEM;
		break;
	default: /* nobody there, or (EAGAIN) too many knock at once: worth a retry */
		ret = -FI_ECONNREFUSED;
		break;
	}
	close(fd);
	return ret;
}

bool shm_door_peer(int fd, int *pid)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ||
	    len != sizeof(cred))
		return false;
	if (cred.uid != geteuid() && cred.uid != 0)
		return false;
	*pid = cred.pid;
	return true;
}

int shm_door_process(int pid, int *fd)
{
	*fd = -1;
	if (pid <= 0 || pid == getpid())
		return 0;
#ifdef SYS_pidfd_open
	*fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (*fd < 0 && errno == ESRCH)
		return -FI_ECONNREFUSED;
#endif
	return 0;
}
