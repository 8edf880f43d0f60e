/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose turn it is: the application's, whenever it makes a call, or the helper thread's.
 * What an endpoint holds is touched by whoever's turn it is and by nobody else.
 *
 * It costs the application two stores and a load, neither a lock nor a fence: the helper
 * says that it comes, has the system put a barrier into every thread (membarrier), looks
 * whether the application is in, and goes again if it is. Where the system has no such
 * barrier the application's stores and loads are sequentially consistent. Only an
 * application that comes while the helper is in waits for it, which is no longer than one
 * turn.
 */
#ifndef WEFT_WIRE_UET_UET_TURN_H
#define WEFT_WIRE_UET_UET_TURN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct uet_turn {
	/* Odd: the application is in. Grows, so that it also says whether it was. */
	_Atomic(uint64_t) calls;
	_Atomic(bool) helper;  /* is in, or about to look whether it may */
	bool fenced;	       /* no membarrier */
	uint32_t depth;	       /* calls inside of calls; the application's */
	pthread_mutex_t mutex; /* the helper's, while `helper` is set */
};

void uet_turn_open(struct uet_turn *turn);
void uet_turn_close(struct uet_turn *turn);

/* The helper is, or may be, in: waits until it isn't. */
void uet_turn_wait(struct uet_turn *turn);

/* The application's calls, which may be inside of each other; one thread at a time. */
static inline void uet_turn_take(struct uet_turn *turn)
{
	uint64_t calls;

	if (turn->depth++)
		return;
	calls = atomic_load_explicit(&turn->calls, memory_order_relaxed) + 1;
	if (turn->fenced) {
		atomic_store(&turn->calls, calls);
		if (atomic_load(&turn->helper))
			uet_turn_wait(turn);
		return;
	}
	atomic_store_explicit(&turn->calls, calls, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&turn->helper, memory_order_acquire))
		uet_turn_wait(turn);
}

static inline void uet_turn_give(struct uet_turn *turn)
{
	uint64_t calls;

	if (--turn->depth)
		return;
	calls = atomic_load_explicit(&turn->calls, memory_order_relaxed) + 1;
	atomic_store_explicit(&turn->calls, calls, memory_order_release);
}

/* The helper's. False: the application is in. Else nobody is until uet_turn_out. */
bool uet_turn_try(struct uet_turn *turn);
void uet_turn_out(struct uet_turn *turn);
/* Differs from an earlier one if the application made, or makes, a call since. */
uint64_t uet_turn_calls(struct uet_turn *turn);

#endif
