/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of READY and long puts: when a rank gives its first put of a call to the
 * provider, it has said of all places that wait for nothing that they are ready, and the
 * provider has those words. Otherwise two ranks that exchange long blocks over a
 * connection that keeps its messages in order would do so one after the other. Rank 0
 * starts each call when the places of rank 1 are there already, so that it could put at
 * once.
 */
#include "config.h"

#include <string.h>

#include <rdma/fi_rma.h>

#include "coll/algo/algo.h"
#include "coll/comm/comm.h"
#include "coll/exec/engine.h"
#include "coll/tests/ranks.h"
#include "coll/tests/run_case.h"
#include "util/tap.h"

#define COUNT 70001

/* What is looked at when the provider is given something: rank 0's only endpoint. */
static struct {
	struct exec *x;
	ssize_t (*writemsg)(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    uint64_t flags);
	ssize_t (*send)(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			fi_addr_t to, void *context);
	struct fi_ops_rma rma;
	struct fi_ops_msg msg;
	uint64_t puts;	 /* of this call */
	uint64_t places; /* that wait for nothing, at the first of them */
	uint64_t unsaid; /* of these nothing was said */
	uint64_t readys; /* that had been made by then, of all calls */
	bool waits;	 /* control messages did, by then, although the provider takes
			  * them */
	bool full;	 /* it does not */
} seen;

static void look_at(const struct exec_req *req)
{
	for (uint64_t i = req->base; i < req->next; i++) {
		const struct slot *slot = &req->slot[i & (req->slots - 1)];

		if (slot->inst.kind != PLAN_RECV || slot->deps)
			continue;
		seen.places++;
		seen.unsaid += slot->state < SLOT_ACTIVE || !list_empty(&slot->link);
	}
}

static ssize_t put_seen(struct fid_ep *ep, const struct fi_msg_rma *msg, uint64_t flags)
{
	const struct net_op *op = msg->context;
	const struct slot *slot = op->owner;

	if (!seen.puts++) {
		seen.readys = seen.x->stats.readys;
		seen.waits = !list_empty(&seen.x->ctl_out) && !seen.full;
		look_at(slot->req);
	}
	return seen.writemsg(ep, msg, flags);
}

static ssize_t send_seen(struct fid_ep *ep, const void *buf, size_t len, void *desc,
			 fi_addr_t to, void *context)
{
	const ssize_t rc = seen.send(ep, buf, len, desc, to, context);

	seen.full = seen.full || rc == -FI_EAGAIN;
	return rc;
}

static void hook(struct exec *x)
{
	struct fid_ep *ep = x->net.ep;

	seen.x = x;
	seen.rma = *ep->rma;
	seen.msg = *ep->msg;
	seen.writemsg = seen.rma.writemsg;
	seen.send = seen.msg.send;
	seen.rma.writemsg = put_seen;
	seen.msg.send = send_seen;
	ep->rma = &seen.rma;
	ep->msg = &seen.msg;
}

static uint64_t readys(struct weft_ctx *ctx)
{
	struct weft_stats s = {.size = sizeof(s)};

	weft_ctx_stats(ctx, &s);
	return s.readys;
}

/* Makes progress until rank 0 has as many words of places as rank 1 has sent. *req is
 * NULL when it ended meanwhile, as rank 1's may once rank 0 goes on. */
static int until_there(struct ranks *r, struct weft_ctx *ctx, struct weft_req **req,
		       int32_t marks, uint64_t said)
{
	const int64_t until = exec_now() + INT64_C(60000000);
	bool there = false;
	int done = 0;

	while (r->rank ? ranks_marks(r) == marks : !there) {
		if (*req && weft_req_test(*req, &done) != WEFT_SUCCESS)
			return ranks_say(r, "%s", weft_error_detail());
		if (done)
			*req = NULL;
		if (exec_now() > until)
			return ranks_say(r, "not so many words: %llu",
					 (unsigned long long)said);
		ctx_lock(ctx);
		there = ctx->exec->stashed >= said;
		ctx_unlock(ctx);
	}
	if (!r->rank)
		ranks_mark(r);
	return RANKS_GOOD;
}

