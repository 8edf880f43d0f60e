/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plans that a communicator remembers: applications repeat few calls. Least recently
 * used ones go first; one that a request runs stays until it is returned.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/comm/comm.h"
#include "util/lock_note.h"

#define COMM_PLANS_MAX 32

static bool comm_plan_fits(const struct comm_plan *p, enum weft_coll coll,
			   const struct algo *algo, const struct plan_call *call)
{
	return p->coll == coll && p->algo == algo && p->call.count == call->count &&
	       p->call.elem_size == call->elem_size && p->call.root == call->root &&
	       p->call.average == call->average && p->call.ordered == call->ordered &&
	       p->call.in_place == call->in_place && p->call.roomy == call->roomy &&
	       p->call.chunk_bytes == call->chunk_bytes;
}

LOCK_HELD(lock_context)
static void comm_plan_free(struct weft_comm *comm, struct comm_plan *plan)
{
	list_remove(&plan->link);
	comm->plan_count--;
	comm_reqs_forget(comm, plan);
	comm_memos_forget(comm, plan);
	plan_free(plan->plan);
	free(plan);
}

LOCK_HELD(lock_context) static void comm_plans_trim(struct weft_comm *comm)
{
	struct list *pos = comm->plans.prev;

	while (comm->plan_count > COMM_PLANS_MAX && pos != &comm->plans) {
		struct comm_plan *plan = container_of(pos, struct comm_plan, link);

		pos = pos->prev;
		if (plan->refs == 0)
			comm_plan_free(comm, plan);
	}
}

static enum weft_result comm_plan_build(struct weft_comm *comm, enum weft_coll coll,
					const struct algo *algo,
					const struct plan_call *call,
					struct comm_plan **out)
{
	struct comm_plan *plan = calloc(1, sizeof(*plan));
	const char *why = "?";
	int rc;

	if (!plan)
		return error_set(WEFT_ERR_NOMEM, "no memory for a plan");
	rc = algo->build(call, &plan->plan, &why);
	if (rc) {
		free(plan);
		if (rc == -ENOMEM)
			return error_set(WEFT_ERR_NOMEM,
					 "no memory for the plan of %s (%s)", algo->coll,
					 algo->name);
		return error_set(WEFT_ERR_INTERNAL,
				 "%s (%s) made a plan that is wrong: %s", algo->coll,
				 algo->name, why);
	}
	plan->coll = coll;
	plan->algo = algo;
	/* Messages between two ranks are in no table. */
	plan->algorithm = coll < WEFT_COLL_COUNT ? algo_index(algo) : 0;
	list_init(&plan->idle);
	plan->call = *call;
	list_push_front(&comm->plans, &plan->link);
	comm->plan_count++;
	*out = plan;
	return WEFT_SUCCESS;
}

enum weft_result comm_plan_get(struct weft_comm *comm, enum weft_coll coll,
			       const struct algo *algo, const struct plan_call *call,
			       struct comm_plan **out)
{
	enum weft_result result;

	list_foreach (pos, &comm->plans) {
		struct comm_plan *plan = container_of(pos, struct comm_plan, link);

		if (!comm_plan_fits(plan, coll, algo, call))
			continue;
		if (pos != comm->plans.next) {
			list_remove(&plan->link);
			list_push_front(&comm->plans, &plan->link);
		}
		plan->refs++;
		*out = plan;
		return WEFT_SUCCESS;
	}
	result = comm_plan_build(comm, coll, algo, call, out);
	if (result != WEFT_SUCCESS)
		return result;
	(*out)->refs++;
	comm_plans_trim(comm);
	return WEFT_SUCCESS;
}

void comm_plan_put(struct weft_comm *comm, struct comm_plan *plan)
{
	plan->refs--;
	if (comm->plan_count > COMM_PLANS_MAX)
		comm_plans_trim(comm);
}

void comm_plans_free(struct weft_comm *comm)
{
	list_foreach_safe (pos, tmp, &comm->plans) {
		comm_plan_free(comm, container_of(pos, struct comm_plan, link));
	}
}
