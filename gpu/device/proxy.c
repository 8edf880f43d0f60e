/* SPDX-License-Identifier: BSD-2-Clause */
/* See proxy.h. */
#include "config.h"

#include "gpu/device/proxy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every so many ticks all rings are looked at, ready or not: a kernel's mark may arrive
 * before the descriptor that it speaks of, and it is not marked twice. */
#define SCAN_TICKS 64
#define POLL_MOST  64

/* A descriptor that was taken and is not complete. */
struct flight {
	uint32_t peer;
	uint32_t counter;
	uint8_t parts; /* that have not completed */
	bool complete;
};

/* What is still to be posted of a batch. */
struct waiting {
	struct weft_dev_op op;
	uint64_t index;
	bool is_signal;
};

struct ring {
	struct proxy_ring mem;
	uint64_t next; /* number of the next descriptor to be taken */
	uint64_t done;
	bool given_up;
	struct flight *flight; /* depth of them */
	uint32_t *outstanding; /* parts posted and not complete, by peer */
	bool *unfenced;	       /* data was posted to the peer since the last fence */
	/* Parts of the batch that were not posted yet: data first, then signals. */
	struct waiting *wait; /* 2 * PROXY_BATCH_MAX */
	uint32_t waits, posted;
	char why[PROXY_WHY];
};

struct proxy {
	const struct proxy_transport *transport;
	void *arg;
	uint8_t *ready;
	uint32_t rings, batch;
	uint64_t ticks;
	struct proxy_stats stats;
	struct ring ring[];
};

/* ---- giving up ---- */

static void give_up(struct ring *r, enum weft_dev_status status)
{
	if (r->given_up)
		return;
	r->given_up = true;
	r->waits = r->posted = 0;
	__atomic_store_n(r->mem.state, (uint64_t)status, __ATOMIC_RELEASE);
}

void proxy_abort(struct proxy *proxy, uint32_t ring, enum weft_dev_status status)
{
	struct ring *r = &proxy->ring[ring];

	if (!r->given_up)
		snprintf(r->why, sizeof(r->why), "given up by the caller");
	give_up(r, status);
}

const char *proxy_why(const struct proxy *proxy, uint32_t ring)
{
	return proxy->ring[ring].why;
}

/* ---- completion ---- */

static void retire(struct ring *r)
{
	const uint64_t before = r->done;

	while (r->done != r->next && r->flight[r->done & (r->mem.depth - 1)].complete)
		r->done++;
	if (r->done != before)
		__atomic_store_n(r->mem.done, r->done, __ATOMIC_RELEASE);
}

static void part_done(struct ring *r, uint64_t index)
{
	struct flight *f = &r->flight[index & (r->mem.depth - 1)];

	r->outstanding[f->peer]--;
	if (--f->parts)
		return;
	f->complete = true;
	/* Only this thread writes it. */
	if (f->counter != WEFT_DEV_NO_COUNTER)
		__atomic_store_n(&r->mem.counter[f->counter],
				 r->mem.counter[f->counter] + 1, __ATOMIC_RELEASE);
}

static uint64_t token_of(const struct proxy *proxy, const struct ring *r, uint64_t index)
{
	return (uint64_t)(r - proxy->ring) << 48 | (index & ((1ull << 48) - 1));
}

static size_t complete(struct proxy *proxy)
{
	struct proxy_done done[POLL_MOST];
	const size_t n = proxy->transport->poll(proxy->arg, done, POLL_MOST);

	for (size_t i = 0; i < n; i++) {
		struct ring *r = &proxy->ring[done[i].token >> 48];

		if (r->given_up)
			continue;
		if (done[i].error) {
			snprintf(r->why, sizeof(r->why),
				 "the transport failed a put, a get or a signal: %s",
				 strerror(-done[i].error));
			give_up(r, WEFT_DEV_FAILED);
			continue;
		}
		part_done(r, done[i].token);
	}
	if (n) {
		for (uint32_t i = 0; i < proxy->rings; i++)
			retire(&proxy->ring[i]);
	}
	return n;
}

/* ---- posting ---- */

