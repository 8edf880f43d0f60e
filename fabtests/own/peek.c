/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_trecvmsg with FI_PEEK, FI_CLAIM and FI_DISCARD: what is found is what was sent, for
 * small messages and for announced ones; nothing else sees a claimed message; a sender
 * whose message is dropped is told that it is done.
 *
 * Role 0 looks and receives; role 1 sends what it is told to.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 8
#define LONG  ((1u << 20) + 5)
#define DATA  0x123456789abcdef0ull

static const size_t lengths[] = {0, SMALL, 8192, 8193, LONG};

static const struct want want_source = {
	.caps = FI_MSG | FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV, .counters = true};

/* ---- the sender */

struct order {
	uint64_t tag;
	uint64_t flags; /* of fi_tsendmsg */
	uint32_t len;
	uint32_t seed; /* 0: no more */
};

static void sender_run(struct side *s)
{
	uint32_t count = 0, complete = 0;
	struct order o;
	struct done d;

	node_open(s, &want_source);
	for (;;) {
		side_hear(s, &o, sizeof(o));
		if (!o.seed)
			break;
		struct iovec iov = {mem_new(o.len + 1), o.len};
		struct fi_msg_tagged msg = {.msg_iov = &iov,
					    .iov_count = 1,
					    .addr = s->node.peer,
					    .tag = o.tag,
					    .data = DATA,
					    .context = s};

		count++; /* its memory goes with the process */
		mem_fill(iov.iov_base, o.len, o.seed);
		while (node_again(s, fi_tsendmsg(s->node.ep, &msg, o.flags),
				  "fi_tsendmsg"))
			;
		side_tell(s, &o.seed, 1);
	}
	while (complete < count) {
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "%u of %u sends are complete", complete, count);
		side_check(s, d.err == 0, "a send failed: %s", fi_strerror(d.err));
		complete++;
	}
	side_meet(s);
	node_close(s, &s->node);
}

static void order_send(struct side *s, uint64_t tag, size_t len, uint32_t seed,
		       uint64_t flags)
{
	struct order o = {.tag = tag, .len = (uint32_t)len, .seed = seed, .flags = flags};
	uint8_t ok;

	side_tell(s, &o, sizeof(o));
	side_hear(s, &ok, 1);
}

/* All sends must be complete, so whatever was to be received or dropped was. */
static void order_end(struct side *s)
{
	struct order o = {0};

	side_tell(s, &o, sizeof(o));
	node_quiet(s, 20);
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- the one who looks */

static ssize_t look_post(struct side *s, fi_addr_t from, uint64_t tag, uint64_t ignore,
			 uint64_t flags, void *context)
{
	struct fi_msg_tagged msg = {
		.addr = from, .tag = tag, .ignore = ignore, .context = context};

	return fi_trecvmsg(s->node.ep, &msg, flags);
}

/* One look; true when something was found, which is in d. */
static bool look(struct side *s, struct done *d, fi_addr_t from, uint64_t tag,
		 uint64_t ignore, uint64_t flags, void *context)
{
	side_must(s, look_post(s, from, tag, ignore, flags, context), "fi_trecvmsg");
	if (!node_next(s, d, WAIT_MS))
		side_die(s, "a peek reported nothing");
	side_check(s, d->e.op_context == context, "context of a peek");
	side_check(s, d->e.flags & FI_TAGGED && d->e.flags & FI_RECV, "flags of a peek");
	if (d->err && d->err != FI_ENOMSG)
		side_die(s, "a peek failed: %s", fi_strerror(d->err));
	return !d->err;
}

/* Until it has arrived. */
static void look_for(struct side *s, struct done *d, uint64_t tag, uint64_t flags,
		     void *context)
{
	uint64_t end = now_ms() + WAIT_MS;

	while (!look(s, d, FI_ADDR_UNSPEC, tag, 0, flags, context)) {
		if (now_ms() > end)
			side_die(s, "tag 0x%llx never arrives", (unsigned long long)tag);
		sched_yield();
	}
}

static void found_check(struct side *s, const struct done *d, uint64_t tag, size_t len,
			bool data)
{
	side_check_u64(s, d->e.tag, tag, "tag");
	side_check_u64(s, d->e.len, len, "length");
	side_check_u64(s, d->e.data, data ? DATA : 0, "data");
	side_check_u64(s, d->e.flags,
		       FI_TAGGED | FI_RECV | (data ? FI_REMOTE_CQ_DATA : 0), "flags");
	side_check_u64(s, d->src, s->node.peer, "source");
	side_check(s, d->e.buf == NULL, "a buffer where none was given");
}

/* Receives by fi_trecvmsg with these flags, and looks at the bytes. */
static void take(struct side *s, uint64_t tag, uint64_t flags, void *context, size_t len,
		 uint32_t seed)
{
	uint8_t *in = mem_new(len + 1);
	struct iovec iov = {in, len};
	struct fi_msg_tagged msg = {.msg_iov = &iov,
				    .iov_count = 1,
				    .addr = FI_ADDR_UNSPEC,
				    .tag = tag,
				    .context = context};
	struct done d;

	side_must(s, fi_trecvmsg(s->node.ep, &msg, flags), "fi_trecvmsg");
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "nothing received");
	side_check(s, d.err == 0 && d.e.op_context == context, "received: %s",
		   fi_strerror(d.err));
	side_check_u64(s, d.e.len, len, "length");
	side_check_u64(s, d.e.tag, tag, "tag");
	mem_check(s, in, len, seed, "message");
	side_check(s, in[len] == 0xee, "written behind the buffer");
	mem_free(in, len + 1);
}

