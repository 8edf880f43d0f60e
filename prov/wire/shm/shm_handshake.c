/* SPDX-License-Identifier: BSD-2-Clause */
/* Handshake messages: sending, receiving, checking, mapping. */
#include "config.h"

#include "prov/wire/shm/shm_handshake.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/keytab.h"
#include "prov/mem/memfd.h"
#include "prov/wire/shm/shm_bulk.h"

/* Whether this descriptor travels with the message. */
static bool fd_travels(const struct shm_hello *hello, enum shm_hello_fd which)
{
	if (hello->kind == SHM_REFUSAL)
		return false;
	switch (which) {
	case SHM_FD_PAIR:
		return hello->kind == SHM_HELLO;
	case SHM_FD_BULK:
		return hello->bulk_size != 0;
	default:
		return true;
	}
}

/* Those that travel, one behind the other. Returns how many. */
static int fds_pack(const struct shm_hello *hello, const int *fds,
		    int packed[SHM_FD_COUNT])
{
	int count = 0;

	for (int i = 0; i < SHM_FD_COUNT; i++)
		if (fd_travels(hello, (enum shm_hello_fd)i))
			packed[count++] = fds[i];
	return count;
}

/* The other way round; false: not as many as the message says. The others are -1. */
static bool fds_unpack(const struct shm_hello *hello, const int packed[SHM_FD_COUNT],
		       int count, int fds[SHM_FD_COUNT])
{
	int at = 0;

	for (int i = 0; i < SHM_FD_COUNT; i++)
		if (fd_travels(hello, (enum shm_hello_fd)i))
			at++;
	if (at != count)
		return false;
	at = 0;
	for (int i = 0; i < SHM_FD_COUNT; i++)
		fds[i] = fd_travels(hello, (enum shm_hello_fd)i) ? packed[at++] : -1;
	return true;
}

int shm_parcel_send(int sock, const struct shm_hello *hello, const int *fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SHM_FD_COUNT)];
	} control;
	struct iovec iov = {.iov_base = (void *)hello, .iov_len = sizeof(*hello)};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	int packed[SHM_FD_COUNT];
	size_t bytes = sizeof(int) * (size_t)fds_pack(hello, fds, packed);

	if (bytes > 0) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(bytes);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(bytes);
		memcpy(CMSG_DATA(c), packed, bytes);
	}
	if (sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)sizeof(*hello))
		return 0;
	/* ETOOMANYREFS: too many descriptors are on their way; that passes. */
	return errno == EPIPE || errno == ECONNRESET ? -FI_ECONNRESET : -FI_ECONNREFUSED;
}

static void fds_close(int fds[SHM_FD_COUNT])
{
	for (int i = 0; i < SHM_FD_COUNT; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* Collects the descriptors of a message; more than fit are closed. Returns how many came.
 */
static int parcel_collect(struct msghdr *msg, int fds[SHM_FD_COUNT])
{
	int count = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (count < SHM_FD_COUNT)
				fds[count] = fd;
			else
				close(fd);
			count++;
		}
	}
	return count;
}

int shm_parcel_recv(int sock, enum shm_hello_kind kind, struct shm_parcel *parcel)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SHM_FD_COUNT)];
	} control;
	uint8_t bytes[sizeof(struct shm_hello) + 1]; /* one more: longer is noticed */
	struct iovec iov = {.iov_base = bytes, .iov_len = sizeof(bytes)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = control.bytes,
			     .msg_controllen = sizeof(control.bytes)};
	int packed[SHM_FD_COUNT];
	int count, ret;
	ssize_t n;

	for (int i = 0; i < SHM_FD_COUNT; i++)
		parcel->fds[i] = packed[i] = -1;
	n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	/* Told once when the other end closed without reading all; what it sent before
	 * that is still there. */
	if (n < 0 && errno == ECONNRESET)
		n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? -FI_EAGAIN : -FI_ECONNRESET;
	count = parcel_collect(&msg, packed);
	if (n == 0 && count == 0)
		return -FI_ECONNRESET;
	ret = shm_hello_parse(bytes, (size_t)n, kind, &parcel->hello, &parcel->addr);
	if (ret == 0 && ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
			 !fds_unpack(&parcel->hello, packed, count, parcel->fds)))
		ret = -FI_EINVAL;
	if (ret)
		fds_close(packed);
	return ret;
}

void shm_parcel_drop(struct shm_parcel *parcel)
{
	fds_close(parcel->fds);
}

static int fd_take(struct shm_parcel *parcel, enum shm_hello_fd which)
{
	int fd = parcel->fds[which];

	parcel->fds[which] = -1;
	return fd;
}

/* Sending on anything but a datagram socket could do harm, or wait. */
static bool is_wake_socket(int fd)
{
	int type = 0, domain = 0;
	socklen_t len = sizeof(int);

	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0 || type != SOCK_DGRAM)
		return false;
	len = sizeof(int);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 &&
	       domain == AF_UNIX;
}

int shm_parcel_map(struct shm_parcel *parcel, struct shm_peer_memory *mem)
{
	size_t size = SHM_HUB_SIZE;
	void *map;
	int ret;

	*mem = (struct shm_peer_memory){.pair_fd = -1, .wake = -1};
	ret = mem_memfd_map(parcel->fds[SHM_FD_HUB], &size, true, &map);
	if (ret)
		goto out;
	mem->hub = map;
	ret = mem_keyview_open(fd_take(parcel, SHM_FD_KEYS), &mem->keys);
	if (ret)
		goto out;
	if (!is_wake_socket(parcel->fds[SHM_FD_WAKE])) {
		ret = -FI_EINVAL;
		goto out;
	}
	if (parcel->hello.kind == SHM_HELLO) {
		size = SHM_PAIR_SIZE;
		ret = mem_memfd_map(parcel->fds[SHM_FD_PAIR], &size, true, &map);
		if (ret)
			goto out;
		mem->pair = map;
		mem->pair_fd = fd_take(parcel, SHM_FD_PAIR);
	}
	if (parcel->fds[SHM_FD_BULK] >= 0) {
		/* Room for it there need not be: then nothing comes in bulk. */
		ret = shm_bulk_map(parcel->fds[SHM_FD_BULK], &mem->bulk);
		if (ret == -FI_ENOMEM)
			ret = 0;
		if (ret)
			goto out;
	}
	mem->wake = fd_take(parcel, SHM_FD_WAKE);
out:
	shm_parcel_drop(parcel);
	if (ret)
		shm_peer_memory_drop(mem);
	return ret;
}

void shm_peer_memory_drop(struct shm_peer_memory *mem)
{
	if (mem->pair)
		munmap(mem->pair, SHM_PAIR_SIZE);
	if (mem->hub)
		munmap(mem->hub, SHM_HUB_SIZE);
	if (mem->keys)
		mem_keyview_close(mem->keys);
	shm_bulk_unmap(mem->bulk);
	if (mem->pair_fd >= 0)
		close(mem->pair_fd);
	if (mem->wake >= 0)
		close(mem->wake);
	*mem = (struct shm_peer_memory){.pair_fd = -1, .wake = -1};
}
