/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What arrives from peers: remote CQ data of puts and control messages. A message of a
 * call that did not start here yet waits in the stash; one of a call that is over is
 * answered where the peer waits for it, else dropped.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll/exec/engine.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/name.h"
#include "coll/exec/pair.h"
#include "coll/exec/seen.h"

/* Early messages that are kept; more means that a peer runs wild. */
#define STASH_MAX 65536

/* ---- puts
 * ---------------------------------------------------------------------------- */

/* The slot that a put filled; NULL when the word names none that is open. */
static struct slot *event_slot(struct exec_req *req, uint32_t index)
{
	const uint64_t number =
		req->base + ((index - (uint32_t)req->base) & NAME_INDEX_MASK);
	struct slot *slot;

	if (number >= req->next)
		return NULL;
	slot = &req->slot[number & (req->slots - 1)];
	return slot->place_open && list_empty(&slot->link) ? slot : NULL;
}

/* Whether the word is of a start of the same request, where it is of a doubled one: such
 * puts wait for no READY of this call. *index becomes the RECV's. */
static bool event_is_of(const struct exec_req *req, uint32_t *index)
{
	const struct exec_twin *twin = req->call.twin;
	const uint32_t recv = *index & NAME_TWIN_RECV;

	if (!twin)
		return !(*index & NAME_TWIN);
	if (*index != twin_index(twin, recv))
		return false;
	*index = recv;
	return true;
}

void event_data(void *arg, uint64_t word)
{
	struct exec *x = arg;
	struct name name = name_unpack(word ^ x->net.job);
	struct exec_req *req;
	struct slot *slot;

	if (name.kind == NAME_WIN) {
		win_data(x, name.comm, name.call, name.index);
		return;
	}
	req = engine_find(x, name.comm, name.call, NAME_CALL_MASK, -1);
	if (req && name.kind == NAME_PUT && !event_is_of(req, &name.index)) {
		accord_doubled(req);
		return;
	}
	slot = req && name.kind == NAME_PUT ? event_slot(req, name.index) : NULL;
	if (!req && twin_early(x, &name, word))
		return;
	/* Every put waited for READY of an open place: this one is of another job. */
	if (!slot) {
		x->stats.foreign++;
		return;
	}
	slot->place_open = false;
	seen_note(slot);
	/* Fewer than announced only when the peer said REVOKED before. */
	if (slot->peer->places) {
		slot->peer->places--;
		req->places--;
	}
	if (req->state == EXEC_RUNNING)
		rx_filled(slot);
	else
		req_drained(req);
}

/* ---- control messages of a running call
 * ---------------------------------------------- */

static void event_handles(struct exec *x, int32_t src, const struct ctl_ready *ready)
{
	if (!ready->handles)
		return;
	if (!x->handles[src])
		x->handles[src] = calloc(MEM_ENTRIES_MAX, sizeof(struct peer_handle));
	if (!x->handles[src]) {
		event_peer_lost(x, src, "no memory for its handles");
		return;
	}
	for (int i = 0; i < ready->handles; i++) {
		const struct ctl_handle *told = &ready->handle[i];
		struct peer_handle *handle = &x->handles[src][told->id];

		if ((int32_t)(told->incarnation - handle->incarnation) <= 0)
			continue;
		*handle = (struct peer_handle){.key = told->key,
					       .base = told->base,
					       .incarnation = told->incarnation};
	}
}

static void event_ready(struct exec_req *req, const struct ctl_msg *msg)
{
	struct exec_peer *peer = req_peer(req, msg->src);
	struct ready *ready = NULL;

	if (msg->sig != req->sig) {
		accord_signature(req, msg->src, msg->sig);
		return;
	}
	/* The same call has no places there either. */
	if (req->line.el) {
		req->x->garbage++;
		return;
	}
	for (int i = 0; i < msg->ready.entries; i++) {
		const struct ctl_entry *entry = &msg->ready.entry[i];

		if (!ready) {
			ready = peer ? pool_get(&req->x->readys) : NULL;
			if (!ready) {
				req_fail(req, WEFT_ERR_NOMEM, -1,
					 "no memory for a READY message");
				return;
			}
			*ready = (struct ready){.k = entry->k,
						.recv = entry->recv,
						.choice = entry->choice,
						.stays = entry->stays};
			list_init(&ready->link);
		}
		if (ready->pieces == EXEC_PUT_PIECES_MAX) {
			pool_put(&req->x->readys, ready);
			req_fail(req, WEFT_ERR_INTERNAL, msg->src,
				 "rank %d announced a place of too many pieces",
				 msg->src);
			return;
		}
		ready->piece[ready->pieces++] = *entry;
		ready->length += entry->length;
		peer->seen->ready_in++;
		if (entry->more)
			continue;
		tx_ready(req, peer, ready);
		ready = NULL;
	}
}

