/* SPDX-License-Identifier: BSD-2-Clause */
/* Cross-memory attach. */
#include "config.h"

#include "prov/wire/shm/shm_cma.h"

#include <errno.h>
#include <string.h>

#include <rdma/fi_errno.h>

#define CMA_PIECES 16 /* per system call and side */

bool shm_cma_probe(pid_t pid, uint64_t cookie_addr, const uint64_t cookie[2])
{
	uint64_t got[2] = {0, 0};
	struct iovec local = {.iov_base = got, .iov_len = sizeof(got)};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)cookie_addr,
			       .iov_len = sizeof(got)};

	if (pid <= 0)
		return false;
	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(got))
		return false;
	return memcmp(got, cookie, sizeof(got)) == 0;
}

/* A place in a list of pieces. */
struct cursor {
	const struct iovec *iov;
	size_t left; /* pieces */
	size_t skip; /* bytes of the first piece that are behind us */
};

/* The next pieces, at most max bytes; returns how many pieces, and their bytes. */
static size_t cursor_take(const struct cursor *c, struct iovec out[CMA_PIECES],
			  size_t max, size_t *bytes)
{
	size_t skip = c->skip, n = 0;

	*bytes = 0;
	for (size_t i = 0; i < c->left && n < CMA_PIECES && *bytes < max; i++) {
		size_t room = c->iov[i].iov_len - skip;

		if (room > max - *bytes)
			room = max - *bytes;
		if (room > 0) {
			out[n].iov_base = (char *)c->iov[i].iov_base + skip;
			out[n++].iov_len = room;
			*bytes += room;
		}
		skip = 0;
	}
	return n;
}

static void cursor_move(struct cursor *c, size_t bytes)
{
	while (bytes > 0) {
		size_t room = c->iov->iov_len - c->skip;

		if (bytes < room) {
			c->skip += bytes;
			return;
		}
		bytes -= room;
		c->iov++;
		c->left--;
		c->skip = 0;
	}
}

static int cma_error(int err)
{
	switch (err) {
	case ESRCH:
		return -FI_ECONNRESET;
	case EPERM:
	case ENOSYS:
		return -FI_EPERM;
	case ENOMEM:
		return -FI_ENOMEM;
	default:
		return -FI_EFAULT;
	}
}

int shm_cma_copy(pid_t pid, const struct iovec *local, size_t local_count,
		 const struct iovec *remote, size_t remote_count, size_t len, bool write)
{
	struct cursor here = {.iov = local, .left = local_count};
	struct cursor there = {.iov = remote, .left = remote_count};

	while (len > 0) {
		struct iovec a[CMA_PIECES], b[CMA_PIECES];
		size_t a_bytes, b_bytes, a_count, b_count;
		ssize_t n;

		a_count = cursor_take(&here, a, len, &a_bytes);
		b_count = cursor_take(&there, b, a_bytes, &b_bytes);
		if (b_bytes == 0)
			return -FI_EFAULT;
		/* The kernel stops at the shorter of the two. */
		if (write)
			n = process_vm_writev(pid, a, a_count, b, b_count, 0);
		else
			n = process_vm_readv(pid, a, a_count, b, b_count, 0);
		if (n < 0)
			return cma_error(errno);
		if (n == 0)
			return -FI_EFAULT;
		cursor_move(&here, (size_t)n);
		cursor_move(&there, (size_t)n);
		len -= (size_t)n;
	}
	return 0;
}
