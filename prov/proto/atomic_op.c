/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of operations; see atomic_op.h. What they do is in atomic_type.h. */
#include "config.h"

#include "prov/proto/atomic_op.h"

#include <pthread.h>
#include <string.h>

#include <rdma/fabric.h>

#include "prov/mem/fork.h"

/*
 * Elements that no instruction changes at once. The lock is taken alone, for one array at
 * most. A process that forks may leave it taken for ever in the child, which therefore
 * uses the next one; nobody forks so deep that the first of them comes round.
 */
#define WIDE_LOCKS 64
static pthread_mutex_t wide_locks[WIDE_LOCKS] = {[0 ... WIDE_LOCKS - 1] =
							 PTHREAD_MUTEX_INITIALIZER};

static pthread_mutex_t *wide_take(void)
{
	pthread_mutex_t *lock = &wide_locks[mem_fork_generation() % WIDE_LOCKS];

	pthread_mutex_lock(lock);
	return lock;
}

#define ATOMIC_CLASS_INTEGER 1
#define ATOMIC_CLASS_REAL    2
#define ATOMIC_CLASS_COMPLEX 3

#define ATOMIC_T       int8_t
#define ATOMIC_NAME(x) x##_int8
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint32_t
#define ATOMIC_WORD    uint8_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       uint8_t
#define ATOMIC_NAME(x) x##_uint8
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint32_t
#define ATOMIC_WORD    uint8_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       int16_t
#define ATOMIC_NAME(x) x##_int16
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint32_t
#define ATOMIC_WORD    uint16_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       uint16_t
#define ATOMIC_NAME(x) x##_uint16
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint32_t
#define ATOMIC_WORD    uint16_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       int32_t
#define ATOMIC_NAME(x) x##_int32
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint32_t
#define ATOMIC_WORD    uint32_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       uint32_t
#define ATOMIC_NAME(x) x##_uint32
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint32_t
#define ATOMIC_WORD    uint32_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       int64_t
#define ATOMIC_NAME(x) x##_int64
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint64_t
#define ATOMIC_WORD    uint64_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       uint64_t
#define ATOMIC_NAME(x) x##_uint64
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    uint64_t
#define ATOMIC_WORD    uint64_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       float
#define ATOMIC_NAME(x) x##_float
#define ATOMIC_CLASS   ATOMIC_CLASS_REAL
#define ATOMIC_WORD    uint32_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       double
#define ATOMIC_NAME(x) x##_double
#define ATOMIC_CLASS   ATOMIC_CLASS_REAL
#define ATOMIC_WORD    uint64_t
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       float _Complex
#define ATOMIC_NAME(x) x##_float_complex
#define ATOMIC_CLASS   ATOMIC_CLASS_COMPLEX
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       double _Complex
#define ATOMIC_NAME(x) x##_double_complex
#define ATOMIC_CLASS   ATOMIC_CLASS_COMPLEX
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       long double
#define ATOMIC_NAME(x) x##_long_double
#define ATOMIC_CLASS   ATOMIC_CLASS_REAL
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       long double _Complex
#define ATOMIC_NAME(x) x##_long_double_complex
#define ATOMIC_CLASS   ATOMIC_CLASS_COMPLEX
#include "prov/proto/atomic_type.h"

#ifdef __SIZEOF_INT128__
#define ATOMIC_T       __int128
#define ATOMIC_NAME(x) x##_int128
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    unsigned __int128
#include "prov/proto/atomic_type.h"

#define ATOMIC_T       unsigned __int128
#define ATOMIC_NAME(x) x##_uint128
#define ATOMIC_CLASS   ATOMIC_CLASS_INTEGER
#define ATOMIC_WRAP    unsigned __int128
#include "prov/proto/atomic_type.h"
#endif

struct type_row {
	size_t size, align;
	atomic_fn ops[FI_ATOMIC_OP_LAST];
};

#define OPS_ANY(t)                                                               \
	[FI_SUM] = sum_##t, [FI_PROD] = prod_##t, [FI_LOR] = lor_##t,            \
	[FI_LAND] = land_##t, [FI_LXOR] = lxor_##t, [FI_ATOMIC_READ] = read_##t, \
	[FI_ATOMIC_WRITE] = write_##t, [FI_CSWAP] = cswap_##t,                   \
	[FI_CSWAP_NE] = cswap_ne_##t

#define OPS_ORDERED(t)                                                          \
	OPS_ANY(t), [FI_MIN] = min_##t, [FI_MAX] = max_##t,                     \
		    [FI_CSWAP_LE] = cswap_le_##t, [FI_CSWAP_LT] = cswap_lt_##t, \
		    [FI_CSWAP_GE] = cswap_ge_##t, [FI_CSWAP_GT] = cswap_gt_##t

