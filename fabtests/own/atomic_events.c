/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What happens around atomic operations: completions, counters and remote data, order,
 * targets that make no call, targets that die, oneself as the target.
 */
#include "config.h"

#include "fabtests/own/atomic_side.h"

#include <signal.h>
#include <string.h>

/* ---- completions and counters */

static void counted_open(struct side *s, struct fid_cntr *cntr[4])
{
	static const uint64_t flags[4] = {FI_WRITE, FI_READ, FI_REMOTE_WRITE,
					  FI_REMOTE_READ};
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP,
				    .wait_obj = FI_WAIT_UNSPEC};
	struct node *n = &s->node;
	char name[sizeof(n->name)] = {0};

	node_open_alone(s, n, &want_atomic);
	/* Another endpoint in the place of the first, which has no such counters. */
	side_must(s, fi_close(&n->ep->fid), "fi_close");
	side_must(s, fi_endpoint(n->domain, n->info, &n->ep, NULL), "fi_endpoint");
	side_must(s, fi_ep_bind(n->ep, &n->av->fid, 0), "fi_ep_bind");
	side_must(s,
		  fi_ep_bind(n->ep, &n->cq->fid,
			     FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION),
		  "fi_ep_bind");
	for (int i = 0; i < 4; i++) {
		side_must(s, fi_cntr_open(n->domain, &attr, &cntr[i], NULL),
			  "fi_cntr_open");
		side_must(s, fi_ep_bind(n->ep, &cntr[i]->fid, flags[i]), "fi_ep_bind");
	}
	side_must(s, fi_enable(n->ep), "fi_enable");
	n->name_len = sizeof(n->name);
	side_must(s, fi_getname(&n->ep->fid, n->name, &n->name_len), "fi_getname");
	side_tell(s, n->name, sizeof(n->name));
	side_hear(s, name, sizeof(name));
	if (fi_av_insert(n->av, name, 1, &n->peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert refuses the peer's address");
}

static void counted_close(struct side *s, struct fid_cntr *cntr[4])
{
	side_must(s, fi_close(&s->node.ep->fid), "fi_close");
	s->node.ep = NULL;
	for (int i = 0; i < 4; i++)
		side_must(s, fi_close(&cntr[i]->fid), "fi_close of a counter");
	node_close(s, &s->node);
}

static void counters_run(struct side *s)
{
	struct node *n = &s->node;
	uint64_t arg = 1, result[2];
	struct fi_ioc ioc = {&arg, 1}, to = {result, 1};
	struct fi_rma_ioc there;
	struct fid_cntr *cntr[4];
	struct answer remote;
	struct done d;
	struct fi_msg_atomic msg = {.msg_iov = &ioc,
				    .iov_count = 1,
				    .rma_iov = &there,
				    .rma_iov_count = 1,
				    .datatype = FI_UINT64,
				    .op = FI_SUM,
				    .context = &d,
				    .data = 0xfeedULL << 40};

	counted_open(s, cntr);
	side_hear(s, &remote, sizeof(remote));
	there = (struct fi_rma_ioc){remote.base, 1, remote.key};
	msg.addr = n->peer;
	for (int i = 0; i < 3; i++)
		side_must(s,
			  fi_atomic(n->ep, &arg, 1, NULL, n->peer, remote.base,
				    remote.key, FI_UINT64, FI_SUM, NULL),
			  "fi_atomic");
	side_must(s,
		  fi_inject_atomic(n->ep, &arg, 1, n->peer, remote.base, remote.key,
				   FI_UINT64, FI_SUM),
		  "fi_inject_atomic");
	side_must(s, fi_cntr_wait(cntr[0], 4, WAIT_MS), "four without result");
	side_must(s, fi_fetch_atomicmsg(n->ep, &msg, &to, NULL, 1, 0),
		  "fi_fetch_atomicmsg");
	side_must(s, fi_cntr_wait(cntr[1], 1, WAIT_MS), "one with a result");
	side_check_u64(s, result[0], 4, "all before it were done");
	node_quiet(s, 20); /* selective: none of them wanted one */
	side_must(s, fi_atomicmsg(n->ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA),
		  "fi_atomicmsg");
	node_expect(s, &d, BASE_DONE, &d);
	side_must(s,
		  fi_fetch_atomicmsg(n->ep, &msg, &to, NULL, 1,
				     FI_COMPLETION | FI_REMOTE_CQ_DATA),
		  "fi_fetch_atomicmsg");
	node_expect(s, &d, FETCH_DONE, &d);
	/* An error is counted as one, and reported whatever was asked. */
	side_must(s,
		  fi_atomic(n->ep, &arg, 1, NULL, n->peer, remote.base + 4096, remote.key,
			    FI_UINT64, FI_SUM, NULL),
		  "fi_atomic");
	if (!node_next(s, &d, WAIT_MS) || d.err != FI_EINVAL)
		side_die(s, "out of bounds: err %d", d.err);
	side_check_u64(s, fi_cntr_readerr(cntr[0]), 1, "errors counted");
	side_check_u64(s, fi_cntr_read(cntr[0]), 5, "without result");
	side_check_u64(s, fi_cntr_read(cntr[1]), 2, "with a result");
	side_meet(s);
	counted_close(s, cntr);
}

static void counters_target(struct side *s)
{
	uint64_t *mem = mem_new(4096);
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
	struct fid_cntr *cntr[4], *region;
	struct answer remote;
	struct fid_mr *mr;
	struct done d;

	counted_open(s, cntr);
	mem[0] = 0;
	side_must(s, fi_mr_reg(s->node.domain, mem, 4096, ALL_ACCESS, 0, 7, 0, &mr, NULL),
		  "fi_mr_reg");
	side_must(s, fi_cntr_open(s->node.domain, &attr, &region, NULL), "fi_cntr_open");
	side_must(s, fi_mr_bind(mr, &region->fid, FI_REMOTE_READ), "fi_mr_bind");
	remote.key = fi_mr_key(mr);
	remote.base = remote_base(&s->node, mem);
	side_tell(s, &remote, sizeof(remote));
	node_expect(s, &d, FI_ATOMIC | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, NULL);
	side_check_u64(s, d.e.data, 0xfeedULL << 40, "data of an operation");
	side_check_u64(s, d.e.len, 8, "length of an operation");
	node_expect(s, &d, FI_ATOMIC | FI_REMOTE_READ | FI_REMOTE_CQ_DATA, NULL);
	side_meet(s);
	side_check_u64(s, fi_cntr_read(cntr[2]), 5, "remote, without result");
	side_check_u64(s, fi_cntr_read(cntr[3]), 2, "remote, with a result");
	side_check_u64(s, fi_cntr_read(region), 2, "of the region, with a result");
	side_check_u64(s, mem[0], 7, "sum");
	side_must(s, fi_close(&mr->fid), "fi_close");
	side_must(s, fi_close(&region->fid), "fi_close of a counter");
	counted_close(s, cntr);
}

/* ---- order */

static void order_want(struct want *want)
{
	*want = want_atomic;
	want->msg_order = FI_ORDER_SAS | FI_ORDER_SAW | FI_ORDER_RAW | FI_ORDER_WAR |
			  FI_ORDER_WAW | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAW;
}

/* A large write, an atomic on its last word, a read of it, a message: all posted at once.
 */
static void order_run(struct side *s)
{
	const size_t len = 2u << 20;
	struct initiator in = {0};
	struct node *n = &s->node;
	uint64_t *arg, *result;
	struct want want;

	order_want(&want);
	initiator_open(s, &in, &want);
	arg = (uint64_t *)(void *)(in.mem + len), result = arg + 1;
	for (uint64_t round = 1; round <= 5; round++) {
		struct done d;

		memset(in.mem, (int)round, len);
		*arg = 1;
		*result = 0;
		write_post(s, &in, 0, len, NULL);
		while (node_again(s,
				  fi_fetch_atomic(n->ep, arg, 1, in.desc, result, in.desc,
						  n->peer, in.remote.base + len - 8,
						  in.remote.key, FI_UINT64, FI_SUM, NULL),
				  "fi_fetch_atomic"))
			;
		while (node_again(s,
				  fi_read(n->ep, result + 1, 8, in.desc, n->peer,
					  in.remote.base + len - 8, in.remote.key, NULL),
				  "fi_read"))
			;
		for (int i = 0; i < 3; i++) {
			if (!node_next(s, &d, WAIT_MS) || d.err)
				side_die(s, "completion %d: err %d", i, d.err);
		}
		side_check_u64(s, result[0], round * 0x0101010101010101,
			       "the atomic sees the write");
		side_check_u64(s, result[1], result[0] + 1, "the read sees the atomic");
	}
	initiator_close(s, &in);
}

static void order_target(struct side *s)
{
	struct want want;

	order_want(&want);
	target_run_as(s, &want);
}

/* ---- to oneself, passive, dead */

static void self_run(struct side *s)
{
	uint64_t *mem = mem_new(4096), was;
	struct node *n = &s->node;
	struct fid_mr *mr;
	struct done d;

	node_open(s, &want_atomic);
	mem[0] = 40;
	side_must(s, fi_mr_reg(n->domain, mem, 4096, ALL_ACCESS, 0, 7, 0, &mr, NULL),
		  "fi_mr_reg");
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t two = 2;

		while (node_again(s,
				  fi_fetch_atomic(n->ep, &two, 1, NULL, &was, NULL,
						  n->self, remote_base(n, mem),
						  fi_mr_key(mr), FI_UINT64, FI_SUM, &d),
				  "fi_fetch_atomic"))
			;
		node_expect(s, &d, FETCH_DONE, &d);
		side_check_u64(s, was, 40 + 2 * i, "what was there");
	}
	side_must(s, fi_close(&mr->fid), "fi_close");
	node_close(s, n);
}

