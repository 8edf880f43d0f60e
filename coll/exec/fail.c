/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How requests fail. The first failure counts. Rule D3: memory that a peer may write is
 * not given back while it may still be written. So a failed request cancels its receives,
 * tells its peers (FAIL) and drains: it is done when every operation came back and every
 * place that was announced for put is either filled, answered with REVOKED by the peer,
 * or the peer cannot be reached any more. Its registrations are closed then, as the last
 * thing before the buffers are the caller's again. Not earlier: closing does not stop
 * what a provider is receiving already, and tcp answers a put to a closed registration by
 * closing the connection, with the FAIL or the REVOKED that is under way on it.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "coll/exec/engine.h"
#include "coll/exec/lines_req.h"
#include "coll/exec/mirror.h"
#include "coll/exec/pair.h"
#include "coll/exec/passage.h"
#include "coll/exec/seen.h"
#include "coll/exec/tables.h"

/* Without movement for so long we ask the rank that we wait for what it does; and again
 * after the second time. */
#define PROBE_AFTER_US	200000
#define PROBE_AGAIN_US	500000
#define PROBE_RANKS_MAX 16
/* Those that were asked had the time to answer. */
#define OVERTAKEN_US INT64_C(1000000)
/* A FAIL can be lost with a connection that breaks: it is repeated while it matters. */
#define TELL_AGAIN_US 500000

static void req_lists_drop(struct exec_req *req)
{
	while (list_pop_front(&req->runnable))
		;
	while (list_pop_front(&req->retry))
		;
	while (list_pop_front(&req->local_queue))
		;
	while (list_pop_front(&req->flush))
		;
	req->local.slot = NULL;
}

/* Places whose READY was never sent are not open to anybody. */
static void req_announce_drop(struct exec_req *req, struct exec_peer *peer)
{
	struct list *node;

	while ((node = list_pop_front(&peer->announce))) {
		struct slot *slot = container_of(node, struct slot, link);

		if (slot->place_open) {
			slot->place_open = false;
			peer->places--;
			req->places--;
		}
	}
}

/* The longest message that is in flight to a peer. */
static uint64_t req_msg_bytes(const struct exec_req *req, const struct exec_peer *peer)
{
	uint64_t most = 0;

	for (uint64_t i = req->base; i < req->next && peer->msgs; i++) {
		const struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (slot->peer == peer && slot->state == SLOT_ACTIVE &&
		    slot->inst.kind == PLAN_SEND && slot->bytes > most)
			most = slot->bytes;
	}
	return most;
}

/* FAIL to every peer, or again to those that owe us a REVOKED or do not take what we
 * sent. */
static void req_tell(struct exec_req *req, int32_t culprit, bool again)
{
	const struct exec_comm *comm = &req->x->comms[req->call.comm];
	struct ctl_msg msg = {.kind = CTL_FAIL,
			      .comm = req->call.comm,
			      .call = req->call.call,
			      .pair = req->call.pair,
			      .fail = {.result = req->result, .culprit = culprit}};

	/* Of an earlier call that failed the peers hear, not of this one. */
	if (req->result == WEFT_ERR_COMM)
		msg.fail.result = comm->failed;
	snprintf(msg.fail.text, sizeof(msg.fail.text), "%.*s", CTL_TEXT_MAX - 1,
		 req->result == WEFT_ERR_COMM ? comm->text : req->text);
	if (req->line.el) {
		lines_tell(req, &msg);
		return;
	}
	list_foreach (pos, &req->peers) {
		struct exec_peer *peer = container_of(pos, struct exec_peer, link);

		/* Without memory it is told at the next repetition. */
		if (again && !peer->places && !peer->msgs)
			continue;
		msg.fail.msg_bytes = req_msg_bytes(req, peer);
		ctl_io_send(req->x, peer->rank, &msg);
	}
}

/* The registrations are not given out again and closed when the request settles. Not
 * those of a doubled call, whose memory nothing else uses until the context closes: a
 * peer that does not know yet would hear of a key that is refused, and blame us. */
static void req_revoke(struct exec_req *req)
{
	for (int i = 0; i < EXEC_BUFS; i++) {
		if (req->mr[i] && req->mr[i]->remote && !req->call.twin)
			mem_revoke(req->mr[i]);
	}
}

static void req_places_leave(struct exec_req *req)
{
	list_foreach (pos, &req->peers) {
		struct exec_peer *peer = container_of(pos, struct exec_peer, link);

		req->places -= peer->places;
		peer->places = 0;
	}
}