#define OPS_INTEGER(t)                                                                  \
	OPS_ORDERED(t), [FI_BOR] = bor_##t, [FI_BAND] = band_##t, [FI_BXOR] = bxor_##t, \
			[FI_MSWAP] = mswap_##t

static const struct type_row types[] = {
	[FI_INT8] = {sizeof(int8_t), _Alignof(int8_t), {OPS_INTEGER(int8)}},
	[FI_UINT8] = {sizeof(uint8_t), _Alignof(uint8_t), {OPS_INTEGER(uint8)}},
	[FI_INT16] = {sizeof(int16_t), _Alignof(int16_t), {OPS_INTEGER(int16)}},
	[FI_UINT16] = {sizeof(uint16_t), _Alignof(uint16_t), {OPS_INTEGER(uint16)}},
	[FI_INT32] = {sizeof(int32_t), _Alignof(int32_t), {OPS_INTEGER(int32)}},
	[FI_UINT32] = {sizeof(uint32_t), _Alignof(uint32_t), {OPS_INTEGER(uint32)}},
	[FI_INT64] = {sizeof(int64_t), _Alignof(int64_t), {OPS_INTEGER(int64)}},
	[FI_UINT64] = {sizeof(uint64_t), _Alignof(uint64_t), {OPS_INTEGER(uint64)}},
	[FI_FLOAT] = {sizeof(float), _Alignof(float), {OPS_ORDERED(float)}},
	[FI_DOUBLE] = {sizeof(double), _Alignof(double), {OPS_ORDERED(double)}},
	[FI_FLOAT_COMPLEX] = {sizeof(float _Complex),
			      _Alignof(float _Complex),
			      {OPS_ANY(float_complex)}},
	[FI_DOUBLE_COMPLEX] = {sizeof(double _Complex),
			       _Alignof(double _Complex),
			       {OPS_ANY(double_complex)}},
	[FI_LONG_DOUBLE] = {sizeof(long double),
			    _Alignof(long double),
			    {OPS_ORDERED(long_double)}},
	[FI_LONG_DOUBLE_COMPLEX] = {sizeof(long double _Complex),
				    _Alignof(long double _Complex),
				    {OPS_ANY(long_double_complex)}},
#ifdef __SIZEOF_INT128__
	[FI_INT128] = {sizeof(__int128), _Alignof(__int128), {OPS_INTEGER(int128)}},
	[FI_UINT128] = {sizeof(unsigned __int128),
			_Alignof(unsigned __int128),
			{OPS_INTEGER(uint128)}},
#endif
};

/* Which calls an operation is for. */
static const uint8_t op_modes[FI_ATOMIC_OP_LAST] = {
	[FI_MIN] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_MAX] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_SUM] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_PROD] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_LOR] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_LAND] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_BOR] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_BAND] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_LXOR] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_BXOR] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_ATOMIC_WRITE] = 1u << ATOMIC_BASE | 1u << ATOMIC_FETCH,
	[FI_ATOMIC_READ] = 1u << ATOMIC_FETCH,
	[FI_CSWAP] = 1u << ATOMIC_COMPARE,
	[FI_CSWAP_NE] = 1u << ATOMIC_COMPARE,
	[FI_CSWAP_LE] = 1u << ATOMIC_COMPARE,
	[FI_CSWAP_LT] = 1u << ATOMIC_COMPARE,
	[FI_CSWAP_GE] = 1u << ATOMIC_COMPARE,
	[FI_CSWAP_GT] = 1u << ATOMIC_COMPARE,
	[FI_MSWAP] = 1u << ATOMIC_COMPARE,
};

static const struct type_row *row_of(uint32_t type)
{
	return type < sizeof(types) / sizeof(types[0]) && types[type].size ? &types[type]
									   : NULL;
}

atomic_fn atomic_op_find(uint32_t mode, uint32_t op, uint32_t type)
{
	const struct type_row *row = row_of(type);

	if (!row || mode >= ATOMIC_MODES || op >= FI_ATOMIC_OP_LAST ||
	    !(op_modes[op] >> mode & 1)) {
		return NULL;
	}
	return row->ops[op];
}

size_t atomic_type_size(uint32_t type)
{
	const struct type_row *row = row_of(type);

	return row ? row->size : 0;
}

size_t atomic_type_align(uint32_t type)
{
	const struct type_row *row = row_of(type);

	return row ? row->align : 0;
}

uint64_t atomic_op_access(uint32_t mode, uint32_t op)
{
	if (op == FI_ATOMIC_READ) {
		return FI_REMOTE_READ;
	}
	return mode == ATOMIC_BASE ? FI_REMOTE_WRITE : FI_REMOTE_READ | FI_REMOTE_WRITE;
}
