/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ranks that disagree about a call. Whoever sees a signature that is not its own stops
 * working on its call and reports to rank 0, in a whole sentence; the first report is the
 * verdict, which rank 0 sends to every rank: so all that did not finish the call fail
 * with the same words, and those that did hear them in their next call. A rank 0 that
 * says nothing (it computes, or is dead) is passed over for rank 1 and so on; after a few
 * of them a rank decides for itself. Nobody waits longer than its own deadline.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "coll/exec/engine.h"
#include "coll/exec/pair.h"

/* How long a rank that is asked for the verdict may take before the next one is. */
#define ACCORD_STEP_US INT64_C(1000000)
/* Ranks that are asked before one decides alone. */
#define ACCORD_ASKED_MAX 4
#define ACCORD_TEXT_MAX	 CTL_TEXT_MAX
#define ACCORD_CALL_MAX	 112 /* text of a call */

/* ---- the verdict
 * ---------------------------------------------------------------------- */

static uint32_t accord_first(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0 ? a : b;
}

/* Why the communicator failed, as far as this rank knows; to be told to ranks in `call`,
 * also where it failed in a later one. */
static bool accord_known(const struct exec *x, uint32_t comm, uint32_t call,
			 struct ctl_msg *verdict)
{
	if (comm < x->comms_max && x->comms[comm].failed != WEFT_SUCCESS) {
		const struct exec_comm *c = &x->comms[comm];

		*verdict = (struct ctl_msg){.kind = CTL_VERDICT,
					    .comm = comm,
					    .call = accord_first(c->failed_call, call),
					    .fail = {.result = c->failed, .culprit = -1}};
		snprintf(verdict->fail.text, sizeof(verdict->fail.text), "%.*s",
			 CTL_TEXT_MAX - 1, c->text);
		return true;
	}
	list_foreach (pos, &x->stash) {
		const struct stash *stash = container_of(pos, struct stash, link);

		if (stash->msg.kind != CTL_VERDICT || stash->msg.comm != comm)
			continue;
		*verdict = stash->msg;
		verdict->call = accord_first(verdict->call, call);
		return true;
	}
	return false;
}

void accord_apply(struct exec *x, const struct ctl_msg *verdict)
{
	const enum weft_result result = (enum weft_result)verdict->fail.result;

	if (event_is_early(x, verdict)) {
		event_stash(x, verdict);
		return;
	}
	exec_comm_fail(x, verdict->comm, verdict->call, result, verdict->fail.culprit,
		       verdict->fail.text);
	list_foreach_safe (pos, tmp, &x->reqs) {
		struct exec_req *req = container_of(pos, struct exec_req, link);

		/* Messages of two ranks have numbers of their own, and go on where both
		 * have started; where one has not, it says why to whoever asks. */
		if (req->call.comm != verdict->comm || req->call.pair ||
		    (int32_t)(req->call.call - verdict->call) < 0)
			continue;
		if (req->call.call == verdict->call)
			req_fail(req, result, verdict->fail.culprit, "%s",
				 verdict->fail.text);
		else
			req_fail(req, WEFT_ERR_COMM, -1,
				 "communicator %u failed earlier (%s): %s", verdict->comm,
				 weft_strerror(result), verdict->fail.text);
	}
}

/* The communicator, where this rank has it open. */
static const struct exec_comm *accord_comm(const struct exec *x, uint32_t comm)
{
	return comm < x->comms_max && x->comms[comm].state == COMM_OPEN ? &x->comms[comm]
									: NULL;
}

/* asks: the rank that wants to know, or -1. Only members are told: to others the number
 * may mean another communicator. */
static void accord_decide(struct exec *x, uint32_t comm, uint32_t call, const char *text,
			  int32_t asks)
{
	const struct exec_comm *c = accord_comm(x, comm);
	struct ctl_msg verdict;

	if (!accord_known(x, comm, call, &verdict)) {
		verdict = (struct ctl_msg){
			.kind = CTL_VERDICT,
			.comm = comm,
			.call = call,
			.fail = {.result = WEFT_ERR_MISMATCH, .culprit = -1}};
		snprintf(verdict.fail.text, sizeof(verdict.fail.text), "%s", text);
		for (int32_t i = 0; c && i < c->members; i++) {
			if (i != c->self)
				ctl_io_send(x, exec_comm_rank(c, i), &verdict);
		}
		if (!c && asks >= 0)
			ctl_io_send(x, asks, &verdict);
	}
	accord_apply(x, &verdict);
}

