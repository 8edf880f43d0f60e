/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive contexts: buffers that are posted once are used by whichever endpoint
 * gets the message, whose own queue and counter hear of it; whatever the message's size,
 * tag and source, whether it is there first, whoever closes or dies.
 *
 * Role 0 has three endpoints behind one context, each with a queue and a counter of its
 * own; role 1 is an ordinary endpoint that sends to them.
 */
#include "config.h"

#include "fabtests/own/srx_group.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- every size and place: who gets it says so on its own queue */

#define MESSAGES 150

static size_t size_of(uint64_t tag)
{
	static const size_t sizes[] = {0, 8, 256, 257, 4000, 8192, 8193, 70000, LONG};

	return sizes[(tag * 7 + tag / 9) % ARRAY_LEN(sizes)];
}

static int to_of(uint64_t tag)
{
	return (int)((tag * 2654435761u >> 7) % EPS);
}

static bool is_tagged(uint64_t tag)
{
	return tag % 4 != 0;
}

static void spread_send(struct side *s)
{
	fi_addr_t to[EPS];
	uint64_t sent = 0, complete = 0;
	struct done d;

	sender_open(s, to);
	for (uint64_t tag = 0; tag < MESSAGES; tag++) {
		size_t len = size_of(tag);
		char *mem = mem_new(len + 1);
		ssize_t rc;

		mem_fill(mem, len, (uint32_t)tag + 1);
		do {
			rc = is_tagged(tag) ? fi_tsenddata(s->node.ep, mem, len, NULL,
							   tag, to[to_of(tag)], tag, mem)
					    : fi_senddata(s->node.ep, mem, len, NULL, tag,
							  to[to_of(tag)], mem);
		} while (node_again(s, rc, "senddata"));
		sent++;
		while (complete < sent && node_next(s, &d, 0))
			complete++;
	}
	while (complete < sent) {
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "%d of %d sends", (int)complete, (int)sent);
		side_check(s, !d.err, "send: %d", d.err);
		complete++;
	}
	side_meet(s);
	node_close(s, &s->node);
}

static void spread_post(struct side *s, struct group *g, uint64_t tag, char *mem)
{
	ssize_t rc;

	do {
		if (is_tagged(tag))
			rc = fi_trecv(g->srx, mem, LONG, NULL,
				      tag % 3 ? g->from : FI_ADDR_UNSPEC, tag, 0, mem);
		else
			rc = fi_recv(g->srx, mem, LONG, NULL, FI_ADDR_UNSPEC, mem);
	} while (rc == -FI_EAGAIN);
	side_must(s, rc, "post");
}

static void spread_recv(struct side *s)
{
	static char *mem[MESSAGES];
	static bool seen[MESSAGES];
	uint64_t counts[EPS] = {0};
	struct group g;
	struct done d;

	group_open(s, &g, 0);
	for (uint64_t tag = 0; tag < MESSAGES; tag++) {
		mem[tag] = mem_new(LONG);
		if (tag % 2)
			spread_post(s, &g, tag, mem[tag]);
	}
	sleep_ms(30);
	for (uint64_t tag = 0; tag < MESSAGES; tag += 2)
		spread_post(s, &g, tag, mem[tag]);
	for (int n = 0; n < MESSAGES; n++) {
		int i = group_must(s, &g, &d);
		uint64_t tag = d.e.data;

		if (d.err || tag >= MESSAGES || seen[tag])
			side_die(s, "error %d, or tag %d twice", d.err, (int)tag);
		seen[tag] = true;
		counts[i]++;
		side_check(s, i == to_of(tag), "message %d on queue %d", (int)tag, i);
		side_check(s, !is_tagged(tag) || d.e.tag == tag, "tag");
		side_check(s, !is_tagged(tag) || d.e.op_context == mem[tag], "context");
		side_check_u64(s, d.src, g.from, "source");
		side_check_u64(s, d.e.len, size_of(tag), "length");
		mem_check(s, d.e.op_context, size_of(tag), (uint32_t)tag + 1, "content");
	}
	for (int i = 0; i < EPS; i++)
		side_check_u64(s, fi_cntr_read(g.cntr[i]), counts[i], "counter");
	side_meet(s);
	group_quiet(s, &g, 10);
	group_close(s, &g);
}

