/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registered memory need not be there: applications register address ranges in which much
 * is never mapped. Whoever is to touch such memory on a peer's behalf asks here first, so
 * that the peer gets an error instead of this process a signal.
 *
 * Asking costs one system call per page, and answers are remembered per registration. A
 * page that was unmapped after it was found, while still registered, is not noticed.
 */
#ifndef WEFT_MEM_PROBE_H
#define WEFT_MEM_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEM_PROBE_PAGES 64

struct mem_probe {
	struct {
		uintptr_t page; /* its number; 0: nothing */
		uint32_t incarnation;
		bool writable;
	} seen[MEM_PROBE_PAGES];
};

/* Whether [addr, addr + len), part of a registration of that incarnation, can be read, or
 * written as well. len is not 0, and the range doesn't wrap. */
bool mem_probe(struct mem_probe *probe, uintptr_t addr, size_t len, bool write,
	       uint32_t incarnation);

#endif
