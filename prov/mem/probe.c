/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel touches the memory for us: futex(2), of all calls, reads a word of user
 * memory or adds 0 to it atomically, fails with EFAULT where it can't, and is allowed
 * wherever there are threads.
 */
#include "config.h"

#include "prov/mem/probe.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Smaller than a page of some machines, never larger. */
#define PAGE_LOG2 12

/* A word of the page that nobody waits on: waking there would be harmless, though. */
static bool page_there(uintptr_t page, bool write)
{
	void *word = (void *)(page << PAGE_LOG2);
	uint32_t own = 0;
	long rc;

	if (write) {
		rc = syscall(SYS_futex, &own, FUTEX_WAKE_OP_PRIVATE, 0, NULL, word,
			     FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0));
	} else {
		/* Compares, and moves none of the waiters. */
		rc = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE_PRIVATE, 0, NULL, &own,
			     0);
	}
	return rc >= 0 || errno != EFAULT;
}

bool mem_probe(struct mem_probe *probe, uintptr_t addr, size_t len, bool write,
	       uint32_t incarnation)
{
	uintptr_t last = (addr + len - 1) >> PAGE_LOG2;

	for (uintptr_t page = addr >> PAGE_LOG2; page <= last; page++) {
		uint32_t i = page % MEM_PROBE_PAGES;

		if (probe->seen[i].page == page &&
		    probe->seen[i].incarnation == incarnation &&
		    (probe->seen[i].writable || !write)) {
			continue;
		}
		if (page == 0 || !page_there(page, write)) {
			return false;
		}
		probe->seen[i].page = page;
		probe->seen[i].incarnation = incarnation;
		probe->seen[i].writable = write;
	}
	return true;
}
