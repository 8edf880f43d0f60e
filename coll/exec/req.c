/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests and their window. Instances are admitted in program order while they fit the
 * window, wait for what they depend on, and are retired in order. Everything that a
 * request needs while it runs is allocated here, before it starts.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/algo/algo.h"
#include "coll/api/error.h"
#include "coll/exec/engine.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/mirror.h"
#include "coll/exec/name.h"
#include "coll/exec/pair.h"
#include "coll/exec/passage.h"
#include "coll/exec/seen.h"
#include "coll/exec/tables.h"

static const char *const slot_state_name[SLOT_STATES] = {
	[SLOT_BLOCKED] = "blocked", [SLOT_RUNNABLE] = "runnable",
	[SLOT_WAITING] = "waiting", [SLOT_ACTIVE] = "active",
	[SLOT_DONE] = "done",
};

/* Bit s of a row: the state may change to s. */
static const uint8_t slot_next[SLOT_STATES] = {
	[SLOT_BLOCKED] = 1 << SLOT_RUNNABLE,
	[SLOT_RUNNABLE] = 1 << SLOT_WAITING | 1 << SLOT_ACTIVE,
	[SLOT_WAITING] = 1 << SLOT_RUNNABLE,
	/* RUNNABLE: a send whose connection broke */
	[SLOT_ACTIVE] = 1 << SLOT_DONE | 1 << SLOT_RUNNABLE,
	[SLOT_DONE] = 0,
};

void slot_set_state(struct slot *slot, enum slot_state state)
{
	if (!(slot_next[slot->state] & 1 << state)) {
		fprintf(stderr, "weft: instance %llu cannot go from %s to %s\n",
			(unsigned long long)slot->inst.number,
			slot_state_name[slot->state], slot_state_name[state]);
		abort();
	}
	slot->state = (uint8_t)state;
}

static void slot_enable(struct slot *slot)
{
	slot_set_state(slot, SLOT_RUNNABLE);
	list_push_back(&slot->req->runnable, &slot->link);
}

void slot_let(struct slot *slot)
{
	slot->req->awake = true;
	if (--slot->deps_left == 0)
		slot_enable(slot);
}

/* ---- life
 * ---------------------------------------------------------------------------- */

struct exec_req *exec_req_alloc(struct exec *x)
{
	struct exec_req *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->x = x;
	req->peer_of = calloc((size_t)x->size, sizeof(struct exec_peer *));
	if (!req->peer_of) {
		free(req);
		return NULL;
	}
	list_init(&req->link);
	list_init(&req->bucket);
	list_init(&req->peers);
	list_init(&req->flush);
	list_init(&req->runnable);
	list_init(&req->retry);
	list_init(&req->local_queue);
	list_init(&req->line.link);
	return req;
}

static void req_peers_free(struct exec_req *req)
{
	struct list *node;

	while ((node = list_pop_front(&req->peers))) {
		struct exec_peer *peer = container_of(node, struct exec_peer, link);
		struct list *r;

		while ((r = list_pop_front(&peer->ready)))
			pool_put(&req->x->readys, container_of(r, struct ready, link));
		req->peer_of[peer->rank] = NULL;
		pool_put(&req->x->peers, peer);
	}
}

void exec_req_forget(struct exec_req *req)
{
	req_peers_free(req);
	req->warm = NULL;
}

const char *exec_req_what(struct exec_req *req)
{
	const struct sig_call *id = &req->call.id;
	const char *coll = weft_coll_name((enum weft_coll)id->coll);
	const struct algo *algo = algo_at(coll, id->algorithm);

	if (!req->what[0] && req->call.pair)
		pair_what(req);
	else if (!req->what[0])
		snprintf(req->what, sizeof(req->what), "%s (%s)", coll,
			 algo ? algo->name : "?");
	return req->what;
}

void exec_req_release(struct exec_req *req)
{
	free(req->slot);
	free(req->edge);
	free(req->bind_disp);
	free(req->bind_memory);
	req_peers_free(req);
	mirror_free(req->mirror_memory);
	free(req->peer_of);
	free(req);
}

