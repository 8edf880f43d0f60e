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

/* Requests that wait for another call of their plan; more go back to all. */
#define COMM_IDLE_MAX 4

enum weft_result comm_req_get(struct weft_comm *comm, struct comm_plan *plan,
			      struct weft_req **out)
{
	struct list *node = list_pop_front(&plan->idle);
	struct weft_req *req;

	if (node)
		plan->idle_count--;
	else
		node = list_pop_front(&comm->free_reqs);
	if (node) {
		req = container_of(node, struct weft_req, link);
		req->plan = plan;
		comm->open_reqs++;
		*out = req;
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
	req->plan = plan;
	list_init(&req->link);
	list_init(&req->member);
	comm->open_reqs++;
	*out = req;
	return WEFT_SUCCESS;
}

void comm_req_put(struct weft_req *req)
{
	struct weft_comm *comm = req->comm;
	struct comm_plan *plan = req->plan;

	comm->open_reqs--;
	req->plan = NULL;
	if (req->dynamic)
		dynamic_put(req->dynamic);
	if (plan->idle_count < COMM_IDLE_MAX) {
		list_push_front(&plan->idle, &req->link);
		plan->idle_count++;
	} else {
		exec_req_forget(req->exec);
		list_push_front(&comm->free_reqs, &req->link);
	}
	comm_plan_put(comm, plan);
}

void comm_reqs_forget(struct weft_comm *comm, struct comm_plan *plan)
{
	struct list *node;

	while ((node = list_pop_front(&plan->idle))) {
		exec_req_forget(container_of(node, struct weft_req, link)->exec);
		list_push_front(&comm->free_reqs, node);
	}
	plan->idle_count = 0;
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
		dynamic_release(req->dynamic);
		free(req);
	}
}
