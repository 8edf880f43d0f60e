/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GPUs of a context: opened when a call first names device memory or a stream, so
 * that nobody else pays for them. Two queues of each device that is used: one brings what
 * lies there to the host, one takes results back, so that both directions of the bus are
 * busy at once. Pinned memory for copies is kept for the next call (pinned.h).
 *
 * A device is prepared when a communicator is made while the process uses it already,
 * when weft_gpu_prepare() says so, or else by the first call that names it. All that the
 * driver may wait for (gpu/quiet.h) is asked for by a thread of its own, so that nobody
 * waits for it longer than the limit in gpus.c.
 */
#ifndef WEFT_EXEC_GPUS_H
#define WEFT_EXEC_GPUS_H

#include "coll/exec/pinned.h"
#include "gpu/gpu.h"
#include "util/list.h"
#include "weft/weft.h"

struct exec;

struct gpus_queues {
	struct gpu_queue *in;  /* device to host */
	struct gpu_queue *out; /* host to device */
};

/* The words of a stream or of a captured call: so many bytes each, out of one piece. */
#define WORDS_EACH  512
#define WORDS_COUNT 1024
#define WORDS_BYTES ((size_t)WORDS_EACH * WORDS_COUNT)

struct gpus_work;

struct gpus {
	struct gpu *gpu;
	struct gpus_queues *queues; /* by device, NULL until used */
	struct pinned_pool pool;
	char *words; /* pinned, zero where free; NULL until a device is prepared */
	uint64_t words_used[WORDS_COUNT / 64];
	struct list gates;	/* struct stream_gate, passage.h */
	struct gpus_work *work; /* that goes on; NULL: none */
};

/* Opens them; UNSUPPORTED with the reason where there is none: `what` is what asked
 * ("src.kind is WEFT_MEM_CUDA"). */
enum weft_result gpus_get(struct exec *x, const char *what, struct gpus **gpus);
/* Where nothing is open there is nothing to close. Before the registrations go. */
void gpus_close(struct exec *x);

/* Prepares a device. BUSY (streams are held), NOMEM, DEVICE. */
enum weft_result gpus_use(struct exec *x, int32_t device);
/* The queues of a device that is prepared. */
void gpus_queues(struct exec *x, int32_t device, struct gpus_queues *queues);

/* Pins a buffer, which others may have to give way to, unless something is in the way;
 * it stays plain then. False: it goes on, and the buffer is not the caller's any more. */
bool gpus_pin(struct exec *x, struct pinned *pinned);

/* Words of a stream, zero; NULL: all are in use. Given back when no stream has them. */
void *words_get(struct gpus *gpus);
void words_put(struct gpus *gpus, void *words);

#endif
