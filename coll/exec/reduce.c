/* SPDX-License-Identifier: BSD-2-Clause */
/* See reduce.h: chooses the kernels of this CPU and of the type. */
#include "config.h"

#include <assert.h>

#include "coll/exec/reduce.h"
#include "coll/exec/reduce_kernel.h"

static bool usable_always(void)
{
	return true;
}

#if defined(__x86_64__)

/* Every CPU with AVX2, FMA and BMI2 (the x86-64-v3 level) has F16C too; Clang 14 can be
 * asked for the former only. The builtins also check that the system saves the registers,
 * and cost a load each: no need to remember the answer. */
static bool usable_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
	       __builtin_cpu_supports("bmi2");
}

static bool usable_avx512(void)
{
	return usable_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
	       __builtin_cpu_supports("avx512vl");
}

#endif

const struct reduce_isa reduce_isa_table[] = {
#if defined(__x86_64__)
	{"avx512", usable_avx512, reduce_kernel_avx512},
	{"avx2", usable_avx2, reduce_kernel_avx2},
#endif
	{"base", usable_always, reduce_kernel_base},
};

const size_t reduce_isa_count = sizeof(reduce_isa_table) / sizeof(reduce_isa_table[0]);

const struct reduce_isa *reduce_isa_choose(void)
{
	size_t i = 0;

	while (!reduce_isa_table[i].usable())
		i++;
	return &reduce_isa_table[i];
}

/* NULL where the type does not have the operation. */
static reduce_fn *kernel_of(const struct reduce_kernel *k, enum weft_op op)
{
	switch (op) {
	case WEFT_SUM:
	case WEFT_AVG: /* divided at the end */
		return k->sum;
	case WEFT_PROD:
		return k->prod;
	case WEFT_MIN:
		return k->min;
	case WEFT_MAX:
		return k->max;
	case WEFT_BAND:
		return k->band;
	case WEFT_BOR:
		return k->bor;
	case WEFT_BXOR:
		return k->bxor;
	default:
		return NULL;
	}
}

bool reduce_supported(enum weft_type type, enum weft_op op)
{
	return (unsigned)type < WEFT_TYPE_COUNT &&
	       kernel_of(&reduce_kernel_base[type], op);
}

const char *reduce_supported_text(void)
{
	return "int8, uint8, int16, uint16, int32, uint32, int64, uint64 with sum, prod, "
	       "min, max, avg, band, bor, bxor; fp16, bf16, fp8_e4m3, fp8_e5m2, fp32, "
	       "fp64 with sum, prod, min, max, avg";
}

void reduce_apply(enum weft_type type, enum weft_op op, void *dst, const void *a,
		  const void *b, size_t count)
{
	assert(reduce_supported(type, op));
	kernel_of(&reduce_isa_choose()->kernel[type], op)(dst, a, b, count);
}

void reduce_scale(enum weft_type type, void *dst, const void *src, size_t count,
		  uint64_t divisor)
{
	assert(reduce_supported(type, WEFT_AVG) && divisor > 0);
	reduce_isa_choose()->kernel[type].scale(dst, src, count, divisor);
}
