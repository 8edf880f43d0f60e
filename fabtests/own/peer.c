/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Weft behind the queues of another provider (FI_PEER): role 0 has an endpoint whose
 * completions and receives are this program's own (peer_owner.h), role 1 an ordinary one
 * that sends to it. Needs libfabric 2.0 or later.
 */
#include "config.h"

#include "util/tap.h"

#ifdef HAVE_STRUCT_FI_PEER_MATCH_ATTR

#include "fabtests/own/peer_owner.h"

#include <string.h>

#define LONG ((size_t)300 << 10) /* announced, not sent at once */

static const size_t lens[] = {0, 8, 300, 5000, LONG};
#define MESSAGES (ARRAY_LEN(lens) * 4)

static const struct want peer_want = {.caps = FI_MSG | FI_TAGGED | FI_DIRECTED_RECV |
					      FI_PEER};
static const struct want plain_want = {.tx_op_flags = FI_DELIVERY_COMPLETE};

/* Message i: one of the sizes, tagged or not, with data or not. */
static size_t len_of(int i)
{
	return lens[(size_t)i % ARRAY_LEN(lens)];
}

static bool is_tagged(int i)
{
	return i / (int)ARRAY_LEN(lens) % 2;
}

static bool has_data(int i)
{
	return i / (int)ARRAY_LEN(lens) / 2 % 2;
}

static uint64_t kind_of(int i)
{
	return is_tagged(i) ? FI_TAGGED : FI_MSG;
}

static void send_one(struct side *s, int i, char *mem)
{
	struct fid_ep *ep = s->node.ep;
	fi_addr_t to = s->node.peer;
	size_t len = len_of(i);
	ssize_t rc;

	mem_fill(mem, len, (uint32_t)i);
	do {
		if (is_tagged(i))
			rc = has_data(i) ? fi_tsenddata(ep, mem, len, NULL, 100u + i, to,
							i, mem)
					 : fi_tsend(ep, mem, len, NULL, to, i, mem);
		else
			rc = has_data(i)
				     ? fi_senddata(ep, mem, len, NULL, 100u + i, to, mem)
				     : fi_send(ep, mem, len, NULL, to, mem);
	} while (node_again(s, rc, "send"));
}

/* All messages leave before any of them is complete. */
static void send_all(struct side *s)
{
	static char mem[MESSAGES][LONG];
	struct done d;

	for (int i = 0; i < (int)MESSAGES; i++)
		send_one(s, i, mem[i]);
	side_tell(s, "s", 1);
	for (int i = 0; i < (int)MESSAGES; i++) {
		if (!node_next(s, &d, WAIT_MS) || d.err)
			side_die(s, "message %d: not sent, err %d", i, d.err);
	}
}

static void plain_run(struct side *s)
{
	node_open(s, &plain_want);
	side_meet(s);
	send_all(s);
	side_meet(s);
	node_close(s, &s->node);
}

/* Untagged ones are told by their order, so by what their context is. */
static void check_all(struct side *s, struct owner *o, char (*mem)[LONG])
{
	bool seen[MESSAGES] = {false};
	struct done d;

	for (int n = 0; n < (int)MESSAGES; n++) {
		int i;

		if (!owner_next(o, &d, WAIT_MS) || d.err)
			side_die(s, "completion %d: not there, err %d", n, d.err);
		i = (int)((char(*)[LONG])d.e.op_context - mem);
		if (i < 0 || i >= (int)MESSAGES || seen[i])
			side_die(s, "a context that wasn't given, or twice");
		seen[i] = true;
		side_check_u64(s, d.e.flags,
			       kind_of(i) | FI_RECV |
				       (has_data(i) ? FI_REMOTE_CQ_DATA : 0),
			       "flags");
		side_check_u64(s, d.e.len, len_of(i), "length");
		side_check_u64(s, d.e.data, has_data(i) ? 100u + (unsigned)i : 0, "data");
		side_check_u64(s, d.e.tag, is_tagged(i) ? (uint64_t)i : 0, "tag");
		side_check_u64(s, d.src, s->node.peer, "source");
		mem_check(s, mem[i], len_of(i), (uint32_t)i, "message");
	}
}

static void post_all(struct side *s, struct owner *o, char (*mem)[LONG])
{
	for (int i = 0; i < (int)MESSAGES; i++)
		side_must(s,
			  owner_recv(o, mem[i], LONG, FI_ADDR_UNSPEC,
				     is_tagged(i) ? (uint64_t)i : 0, 0, mem[i],
				     kind_of(i)),
			  "start");
}

