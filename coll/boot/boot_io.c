/* SPDX-License-Identifier: BSD-2-Clause */
/* See boot_io.h. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include "coll/boot/boot_clock.h"
#include "coll/boot/boot_io.h"

enum {
	BACKLOG = 4096, /* the kernel caps it; ranks arrive together */
	BACKOFF_FIRST_US = 5000,
	BACKOFF_MOST_US = 1000000,
	ATTEMPT_MS = 3000, /* one connect; a dropped SYN is repeated sooner than this */
};

enum boot_io boot_io_read(int fd, void *buf, size_t len, size_t *done)
{
	while (*done < len) {
		ssize_t n = recv(fd, (char *)buf + *done, len - *done, MSG_DONTWAIT);

		if (n > 0) {
			*done += (size_t)n;
			continue;
		}
		if (n == 0)
			return BOOT_IO_EOF;
		if (errno == EAGAIN || errno == EWOULDBLOCK)
			return BOOT_IO_MORE;
		if (errno != EINTR)
			return BOOT_IO_ERROR;
	}
	return BOOT_IO_DONE;
}

enum boot_io boot_io_write(int fd, struct boot_tx *tx)
{
	const size_t hdr_len = sizeof(tx->hdr);

	while (tx->done < hdr_len + tx->payload_len) {
		size_t hdr_done = tx->done < hdr_len ? tx->done : hdr_len;
		size_t body_done = tx->done - hdr_done;
		struct iovec iov[2] = {
			{(char *)&tx->hdr + hdr_done, hdr_len - hdr_done},
			{(char *)(uintptr_t)tx->payload + (tx->payload ? body_done : 0),
			 tx->payload_len - body_done},
		};
		struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
		ssize_t n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0)
			tx->done += (size_t)n;
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return BOOT_IO_MORE;
		else if (errno != EINTR)
			return BOOT_IO_ERROR;
	}
	return BOOT_IO_DONE;
}

int boot_io_prepare(int fd)
{
	int flags = fcntl(fd, F_GETFL), one = 1;

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	/* Small messages one after the other: waiting for more would cost 40 ms each. Not
	 * every socket has it (a listening one inherits it), so failure is no failure. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return 0;
}

static int listen_at(const struct addrinfo *ai, const char **what)
{
	int one = 1;
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	*what = "socket";
	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	*what = "bind";
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0) {
		*what = "listen";
		if (listen(fd, BACKLOG) == 0)
			return fd;
	}
	one = errno;
	close(fd);
	errno = one;
	return -1;
}

int boot_io_listen(const char *host, const char *port, const char **what)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *list;
	int rc = getaddrinfo(*host ? host : NULL, port, &hints, &list);
	int fd = -1;

	if (rc) {
		*what = gai_strerror(rc);
		errno = EINVAL;
		return -1;
	}
	for (struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next)
		fd = listen_at(ai, what);
	rc = errno;
	freeaddrinfo(list);
	errno = rc;
	return fd;
}

void boot_io_address(int fd, bool peer, char text[BOOT_ADDR_TEXT])
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char host[64], port[8];
	int rc = peer ? getpeername(fd, (struct sockaddr *)&addr, &len)
		      : getsockname(fd, (struct sockaddr *)&addr, &len);

	if (rc || getnameinfo((struct sockaddr *)&addr, len, host, sizeof(host), port,
			      sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
		snprintf(text, BOOT_ADDR_TEXT, "?");
	else
		snprintf(text, BOOT_ADDR_TEXT, strchr(host, ':') ? "[%s]:%s" : "%s:%s",
			 host, port);
}

void boot_io_backoff(uint32_t *backoff, int64_t deadline)
{
	uint32_t random = 0, us = *backoff ? *backoff : BACKOFF_FIRST_US;
	int64_t left = deadline - boot_clock_us();
	int64_t sleep_us;

	/* Without entropy the ranks only meet more often. */
	(void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
	sleep_us = us / 2 + random % us;
	if (sleep_us > left)
		sleep_us = left;
	if (sleep_us > 0)
		usleep((useconds_t)(sleep_us > 999999 ? 999999 : sleep_us));
	*backoff = us * 2 > BACKOFF_MOST_US ? BACKOFF_MOST_US : us * 2;
}

/* One attempt at one address; -1 with errno. */
static int connect_once(const struct addrinfo *ai, int64_t deadline)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct pollfd pfd = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int error = 0, rc;

	if (fd < 0)
		return -1;
	if (connect(fd, ai->ai_addr, ai->ai_addrlen) != 0) {
		error = errno;
		if (error == EINPROGRESS || error == EINTR) {
			do
				rc = poll(&pfd, 1, boot_wait_ms(deadline, ATTEMPT_MS));
			while (rc < 0 && errno == EINTR && boot_clock_us() < deadline);
			error = rc > 0 ? 0 : ETIMEDOUT;
			if (rc > 0 &&
			    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
				error = errno;
		}
	}
	if (!error && boot_io_prepare(fd) != 0)
		error = errno;
	if (!error)
		return fd;
	close(fd);
	errno = error;
	return -1;
}

/* Every address of the name once. */
static int connect_any(const char *host, const char *port, int64_t deadline, char *why,
		       size_t why_len)
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = AI_NUMERICSERV};
	struct addrinfo *list;
	int rc = getaddrinfo(host, port, &hints, &list);
	int fd = -1;

	if (rc) {
		snprintf(why, why_len, "%s", gai_strerror(rc));
		return -1;
	}
	for (struct addrinfo *ai = list; ai && fd < 0; ai = ai->ai_next) {
		fd = connect_once(ai, deadline);
		if (fd < 0)
			snprintf(why, why_len, "%s", strerror(errno));
	}
	freeaddrinfo(list);
	return fd;
}

int boot_io_connect(const char *host, const char *port, int64_t deadline,
		    uint32_t *backoff, char *why, size_t why_len)
{
	int fd = connect_any(host, port, deadline, why, why_len);

	while (fd < 0 && boot_clock_us() < deadline) {
		boot_io_backoff(backoff, deadline);
		fd = connect_any(host, port, deadline, why, why_len);
	}
	return fd;
}
