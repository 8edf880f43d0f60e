/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote writes: a ping-pong in which each side polls its memory for the other's value,
 * the time to a completion, and a stream. Providers differ in what they ask of a target
 * that only looks at its memory: p2p_write_probe finds out, and the target makes as few
 * libfabric calls as the provider allows.
 */
#include "config.h"

#include "bench/p2p.h"

enum {
	PROBE_MS = 20,	     /* for one write to land, or to be taken */
	PROBE_WRITES = 8192, /* more than any queue holds */
	POLL_SPINS = 4096, /* looks at memory between two calls, where none are needed */
	WINDOW = 16,
	CELL_BYTES = 8,
};

static uint64_t cell_load(struct p2p *p)
{
	return atomic_load_explicit(p->cell, memory_order_acquire);
}

/* Until the other's value is there. */
static void cell_await(struct p2p *p, uint64_t value)
{
	uint32_t spins = 0;

	/* While our own value is on its way there is time for it. */
	if (p->target_mode == P2P_TARGET_DRAINS)
		node_poll(&p->node);
	while (cell_load(p) != value) {
		if (p->target_mode == P2P_TARGET_CARRIES || ++spins % POLL_SPINS == 0)
			node_poll(&p->node);
	}
	p->node.idle = 0;
}

static void cell_write(struct p2p *p, uint64_t value)
{
	struct node *n = &p->node;

	*(uint64_t *)p->out = value;
	while (node_again(n,
			  fi_inject_write(n->ep, p->out, CELL_BYTES, n->peer,
					  p->target.addr + p->cell_offset, p->target.key),
			  "fi_inject_write"))
		;
}

const char *const p2p_target_text[P2P_TARGET_COUNT] = {
	[P2P_TARGET_CARRIES] = "in the target's calls",
	[P2P_TARGET_DRAINS] = "alone, but the target must go on reading its queue",
	[P2P_TARGET_RESTS] = "alone",
};

/* Role 1 waits for role 0's word; makes libfabric calls only where they are needed. */
static void target_wait(struct p2p *p, uint64_t word)
{
	uint32_t spins = 0;
	uint64_t since = 0;

	while (atomic_load_explicit(&p->pair->shared->word, memory_order_acquire) !=
	       word) {
		if (p->target_mode != P2P_TARGET_RESTS)
			node_poll(&p->node);
		pair_relax(&spins, &since);
	}
	p->node.idle = 0;
}

static void target_release(struct p2p *p, uint64_t word)
{
	atomic_store_explicit(&p->pair->shared->word, word, memory_order_release);
}

/* In role 1: whether the last value lands without a call of ours; ends when it has. */
static bool probe_lands(struct p2p *p)
{
	uint64_t end = bench_now_ns() + (uint64_t)PROBE_MS * 1000000;
	bool alone = false;

	while (!alone && bench_now_ns() < end)
		alone = cell_load(p) == p->polled;
	cell_await(p, p->polled);
	return alone;
}

/* In role 0, while role 1 makes no call: whether writes are taken without end. */
static bool probe_flows(struct p2p *p)
{
	struct node *n = &p->node;
	uint64_t end = 0;

	for (int i = 0; i < PROBE_WRITES; i++) {
		while (node_again(n,
				  fi_inject_write(n->ep, p->out, CELL_BYTES, n->peer,
						  p->target.addr + p->quiet_offset,
						  p->target.key),
				  "fi_inject_write")) {
			if (end == 0)
				end = bench_now_ns() + (uint64_t)PROBE_MS * 1000000;
			else if (bench_now_ns() > end)
				return false;
		}
		end = 0;
	}
	return true;
}

