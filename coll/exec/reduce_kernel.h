/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernels behind reduce.h: one table per instruction set, filled by reduce_isa.h in
 * one file each. The choice depends on the CPU alone; all tables give the same bits, but
 * for the payload of a NaN, so that hosts of different kinds may work together.
 */
#ifndef WEFT_EXEC_REDUCE_KERNEL_H
#define WEFT_EXEC_REDUCE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "weft/weft.h"

typedef void reduce_fn(void *dst, const void *a, const void *b, size_t count);
typedef void reduce_scale_fn(void *dst, const void *src, size_t count, uint64_t divisor);

struct reduce_kernel {
	reduce_fn *sum, *prod, *min, *max;
	reduce_scale_fn *scale;
	reduce_fn *band, *bor, *bxor; /* of integers; NULL elsewhere */
};

struct reduce_isa {
	const char *name;
	bool (*usable)(void);		    /* this CPU, this kernel */
	const struct reduce_kernel *kernel; /* [WEFT_TYPE_COUNT] */
};

/* Best first; the last row is always usable. */
extern const struct reduce_isa reduce_isa_table[];
extern const size_t reduce_isa_count;

const struct reduce_isa *reduce_isa_choose(void);

extern const struct reduce_kernel reduce_kernel_base[WEFT_TYPE_COUNT];
#if defined(__x86_64__)
extern const struct reduce_kernel reduce_kernel_avx2[WEFT_TYPE_COUNT];
extern const struct reduce_kernel reduce_kernel_avx512[WEFT_TYPE_COUNT];
#endif

#endif
