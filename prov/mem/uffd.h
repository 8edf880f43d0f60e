/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * userfaultfd(2), for nothing but its news of mappings that go away: who unmaps, moves or
 * discards watched pages is held in that call until the news was read here. Pages are
 * watched in write-protect mode and never protected, so that no access faults.
 */
#ifndef WEFT_MEM_UFFD_H
#define WEFT_MEM_UFFD_H

#include <stdbool.h>
#include <stdint.h>

/* Page-aligned addresses, end behind the last. */
struct mem_range {
	uintptr_t start, end;
};

/* 0 and a descriptor that never blocks, or a negative fi_errno and why not. */
int mem_uffd_open(int *fd, const char **why);

/* False: some of it can't be watched (not mapped, of a kind that the kernel doesn't
 * watch, watched by somebody else). */
bool mem_uffd_watch(int fd, struct mem_range r);
void mem_uffd_unwatch(int fd, struct mem_range r);

/*
 * Whether some watched mapping has begun to change and its news was not read. A mapping
 * that is gone is told of before its addresses can be anybody else's: false means that
 * the news of all that happened before the call was read.
 */
bool mem_uffd_is_changing(int fd);

/* What is gone since the last time: at most `most` ranges (2 or more). 0: nothing. */
int mem_uffd_read(int fd, struct mem_range *gone, int most);

#endif