void accord_report(struct exec *x, const struct ctl_msg *msg)
{
	struct ctl_msg verdict;

	if (accord_known(x, msg->comm, msg->call, &verdict))
		ctl_io_send(x, msg->src, &verdict);
	else
		accord_decide(x, msg->comm, msg->call, msg->fail.text, msg->src);
}

/* Asks rank `judge` of the communicator for the verdict. */
static void accord_ask(struct exec *x, int32_t judge, uint32_t comm, uint32_t call,
		       const char *text)
{
	const struct exec_comm *c = accord_comm(x, comm);
	struct ctl_msg report = {.kind = CTL_REPORT,
				 .comm = comm,
				 .call = call,
				 .fail = {.result = WEFT_ERR_MISMATCH, .culprit = -1}};

	if (!c || judge >= c->self) {
		accord_decide(x, comm, call, text, -1);
		return;
	}
	snprintf(report.fail.text, sizeof(report.fail.text), "%s", text);
	ctl_io_send(x, exec_comm_rank(c, judge), &report);
}

/* ---- a request that saw another signature
 * --------------------------------------------- */

static void accord_step(struct exec_req *req, int32_t judge)
{
	struct accord *accord = &req->accord;
	const int64_t share =
		req->call.timeout_us > 0 ? req->call.timeout_us / 8 : ACCORD_STEP_US;

	accord->judge = judge;
	accord->until = exec_now() + (share < ACCORD_STEP_US ? share : ACCORD_STEP_US);
	if (judge >= 0)
		accord_ask(req->x, judge < ACCORD_ASKED_MAX ? judge : INT32_MAX,
			   req->call.comm, accord->call, accord->text);
}

/* Stops the request with what is known. judge -1: something better may come. */
static void accord_begin(struct exec_req *req, uint32_t call, const char *text,
			 int32_t judge)
{
	struct accord *accord = &req->accord;

	if (req->state != EXEC_RUNNING ||
	    (accord->on && (accord->judge >= 0 || judge < 0)))
		return;
	accord->on = true;
	accord->call = call;
	snprintf(accord->text, sizeof(accord->text), "%s", text);
	accord_step(req, judge);
}

bool accord_clock(struct exec_req *req, int64_t now)
{
	if (now < req->accord.until && now < req->deadline)
		return false;
	accord_step(req, now < req->deadline ? req->accord.judge + 1 : ACCORD_ASKED_MAX);
	return true;
}

/* "call 5 of communicator 0: rank 1 runs ..., rank 2 ...", the lower rank first. */
static void accord_print(char *text, size_t len, uint32_t comm, uint32_t call,
			 const int32_t rank[2], const struct sig_call *what[2],
			 const bool exact[2])
{
	const int low = rank[0] < rank[1] ? 0 : 1;
	char said[2][ACCORD_CALL_MAX];

	for (int i = 0; i < 2; i++)
		sig_call_print(what[i], exact[i], said[i], sizeof(said[i]));
	snprintf(text, len,
		 "call %u of communicator %u: rank %d runs %s, rank %d %s; every rank "
		 "must give the same",
		 call, comm, rank[low], said[low], rank[1 - low], said[1 - low]);
}

/* Lines of a rank at one turn are of call `ahead`, those of the other of `call`, before
 * that: each call takes as many turns on all ranks, so that they differed in `call` or
 * before. What the rank that is ahead ran there it may not know any more. */
static void accord_apart(struct exec_req *req, uint32_t call, int32_t rank,
			 const struct sig_call *what, bool exact, uint32_t ahead,
			 int32_t ahead_rank, int32_t judge)
{
	char said[ACCORD_CALL_MAX], text[ACCORD_TEXT_MAX];

	sig_call_print(what, exact, said, sizeof(said));
	snprintf(
		text, sizeof(text),
		"communicator %u: rank %d runs %s in call %u, rank %d is in call %u, and "
		"gave different arguments to call %u or to one before it; every rank "
		"must give the same",
		req->call.comm, rank, said, call, ahead_rank, ahead, call);
	accord_begin(req, call, text, judge);
}

