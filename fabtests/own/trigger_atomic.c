/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations that wait for a counter, triggered and deferred, and what is injected
 * while it waits. Each side talks to itself, but where nobody makes a call.
 */
#include "config.h"

#include "fabtests/own/remote.h"

#include <rdma/fi_atomic.h>
#include <rdma/fi_trigger.h>
#include <string.h>

#define WORDS	   512
#define BASE_DONE  (FI_ATOMIC | FI_WRITE)
#define FETCH_DONE (FI_ATOMIC | FI_READ)
#define CAPS	   (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_TRIGGER)

static const struct want want_work = {.caps = CAPS, .counters = true};
static const struct want want_quiet = {.caps = CAPS, .counters = true, .selective = true};
static const struct want want_auto = {.caps = CAPS, .counters = true, .automatic = true};

struct table {
	uint64_t *mem; /* WORDS, all 0 */
	struct fid_mr *mr;
	uint64_t base, key;
	struct fid_cntr *when, *done;
};

static struct fid_cntr *cntr_new(struct side *s)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;

	side_must(s, fi_cntr_open(s->node.domain, &attr, &cntr, NULL), "fi_cntr_open");
	return cntr;
}

static void table_open(struct side *s, struct table *t, const struct want *want)
{
	node_open(s, want);
	t->mem = mem_new(WORDS * sizeof(uint64_t));
	memset(t->mem, 0, WORDS * sizeof(uint64_t));
	side_must(s,
		  fi_mr_reg(s->node.domain, t->mem, WORDS * sizeof(uint64_t),
			    FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 5, 0, &t->mr, NULL),
		  "fi_mr_reg");
	t->base = remote_base(&s->node, t->mem);
	t->key = fi_mr_key(t->mr);
	t->when = cntr_new(s);
	t->done = cntr_new(s);
}

static void table_close(struct side *s, struct table *t)
{
	side_meet(s);
	side_must(s, fi_close(&t->mr->fid), "fi_close of a region");
	side_must(s, fi_close(&t->when->fid), "fi_close of a counter");
	side_must(s, fi_close(&t->done->fid), "fi_close of a counter");
	node_close(s, &s->node);
	mem_free(t->mem, WORDS * sizeof(uint64_t));
}

/* One element, of word `at`. */
struct element {
	struct fi_triggered_context t;
	uint64_t arg, cmp, result;
	struct fi_ioc arg_at, cmp_at, result_at;
	struct fi_rma_ioc there;
	struct fi_msg_atomic msg;
};

static void element_set(struct side *s, struct element *e, const struct table *t, int at,
			enum fi_op op, uint64_t arg, uint64_t cmp)
{
	memset(e, 0, sizeof(*e));
	e->arg = arg;
	e->cmp = cmp;
	e->arg_at = (struct fi_ioc){&e->arg, 1};
	e->cmp_at = (struct fi_ioc){&e->cmp, 1};
	e->result_at = (struct fi_ioc){&e->result, 1};
	e->there =
		(struct fi_rma_ioc){t->base + (size_t)at * sizeof(uint64_t), 1, t->key};
	e->msg = (struct fi_msg_atomic){.msg_iov = &e->arg_at,
					.iov_count = 1,
					.addr = s->node.self,
					.rma_iov = &e->there,
					.rma_iov_count = 1,
					.datatype = FI_UINT64,
					.op = op,
					.context = e};
}

/* mode: 0 without result, 1 with one, 2 with a comparison. */
static ssize_t post_when(struct side *s, struct element *e, int mode,
			 struct fid_cntr *cntr, size_t threshold, uint64_t flags)
{
	struct fid_ep *ep = s->node.ep;

	e->t.event_type = FI_TRIGGER_THRESHOLD;
	e->t.trigger.threshold.cntr = cntr;
	e->t.trigger.threshold.threshold = threshold;
	flags |= FI_TRIGGER;
	return mode == 0 ? fi_atomicmsg(ep, &e->msg, flags)
	       : mode == 1
		       ? fi_fetch_atomicmsg(ep, &e->msg, &e->result_at, NULL, 1, flags)
		       : fi_compare_atomicmsg(ep, &e->msg, &e->cmp_at, NULL, 1,
					      &e->result_at, NULL, 1, flags);
}

