/* SPDX-License-Identifier: BSD-2-Clause */
/* See perf_counts.h. */
#include "config.h"

#include <string.h>

#include "cli/perf.h"
#include "cli/perf_counts.h"
#include "coll/comm/comm.h"

void perf_counts_now(const struct perf *p, struct perf_counts *counts)
{
	const struct trace_live *live = &exec_trace(p->ctx->exec)->image->live;

	counts->n = 0;
	ctx_lock(p->ctx);
	exec_counts(p->ctx->exec);
	for (; counts->n < TRACE_COUNTS && *live->count[counts->n].name; counts->n++) {
		counts->name[counts->n] = live->count[counts->n].name;
		counts->value[counts->n] = live->count[counts->n].value;
	}
	ctx_unlock(p->ctx);
}

/* Which there are, and in which order. */
static int64_t names_hash(const struct perf_counts *c)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (uint32_t i = 0; i < c->n; i++)
		for (const char *s = c->name[i];; s++) {
			h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
			if (!*s)
				break;
		}
	return (int64_t)(h >> 1);
}

/* Whether all ranks have the same ones. */
static bool names_meet(struct perf *p, const struct perf_counts *c, bool *same)
{
	int64_t hash[2] = {names_hash(c), -names_hash(c)};
	enum weft_result result =
		weft_allreduce(p->comm, hash, hash, 2, WEFT_INT64, WEFT_MAX, NULL);

	if (result)
		perf_say_error(p, "all-reduce of the provider's counters", result);
	*same = hash[0] == -hash[1];
	return result == WEFT_SUCCESS;
}

bool perf_counts_sum(struct perf *p, const struct perf_counts *since,
		     struct perf_counts *sum)
{
	uint64_t grown[TRACE_COUNTS] = {0};
	enum weft_result result;
	bool same;

	perf_counts_now(p, sum);
	if (!names_meet(p, sum, &same))
		return false;
	if (!same)
		sum->n = 0;
	if (sum->n == 0)
		return true;
	/* Names only come behind those that there were. */
	for (uint32_t i = 0; i < sum->n; i++)
		grown[i] = sum->value[i] - (i < since->n ? since->value[i] : 0);
	result = weft_allreduce(p->comm, grown, sum->value, sum->n, WEFT_UINT64, WEFT_SUM,
				NULL);
	if (result)
		perf_say_error(p, "all-reduce of the provider's counters", result);
	return result == WEFT_SUCCESS;
}
