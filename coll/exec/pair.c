/* SPDX-License-Identifier: BSD-2-Clause */
/* See pair.h. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "coll/api/error.h"
#include "coll/exec/pair.h"

#define PAIR_K_MASK (UINT32_MAX >> 1)

static unsigned pair_direction(int32_t from, int32_t to)
{
	return from > to;
}

/* NULL where there was no message yet. */
static struct exec_pair *pair_find(const struct exec_comm *comm, int32_t peer)
{
	return comm->pairs ? comm->pairs[peer] : NULL;
}

static struct exec_pair *pair_get(struct exec *x, uint32_t number, int32_t peer)
{
	struct exec_comm *comm = &x->comms[number];

	if (!comm->pairs)
		comm->pairs = calloc((size_t)x->size, sizeof(struct exec_pair *));
	if (comm->pairs && !comm->pairs[peer])
		comm->pairs[peer] = calloc(1, sizeof(struct exec_pair));
	return pair_find(comm, peer);
}

void pairs_free(struct exec *x, uint32_t number)
{
	struct exec_comm *comm = &x->comms[number];

	for (int32_t i = 0; comm->pairs && i < x->size; i++)
		free(comm->pairs[i]);
	free(comm->pairs);
	comm->pairs = NULL;
}

enum weft_result exec_pair_next(struct exec *x, uint32_t comm, int32_t peer, bool sends,
				uint32_t *call)
{
	const struct exec_pair *pair = pair_get(x, comm, peer);
	const unsigned to =
		sends ? pair_direction(x->rank, peer) : pair_direction(peer, x->rank);

	if (!pair)
		return error_set(WEFT_ERR_NOMEM, "no memory for messages with rank %d",
				 peer);
	*call = pair->next[to] << 1 | to;
	return WEFT_SUCCESS;
}

enum weft_result exec_pair_failed(const struct exec *x, uint32_t comm, int32_t peer,
				  const char **text)
{
	const struct exec_pair *pair = pair_find(&x->comms[comm], peer);

	*text = pair ? pair->text : "";
	return pair ? pair->failed : WEFT_SUCCESS;
}

/* exec_pair_next() was asked before. */
void pair_link(struct exec_req *req)
{
	struct exec_pair *pair = req->x->comms[req->call.comm].pairs[req->call.peer];
	const unsigned direction = req->call.call & 1;
	const uint32_t k = req->call.call >> 1;

	pair->recent[direction][k % PAIR_PAST] = req->call.id;
	pair->next[direction] = (k + 1) & PAIR_K_MASK;
}

void pair_fail(struct exec *x, uint32_t comm, int32_t peer, enum weft_result result,
	       const char *text)
{
	struct exec_pair *pair = pair_get(x, comm, peer);

	if (!pair || pair->failed != WEFT_SUCCESS)
		return;
	pair->failed = result;
	snprintf(pair->text, sizeof(pair->text), "%s", text);
}

/* Messages that started here since: 0 of the next one, above half the numbers of one that
 * comes later. */
static uint32_t pair_age(const struct exec_pair *pair, uint32_t call)
{
	return (pair->next[call & 1] - (call >> 1)) & PAIR_K_MASK;
}

bool pair_is_early(const struct exec_comm *comm, const struct ctl_msg *msg)
{
	const struct exec_pair *pair = pair_find(comm, msg->src);
	uint32_t age;

	/* None starts on a communicator that failed. */
	if (!pair || comm->failed != WEFT_SUCCESS)
		return comm->failed == WEFT_SUCCESS;
	age = pair_age(pair, msg->call);
	return pair->failed == WEFT_SUCCESS && (age == 0 || age > PAIR_K_MASK / 2);
}

/* FAIL: whoever sent it will send and take nothing more. */
static void pair_late_fail(struct exec *x, const struct ctl_msg *msg)
{
	char text[EXEC_TEXT_MAX];

	if (msg->fail.result == WEFT_ERR_MISMATCH)
		snprintf(text, sizeof(text), "%s", msg->fail.text);
	else
		snprintf(text, sizeof(text), "rank %d reports: %s", msg->src,
			 msg->fail.text);
	if (x->comms[msg->comm].state == COMM_OPEN)
		pair_fail(x, msg->comm, msg->src, (enum weft_result)msg->fail.result,
			  text);
	if (msg->fail.msg_bytes)
		sink_open(x, msg);
}

/* PROBE: what the call was here, or that nobody knows it any more, or why it will not be.
 */
static void pair_answer(struct exec *x, const struct ctl_msg *msg)
{
	const struct exec_comm *comm = &x->comms[msg->comm];
	const struct exec_pair *pair = pair_find(comm, msg->src);
	const bool failed = pair && pair->failed != WEFT_SUCCESS;
	struct ctl_msg answer = {.comm = msg->comm, .call = msg->call, .pair = true};
	const uint32_t age = pair ? pair_age(pair, msg->call) : 0;

	if (age && age <= PAIR_PAST) {
		answer.kind = CTL_STATUS;
		answer.status.call =
			pair->recent[msg->call & 1][(msg->call >> 1) % PAIR_PAST];
		answer.status.waits_for = -1;
	} else if (!failed && age > PAIR_PAST && age <= PAIR_K_MASK / 2) {
		answer.kind = CTL_FORGOTTEN;
		answer.forgotten.since = age - 1;
	} else if (failed || comm->failed != WEFT_SUCCESS) {
		answer.kind = CTL_FAIL;
		answer.fail.result = failed ? pair->failed : comm->failed;
		answer.fail.culprit = -1;
		snprintf(answer.fail.text, sizeof(answer.fail.text), "%.*s",
			 CTL_TEXT_MAX - 1, failed ? pair->text : comm->text);
	} else {
		return;
	}
	ctl_io_send(x, msg->src, &answer);
}

void pair_over(struct exec *x, const struct ctl_msg *msg)
{
	if (msg->kind == CTL_FAIL)
		pair_late_fail(x, msg);
	else if (msg->kind == CTL_PROBE)
		pair_answer(x, msg);
}

/* ---- words ----------------------------------------------------------------------------
 */

void pair_what(struct exec_req *req)
{
	snprintf(req->what, sizeof(req->what), "message %u %s rank %d",
		 req->call.call >> 1, req->call.id.root == req->x->rank ? "to" : "from",
		 req->call.peer);
}

/* "message 3 of communicator 0: rank 1 sends 10 fp32, rank 0 takes 8 fp32". */
static void pair_disagree(struct exec_req *req, const char *own, const char *other)
{
	const bool sends = req->call.id.root == req->x->rank;

	req_fail(req, WEFT_ERR_MISMATCH, req->call.peer,
		 "message %u from rank %d to rank %d on communicator %u: one sends %s, "
		 "the other receives %s; both must give the same",
		 req->call.call >> 1, req->call.id.root,
		 sends ? req->call.peer : req->x->rank, req->call.comm,
		 sends ? own : other, sends ? other : own);
}

void pair_mismatch(struct exec_req *req, const struct sig_call *other, bool exact)
{
	char own[64], theirs[64];

	sig_call_print(&req->call.id, true, own, sizeof(own));
	sig_call_print(other, exact, theirs, sizeof(theirs));
	pair_disagree(req, own, theirs);
}

void pair_lengths(struct slot *slot, uint64_t theirs)
{
	char own[64], other[64];

	snprintf(own, sizeof(own), "%llu bytes", (unsigned long long)slot->bytes);
	snprintf(other, sizeof(other), "%s%llu bytes",
		 theirs > slot->bytes ? "at least " : "", (unsigned long long)theirs);
	pair_disagree(slot->req, own, other);
}
