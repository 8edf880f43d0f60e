/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which ranks share a node, from what each rank says of its kernel; or, so that many
 * nodes can be tried on one host, so many ranks after one another.
 */
#ifndef WEFT_EXEC_NODES_H
#define WEFT_EXEC_NODES_H

#include <stdint.h>

#include "coll/exec/crowd.h"
#include "weft/weft.h"

#define NODES_RANKS_MAX (1u << 20) /* of WEFT_NODES */

/* ARG: it is no number of ranks. 0 where it is not set. */
enum weft_result nodes_read(const char *text, uint32_t *ranks);

/* By rank the lowest rank of its node. place(arg, rank) is where a rank may run; one that
 * doesn't know its kernel is on a node of its own. fake: so many ranks a node, whatever
 * they say; 0: not. NULL: no memory. */
int32_t *nodes_leads(const struct crowd_place *(*place)(const void *arg, int32_t rank),
		     const void *arg, int32_t size, uint32_t fake);

#endif