void req_fail(struct exec_req *req, enum weft_result result, int32_t culprit,
	      const char *fmt, ...)
{
	struct exec *x = req->x;
	va_list ap;

	if (req->state != EXEC_RUNNING)
		return;
	va_start(ap, fmt);
	vsnprintf(req->text, sizeof(req->text), fmt, ap);
	va_end(ap);
	req->result = result;
	req->state = EXEC_DRAINING;
	seen_failed(req, culprit);
	recorder_failed(x->trace);
	if (req->call.pair)
		pair_fail(x, req->call.comm, req->call.peer, result, req->text);
	else
		exec_comm_fail(x, req->call.comm, req->call.call, result, culprit,
			       req->text);
	req_lists_drop(req);
	for (uint64_t i = req->base; i < req->next; i++) {
		struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (slot->op)
			fi_cancel(&x->net.ep->fid, slot->op);
	}
	req->culprit = culprit;
	req->probed = exec_now();
	req_tell(req, culprit, false);
	list_foreach (pos, &req->peers) {
		struct exec_peer *peer = container_of(pos, struct exec_peer, link);

		req_announce_drop(req, peer);
		req_answer_revoke(req, peer);
	}
	req_revoke(req);
	/* Of a doubled call the places are memory of ours, which nothing else uses until
	 * the context closes. */
	if (req->call.twin)
		req_places_leave(req);
	if (req->call.tables)
		tables_fail(req);
	if (req->mirror)
		mirror_fail(req);
	req_let_stream(req);
	req_drained(req);
}

void req_drained(struct exec_req *req)
{
	if (req->state == EXEC_DRAINING && req->ops == 0 && req->places == 0)
		req_settle(req);
}

void req_revoked(struct exec_req *req, struct exec_peer *peer)
{
	if (req->state != EXEC_DRAINING)
		return;
	req->places -= peer->places;
	peer->places = 0;
	req_drained(req);
}

void req_answer_revoke(struct exec_req *req, struct exec_peer *peer)
{
	struct ctl_msg msg = {
		.kind = CTL_REVOKED, .comm = req->call.comm, .call = req->call.call};

	/* Messages between two ranks have no places. */
	if (!peer->revoke_asked || peer->puts || req->call.pair)
		return;
	if (ctl_io_send(req->x, peer->rank, &msg) == 0)
		peer->revoke_asked = false;
}

void req_fail_op(struct slot *slot, const struct net_result *result)
{
	trace_put(slot->req->x->trace, TRACE_NET, TRACE_NET_ERROR, slot->req->call.comm,
		  slot->req->call.call, slot->inst.peer, (uint64_t)result->err);
	req_fail(slot->req, WEFT_ERR_PEER, slot->inst.peer,
		 "%s with rank %d failed in %s: %s",
		 slot->inst.kind == PLAN_SEND ? "sending" : "receiving", slot->inst.peer,
		 exec_req_what(slot->req), result->text);
}

void req_fail_post(struct slot *slot, const char *what, int rc)
{
	struct exec_req *req = slot->req;

	if (rc == -FI_ENOMEM)
		req_fail(req, WEFT_ERR_NOMEM, -1, "%s in %s: no memory", what,
			 exec_req_what(req));
	else if (slot->peer)
		req_fail(req, WEFT_ERR_PEER, slot->inst.peer,
			 "rank %d cannot be reached in %s: %s", slot->inst.peer,
			 exec_req_what(req), fi_strerror(-rc));
	else
		req_fail(req, WEFT_ERR_INTERNAL, -1, "%s in %s: %s", what,
			 exec_req_what(req), fi_strerror(-rc));
}

/* ---- waiting
 * ------------------------------------------------------------------------- */

static bool slot_waits(const struct slot *slot)
{
	return slot->peer && slot->state != SLOT_BLOCKED && slot->state != SLOT_DONE;
}

int32_t req_waits_for(const struct exec_req *req, struct slot **out)
{
	if (req->line.el)
		return lines_waits_for(req);
	for (uint64_t i = req->base; i < req->next; i++) {
		struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (!slot_waits(slot))
			continue;
		if (out)
			*out = slot;
		return slot->inst.peer;
	}
	return -1;
}

static const char *slot_waits_for(const struct slot *slot)
{
	if (slot->inst.kind == PLAN_RECV)
		return "its data";
	if (slot->state == SLOT_WAITING)
		return "its place to be ready";
	if (slot->state == SLOT_RUNNABLE)
		return "the connection";
	return "a send to complete";
}