/* ---- multi-receive */

static void multi_run(struct side *s)
{
	const size_t room = 4096, min = 512;
	char *mem = mem_new(room), *end = mem;
	struct group g;
	struct done d;
	int released = 0;

	group_open(s, &g, 0);
	side_must(s,
		  fi_setopt(&g.srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min,
			    sizeof(min)),
		  "fi_setopt");
	{
		struct iovec iov = {mem, room};
		struct fi_msg msg = {.msg_iov = &iov,
				     .iov_count = 1,
				     .addr = FI_ADDR_UNSPEC,
				     .context = mem};

		order_send(s, &g, 2, 77, 1000, false); /* before it is posted */
		side_must(s, fi_recvmsg(g.srx, &msg, FI_MULTI_RECV), "fi_recvmsg");
	}
	for (uint64_t n = 0; n < 4; n++) {
		int at, to = n == 0 ? 2 : (int)(n - 1);

		if (n)
			order_only(s, to, 77 + n, 1000, false);
		at = group_must(s, &g, &d);
		side_check(s, !d.err && at == to, "message %d: queue %d, error %d",
			   (int)n, at, d.err);
		side_check(s, d.e.op_context == mem && d.e.buf == end, "place");
		side_check_u64(s, d.e.len, 1000, "length");
		mem_check(s, d.e.buf, 1000, 77 + (uint32_t)n, "content");
		end += d.e.len;
		released += !!(d.e.flags & FI_MULTI_RECV);
		side_check(s, !!(d.e.flags & FI_MULTI_RECV) == (n == 3), "release");
	}
	side_check(s, released == 1, "released %d times", released);
	order_send(s, &g, 0, 9, 8, true);
	side_check(s, !fi_trecv(g.srx, mem, 8, NULL, FI_ADDR_UNSPEC, 9, 0, mem), "trecv");
	group_must(s, &g, &d);
	order_end(s, &g);
	group_close(s, &g);
}

/* ---- cancel, peek, claim, discard */

static ssize_t look(struct group *g, uint64_t tag, uint64_t flags,
		    struct fi_context *context, void *mem, size_t len)
{
	struct iovec iov = {mem, len};
	struct fi_msg_tagged msg = {.msg_iov = mem ? &iov : NULL,
				    .iov_count = mem ? 1 : 0,
				    .addr = g->from,
				    .tag = tag,
				    .context = context};

	return fi_trecvmsg(g->srx, &msg, flags);
}

