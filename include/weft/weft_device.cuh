/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts, gets and signals from inside of kernels.
 *
 * A kernel gets a struct weft_dev_ctx (a context: an ordering domain with signals and
 * counters) and struct weft_dev_win (windows: memory that all ranks have registered),
 * made by the host. Peers in reach (one process, one host with peer access) are reached
 * by loads and stores; others by descriptors in the context's ring, which a CPU posts to
 * whatever transport there is. Which of the two does not show, but for the time it takes.
 *
 * Scope: every call is made by one thread, by all 32 threads of a warp, or by all threads
 * of a block, with the same arguments; it counts once, and all of them get its result.
 *
 * Order
 *   1. Puts and gets are unordered among themselves.
 *   2. Who sees a signal sees all puts to it that came before in this context: those of
 * the calling threads, and of others whose calls returned before and were synchronised
 *      with these.
 *   3. A counter of a put or get says that this one is done: the source may be written
 *      again, what was got may be read. It says nothing of the target.
 *   4. flush is that of all calls before. It says nothing of the target either.
 *   5. barrier: what any rank put before is seen by all behind it.
 *
 * Waits end with what they wait for, after timeout_ns (WEFT_DEV_FOREVER: never), or when
 * the context is given up; they never trap. Comparisons are modular: a word has reached
 * `least` when it is less than 2^63 past it. After anything but OK and TIMEOUT a context
 * is of no more use. A wait for a signal needs somebody who moves it: where peers are not
 * in reach, the CPUs of both sides must make progress.
 *
 * The words of a signal: one that GPUs add to, one that CPUs or NICs write; its value is
 * their sum. (No bus makes additions of both sides to one word atomic.)
 *
 * A backend other than the CPU's ring (a NIC that a GPU rings itself) supplies: a number
 * in enum weft_dev_backend; post(ctx, op, timeout), which takes a struct weft_dev_op as
 * weft_dev_post() does, from any number of threads, in order per peer or with fences of
 * its own before signals; drained(ctx, timeout); signals and counters as plain 64-bit
 * words in memory that kernels read; and the same status words. What it cannot do it
 * leaves out of caps, and contexts that want it are refused by the host. Calls reach it
 * through weft_dev_issue() and weft_dev_flush() below, which are the only two places that
 * look at `backend`.
 */
#ifndef WEFT_DEVICE_CUH
#define WEFT_DEVICE_CUH

#include "weft/weft_device_ring.h"

#define WEFT_DEV_MAGIC	 0x77656674u /* "weft" */
#define WEFT_DEV_VERSION 1

enum weft_dev_backend {
	WEFT_DEV_DIRECT = 1, /* all peers are in reach; there is no ring */
	WEFT_DEV_PROXY,	     /* a ring that a CPU drains */
};

enum weft_dev_caps {
	WEFT_DEV_STRONG = 1,	 /* rule 2 */
	WEFT_DEV_SIGNAL_ADD = 2, /* any number, not only 1 */
	WEFT_DEV_GETS = 4,
	WEFT_DEV_INLINE = 8, /* put_value */
	WEFT_DEV_TIMED = 16, /* waits with a time */
};

enum weft_dev_scope { WEFT_DEV_THREAD, WEFT_DEV_WARP, WEFT_DEV_BLOCK };

/* A peer's part of a window. */
struct weft_dev_part {
	void *base; /* here, where it is in reach; else NULL */
	uint64_t len;
};

struct weft_dev_win {
	uint32_t id;
	uint32_t unused;
	void *base; /* this rank's part */
	uint64_t len;
	const struct weft_dev_part *part; /* of every rank, this one too */
};

/* Filled by the host (gpu/device/devctx.h); constant for kernels. */
struct weft_dev_ctx {
	uint32_t magic;
	uint16_t version;
	uint8_t backend; /* enum weft_dev_backend */
	uint8_t unused;
	uint32_t caps;
	uint32_t rank, size;
	uint32_t signals,
		counters; /* ids are below; the barrier has `size` more signals */
	struct weft_dev_ring ring;
	const uint64_t *state;	      /* enum weft_dev_status */
	uint64_t *signal;	      /* that GPUs add to */
	const uint64_t *signal_cpu;   /* that the CPU adds to */
	uint64_t *signal_base;	      /* what a reset has set aside */
	uint64_t *const *peer_signal; /* [size]: those of peers in reach, or NULL */
	uint64_t *counter;
	const uint64_t *counter_cpu;
	uint64_t *barriers; /* how many this rank has passed */
	void *priv;	    /* of other backends */
};