static void next_is(struct side *s, const void *context, uint64_t flags)
{
	struct done d;

	node_expect(s, &d, flags, context);
}

/* ---- triggered */

static void triggered_run(struct side *s)
{
	struct element add, mul, swap, again;
	struct table t;

	table_open(s, &t, &want_work);
	t.mem[3] = 1;
	element_set(s, &swap, &t, 3, FI_CSWAP, 100, 18);
	element_set(s, &mul, &t, 3, FI_PROD, 3, 0);
	element_set(s, &add, &t, 3, FI_SUM, 5, 0);
	/* The last one first. */
	side_must(s, post_when(s, &swap, 2, t.when, 4, 0), "a triggered comparison");
	side_must(s, post_when(s, &mul, 1, t.when, 3, 0), "a triggered fetch");
	side_must(s, post_when(s, &add, 0, t.when, 2, 0), "a triggered addition");
	fi_cntr_add(t.when, 1);
	node_quiet(s, 20);
	side_check_u64(s, t.mem[3], 1, "before its time");
	side_check(s, fi_close(&t.when->fid) == -FI_EBUSY,
		   "a counter closes that is needed");
	fi_cntr_set(t.when, 2);
	next_is(s, &add, BASE_DONE);
	side_check_u64(s, t.mem[3], 6, "the addition alone");
	fi_cntr_set(t.when, 9); /* past two at once, which keep their order */
	next_is(s, &mul, FETCH_DONE);
	next_is(s, &swap, FETCH_DONE);
	side_check_u64(s, mul.result, 6, "what the product found");
	side_check_u64(s, swap.result, 18, "what the comparison found");
	side_check_u64(s, t.mem[3], 100, "in the end");
	/* One whose time has come long ago. */
	element_set(s, &again, &t, 3, FI_SUM, 1, 0);
	side_must(s, post_when(s, &again, 1, t.when, 1, 0), "a triggered fetch");
	next_is(s, &again, FETCH_DONE);
	side_check_u64(s, again.result, 100, "at once");
	side_check_u64(s, fi_cntr_read(s->node.tx_cntr), 4, "the endpoint's counter");
	table_close(s, &t);
}

/* What can't be is refused when it is posted, not when its time has come. */
static void triggered_bad_run(struct side *s)
{
	struct element e;
	struct table t;

	table_open(s, &t, &want_work);
	element_set(s, &e, &t, 0, FI_CSWAP, 1, 0);
	side_check(s, post_when(s, &e, 0, t.when, 1, 0) == -FI_EOPNOTSUPP,
		   "a comparison without one");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	e.there.count = 2;
	side_check(s, post_when(s, &e, 0, t.when, 1, 0) == -FI_EINVAL,
		   "lists of different length");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	side_check(s, post_when(s, &e, 0, t.when, 1, FI_PEEK) == -FI_EBADFLAGS,
		   "flags that can't be");
	side_check(s, post_when(s, &e, 0, NULL, 1, 0) == -FI_EINVAL, "no counter");
	e.msg.context = NULL;
	side_check(s, fi_atomicmsg(s->node.ep, &e.msg, FI_TRIGGER) == -FI_EINVAL,
		   "no context");
	fi_cntr_add(t.when, 1);
	node_quiet(s, 20);
	side_check_u64(s, t.mem[0], 0, "none of them is done");
	table_close(s, &t);
}

static void lacks_run(struct side *s)
{
	struct element e;
	struct table t;

	table_open(s, &t,
		   &(struct want){.caps = FI_MSG | FI_RMA | FI_ATOMIC, .counters = true});
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	side_check(s, post_when(s, &e, 0, t.when, 1, 0) == -FI_EOPNOTSUPP,
		   "FI_TRIGGER without the capability");
	table_close(s, &t);
}

/* ---- injected: the caller's buffer is its own again at once */