/* ---- cases */

static void peek_run(struct side *s)
{
	struct fi_context c[2];
	struct done d;
	int n = (int)ARRAY_LEN(lengths);

	node_open(s, &want_source);
	side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 1, 0, FI_PEEK, &c[0]), "found");
	side_check_u64(s, d.e.tag, 1, "tag of nothing");
	side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 1, 0, FI_PEEK | FI_CLAIM, &c[0]),
		   "claimed");
	side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 1, 0, FI_PEEK | FI_DISCARD, &c[0]),
		   "discarded");
	for (int i = 0; i < n; i++) {
		uint64_t tag = 10 + (uint64_t)i;

		order_send(s, tag, lengths[i], 1 + (uint32_t)i,
			   i % 2 ? FI_REMOTE_CQ_DATA : 0);
		look_for(s, &d, tag, FI_PEEK | (i % 2 ? FI_COMPLETION : 0), &c[0]);
		found_check(s, &d, tag, lengths[i], i % 2);
		look_for(s, &d, tag, FI_PEEK, &c[1]);
		found_check(s, &d, tag, lengths[i], i % 2);
	}
	side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 9, 0, FI_PEEK, &c[0]), "a wrong tag");
	side_check(s, !look(s, &d, s->node.self, 10, 0, FI_PEEK, &c[0]), "from myself");
	side_check(s, look(s, &d, s->node.peer, 10, 0, FI_PEEK, &c[0]), "from the peer");
	side_check(s, look(s, &d, FI_ADDR_UNSPEC, 0, 0xff, FI_PEEK, &c[0]), "any tag");
	side_check_u64(s, d.e.tag, 10, "any tag: the first");
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), 0, "peeks that were counted");
	/* They are all where they were. */
	for (int i = n - 1; i >= 0; i--)
		take(s, 10 + (uint64_t)i, 0, &c[0], lengths[i], 1 + (uint32_t)i);
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), (uint64_t)n, "receives");
	order_end(s);
}

static void claim_run(struct side *s)
{
	struct fi_context c[ARRAY_LEN(lengths)], other = {0};
	int n = (int)ARRAY_LEN(lengths);
	struct done d;

	node_open(s, &want_source);
	for (int i = 0; i < n; i++) {
		order_send(s, 5, lengths[i], 1 + (uint32_t)i, 0);
		order_send(s, 5, lengths[i], 50 + (uint32_t)i, 0);
		look_for(s, &d, 5, FI_PEEK | FI_CLAIM, &c[i]);
		found_check(s, &d, 5, lengths[i], false);
		/* What is not claimed is received, also by a mask, and the claimed one
		 * is found by nobody. */
		look_for(s, &d, 5, FI_PEEK, &other);
		take(s, 5, 0, &other, lengths[i], 50 + (uint32_t)i);
		side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 0, ~0ull, FI_PEEK, &other),
			   "a claimed message was found");
	}
	side_check(s, look_post(s, 0, 5, 0, FI_CLAIM, &other) == -FI_EINVAL,
		   "a context without a message");
	side_check(s, look_post(s, 0, 5, 0, FI_PEEK | FI_CLAIM, NULL) == -FI_EINVAL,
		   "no context");
	side_check(s, look_post(s, 0, 5, 0, FI_DISCARD, &other) == -FI_EINVAL,
		   "FI_DISCARD alone");
	for (int i = n - 1; i >= 0; i--)
		take(s, 5, FI_CLAIM, &c[i], lengths[i], 1 + (uint32_t)i);
	side_check(s, look_post(s, 0, 5, 0, FI_CLAIM, &c[0]) == -FI_EINVAL, "twice");
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), (uint64_t)n * 2, "receives");
	order_end(s);
}

