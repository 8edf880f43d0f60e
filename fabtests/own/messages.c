/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages as the man pages promise them: every size, tagged or not, expected or not, in
 * pieces, injected, with data, to oneself; in order; their completions exactly.
 */
#include "config.h"

#include "fabtests/own/util.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define TAG 0x1122334455667788ull

struct shape {
	bool tagged;
	bool unexpected; /* received after it was sent */
	bool pieces;	 /* in four pieces on both sides */
};

static int pieces_cut(struct iovec iov[4], void *buf, size_t len)
{
	size_t done = 0;

	if (len < 4) {
		iov[0] = (struct iovec){buf, len};
		return 1;
	}
	for (int i = 0; i < 4; i++) {
		size_t n = i == 3 ? len - done : len / (size_t)(5 - i) + (size_t)i % 2;

		iov[i] = (struct iovec){(char *)buf + done, n};
		done += n;
	}
	return 4;
}

static ssize_t shape_post(struct side *s, const struct shape *h, bool send, void *buf,
			  size_t len, void *context)
{
	struct node *n = &s->node;
	struct iovec iov[4];
	int count = 0;

	if (h->pieces)
		count = pieces_cut(iov, buf, len);
	if (send && h->tagged)
		return count ? fi_tsendv(n->ep, iov, NULL, (size_t)count, n->peer, TAG,
					 context)
			     : fi_tsend(n->ep, buf, len, NULL, n->peer, TAG, context);
	if (send)
		return count ? fi_sendv(n->ep, iov, NULL, (size_t)count, n->peer, context)
			     : fi_send(n->ep, buf, len, NULL, n->peer, context);
	if (h->tagged)
		return count ? fi_trecvv(n->ep, iov, NULL, (size_t)count, FI_ADDR_UNSPEC,
					 TAG, 0, context)
			     : fi_trecv(n->ep, buf, len, NULL, FI_ADDR_UNSPEC, TAG, 0,
					context);
	return count ? fi_recvv(n->ep, iov, NULL, (size_t)count, FI_ADDR_UNSPEC, context)
		     : fi_recv(n->ep, buf, len, NULL, FI_ADDR_UNSPEC, context);
}

static void shape_send(struct side *s)
{
	const struct shape *h = s->arg;
	uint64_t kind = h->tagged ? FI_TAGGED : FI_MSG;
	uint8_t *buf = mem_new(SIZE_MOST);
	struct done d;

	node_open(s, &(struct want){0});
	for (size_t i = 0; i < sizes_count; i++) {
		mem_fill(buf, sizes_all[i], (uint32_t)i);
		if (!h->unexpected)
			side_meet(s);
		while (node_again(s, shape_post(s, h, true, buf, sizes_all[i], &d),
				  "send"))
			;
		if (h->unexpected)
			side_meet(s);
		node_expect(s, &d, kind | FI_SEND, &d);
		side_meet(s);
	}
	node_close(s, &s->node);
}

static void shape_recv(struct side *s)
{
	const struct shape *h = s->arg;
	uint64_t kind = h->tagged ? FI_TAGGED : FI_MSG;
	uint8_t *buf = mem_new(SIZE_MOST);
	struct done d;

	node_open(s, &(struct want){0});
	for (size_t i = 0; i < sizes_count; i++) {
		size_t len = sizes_all[i];

		memset(buf, 0, len);
		if (h->unexpected) {
			side_meet(s);
			node_quiet(s, 5);
		}
		while (node_again(s, shape_post(s, h, false, buf, len, &d), "recv"))
			;
		if (!h->unexpected)
			side_meet(s);
		node_expect(s, &d, kind | FI_RECV, &d);
		side_check_u64(s, d.e.len, len, "length received");
		if (h->tagged)
			side_check_u64(s, d.e.tag, TAG, "tag received");
		mem_check(s, buf, len, (uint32_t)i, "message");
		side_meet(s);
	}
	node_close(s, &s->node);
}

/* ---- inject and remote data */

struct small {
	bool tagged, data, inject;
};

