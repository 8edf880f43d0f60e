/* SPDX-License-Identifier: BSD-2-Clause */
/* See twin.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/name.h"
#include "coll/exec/twin.h"

#define TWIN_ALIGN     ((size_t)64)
#define TWIN_EARLY_MAX 65536 /* words that are kept: more means that a peer runs wild */

struct exec_twin {
	struct exec *x;
	uint32_t comm, number;
	uint64_t starts;
	char *memory;
	size_t dst, scratch; /* bytes of a side, rounded up */
	struct mem_entry *hold;
	uint64_t instances;
	/* Of each side by instance. Of a SEND: where it goes; of a RECV: only that its
	 * peer knows. `stays` says that there is something. */
	struct ready *place[2];
};

/* The word of a put whose call has not started here. */
struct early {
	struct list link; /* exec.earlies */
	uint32_t comm, call;
	uint64_t word;
};

/* ---- life ---------------------------------------------------------------------------
 */

static_assert(EXEC_WINDOW <= NAME_TWIN_RECV + 1, "a word has room for what stays");

static size_t twin_round(size_t len)
{
	return (len + TWIN_ALIGN - 1) & ~(TWIN_ALIGN - 1);
}

static void twin_free(struct exec_twin *twin)
{
	free(twin->place[0]);
	free(twin->place[1]);
	free(twin);
}

enum weft_result exec_twin_open(struct exec *x, uint32_t comm, uint32_t number,
				const struct plan *plan, size_t elem_size,
				struct exec_twin **out)
{
	struct exec_twin *twin = calloc(1, sizeof(*twin));
	void *memory;
	size_t len;

	if (!twin)
		return error_set(WEFT_ERR_NOMEM, "no memory for a persistent call");
	twin->x = x;
	twin->comm = comm;
	twin->number = number;
	twin->dst = twin_round(plan->buf_len[PLAN_DST] * elem_size);
	twin->scratch = twin_round(plan->buf_len[PLAN_SCRATCH] * elem_size);
	twin->instances = plan->instances <= EXEC_WINDOW ? plan->instances : 0;
	for (int i = 0; i < 2; i++)
		twin->place[i] = calloc(twin->instances + 1, sizeof(*twin->place[i]));
	len = 2 * (twin->dst + twin->scratch);
	if (!twin->place[0] || !twin->place[1] ||
	    (len && block_alloc(&x->mem, len, &memory))) {
		twin_free(twin);
		return error_set(WEFT_ERR_NOMEM,
				 "no memory for the two places of a call, %zu bytes",
				 len);
	}
	if (len)
		twin->memory = memory;
	/* What fails here fails again in the call, which says so. */
	if (len && x->caps.put && mem_get(&x->mem, memory, len, true, &twin->hold))
		twin->hold = NULL;
	x->twins++;
	*out = twin;
	return WEFT_SUCCESS;
}

void exec_twin_close(struct exec_twin *twin, bool failed)
{
	struct exec *x = twin->x;

	if (twin->hold)
		mem_put(&x->mem, twin->hold);
	/* What cannot be given back now goes with the context; so does its registration:
	 * what a peer still puts there does no harm. */
	if (twin->memory && !failed)
		block_free(&x->mem, twin->memory);
	x->twins--;
	twin_free(twin);
}

static char *twin_side(const struct exec_twin *twin, uint64_t start)
{
	return twin->memory ? twin->memory + (start & 1) * (twin->dst + twin->scratch)
			    : NULL;
}

const void *exec_twin_result(const struct exec_twin *twin)
{
	return twin->starts ? twin_side(twin, twin->starts - 1) : NULL;
}

void twin_start(struct exec_req *req)
{
	struct exec_twin *twin = req->call.twin;

	twin->starts++;
	req->buf[PLAN_DST] = twin_side(twin, twin->starts - 1);
	req->buf[PLAN_SCRATCH] =
		req->buf[PLAN_DST] ? req->buf[PLAN_DST] + twin->dst : NULL;
}

uint64_t twin_mix(const struct exec_twin *twin, uint64_t past)
{
	return sig_past_add(past, twin->number);
}

/* ---- places -------------------------------------------------------------------------
 */

/* Of the side of this start; NULL: nothing stays, the plan is longer than the window. */
static struct ready *twin_place(const struct slot *slot)
{
	const struct exec_twin *twin = slot->req->call.twin;

	if (!twin || slot->inst.number >= twin->instances)
		return NULL;
	return &twin->place[(twin->starts - 1) & 1][slot->inst.number];
}

uint32_t twin_index(const struct exec_twin *twin, uint64_t recv)
{
	return NAME_TWIN |
	       (twin->number << NAME_TWIN_SHIFT & (NAME_TWIN - 1) & ~NAME_TWIN_RECV) |
	       ((uint32_t)recv & NAME_TWIN_RECV);
}

bool twin_stands(const struct slot *slot)
{
	const struct ready *place = twin_place(slot);

	return place && place->stays;
}

bool twin_offer(struct slot *slot)
{
	struct ready *place = twin_place(slot);

	if (!place || slot->deps || !slot->req->call.twin->hold)
		return false;
	place->stays = true;
	return true;
}

void twin_keep(const struct slot *slot)
{
	struct ready *place = twin_place(slot);

	if (place && slot->ready->stays)
		*place = *slot->ready;
}

struct ready *twin_ready(const struct slot *slot)
{
	const struct ready *place = twin_place(slot);
	struct ready *ready;

	if (!place || !place->stays)
		return NULL;
	ready = pool_get(&slot->req->x->readys);
	if (!ready)
		return NULL;
	*ready = *place;
	list_init(&ready->link);
	return ready;
}

/* ---- before the call ----------------------------------------------------------------
 */

bool twin_early(struct exec *x, const struct name *name, uint64_t word)
{
	const struct exec_comm *comm;
	struct early *early;
	uint32_t ahead;

	if (!x->twins || name->kind != NAME_PUT || name->comm >= x->comms_max)
		return false;
	comm = &x->comms[name->comm];
	ahead = (name->call - comm->next_call) & NAME_CALL_MASK;
	if (comm->state != COMM_OPEN || comm->failed != WEFT_SUCCESS ||
	    ahead > NAME_CALL_MASK / 2 || x->early_count >= TWIN_EARLY_MAX)
		return false;
	early = pool_get(&x->early_pool);
	if (!early)
		return false;
	*early = (struct early){
		.comm = name->comm, .call = comm->next_call + ahead, .word = word};
	list_push_back(&x->earlies, &early->link);
	x->early_count++;
	return true;
}

static void early_release(struct exec *x, struct early *early)
{
	list_remove(&early->link);
	pool_put(&x->early_pool, early);
	x->early_count--;
}

void twin_arrived(struct exec_req *req)
{
	struct exec *x = req->x;
	const uint32_t comm = req->call.comm, call = req->call.call;

	list_foreach_safe (pos, tmp, &x->earlies) {
		struct early *early = container_of(pos, struct early, link);
		const uint64_t word = early->word;

		if (early->comm != comm || early->call != call)
			continue;
		early_release(x, early);
		event_data(x, word);
	}
}

void twin_comm_close(struct exec *x, uint32_t comm)
{
	list_foreach_safe (pos, tmp, &x->earlies) {
		struct early *early = container_of(pos, struct early, link);

		if (early->comm == comm)
			early_release(x, early);
	}
}

void twins_init(struct exec *x)
{
	list_init(&x->earlies);
	pool_init(&x->early_pool, sizeof(struct early));
}

void twins_fini(struct exec *x)
{
	pool_fini(&x->early_pool);
}