static void req_timed_out(struct exec_req *req)
{
	struct slot *slot = NULL;
	const int32_t rank = req_waits_for(req, &slot);
	char behind[64] = "", order[CTL_TEXT_MAX];

	if (accord_explain(req, order, sizeof(order))) {
		req_fail(req, WEFT_ERR_TIMEOUT, req->forgot_rank,
			 "%s, call %u of communicator %u, is not finished within %.3f s: "
			 "%s",
			 exec_req_what(req),
			 req->call.pair ? req->call.call >> 1 : req->call.call,
			 req->call.comm, (double)req->call.timeout_us * 1e-6, order);
		return;
	}
	if (req->call.pair) {
		req_fail(req, WEFT_ERR_TIMEOUT, req->call.peer,
			 "%s: rank %d did not %s it within %.3f s", exec_req_what(req),
			 req->call.peer,
			 req->call.id.root == req->x->rank ? "take" : "send",
			 (double)req->call.timeout_us * 1e-6);
		return;
	}
	if (order_explain(req, order, sizeof(order))) {
		req_fail(req, WEFT_ERR_TIMEOUT, req->elsewhere_rank,
			 "call %u of communicator %u, %s, is not finished within %.3f s: "
			 "%s",
			 req->call.call, req->call.comm, exec_req_what(req),
			 (double)req->call.timeout_us * 1e-6, order);
		return;
	}
	if (req->line.el && rank >= 0) {
		lines_timed_out(req);
		return;
	}
	if (!slot) {
		req_fail(req, WEFT_ERR_TIMEOUT, -1,
			 "%s, call %u of communicator %u: not finished within %.3f s",
			 exec_req_what(req), req->call.call, req->call.comm,
			 (double)req->call.timeout_us * 1e-6);
		return;
	}
	if (req->blame >= 0 && req->blame != rank)
		snprintf(behind, sizeof(behind), ", which waits for rank %d", req->blame);
	req_fail(req, WEFT_ERR_TIMEOUT, req->blame >= 0 ? req->blame : rank,
		 "%s, call %u of communicator %u: no answer from rank %d within %.3f s "
		 "(waiting for %s: %llu bytes, pair %u)%s",
		 exec_req_what(req), req->call.call, req->call.comm, rank,
		 (double)req->call.timeout_us * 1e-6, slot_waits_for(slot),
		 (unsigned long long)slot->bytes, slot->k, behind);
}

void req_probe(struct exec_req *req, int32_t rank)
{
	struct ctl_msg msg = {
		.kind = CTL_PROBE,
		.comm = req->call.comm,
		.call = req->call.call,
		.pair = req->call.pair,
		.sig = req->sig,
		.status = {.call = req->call.id, .waits_for = req_waits_for(req, NULL)}};
	const struct exec_peer *peer = req->peer_of[rank];

	if (peer && !list_empty(&peer->waiting)) {
		const struct slot *slot =
			container_of(peer->waiting.next, struct slot, link);

		msg.status.place = true;
		msg.status.place_k = slot->k;
		msg.status.place_bytes = slot->bytes;
	}
	ctl_io_send(req->x, rank, &msg);
}

/* Every rank that we wait for: one that waits for us in turn knows nothing, when the
 * cause is another. */
static void req_probe_all(struct exec_req *req, int64_t now)
{
	int left = PROBE_RANKS_MAX;

	req->probed = now;
	seen_still(req);
	if (req->line.el)
		lines_probe(req);
	for (uint64_t i = req->base; i < req->next && left; i++) {
		struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (!slot_waits(slot) || slot->peer->probed == now)
			continue;
		slot->peer->probed = now;
		req_probe(req, slot->inst.peer);
		left--;
	}
	if (req->bind.disp && !req->x->peek.busy)
		rx_peek(req, req->base);
}

bool req_clock(struct exec_req *req, int64_t now)
{
	if (req->state == EXEC_DRAINING && now - req->probed > TELL_AGAIN_US) {
		req->probed = now;
		req_tell(req, req->culprit, true);
		if (req->mirror)
			mirror_check(req);
		if (req->call.tables)
			tables_check(req);
	}
	/* How long a stream takes to come to a call is not the call's time. */
	if (req->state != EXEC_RUNNING || !req->began)
		return false;
	if (!req->dated) {
		req_date(req, now);
		seen_dated(req);
	}
	if (req->accord.on)
		return accord_clock(req, now);
	if (req->moved == 0) {
		req->moved = now;
		req->blame = -1;
		req->elsewhere_rank = -1;
		req->forgot_rank = -1;
		return false;
	}
	if (now >= req->deadline) {
		req_timed_out(req);
		return true;
	}
	if (now - req->moved > PROBE_AFTER_US && now - req->probed > PROBE_AGAIN_US) {
		if (now - req->moved > OVERTAKEN_US && accord_overtaken(req))
			return true;
		req_probe_all(req, now);
		if (req->mirror)
			mirror_check(req);
		if (req->call.tables)
			tables_check(req);
	}
	return false;
}
