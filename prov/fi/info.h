/* SPDX-License-Identifier: BSD-2-Clause */
/* fi_getinfo: what is announced, per address family, from hints that were matched. */
#ifndef WEFT_FI_INFO_H
#define WEFT_FI_INFO_H

#include <stdint.h>

#include <rdma/fabric.h>

#define WFI_FABRIC_NAME "weft"

/* Peers that speak prov/proto. The uppermost bit: a number of a provider's own. */
#define WFI_PROTO	  (1u << 31 | 0x77656674u)
#define WFI_PROTO_VERSION 1

int wfi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);

#endif
