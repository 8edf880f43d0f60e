/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations that wait for a counter: FI_TRIGGER, the deferred work queue, and aliases of
 * endpoints, through which the first are usually posted. Each side talks to itself.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <rdma/fi_trigger.h>
#include <stdlib.h>
#include <string.h>

static const struct want want_trigger = {.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_TRIGGER,
					 .counters = true};
static const struct want want_selective = {.caps = FI_MSG | FI_TAGGED | FI_RMA |
						   FI_TRIGGER,
					   .counters = true,
					   .selective = true};

static struct fid_cntr *cntr_new(struct side *s)
{
	struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *cntr;

	side_must(s, fi_cntr_open(s->node.domain, &attr, &cntr, NULL), "fi_cntr_open");
	return cntr;
}

static void cntr_free(struct side *s, struct fid_cntr *cntr)
{
	side_must(s, fi_close(&cntr->fid), "fi_close of a counter");
}

/* ---- triggered operations */

#define SENDS 6

struct message {
	struct fi_triggered_context t;
	struct iovec iov;
	uint8_t byte;
};

static ssize_t send_when(struct side *s, struct message *m, uint8_t byte,
			 struct fid_cntr *cntr, size_t threshold)
{
	struct fi_msg msg = {.msg_iov = &m->iov,
			     .iov_count = 1,
			     .addr = s->node.self,
			     .context = &m->t};

	m->byte = byte;
	m->iov = (struct iovec){&m->byte, 1};
	m->t.event_type = FI_TRIGGER_THRESHOLD;
	m->t.trigger.threshold.cntr = cntr;
	m->t.trigger.threshold.threshold = threshold;
	return fi_sendmsg(s->node.ep, &msg, FI_TRIGGER | FI_COMPLETION);
}

/* The next n messages that arrive, in their order; skips completions of sends. */
static void receive(struct side *s, int n)
{
	struct done d;

	while (n > 0) {
		if (!node_next(s, &d, WAIT_MS) || d.err)
			side_die(s, "%d messages are missing", n);
		n -= d.e.flags & FI_RECV ? 1 : 0;
	}
}

static void order_run(struct side *s)
{
	/* Threshold, and the place in which it comes. */
	static const struct {
		size_t at;
		uint8_t place;
	} sends[SENDS] = {{5, 4}, {2, 0}, {9, 5}, {3, 2}, {2, 1}, {3, 3}};
	struct message m[SENDS];
	uint8_t in[SENDS] = {0};
	struct fid_cntr *c;

	node_open(s, &want_trigger);
	c = cntr_new(s);
	for (int i = 0; i < SENDS; i++) {
		while (node_again(
			s, fi_recv(s->node.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]),
			"fi_recv"))
			;
		side_must(s, send_when(s, &m[i], 1 + sends[i].place, c, sends[i].at),
			  "a triggered fi_sendmsg");
	}
	side_check(s, fi_close(&c->fid) == -FI_EBUSY, "a counter closes that is needed");
	fi_cntr_add(c, 1);
	node_quiet(s, 20);
	/* Past two thresholds at once; one of the steps is an error. */
	fi_cntr_adderr(c, 1);
	receive(s, 2);
	fi_cntr_set(c, 4);
	receive(s, 3);
	fi_cntr_set(c, 100);
	receive(s, 1);
	for (int i = 0; i < SENDS; i++)
		side_check_u64(s, in[i], 1 + (uint64_t)i, "order");
	/* One whose threshold was reached long ago. */
	while (node_again(s, fi_recv(s->node.ep, in, 1, NULL, FI_ADDR_UNSPEC, in),
			  "fi_recv"))
		;
	side_must(s, send_when(s, &m[0], 77, c, 50), "a triggered fi_sendmsg");
	receive(s, 1);
	side_check_u64(s, in[0], 77, "at once");
	m[0].t.event_type = 99;
	struct fi_msg bad = {.msg_iov = &m[0].iov,
			     .iov_count = 1,
			     .addr = s->node.self,
			     .context = &m[0].t};
	side_check(s, fi_sendmsg(s->node.ep, &bad, FI_TRIGGER) == -FI_EINVAL,
		   "an event that isn't there");
	bad.context = NULL;
	side_check(s, fi_sendmsg(s->node.ep, &bad, FI_TRIGGER) == -FI_EINVAL,
		   "no context");
	while (node_next(s, &(struct done){0}, 20))
		;
	side_check_u64(s, fi_cntr_read(s->node.tx_cntr), SENDS + 1, "sends");
	cntr_free(s, c);
	side_meet(s);
	node_close(s, &s->node);
}

