/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_query_atomic(3). */
#include "config.h"

#include "prov/fi/atomic.h"

#include <rdma/fi_errno.h>

#include "prov/fi/domain.h"
#include "prov/fi/limits.h"
#include "prov/proto/atomic_op.h"

int wfi_atomic_valid(uint32_t mode, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if (!atomic_op_find(mode, (uint32_t)op, (uint32_t)type))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = WFI_ATOMIC_SIZE / atomic_type_size((uint32_t)type);
	return 0;
}

int wfi_atomic_native(uint32_t mode, enum fi_datatype type, enum fi_op op, size_t *count)
{
	if ((type != FI_INT64 && type != FI_UINT64) ||
	    op != (mode == ATOMIC_COMPARE ? FI_CSWAP : FI_SUM))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = 1;
	return 0;
}

int wfi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags)
{
	uint32_t mode = ATOMIC_BASE;
	int rc;

	if (!attr)
		return -FI_EINVAL;
	if (flags & FI_TAGGED) /* tagged receives as targets */
		return -FI_EOPNOTSUPP;
	switch (flags) {
	case 0:
		break;
	case FI_FETCH_ATOMIC:
		mode = ATOMIC_FETCH;
		break;
	case FI_COMPARE_ATOMIC:
		mode = ATOMIC_COMPARE;
		break;
	default:
		return -FI_EBADFLAGS;
	}
	rc = wfi_domain_of(domain)->native
		     ? wfi_atomic_native(mode, type, op, &attr->count)
		     : wfi_atomic_valid(mode, type, op, &attr->count);
	if (!rc)
		attr->size = atomic_type_size((uint32_t)type);
	return rc;
}
