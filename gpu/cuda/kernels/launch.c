/* SPDX-License-Identifier: BSD-2-Clause */
/* See launch.h. */
#include "config.h"

#include "gpu/cuda/kernels/launch.h"

#include <errno.h>
#include <stdio.h>

#include "gpu/cuda/kernels/kern_list.h"

#define SYMBOL(name) "weft_" #name,

const char *const launch_symbols[] = {KERN_LIST(SYMBOL) "weft_words"};
const size_t launch_symbol_count = sizeof(launch_symbols) / sizeof(launch_symbols[0]);

_Static_assert(KERN_SOURCES == GPU_SOURCES && KERN_WORDS == GPU_WORD_OPS, "");
_Static_assert((int)KERN_FP16 == (int)GPU_FP16 && (int)KERN_BF16 == (int)GPU_BF16 &&
		       (int)KERN_E4M3 == (int)GPU_FP8_E4M3 &&
		       (int)KERN_E5M2 == (int)GPU_FP8_E5M2 &&
		       (int)KERN_FP32 == (int)GPU_FP32 && (int)KERN_FP64 == (int)GPU_FP64,
	       "one numbering");
_Static_assert(sizeof(struct kern_word) == sizeof(struct gpu_word_op) &&
		       offsetof(struct kern_word, value) ==
			       offsetof(struct gpu_word_op, value),
	       "one layout");
_Static_assert(sizeof(struct kern_signal) == 32 && sizeof(struct kern_copy) == 72 &&
		       sizeof(struct kern_reduce) == 168,
	       "the same for every compiler");

/* A row for each type: its kernels by operation; NULL where it has none. */
struct type_row {
	const char *name;
	uint8_t size;
	const char *cast; /* of floating types */
	const char *op[GPU_OP_COUNT];
};

static const struct type_row rows[GPU_TYPE_COUNT] = {
	[GPU_INT8] = {"int8",
		      1,
		      NULL,
		      {"weft_int8_sum", "weft_uint8_prod", "weft_int8_min",
		       "weft_int8_max", "weft_int8_sum", "weft_bits8_band",
		       "weft_bits8_bor", "weft_bits8_bxor"}},
	[GPU_UINT8] = {"uint8",
		       1,
		       NULL,
		       {"weft_uint8_sum", "weft_uint8_prod", "weft_uint8_min",
			"weft_uint8_max", "weft_uint8_sum", "weft_bits8_band",
			"weft_bits8_bor", "weft_bits8_bxor"}},
	[GPU_INT16] = {"int16",
		       2,
		       NULL,
		       {"weft_int16_sum", "weft_uint16_prod", "weft_int16_min",
			"weft_int16_max", "weft_int16_sum", "weft_bits16_band",
			"weft_bits16_bor", "weft_bits16_bxor"}},
	[GPU_UINT16] = {"uint16",
			2,
			NULL,
			{"weft_uint16_sum", "weft_uint16_prod", "weft_uint16_min",
			 "weft_uint16_max", "weft_uint16_sum", "weft_bits16_band",
			 "weft_bits16_bor", "weft_bits16_bxor"}},
	[GPU_INT32] = {"int32",
		       4,
		       NULL,
		       {"weft_int32_sum", "weft_uint32_prod", "weft_int32_min",
			"weft_int32_max", "weft_int32_sum", "weft_bits32_band",
			"weft_bits32_bor", "weft_bits32_bxor"}},
	[GPU_UINT32] = {"uint32",
			4,
			NULL,
			{"weft_uint32_sum", "weft_uint32_prod", "weft_uint32_min",
			 "weft_uint32_max", "weft_uint32_sum", "weft_bits32_band",
			 "weft_bits32_bor", "weft_bits32_bxor"}},
	[GPU_INT64] = {"int64",
		       8,
		       NULL,
		       {"weft_int64_sum", "weft_uint64_prod", "weft_int64_min",
			"weft_int64_max", "weft_int64_sum", "weft_bits64_band",
			"weft_bits64_bor", "weft_bits64_bxor"}},
	[GPU_UINT64] = {"uint64",
			8,
			NULL,
			{"weft_uint64_sum", "weft_uint64_prod", "weft_uint64_min",
			 "weft_uint64_max", "weft_uint64_sum", "weft_bits64_band",
			 "weft_bits64_bor", "weft_bits64_bxor"}},
	[GPU_FP16] = {"fp16",
		      2,
		      "weft_fp16_cast",
		      {"weft_fp16_sum", "weft_fp16_prod", "weft_fp16_min",
		       "weft_fp16_max", "weft_fp16_sum"}},
	[GPU_BF16] = {"bf16",
		      2,
		      "weft_bf16_cast",
		      {"weft_bf16_sum", "weft_bf16_prod", "weft_bf16_min",
		       "weft_bf16_max", "weft_bf16_sum"}},
	[GPU_FP8_E4M3] = {"fp8_e4m3",
			  1,
			  "weft_e4m3_cast",
			  {"weft_e4m3_sum", "weft_e4m3_prod", "weft_e4m3_min",
			   "weft_e4m3_max", "weft_e4m3_sum"}},
	[GPU_FP8_E5M2] = {"fp8_e5m2",
			  1,
			  "weft_e5m2_cast",
			  {"weft_e5m2_sum", "weft_e5m2_prod", "weft_e5m2_min",
			   "weft_e5m2_max", "weft_e5m2_sum"}},
	[GPU_FP32] = {"fp32",
		      4,
		      "weft_fp32_cast",
		      {"weft_fp32_sum", "weft_fp32_prod", "weft_fp32_min",
		       "weft_fp32_max", "weft_fp32_sum"}},
	[GPU_FP64] = {"fp64",
		      8,
		      "weft_fp64_cast",
		      {"weft_fp64_sum", "weft_fp64_prod", "weft_fp64_min",
		       "weft_fp64_max", "weft_fp64_sum"}},
};

