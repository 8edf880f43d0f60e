/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts of few bytes to one piece of memory whose key is known, where nothing waits for a
 * lane: from the call to the queue pair in a straight line. They are operations like all
 * others (verbs_rma.h): what becomes of them, and of the lane that they are on, is seen
 * to there. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_QUICK_H
#define WEFT_WIRE_VERBS_VERBS_QUICK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_link;

/* Wire function. */
bool verbs_put_soon(struct wire_link *link, uint64_t key, uint64_t addr, const void *from,
		    size_t len, void *cookie);

#endif