static void inject_run(struct side *s)
{
	struct fid_ep *ep = s->node.ep;
	struct fi_triggered_context send_ctx, tag_ctx, write_ctx;
	struct element add, swap, big;
	uint8_t in[2][16], out[16];
	struct iovec iov[2] = {{out, 4}, {out + 4, 12}};
	struct fi_rma_iov there;
	struct table t;
	struct done d;

	table_open(s, &t, &want_quiet);
	ep = s->node.ep;
	there = (struct fi_rma_iov){t.base + 256, 16, t.key};
	send_ctx = (struct fi_triggered_context){
		.event_type = FI_TRIGGER_THRESHOLD,
		.trigger.threshold = {.cntr = t.when, .threshold = 1}};
	tag_ctx = write_ctx = send_ctx;
	for (int i = 0; i < 2; i++)
		while (node_again(
			s,
			i ? fi_trecv(ep, in[i], 16, NULL, FI_ADDR_UNSPEC, 9, 0, NULL)
			  : fi_recv(ep, in[i], 16, NULL, FI_ADDR_UNSPEC, NULL),
			"a receive"))
			;
	mem_fill(out, 16, 4);
	side_must(s,
		  fi_sendmsg(ep,
			     &(struct fi_msg){.msg_iov = iov,
					      .iov_count = 2,
					      .addr = s->node.self,
					      .context = &send_ctx},
			     FI_TRIGGER | FI_INJECT),
		  "an injected fi_sendmsg");
	side_must(s,
		  fi_tsendmsg(ep,
			      &(struct fi_msg_tagged){.msg_iov = iov,
						      .iov_count = 2,
						      .addr = s->node.self,
						      .tag = 9,
						      .context = &tag_ctx},
			      FI_TRIGGER | FI_INJECT),
		  "an injected fi_tsendmsg");
	side_must(s,
		  fi_writemsg(ep,
			      &(struct fi_msg_rma){.msg_iov = iov,
						   .iov_count = 2,
						   .addr = s->node.self,
						   .rma_iov = &there,
						   .rma_iov_count = 1,
						   .context = &write_ctx},
			      FI_TRIGGER | FI_INJECT | FI_COMPLETION),
		  "an injected fi_writemsg");
	element_set(s, &add, &t, 0, FI_SUM, 7, 0);
	element_set(s, &swap, &t, 1, FI_CSWAP, 8, 0);
	side_must(s, post_when(s, &add, 0, t.when, 1, FI_INJECT), "injected");
	side_must(s, post_when(s, &swap, 2, t.when, 1, FI_INJECT | FI_COMPLETION),
		  "injected");
	memset(out, 0xff, sizeof(out));
	memset(iov, 0, sizeof(iov));
	add.arg = swap.arg = swap.cmp = 99;
	/* More than is taken. */
	element_set(s, &big, &t, 0, FI_SUM, 0, 0);
	big.arg_at = (struct fi_ioc){t.mem, WORDS};
	big.there.count = WORDS;
	side_check(s, s->node.info->tx_attr->inject_size < WORDS * sizeof(uint64_t),
		   "inject_size");
	side_check(s, post_when(s, &big, 0, t.when, 1, FI_INJECT) == -FI_EINVAL,
		   "too long to be injected");
	node_quiet(s, 20);
	fi_cntr_add(t.when, 1);
	next_is(s, &write_ctx, FI_RMA | FI_WRITE);
	next_is(s, &swap, FETCH_DONE);
	side_must(s, fi_cntr_wait(s->node.rx_cntr, 2, WAIT_MS), "two messages");
	mem_check(s, in[0], 16, 4, "message");
	mem_check(s, in[1], 16, 4, "tagged message");
	mem_check(s, t.mem + 32, 16, 4, "write");
	side_must(s, fi_cntr_wait(s->node.tx_cntr, 5, WAIT_MS), "all five");
	side_check_u64(s, t.mem[0], 7, "addition");
	side_check_u64(s, t.mem[1], 8, "comparison");
	side_check(s, !node_next(s, &d, 20), "only two were to be reported");
	table_close(s, &t);
}

/* ---- deferred */

union op {
	struct fi_op_atomic base;
	struct fi_op_fetch_atomic fetch;
	struct fi_op_compare_atomic compare;
};