static void look_run(struct side *s)
{
	struct fi_context context = {{0}}, other = {{0}};
	char *mem = mem_new(LONG);
	struct group g;
	struct done d;
	int i;

	group_open(s, &g, 0);
	side_must(s, fi_trecv(g.srx, mem, 8, NULL, FI_ADDR_UNSPEC, 5, 0, &other),
		  "trecv");
	side_must(s, fi_cancel(&g.srx->fid, &context), "cancel of nothing");
	group_quiet(s, &g, 5);
	side_must(s, fi_cancel(&g.srx->fid, &other), "fi_cancel");
	group_must(s, &g, &d);
	side_check(s, d.err == FI_ECANCELED && d.e.op_context == &other, "cancelled");
	side_must(s, look(&g, 5, FI_PEEK, &context, NULL, 0), "peek");
	group_must(s, &g, &d);
	side_check(s, d.err == FI_ENOMSG, "nothing is found: %d", d.err);
	order_send(s, &g, 1, 5, LONG, true);
	order_send(s, &g, 2, 6, 100, true);
	order_send(s, &g, 0, 5, 200, true);
	order_send(s, &g, 2, 7, LONG, true);
	side_must(s, look(&g, 5, FI_PEEK | FI_CLAIM, &context, NULL, 0), "claim");
	i = group_must(s, &g, &d);
	side_check(s, i == 1 && !d.err && d.e.len == LONG && d.src == g.from, "claimed");
	side_must(s, look(&g, 6, FI_PEEK | FI_DISCARD, &other, NULL, 0), "discard");
	i = group_must(s, &g, &d);
	side_check(s, i == 2 && !d.err && d.e.len == 100, "dropped");
	side_must(s, look(&g, 6, FI_PEEK, &other, NULL, 0), "peek");
	group_must(s, &g, &d);
	side_check(s, d.err == FI_ENOMSG, "gone");
	side_must(s, fi_trecv(g.srx, mem, LONG, NULL, g.from, 5, 0, &other), "trecv");
	i = group_must(s, &g, &d);
	side_check(s, i == 0 && d.e.len == 200, "a claimed message is found by others");
	mem_check(s, mem, 200, 5, "content");
	side_check(s, look(&g, 5, FI_CLAIM, &other, mem, LONG) == -FI_EINVAL,
		   "what was not claimed is received");
	side_must(s, look(&g, 5, FI_CLAIM, &context, mem, LONG),
		  "receive what is claimed");
	i = group_must(s, &g, &d);
	side_check(s, i == 1 && !d.err && d.e.len == LONG, "received");
	mem_check(s, mem, LONG, 5, "content");
	side_must(s, look(&g, 7, FI_PEEK | FI_CLAIM, &context, NULL, 0), "claim");
	side_check(s, group_must(s, &g, &d) == 2, "claimed");
	side_must(s, look(&g, 7, FI_CLAIM | FI_DISCARD, &context, NULL, 0), "drop it");
	side_check(s, group_must(s, &g, &d) == 2 && !d.err, "dropped");
	order_end(s, &g);
	group_close(s, &g);
}

/* ---- an endpoint goes, the others stay */

static void leave_run(struct side *s)
{
	const size_t room = 3000000;
	char *mem = mem_new(room);
	struct iovec iov = {mem, room};
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = mem};
	struct group g;
	struct done d;

	group_open(s, &g, 0);
	order_send(s, &g, 0, 1, 100, true); /* nobody's any more when it has gone */
	order_send(s, &g, 0, 2, LONG, true);
	order_send(s, &g, 1, 3, 100, true);
	member_close(s, &g, 0);
	side_must(s, fi_trecv(g.srx, mem, 200, NULL, FI_ADDR_UNSPEC, 1, 3, mem), "trecv");
	side_check(s, group_must(s, &g, &d) == 1 && d.e.tag == 3 && d.e.len == 100,
		   "a message of an endpoint that is gone is received");
	side_must(s, fi_recvmsg(g.srx, &msg, FI_MULTI_RECV), "fi_recvmsg");
	order_only(s, 1, 4, 100, false);
	side_check(s, group_must(s, &g, &d) == 1 && d.e.buf == mem, "multi-receive");
	member_close(s, &g, 1);
	order_only(s, 2, 5, 100, false);
	side_check(s, group_must(s, &g, &d) == 2 && d.e.buf == mem + 100, "it goes on");
	side_must(s, fi_cancel(&g.srx->fid, mem), "fi_cancel");
	side_check(s,
		   group_must(s, &g, &d) == 2 && d.err == FI_ECANCELED &&
			   (d.e.flags & FI_MULTI_RECV),
		   "the buffer comes back");
	member_close(s, &g, 2);
	side_must(s, fi_trecv(g.srx, mem, 8, NULL, FI_ADDR_UNSPEC, 9, 0, mem),
		  "a post without endpoints");
	side_check(s, fi_trecv(g.srx, mem, 8, NULL, g.from, 9, 0, mem) < 0,
		   "from one source, whom nobody knows");
	side_must(s, fi_cancel(&g.srx->fid, mem), "fi_cancel, with nobody to tell");
	member_open(s, &g, 0, 0);
	group_quiet(s, &g, 5);
	side_check(s, fi_close(&g.srx->fid) == -FI_EBUSY, "it closes under endpoints");
	member_close(s, &g, 0);
	side_must(s, fi_close(&g.srx->fid), "fi_close srx");
	fi_freeinfo(g.info);
	node_close(s, &s->node);
}