static void event_fail(struct exec_req *req, const struct ctl_msg *msg)
{
	struct exec *x = req->x;
	struct exec_peer *peer = req_peer(req, msg->src);

	if (!peer)
		return;
	peer->revoke_asked = true;
	if (req->state == EXEC_DRAINING)
		req_answer_revoke(req, peer);
	/* One report is enough: it goes on as it is. Of ranks that disagree all get the
	 * same sentence, and of one that revoked the communicator. */
	if (msg->fail.result == WEFT_ERR_MISMATCH ||
	    msg->fail.result == WEFT_ERR_REVOKED || strstr(msg->fail.text, " reports: "))
		req_fail(req, (enum weft_result)msg->fail.result, msg->fail.culprit, "%s",
			 msg->fail.text);
	else
		req_fail(req, (enum weft_result)msg->fail.result, msg->fail.culprit,
			 "rank %d reports: %s", msg->src, msg->fail.text);
	/* Our receives are cancelled: what it sent to us nobody else takes. */
	if (msg->fail.msg_bytes)
		sink_open(x, msg);
}

static void event_probe(struct exec_req *req, const struct ctl_msg *msg)
{
	struct ctl_msg answer = {
		.kind = CTL_STATUS,
		.comm = msg->comm,
		.call = msg->call,
		.pair = msg->pair,
		.sig = req->sig,
		.status = {.call = req->call.id, .waits_for = req_waits_for(req, NULL)}};

	ctl_io_send(req->x, msg->src, &answer);
	accord_status(req, msg);
	accord_place(req, msg);
}

static void event_status(struct exec_req *req, const struct ctl_msg *msg)
{
	accord_status(req, msg);
	if (req->state == EXEC_RUNNING && msg->status.waits_for != req->x->rank)
		req->blame = msg->status.waits_for;
}

static void event_req(struct exec_req *req, const struct ctl_msg *msg)
{
	struct exec_peer *peer;

	switch (msg->kind) {
	case CTL_READY:
		if (req->state == EXEC_RUNNING && !req->accord.on)
			event_ready(req, msg);
		break;
	case CTL_FAIL:
		event_fail(req, msg);
		break;
	case CTL_REVOKED:
		peer = req->peer_of[msg->src];
		if (peer)
			req_revoked(req, peer);
		break;
	case CTL_PROBE:
		event_probe(req, msg);
		break;
	case CTL_STATUS:
		event_status(req, msg);
		break;
	case CTL_VERDICT:
		accord_apply(req->x, msg);
		break;
	case CTL_ELSEWHERE:
		order_take(req, msg);
		break;
	case CTL_FORGOTTEN:
		accord_forgotten(req, msg);
		break;
	case CTL_REPORT:
	case CTL_PAST:
	case CTL_REVOKE:
	case CTL_AGREE:
	case CTL_WIN_SIGNAL:
	case CTL_WIN_PUT:
	case CTL_WIN_GET:
		break; /* of no call in particular: event_ctl() */
	}
}

/* ---- before and after a call
 * --------------------------------------------------------- */

/* Whether the call may still start here: never in a communicator that is closed or that
 * failed. */
bool event_is_early(const struct exec *x, const struct ctl_msg *msg)
{
	const struct exec_comm *comm;

	if (msg->comm >= x->comms_max)
		return true;
	comm = &x->comms[msg->comm];
	if (comm->state != COMM_OPEN)
		return comm->state == COMM_UNKNOWN;
	if (msg->pair)
		return pair_is_early(comm, msg);
	return comm->failed == WEFT_SUCCESS &&
	       (int32_t)(msg->call - comm->next_call) >= 0;
}

void event_stash(struct exec *x, const struct ctl_msg *msg)
{
	struct stash *stash;

	if (msg->kind == CTL_PROBE)
		order_answer(x, msg);
	if (msg->kind != CTL_READY && msg->kind != CTL_FAIL && msg->kind != CTL_VERDICT &&
	    msg->kind != CTL_REVOKE)
		return;
	stash = x->stashed < STASH_MAX ? pool_get(&x->stashes) : NULL;
	if (!stash) {
		x->garbage++;
		return;
	}
	stash->msg = *msg;
	x->stashed++;
	list_push_back(&x->stash, &stash->link);
}

/* FAIL of a call that is over here: none of its puts is in flight. The peer takes part in
 * nothing more on this communicator, so it has failed here as well, with every call that
 * started since. */
static void event_late_fail(struct exec *x, const struct ctl_msg *msg)
{
	struct ctl_msg answer = {
		.kind = CTL_REVOKED, .comm = msg->comm, .call = msg->call};
	struct ctl_msg cause = *msg;

	if (msg->fail.result != WEFT_ERR_MISMATCH && msg->fail.result != WEFT_ERR_REVOKED)
		snprintf(cause.fail.text, sizeof(cause.fail.text),
			 "rank %d reports: %.*s", msg->src, CTL_TEXT_MAX - 32,
			 msg->fail.text);
	if (x->comms[msg->comm].state == COMM_OPEN)
		accord_apply(x, &cause);
	ctl_io_send(x, msg->src, &answer);
	if (msg->fail.msg_bytes)
		sink_open(x, msg);
}