static void post_failed(struct ring *r, const struct waiting *w, int ret)
{
	snprintf(r->why, sizeof(r->why),
		 "posting descriptor %" PRIu64 " (kind %u, peer %u, %" PRIu64
		 " bytes): %s",
		 w->index, w->op.kind, w->op.peer, w->op.bytes, strerror(-ret));
	give_up(r, WEFT_DEV_FAILED);
}

/* Whether the transport may have it now, as far as order goes; makes the fence. One is
 * good for all signals of a batch to this peer: its data was posted before. */
static int in_order(struct proxy *proxy, struct ring *r, const struct waiting *w)
{
	const uint32_t caps = proxy->transport->caps;
	int ret;

	if (!w->is_signal || caps & PROXY_ORDERED)
		return 0;
	if (!(caps & PROXY_FENCE))
		return r->outstanding[w->op.peer] ? -EAGAIN : 0;
	if (!r->unfenced[w->op.peer])
		return 0;
	ret = proxy->transport->fence(proxy->arg, w->op.peer);
	if (ret == 0) {
		r->unfenced[w->op.peer] = false;
		proxy->stats.fences++;
	}
	return ret;
}

/* Nothing of a later batch is posted before all of this one is: without fences its data
 * would keep a signal waiting for ever. */
static void post_waiting(struct proxy *proxy, struct ring *r)
{
	while (r->posted < r->waits) {
		const struct waiting *w = &r->wait[r->posted];
		int ret = in_order(proxy, r, w);

		if (ret == 0)
			ret = proxy->transport->post(proxy->arg, &w->op,
						     token_of(proxy, r, w->index),
						     r->posted + 1 < r->waits);
		if (ret == -EAGAIN) {
			proxy->stats.again++;
			return;
		}
		if (ret < 0) {
			post_failed(r, w, ret);
			return;
		}
		r->outstanding[w->op.peer]++;
		r->unfenced[w->op.peer] |= !w->is_signal;
		r->posted++;
	}
	r->waits = r->posted = 0;
}

/* ---- taking ---- */

/* Data and signal of one descriptor become two parts. */
static void split(struct ring *r, const struct weft_dev_op *op, uint64_t index,
		  struct waiting *signals, uint32_t *n_signals)
{
	struct flight *f = &r->flight[index & (r->mem.depth - 1)];

	*f = (struct flight){.peer = op->peer, .counter = op->counter};
	if (op->kind != WEFT_DEV_SIGNAL) {
		struct waiting *w = &r->wait[r->waits++];

		*w = (struct waiting){.op = *op, .index = index};
		w->op.add = 0;
		f->parts++;
	}
	if (op->add) {
		struct waiting *w = &signals[(*n_signals)++];

		*w = (struct waiting){.op = *op, .index = index, .is_signal = true};
		w->op.kind = WEFT_DEV_SIGNAL;
		w->op.bytes = 0;
		f->parts++;
	}
	f->complete = f->parts == 0; /* a signal of nothing */
}

/* A batch of one ring, out of its slots. */
static uint32_t take(struct proxy *proxy, struct ring *r)
{
	struct waiting signals[PROXY_BATCH_MAX];
	uint32_t n = 0, n_signals = 0;

	while (n < proxy->batch && r->next - r->done < r->mem.depth) {
		struct weft_dev_desc desc;
		struct weft_dev_op op;

		if (!desc_take(&r->mem.slot[r->next & (r->mem.depth - 1)], r->next,
			       r->mem.depth, &desc))
			break;
		if (desc_read(&desc, r->next, &r->mem.limits, &op, r->why,
			      sizeof(r->why)) < 0) {
			give_up(r, WEFT_DEV_FAILED);
			return n;
		}
		split(r, &op, r->next, signals, &n_signals);
		r->next++;
		n++;
	}
	if (n) {
		__atomic_store_n(r->mem.tail, r->next, __ATOMIC_RELEASE);
		memcpy(&r->wait[r->waits], signals, n_signals * sizeof(signals[0]));
		r->waits += n_signals;
		proxy->stats.taken += n;
		proxy->stats.batches++;
	}
	return n;
}

