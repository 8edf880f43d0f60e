/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Something that a completion queue or counter must drive: an endpoint's engine. Reading
 * or waiting on the queue progresses every pollable that was attached to it, in both
 * directions. All three functions are called with the domain's lock held.
 */
#ifndef WEFT_FI_POLLABLE_H
#define WEFT_FI_POLLABLE_H

#include <stdint.h>

struct wfi_pollable;

struct wfi_pollable_ops {
	/* Returns how many things happened; 0: idle. */
	int (*progress)(struct wfi_pollable *p);
	/* 0: safe to sleep on fd; -FI_EAGAIN: progress first. */
	int (*arm)(struct wfi_pollable *p);
	/* Readable when there may be something to progress; -1: not enabled yet. */
	int (*fd)(struct wfi_pollable *p);
	/* Monotonic ns at which progress is due although no descriptor says so (a retry,
	 * a deadline); UINT64_MAX: none. */
	uint64_t (*due)(struct wfi_pollable *p);
};

struct wfi_pollable {
	const struct wfi_pollable_ops *ops;
};

#endif