static void idle(struct side *s)
{
	node_open(s, &want_atomic);
	node_close(s, &s->node);
}

static const struct want want_auto = {
	.caps = FI_ATOMIC | FI_MSG, .mr_mode = BASE_MODE, .progress = FI_PROGRESS_AUTO};

/* The target's thread answers while it makes no call. */
static void passive_run(struct side *s)
{
	struct initiator in = {0};

	initiator_open(s, &in, &want_auto);
	write_u64(s, &in, 0, 0);
	order_give(s, (struct order){.kind = ORDER_PAUSE});
	for (uint64_t i = 0; i < 50; i++)
		side_check_u64(s, fetch_u64(s, &in, FI_SUM, 1, 0), i, "sum");
	order_wake(s);
	initiator_close(s, &in);
}

static void passive_target(struct side *s)
{
	target_run_as(s, &want_auto);
}

/* A fenced message is not taken while an operation before it is open, by the target that
 * it goes to; others are not held up. */
static void fence_run(struct side *s)
{
	struct initiator in = {0};
	struct node *n = &s->node;
	struct iovec iov;
	struct done d;
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &iov};
	int held = 0;

	initiator_open(s, &in, &want_atomic);
	write_u64(s, &in, 0, 7);
	iov = (struct iovec){in.mem + 256, 8};
	order_give(s, (struct order){.kind = ORDER_PAUSE});
	while (node_again(s, post_any(s, &in, 1, FI_UINT64, FI_SUM, 1, &d), "atomic"))
		;
	msg.addr = n->self;
	side_must(s, fi_recv(n->ep, in.mem + 512, 8, NULL, FI_ADDR_UNSPEC, NULL), "recv");
	side_must(s, fi_sendmsg(n->ep, &msg, 0), "fi_sendmsg to oneself, which connects");
	node_next(s, &d, WAIT_MS);
	node_next(s, &d, WAIT_MS);
	msg.addr = n->peer;
	for (;;) {
		ssize_t rc = fi_sendmsg(n->ep, &msg, FI_FENCE);

		if (rc == 0)
			break;
		side_check(s, rc == -FI_EAGAIN, "a fenced message: %zd", rc);
		if (held++ == 0)
			order_wake(s);
		node_progress(n);
		sleep_ms(1);
	}
	if (!side_check(s, held > 0, "the fence held nothing back"))
		order_wake(s);
	/* What came before it is complete by now. */
	node_expect(s, &d, FETCH_DONE, &d);
	node_expect(s, &d, FI_MSG | FI_SEND, &iov);
	initiator_close(s, &in);
}

