/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Dynamic all-to-allv: lengths that only their sender knows, and only when the call is
 * executed. Ranks tell each other by an all-to-all of cards, each with the count for one
 * rank and with what is wrong at its sender, so that all refuse a call alike before
 * anything is moved; then the plan of an all-to-allv runs with exact tables.
 */
#ifndef WEFT_COMM_DYNAMIC_H
#define WEFT_COMM_DYNAMIC_H

#include "coll/exec/exec.h"
#include "weft/weft.h"

struct weft_comm;
struct comm_plan;

/* The caller's arrays. */
enum dynamic_table {
	DYNAMIC_COUNTS,	       /* of what is sent */
	DYNAMIC_DISPLACEMENTS, /* or NULL */
	DYNAMIC_SEND_BLOCKS,   /* or NULL */
	DYNAMIC_RECV_BLOCKS,   /* or NULL */
	DYNAMIC_RECV_COUNTS,   /* written at the good end */
	DYNAMIC_TABLES
};

/* A call, as it was checked. Lengths and places are in blocks unless they say so. */
struct dynamic_spec {
	uint64_t *table[DYNAMIC_TABLES];
	int32_t table_device; /* of those that... */
	uint32_t on_device;   /* ...have their bit here; the others are the host's */
	bool late;	      /* read when its stream has come, or from a device */
	uint64_t max_count;
	uint64_t block; /* elements of one */
	bool packed;
	void *src, *dst;
	uint64_t src_len, dst_len; /* elements */
	enum weft_type type;
	struct exec_device device; /* of src and dst */
};

struct comm_dynamic;

/* Memory for calls of a communicator, for one at a time; NULL: none. */
struct comm_dynamic *dynamic_alloc(struct weft_comm *comm);
void dynamic_release(struct comm_dynamic *d);

/* Takes a call over: `plan` is what runs when the counts are known, its reference stays
 * the caller's. may_pin: nothing holds a stream for it yet. NOMEM, BUSY. Given back by
 * dynamic_put(). */
LOCK_HELD(lock_context)
enum weft_result dynamic_take(struct comm_dynamic *d, const struct dynamic_spec *spec,
			      const struct plan *plan, bool may_pin);
LOCK_HELD(lock_context) void dynamic_put(struct comm_dynamic *d);

/* Whether the request that has it runs a dynamic call now. */
bool dynamic_is_taken(const struct comm_dynamic *d);

/* Before each start: says how the call begins, and reads the counts, once, unless that is
 * to be later: then the executor has it done. NOMEM (not of a late one). */
enum weft_result dynamic_begin(struct comm_dynamic *d, struct exec_call *call);

/* After its good end: the caller's recv_counts, unless the executor has written them. */
void dynamic_finish(struct comm_dynamic *d);

#endif
