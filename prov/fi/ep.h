/* SPDX-License-Identifier: BSD-2-Clause */
/* Endpoint as libfabric sees it. The engine below it is prov/proto. */
#ifndef WEFT_FI_EP_H
#define WEFT_FI_EP_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

int wfi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		void *context);

#endif
