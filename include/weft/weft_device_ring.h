/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring between kernels and the CPU that posts for them: its memory accesses, the
 * descriptor, and the producer's side. CUDA C++ (nvcc, clang) and C, in which CPU threads
 * are the producers. Programs include weft_device.cuh.
 *
 * A descriptor is 64 bytes, eight words. Bit 0 of every word is the lap bit: 1 in the
 * first round of the ring, 0 in the second, and so on. Stores of a GPU reach the CPU in
 * pieces of at least 8 bytes, in any order: a descriptor is there when all eight bits
 * have this round's value, and no slot ever has to be cleared.
 */
#ifndef WEFT_DEVICE_RING_H
#define WEFT_DEVICE_RING_H

#include <stdint.h>

#if defined(__CUDACC__) || defined(__CUDA__)
#define WEFT_DEV_ON_GPU 1
#if defined(__clang__) && !defined(__device__)
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#endif
#define WEFT_DEV_FN static inline __device__
#else
#define WEFT_DEV_ON_GPU 0
#include <sched.h>
#include <time.h>
#define WEFT_DEV_FN static inline __attribute__((unused))
#endif

enum weft_dev_status {
	WEFT_DEV_OK,
	WEFT_DEV_TIMEOUT, /* the time that was given is over */
	WEFT_DEV_ABORTED, /* the context was given up, here or by a peer */
	WEFT_DEV_FAILED, /* the transport reported an error; the context is of no more use
			  */
	WEFT_DEV_REFUSED, /* an argument is out of range: nothing was done */
};

/* ---- memory, as both sides of a bus see it ---- */

#if WEFT_DEV_ON_GPU

WEFT_DEV_FN uint64_t weft_dev_load(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

WEFT_DEV_FN uint64_t weft_dev_peek(const uint64_t *p)
{
	uint64_t v;

	asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
	return v;
}

/* Of a word that stands behind weft_dev_publish(). */
WEFT_DEV_FN void weft_dev_store(uint64_t *p, uint64_t v)
{
	asm volatile("st.relaxed.sys.u64 [%0], %1;" : : "l"(p), "l"(v) : "memory");
}

WEFT_DEV_FN void weft_dev_store_byte(uint8_t *p)
{
	asm volatile("st.relaxed.sys.u8 [%0], %1;" : : "l"(p), "r"(1) : "memory");
}

/* What was written before is seen by whoever sees what is stored after. */
WEFT_DEV_FN void weft_dev_publish(void)
{
	asm volatile("fence.acq_rel.sys;" : : : "memory");
}

WEFT_DEV_FN uint64_t weft_dev_claim(uint64_t *p, uint64_t n)
{
	uint64_t v;

	asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;"
		     : "=l"(v)
		     : "l"(p), "l"(n)
		     : "memory");
	return v;
}

WEFT_DEV_FN void weft_dev_add(uint64_t *p, uint64_t n)
{
	asm volatile("red.release.sys.add.u64 [%0], %1;" : : "l"(p), "l"(n) : "memory");
}

WEFT_DEV_FN uint64_t weft_dev_clock(void)
{
	uint64_t v;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v));
	return v;
}

WEFT_DEV_FN void weft_dev_pause(void)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
	asm volatile("nanosleep.u32 200;");
#endif
}

#else

