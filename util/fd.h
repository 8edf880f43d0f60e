/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and writing all of something, where the kernel may take or give a part of it,
 * or a signal comes between. Nothing but system calls: signal handlers may write so. */
#ifndef WEFT_UTIL_FD_H
#define WEFT_UTIL_FD_H

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* 0 or -errno, as errno has it; -EIO of a descriptor that takes nothing. */
static inline int fd_write_all(int fd, const void *buf, size_t len)
{
	const char *at = (const char *)buf;

	while (len) {
		const ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The same; -ENODATA where it ends before that. */
static inline int fd_read_all(int fd, void *buf, size_t len)
{
	char *at = (char *)buf;

	while (len) {
		const ssize_t n = read(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = ENODATA;
		if (n <= 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

#endif