/* What steps that were not done have left. */
static void req_slots_clear(struct exec_req *req)
{
	struct exec *x = req->x;

	for (uint64_t i = req->base; i < req->next; i++) {
		struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (slot->stage)
			stage_put(x, slot->stage);
		if (slot->ready)
			pool_put(&x->readys, slot->ready);
		slot->stage = NULL;
		slot->ready = NULL;
	}
}

/* Whether the slots can serve the next call as they are: the window took the whole plan,
 * nothing in it comes from late tables, and no peer left anything behind. */
static bool req_stays_warm(const struct exec_req *req)
{
	if (req->result != WEFT_SUCCESS || req->bind.disp || req->call.device.on ||
	    req->call.plan->instances > req->slots)
		return false;
	list_foreach (pos, &req->peers) {
		const struct exec_peer *peer = container_of(pos, struct exec_peer, link);

		if (!list_empty(&peer->ready) || peer->places || peer->puts ||
		    peer->msgs || peer->revoke_asked)
			return false;
	}
	return true;
}

static void req_buffers_put(struct exec_req *req)
{
	for (int i = 0; i < EXEC_BUFS; i++) {
		if (req->mr[i])
			mem_put(&req->x->mem, req->mr[i]);
		req->mr[i] = NULL;
	}
	if (req->mirror)
		mirror_close(req);
	if (req->scratch)
		stage_put(req->x, req->scratch);
	req->scratch = NULL;
}

/* Gives back what the finished request held and leaves its outcome. */
void req_settle(struct exec_req *req)
{
	struct exec *x = req->x;

	seen_end(req);
	req_buffers_put(req);
	req_pass_on(req);
	if (req->line.el) {
		lines_end(req);
		exec_req_forget(req);
	} else if (req_stays_warm(req)) {
		req->warm = req->call.plan;
	} else {
		req_slots_clear(req);
		exec_req_forget(req);
	}
	engine_unlink(req);
	req->state = EXEC_DONE;
	if (req->result == WEFT_SUCCESS)
		x->stats.calls++;
}

enum exec_state exec_req_state(const struct exec_req *req)
{
	return req->state;
}

int64_t exec_req_deadline(const struct exec_req *req)
{
	return req->deadline;
}

enum weft_result exec_req_result(const struct exec_req *req, const char **text)
{
	*text = req->text;
	return req->result;
}

/* ---- start
 * --------------------------------------------------------------------------- */

/* Copies the late tables: all of a call come from this one snapshot (rule F1). */
static enum weft_result req_bind(struct exec_req *req, const struct plan *plan,
				 const struct plan_binding *bind)
{
	size_t entries = 0, at = 0;

	free(req->bind_disp);
	free(req->bind_memory);
	req->bind_disp = NULL;
	req->bind_memory = NULL;
	req->bind = (struct plan_binding){.disp = NULL};
	for (uint32_t p = 0; p < plan->part_count; p++) {
		if (plan->part[p].kind == PLAN_LATE)
			entries += (size_t)plan->part[p].parts + 1;
	}
	if (!entries)
		return WEFT_SUCCESS;
	req->bind_disp = calloc(plan->part_count, sizeof(*req->bind_disp));
	req->bind_memory = calloc(entries, sizeof(*req->bind_memory));
	if (!req->bind_disp || !req->bind_memory)
		return error_set(WEFT_ERR_NOMEM, "no memory for %zu counts", entries);
	for (uint32_t p = 0; p < plan->part_count; p++) {
		const struct plan_part *part = &plan->part[p];
		const uint64_t *disp = bind ? bind->disp[p] : NULL;

		if (part->kind != PLAN_LATE)
			continue;
		if (!disp)
			return error_set(WEFT_ERR_ARG, "late table %u is missing", p);
		memcpy(req->bind_memory + at, disp,
		       ((size_t)part->parts + 1) * sizeof(*disp));
		req->bind_disp[p] = req->bind_memory + at;
		at += (size_t)part->parts + 1;
	}
	req->bind.disp = req->bind_disp;
	/* The copy is checked, not the caller's array, which may change meanwhile. */
	if (!plan_binding_valid(plan, &req->bind))
		return error_set(WEFT_ERR_ARG, "the counts of the call do not ascend or "
					       "exceed what the buffers hold");
	return WEFT_SUCCESS;
}

