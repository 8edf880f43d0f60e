/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport between ranks of one process: bytes are copied and signals applied when an
 * operation completes, late and in any order that its capabilities allow, by chance from
 * a seed. And ranks on it, with contexts, windows and proxies.
 */
#ifndef WEFT_GPU_DEVICE_FAKE_H
#define WEFT_GPU_DEVICE_FAKE_H

#include "gpu/device/devctx.h"

#define FAKE_RANKS 4
#define FAKE_RINGS 4
#define FAKE_WINS  2
#define FAKE_OPS   4096 /* under way, of one rank */

struct fake_op {
	struct weft_dev_op op;
	uint64_t token;
	uint64_t fence; /* how many fences to its peer came before */
};

struct fake;

struct fake_rank {
	struct fake *net;
	uint32_t rank;
	struct fake_op *op; /* in the order they were posted */
	uint32_t ops;
	uint64_t fences[FAKE_RANKS];
	uint64_t posted;
	int fail_at; /* the so-many-th post completes with -EIO; 0: none */
	struct proxy *proxy;
	uint8_t ready[FAKE_RINGS];
	struct weft_dev_ctx ctx[FAKE_RINGS];
	struct devctx_words words[FAKE_RINGS];
	struct proxy_ring ring[FAKE_RINGS];
	void *pinned[FAKE_RINGS], *local[FAKE_RINGS];
	struct weft_dev_win win[FAKE_WINS];
	struct weft_dev_part part[FAKE_WINS][FAKE_RANKS];
};

struct fake {
	struct proxy_transport transport;
	uint32_t ranks, rings;
	uint64_t rng;
	bool eager; /* completes everything at once: for speed */
	struct fake_rank rank[FAKE_RANKS];
};

struct fake_shape {
	uint32_t ranks, rings, caps, batch;
	uint64_t depth, start; /* of rings; the first descriptor's number */
	uint64_t win_len;
	uint32_t signals, counters;
	bool direct; /* peers reach each other's memory */
	uint64_t seed;
};

struct fake *fake_open(const struct fake_shape *shape);
void fake_close(struct fake *net);

/* One tick of every rank's proxy. */
size_t fake_tick(struct fake *net);

uint64_t fake_random(uint64_t *rng);

#endif
