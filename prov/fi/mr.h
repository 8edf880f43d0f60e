/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory registration. A region is in the domain's key table while it is open, if anybody
 * else may use it. */
#ifndef WEFT_FI_MR_H
#define WEFT_FI_MR_H

#include <rdma/fi_domain.h>

/* The domain's table of registration calls. */
extern struct fi_ops_mr wfi_mr_ops;

#endif
