/* SPDX-License-Identifier: BSD-2-Clause */
/* Cross-memory attach: one copy between two processes' memory, by the kernel. */
#ifndef WEFT_WIRE_SHM_SHM_CMA_H
#define WEFT_WIRE_SHM_SHM_CMA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Whether process pid's memory can be read, and it is the process that means cookie:
 * found out by trying. */
bool shm_cma_probe(pid_t pid, uint64_t cookie_addr, const uint64_t cookie[2]);

/*
 * Copies len bytes from local to remote memory (write) or back; both lists describe at
 * least len bytes. 0, -FI_EFAULT (memory that isn't there, on either side),
 * -FI_ECONNRESET (no such process), -FI_EPERM (not allowed any more).
 */
int shm_cma_copy(pid_t pid, const struct iovec *local, size_t local_count,
		 const struct iovec *remote, size_t remote_count, size_t len, bool write);

#endif
