/* SPDX-License-Identifier: BSD-2-Clause */
/* Which ranks share a node, as the hierarchical algorithms read it. */
#ifndef WEFT_PLAN_NODES_H
#define WEFT_PLAN_NODES_H

#include "coll/plan/plan.h"

/* lead: by rank, the lowest rank of its node. NULL: no memory, or that is no such list.
 * Freed by free(). */
struct plan_nodes *plan_nodes_make(const int32_t *lead, int32_t size);

/* Made-up layouts, for whoever checks plans or fakes nodes on one host. All free()d. */
enum plan_layout {
	PLAN_LAYOUT_BLOCKS, /* `per` ranks after one another share a node */
	PLAN_LAYOUT_ROUND,  /* rank r is on node r mod `per` */
	PLAN_LAYOUT_ANY,    /* nodes of all sizes up to `per`, ranks in no order */
	PLAN_LAYOUTS
};
struct plan_nodes *plan_nodes_fake(enum plan_layout layout, int32_t size, int32_t per);

#endif
