/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations that can be told from each other: the first word of every page is what
 * whoever mapped the memory wrote there, and a registration keeps those words as they
 * were when it was made. One that differs from the memory is stale.
 */
#ifndef WEFT_MEM_REG_MOCK_H
#define WEFT_MEM_REG_MOCK_H

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "prov/mem/regcache.h"

#define PAGE ((size_t)4096)

struct mock_reg {
	uintptr_t start;
	size_t pages;
	atomic_int alive;
	uint64_t words[];
};

struct mock {
	atomic_int made, dropped;
	atomic_int fail;  /* so many of the next ones: -FI_ENOMEM */
	atomic_int remap; /* the next one: other memory in its place before it is made */
};

static atomic_ullong mock_word = 1;

/* A word of our own memory, not by a load: it may not be there. Some systems refuse the
 * one way, others the other; where descriptors ran out only the first is left. */
static inline bool mock_read(const void *at, uint64_t *word)
{
	struct iovec to = {word, 8}, from = {(void *)(uintptr_t)at, 8};
	ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);
	int fd;

	if (n == 8 || errno == EFAULT)
		return n == 8;
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = pread(fd, word, 8, (off_t)(uintptr_t)at);
	close(fd);
	return n == 8;
}

static int mock_add(void *arg, void *start, size_t len, void **handle)
{
	struct mock *m = arg;
	size_t pages = len / PAGE;
	struct mock_reg *r;

	if (atomic_load(&m->fail) > 0) {
		atomic_fetch_sub(&m->fail, 1);
		return -FI_ENOMEM;
	}
	r = calloc(1, sizeof(*r) + pages * sizeof(uint64_t));
	if (!r)
		return -FI_ENOMEM;
	for (size_t i = 0; i < pages; i++) {
		if (!mock_read((char *)start + i * PAGE, &r->words[i])) {
			free(r);
			return -FI_EFAULT;
		}
	}
	r->start = (uintptr_t)start;
	r->pages = pages;
	atomic_store(&r->alive, 1);
	atomic_fetch_add(&m->made, 1);
	*handle = r;
	return 0;
}

static void mock_drop(void *arg, void *handle)
{
	struct mock *m = arg;
	struct mock_reg *r = handle;

	if (atomic_exchange(&r->alive, 0) != 1)
		abort(); /* twice */
	atomic_fetch_add(&m->dropped, 1);
	free(r);
}

static const struct mem_reg_ops mock_ops = {.add = mock_add, .drop = mock_drop};

/* New contents: a word of its own for every page. */
static inline void stamp(void *at, size_t len)
{
	for (size_t i = 0; i < len; i += PAGE)
		*(volatile uint64_t *)((char *)at + i) = atomic_fetch_add(&mock_word, 1);
}

/* Whether the registration is of what is there now. */
static inline bool is_true_of(const struct mem_reg *reg, const void *at, size_t len)
{
	const struct mock_reg *r = reg->handle;
	uintptr_t first = (uintptr_t)at & ~(PAGE - 1);

	if (reg->start > first || reg->end < (uintptr_t)at + len ||
	    r->start != reg->start)
		return false;
	for (uintptr_t p = first; p < (uintptr_t)at + len; p += PAGE)
		if (r->words[(p - r->start) / PAGE] != *(const volatile uint64_t *)p)
			return false;
	return true;
}

#endif
