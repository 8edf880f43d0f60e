/* SPDX-License-Identifier: BSD-2-Clause */
/* See desc.h. */
#include "config.h"

#include "gpu/device/desc.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

_Static_assert(sizeof(struct weft_dev_desc) == 64, "a cache line");

bool desc_take(const struct weft_dev_desc *slot, uint64_t index, uint64_t depth,
	       struct weft_dev_desc *copy)
{
	const uint64_t lap = ~(index / depth) & 1;
	uint64_t wrong = 0;

	for (int i = 0; i < WEFT_DEV_DESC_WORDS; i++) {
		copy->w[i] = weft_dev_load(&slot->w[i]);
		wrong |= copy->w[i] ^ lap;
	}
	return (wrong & 1) == 0;
}

static int refuse(char *why, size_t len, uint64_t index, const char *what, uint64_t got,
		  uint64_t limit)
{
	snprintf(why, len,
		 "descriptor %" PRIu64 ": %s is %" PRIu64 ", must be below %" PRIu64
		 "; the kernel's context does not fit, or something wrote over the ring",
		 index, what, got, limit);
	return -EPROTO;
}

static void fields(const struct weft_dev_desc *desc, struct weft_dev_op *op)
{
	const uint64_t w0 = desc->w[0] >> 1, w4 = desc->w[4] >> 1;
	const uint32_t counter = w0 >> 8 & 0xfffff;
	const uint64_t low = desc->w[2] >> 1;

	*op = (struct weft_dev_op){
		.kind = w0 >> 3 & 7,
		.peer = (uint32_t)(w4 & 0x7fffffff),
		.dst_win = w4 >> 31 & 0xffff,
		.src_win = w4 >> 47 & 0xffff,
		.dst_off = desc->w[1] >> 1,
		.bytes = desc->w[3] >> 1,
		.signal = w0 >> 28 & 0xfffff,
		.counter = counter ? counter - 1 : WEFT_DEV_NO_COUNTER,
		.add = desc->w[5] >> 1 | (w0 >> 7 & 1) << 63,
	};
	if (op->kind == WEFT_DEV_PUT_VALUE)
		op->value = low | (w0 >> 6 & 1) << 63;
	else
		op->src_off = low;
}

int desc_read(const struct weft_dev_desc *desc, uint64_t index,
	      const struct desc_limits *limits, struct weft_dev_op *op, char *why,
	      size_t len)
{
	const uint64_t version = desc->w[0] >> 1 & 7;

	if (version != WEFT_DEV_DESC_VERSION || desc->w[0] >> 49 || desc->w[7] >> 1) {
		snprintf(
			why, len,
			"descriptor %" PRIu64 " has version %" PRIu64
			", this library reads %d, or unknown bits: build the kernel with "
			"the headers of this library",
			index, version, WEFT_DEV_DESC_VERSION);
		return -EPROTO;
	}
	if (desc->w[6] >> 1 != (index & ~(1ull << 63))) {
		snprintf(why, len,
			 "descriptor %" PRIu64 " says that it is %" PRIu64
			 ": something wrote over the ring",
			 index, (uint64_t)(desc->w[6] >> 1));
		return -EPROTO;
	}
	fields(desc, op);
	if (op->kind < WEFT_DEV_PUT || op->kind >= WEFT_DEV_KINDS)
		return refuse(why, len, index, "its kind", op->kind, WEFT_DEV_KINDS);
	if (op->peer >= limits->peers)
		return refuse(why, len, index, "its peer", op->peer, limits->peers);
	if (op->kind != WEFT_DEV_SIGNAL && op->dst_win >= limits->windows)
		return refuse(why, len, index, "its target window", op->dst_win,
			      limits->windows);
	if (op->kind != WEFT_DEV_SIGNAL && op->src_win >= limits->windows)
		return refuse(why, len, index, "its source window", op->src_win,
			      limits->windows);
	if (op->add && op->signal >= limits->signals)
		return refuse(why, len, index, "its signal", op->signal, limits->signals);
	if (op->counter != WEFT_DEV_NO_COUNTER && op->counter >= limits->counters)
		return refuse(why, len, index, "its counter", op->counter,
			      limits->counters);
	if (op->bytes > (op->kind == WEFT_DEV_PUT_VALUE ? 8 : WEFT_DEV_MAX_BYTES))
		return refuse(why, len, index, "its length", op->bytes,
			      op->kind == WEFT_DEV_PUT_VALUE ? 9
							     : WEFT_DEV_MAX_BYTES + 1);
	return 0;
}
