/* SPDX-License-Identifier: BSD-2-Clause */
/* Which provider and domain a context runs on, and what it may do there. */
#ifndef WEFT_EXEC_NET_PICK_H
#define WEFT_EXEC_NET_PICK_H

#include "coll/exec/net.h"

/* *info is the caller's, to be freed by fi_freeinfo(). PROVIDER, NOMEM. */
enum weft_result net_pick(const struct net_attr *attr, struct fi_info **info,
			  struct net_caps *caps);

#endif