static int defer(struct side *s, struct fi_deferred_work *w, union op *op,
		 struct element *e, int mode, uint64_t flags, struct fid_cntr *when,
		 uint64_t threshold, struct fid_cntr *done)
{
	memset(op, 0, sizeof(*op));
	memset(w, 0, sizeof(*w));
	op->base.ep = s->node.ep;
	op->base.msg = e->msg;
	w->op_type = FI_OP_ATOMIC + (enum fi_op_type)mode;
	switch (mode) {
	case 0:
		op->base.flags = flags;
		break;
	case 1:
		op->fetch.fetch = (struct fi_msg_fetch){&e->result_at, NULL, 1};
		op->fetch.flags = flags;
		break;
	default:
		op->compare.fetch = (struct fi_msg_fetch){&e->result_at, NULL, 1};
		op->compare.compare = (struct fi_msg_compare){&e->cmp_at, NULL, 1};
		op->compare.flags = flags;
	}
	w->op.atomic = &op->base;
	w->triggering_cntr = when;
	w->threshold = threshold;
	w->completion_cntr = done;
	return fi_control(&s->node.domain->fid, FI_QUEUE_WORK, w);
}

/* Each step waits for the one before, counting among them. */
static void deferred_run(struct side *s)
{
	struct element add, fetch, swap;
	struct fi_deferred_work w[5];
	struct fi_op_cntr more, set;
	struct table t;
	union op op[3];

	table_open(s, &t, s->arg);
	t.mem[1] = 40;
	element_set(s, &add, &t, 1, FI_SUM, 2, 0);
	element_set(s, &fetch, &t, 1, FI_BXOR, 1, 0);
	element_set(s, &swap, &t, 1, FI_CSWAP_GT, 7, 50);
	side_must(s, defer(s, &w[0], &op[0], &swap, 2, FI_COMPLETION, t.done, 12, t.done),
		  "a deferred comparison");
	side_must(s, defer(s, &w[1], &op[1], &fetch, 1, 0, t.done, 1, t.done),
		  "a deferred fetch");
	side_must(s, defer(s, &w[2], &op[2], &add, 0, FI_INJECT, t.when, 1, t.done),
		  "a deferred addition");
	add.arg = 1000; /* injected: nobody looks at it any more */
	more = (struct fi_op_cntr){t.done, 10};
	set = (struct fi_op_cntr){t.done, 100};
	w[3] = (struct fi_deferred_work){.op_type = FI_OP_CNTR_ADD,
					 .op.cntr = &more,
					 .triggering_cntr = t.done,
					 .threshold = 2};
	w[4] = (struct fi_deferred_work){.op_type = FI_OP_CNTR_SET,
					 .op.cntr = &set,
					 .triggering_cntr = t.done,
					 .threshold = 13};
	for (int i = 3; i < 5; i++)
		side_must(s, fi_control(&s->node.domain->fid, FI_QUEUE_WORK, &w[i]),
			  "FI_QUEUE_WORK");
	node_quiet(s, 20);
	fi_cntr_add(t.when, 1);
	side_must(s, fi_cntr_wait(t.done, 100, WAIT_MS), "the last step");
	side_check_u64(s, fi_cntr_read(t.done), 100, "a counter that was set");
	side_check_u64(s, fetch.result, 42, "what the second step found");
	side_check_u64(s, swap.result, 43, "what the third step found");
	side_check_u64(s, t.mem[1], 7, "50 is greater than 43");
	/* Only the one that asks for it is reported, to nobody's counter but its own. */
	next_is(s, &swap, FETCH_DONE);
	node_quiet(s, 20);
	side_check_u64(s, fi_cntr_read(s->node.tx_cntr), 0, "the endpoint's counter");
	table_close(s, &t);
}