static void expected_run(struct side *s)
{
	static char mem[MESSAGES][LONG];
	struct owner o;
	char c;

	owner_open(s, &o, &peer_want, true);
	post_all(s, &o, mem);
	side_meet(s);
	check_all(s, &o, mem);
	side_hear(s, &c, 1);
	side_check(s, o.unexpected_count == 0, "%d were unexpected", o.unexpected_count);
	side_meet(s);
	owner_close(s, &o);
}

static void unexpected_run(struct side *s)
{
	static char mem[MESSAGES][LONG];
	struct owner o;
	int i = 0;
	char c;

	owner_open(s, &o, &peer_want, true);
	side_meet(s);
	owner_await(s, &o, MESSAGES);
	side_hear(s, &c, 1);
	list_foreach (n, &o.unexpected) {
		const struct fi_peer_rx_entry *e =
			&container_of(n, struct owner_entry, node)->e;

		side_check_u64(s, e->addr, s->node.peer, "source");
		side_check_u64(s, e->msg_size, len_of(i), "length of one that waits");
		side_check_u64(s, e->tag, is_tagged(i) ? (uint64_t)i : 0, "its tag");
		side_check_u64(s, e->flags & FI_REMOTE_CQ_DATA ? e->cq_data : 0,
			       has_data(i) ? 100u + (unsigned)i : 0, "its data");
		i++;
	}
	side_check(s, o.done_count == 0, "something is complete");
	post_all(s, &o, mem);
	check_all(s, &o, mem);
	side_meet(s);
	owner_close(s, &o);
}

/* The owner has no memory for a while: nothing is lost, and nothing overtakes. */
static void memory_run(struct side *s)
{
	static char mem[MESSAGES][LONG];
	struct owner o;
	int i = 0;
	char c;

	owner_open(s, &o, &peer_want, true);
	o.no_memory = 7;
	side_meet(s);
	owner_await(s, &o, MESSAGES);
	side_hear(s, &c, 1);
	list_foreach (n, &o.unexpected) {
		side_check_u64(s, container_of(n, struct owner_entry, node)->e.msg_size,
			       len_of(i++), "the order");
	}
	post_all(s, &o, mem);
	check_all(s, &o, mem);
	side_meet(s);
	owner_close(s, &o);
}

/* Whose address is found out later: a receive from it takes what waits then. */
static void stranger_run(struct side *s)
{
	static char mem[MESSAGES][LONG];
	struct owner o;
	char c;

	owner_open(s, &o, &peer_want, false);
	side_meet(s);
	owner_await(s, &o, MESSAGES);
	side_hear(s, &c, 1);
	side_check_u64(s, owner_first(&o)->e.addr, FI_ADDR_UNSPEC, "nobody's message");
	if (fi_av_insert(s->node.av, s->node.name, 1, &s->node.peer, 0, NULL) != 1)
		side_die(s, "fi_av_insert refuses the peer's address");
	side_check(s, o.looked == 1, "looked at %d times", o.looked);
	side_check_u64(s, owner_first(&o)->e.addr, s->node.peer, "the sender's");
	for (int i = 0; i < (int)MESSAGES; i++)
		side_must(s,
			  owner_recv(&o, mem[i], LONG, s->node.peer,
				     is_tagged(i) ? (uint64_t)i : 0, 0, mem[i],
				     kind_of(i)),
			  "start");
	side_check(s, o.unexpected_count == 0, "%d still wait", o.unexpected_count);
	check_all(s, &o, mem);
	side_meet(s);
	owner_close(s, &o);
}

/* None of them is wanted; each sender hears that it is done with. */
static void discard_run(struct side *s)
{
	struct owner o;
	char c;

	owner_open(s, &o, &peer_want, true);
	o.refuse = 3;
	side_meet(s);
	owner_await(s, &o, MESSAGES - 3);
	side_hear(s, &c, 1);
	while (o.unexpected_count)
		side_must(s, owner_discard(&o), "discard");
	for (int i = 0; i < 20; i++)
		owner_progress(&o);
	side_check(s, o.done_count == 0, "something was completed");
	side_meet(s);
	owner_close(s, &o);
}

/* ---- a few messages, one after the other, as the owner wants them */

struct order {
	int first, count;
};

