/* SPDX-License-Identifier: BSD-2-Clause */
/* One endpoint of the provider as an application has it, with a domain and a queue of its
 * own, for tests that go through libfabric. */
#ifndef WEFT_FI_TESTS_END_H
#define WEFT_FI_TESTS_END_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

struct end {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

/* Bails out when anything fails. */
void end_open(struct end *e, enum fi_threading threading);
void end_close(struct end *e);
/* Where `to` is for e. */
fi_addr_t end_join(struct end *e, struct end *to);

#endif
