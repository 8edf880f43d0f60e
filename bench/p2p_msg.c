/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tagged messages: ping-pong, and a stream in windows that are acknowledged. Sends that
 * the provider can inject are injected in the ping-pong, as fabtests does it; in the
 * stream every send and every receive has a completion, read in batches.
 */
#include "config.h"

#include <sys/resource.h>

#include "bench/p2p.h"

enum {
	TAG_DATA = 1,
	TAG_ACK = 2,
	ACK_BYTES = 8,
	AHEAD = 2,	   /* windows under way */
	WINDOW_SMALL = 64, /* messages, up to 64 KiB each */
	WINDOW_LARGE = 16,
	SMALL = 64 << 10,
};

static void recv_post(struct p2p *p, size_t size, uint64_t tag)
{
	struct node *n = &p->node;

	while (node_again(
		n, fi_trecv(n->ep, p->in, size, p->region.desc, n->peer, tag, 0, NULL),
		"fi_trecv"))
		;
}

static void send_post(struct p2p *p, size_t size, uint64_t tag)
{
	struct node *n = &p->node;

	while (node_again(
		n, fi_tsend(n->ep, p->out, size, p->region.desc, n->peer, tag, NULL),
		"fi_tsend"))
		;
}

static void inject_post(struct p2p *p, size_t size, uint64_t tag)
{
	struct node *n = &p->node;

	while (node_again(n, fi_tinject(n->ep, p->out, size, n->peer, tag), "fi_tinject"))
		;
}

uint64_t p2p_msg_latency(struct p2p *p, size_t size, uint64_t count)
{
	struct node *n = &p->node;
	bool inject = size <= n->info->tx_attr->inject_size;
	uint64_t tx = n->tx_done, rx = n->rx_done, begin;

	recv_post(p, size, TAG_DATA);
	pair_meet(p->pair);
	begin = bench_now_ns();
	for (uint64_t i = 0; i < count; i++) {
		if (p->pair->role == 1) {
			node_await_rx(n, rx + i + 1);
			if (i + 1 < count)
				recv_post(p, size, TAG_DATA);
		}
		p2p_lap_begin(p);
		if (inject)
			inject_post(p, size, TAG_DATA);
		else
			send_post(p, size, TAG_DATA);
		if (p->pair->role == 0) {
			node_await_rx(n, rx + i + 1);
			p2p_lap_end(p, i);
			if (i + 1 < count)
				recv_post(p, size, TAG_DATA);
		}
	}
	begin = bench_now_ns() - begin;
	if (!inject)
		node_await_tx(n, tx + count);
	pair_meet(p->pair);
	return begin;
}

uint64_t p2p_msg_window(size_t size)
{
	return size <= SMALL ? WINDOW_SMALL : WINDOW_LARGE;
}

static uint64_t processor_ns(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* What a stream costs this process, waiting for the other at its ends not counted. */
static void effort_begin(struct p2p *p)
{
	pair_meet(p->pair);
	p->effort = p->node.sleeps ? processor_ns() : 0;
}

static void effort_end(struct p2p *p)
{
	p->effort = p->node.sleeps ? processor_ns() - p->effort : 0;
}

/* Sends all windows, at most AHEAD of what is acknowledged; returns when all are. */
static void stream_send(struct p2p *p, size_t size, uint64_t windows, uint64_t window)
{
	struct node *n = &p->node;
	uint64_t tx = n->tx_done, rx = n->rx_done, acks = 0;

	for (; acks < windows && acks < AHEAD; acks++)
		recv_post(p, ACK_BYTES, TAG_ACK);
	effort_begin(p);
	for (uint64_t w = 0; w < windows; w++) {
		if (w >= AHEAD) {
			node_await_rx(n, rx + w - AHEAD + 1);
			if (acks++ < windows)
				recv_post(p, ACK_BYTES, TAG_ACK);
		}
		for (uint64_t i = 0; i < window; i++)
			send_post(p, size, TAG_DATA);
		node_poll(n);
	}
	node_await_rx(n, rx + windows);
	node_await_tx(n, tx + windows * window);
	effort_end(p);
}

static void stream_receive(struct p2p *p, size_t size, uint64_t windows, uint64_t window)
{
	struct node *n = &p->node;
	uint64_t tx = n->tx_done, rx = n->rx_done;

	for (uint64_t i = 0; i < window * (windows < AHEAD ? windows : AHEAD); i++)
		recv_post(p, size, TAG_DATA);
	effort_begin(p);
	for (uint64_t w = 0; w < windows; w++) {
		node_await_rx(n, rx + (w + 1) * window);
		for (uint64_t i = 0; i < window && w + AHEAD < windows; i++)
			recv_post(p, size, TAG_DATA);
		send_post(p, ACK_BYTES, TAG_ACK);
	}
	node_await_tx(n, tx + windows);
	effort_end(p);
}

uint64_t p2p_msg_stream(struct p2p *p, size_t size, uint64_t count)
{
	uint64_t window = p2p_msg_window(size), windows = count / window, begin;

	/* Role 0 posts two small receives first: a few hundred ns of the whole. */
	begin = bench_now_ns();
	if (p->pair->role == 0)
		stream_send(p, size, windows, window);
	else
		stream_receive(p, size, windows, window);
	begin = bench_now_ns() - begin;
	pair_meet(p->pair);
	return begin;
}

uint64_t p2p_msg_effort(struct p2p *p, size_t size, uint64_t count)
{
	uint64_t other;

	p2p_msg_stream(p, size, count);
	pair_exchange(p->pair, &p->effort, &other, sizeof(other));
	return p->effort + other;
}
