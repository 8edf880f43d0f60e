/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of a domain's endpoints; see weft/weft_fi.h. */
#ifndef WEFT_FI_COUNT_OPS_H
#define WEFT_FI_COUNT_OPS_H

#include "weft/weft_fi.h"

/* How many there are, of which the first `max` are written. */
struct wfi_lanes {
	struct weft_fi_lane *at;
	size_t count, max;
};

extern const struct weft_fi_count_ops wfi_count_ops;

#endif
