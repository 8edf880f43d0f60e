/* SPDX-License-Identifier: BSD-2-Clause */
/* The completion queue's inside, shared by its own files: cq.c (life, writing) and
 * cq_read.c (what the application calls). */
#ifndef WEFT_FI_CQ_INT_H
#define WEFT_FI_CQ_INT_H

#include "prov/fi/cq.h"
#include "prov/fi/domain.h"
#include "prov/fi/wait.h"
#include "util/list.h"

struct wfi_cq {
	struct fid_cq fid; /* first: libfabric casts */
	struct wfi_domain *domain;
	/* Positions only grow; an entry is at position % room (a power of two). */
	struct wfi_cq_entry *ring;
	uint64_t head;
	uint64_t tail;
	uint64_t room;
	struct list errors; /* struct wfi_cq_fault.node, oldest first */
	struct wfi_wait wait;
	uint64_t size; /* entries at which it counts as full */
	bool overrun;  /* something was lost for want of memory */
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
};

/* An error and its place: before the entry at that position. */
struct wfi_cq_fault {
	struct list node;
	uint64_t position;
	struct wfi_cq_error error;
};

/* The calls for a queue of this format. */
struct fi_ops_cq *wfi_cq_ops(enum fi_cq_format format);

#endif