/* checked: calls in which rank 0 had something to say, and put something. */
static int one_call(struct ranks *r, struct weft_ctx *ctx, struct weft_comm *comm[2],
		    const struct ref_case *c, int *checked)
{
	const int32_t marks = ranks_marks(r);
	uint64_t before = readys(ctx), said[2] = {0};
	struct weft_req *req = NULL, *other = NULL;
	struct case_bufs b;
	int bad;

	if (!case_bufs_open(&b, c, r))
		return ranks_say(r, "no memory");
	/* Rank 0's cannot end, as rank 1 has not called it. */
	if ((r->rank ? case_start(comm[0], c, &b, &req)
		     : weft_barrier_start(comm[1], NULL, &other)) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	before = readys(ctx) - before;
	if (!ranks_gather(r, &before, said, sizeof(before)) ||
	    until_there(r, ctx, r->rank ? &req : &other, marks, said[1]))
		return RANKS_BAD;
	seen.puts = seen.places = seen.unsaid = 0;
	seen.waits = seen.full = false;
	before = readys(ctx);
	if (r->rank == 0 && case_start(comm[0], c, &b, &req) != WEFT_SUCCESS)
		return ranks_say(r, "start: %s", weft_error_detail());
	if (req && weft_req_wait(req, 0) != WEFT_SUCCESS)
		return ranks_say(r, "wait: %s", weft_error_detail());
	if (r->rank && weft_barrier_start(comm[1], NULL, &other) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	if (weft_req_wait(other, 0) != WEFT_SUCCESS)
		return ranks_say(r, "barrier: %s", weft_error_detail());
	bad = case_check(r, c, &b);
	case_bufs_close(&b);
	if (r->rank || !seen.puts || !seen.places)
		return bad;
	++*checked;
	if (seen.unsaid || seen.readys == before || seen.waits)
		return ranks_say(r,
				 "%s %s: at the first put nothing was said of %llu of "
				 "%llu places, %llu READY were made%s",
				 weft_coll_name(c->coll), c->algorithm,
				 (unsigned long long)seen.unsaid,
				 (unsigned long long)seen.places,
				 (unsigned long long)(seen.readys - before),
				 seen.waits ? ", which wait here" : "");
	return bad;
}

static int body(struct ranks *r)
{
	struct weft_ctx_opts opts = WEFT_CTX_OPTS_INIT;
	struct net_attr net = {.provider = r->arg, .message_max = 1, .lines = LINES_OFF};
	struct weft_comm *comm[2];
	struct weft_ctx *ctx;
	int bad = RANKS_GOOD, checked = 0;

	opts.timeout_us = 60000000;
	opts.boot = &r->boot;
	if (ctx_open(&opts, &net, &ctx) != WEFT_SUCCESS)
		return strstr(weft_error_detail(), "no libfabric")
			       ? RANKS_ABSENT
			       : ranks_say(r, "open: %s", weft_error_detail());
	if (!exec_caps(ctx->exec)->put)
		return RANKS_ABSENT;
	for (int i = 0; i < 2; i++) {
		if (weft_comm_create(ctx, NULL, &comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "comm: %s", weft_error_detail());
	}
	hook(ctx->exec);
	for (size_t a = 0; a < algo_count && !bad; a++) {
		struct ref_case c = {.algorithm = algo_table[a].name,
				     .type = WEFT_INT32,
				     .op = WEFT_SUM,
				     .count = COUNT};

		while (strcmp(weft_coll_name(c.coll), algo_table[a].coll) != 0)
			c.coll = (enum weft_coll)(c.coll + 1);
		if (c.coll != WEFT_COLL_ALLTOALLV_DYNAMIC)
			bad = one_call(r, ctx, comm, &c, &checked);
	}
	if (!bad && r->rank == 0 && checked < 5)
		bad = ranks_say(r, "%d calls only had places and puts", checked);
	if (bad)
		return bad;
	for (int i = 0; i < 2; i++) {
		if (weft_comm_destroy(comm[i]) != WEFT_SUCCESS)
			return ranks_say(r, "destroy: %s", weft_error_detail());
	}
	return weft_ctx_close(ctx) == WEFT_SUCCESS ? RANKS_GOOD : RANKS_BAD;
}

int main(void)
{
	char names[8][32];
	int end[RANKS_MAX], count = ranks_providers("weft,tcp", names, 8);

	for (int i = 0; i < count; i++) {
		const bool good = ranks_run(2, 170, body, names[i], end);

		if (!good && end[0] == RANKS_ABSENT)
			tap_skip(1, "provider %s is not there, or has no puts", names[i]);
		else
			tap_ok(good, "%s: places are announced before what is long",
			       names[i]);
	}
	return tap_done();
}
