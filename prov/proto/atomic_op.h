/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an atomic operation does to memory: which of libfabric's operations exist for
 * which datatype, and functions that carry them out over arrays. Knows nothing of peers.
 *
 * Elements of 1, 2, 4 and 8 bytes (but complex ones) are changed by the processor's own
 * atomic instructions, so that nobody who does the same comes in between: another domain,
 * another process, the application itself. Larger ones and complex ones are changed under
 * one lock of this process.
 */
#ifndef WEFT_PROTO_ATOMIC_OP_H
#define WEFT_PROTO_ATOMIC_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

/* The three families of calls: without result, with one, with comparison and result. */
enum atomic_mode { ATOMIC_BASE, ATOMIC_FETCH, ATOMIC_COMPARE, ATOMIC_MODES };

/* Largest element, and a multiple of every element's size. */
#define ATOMIC_ELEM_MAX 32

/*
 * `at` is aligned to atomic_type_align and may be anybody's at the same time. arg (NULL
 * for FI_ATOMIC_READ), cmp (ATOMIC_COMPARE, else NULL) and result (what was there before;
 * may be NULL) have any alignment and don't overlap `at`.
 */
typedef void (*atomic_fn)(void *at, const void *arg, const void *cmp, void *result,
			  size_t count);

/* NULL: there is no such operation. Any numbers may be asked for. */
atomic_fn atomic_op_find(uint32_t mode, uint32_t op, uint32_t type);

/* 0: no such type. */
size_t atomic_type_size(uint32_t type);
size_t atomic_type_align(uint32_t type);

/* What the target must allow, FI_REMOTE_READ and FI_REMOTE_WRITE: to see what was there,
 * and to change it. Of an operation that exists. */
uint64_t atomic_op_access(uint32_t mode, uint32_t op);

/* How many arrays of operands it brings along. */
static inline uint32_t atomic_op_operands(uint32_t mode, uint32_t op)
{
	return mode == ATOMIC_COMPARE ? 2 : op != FI_ATOMIC_READ;
}

#endif
