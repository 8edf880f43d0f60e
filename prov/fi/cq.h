/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queue: a ring of entries that grows when it must, an error list that keeps
 * its place in the order, and the pollables that reading it drives. All formats and wait
 * objects.
 */
#ifndef WEFT_FI_CQ_H
#define WEFT_FI_CQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

#include "prov/fi/pollable.h"
#include "util/lock_note.h"

struct wfi_cq;
struct wfi_domain;

/* A completion in its widest form; reading converts it to the queue's format. */
struct wfi_cq_entry {
	void *op_context;
	uint64_t flags; /* FI_MSG | FI_RECV, ... exactly as the man page lists them */
	size_t len;
	void *buf;
	uint64_t data;
	uint64_t tag;
	fi_addr_t src;	 /* for fi_cq_readfrom; FI_ADDR_NOTAVAIL if unknown */
	uint64_t unused; /* up to a cache line */
};

struct wfi_cq_error {
	struct wfi_cq_entry entry;
	size_t olen;
	int err;	  /* > 0, fi_errno */
	int prov_errno;	  /* text by fi_cq_strerror */
	const char *text; /* that says more; copied. NULL: none */
};

int wfi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);
struct wfi_cq *wfi_cq_of(struct fid *fid);
struct wfi_domain *wfi_cq_domain(struct wfi_cq *cq);

/* fi_trywait: -FI_EAGAIN while there is something to read or to progress. */
int wfi_cq_try(struct wfi_cq *cq);

/* Domain lock held. fi_poll: progresses; true when there is something to read. */
LOCK_HELD(lock_domain) bool wfi_cq_poll(struct wfi_cq *cq);
/* Domain lock held. While somebody holds it, it can't be closed. Counted. */
LOCK_HELD(lock_domain) void wfi_cq_hold(struct wfi_cq *cq, bool on);

/* All below: domain lock held. Writing wakes whoever waits. Never fails: when memory for
 * growth is gone the queue is marked overrun and reads give -FI_EOVERRUN. */
LOCK_HELD(lock_domain)
void wfi_cq_write(struct wfi_cq *cq, const struct wfi_cq_entry *entry);
LOCK_HELD(lock_domain)
void wfi_cq_write_error(struct wfi_cq *cq, const struct wfi_cq_error *error);

/* The queue holds at least as many entries as were asked for at open: post nothing more
 * (-FI_EAGAIN) and take nothing more from the wire until the application reads. */
LOCK_HELD(lock_domain) bool wfi_cq_full(const struct wfi_cq *cq);

/* One pollable may be attached several times (as transmit and receive queue): counted. */
LOCK_HELD(lock_domain) int wfi_cq_attach(struct wfi_cq *cq, struct wfi_pollable *p);
LOCK_HELD(lock_domain) void wfi_cq_detach(struct wfi_cq *cq, struct wfi_pollable *p);

#endif
