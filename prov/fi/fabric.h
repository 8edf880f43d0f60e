/* SPDX-License-Identifier: BSD-2-Clause */
/* Fabric: the root of everything that an application opens. It owns nothing but a count
 * of what was opened on it. */
#ifndef WEFT_FI_FABRIC_H
#define WEFT_FI_FABRIC_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fabric.h>

struct wfi_fabric {
	struct fid_fabric fid; /* first: libfabric casts */
	atomic_int refs;       /* domains, event queues, wait sets */
};

int wfi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);

/* Opened here (a hook in front of it makes it somebody else's). */
bool wfi_fabric_is(const struct fid_fabric *fid);

static inline struct wfi_fabric *wfi_fabric_of(struct fid_fabric *fid)
{
	return (struct wfi_fabric *)fid;
}

#endif
