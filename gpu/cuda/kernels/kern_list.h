/* SPDX-License-Identifier: BSD-2-Clause */
/* All kernels of many threads, for whoever makes a table of them: KERN_LIST(X) is X(name)
 * for each, KERN_REDUCE_LIST(X) without copies. The symbol is weft_NAME. Beside them
 * there is weft_words. */
#ifndef WEFT_GPU_KERN_LIST_H
#define WEFT_GPU_KERN_LIST_H

/* clang-format off */
#define KERN_REDUCE_LIST(X) \
	X(int8_sum) X(int8_min) X(int8_max) \
	X(uint8_sum) X(uint8_prod) X(uint8_min) X(uint8_max) \
	X(int16_sum) X(int16_min) X(int16_max) \
	X(uint16_sum) X(uint16_prod) X(uint16_min) X(uint16_max) \
	X(int32_sum) X(int32_min) X(int32_max) \
	X(uint32_sum) X(uint32_prod) X(uint32_min) X(uint32_max) \
	X(int64_sum) X(int64_min) X(int64_max) \
	X(uint64_sum) X(uint64_prod) X(uint64_min) X(uint64_max) \
	X(bits8_band) X(bits8_bor) X(bits8_bxor) \
	X(bits16_band) X(bits16_bor) X(bits16_bxor) \
	X(bits32_band) X(bits32_bor) X(bits32_bxor) \
	X(bits64_band) X(bits64_bor) X(bits64_bxor) \
	X(fp16_sum) X(fp16_prod) X(fp16_min) X(fp16_max) X(fp16_cast) \
	X(bf16_sum) X(bf16_prod) X(bf16_min) X(bf16_max) X(bf16_cast) \
	X(e4m3_sum) X(e4m3_prod) X(e4m3_min) X(e4m3_max) X(e4m3_cast) \
	X(e5m2_sum) X(e5m2_prod) X(e5m2_min) X(e5m2_max) X(e5m2_cast) \
	X(fp32_sum) X(fp32_prod) X(fp32_min) X(fp32_max) X(fp32_cast) \
	X(fp64_sum) X(fp64_prod) X(fp64_min) X(fp64_max) X(fp64_cast)

#define KERN_LIST(X) KERN_REDUCE_LIST(X) X(copy)
/* clang-format on */

#endif
