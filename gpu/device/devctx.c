/* SPDX-License-Identifier: BSD-2-Clause */
/* See devctx.h. */
#include "config.h"

#include "gpu/device/devctx.h"

/* Words that one side writes and the other polls have a line each. */
#define LINE 128

static size_t lines(size_t bytes)
{
	return (bytes + LINE - 1) / LINE * LINE;
}

/* Signals of kernels, and the barrier's: one from each rank. */
static size_t signal_len(const struct devctx_shape *s)
{
	return lines(((size_t)s->signals + s->size) * sizeof(uint64_t));
}

static size_t counter_len(const struct devctx_shape *s)
{
	return lines(s->counters * sizeof(uint64_t));
}

const char *devctx_refuse(const struct devctx_shape *s)
{
	if (s->size < 1 || s->size > WEFT_DEV_MAX_PEERS || s->rank >= s->size)
		return "a context's rank must be below its size, of 1 to 2^31 ranks";
	if ((uint64_t)s->signals + s->size > WEFT_DEV_MAX_SIGNALS ||
	    s->counters > WEFT_DEV_MAX_COUNTERS)
		return "a context has up to 2^20 signals, of which a barrier takes one "
		       "for "
		       "each rank, and 2^20 - 1 counters";
	if (s->windows > WEFT_DEV_MAX_WINDOWS)
		return "a context has up to 2^16 windows";
	if (s->depth &&
	    (s->depth < 2 || s->depth > 1u << 16 || s->depth & (s->depth - 1)))
		return "a ring has a power of two of slots, 2 to 65536";
	return NULL;
}

/* tail, done, state, stuck, signals, counters, slots. */
size_t devctx_pinned_len(const struct devctx_shape *s)
{
	return 4ul * LINE + signal_len(s) + counter_len(s) +
	       s->depth * sizeof(struct weft_dev_desc);
}

/* head with tail_seen, barriers, signals, their bases, counters, peers. */
size_t devctx_local_len(const struct devctx_shape *s)
{
	return 2ul * LINE + 2 * signal_len(s) + counter_len(s) +
	       lines(s->size * sizeof(uint64_t *));
}

void devctx_init(const struct devctx_shape *s, void *pinned, void *local, uint8_t *ready,
		 struct weft_dev_ctx *ctx, struct proxy_ring *ring,
		 struct devctx_words *words)
{
	char *p = pinned, *l = local;
	uint64_t *tail = (void *)p, *done = (void *)(p + LINE);
	uint64_t *state = (void *)(p + 2ul * LINE), *stuck = (void *)(p + 3ul * LINE);
	struct weft_dev_desc *slot;

	*words = (struct devctx_words){.state = state};
	words->signal_cpu = (void *)(p += 4ul * LINE);
	words->counter_cpu = (void *)(p += signal_len(s));
	slot = (void *)(p + counter_len(s));
	*ctx = (struct weft_dev_ctx){
		.magic = WEFT_DEV_MAGIC,
		.version = WEFT_DEV_VERSION,
		.backend = s->depth ? WEFT_DEV_PROXY : WEFT_DEV_DIRECT,
		.caps = WEFT_DEV_STRONG | WEFT_DEV_SIGNAL_ADD | WEFT_DEV_GETS |
			WEFT_DEV_INLINE | WEFT_DEV_TIMED,
		.rank = s->rank,
		.size = s->size,
		.signals = s->signals,
		.counters = s->counters,
		.ring = {.head = (void *)l,
			 .tail_seen = (void *)(l + sizeof(uint64_t)),
			 .slot = slot,
			 .tail = tail,
			 .done = done,
			 .state = state,
			 .stuck = stuck,
			 .ready = ready,
			 .depth = s->depth},
		.state = state,
		.signal_cpu = words->signal_cpu,
		.counter_cpu = words->counter_cpu,
	};
	ctx->barriers = (void *)(l + LINE);
	ctx->signal = (void *)(l += 2ul * LINE);
	ctx->signal_base = (void *)(l += signal_len(s));
	ctx->counter = (void *)(l += signal_len(s));
	ctx->peer_signal = (void *)(l + counter_len(s));
	if (!s->depth)
		return;
	*ring = (struct proxy_ring){
		.slot = slot,
		.depth = s->depth,
		.tail = tail,
		.done = done,
		.state = state,
		.stuck = stuck,
		.counter = words->counter_cpu,
		.limits = {s->size, s->windows, s->signals + s->size, s->counters},
	};
}