static ssize_t small_send(struct side *s, const struct small *m, const void *buf,
			  size_t len, uint64_t data, void *context)
{
	struct node *n = &s->node;

	if (m->inject && m->data)
		return m->tagged ? fi_tinjectdata(n->ep, buf, len, data, n->peer, TAG)
				 : fi_injectdata(n->ep, buf, len, data, n->peer);
	if (m->inject)
		return m->tagged ? fi_tinject(n->ep, buf, len, n->peer, TAG)
				 : fi_inject(n->ep, buf, len, n->peer);
	return m->tagged
		       ? fi_tsenddata(n->ep, buf, len, NULL, data, n->peer, TAG, context)
		       : fi_senddata(n->ep, buf, len, NULL, data, n->peer, context);
}

/* The sizes to use: up to what can be injected, or anything. */
static size_t small_size(struct side *s, const struct small *m, int i)
{
	const size_t most = s->node.info->tx_attr->inject_size;
	const size_t injected[] = {0, 1, 8, most / 2, most, most};
	const size_t other[] = {0, 1, 4096, 65537, (1u << 20) + 3, 8};

	return m->inject ? injected[i] : other[i];
}

static void small_sender(struct side *s)
{
	const struct small *m = s->arg;
	uint64_t kind = m->tagged ? FI_TAGGED : FI_MSG, most;
	uint8_t *buf = mem_new(SIZE_MOST);
	struct done d;

	node_open(s, &(struct want){0});
	most = s->node.info->tx_attr->inject_size;
	side_tell(s, &most, sizeof(most));
	for (int i = 0; i < 6; i++) {
		size_t len = small_size(s, m, i);

		mem_fill(buf, len, (uint32_t)i);
		while (node_again(s, small_send(s, m, buf, len, TAG + (uint64_t)i, &d),
				  "send"))
			;
		if (m->inject) /* the buffer is ours again at once */
			memset(buf, 0x11, len);
		else
			node_expect(s, &d, kind | FI_SEND, &d);
	}
	side_meet(s);
	node_quiet(s, 5);
	node_close(s, &s->node);
}