static void deferred_bad_run(struct side *s)
{
	struct fi_deferred_work w;
	struct element e;
	struct table t;
	union op op;

	table_open(s, &t, &want_work);
	element_set(s, &e, &t, 0, FI_ATOMIC_WRITE, 1, 0);
	e.msg.datatype = (enum fi_datatype)999;
	side_check(s, defer(s, &w, &op, &e, 0, 0, t.when, 1, t.done) == -FI_EOPNOTSUPP,
		   "no such type");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	side_check(s, defer(s, &w, &op, &e, 2, 0, t.when, 1, t.done) == -FI_EOPNOTSUPP,
		   "an addition with a comparison");
	e.there.count = SIZE_MAX / 4;
	side_check(s, defer(s, &w, &op, &e, 1, 0, t.when, 1, t.done) == -FI_EMSGSIZE,
		   "too long");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	e.result_at.addr = NULL;
	side_check(s, defer(s, &w, &op, &e, 1, 0, t.when, 1, t.done) == -FI_EINVAL,
		   "a result that goes nowhere");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	e.msg.iov_count = 1000;
	side_check(s, defer(s, &w, &op, &e, 0, 0, t.when, 1, t.done) == -FI_EINVAL,
		   "too many pieces");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	side_check(s, defer(s, &w, &op, &e, 0, FI_PEEK, t.when, 1, t.done) == -FI_EINVAL,
		   "flags that can't be");
	e.arg_at = (struct fi_ioc){t.mem, WORDS};
	e.there.count = WORDS;
	side_check(s,
		   defer(s, &w, &op, &e, 0, FI_INJECT, t.when, 1, t.done) == -FI_EINVAL,
		   "too long to be injected");
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	side_check(s, defer(s, &w, &op, &e, 0, 0, NULL, 1, t.done) == -FI_EINVAL,
		   "no counter");
	op.base.ep = NULL;
	w.triggering_cntr = t.when;
	side_check(s, fi_control(&s->node.domain->fid, FI_QUEUE_WORK, &w) == -FI_EINVAL,
		   "no endpoint");
	fi_cntr_add(t.when, 1);
	node_quiet(s, 20);
	side_check_u64(s, t.mem[0], 0, "none of them is done");
	side_check_u64(s, fi_cntr_read(t.done) + fi_cntr_readerr(t.done), 0, "nor ends");
	table_close(s, &t);
}

/* An endpoint that may not: the same refusal as for the operation itself. */
static void deferred_lacks_run(struct side *s)
{
	struct fi_deferred_work w;
	struct element e;
	struct table t;
	union op op;

	table_open(
		s, &t,
		&(struct want){.caps = FI_MSG | FI_RMA | FI_TRIGGER, .counters = true});
	element_set(s, &e, &t, 0, FI_SUM, 1, 0);
	for (int mode = 0; mode < 2; mode++)
		side_check(s,
			   defer(s, &w, &op, &e, mode, 0, t.when, 1, t.done) ==
				   -FI_EOPNOTSUPP,
			   "without FI_ATOMIC, mode %d", mode);
	table_close(s, &t);
}

static void cancel_run(struct side *s)
{
	struct fi_deferred_work w[4];
	struct element e[4];
	union op op[4];
	struct fid *domain;
	struct table t;

	table_open(s, &t, &want_work);
	domain = &s->node.domain->fid;
	for (int i = 0; i < 4; i++) {
		element_set(s, &e[i], &t, 0, FI_SUM, 1u << i, 0);
		side_must(s,
			  defer(s, &w[i], &op[i], &e[i], i % 2, 0,
				i < 2 ? t.when : t.done, 1, i < 2 ? t.done : NULL),
			  "FI_QUEUE_WORK");
	}
	side_check(s, fi_control(domain, FI_CANCEL_WORK, &w[1]) == 0, "cancel");
	side_check(s, fi_control(domain, FI_CANCEL_WORK, &w[1]) == -FI_ENOENT, "twice");
	side_check(s, fi_control(domain, FI_FLUSH_WORK, &t.done->fid) == 0, "flush");
	fi_cntr_add(t.when, 1);
	side_must(s, fi_cntr_wait(t.done, 1, WAIT_MS), "what was left");
	node_quiet(s, 20);
	side_check_u64(s, t.mem[0], 1, "neither cancelled nor flushed");
	side_check(s, fi_control(domain, FI_CANCEL_WORK, &w[0]) == -FI_ENOENT,
		   "one that is done");
	/* Those that never come end with the endpoint. */
	side_must(s, defer(s, &w[2], &op[2], &e[2], 1, 0, t.done, 99, t.done),
		  "FI_QUEUE_WORK");
	side_must(s, fi_close(&s->node.ep->fid), "fi_close of the endpoint");
	s->node.ep = NULL;
	table_close(s, &t);
}

