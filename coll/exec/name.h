/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of transfers (rule F4): every tag and every remote CQ data word says which
 * communicator, which call and which pair it belongs to, so that nothing is ever matched
 * by counting arrivals. 64 bits, from the top:
 *
 *   kind 2 | communicator 12 | call 20 | index 30
 *
 * The index of a tagged message is k, the number of the pair between its two ranks in
 * this call; the source comes from the directed receive. Where a message longer than its
 * receive does harm, half of the index is a hash of all that lengths depend on, so that
 * messages of ranks that disagree about those do not meet. A remote CQ data word carries
 * no source, so its index is the receiver's own number of the RECV (low bits of the
 * plan's instance number), which READY gave to the sender.
 *
 * Of a window the number stands for the call; the index of a put's word is the rank that
 * wrote and its context, that of a message its number among those that one of the two
 * ranks named, times two, and one more for gets.
 *
 * On the wire each word is XORed with that of the job (net.h): what a stranger names is
 * ours by accident only (34 bits and more have to agree), else it names nothing, and is
 * dropped.
 *
 * Call numbers and indices are truncated: a name is unique among what can be in flight at
 * a time, because a rank has far fewer than 2^19 open calls and a window of far fewer
 * than 2^29 instances.
 */
#ifndef WEFT_EXEC_NAME_H
#define WEFT_EXEC_NAME_H

#include <assert.h>
#include <stdint.h>

enum name_kind {
	NAME_WIN = 0, /* of a window, whose number is in place of the call: see below */
	NAME_MESSAGE = 1, /* tag of a payload message: index is k */
	NAME_PUT = 2,	  /* remote CQ data of a put: index is the RECV's number */
	NAME_PAIR = 3,	  /* tag of a message of one rank to another: call as in pair.h */
};

#define NAME_KIND_BITS	2
#define NAME_COMM_BITS	12
#define NAME_CALL_BITS	20
#define NAME_INDEX_BITS 30

static_assert(NAME_KIND_BITS + NAME_COMM_BITS + NAME_CALL_BITS + NAME_INDEX_BITS == 64,
	      "a name fills the tag and the CQ data word");

#define NAME_COMM_MAX	((UINT32_C(1) << NAME_COMM_BITS) - 1)
#define NAME_CALL_MASK	((UINT32_C(1) << NAME_CALL_BITS) - 1)
#define NAME_INDEX_MASK ((UINT32_C(1) << NAME_INDEX_BITS) - 1)

#define NAME_HASH_SHIFT 16 /* of that half */

/* The word of a put of a window: the context above the rank that wrote. */
#define NAME_WIN_SHIFT 22
#define NAME_WIN_RANK  ((UINT32_C(1) << NAME_WIN_SHIFT) - 1)

/* The word of a put of a doubled call (twin.h), whose READY is of an earlier start, says
 * whose it is: this bit, the number of the request, and in the last bits the RECV's. */
#define NAME_TWIN	(UINT32_C(1) << (NAME_INDEX_BITS - 1))
#define NAME_TWIN_SHIFT 8
#define NAME_TWIN_RECV	((UINT32_C(1) << NAME_TWIN_SHIFT) - 1)

struct name {
	enum name_kind kind;
	uint32_t comm;
	uint32_t call;
	uint32_t index;
};

/* Call and index are cut to their fields; comm must be at most NAME_COMM_MAX. */
static inline uint64_t name_pack(enum name_kind kind, uint32_t comm, uint32_t call,
				 uint64_t index)
{
	return (uint64_t)kind << (64 - NAME_KIND_BITS) |
	       (uint64_t)(comm & NAME_COMM_MAX) << (NAME_CALL_BITS + NAME_INDEX_BITS) |
	       (uint64_t)(call & NAME_CALL_MASK) << NAME_INDEX_BITS |
	       (index & NAME_INDEX_MASK);
}

static inline struct name name_unpack(uint64_t word)
{
	return (struct name){
		.kind = (enum name_kind)(word >> (64 - NAME_KIND_BITS)),
		.comm = (uint32_t)(word >> (NAME_CALL_BITS + NAME_INDEX_BITS)) &
			NAME_COMM_MAX,
		.call = (uint32_t)(word >> NAME_INDEX_BITS) & NAME_CALL_MASK,
		.index = (uint32_t)word & NAME_INDEX_MASK,
	};
}

#endif
