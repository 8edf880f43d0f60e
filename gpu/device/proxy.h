/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU that posts what kernels put into rings: takes descriptors out in batches,
 * checks them, hands them to a transport, and writes counters and progress back. It knows
 * no network and no GPU: a transport is a table of functions, memory is the caller's.
 *
 * Order (rule 2 of weft_device.cuh): of a batch, all puts are posted first and then the
 * signals, so that a transport that keeps no order needs one fence for each peer of a
 * batch, not one for each signal. A transport that has not even fences gets a signal when
 * all that came before it to that peer is complete; until then its ring waits.
 *
 * Life of a descriptor: put into the ring by a kernel, taken (its slot is free again),
 * posted in one or two parts, complete; the ring's `done` passes it when all before it
 * are complete too. An error of one gives the context up: kernels see WEFT_DEV_FAILED.
 *
 * Threads: one at a time for each proxy. Kernels, or other CPU threads, fill the rings.
 */
#ifndef WEFT_GPU_DEVICE_PROXY_H
#define WEFT_GPU_DEVICE_PROXY_H

#include "gpu/device/desc.h"

#define PROXY_BATCH_MAX 64
#define PROXY_WHY	256

enum proxy_caps {
	PROXY_ORDERED = 1, /* to one peer, what is posted later is seen later */
	PROXY_FENCE = 2,   /* fence() below */
};

struct proxy_done {
	uint64_t token;
	int error; /* 0, or a negative errno */
};

/*
 * arg comes first. Nothing of these waits. What op speaks of was checked against the
 * limits, not against lengths of windows: post() does that (-EINVAL).
 */
struct proxy_transport {
	uint32_t caps;
	/* Starts op (its counter is not the transport's business): data, or the signal
	 * alone (kind SIGNAL). more: another one follows at once. 0; -EAGAIN: not now;
	 * other errors give the context up. */
	int (*post)(void *arg, const struct weft_dev_op *op, uint64_t token, bool more);
	/* What is posted to the peer from now on is seen after what was posted before. */
	int (*fence)(void *arg, uint32_t peer);
	/* Makes progress; up to `most` of what has completed, in any order. Of a put: its
	 * source may be written again; where caps has neither of the two also: it is seen
	 * at the target. */
	size_t (*poll)(void *arg, struct proxy_done *done, size_t most);
};

/* One context's memory. Everything that kernels see is pinned, or is reached by both. */
struct proxy_ring {
	struct weft_dev_desc *slot; /* depth of them, zero at the start */
	uint64_t depth;		    /* a power of two, 2 to 2^16 */
	uint64_t *tail, *done,
		*state; /* tail and done: where the ring begins, 0 usually */
	const uint64_t *stuck;
	uint64_t *counter; /* [limits.counters]: the CPU's words */
	struct desc_limits limits;
};

struct proxy_opts {
	const struct proxy_transport *transport;
	void *arg;
	const struct proxy_ring *ring;
	uint32_t rings; /* 1 to 2^15 */
	uint8_t *ready; /* [rings], where the kernels' rings point to */
	uint32_t batch; /* descriptors of one ring at a time: 1 to PROXY_BATCH_MAX */
};

struct proxy_stats {
	uint64_t taken, batches, fences, again, scans;
};

struct proxy;

/* Copies ring[]; what it points to lives until proxy_close(). -EINVAL: a number is out of
 * range; -ENOMEM. */
int proxy_open(const struct proxy_opts *opts, struct proxy **proxy);

/* Forgets what is under way: the transport must have dropped it. NULL is allowed. */
void proxy_close(struct proxy *proxy);

/* Takes, posts and completes what there is; how many descriptors it took or completed. */
size_t proxy_tick(struct proxy *proxy);

/* Gives a context up, with what its kernels are to see: WEFT_DEV_ABORTED. Waits of
 * kernels end at their next poll. */
void proxy_abort(struct proxy *proxy, uint32_t ring, enum weft_dev_status status);

/* Why a context was given up; "" where it was not. */
const char *proxy_why(const struct proxy *proxy, uint32_t ring);

/* Whether all that was put into the rings so far, and seen, is complete. */
bool proxy_idle(const struct proxy *proxy);

void proxy_stats(const struct proxy *proxy, struct proxy_stats *stats);

#endif