/* Slots for the window and one edge per dependency that a slot can have. */
static enum weft_result req_window(struct exec_req *req, const struct plan *plan)
{
	uint32_t slots = 1, edges;

	req->deps_max = 0;
	for (uint32_t s = 0; s < plan->step_count; s++) {
		if (plan->step[s].dep_count > req->deps_max)
			req->deps_max = plan->step[s].dep_count;
	}
	while (slots < EXEC_WINDOW && slots < plan->instances)
		slots *= 2;
	edges = slots * req->deps_max;
	if (slots > req->slots_max) {
		free(req->slot);
		req->slot = calloc(slots, sizeof(*req->slot));
		req->slots_max = req->slot ? slots : 0;
	}
	if (edges > req->edges_max) {
		free(req->edge);
		req->edge = calloc(edges, sizeof(*req->edge));
		req->edges_max = req->edge ? edges : 0;
	}
	if (!req->slot || (edges && !req->edge))
		return error_set(WEFT_ERR_NOMEM, "no memory for a window of %u steps",
				 slots);
	req->slots = slots;
	req->base = 0;
	req->next = 0;
	return WEFT_SUCCESS;
}

/* The window as it was when the plan had just been admitted: what depends on what, the
 * peers and their pair numbers are as they were. */
static void req_rewind(struct exec_req *req)
{
	const uint32_t count = (uint32_t)req->warm->instances;

	req->base = 0;
	req->next = count;
	for (uint32_t i = 0; i < count; i++) {
		struct slot *slot = &req->slot[i];

		slot->state = SLOT_BLOCKED;
		slot->deps_left = slot->deps;
		slot->tries = 0;
		slot->seen_flies = false;
		slot->seg_count = 0;
		slot->seg_posted = 0;
		slot->seg_done = 0;
		if (!slot->deps)
			slot_enable(slot);
	}
}

static enum weft_result req_buffers(struct exec_req *req, const struct exec_call *call)
{
	enum weft_result result;
	uint64_t bytes;

	req->elem_size = weft_type_size(call->type);
	bytes = lines_take(req->x, call)
			? lines_scratch(req->x, call)
			: call->plan->buf_len[PLAN_SCRATCH] * req->elem_size;
	req->buf[PLAN_SRC] = call->src;
	req->buf[PLAN_DST] = call->dst;
	req->buf[PLAN_SCRATCH] = NULL;
	if (bytes && (!call->twin || lines_take(req->x, call))) {
		req->scratch = stage_get(req->x, bytes);
		if (!req->scratch)
			return error_set(WEFT_ERR_NOMEM,
					 "no memory for %llu bytes of scratch",
					 (unsigned long long)bytes);
		req->buf[PLAN_SCRATCH] = req->scratch->memory;
	}
	if (!call->device.on)
		return WEFT_SUCCESS;
	result = mirror_open(req, call);
	if (result != WEFT_SUCCESS && req->scratch) {
		stage_put(req->x, req->scratch);
		req->scratch = NULL;
	}
	return result;
}

/* What the plan that runs now says about how its pairs travel. */
static void req_ways(struct exec_req *req)
{
	const struct exec_call *call = &req->call;

	/* A pair of ranks has no READY: the provider does what is long. */
	req->message_max = call->pair			    ? SIZE_MAX
			   : call->plan->puts || call->twin ? req->x->caps.message_max
							    : req->x->caps.long_max;
	/* Lengths that were bound late are what ranks may disagree about without any sign
	 * of it in the call: where a message that is too long does harm, READY says how
	 * long its place is. */
	req->announces = !call->pair && (!req->x->caps.data ||
					 (req->bind.disp && !req->x->caps.truncates));
}

void req_date(struct exec_req *req, int64_t now)
{
	const int64_t timeout_us = req->call.timeout_us;

	req->dated = true;
	req->moved = now;
	req->probed = now;
	req->deadline =
		timeout_us == WEFT_TIMEOUT_INFINITE || timeout_us > INT64_MAX - now
			? INT64_MAX
			: now + timeout_us;
}