/* A message goes round: each receive triggers the next send, and nobody asks for it. */
static void chain_run(struct side *s)
{
	struct message m[20];
	uint8_t in[20];
	uint64_t begin;

	node_open(s, &want_trigger);
	for (int i = 0; i < 20; i++) {
		while (node_again(
			s, fi_recv(s->node.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, NULL),
			"fi_recv"))
			;
		side_must(
			s,
			send_when(s, &m[i], (uint8_t)(i + 1), s->node.rx_cntr, (size_t)i),
			"a triggered fi_sendmsg");
	}
	begin = now_ms();
	side_check(s, fi_cntr_wait(s->node.rx_cntr, 20, WAIT_MS) == 0,
		   "the chain stops at %u of 20",
		   (unsigned)fi_cntr_read(s->node.rx_cntr));
	side_check(s, now_ms() - begin <= WAIT_MS, "late");
	for (int i = 0; i < 20; i++)
		side_check_u64(s, in[i], (uint64_t)i + 1, "message");
	while (node_next(s, &(struct done){0}, 20))
		;
	side_meet(s);
	node_close(s, &s->node);
}

/* Posted, but never reached: the endpoint closes all the same. */
static void never_run(struct side *s)
{
	struct fid_cntr *c;
	struct message m;

	node_open(s, &want_trigger);
	c = cntr_new(s);
	side_must(s, send_when(s, &m, 1, c, 1), "a triggered fi_sendmsg");
	side_must(s, fi_close(&s->node.ep->fid), "fi_close of the endpoint");
	s->node.ep = NULL;
	fi_cntr_add(c, 10);
	cntr_free(s, c);
	side_meet(s);
	node_close(s, &s->node);
}