void p2p_write_probe(struct p2p *p)
{
	_Atomic uint64_t *word = &p->pair->shared->word;
	void (*meanwhile)(void *) = p->pair->meanwhile;
	bool alone, flows;

	/* Connections and keys first: those may well need the target. */
	p->target_mode = P2P_TARGET_CARRIES;
	p2p_write_polled(p, CELL_BYTES, 4);
	p->polled++;
	if (p->pair->role == 0) {
		cell_write(p, p->polled);
		node_poll(&p->node);
	}
	/* No call of role 1's until it has seen. */
	if (p->pair->role == 1)
		p->pair->meanwhile = NULL;
	pair_meet(p->pair);
	if (p->pair->role == 1)
		atomic_store(word, probe_lands(p));
	p->pair->meanwhile = meanwhile;
	pair_meet(p->pair);
	alone = atomic_load(word) != 0;
	flows = pair_tell(p->pair, p->pair->role == 0 && alone && probe_flows(p));
	if (alone)
		p->target_mode = flows ? P2P_TARGET_RESTS : P2P_TARGET_DRAINS;
}

uint64_t p2p_write_polled(struct p2p *p, size_t size, uint64_t count)
{
	uint64_t value = p->polled, begin;

	(void)size;
	pair_meet(p->pair);
	begin = bench_now_ns();
	for (uint64_t i = 0; i < count; i++) {
		value++;
		if (p->pair->role == 1)
			cell_await(p, value);
		p2p_lap_begin(p);
		cell_write(p, value);
		if (p->pair->role == 0)
			cell_await(p, value);
		p2p_lap_end(p, i);
	}
	begin = bench_now_ns() - begin;
	p->polled = value;
	/* Nothing of ours may still be under way when the other stops to progress. */
	pair_meet(p->pair);
	return begin;
}

/* At most window writes under way; returns when all have completed. */
static void writes_post(struct p2p *p, size_t size, uint64_t count, uint64_t window,
			size_t offset)
{
	struct node *n = &p->node;
	uint64_t tx = n->tx_done;

	for (uint64_t i = 0; i < count; i++) {
		if (i >= window)
			node_await_tx(n, tx + i + 1 - window);
		if (i >= window && window == 1)
			p2p_lap_end(p, i - 1);
		p2p_lap_begin(p);
		while (node_again(n,
				  fi_write(n->ep, p->out, size, p->region.desc, n->peer,
					   p->target.addr + offset, p->target.key, NULL),
				  "fi_write"))
			;
	}
	node_await_tx(n, tx + count);
	if (window == 1)
		p2p_lap_end(p, count - 1);
}

static uint64_t writes_run(struct p2p *p, size_t size, uint64_t count, uint64_t window,
			   size_t offset)
{
	uint64_t begin;

	atomic_store(&p->pair->shared->word, 0);
	pair_meet(p->pair);
	begin = bench_now_ns();
	if (p->pair->role == 0) {
		writes_post(p, size, count, window, offset);
		begin = bench_now_ns() - begin;
		target_release(p, 1);
	} else {
		target_wait(p, 1);
	}
	pair_meet(p->pair);
	return begin;
}

uint64_t p2p_write_done(struct p2p *p, size_t size, uint64_t count)
{
	return writes_run(p, size, count, 1, p->quiet_offset);
}

static uint64_t called(struct p2p *p, size_t size, uint64_t count,
		       uint64_t (*run)(struct p2p *p, size_t size, uint64_t count))
{
	enum p2p_target mode = p->target_mode;
	uint64_t ns;

	p->target_mode = P2P_TARGET_CARRIES;
	ns = run(p, size, count);
	p->target_mode = mode;
	return ns;
}

uint64_t p2p_write_called(struct p2p *p, size_t size, uint64_t count)
{
	return called(p, size, count, p2p_write_polled);
}

uint64_t p2p_write_called_done(struct p2p *p, size_t size, uint64_t count)
{
	return called(p, size, count, p2p_write_done);
}

uint64_t p2p_write_stream(struct p2p *p, size_t size, uint64_t count)
{
	return writes_run(p, size, count, WINDOW, p->in_offset);
}