static void req_reset(struct exec_req *req, const struct exec_call *call)
{

	req->call = *call;
	req->call.bind = NULL;
	req->result = WEFT_SUCCESS;
	req->text[0] = '\0';
	req->what[0] = '\0';
	req->awake = true;
	req->done = 0;
	req_ways(req);
	req->ops = 0;
	req->places = 0;
	req->local.slot = NULL;
	req->dated = false;
	req->passage = call->passage;
	req->began = !call->passage;
	req->deadline = INT64_MAX;
	req->blame = -1;
	req->elsewhere_rank = -1;
	req->forgot_rank = -1;
	req->accord.on = false;
}

enum weft_result exec_req_start(struct exec_req *req, const struct exec_call *call)
{
	enum weft_result result = WEFT_SUCCESS;
	bool warm, lines, ahead = false;

	if (call->comm >= req->x->comms_max ||
	    req->x->comms[call->comm].state != COMM_OPEN)
		return error_set(WEFT_ERR_NOMEM, "communicator %u has no place",
				 call->comm);
	lines = lines_take(req->x, call);
	/* What is warm waits for no fills. */
	warm = !lines && req->warm == call->plan && !call->follow && !call->device.on;
	if (lines) {
		exec_req_forget(req);
	} else if (!warm) {
		exec_req_forget(req);
		/* Both now, so that it cannot fail between them. */
		if (call->follow)
			result = req_window(req, call->follow->plan);
		if (result == WEFT_SUCCESS)
			result = req_window(req, call->plan);
		if (result == WEFT_SUCCESS)
			result = req_bind(req, call->plan, call->bind);
	}
	if (result == WEFT_SUCCESS)
		result = req_buffers(req, call);
	if (result != WEFT_SUCCESS)
		return result;
	if (warm)
		req_rewind(req);
	req_reset(req, call);
	if (call->tables)
		tables_start(call->tables);
	if (call->twin)
		twin_start(req);
	if (lines)
		ahead = lines_begin(req);
	else if (!req->passage)
		req_date(req, exec_now());
	if (req->x->times) {
		req->x->times->begin = exec_now_ns();
		req->x->times->ready = req->x->times->begin;
		req->x->times->issued = req->x->times->begin;
	}
	req->state = EXEC_RUNNING;
	if (!ahead)
		seen_call(req);
	engine_link(req->x, req);
	if (!list_empty(&req->x->stash))
		event_stashed(req);
	if (!call->handed)
		req_run(req);
	if (!list_empty(&req->x->earlies))
		twin_arrived(req);
	return WEFT_SUCCESS;
}

/* ---- what steps need
 * ----------------------------------------------------------------- */

struct exec_peer *req_peer(struct exec_req *req, int32_t rank)
{
	struct exec_peer *peer = req->peer_of[rank];

	if (peer)
		return peer;
	peer = pool_get(&req->x->peers);
	if (!peer)
		return NULL;
	memset(peer, 0, sizeof(*peer));
	peer->rank = rank;
	peer->seen = recorder_peer(req->x->trace, rank);
	list_init(&peer->flush);
	list_init(&peer->announce);
	list_init(&peer->waiting);
	list_init(&peer->ready);
	list_push_back(&req->peers, &peer->link);
	req->peer_of[rank] = peer;
	return peer;
}

/* ---- the window
 * ---------------------------------------------------------------------- */

static struct slot *req_slot(struct exec_req *req, uint64_t number)
{
	return &req->slot[number & (req->slots - 1)];
}

uint64_t slot_tag(const struct slot *slot)
{
	const struct exec_req *req = slot->req;

	return req->tag ^ (((slot->k & req->k_mask) | req->k_hash) & NAME_INDEX_MASK);
}

void slot_done(struct slot *slot)
{
	struct exec_req *req = slot->req;
	uint32_t edge = slot->dependents;

	slot_set_state(slot, SLOT_DONE);
	seen_step(slot);
	if (req->mirror)
		mirror_written(slot);
	req->awake = true;
	req->moved = 0; /* the clock is read once, by req_clock */
	req->done++;
	while (edge) {
		struct slot *waiting = &req->slot[req->edge[edge - 1].slot];

		edge = req->edge[edge - 1].next;
		if (--waiting->deps_left == 0)
			slot_enable(waiting);
	}
}

