/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posted receives by their context, for those who cancel. Posting pays nothing for it: it
 * is made when some cancels had to look through all receives, and says where those are
 * that were posted until then. Whoever cancels many so looks through them a few times
 * only.
 */
#ifndef WEFT_PROTO_RX_INDEX_H
#define WEFT_PROTO_RX_INDEX_H

#include <stdbool.h>
#include <stdint.h>

struct receiver;
struct rx;
struct rx_indexed;

struct rx_index {
	struct rx_indexed *at; /* sorted; NULL: never made */
	uint32_t count;
	uint64_t stamps[2]; /* of the queues, when it was made: those before are in it */
	uint64_t scanned;   /* receives that were looked at one by one, in all */
	uint64_t made_at;   /* scanned, when it was last made */
};

/* The oldest posted receive with that context, or NULL. */
struct rx *rx_index_find(struct receiver *rcv, const void *context);
void rx_index_fini(struct rx_index *x);

#endif
