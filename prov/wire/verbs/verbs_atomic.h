/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomics that the peer's device carries out (rule E4): FI_WEFT_VERBS_ATOMICS=native.
 * They are posted on the control channel's queue pair in the order of the calls, and end
 * in that order. One that is under way when the queue pair dies fails: nobody can say
 * whether it was carried out, and twice would be wrong. Behind one that the device
 * refused nothing was carried out: those are posted again. Endpoint lock.
 */
#ifndef WEFT_WIRE_VERBS_VERBS_ATOMIC_H
#define WEFT_WIRE_VERBS_VERBS_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

#include "prov/wire/wire.h"

struct verbs_link;
struct verbs_rkey;

#define VERBS_ATOMICS 32u /* of a link, at a time; a power of two */

struct verbs_atomic {
	struct wire_atomic call;
	struct verbs_rkey *rkey;
	uint64_t was;
	int err;
	bool over; /* and not reported yet */
	uint8_t tries;
	uint32_t refused; /* incarnation of the key that was refused */
};

/* Three counters over one ring: reported, posted (or over without that), asked for. */
struct verbs_atomics {
	struct verbs_atomic ring[VERBS_ATOMICS];
	uint32_t tail;
	uint32_t posted;
	uint32_t head;
	bool refused; /* the device refused the oldest that is posted */
};

/* Posts what can be. */
void verbs_atomics_run(struct verbs_link *link);
/* The oldest that is posted is done. */
void verbs_atomics_done(struct verbs_link *link);
/* Reports those that are over. Returns how many. */
int verbs_atomics_reap(struct verbs_link *link);
/* The channel's queue pair is gone. */
void verbs_atomics_cut(struct verbs_link *link);
/* All end with err. `tell`: reported. */
void verbs_atomics_fail(struct verbs_link *link, int err, bool tell);

/* Wire function. */
int verbs_atomic(struct wire_link *link, const struct wire_atomic *a);

#endif