/* Sends what it is told to until it is told nothing. */
static void obey(struct side *s)
{
	static char mem[MESSAGES][LONG];
	struct order order;

	node_open(s, &(struct want){0});
	for (;;) {
		side_hear(s, &order, sizeof(order));
		if (!order.count)
			break;
		for (int i = order.first; i < order.first + order.count; i++)
			send_one(s, i, mem[i]);
		side_tell(s, "s", 1);
	}
	side_meet(s);
	node_close(s, &s->node);
}

static void order_send(struct side *s, int first, int count)
{
	struct order order = {first, count};
	char c;

	side_tell(s, &order, sizeof(order));
	if (count)
		side_hear(s, &c, 1);
	else
		side_meet(s);
}

static void check_truncated(struct side *s, struct owner *o, int i)
{
	struct done d;

	if (!owner_next(o, &d, WAIT_MS))
		side_die(s, "no completion");
	side_check(s, d.err == FI_ETRUNC, "err %d", d.err);
	side_check_u64(s, d.e.len, 7, "bytes that were placed");
	side_check_u64(s, d.olen, len_of(i) - 7, "bytes that were not");
}

static void truncate_run(struct side *s)
{
	struct owner o;
	char buf[16];

	owner_open(s, &o, &peer_want, true);
	for (int i = 1; i < (int)ARRAY_LEN(lens); i++) {
		memset(buf, 'x', sizeof(buf));
		owner_recv(&o, buf, 7, FI_ADDR_UNSPEC, 0, 0, buf, FI_MSG);
		order_send(s, i, 1);
		check_truncated(s, &o, i);
		side_check(s, buf[7] == 'x', "written behind the buffer");
		order_send(s, i, 1);
		owner_await(s, &o, 1);
		owner_recv(&o, buf, 7, FI_ADDR_UNSPEC, 0, 0, buf, FI_MSG);
		check_truncated(s, &o, i);
		side_check(s, buf[7] == 'x', "written behind the buffer");
	}
	order_send(s, 0, 0);
	owner_close(s, &o);
}

/* The owner cuts pieces out of one buffer, which is free when they are all complete. */
static void multi_run(struct side *s)
{
	static char buf[2 * 5000 + 2 * 300 + 70];
	struct owner o;
	struct done d;
	size_t at = 0;

	owner_open(s, &o, &peer_want, true);
	owner_recv(&o, buf, sizeof(buf), FI_ADDR_UNSPEC, 0, 0, buf,
		   FI_MSG | FI_MULTI_RECV);
	order_send(s, 1, 3);
	order_send(s, 2, 2);
	for (int i = 0; i < 5; i++) {
		static const int which[] = {1, 2, 3, 2, 3};

		owner_expect(s, &o, &d, FI_MSG | FI_RECV);
		side_check(s, d.e.buf == buf + at, "piece %d begins elsewhere", i);
		mem_check(s, buf + at, len_of(which[i]), (uint32_t)which[i], "piece");
		at += len_of(which[i]);
	}
	owner_expect(s, &o, &d, FI_MULTI_RECV);
	order_send(s, 0, 0);
	owner_close(s, &o);
}

/* Its own messages are sent while others come: nobody asks the owner meanwhile. */
static void both_run(struct side *s)
{
	static char mem[LONG], in[MESSAGES][LONG];
	struct owner o;
	struct done d;
	int sent = 0;

	owner_open(s, &o, &peer_want, true);
	order_send(s, 0, 5);
	while (sent < 100000 &&
	       fi_send(s->node.ep, mem, 5000, NULL, s->node.peer, mem) == 0)
		sent++;
	side_check(s, o.unexpected_count == 0, "%d messages came by themselves",
		   o.unexpected_count);
	owner_await(s, &o, 5);
	for (int i = 0; i < 5; i++)
		owner_recv(&o, in[i], LONG, FI_ADDR_UNSPEC, 0, 0, in[i], FI_MSG);
	for (int i = 0; i < 5;) {
		if (!owner_next(&o, &d, WAIT_MS) || d.err)
			side_die(s, "no completion");
		i += d.e.flags == (FI_MSG | FI_RECV);
	}
	for (int i = 0; i < 5; i++)
		mem_check(s, in[i], len_of(i), (uint32_t)i, "message");
	order_send(s, 0, 0);
	owner_close(s, &o);
}

/* ---- senders and endpoints that go */

static void leave_run(struct side *s)
{
	static char mem[MESSAGES][LONG];

	node_open(s, &(struct want){0});
	for (int i = 3; i < 5; i++)
		send_one(s, i, mem[i]);
	side_tell(s, "s", 1);
	side_meet(s); /* both wait at the owner */
	node_close(s, &s->node);
	side_tell(s, "c", 1);
}

