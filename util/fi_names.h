/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of libfabric 1.x that 2.x keeps, with the same values, and warns of in a way that
 * no option turns off. What was built with 1.x goes on to use them, so a provider must
 * understand them whatever it is built with.
 */
#ifndef WEFT_UTIL_FI_NAMES_H
#define WEFT_UTIL_FI_NAMES_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#if FI_MAJOR_VERSION >= 2
#undef FI_MR_UNSPEC
#undef FI_MR_BASIC
#undef FI_MR_SCALABLE
#undef FI_ORDER_NONE
#undef FI_ORDER_STRICT
#undef FI_REG_MR
#define FI_MR_UNSPEC	0
#define FI_MR_BASIC	(1 << 0)
#define FI_MR_SCALABLE	(1 << 1)
#define FI_ORDER_NONE	0ULL
#define FI_ORDER_STRICT 0x1FF
#define FI_REG_MR	(1ULL << 59)
#endif

#endif