/* What a put or get does beside moving bytes. */
struct weft_dev_action {
	uint64_t add; /* to the peer's signal: 1 is an increment, 0 none */
	uint32_t signal;
	uint32_t counter; /* or WEFT_DEV_NO_COUNTER */
};

WEFT_DEV_FN struct weft_dev_action weft_dev_none(void)
{
	struct weft_dev_action a = {0, 0, WEFT_DEV_NO_COUNTER};

	return a;
}

WEFT_DEV_FN struct weft_dev_action weft_dev_inc(uint32_t signal)
{
	struct weft_dev_action a = {1, signal, WEFT_DEV_NO_COUNTER};

	return a;
}

/* ---- groups of threads ---- */

struct weft_dev_group {
	uint32_t lane, lanes;
	uint32_t scope;
};

#if WEFT_DEV_ON_GPU

WEFT_DEV_FN struct weft_dev_group weft_dev_group(uint32_t scope)
{
	struct weft_dev_group g = {0, 1, scope};
	uint32_t x, y, z, nx, ny, nz;

	if (scope == WEFT_DEV_WARP) {
		asm("mov.u32 %0, %%laneid;" : "=r"(g.lane));
		g.lanes = 32;
	} else if (scope == WEFT_DEV_BLOCK) {
		asm("mov.u32 %0, %%tid.x;" : "=r"(x));
		asm("mov.u32 %0, %%tid.y;" : "=r"(y));
		asm("mov.u32 %0, %%tid.z;" : "=r"(z));
		asm("mov.u32 %0, %%ntid.x;" : "=r"(nx));
		asm("mov.u32 %0, %%ntid.y;" : "=r"(ny));
		asm("mov.u32 %0, %%ntid.z;" : "=r"(nz));
		g.lane = (z * ny + y) * nx + x;
		g.lanes = nx * ny * nz;
	}
	return g;
}

WEFT_DEV_FN void weft_dev_meet(struct weft_dev_group g)
{
	if (g.scope == WEFT_DEV_WARP)
		asm volatile("bar.warp.sync 0xffffffff;" : : : "memory");
	else if (g.scope == WEFT_DEV_BLOCK)
		asm volatile("bar.sync 0;" : : : "memory");
}

/* Lane 0's status for all; also a meeting. */
WEFT_DEV_FN int weft_dev_agree(struct weft_dev_group g, int status)
{
	__shared__ int of_block;

	if (g.scope == WEFT_DEV_WARP) {
		asm volatile("shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;"
			     : "+r"(status)
			     :
			     : "memory");
	} else if (g.scope == WEFT_DEV_BLOCK) {
		if (g.lane == 0)
			of_block = status;
		weft_dev_meet(g);
		status = of_block;
		weft_dev_meet(g);
	}
	return status;
}

#else

WEFT_DEV_FN struct weft_dev_group weft_dev_group(uint32_t scope)
{
	struct weft_dev_group g = {0, 1, scope};

	return g;
}

WEFT_DEV_FN void weft_dev_meet(struct weft_dev_group g)
{
	(void)g;
}

WEFT_DEV_FN int weft_dev_agree(struct weft_dev_group g, int status)
{
	(void)g;
	return status;
}

#endif

struct weft_dev_16 {
	uint64_t v[2];
#if WEFT_DEV_ON_GPU
} __attribute__((aligned(16)));
#else
};
#endif

/* Bytes between memories in reach, by all lanes. */
WEFT_DEV_FN void weft_dev_move(struct weft_dev_group g, void *dst, const void *src,
			       uint64_t bytes)
{
	char *d = (char *)dst;
	const char *s = (const char *)src;
	uint64_t head = 0, vecs = 0;

	if ((((uintptr_t)d ^ (uintptr_t)s) & 15) == 0) {
		head = (0 - (uintptr_t)d) & 15;
		head = head < bytes ? head : bytes;
		vecs = (bytes - head) / 16;
	}
	for (uint64_t i = g.lane; i < vecs; i += g.lanes)
		((struct weft_dev_16 *)(void *)(d + head))[i] =
			((const struct weft_dev_16 *)(const void *)(s + head))[i];
	for (uint64_t i = g.lane; i < bytes - 16 * vecs; i += g.lanes) {
		const uint64_t at = i < head ? i : i + 16 * vecs;

		d[at] = s[at];
	}
}

