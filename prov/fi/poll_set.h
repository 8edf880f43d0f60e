/* SPDX-License-Identifier: BSD-2-Clause */
/* Poll set: which of a domain's queues and counters have something new, in one call that
 * also makes progress on all of them. */
#ifndef WEFT_FI_POLL_SET_H
#define WEFT_FI_POLL_SET_H

#include <rdma/fi_domain.h>
#include <rdma/fi_eq.h>

int wfi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		  struct fid_poll **pollset);

#endif
