/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The consumer's side of a descriptor (weft/weft_device_ring.h has the format): whether
 * it is there, and the one validator of what it says. A kernel's memory is not trusted.
 */
#ifndef WEFT_GPU_DEVICE_DESC_H
#define WEFT_GPU_DEVICE_DESC_H

#include <stdbool.h>
#include <stddef.h>

#include "weft/weft_device_ring.h"

/* What numbers in a descriptor must be below. */
struct desc_limits {
	uint32_t peers, windows, signals, counters;
};

/* Whether descriptor number `index` has arrived, all of it; copies it out then. */
bool desc_take(const struct weft_dev_desc *slot, uint64_t index, uint64_t depth,
	       struct weft_dev_desc *copy);

/* 0, or -EPROTO with a sentence in why: what is wrong with it. */
int desc_read(const struct weft_dev_desc *desc, uint64_t index,
	      const struct desc_limits *limits, struct weft_dev_op *op, char *why,
	      size_t len);

#endif