/* The buffer is shorter than what was claimed. */
static void short_run(struct side *s)
{
	uint8_t *in = mem_new(LONG);
	struct fi_context c;
	struct done d;

	node_open(s, &want_source);
	for (int i = 0; i < 2; i++) {
		size_t len = i ? LONG : 100;
		struct iovec iov[2] = {{in, 3}, {in + 3, len - 10}};
		struct fi_msg_tagged msg = {
			.msg_iov = iov, .iov_count = 2, .tag = 5, .context = &c};

		order_send(s, 5, len, 3, 0);
		look_for(s, &d, 5, FI_PEEK | FI_CLAIM, &c);
		side_must(s, fi_trecvmsg(s->node.ep, &msg, FI_CLAIM), "FI_CLAIM");
		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "nothing received");
		side_check_u64(s, (uint64_t)d.err, FI_ETRUNC, "error");
		side_check_u64(s, d.olen, 7, "what did not fit");
		mem_check(s, in, len - 7, 3, "what did");
	}
	order_end(s);
	mem_free(in, LONG);
}

static void discard_run(struct side *s)
{
	struct fi_context c;
	struct done d;

	node_open(s, &want_source);
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		/* One send must be delivered: dropping it is that. */
		order_send(s, 5, lengths[i], 1, FI_DELIVERY_COMPLETE);
		order_send(s, 6, lengths[i], 2, FI_REMOTE_CQ_DATA);
		look_for(s, &d, 5, FI_PEEK | FI_DISCARD, &c);
		found_check(s, &d, 5, lengths[i], false);
		side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 5, 0, FI_PEEK, &c), "there");
		look_for(s, &d, 6, FI_PEEK | FI_CLAIM, &c);
		side_must(s, look_post(s, 0, 6, 0, FI_CLAIM | FI_DISCARD, &c), "drop");
		node_expect(s, &d, FI_TAGGED | FI_RECV | FI_REMOTE_CQ_DATA, &c);
		side_check(s, !look(s, &d, FI_ADDR_UNSPEC, 0, ~0ull, FI_PEEK, &c),
			   "something is left");
	}
	/* What was kept for them is free for others again. */
	order_send(s, 7, LONG, 9, 0);
	take(s, 7, 0, &c, LONG, 9);
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), 1, "receives");
	order_end(s);
}

/* A message is claimed, then its sender is gone. */
static void killer_run(struct side *s)
{
	struct fi_context c[3];
	uint8_t *in = mem_new(LONG);
	struct iovec iov = {in, LONG};
	struct fi_msg_tagged msg = {
		.msg_iov = &iov, .iov_count = 1, .tag = 5, .context = &c[0]};
	struct done d;

	node_open(s, &want_source);
	order_send(s, 5, LONG, 1, 0);
	order_send(s, 6, LONG, 1, 0);
	order_send(s, 7, SMALL, 1, 0);
	for (int i = 0; i < 3; i++)
		look_for(s, &d, 5 + (uint64_t)i, FI_PEEK | FI_CLAIM, &c[i]);
	kill(s->peer_pid, SIGKILL);
	node_quiet(s, 500);
	side_must(s, fi_trecvmsg(s->node.ep, &msg, FI_CLAIM), "FI_CLAIM");
	if (!node_next(s, &d, WAIT_MS))
		side_die(s, "no end of a receive whose sender is gone");
	side_check(s, d.err != 0, "received from a dead process");
	side_must(s, look_post(s, 0, 6, 0, FI_CLAIM | FI_DISCARD, &c[1]), "drop");
	node_expect(s, &d, FI_TAGGED | FI_RECV, &c[1]);
	take(s, 7, FI_CLAIM, &c[2], SMALL, 1);
	node_close(s, &s->node);
	mem_free(in, LONG);
}

static const struct test_case cases[] = {
	{.name = "peek", .run = {peek_run, sender_run}},
	{.name = "claim", .run = {claim_run, sender_run}},
	{.name = "claim, the buffer is short", .run = {short_run, sender_run}},
	{.name = "discard", .run = {discard_run, sender_run}},
	{.name = "claim, the sender dies",
	 .run = {killer_run, sender_run},
	 .killed = true},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	cases_run(cases, ARRAY_LEN(cases), "");
	if (!test_is_weft())
		return test_done();
	setenv("FI_WEFT_CMA", "0", 1);
	cases_run(cases, ARRAY_LEN(cases), ", FI_WEFT_CMA=0");
	return test_done();
}
