/* SPDX-License-Identifier: BSD-2-Clause */
/* Which atomic operations there are: what fi_query_atomic and the calls of an endpoint
 * agree on. */
#ifndef WEFT_FI_ATOMIC_H
#define WEFT_FI_ATOMIC_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>

/* mode: enum atomic_mode. 0, and how many elements one call takes; or -FI_EOPNOTSUPP.
 * count may be NULL. */
int wfi_atomic_valid(uint32_t mode, enum fi_datatype type, enum fi_op op, size_t *count);
/* The same where devices carry them out (FI_WEFT_VERBS_ATOMICS). */
int wfi_atomic_native(uint32_t mode, enum fi_datatype type, enum fi_op op, size_t *count);

int wfi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);

#endif