/* own: what this rank runs, or ran, in `call`. judge as for accord_begin(). */
static void accord_other(struct exec_req *req, uint32_t call, const struct sig_call *own,
			 int32_t rank, const struct sig_call *other, bool exact,
			 int32_t judge)
{
	const int32_t ranks[2] = {req->x->rank, rank};
	const struct sig_call *what[2] = {own, other};
	const bool known[2] = {true, exact};
	char text[ACCORD_TEXT_MAX];

	accord_print(text, sizeof(text), req->call.comm, call, ranks, what, known);
	accord_begin(req, call, text, judge);
}

static void accord_other_call(struct exec_req *req, int32_t rank,
			      const struct sig_call *other, bool exact)
{
	accord_other(req, req->call.call, &req->call.id, rank, other, exact, 0);
}

/* The call is the same, one before was not: the other rank is told ours and finds it. */
static void accord_other_past(struct exec_req *req, int32_t rank)
{
	const struct exec_comm *comm = &req->x->comms[req->call.comm];
	struct ctl_msg msg = {.kind = CTL_PAST, .comm = req->call.comm};
	char text[ACCORD_TEXT_MAX];

	msg.call = comm->next_call - 1;
	while (msg.past.entries < CTL_PAST_MAX && msg.past.entries < comm->next_call) {
		msg.past.call[msg.past.entries] =
			comm->recent[(msg.call - msg.past.entries) % CTL_PAST_MAX].id;
		msg.past.entries++;
	}
	snprintf(
		text, sizeof(text),
		"communicator %u: rank %d and rank %d gave different arguments to a call "
		"before call %u; every rank must give the same",
		req->call.comm, req->x->rank < rank ? req->x->rank : rank,
		req->x->rank < rank ? rank : req->x->rank, req->call.call);
	if (!req->accord.on)
		ctl_io_send(req->x, rank, &msg);
	accord_begin(req, req->call.call, text, -1);
}

void accord_past(struct exec *x, const struct ctl_msg *msg)
{
	const struct exec_comm *comm;
	char text[ACCORD_TEXT_MAX];

	if (msg->comm >= x->comms_max)
		return;
	comm = &x->comms[msg->comm];
	/* The oldest difference is what the others follow from. */
	for (int i = msg->past.entries - 1; i >= 0; i--) {
		const uint32_t call = msg->call - (uint32_t)i;
		const struct exec_past *own = &comm->recent[call % CTL_PAST_MAX];
		const int32_t ranks[2] = {x->rank, msg->src};
		const struct sig_call *what[2] = {&own->id, &msg->past.call[i]};
		const bool known[2] = {true, true};

		if (!exec_comm_past(x, msg->comm, call) ||
		    sig_call_same(&own->id, &msg->past.call[i]))
			continue;
		accord_print(text, sizeof(text), msg->comm, call, ranks, what, known);
		accord_ask(x, 0, msg->comm, call, text);
		return;
	}
}

void accord_signature(struct exec_req *req, int32_t rank, uint64_t sig)
{
	struct sig_call other;
	bool exact;

	if (req->call.pair) {
		exact = sig_unpack(sig, req->x->size, &other);
		pair_mismatch(req, &other, exact);
		return;
	}
	if ((sig ^ req->sig) & ~SIG_PAST_MASK) {
		exact = sig_unpack(sig, req->x->size, &other);
		accord_other_call(req, rank, &other, exact);
	} else if (req->call.twin) {
		/* By messages puts tell it; the calls before were looked at as they came.
		 */
		accord_doubled(req);
	} else {
		accord_other_past(req, rank);
	}
}

