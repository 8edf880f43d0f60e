/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wait set: one thing to sleep on for many queues and counters, which name it when they
 * are opened. It belongs to the fabric, so its members may be of several domains.
 *
 * A member gives its descriptor, which the set has in an epoll descriptor of its own. For
 * FI_WAIT_MUTEX_COND whoever writes into a member tells the set's condition.
 */
#ifndef WEFT_FI_WAIT_SET_H
#define WEFT_FI_WAIT_SET_H

#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_eq.h>

#include "prov/fi/wait_cond.h"

struct wfi_fabric;
struct wfi_member;
struct wfi_wait_set;

/* No lock of ours held. */
struct wfi_member_ops {
	/* 1: there is something to read; 0: its descriptor will say so; -FI_EAGAIN: look
	 * again; else an error. */
	int (*watch)(void *owner);
	/* Nobody sleeps on its descriptor any more. */
	void (*unwatch)(void *owner);
};

int wfi_wait_set_open(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		      struct fid_wait **waitset);
/* NULL when it is no wait set of this fabric. */
struct wfi_wait_set *wfi_wait_set_of(struct fid_wait *fid,
				     const struct wfi_fabric *fabric);

/* fi_trywait. */
int wfi_wait_set_try(struct wfi_wait_set *set);

/* Its members' condition; NULL: it has none. */
struct wfi_cond *wfi_wait_set_cond(struct wfi_wait_set *set);

/* From now on fd wakes who waits on the set. tells: it tells the set's condition as well,
 * if there is one. -FI_ENOMEM, -FI_EMFILE and the like. */
int wfi_member_open(struct wfi_wait_set *set, int fd, bool tells,
		    const struct wfi_member_ops *ops, void *owner,
		    struct wfi_member **member);
/* Before the descriptor is closed. NULL is ignored. */
void wfi_member_close(struct wfi_member *member);
/* What is under a member is what is under its set: FI_GETWAIT, FI_GETWAITOBJ. */
int wfi_member_control(struct wfi_member *member, int command, void *arg);

#endif
