/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of a communicator's ranks share a node. */
#include "config.h"

#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"
#include "coll/plan/nodes.h"
#include "util/lock_note.h"

LOCK_HELD(lock_context) enum weft_result comm_nodes_make(struct weft_comm *comm)
{
	const int32_t *lead = exec_leads(comm->ctx->exec);
	const int32_t world = boot_size(comm->ctx->boot);
	int32_t *here, *first;
	bool one = true;

	for (int32_t i = 0; i < comm->size && one; i++)
		one = lead[comm->ranks ? comm->ranks[i] : i] ==
		      lead[comm->ranks ? comm->ranks[0] : 0];
	if (one)
		return WEFT_SUCCESS;
	here = malloc((size_t)comm->size * sizeof(*here));
	first = malloc((size_t)world * sizeof(*first)); /* by lead: the first member */
	for (int32_t i = 0; first && i < world; i++)
		first[i] = -1;
	for (int32_t i = 0; here && first && i < comm->size; i++) {
		const int32_t node = lead[comm->ranks ? comm->ranks[i] : i];

		if (first[node] < 0)
			first[node] = i;
		here[i] = first[node];
	}
	if (here && first)
		comm->nodes = plan_nodes_make(here, comm->size);
	free(here);
	free(first);
	if (comm->nodes)
		return WEFT_SUCCESS;
	return error_set(WEFT_ERR_NOMEM, "no memory for the nodes of %d ranks",
			 comm->size);
}