static void fail_run(struct side *s)
{
	struct fi_deferred_work w[2];
	struct element e[2];
	union op op[2];
	struct table t;

	table_open(s, &t, &want_quiet);
	element_set(s, &e[0], &t, 0, FI_SUM, 1, 0);
	e[0].there.key = 0xbad; /* the target refuses it */
	element_set(s, &e[1], &t, 0, FI_SUM, 1, 0);
	e[1].msg.addr = 1000; /* it can't be posted */
	side_must(s, defer(s, &w[0], &op[0], &e[0], 1, 0, t.when, 1, t.done),
		  "FI_QUEUE_WORK");
	side_must(s, defer(s, &w[1], &op[1], &e[1], 0, 0, t.done, 1, t.done),
		  "FI_QUEUE_WORK");
	fi_cntr_add(t.when, 1);
	for (int i = 0; i < 2; i++) {
		struct done d;

		if (!node_next(s, &d, WAIT_MS) || !d.err)
			side_die(s, "no error entry");
		side_check(s, d.e.op_context == &e[i], "context");
		side_check_u64(s, d.e.flags, i ? BASE_DONE : FETCH_DONE, "flags");
	}
	side_check_u64(s, fi_cntr_readerr(t.done), 2, "errors");
	side_check_u64(s, fi_cntr_read(t.done), 0, "successes");
	side_check_u64(s, fi_cntr_readerr(s->node.tx_cntr), 0, "the endpoint's counter");
	table_close(s, &t);
}

/* ---- automatic progress: a message of the peer counts, what waits for it adds to a word
 * of the peer, and nobody makes a call meanwhile */

static void auto_run(struct side *s)
{
	struct fi_deferred_work w;
	struct element deferred, triggered;
	struct answer there, mine = {.good = true};
	struct fi_msg msg;
	uint64_t begin;
	struct table t;
	uint8_t in[2];
	union op op;

	table_open(s, &t, &want_auto);
	mine.base = t.base;
	mine.key = t.key;
	side_tell(s, &mine, sizeof(mine));
	side_hear(s, &there, sizeof(there));
	element_set(s, &deferred, &t, 0, FI_SUM, 1, 0);
	element_set(s, &triggered, &t, 0, FI_SUM, 10, 0);
	deferred.msg.addr = triggered.msg.addr = s->node.peer;
	deferred.there =
		(struct fi_rma_ioc){there.base + 7 * sizeof(uint64_t), 1, there.key};
	triggered.there = deferred.there;
	side_must(s, defer(s, &w, &op, &deferred, 0, 0, s->node.rx_cntr, 1, t.done),
		  "FI_QUEUE_WORK");
	side_must(s, post_when(s, &triggered, 1, s->node.rx_cntr, 2, 0), "triggered");
	for (int i = 0; i < 2; i++)
		while (node_again(
			s, fi_recv(s->node.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, NULL),
			"fi_recv"))
			;
	side_meet(s);
	msg = (struct fi_msg){.msg_iov = &(struct iovec){&mine, 1},
			      .iov_count = 1,
			      .addr = s->node.peer};
	for (int i = 0; i < 2; i++)
		while (node_again(s, fi_sendmsg(s->node.ep, &msg, FI_INJECT),
				  "fi_sendmsg"))
			;
	begin = now_ms();
	while (__atomic_load_n(&t.mem[7], __ATOMIC_ACQUIRE) != 11) {
		if (now_ms() - begin > WAIT_MS)
			side_die(s, "%d of 11 came without a call", (int)t.mem[7]);
		sleep_ms(1);
	}
	side_must(s, fi_cntr_wait(t.done, 1, WAIT_MS), "the deferred one");
	table_close(s, &t);
}

#define BOTH(fn) .run = {fn, fn}

static const struct test_case cases[] = {
	{.name = "triggered, in the order of thresholds", BOTH(triggered_run)},
	{.name = "triggered, but impossible", BOTH(triggered_bad_run)},
	{.name = "triggered without the capability", BOTH(lacks_run)},
	{.name = "triggered and injected", BOTH(inject_run)},
	{.name = "deferred", BOTH(deferred_run), .arg = &want_work},
	{.name = "deferred, selective completion",
	 BOTH(deferred_run),
	 .arg = &want_quiet},
	{.name = "deferred, but impossible", BOTH(deferred_bad_run)},
	{.name = "deferred without the capability", BOTH(deferred_lacks_run)},
	{.name = "deferred and cancelled", BOTH(cancel_run)},
	{.name = "deferred, and fails", BOTH(fail_run)},
	{.name = "automatic progress", BOTH(auto_run)},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
