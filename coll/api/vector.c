/* SPDX-License-Identifier: BSD-2-Clause */
/* See vector.h. */
#include "config.h"

#include "coll/api/error.h"
#include "coll/api/vector.h"

uint64_t vector_span(int32_t size, const struct weft_counts *counts)
{
	uint64_t end = 0;

	if (!counts || !counts->counts || counts->kind != WEFT_MEM_HOST)
		return UINT64_MAX;
	for (int32_t i = 0; i < size; i++) {
		const uint64_t at =
			counts->displacements ? counts->displacements[i] : end;

		if (__builtin_add_overflow(at, counts->counts[i], &end))
			return UINT64_MAX;
	}
	return end;
}

/* Where block `rank` begins and ends. */
static enum weft_result block_read(const struct weft_counts *counts, const char *name,
				   int32_t rank, uint64_t before,
				   struct vector_table *table)
{
	const uint64_t count = __atomic_load_n(&counts->counts[rank], __ATOMIC_RELAXED);
	uint64_t at = before, end;

	if (counts->displacements)
		at = __atomic_load_n(&counts->displacements[rank], __ATOMIC_RELAXED);
	if (__builtin_add_overflow(at, count, &end))
		return error_set(
			WEFT_ERR_ARG,
			"%s: %llu elements from %llu on for rank %d are more than "
			"memory can hold",
			name, (unsigned long long)count, (unsigned long long)at, rank);
	if (at < before)
		return error_set(WEFT_ERR_ARG,
				 "%s->displacements[%d] is %llu, but the block before it "
				 "ends at %llu: blocks lie in the order of the ranks and "
				 "do not overlap",
				 name, rank, (unsigned long long)at,
				 (unsigned long long)before);
	table->at[2 * rank] = at;
	table->at[2 * rank + 1] = end;
	table->total += count;
	return WEFT_SUCCESS;
}

enum weft_result vector_read(int32_t size, const struct weft_counts *counts,
			     const char *name, uint64_t limit, struct vector_table *table)
{
	uint64_t end = 0;

	if (!counts || !counts->counts)
		return error_set(WEFT_ERR_ARG, "%s%s is NULL", name,
				 counts ? "->counts" : "");
	if (counts->kind != WEFT_MEM_HOST)
		return error_set(WEFT_ERR_UNSUPPORTED,
				 "%s->kind: only host memory is supported in this "
				 "version",
				 name);
	table->total = 0;
	for (int32_t i = 0; i < size; i++) {
		const enum weft_result result = block_read(counts, name, i, end, table);

		if (result != WEFT_SUCCESS)
			return result;
		end = table->at[2 * i + 1];
	}
	table->at[2 * size] = end;
	if (end > limit)
		return error_set(WEFT_ERR_ARG,
				 "%s need %llu elements, the buffer has %llu", name,
				 (unsigned long long)end, (unsigned long long)limit);
	return WEFT_SUCCESS;
}