void accord_line(struct exec_req *req, int32_t rank, uint32_t call, uint64_t sig)
{
	const struct exec_past *past = exec_comm_past(req->x, req->call.comm, call);
	const int32_t ahead = (int32_t)(call - req->call.call);
	struct sig_call other;
	bool exact;

	if (!ahead) {
		accord_signature(req, rank, sig);
		return;
	}
	exact = sig_unpack(sig, req->x->size, &other);
	if (ahead > 0) {
		/* It was in ours, and has something to say of it when it is asked. */
		accord_apart(req, req->call.call, req->x->rank, &req->call.id, true, call,
			     rank, -1);
		req_probe(req, rank);
	} else if (past && (sig ^ past->sig) & ~SIG_PAST_MASK) {
		/* There it still runs: what is said of a later one would not end it. */
		accord_other(req, call, &past->id, rank, &other, exact, 0);
	} else if (past) {
		accord_other_past(req, rank);
	} else {
		accord_apart(req, call, rank, &other, exact, req->call.call, req->x->rank,
			     0);
	}
}

bool accord_overtaken(struct exec_req *req)
{
	struct ctl_msg verdict;

	if (req->call.pair ||
	    !accord_known(req->x, req->call.comm, req->call.call, &verdict) ||
	    verdict.fail.result != WEFT_ERR_MISMATCH)
		return false;
	accord_apply(req->x, &verdict);
	return true;
}

void accord_status(struct exec_req *req, const struct ctl_msg *msg)
{
	if (req->call.pair) {
		if (!sig_call_same(&req->call.id, &msg->status.call))
			pair_mismatch(req, &msg->status.call, true);
		return;
	}
	if (!sig_call_same(&req->call.id, &msg->status.call))
		accord_other_call(req, msg->src, &msg->status.call, true);
	else if (msg->sig != req->sig)
		accord_other_past(req, msg->src);
}

void accord_forgotten(struct exec_req *req, const struct ctl_msg *msg)
{
	if (req->state != EXEC_RUNNING)
		return;
	/* Something better does not come. */
	if (req->accord.on && req->accord.judge < 0)
		accord_step(req, 0);
	req->forgot_rank = msg->src;
	req->forgot_since = msg->forgotten.since;
}

/* That the call was the same, and what came of it is late, nobody can exclude: so this is
 * for the deadline. */
bool accord_explain(const struct exec_req *req, char *text, size_t len)
{
	if (req->forgot_rank < 0)
		return false;
	snprintf(text, len,
		 "rank %d has ended it, and started %u more since, so that it does not "
		 "know any more what it was there; unless something is still under way, "
		 "the ranks gave different arguments to it or to one before: %s must "
		 "give the same",
		 req->forgot_rank, req->forgot_since,
		 req->call.pair ? "both" : "every rank");
	return true;
}

/* A put came of a request that is another one, or of none that is doubled. */
void accord_doubled(struct exec_req *req)
{
	char text[ACCORD_TEXT_MAX];

	snprintf(text, sizeof(text),
		 "call %u of communicator %u, %s: a rank starts another request with "
		 "WEFT_DOUBLE than rank %d: every rank must make them in the same order "
		 "and "
		 "start the same in each call",
		 req->call.call, req->call.comm, exec_req_what(req), req->x->rank);
	accord_begin(req, req->call.call, text, 0);
}

/* Lengths differ, and what the other rank runs is not known yet: it is asked. */
void accord_lengths(struct slot *slot, const char *how, uint64_t theirs)
{
	struct exec_req *req = slot->req;
	char text[ACCORD_TEXT_MAX];

	if (req->call.pair) {
		pair_lengths(slot, theirs);
		return;
	}
	snprintf(text, sizeof(text),
		 "call %u of communicator %u, %s: rank %d %s %llu bytes, rank %d %llu; "
		 "every rank must give the same count and type",
		 req->call.call, req->call.comm, exec_req_what(req), slot->inst.peer, how,
		 (unsigned long long)theirs, req->x->rank,
		 (unsigned long long)slot->bytes);
	accord_begin(req, req->call.call, text, -1);
	req_probe(req, slot->inst.peer);
}

void accord_place(struct exec_req *req, const struct ctl_msg *msg)
{
	const struct exec_peer *peer = req->peer_of[msg->src];

	if (req->state != EXEC_RUNNING || req->accord.on || !msg->status.place || !peer)
		return;
	for (uint64_t i = req->base; i < req->next; i++) {
		struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (slot->peer != peer || slot->inst.kind != PLAN_RECV ||
		    slot->k != msg->status.place_k || !slot->op)
			continue;
		if (slot->bytes != msg->status.place_bytes)
			accord_lengths(slot, "sends", msg->status.place_bytes);
		return;
	}
}