/* What was sent at once is there; what was only announced is not. */
static void left_run(struct side *s)
{
	static char mem[2][LONG];
	struct owner o;
	struct done d;
	char c;

	owner_open(s, &o, &peer_want, true);
	side_hear(s, &c, 1);
	owner_await(s, &o, 2);
	side_meet(s);
	side_hear(s, &c, 1);
	for (uint64_t end = now_ms() + 200; now_ms() < end;)
		owner_progress(&o);
	side_check(s, o.unexpected_count == 2, "%d wait", o.unexpected_count);
	for (int i = 0; i < 2; i++)
		side_must(s,
			  owner_recv(&o, mem[i], LONG, FI_ADDR_UNSPEC, 0, 0, mem[i],
				     FI_MSG),
			  "start");
	owner_expect(s, &o, &d, FI_MSG | FI_RECV);
	mem_check(s, mem[0], len_of(3), 3, "message");
	if (!owner_next(&o, &d, WAIT_MS))
		side_die(s, "nobody says that the other can't be had");
	side_check(s, d.err == FI_ECONNRESET && d.e.op_context == mem[1], "err %d",
		   d.err);
	owner_close(s, &o);
}

/* The owner is left with messages of an endpoint that is closed. */
static void closed_run(struct side *s)
{
	struct owner o;
	char buf[8];

	owner_open(s, &o, &peer_want, true);
	order_send(s, 1, 4);
	owner_await(s, &o, 4);
	side_must(s, fi_close(&s->node.ep->fid), "fi_close");
	s->node.ep = NULL;
	side_check(s,
		   owner_recv(&o, buf, sizeof(buf), FI_ADDR_UNSPEC, 0, 0, buf, FI_MSG) ==
			   -FI_EOPBADSTATE,
		   "one of them was started");
	o.alive--; /* it stays the owner's */
	while (o.unexpected_count)
		side_must(s, owner_discard(&o), "discard");
	order_send(s, 0, 0);
	owner_close(s, &o);
}

static void refused_run(struct side *s)
{
	struct fi_rx_attr attr = {.op_flags = FI_PEER};
	struct fi_peer_srx_context c = {.size = sizeof(c)};
	struct want automatic = peer_want;
	struct fid_ep *srx;
	struct owner o;
	struct node n = {0};
	char buf[8];

	owner_open(s, &o, &peer_want, true);
	side_check(s, s->node.info->caps & FI_PEER, "FI_PEER is not granted");
	side_check(s,
		   fi_recv(o.peer_srx, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, NULL) ==
			   -FI_ENOSYS,
		   "a receive that the owner doesn't know");
	side_check(s,
		   fi_trecv(o.peer_srx, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, 0, 0,
			    NULL) == -FI_ENOSYS,
		   "a tagged one");
	side_check(s, fi_srx_context(s->node.domain, &attr, &srx, NULL) == -FI_EINVAL,
		   "no context");
	side_check(s, fi_srx_context(s->node.domain, &attr, &srx, &c) == -FI_EINVAL,
		   "nobody's receives");
	c.srx = &o.srx;
	c.size--;
	side_check(s, fi_srx_context(s->node.domain, &attr, &srx, &c) == -FI_EINVAL,
		   "a context that is too short");
	c.size++;
	automatic.automatic = true;
	node_open_av(s, &n, &automatic);
	side_check(s, fi_srx_context(n.domain, &attr, &srx, &c) == -FI_EINVAL,
		   "a thread that would ask by itself");
	node_close(s, &n);
	order_send(s, 0, 0);
	owner_close(s, &o);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		{.name = "expected", .run = {expected_run, plain_run}},
		{.name = "unexpected", .run = {unexpected_run, plain_run}},
		{.name = "an owner without memory", .run = {memory_run, plain_run}},
		{.name = "a sender that is known later",
		 .run = {stranger_run, plain_run}},
		{.name = "discarded", .run = {discard_run, plain_run}},
		{.name = "truncated", .run = {truncate_run, obey}},
		{.name = "multi-receive", .run = {multi_run, obey}},
		{.name = "both ways", .run = {both_run, obey}},
		{.name = "a sender leaves", .run = {left_run, leave_run}},
		{.name = "an endpoint is closed", .run = {closed_run, obey}},
		{.name = "refused", .run = {refused_run, obey}},
	};

	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}

#else

int main(void)
{
	printf("1..0 # SKIP the peer interface needs libfabric 2.0\n");
	return 0;
}

#endif