/* READY or PROBE of a call that does not run here: it never will, because the
 * communicator failed; or it is over, and was another one here, or nobody knows any more
 * which. */
static void event_over(struct exec *x, const struct ctl_msg *msg)
{
	const struct exec_comm *comm = &x->comms[msg->comm];
	const struct exec_past *past = exec_comm_past(x, msg->comm, msg->call);
	struct ctl_msg answer = {.comm = msg->comm, .call = msg->call};

	if (comm->failed != WEFT_SUCCESS &&
	    (int32_t)(msg->call - comm->failed_call) >= 0) {
		const bool verdict = comm->failed == WEFT_ERR_MISMATCH;

		answer.kind = verdict ? CTL_VERDICT : CTL_FAIL;
		if (verdict)
			answer.call = comm->failed_call;
		answer.fail.result = comm->failed;
		answer.fail.culprit = -1;
		snprintf(answer.fail.text, sizeof(answer.fail.text), "%.*s",
			 CTL_TEXT_MAX - 1, comm->text);
	} else if (past && (msg->kind == CTL_PROBE || msg->sig != past->sig)) {
		answer.kind = CTL_STATUS;
		answer.sig = past->sig;
		answer.status.call = past->id;
		answer.status.waits_for = -1;
	} else if (!past && msg->kind == CTL_PROBE &&
		   (int32_t)(msg->call - comm->next_call) < 0) {
		answer.kind = CTL_FORGOTTEN;
		answer.forgotten.since = comm->next_call - 1 - msg->call;
	} else {
		return;
	}
	ctl_io_send(x, msg->src, &answer);
}

void event_ctl(struct exec *x, const struct ctl_msg *msg)
{
	struct exec_req *req;

	if (msg->kind == CTL_REPORT) {
		accord_report(x, msg);
		return;
	}
	if (msg->kind == CTL_PAST) {
		accord_past(x, msg);
		return;
	}
	if (msg->kind == CTL_REVOKE) {
		revoke_event(x, msg);
		return;
	}
	if (msg->kind == CTL_AGREE) {
		shrink_event(x, msg);
		return;
	}
	if (msg->kind >= CTL_WIN_SIGNAL && msg->kind <= CTL_WIN_GET) {
		win_ctl(x, msg);
		return;
	}
	req = engine_find(x, msg->comm, msg->call, UINT32_MAX, msg->pair ? msg->src : -1);
	if (msg->kind == CTL_READY)
		event_handles(x, msg->src, &msg->ready);
	if (req)
		event_req(req, msg);
	else if (event_is_early(x, msg))
		event_stash(x, msg);
	else if (msg->pair)
		pair_over(x, msg);
	else if (msg->kind == CTL_FAIL)
		event_late_fail(x, msg);
	else if (msg->kind == CTL_VERDICT)
		accord_apply(x, msg);
	else if (msg->kind == CTL_READY || msg->kind == CTL_PROBE)
		event_over(x, msg);
}

void event_stashed(struct exec_req *req)
{
	struct exec *x = req->x;

	list_foreach_safe (pos, tmp, &x->stash) {
		struct stash *stash = container_of(pos, struct stash, link);

		if (stash->msg.comm != req->call.comm ||
		    stash->msg.call != req->call.call ||
		    stash->msg.pair != req->call.pair ||
		    (req->call.pair && stash->msg.src != req->call.peer))
			continue;
		list_remove(&stash->link);
		x->stashed--;
		if (req->state == EXEC_RUNNING || req->state == EXEC_DRAINING)
			event_req(req, &stash->msg);
		pool_put(&x->stashes, stash);
	}
}

/* ---- peers that are gone
 * ------------------------------------------------------------- */

/* Whether the request still needs the peer. */
static bool req_needs(const struct exec_req *req, int32_t rank)
{
	const struct exec_peer *peer = req->peer_of[rank];

	if (req->line.el)
		return lines_needs(req, rank);
	for (uint64_t i = req->base; i < req->next; i++) {
		const struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (slot->peer == peer && slot->state != SLOT_DONE)
			return true;
	}
	return false;
}

void event_peer_lost(struct exec *x, int32_t rank, const char *why)
{
	trace_put(x->trace, TRACE_NET, TRACE_NET_PEER_LOST, 0, 0, rank, 0);
	recorder_peer(x->trace, rank)->lost = 1;
	win_peer_lost(x, rank, why);
	shrinks_peer_lost(x, rank);
	list_foreach_safe (pos, tmp, &x->reqs) {
		struct exec_req *req = container_of(pos, struct exec_req, link);
		struct exec_peer *peer = req->peer_of[rank];

		if (!peer && !req->line.el)
			continue;
		if (req->state == EXEC_RUNNING && req_needs(req, rank))
			req_fail(req, WEFT_ERR_PEER, rank, "rank %d is lost in %s: %s",
				 rank, exec_req_what(req), why);
		/* Nothing of it arrives any more: its places are safe. */
		if (req->state == EXEC_DRAINING && peer)
			req_revoked(req, peer);
	}
}