static void slot_add_deps(struct slot *slot)
{
	struct exec_req *req = slot->req;
	const struct plan *plan = req->call.plan;
	const struct plan_step *step = &plan->step[slot->inst.step];
	const uint32_t index = (uint32_t)(slot - req->slot);

	for (uint32_t d = 0; d < step->dep_count; d++) {
		const uint32_t e = index * req->deps_max + d;
		struct slot *on;
		uint64_t number;

		if (!plan_dep_instance(plan, &plan->dep[step->dep_first + d], &slot->inst,
				       &number) ||
		    number < req->base)
			continue;
		on = req_slot(req, number);
		if (on->state == SLOT_DONE)
			continue;
		req->edge[e].slot = index;
		req->edge[e].next = on->dependents;
		on->dependents = e + 1;
		slot->deps++;
	}
	slot->deps_left = slot->deps;
}

/* A range that is one piece, as almost all are, is looked up once. */
static void slot_find_range(struct slot *slot, enum slot_range which,
			    const struct plan_range *range)
{
	const struct exec_req *req = slot->req;
	struct plan_piece_iter it;
	uint64_t length;

	plan_piece_begin(&it, req->call.plan, &req->bind, range);
	if (!slot->bytes)
		slot->whole |= (uint8_t)(1u << which);
	else if (plan_piece_next(&it, &slot->at[which], &length) &&
		 length * req->elem_size == slot->bytes)
		slot->whole |= (uint8_t)(1u << which);
}

static void slot_find_ranges(struct slot *slot)
{
	const struct plan_instance *inst = &slot->inst;

	slot->bytes =
		plan_range_elements(slot->req->call.plan, &slot->req->bind,
				    inst->kind == PLAN_SEND ? &inst->src : &inst->dst) *
		slot->req->elem_size;
	if (inst->kind != PLAN_SEND)
		slot_find_range(slot, SLOT_DST, &inst->dst);
	if (inst->kind != PLAN_RECV)
		slot_find_range(slot, SLOT_SRC, &inst->src);
	if (inst->kind == PLAN_REDUCE)
		slot_find_range(slot, SLOT_SRC2, &inst->src2);
}

/* False when memory ran out. */
static bool req_admit_one(struct exec_req *req)
{
	struct slot *slot = req_slot(req, req->next);

	memset(slot, 0, sizeof(*slot));
	list_init(&slot->link);
	slot->req = req;
	slot->state = SLOT_BLOCKED;
	plan_instance_at(req->call.plan, req->next, &slot->inst);
	slot_find_ranges(slot);
	if (slot->inst.kind == PLAN_SEND || slot->inst.kind == PLAN_RECV) {
		slot->inst.peer =
			exec_comm_rank(&req->x->comms[req->call.comm], slot->inst.peer);
		slot->peer = req_peer(req, slot->inst.peer);
		if (!slot->peer)
			return false;
		slot->k = slot->inst.kind == PLAN_SEND ? slot->peer->send_k++
						       : slot->peer->recv_k++;
	}
	req->next++;
	slot_add_deps(slot);
	if (req->mirror)
		mirror_admit(slot);
	if (slot->deps_left == 0)
		slot_enable(slot);
	return true;
}

/* Retires what is done, admits what fits. */
static void req_admit(struct exec_req *req)
{
	const uint64_t total = req->call.plan->instances;

	while (req->base < req->next && req_slot(req, req->base)->state == SLOT_DONE) {
		req->base++;
	}
	while (req->next < total && req->next - req->base < req->slots) {
		if (!req_admit_one(req)) {
			req_fail(req, WEFT_ERR_NOMEM, -1, "no memory for another peer");
			return;
		}
	}
}

static int slot_start(struct slot *slot)
{
	struct exec_req *req = slot->req;

	switch (slot->inst.kind) {
	case PLAN_SEND:
		return tx_start(slot);
	case PLAN_RECV:
		return rx_start(slot);
	default:
		slot_set_state(slot, SLOT_ACTIVE);
		if (local_is_short(slot)) {
			local_do_short(slot);
			return 0;
		}
		list_push_back(&req->local_queue, &slot->link);
		return 0;
	}
}

/* Not failed, and not waiting for a verdict about its call. */
static bool req_works(const struct exec_req *req)
{
	return req->state == EXEC_RUNNING && !req->accord.on;
}