static uint32_t serve(struct proxy *proxy, struct ring *r, uint8_t *ready)
{
	uint32_t n;

	if (__atomic_load_n(r->mem.stuck, __ATOMIC_RELAXED)) {
		snprintf(r->why, sizeof(r->why),
			 "a kernel found no room in the ring for all the time that it "
			 "had, with a slot claimed: give it more time, or the ring more "
			 "slots than %" PRIu64,
			 r->mem.depth);
		give_up(r, WEFT_DEV_FAILED);
		return 0;
	}
	/* Before the ring is looked at: a mark made later stays. */
	__atomic_store_n(ready, 0, __ATOMIC_SEQ_CST);
	n = r->waits ? 0 : take(proxy, r);
	if (r->waits)
		post_waiting(proxy, r);
	retire(r);
	/* There may be more. */
	if (n == proxy->batch || r->waits || r->next - r->done == r->mem.depth)
		__atomic_store_n(ready, 1, __ATOMIC_RELAXED);
	return n;
}

size_t proxy_tick(struct proxy *proxy)
{
	const bool all = proxy->ticks++ % SCAN_TICKS == 0;
	size_t work = 0;

	proxy->stats.scans += all;
	for (uint32_t i = 0; i < proxy->rings; i++) {
		struct ring *r = &proxy->ring[i];

		if (!all && !__atomic_load_n(&proxy->ready[i], __ATOMIC_ACQUIRE))
			continue;
		if (!r->given_up)
			work += serve(proxy, r, &proxy->ready[i]);
	}
	return work + complete(proxy);
}

bool proxy_idle(const struct proxy *proxy)
{
	for (uint32_t i = 0; i < proxy->rings; i++) {
		const struct ring *r = &proxy->ring[i];

		if (!r->given_up && (r->waits || r->done != r->next))
			return false;
	}
	return true;
}

void proxy_stats(const struct proxy *proxy, struct proxy_stats *stats)
{
	*stats = proxy->stats;
}

/* ---- open and close ---- */

void proxy_close(struct proxy *proxy)
{
	if (!proxy)
		return;
	for (uint32_t i = 0; i < proxy->rings; i++) {
		free(proxy->ring[i].flight);
		free(proxy->ring[i].outstanding);
		free(proxy->ring[i].unfenced);
		free(proxy->ring[i].wait);
	}
	free(proxy);
}

static int ring_init(struct ring *r, const struct proxy_ring *mem)
{
	if (mem->depth < 2 || mem->depth > 1u << 16 || mem->depth & (mem->depth - 1) ||
	    mem->limits.peers < 1 || mem->limits.peers > WEFT_DEV_MAX_PEERS)
		return -EINVAL;
	r->mem = *mem;
	r->next = r->done = *mem->done;
	r->flight = calloc(mem->depth, sizeof(*r->flight));
	r->outstanding = calloc(mem->limits.peers, sizeof(*r->outstanding));
	r->unfenced = calloc(mem->limits.peers, sizeof(*r->unfenced));
	r->wait = calloc(2ul * PROXY_BATCH_MAX, sizeof(*r->wait));
	return r->flight && r->outstanding && r->unfenced && r->wait ? 0 : -ENOMEM;
}

int proxy_open(const struct proxy_opts *opts, struct proxy **proxy)
{
	struct proxy *p;
	int ret = 0;

	if (opts->rings < 1 || opts->rings > 1u << 15 || opts->batch < 1 ||
	    opts->batch > PROXY_BATCH_MAX)
		return -EINVAL;
	p = calloc(1, sizeof(*p) + opts->rings * sizeof(p->ring[0]));
	if (!p)
		return -ENOMEM;
	p->transport = opts->transport;
	p->arg = opts->arg;
	p->ready = opts->ready;
	p->batch = opts->batch;
	p->rings = opts->rings;
	for (uint32_t i = 0; i < opts->rings && ret == 0; i++)
		ret = ring_init(&p->ring[i], &opts->ring[i]);
	if (ret < 0) {
		proxy_close(p);
		return ret;
	}
	*proxy = p;
	return 0;
}