static void leave_send(struct side *s)
{
	fi_addr_t to[EPS];
	struct order o;

	sender_open(s, to);
	for (int n = 0; n < 5; n++) {
		char *mem;
		ssize_t rc;

		side_hear(s, &o, sizeof(o));
		mem = mem_new(o.len);
		mem_fill(mem, o.len, (uint32_t)o.tag);
		do {
			rc = o.tagged ? fi_tsend(s->node.ep, mem, o.len, NULL, to[o.to],
						 o.tag, mem)
				      : fi_send(s->node.ep, mem, o.len, NULL, to[o.to],
						mem);
			node_progress(&s->node);
		} while (rc == -FI_EAGAIN);
		side_must(s, rc, "send");
		for (int i = 0; i < 20; i++) {
			node_progress(&s->node);
			sched_yield();
		}
		side_tell(s, "", 1);
	}
	/* The one to the endpoint that is gone fails or doesn't: it has an end. */
	for (int n = 0; n < 5; n++) {
		struct done d;

		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "send %d has no end", n);
	}
	node_close(s, &s->node);
}

/* ---- what is reported, with selective completion on one of the queues */

static void select_run(struct side *s)
{
	char *mem = mem_new(4096);
	struct group g;
	struct done d;

	group_open(s, &g, FI_SELECTIVE_COMPLETION);
	for (int n = 0; n < 6; n++) {
		struct iovec iov = {mem, 4096};
		struct fi_msg_tagged msg = {.msg_iov = &iov,
					    .iov_count = 1,
					    .addr = FI_ADDR_UNSPEC,
					    .tag = (uint64_t)n,
					    .context = mem};
		bool asked = n >= 3;
		int to = n % 3;

		side_must(s, fi_trecvmsg(g.srx, &msg, asked ? FI_COMPLETION : 0), "post");
		order_only(s, to, (uint64_t)n, n == 4 ? 4096 : 8, true);
		while (fi_cntr_read(g.cntr[to]) != (uint64_t)(asked ? 2 : 1))
			sched_yield();
		if (!asked && to == 0)
			group_quiet(s, &g, 5);
		else
			side_check(s, group_must(s, &g, &d) == to && !d.err, "report");
	}
	/* Too long: that is always told. */
	side_must(s, fi_trecv(g.srx, mem, 4, NULL, FI_ADDR_UNSPEC, 8, 0, mem), "trecv");
	order_only(s, 0, 8, 10, true);
	side_check(s, group_must(s, &g, &d) == 0 && d.err == FI_ETRUNC && d.olen == 6,
		   "truncation");
	order_end(s, &g);
	group_close(s, &g);
}

/* ---- the sender dies */

static void death_recv(struct side *s)
{
	char *mem = mem_new(LONG);
	struct group g;
	struct done d;
	uint8_t byte;

	group_open(s, &g, 0);
	side_hear(s, &byte, 1);
	group_quiet(s, &g, 30); /* three large ones are announced */
	kill(s->peer_pid, SIGKILL);
	sleep_ms(20);
	for (uint64_t tag = 0; tag < 3; tag++)
		side_must(s, fi_trecv(g.srx, mem, LONG, NULL, g.from, tag, 0, mem + tag),
			  "trecv");
	/* Each of them ends in error on its own queue, is still to be had, or was
	 * forgotten before it was posted. */
	while (group_next(s, &g, &d, 300) >= 0)
		side_check(s, d.err || d.e.len == LONG, "a piece of a message");
	for (uint64_t tag = 0; tag < 3; tag++)
		fi_cancel(&g.srx->fid, mem + tag);
	/* One that was matched may have ended meanwhile. */
	while (group_next(s, &g, &d, 20) >= 0)
		side_check(s, d.err || d.e.len == LONG, "a piece of a message");
	group_close(s, &g);
}

