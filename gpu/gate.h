/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gate in a stream of the application: the host learns that the stream has come there,
 * does what it has to do, and lets the stream go on. Two words in pinned memory; neither
 * side calls the driver while it waits.
 *
 * One gate is used in one of two ways for all its life:
 *
 *  counting, gate_pass(gate, stream, n), n = 1, 2, 3, ...: passage n writes n to
 * `arrived` and waits until `opened` is at least n. Any number may be in a stream at
 * once; they are opened in order.
 *
 *  replayed, gate_pass(gate, stream, 0) while the stream is captured: every replay of the
 *  graph writes 1 to `arrived`, waits for `opened` and puts it back to 0. The host puts
 *  `arrived` back (gate_take()) before it opens. One replay at a time, as graphs are.
 *
 * Who gives up calls gate_break(): every passage, now and later, goes through at once; a
 * replayed gate is to be opened by whoever sees it arrive, as before. That the work
 * behind it was not done is the caller's to tell.
 *
 * Threads: gate_pass() by one thread at a time; the others by any, one at a time.
 */
#ifndef WEFT_GPU_GATE_H
#define WEFT_GPU_GATE_H

#include "gpu/gpu.h"

/* Later than every passage. */
#define GATE_BROKEN ((uint64_t)INT64_MAX)

/* What lies in pinned memory, each word alone in its line. */
struct gate_words {
	_Alignas(128) _Atomic uint64_t arrived;
	_Alignas(128) _Atomic uint64_t opened;
};

struct gate {
	struct gpu *gpu;
	int device;
	struct gate_words *words; /* the caller's, pinned and zero */
	_Atomic bool broken;
};

/* words: sizeof(struct gate_words) bytes of pinned memory (gpu_pinned_alloc()), aligned
 * to 128 and zero; the caller's for as long as streams or graphs have the gate. -ENOSYS
 * where the device holds no streams. */
int gate_init(struct gate *gate, struct gpu *gpu, int device, struct gate_words *words);

/* Puts passage n, or a replayed one (0), on the stream. Errors: of gpu_stream_words(). */
int gate_pass(struct gate *gate, void *stream, uint64_t n);

/* Counting: how many passages have been reached. */
static inline uint64_t gate_arrived(const struct gate *gate)
{
	return atomic_load_explicit(&gate->words->arrived, memory_order_acquire);
}

/* Replayed: whether the stream is there; true once for each replay. */
static inline bool gate_take(struct gate *gate)
{
	if (!atomic_load_explicit(&gate->words->arrived, memory_order_acquire))
		return false;
	atomic_store_explicit(&gate->words->arrived, 0, memory_order_relaxed);
	return true;
}

/* Lets passages up to n through; of a replayed gate, the one that was taken (n is 1).
 * What the host wrote before is visible to what the stream does after. */
static inline void gate_open(struct gate *gate, uint64_t n)
{
	atomic_store_explicit(&gate->words->opened, n, memory_order_seq_cst);
	if (atomic_load_explicit(&gate->broken, memory_order_seq_cst))
		atomic_store_explicit(&gate->words->opened, GATE_BROKEN,
				      memory_order_release);
}

/* For good. */
void gate_break(struct gate *gate);

#endif
