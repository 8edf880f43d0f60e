/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the libfabric provider "weft" offers beyond libfabric's own interface. Programs
 * that use it go on working with other providers: opening the operations fails there.
 *
 * Memory that peers on the same host share. RMA into such memory is load and store by the
 * initiator: no system call, nothing for the target to do.
 *
 *	struct weft_fi_mem_ops *mem;
 *
 *	if (fi_open_ops(&domain->fid, WEFT_FI_MEM_OPS, 0, (void **)&mem, NULL) == 0)
 *		ret = mem->alloc(domain, len, 0, &addr);
 */
#ifndef WEFT_WEFT_FI_H
#define WEFT_WEFT_FI_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_FI_MEM_OPS "weft_mem_ops"

/*
 * Both may be called from any thread and return 0 or a negative fi_errno value.
 *
 * The memory is the caller's like any other: registered with fi_mr_reg (all of it, or any
 * part), read and written freely. An aligned word of 8 bytes that a peer writes is seen
 * whole or not at all. A peer that has not used the memory yet writes the first few times
 * as into ordinary memory.
 *
 * A child made by fork(2) shares it with its parent. It does not outlive the process,
 * however that ends.
 */
struct weft_fi_mem_ops {
	size_t size; /* of this structure, as the provider knows it; fields that lie
		      * behind it are not there */

	/* Whole pages, zeroed. flags: none defined, 0. Counts as an open object of the
	 * domain. -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM, -FI_EMFILE. */
	int (*alloc)(struct fid_domain *domain, size_t len, uint64_t flags, void **addr);

	/* addr is what alloc gave. -FI_EBUSY: a registration of it is still open, or a
	 * peer may still be writing (fi_close of the registration said so). */
	int (*free)(struct fid_domain *domain, void *addr);
};

#ifdef __cplusplus
}
#endif

#endif