static void death_send(struct side *s)
{
	char *mem = mem_new(LONG);
	fi_addr_t to[EPS];

	sender_open(s, to);
	for (uint64_t tag = 0; tag < 3; tag++)
		while (node_again(
			s, fi_tsend(s->node.ep, mem, LONG, NULL, to[tag], tag, mem),
			"fi_tsend"))
			;
	for (int i = 0; i < 100; i++)
		node_progress(&s->node);
	side_tell(s, "", 1);
	for (;;)
		node_progress(&s->node);
}

/* ---- threads */

#define THREAD_MESSAGES 600

struct worker {
	struct side *s;
	struct group *g;
	int i;
	uint64_t *left; /* of all readers */
	uint64_t got;
	bool failed;
};

static void *worker_post(void *arg)
{
	struct worker *w = arg;

	for (uint64_t n = (uint64_t)w->i; n < THREAD_MESSAGES; n += 2) {
		char *mem = malloc(16);
		ssize_t rc;

		do {
			rc = fi_trecv(w->g->srx, mem, 16, NULL, FI_ADDR_UNSPEC, n, 0,
				      mem);
		} while (rc == -FI_EAGAIN);
		w->failed |= rc != 0 || !mem;
	}
	return NULL;
}

static void *worker_read(void *arg)
{
	struct worker *w = arg;
	uint64_t end = now_ms() + 2 * WAIT_MS;

	while (__atomic_load_n(w->left, __ATOMIC_RELAXED) && now_ms() < end) {
		struct fi_cq_tagged_entry e;
		ssize_t rc = fi_cq_read(w->g->cq[w->i], &e, 1);
		uint64_t tag;

		if (rc != 1) {
			w->failed |= rc != -FI_EAGAIN;
			sched_yield();
			continue;
		}
		memcpy(&tag, e.op_context, sizeof(tag));
		w->failed |= tag != e.tag || tag % EPS != (uint64_t)w->i;
		free(e.op_context);
		w->got++;
		__atomic_fetch_sub(w->left, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void threads_recv(struct side *s)
{
	uint64_t left = THREAD_MESSAGES, got = 0;
	struct worker w[2 + EPS];
	pthread_t t[2 + EPS];
	struct group g;

	group_open(s, &g, 0);
	for (int i = 0; i < 2 + EPS; i++) {
		w[i] = (struct worker){s, &g, i < 2 ? i : i - 2, &left, 0, false};
		if (pthread_create(&t[i], NULL, i < 2 ? worker_post : worker_read, &w[i]))
			side_die(s, "no thread");
	}
	for (int i = 0; i < 2 + EPS; i++) {
		pthread_join(t[i], NULL);
		side_check(s, !w[i].failed, "thread %d", i);
		got += w[i].got;
	}
	side_check_u64(s, got, THREAD_MESSAGES, "messages");
	side_meet(s);
	group_close(s, &g);
}

static void threads_send(struct side *s)
{
	fi_addr_t to[EPS];
	struct done d;

	sender_open(s, to);
	for (uint64_t n = 0; n < THREAD_MESSAGES; n++) {
		while (node_again(s,
				  fi_tinject(s->node.ep, &n, sizeof(n), to[n % EPS], n),
				  "fi_tinject"))
			;
	}
	while (node_next(s, &d, 0))
		side_check(s, false, "an injected message completes");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- what is refused */

static void refuse_attr(struct side *s)
{
	const struct fi_rx_attr bad[] = {{.size = SIZE_MAX},
					 {.iov_limit = 1000},
					 {.op_flags = FI_INJECT},
					 {.total_buffered_recv = 1}};
	struct fid_ep *srx;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fi_rx_attr attr = bad[i];

		side_check(s, fi_srx_context(s->node.domain, &attr, &srx, NULL) < 0,
			   "attribute %zu", i);
	}
}

static void refuse_calls(struct side *s, struct group *g)
{
	struct fid_ep *srx = g->srx;
	char mem[8], name[NAMES];
	size_t len = sizeof(name);
	struct fi_rma_iov rma = {0};
	struct iovec iov = {mem, 8};
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = &rma, .rma_iov_count = 1};

	side_check(s, fi_send(srx, mem, 8, NULL, g->from, NULL) < 0, "send");
	side_check(s, fi_tsend(srx, mem, 8, NULL, g->from, 1, NULL) < 0, "tsend");
	side_check(s, fi_inject(srx, mem, 8, g->from) < 0, "inject");
	side_check(s, fi_writemsg(srx, &msg, 0) < 0, "write");
	side_check(s, fi_getname(&srx->fid, name, &len) < 0, "it has no name");
	side_check(s, fi_ep_bind(srx, &g->cq[0]->fid, FI_RECV) < 0, "it has no queue");
	side_check(s, fi_recv(g->ep[0], mem, 8, NULL, FI_ADDR_UNSPEC, NULL) < 0,
		   "a receive beside the context");
	side_check(s, fi_trecv(srx, mem, 8, NULL, 4711, 1, 0, NULL) == -FI_EINVAL,
		   "a source that is none");
	side_check(s, fi_ep_bind(g->ep[0], &srx->fid, 0) < 0, "bind after enable");
	side_must(s, fi_enable(srx), "fi_enable has nothing to do");
}

static void refuse_run(struct side *s)
{
	struct fi_av_attr attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fid_domain *domain;
	struct fid_ep *srx, *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	struct group g;

	group_open(s, &g, 0);
	refuse_attr(s);
	refuse_calls(s, &g);
	side_must(s, fi_domain(s->node.fabric, g.info, &domain, NULL), "fi_domain");
	side_must(s, fi_srx_context(domain, NULL, &srx, NULL), "attr NULL");
	side_must(s, fi_endpoint(s->node.domain, g.info, &ep, NULL), "fi_endpoint");
	side_check(s, fi_ep_bind(ep, &srx->fid, 0) < 0, "another domain's");
	side_must(s, fi_av_open(s->node.domain, &attr, &av, NULL), "fi_av_open");
	side_must(s, fi_cq_open(s->node.domain, &cq_attr, &cq, NULL), "fi_cq_open");
	side_must(s, fi_ep_bind(ep, &av->fid, 0), "bind av");
	side_must(s, fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "bind cq");
	side_check(s, fi_enable(ep) < 0, "enabled without its context");
	side_must(s, fi_ep_bind(ep, &g.srx->fid, 0), "bind srx");
	side_check(s, fi_ep_bind(ep, &g.srx->fid, 0) < 0, "bound twice");
	side_check(s, fi_enable(ep) == -FI_EINVAL, "two address vectors");
	side_must(s, fi_close(&ep->fid), "fi_close ep");
	side_must(s, fi_close(&srx->fid), "fi_close srx");
	side_must(s, fi_close(&domain->fid), "fi_close domain");
	side_must(s, fi_close(&cq->fid), "fi_close cq");
	side_must(s, fi_close(&av->fid), "fi_close av");
	order_end(s, &g);
	group_close(s, &g);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{.name = "every size, to each", .run = {spread_recv, spread_send}},
		{.name = "multi-receive", .run = {multi_run, obey}},
		{.name = "cancel, peek, claim, discard", .run = {look_run, obey}},
		{.name = "endpoints go", .run = {leave_run, leave_send}},
		{.name = "selective completion", .run = {select_run, obey}},
		{.name = "a sender dies",
		 .run = {death_recv, death_send},
		 .killed = true},
		{.name = "threads", .run = {threads_recv, threads_send}},
		{.name = "refused", .run = {refuse_run, obey}, .needs_weft = true},
	};

	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
