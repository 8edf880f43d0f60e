/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that waits, inside: what one is, and how it is made (work_make.c) of a triggered
 * operation or of what is given to the deferred queue. work.c is its life. */
#ifndef WEFT_FI_WORK_INT_H
#define WEFT_FI_WORK_INT_H

#include "prov/fi/cntr.h"
#include "prov/fi/ep_int.h"
#include "prov/fi/work.h"

enum work_state {
	WORK_WAITING, /* wfi_cntr's list, by threshold, then by age */
	WORK_READY,   /* wfi_domain.ready, in the order of becoming so */
	WORK_POSTED,  /* deferred: the engine has it; on no list */
};

enum work_kind { WORK_SEND, WORK_RECV, WORK_RMA, WORK_ATOMIC, WORK_CNTR };

struct work {
	struct list node;
	struct list all; /* wfi_domain.works */
	enum work_state state;
	enum work_kind kind;
	struct wfi_ep *ep; /* NULL: WORK_CNTR */
	struct wfi_cntr *cntr;
	uint64_t threshold;
	/* Of the deferred queue: whom it completes, NULL: nobody; what it is called. */
	struct wfi_cntr *completion;
	const struct fi_deferred_work *name; /* NULL: a triggered operation */
	bool report;			     /* deferred: its success is reported */
	void *context;
	fi_addr_t addr;
	union {
		struct proto_msg msg;
		struct proto_recv recv;
		struct proto_rma rma;
		struct proto_atomic atomic;
		struct {
			struct wfi_cntr *cntr;
			uint64_t value;
			bool set;
		} count;
	} op;
	struct iovec iov[PROTO_IOV_MAX];
	struct iovec compare[WFI_IOV_LIMIT];
	struct iovec result[WFI_IOV_LIMIT];
	struct proto_rma_iov remote[WFI_RMA_IOV_LIMIT];
	char kept[]; /* what was injected: its buffer is the caller's again */
};

/* Each returns NULL when there is no memory, or what is injected can't be read. Lists are
 * copied, and with PROTO_INJECT what they name as well: no more than inject_size, which
 * the caller has seen to. */
struct work *wfi_work_make_send(struct wfi_ep *ep, const struct proto_msg *m,
				fi_addr_t dest);
struct work *wfi_work_make_recv(struct wfi_ep *ep, const struct proto_recv *r,
				fi_addr_t source);
struct work *wfi_work_make_rma(struct wfi_ep *ep, const struct proto_rma *r,
			       fi_addr_t target);
struct work *wfi_work_make_atomic(struct wfi_ep *ep, const struct proto_atomic *a,
				  fi_addr_t target);

/* What one operation of the deferred queue is: 0 and a work without counters, or a
 * negative fi_errno. */
int wfi_work_take(struct wfi_domain *d, const struct fi_deferred_work *work,
		  struct work **out);

#endif
