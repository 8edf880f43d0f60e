/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The requests of a communicator. One that is finished is kept with its memory for the
 * next call. A blocking call that failed and cannot wait until its buffers are safe
 * leaves its request here, held; the communicator lives until that one is safe too (rule
 * D3).
 */
#include "config.h"

#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"

enum weft_result comm_req_get(struct weft_comm *comm, struct weft_req **out)
{
	struct list *node = list_pop_front(&comm->free_reqs);
	struct weft_req *req;

	if (node) {
		*out = container_of(node, struct weft_req, link);
		comm->open_reqs++;
		return WEFT_SUCCESS;
	}
	req = calloc(1, sizeof(*req));
	if (req)
		req->exec = exec_req_alloc(comm->ctx->exec);
	if (!req || !req->exec) {
		free(req);
		return error_set(WEFT_ERR_NOMEM, "no memory for a request");
	}
	req->comm = comm;
	list_init(&req->link);
	comm->open_reqs++;
	*out = req;
	return WEFT_SUCCESS;
}

void comm_req_put(struct weft_req *req)
{
	struct weft_comm *comm = req->comm;

	if (req->plan)
		comm_plan_put(comm, req->plan);
	req->plan = NULL;
	comm->open_reqs--;
	list_push_front(&comm->free_reqs, &req->link);
}

void comm_req_hold(struct weft_req *req)
{
	list_push_back(&req->comm->held_reqs, &req->link);
	req->comm->open_reqs--;
}

bool comm_reqs_settle(struct weft_comm *comm)
{
	list_foreach_safe (pos, tmp, &comm->held_reqs) {
		struct weft_req *req = container_of(pos, struct weft_req, link);

		if (exec_req_state(req->exec) != EXEC_DONE)
			continue;
		list_remove(&req->link);
		comm->open_reqs++;
		comm_req_put(req);
	}
	return list_empty(&comm->held_reqs);
}

void comm_reqs_free(struct weft_comm *comm)
{
	struct list *node;

	while ((node = list_pop_front(&comm->free_reqs))) {
		struct weft_req *req = container_of(node, struct weft_req, link);

		exec_req_release(req->exec);
		free(req);
	}
}