#define DEATH_OPS 50

/* Every operation on a target that is killed ends, those that it answered well. */
static void death_run(struct side *s)
{
	struct initiator in = {0};
	struct done d;
	int posted = 0, ended = 0, errors = 0;

	initiator_open(s, &in, &want_atomic);
	write_u64(s, &in, 0, 0);
	order_give(s, (struct order){.kind = ORDER_SLEEP, .seed = 100000});
	while (posted < DEATH_OPS) {
		while (node_again(s, post_any(s, &in, 1, FI_UINT64, FI_SUM, 1, NULL),
				  "fi_fetch_atomic"))
			;
		posted++;
	}
	node_quiet(s, 20);
	kill(s->peer_pid, SIGKILL);
	while (ended < posted) {
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "%d of %d ended", ended, posted);
		side_check_u64(s, d.e.flags, FETCH_DONE, "flags");
		errors += d.err != 0;
		ended++;
	}
	side_check_u64(s, (uint64_t)errors, DEATH_OPS, "errors");
	node_close(s, &s->node);
}

static const struct test_case cases[] = {
	{.name = "counters, data, selective completion",
	 .run = {counters_run, counters_target}},
	{.name = "E2: among large writes and reads", .run = {order_run, order_target}},
	{.name = "to oneself", .run = {self_run, idle}},
	{.name = "a target that makes no call, automatic progress",
	 .run = {passive_run, passive_target}},
	{.name = "a fence", .run = {fence_run, atomic_target}},
	{.name = "a target that is killed",
	 .run = {death_run, atomic_target},
	 .killed = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