/* Starts what may start; true when something did. */
static bool req_start_runnable(struct exec_req *req)
{
	bool moved = false, told = false;
	struct list *node;

	if (!list_empty(&req->runnable))
		tx_bulk_last(req);
	while (req_works(req) && (node = list_pop_front(&req->runnable))) {
		struct slot *slot = container_of(node, struct slot, link);
		int rc;

		if (tx_is_bulk(slot) && !list_empty(&req->flush)) {
			rx_flush(req);
			told = true;
			if (!req_works(req))
				break;
		}
		rc = told && tx_is_bulk(slot) ? -FI_EAGAIN : slot_start(slot);
		if (rc == -FI_EAGAIN)
			list_push_back(&req->retry, &slot->link);
		else if (rc)
			req_fail_post(slot, "starting a transfer", rc);
		else
			moved = true;
	}
	return moved || told;
}

/* Nothing has to make room, nothing is left to come in. */
static bool req_is_admitted(const struct exec_req *req)
{
	const uint64_t total = req->call.plan->instances;

	return req->next == total && total <= req->slots;
}

static bool req_run_once(struct exec_req *req)
{
	bool moved = req_start_runnable(req);

	if (!req_is_admitted(req) && req_works(req))
		req_admit(req);
	if (!req_works(req) || !list_empty(&req->runnable))
		return moved;
	/* Announce places before working on local steps: peers need not wait for our
	 * arithmetic. */
	if (!list_empty(&req->flush))
		rx_flush(req);
	if (!list_empty(&req->local_queue) || req->local.slot) {
		if (local_run(req))
			moved = true;
		if (!req_is_admitted(req))
			req_admit(req);
	}
	return moved;
}

/* The plan is done, and the call goes on with another: pair numbers go on as well, so
 * that what other ranks are ahead with finds its place. */
static void req_follow(struct exec_req *req)
{
	struct exec_follow *follow = req->call.follow;
	char text[EXEC_TEXT_MAX] = "";
	enum weft_result result;

	req->call.follow = NULL;
	result = follow->next(follow, &req->call, text, sizeof(text));
	/* In a stream nobody might hear of it but by the communicator. */
	if (result != WEFT_SUCCESS && follow->alike && !req->passage) {
		req->result = result;
		snprintf(req->text, sizeof(req->text), "%s", text);
		req_settle(req);
		return;
	}
	if (result == WEFT_SUCCESS) {
		req_buffers_put(req);
		result = req_window(req, req->call.plan);
	}
	if (result == WEFT_SUCCESS)
		result = req_buffers(req, &req->call);
	if (result != WEFT_SUCCESS) {
		req_fail(req, result, -1, "%s", *text ? text : weft_error_detail());
		return;
	}
	req->bind = *req->call.bind;
	req->done = 0;
	req->awake = true;
	req_ways(req);
}

/* Neither a stream nor device memory has to be waited for, nor what it is to do. */
static bool req_may_begin(struct exec_req *req)
{
	if (!req->began && !passage_is_reached(req->passage))
		return false;
	req->began = true;
	if (req->call.tables && !tables_are_there(req))
		return false;
	return !req->mirror || mirror_is_open(req);
}

void req_end(struct exec_req *req)
{
	if (req->call.tables)
		tables_leave(req);
	if (req->mirror)
		mirror_end(req);
	else if (!req->call.tables || tables_are_back(req))
		req_settle(req);
}

bool req_run(struct exec_req *req)
{
	bool moved = false;
	struct list *node;

	if (!req_works(req) || !req_may_begin(req))
		return false;
	if (req->line.el)
		return lines_run(req);
	if (!req->awake && list_empty(&req->retry))
		return false;
	req->awake = false;
	while ((node = list_pop_front(&req->retry)))
		list_push_back(&req->runnable, node);
	do {
		if (req_run_once(req))
			moved = true;
	} while (req_works(req) && !list_empty(&req->runnable));
	if (req_works(req) && req->done == req->call.plan->instances) {
		if (!req->call.follow) {
			req_end(req);
			return moved;
		}
		req_follow(req);
		return true;
	}
	return moved;
}
