/* SPDX-License-Identifier: BSD-2-Clause */
/* See measure.h. */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "coll/api/error.h"
#include "coll/comm/measure.h"
#include "coll/exec/reduce.h"

enum {
	TRIPS = 21, /* there and back, after some that connect */
	TRIPS_FIRST = 3,
	LONG_TRIPS = 3,
	LONG_BYTES = 1 << 19,
	ADDED_FLOATS = 1 << 16,
	ADDED_TIMES = 5,
};

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Of several times the least: what others do on the machine only adds. */
static bool trips(struct weft_comm *comm, void *buf, uint64_t bytes, int count,
		  int64_t *least_ns)
{
	const int32_t peer = 1 - comm->rank;

	*least_ns = INT64_MAX;
	for (int i = 0; i < count; i++) {
		const int64_t begin = now_ns();
		enum weft_result result;
		int64_t ns;

		if (comm->rank == 0)
			result = weft_send(comm, buf, bytes, WEFT_UINT8, peer, NULL);
		else
			result = weft_recv(comm, buf, bytes, WEFT_UINT8, peer, NULL);
		if (result == WEFT_SUCCESS && comm->rank == 0)
			result = weft_recv(comm, buf, bytes, WEFT_UINT8, peer, NULL);
		else if (result == WEFT_SUCCESS)
			result = weft_send(comm, buf, bytes, WEFT_UINT8, peer, NULL);
		if (result != WEFT_SUCCESS)
			return false;
		ns = now_ns() - begin;
		if (ns < *least_ns)
			*least_ns = ns;
	}
	return true;
}

static int64_t adding(float *memory)
{
	int64_t least = INT64_MAX;

	for (int i = 0; i < ADDED_TIMES; i++) {
		const int64_t begin = now_ns();
		int64_t ns;

		reduce_apply(WEFT_FP32, WEFT_SUM, memory, memory, memory + ADDED_FLOATS,
			     ADDED_FLOATS);
		ns = now_ns() - begin;
		if (ns < least)
			least = ns;
	}
	return least;
}

static uint64_t within(uint64_t value, uint64_t from, uint64_t to)
{
	return value < from ? from : value > to ? to : value;
}

/* Of the first two ranks; what the second one makes of it nobody takes. */
static void terms_measure(struct weft_comm *comm, struct cost_terms *terms)
{
	float *memory = calloc(2 * ADDED_FLOATS, sizeof(*memory));
	int64_t first, brief, all, added;

	_Static_assert(LONG_BYTES <= 2 * ADDED_FLOATS * sizeof(float), "it is in there");
	/* One that has no memory takes part all the same. */
	if (!memory) {
		char byte = 0;

		(void)trips(comm, &byte, 1, 1, &first);
		return;
	}
	if (trips(comm, memory, 8, TRIPS_FIRST, &first) &&
	    trips(comm, memory, 8, TRIPS, &brief) &&
	    trips(comm, memory, LONG_BYTES, 1 + LONG_TRIPS, &all)) {
		added = adding(memory);
		terms->alpha_ps = within((uint64_t)brief * 500, 1000, COST_ALPHA_MOST);
		terms->beta_fs = within(
			all > brief ? (uint64_t)(all - brief) * 500000 / LONG_BYTES : 0,
			1, COST_BYTE_MOST);
		terms->gamma_fs =
			within((uint64_t)added * 1000000 / (ADDED_FLOATS * sizeof(float)),
			       1, COST_BYTE_MOST);
	}
	free(memory);
}

enum weft_result measure_terms(struct weft_comm *comm, struct cost_terms *terms)
{
	struct weft_ctx *ctx = comm->ctx;
	struct cost_terms own = {.alpha_ps = 0};
	struct boot_view view;
	enum weft_result result;

	*terms = own;
	if (comm->size < 2)
		return WEFT_SUCCESS;
	if (comm->rank < 2)
		terms_measure(comm, &own);
	error_clear();
	ctx_lock(ctx);
	result =
		boot_allgather_view(ctx->boot, &own, sizeof(own), ctx->timeout_us, &view);
	ctx_unlock(ctx);
	if (result == WEFT_SUCCESS) {
		const struct cost_terms *first = view.at;

		if (!cost_terms_check(first))
			*terms = *first;
	}
	boot_view_end(&view);
	return result;
}