WEFT_DEV_FN uint64_t weft_dev_load(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

WEFT_DEV_FN uint64_t weft_dev_peek(const uint64_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

/* Each word releases: a fence before would do, but race detectors do not know fences. */
WEFT_DEV_FN void weft_dev_store(uint64_t *p, uint64_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

WEFT_DEV_FN void weft_dev_store_byte(uint8_t *p)
{
	__atomic_store_n(p, 1, __ATOMIC_RELEASE);
}

WEFT_DEV_FN void weft_dev_publish(void)
{
}

WEFT_DEV_FN uint64_t weft_dev_claim(uint64_t *p, uint64_t n)
{
	return __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
}

WEFT_DEV_FN void weft_dev_add(uint64_t *p, uint64_t n)
{
	__atomic_fetch_add(p, n, __ATOMIC_RELEASE);
}

WEFT_DEV_FN uint64_t weft_dev_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

WEFT_DEV_FN void weft_dev_pause(void)
{
	sched_yield();
}

#endif

/* ---- descriptor ---- */

enum weft_dev_kind {
	WEFT_DEV_PUT = 1,
	WEFT_DEV_PUT_VALUE, /* up to 8 bytes that stand in the descriptor */
	WEFT_DEV_GET,
	WEFT_DEV_SIGNAL, /* nothing but the signal */
	WEFT_DEV_KINDS
};

#define WEFT_DEV_DESC_VERSION 1
#define WEFT_DEV_DESC_WORDS   8
#define WEFT_DEV_MAX_BYTES    ((1ull << 48) - 1)
#define WEFT_DEV_MAX_PEERS    (1u << 31)
#define WEFT_DEV_MAX_WINDOWS  (1u << 16)
#define WEFT_DEV_MAX_SIGNALS  (1u << 20)
#define WEFT_DEV_MAX_COUNTERS ((1u << 20) - 1)
#define WEFT_DEV_NO_COUNTER   0xffffffffu

struct weft_dev_desc {
	uint64_t w[WEFT_DEV_DESC_WORDS];
};

/* What a descriptor says. */
struct weft_dev_op {
	uint32_t kind; /* enum weft_dev_kind */
	uint32_t peer;
	uint32_t dst_win, src_win; /* of a get, src_win is the peer's */
	uint64_t dst_off, src_off;
	uint64_t bytes;
	uint64_t value;	  /* of PUT_VALUE: the lowest `bytes` bytes */
	uint32_t signal;  /* of the peer, where add is not 0 */
	uint32_t counter; /* of this rank, plus one when done; or WEFT_DEV_NO_COUNTER */
	uint64_t add;	  /* to the signal, after the data; 0: no signal */
};

/*
 * Word by word, above the lap bit:
 *   0  version 3, kind 3, top bit of value 1, of add 1, counter + 1 20, signal 20
 *   1  dst_off 63
 *   2  src_off 63, or the value without its top bit
 *   3  bytes 48
 *   4  peer 31, dst_win 16, src_win 16
 *   5  add without its top bit
 *   6  number of the descriptor in its ring, from 0
 *   7  0
 */
WEFT_DEV_FN void weft_dev_pack(uint64_t *w, const struct weft_dev_op *op, uint64_t index,
			       uint64_t lap)
{
	const uint64_t low = ~(1ull << 63);
	const uint64_t counter =
		op->counter == WEFT_DEV_NO_COUNTER ? 0 : (uint64_t)op->counter + 1;

	w[0] = (uint64_t)WEFT_DEV_DESC_VERSION | (uint64_t)op->kind << 3 |
	       (op->value >> 63) << 6 | (op->add >> 63) << 7 | counter << 8 |
	       (uint64_t)op->signal << 28;
	w[1] = op->dst_off;
	w[2] = op->kind == WEFT_DEV_PUT_VALUE ? op->value & low : op->src_off;
	w[3] = op->bytes;
	w[4] = (uint64_t)op->peer | (uint64_t)op->dst_win << 31 |
	       (uint64_t)op->src_win << 47;
	w[5] = op->add & low;
	w[6] = index;
	w[7] = 0;
	for (int i = 0; i < WEFT_DEV_DESC_WORDS; i++)
		w[i] = w[i] << 1 | lap;
}

/* ---- the producer's side ---- */

/* Constant while the context lives, except what is pointed to. */
struct weft_dev_ring {
	uint64_t *head;		    /* claimed so far; memory of the producers */
	uint64_t *tail_seen;	    /* copy of tail, beside head */
	struct weft_dev_desc *slot; /* pinned; depth of them */
	const uint64_t *tail;	    /* pinned: taken out by the CPU so far */
	const uint64_t *done;	    /* pinned: complete, in order, so far */
	const uint64_t *state;	    /* pinned: enum weft_dev_status; not OK: given up */
	uint64_t *stuck; /* pinned: not 0: a producer gave up a slot it had claimed */
	uint8_t *ready;	 /* pinned: not 0: the CPU should look at this ring */
	uint64_t depth;	 /* a power of two */
};

#define WEFT_DEV_FOREVER UINT64_MAX

/* Until *word is past `least`, as differences that wrap; or the context or the time ends.
 * Every poll looks at the word, every 64th at the rest. */
WEFT_DEV_FN int weft_dev_await(const uint64_t *word, uint64_t least,
			       const uint64_t *state, uint64_t timeout_ns)
{
	uint64_t start = 0, now;

	for (uint32_t polls = 0;; polls++) {
		if ((int64_t)(weft_dev_load(word) - least) >= 0)
			return WEFT_DEV_OK;
		if (polls % 64)
			continue;
		if (weft_dev_peek(state))
			return (int)weft_dev_peek(state);
		now = weft_dev_clock();
		start = polls ? start : now;
		if (timeout_ns != WEFT_DEV_FOREVER && now - start >= timeout_ns)
			return WEFT_DEV_TIMEOUT;
		weft_dev_pause();
	}
}

/*
 * Until fewer than depth descriptors lie before number `index`. Thousands of threads may
 * be here: most polls are of the copy in their own memory, and the one across the bus is
 * made now and then by each.
 */
WEFT_DEV_FN int weft_dev_room(const struct weft_dev_ring *r, uint64_t index,
			      uint64_t timeout_ns)
{
	uint64_t start = 0, now, tail;

	for (uint32_t polls = 0;; polls++) {
		if ((int64_t)(index - r->depth - weft_dev_peek(r->tail_seen)) < 0)
			return WEFT_DEV_OK;
		if ((polls + index) % 16 && polls)
			continue;
		/* Before anything is written over a slot, its reader has let it go. */
		tail = weft_dev_load(r->tail);
		weft_dev_store(r->tail_seen, tail);
		if ((int64_t)(index - r->depth - tail) < 0)
			return WEFT_DEV_OK;
		if (weft_dev_peek(r->state))
			return (int)weft_dev_peek(r->state);
		now = weft_dev_clock();
		start = polls ? start : now;
		if (timeout_ns != WEFT_DEV_FOREVER && now - start >= timeout_ns)
			return WEFT_DEV_TIMEOUT;
		weft_dev_pause();
	}
}

/*
 * Puts one descriptor into the ring, by one thread; data that it speaks of was written
 * before. Any number of threads may at once. TIMEOUT: there was no room; nothing was
 * put in. A thread that has claimed a slot and still finds no room for as long again
 * gives the context up (`stuck`), since nobody else can fill that slot.
 */
WEFT_DEV_FN int weft_dev_post(const struct weft_dev_ring *r, const struct weft_dev_op *op,
			      uint64_t timeout_ns)
{
	int status = (int)weft_dev_peek(r->state);
	uint64_t w[WEFT_DEV_DESC_WORDS], index;
	struct weft_dev_desc *slot;

	if (status == WEFT_DEV_OK)
		status = weft_dev_room(r, weft_dev_peek(r->head), timeout_ns);
	if (status != WEFT_DEV_OK)
		return status;
	index = weft_dev_claim(r->head, 1);
	status = weft_dev_room(r, index, timeout_ns);
	if (status != WEFT_DEV_OK) {
		weft_dev_store(r->stuck, index + 1);
		return status;
	}
	slot = &r->slot[index & (r->depth - 1)];
	weft_dev_pack(w, op, index, ~(index / r->depth) & 1);
	weft_dev_publish();
	for (int i = 0; i < WEFT_DEV_DESC_WORDS; i++)
		weft_dev_store(&slot->w[i], w[i]);
	weft_dev_store_byte(r->ready);
	return WEFT_DEV_OK;
}

/* Until all that was put in before is complete. */
WEFT_DEV_FN int weft_dev_drained(const struct weft_dev_ring *r, uint64_t timeout_ns)
{
	return weft_dev_await(r->done, weft_dev_peek(r->head), r->state, timeout_ns);
}

#endif