static void lacks_run(struct side *s)
{
	struct fid_cntr *c;
	struct message m;

	node_open(s, &(struct want){.counters = true});
	c = cntr_new(s);
	side_check(s, send_when(s, &m, 1, c, 1) == -FI_EOPNOTSUPP,
		   "FI_TRIGGER without the capability");
	cntr_free(s, c);
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- deferred work */

#define LEN 20000 /* longer than what is copied */

struct region {
	struct fid_mr *mr;
	uint8_t *mem;
	struct fi_rma_iov at;
};

static void region_open(struct side *s, struct region *r)
{
	r->mem = mem_new(LEN);
	side_must(s,
		  fi_mr_reg(s->node.domain, r->mem, LEN, FI_REMOTE_READ | FI_REMOTE_WRITE,
			    0, 5, 0, &r->mr, NULL),
		  "fi_mr_reg");
	r->at = (struct fi_rma_iov){0, LEN, fi_mr_key(r->mr)};
}

static void region_close(struct side *s, struct region *r)
{
	side_must(s, fi_close(&r->mr->fid), "fi_close of a region");
	mem_free(r->mem, LEN);
}

static void queue(struct side *s, struct fi_deferred_work *w, enum fi_op_type type,
		  void *op, struct fid_cntr *when, uint64_t threshold,
		  struct fid_cntr *completion)
{
	memset(w, 0, sizeof(*w));
	w->op_type = type;
	w->op.msg = op;
	w->triggering_cntr = when;
	w->threshold = threshold;
	w->completion_cntr = completion;
	side_must(s, fi_control(&s->node.domain->fid, FI_QUEUE_WORK, w), "FI_QUEUE_WORK");
}

/* Write, read back, send, receive: each waits for the one before. */
static void work_run(struct side *s)
{
	struct node *n = &s->node;
	uint8_t *out = mem_new(LEN), *back = mem_new(LEN), *in = mem_new(LEN);
	struct iovec iov_out = {out, LEN}, iov_back = {back, LEN}, iov_in = {in, LEN};
	struct fi_op_rma rma = {.msg = {.msg_iov = &iov_out,
					.iov_count = 1,
					.rma_iov_count = 1,
					.context = out}};
	struct fi_op_tagged msg = {.msg = {.iov_count = 1, .tag = 7, .context = in}};
	struct fi_op_cntr count;
	struct fi_deferred_work w;
	struct fid_cntr *start, *step, *end;
	struct region r;
	struct done d;

	node_open(s, s->arg);
	region_open(s, &r);
	start = cntr_new(s);
	step = cntr_new(s);
	end = cntr_new(s);
	mem_fill(out, LEN, 3);
	rma.ep = n->ep;
	rma.msg.addr = n->self;
	rma.msg.rma_iov = &r.at;
	queue(s, &w, FI_OP_WRITE, &rma, start, 1, step);
	rma.msg.msg_iov = &iov_back;
	queue(s, &w, FI_OP_READ, &rma, step, 1, step);
	msg.ep = n->ep;
	msg.msg.addr = n->self;
	msg.msg.msg_iov = &iov_in;
	msg.flags = FI_COMPLETION; /* this one is to be reported */
	queue(s, &w, FI_OP_TRECV, &msg, step, 2, end);
	msg.flags = 0;
	msg.msg.msg_iov = &iov_back;
	queue(s, &w, FI_OP_TSEND, &msg, step, 2, step);
	count = (struct fi_op_cntr){end, 40};
	queue(s, &w, FI_OP_CNTR_ADD, &count, end, 1, NULL);
	count.value = 100;
	queue(s, &w, FI_OP_CNTR_SET, &count, end, 41, NULL);
	node_quiet(s, 20);
	fi_cntr_add(start, 1);
	side_check(s, fi_cntr_wait(step, 3, WAIT_MS) == 0, "%u of 3 steps",
		   (unsigned)fi_cntr_read(step));
	side_check(s, fi_cntr_wait(end, 100, WAIT_MS) == 0, "end: %u",
		   (unsigned)fi_cntr_read(end));
	side_check_u64(s, fi_cntr_read(end), 100, "a counter that was set");
	mem_check(s, r.mem, LEN, 3, "written");
	mem_check(s, in, LEN, 3, "written, read, sent and received");
	node_expect(s, &d, FI_TAGGED | FI_RECV, in);
	side_check_u64(s, d.e.len, LEN, "length");
	node_quiet(s, 20);
	side_check_u64(s, fi_cntr_read(n->tx_cntr), 0, "the endpoint's own counter");
	side_check_u64(s, fi_cntr_read(n->rx_cntr), 0, "the endpoint's own counter");
	cntr_free(s, start);
	cntr_free(s, step);
	cntr_free(s, end);
	region_close(s, &r);
	side_meet(s);
	node_close(s, n);
	mem_free(out, LEN);
	mem_free(back, LEN);
	mem_free(in, LEN);
}

static void cancel_run(struct side *s)
{
	struct fi_deferred_work w[4], bad = {0};
	struct fi_op_cntr count[4];
	struct fid_cntr *a, *b, *sum;
	struct fid *domain;

	node_open(s, &want_trigger);
	domain = &s->node.domain->fid;
	a = cntr_new(s);
	b = cntr_new(s);
	sum = cntr_new(s);
	for (int i = 0; i < 4; i++) {
		count[i] = (struct fi_op_cntr){sum, 1u << i};
		queue(s, &w[i], FI_OP_CNTR_ADD, &count[i], i < 2 ? a : b, 1, NULL);
	}
	side_check(s, fi_close(&sum->fid) == -FI_EBUSY,
		   "a counter closes that is needed");
	side_check(s, fi_control(domain, FI_CANCEL_WORK, &w[0]) == 0, "cancel");
	side_check(s, fi_control(domain, FI_CANCEL_WORK, &w[0]) == -FI_ENOENT, "twice");
	fi_cntr_add(a, 1);
	side_check_u64(s, fi_cntr_read(sum), 2, "what was not cancelled");
	side_check(s, fi_control(domain, FI_FLUSH_WORK, &a->fid) == 0, "flush another");
	side_check(s, fi_control(domain, FI_FLUSH_WORK, &b->fid) == 0, "flush");
	fi_cntr_add(b, 1);
	side_check_u64(s, fi_cntr_read(sum), 2, "after a flush");
	bad.op_type = FI_OP_CNTR_ADD;
	bad.op.cntr = &count[0];
	side_check(s, fi_control(domain, FI_QUEUE_WORK, &bad) == -FI_EINVAL,
		   "no triggering counter");
	bad.triggering_cntr = bad.completion_cntr = a;
	side_check(s, fi_control(domain, FI_QUEUE_WORK, &bad) == -FI_EINVAL,
		   "counting has no completion");
	bad.completion_cntr = NULL;
	bad.op_type = 99;
	side_check(s, fi_control(domain, FI_QUEUE_WORK, &bad) == -FI_ENOSYS,
		   "no such operation");
	cntr_free(s, a);
	cntr_free(s, b);
	cntr_free(s, sum);
	side_meet(s);
	node_close(s, &s->node);
}

/* A deferred operation that fails: error count, error entry. */
static void fail_run(struct side *s)
{
	struct iovec iov = {(uint8_t[8]){0}, 8};
	struct fi_rma_iov at = {.len = 8, .key = 0xbad};
	struct fi_op_rma rma = {.msg = {.msg_iov = &iov,
					.iov_count = 1,
					.rma_iov = &at,
					.rma_iov_count = 1,
					.context = &at}};
	struct fi_deferred_work w;
	struct fid_cntr *start, *end;
	struct done d;

	node_open(s, &want_trigger);
	start = cntr_new(s);
	end = cntr_new(s);
	rma.ep = s->node.ep;
	rma.msg.addr = s->node.self;
	queue(s, &w, FI_OP_WRITE, &rma, start, 1, end);
	rma.msg.addr = 1000; /* not in the vector */
	queue(s, &w, FI_OP_WRITE, &rma, end, 1, end);
	fi_cntr_add(start, 1);
	for (int i = 0; i < 2; i++) {
		side_check(s, node_next(s, &d, WAIT_MS) && d.err, "no error entry");
		side_check(s, d.e.op_context == &at, "context");
	}
	side_check_u64(s, fi_cntr_readerr(end), 2, "errors");
	side_check_u64(s, fi_cntr_read(end), 0, "successes");
	cntr_free(s, start);
	cntr_free(s, end);
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- aliases */

static void alias_run(struct side *s)
{
	struct fid_ep *quiet = NULL, *loud = NULL, *bad = NULL;
	uint64_t flags = FI_TRANSMIT;
	uint8_t in[4];
	struct done d;

	node_open(s, s->arg);
	side_check(s, fi_ep_alias(s->node.ep, &bad, FI_COMPLETION) == -FI_EINVAL,
		   "an alias for neither side");
	side_check(s,
		   fi_ep_alias(s->node.ep, &bad, FI_TRANSMIT | FI_PEEK) == -FI_EBADFLAGS,
		   "an alias with flags that can't be");
	side_must(s, fi_ep_alias(s->node.ep, &loud, FI_TRANSMIT | FI_COMPLETION),
		  "fi_ep_alias");
	side_must(s, fi_ep_alias(loud, &quiet, FI_TRANSMIT), "fi_ep_alias of an alias");
	side_check(s, fi_close(&s->node.ep->fid) == -FI_EBUSY, "it closes under aliases");
	side_must(s, fi_control(&loud->fid, FI_GETOPSFLAG, &flags), "FI_GETOPSFLAG");
	side_check_u64(s, flags, FI_COMPLETION, "flags of an alias");
	flags = FI_TRANSMIT;
	side_must(s, fi_control(&s->node.ep->fid, FI_GETOPSFLAG, &flags),
		  "FI_GETOPSFLAG");
	side_check_u64(s, flags, 0, "flags of the endpoint");
	for (int i = 0; i < 3; i++) {
		struct fid_ep *ep = i == 0 ? s->node.ep : i == 1 ? quiet : loud;

		while (node_again(s, fi_recv(ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, &in[i]),
				  "fi_recv"))
			;
		while (node_again(s,
				  fi_send(ep, &"abc"[i], 1, NULL, s -> node.self, &in[3]),
				  "fi_send"))
			;
	}
	/* With selective completion only the alias that asks for it is heard of. */
	node_expect(s, &d, FI_MSG | FI_SEND, &in[3]);
	side_check(s, fi_cntr_wait(s->node.rx_cntr, 3, WAIT_MS) == 0, "receives");
	side_check(s, memcmp(in, "abc", 3) == 0, "messages");
	node_quiet(s, 10);
	side_check_u64(s, fi_cntr_read(s->node.tx_cntr), 3, "sends");
	side_must(s, fi_close(&quiet->fid), "fi_close of an alias");
	side_must(s, fi_close(&loud->fid), "fi_close of an alias");
	side_meet(s);
	node_close(s, &s->node);
}

#define BOTH(fn) .run = {fn, fn}

static const struct test_case cases[] = {
	{.name = "triggered sends, in the order of thresholds", BOTH(order_run)},
	{.name = "receives trigger sends", BOTH(chain_run)},
	{.name = "a trigger that never comes", BOTH(never_run)},
	{.name = "triggers without the capability", BOTH(lacks_run)},
	{.name = "deferred work", BOTH(work_run), .arg = &want_trigger},
	{.name = "deferred work, selective completion",
	 BOTH(work_run),
	 .arg = &want_selective},
	{.name = "deferred work is cancelled", BOTH(cancel_run)},
	{.name = "deferred work fails", BOTH(fail_run)},
	{.name = "aliases", BOTH(alias_run), .arg = &want_selective},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