static void small_receiver(struct side *s)
{
	const struct small *m = s->arg;
	uint64_t flags = (m->tagged ? FI_TAGGED : FI_MSG) | FI_RECV |
			 (m->data ? FI_REMOTE_CQ_DATA : 0);
	struct shape h = {.tagged = m->tagged};
	uint8_t *buf = mem_new(SIZE_MOST);
	struct done d;
	uint64_t most;

	node_open(s, &(struct want){0});
	side_hear(s, &most, sizeof(most));
	for (int i = 0; i < 6; i++) {
		while (node_again(s, shape_post(s, &h, false, buf, SIZE_MOST, &d),
				  "recv"))
			;
		node_expect(s, &d, flags, &d);
		side_check_u64(s, d.e.len, small_size(s, m, i), "length received");
		if (m->data)
			side_check_u64(s, d.e.data, TAG + (uint64_t)i, "remote data");
		mem_check(s, buf, d.e.len, (uint32_t)i, "message");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* FI_INJECT in a message call: the buffer is ours at once, and there is a completion. */
static void inject_flag_sender(struct side *s)
{
	uint8_t buf[64];
	struct iovec iov = {buf, sizeof(buf)};
	struct done d;
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &d, .data = TAG};

	node_open(s, &(struct want){0});
	msg.addr = s->node.peer;
	for (uint32_t i = 0; i < 10; i++) {
		mem_fill(buf, sizeof(buf), i);
		while (node_again(
			s, fi_sendmsg(s->node.ep, &msg, FI_INJECT | FI_REMOTE_CQ_DATA),
			"fi_sendmsg"))
			;
		memset(buf, 0, sizeof(buf));
		node_expect(s, &d, FI_MSG | FI_SEND, &d);
	}
	side_meet(s);
	node_close(s, &s->node);
}

static void inject_flag_receiver(struct side *s)
{
	uint8_t buf[64];
	struct done d;

	node_open(s, &(struct want){0});
	for (uint32_t i = 0; i < 10; i++) {
		while (node_again(
			s,
			fi_recv(s->node.ep, buf, sizeof(buf), NULL, FI_ADDR_UNSPEC, &d),
			"fi_recv"))
			;
		node_expect(s, &d, FI_MSG | FI_RECV | FI_REMOTE_CQ_DATA, &d);
		side_check_u64(s, d.e.data, TAG, "remote data");
		mem_check(s, buf, sizeof(buf), i, "message");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- order */

#define ORDER_COUNT 48
#define ORDER_LONG  ((256u << 10) + 1)

/* Small and large ones in turn: they take different ways. */
static size_t order_size(int i)
{
	return i % 3 == 0 ? ORDER_LONG : i % 3 == 1 ? 8 : 5000;
}

static void order_sender(struct side *s)
{
	uint8_t *buf = mem_new(ORDER_COUNT * ORDER_LONG);
	struct done d;
	int done = 0;

	node_open(s, &(struct want){.msg_order = FI_ORDER_SAS});
	for (int i = 0; i < ORDER_COUNT; i++) {
		uint8_t *p = buf + (size_t)i * ORDER_LONG;

		mem_fill(p, order_size(i), (uint32_t)i);
		while (node_again(
			s, fi_send(s->node.ep, p, order_size(i), NULL, s->node.peer, p),
			"fi_send"))
			;
	}
	side_meet(s); /* the other side posts its receives now, or long ago */
	for (; done < ORDER_COUNT && node_next(s, &d, WAIT_MS); done++)
		side_check_u64(s, (uint64_t)d.err, 0, "error of a send");
	side_check_u64(s, (uint64_t)done, ORDER_COUNT, "sends completed");
	side_meet(s);
	node_close(s, &s->node);
}

static void order_receiver(struct side *s)
{
	const bool *early = s->arg;
	uint8_t *buf = mem_new(ORDER_COUNT * ORDER_LONG);
	struct done d;
	int done = 0;

	node_open(s, &(struct want){.msg_order = FI_ORDER_SAS});
	if (!*early)
		side_meet(s);
	for (int i = 0; i < ORDER_COUNT; i++) {
		uint8_t *p = buf + (size_t)i * ORDER_LONG;

		while (node_again(
			s, fi_recv(s->node.ep, p, ORDER_LONG, NULL, FI_ADDR_UNSPEC, p),
			"fi_recv"))
			;
	}
	if (*early)
		side_meet(s);
	for (; done < ORDER_COUNT && node_next(s, &d, WAIT_MS); done++) {
		int i = (int)((size_t)((uint8_t *)d.e.op_context - buf) / ORDER_LONG);

		side_check_u64(s, (uint64_t)d.err, 0, "error of a receive");
		side_check_u64(s, d.e.len, order_size(i), "length of the i-th message");
		mem_check(s, d.e.op_context, order_size(i), (uint32_t)i, "i-th message");
	}
	side_check_u64(s, (uint64_t)done, ORDER_COUNT, "receives completed");
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- many unexpected messages */

#define FLOOD_COUNT 2000

static size_t flood_size(uint32_t i)
{
	return i * 37 % 4100;
}

static void flood_sender(struct side *s)
{
	uint8_t *buf = mem_new((size_t)FLOOD_COUNT * 4100);
	struct done d;
	uint32_t done = 0;

	node_open(s, &(struct want){0});
	for (uint32_t i = 0; i < FLOOD_COUNT; i++) {
		uint8_t *p = buf + (size_t)i * 4100;
		uint64_t end = now_ms() + 2 * WAIT_MS;
		ssize_t rc;

		mem_fill(p, flood_size(i), i);
		while ((rc = fi_tsend(s->node.ep, p, flood_size(i), NULL, s->node.peer, i,
				      p)) == -FI_EAGAIN) {
			if (now_ms() > end)
				side_die(s, "-FI_EAGAIN for ever at message %u", i);
			while (node_next(s, &d, 0))
				done += side_check(s, !d.err, "error %d of a send",
						   d.err);
		}
		side_must(s, rc, "fi_tsend");
	}
	for (; done < FLOOD_COUNT && node_next(s, &d, 2 * WAIT_MS); done++)
		side_check(s, !d.err, "error %d of a send", d.err);
	side_check_u64(s, done, FLOOD_COUNT, "sends completed");
	side_meet(s);
	node_close(s, &s->node);
}

static void flood_receiver(struct side *s)
{
	uint8_t buf[4100];
	struct done d;

	node_open(s, &(struct want){0});
	node_quiet(s, 400);
	for (uint32_t i = 0; i < FLOOD_COUNT && !s->failed; i++) {
		/* Any tag: so they come in the order in which they were sent. */
		while (node_again(s,
				  fi_trecv(s->node.ep, buf, sizeof(buf), NULL,
					   FI_ADDR_UNSPEC, 0, UINT64_MAX, &d),
				  "fi_trecv"))
			;
		node_expect(s, &d, FI_TAGGED | FI_RECV, &d);
		side_check_u64(s, d.e.tag, i, "tag");
		side_check_u64(s, d.e.len, flood_size(i), "length");
		mem_check(s, buf, flood_size(i), i, "message");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- to oneself */

/* Both completions, in either order. */
static void self_both(struct side *s, void *tx, void *rx, uint64_t kind, size_t len)
{
	for (int i = 0; i < 2; i++) {
		struct done d;

		if (!node_next(s, &d, WAIT_MS))
			side_die(s, "no completion of a message to oneself, %zu bytes",
				 len);
		side_check_u64(s, (uint64_t)d.err, 0, "error");
		side_check_u64(s, d.e.flags,
			       kind | (d.e.op_context == tx ? FI_SEND : FI_RECV),
			       "flags");
		if (d.e.op_context == rx)
			side_check_u64(s, d.e.len, len, "length");
		else
			side_check(s, d.e.op_context == tx, "a strange context");
	}
}

static void self_run(struct side *s)
{
	uint8_t *out = mem_new(SIZE_MOST), *in = mem_new(SIZE_MOST);
	int tx, rx;

	node_open(s, &(struct want){0});
	s->node.peer = s->node.self;
	for (size_t i = 0; s->role == 0 && i < 4 * sizes_count; i++) {
		size_t len = sizes_all[i / 4];
		struct shape h = {.tagged = i & 1, .unexpected = i & 2};

		mem_fill(out, len, (uint32_t)i);
		memset(in, 0, len);
		if (!h.unexpected)
			while (node_again(s, shape_post(s, &h, false, in, len, &rx),
					  "recv"))
				;
		while (node_again(s, shape_post(s, &h, true, out, len, &tx), "send"))
			;
		if (h.unexpected) {
			node_progress(&s->node);
			while (node_again(s, shape_post(s, &h, false, in, len, &rx),
					  "recv"))
				;
		}
		self_both(s, &tx, &rx, h.tagged ? FI_TAGGED : FI_MSG, len);
		mem_check(s, in, len, (uint32_t)i, "message to oneself");
	}
	side_meet(s);
	node_close(s, &s->node);
}

/* ---- which completions there are */

static void selective_sender(struct side *s)
{
	uint8_t buf[16];
	struct iovec iov = {buf, sizeof(buf)};
	struct done d;
	struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .context = &d};

	node_open(s, &(struct want){.selective = true, .counters = true});
	mem_fill(buf, sizeof(buf), 1);
	msg.addr = s->node.peer;
	while (node_again(s,
			  fi_send(s->node.ep, buf, sizeof(buf), NULL, s->node.peer, buf),
			  "fi_send"))
		;
	while (node_again(s, fi_sendmsg(s->node.ep, &msg, 0), "fi_sendmsg"))
		;
	while (node_again(s, fi_sendmsg(s->node.ep, &msg, FI_COMPLETION), "fi_sendmsg"))
		;
	node_expect(s, &d, FI_MSG | FI_SEND, &d);
	side_meet(s);
	node_quiet(s, 20);
	side_check_u64(s, fi_cntr_read(s->node.tx_cntr), 3, "sends counted");
	side_meet(s);
	node_close(s, &s->node);
}

static void selective_receiver(struct side *s)
{
	uint8_t buf[3][16];
	struct iovec iov = {buf[2], sizeof(buf[2])};
	struct done d;
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = &d, .addr = FI_ADDR_UNSPEC};

	node_open(s, &(struct want){.selective = true, .counters = true});
	for (int i = 0; i < 2; i++)
		while (node_again(
			s, fi_recv(s->node.ep, buf[i], 16, NULL, FI_ADDR_UNSPEC, buf[i]),
			"fi_recv"))
			;
	while (node_again(s, fi_recvmsg(s->node.ep, &msg, FI_COMPLETION), "fi_recvmsg"))
		;
	node_expect(s, &d, FI_MSG | FI_RECV, &d);
	side_meet(s);
	node_quiet(s, 20);
	for (int i = 0; i < 3; i++)
		mem_check(s, buf[i], sizeof(buf[i]), 1, "message without a completion");
	side_check_u64(s, fi_cntr_read(s->node.rx_cntr), 3, "receives counted");
	side_meet(s);
	node_close(s, &s->node);
}

/* The receive buffers are shared with the sender, which looks when it is told "done". */
static uint8_t *delivered;

static void delivery_sender(struct side *s)
{
	uint8_t *buf = mem_new(SIZE_MOST);
	struct done d;

	node_open(s, &(struct want){.tx_op_flags = FI_DELIVERY_COMPLETE});
	for (size_t i = 0; i < sizes_count; i++) {
		mem_fill(buf, sizes_all[i], (uint32_t)i);
		side_meet(s);
		while (node_again(
			s, fi_send(s->node.ep, buf, sizes_all[i], NULL, s->node.peer, &d),
			"fi_send"))
			;
		node_expect(s, &d, FI_MSG | FI_SEND, &d);
		mem_check(s, delivered, sizes_all[i], (uint32_t)i, "what was delivered");
		side_meet(s);
	}
	node_close(s, &s->node);
}

static void delivery_receiver(struct side *s)
{
	struct done d;

	node_open(s, &(struct want){.tx_op_flags = FI_DELIVERY_COMPLETE});
	for (size_t i = 0; i < sizes_count; i++) {
		memset(delivered, 0, sizes_all[i]);
		while (node_again(s,
				  fi_recv(s->node.ep, delivered, sizes_all[i], NULL,
					  FI_ADDR_UNSPEC, &d),
				  "fi_recv"))
			;
		side_meet(s);
		sleep_ms(10); /* a sender that is too early finds nothing here */
		node_expect(s, &d, FI_MSG | FI_RECV, &d);
		side_meet(s);
	}
	node_close(s, &s->node);
}

#define SHAPE(name_, ...)                                       \
	{                                                       \
		.name = name_, .run = {shape_send, shape_recv}, \
		.arg = &(const struct shape){__VA_ARGS__},      \
	}
#define SMALL(name_, ...)                                             \
	{                                                             \
		.name = name_, .run = {small_sender, small_receiver}, \
		.arg = &(const struct small){__VA_ARGS__},            \
	}

static const bool yes = true, no = false;

static const struct test_case cases[] = {
	SHAPE("untagged, expected", .tagged = false),
	SHAPE("tagged, expected", .tagged = true),
	SHAPE("untagged, unexpected", .unexpected = true),
	SHAPE("tagged, unexpected", .tagged = true, .unexpected = true),
	SHAPE("untagged, expected, in pieces", .pieces = true),
	SHAPE("tagged, expected, in pieces", .tagged = true, .pieces = true),
	SHAPE("untagged, unexpected, in pieces", .unexpected = true, .pieces = true),
	SHAPE("tagged, unexpected, in pieces", .tagged = true, .unexpected = true,
	      .pieces = true),
	SMALL("inject", .inject = true),
	SMALL("inject, tagged", .inject = true, .tagged = true),
	SMALL("inject with data", .inject = true, .data = true),
	SMALL("inject with data, tagged", .inject = true, .data = true, .tagged = true),
	SMALL("send with data", .data = true),
	SMALL("send with data, tagged", .data = true, .tagged = true),
	{.name = "FI_INJECT and FI_REMOTE_CQ_DATA as flags",
	 .run = {inject_flag_sender, inject_flag_receiver}},
	{.name = "order, receives posted first",
	 .run = {order_sender, order_receiver},
	 .arg = &yes},
	{.name = "order, receives posted later",
	 .run = {order_sender, order_receiver},
	 .arg = &no},
	{.name = "2000 unexpected messages, complete and in order",
	 .run = {flood_sender, flood_receiver}},
	{.name = "to oneself", .run = {self_run, self_run}},
	{.name = "selective completion", .run = {selective_sender, selective_receiver}},
	{.name = "delivery complete", .run = {delivery_sender, delivery_receiver}},
};

int main(int argc, char **argv)
{
	test_init(argc, argv);
	delivered = mem_new_shared(SIZE_MOST);
	cases_run(cases, ARRAY_LEN(cases), "");
	return test_done();
}