/* ---- the edge to backends ---- */

/* One thread; what op speaks of is visible to it. */
WEFT_DEV_FN int weft_dev_issue(const struct weft_dev_ctx *ctx,
			       const struct weft_dev_op *op, uint64_t timeout_ns)
{
	if (ctx->backend == WEFT_DEV_PROXY)
		return weft_dev_post(&ctx->ring, op, timeout_ns);
	return WEFT_DEV_REFUSED;
}

/* Sources of all calls before may be written, what they got may be read. */
WEFT_DEV_FN int weft_dev_flush(const struct weft_dev_ctx *ctx, uint64_t timeout_ns,
			       uint32_t scope)
{
	const struct weft_dev_group g = weft_dev_group(scope);
	int status = WEFT_DEV_OK;

	weft_dev_meet(g);
	if (g.lane == 0 && ctx->backend == WEFT_DEV_PROXY)
		status = weft_dev_drained(&ctx->ring, timeout_ns);
	return weft_dev_agree(g, status);
}

/* ---- calls ---- */

WEFT_DEV_FN int weft_dev_inside(const struct weft_dev_win *win, uint32_t rank,
				uint64_t off, uint64_t bytes)
{
	return off <= win->part[rank].len && bytes <= win->part[rank].len - off;
}

WEFT_DEV_FN int weft_dev_allowed(const struct weft_dev_ctx *ctx, uint32_t peer,
				 struct weft_dev_action action)
{
	return peer < ctx->size && (!action.add || action.signal < ctx->signals) &&
	       (action.counter == WEFT_DEV_NO_COUNTER || action.counter < ctx->counters);
}

/* The bytes of a value; whole words in one store. */
WEFT_DEV_FN void weft_dev_move_value(void *dst, uint64_t value, uint64_t bytes)
{
	if (bytes == 8 && ((uintptr_t)dst & 7) == 0) {
		weft_dev_store((uint64_t *)dst, value);
		return;
	}
	for (uint64_t i = 0; i < bytes; i++)
		((uint8_t *)dst)[i] = (uint8_t)(value >> 8 * i);
}

/* What comes after bytes that were stored directly, by lane 0 when all have met. */
WEFT_DEV_FN void weft_dev_told(const struct weft_dev_ctx *ctx, uint32_t peer,
			       struct weft_dev_action action)
{
	if (action.add)
		weft_dev_add(&ctx->peer_signal[peer][action.signal], action.add);
	if (action.counter != WEFT_DEV_NO_COUNTER)
		weft_dev_add(&ctx->counter[action.counter], 1);
}

WEFT_DEV_FN int weft_dev_transfer(const struct weft_dev_ctx *ctx, struct weft_dev_op op,
				  void *direct_dst, const void *direct_src,
				  struct weft_dev_action action, uint64_t timeout_ns,
				  uint32_t scope)
{
	const struct weft_dev_group g = weft_dev_group(scope);
	int status = WEFT_DEV_OK;

	weft_dev_meet(g); /* what other threads of it wrote is there */
	if (ctx->peer_signal[op.peer]) {
		if (op.kind != WEFT_DEV_PUT_VALUE)
			weft_dev_move(g, direct_dst, direct_src, op.bytes);
		else if (g.lane == 0)
			weft_dev_move_value(direct_dst, op.value, op.bytes);
		weft_dev_meet(g);
		if (g.lane == 0)
			weft_dev_told(ctx, op.peer, action);
		return WEFT_DEV_OK;
	}
	op.add = action.add;
	op.signal = action.add ? action.signal : 0;
	op.counter = action.counter;
	if (g.lane == 0)
		status = weft_dev_issue(ctx, &op, timeout_ns);
	return weft_dev_agree(g, status);
}