static const char *const op_names[GPU_OP_COUNT] = {"sum", "prod", "min", "max",
						   "avg", "band", "bor", "bxor"};

size_t launch_type_size(enum gpu_type type)
{
	return (unsigned)type < GPU_TYPE_COUNT ? rows[type].size : 0;
}

/* ---- shape ---- */

/* Threads for so many pieces of work: whole warps, not more than a block has. */
static uint32_t threads_for(uint64_t pieces)
{
	if (pieces >= KERN_THREADS)
		return KERN_THREADS;
	return pieces ? (uint32_t)(pieces + 31) / 32 * 32 : 32;
}

static uint32_t blocks_for(uint64_t pieces, uint32_t most, int processors)
{
	const uint32_t full = (uint32_t)(processors > 0 ? processors : 1) * LAUNCH_FULL;
	const uint64_t want = (pieces + KERN_THREADS - 1) / KERN_THREADS;
	const uint32_t least = most && most < full ? most : full;

	return want == 0 ? 1 : want < least ? (uint32_t)want : least;
}

uint32_t launch_blocks(double rate, uint32_t sources, int processors)
{
	const uint32_t full = (uint32_t)(processors > 0 ? processors : 1) * LAUNCH_FULL;
	const double want = rate * (sources + 1) / LAUNCH_BLOCK_RATE;

	if (!(want > 1))
		return 1;
	return want >= full ? full : (uint32_t)want + ((double)(uint32_t)want < want);
}

/* Elements before the first that is aligned to a vector in dst, and whole vectors after
 * that; both accesses of a source that is not aligned there stay inside the source. */
static void split(uint64_t count, uint64_t size, const void *dst, const void *const *src,
		  uint32_t sources, uint64_t *head, uint64_t *vecs)
{
	const uint64_t per = KERN_VEC / size;
	uint64_t before = (0 - (uintptr_t)dst) % KERN_VEC / size;
	bool across = false;

	for (uint32_t s = 0; s < sources; s++) {
		const uint64_t off = ((uintptr_t)src[s] + before * size) % KERN_VEC;

		across = across || off != 0;
	}
	if (across)
		before += per;
	*head = before < count ? before : count;
	*vecs = (count - *head) / per;
	if (across && *vecs)
		--*vecs;
}

/* ---- calls ---- */

