/* SPDX-License-Identifier: BSD-2-Clause */
/* The completion queue's inside, shared by its own files, cq.c (life, writing) and
 * cq_read.c (what the application calls), and by what writes successes straight into the
 * ring: ep_done.c and ep_fast.c. */
#ifndef WEFT_FI_CQ_INT_H
#define WEFT_FI_CQ_INT_H

#include "prov/fi/cq.h"
#include "prov/fi/domain.h"
#include "prov/fi/wait.h"
#include "util/list.h"
#include "util/lock_note.h"

#define WFI_FAULT_TEXT 160

struct wfi_cq {
	struct fid_cq fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	/* Positions only grow; an entry is at position & mask. */
	struct wfi_cq_entry *ring; /* at the start of a cache line */
	uint64_t head;
	uint64_t tail;
	uint64_t room; /* a power of two, or 0 */
	uint64_t mask; /* room - 1, or 0 */
	uint64_t calm; /* the smaller of room and size: below it nothing needs care */
	struct list errors; /* struct wfi_cq_fault.node, oldest first */
	uint64_t simple;    /* entries before this position may be read just so */
	bool overrun;	    /* something was lost for want of memory */
	uint64_t size;	    /* entries at which it counts as full */
	/*
	 * Whose queue this stands for (import.h); NULL: it is one itself. Then its ring
	 * has no room, ever, so that all that would be written comes to cq_write_slow and
	 * goes on from there; and it is never full, or, while the owner does not take
	 * what happened (held: struct wfi_cq_fault.node, oldest first), always.
	 */
	struct fid_peer_cq *owner;
	struct list held;
	struct wfi_wait wait;
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	/* Of the error that was read last: what fi_cq_strerror says of it. */
	int fault_errno;
	char fault_text[WFI_FAULT_TEXT];
};

static inline bool wfi_cq_has_room(const struct wfi_cq *cq)
{
	return __builtin_expect(cq->tail - cq->head != cq->room, 1);
}

LOCK_HELD(lock_domain) static inline void wfi_cq_push(struct wfi_cq *cq)
{
	cq->tail++;
	wfi_wait_signal(&cq->wait);
}

static inline bool wfi_cq_is_full(const struct wfi_cq *cq)
{
	return cq->tail - cq->head >= cq->size;
}

/* There is room for one more, and the queue isn't full with it. */
static inline bool wfi_cq_is_calm(const struct wfi_cq *cq)
{
	return __builtin_expect(cq->tail - cq->head < cq->calm, 1);
}

/* An error and its place: before the entry at that position. Or what an owner did not
 * take, then err may be 0. */
struct wfi_cq_fault {
	struct list node;
	uint64_t position;
	struct wfi_cq_error error;
	char text[WFI_FAULT_TEXT]; /* error.text's, if there is one */
};

/* As a member of a wait set. */
extern const struct wfi_member_ops wfi_cq_member_ops;

/* Lock held. Offers the owner what it did not take. */
LOCK_HELD(lock_domain) void wfi_cq_offer(struct wfi_cq *cq);

/* The calls for a queue that stands for its owner's. */
extern struct fi_ops_cq wfi_cq_import_ops;

/* The calls for a queue of this format, of a domain that needs its lock or doesn't. */
struct fi_ops_cq *wfi_cq_ops(enum fi_cq_format format, bool lock);

#endif