/* bytes from this rank's part of src to the peer's part of dst. */
WEFT_DEV_FN int weft_dev_put(const struct weft_dev_ctx *ctx, uint32_t peer,
			     const struct weft_dev_win *dst, uint64_t dst_off,
			     const struct weft_dev_win *src, uint64_t src_off,
			     uint64_t bytes, struct weft_dev_action action,
			     uint64_t timeout_ns, uint32_t scope)
{
	struct weft_dev_op op = {WEFT_DEV_PUT, peer, dst->id, src->id, dst_off, src_off,
				 bytes,	       0,    0,	      0,       0};

	if (!weft_dev_allowed(ctx, peer, action) || bytes > WEFT_DEV_MAX_BYTES ||
	    !weft_dev_inside(dst, peer, dst_off, bytes) ||
	    !weft_dev_inside(src, ctx->rank, src_off, bytes))
		return WEFT_DEV_REFUSED;
	return weft_dev_transfer(ctx, op, (char *)dst->part[peer].base + dst_off,
				 (const char *)src->base + src_off, action, timeout_ns,
				 scope);
}

/* bytes from the peer's part of src to this rank's part of dst: there after a flush, or
 * when the counter says so. The action has no signal. */
WEFT_DEV_FN int weft_dev_get(const struct weft_dev_ctx *ctx, uint32_t peer,
			     const struct weft_dev_win *dst, uint64_t dst_off,
			     const struct weft_dev_win *src, uint64_t src_off,
			     uint64_t bytes, struct weft_dev_action action,
			     uint64_t timeout_ns, uint32_t scope)
{
	struct weft_dev_op op = {WEFT_DEV_GET, peer, dst->id, src->id, dst_off, src_off,
				 bytes,	       0,    0,	      0,       0};

	if (!weft_dev_allowed(ctx, peer, action) || action.add ||
	    bytes > WEFT_DEV_MAX_BYTES ||
	    !weft_dev_inside(dst, ctx->rank, dst_off, bytes) ||
	    !weft_dev_inside(src, peer, src_off, bytes))
		return WEFT_DEV_REFUSED;
	return weft_dev_transfer(ctx, op, (char *)dst->base + dst_off,
				 (const char *)src->part[peer].base + src_off, action,
				 timeout_ns, scope);
}

/* The lowest `bytes` (1 to 8) bytes of value. */
WEFT_DEV_FN int weft_dev_put_value(const struct weft_dev_ctx *ctx, uint32_t peer,
				   const struct weft_dev_win *dst, uint64_t dst_off,
				   uint64_t value, uint32_t bytes,
				   struct weft_dev_action action, uint64_t timeout_ns,
				   uint32_t scope)
{
	struct weft_dev_op op = {
		WEFT_DEV_PUT_VALUE, peer, dst->id, 0, dst_off, 0, bytes, value, 0, 0, 0};

	if (!weft_dev_allowed(ctx, peer, action) || bytes < 1 || bytes > 8 ||
	    !weft_dev_inside(dst, peer, dst_off, bytes))
		return WEFT_DEV_REFUSED;
	return weft_dev_transfer(ctx, op, (char *)dst->part[peer].base + dst_off, 0,
				 action, timeout_ns, scope);
}