static int refuse_numbers(const struct gpu_reduce *r, char *why)
{
	if ((unsigned)r->type >= GPU_TYPE_COUNT || (unsigned)r->op >= GPU_OP_COUNT ||
	    (unsigned)r->out >= GPU_TYPE_COUNT) {
		snprintf(why, GPU_WHY_LEN,
			 "reduction of type %d with operation %d into type %d: types are "
			 "0 to %d, operations 0 to %d",
			 (int)r->type, (int)r->op, (int)r->out, GPU_TYPE_COUNT - 1,
			 GPU_OP_COUNT - 1);
		return -EINVAL;
	}
	if (r->sources < 1 || r->sources > GPU_SOURCES) {
		snprintf(why, GPU_WHY_LEN,
			 "reduction of %u sources: there can be 1 to %d; reduce in "
			 "several "
			 "calls",
			 r->sources, GPU_SOURCES);
		return -EINVAL;
	}
	if (r->op == GPU_AVG && r->divisor == 0) {
		snprintf(why, GPU_WHY_LEN,
			 "average with divisor 0: give how many ranks "
			 "the sources stand for");
		return -EINVAL;
	}
	return 0;
}

static int refuse_types(const struct gpu_reduce *r, char *why)
{
	const struct type_row *row = &rows[r->type];

	if (!row->op[r->op]) {
		snprintf(why, GPU_WHY_LEN,
			 "%s of %s: bitwise operations are of integers only",
			 op_names[r->op], row->name);
		return -EINVAL;
	}
	if (r->out != r->type && (!row->cast || !rows[r->out].cast)) {
		snprintf(
			why, GPU_WHY_LEN,
			"reduction of %s stored as %s: only floating types are converted "
			"into each other",
			row->name, rows[r->out].name);
		return -EINVAL;
	}
	if (r->scale != 1.0 && !row->cast) {
		snprintf(why, GPU_WHY_LEN,
			 "scale %g of %s: only floating types are scaled; give 1",
			 r->scale, row->name);
		return -EINVAL;
	}
	return 0;
}

static int refuse_address(const char *what, const void *addr, const struct type_row *row,
			  char *why)
{
	if (addr && (uintptr_t)addr % row->size == 0)
		return 0;
	snprintf(why, GPU_WHY_LEN, "reduction of %s: %s at %p is not aligned to %d bytes",
		 row->name, what, addr, row->size);
	return -EINVAL;
}

static int refuse_addresses(const struct gpu_reduce *r, char *why)
{
	int ret = refuse_address("the result", r->dst, &rows[r->out], why);

	if (ret == 0 && r->dst2)
		ret = refuse_address("the second result", r->dst2, &rows[r->out], why);
	for (uint32_t s = 0; ret == 0 && s < r->sources; s++)
		ret = refuse_address("a source", r->src[s], &rows[r->type], why);
	return ret;
}

int launch_reduce(struct launch *launch, const struct gpu_reduce *r, int processors,
		  const struct kern_signal *signal, char *why)
{
	struct kern_reduce *a = &launch->args.reduce;
	const bool cast = r->out != r->type;
	uint64_t pieces;
	int ret = refuse_numbers(r, why);

	if (ret == 0)
		ret = refuse_types(r, why);
	if (ret == 0 && r->count)
		ret = refuse_addresses(r, why);
	if (ret < 0)
		return ret;
	*a = (struct kern_reduce){
		.dst = r->dst,
		.dst2 = r->dst2,
		.count = r->count,
		.divisor = r->op == GPU_AVG ? r->divisor : 1,
		.scale = r->scale,
		.sources = r->sources,
		.op = r->op,
		.out = r->out,
	};
	for (uint32_t s = 0; s < r->sources; s++)
		a->src[s] = r->src[s];
	if (!cast)
		split(r->count, rows[r->type].size, a->dst, a->src, a->sources, &a->head,
		      &a->vecs);
	if (signal)
		a->signal = *signal;
	pieces = cast || !a->vecs ? r->count : a->vecs;
	launch->function = cast ? rows[r->type].cast : rows[r->type].op[r->op];
	launch->threads = threads_for(pieces);
	launch->blocks = blocks_for(pieces, r->blocks, processors);
	return 0;
}

void launch_copy(struct launch *launch, void *dst, const void *src, uint64_t bytes,
		 int processors, uint32_t blocks, const struct kern_signal *signal)
{
	struct kern_copy *a = &launch->args.copy;
	uint64_t pieces;

	*a = (struct kern_copy){.dst = dst, .src = src, .bytes = bytes};
	split(bytes, 1, dst, &src, 1, &a->head, &a->vecs);
	if (signal)
		a->signal = *signal;
	pieces = a->vecs ? a->vecs : bytes;
	launch->function = "weft_copy";
	launch->threads = threads_for(pieces);
	launch->blocks = blocks_for(pieces, blocks, processors);
}
