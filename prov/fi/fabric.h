/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabric: the root of everything that an application opens. It owns nothing but a count
 * of what was opened on it. */
#ifndef WEFT_FI_FABRIC_H
#define WEFT_FI_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>

#include "prov/mem/fork.h"

struct wfi_fabric {
	struct fid_fabric fid; /* first: libfabric casts */
	atomic_int refs;       /* domains, event queues, wait sets */
	uint32_t born;	       /* mem_fork_generation of the process that opened it */
};

int wfi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

/* Opened here (a hook in front of it makes it somebody else's). */
bool wfi_fabric_is(const struct fid_fabric *fid);

/* A child got it by fork: what is opened on it is its parent's, and closing it there
 * does nothing. */
static inline bool wfi_fabric_is_inherited(const struct wfi_fabric *f)
{
	return f->born != mem_fork_generation();
}

static inline struct wfi_fabric *wfi_fabric_of(struct fid_fabric *fid)
{
	return (struct wfi_fabric *)fid;
}

#endif