/* To any signal, the barrier's too. */
WEFT_DEV_FN int weft_dev_signal_any(const struct weft_dev_ctx *ctx, uint32_t peer,
				    uint32_t id, uint64_t add, uint64_t timeout_ns,
				    uint32_t scope)
{
	struct weft_dev_op op = {WEFT_DEV_SIGNAL, peer, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	struct weft_dev_action action = {add, id, WEFT_DEV_NO_COUNTER};

	return weft_dev_transfer(ctx, op, 0, 0, action, timeout_ns, scope);
}

/* add (1: an increment) to signal `id` of the peer, after all puts to it (rule 2). */
WEFT_DEV_FN int weft_dev_signal(const struct weft_dev_ctx *ctx, uint32_t peer,
				uint32_t id, uint64_t add, uint64_t timeout_ns,
				uint32_t scope)
{
	if (peer >= ctx->size || id >= ctx->signals || add == 0)
		return WEFT_DEV_REFUSED;
	return weft_dev_signal_any(ctx, peer, id, add, timeout_ns, scope);
}

WEFT_DEV_FN uint64_t weft_dev_signal_read(const struct weft_dev_ctx *ctx, uint32_t id)
{
	return weft_dev_load(&ctx->signal[id]) + weft_dev_load(&ctx->signal_cpu[id]) -
	       weft_dev_peek(&ctx->signal_base[id]);
}

/* From now on it counts from 0: what has come is set aside, since more may be on its way.
 * By one thread, with no wait for it under way. */
WEFT_DEV_FN void weft_dev_signal_reset(const struct weft_dev_ctx *ctx, uint32_t id)
{
	weft_dev_store(&ctx->signal_base[id],
		       weft_dev_signal_read(ctx, id) +
			       weft_dev_peek(&ctx->signal_base[id]));
}

WEFT_DEV_FN uint64_t weft_dev_counter_read(const struct weft_dev_ctx *ctx, uint32_t id)
{
	return weft_dev_load(&ctx->counter[id]) + weft_dev_load(&ctx->counter_cpu[id]);
}

/* Until the sum of two words, less a third, has reached `least`. */
WEFT_DEV_FN int weft_dev_wait_sum(const struct weft_dev_ctx *ctx, const uint64_t *a,
				  const uint64_t *b, uint64_t base, uint64_t least,
				  uint64_t timeout_ns)
{
	uint64_t start = 0, now;

	for (uint32_t polls = 0;; polls++) {
		const uint64_t sum = weft_dev_load(a) + weft_dev_load(b) - base;

		if ((int64_t)(sum - least) >= 0)
			return WEFT_DEV_OK;
		if (polls % 64)
			continue;
		if (weft_dev_peek(ctx->state))
			return (int)weft_dev_peek(ctx->state);
		now = weft_dev_clock();
		start = polls ? start : now;
		if (timeout_ns != WEFT_DEV_FOREVER && now - start >= timeout_ns)
			return WEFT_DEV_TIMEOUT;
		weft_dev_pause();
	}
}

WEFT_DEV_FN int weft_dev_signal_wait_any(const struct weft_dev_ctx *ctx, uint32_t id,
					 uint64_t least, uint64_t timeout_ns,
					 uint32_t scope)
{
	const struct weft_dev_group g = weft_dev_group(scope);
	int status = WEFT_DEV_OK;

	if (g.lane == 0)
		status = weft_dev_wait_sum(ctx, &ctx->signal[id], &ctx->signal_cpu[id],
					   weft_dev_peek(&ctx->signal_base[id]), least,
					   timeout_ns);
	return weft_dev_agree(g, status);
}

WEFT_DEV_FN int weft_dev_signal_wait(const struct weft_dev_ctx *ctx, uint32_t id,
				     uint64_t least, uint64_t timeout_ns, uint32_t scope)
{
	if (id >= ctx->signals)
		return WEFT_DEV_REFUSED;
	return weft_dev_signal_wait_any(ctx, id, least, timeout_ns, scope);
}

WEFT_DEV_FN int weft_dev_counter_wait(const struct weft_dev_ctx *ctx, uint32_t id,
				      uint64_t least, uint64_t timeout_ns, uint32_t scope)
{
	const struct weft_dev_group g = weft_dev_group(scope);
	int status = WEFT_DEV_OK;

	if (id >= ctx->counters)
		return WEFT_DEV_REFUSED;
	if (g.lane == 0)
		status = weft_dev_wait_sum(ctx, &ctx->counter[id], &ctx->counter_cpu[id],
					   0, least, timeout_ns);
	return weft_dev_agree(g, status);
}

/* All ranks of the context, one group of threads each at a time. Every rank signals every
 * other one, so that rule 2 covers all puts, and each in a word of its own: a sum would
 * not tell a rank that is ahead from one that is late. */
WEFT_DEV_FN int weft_dev_barrier(const struct weft_dev_ctx *ctx, uint64_t timeout_ns,
				 uint32_t scope)
{
	const struct weft_dev_group g = weft_dev_group(scope);
	const uint64_t number = weft_dev_peek(ctx->barriers) + 1;
	int status = WEFT_DEV_OK;

	for (uint32_t i = 1; i < ctx->size && status == WEFT_DEV_OK; i++)
		status = weft_dev_signal_any(ctx, (ctx->rank + i) % ctx->size,
					     ctx->signals + ctx->rank, 1, timeout_ns,
					     scope);
	for (uint32_t i = 1; i < ctx->size && status == WEFT_DEV_OK; i++)
		status = weft_dev_signal_wait_any(
			ctx, ctx->signals + (ctx->rank + i) % ctx->size, number,
			timeout_ns, scope);
	weft_dev_meet(g);
	if (g.lane == 0 && status == WEFT_DEV_OK)
		weft_dev_store(ctx->barriers, number);
	weft_dev_meet(g);
	return status;
}

#endif
